"""Few rows behind a test: where the normal limit is far off, residuals are permuted.

A rare flag, a few blank cells or a lopsided target leave a test to a handful of rows. If those all
happen to have the common value of y, the spread of their scores collapses, and the statistic is
large although nothing was found: 5 ones in 2,000 rows and a target with 10% ones make GCM reject
62% of nulls. So there the residuals of y are permuted against those of the feature, inside each
fold, and the studentised statistic is compared with what that gives (DiCiccio and Romano, "Robust
permutation tests for correlation and regression coefficients", JASA 112, 2017): exact where the
two residuals are independent, and right in large samples where they are only uncorrelated.

A sum of products of independent x and y has skewness γ_x γ_y / √n and excess kurtosis of about
κ_x κ_y / n: where both are small the normal limit is close, and nothing here is done.

What comes back is always a factor for the spread of a feature's scores, so that estimate, error,
p-value, interval and efficiency still come from one array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.options.policy import Policy, threshold

Array = NDArray[np.float64]
Whole = NDArray[np.intp]


MOMENTS = "docs/calibration.md: below it at most .055 of nulls rejected, above it up to .94"
PRECISION = "formula: the error of a share of so many draws"


@dataclass(frozen=True)
class ResamplingPolicy(Policy):
    """When residuals are permuted, and how often.

    most_skew, most_kurtosis  of the sum of products, beyond which residuals are permuted
    draws           permutations at first, and where their tail is thin
    few, enough     hits of a tail of the first draws below which the second are made, and of those
                    below which the tail is beyond the draws
    beyond          so many standard deviations away more draws are spared
    most_rows       of more, those that matter most are drawn for and the others count as normal
    most_drawn      numbers that all permutations together may hold
    least_spread    permuting narrows the spread of scores to no less than this
    strata          of a fold, by what is expected of y, in which residuals are permuted
    least_stratum   rows of one, below which there are fewer strata
    """

    most_skew: float = threshold(0.15, MOMENTS)
    most_kurtosis: float = threshold(0.15, MOMENTS)
    draws: tuple[int, int] = threshold((399, 3999), PRECISION)
    few: int = threshold(20, PRECISION)
    enough: int = threshold(10, PRECISION)
    beyond: float = threshold(8.0, "formula: a normal tail of 1e-15, which no draws reach")
    most_rows: int = threshold(4096, "cost: time and memory grow with rows times draws")
    most_drawn: int = threshold(20_000_000, "cost: 80 MB of row numbers")
    least_spread: float = threshold(0.3, "judgement, not measured: beyond it the mean says nothing")
    strata: int = threshold(
        3, "tests/methods/test_few_rows.py: a flag and counts that both go with z"
    )
    least_stratum: int = threshold(20, "judgement, not measured: fewer rows leave few orders")


POLICY = ResamplingPolicy()


@dataclass(frozen=True)
class Shuffles:
    """Permutations inside folds, or levels, the same for every call; `draw` makes a generator.

    Folds of the same sizes share their draws: of several `Shuffles` the one `drawn` keeps the last.
    """

    fold: Whole
    draw: Callable[[], Generator]
    drawn: dict[int, tuple[tuple[int, ...], Whole | NDArray[np.int32]]] = field(
        default_factory=dict, compare=False
    )

    @cached_property
    def by_fold(self) -> Whole:
        """Return the rows, fold by fold."""
        return np.argsort(self.fold, kind="stable")

    @cached_property
    def members(self) -> list[Whole]:
        ends = np.flatnonzero(np.diff(self.fold[self.by_fold])) + 1
        return np.split(self.by_fold, ends)

    def orders(self, count: int) -> NDArray[np.int32]:
        """Return so many orders of the rows, (count, rows), in which no row leaves its fold."""
        found = np.empty((count, len(self.fold)), dtype=np.int32)
        found[:, self.by_fold] = self.by_fold[self.places(count)]
        return found

    def places(self, count: int) -> Whole | NDArray[np.int32]:
        """Return the same orders as places among the rows by fold, which only sizes decide."""
        sizes = tuple(len(rows) for rows in self.members)
        if count not in self.drawn or self.drawn[count][0] != sizes:
            self.drawn[count] = sizes, self._places(count, sizes)
        return self.drawn[count][1]

    def _places(self, count: int, sizes: tuple[int, ...]) -> Whole | NDArray[np.int32]:
        # The first draws are used most, and are quicker to use as they are.
        kind = np.intp if count <= POLICY.draws[0] else np.int32
        found, rng, first = np.empty((count, len(self.fold)), dtype=kind), self.draw(), 0
        for size in sizes:
            own = np.tile(np.arange(first, first + size, dtype=np.int32), (count, 1))
            found[:, first : first + size] = rng.permuted(own, axis=1, out=own)
            first += size
        return found

    def affordable(self, count: int) -> int:
        """Return how many of so many orders there is room for, never fewer than the first."""
        return max(POLICY.draws[0], min(count, POLICY.most_drawn // len(self.fold)))


def is_far_from_normal(x: Array, y: Array, several: int | None = None) -> bool:
    """Return whether the sum of the products of x and y, (rows, columns) each, is far from normal.

    Several products share one quadratic form, to whose error each adds: of all pairs of columns,
    unless fewer of them say something of their own.
    """
    several = several or x.shape[1] * y.shape[1]
    largest = [[one.max(initial=0.0) for one in _moments(values)] for values in (x, y)]
    (skew_x, kurtosis_x), (skew_y, kurtosis_y) = largest
    return bool(_is_far(skew_x * skew_y, several * kurtosis_x * kurtosis_y, len(x)))


def pairs_are_far_from_normal(x: Array, y: Array) -> NDArray[np.bool_]:
    """Return the same of each column of x with the same column of y."""
    (skew_x, kurtosis_x), (skew_y, kurtosis_y) = _moments(x), _moments(y)
    return np.asarray(_is_far(skew_x * skew_y, kurtosis_x * kurtosis_y, len(x)))


def are_far_from_normal(x: Array, y: Array) -> NDArray[np.bool_]:
    """Return the same of each column of x alone, with all columns of y."""
    (skew_x, kurtosis_x), (skew_y, kurtosis_y) = _moments(x), _moments(y)
    kurtosis = y.shape[1] * kurtosis_x * kurtosis_y.max(initial=0.0)
    return np.asarray(_is_far(skew_x * skew_y.max(initial=0.0), kurtosis, len(x)))


def _is_far(skew: Array, kurtosis: Array, n_rows: int) -> NDArray[np.bool_]:
    is_skew = skew / np.sqrt(n_rows) > POLICY.most_skew
    return np.asarray(is_skew | (kurtosis / n_rows > POLICY.most_kurtosis))


def _moments(values: Array) -> tuple[Array, Array]:
    """Return the |skewness| and the kurtosis of each column around zero."""
    n_rows = len(values)
    size = np.sqrt(np.einsum("ij,ij->j", values, values) / n_rows)
    scaled = values / np.maximum(size, 1e-300)
    squares = scaled * scaled
    skew = np.abs(np.einsum("ij,ij->j", squares, scaled)) / n_rows
    return skew, np.einsum("ij,ij->j", squares, squares) / n_rows


def independent_variance(x: Array, y: Array) -> float:
    """Return the variance of the products of x and y if these had nothing to do with each other."""
    return float(((x**2).mean(axis=0) * (y**2).mean(axis=0)).sum())


def floor_factor(variance: float, implied: float) -> float:
    """Return by how much the spread of scores falls short of what is implied, 1 where it does not.

    >>> floor_factor(1.0, 4.0), floor_factor(4.0, 1.0)
    (2.0, 1.0)
    """
    return float(np.sqrt(max(1.0, implied / variance))) if variance > 0 else 1.0


# --- one product a row --------------------------------------------------------------------------


def product_factor(
    x: Array, y: Array, scores: Array, shuffles: Shuffles, alternative: str
) -> float:
    """Return the factor for the spread of scores that makes their normal p-value the permuted one.

    Each score is a product of a row of x and a row of y, Σ_c x_c y_c.
    """
    from covaria.inference.tests import normal_quantile

    error = float(scores.std()) / np.sqrt(len(scores))
    if error <= 0:
        return 1.0
    floor = floor_factor(float(scores.var()), independent_variance(x, y))
    ratio = float(scores.mean()) / error
    p = _product_p(x, y, ratio, shuffles, alternative, ratio / floor)
    sides = 2 if alternative == "two-sided" else 1
    wanted = float(normal_quantile(p / sides))
    if p > 0.25 * sides:  # nothing is found; the permuted p-value would be matched in vain
        return floor
    return float(max(abs(ratio) / wanted, POLICY.least_spread))


def _product_p(
    x: Array, y: Array, ratio: float, shuffles: Shuffles, alternative: str, cautious: float
) -> float:
    """Return the permuted p-value; beyond the draws that of the cautious ratio, if it is less."""
    from covaria.inference.tests import normal_p

    is_small = len(x) <= POLICY.most_rows
    draw = _all_rows if is_small else _main_rows
    p = 1.0
    for count in POLICY.draws:
        if is_small:
            count = shuffles.affordable(count)
        drawn = draw(x, y, shuffles, count)
        slack = 1e-9 * abs(ratio)
        below, above = (drawn <= ratio + slack).sum(), (drawn >= ratio - slack).sum()
        is_up = alternative == "greater" or (alternative == "two-sided" and ratio > 0)
        tail = above if is_up else below
        sides = 2 if alternative == "two-sided" else 1
        p = min(1.0, sides * (1 + int(tail)) / (count + 1))
        if tail >= POLICY.few:
            return p
        if abs(cautious) > POLICY.beyond:
            break
    if tail >= POLICY.enough:
        return p
    return float(min(p, normal_p(np.array([cautious]), alternative)[0]))


def _all_rows(x: Array, y: Array, shuffles: Shuffles, count: int) -> Array:
    """Return studentised sums of products of x with permuted y."""
    places, x, y = shuffles.places(count), x[shuffles.by_fold], y[shuffles.by_fold]
    sums, squares = np.empty(count), np.empty(count)
    step = max(1, 2**20 // len(x))
    for start in range(0, count, step):
        some = slice(start, start + step)
        sums[some], squares[some] = _sums(x, y, places[some])
    return _studentised(sums, squares, len(x))


def _sums(x: Array, y: Array, places: Whole | NDArray[np.int32]) -> tuple[Array, Array]:
    """Return sums over rows of products, and of their squares, one for each order."""
    if x.shape[1] == 1:
        permuted = y[:, 0].take(places)
        sums = permuted @ x[:, 0]
        return sums, np.square(permuted, out=permuted) @ x[:, 0] ** 2
    products = sum(y[places, c] * x[:, c] for c in range(x.shape[1]))
    return products.sum(axis=1), (products**2).sum(axis=1)


def _main_rows(x: Array, y: Array, shuffles: Shuffles, count: int) -> Array:
    """Return studentised sums of products, drawn for the rows that matter most.

    Values of y are drawn with replacement, which makes the tails a little heavier; the products
    of the other rows count as normal.
    """
    if x.shape[1] == 1 and _moments(y)[1] > _moments(x)[1]:
        x, y = y, x
    sums, squares, variance = np.zeros(count), np.zeros(count), 0.0
    apart = x.copy()
    for rows in shuffles.members:
        apart[rows] -= np.median(x[rows], axis=0)
    main = np.argsort(-(apart**2).sum(axis=1), kind="stable")[: POLICY.most_rows]
    is_main = np.zeros(len(x), dtype=bool)
    is_main[main] = True
    rng = shuffles.draw()
    for rows in shuffles.members:
        own, others, pool = rows[is_main[rows]], rows[~is_main[rows]], y[rows]
        level = x[rows[0]] - apart[rows[0]]
        sums += float(level @ pool.sum(axis=0) + apart[others].sum(axis=0) @ pool.mean(axis=0))
        variance += float((apart[others] ** 2).sum(axis=0) @ pool.var(axis=0))
        squares += float((x[others] ** 2).sum(axis=0) @ (pool**2).mean(axis=0))
        for start in range(0, count, 256):
            some = slice(start, min(start + 256, count))
            values = pool[rng.integers(len(rows), size=(some.stop - start, len(own)))]
            sums[some] += np.einsum("bic,ic->b", values, apart[own])
            squares[some] += (np.einsum("bic,ic->bi", values, x[own]) ** 2).sum(axis=1)
    sums += np.sqrt(variance) * rng.normal(size=count)
    return _studentised(sums, squares, len(x))


def _studentised(sums: Array, squares: Array, n_rows: int) -> Array:
    spread = np.sqrt(np.maximum(squares - sums**2 / n_rows, 0.0))
    return np.asarray(np.divide(sums, spread, out=np.zeros_like(sums), where=spread > 0))


# --- several products a row ---------------------------------------------------------------------


def form_factor(x: Array, y: Array, scores: Array, degrees: int, shuffles: Shuffles) -> float:
    """Return the factor for the spread of scores whose squared statistic is a χ², 1 or more."""
    from scipy.stats import chi2

    error = float(scores.std()) / np.sqrt(len(scores))
    if error <= 0:
        return 1.0
    statistic = (float(scores.mean()) / error) ** 2
    p = max(_form_p(x, y, shuffles), float(chi2.sf(statistic, degrees)))
    wanted = float(chi2.isf(min(p, 0.99), degrees))
    return float(np.sqrt(max(1.0, statistic / wanted)))


def _form_p(x: Array, y: Array, shuffles: Shuffles) -> float:
    """Return the permuted p-value of n |C|², C the covariance of both, whitened.

    Beyond the draws it is that of a shifted gamma with their mean, variance and skewness; of a very
    large table that of a χ².
    """
    from scipy.stats import chi2, pearson3, skew

    x, y = _whitened(x), _whitened(y)
    found = float(((x.T @ y) ** 2).sum())
    if len(x) * POLICY.draws[0] > POLICY.most_drawn:  # too many rows to permute
        return float(chi2.sf(len(x) * found, x.shape[1] * y.shape[1]))
    for count in POLICY.draws:
        count = shuffles.affordable(count)
        orders = shuffles.orders(count)
        drawn = np.zeros(count)
        for c in range(y.shape[1]):
            for start in range(0, count, 256):
                some = slice(start, start + 256)
                drawn[some] += ((y[orders[some], c] @ x) ** 2).sum(axis=1)
        tail = int((drawn >= found * (1 - 1e-9)).sum())
        if tail >= POLICY.few or found > drawn.mean() + 3 * POLICY.beyond * drawn.std():
            break
    p = (1 + tail) / (count + 1)
    if tail >= POLICY.enough or not drawn.std() > 0:
        return p
    beyond = pearson3.sf(found, max(float(skew(drawn)), 1e-3), drawn.mean(), drawn.std())
    return float(min(p, max(beyond, 1e-300)))


def _whitened(values: Array) -> Array:
    """Return columns of unit variance that do not go together, without those that say no more."""
    values = values - values.mean(axis=0)
    U, d, _ = np.linalg.svd(values, full_matrices=False)
    return np.asarray(U[:, d > 1e-9 * d.max(initial=0.0)])
