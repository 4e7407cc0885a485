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

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from covaria.learners import Linear
from covaria.nuisance.fit import run_plan
from covaria.nuisance.halves import PRODUCT
from covaria.nuisance.outcomes import gather, is_sound
from covaria.nuisance.plan import Plan, Task
from covaria.nuisance.policy import POLICY
from covaria.nuisance.residuals import Residuals

Array = NDArray[np.float64]
Pair = tuple[Array, Array]
Measure = Callable[[Array, Array, Array], float]
# Correlations of more standard errors than these are an effect, whose interval is asked for.
WITH_EFFECT = 2.0


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


def attenuations(residuals: Residuals, halves: Sequence[Residuals], plan: Plan) -> Array:
    """Return what errors take off each correlation and coefficient; 0 for several columns."""
    found = np.zeros((len(MEASURES), plan.data.n_features))
    done = plan.has("x_given_rest") & plan.has("y_given_rest")
    weights = np.ones(len(residuals.rows)) if residuals.weights is None else residuals.weights
    for j, feature in enumerate(plan.data.features):
        rows = np.flatnonzero(done[residuals.fold, j])
        if len(rows) and len(feature.tested) == 1 and residuals.y_given_rest.ndim == 2:
            own = feature.tested[0]
            full, *others = (
                (one.x_given_rest[rows, own], one.y_given_rest[rows, j])
                for one in (residuals, *halves)
            )
            found[:, j] = [attenuation(full, others, weights[rows], one) for one in MEASURES]
    return found


def shortfalls(plan: Plan, residuals: Residuals) -> Array:
    """Return by how much both fall short of those that lines leave, where lines will do."""
    asked = _beside_lines(plan, residuals)
    found = np.zeros((len(MEASURES), plan.data.n_features))
    if not asked:
        return found
    tasks = frozenset(
        Task(need, k, j) for need in PRODUCT for k in range(len(plan.folds)) for j in asked
    )
    lines = replace(
        plan, learner=Linear(), choices=None, only=tasks, needs=PRODUCT, progress=None,
        purpose="least squares beside",
    )  # fmt: skip
    left = gather(lines, run_plan(lines))
    if not is_sound(left):
        return found
    weights = np.ones(len(residuals.rows)) if residuals.weights is None else residuals.weights
    for j in asked:
        own = plan.data.features[j].tested[0]
        pair, of_lines = (
            (one.x_given_rest[:, own], one.y_given_rest[:, j]) for one in (residuals, left)
        )
        found[:, j] = [shortfall(pair, of_lines, weights, one) for one in MEASURES]
    return found


def _beside_lines(plan: Plan, residuals: Residuals) -> list[int]:
    """Return features of one column with an effect on a number y, which not only lines serve."""
    n_rows, is_narrow = len(residuals.rows), 2 * plan.data.X.shape[1] <= residuals.n_train
    if plan.data.classes or not (plan.has_own_candidates and is_narrow):
        return []
    found = []
    for j, feature in enumerate(plan.data.features):
        if len(feature.tested) == 1 and not _are_lines(plan, j):
            x, y = residuals.x_given_rest[:, feature.tested[0]], residuals.y_given_rest[:, j]
            size = np.sqrt((x @ x) * (y @ y))
            if n_rows * (x @ y) ** 2 > (WITH_EFFECT * size) ** 2:
                found.append(j)
    return found


def _are_lines(plan: Plan, j: int) -> bool:
    """Return whether least squares serves both regressions of a feature in all folds."""
    folds = range(len(plan.folds))
    return all(plan.blend(Task(n, k, j)) == ((Linear(), 1.0),) for n in PRODUCT for k in folds)


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
