"""The contest: errors of candidates, by regression and outer fold, and who leads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from covaria.learners import (
    Auto,
    Boosting,
    Forest,
    Kernel,
    Learner,
    Linear,
    Mean,
    Splines,
    Surfaces,
)
from covaria.learners.policy import AutoPolicy
from covaria.nuisance.auto.inner import Inner
from covaria.nuisance.fit import along, by_task, run
from covaria.nuisance.plan import Array, Blend, Choices, Plan, Task
from covaria.tables.dataset import Rows, of_all_classes

Rule = Callable[[int, dict[Learner, float]], bool]
# The outer folds that ask for something, by regression.
Askers = dict[int, set[int]]

POLICY = AutoPolicy()
# The key of y among the features' numbers; that of y without feature j is REST - j.
Y, REST = -1, -2
FOREST = Forest(trees=50, min_node=3)
# These shrink what a feature and y share.
SHRINKING = (Splines, Boosting, Kernel)
# This share of the largest error is added to a stack's errors, so that weights are unique.
HOLD = 1e-8


@dataclass
class Contest:
    """The errors of candidates: for each regression and candidate, (inner, outer) folds.

    An entry is the sum of losses that the outer fold may look at, NaN where the candidate did not
    run or failed; `weight` has the sums of weights, and `known` the errors found from them. An
    outer fold sees only candidates that it asked for itself (`askers`): that another one asked for
    them would tell it of its test rows.
    """

    plan: Plan
    inner: Inner
    order: list[Learner] = field(default_factory=list)
    losses: dict[tuple[int, Learner], Array] = field(default_factory=dict)
    left: dict[tuple[int, Learner], list[Array]] = field(default_factory=dict)
    known: dict[int, dict[int, dict[Learner, float]]] = field(default_factory=dict)
    askers: dict[tuple[int, Learner], set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = (len(self.inner.folds), self.inner.n_outer)
        self.weight = np.zeros(shape)
        weights = self.plan.data.weights
        for i, (_, test) in enumerate(self.inner.folds):
            for outer, at in self.inner.looks[i]:
                self.weight[i, outer] = len(at) if weights is None else weights[test[at]].sum()
        self.keys = [Y] if self.plan.needs & {"y_given_all", "y_given_rest"} else []
        if self.plan.needs - {"y_given_all", "y_dropped", "y_permuted", "y_lazy"}:
            self.keys += [j for j, f in enumerate(self.plan.data.features) if f.columns]
        self.spread = np.where(self.plan.data.variance > 0, self.plan.data.variance, 1.0)

    def everything(self) -> Askers:
        """Return all outer folds for all regressions."""
        return {key: set(range(self.inner.n_outer)) for key in self.keys}

    def looked_at(self, outers: Iterable[int]) -> list[int]:
        """Return the inner folds that some outer folds may look at."""
        return np.flatnonzero(self.weight[:, sorted(outers)].any(axis=1)).tolist()

    def enter(self, path: Sequence[Learner], askers: Askers) -> None:
        """Let candidates run for some regressions, as some outer folds ask.

        Several candidates are one family of trees, of which each has more than the one before.
        """
        self.admit(path, askers)
        self.run(path, {key: self.looked_at(outers) for key, outers in askers.items()})

    def admit(self, path: Sequence[Learner], askers: Askers) -> None:
        """Let outer folds see candidates."""
        self.order += [learner for learner in path if learner not in self.order]
        for key, outers in askers.items():
            self.known.pop(key, None)
            for learner in path:
                self.askers.setdefault((key, learner), set()).update(outers)

    def dismiss(self, path: Sequence[Learner], askers: Askers, still: set[tuple[int, int]]) -> None:
        """Let outer folds no longer see candidates, but for those that still ask."""
        for key, outers in askers.items():
            self.known.pop(key, None)
            for learner in path:
                self.askers[key, learner] -= {o for o in outers if (key, o) not in still}

    def run(self, path: Sequence[Learner], where: dict[int, list[int]]) -> None:
        """Let candidates run for some regressions in some inner folds."""
        tasks = [self._task(key, i) for key, folds in where.items() for i in folds]
        if not tasks:
            return
        needs = frozenset(task.need for task in tasks)
        plan = replace(
            self.plan, learner=path[-1], folds=self.inner.folds, needs=needs,
            only=frozenset(tasks), progress=None, choices=None, purpose="candidates",
        )  # fmt: skip
        for task, predictions in _predictions(plan, path).items():
            for learner, prediction in zip(path, predictions, strict=True):
                if prediction is not None:
                    prediction = plan.within_reach(task, prediction)
                self._add(learner, task, prediction)

    def _task(self, key: int, i: int) -> Task:
        if key <= REST:
            return Task("y_given_rest", i, REST - key)
        return Task("y_given_all", i) if key == Y else Task("x_given_rest", i, key)

    def _key(self, task: Task) -> int:
        of_y = {"y_given_all": Y, "y_given_rest": REST - task.feature}
        return of_y.get(task.need, task.feature)

    def _add(self, learner: Learner, task: Task, prediction: Array | None) -> None:
        """Write down the losses of one model."""
        key = self._key(task)
        table = self.losses.setdefault((key, learner), np.full(self.weight.shape, np.nan))
        self.known.pop(key, None)
        test, data = self.inner.folds[task.fold][1], self.plan.data
        if prediction is None:
            return
        if key <= Y:
            loss = data.loss(prediction, test)
        else:
            own = list(data.features[key].tested)
            gap = (data.X[:, own][test] - prediction) ** 2
            loss = (gap / self.spread[own]).mean(axis=1)
        if data.weights is not None:
            loss = loss * data.weights[test]
        for outer, at in self.inner.looks[task.fold]:
            table[task.fold, outer] = loss[at].sum()
        if isinstance(self.plan.learner, Auto) and self.plan.learner.stack:
            self._keep(learner, key, task, prediction)

    def _keep(self, learner: Learner, key: int, task: Task, prediction: Array) -> None:
        """Keep what a model left over, for a stack: (rows, columns), scaled and weighted."""
        data, test = self.plan.data, self.inner.folds[task.fold][1]
        if key <= Y:
            left = np.reshape(data.left(prediction, test), (len(test), -1))
            left = of_all_classes(left) if data.n_classes > 2 else left
        else:
            own = list(data.features[key].tested)
            left = (data.X[:, own][test] - prediction) / np.sqrt(self.spread[own])
        if data.weights is not None:
            left = left * np.sqrt(data.weights[test])[:, None]
        kept = self.left.setdefault((key, learner), [np.empty(0)] * len(self.inner.folds))
        kept[task.fold] = left

    # --- who leads --------------------------------------------------------------------------

    def errors(
        self, key: int, outer: int, folds: Iterable[int] | None = None
    ) -> dict[Learner, float]:
        """Return the mean loss of each candidate that ran in all these inner folds."""
        if folds is not None:
            return self._errors(key, outer, np.array(list(folds)))
        known = self.known.setdefault(key, {})
        if outer not in known:
            known[outer] = self._errors(key, outer, np.arange(len(self.inner.folds)))
        return known[outer]

    def _errors(self, key: int, outer: int, folds: Rows) -> dict[Learner, float]:
        looked = folds[self.weight[folds, outer] > 0]
        if not len(looked):
            return {}
        found = {}
        for learner in self.order:
            if outer not in self.askers.get((key, learner), ()):
                continue
            table = self.losses.get((key, learner))
            total = np.nan if table is None else table[looked, outer].sum()
            if np.isfinite(total):
                found[learner] = float(total / self.weight[looked, outer].sum())
        return found

    def best(self, key: int, outer: int) -> Learner:
        """Return the first candidate that errs no more than the best, or next to no more."""
        errors = self.errors(key, outer)
        return (key >= 0 and shrinking_less(errors)) or leader_of(errors) or Mean()

    def choices(self) -> Choices:
        """Return the winners."""
        x_keys = [key for key in self.keys if key != Y]
        outers = range(self.inner.n_outer)
        y = [_alone(self._settled(self.best(Y, outer), outer)) for outer in outers]
        x = [{key: _alone(self.best(key, outer)) for key in x_keys} for outer in outers]
        instead = [{key: _alone(self._not_mean(key, outer)) for key in x_keys} for outer in outers]
        errors = {key: self._error([blends[key][0][0] for blends in x], key) for key in x_keys}
        if Y in self.keys:
            errors[Y] = self._error([self.best(Y, outer) for outer in outers], Y)
        n_rows = float(np.mean([len(train) for train, _ in self.inner.folds]))
        return Choices(y, x, instead, self._of_rest(), errors, n_rows)

    def told(self, outer: int) -> list[int]:
        """Return the features that the rest tells of."""
        keys = [key for key in self.keys if key != Y and Y in self.keys]
        return [key for key in keys if is_told(key, self.errors(key, outer))]

    def _of_rest(self) -> list[dict[int, Blend]]:
        """Return who serves y without a feature, where the rest tells of it."""
        return [
            {key: _alone(self._best_of_rest(key, outer)) for key in self.told(outer)}
            for outer in range(self.inner.n_outer)
        ]

    def _best_of_rest(self, key: int, outer: int) -> Learner:
        """Return who serves y, or who errs less without the feature."""
        usual, errors = self.best(Y, outer), self.errors(REST - key, outer)
        least = min(errors, key=errors.__getitem__, default=usual)
        if better := shrinking_less(errors):
            return better
        if least == usual or errors.get(usual, np.inf) <= (1 + POLICY.worth) * errors[least]:
            return usual
        return least

    def _error(self, chosen: list[Learner], key: int) -> float:
        """Return the mean loss of the learners that each outer fold chose."""
        found = [self.errors(key, outer).get(one, np.nan) for outer, one in enumerate(chosen)]
        return float(np.mean(found))

    def _settled(self, learner: Learner, outer: int) -> Learner:
        """Return a learner of y with the smoothing that suits the model on all columns.

        Models without a feature then keep it, so all of them come from one Gram matrix.
        """
        if not isinstance(learner, Splines) or learner.df != "gcv" or self.plan.data.classes:
            return learner
        from covaria.learners.estimators.splines import AdditiveSplines

        data, train = self.plan.data, self.plan.folds[outer][0]
        if learner.curves != Splines().curves:
            return learner
        start = time.perf_counter()
        model = AdditiveSplines(df="gcv").fit(
            data.X[train], data.y[train], None if data.weights is None else data.weights[train]
        )
        if self.plan.ledger:
            self.plan.ledger.charge("smoothing", learner.name, 1, time.perf_counter() - start)
        return Splines(df=tuple(round(df, 3) for df in model.chosen_df))

    def _not_mean(self, key: int, outer: int) -> Learner:
        errors = self.errors(key, outer)
        return leader_of({k: v for k, v in errors.items() if k != Mean()}) or Linear()

    def stacked(self) -> Choices:
        """Return the mixtures of candidates that err least."""
        x_keys = [key for key in self.keys if key != Y]
        outers = range(self.inner.n_outer)
        x = [{key: self._mixture(key, outer) for key in x_keys} for outer in outers]
        rest = [
            {key: self._mixture(REST - key, outer) for key in self.told(outer)} for outer in outers
        ]
        return Choices([self._mixture(Y, outer) for outer in outers], x, x, rest)

    def _mixture(self, key: int, outer: int) -> Blend:
        """Return weights from 0 to 1 that add up to 1 and make the squared error least."""
        from scipy.optimize import nnls

        learners = list(self.errors(key, outer))
        if not learners:
            return _alone(Mean())
        parts = []
        for i, looks in enumerate(self.inner.looks):
            for own, at in looks:
                if own == outer:
                    left = [self.left[key, learner][i][at].ravel() for learner in learners]
                    parts.append(np.column_stack(left))
        left_over = np.vstack(parts)
        size = np.sqrt(np.square(left_over).sum(axis=0).max()) or 1.0
        left_over = np.vstack([left_over / size, np.sqrt(HOLD) * np.eye(len(learners))])
        # A heavy last row makes the weights add up to 1.
        A = np.vstack([left_over, np.full((1, len(learners)), 1e3)])
        weights = nnls(A, np.append(np.zeros(len(left_over)), 1e3))[0]
        weights = np.where(weights > 1e-3 * weights.max(), weights, 0.0)
        weights /= weights.sum()
        pairs = zip(learners, weights.tolist(), strict=True)
        return tuple((learner, weight) for learner, weight in pairs if weight > 0)


def _alone(learner: Learner) -> Blend:
    return ((learner, 1.0),)


def leader_of(errors: dict[Learner, float]) -> Learner | None:
    if not errors:
        return None
    least = min(errors.values())
    return next(learner for learner, error in errors.items() if error <= (1 + POLICY.worth) * least)


def _predictions(plan: Plan, path: Sequence[Learner]) -> dict[Task, list[Array | None]]:
    """Return what each candidate of a path predicts; None where it failed."""
    if len(path) > 1 and _is_quick(plan):
        counts = [learner.trees for learner in path]  # type: ignore[attr-defined]
        return {task: list(found) for task, found in along(plan, counts).items()}
    every: dict[Task, list[Array | None]] = {task: [] for task in plan.tasks}
    for learner in path:
        one = replace(plan, learner=learner)
        for task, outcome in by_task(one, run(one)).items():
            prediction = None if outcome.failure else outcome.prediction
            every[task].append(prediction)
    return every


def _is_quick(plan: Plan) -> bool:
    """Return whether the boosting engine serves every task of a plan."""
    from covaria.nuisance.engines import boosting

    widest = max((len(feature.columns) for feature in plan.data.features), default=0)
    return boosting.supports(plan) and plan.data.X.shape[1] > widest


def shrinking_less(errors: dict[Learner, float]) -> Learner | None:
    """Return surfaces or a forest where they err next to no more than the best, or a little more.

    A test sees what the models of a feature and of y both miss. Curves, boosted trees and kernels
    shrink what there is to see; surfaces are rougher, and a forest's trees deep.
    """
    least = min(errors.values(), default=0.0)
    if not isinstance(leader_of(errors), SHRINKING):
        return None
    most = (1 + POLICY.lenient) * least
    return next((k for k in (Surfaces(), FOREST) if errors.get(k, np.inf) <= most), None)


def is_told(key: int, errors: dict[Learner, float]) -> bool:
    """Return whether the rest tells of a feature; without a yardstick the mean errs by 1."""
    return min(errors.values(), default=1.0) < (1 - POLICY.predictable) * errors.get(Mean(), 1.0)
