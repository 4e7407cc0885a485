"""The target: its name, its numbers or classes, or several of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError, plural, short, text_of
from covaria.tables.arrays import Array
from covaria.tables.beside import MIN_ROWS
from covaria.tables.layout import MAX_LEVELS, check_numbers, is_constant
from covaria.tables.reading import Column, columns_of, frame_of, has_columns, is_gap, vector

MAX_CLASSES = 50
TASKS = ("auto", "regression", "classification", "ordinal")


def several_targets(y: object) -> dict[str, object]:
    """Return targets by their names where there are several: names, a frame or an array of them."""
    if isinstance(y, (list, tuple)) and len(y) > 1 and all(isinstance(one, str) for one in y):
        return {text_of(name): name for name in y} if len(y) < MIN_ROWS else {}
    if has_columns(y):
        columns = columns_of(y)
        frame = frame_of(y)
        return {name: frame[name] for name in columns} if len(columns) > 1 else {}
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] > 1:
        return {f"y{k}": y[:, k] for k in range(y.shape[1])}
    return {}


def check_target(y: object, **others: object) -> None:
    """Raise where there is no target, or where another option names the same column."""
    for name, given in others.items():
        if isinstance(given, str) and isinstance(y, str) and given == y:
            raise InputError(f"{name}='{short(y)}' is the target. Name another column.")
    if y is None:
        raise InputError("There is no target. Give y, or the name of a column of X as y.")


def name_of_target(y: object) -> str:
    name = getattr(y, "name", None)
    return "y" if is_gap(name) or not name else text_of(name)


def read_target(name: str, y: object, n_rows: int, task: str) -> tuple[Array, tuple[str, ...]]:
    """Return y as numbers, or as class codes with the class names."""
    what = f"The target '{short(name)}'"
    raw = vector(what, y, n_rows)
    gone = _gaps(raw.values)
    if gone:
        raise InputError(
            f"{what} is missing in {plural(len(gone), 'row')} (the first is row {gone[0] + 1}). "
            "Drop those rows, or use missing_target='drop' (--missing-target drop)."
        )
    distinct = np.unique(raw.values)
    if len(distinct) < 2:
        raise InputError(f"{what} is the same in every row. Choose a target that varies.")
    if task == "ordinal":
        return _mean_ranks(what, raw, distinct), ()
    is_text = raw.values.dtype == object or (raw.was_text and len(distinct) <= MAX_LEVELS)
    is_classes = raw.is_label or is_text or len(distinct) == 2
    if task == "classification" or (task == "auto" and is_classes):
        return _class_codes(what, raw, distinct)
    if raw.values.dtype == object:
        raise InputError(f"{what} holds text. Give numbers, or use task='classification'.")
    check_numbers(what, raw.values)
    if is_constant(raw.values):
        raise InputError(f"{what} is the same in every row. Choose a target that varies.")
    return np.ascontiguousarray(raw.values, dtype=float), ()


def _mean_ranks(what: str, raw: Column, distinct: NDArray[np.generic]) -> Array:
    """Return the share of rows below each row's class and half of its own (ridits, Bross 1958)."""
    if raw.values.dtype == object and not raw.order:
        raise InputError(
            f"{what} holds text without an order. Give numbers, or an ordered category: "
            "pandas.Categorical(y, categories=[…], ordered=True)."
        )
    place = {label: at for at, label in enumerate(raw.order or distinct.tolist())}
    codes = np.array([place[value] for value in raw.values.tolist()], dtype=np.intp)
    counts = np.bincount(codes, minlength=len(place))
    return np.asarray((np.cumsum(counts) - counts / 2)[codes] / len(codes))


def _gaps(values: NDArray[np.generic]) -> list[int]:
    """Return which rows have no value."""
    if np.issubdtype(values.dtype, np.floating):
        return [int(at) for at in np.flatnonzero(np.isnan(values))]
    return [at for at, value in enumerate(values) if is_gap(value)]


def _class_codes(
    what: str, raw: Column, distinct: NDArray[np.generic]
) -> tuple[Array, tuple[str, ...]]:
    if len(distinct) > MAX_CLASSES:
        raise InputError(
            f"{what} has {len(distinct):,} classes, more than {MAX_CLASSES}. "
            "Merge rare ones, or give a target of numbers."
        )
    codes = np.searchsorted(distinct, raw.values).astype(float)
    return codes, tuple(f"{v:g}" if isinstance(v, float) else str(v) for v in distinct.tolist())
