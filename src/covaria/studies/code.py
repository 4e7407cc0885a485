"""Which Python a study may run: files that the user named, or any where the user trusts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from covaria.errors import InputError, short
from covaria.tables.texts import read_text

Files = str | Path | Sequence[str | Path]
LOOKED_AT = 2000  # lines of a file, for what has changed in it
CURE = "--code {} (code= in Python) after reading it, or --trust (trust=True) for any"


@dataclass(frozen=True)
class Allowed:
    """The Python that may run: the text of files by path, or all of it."""

    texts: dict[Path, str]
    everything: bool = False

    @classmethod
    def of(cls, code: Files, trust: bool) -> Allowed:
        """Return what `code` and `trust` allow."""
        paths = [Path(p) for p in ([code] if isinstance(code, str | Path) else code)]
        for path in paths:
            if path.suffix != ".py":
                raise InputError(f"--code {path} is not a Python file. Name one that ends in .py.")
        return cls({p.resolve(): read_text(p, "a Python file") for p in paths}, bool(trust))

    def read(self, name: str, path: Path) -> str:
        """Return the text of a file that a scenario names, where that may run."""
        found = self.texts.get(path.resolve())
        if found is None and not self.everything:
            cure = CURE.format(path)
            raise InputError(f"Scenario '{short(name)}' would run {path}: allow it with {cure}.")
        return read_text(path, "a Python file") if found is None else found

    def check_kept(self, name: str, file: str, source: str) -> None:
        """Raise where the Python that a study holds itself may not run."""
        named = [text for path, text in self.texts.items() if path.name == file]
        if self.everything or source in named:
            return
        if named:
            raise InputError(
                f"{file} is not what the study was begun with: {changed_lines(source, named[0])}. "
                "Give the file as it was, or start over with: study run --new."
            )
        raise InputError(
            f"Scenario '{short(name)}' would run Python that this study holds, of {short(file)}: "
            f"allow it with {CURE.format(short(file))}."
        )


NONE = Allowed({})


def changed_lines(before: str, now: str, most: int = 3) -> str:
    """Return the first lines that differ between two texts, and how many more do.

    >>> changed_lines("a\\nb\\nc", "a\\nB\\nc")
    "line 2 was 'b' and is 'B'"
    """
    was, is_now = (text.splitlines()[:LOOKED_AT] for text in (before, now))
    found = []
    for kind, a, b, c, d in SequenceMatcher(None, was, is_now).get_opcodes():
        for k in range(max(b - a, d - c) if kind != "equal" else 0):
            old = repr(short(was[a + k])) if a + k < b else "not there"
            new = repr(short(is_now[c + k])) if c + k < d else "gone"
            found.append(f"line {min(a + k, b) + 1} was {old} and is {new}")
    if not found:
        return f"a line after the first {LOOKED_AT:,}, or how it ends"
    more = len(found) - most
    return "; ".join(found[:most]) + (f" and {more} more" if more > 0 else "")
