"""What a shell offers when Tab is pressed: names of learners, methods, columns."""

from __future__ import annotations

import csv
import locale
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from covaria.errors import InputError
from covaria.tables.writing import write_bytes


@contextmanager
def installed_whole() -> Iterator[None]:
    """Let typer write the files of a shell, such as ~/.bashrc, whole or not at all."""
    from unittest import mock

    def write_text(path: Path, text: str) -> None:
        write_bytes(path, text.encode(locale.getpreferredencoding(False)))

    try:
        with mock.patch.object(Path, "write_text", write_text):
            yield
    except UnicodeError:
        raise InputError(
            "The settings of your shell are not all text, so they stay as they are. Add what "
            "covaria --show-completion prints to them."
        ) from None


def learners(incomplete: str) -> list[str]:
    """Return the learners that begin so."""
    from covaria.learners import LEARNERS

    return [name for name in LEARNERS if name.startswith(incomplete)]


def methods(incomplete: str) -> list[str]:
    """Return the methods that may follow the last comma."""
    from covaria.methods import METHODS

    before, comma, last = incomplete.rpartition(",")
    said = before.split(",")
    return [f"{before}{comma}{m}" for m in METHODS if m.startswith(last) and m not in said]


def corrections(incomplete: str) -> list[str]:
    """Return the corrections that begin so."""
    known = ("bh", "by", "holm", "bonferroni", "storey", "none")
    return [name for name in known if name.startswith(incomplete)]


def columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the columns of the table named before, read from its first line."""
    path = _table(ctx)
    if path is None:
        return []
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        first = file.readline(100_000)
    separator = max(",;\t|", key=first.count)
    names = next(csv.reader([first], delimiter=separator), [])
    return [name for name in names if name.startswith(incomplete) and name.isprintable()]


def _table(ctx: typer.Context) -> Path | None:
    """Return the text file on the line; the parser has lost it while an option lacks its value."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    for word in (ctx.params.get("table"), *words):
        path = Path(str(word)).expanduser()
        if path.suffix.lower() in (".csv", ".tsv", ".txt", ".data") and path.is_file():
            return path
    return None
