"""Which rows a model learns from, and which it is tested on."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError, plural, short
from covaria.options.checks import plain, shown
from covaria.randomness import seed_of
from covaria.tables.arrays import Rows
from covaria.tables.beside import MIN_CLUSTERS
from covaria.tables.dataset import Dataset

Array = NDArray[np.float64]
Fold = tuple[Rows, Rows]


class Splitter(Protocol):
    """scikit-learn's splitters, and whatever has their method."""

    def split(self, X: object, y: Any, groups: object = None) -> Iterable[Fold]: ...


def make_splits(data: Dataset, splits: object, seed: int, repeat: int = 0) -> list[Fold]:
    """Return (train, test) rows: 5 cross-fits, 0.33 holds out a third, "none" is in sample."""
    splits = known_splits(splits)
    if isinstance(splits, str):
        everything = np.arange(data.n_rows, dtype=np.intp)
        return [(everything, everything)]
    random_state = seed_of(seed, "splits", repeat)
    if isinstance(splits, (int, np.integer)):
        splits = _folds(data, int(splits), random_state)
    elif isinstance(splits, (float, np.floating)):
        splits = _hold_out(data, float(splits), random_state)
    if hasattr(splits, "split"):
        splits = _from_splitter(data, splits, random_state)
    return _checked(data, splits)


def known_splits(splits: object) -> Any:
    """Return splits as plain Python, or raise where no table could be split so."""
    splits = plain(splits)
    if isinstance(splits, str) and splits != "none":
        raise InputError(f"splits={shown(splits)} is not known. Use a number or 'none'.")
    if isinstance(splits, bool) or splits is None:
        raise InputError("splits must be a number of folds, a share to hold out, or 'none'.")
    if isinstance(splits, float) and not 0 < splits < 1:
        raise InputError(
            f"splits={splits} must lie between 0 and 1 to hold out that share of rows."
        )
    return splits


def in_parts(rows: Rows, clusters: Rows | None, count: int, rng: np.random.Generator) -> Rows:
    """Return for each of some rows which random part it is in; clusters stay together."""
    _, unit = np.unique(rows if clusters is None else clusters[rows], return_inverse=True)
    return rng.permutation(unit.max() + 1)[unit] % count


def is_cross_fit(folds: Sequence[Fold], n_rows: int) -> bool:
    """Return whether every fold learns from exactly the rows that others test."""
    tested = np.concatenate([test for _, test in folds])
    return len(tested) == n_rows and all(
        len(train) + len(test) == n_rows and not np.isin(test, train).any() for train, test in folds
    )


def can_be_redrawn(splits: object) -> bool:
    """Return whether splits can be had of any rows: row numbers hold for those of one table.

    >>> can_be_redrawn(5), can_be_redrawn("none"), can_be_redrawn([([0], [1])])
    (True, True, False)
    """
    return isinstance(splits, (str, Real)) or hasattr(splits, "split")


def describe(splits: object) -> str:
    """Return how the rows were split, in words."""
    if isinstance(splits, str):
        return "in sample"
    if isinstance(splits, (int, np.integer)):
        return f"{splits}-fold cross-fit"
    if isinstance(splits, (float, np.floating)):
        return f"hold-out of {100 * float(splits):.0f}%"
    return repr(splits) if hasattr(splits, "split") else "given splits"


def _folds(data: Dataset, count: int, random_state: int) -> Splitter:
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

    if count < 2:
        raise InputError(f"splits={shown(count)} is too few: use 2 folds or more, or 'none'.")
    # A fold has two rows or more, or a cluster.
    units = data.n_rows if data.clusters is None else len(np.unique(data.clusters))
    most = units // 2 if data.clusters is None else units
    if count > most:
        there = plural(units, "row" if data.clusters is None else "cluster")
        raise InputError(f"splits={shown(count)} is too many for {there}. Use {most} or fewer.")
    unit = _units_of_classes(data)
    if unit is not None:
        _check_classes(data, unit, count)
        return Stratified(StratifiedKFold(count, shuffle=True, random_state=random_state), unit)
    kind: Callable[..., Splitter] = KFold if data.clusters is None else GroupKFold
    return kind(count, shuffle=True, random_state=random_state)


def _hold_out(data: Dataset, share: float, random_state: int) -> Splitter:
    from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit

    if round(share * data.n_rows) < 2 or round((1 - share) * data.n_rows) < 2:
        raise InputError(f"splits={share} leaves too few of the {data.n_rows} rows on one side.")
    unit = _units_of_classes(data)
    if unit is not None:
        _check_classes(data, unit, 2)
        return Stratified(
            StratifiedShuffleSplit(1, test_size=share, random_state=random_state), unit
        )
    kind: Callable[..., Splitter] = ShuffleSplit if data.clusters is None else GroupShuffleSplit
    return kind(1, test_size=share, random_state=random_state)


@dataclass(frozen=True)
class Stratified:
    """A splitter that shares out classes evenly, by units of rows of one class each.

    Classes are numbered by their first appearance, so that their names do not matter.
    """

    splitter: Splitter
    unit: Rows

    def split(self, X: object, y: Array, groups: object = None) -> Iterable[Fold]:
        """Yield (train, test) rows."""
        first = np.unique(self.unit, return_index=True)[1]
        for train, test in self.splitter.split(first, by_appearance(y[first])):
            is_train, is_test = (np.isin(self.unit, part) for part in (train, test))
            yield np.flatnonzero(is_train), np.flatnonzero(is_test)


def by_appearance(values: NDArray[np.generic]) -> Rows:
    """Return a number for each value: 0 for all that are like the first, and so on.

    >>> by_appearance(np.array([7, 3, 7, 5])).tolist()
    [0, 1, 0, 2]
    """
    _, first, codes = np.unique(values, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes].astype(np.intp)


def _units_of_classes(data: Dataset) -> Rows | None:
    """Return the rows, or the clusters if each is of one class; None for numbers and the like."""
    if not data.classes:
        return None
    if data.clusters is None:
        return np.arange(data.n_rows, dtype=np.intp)
    first = np.unique(data.clusters, return_index=True)[1]
    return data.clusters if (data.y == data.y[first][data.clusters]).all() else None


def _check_classes(data: Dataset, unit: Rows, needed: int) -> None:
    first = np.unique(unit, return_index=True)[1]
    counts = np.bincount(data.y[first].astype(np.intp), minlength=data.n_classes)
    rarest = int(np.argmin(counts))
    kind = "row" if data.clusters is None else "cluster"
    if counts[rarest] < needed:
        raise InputError(
            f"Class '{short(data.classes[rarest])}' of the target '{short(data.target)}' has "
            f"{plural(int(counts[rarest]), kind)}, fewer than the {needed} folds. "
            "Merge or drop it, or use fewer splits."
        )


def _from_splitter(data: Dataset, splitter: Splitter, random_state: int) -> list[Fold]:
    if getattr(splitter, "random_state", 0) is None:
        splitter = copy.copy(splitter)
        # The same seed gives the same folds.
        splitter.random_state = random_state  # type: ignore[attr-defined]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's remarks on unused groups
            return list(splitter.split(data.X, data.y, data.clusters))
    except Exception as error:
        kind = splitter.__name__ if isinstance(splitter, type) else type(splitter).__name__
        reason = short(str(error), 150).rstrip(".")
        raise InputError(
            f"splits={kind}(…) cannot split these rows ({reason}). Choose another splitter."
        ) from error


def _checked(data: Dataset, splits: object) -> list[Fold]:
    """Return the folds as index arrays; a row is tested at most once."""
    folds = []
    for train, test in _pairs(splits):
        folds.append((_rows(train, data.n_rows), np.sort(_rows(test, data.n_rows))))
    if not folds:
        raise InputError("splits is empty. Give at least one (train, test) pair.")
    _check_disjoint(folds, data.n_rows)
    tested = np.concatenate([test for _, test in folds])
    if len(np.unique(tested)) < len(tested):
        raise InputError("splits tests some rows twice. Use disjoint test sets and repeats=….")
    if len(tested) < 2:
        raise InputError("splits tests fewer than two rows. Hold out more.")
    _check_weights(data, folds, tested)
    if data.clusters is not None:
        _check_clusters(data, data.clusters, folds, tested)
    return folds


def _pairs(splits: Any) -> Iterable[tuple[object, object]]:
    try:
        return [(train, test) for train, test in splits]
    except (TypeError, ValueError):
        raise InputError(
            "splits must be a number of folds, a share, 'none', a scikit-learn splitter, or a list "
            "of (train, test) pairs of row numbers."
        ) from None


def _check_disjoint(folds: list[Fold], n_rows: int) -> None:
    """Raise where a model would be tested on rows it learned from."""
    for at, (train, test) in enumerate(folds):
        is_learned = np.zeros(n_rows, dtype=bool)
        is_learned[train] = True
        both = int(is_learned[test].sum())
        if both:
            raise InputError(
                f"splits has {plural(both, 'row')} in both training and test (of pair {at + 1}): "
                "a model that has seen a row leaves too little of it, and useless features pass. "
                "Use disjoint parts, or splits='none' to test in sample knowingly."
            )


def _check_weights(data: Dataset, folds: list[Fold], tested: Rows) -> None:
    """Raise where too few rows have a weight to learn from or to test."""
    if data.weights is None:
        return
    used = [np.count_nonzero(data.weights[rows]) for rows in (tested, *(fold[0] for fold in folds))]
    if min(used) < 2:
        raise InputError(
            "sample_weight is above 0 in fewer than 2 rows of a fold. Split otherwise."
        )


def _check_clusters(data: Dataset, clusters: Rows, folds: list[Fold], tested: Rows) -> None:
    """Raise where a cluster is on both sides, or too few are tested to tell their spread."""
    if any(np.intersect1d(clusters[train], clusters[test]).size for train, test in folds):
        if data.n_copies:
            raise InputError(
                f"{plural(data.n_copies, 'row')} of the table repeat others, and splits puts "
                "copies into both training and test. Drop them, use a number of folds, or give "
                "clusters=range(len(y)) if each is an observation of its own."
            )
        raise InputError(
            "splits puts rows of one cluster into both training and test. Use a number of folds, "
            "or a splitter that keeps groups together."
        )
    count = len(np.unique(clusters[tested]))
    if count < MIN_CLUSTERS:
        raise InputError(
            f"splits tests {plural(count, 'cluster')}; at least {MIN_CLUSTERS} are needed. "
            "Hold out more."
        )


def _rows(given: object, n_rows: int) -> Rows:
    rows = np.asarray(given)
    if rows.dtype == bool and rows.shape == (n_rows,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(rows) == 0:
        raise InputError("splits must hold pairs of non-empty arrays of row numbers.")
    if rows.min() < 0 or rows.max() >= n_rows:
        raise InputError(f"splits names a row outside 0 … {n_rows - 1}.")
    return rows.astype(np.intp)
