"""Reading a user's file: CSV in its many dialects, or Parquet."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from residua.errors import InputError, MissingExtra, listed

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = ",;\t|"
TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".data")
PARQUET_ENDINGS = (".parquet", ".pq")


def read_table(path: str | Path) -> tuple[pd.DataFrame, list[str]]:
    """Return a file's table, and what was done to read it."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"There is no file {path}. Check the path.")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty. Give a table with a header and rows.")
    ending = path.suffix.lower()
    if ending in PARQUET_ENDINGS:
        return _read_parquet(path), []
    if ending not in TEXT_ENDINGS:
        known = ", ".join((*TEXT_ENDINGS, *PARQUET_ENDINGS))
        raise InputError(f"{path} ends in '{ending}', which is not one of {known}. Convert it.")
    return _read_text(path)


def _read_parquet(path: Path) -> Any:
    """Return a Parquet table with pandas where pyarrow is there, else with polars."""
    from importlib.util import find_spec

    try:
        if find_spec("pyarrow"):
            import pandas as pd

            return pd.read_parquet(path)
        if find_spec("polars"):
            import polars as pl

            return pl.read_parquet(path)
    except Exception as error:
        raise InputError(f"{path} is not a Parquet file that can be read ({error}).") from error
    raise MissingExtra("Reading Parquet", "polars")


def _read_text(path: Path) -> tuple[pd.DataFrame, list[str]]:
    import pandas as pd

    text, notes = _decoded(path)
    separator = _separator(text)
    names = _header(path, text, separator)
    decimal = "," if separator == ";" and _has_decimal_commas(text) else "."
    try:
        frame = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            decimal=decimal,
            low_memory=False,
            skip_blank_lines=True,
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a table: {str(error).strip()}") from error
    if len(frame) == 0:
        raise InputError(f"{path} has a header but no rows. Give a table with rows.")
    frame.columns = pd.Index(names) if len(names) == frame.shape[1] else frame.columns
    if separator != ",":
        notes.append(f"Columns are separated by {separator!r}.")
    if decimal == ",":
        notes.append("Numbers are written with decimal commas.")
    return _without_row_numbers(frame, notes)


def _decoded(path: Path) -> tuple[str, list[str]]:
    raw = path.read_bytes()
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16", errors="replace"), ["The file is UTF-16."]
    if b"\x00" in raw:
        raise InputError(
            f"{path} holds NUL bytes, so it is not a text table. Save it again as CSV (UTF-8)."
        )
    try:
        return raw.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        return raw.decode("latin-1"), ["The file is not UTF-8; it was read as Latin-1."]


def _separator(text: str) -> str:
    """Return the separator that splits the first lines into the same number of cells, most."""
    lines = [line for line in text.splitlines()[:20] if line.strip()]

    def cells(separator: str) -> tuple[bool, int]:
        counts = [len(row) for row in csv.reader(lines, delimiter=separator)]
        return (len(set(counts)) == 1 and counts[0] > 1, counts[0] if counts else 0)

    return max(SEPARATORS, key=cells)


def _header(path: Path, text: str, separator: str) -> list[str]:
    """Return the column names as they stand in the file, or raise where one stands twice."""
    lines = (line for line in io.StringIO(text) if line.strip())
    names = next(csv.reader(lines, delimiter=separator), [])
    if not names:
        raise InputError(f"{path} is empty. Give a table with a header and rows.")
    twice = sorted({name for name in names if name.strip() and names.count(name) > 1})
    if twice:
        raise InputError(f"{path} has more than one column called {listed(twice)}. Rename them.")
    return [name if name.strip() else f"(column {at + 1})" for at, name in enumerate(names)]


def _has_decimal_commas(text: str) -> bool:
    """Return whether cells between semicolons look like 3,14 and none like 3.14."""
    import re

    sample = text[:100_000]
    return bool(re.search(r";-?\d+,\d+[;\r\n]", sample)) and not re.search(
        r";-?\d+\.\d+[;\r\n]", sample
    )


def _without_row_numbers(frame: pd.DataFrame, notes: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return the table without a first column that has no name and only counts the rows."""
    first = str(frame.columns[0])
    if first not in ("(column 1)", "Unnamed: 0") or frame.shape[1] < 2:
        return frame, notes
    values = frame.iloc[:, 0].tolist()
    if values in (list(range(len(frame))), list(range(1, len(frame) + 1))):
        return frame.iloc[:, 1:], [
            *notes,
            "The first column has no name and counts rows: left out.",
        ]
    return frame, notes
