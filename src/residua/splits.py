"""Which rows a model learns from, and which it is tested on."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from residua.data import Dataset, Rows
from residua.errors import InputError, plural, short
from residua.randomness import seed_of

Fold = tuple[Rows, Rows]


def make_splits(data: Dataset, splits: Any, seed: int, repeat: int = 0) -> list[Fold]:
    """Return (train, test) rows: 5 cross-fits, 0.33 holds out a third, "none" is in sample."""
    if isinstance(splits, str):
        if splits != "none":
            raise InputError(f"splits={splits!r} is not known. Use a number or 'none'.")
        everything = np.arange(data.n_rows, dtype=np.intp)
        return [(everything, everything)]
    if isinstance(splits, (bool, np.bool_)) or splits is None:
        raise InputError("splits must be a number of folds, a share to hold out, or 'none'.")
    random_state = seed_of(seed, "splits", repeat)
    if isinstance(splits, (int, np.integer)):
        splits = _folds(data, int(splits), random_state)
    elif isinstance(splits, (float, np.floating)):
        splits = _hold_out(data, float(splits), random_state)
    if hasattr(splits, "split"):
        splits = _from_splitter(data, splits)
    return _checked(data, splits)


def describe(splits: Any) -> str:
    """Return how the rows were split, in words."""
    if isinstance(splits, str):
        return "in sample"
    if isinstance(splits, (int, np.integer)):
        return f"{splits}-fold cross-fit"
    if isinstance(splits, (float, np.floating)):
        return f"hold-out of {100 * float(splits):.0f}%"
    return repr(splits) if hasattr(splits, "split") else "given splits"


def _folds(data: Dataset, count: int, random_state: int) -> Any:
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

    if count < 2:
        raise InputError(f"splits={count} is too few: use 2 folds or more, or 'none'.")
    units = data.n_rows if data.clusters is None else len(np.unique(data.clusters))
    if count > units // 2:
        raise InputError(f"splits={count} is too many for {plural(units, 'row')}; use fewer folds.")
    if data.clusters is not None:
        return GroupKFold(count, shuffle=True, random_state=random_state)
    if not data.classes:
        return KFold(count, shuffle=True, random_state=random_state)
    _check_classes(data, count)
    return StratifiedKFold(count, shuffle=True, random_state=random_state)


def _hold_out(data: Dataset, share: float, random_state: int) -> Any:
    from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit

    if not 0 < share < 1:
        raise InputError(f"splits={share} must lie between 0 and 1 to hold out that share of rows.")
    if round(share * data.n_rows) < 2 or round((1 - share) * data.n_rows) < 2:
        raise InputError(f"splits={share} leaves too few of the {data.n_rows} rows on one side.")
    kind: Any = ShuffleSplit
    if data.clusters is not None:
        kind = GroupShuffleSplit
    elif data.classes:
        _check_classes(data, 2)
        kind = StratifiedShuffleSplit
    return kind(1, test_size=share, random_state=random_state)


def _check_classes(data: Dataset, needed: int) -> None:
    counts = np.bincount(data.y.astype(np.intp), minlength=data.n_classes)
    rarest = int(np.argmin(counts))
    if counts[rarest] < needed:
        raise InputError(
            f"Class '{short(data.classes[rarest])}' of the target '{short(data.target)}' has "
            f"{plural(int(counts[rarest]), 'row')}, fewer than the {needed} folds. "
            "Merge or drop it, or use fewer splits."
        )


def _from_splitter(data: Dataset, splitter: Any) -> list[Fold]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's remarks on unused groups
            return list(splitter.split(data.X, data.y, data.clusters))
    except (TypeError, ValueError) as error:
        raise InputError(f"splits={splitter!r} could not split the rows: {error}") from error


def _checked(data: Dataset, splits: Iterable[Any]) -> list[Fold]:
    """Return the folds as index arrays; a row is tested at most once."""
    folds = []
    for train, test in splits:
        parts = [_rows(part, data.n_rows) for part in (train, test)]
        folds.append((parts[0], np.sort(parts[1])))
    if not folds:
        raise InputError("splits is empty. Give at least one (train, test) pair.")
    tested = np.concatenate([test for _, test in folds])
    if len(np.unique(tested)) < len(tested):
        raise InputError("splits tests some rows twice. Use disjoint test sets and repeats=….")
    if len(tested) < 2:
        raise InputError("splits tests fewer than two rows. Hold out more.")
    return folds


def _rows(given: Any, n_rows: int) -> Rows:
    rows = np.asarray(given)
    if rows.dtype == bool and rows.shape == (n_rows,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(rows) == 0:
        raise InputError("splits must hold pairs of non-empty arrays of row numbers.")
    if rows.min() < 0 or rows.max() >= n_rows:
        raise InputError(f"splits names a row outside 0 … {n_rows - 1}.")
    return rows.astype(np.intp)
