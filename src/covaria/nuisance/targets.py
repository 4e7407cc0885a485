"""Other targets than the columns: what the other features leave of functions of a feature."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from covaria.nuisance.fit import by_task, run_plan
from covaria.nuisance.outcomes import places_of
from covaria.nuisance.plan import Plan, Task
from covaria.nuisance.residuals import Residuals

Array = NDArray[np.float64]
# Targets that vary by a smaller share of the largest are constant.
SAME = 1e-12
# Digits that other targets than columns keep, in units of their spread.
DIGITS = 9


class FitFailed(Exception):
    """The full model of a fold could not be fitted."""


def with_targets(
    plan: Plan,
    residuals: Residuals,
    need: str,
    targets: Callable[[Plan], Iterator[Array]],
) -> Residuals:
    """Return the residuals with what the rest leaves of other targets than the columns."""
    begin, failures, fits = time.perf_counter(), dict(residuals.failures), dict(residuals.fits)
    classes = (plan.data.n_classes,) if plan.data.n_classes > 2 and need[0] == "f" else ()
    shape = (len(residuals.rows), plan.data.n_features, *classes)
    left = np.zeros(shape, order="F")
    try:
        for fold, values in enumerate(targets(plan)):
            at = places_of(residuals.rows, plan.folds[fold][1])[1]
            for part in np.ndindex(classes):
                found = _left_of_targets(plan, fold, values[(..., *part)], need, failures)
                left[(at, slice(None), *part)] = found
                fits[need] += int((np.ptp(values, axis=0) > 0).sum())
    except FitFailed as failure:
        failures[need, -1] = str(failure)
    seconds = {**residuals.seconds, need: time.perf_counter() - begin}
    arrays = {**residuals.arrays, need: left}
    return replace(residuals, arrays=arrays, failures=failures, fits=fits, seconds=seconds)


def _left_of_targets(
    plan: Plan, fold: int, targets: Array, need: str, failures: dict[tuple[str, int], str]
) -> Array:
    """Return what the rest leaves of each target in a fold's test rows; constants leave 0."""
    test = plan.folds[fold][1]
    varies = np.ptp(targets, axis=0) > SAME * max(1e-300, float(np.abs(targets).max(initial=0)))
    tasks = [Task("x_given_rest", fold, int(j)) for j in np.flatnonzero(varies)]
    # In units of their own, and without digits that are rounding: those would decide between
    # splits of a tree that are equally good.
    unit = np.where(varies, targets.std(axis=0), 1.0)
    targets = np.round(targets / unit, DIGITS)
    part = replace(
        plan,
        targets=targets,
        needs=frozenset({"x_given_rest"}),
        only=frozenset(tasks),
        progress=None,
        purpose="functions of features",
    )
    left = np.zeros((len(test), targets.shape[1]))
    for task, outcome in by_task(part, run_plan(part)).items():
        if outcome.failure or outcome.prediction is None:
            failures.setdefault((need, task.feature), f"fold {fold + 1}: {outcome.failure}")
        else:
            left[:, task.feature] = targets[test, task.feature] - outcome.prediction[:, 0]
    return left * unit
