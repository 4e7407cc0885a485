"""The boosting engine: all models of a fold grow a tree in the same round, on the same bag.

The trees are those of `estimators.boosting`; how sixteen of them grow at once is told in
`boosting_kernels`. What the models of a fold share:

- each column is sorted once, and each bag is drawn and put in order once;
- all models have the same table: one that may not use a feature skips it when it picks a split;
- the model of y without feature j *is* the full model until the full model first uses j.
  There it forks off. If that never happens, the full model's answer is its answer;
- test rows are in no bag, so their scores are predictions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from residua.data import Dataset, Rows
from residua.engines import Array, Outcome, Plan, Task, plain
from residua.estimators.boosting import LARGEST_STEP, ROUNDING, as_targets, bags, mean, start
from residua.learners import Boosting

HAS_NUMBA = find_spec("numba") is not None
if HAS_NUMBA:
    from residua.engines import boosting_kernels as kernels
    from residua.engines.boosting_lanes import LANES

# As many rounds are left to a kernel before progress is reported.
ROUNDS_AT_ONCE = 20


def supports(plan: Plan) -> bool:
    """Return whether numba is here and every feature's columns lie side by side."""
    learner = plan.learner
    if not isinstance(learner, Boosting) or not HAS_NUMBA:
        return False
    whole = all(isinstance(v, int) for v in (learner.trees, learner.splits, learner.min_node))
    owned = [f.columns for f in plan.data.features if f.columns]
    return whole and all(columns[-1] - columns[0] == len(columns) - 1 for columns in owned)


def run(plan: Plan) -> list[Outcome]:
    """Return the outcome of every task, in the order of the plan."""
    found: dict[Task, Outcome] = {}
    for fold in range(len(plan.folds)):
        found |= _run_fold(plan, fold)
    outcomes = [_or_plain(plan, task, found.get(task)) for task in plan.tasks]
    _report(plan, 0, len(outcomes))
    return outcomes


def _or_plain(plan: Plan, task: Task, outcome: Outcome | None) -> Outcome:
    """Return an outcome whose numbers are all finite, else what the plain engine makes of it."""
    if outcome is None or outcome.prediction is None or not np.isfinite(outcome.prediction).all():
        return plain.fit_task(plan, task)
    return outcome


# --- one fold -----------------------------------------------------------------------------------


def _run_fold(plan: Plan, fold: int) -> dict[Task, Outcome]:
    """Return the outcomes of a fold's tasks; a task without columns to learn from has none."""
    begin = time.perf_counter()
    tasks = [task for task in plan.tasks if task.fold == fold and _has_columns(plan.data, task)]
    y_tasks = [task for task in tasks if task.need != "x_given_rest"]
    x_tasks = [task for task in tasks if task.need == "x_given_rest"]
    if not tasks:
        return {}
    grounds = Grounds(plan, fold)
    jobs: list[YModels | XModels] = [YModels(grounds, y_tasks)] if y_tasks else []
    jobs += [XModels(grounds, share) for share in _shares(grounds, x_tasks)]
    shared = (time.perf_counter() - begin) / len(tasks)
    _run_jobs(plan, fold, jobs)
    return {task: outcome for job in jobs for task, outcome in job.outcomes(shared)}


def _has_columns(data: Dataset, task: Task) -> bool:
    without = 0 if task.need == "y_given_all" else len(data.features[task.feature].columns)
    return bool(data.X.shape[1] > without)


def _shares(grounds: Grounds, tasks: list[Task]) -> list[list[Task]]:
    """Return the tasks in as many equal parts as there are threads, if each fills its lanes."""
    most = max(1, len(tasks) // LANES)
    parts = min(effective_n_jobs(grounds.plan.n_jobs), most)
    edges = [len(tasks) * part // parts for part in range(parts + 1)]
    return [tasks[a:b] for a, b in pairwise(edges) if b > a]


def _run_jobs(plan: Plan, fold: int, jobs: Sequence[YModels | XModels]) -> None:
    """Run jobs that have nothing to do with each other, in threads if there are several."""
    if effective_n_jobs(plan.n_jobs) == 1 or len(jobs) == 1:
        done = sum(task.fold < fold for task in plan.tasks)
        for job in jobs:
            job.run(partial(_report, plan, done, len(job.tasks)))
            done += len(job.tasks)
        return
    with ThreadPoolExecutor(effective_n_jobs(plan.n_jobs)) as threads:
        list(threads.map(lambda job: job.run(), jobs))
    _report(plan, 0, sum(task.fold <= fold for task in plan.tasks))


def _report(plan: Plan, done: int, more: int, share: float = 1.0) -> None:
    """Say how many tasks are done: some, and a share of some more."""
    if plan.progress:
        plan.progress(done + int(share * more), len(plan.tasks))


class Grounds:
    """What all models of a fold stand on: its rows, training rows first, and its bags."""

    def __init__(self, plan: Plan, fold: int) -> None:
        assert isinstance(plan.learner, Boosting)
        self.plan, self.learner, self.data = plan, plan.learner, plan.data
        self.fold, (self.train, self.test) = fold, plan.folds[fold]
        in_sample = np.array_equal(self.train, self.test)
        rows = self.train if in_sample else np.concatenate([self.train, self.test])
        self.n_train, self.n_all = len(self.train), len(rows)
        self.tested = slice(0 if in_sample else self.n_train, self.n_all)
        self.weights = _scaled_weights(self.data, self.train)
        self.table = _table(self, self.data.X[rows])
        seed = plan.learner_seed(fold)
        drawn = bags(seed, self.n_train, self.learner.trees, self.learner.bag)
        self.bags = np.array(list(drawn))
        self.min_node = max(1, self.learner.min_node)

    def columns(self, feature: int) -> tuple[int, int]:
        """Return the first column of a feature and the one after its last."""
        owned = self.data.features[feature].columns
        return (owned[0], owned[-1] + 1) if owned else (0, 0)


def _scaled_weights(data: Dataset, train: Rows) -> Array | None:
    if data.weights is None:
        return None
    weights = data.weights[train]
    return np.asarray(weights / weights.mean())


def _table(grounds: Grounds, X: Array) -> kernels.Table:
    """Return the rows as columns, and the order of each column's training rows."""
    columns, n_train = np.ascontiguousarray(X.T), grounds.n_train
    train = columns[:, :n_train]
    order = np.argsort(train, axis=1)
    ordered = np.take_along_axis(train, order, axis=1)
    tied = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    # Sorting that keeps the order of equals takes thrice as long, and only they need it.
    order[tied] = np.argsort(train[tied], axis=1, kind="stable")
    weights = np.ones(n_train) if grounds.weights is None else grounds.weights
    return kernels.Table(columns, order.astype(np.uint32), tied, weights)


# --- models that grow together ------------------------------------------------------------------


class Batch:
    """Room for some models of numbers or classes, and all that a kernel wants to grow them.

    A model of three or more classes takes a row for each class, any other model takes one.
    """

    def __init__(self, grounds: Grounds, room: int, n_classes: int = 0) -> None:
        n_bag = int(grounds.bags[0].sum())
        self.grounds, self.n_classes = grounds, n_classes
        splits, n_columns = grounds.learner.splits, len(grounds.table.columns)
        self.scores = np.empty((room, grounds.n_all))
        self.models = self._make_models(room)
        self.trees = kernels.make_trees(room, splits)
        self.work = kernels.make_work(grounds.n_all, n_bag, n_columns, splits)
        self.bag = kernels.make_bag(
            grounds.table,
            n_bag,
            weighted=grounds.weights is not None,
            min_node=grounds.min_node,
        )
        largest_step = LARGEST_STEP if n_classes else np.inf
        self.rules = kernels.Rules(
            splits, float(grounds.learner.shrinkage), grounds.min_node, largest_step
        )

    def _make_models(self, room: int) -> kernels.Models:
        grounds, classes = self.grounds, self.n_classes > 0
        return kernels.Models(
            targets=np.empty((room, grounds.n_train)),
            # What a model of numbers expects is its score itself.
            expected=np.empty_like(self.scores) if classes else self.scores,
            bend=np.empty((room, grounds.n_train)) if classes else grounds.table.weights[None],
            low=np.zeros(room, dtype=np.int64),
            high=np.zeros(room, dtype=np.int64),
            noise=np.empty(room),
            scale=np.empty(room),
        )

    def put(self, targets: Array, low: Any = 0, high: Any = 0) -> None:
        """Make the first models, that know no column yet and may not use those from low to high."""
        models, n_train, rows = self.models, self.grounds.n_train, slice(0, len(targets))
        models.targets[rows] = targets
        self.scores[rows] = start(targets, self.grounds.weights, self.n_classes)
        models.low[rows], models.high[rows] = low, high
        largest = 1.0 if self.n_classes else np.abs(targets).max(axis=1)
        models.noise[rows] = ROUNDING * n_train * largest**2
        spread = np.abs(targets - targets.mean(axis=1, keepdims=True)).max(axis=1)
        models.scale[rows] = 1 / np.where(spread > 0, spread, 1.0)

    def advance(
        self, forks: kernels.Forks, history: kernels.Trees, report: Callable[[float], None]
    ) -> None:
        """Let every model grow a tree on every bag, and report how far they are."""
        rounds = len(self.grounds.bags)
        # What a model of classes expects is for numpy to compute, anew for every tree.
        at_once = 1 if self.n_classes else ROUNDS_AT_ONCE
        for first in range(0, rounds, at_once):
            if self.n_classes:
                self._expect(int(forks.used[0]))
            last = min(first + at_once, rounds)
            kernels.advance(
                self.grounds.table,
                self.grounds.bags[first:last],
                self.bag,
                self.models,
                self.rules,
                self.work,
                self.trees,
                self.scores,
                forks,
                history,
                first,
            )
            report(last / rounds)

    def _expect(self, count: int) -> None:
        """Write m(F) of each model, and its weighted bend m(1 - m)."""
        each = self.n_classes if self.n_classes > 2 else count
        for first in range(0, count, each):
            rows = slice(first, first + each)
            expected = mean(self.scores[rows], self.n_classes)
            train = expected[:, : self.grounds.n_train]
            self.models.expected[rows] = expected
            self.models.bend[rows] = train * (1 - train) * self.grounds.table.weights


def as_prediction(scores: Array, n_classes: int) -> Array:
    """Return the means (rows) or probabilities (rows, classes) that a model's scores stand for."""
    answer = mean(scores, n_classes)
    if n_classes == 2:
        return np.stack([1 - answer[0], answer[0]], axis=1)
    return answer.T if n_classes else answer[0].copy()


def _silent(share: float) -> None:
    """Report nothing."""


class XModels:
    """The models of each column of some features given the rest."""

    def __init__(self, grounds: Grounds, tasks: list[Task]) -> None:
        self.grounds, self.tasks, self.seconds = grounds, tasks, 0.0
        heights = [grounds.plan.models(task) for task in tasks]
        ends = np.cumsum(heights)
        self.rows = [slice(end - height, end) for end, height in zip(ends, heights, strict=True)]
        ranges = [grounds.columns(task.feature) for task in tasks]
        low, high = np.repeat(ranges, heights, axis=0).T
        columns = np.concatenate([np.arange(*span) for span in ranges])
        self.batch = Batch(grounds, len(columns))
        self.batch.put(grounds.table.columns[columns, : grounds.n_train], low, high)

    def run(self, report: Callable[[float], None] = _silent) -> None:
        """Fit the models."""
        begin = time.perf_counter()
        nothing = kernels.make_trees(0, 1)
        self.batch.advance(kernels.no_forks(len(self.batch.scores)), nothing, report)
        self.seconds = time.perf_counter() - begin

    def outcomes(self, shared: float) -> Iterator[tuple[Task, Outcome]]:
        """Yield each task's predictions of the test rows, a column for each column."""
        seconds = shared + self.seconds / len(self.tasks)
        for task, rows in zip(self.tasks, self.rows, strict=True):
            prediction = self.batch.scores[rows, self.grounds.tested].T.copy()
            yield task, Outcome(prediction, seconds=seconds)


class YModels:
    """The full model of y, and the models of y given the rest that fork off it."""

    def __init__(self, grounds: Grounds, tasks: list[Task]) -> None:
        self.grounds, self.tasks, self.seconds = grounds, tasks, 0.0
        self.n_classes = grounds.data.n_classes
        self.asked = [task.feature for task in tasks if task.need == "y_given_rest"]
        targets = as_targets(grounds.data.y[grounds.train], self.n_classes)
        self.height = len(targets)
        self.batch = Batch(grounds, self.height * (1 + len(self.asked)), self.n_classes)
        self.batch.put(targets)
        self.forks = self._make_forks()
        kept = grounds.plan.needs & {"y_dropped", "y_permuted"}
        n_kept = self.height * len(grounds.bags) if kept else 0
        self.history = kernels.make_trees(n_kept, grounds.learner.splits)

    def _make_forks(self) -> kernels.Forks:
        grounds, n_features = self.grounds, self.grounds.data.n_features
        ranges = np.array([grounds.columns(j) for j in range(n_features)])
        at = np.full(n_features, -2)
        at[self.asked] = -1
        owner = np.zeros(grounds.data.X.shape[1], dtype=np.int64)
        for j, feature in enumerate(grounds.data.features):
            owner[list(feature.columns)] = j
        return kernels.Forks(
            used=np.array([self.height]),
            owner=owner,
            low=ranges[:, 0].copy(),
            high=ranges[:, 1].copy(),
            at=at,
            scores=np.empty((self.height, grounds.n_all)),
            expected=np.empty((self.height, grounds.n_all)),
            bend=np.empty((self.height, grounds.n_train)),
        )

    def run(self, report: Callable[[float], None] = _silent) -> None:
        """Fit the models."""
        begin = time.perf_counter()
        self.batch.advance(self.forks, self.history, report)
        self.seconds = time.perf_counter() - begin

    def outcomes(self, shared: float) -> Iterator[tuple[Task, Outcome]]:
        """Yield each task's predictions of the test rows."""
        n_forks = len(self.batch.scores[: self.forks.used[0]]) // self.height - 1
        per_model = self.seconds / (1 + n_forks)
        has_full = len(self.tasks) > len(self.asked)
        rest = self.seconds - (per_model if has_full else 0.0)
        for task in self.tasks:
            if task.need == "y_given_all":
                yield task, self._full_outcome(shared + per_model)
            else:
                prediction = self._prediction(max(0, int(self.forks.at[task.feature])))
                yield task, Outcome(prediction, seconds=shared + rest / len(self.asked))

    def _prediction(self, first: int) -> Array:
        """Return what a model predicts; one that never forked is the full model."""
        return as_prediction(self._tested(first), self.n_classes)

    def _tested(self, first: int) -> Array:
        return self.batch.scores[first : first + self.height, self.grounds.tested]

    def _full_outcome(self, seconds: float) -> Outcome:
        """Return the full model's predictions, and its losses with features dropped or permuted."""
        begin = time.perf_counter()
        dropped = self._dropped() if "y_dropped" in self.grounds.plan.needs else None
        middle = time.perf_counter()
        permuted = self._permuted() if "y_permuted" in self.grounds.plan.needs else None
        end = time.perf_counter()
        return Outcome(
            self._prediction(0), dropped, permuted, seconds, middle - begin, end - middle
        )

    def _dropped(self) -> Array:
        """Return the loss of each row and feature with the feature at its training mean."""
        data, train = self.grounds.data, self.grounds.train
        weights = None if data.weights is None else data.weights[train]
        means = np.average(data.X[train], axis=0, weights=weights)
        return self._losses_with(means[:, np.newaxis], np.zeros(len(self.grounds.test), np.int64))

    def _permuted(self) -> Array:
        """Return each row's loss with each feature permuted, the mean over shuffles."""
        own = np.ascontiguousarray(self.grounds.table.columns[:, self.grounds.tested])
        shuffles = self.grounds.plan.shuffles(self.grounds.fold)
        total = sum(self._losses_with(own, order.astype(np.int64)) for order in shuffles)
        return np.asarray(total / len(shuffles))

    def _losses_with(self, other: Array, pick: NDArray[np.int64]) -> Array:
        """Return each row's loss when the columns of each feature in turn take other values."""
        data, test, scores = self.grounds.data, self.grounds.test, self._tested(0)
        slot = self._slots()
        changes = kernels.differences(
            self.grounds.table,
            self.history,
            self.height,
            self.forks.owner,
            slot,
            self.grounds.tested.start,
            other,
            pick,
        )
        losses = np.repeat(data.loss(self._prediction(0), test)[:, np.newaxis], len(slot), axis=1)
        for j in np.flatnonzero(slot >= 0):
            altered = as_prediction(scores + changes[slot[j]], self.n_classes)
            losses[:, j] = data.loss(altered, test)
        return losses

    def _slots(self) -> NDArray[np.int64]:
        """Return a number for each feature that the full model uses, -1 for the others."""
        made = np.arange(self.history.column.shape[1]) < self.history.cuts[:, np.newaxis]
        used = np.unique(self.forks.owner[self.history.column[made]])
        slot = np.full(self.grounds.data.n_features, -1)
        slot[used] = np.arange(len(used))
        return slot
