"""The same regressions on halves of the training rows: how fast errors fall with more rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from covaria.nuisance.fit import by_task, run_plan
from covaria.nuisance.plan import Choices, Outcome, Plan, Task
from covaria.nuisance.splits import Fold, in_parts, is_cross_fit
from covaria.randomness import stream

Flags = NDArray[np.bool_]

# What the product of two residuals takes.
PRODUCT = frozenset({"x_given_rest", "y_given_rest"})


def halves_of(plan: Plan) -> tuple[Plan, Plan] | None:
    """Return the plan with either half of each fold's training rows; None where there is none.

    In a cross-fit of an odd number of folds the halves are the folds that follow, and those that
    follow these: each is learned from once for two folds (`fitted_once`).
    """
    count = len(plan.folds)
    if count > 2 and count % 2 and is_cross_fit(plan.folds, plan.data.n_rows):
        folds = _following(plan.folds)
    else:
        folds = _drawn(plan)
    if any(len(train) < 2 for half in folds for train, _ in half):
        return None  # all others are one cluster
    # What is kept was learned from all rows.
    choices = None if plan.choices is None else replace(plan.choices, kept={})
    first, second = (
        replace(
            plan,
            folds=own,
            needs=PRODUCT,
            choices=choices,
            progress=None,
            purpose="learning curves",
        )
        for own in folds
    )
    return first, second


def _following(folds: Sequence[Fold]) -> tuple[list[Fold], list[Fold]]:
    """Return the halves of a cross-fit of an odd number of folds."""
    count, tests = len(folds), [test for _, test in folds]
    several = count // 2
    windows = [
        np.sort(np.concatenate([tests[(first + k) % count] for k in range(several)]))
        for first in range(count)
    ]
    one = [(windows[(k + 1) % count], test) for k, test in enumerate(tests)]
    other = [(windows[(k + 1 + several) % count], test) for k, test in enumerate(tests)]
    return one, other


def _drawn(plan: Plan) -> tuple[list[Fold], list[Fold]]:
    """Return random halves of each fold's training rows; clusters stay together."""
    halves: tuple[list[Fold], list[Fold]] = ([], [])
    for k, (train, test) in enumerate(plan.folds):
        rng = stream(plan.seed, "halves", plan.repeat, k)
        part = in_parts(train, plan.data.clusters, 2, rng)
        for half, own in enumerate(halves):
            own.append((train[part == half], test))
    return halves


def fitted_once(halves: Sequence[Plan]) -> list[list[Outcome]]:
    """Return the outcomes of both plans, where models that learn from the same rows are one."""
    places: dict[int, list[tuple[int, int]]] = {}
    for at, half in enumerate(halves):
        for k, (train, _) in enumerate(half.folds):
            places.setdefault(id(train), []).append((at, k))
    where = {place: new for new, own in enumerate(places.values()) for place in own}
    folds: list[Fold] = []
    for own in places.values():
        tests = [halves[at].folds[k][1] for at, k in own]
        folds.append((halves[own[0][0]].folds[own[0][1]][0], np.concatenate(tests)))
    tasks = {
        (at, task): Task(task.need, where[at, task.fold], task.feature)
        for at, half in enumerate(halves)
        for task in half.tasks
    }
    firsts = [own[0][1] for own in places.values()]
    joint = replace(
        halves[0], folds=folds, only=frozenset(tasks.values()),
        choices=_in_folds(halves[0].choices, firsts),
    )  # fmt: skip
    found = by_task(joint, run_plan(joint))
    starts = {
        place: sum(len(halves[at].folds[k][1]) for at, k in own[: own.index(place)])
        for own in places.values()
        for place in own
    }
    return [
        [
            _rows(found[tasks[at, task]], starts[at, task.fold], len(half.folds[task.fold][1]))
            for task in half.tasks
        ]
        for at, half in enumerate(halves)
    ]


def _in_folds(choices: Choices | None, folds: Sequence[int]) -> Choices | None:
    """Return the learners of some folds, in their order."""
    if choices is None:
        return None
    return Choices(
        [choices.y[k] for k in folds],
        [choices.x[k] for k in folds],
        [choices.instead[k] for k in folds],
        [choices.y_rest[k] for k in folds],
    )


def _rows(outcome: Outcome, start: int, count: int) -> Outcome:
    """Return what was predicted for some of the test rows."""
    if outcome.prediction is None:
        return outcome
    return Outcome(outcome.prediction[start : start + count], learner=outcome.learner)
