"""Features drawn anew given the others, and what that costs the model of y.

A number is what the others tell of it, plus what they leave of it in another tested row, or a gap
by the chance that they give of one; a flag or a category is drawn by the chances that they give its
levels, and takes its value from a row that has the level drawn. Without an effect such a copy is as
good as the feature itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.execution.threads import one_thread
from covaria.learners import Learner
from covaria.learners.estimators import Model
from covaria.nuisance.engines import plain
from covaria.nuisance.plan import Plan, Task
from covaria.nuisance.residuals import Residuals
from covaria.randomness import stream
from covaria.tables.arrays import Rows
from covaria.tables.dataset import Dataset

if TYPE_CHECKING:
    from covaria.nuisance.engines.plain import Inputs

Array = NDArray[np.float64]
Failures = dict[tuple[str, int], str]
# What a model is asked: rows in which a feature has other values.
Altered = Callable[[Generator], "Inputs"]

NEED = "y_conditional"
NOT_DRAWN = "cpi draws numbers, flags and categories, and no groups of columns"


def with_conditional(plan: Plan, residuals: Residuals) -> Residuals:
    """Return the residuals with the losses of features that are drawn anew given the others."""
    begin = time.perf_counter()
    with one_thread():
        gains, failures, models = conditional_gains(plan, residuals.rows, residuals.x_given_rest)
    seconds = time.perf_counter() - begin
    losses = np.maximum(0.0, residuals.loss_given_all + gains)  # below 0 by rounding alone
    if plan.ledger:
        plan.ledger.charge("conditional permutation", plan.learner.name, models, seconds)
    return replace(
        residuals,
        arrays={**residuals.arrays, "loss_conditional": losses},
        failures={**residuals.failures, **failures},
        fits={**residuals.fits, NEED: models},
        seconds={**residuals.seconds, NEED: seconds},
    )


def conditional_gains(plan: Plan, rows: Rows, left: Array) -> tuple[Array, Failures, int]:
    """Return the loss gained by drawing each feature anew, (rows, features); and models fitted.

    `left` is what the others leave of each column, in the tested `rows`.
    """
    gains, models = np.zeros((len(rows), plan.data.n_features)), 0
    failures: Failures = {}
    for fold, (_, test) in enumerate(plan.folds):
        at = np.searchsorted(rows, test)
        try:
            predict = _predictor(plan, fold)
            models += 0 if plan.full is not None else len(plan.blend(Task("y_given_all", fold)))
            inputs = plain.inputs_of(plan, test)
            as_it_is = plan.data.loss(predict(inputs), test)
            for j in range(plan.data.n_features):
                losses = _redrawn_losses(plan, fold, j, inputs, left[at], predict, failures)
                gains[at, j] = 0.0 if losses is None else losses - as_it_is
        except Exception as error:  # only what a learner does can fail here
            failures[NEED, -1] = f"fold {fold + 1}: {plain.reason(error)}"
            break
    return gains, failures, models


def _redrawn_losses(
    plan: Plan,
    fold: int,
    j: int,
    inputs: Inputs,
    left: Array,
    predict: Callable[[Inputs], Array],
    failures: Failures,
) -> Array | None:
    """Return each row's loss with a feature drawn anew, on average; None where it cannot be."""
    data, test = plan.data, plan.folds[fold][1]
    if not data.features[j].columns:
        return None
    altered = _redrawn(plan, test, j, inputs, left)
    if altered is None:
        failures[NEED, j] = NOT_DRAWN
        return None
    rng = stream(plan.seed, "conditional", plan.repeat, fold)  # the same for all features
    losses = [data.loss(predict(altered(rng)), test) for _ in range(plan.permutations)]
    return np.asarray(np.mean(losses, axis=0))


def _predictor(plan: Plan, fold: int) -> Callable[[Inputs], Array]:
    """Return what the model of y on all columns predicts, or the models that serve together."""
    task = Task("y_given_all", fold)
    blend: Sequence[tuple[Learner, float]] = (
        plan.blend(task) if plan.full is None else ((plan.full, 1.0),)
    )
    parts: list[tuple[Plan, Model | None, float]] = []
    for learner, weight in blend:
        own = replace(plan, learner=learner, choices=None, full=None, of_y=None)
        parts.append((own, plain.full_model(own, task), weight))
    train = plan.folds[fold][0]

    def predict(inputs: Inputs) -> Array:
        every = [weight * plain.predicted(own, m, inputs, train) for own, m, weight in parts]
        found = np.asarray(sum(every))
        return found if plan.choices is None else plan.within_reach(task, found)

    return predict


def _redrawn(plan: Plan, test: Rows, j: int, inputs: Inputs, left: Array) -> Altered | None:
    """Return a function that draws inputs with a feature anew; None where it cannot be drawn."""
    data, feature = plan.data, plan.data.features[j]
    own = list(feature.tested)
    told = data.X[test][:, own] - left[:, own]
    if feature.kind == "category" or (feature.kind == "number" and _is_flag(data, own)):
        levels = data.X[test][:, own]
        low, high = data.X[:, own].min(axis=0), data.X[:, own].max(axis=0)
        chances = np.clip((told - low) / (high - low), 0.0, 1.0)
        code = ((levels - low) / (high - low)) @ np.arange(1, len(own) + 1)
        return lambda rng: _with_rows(plan, test, j, test[_donors(chances, code, rng)])
    if feature.kind != "number":
        return None
    there = np.ones(len(test), dtype=bool) if len(own) == 1 else data.X[test, own[1]] == 0

    def altered(rng: Generator) -> Inputs:
        values = told[:, 0] + _drawn(left[:, own[0]], there, rng)
        gaps = (
            np.zeros(len(test), dtype=bool) if there.all() else rng.random(len(test)) < told[:, 1]
        )
        return _with_values(plan, j, inputs, values, gaps)

    return altered


def _is_flag(data: Dataset, own: list[int]) -> bool:
    if len(own) != 1:
        return False
    column = data.X[:, own[0]]
    return bool(((column == column.min()) | (column == column.max())).all())


def _donors(chances: Array, code: Array, rng: Generator) -> Rows:
    """Return for each row another that has a level drawn by its chances; itself if there is none.

    The first level has no column: its chance is what the others leave.
    """
    first = np.maximum(0.0, 1 - chances.sum(axis=1, keepdims=True))
    reached = np.cumsum(np.column_stack([first, chances]), axis=1)
    draws = rng.random(len(chances)) * reached[:, -1]
    drawn = np.minimum((draws[:, None] >= reached).sum(axis=1), chances.shape[1])
    donors = np.arange(len(chances))
    for level in range(chances.shape[1] + 1):
        there, wanting = np.flatnonzero(np.round(code) == level), np.flatnonzero(drawn == level)
        if len(there):
            donors[wanting] = rng.choice(there, size=len(wanting))
    return donors


def _with_rows(plan: Plan, test: Rows, j: int, others: Rows) -> Inputs:
    frame = _asked(plan).frame()
    if frame is not None:
        return frame.with_rows(test, plan.data.names[j], others)
    inputs, columns = plan.inputs[test], list(plan.data.features[j].columns)
    inputs[:, columns] = plan.inputs[others][:, columns]
    return inputs


def _drawn(left: Array, there: NDArray[np.bool_], rng: Generator) -> Array:
    """Return residuals of other rows, of those only in which the number is there."""
    if there.all():
        return np.asarray(rng.permutation(left))
    return np.asarray(rng.choice(left[there] if there.any() else left, size=len(left)))


def _with_values(
    plan: Plan, j: int, inputs: Inputs, values: Array, gaps: NDArray[np.bool_]
) -> Inputs:
    """Return inputs with other values of a number, and other gaps."""
    if not isinstance(inputs, np.ndarray):
        return inputs.assign(**{plan.data.names[j]: np.where(gaps, np.nan, values)})
    own, data = plan.data.features[j].tested, plan.data
    altered = inputs.copy()
    altered[:, own[0]] = values
    if len(own) > 1:
        fill = np.nan if plan.learner.takes_gaps else data.X[data.X[:, own[1]] == 1, own[0]][0]
        altered[gaps, own[0]] = fill
        altered[:, own[1]] = gaps
    return altered


def _asked(plan: Plan) -> Plan:
    """Return the plan of the model on all columns."""
    return plan if plan.full is None else replace(plan, learner=plan.full, full=None)
