"""The boosting engine: all models of a fold grow a tree in the same round, on the same bag.

The trees are those of `estimators.boosting`; how sixteen of them grow at once is told in
`boosting_kernels`, and in `boosting_bins` for tables of many rows. What the models of a fold share:

- each column is sorted, or put into bins, once, and each bag is drawn and put in order once;
- all models have the same table: one that may not use a feature skips it when it picks a split;
- the model of y without feature j *is* the full model until the full model first uses j.
  There it forks off. If that never happens, the full model's answer is its answer;
- test rows are in no bag, so their scores are predictions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covaria.execution.compiling import has_numba
from covaria.learners import Boosting
from covaria.learners.estimators.boosting import (
    LARGEST_STEP,
    ROUNDING,
    bin_edges,
    bins,
    blocks_of_bags,
    is_binned,
    mean,
    score_targets,
    start,
)
from covaria.nuisance.engines import plain
from covaria.nuisance.plan import Array, Outcome, Plan, Task
from covaria.tables.arrays import as_slice

HAS_NUMBA = has_numba()
if HAS_NUMBA:
    from covaria.nuisance.engines import boosting_bins as binned
    from covaria.nuisance.engines import boosting_kernels as kernels
    from covaria.nuisance.engines import boosting_parts as parts
    from covaria.nuisance.engines.boosting_lanes import DOUBLE_LANES, LANES

NEEDS = ("y_given_all", "y_given_rest", "x_given_rest")
# As many scores are kept at once, if a block of models does not need more: 64 MB.
ROOM = 2**23
# As many numbers are sorted at once.
AT_ONCE = 2**22
# As many times a model looks at a value of a column before progress is reported.
LOOKS_AT_ONCE = 4e9


def supports(plan: Plan) -> bool:
    """Return whether numba is here and every feature's columns lie side by side."""
    if not isinstance(plan.learner, Boosting) or not HAS_NUMBA:
        return False
    owned = [f.columns for f in plan.data.features if f.columns]
    return all(columns[-1] - columns[0] == len(columns) - 1 for columns in owned)


def cut_by(plan: Plan) -> str:
    """Return how a plan may be cut: models grow side by side, each by itself."""
    return "features"


def run(plan: Plan) -> Iterator[Outcome]:
    """Yield the outcomes of all tasks in the order of the plan: only one fold's need be kept."""
    for fold in range(len(plan.folds)):
        yield from _run_fold(plan, fold)
    _report(plan, 0, len(plan.tasks))


def along(plan: Plan, counts: Sequence[int]) -> dict[Task, list[Array]]:
    """Return for every task the predictions of the model while it has so many trees.

    Only models of y on all columns, and of features, can be asked.
    """
    found: dict[Task, list[Array]] = {}
    for fold in range(len(plan.folds)):
        tasks = [task for task in plan.tasks if task.fold == fold]
        y_tasks = [task for task in tasks if task.need == "y_given_all"]
        x_tasks = [task for task in tasks if task.need == "x_given_rest"]
        if not y_tasks and not x_tasks:
            continue
        grounds, apart = Grounds(plan, fold), bool(plan.data.classes and y_tasks)
        found |= Job(grounds, y_tasks, [] if apart else x_tasks).along(counts)
        if apart and x_tasks:
            found |= Job(grounds, [], x_tasks).along(counts)
    return found


# --- one fold -----------------------------------------------------------------------------------


def _run_fold(plan: Plan, fold: int) -> list[Outcome]:
    """Return the outcomes of a fold's tasks."""
    begin = time.perf_counter()
    tasks = {need: [t for t in plan.tasks if t.fold == fold and t.need == need] for need in NEEDS}
    found: dict[str, list[Outcome]] = {need: [] for need in NEEDS}
    fast = {need: some for need, some in tasks.items() if some and _has_columns(plan, some[0])}
    if fast:
        grounds = Grounds(plan, fold)
        n_tasks = sum(len(some) for some in fast.values())
        grounds.seconds_a_task = (time.perf_counter() - begin) / n_tasks
        for answers in _run_jobs(plan, fold, _jobs(grounds, fast)):
            for need, some in answers.items():
                found[need] += some
    return [o for need in NEEDS for o in _or_plain(plan, tasks[need], found[need])]


def _has_columns(plan: Plan, task: Task) -> bool:
    """Return whether a task has columns to learn from: a feature may own all there are."""
    owned = 0 if task.need == "y_given_all" else len(plan.data.features[task.feature].columns)
    return bool(plan.data.X.shape[1] > owned)


def _or_plain(plan: Plan, tasks: list[Task], found: list[Outcome]) -> list[Outcome]:
    """Return what was found if all numbers are finite, else what the plain engine finds."""
    sums = [np.sum(outcome.prediction) for outcome in found if outcome.prediction is not None]
    if found and np.isfinite(sums).all():
        return found
    return [plain.fit_task(plan, task) for task in tasks]


def _jobs(grounds: Grounds, tasks: dict[str, list[Task]]) -> list[Callable[[], Job]]:
    """Return what makes the jobs of a fold: models that fit into memory."""
    y_tasks = tasks.get("y_given_all", []) + tasks.get("y_given_rest", [])
    shares = _shares(grounds, tasks.get("x_given_rest", []))
    n_models = len(y_tasks) + sum(len(share) for share in shares)
    if len(shares) == 1 and n_models <= grounds.most_models and not grounds.data.classes:
        return [partial(Job, grounds, y_tasks, shares[0])]
    jobs = [partial(Job, grounds, [], share) for share in shares]
    return [partial(Job, grounds, y_tasks, []), *jobs] if y_tasks else list(jobs)


def _shares(grounds: Grounds, tasks: list[Task]) -> list[list[Task]]:
    """Return the tasks in parts that fit into memory."""
    n_models = sum(grounds.plan.models(task) for task in tasks)
    n_parts = max(1, -(-n_models // grounds.most_models))
    # A part whose last block of models is full wastes no lanes.
    size = max(1, -(-len(tasks) // (n_parts * grounds.lanes))) * grounds.lanes
    return [tasks[first : first + size] for first in range(0, len(tasks), size)]


def _run_jobs(
    plan: Plan, fold: int, jobs: Sequence[Callable[[], Job]]
) -> list[dict[str, list[Outcome]]]:
    """Return the outcomes of jobs that have nothing to do with each other."""
    done = sum(task.fold < fold for task in plan.tasks)
    more = sum(task.fold == fold for task in plan.tasks)
    found = []
    for i, job in enumerate(jobs):
        first, last = (done + more * part // len(jobs) for part in (i, i + 1))
        found.append(job().run(partial(_report, plan, first, last - first)))
    return found


def _report(plan: Plan, done: int, more: int, share: float = 1.0) -> None:
    """Say how many tasks are done: some, and a share of some more."""
    if plan.progress:
        plan.progress(done + int(share * more), len(plan.tasks))


def _silent(share: float) -> None:
    """Report nothing."""


# --- what models share --------------------------------------------------------------------------


class Grounds:
    """What all models of a fold stand on: its rows, training rows first, and its bags."""

    def __init__(self, plan: Plan, fold: int) -> None:
        assert isinstance(plan.learner, Boosting)
        self.plan, self.learner, self.data = plan, plan.learner, plan.data
        self.fold, (self.train, self.test) = fold, plan.folds[fold]
        self.in_sample = self.train is self.test or np.array_equal(self.train, self.test)
        rows = self.train if self.in_sample else np.concatenate([self.train, self.test])
        self.n_train, self.n_all = len(self.train), len(rows)
        self.tested = slice(0 if self.in_sample else self.n_train, self.n_all)
        self.weights: Array | None = None
        if self.data.weights is not None:
            self.weights = self.data.weights[self.train] / self.data.weights[self.train].mean()
        self.min_node, self.seconds_a_task = max(1, self.learner.min_node), 0.0
        self.binned = is_binned(self.n_train)
        self.lanes = DOUBLE_LANES if self.binned else LANES
        self.most_models = max(self.lanes, ROOM // self.n_all)
        self.edges: list[Array] = []
        self.table: Any = self._binned_table(rows) if self.binned else self._sorted_table(rows)
        seed, learner = plan.learner_seed(fold), self.learner
        drawn = blocks_of_bags(seed, self.n_train, learner.trees, learner.bag)
        self._bags = np.concatenate([np.packbits(some, axis=1) for some in drawn])
        self.n_bag = int(np.count_nonzero(self.bags(0, 1)))

    def _sorted_table(self, rows: NDArray[np.intp]) -> kernels.Table:
        """Return the rows as columns, and the order of each column's training rows."""
        columns = np.ascontiguousarray(self.data.X[as_slice(rows)].T)
        order = np.empty((len(columns), self.n_train), dtype=np.uint32)
        tied = np.zeros(len(columns), dtype=bool)
        step = max(1, AT_ONCE // self.n_train)
        for first in range(0, len(columns), step):
            some = slice(first, first + step)
            order[some], tied[some] = _in_order(columns[some, : self.n_train])
        return kernels.Table(columns, order, tied, self._row_weights())

    def _binned_table(self, rows: NDArray[np.intp]) -> binned.Table:
        """Return the bins of the rows, column by column."""
        n_columns = self.data.X.shape[1]
        numbers = np.empty((n_columns, self.n_all), dtype=np.uint8)
        for k in range(n_columns):
            column = self.data.X[rows, k]
            self.edges.append(bin_edges(column[: self.n_train]))
            numbers[k] = bins(column, self.edges[k])
        n_bins = np.array([len(edges) + 1 for edges in self.edges])
        return binned.Table(numbers, n_bins, self._row_weights())

    def _row_weights(self) -> Array:
        return np.ones(self.n_train) if self.weights is None else self.weights

    def bags(self, first: int, last: int) -> NDArray[np.bool_]:
        """Return some of the bags: (rounds, training rows)."""
        return np.unpackbits(self._bags[first:last], axis=1, count=self.n_train).view(bool)

    def bag(self) -> Any:
        """Return an empty bag."""
        weighted, n_columns = self.weights is not None, len(self.table.columns)
        if self.binned:
            n_bins = int(self.table.n_bins.max())
            return binned.make_bag(n_columns, self.n_bag, n_bins, weighted=weighted)
        return kernels.make_bag(self.table, self.n_bag, weighted=weighted, min_node=self.min_node)

    def work(self) -> Any:
        """Return room for a block of models."""
        sizes = (self.n_all, self.n_bag, len(self.table.columns), self.learner.splits)
        if self.binned:
            return binned.make_work(*sizes, int(self.table.n_bins.max()))
        return kernels.make_work(*sizes)

    def columns(self, feature: int) -> tuple[int, int]:
        """Return the first column of a feature and the one after its last."""
        owned = self.data.features[feature].columns
        return (owned[0], owned[-1] + 1) if owned else (0, 0)

    def targets(self, columns: NDArray[np.intp]) -> Array:
        """Return the training rows of some columns of what is predicted, as rows."""
        if not self.binned and self.plan.targets is None:
            return np.asarray(self.table.columns[columns, : self.n_train])
        return np.stack([self.plan.x_targets[self.train, k] for k in columns])

    def as_in_table(self, values: Array) -> NDArray[np.generic]:
        """Return a value for each column as the table has it: itself, or its bin."""
        if not self.binned:
            return values[:, np.newaxis]
        return np.stack([bins(values[k : k + 1], edges) for k, edges in enumerate(self.edges)])


def _in_order(columns: Array) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the order of each column, and whether any of its values are equal."""
    ordered, order = np.sort(columns, axis=1), np.argsort(columns, axis=1)
    tied = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    # Sorting that keeps the order of equals takes thrice as long, and only they need it.
    if tied.any():
        order[tied] = np.argsort(columns[tied], axis=1, kind="stable")
    return order, tied


# --- models that grow together ------------------------------------------------------------------


class Job:
    """Models that grow together: first that of y, then those of features, then forks of the first.

    A model of three or more classes takes a row for each class, any other model takes one.
    """

    def __init__(self, grounds: Grounds, y_tasks: list[Task], x_tasks: list[Task]) -> None:
        self.grounds, self.x_tasks = grounds, x_tasks
        self.n_classes = grounds.data.n_classes if y_tasks else 0
        self.has_full = any(task.need == "y_given_all" for task in y_tasks)
        self.asked = [task.feature for task in y_tasks if task.need == "y_given_rest"]
        targets, low, high = self._targets(bool(y_tasks))
        self.first = len(targets)
        self.height = len(targets) - len(low)
        room = self.first + self.height * len(self.asked)
        self.scores = np.empty((room, grounds.n_all))
        self.models = self._make_models(targets, room, low, high)
        self.forks = self._make_forks()
        self.history = parts.make_trees(
            self.height * grounds.learner.trees if self._keeps_trees() else 0,
            grounds.learner.splits,
        )
        self.seconds = 0.0

    def _targets(self, has_y: bool) -> tuple[Array, NDArray[np.intp], NDArray[np.intp]]:
        """Return what the models have to learn, and which columns those of features may not use."""
        grounds = self.grounds
        y = score_targets(grounds.data.y[grounds.train], self.n_classes)[: None if has_y else 0]
        spans = [grounds.columns(task.feature) for task in self.x_tasks]
        if not spans:
            return y, np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
        owned = [grounds.plan.targets_of(task.feature) for task in self.x_tasks]
        low, high = np.repeat(spans, [len(columns) for columns in owned], axis=0).T
        return np.concatenate([y, grounds.targets(np.concatenate(owned))]), low, high

    def _make_models(self, targets: Array, room: int, low: Any, high: Any) -> parts.Models:
        grounds, classes, count = self.grounds, self.n_classes > 0, len(targets)
        self.scores[:count] = start(targets, grounds.weights, self.n_classes)
        models = parts.Models(
            targets=targets,
            source=np.arange(room),
            # What a model of numbers expects is its score itself.
            expected=np.empty_like(self.scores) if classes else self.scores,
            bend=np.empty((room, grounds.n_train)) if classes else grounds.table.weights[None],
            low=np.zeros(room, dtype=np.int64),
            high=np.zeros(room, dtype=np.int64),
            noise=np.empty(room),
        )
        models.low[self.height : count], models.high[self.height : count] = low, high
        largest = np.maximum(targets.max(axis=1), -targets.min(axis=1))
        models.noise[:count] = ROUNDING * grounds.n_train * (1.0 if classes else largest) ** 2
        return models

    def _keeps_trees(self) -> bool:
        return self.height > 0 and bool(
            self.grounds.plan.needs & {"y_dropped", "y_permuted", "y_direction"}
        )

    def _make_forks(self) -> parts.Forks:
        grounds, n_features = self.grounds, self.grounds.data.n_features
        spans = np.array([grounds.columns(j) for j in range(n_features)])
        at = np.full(n_features + 1, -2)
        at[self.asked] = -1
        # Columns that no feature owns are those of one more, which nobody asks for.
        owner = np.full(grounds.data.X.shape[1], n_features, dtype=np.int64)
        for j, (low, high) in enumerate(spans):
            owner[low:high] = j
        n_classes = self.height if self.n_classes else 0
        return parts.Forks(
            used=np.array([self.first]),
            owner=owner,
            low=spans[:, 0].copy(),
            high=spans[:, 1].copy(),
            at=at,
            scores=np.empty((self.height, grounds.n_all)),
            expected=np.empty((n_classes, grounds.n_all)),
            bend=np.empty((n_classes, grounds.n_train)),
        )

    # --- fitting --------------------------------------------------------------------------------

    def run(self, report: Callable[[float], None]) -> dict[str, list[Outcome]]:
        """Return the outcomes of the tasks, after every model has grown a tree on every bag."""
        self._advance((), report)
        return self._outcomes()

    def along(self, counts: Sequence[int]) -> dict[Task, list[Array]]:
        """Return what the model of y and those of features predict with so many trees."""
        scores = self._advance(counts, _silent)
        found: dict[Task, list[Array]] = {}
        if self.has_full:
            full = [as_prediction(some[: self.height], self.n_classes) for some in scores]
            found[Task("y_given_all", self.grounds.fold)] = full
        first = self.height
        for task in self.x_tasks:
            last = first + self.grounds.plan.models(task)
            found[task] = [some[first:last].T for some in scores]
            first = last
        return found

    def _advance(self, counts: Sequence[int], report: Callable[[float], None]) -> list[Array]:
        """Let the models grow, and return the scores of the test rows with so many trees."""
        begin, found = time.perf_counter(), []
        grounds, rounds = self.grounds, self.grounds.learner.trees
        advance = binned.advance if grounds.binned else kernels.advance
        bag, work, rules = grounds.bag(), grounds.work(), self._rules()
        trees = parts.make_trees(len(self.scores), rules.splits)
        at_once = self._rounds_at_once()
        steps = sorted({*range(0, rounds, at_once), *counts, rounds})
        for first, last in pairwise(steps):
            if self.n_classes:
                self._expect(int(self.forks.used[0]))
            advance(
                grounds.table,
                grounds.bags(first, last),
                bag,
                self.models,
                rules,
                work,
                trees,
                self.scores,
                self.forks,
                self.history,
                first,
            )
            report(last / rounds)
            if last in counts:
                found.append(self.scores[: self.first, grounds.tested].copy())
        self.seconds = time.perf_counter() - begin
        return found

    def _rules(self) -> parts.Rules:
        learner = self.grounds.learner
        return parts.Rules(
            splits=learner.splits,
            shrinkage=float(learner.shrinkage),
            min_node=self.grounds.min_node,
            classes=self.n_classes > 0,
            largest_step=LARGEST_STEP if self.n_classes else np.inf,
        )

    def _rounds_at_once(self) -> int:
        """Return how many rounds are left to the kernel at once."""
        if self.n_classes:
            return 1  # what a model of classes expects is for numpy to compute, for every tree
        looks = self.grounds.n_all * len(self.grounds.table.columns) * len(self.scores)
        return max(1, min(self.grounds.learner.trees, int(LOOKS_AT_ONCE / looks)))

    def _expect(self, count: int) -> None:
        """Write m(F) of each model, and its weighted bend m(1 - m)."""
        grounds, models = self.grounds, self.models
        for first in range(0, count, self.height):
            rows = slice(first, first + self.height)
            expected = mean(self.scores[rows], self.n_classes)
            train = expected[:, : grounds.n_train]
            models.expected[rows] = expected
            models.bend[rows] = train * (1 - train) * grounds.table.weights

    # --- answers --------------------------------------------------------------------------------

    def _outcomes(self) -> dict[str, list[Outcome]]:
        """Return for each need what came of its tasks."""
        n_features = self.first - self.height
        n_forks = (int(self.forks.used[0]) - self.first) // max(1, self.height)
        n_models = (self.height > 0) + n_forks + n_features
        found: dict[str, list[Outcome]] = {}
        if self.has_full:
            found["y_given_all"] = [self._full_outcome(self._cost(1 / n_models, 1))]
        if self.asked:
            share = (n_forks + 1 - self.has_full) / n_models
            found["y_given_rest"] = self._rest_outcomes(self._cost(share, len(self.asked)))
        if self.x_tasks:
            seconds = self._cost(n_features / n_models, len(self.x_tasks))
            found["x_given_rest"] = [self._feature_outcome(seconds)]
        return found

    def _cost(self, share: float, n_tasks: int) -> float:
        """Return the seconds of a share of the models, that answer some tasks."""
        return self.seconds * share + self.grounds.seconds_a_task * n_tasks

    def _feature_outcome(self, seconds: float) -> Outcome:
        """Return the predictions of all columns of the features."""
        prediction = self.scores[self.height : self.first, self.grounds.tested]
        if not self.grounds.in_sample:
            prediction = prediction.copy()  # the scores of other rows need not be kept
        if len(self.x_tasks) == 1:
            return Outcome(prediction.T, seconds=seconds)
        return Outcome(prediction, seconds=seconds, count=len(self.x_tasks))

    def _rest_outcomes(self, seconds: float) -> list[Outcome]:
        """Return what models without a feature predict; one that never forked is the full model."""
        at, count = np.maximum(0, self.forks.at[self.asked]), len(self.asked)
        if self.n_classes or count == 1:
            found = [self._prediction(int(first)) for first in at]
            return [Outcome(prediction, seconds=seconds / count) for prediction in found]
        return [Outcome(self.scores[at, self.grounds.tested], seconds=seconds, count=count)]

    def _full_outcome(self, seconds: float) -> Outcome:
        """Return the full model's predictions, and its losses with features dropped or permuted."""
        begin = time.perf_counter()
        dropped = self._dropped() if "y_dropped" in self.grounds.plan.needs else None
        middle = time.perf_counter()
        permuted = self._permuted() if "y_permuted" in self.grounds.plan.needs else None
        end = time.perf_counter()
        return Outcome(
            self._prediction(0),
            dropped,
            permuted,
            seconds,
            middle - begin,
            end - middle,
            direction=self._direction() if "y_direction" in self.grounds.plan.needs else None,
        )

    def _prediction(self, first: int) -> Array:
        return as_prediction(self._tested(first), self.n_classes)

    def _tested(self, first: int) -> Array:
        """Return the scores of the test rows by the model that has this row first."""
        return self.scores[first : first + self.height, self.grounds.tested]

    def _dropped(self) -> Array:
        """Return the loss of each row and feature with the feature at its training mean."""
        grounds = self.grounds
        weights = None if grounds.data.weights is None else grounds.data.weights[grounds.train]
        means = np.average(grounds.data.X[grounds.train], axis=0, weights=weights)
        pick = np.zeros(len(grounds.test), dtype=np.int64)
        return self._losses_with(grounds.as_in_table(means), pick)

    def _permuted(self) -> Array:
        """Return each row's loss with each feature permuted, the mean over shuffles."""
        own = np.ascontiguousarray(self.grounds.table.columns[:, self.grounds.tested])
        shuffles = self.grounds.plan.shuffles(self.grounds.fold)
        total = sum(self._losses_with(own, order.astype(np.int64)) for order in shuffles)
        return np.asarray(total / len(shuffles))

    def _direction(self) -> Array:
        """Return the prediction less its mean over other values of each feature."""
        data, scores, slot = self.grounds.data, self._tested(0), self._slots()
        references = self.grounds.plan.references(self.grounds.fold)
        if not self.n_classes:
            return self._mean_direction(references)
        own = data.signal(self._prediction(0))
        found = np.zeros((len(own), data.n_features, *own.shape[1:]))
        pick = np.zeros(len(own), dtype=np.int64)
        for values in references:
            changes = self._changes(self.grounds.as_in_table(values), pick)
            for j in np.flatnonzero(slot[:-1] >= 0):
                altered = as_prediction(scores + changes[slot[j]], self.n_classes)
                found[:, j] += (own - data.signal(altered)) / len(references)
        return found

    def _mean_direction(self, references: Array) -> Array:
        """Return the same of numbers, whose mean prediction is that of the mean score."""
        slot, table = self._slots(), self.grounds.table
        found = np.zeros((len(self.grounds.test), len(slot) - 1))
        others = np.hstack([self.grounds.as_in_table(values) for values in references])
        start = self.grounds.tested.start
        means = parts.mean_differences(
            table.columns, self.history, self.forks.owner, slot, start, others
        )
        used = np.flatnonzero(slot[:-1] >= 0)
        found[:, used] = -means[slot[used]].T
        return found

    def _changes(self, other: NDArray[np.generic], pick: NDArray[np.int64]) -> Array:
        """Return how scores change when the columns of a used feature take other values."""
        return np.asarray(
            parts.differences(
                self.grounds.table.columns,
                self.history,
                self.height,
                self.forks.owner,
                self._slots(),
                self.grounds.tested.start,
                other,
                pick,
            )
        )

    def _losses_with(self, other: NDArray[np.generic], pick: NDArray[np.int64]) -> Array:
        """Return each row's loss when the columns of each feature in turn take other values."""
        data, test, scores = self.grounds.data, self.grounds.test, self._tested(0)
        slot, changes = self._slots(), self._changes(other, pick)
        full = data.loss(self._prediction(0), test)
        losses = np.repeat(full[:, np.newaxis], data.n_features, axis=1)
        for j in np.flatnonzero(slot[:-1] >= 0):
            altered = as_prediction(scores + changes[slot[j]], self.n_classes)
            losses[:, j] = data.loss(altered, test)
        return losses

    def _slots(self) -> NDArray[np.int64]:
        """Return a number for each feature that the full model uses, -1 for the others.

        The last is that of columns that no feature owns.
        """
        made = np.arange(self.history.column.shape[1]) < self.history.cuts[:, np.newaxis]
        used = np.unique(self.forks.owner[self.history.column[made]])
        slot = np.full(self.grounds.data.n_features + 1, -1)
        slot[used] = np.arange(len(used))
        return slot


def as_prediction(scores: Array, n_classes: int) -> Array:
    """Return the means (rows) or probabilities (rows, classes) that a model's scores stand for."""
    answer = mean(scores, n_classes)
    if n_classes == 2:
        return np.stack([1 - answer[0], answer[0]], axis=1)
    return answer.T if n_classes else answer[0].copy()
