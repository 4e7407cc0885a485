"""The engine of the mean: it needs no table of the rest, so none is copied."""

from __future__ import annotations

import numpy as np

from covaria.nuisance.plan import Outcome, Plan, Task

SERVED = frozenset({"y_given_all", "y_given_rest", "x_given_rest"})


def supports(plan: Plan) -> bool:
    """Return whether predictions are all that is asked for."""
    return plan.needs <= SERVED


def cut_by(plan: Plan) -> str:
    """Return how a plan may be cut: it is not worth it."""
    return ""


def run(plan: Plan) -> list[Outcome]:
    """Return the outcome of every task, in the order of the plan."""
    outcomes = [_outcome(plan, task) for task in plan.tasks]
    if plan.progress:
        plan.progress(len(outcomes), len(outcomes))
    return outcomes


def _outcome(plan: Plan, task: Task) -> Outcome:
    data, (train, test) = plan.data, plan.folds[task.fold]
    if task.need == "x_given_rest":
        targets = plan.x_targets[:, list(plan.targets_of(task.feature))][train]
        weights = None if data.weights is None else data.weights[train]
        mean = np.average(targets, axis=0, weights=weights)
        return Outcome(np.tile(mean, (len(test), 1)))
    prediction = data.mean_prediction(train, len(test))
    if task.need == "y_given_rest":
        return Outcome(prediction)
    features = enumerate(data.features)
    return Outcome(prediction, unused=frozenset(j for j, f in features if f.columns))
