"""What the errors of regressions take off a correlation of residuals.

A regression that errs by δ leaves ξ + δ instead of ξ, of a larger variance: of two residuals with
errors of their own the correlation is too small by the factor √((1 − g)(1 − h)), with g and h the
shares of the errors in both variances. Errors in common, as those of least squares on the same
rows, take off less or nothing. Beside a strong effect that is much: at a correlation of .95 and
1,000 rows an error of 1.7% is 2.5 standard errors.

The coefficient of ξ (`effect="plm"`) is too small by the factor 1 − g: errors of y do not count.

Errors fall like one over the rows, so that halving these doubles them: as much as the correlation
falls by that, it is too small by with all rows.

Halving does not show what choosing took off. Of several learners the one serves that errs least in
the tested rows, and by chance that may be one whose errors go against the noise of these rows, so
that its residuals are too small, and so is their product with what is left of y. Least squares of
both, where it errs no more than chance allows, says what the correlation would have been.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from covaria.nuisance.policy import POLICY

Array = NDArray[np.float64]
Pair = tuple[Array, Array]
Measure = Callable[[Array, Array, Array], float]


def correlation(x: Array, y: Array, weights: Array) -> float:
    """Return the correlation of numbers whose means are zero."""
    size = np.sqrt((weights @ x**2) * (weights @ y**2))
    return float(weights @ (x * y) / size) if size > 0 else 0.0


def slope(x: Array, y: Array, weights: Array) -> float:
    """Return the coefficient of y on x, of means zero."""
    size = weights @ x**2
    return float(weights @ (x * y) / size) if size > 0 else 0.0


# What errors make too small, in the order of `Residuals.attenuation`.
MEASURES: tuple[Measure, ...] = (correlation, slope)


def attenuation(
    full: Pair, halves: list[Pair], weights: Array, measure: Measure = correlation
) -> float:
    """Return by how much the correlation of two residuals is nearer to zero than it should be.

    `halves` are residuals of the same rows, of models that learned from half of the others.

    >>> x, error = np.array([1.0, -1, 1, -1]), np.array([1.0, -1, -1, 1])
    >>> round(attenuation((x, x + error), [(x, x + 2 * error)], np.ones(4)), 2)
    0.26
    """
    found, *of_halves = (measure(x, y, weights) for x, y in (full, *halves))
    return float(max(0.0, np.sign(found) * (found - np.mean(of_halves))))


def shortfall(found: Pair, plainer: Pair, weights: Array, measure: Measure = correlation) -> float:
    """Return by how much a correlation of residuals is nearer to zero than that of plainer models.

    0 where one of those errs by more than `POLICY.as_good` standard errors.

    >>> x, error = np.array([1.0, -1, 1, -1]), np.array([1.0, -1, -1, 1])
    >>> round(shortfall((x - 0.6 * error, x), (x, x), np.ones(4)), 2)
    0.14
    """
    if any(
        _excess(one, other, weights) > POLICY.as_good
        for one, other in zip(found, plainer, strict=True)
    ):
        return 0.0
    own, other = (measure(x, y, weights) for x, y in (found, plainer))
    return float(max(0.0, np.sign(own) * (other - own)))


def _excess(found: Array, plainer: Array, weights: Array) -> float:
    """Return by how many standard errors plainer models have the larger squared residuals."""
    more = weights * (plainer**2 - found**2)
    error = more.std() / np.sqrt(len(more))
    return float(more.mean() / error) if error > 0 else 0.0
