"""What a terminal gets: text in which nothing moves a cursor, turns letters round or hides."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO
from unicodedata import category

KEPT = "\n\t\u200c\u200d"  # lines, and the joiners that Persian, Hindi and emoji are written with


class _Codes(dict[int, str]):
    """Each letter as it may be shown, found when it is first asked for."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        if not (letter.isprintable() or letter in KEPT or category(letter) == "Zs"):
            # As JSON writes it, so that a document stays the document it is.
            units = letter.encode("utf-16-be", errors="surrogatepass").hex()
            letter = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
        self[code] = letter
        return letter


_CODES = _Codes()


def without_controls(text: str) -> str:
    """Return lines of text with every other control character as its code.

    >>> without_controls("a\\x1b[31mb\\u202e\\n")
    'a\\\\u001b[31mb\\\\u202e\\n'
    """
    return text if text.isprintable() else text.translate(_CODES)


class Shown:
    """A stream that writes text so; the stream itself is `stream`."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() takes a text, not {type(text).__name__}")
        self.stream.write(without_controls(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def bare(stream: Any) -> TextIO:
    """Return the stream below, for colours and a progress bar."""
    below: TextIO = stream.stream if isinstance(stream, Shown) else stream
    return below


@contextmanager
def shown_streams() -> Iterator[None]:
    """Let whatever is printed be shown so."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (Shown(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
