"""Functions of each feature that the training rows suggest, and what the others leave of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from covaria.learners import Boosting
from covaria.nuisance.directions import directions
from covaria.nuisance.fit import run_plan
from covaria.nuisance.plan import Plan
from covaria.nuisance.policy import POLICY
from covaria.nuisance.residuals import Residuals, row_parts
from covaria.nuisance.targets import FitFailed, with_targets

Array = NDArray[np.float64]
# What is left of a feature varies by rows in ways that such trees find; so do curves of it.
SPREAD, CURVES = Boosting(trees=50, splits=1), Boosting(trees=100, splits=1)


def has_own_functions(plan: Plan) -> bool:
    """Return whether functions of features are put together from parts of ours."""
    return plan.has_own_candidates and plan.full is None and "f_given_rest" in plan.needs


def with_functions(plan: Plan, residuals: Residuals) -> Residuals:
    """Return the residuals with a function of each feature, put together from parts."""
    spread = replace(plan, learner=SPREAD, choices=None)
    if len(residuals.rows) < plan.data.n_rows:
        spread = plan
    residuals = with_targets(spread, residuals, "spread_given_rest", _spreads(residuals))
    residuals = with_targets(plan, residuals, "f_given_rest", _curves)
    fold = row_parts(plan, residuals)
    curve = residuals.f_given_rest
    function = directions(plan.data, residuals.rows, fold, [residuals.arrays])[0]
    arrays = {**residuals.arrays, "curve_given_rest": curve, "f_given_rest": function}
    return replace(residuals, arrays=arrays)


def _spreads(residuals: Residuals) -> Callable[[Plan], Iterator[Array]]:
    """Return targets: the squared residual of each feature of one column, 0 for others.

    Where not all rows are tested, the squares of the feature itself take their place.
    """
    if len(residuals.rows) < residuals.data.n_rows:
        return squares

    def targets(plan: Plan) -> Iterator[Array]:
        found = np.zeros((plan.data.n_rows, plan.data.n_features))
        for j, feature in enumerate(plan.data.features):
            if len(feature.tested) == 1 and not _is_flag(plan.data.X[:, feature.tested[0]]):
                left = residuals.x_given_rest[:, feature.tested[0]]
                found[residuals.rows, j] = left**2 / (np.mean(left**2) or 1.0)
        for _ in plan.folds:
            yield found

    return targets


def _is_flag(column: Array) -> bool:
    return bool(((column == column.min()) | (column == column.max())).all())


def _curves(plan: Plan) -> Iterator[Array]:
    """Yield for each fold the curve of each feature that stumps suggest, where it is a rough one.

    What a line and a square make of it other parts of the function have.
    """
    stumps = replace(plan, learner=CURVES, choices=None)
    variance = 0.25 if plan.data.classes else float(plan.data.y.var())
    for values in suggested(stumps):
        found = np.zeros_like(values)
        for j, feature in enumerate(plan.data.features):
            if len(feature.tested) == 1:
                rough = _rough(plan.data.X[:, feature.tested[0]], values[:, j])
                found[:, j] = rough if np.mean(rough**2) >= POLICY.rough * variance else 0.0
        yield found


def _rough(column: Array, values: Array) -> Array:
    """Return what a parabola in the column leaves of values."""
    sd = column.std() or 1.0
    z = (column - column.mean()) / sd
    basis = np.column_stack([np.ones_like(z), z, z**2])
    return np.asarray(values - basis @ np.linalg.lstsq(basis, values, rcond=None)[0])


def suggested(plan: Plan) -> Iterator[Array]:
    """Yield for each fold a function of each feature: the full model less its partial mean.

    It has a column per feature, and with three or more classes one more axis, for all of them.
    """
    everything = np.arange(plan.data.n_rows, dtype=np.intp)
    plan = replace(
        plan,
        folds=[(train, everything) for train, _ in plan.folds],
        needs=frozenset({"y_direction"}),
        only=None,
        progress=None,
        purpose="functions of features",
    )
    for outcome in run_plan(plan):
        if outcome.failure:
            raise FitFailed(outcome.failure)
        assert outcome.direction is not None
        yield outcome.direction


def squares(plan: Plan) -> Iterator[Array]:
    """Yield for each fold the square of each feature that owns one column, 0 for others."""
    found = np.zeros((plan.data.n_rows, plan.data.n_features))
    for j, feature in enumerate(plan.data.features):
        if len(feature.tested) == 1:
            column, spread = plan.data.X[:, feature.tested[0]], plan.data.variance
            mean = np.average(column, weights=plan.data.weights)
            found[:, j] = (column - mean) ** 2 / (spread[feature.tested[0]] or 1.0)
    for _ in plan.folds:
        yield found
