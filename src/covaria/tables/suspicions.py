"""What looks odd in a table before anything is fitted: leaks, names of rows, codes, near copies."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covaria.errors import listed, short
from covaria.options.policy import Policy, threshold
from covaria.tables.arrays import column_blocks
from covaria.tables.dataset import Dataset
from covaria.tables.layout import MAX_LEVELS

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SuspicionPolicy(Policy):
    """What is said of a table before anything is fitted.

    leak           correlation with the target, from which on a feature may be made from it
    same           correlation of two columns, above which they say the same but for rounding
    rows_a_level   that a column of codes has at least
    code_from      the least number, from which on whole numbers with gaps are codes
    """

    leak: float = threshold(0.95, "convention: nine tenths of the target's variance")
    same: float = threshold(0.99999, "formula: rounding to three digits takes away less")
    rows_a_level: int = threshold(10, "judgement, not measured: fewer are values, not codes")
    code_from: int = threshold(100, "judgement, not measured: counts begin at 0 or 1, codes rarely")


POLICY = SuspicionPolicy()
# Pairs of more columns are not looked at: their number grows with the square.
MOST_COLUMNS = 2000
# What is told of all columns at once, and then of each by itself, may differ by as much.
SLACK = 1e-6
# Of so many rows it is seen first whether a column may hold whole numbers.
FIRST_ROWS = 20
# Pairs are ruled out by sums of so many parts of the rows.
PARTS = 16
# Pairs of columns are compared on about as many rows.
MOST_ROWS = 10_000
# Words in the name of a column that say what its whole numbers are.
ID_NAME = re.compile(
    r"(?:^|[ _.-])(?:id|uuid|index|rownum|row)$|^(?:id|unnamed)(?:[ _.:-]|$)", re.I
)
CODE_NAME = re.compile(
    r"(?:^|[ _.-])(?:code|type|kind|category|class|zip|zipcode|postcode|region|district|state|"
    r"country|city|department|dept|group|species|race|gender|sex|status|color|colour|brand)"
    r"(?:$|[ _.-])",
    re.I,
)


@dataclass(frozen=True)
class Suspicion:
    """Something odd: its kind, the features it is about, a number for each, and a sentence."""

    kind: str
    features: tuple[str, ...]
    values: tuple[float, ...]
    text: str


def suspicions(data: Dataset) -> tuple[Suspicion, ...]:
    """Return what looks odd in a table, each with the option that cures it."""
    return tuple(found for look in (_leaks, _ids, _codes, _near_copies) for found in look(data))


def _leaks(data: Dataset) -> Iterable[Suspicion]:
    """Yield features of which the target is almost a function: one column, or its levels."""
    y, near = _standard(data.columns_of_y), _near_target(data)
    found = {}
    for feature in data.features:
        if len(feature.tested) > 1 or any(near[column] for column in feature.tested):
            x = _standard(data.X[:, list(feature.tested)])
            r = _multiple_correlation(x, y)
            if r >= POLICY.leak:
                found[feature.name] = r
    if found:
        names = list(found)
        one = len(names) == 1
        yield Suspicion(
            "possible_leak",
            tuple(names),
            tuple(found.values()),
            f"A possible leak: {listed(names)} {'has' if one else 'have'} a correlation of "
            f"{min(found.values()):.3f} {'' if one else 'or more '}with '{short(data.target)}'. If "
            f"{'it is' if one else 'they are'} made from it or known only after it, drop "
            f"{'it' if one else 'them'}: X.drop(columns={_shown(names)!r}), or --drop.",
        )


def _near_target(data: Dataset) -> NDArray[np.bool_]:
    """Return which columns may go with the target so well, as most do not."""
    y = _standard(data.columns_of_y)
    blocks = column_blocks(*data.X.shape)
    cross = [np.abs(y.T @ _standard(data.X[:, some])).max(axis=0) for some in blocks]
    return np.asarray(np.concatenate([*cross, np.empty(0)]) >= POLICY.leak - SLACK)


def _multiple_correlation(x: Array, y: Array) -> float:
    """Return the largest correlation of a column of y with a combination of columns of x.

    With several columns R² is adjusted for their number.
    """
    n_rows, width = x.shape
    if width == 1:
        return float(np.abs(x.T @ y).max())
    left = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    spare = max(1, n_rows - 1 - width)
    r2 = 1 - (left**2).sum(axis=0) * (n_rows - 1) / spare
    return float(np.sqrt(max(0.0, r2.max())))


def _standard(columns: Array) -> Array:
    """Return columns of mean 0 and length 1; those that do not vary are 0."""
    centred = columns - columns.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    return np.asarray(np.divide(centred, length, out=np.zeros_like(centred), where=length > 0))


def _whole_numbers(data: Dataset) -> Iterable[tuple[str, Array]]:
    """Yield features of one number, without their gaps, where the first rows hold whole numbers."""
    first = data.X[:FIRST_ROWS]
    may_be = (first == np.round(first)) | (False if data.holes is None else data.holes[:FIRST_ROWS])
    is_whole = may_be.all(axis=0).tolist()
    for feature in data.features:
        if feature.kind == "number" and feature.columns and is_whole[feature.columns[0]]:
            at = feature.columns[0]
            values = data.X[:, at]
            yield feature.name, values if data.holes is None else values[~data.holes[:, at]]


def _ids(data: Dataset) -> Iterable[Suspicion]:
    """Yield whole numbers that are all different and name or number the rows."""
    names = [name for name, values in _whole_numbers(data) if _is_id(name, values)]
    if names:
        one = len(names) == 1
        yield Suspicion(
            "identifier",
            tuple(names),
            (),
            f"{listed(names)} {'looks' if one else 'look'} like names of rows: all different "
            f"whole numbers. Unless their order means something, drop "
            f"{'it' if one else 'them'}: X.drop(columns={_shown(names)!r}), or --drop.",
        )


def _is_id(name: str, values: Array) -> bool:
    if not np.array_equal(values, np.round(values)):
        return False
    ordered = np.sort(values)
    steps = np.diff(ordered)
    if not (steps > 0).all():
        return False
    counts_rows = bool((steps == 1).all()) and ordered[0] in (0, 1)
    return counts_rows or bool(ID_NAME.search(name.strip()))


def _codes(data: Dataset) -> Iterable[Suspicion]:
    """Yield whole numbers that stand for categories by their name or their gaps."""
    names = [name for name, values in _whole_numbers(data) if _is_code(name, values)]
    if names:
        one = len(names) == 1
        yield Suspicion(
            "codes",
            tuple(names),
            (),
            f"{listed(names)} {'holds' if one else 'hold'} a few whole numbers that may be codes "
            f"of categories, and {'is' if one else 'are'} read as numbers. If they have no order, "
            f"use X.astype({dict.fromkeys(_shown(names), 'category')!r}), or --categories.",
        )


def _is_code(name: str, values: Array) -> bool:
    levels = np.unique(values)
    if not 3 <= len(levels) <= MAX_LEVELS or len(values) < POLICY.rows_a_level * len(levels):
        return False
    if not np.array_equal(levels, np.round(levels)) or levels[0] < 0:
        return False
    uneven = len(np.unique(np.diff(levels))) > 1
    return bool(CODE_NAME.search(name.strip())) or (uneven and levels[0] >= POLICY.code_from)


def _shown(names: list[str]) -> list[str]:
    """Return the first names, as they can be shown."""
    return [short(name) for name in names[:5]]


def _near_copies(data: Dataset) -> Iterable[Suspicion]:
    """Yield pairs of numbers that say the same in other units; equal ones are told already."""
    own = [feature for feature in data.features if len(feature.tested) == 1]
    if not 2 <= len(own) <= MOST_COLUMNS:
        return
    every = max(1, data.n_rows // MOST_ROWS)
    columns = data.X[::every, [feature.tested[0] for feature in own]]
    x = _standard(columns)
    for a, b in _pairs_alike(x):
        if not np.array_equal(columns[:, a], columns[:, b]):
            names = [own[a].name, own[b].name]
            yield Suspicion(
                "near_copies",
                tuple(names),
                (),
                f"{listed(names)} say the same in other units: neither adds to the other, so drop "
                "one or group them.",
            )


def _pairs_alike(x: Array) -> list[tuple[int, int]]:
    """Return the pairs of columns of length 1 whose correlation is as good as 1 or -1.

    Sums over parts of the rows are as near each other, but for their signs: of few parts they rule
    out most pairs.
    """
    n_rows, width = len(x), max(1, len(x) // PARTS)
    parts = x[: n_rows // width * width].reshape(-1, width, x.shape[1]).sum(axis=1) / np.sqrt(width)
    length, cross = np.square(parts).sum(axis=0), parts.T @ parts
    apart = length[:, None] + length - 2 * np.abs(cross)
    maybe = np.argwhere(np.triu(apart <= 2 * (1 - POLICY.same) + SLACK, 1)).tolist()
    if len(maybe) > 10 * x.shape[1]:  # then all at once is quicker
        maybe = np.argwhere(np.triu(np.abs(x.T @ x), 1) >= POLICY.same - SLACK).tolist()
    return [(a, b) for a, b in maybe if abs(x[:, a] @ x[:, b]) >= POLICY.same]
