"""Which learner serves each regression: the one that errs least inside the training rows.

The choice is made for y and for each feature apart, and anew in every fold, from models that have
not seen the fold's test rows. In a cross-fit of four folds or more a model that leaves out two
neighbouring folds tells both of them something: its errors on the one are of use to the other. So
two such models a fold give errors on two folds of its training rows, at the price of one.

Without candidates of the user's own, cheap ones run first and dear ones only where they can matter:

mean, linear, stumps   for every regression; as many trees as pay, read off one run
ridge, sparse          for tables of many columns beside their rows
splines(df='gcv')      for y, and where something can be learned at all; with many waves for
                       tables of few columns, where the most stumps did best
quadratic              for tables of few columns
pursuit                for all, for as long as it leads, where rows are twice as many as columns:
                       functions of sums of many columns, even ones too
trees of 4 splits      for as long as they beat what came before, one inner model after the other
kernel ridge           likewise, for y and where something can be learned
surfaces               likewise for y, and for features of which the rest tells more than a plane
                       does; for tables of not too many columns and rows
forest                 for features, where trees of 4 splits or kernels did best

Without a feature that the rest tells of, y may need another learner than with it: a line through
x_j = sin z will do for y, until x_j is left out. There those who serve y and x_j compete once more.
"""

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
    Pursuit,
    Quadratic,
    Ridge,
    RidgePath,
    Sparse,
    Splines,
    Surfaces,
)
from covaria.nuisance.fit import by_task, run
from covaria.nuisance.plan import Array, Blend, Choices, Plan, Task
from covaria.nuisance.splits import Fold, in_parts
from covaria.randomness import stream
from covaria.tables.dataset import Rows, of_all_classes

Rule = Callable[[int, dict[Learner, float]], bool]
# The outer folds that ask for something, by regression.
Askers = dict[int, set[int]]

# The key of y among the features' numbers; that of y without feature j is REST - j.
Y, REST = -1, -2
STUMPS, MORE_STUMPS = (25, 50, 100), (200, 400, 800)
DEEP, MORE_DEEP = (25, 50, 100), (200, 400)
DEEP_SPLITS = 4
# A later candidate has to err less by this share of the error.
WORTH = 0.002
# Something can be learned where the mean errs by this share more than the best so far.
LEARNED = 0.02
# The rest tells of a feature where the mean errs by this share more.
TOLD = 0.2
# Choosing from more rows than this is no better, and dearer; surfaces would fill the memory.
MOST_ROWS = 20_000
# Beyond these sizes a candidate would take longer than all others together. The rows are those of
# inner folds, three of five.
MOST_CURVES, MOST_PAIRED, MOST_KERNEL_ROWS, MOST_FOREST_ROWS = 60, 25, 1500, 2500
FOREST, LENIENT = Forest(trees=50, min_node=3), 0.03
# These shrink what a feature and y share.
SHRINKING = (Splines, Boosting, Kernel)
# Up to this many columns also curves of many waves, and all products, are tried.
MOST_WAVES, WAVES = 12, 40
# Weighted sums of fewer columns than this are not sought: surfaces are as good.
FEWEST_SUMMED = 3
# This share of the largest error is added to a stack's errors, so that weights are unique.
HOLD = 1e-8


@dataclass(frozen=True)
class Inner:
    """Inner folds, and which outer folds may look at which of their test rows.

    `looks[i]` are pairs of an outer fold and places among the test rows of inner fold i.
    """

    folds: list[Fold]
    looks: list[list[tuple[int, Rows]]]
    n_outer: int


def choose(plan: Plan) -> Choices:
    """Return the learners that serve each regression of the plan."""
    learner = plan.learner
    assert isinstance(learner, Auto)
    contest = Contest(plan, inner_folds(plan))
    if learner.candidates:
        for candidate in learner.candidates:
            contest.enter([candidate], contest.everything())
    else:
        _hold_library(contest)
    _hold_rest(contest)
    return contest.stacked() if learner.stack else contest.choices()


# --- inner folds --------------------------------------------------------------------------------


def inner_folds(plan: Plan) -> Inner:
    """Return the inner folds of a plan: pairs of its folds, or thirds of each training part."""
    rng = stream(plan.seed, "choosing", plan.repeat)
    in_pairs = _is_cross_fit(plan) and len(plan.folds) >= 4
    inner = _pairs(plan) if in_pairs else _thirds(plan, rng)
    return Inner(
        [(_some(train, rng), test) for train, test in inner.folds], inner.looks, len(plan.folds)
    )


def _some(rows: Rows, rng: np.random.Generator) -> Rows:
    if len(rows) <= MOST_ROWS:
        return rows
    return np.sort(rng.choice(rows, MOST_ROWS, replace=False))


def _is_cross_fit(plan: Plan) -> bool:
    """Return whether every fold learns from exactly the rows that others test."""
    tested = np.concatenate([test for _, test in plan.folds])
    n_rows = plan.data.n_rows
    return len(tested) == n_rows and all(
        len(train) + len(test) == n_rows and not np.isin(test, train).any()
        for train, test in plan.folds
    )


def _pairs(plan: Plan) -> Inner:
    """Return a fold for each pair of neighbours, the last and the first being neighbours too."""
    tests = [test for _, test in plan.folds]
    folds: list[Fold] = []
    looks: list[list[tuple[int, Rows]]] = []
    for one in range(len(tests)):
        other = (one + 1) % len(tests)
        test = np.sort(np.concatenate([tests[one], tests[other]]))
        is_out = np.zeros(plan.data.n_rows, dtype=bool)
        is_out[test] = True
        folds.append((np.flatnonzero(~is_out), test))
        of_one = np.isin(test, tests[one])
        looks.append([(one, np.flatnonzero(~of_one)), (other, np.flatnonzero(of_one))])
    return Inner(folds, looks, len(tests))


def _thirds(plan: Plan, rng: np.random.Generator) -> Inner:
    """Return three folds inside the training rows of each fold; clusters stay together."""
    folds: list[Fold] = []
    looks: list[list[tuple[int, Rows]]] = []
    for outer, (train, _) in enumerate(plan.folds):
        third = in_parts(train, plan.data.clusters, 3, rng)
        for k in range(3):
            test = train[third == k]
            if 0 < len(test) < len(train):
                folds.append((train[third != k], test))
                looks.append([(outer, np.arange(len(test)))])
    return Inner(folds, looks, len(plan.folds))


# --- the contest --------------------------------------------------------------------------------


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
        return (key >= 0 and _shrinking_less(errors)) or _leader(errors) or Mean()

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
        return [key for key in keys if _is_told(key, self.errors(key, outer))]

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
        if better := _shrinking_less(errors):
            return better
        if least == usual or errors.get(usual, np.inf) <= (1 + WORTH) * errors[least]:
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
        return _leader({k: v for k, v in errors.items() if k != Mean()}) or Linear()

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


def _leader(errors: dict[Learner, float]) -> Learner | None:
    if not errors:
        return None
    least = min(errors.values())
    return next(learner for learner, error in errors.items() if error <= (1 + WORTH) * least)


def _predictions(plan: Plan, path: Sequence[Learner]) -> dict[Task, list[Array | None]]:
    """Return what each candidate of a path predicts; None where it failed."""
    from covaria.nuisance.engines import boosting

    if len(path) > 1 and _is_quick(plan):
        counts = [learner.trees for learner in path]  # type: ignore[attr-defined]
        start = time.perf_counter()
        along = boosting.along(plan, counts)
        if plan.ledger:
            models = sum(plan.models(task) for task in along)
            plan.ledger.charge(plan.purpose, path[-1].name, models, time.perf_counter() - start)
        return {task: list(found) for task, found in along.items()}
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


# --- our own library ----------------------------------------------------------------------------


def _hold_library(contest: Contest) -> None:
    """Let our own candidates run, the dear ones only where they can matter."""
    data, everywhere = contest.plan.data, contest.everything()
    of_numbers = {key: everywhere[key] for key in everywhere if key != Y or not data.classes}
    n_columns, n_rows = data.X.shape[1], max(len(train) for train, _ in contest.inner.folds)
    contest.enter([Mean()], everywhere)
    contest.enter([Linear()], everywhere)
    if 4 * n_columns > n_rows:
        of_classes = {key: everywhere[key] for key in everywhere if key not in of_numbers}
        for ridge in (10.0, 100.0, 1000.0):
            contest.enter([Ridge(ridge=ridge)], of_classes)
        contest.enter([RidgePath()], of_numbers)
        contest.enter([Sparse()], of_numbers)
    _grow(contest, 1, STUMPS, MORE_STUMPS, everywhere)
    learned = _where(contest, everywhere, _is_learned)
    of_features = {key: folds for key, folds in learned.items() if key != Y}
    if n_columns <= MOST_WAVES:
        wild = _where(contest, everywhere, _is_wild)
        contest.enter([Splines(df="gcv", curves=WAVES)], wild)
        _race(contest, [Quadratic()], of_numbers)
    if n_columns > MOST_CURVES:
        contest.enter([Splines()], learned)
    elif data.classes:
        contest.enter([Splines()], {key: learned[key] for key in learned if key == Y})
        contest.enter([Splines(df="gcv")], of_features)
    else:
        contest.enter([Splines(df="gcv")], learned)
    if FEWEST_SUMMED < n_columns < n_rows / 2:
        _race(contest, [Pursuit()], of_numbers)
    _race(contest, [Boosting(trees=count, splits=DEEP_SPLITS) for count in DEEP], everywhere)
    longer = [Boosting(trees=count, splits=DEEP_SPLITS) for count in MORE_DEEP]
    _race(contest, longer, _where(contest, everywhere, _wants_more(DEEP_SPLITS, DEEP[-1])))
    if n_rows <= MOST_KERNEL_ROWS:
        learned = _where(contest, of_features if data.classes else everywhere, _is_learned)
        for width in (0.1, 0.5):
            ridge_machine = Kernel(kind="ridge", C=10.0, sigma=width / max(1, n_columns - 1))
            _race(contest, [ridge_machine], learned)
    if n_columns <= MOST_PAIRED and data.n_rows <= MOST_ROWS:
        contest.enter([Surfaces()], _where(contest, everywhere, _wants_surfaces))
        _race(contest, [Surfaces()], {key: everywhere[key] for key in everywhere if key == Y})
    if n_rows <= MOST_FOREST_ROWS:
        contest.enter([FOREST], _where(contest, contest.everything(), _wants_forest))


def _hold_rest(contest: Contest) -> None:
    """Let those who serve y, and a feature, fit y without it, where the rest tells of it.

    Surfaces take part where they did for the feature, as they may serve better by shrinking less.
    """
    asked: dict[Learner, Askers] = {}
    for outer in range(contest.inner.n_outer):
        for key in contest.told(outer):
            rivals = {contest.best(Y, outer), contest.best(key, outer)}
            if contest.plan.data.classes:
                rivals &= set(contest.errors(Y, outer))  # others are not made for classes
            if Surfaces() in contest.errors(key, outer):
                rivals.add(Surfaces())
            for learner in sorted(rivals, key=str):
                asked.setdefault(learner, {}).setdefault(REST - key, set()).add(outer)
    for learner, askers in asked.items():
        contest.enter([learner], askers)


def _grow(
    contest: Contest,
    splits: int,
    counts: Sequence[int],
    more: Sequence[int],
    askers: Askers,
) -> None:
    """Let trees run, and more of them where the most so far did best."""
    contest.enter([Boosting(trees=count, splits=splits) for count in counts], askers)
    askers = _where(contest, askers, _wants_more(splits, counts[-1]))
    contest.enter([Boosting(trees=count, splits=splits) for count in more], askers)


def _wants_more(splits: int, trees: int) -> Rule:
    """Return a rule: do so many trees err least, of all with as many splits?"""

    def rule(key: int, errors: dict[Learner, float]) -> bool:
        own = {k: e for k, e in errors.items() if isinstance(k, Boosting) and k.splits == splits}
        most = Boosting(trees=trees, splits=splits)
        return most in own and own[most] <= min(own.values())

    return rule


def _where(contest: Contest, askers: Askers, rule: Rule) -> Askers:
    """Return the outer folds whose own errors say so."""
    return {
        key: {outer for outer in outers if rule(key, contest.errors(key, outer))}
        for key, outers in askers.items()
    }


def _wants_forest(key: int, errors: dict[Learner, float]) -> bool:
    """Return whether a feature, of which the rest tells, is served best by deep trees or kernels.

    They shrink an interaction that jumps, and y's alike: a test would see what both miss. A
    forest shrinks less.
    """
    leader = _leader(errors)
    is_deep = isinstance(leader, Boosting) and leader.splits > 1
    return key >= 0 and _is_told(key, errors) and (is_deep or isinstance(leader, Kernel))


def _wants_surfaces(key: int, errors: dict[Learner, float]) -> bool:
    """Return whether a feature, of which the rest tells, is more than a plane.

    Where columns abound, others err a little less than a plane only by passing over most of them.
    """
    least = min(errors.values(), default=0.0)
    is_bent = errors.get(Linear(), np.inf) > (1 + LENIENT) * least
    return key >= 0 and is_bent and _is_told(key, errors)


def _shrinking_less(errors: dict[Learner, float]) -> Learner | None:
    """Return surfaces or a forest where they err next to no more than the best, or a little more.

    A test sees what the models of a feature and of y both miss. Curves, boosted trees and kernels
    shrink what there is to see; surfaces are rougher, and a forest's trees deep.
    """
    least = min(errors.values(), default=0.0)
    if not isinstance(_leader(errors), SHRINKING):
        return None
    return next(
        (k for k in (Surfaces(), FOREST) if errors.get(k, np.inf) <= (1 + LENIENT) * least), None
    )


def _is_told(key: int, errors: dict[Learner, float]) -> bool:
    """Return whether the rest tells of a feature; without a yardstick the mean errs by 1."""
    return min(errors.values(), default=1.0) < (1 - TOLD) * errors.get(Mean(), 1.0)


def _is_wild(key: int, errors: dict[Learner, float]) -> bool:
    """Return whether many stumps err less than few: a curve with many waves takes many."""
    stumps = {k: e for k, e in errors.items() if isinstance(k, Boosting) and k.splits == 1}
    return bool(stumps) and min(stumps, key=stumps.__getitem__).trees >= MORE_STUMPS[0]


def _is_learned(key: int, errors: dict[Learner, float]) -> bool:
    """Return whether y is asked for, or something beats the mean."""
    mean = errors.get(Mean())
    return key == Y or mean is None or min(errors.values()) < (1 - LEARNED) * mean


def _far_apart(count: int) -> list[int]:
    """Return every other number, then the rest: neighbours tell the same outer fold."""
    return [*range(0, count, 2), *range(1, count, 2)]


def _race(contest: Contest, path: Sequence[Learner], askers: Askers) -> None:
    """Let candidates run in one inner fold after the other for as long as they lead.

    An outer fold asks for the next inner fold only by the errors it may look at itself.
    """
    running = {(key, outer) for key, outers in askers.items() for outer in outers}
    contest.admit(path, askers)
    for i in _far_apart(len(contest.inner.folds)):
        looking = {outer for outer, _ in contest.inner.looks[i]}
        asked = {(key, outer) for key, outer in running if outer in looking}
        contest.run(path, {key: [i] for key in sorted({key for key, _ in asked})})
        for key, outer in asked:
            errors = contest.errors(key, outer, [i])
            rivals = [error for learner, error in errors.items() if learner not in path]
            own = [error for learner, error in errors.items() if learner in path]
            if not own or (rivals and min(own) >= min(rivals)):
                running.discard((key, outer))
    contest.dismiss(path, askers, running)
