"""Plans handed to engines: to the soonest, or to several where regressions chose learners."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from covaria.execution.cost import Ledger
from covaria.learners import Learner
from covaria.nuisance.engines import plain
from covaria.nuisance.plan import Array, Outcome, Plan, Task

# The engines of learners that have one.
ENGINES = {
    "boosting": "boosting",
    "kernel": "kernel",
    "linear": "linear",
    "mean": "mean",
    "network": "network",
    "predictions": "given",
    "ridge": "linear",
    "splines": "splines",
    "surfaces": "surfaces",
}
# Those among them, and those that choose among them, that are slow without numba.
COMPILED = frozenset({"auto", "boosting", "forest", "kernel", "network"})


def engine_for(plan: Plan) -> Any:
    """Return the engine that fits the plan soonest; the plain one fits any.

    Fast engines are compiled by numba. Where it is missing the plain engine serves.
    """
    if plan.learner.name not in ENGINES:
        return plain
    try:
        engine = importlib.import_module(f"covaria.nuisance.engines.{ENGINES[plan.learner.name]}")
    except ImportError:
        return plain
    return engine if engine.supports(plan) else plain


def run(plan: Plan, *, plainly: bool = False) -> Iterable[Outcome]:
    """Return the outcomes of all tasks, in the order of the plan."""
    if plan.choices is not None:
        return _run_mixed(plan, plainly)
    engine = plain if plainly else engine_for(plan)
    if plan.ledger is None:
        outcomes: Iterable[Outcome] = engine.run(plan)
        return outcomes
    return _charged(plan, plan.ledger, engine)


def _charged(plan: Plan, ledger: Ledger, engine: Any) -> Iterator[Outcome]:
    """Yield the outcomes, and charge the models and the time that each took."""
    at, start = 0, time.perf_counter()
    for outcome in engine.run(plan):
        models = outcome.models
        if models is None:
            models = sum(plan.models(task) for task in plan.tasks[at : at + outcome.count])
        at += outcome.count
        ledger.charge(plan.purpose, plan.learner.name, models, time.perf_counter() - start)
        yield outcome
        start = time.perf_counter()
    ledger.charge(plan.purpose, plan.learner.name, 0, time.perf_counter() - start)


def _run_mixed(plan: Plan, plainly: bool) -> Iterator[Outcome]:
    """Yield the outcome of every task, by the learners that its regression chose."""
    for fold in range(len(plan.folds)):
        tasks = [task for task in plan.tasks if task.fold == fold]
        found = {}
        for learner, own in _by_learner(plan, tasks).items():
            found[learner] = _kept(plan, learner, own)
            new = frozenset(own) - found[learner].keys()
            if new:
                part = replace(plan, learner=learner, choices=None, only=new, progress=None)
                found[learner] |= by_task(part, run(part, plainly=plainly))
        yield from (_blended(plan, task, found) for task in tasks)
        if plan.progress:
            plan.progress(sum(task.fold <= fold for task in plan.tasks), len(plan.tasks))


def _kept(plan: Plan, learner: Learner, tasks: list[Task]) -> dict[Task, Outcome]:
    """Return what was fitted already when learners were compared."""
    if plan.choices is None or plan.targets is not None:
        return {}
    kept = plan.choices.kept
    return {task: Outcome(kept[task, learner]) for task in tasks if (task, learner) in kept}


def _by_learner(plan: Plan, tasks: list[Task]) -> dict[Learner, list[Task]]:
    found: dict[Learner, list[Task]] = {}
    for task in tasks:
        for learner, _ in plan.blend(task):
            found.setdefault(learner, []).append(task)
    return found


def _blended(plan: Plan, task: Task, found: dict[Learner, dict[Task, Outcome]]) -> Outcome:
    """Return the weighted mean of what a task's learners found, or the reason if one failed."""
    blend = plan.blend(task)
    outcomes = [found[learner][task] for learner, _ in blend]
    label = " + ".join(
        str(learner) if len(blend) == 1 else f"{weight:.2f} {learner}" for learner, weight in blend
    )
    failed = [outcome for outcome in outcomes if outcome.failure]
    if failed:
        return replace(failed[0], learner=label)
    weights = [weight for _, weight in blend]
    prediction = _weighted([outcome.prediction for outcome in outcomes], weights)
    if prediction is not None:
        # Curves of many waves run wild where a training part has no rows.
        prediction = plan.within_reach(task, prediction)
    if len(blend) == 1:
        return replace(outcomes[0], prediction=prediction, learner=label)
    return Outcome(
        prediction=prediction,
        direction=_weighted([outcome.direction for outcome in outcomes], weights),
        seconds=sum(outcome.seconds for outcome in outcomes),
        learner=label,
    )


def _weighted(arrays: list[Array | None], weights: list[float]) -> Array | None:
    if arrays[0] is None:
        return None
    parts = (weight * array for weight, array in zip(weights, arrays, strict=True))  # type: ignore[operator]
    return np.asarray(sum(parts))


def by_task(plan: Plan, outcomes: Iterable[Outcome]) -> dict[Task, Outcome]:
    """Return an outcome for each task, where one may have answered several."""
    found: dict[Task, Outcome] = {}
    for outcome in outcomes:
        tasks = plan.tasks[len(found) : len(found) + outcome.count]
        if outcome.count == 1 and outcome.left is None:
            found[tasks[0]] = outcome
            continue
        predictions = _rows_of(plan, tasks, outcome)
        for task, prediction in zip(tasks, predictions, strict=True):
            found[task] = Outcome(prediction, seconds=outcome.seconds / outcome.count)
    return found


def _rows_of(plan: Plan, tasks: list[Task], outcome: Outcome) -> list[Array]:
    """Return the prediction of each task from those of several."""
    is_y, test = tasks[0].need[0] == "y", plan.folds[tasks[0].fold][1]
    owned = [list(plan.targets_of(task.feature)) for task in tasks]
    prediction = outcome.prediction
    if outcome.left is not None:
        columns = [column for own in owned for column in own]
        target = plan.data.y[test] if is_y else plan.x_targets[test][:, columns].T
        prediction = target - outcome.left
    assert prediction is not None
    if is_y:
        return list(prediction)
    return [part.T for part in np.split(prediction, np.cumsum([len(own) for own in owned])[:-1])]
