"""Reading what people hand us: any table as columns of numbers or labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Protocol, SupportsFloat, cast

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError, listed, plural, short, text_of
from covaria.tables.sampling import computed
from covaria.tables.written import (
    FEW_TEXTS,
    day_number,
    is_gap_word,
    read_written,
    text_among_numbers,
    unit_of,
)

if TYPE_CHECKING:
    import narwhals as nw
    import pandas as pd
    from narwhals.typing import IntoFrame, IntoSeries

    Series = nw.Series[IntoSeries]

Array = NDArray[np.float64]

NOT_A_TABLE = "X is not a table. Give a dataframe or a two-dimensional array."
HALF_A_CHARACTER = (
    "holds text with half a character (a lone surrogate). Mend it first: "
    "text.encode('utf-8', 'replace').decode()."
)
MOST_CELLS = 10**9


@dataclass(frozen=True)
class Column:
    """One column as it came: numbers with NaN for gaps, or labels with None for gaps."""

    values: NDArray[Any]
    is_label: bool = False
    was_text: bool = False
    note: str = ""  # how text was read
    problem: str = ""  # why it cannot be read
    order: tuple[str, ...] = ()  # of labels that have one

    def __len__(self) -> int:
        return len(self.values)

    def at(self, rows: NDArray[np.intp]) -> Column:
        """Return some rows."""
        return replace(self, values=self.values[rows])


class Sparse(Protocol):
    """A matrix of SciPy's that holds only what is not 0."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def toarray(self) -> NDArray[np.generic]: ...


def columns_of(X: Any) -> dict[str, Column]:
    """Return the columns of any table by name, in the order they came."""
    if hasattr(X, "toarray"):
        X = _dense(X)
    if _is_frame(X):
        return _frame_columns(X)
    if isinstance(X, Mapping):
        return _frame_columns(_as_frame(X))
    if isinstance(X, (list, tuple)) and len(X) and _is_row(X[0]):
        return _frame_columns(_frame_of_rows(X))
    return _array_columns(X)


def has_columns(X: object) -> bool:
    """Return whether a table came with columns, not as an array."""
    return _is_frame(X) or isinstance(X, Mapping)


def frame_of(X: Any) -> pd.DataFrame:
    """Return any table as a pandas frame, its columns as they came and named as `columns_of` does.

    Rows are numbered from 0.
    """
    import pandas as pd

    X = _dense(X) if hasattr(X, "toarray") else X
    if _is_frame(X):
        frame = X if isinstance(X, pd.DataFrame) else _as_pandas(X)
    elif isinstance(X, Mapping) or (isinstance(X, (list, tuple)) and _is_row(X[0])):
        frame = _as_frame(X)
    else:
        array = np.asanyarray(X)
        frame = _as_frame(_without_mask(array) if np.ma.isMaskedArray(array) else array)
    names = [_clean_name(name, at) for at, name in enumerate(frame.columns)]
    return frame.set_axis(names, axis=1).reset_index(drop=True)


def _as_pandas(X: IntoFrame) -> pd.DataFrame:
    """Return any other dataframe as a pandas frame, by way of lists where pyarrow is missing."""
    import narwhals as nw

    frame = nw.from_native(_renamed(X, _names_of(X)))
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    try:
        return frame.to_pandas()
    except ImportError:
        return _as_frame({name: frame[name].to_list() for name in frame.columns})


def _is_frame(X: object) -> bool:
    marks = ("collect_schema", "column_names", "columns")
    return not isinstance(X, type) and any(hasattr(X, mark) for mark in marks)


def _is_row(value: object) -> bool:
    return isinstance(value, (Mapping, list, tuple)) or getattr(value, "ndim", 0) == 1


def _dense(X: Sparse) -> NDArray[np.generic]:
    if np.prod(X.shape, dtype=float) > MOST_CELLS:
        raise InputError(
            f"X is sparse and has {X.shape[0]:,} rows and {X.shape[-1]:,} columns, too many to "
            "test. Choose the columns that matter to you first."
        )
    return X.toarray()


def _frame_of_rows(rows: Sequence[object]) -> pd.DataFrame:
    if len({len(row) for row in rows if hasattr(row, "__len__")}) > 1:
        raise InputError("X has rows of different lengths. Give every row all its columns.")
    return _as_frame(list(rows))


def _as_frame(X: Any) -> pd.DataFrame:
    """Return a pandas frame; columns without names are called x0, x1, …"""
    import pandas as pd

    try:
        frame = pd.DataFrame(X).infer_objects()
    except UnicodeEncodeError:
        raise InputError(f"X {HALF_A_CHARACTER}") from None
    except (TypeError, ValueError):
        raise InputError(
            "X has columns of different lengths. Give all of them one length."
        ) from None
    if isinstance(frame.columns, pd.RangeIndex) and not isinstance(X, Mapping):
        frame.columns = pd.Index([f"x{j}" for j in range(frame.shape[1])])
    return frame


def _array_columns(X: object) -> dict[str, Column]:
    try:
        array = np.asanyarray(X)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(NOT_A_TABLE) from None
    if array.ndim == 0 or len(array) == 0:
        raise InputError(NOT_A_TABLE)
    if array.dtype.names and array.ndim == 1:
        return _frame_columns(_as_frame(array))
    if array.ndim != 2:
        cure = "X.reshape(-1, 1) makes one feature of it" if array.ndim == 1 else "use two"
        raise InputError(f"X has {plural(array.ndim, 'dimension')}, not rows and columns: {cure}.")
    if array.dtype.kind not in "fiub":
        return _frame_columns(_as_frame(np.asarray(array)))
    numbers = _without_mask(array)
    return {f"x{j}": Column(numbers[:, j]) for j in range(numbers.shape[1])}


def _without_mask(array: NDArray[np.generic]) -> Array:
    """Return an array as numbers, NaN where it was masked."""
    return np.asarray(np.ma.filled(array.astype(float), np.nan))


def _frame_columns(X: IntoFrame) -> dict[str, Column]:
    import narwhals as nw

    clean = _names_of(X)
    try:
        frame = nw.from_native(_renamed(X, clean))
    except TypeError:
        raise InputError(NOT_A_TABLE) from None
    if isinstance(frame, nw.LazyFrame):
        frame = computed(frame.collect)
    return {name: _told(f"Column '{short(name)}'", frame[:, at]) for at, name in enumerate(clean)}


def _told(what: str, series: Series) -> Column:
    """Return a column, or one that says why it cannot be read: others may have problems too."""
    try:
        return _series(what, series)
    except InputError as error:
        return Column(np.full(len(series), np.nan), problem=str(error))


def _names_of(X: IntoFrame) -> list[str]:
    """Return the names of the columns as text, or raise where one stands twice."""
    names = [_clean_name(name, at) for at, name in enumerate(_raw_names(X))]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"X has more than one column called {listed(twice)}. Rename all but one of each."
        )
    return names


def _renamed(X: IntoFrame, names: list[str]) -> IntoFrame:
    """Return a frame with these names where its own are not unique: several may be blank."""
    if len(set(_raw_names(X))) == len(names):
        return X
    if hasattr(X, "rename_columns") and not hasattr(X, "iloc"):
        return cast("IntoFrame", X.rename_columns(names))
    return cast("pd.DataFrame", X).set_axis(names, axis=1)


def _raw_names(X: IntoFrame) -> list[object]:
    # A column of pandas that is called so is an attribute as well.
    if hasattr(X, "collect_schema") and not hasattr(X, "iloc"):
        return list(X.collect_schema().names())
    if hasattr(X, "column_names") and not hasattr(X, "iloc"):
        return list(X.column_names)
    names = X.columns
    if getattr(names, "nlevels", 1) > 1:
        raise InputError("X has several rows of column names. Join them: X.columns.map('_'.join).")
    return list(names)


def _clean_name(name: object, at: int) -> str:
    text = text_of(name)
    return text if text.strip() else f"(column {at + 1})"


def _series(what: str, series: Series) -> Column:
    """Return a dataframe's column as numbers or labels."""
    import narwhals as nw

    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        return Column(_floats(series))
    if dtype in (nw.Categorical, nw.Enum):
        return Column(_labels(series.to_list()), is_label=True, order=_order_of(series))
    if dtype == nw.Date or dtype == nw.Datetime:
        return Column(_days(series))
    if dtype == nw.Duration:
        return Column(np.asarray(series.dt.total_microseconds().cast(nw.Float64).to_numpy()) / 1e6)
    if dtype.is_nested():
        raise InputError(f"{what} holds lists or records. Split it into columns.")
    return objects(what, series.to_list())


def _order_of(series: Series) -> tuple[str, ...]:
    """Return the categories from the lowest to the highest, none where they have no order."""
    import narwhals as nw

    if isinstance(series.dtype, nw.Enum):
        return tuple(text_of(one) for one in series.dtype.categories)
    kind = getattr(series.to_native(), "dtype", None)
    found = getattr(kind, "categories", ()) if getattr(kind, "ordered", False) else ()
    return tuple(text_of(one) for one in found)


def _floats(series: Series) -> Array:
    import narwhals as nw

    try:
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=float)
    except ValueError:  # Arrow refuses whole numbers beyond 2**53, which others round
        found = [np.nan if is_gap(value) else float(value) for value in series.to_list()]
        return np.array(found, dtype=float)


def _days(series: Series) -> Array:
    import narwhals as nw

    if series.dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
    return _floats(series.dt.timestamp("us")) / 86_400e6


def _labels(values: Iterable[object]) -> NDArray[np.generic]:
    return np.array([None if is_gap(v) else text_of(v) for v in values], dtype=object)


def is_gap(value: object) -> bool:
    if value is None or isinstance(value, str):
        return value is None or not value.strip()
    try:
        return bool(value != value)
    except (TypeError, ArithmeticError):
        return True  # pandas' NA and a signalling Decimal refuse to be compared
    except Exception:
        return False  # an object that cannot be compared is there all the same


def objects(what: str, values: list[object]) -> Column:
    """Return a column of Python objects as numbers where all are numbers, else as labels."""
    for value in values:
        if isinstance(value, (list, tuple, dict, set, np.ndarray)):
            raise InputError(f"{what} holds lists or records. Split it into columns.")
        if isinstance(value, complex):
            raise InputError(f"{what} holds complex numbers. Split it into two columns of numbers.")
    there = [v for v in values if not is_gap(v)]
    texts = [v for v in there if _number(v) is None]
    words = {v for v in texts if isinstance(v, str) and is_gap_word(v)}
    odd = [v for v in texts if not (isinstance(v, str) and v in words)]
    n_numbers = len(there) - len(texts)
    written = [v for v in there if isinstance(v, str) and v not in words]
    if not odd and (n_numbers or not there):
        note = _of_words(what, words)
        return Column(_numbers(values, words), was_text=bool(written), note=note)
    if odd and all(isinstance(v, str) for v in odd):
        beside = n_numbers + len(odd) > len(written)
        found = read_written(what, written, beside_numbers=beside)
        if found is not None:
            note = f"{what} {found.how}{_of_words(' It', words)}"
            return Column(_numbers(values, words, found.numbers), was_text=True, note=note)
    if odd and len(odd) <= FEW_TEXTS * (len(odd) + n_numbers):
        raise InputError(text_among_numbers(what, map(text_of, odd)))
    return Column(_labels(values), is_label=True, note=_of_unit(what, there))


def _numbers(
    values: list[object], words: Collection[str], written: Mapping[str, float] | None = None
) -> Array:
    """Return cells as numbers, NaN for gaps and for words that say so."""

    def number(value: object) -> float | None:
        if is_gap(value) or (isinstance(value, str) and value in words):
            return None
        return written[value] if written and isinstance(value, str) else _number(value)

    return np.array([number(value) for value in values], dtype=float)


def _of_unit(what: str, values: list[object]) -> str:
    """Return a note where every label is a number with the same unit."""
    texts = [value for value in values if isinstance(value, str)]
    unit = short(unit_of(texts)) if len(texts) == len(values) else ""
    if not unit:
        return ""
    return (
        f"{what} holds numbers with the unit '{unit}' and is read as a category. If they are "
        f"amounts, take it off: .str.removesuffix('{unit}').astype(float)."
    )


def _of_words(what: str, words: Collection[str]) -> str:
    if not words:
        return ""
    return f"{what} has {listed(sorted(words), 3)} among its numbers: taken for gaps."


def _number(value: object) -> float | None:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, date):
        return day_number(value)
    if hasattr(value, "to_timestamp"):  # a period of pandas, by its start
        return day_number(value.to_timestamp())
    try:
        return float(cast(SupportsFloat, value))
    except OverflowError:
        return np.inf
    except (TypeError, ValueError):
        return None


def vector(what: str, values: object, n_rows: int) -> Column:
    """Return a target, weight or cluster column of the right length."""
    if not isinstance(values, Column):
        values = _raw_vector(what, values)
    assert isinstance(values, Column)
    if values.problem:
        raise InputError(values.problem)
    if len(values) != n_rows:
        raise InputError(f"{what} has {plural(len(values), 'value')} but X has {n_rows:,} rows.")
    return values


def _raw_vector(what: str, values: object) -> Column:
    import narwhals as nw

    if _is_frame(values):
        columns = list(columns_of(values).values())
        if len(columns) != 1:
            raise InputError(f"{what} must be one column; it has {len(columns)}.")
        return columns[0]
    if type(values).__module__.startswith("pandas"):
        import pandas as pd

        values = pd.Series(values)  # an Index or a Categorical would lose its kind as an array
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _series(what, series)
    return _array_vector(what, values)


def _array_vector(what: str, values: object) -> Column:
    try:
        array = np.asanyarray(values)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{what} holds lists or records. Give one value a row.") from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.names:
        raise InputError(
            f"{what} must be one value a row, or the name of a column of X; it has shape "
            f"{array.shape}."
        )
    if array.dtype.kind in "fiub":
        return Column(_without_mask(array), is_label=array.dtype.kind == "b")
    import narwhals as nw
    import pandas as pd

    try:
        series = pd.Series(array)
    except UnicodeEncodeError:
        raise InputError(f"{what} {HALF_A_CHARACTER}") from None
    return _series(what, nw.from_native(series, series_only=True))


def aligned(what: str, values: Any, X: Any) -> tuple[Any, str]:
    """Return values in the order of X's row labels, and what was done; raise where labels differ.

    Only pandas has row labels; anything else goes by position.
    """
    if not (_has_labels(values) and _has_labels(X)) or len(values) != len(X):
        return values, ""
    if values.index.equals(X.index):
        return values, ""
    unique = values.index.is_unique and X.index.is_unique
    if unique and not len(values.index.symmetric_difference(X.index)):
        return values.reindex(X.index), f"{what} was put in the order of X's row labels."
    raise InputError(
        f"{what} has other row labels than X ({_first(values)} where X has {_first(X)}), so their "
        "rows may not belong together. If they do, give it without labels: .to_numpy()."
    )


def _has_labels(values: object) -> bool:
    """Return whether this is a frame or a column of pandas."""
    return type(values).__module__.startswith("pandas") and hasattr(values, "iloc")


def _first(labelled: Any) -> str:
    """Return the first labels of rows, as people read them."""
    return ", ".join(short(text_of(label), 20) for label in labelled.index[:3].tolist()) + ", …"
