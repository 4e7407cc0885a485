"""A plan cut into parts that workers can fit side by side, with the same bits as the whole.

An engine says how its plans may be cut (`cut_by`): by "features", where no model hangs on another;
by "needs", where the models of y help each other; by "folds", where all models of a fold do; or
not at all, "".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from covaria.nuisance.plan import Plan, Task


def parts_of(plan: Plan, cut: str, n_workers: int, lanes: int = 1) -> list[Plan]:
    """Return the plan as plans of a fold each, or of a part of it; features in whole lanes.

    What all models of a fold share is made for each of its parts. So folds are cut only where they
    do not share out evenly, each into one part for every worker.
    """
    folds = [list(tasks) for _, tasks in groupby(plan.tasks, key=lambda task: task.fold)]
    if not cut:
        return [plan]
    n_whole = len(folds) - len(folds) % n_workers
    found: list[Plan] = []
    for at, tasks in enumerate(folds):
        parts = [tasks] if at < n_whole else _parts_of_fold(tasks, cut, n_workers, lanes)
        found += [replace(plan, only=frozenset(some)) for some in parts]
    return found


def _parts_of_fold(tasks: list[Task], cut: str, count: int, lanes: int) -> Iterator[list[Task]]:
    """Yield some of a fold's tasks at a time; of each need those of neighbouring features."""
    if cut == "folds":
        yield tasks
        return
    if cut == "needs":
        of_y = [task for task in tasks if task.need != "x_given_rest"]
        if of_y:
            yield of_y
        tasks = [task for task in tasks if task.need == "x_given_rest"]
    features = sorted({task.feature for task in tasks})  # y on all columns is the first
    size = -(-len(features) // count)
    size = -(-size // lanes) * lanes
    for start in range(0, len(features), max(1, size)):
        some = set(features[start : start + size])
        yield [task for task in tasks if task.feature in some]
