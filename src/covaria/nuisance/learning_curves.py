"""What more rows would take off the errors of regressions, seen by halving the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from covaria.nuisance.attenuation import attenuations, shortfalls
from covaria.nuisance.halves import PRODUCT, fitted_once, halves_of
from covaria.nuisance.outcomes import gather, is_sound
from covaria.nuisance.plan import Plan
from covaria.nuisance.promising import promising
from covaria.nuisance.residuals import Residuals
from covaria.tables.arrays import of_all_classes, over

Array = NDArray[np.float64]


def with_learning_curves(plan: Plan, residuals: Residuals) -> Residuals:
    """Return the residuals with what halving the rows does to the regressions of findings."""
    has_no_choice = plan.choices is None or plan.of_y is not None
    if has_no_choice or residuals.n_train == 0 or not plan.needs >= PRODUCT:
        return residuals
    asked = promising(residuals, plan.alpha)
    halves = halves_of(plan) if asked else None
    if halves is None:
        return residuals
    wanted = frozenset(task for task in halves[0].tasks if task.feature in asked)
    parts = tuple(replace(half, only=wanted) for half in halves)
    found = tuple(gather(*pair) for pair in zip(parts, fitted_once(parts), strict=True))
    if not all(is_sound(one) and not one.failures for one in found):
        return residuals
    raw = residuals.by_learners or residuals
    noise, curves = _learning_curves(raw, found, parts[0])
    return replace(
        residuals,
        # The noise of models counts twice where folds learn from each other's rows.
        model_noise=np.minimum(_least(noise), residuals.most_noise)
        if len(plan.folds) > 1
        else None,
        learning_curves=curves,
        attenuation=np.maximum(attenuations(raw, found, parts[0]), shortfalls(plan, raw)),
    )


def _learning_curves(
    residuals: Residuals, halves: Sequence[Residuals], plan: Plan
) -> tuple[Array, Array]:
    """Return the noise in each feature's models, and how much more rows would take off its errors.

    A model of half the rows has twice the noise, so that two of them differ by four times its
    variance. If errors fall like one over the rows, as much is still to be learned as halving the
    rows added. Both are shares of what is left, with a column for x_j and one for y, NaN where that
    was not measured.
    """
    noise, curves = np.full((2, plan.data.n_features, 2), np.nan)
    arrays = [_by_class(one) for one in (residuals, *halves)]
    weights = np.ones(len(residuals.rows)) if residuals.weights is None else residuals.weights
    for at, need in enumerate(("x_given_rest", "y_given_rest")):
        done = plan.has(need)
        for j, feature in enumerate(plan.data.features):
            rows = np.flatnonzero(done[residuals.fold, j])
            if len(rows) and feature.columns:
                own = list(feature.tested) if at == 0 else [j]
                left = [array[need][rows][:, own].reshape(len(rows), -1) for array in arrays]
                noise[j, at], curves[j, at] = _learning_curve(left, weights[rows])
    return noise, curves


def _least(noise: Array) -> Array:
    """Return the lesser noise of the two regressions of each feature, 0 where none is known."""
    known = np.isfinite(noise)
    least = np.nanmin(noise, axis=1, where=known, initial=np.inf)
    return np.where(known.any(axis=1), least, 0.0)


def _learning_curve(left: Sequence[Array], weights: Array) -> tuple[float, float]:
    """Return the share of noise in one regression, and how much halving its rows added."""
    full, one, other = left
    size, apart = _mean_square(full, weights), _mean_square(one - other, weights)
    larger = (_mean_square(one, weights) + _mean_square(other, weights)) / 2
    gap = np.clip(larger.sum() / size.sum() - 1, 0, 1) if size.sum() else np.nan
    return float(over(apart / 4, size).max()), float(gap)


def _by_class(residuals: Residuals) -> dict[str, Array]:
    """Return what the two regressions left over, of y for every class."""
    left = residuals.y_given_rest
    y = of_all_classes(left) if left.ndim == 3 else left
    return {"x_given_rest": residuals.x_given_rest, "y_given_rest": y}


def _mean_square(values: Array, weights: Array | None) -> Array:
    return np.asarray(np.average(values**2, axis=0, weights=weights))
