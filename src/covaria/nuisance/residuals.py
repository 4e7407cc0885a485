"""Residuals: the shared models planned, handed to an engine, and what they leave over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from types import EllipsisType

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError
from covaria.execution.cost import Ledger
from covaria.execution.threads import one_thread
from covaria.learners import Auto, Boosting, Linear, Sparse
from covaria.nuisance import conditional
from covaria.nuisance.attenuation import attenuation, shortfall
from covaria.nuisance.directions import directions
from covaria.nuisance.engines import plain
from covaria.nuisance.extrapolation import (
    PRODUCT,
    beside_a_line,
    fitted_once,
    halves_of,
    may_miss,
    wanted_of,
)
from covaria.nuisance.fit import by_task, engine_for, run_plan
from covaria.nuisance.model_noise import noise_of_lines
from covaria.nuisance.plan import OF_FULL_MODEL, Choices, Outcome, Plan, Task
from covaria.nuisance.policy import POLICY
from covaria.nuisance.selected import less_selected
from covaria.nuisance.splits import Fold, in_parts
from covaria.options.familiar import knows_its_options
from covaria.randomness import stream
from covaria.tables.arrays import Index, Rows, as_slice, column_blocks, in_one_piece, of_all_classes
from covaria.tables.dataset import Dataset
from covaria.tables.encoding import goes_with, widening, within
from covaria.tables.layout import Feature

Array = NDArray[np.float64]
# Targets that vary by a smaller share of the largest are constant.
SAME = 1e-12
# Residuals below this share of a column's spread are rounding.
ROUNDING = 1e-10
# Correlations of more standard errors than these are an effect, whose interval is asked for.
WITH_EFFECT = 2.0
# Digits that other targets than columns keep, in units of their spread.
DIGITS = 9
# What came of the tasks of one fold and need: for each outcome, the features it answers for.
Found = list[tuple[list[int], Outcome]]
NEEDS = (
    "y_given_all",
    "y_given_rest",
    "x_given_rest",
    "y_dropped",
    "y_permuted",
    "y_lazy",
    "x_masked",
    "y_conditional",
    "f_given_rest",
    "square_given_rest",
    "spread_given_rest",
)
# What is left of a feature varies by rows in ways that such trees find; so do curves of it.
SPREAD, CURVES = Boosting(trees=50, splits=1), Boosting(trees=100, splits=1)
# Where one part of the rows is tested, functions are learned in turn from so many parts of it.
FEWEST_PARTS = 5


@dataclass(frozen=True)
class Residuals:
    """What is left of y and of each feature, out of fold, and each row's loss.

    Rows are the tested rows in the order of the table. `y_given_rest` and the losses have a
    column per feature, `x_given_rest` a column per column of `data.X`. With three or more
    classes what is left of y has one more axis: a column per class but the first. `n_train` is
    the rows a model learned from, 0 where it was tested on those same rows. `learners` are those
    that each regression chose, fold by fold, where it had a choice; `choices` says how.
    `halves` are those of models that learned from half the training rows each, and `may_miss` says
    for which features both regressions may err alike (`nuisance/extrapolation.py`), `by_line` for
    which of these one is a line, and halves of functions were not fitted. `model_noise`
    is the share of noise in the predictions of each feature's two regressions, where that was
    measured, `learning_curves` the share of what is left of x_j, and of y, that more rows would
    take away, `unlearned` the same, but no less than the noise of their models suggests, and
    `attenuation` by how much the correlation of the two is too small for that;
    `widening` what taking means of levels off both costs their product, and `within` the levels of
    each feature for which that were those of one category. `by_learners` has what learners left
    before chosen columns were taken off (`nuisance/selected.py`).
    """

    data: Dataset
    rows: Rows
    arrays: Mapping[str, Array]
    failures: Mapping[tuple[str, int], str] = field(default_factory=dict)
    fits: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    n_folds: int = 1
    n_train: int = 0
    engine: str = "plain"
    learners: Mapping[tuple[str, int], Sequence[str]] = field(default_factory=dict)
    choices: Choices | None = None
    fold: Rows = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # that tested each row
    model_noise: Array | None = None
    learning_curves: Array | None = None
    unlearned: Array | None = None
    attenuation: Array | None = None
    widening: Array | None = None
    within: Mapping[int, Rows] = field(default_factory=dict)
    folds: Sequence[Fold] = ()
    halves: tuple[Residuals, ...] = ()
    may_miss: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    by_line: NDArray[np.bool_] | bool = False
    is_given: bool = False  # whether the model of y on all columns was fitted elsewhere
    n_given: int = 0  # the rows that it learned from, 0 where that was not told
    by_learners: Residuals | None = None

    @property
    def y_given_all(self) -> Array:
        return self.arrays["y_given_all"]

    @property
    def y_given_rest(self) -> Array:
        return self.arrays["y_given_rest"]

    @property
    def x_given_rest(self) -> Array:
        return self.arrays["x_given_rest"]

    @property
    def f_given_rest(self) -> Array:
        """Return what is left of a function of each feature that the training rows suggest.

        With three or more classes one more axis has a function for each of them, the first too.
        """
        return self.arrays["f_given_rest"]

    @property
    def square_given_rest(self) -> Array:
        """Return what is left of the square of each feature, where it owns one column."""
        return self.arrays["square_given_rest"]

    @property
    def loss_given_all(self) -> Array:
        """Return each row's loss under the full model, as a column beside the features."""
        return self.arrays["loss_given_all"][:, None]

    @property
    def loss_given_rest(self) -> Array:
        return self.arrays["loss_given_rest"]

    @property
    def loss_dropped(self) -> Array:
        return self.arrays["loss_dropped"]

    @property
    def loss_permuted(self) -> Array:
        return self.arrays["loss_permuted"]

    @property
    def loss_conditional(self) -> Array:
        """Return the loss with each feature drawn anew given the others."""
        return self.arrays["loss_conditional"]

    @property
    def loss_lazy(self) -> Array:
        return self.arrays["loss_lazy"][:, :-1]

    @property
    def loss_stepped(self) -> Array:
        """Return each row's loss under the full network after a step of its own, as a column."""
        return self.arrays["loss_lazy"][:, -1:]

    @cached_property
    def of_lazy_networks(self) -> Residuals:
        """Return the residuals of lazily refitted networks and of the masked one as GCM's two."""
        if "y_lazy" not in self.arrays:
            return self  # these are they
        names = {"y_given_rest": self.arrays["y_lazy"][:, :-1], "x_given_rest": self.x_masked}
        return _within_levels(replace(self, arrays=names, widening=None, within={}))

    @property
    def x_masked(self) -> Array:
        """Return what the network that masks each feature in turn leaves of the columns."""
        return self.arrays["x_masked"]

    @property
    def n_learned(self) -> int:
        """Return the rows that the model of y on all columns learned from, 0 if it is not known."""
        return self.n_given if self.is_given else self.n_train

    @property
    def weights(self) -> Array | None:
        """Return the weights of the tested rows, scaled to mean one."""
        if self.data.weights is None:
            return None
        weights = self.data.weights[self.rows]
        return np.asarray(weights / weights.mean())

    @property
    def clusters(self) -> Rows | None:
        return None if self.data.clusters is None else self.data.clusters[self.rows]

    def weighted(self, scores: Array) -> Array:
        """Return scores whose plain mean and sd are the weighted mean and its sd.

        A row with weight w stands at mean + w (score − mean): the influence of that row on
        the weighted mean. So estimate, error and efficiency still come from one array.
        """
        if self.weights is None:
            return scores
        w = self.weights.reshape(-1, *[1] * (scores.ndim - 1))
        mean = (w * scores).mean(axis=0)
        return np.asarray(mean + w * (scores - mean))

    @cached_property
    def missed(self) -> Array:
        """Return the correlation of residuals that what both still miss may make, per feature."""
        if not self.halves or self.unlearned is None:
            return np.zeros(self.data.n_features)
        shares = np.nan_to_num(self.unlearned)
        return np.asarray(np.sqrt(shares.prod(axis=1)) * self.may_miss)

    @cached_property
    def missed_of_functions(self) -> Array:
        """Return the same of the functions that PCM tests."""
        if not self.halves or self.unlearned is None:
            return np.zeros(self.data.n_features)
        full, *halves = (self._size_of_functions(one) for one in (self, *self.halves))
        gap = POLICY.still_missed * _over(np.mean(halves, axis=0) - full, full)
        gap = np.where(self.by_line, np.nan_to_num(self.unlearned[:, 0]), gap)
        shares = gap.clip(0, 1) * np.nan_to_num(self.unlearned[:, 1])
        return np.asarray(np.sqrt(shares) * self.may_miss)

    def _size_of_functions(self, of: Residuals) -> Array:
        squares = of.f_given_rest.reshape(*of.f_given_rest.shape[:2], -1) ** 2
        return np.asarray(np.average(squares.sum(axis=2), axis=0, weights=self.weights))

    def feature(self, j: int) -> tuple[Array, Array]:
        """Return what is left of a feature, (n, columns), and of y given the rest, (n, classes)."""
        y = self.y_given_rest[:, j]
        return self.columns_of(j), y.reshape(len(y), -1)

    def columns_of(self, j: int) -> Array:
        """Return what is left of a feature, (n, columns)."""
        return self.left_of(list(self.data.features[j].tested))

    def left_of(self, columns: Sequence[int]) -> Array:
        """Return what is left of columns, (n, columns)."""
        own = list(columns)
        x, is_left = self.x_given_rest[:, own], self._is_left[own]
        return x if is_left.all() else np.where(is_left, x, 0.0)

    @cached_property
    def _is_left(self) -> NDArray[np.bool_]:
        """Return of which columns more than rounding is left.

        Of those that the rest determine rounding is, as of a region given its towns.
        """
        x = self.x_given_rest
        squares = [np.square(x[:, some]).mean(axis=0) for some in column_blocks(*x.shape)]
        return np.asarray(np.concatenate(squares) > ROUNDING**2 * self.data.variance)

    @cached_property
    def by_width(self) -> tuple[list[int], list[int], list[int]]:
        """Return the features with one product a row, their columns, and those with several."""
        one_score = self.y_given_rest.ndim == 2
        owned = [feature.tested for feature in self.data.features]
        single = [j for j, columns in enumerate(owned) if len(columns) == 1 and one_score]
        known = set(single)
        several = [j for j, columns in enumerate(owned) if columns and j not in known]
        return single, [owned[j][0] for j in single], several

    @cached_property
    def sizes(self) -> tuple[Array, Array]:
        """Return the root mean squares of both residuals of the features with one product a row."""
        single, columns, _ = self.by_width
        pair = (self.x_given_rest, columns), (self.y_given_rest, single)
        x, y = (np.sqrt(self._mean_squares(array, own)) for array, own in pair)
        return x, y

    def _mean_squares(self, array: Array, columns: Sequence[int]) -> Array:
        blocks = column_blocks(len(array), len(columns))
        squares = (np.square(in_one_piece(array, columns[some])) for some in blocks)
        means = [np.average(own, axis=0, weights=self.weights) for own in squares]
        return np.concatenate(means) if means else np.empty(0)

    def failure(self, needs: Iterable[str], feature: int) -> str:
        """Return why a feature has no score, or nothing."""
        for need in needs:
            for key in ((need, feature), (need, -1)):
                if key in self.failures:
                    return self.failures[key]
        return ""

    @cached_property
    def mean_loss(self) -> float:
        """Return the loss of predicting the mean: Var(Y), or for classes the entropy."""
        data, everything = self.data, np.arange(self.data.n_rows, dtype=np.intp)
        if data.outputs is not None:
            return data.target_variance
        losses = data.loss(data.mean_prediction(everything, data.n_rows), everything)
        return float(np.average(losses, weights=data.weights))

    @cached_property
    def spread(self) -> float:
        """Return the same for squared error or log-loss, whatever gains are measured by."""
        if self.data.rule is None:
            return self.mean_loss
        if self.data.rule.has_residuals:
            return self.data.target_variance
        return replace(self, data=self.data.with_loss(None)).mean_loss


@knows_its_options
def fit_residuals(plan: Plan) -> Residuals:
    """Return the residuals of every regression of the plan, each fitted once."""
    if not isinstance(plan, Plan):
        raise InputError("fit_residuals takes a plan, such as covaria.prepare(X, y).plan(0).")
    ledger = plan.ledger or Ledger()
    with ledger.stage("choose learners"):
        wants = plan.full is None or plan.needs - OF_FULL_MODEL
        if isinstance(plan.learner, Auto) and plan.choices is None and wants:
            if _has_own_functions(plan):
                plan = replace(plan, needs=plan.needs | PRODUCT)
            from covaria.nuisance.auto import choose_learners

            needs = plan.needs if plan.full is None else plan.needs - OF_FULL_MODEL
            needs = needs if plan.of_y is None else needs & {"x_given_rest"}
            # Whatever gains are measured by, learners are chosen for the mean.
            plain_loss = plan.data.with_loss(None)
            asked = replace(plan, needs=needs, full=None, of_y=None, data=plain_loss)
            plan = replace(plan, choices=choose_learners(asked))
    with ledger.stage("fit"):
        return _fitted(plan)


def _fitted(plan: Plan) -> Residuals:
    """Return what the regressions leave over, by the learners chosen."""
    engine = engine_for(plan)
    residuals = gather(plan, run_plan(plan))
    if (engine is not plain or plan.choices) and not is_sound(residuals):
        engine, residuals = (
            plain,
            gather(plan, run_plan(plan, plainly=True)),
        )  # it says which fit failed
    name = engine.__name__.rsplit(".", 1)[-1]
    residuals = replace(residuals, engine=name, choices=plan.choices)
    residuals, halves = _halved(plan, residuals)
    residuals = _with_noise_of_lines(plan, residuals)
    if _has_own_candidates(plan) and plan.data.X.shape[1] > plan.data.n_rows:
        residuals = _less_selected(plan, residuals)
    if conditional.NEED in plan.needs:
        residuals = _with_conditional(plan, residuals)
    if "x_masked" in plan.needs:
        residuals = _with_masked(plan, residuals)
    if "f_given_rest" in plan.needs:
        if _has_own_functions(plan):
            residuals = _with_functions(plan, residuals, halves)
        else:
            residuals = _with_targets(plan, residuals, "f_given_rest", _suggested, halves)
    if "square_given_rest" in plan.needs:
        residuals = _with_targets(plan, residuals, "square_given_rest", _squares, halves)
    return _within_levels(residuals)


def _with_conditional(plan: Plan, residuals: Residuals) -> Residuals:
    """Return the residuals with the losses of features that are drawn anew given the others."""
    begin, need = time.perf_counter(), conditional.NEED
    with one_thread():
        gains, failures, models = conditional.conditional_gains(
            plan, residuals.rows, residuals.x_given_rest
        )
    seconds = time.perf_counter() - begin
    losses = np.maximum(0.0, residuals.loss_given_all + gains)  # below 0 by rounding alone
    if plan.ledger:
        plan.ledger.charge("conditional permutation", plan.learner.name, models, seconds)
    return replace(
        residuals,
        arrays={**residuals.arrays, "loss_conditional": losses},
        failures={**residuals.failures, **failures},
        fits={**residuals.fits, need: models},
        seconds={**residuals.seconds, need: seconds},
    )


def _with_masked(plan: Plan, residuals: Residuals) -> Residuals:
    """Return the residuals with those of all features by one network a fold."""
    from covaria.nuisance.masked import NEED as need
    from covaria.nuisance.masked import left_of_features

    begin = time.perf_counter()
    left, failures, models = left_of_features(plan, residuals.rows)
    seconds = time.perf_counter() - begin
    if plan.ledger:
        plan.ledger.charge(plan.purpose, plan.learner.name, models, seconds)
    return replace(
        residuals,
        arrays={**residuals.arrays, need: left},
        failures={**residuals.failures, **failures},
        fits={**residuals.fits, need: models},
        seconds={**residuals.seconds, need: seconds},
    )


def _halved(plan: Plan, residuals: Residuals) -> tuple[Residuals, tuple[Plan, ...]]:
    """Return the residuals with those of models that learned from half the rows."""
    has_no_choice = plan.choices is None or plan.of_y is not None
    if has_no_choice or residuals.n_train == 0 or not plan.needs >= PRODUCT:
        return residuals, ()
    missed = may_miss(plan, plan.data.n_features)
    halves = halves_of(plan, "extrapolation" if missed.any() else "model noise")
    if halves is None:
        return residuals, ()
    parts = tuple(replace(half, only=wanted_of(plan, missed)) for half in halves)
    found = tuple(gather(*pair) for pair in zip(parts, fitted_once(parts), strict=True))
    if not all(is_sound(one) and not one.failures for one in found):
        return residuals, ()
    noise, curves = _learning_curves(residuals, found, parts[0])
    # The noise of models counts twice where folds learn from each other's rows.
    noise_of = _least(noise) if len(plan.folds) > 1 else None
    residuals = replace(
        residuals,
        model_noise=noise_of,
        learning_curves=curves,
        unlearned=(POLICY.still_missed * np.fmax(curves, noise)).clip(max=1),
        attenuation=np.maximum(
            _attenuations(residuals, found, parts[0]), _shortfalls(plan, residuals)
        ),
    )
    is_far_off = (np.nan_to_num(curves) >= POLICY.far_off).any(axis=1)
    own = np.asarray(missed.any(axis=0))
    by_line = ~own & is_far_off & beside_a_line(plan, plan.data.n_features)
    if not (own | by_line).any():
        return residuals, ()
    return replace(residuals, halves=found, may_miss=own | by_line, by_line=by_line), parts


def _less_selected(plan: Plan, residuals: Residuals) -> Residuals:
    """Return residuals less what columns chosen for x_j and y together tell of both."""
    if not residuals.arrays.keys() >= PRODUCT:
        return residuals
    start = time.perf_counter()
    parts, every = _parts(plan, residuals), (residuals, *residuals.halves)
    arrays = [{name: one.arrays[name] for name in PRODUCT} for one in every]
    found, alone = less_selected(plan.data, residuals.rows, parts, arrays)
    if plan.ledger:
        models = sum(1 for feature in plan.data.features if feature.columns)
        plan.ledger.charge("selection", Sparse.name, models, time.perf_counter() - start)
    full, *halves = (
        replace(one, arrays={**one.arrays, **less}) for one, less in zip(every, found, strict=True)
    )
    if full.model_noise is not None:
        # Least squares on a few columns have the noise of these.
        noise = np.minimum(full.model_noise, alone / residuals.n_train)
        full = replace(full, model_noise=noise)
    return replace(full, halves=tuple(halves), by_learners=residuals)


def _parts(plan: Plan, residuals: Residuals) -> Rows:
    """Return the fold of each row, or one of a few parts where all are tested by one fold."""
    if residuals.n_folds > 1:
        return residuals.fold
    rng = stream(plan.seed, "functions", plan.repeat)
    return in_parts(residuals.rows, plan.data.clusters, FEWEST_PARTS, rng)


def _learning_curves(
    residuals: Residuals, halves: Sequence[Residuals], plan: Plan
) -> tuple[Array, Array]:
    """Return the noise in each feature's models, and how much more rows would take off its errors.

    A model of half the rows has twice the noise, so that two of them differ by four times its
    variance. If errors fall like one over the rows, as much is still to be learned as halving the
    rows added. Both are shares of what is left, with a column for x_j and one for y, NaN where that
    was not measured.
    """
    noise, curves = np.full((2, plan.data.n_features, 2), np.nan)
    arrays = [_by_class(one) for one in (residuals, *halves)]
    weights = np.ones(len(residuals.rows)) if residuals.weights is None else residuals.weights
    for at, need in enumerate(("x_given_rest", "y_given_rest")):
        done = _done(plan, need)
        for j, feature in enumerate(plan.data.features):
            rows = np.flatnonzero(done[residuals.fold, j])
            if len(rows) and feature.columns:
                own = list(feature.tested) if at == 0 else [j]
                left = [array[need][rows][:, own].reshape(len(rows), -1) for array in arrays]
                noise[j, at], curves[j, at] = _learning_curve(left, weights[rows])
    return noise, curves


def _with_noise_of_lines(plan: Plan, residuals: Residuals) -> Residuals:
    """Return residuals of least squares with the noise of its models, where that is not small."""
    if plan.learner != Linear() or plan.of_y is not None or residuals.n_folds < 2:
        return residuals
    owned = [len(feature.columns) for feature in plan.data.features]
    noise = noise_of_lines(plan.data.X.shape[1] - np.array(owned), residuals.n_train)
    noise = np.where(noise > POLICY.least_noise, noise, 0.0)
    return replace(residuals, model_noise=noise) if noise.any() else residuals


def _least(noise: Array) -> Array:
    """Return the lesser noise of the two regressions of each feature, 0 where none is known."""
    known = np.isfinite(noise)
    least = np.nanmin(noise, axis=1, where=known, initial=np.inf)
    return np.where(known.any(axis=1), least, 0.0)


def _done(plan: Plan, need: str) -> NDArray[np.bool_]:
    """Return which regressions of a kind a plan has, (folds, features)."""
    done = np.zeros((len(plan.folds), plan.data.n_features), dtype=bool)
    for task in plan.tasks:
        if task.need == need:
            done[task.fold, task.feature] = True
    return done


def _attenuations(residuals: Residuals, halves: Sequence[Residuals], plan: Plan) -> Array:
    """Return what errors take off each correlation of residuals; 0 for several columns."""
    found = np.zeros(plan.data.n_features)
    done = _done(plan, "x_given_rest") & _done(plan, "y_given_rest")
    weights = np.ones(len(residuals.rows)) if residuals.weights is None else residuals.weights
    for j, feature in enumerate(plan.data.features):
        rows = np.flatnonzero(done[residuals.fold, j])
        if len(rows) and len(feature.tested) == 1 and residuals.y_given_rest.ndim == 2:
            own = feature.tested[0]
            full, *others = (
                (one.x_given_rest[rows, own], one.y_given_rest[rows, j])
                for one in (residuals, *halves)
            )
            found[j] = attenuation(full, others, weights[rows])
    return found


def _shortfalls(plan: Plan, residuals: Residuals) -> Array:
    """Return by how much correlations fall short of those that lines leave, where lines will do."""
    found, asked = np.zeros(plan.data.n_features), _beside_lines(plan, residuals)
    if not asked:
        return found
    tasks = frozenset(
        Task(need, k, j) for need in PRODUCT for k in range(len(plan.folds)) for j in asked
    )
    lines = replace(
        plan, learner=Linear(), choices=None, only=tasks, needs=PRODUCT, progress=None,
        purpose="least squares beside",
    )  # fmt: skip
    left = gather(lines, run_plan(lines))
    if not is_sound(left):
        return found
    weights = np.ones(len(residuals.rows)) if residuals.weights is None else residuals.weights
    for j in asked:
        own = plan.data.features[j].tested[0]
        pair, of_lines = (
            (one.x_given_rest[:, own], one.y_given_rest[:, j]) for one in (residuals, left)
        )
        found[j] = shortfall(pair, of_lines, weights)
    return found


def _beside_lines(plan: Plan, residuals: Residuals) -> list[int]:
    """Return features of one column with an effect on a number y, which not only lines serve."""
    n_rows, is_narrow = len(residuals.rows), 2 * plan.data.X.shape[1] <= residuals.n_train
    if plan.data.classes or not (_has_own_candidates(plan) and is_narrow):
        return []
    found = []
    for j, feature in enumerate(plan.data.features):
        if len(feature.tested) == 1 and not _are_lines(plan, j):
            x, y = residuals.x_given_rest[:, feature.tested[0]], residuals.y_given_rest[:, j]
            size = np.sqrt((x @ x) * (y @ y))
            if n_rows * (x @ y) ** 2 > (WITH_EFFECT * size) ** 2:
                found.append(j)
    return found


def _are_lines(plan: Plan, j: int) -> bool:
    """Return whether least squares serves both regressions of a feature in all folds."""
    folds = range(len(plan.folds))
    return all(plan.blend(Task(n, k, j)) == ((Linear(), 1.0),) for n in PRODUCT for k in folds)


def _learning_curve(left: Sequence[Array], weights: Array) -> tuple[float, float]:
    """Return the share of noise in one regression, and how much halving its rows added."""
    full, one, other = left
    size, apart = _mean_square(full, weights), _mean_square(one - other, weights)
    larger = (_mean_square(one, weights) + _mean_square(other, weights)) / 2
    gap = np.clip(larger.sum() / size.sum() - 1, 0, 1) if size.sum() else np.nan
    return float(_over(apart / 4, size).max()), float(gap)


# --- categories of many levels ------------------------------------------------------------------


def _within_levels(residuals: Residuals) -> Residuals:
    """Return residuals less their means within the levels that one of them goes with."""
    data = residuals.data
    if not data.levels or "y_given_rest" not in residuals.arrays:
        return residuals
    arrays = {name: array.copy() for name, array in residuals.arrays.items()}
    widen, within_one = np.ones(data.n_features), {}
    for j, feature in enumerate(data.features):
        others = [levels.code[residuals.rows] for levels in data.levels if levels.feature != j]
        parts = [(name, at) for name, at in _of_feature(j, feature) if name in arrays]
        codes = [code for code in others if _goes_with(arrays, parts, code)]
        if len(others) > 1:
            raw = _before_regressions(residuals, feature)
            codes = [code for code in others if goes_with(raw, code)]
        if not feature.columns or not codes:
            continue
        for name, at in parts:
            values = arrays[name][:, at]
            arrays[name][:, at] = within(values.reshape(len(values), -1), codes).reshape(
                values.shape
            )
        widen[j] = widening(codes)
        if len(codes) == 1:
            within_one[j] = codes[0]
    halves = tuple(_within_levels(half) for half in residuals.halves)
    return replace(residuals, arrays=arrays, widening=widen, within=within_one, halves=halves)


def _before_regressions(residuals: Residuals, feature: Feature) -> Array:
    """Return y and a feature's columns as they are in the table.

    Means by level of one category hold those of another that its rows share, in the regressions of
    x_j and y alike, and leave less than chance would: residuals do not tell which matter.
    """
    data, rows = residuals.data, residuals.rows
    return np.column_stack([data.y[rows], data.X[rows][:, list(feature.tested)]])


def _of_feature(j: int, feature: Feature) -> list[tuple[str, int | list[int]]]:
    """Return where what is left of y and of a feature stands."""
    of_x: list[tuple[str, int | list[int]]] = [
        ("f_given_rest", j),
        ("square_given_rest", j),
        ("x_given_rest", list(feature.tested)),
    ]
    return [("y_given_rest", j), *of_x]


def _goes_with(
    arrays: Mapping[str, Array], parts: list[tuple[str, int | list[int]]], code: Rows
) -> bool:
    """Return whether what is left of y or of a feature goes with the levels."""
    return any(goes_with(arrays[name][:, at].reshape(len(code), -1), code) for name, at in parts)


def _by_class(residuals: Residuals) -> dict[str, Array]:
    """Return what the two regressions left over, of y for every class."""
    left = residuals.y_given_rest
    y = of_all_classes(left) if left.ndim == 3 else left
    return {"x_given_rest": residuals.x_given_rest, "y_given_rest": y}


def _mean_square(values: Array, weights: Array | None) -> Array:
    return np.asarray(np.average(values**2, axis=0, weights=weights))


def _over(some: Array, others: Array) -> Array:
    """Return some numbers over others, 0 where those are 0."""
    return np.asarray(np.divide(some, others, out=np.zeros_like(others), where=others > 0))


# --- other targets than the columns -------------------------------------------------------------


def _has_own_functions(plan: Plan) -> bool:
    """Return whether functions of features are put together from parts of ours."""
    return _has_own_candidates(plan) and plan.full is None and "f_given_rest" in plan.needs


def _has_own_candidates(plan: Plan) -> bool:
    is_auto = isinstance(plan.learner, Auto) and not plan.learner.candidates
    return is_auto and plan.of_y is None


def _with_functions(plan: Plan, residuals: Residuals, halves: Sequence[Plan]) -> Residuals:
    """Return the residuals with a function of each feature, put together from parts."""
    spread = replace(plan, learner=SPREAD, choices=None)
    of_halves = [replace(half, learner=SPREAD, choices=None) for half in halves]
    if len(residuals.rows) < plan.data.n_rows:
        spread, of_halves = plan, list(halves)
    residuals = _with_targets(
        spread, residuals, "spread_given_rest", _spreads(residuals), of_halves
    )
    residuals = _with_targets(plan, residuals, "f_given_rest", _curves, halves)
    fold = _parts(plan, residuals)
    found = [dict(one.arrays) for one in (residuals, *residuals.halves)]
    functions = directions(plan.data, residuals.rows, fold, found)
    full, *others = (
        replace(one, arrays={**one.arrays, "f_given_rest": function})
        for one, function in zip((residuals, *residuals.halves), functions, strict=True)
    )
    return replace(full, halves=tuple(others))


def _spreads(residuals: Residuals) -> Callable[[Plan], Iterator[Array]]:
    """Return targets: the squared residual of each feature of one column, 0 for others.

    Where not all rows are tested, the squares of the feature itself take their place.
    """
    if len(residuals.rows) < residuals.data.n_rows:
        return _squares

    def targets(plan: Plan) -> Iterator[Array]:
        squares = np.zeros((plan.data.n_rows, plan.data.n_features))
        for j, feature in enumerate(plan.data.features):
            if len(feature.tested) == 1 and not _is_flag(plan.data.X[:, feature.tested[0]]):
                left = residuals.x_given_rest[:, feature.tested[0]]
                squares[residuals.rows, j] = left**2 / (np.mean(left**2) or 1.0)
        for _ in plan.folds:
            yield squares

    return targets


def _is_flag(column: Array) -> bool:
    return bool(((column == column.min()) | (column == column.max())).all())


def _curves(plan: Plan) -> Iterator[Array]:
    """Yield for each fold the curve of each feature that stumps suggest, where it is a rough one.

    What a line and a square make of it other parts of the function have.
    """
    stumps = replace(plan, learner=CURVES, choices=None)
    variance = 0.25 if plan.data.classes else float(plan.data.y.var())
    for values in _suggested(stumps):
        found = np.zeros_like(values)
        for j, feature in enumerate(plan.data.features):
            if len(feature.tested) == 1:
                rough = _rough(plan.data.X[:, feature.tested[0]], values[:, j])
                found[:, j] = rough if np.mean(rough**2) >= POLICY.rough * variance else 0.0
        yield found


def _rough(column: Array, values: Array) -> Array:
    """Return what a parabola in the column leaves of values."""
    sd = column.std() or 1.0
    z = (column - column.mean()) / sd
    basis = np.column_stack([np.ones_like(z), z, z**2])
    return np.asarray(values - basis @ np.linalg.lstsq(basis, values, rcond=None)[0])


def _suggested(plan: Plan) -> Iterator[Array]:
    """Yield for each fold a function of each feature: the full model less its partial mean.

    It has a column per feature, and with three or more classes one more axis, for all of them.
    """
    everything = np.arange(plan.data.n_rows, dtype=np.intp)
    plan = replace(
        plan,
        folds=[(train, everything) for train, _ in plan.folds],
        needs=frozenset({"y_direction"}),
        only=None,
        progress=None,
        purpose="functions of features",
    )
    for outcome in run_plan(plan):
        if outcome.failure:
            raise FitFailed(outcome.failure)
        assert outcome.direction is not None
        yield outcome.direction


def _squares(plan: Plan) -> Iterator[Array]:
    """Yield for each fold the square of each feature that owns one column, 0 for others."""
    squares = np.zeros((plan.data.n_rows, plan.data.n_features))
    for j, feature in enumerate(plan.data.features):
        if len(feature.tested) == 1:
            column, spread = plan.data.X[:, feature.tested[0]], plan.data.variance
            mean = np.average(column, weights=plan.data.weights)
            squares[:, j] = (column - mean) ** 2 / (spread[feature.tested[0]] or 1.0)
    for _ in plan.folds:
        yield squares


class FitFailed(Exception):
    """The full model of a fold could not be fitted."""


def _with_targets(
    plan: Plan,
    residuals: Residuals,
    need: str,
    targets: Callable[[Plan], Iterator[Array]],
    halves: Sequence[Plan] = (),
) -> Residuals:
    """Return the residuals with what the rest leaves of other targets than the columns."""
    begin, failures, fits = time.perf_counter(), dict(residuals.failures), dict(residuals.fits)
    classes = (plan.data.n_classes,) if plan.data.n_classes > 2 and need[0] == "f" else ()
    shape = (len(residuals.rows), plan.data.n_features, *classes)
    left, of_halves = np.zeros(shape, order="F"), [np.zeros(shape, order="F") for _ in halves]
    try:
        for fold, values in enumerate(targets(plan)):
            at = _places(residuals.rows, plan.folds[fold][1])[1]
            for part in np.ndindex(classes):
                found = _left_of_targets(plan, fold, values[(..., *part)], need, failures)
                left[(at, slice(None), *part)] = found
                for half, own in zip(halves, of_halves, strict=True):
                    asked = {task.feature for task in half.only or () if task.fold == fold}
                    asked &= set(np.flatnonzero(residuals.may_miss).tolist())
                    some = _only(values[(..., *part)], asked)
                    own[(at, slice(None), *part)] = _left_of_targets(half, fold, some, need, {})
                fits[need] += int((np.ptp(values, axis=0) > 0).sum())
    except FitFailed as failure:
        failures[need, -1] = str(failure)
    seconds = {**residuals.seconds, need: time.perf_counter() - begin}
    arrays = {**residuals.arrays, need: left}
    with_halves = tuple(
        replace(one, arrays={**one.arrays, need: own})
        for one, own in zip(residuals.halves, of_halves, strict=True)
    )
    return replace(
        residuals, arrays=arrays, failures=failures, fits=fits, seconds=seconds, halves=with_halves
    )


def _only(values: Array, features: set[int]) -> Array:
    """Return the columns of some features, 0 for others."""
    found = np.zeros_like(values)
    some = sorted(features)
    found[:, some] = values[:, some]
    return found


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


def is_sound(residuals: Residuals) -> bool:
    """Return whether all that is left over is finite, and its losses can be squared."""
    return all(
        _within(array, plain.LARGEST ** (1 + name.startswith("loss")))
        for name, array in residuals.arrays.items()
    )


def _within(array: Array, most: float) -> bool:
    flat = array.ravel(order="K")
    if flat @ flat <= most:  # no number is larger than the length of them all; this is quick
        return True
    return bool(-most <= array.min(initial=0.0) and array.max(initial=0.0) <= most)


def gather(plan: Plan, outcomes: Iterable[Outcome]) -> Residuals:
    """Return the outcomes of all folds put side by side, in the order of the rows."""
    rows = _tested_rows(plan)
    shapes = _shapes(plan, len(rows))
    arrays: dict[str, Array] = {}
    failures: dict[tuple[str, int], str] = {}
    learners: dict[tuple[str, int], list[str]] = {}
    fits, seconds = dict.fromkeys(NEEDS, 0), dict.fromkeys(NEEDS, 0.0)
    places = [_places(rows, test) for _, test in plan.folds]
    for (need, fold), answered in groupby(_answered(plan, outcomes), key=_kind):
        found: Found = []
        for tasks, outcome in answered:
            _charge(plan, tasks, outcome, fits, seconds)
            if outcome.failure:
                where = f"fold {fold + 1}: " if len(plan.folds) > 1 else ""
                failures.setdefault((need, tasks[0].feature), where + outcome.failure)
            else:
                found.append(([task.feature for task in tasks], outcome))
                if outcome.learner:
                    learners.setdefault((need, tasks[0].feature), []).append(outcome.learner)
        for name, index, left in _LEFT[need](plan.data, *places[fold], found) if found else ():
            _put(arrays, name, shapes[name], index, left)
    for name in shapes.keys() - arrays.keys():
        arrays[name] = np.zeros(shapes[name])  # nothing of this kind could be fitted
    tested_in = np.zeros(len(rows), dtype=np.intp)
    for k, (_, at) in enumerate(places):
        tested_in[at] = k
    return Residuals(
        plan.data,
        rows,
        arrays,
        failures,
        fits,
        seconds,
        len(plan.folds),
        _n_train(plan),
        learners=learners,
        fold=tested_in,
        folds=plan.folds,
        is_given=plan.full is not None,
        n_given=(plan.full.n_train or 0) if plan.full else 0,
    )


def _tested_rows(plan: Plan) -> Rows:
    """Return the rows that some fold tests, in the order of the table."""
    tests = [test for _, test in plan.folds]
    if len(tests) == 1 and isinstance(as_slice(tests[0]), slice):
        return tests[0]
    return np.sort(np.concatenate(tests))


def _answered(plan: Plan, outcomes: Iterable[Outcome]) -> Iterator[tuple[list[Task], Outcome]]:
    """Yield each outcome with the tasks it answers: one, or several in a row."""
    start = 0
    for outcome in outcomes:
        stop = start + outcome.count
        yield plan.tasks[start:stop], outcome
        start = stop


def _kind(answered: tuple[list[Task], Outcome]) -> tuple[str, int]:
    """Return the need and the fold that an outcome is for."""
    return answered[0][0].need, answered[0][0].fold


def _places(rows: Rows, test: Rows) -> tuple[Index, Index]:
    """Return a fold's test rows, and where they stand among all tested rows."""
    own = as_slice(test)
    if isinstance(own, slice) and len(test) == len(rows):
        return own, slice(0, len(rows))
    return own, as_slice(np.searchsorted(rows, test))


def _n_train(plan: Plan) -> int:
    """Return how many rows a model learned from, 0 where it was tested on the same rows."""
    learned = np.zeros(plan.data.n_rows, dtype=bool)
    for train, test in plan.folds:
        if train is test:
            return 0
        learned[:] = False
        learned[train] = True
        if learned[test].any():
            return 0
    return int(np.mean([len(train) for train, _ in plan.folds]))


def _shapes(plan: Plan, n_rows: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of every array that the plan's needs ask for."""
    data, classes = plan.data, (plan.data.n_classes - 1,) if plan.data.n_classes > 2 else ()
    shapes: dict[str, tuple[int, ...]] = {}
    if plan.tasks and plan.tasks[0].need == "y_given_all":
        shapes |= {"y_given_all": (n_rows, *classes), "loss_given_all": (n_rows,)}
    if "y_given_rest" in plan.needs:
        shapes["y_given_rest"] = (n_rows, data.n_features, *classes)
        shapes["loss_given_rest"] = (n_rows, data.n_features)
    if "x_given_rest" in plan.needs:
        shapes["x_given_rest"] = (n_rows, data.X.shape[1])
    for need in ("dropped", "permuted"):
        if f"y_{need}" in plan.needs:
            shapes[f"loss_{need}"] = (n_rows, data.n_features)
    if "y_lazy" in plan.needs:
        shapes["y_lazy"] = shapes["loss_lazy"] = (n_rows, data.n_features + 1)
    return shapes


def _put(
    arrays: dict[str, Array], name: str, shape: tuple[int, ...], index: Place, values: Array
) -> None:
    """Put values, a row per feature, where they belong in an array with a column per feature."""
    whole = tuple(slice(0, size) for size in reversed(shape))
    if all(isinstance(part, slice) for part in index) and index == whole:
        arrays[name] = values.T  # they are all of it
        return
    if name not in arrays:
        # Feature by feature in memory, as the tasks fill it.
        arrays[name] = np.zeros(shape, order="F")
    arrays[name].T[index] = values


# Where something stands in an array.
Place = tuple[int | slice | EllipsisType | Sequence[int] | NDArray[np.intp], ...]
Placed = Iterator[tuple[str, Place, Array]]


def _left_of_full(data: Dataset, test: Index, at: Index, found: Found) -> Placed:
    """Yield what the full model of a fold left over, and where it belongs."""
    _, outcome = found[0]
    left = data.left(_prediction(outcome), test)
    yield "y_given_all", (at,) if left.ndim == 1 else (slice(0, left.shape[1]), at), left.T
    yield "loss_given_all", (at,), data.loss(_prediction(outcome), test)
    for name in ("dropped", "permuted"):
        losses = getattr(outcome, name)
        if losses is not None:
            yield f"loss_{name}", (slice(0, losses.shape[1]), at), losses.T
    if outcome.lazy is not None:
        block = (slice(0, outcome.lazy.shape[1]), at)
        yield "y_lazy", block, outcome.lazy.T
        yield "loss_lazy", block, (outcome.lazy**2).T


def _left_of_reduced(data: Dataset, test: Index, at: Index, found: Found) -> Placed:
    """Yield what a fold's models without a feature left over, and where it belongs."""
    if data.classes:
        for (j,), outcome in found:
            yield "y_given_rest", (..., j, at), data.left(_prediction(outcome), test).T
            yield "loss_given_rest", (j, at), data.loss(_prediction(outcome), test)
        return
    block = _block([j for features, _ in found for j in features], at)
    left = found[0][1].left
    if left is None:
        left = np.asarray(data.y[test] - _stacked(found))
    losses = left * left
    if data.rule is not None:
        predictions = data.y[test] - left
        losses = np.array([data.loss(one, test) for one in predictions])
        if data.rule.has_residuals:
            left = np.array([data.left(one, test) for one in predictions])
    yield "y_given_rest", block, left
    yield "loss_given_rest", block, losses


def _left_of_features(data: Dataset, test: Index, at: Index, found: Found) -> Placed:
    """Yield what a fold's models of the features left over, and where it belongs."""
    columns = [c for features, _ in found for j in features for c in data.features[j].tested]
    left = found[0][1].left
    if left is None:
        left = np.asarray(data.X.T[_block(columns, test)] - _stacked(found))
    yield "x_given_rest", _block(columns, at), left


def _stacked(found: Found) -> Array:
    """Return the predictions of all outcomes, a row per feature or column."""
    if len(found) == 1 and found[0][1].count > 1:
        return _prediction(found[0][1])
    parts = (
        _prediction(outcome) if outcome.count > 1 else np.atleast_2d(_prediction(outcome).T)
        for _, outcome in found
    )
    return np.concatenate(list(parts))


def _block(rows: Sequence[int], columns: Index) -> Place:
    """Return an index of rows × columns, by slices where they lie side by side: it is quicker."""
    start, stop = rows[0], rows[-1] + 1
    if list(rows) == list(range(start, stop)):
        return slice(start, stop), columns
    return (rows, columns) if isinstance(columns, slice) else np.ix_(np.asarray(rows), columns)


_LEFT = {
    "y_given_all": _left_of_full,
    "y_given_rest": _left_of_reduced,
    "x_given_rest": _left_of_features,
}


def _prediction(outcome: Outcome) -> Array:
    assert outcome.prediction is not None
    return outcome.prediction


def _charge(
    plan: Plan,
    tasks: list[Task],
    outcome: Outcome,
    fits: dict[str, int],
    seconds: dict[str, float],
) -> None:
    """Add how many models an outcome took, and how many seconds."""
    need = tasks[0].need
    if plan.full is None or need != "y_given_all":
        fits[need] += sum(plan.models(task) for task in tasks) if need[0] == "x" else len(tasks)
    seconds[need] += outcome.seconds
    seconds["y_dropped"] += outcome.seconds_dropped
    seconds["y_permuted"] += outcome.seconds_permuted
    seconds["y_lazy"] += outcome.seconds_lazy
