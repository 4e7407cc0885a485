"""The contest: errors of candidates, by regression and fold, and who leads."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from covaria.learners import Auto, Learner, Linear, Mean, Splines
from covaria.learners.policy import AutoPolicy
from covaria.nuisance.auto.rows import contest_folds
from covaria.nuisance.fit import along, by_task, run_plan
from covaria.nuisance.plan import Array, Blend, Choices, Plan, Task
from covaria.nuisance.splits import Fold
from covaria.tables.arrays import Rows, of_all_classes

POLICY = AutoPolicy()
# The key of y among the features' numbers; that of y without feature j is REST - j.
Y, REST = -1, -2
# This share of the largest error is added to a stack's errors, so that weights are unique.
HOLD = 1e-8


@dataclass
class Contest:
    """The predictions and mean losses of candidates, for each regression, learner and fold.

    `folds` are those of the plan where it is a cross-fit of not too many rows: then predictions
    are those of the fit itself, and kept. A loss is NaN where the candidate did not run or failed.
    """

    plan: Plan
    folds: list[Fold]
    losses: dict[int, dict[Learner, Array]] = field(default_factory=dict)
    predictions: dict[tuple[Task, Learner], Array] = field(default_factory=dict)
    smoothings: dict[tuple[Learner, int], Learner] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keys = [Y] if self.plan.needs & {"y_given_all", "y_given_rest"} else []
        if self.plan.needs - {"y_given_all", "y_dropped", "y_permuted", "y_lazy"}:
            self.keys += [j for j, f in enumerate(self.plan.data.features) if f.columns]
        data = self.plan.data
        self.spread = np.where(data.variance > 0, data.variance, 1.0)
        weights = np.ones(data.n_rows) if data.weights is None else data.weights
        self.weight = np.array([weights[test].sum() for _, test in self.folds])

    @classmethod
    def of(cls, plan: Plan) -> Contest:
        """Return a contest on the folds that suit a plan."""
        return cls(plan, contest_folds(plan))

    @property
    def is_final(self) -> bool:
        """Return whether the folds are the plan's own."""
        return self.folds is self.plan.folds

    def enter(self, path: Sequence[Learner], keys: Iterable[int]) -> None:
        """Let candidates run for some regressions, in all folds.

        Several candidates are one family of trees, of which each has more than the one before.
        """
        self.run(path, keys, range(len(self.folds)))

    def race(self, path: Sequence[Learner], keys: Iterable[int]) -> None:
        """Let candidates run in one fold, and in the others where they may serve."""
        keys = list(keys)
        self.run(path, keys, [0])
        leading = [key for key in keys if self._may_serve(path, key)]
        self.run(path, leading, range(1, len(self.folds)))
        for key in set(keys) - set(leading):
            for learner in path:
                self.losses.get(key, {}).pop(learner, None)

    def ran(self, learner: Learner, key: int) -> bool:
        """Return whether a candidate went on after the first fold."""
        return learner in self.errors(key)

    def _may_serve(self, path: Sequence[Learner], key: int) -> bool:
        """Return whether a candidate leads in the first fold, or makes the leader's error less."""
        errors = {k: e[0] for k, e in self.losses.get(key, {}).items() if np.isfinite(e[0])}
        own = [learner for learner in path if learner in errors]
        rivals = {k: e for k, e in errors.items() if k not in path}
        if not own or not rivals:
            return bool(own)
        leader = min(rivals, key=rivals.__getitem__)
        if min(errors[learner] for learner in own) < (1 - POLICY.worth) * rivals[leader]:
            return True
        enough = (1 - POLICY.together) * rivals[leader]
        return any(self._of_two(key, 0, leader, one) < enough for one in own)

    def run(self, path: Sequence[Learner], keys: Iterable[int], folds: Iterable[int]) -> None:
        """Let candidates run for some regressions in some folds."""
        folds = list(folds)
        tasks = [self._task(key, fold) for key in keys for fold in folds]
        if not tasks:
            return
        plan = self._plan(path[-1], tasks)
        for task, predictions in _predictions(plan, path).items():
            for learner, prediction in zip(path, predictions, strict=True):
                if prediction is not None:
                    prediction = plan.within_reach(task, prediction)
                self._add(learner, task, prediction)

    def _plan(self, learner: Learner, tasks: Sequence[Task]) -> Plan:
        return replace(
            self.plan, learner=learner, folds=self.folds,
            needs=frozenset(task.need for task in tasks),
            only=frozenset(tasks), progress=None, choices=None, purpose="candidates",
        )  # fmt: skip

    def _task(self, key: int, fold: int) -> Task:
        if key <= REST:
            return Task("y_given_rest", fold, REST - key)
        return Task("y_given_all", fold) if key == Y else Task("x_given_rest", fold, key)

    def _key(self, task: Task) -> int:
        of_y = {"y_given_all": Y, "y_given_rest": REST - task.feature}
        return of_y.get(task.need, task.feature)

    def _add(self, learner: Learner, task: Task, prediction: Array | None) -> None:
        """Write down the mean loss of one model, and what it predicts."""
        own = self.losses.setdefault(self._key(task), {})
        losses = own.setdefault(learner, np.full(len(self.folds), np.nan))
        if prediction is None:
            return
        self.predictions[task, learner] = prediction
        losses[task.fold] = self._loss(task, prediction)

    def _loss(self, task: Task, prediction: Array) -> float:
        """Return the mean loss of a prediction, of features in units of their spread."""
        data, test = self.plan.data, self.folds[task.fold][1]
        if task.need == "x_given_rest":
            loss = (self._left(task, prediction) ** 2).mean(axis=1)
        else:
            loss = data.loss(prediction, test)
        if data.weights is None:
            return float(loss.mean())
        total = data.weights[test].sum()
        return float(data.weights[test] @ loss / total) if total > 0 else 0.0

    def _of_two(self, key: int, fold: int, one: Learner, other: Learner) -> float:
        """Return the mean loss of what two learners predict on average."""
        task = self._task(key, fold)
        return self._loss(task, (self.predictions[task, one] + self.predictions[task, other]) / 2)

    def _left(self, task: Task, prediction: Array) -> Array:
        """Return what a model left over, (rows, columns), of features in units of their spread."""
        key, data, test = self._key(task), self.plan.data, self.folds[task.fold][1]
        if key <= Y:
            left = np.reshape(data.left(prediction, test), (len(test), -1))
            return of_all_classes(left) if data.n_classes > 2 else left
        own = list(data.features[key].tested)
        return np.asarray((data.X[:, own][test] - prediction) / np.sqrt(self.spread[own]))

    # --- who leads --------------------------------------------------------------------------

    def errors(self, key: int, but: int = -1) -> dict[Learner, float]:
        """Return the error of each candidate that ran in all folds, `but` for one of them."""
        counted = np.arange(len(self.folds)) != but
        found = {}
        for learner, losses in self.losses.get(key, {}).items():
            error = float(losses[counted] @ self.weight[counted] / self.weight[counted].sum())
            if np.isfinite(error):
                found[learner] = error
        return found

    def best(self, key: int, but: int = -1) -> Learner:
        """Return the first candidate that errs no more than the best, or next to no more."""
        return leader_of(self.errors(key, but)) or Mean()

    def blend(self, key: int, but: int = -1) -> Blend:
        """Return who serves: the best, or the mean of the best and another if it errs less.

        Where two err less together neither has it all: then both are needed to see what is missed.
        """
        best, errors = self.best(key, but), self.errors(key, but)
        folds = [fold for fold in range(len(self.folds)) if fold != but]
        together = {
            other: np.average(
                [self._of_two(key, fold, best, other) for fold in folds],
                weights=self.weight[folds],
            )
            for other in errors
            if other != best
        }
        second = min(together, key=together.__getitem__, default=best)
        if together.get(second, np.inf) >= (1 - POLICY.together) * errors.get(best, 0.0):
            return _alone(best)
        return ((best, 0.5), (second, 0.5))

    def choices(self) -> Choices:
        """Return the winners, and what they predict where they are the fit itself."""
        stack = isinstance(self.plan.learner, Auto) and self.plan.learner.stack
        features = [key for key in self.keys if key != Y]
        folds = range(len(self.plan.folds))
        x = {key: self._mixture(key) if stack else self.blend(key) for key in features}
        instead = x if stack else {key: _alone(self._not_mean(key)) for key in features}
        rest = {
            key: self._mixture(REST - key) if stack else self.blend(REST - key)
            for key in self.told()
            if self.errors(REST - key)
        }
        y = [self._of_y(fold, stack) for fold in folds]
        chosen = Choices(y, [x for _ in folds], [instead for _ in folds], [rest for _ in folds])
        return replace(chosen, kept=self._kept(chosen)) if self.is_final else chosen

    def _kept(self, chosen: Choices) -> dict[tuple[Task, Learner], Array]:
        """Return what those predict who serve without a feature."""
        plan = replace(self.plan, choices=chosen)
        return {
            (task, learner): found
            for (task, learner), found in self.predictions.items()
            if task.need != "y_given_all" and learner in dict(plan.blend(task))
        }

    def _of_y(self, fold: int, stack: bool) -> Blend:
        """Return who serves y in a fold, whose own test rows have no say."""
        own = fold if self.is_final else -1
        if stack:
            return self._mixture(Y, own)
        blend, train = self.blend(Y, own), self.plan.folds[fold][0]
        return tuple(
            (self._smoothed(one, train) if self._has_smoothing(one) else one, weight)
            for one, weight in blend
        )

    def told(self) -> list[int]:
        """Return the features that the rest tells of."""
        keys = [key for key in self.keys if key != Y and Y in self.keys]
        return [key for key in keys if is_told(self.errors(key))]

    def needed(self, keys: Sequence[int]) -> list[int]:
        """Return the features without which y errs more, where that can be had cheaply.

        Without the others y needs no other learner, nor another smoothing: none made use of them.
        """
        best = self.best(Y)
        if not keys or not self._has_smoothing(best):
            return list(keys)
        errors = np.zeros((len(self.folds), 1 + len(keys)))
        for fold in range(len(self.folds)):
            tasks = [Task("y_given_all", fold), *(self._task(REST - key, fold) for key in keys)]
            learner = self._smoothed(best, self.folds[fold][0])
            plan = self._plan(learner, tasks)
            for at, (task, outcome) in enumerate(by_task(plan, run_plan(plan)).items()):
                if outcome.failure or outcome.prediction is None:
                    return list(keys)
                found = plan.within_reach(task, outcome.prediction)
                self.predictions[task, learner] = found
                errors[fold, at] = self._loss(task, found)
        full, *without = np.average(errors, axis=0, weights=self.weight)
        pairs = zip(keys, without, strict=True)
        return [key for key, error in pairs if error > (1 + POLICY.worth) * full]

    def _has_smoothing(self, learner: Learner) -> bool:
        """Return whether a learner of y has a smoothing that models without a feature may keep."""
        if not isinstance(learner, Splines) or self.plan.data.classes:
            return False
        return learner.df == "gcv" and learner.curves == Splines().curves

    def _smoothed(self, learner: Learner, train: Rows) -> Learner:
        """Return a learner of y with the smoothing that suits the model on all columns.

        Models without a feature then keep it, so all of them come from one Gram matrix.
        """
        from covaria.learners.estimators.splines import AdditiveSplines

        assert isinstance(learner, Splines)
        if (learner, id(train)) in self.smoothings:
            return self.smoothings[learner, id(train)]
        data = self.plan.data
        start = time.perf_counter()
        model = AdditiveSplines(df="gcv", to_enter=learner.to_enter).fit(
            data.X[train], data.y[train], None if data.weights is None else data.weights[train]
        )
        if self.plan.ledger:
            self.plan.ledger.charge("smoothing", learner.name, 1, time.perf_counter() - start)
        found = Splines(df=tuple(round(df, 3) for df in model.chosen_df))
        self.smoothings[learner, id(train)] = found
        return found

    def _not_mean(self, key: int) -> Learner:
        errors = self.errors(key)
        return leader_of({k: v for k, v in errors.items() if k != Mean()}) or Linear()

    def _mixture(self, key: int, but: int = -1) -> Blend:
        """Return weights from 0 to 1 that add up to 1 and make the squared error least."""
        from scipy.optimize import nnls

        learners = list(self.errors(key, but))
        if not learners:
            return _alone(Mean())
        parts = []
        for fold in range(len(self.folds)):
            if fold != but:
                task = self._task(key, fold)
                left = [self._weighted_left(task, learner) for learner in learners]
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

    def _weighted_left(self, task: Task, learner: Learner) -> Array:
        left, weights = self._left(task, self.predictions[task, learner]), self.plan.data.weights
        if weights is not None:
            left = left * np.sqrt(weights[self.folds[task.fold][1]])[:, None]
        return np.asarray(left.ravel())


def _alone(learner: Learner) -> Blend:
    return ((learner, 1.0),)


def leader_of(errors: dict[Learner, float]) -> Learner | None:
    """Return the first of those with the least error, or next to it."""
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
        for task, outcome in by_task(one, run_plan(one)).items():
            prediction = None if outcome.failure else outcome.prediction
            every[task].append(prediction)
    return every


def _is_quick(plan: Plan) -> bool:
    """Return whether the boosting engine serves every task of a plan."""
    from covaria.nuisance.engines import boosting

    widest = max((len(feature.columns) for feature in plan.data.features), default=0)
    is_wide = plan.data.X.shape[1] > widest
    return boosting.supports(plan) and is_wide and plan.shared_randomness


def is_told(errors: dict[Learner, float]) -> bool:
    """Return whether the others predict a feature; without a yardstick the mean errs by 1."""
    return min(errors.values(), default=1.0) < (1 - POLICY.predictable) * errors.get(Mean(), 1.0)
