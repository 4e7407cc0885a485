"""Rows that were recorded twice: found, and told from rows that are equal by chance.

Rows that are equal in every column of X and in y may be one observation entered again, or two that
happen to agree: of five yes/no columns nearly all rows agree with another. What tells them apart
are near misses. If rows agree by chance, then others agree in all columns but one: with D_c pairs
that differ in column c alone, and two values of c equal in a share s_c of all pairs,
D_c s_c / (1 − s_c) pairs would be equal throughout. Copies have no near misses: 264 pairs of the
red wines are equal, and no column leads one to expect more than 0.2. Where columns determine each
other there are none either, so the product of all s_c has to be small as well.

Coarse columns hide copies among near misses. But if every distinct row, or each of one class, is
there twice, or a multiple of three times, the table was copied: chance would not do that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covaria.options.policy import Policy, threshold
from covaria.tables.arrays import Rows

Codes = NDArray[np.uint64]

CHANCE = (
    "judgement: columns that go together make chance pairs more frequent, by up to this much; "
    "docs/calibration.md has the error rates with it"
)


@dataclass(frozen=True)
class CopiesPolicy(Policy):
    """When equal rows are copies of each other.

    beyond_chance    equal pairs for each that chance would give, from which on they are
    least_share      of copies among the rows, below which they change no verdict
    least_distinct   rows, from which on counts that are all even are no chance
    """

    beyond_chance: float = threshold(50.0, CHANCE)
    least_share: float = threshold(0.01, "formula: t grows by about 1% for 1% of copies")
    least_distinct: int = threshold(20, "formula: 2⁻²⁰, one table of a million")


POLICY = CopiesPolicy()
# Of so many columns, the target first, it is seen whether they alone tell all rows apart.
TRIED = 3
# Near misses are counted among so many rows.
MOST_ROWS = 100_000


def find_copies(
    columns: Sequence[NDArray[np.generic]], classes: NDArray[np.generic] | None = None
) -> Rows | None:
    """Return for each row the number of the row that it is a copy of; None without copies.

    Rows are numbered by their first appearance, so that the order of the columns does not matter.

    >>> x = np.random.default_rng(0).normal(size=(2, 50))
    >>> find_copies([np.append(column, column[:5]) for column in x])[-5:].tolist()
    [0, 1, 2, 3, 4]
    """
    if any(_are_different(column) for column in columns[: -TRIED - 1 : -1]):
        return None
    whole = _whole(columns)
    if not _pairs(whole):  # it is quick
        return None
    _, first, group = np.unique(whole, return_index=True, return_inverse=True)
    if len(whole) - len(first) < POLICY.least_share * len(whole):
        return None
    if not _by_chance(columns):
        return np.unique(first[group], return_inverse=True)[1].astype(np.intp)
    return _in_multiples(group, np.zeros(len(group)) if classes is None else classes)


def _are_different(column: NDArray[np.generic]) -> bool:
    """Return whether no two rows have the same number in a column, and none has a gap."""
    if column.dtype == object:
        return False
    ordered = np.sort(np.asarray(column, dtype=float))
    return bool((ordered[1:] > ordered[:-1]).all())


def _in_multiples(group: Rows, classes: NDArray[np.generic]) -> Rows | None:
    """Return copies where the distinct rows of a class are all there a multiple of times."""
    order = np.argsort(group, kind="stable")
    counts = np.bincount(group)
    nth = np.empty(len(group), dtype=np.intp)
    nth[order] = np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)
    times = np.ones(len(counts), dtype=np.intp)
    for one in np.unique(classes):
        own = np.unique(group[classes == one])
        if len(own) >= POLICY.least_distinct:
            times[own] = np.gcd.reduce(counts[own])
    if times.max() == 1:
        return None
    # Of rows that agree by chance as well, each so many are one observation.
    unit = group * len(group) + nth // times[group]
    _, first, unit = np.unique(unit, return_index=True, return_inverse=True)
    return np.unique(first[unit], return_inverse=True)[1].astype(np.intp)


def repeats(columns: Sequence[NDArray[np.generic]]) -> NDArray[np.bool_]:
    """Return for each row whether it repeats an earlier one, by chance or not."""
    whole = _whole(columns)
    found = np.ones(len(whole), dtype=bool)
    found[np.unique(whole, return_index=True)[1]] = False
    return found


def _by_chance(columns: Sequence[NDArray[np.generic]]) -> bool:
    """Return whether near misses, or the columns one by one, let one expect the equal rows."""
    some = _some_rows(len(columns[0]))
    columns = [column[some] for column in columns]
    whole = _whole(columns)
    equal, every = _pairs(whole), len(whole) * (len(whole) - 1) / 2
    all_shares = 1.0
    for at, column in enumerate(columns):
        codes = _mixed(column, at)
        near, share = _pairs(whole - codes) - equal, _pairs(codes) / every
        if share < 1 and near * share / (1 - share) * POLICY.beyond_chance >= equal:
            return True
        all_shares *= share
    return every * all_shares * POLICY.beyond_chance >= equal


def _some_rows(n_rows: int) -> Rows | slice:
    """Return all rows, or some drawn at random where they are many."""
    if n_rows <= MOST_ROWS:
        return slice(None)
    return np.sort(np.random.default_rng(0).choice(n_rows, MOST_ROWS, replace=False))


def _pairs(codes: Codes) -> float:
    """Return how many pairs of rows have the same code."""
    ordered = np.sort(codes)
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(ordered) - 1)
    times = np.diff(ends, prepend=-1).astype(float)
    return float((times * (times - 1)).sum() / 2)


def _whole(columns: Sequence[NDArray[np.generic]]) -> Codes:
    """Return one code a row: the sum, from which a column's own can be taken off again."""
    total = np.zeros(len(columns[0]), dtype=np.uint64)
    for at, column in enumerate(columns):
        total += _mixed(column, at)
    return total


def _mixed(column: NDArray[np.generic], at: int) -> Codes:
    """Return a code for each value, well mixed and another in every column (splitmix64)."""
    if column.dtype == object:
        known: dict[object, int] = {}
        values = np.array([known.setdefault(v, len(known)) for v in column], dtype=float)
    else:
        values = np.asarray(column, dtype=float) + 0.0  # -0 is 0
    codes = np.ascontiguousarray(values).view(np.uint64).copy()
    codes += np.uint64((at + 1) * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        codes ^= codes >> np.uint64(shift)
        codes *= np.uint64(factor)
    codes ^= codes >> np.uint64(31)
    return codes
