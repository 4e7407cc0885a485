"""From scores to an estimate, its error, a statistic, a p-value and an interval.

Every mean-type method ends here. Its scores are one (n, features) array; their mean is the
estimate and their sd over √n the standard error (ddof 0, as R's GCM).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from covaria.options.policy import Policy, threshold
from covaria.tables.arrays import column_blocks

Array = NDArray[np.float64]
Whole = NDArray[np.intp]
# The least and the largest number that each estimate can be.
Bounds = tuple[Array, Array]

ALTERNATIVES = ("two-sided", "greater", "less")
# Scores that vary by less than this share of their scale vary by rounding alone.
ROUNDING = 1e-12
SMALLEST_P = float(np.nextafter(0.0, 1.0))
# A one-sided p-value of 1 would outweigh all other repeats.
LARGEST_P = 0.99

UNLIKE = (
    "docs/calibration.md: with a cluster of 15% among 20 the usual t rejected .05 to .07 of nulls, "
    "as with even clusters; with one of 25, 40 and 60% .10, .27 and .54"
)


@dataclass(frozen=True)
class ClusterPolicy(Policy):
    """When clusters are too unlike in size for one degree of freedom each.

    largest_share    of all rows in one cluster, from which on sizes are looked at
    least_effective  share of the clusters that their effective number has to be
    """

    largest_share: float = threshold(0.1, UNLIKE)
    least_effective: float = threshold(0.75, UNLIKE)


CLUSTERS = ClusterPolicy()


@dataclass(frozen=True)
class Tests:
    """One entry per feature for each of the usual columns."""

    estimate: Array
    std_error: Array
    statistic: Array
    p_value: Array
    low: Array
    high: Array
    is_zero: NDArray[np.bool_]


def standard_error(scores: Array, clusters: Whole | None = None) -> Array:
    """Return the standard error of the scores' mean, robust to clusters where there are any."""
    if clusters is None:
        spread = [scores[:, some].std(axis=0) for some in column_blocks(*scores.shape)]
        return np.asarray(np.concatenate(spread) / np.sqrt(len(scores)))
    sums, count = _cluster_sums(scores, clusters), n_clusters(clusters)
    return np.asarray(np.sqrt(count / (count - 1) * np.square(sums).sum(axis=0)) / len(scores))


def stretched(scores: Array, factor: Array | float) -> Array:
    """Return scores so many times as far from their mean, which stays."""
    mean = scores.mean(axis=0)
    return scores if np.all(factor == 1) else np.asarray(mean + factor * (scores - mean))


def covariance(scores: Array, clusters: Whole | None = None) -> Array:
    """Return the covariance of the scores' means; rows of a cluster may depend on each other."""
    centred = scores - scores.mean(axis=0)
    if clusters is not None:
        count = n_clusters(clusters)
        centred = np.sqrt(count / (count - 1)) * _cluster_sums(scores, clusters)
    return np.asarray(centred.T @ centred / len(scores) ** 2)


def n_clusters(clusters: Whole) -> int:
    """Return how many clusters there are among some rows."""
    return len(np.unique(clusters))


def correlation(scores: Array, rival: Array, clusters: Whole | None = None) -> float:
    """Return the correlation of the means of two columns of scores, whatever their units."""
    pair = np.column_stack([scores, rival])
    spread = pair.std(axis=0)
    if not (spread > 0).all():
        return 0.0
    C = covariance(pair / spread, clusters)
    return float(C[0, 1] / np.sqrt(C[0, 0] * C[1, 1]))


def freedom_of(clusters: Whole | None) -> float:
    """Return the degrees of freedom of errors: effective clusters less one, or as good as all."""
    if clusters is None:
        return np.inf
    shares = _shares(clusters)
    return max(_effective(shares) if _are_uneven(shares) else len(shares), 2.0) - 1.0


def _shares(clusters: Whole) -> Array:
    counts = np.bincount(clusters)
    return np.asarray(counts[counts > 0] / len(clusters))


def _effective(shares: Array) -> float:
    """Return how many clusters of one size tell as much: (Σs)² / Σs² (Kish, 1965)."""
    return float(1 / (shares**2).sum())


def _are_uneven(shares: Array) -> bool:
    is_large = shares.max() > CLUSTERS.largest_share
    return bool(is_large and _effective(shares) < CLUSTERS.least_effective * len(shares))


def _cluster_sums(scores: Array, clusters: Whole) -> Array:
    """Return the sum of each cluster's scores, less their mean.

    A large cluster draws the mean to itself, and so hides. Where clusters are uneven each sum is
    what leaving the cluster out would move the mean by: the jackknife, which for clusters of one
    size is the same.
    """
    sums = np.zeros((int(clusters.max()) + 1, scores.shape[1]))
    np.add.at(sums, clusters, scores - scores.mean(axis=0))
    shares = _shares(clusters)
    if _are_uneven(shares):
        own = np.bincount(clusters)[:, None] / len(clusters)
        sums *= (1 - 1 / len(shares)) / (1 - own)
    return sums


def mean_test(
    scores: Array,
    *,
    scale: Array,
    degrees: Whole | None = None,
    alternative: str = "two-sided",
    factor: float = 1.0,
    confidence: float = 0.95,
    clusters: Whole | None = None,
    bounds: Bounds | None = None,
    reach: float = 1.0,
) -> Tests:
    """Return the test that each feature's scores have mean zero.

    `degrees` above 1 mark features of several columns: their scores are the combination whose
    squared statistic is the quadratic form, so p and interval are those of a χ². `factor`
    multiplies the statistic before it is referred to the normal (LOCO's signed root). With
    clusters the reference is Student's t with one degree of freedom less than there are clusters
    (effective ones, where a few have most of the rows), and for several columns the F of
    Hotelling's T². The interval of a one-sided test has one end;
    the other is the least or the largest number that the estimate could be (`bounds`). `reach`
    multiplies the error in the interval, where the estimate varies more than under the null.
    """
    estimate = scores.mean(axis=0)
    error = standard_error(scores, clusters)
    is_zero = error * np.sqrt(len(scores)) <= ROUNDING * scale
    estimate, error = np.where(is_zero, 0.0, estimate), np.where(is_zero, 0.0, error)
    ratio = factor * np.divide(estimate, error, out=np.zeros_like(estimate), where=error > 0)
    freedom = freedom_of(clusters)
    p_value = student_p(ratio, alternative, freedom)
    low, high = interval(estimate, reach * error, alternative, confidence, freedom, bounds)
    statistic = ratio.copy()
    for j, df in enumerate([] if degrees is None else degrees.tolist()):
        if df > 1:
            p_value[j], statistic[j] = _form_test(ratio[j] ** 2, df, freedom)
            low[j], high[j] = _interval_of_length(estimate[j], statistic[j], df, confidence)
    lengths = None if degrees is None else degrees > 1
    low, high = agreeing(low, high, estimate, p_value, alternative, confidence, lengths)
    p_value[is_zero] = 1.0
    low, high = (np.where(is_zero, 0.0, end) for end in (low, high))
    return Tests(estimate, error, statistic, p_value, low, high, is_zero)


def _form_test(squared: float, degrees: int, freedom: float) -> tuple[float, float]:
    """Return the p-value of a quadratic form, and the χ² of the same p-value."""
    if np.isinf(freedom):
        return chi_squared_p(squared, degrees), squared
    from scipy.stats import chi2, f

    left = max(freedom + 1 - degrees, 1.0)
    p = max(float(f.sf(squared * left / (degrees * freedom), degrees, left)), SMALLEST_P)
    return p, float(chi2.isf(p, degrees))


def interval(
    estimate: Array,
    error: Array,
    alternative: str,
    confidence: float,
    freedom: float = np.inf,
    bounds: Bounds | None = None,
) -> tuple[Array, Array]:
    """Return the ends of an interval; a one-sided test has one end, and a bound for the other.

    >>> interval(np.zeros(1), np.ones(1), "greater", 0.95, bounds=(np.zeros(1), np.ones(1)))[1]
    array([1.])
    """
    tail = (1 - confidence) / (2 if alternative == "two-sided" else 1)
    reach = quantile(1 - tail, freedom) * error
    low, high = estimate - reach, estimate + reach
    if bounds is None or alternative == "two-sided":
        return low, high
    least, most = bounds
    return (
        (low, np.maximum(most, estimate))
        if alternative == "greater"
        else (np.minimum(least, estimate), high)
    )


def agreeing(
    low: Array,
    high: Array,
    estimate: Array,
    p_value: Array,
    alternative: str,
    confidence: float,
    lengths: NDArray[np.bool_] | None = None,
) -> tuple[Array, Array]:
    """Return an interval that holds its estimate, and 0 just where the p-value says so.

    An interval of another scale, or of several cross-fits, may miss that by a little: its end next
    to zero is moved. `lengths`, of several columns, have one test whatever the alternative.
    """
    either_way = np.full(len(estimate), alternative == "two-sided")
    either_way |= False if lengths is None else lengths
    sides = np.where(either_way, 2, 1)
    low, high = np.minimum(low, estimate), np.maximum(high, estimate)
    found = (p_value < 1 - confidence) & (estimate != 0)
    score = np.maximum(normal_quantile(np.minimum(p_value, 0.5) / sides), 1e-300)
    reach = normal_quantile((1 - confidence) / sides)
    near = estimate * np.clip(1 - reach / score, 1e-9, 1.0)
    up = np.where(either_way, estimate > 0, alternative == "greater")
    low = np.where(found & up & (low <= 0), near, np.where(~found & (low > 0), 0.0, low))
    high = np.where(found & ~up & (high >= 0), near, np.where(~found & (high < 0), 0.0, high))
    return low, high


def normal_p(ratio: Array, alternative: str) -> Array:
    """Return normal p-values, accurate in the tails and never zero.

    >>> normal_p(np.array([0.0, 40.0]), "two-sided")
    array([1.e+000, 5.e-324])
    """
    return student_p(ratio, alternative, np.inf)


def student_p(ratio: Array, alternative: str, freedom: float) -> Array:
    """Return p-values by Student's t; with infinite degrees of freedom it is the normal."""
    if alternative == "two-sided":
        p = 2 * upper_tail(np.abs(ratio), freedom)
    else:
        p = upper_tail(ratio if alternative == "greater" else -ratio, freedom)
    return np.maximum(p, SMALLEST_P)


def upper_tail(ratio: Array, freedom: float = np.inf) -> Array:
    """Return the chance that a normal, or Student's t, exceeds each number.

    The functions behind those of `scipy.stats` take a hundredth of the time for a few numbers.
    """
    from scipy.special import ndtr, stdtr

    return np.asarray(ndtr(-ratio) if np.isinf(freedom) else stdtr(freedom, -ratio))


def either_p(two_sided: Array, one_sided: Array, correlation: Array) -> Array:
    """Return the p-value of the smaller of two: of a two-sided and a one-sided normal test.

    With m the smaller, it is P(|T₁| > z(m/2) or T₂ > z(m)) = 2m − P(both), of normals with this
    correlation. So it lies between m and 2m, which it is without correlation, but for m².

    >>> either_p(np.array([0.02]), np.array([0.02]), np.array([0.9])).round(4)
    array([0.0326])
    """
    least = np.clip(np.minimum(two_sided, one_sided), 1e-300, 1.0)
    rho = np.clip(correlation, -0.999, 0.999)[:, None]
    at, weights = _nodes()
    # T₂ where it is above z(m), by its share of that tail.
    beyond = normal_quantile(least[:, None] * (at + 1) / 2)
    edge, spread = normal_quantile(least / 2)[:, None], np.sqrt(1 - rho**2)
    above, below = (upper_tail((edge - sign * rho * beyond) / spread) for sign in (1, -1))
    both = (above + below) @ weights / 2
    return np.minimum(1.0, least * (2 - both))


@cache
def _nodes() -> tuple[Array, Array]:
    """Return where an integral from -1 to 1 is looked at, and the weights there."""
    at, weights = np.polynomial.legendre.leggauss(64)
    return at, weights


def chi_squared_p(statistic: float, degrees: int) -> float:
    """Return the upper tail of a χ², never zero."""
    from scipy.stats import chi2

    return max(float(chi2.sf(statistic, degrees)), SMALLEST_P)


def normal_quantile(p_value: Array | float) -> Array:
    """Return the number that a normal exceeds with this probability."""
    from scipy.special import ndtri

    return np.asarray(0.0 - ndtri(p_value))


def quantile(level: float, freedom: float = np.inf) -> float:
    """Return a quantile of the normal, or of Student's t."""
    from scipy.special import ndtri

    if np.isinf(freedom):
        return float(ndtri(level))
    from scipy.stats import t

    return float(t.ppf(level, freedom))


def _interval_of_length(
    estimate: float, statistic: float, degrees: int, confidence: float
) -> tuple[float, float]:
    """Return an interval for a length, by inverting the non-central χ² of its square."""
    if statistic <= 0:
        return 0.0, 0.0
    tail = (1 - confidence) / 2
    bounds = (_noncentrality(statistic, degrees, q) for q in (1 - tail, tail))
    low, high = (float(estimate * np.sqrt(bound / statistic)) for bound in bounds)
    return low, high


def _noncentrality(statistic: float, degrees: int, level: float) -> float:
    """Return the non-centrality at which the statistic is the quantile of that level."""
    from scipy.optimize import brentq
    from scipy.stats import chi2, ncx2

    if chi2.cdf(statistic, degrees) <= level:
        return 0.0
    # ncx2 loses its tails beyond this; there the statistic is as good as normal.
    if statistic > 1e4:
        return float((np.sqrt(statistic) - quantile(level)) ** 2)
    bottom, top = 1e-12, (np.sqrt(statistic) + 10) ** 2
    if ncx2.cdf(statistic, degrees, bottom) <= level:  # it is 0 but for rounding
        return 0.0
    return float(brentq(lambda x: ncx2.cdf(statistic, degrees, x) - level, bottom, top))


def combine_repeats(
    tests: list[Tests],
    alternative: str = "two-sided",
    confidence: float = 0.95,
    degrees: Whole | None = None,
    bounds: Bounds | None = None,
    reach: float = 1.0,
) -> Tests:
    """Return one test from several cross-fits of the same data: their mean.

    p-values are averaged as normal scores, with the sign of the estimate where the test has two
    sides. All cross-fits' statistics are sums over the same rows, so that they are jointly normal
    and their mean has a variance of at most 1: its p-value is one, and hangs less on the draws of
    folds than the median's. A cross-fit whose models say nothing at all (p = 1) counts as .99. The
    standard error, which the interval uses, has the spread between cross-fits in it.
    """
    if len(tests) == 1:
        return tests[0]
    estimates = np.array([t.estimate for t in tests])
    errors = np.array([t.std_error for t in tests])
    estimate = estimates.mean(axis=0)
    p_values, is_zero = np.array([t.p_value for t in tests]), np.all([t.is_zero for t in tests], 0)
    if alternative == "two-sided":
        scores, sided = np.sign(estimates) * normal_quantile(p_values / 2), "two-sided"
    else:
        scores, sided = normal_quantile(np.minimum(p_values, LARGEST_P)), "greater"
    p_value = np.where(is_zero, 1.0, normal_p(scores.mean(axis=0), sided))
    error = np.sqrt(np.mean(errors**2 + (estimates - estimate) ** 2, axis=0))
    low, high = interval(estimate, reach * error, alternative, confidence, bounds=bounds)
    lengths = None if degrees is None else degrees > 1
    if lengths is not None:  # the interval of a length is none around it
        low = np.where(lengths, np.mean([t.low for t in tests], axis=0), low)
        high = np.where(lengths, np.mean([t.high for t in tests], axis=0), high)
    low, high = agreeing(low, high, estimate, p_value, alternative, confidence, lengths)
    return Tests(
        estimate,
        error,
        np.mean([t.statistic for t in tests], axis=0),
        p_value,
        np.where(is_zero, 0.0, low),
        np.where(is_zero, 0.0, high),
        is_zero,
    )
