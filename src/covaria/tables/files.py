"""Files: reading CSV in its many dialects, or Parquet, and writing CSV."""

from __future__ import annotations

import csv
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from covaria.errors import InputError, MissingExtra, did_you_mean, listed, short
from covaria.tables.reading import frame_of
from covaria.tables.sampling import ARROW_ENDINGS, PARQUET_ENDINGS, at_hand, kind_of
from covaria.tables.texts import read_toml
from covaria.tables.writing import write_text

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = ",;\t|"
TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".data")
PARQUET_MARK = b"PAR1"
STANDARD_INPUT = ("-", "/dev/stdin")
# Full-width signs start a formula too where a spreadsheet is set to Chinese or Japanese.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
BLANKS = " \u00a0\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\ufeff\0"
DATE = re.compile(r"\d{4}-\d{2}-\d{2}([ T].*)?")


def read_table(
    path: str | Path, rows: int | None = None, seed: int = 0
) -> tuple[pd.DataFrame, list[str]]:
    """Return a file's table, or a random sample of its rows, and what was done to read it.

    Of Parquet and Arrow files and folders no more is read than memory allows.
    """
    path = Path(path)
    if _is_stream(path):
        frame, notes = _read_text(path, _streamed(path))
    elif kind_of(path):
        return _read_columns(path, rows, seed)
    else:
        _check_file(path)
        if path.suffix.lower() not in TEXT_ENDINGS:
            known = ", ".join((*TEXT_ENDINGS, *PARQUET_ENDINGS, *ARROW_ENDINGS))
            raise InputError(f"{path} does not end in one of {known}. Convert or rename it.")
        frame, notes = _read_text(path, path.read_bytes())
    some, said = at_hand(frame, rows, seed)
    return some, [*notes, *said]


def opened(X: Any) -> tuple[Any, list[str]]:
    """Return the table of a CSV's path and what was done to read it; anything else as it is."""
    if not isinstance(X, (str, os.PathLike)) or Path(X).suffix.lower() not in TEXT_ENDINGS:
        return X, []
    return read_table(Path(X).expanduser())


def _is_stream(path: Path) -> bool:
    """Return whether a table comes down a pipe: -, /dev/stdin or <(command)."""
    try:
        return str(path) in STANDARD_INPUT or path.is_fifo()
    except OSError:
        return False


def _streamed(path: Path) -> bytes:
    """Return all that a pipe holds."""
    if str(path) not in STANDARD_INPUT:
        raw = path.read_bytes()
    elif sys.stdin is None or sys.stdin.isatty():
        raise InputError(f"{path}: there is no table on standard input. Pipe one in as CSV.")
    else:
        raw = sys.stdin.buffer.read()
    if not raw:
        raise InputError(f"{path} is empty. Give a table with a header and rows.")
    if raw.startswith(PARQUET_MARK):
        raise InputError(f"{path} holds Parquet, which cannot be piped. Give the path of a file.")
    return raw


def without_columns(frame: pd.DataFrame, names: str) -> pd.DataFrame:
    """Return a table without the columns that a comma-separated text names."""
    unwanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in unwanted:
        if name not in frame.columns:
            raise InputError(
                f"There is no column '{name}' to drop.{did_you_mean(name, frame.columns)}"
            )
    return frame[[name for name in frame.columns if name not in unwanted]] if unwanted else frame


def as_categories(frame: pd.DataFrame, names: str) -> pd.DataFrame:
    """Return a table in which the columns that a comma-separated text names are categories."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in frame.columns:
            raise InputError(
                f"There is no column '{name}' of categories.{did_you_mean(name, frame.columns)}"
            )
    if not wanted:
        return frame
    frame = frame_of(frame)  # it may be of polars
    texts = {name: frame[name].map(str, na_action="ignore") for name in wanted}
    return frame.assign(**texts).astype(dict.fromkeys(wanted, "category"))


def read_csv(path: Path, **settings: Any) -> pd.DataFrame:
    """Return a table that `covaria` wrote before, or raise that it is damaged."""
    import pandas as pd

    try:
        frame: pd.DataFrame = pd.read_csv(path, **settings)
    except (ValueError, OSError) as error:
        raise InputError(f"{path} cannot be read ({_reason(error)}). Make it again.") from error
    return frame


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a table in which no cell of text is a formula to a spreadsheet (CWE-1236)."""
    write_text(path, safe(frame).to_csv(index=False, lineterminator="\n"))


def safe(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which no cell, nor a name of a column, is a formula to a spreadsheet."""
    return frame.map(safe_cell).rename(columns=safe_cell)


def safe_cell(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula, whatever blanks stand before it.

    >>> safe_cell("=1+1"), safe_cell(" \u200b@x"), safe_cell("a=b"), safe_cell(-2)
    ("'=1+1", "' \u200b@x", 'a=b', -2)
    """
    if not isinstance(value, str):
        return value
    value = value.replace("\r\n", "\n").replace("\r", "\n")  # pandas quotes only what it ends with
    bare = value.lstrip(BLANKS)
    return f"'{value}" if value.startswith(FORMULA) or bare.startswith(FORMULA) else value


def read_groups(path: Path | None) -> dict[str, list[str]] | None:
    """Return the groups of columns that a TOML file names; None where there is none."""
    if path is None:
        return None
    found = read_toml(path, 'TOML such as place = ["lat", "lon"]')
    groups: dict[str, list[str]] = found.get("groups", found)
    return groups


def _check_file(path: Path) -> None:
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder. Give the path of a table.")
        if not path.is_file():
            what = f"{path} is no file" if path.exists() else f"There is no file {path}"
            raise InputError(f"{what}. Check the path.")
        with path.open("rb") as file:
            if not file.read(1):
                raise InputError(f"{path} is empty. Give a table with a header and rows.")
    except OSError as error:
        raise InputError(f"{path} cannot be opened ({error.strerror}). Check the path.") from error


def _read_columns(path: Path, rows: int | None, seed: int) -> tuple[pd.DataFrame, list[str]]:
    """Return a table of Parquet or Arrow with pyarrow, or a Parquet file with polars."""
    from importlib.util import find_spec

    if not path.is_dir():
        _check_file(path)
    try:
        if find_spec("pyarrow"):
            return at_hand(path, rows, seed)
        if find_spec("polars") and path.suffix.lower() in PARQUET_ENDINGS:
            import polars as pl

            return at_hand(pl.scan_parquet(path), rows, seed)  # any dataframe will do
    except Exception as error:
        what = f"a {kind_of(path).capitalize()} file" if path.is_file() else "a folder of tables"
        raise InputError(
            f"{path} is not {what} that can be read ({_reason(error)}). Write it again."
        ) from error
    raise MissingExtra("Reading Parquet", "parquet")


def _read_text(path: Path, raw: bytes) -> tuple[pd.DataFrame, list[str]]:
    text, notes = _decoded(path, raw)
    try:
        with _cells_as_long_as(text):
            separator = _separator(text)
            names = _header(path, text, separator)
    except csv.Error as error:
        raise _unreadable(path, error) from error
    decimal = "," if _has_decimal_commas(text, separator) else "."
    frame = _parsed(path, text, separator, decimal)
    frame.columns = names
    if separator != ",":
        notes.append(f"Columns are separated by {separator!r}.")
    if decimal == ",":
        notes.append("Numbers are written with decimal commas.")
    return _without_row_numbers(_with_dates(frame, notes), notes)


def _parsed(path: Path, text: str, separator: str, decimal: str) -> pd.DataFrame:
    import pandas as pd

    try:
        frame = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            decimal=decimal,
            low_memory=False,
            skip_blank_lines=True,
            skipinitialspace=True,
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise _unreadable(path, error) from error
    if len(frame) == 0:
        raise InputError(f"{path} has a header but no rows. Give a table with rows.")
    return frame


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} cannot be read as a table ({_reason(error)}). Mend that line.")


def _reason(error: Exception) -> str:
    text = str(error).replace("Error tokenizing data. C error: ", "").strip()
    return short(text or type(error).__name__, 150).rstrip(".")


def _decoded(path: Path, raw: bytes) -> tuple[str, list[str]]:
    """Return the file as text with plain line ends, and what its encoding was."""
    text, notes = _text_of(raw)
    if "\x00" in text:
        raise InputError(
            f"{path} holds NUL bytes, so it is not a text table. Save it again as CSV (UTF-8)."
        )
    return text.replace("\r\n", "\n").replace("\r", "\n").lstrip(" \n"), notes


def _text_of(raw: bytes) -> tuple[str, list[str]]:
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16", errors="replace"), ["The file is UTF-16."]
    try:
        return raw.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        return raw.decode("latin-1"), ["The file is not UTF-8; it was read as Latin-1."]


def _separator(text: str) -> str:
    """Return the separator that splits the first lines into the same number of cells, most."""
    lines = [line for line, _ in zip(_filled_lines(text), range(20), strict=False)]

    def cells(separator: str) -> tuple[bool, int]:
        counts = [len(row) for row in _cells(lines, separator)]
        return (len(set(counts)) == 1 and counts[0] > 1, counts[0] if counts else 0)

    return max(SEPARATORS, key=cells)


@contextmanager
def _cells_as_long_as(text: str) -> Iterator[None]:
    """Let a cell be as long as the text: with the wrong separator, a line is one cell."""
    usual = csv.field_size_limit()
    csv.field_size_limit(max(usual, min(len(text) + 1, 2**31 - 1)))
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def _filled_lines(text: str) -> Iterable[str]:
    return (line for line in io.StringIO(text) if line.strip())


def _cells(lines: Iterable[str], separator: str) -> Iterator[list[str]]:
    return csv.reader(lines, delimiter=separator, skipinitialspace=True)


def _header(path: Path, text: str, separator: str) -> list[str]:
    """Return the column names as they stand in the file, or raise where one stands twice."""
    rows = _cells(_filled_lines(text), separator)
    names: list[str] = next(rows, [])
    if not names:
        raise InputError(f"{path} is empty. Give a table with a header and rows.")
    if len(next(rows, [])) > len(names):
        # pandas would take the first cell for row names and shift every column by one.
        raise InputError(
            f"{path} has more cells in its rows than names in its header. Name every column, and "
            "end no row with a separator."
        )
    twice = sorted({name for name in names if name.strip() and names.count(name) > 1})
    if twice:
        raise InputError(f"{path} has more than one column called {listed(twice)}. Rename them.")
    return [name if name.strip() else f"(column {at + 1})" for at, name in enumerate(names)]


def _has_decimal_commas(text: str, separator: str) -> bool:
    """Return whether there are cells like 3,14 and none like 3.14."""
    if separator == ",":
        return False
    edge, sample = re.escape(separator), text[:100_000]

    def has_cells(point: str) -> bool:
        cell = rf"(?:^|{edge})-?\d+{point}\d+(?:$|{edge})"
        return re.search(cell, sample, re.MULTILINE) is not None

    return has_cells(",") and not has_cells(r"\.")


def _with_dates(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Return the table with columns like 2024-01-31 as dates rather than as categories."""
    import pandas as pd

    for name in frame.columns:
        values = frame[name].dropna()
        if len(values) == 0 or not DATE.fullmatch(str(values.iloc[0])):
            continue
        dates = pd.to_datetime(frame[name], format="ISO8601", errors="coerce", utc=True)
        if dates.notna().sum() == len(values):
            frame[name] = dates
            notes.append(f"Column '{short(str(name))}' holds dates: it counts days.")
    return frame


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
