"""Draws of a refit on a real table, kept one by one: a line of JSON each, with a checksum."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from covaria.errors import StoreError
from covaria.selection.refit import Refit, joined
from covaria.tables.texts import checksum

Key = Mapping[str, object]


class Draws:
    """The draws in a file that belong to one run; another version's, or damaged ones, do not."""

    def __init__(self, path: Path, about: Key) -> None:
        self.path = path
        self.about = about
        self.found: dict[str, Refit] = dict(self._lines())

    def get(self, key: Key) -> Refit | None:
        """Return the draw of a key, where it is there."""
        return self.found.get(self._name(key))

    def add(self, key: Key, draw: Refit) -> None:
        """Write a draw to the disk before the next is made."""
        line = {"name": self._name(key), "draw": draw.to_dict()}
        # What was killed while it wrote left a line without an end.
        text = f"\n{json.dumps({**line, 'checksum': checksum(line)}, allow_nan=False)}\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(
                f"{self.path} cannot be written ({error.strerror}). Every finished draw is kept; "
                "make room and start again."
            ) from error

    def _name(self, key: Key) -> str:
        return checksum({**self.about, **key})

    def _lines(self) -> Iterator[tuple[str, Refit]]:
        if not self.path.is_file():
            return
        for line in self.path.read_bytes().splitlines():
            try:
                stored = json.loads(line)
                if stored.pop("checksum") == checksum(stored):
                    draw = Refit.from_dict(stored["draw"])
                    _ = joined([draw])  # what has not the columns of a draw raises here
                    yield stored["name"], draw
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue  # cut short, or changed: that draw is made again
