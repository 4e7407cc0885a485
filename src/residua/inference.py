"""From scores to an estimate, its error, a statistic, a p-value and an interval.

Every mean-type method ends here. Its scores are one (n, features) array; their mean is the
estimate and their sd over √n the standard error (ddof 0, as R's GCM).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.intp]

ALTERNATIVES = ("two-sided", "greater", "less")
# Scores that vary by less than this share of their scale vary by rounding alone.
ROUNDING = 1e-12
# As many numbers are copied at once: 8 MB.
AT_ONCE = 2**20
SMALLEST_P = float(np.nextafter(0.0, 1.0))
# A one-sided p-value of 1 would outweigh all other repeats.
LARGEST_P = 0.99


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


def column_blocks(n_rows: int, n_columns: int) -> list[slice]:
    """Return the columns in blocks whose copy takes little room, one block for a small table."""
    step = max(1, AT_ONCE // max(1, n_rows))
    return [slice(first, first + step) for first in range(0, n_columns, step)]


def standard_error(scores: Array, clusters: Whole | None = None) -> Array:
    """Return the standard error of the scores' mean, robust to clusters where there are any."""
    if clusters is None:
        spread = [scores[:, some].std(axis=0) for some in column_blocks(*scores.shape)]
        return np.asarray(np.concatenate(spread) / np.sqrt(len(scores)))
    sums = _cluster_sums(scores, clusters)
    return np.asarray(np.sqrt(np.square(sums).sum(axis=0)) / len(scores))


def covariance(scores: Array, clusters: Whole | None = None) -> Array:
    """Return the covariance of the scores' means; rows of a cluster may depend on each other."""
    centred = scores - scores.mean(axis=0)
    if clusters is not None:
        centred = _cluster_sums(scores, clusters)
    return np.asarray(centred.T @ centred / len(scores) ** 2)


def _cluster_sums(scores: Array, clusters: Whole) -> Array:
    sums = np.zeros((int(clusters.max()) + 1, scores.shape[1]))
    np.add.at(sums, clusters, scores - scores.mean(axis=0))
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
) -> Tests:
    """Return the test that each feature's scores have mean zero.

    `degrees` above 1 mark features of several columns: their scores are the combination whose
    squared statistic is the quadratic form, so p and interval are those of a χ². `factor`
    multiplies the statistic before it is referred to the normal (LOCO's signed root).
    """
    estimate = scores.mean(axis=0)
    error = standard_error(scores, clusters)
    is_zero = error * np.sqrt(len(scores)) <= ROUNDING * scale
    estimate, error = np.where(is_zero, 0.0, estimate), np.where(is_zero, 0.0, error)
    ratio = factor * np.divide(estimate, error, out=np.zeros_like(estimate), where=error > 0)
    p_value = normal_p(ratio, alternative)
    reach = quantile(0.5 + confidence / 2) * error
    low, high = estimate - reach, estimate + reach
    statistic = ratio.copy()
    for j, df in enumerate([] if degrees is None else degrees.tolist()):
        if df > 1:
            statistic[j] = ratio[j] ** 2
            p_value[j] = chi_squared_p(statistic[j], df)
            low[j], high[j] = _interval_of_length(estimate[j], statistic[j], df, confidence)
    p_value[is_zero] = 1.0
    return Tests(estimate, error, statistic, p_value, low, high, is_zero)


def normal_p(ratio: Array, alternative: str) -> Array:
    """Return normal p-values, accurate in the tails and never zero.

    >>> normal_p(np.array([0.0, 40.0]), "two-sided")
    array([1.e+000, 5.e-324])
    """
    from scipy.stats import norm

    if alternative == "two-sided":
        p = 2 * norm.sf(np.abs(ratio))
    else:
        p = norm.sf(ratio) if alternative == "greater" else norm.cdf(ratio)
    return np.maximum(p, SMALLEST_P)


def either_p(two_sided: Array, one_sided: Array, correlation: Array) -> Array:
    """Return the p-value of the smaller of two: of a two-sided and a one-sided normal test.

    With m the smaller, it is P(|T₁| > z(m/2) or T₂ > z(m)) = 2m − P(both), of normals with this
    correlation. So it lies between m and 2m, which it is without correlation, but for m².

    >>> either_p(np.array([0.02]), np.array([0.02]), np.array([0.9])).round(4)
    array([0.0326])
    """
    from scipy.stats import norm

    least = np.clip(np.minimum(two_sided, one_sided), 1e-300, 1.0)
    rho = np.clip(correlation, -0.999, 0.999)[:, None]
    at, weights = np.polynomial.legendre.leggauss(64)
    # T₂ where it is above z(m), by its share of that tail.
    beyond = norm.isf(least[:, None] * (at + 1) / 2)
    edge, spread = norm.isf(least / 2)[:, None], np.sqrt(1 - rho**2)
    above, below = (norm.sf((edge - sign * rho * beyond) / spread) for sign in (1, -1))
    both = (above + below) @ weights / 2
    return np.minimum(1.0, least * (2 - both))


def chi_squared_p(statistic: float, degrees: int) -> float:
    """Return the upper tail of a χ², never zero."""
    from scipy.stats import chi2

    return max(float(chi2.sf(statistic, degrees)), SMALLEST_P)


def normal_quantile(p_value: Array) -> Array:
    """Return the number that a normal exceeds with this probability."""
    from scipy.stats import norm

    return np.asarray(norm.isf(p_value))


def quantile(level: float) -> float:
    """Return a normal quantile."""
    from scipy.stats import norm

    return float(norm.ppf(level))


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
    top = (np.sqrt(statistic) + 10) ** 2
    return float(brentq(lambda x: ncx2.cdf(statistic, degrees, x) - level, 1e-12, top))


def combine_repeats(tests: list[Tests], alternative: str = "two-sided") -> Tests:
    """Return one test from several cross-fits of the same data: their mean.

    p-values are averaged as normal scores, with the sign of the estimate where the test has two
    sides. All cross-fits' statistics are sums over the same rows, so that they are jointly normal
    and their mean has a variance of at most 1: its p-value is one, and hangs less on the draws of
    folds than the median's. A cross-fit whose models say nothing at all (p = 1) counts as .99.
    """
    if len(tests) == 1:
        return tests[0]
    estimates = np.array([t.estimate for t in tests])
    errors = np.array([t.std_error for t in tests])
    estimate = estimates.mean(axis=0)
    p_values, is_zero = np.array([t.p_value for t in tests]), np.all([t.is_zero for t in tests], 0)
    if alternative == "two-sided":
        scores = np.sign(estimates) * normal_quantile(p_values / 2)
    else:
        scores = normal_quantile(np.minimum(p_values, LARGEST_P))
        alternative = "greater"
    return Tests(
        estimate,
        np.sqrt(np.mean(errors**2 + (estimates - estimate) ** 2, axis=0)),
        np.mean([t.statistic for t in tests], axis=0),
        np.where(is_zero, 1.0, normal_p(scores.mean(axis=0), alternative)),
        np.mean([t.low for t in tests], axis=0),
        np.mean([t.high for t in tests], axis=0),
        is_zero,
    )
