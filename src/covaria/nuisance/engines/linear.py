"""The linear engine: every regression of a fold from one factorisation.

Let P be the inverse of X'X (plus ridge) of the centred training rows, and b the slopes of y on
all columns. What is left of x_j given the rest is then column j of XP over P_jj, and without
x_j the prediction of y loses b_j times that. Both hold for ridge and for rows held out; a
feature of several columns takes a block of P where another takes P_jj.

With X = QR, P is R⁻¹R⁻ᵀ: its error grows with the condition of X, not with its square. Where
no column is close to a mix of the others the square does no harm, and R comes sooner from the
Cholesky factor of X'X. Columns that determine each other exactly, or outnumber the rows, have no
such P; there the plain model takes the shortest slopes, and one singular value decomposition
finds those of all features.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack, svd

from covaria.execution.threads import one_thread
from covaria.learners import Linear
from covaria.nuisance.engines import plain
from covaria.nuisance.plan import Array, Outcome, Plan, Task
from covaria.tables.arrays import Rows, as_slice
from covaria.tables.layout import Feature

Flags = NDArray[np.bool_]

EPS = float(np.finfo(float).eps)
# A column's variance over what the others leave of it; below this X'X costs four digits at most.
MILD_INFLATION = 1e4
# Beyond this condition, in the Frobenius norm, columns may well determine each other.
ILL_CONDITIONED = 1e9
# A singular value this small beside the largest, and not zero, leaves the rank in doubt.
IN_DOUBT = 1e-9
# A share found by subtracting from one has ten digits if it is large, and is zero if tiny.
LARGE_SHARE, TINY_SHARE = 1e-6, 1e-13


def supports(plan: Plan) -> bool:
    """Return whether the learner is least squares or ridge."""
    return isinstance(plan.learner, Linear)


def cut_by(plan: Plan) -> str:
    """Return how a plan may be cut: not, but for models of classes, which are fitted one by one.

    A plan of all features is fitted in another way than one of some, so it stays whole.
    """
    return "features" if plan.data.classes and plan.only is not None else ""


def run(plan: Plan) -> list[Outcome]:
    """Return the outcome of every task, in the order of the plan."""
    return run_by_fold(plan, LinearFold.of)


# --- fold by fold, for any model that adds up its features --------------------------------------


class FoldFit(Protocol):
    """All models of one fold, as predictions for its test rows.

    `y_given_rest` and `parts`, what each feature adds to the prediction beyond what its mean
    adds, have a row per feature; `x_given_rest` has a row per column of `data.X`. `sound` says
    which features are served; the others are fitted plainly.
    """

    @property
    def sound(self) -> Flags: ...
    def y_given_all(self) -> Array: ...
    def y_given_rest(self) -> Array: ...
    def x_given_rest(self) -> Array: ...
    def parts(self) -> Array: ...


Fitter = Callable[[Plan, int], FoldFit | None]
Answer = Callable[[list[Task]], list[Outcome]]


def run_by_fold(plan: Plan, fit: Fitter) -> list[Outcome]:
    """Return the outcome of every task, from one fit a fold and plainly where that has none."""
    tasks = plan.tasks
    outcomes: list[Outcome] = []
    with one_thread():
        for fold in range(len(plan.folds)):
            outcomes += _of_fold(plan, fit, [task for task in tasks if task.fold == fold])
            if plan.progress:
                plan.progress(sum(outcome.count for outcome in outcomes), len(tasks))
    return outcomes


def _of_fold(plan: Plan, fit: Fitter, tasks: list[Task]) -> list[Outcome]:
    # Chances of classes are not linear in y: those models are fitted one by one.
    shared = [t for t in tasks if t.need == "x_given_rest" or not plan.data.classes]
    answers = _answers(plan, fit, shared) if shared and plan.data.X.shape[1] else {}
    outcomes: list[Outcome] = []
    for need, own in groupby(tasks, key=lambda task: task.need):
        alike = list(own)
        outcomes += answers[need](alike) if need in answers else _fitted_plainly(plan, alike)
    return outcomes


def _fitted_plainly(plan: Plan, tasks: list[Task]) -> list[Outcome]:
    return [plain.fit_task(plan, task) for task in tasks]


def _answers(plan: Plan, fit: Fitter, tasks: list[Task]) -> dict[str, Answer]:
    """Return how each need's tasks are answered; nothing where the shared fit fails."""
    start = time.perf_counter()
    try:
        with np.errstate(all="ignore"):
            fitted = fit(plan, tasks[0].fold)
            if fitted is None:
                return {}
            seconds = (time.perf_counter() - start) / len(tasks)
            return _answered(plan, fitted, tasks, seconds)
    except np.linalg.LinAlgError:
        return {}  # whichever model is to blame, the plain fits will tell


def _answered(plan: Plan, fitted: FoldFit, tasks: list[Task], seconds: float) -> dict[str, Answer]:
    needs = {task.need for task in tasks}
    answers: dict[str, Answer] = {}
    if "y_given_all" in needs:
        answers["y_given_all"] = _full_model(plan, fitted, tasks[0].fold, seconds)
    if isinstance(fitted, LinearFold) and fitted.is_whole and not _is_special(plan):
        return answers | _left_over(plan, fitted, tasks[0].fold, needs, seconds)
    if "y_given_rest" in needs:
        owned = [(j,) for j in range(plan.data.n_features)]
        answers["y_given_rest"] = _models_of(plan, fitted, fitted.y_given_rest, owned, seconds)
    if "x_given_rest" in needs:
        columns = [plan.targets_of(j) for j in range(plan.data.n_features)]
        answers["x_given_rest"] = _models_of(plan, fitted, fitted.x_given_rest, columns, seconds)
    return answers


def _is_special(plan: Plan) -> bool:
    """Return whether a plan asks for some tasks only, or for other targets than the columns."""
    return plan.only is not None or plan.targets is not None


def _left_over(
    plan: Plan, fitted: LinearFold, fold: int, needs: set[str], seconds: float
) -> dict[str, Answer]:
    """Return answers that hold what is left over for all features at once."""
    left = {}
    if "y_given_rest" in needs:
        left["y_given_rest"] = fitted.y_left(plan.data.y[plan.folds[fold][1]])
    if "x_given_rest" in needs:
        left["x_given_rest"] = fitted.left
    return {need: _all_at_once(array, seconds) for need, array in left.items()}


def _all_at_once(left: Array, seconds: float) -> Answer:
    outcome = Outcome(left=left, seconds=seconds * len(left), count=len(left))
    return lambda tasks: [outcome]


def _full_model(plan: Plan, fitted: FoldFit, fold: int, seconds: float) -> Answer:
    prediction, own = plain.timed(fitted.y_given_all)
    left = plan.data.left(prediction, plan.folds[fold][1])
    dropped, permuted = None, None
    seconds_dropped, seconds_permuted = 0.0, 0.0
    if "y_dropped" in plan.needs:
        dropped, seconds_dropped = plain.timed(_losses_dropped, left, fitted)
    if "y_permuted" in plan.needs:
        permuted, seconds_permuted = plain.timed(
            _losses_permuted, left, fitted, plan.shuffles(fold)
        )
    outcome = Outcome(
        prediction,
        dropped,
        permuted,
        seconds + own,
        seconds_dropped,
        seconds_permuted,
        direction=fitted.parts().T if "y_direction" in plan.needs else None,
    )
    return lambda tasks: [outcome]


def _losses_dropped(left: Array, fitted: FoldFit) -> Array:
    """Return each row's loss without the part of each feature, (rows, features)."""
    gap = fitted.parts()
    gap += left
    gap *= gap
    return gap.T


def _losses_permuted(left: Array, fitted: FoldFit, orders: list[Rows]) -> Array:
    """Return each row's mean loss with the part of each feature from another row."""
    parts = fitted.parts()
    kept = left + parts
    total = np.zeros_like(parts)
    for order in orders:
        gap = parts[:, order]
        np.subtract(kept, gap, out=gap)
        gap *= gap
        total += gap
    total /= len(orders)
    return total.T


def _models_of(
    plan: Plan,
    fitted: FoldFit,
    predict: Callable[[], Array],
    owned: Sequence[tuple[int, ...]],
    seconds: float,
) -> Answer:
    """Return how tasks are answered by predictions of which feature j owns the rows owned[j]."""
    predictions, own = plain.timed(predict)
    each = seconds + own / plan.data.n_features

    def together(tasks: list[Task]) -> list[Outcome]:
        if len(tasks) == 1 or not fitted.sound.all():
            return one_by_one(tasks)
        rows = [row for task in tasks for row in owned[task.feature]]
        whole = predictions if rows == list(range(len(predictions))) else predictions[rows]
        return [Outcome(whole, seconds=each * len(tasks), count=len(tasks))]

    def one_by_one(tasks: list[Task]) -> list[Outcome]:
        return [
            Outcome(_own(predictions, t, owned[t.feature]), seconds=each)
            if fitted.sound[t.feature]
            else plain.fit_task(plan, t)
            for t in tasks
        ]

    return together


def _own(predictions: Array, task: Task, rows: tuple[int, ...]) -> Array:
    """Return the predictions of one task: of y a value a row, of a feature one a column too."""
    return predictions[rows[0]] if task.need == "y_given_rest" else predictions[list(rows)].T


def by_feature(slope: Array, columns: Array, features: Sequence[Feature]) -> Array:
    """Return, for each feature, the sum of slope × column over the columns it owns."""
    if [feature.columns for feature in features] == [(c,) for c in range(len(columns))]:
        return columns * slope[:, None]
    return np.array([slope[list(f.columns)] @ columns[list(f.columns)] for f in features])


# --- one fold of linear models ------------------------------------------------------------------


@dataclass(frozen=True)
class LinearFold:
    """All linear models of one fold, read off one factorisation.

    On the test rows, `centred` holds the columns of X less their training means `centre`, and
    `left` what is left of them given the rest, a row per column; `slope` is that of y on each
    and `full` the prediction of y from all. `instead` are the predictions of the plan's targets,
    where it has any.
    """

    features: Sequence[Feature]
    slope: Array
    centre: Array
    centred: Array
    left: Array
    sound: Flags
    full: Array
    instead: Array | None = None

    @classmethod
    def of(cls, plan: Plan, fold: int) -> LinearFold | None:
        """Return the models of a fold, or None where only plain fits are safe."""
        data = plan.data
        mean, total, columns = centred_columns(plan, fold)
        scale = Scale.of(mean, total, columns)
        solved = factorised(plan, scale, columns)
        if solved is None:
            return None
        centred = _tested(plan, fold, scale, columns)
        left, sound = centred, np.ones(data.n_features, dtype=bool)
        if plan.needs & {"y_given_rest", "x_given_rest"}:
            left, sound = solved.left(centred, data.features)
        full = scale.mean + solved.slope @ centred
        fitted = cls(data.features, solved.slope, scale.centre, centred, left, sound, full)
        if plan.targets is None:
            return fitted
        if not isinstance(solved, Triangle) or plan.learner != Linear():
            return None
        return replace(fitted, instead=_targets_given_rest(plan, fold, fitted, columns[:-1]))

    @property
    def is_whole(self) -> bool:
        """Return whether every feature is served and owns the column of its number."""
        one_each = [f.columns for f in self.features] == [(c,) for c in range(len(self.left))]
        return one_each and bool(self.sound.all())

    def y_given_all(self) -> Array:
        """Return the prediction of y from all columns."""
        return self.full

    def y_given_rest(self) -> Array:
        """Return the prediction of y without each feature."""
        lost = by_feature(self.slope, self.left, self.features)
        return np.subtract(self.full, lost, out=lost)

    def y_left(self, y: Array) -> Array:
        """Return what is left of y without each feature, where each owns one column."""
        left = self.left * self.slope[:, None]
        left += y - self.full
        return left

    def x_given_rest(self) -> Array:
        """Return the prediction of each column, or target, without its feature."""
        if self.instead is not None:
            return self.instead
        prediction = self.centred - self.left
        prediction += self.centre[:, None]
        return prediction

    def parts(self) -> Array:
        """Return what each feature adds to the prediction of y."""
        return by_feature(self.slope, self.centred, self.features)


def _targets_given_rest(plan: Plan, fold: int, fitted: LinearFold, columns: Array) -> Array:
    """Return the prediction of each feature's target without that feature, a row each."""
    assert plan.targets is not None
    train = plan.folds[fold][0]
    weights = None if plan.data.weights is None else plan.data.weights[train]
    targets = plan.targets[train]
    means = np.average(targets, axis=0, weights=weights)
    targets = targets - means
    if weights is not None:
        targets *= np.sqrt(weights)[:, None]
    slopes = np.linalg.lstsq(columns.T, targets, rcond=None)[0]
    prediction = slopes.T @ fitted.centred + means[:, None]
    for j, feature in enumerate(plan.data.features):
        own = list(feature.columns)
        prediction[j] -= slopes[own, j] @ fitted.left[own]
    return prediction


def _tested(plan: Plan, fold: int, scale: Scale, columns: Array) -> Array:
    """Return the columns of the test rows less their training means; in sample these are known."""
    train, test = plan.folds[fold]
    if plan.data.weights is None and (test is train or np.array_equal(test, train)):
        return columns[:-1]
    return np.subtract(plan.data.X[test].T, scale.centre[:, None], order="C")


@dataclass(frozen=True)
class Scale:
    """The training means of columns and y; the columns' spread, and the same or 1 as a unit.

    `gram` holds the products of all columns with each other, y last.
    """

    centre: Array
    mean: float
    spread: Array
    unit: Array
    gram: Array

    @classmethod
    def of(cls, mean: Array, total: float, columns: Array) -> Scale:
        """Return the scale of centred columns."""
        gram = columns @ columns.T
        spread = np.sqrt(gram.diagonal()[:-1] / total)
        return cls(mean[:-1], float(mean[-1]), spread, np.where(spread > 0, spread, 1.0), gram)


def centred_columns(plan: Plan, fold: int) -> tuple[Array, float, Array]:
    """Return means, total weight, and the columns less their means times root weights, y last.

    In this order of memory, (columns, rows), no later step has to turn the table round.
    """
    data, train = plan.data, plan.folds[fold][0]
    columns = np.empty((data.X.shape[1] + 1, len(train)))
    columns[:-1] = data.X[as_slice(train)].T
    columns[-1] = data.y[train]
    weights = None if data.weights is None else data.weights[train]
    if weights is None:
        total = float(len(train))
        mean = np.add.reduce(columns, axis=1) / total
        columns -= mean[:, None]
    else:
        total = float(weights.sum())
        mean = columns @ weights / total
        columns -= mean[:, None]
        columns *= np.sqrt(weights)
    return mean, total, columns


class Solved(Protocol):
    """A factorisation of the training rows, in the units of the raw columns.

    `left` takes centred columns of test rows, a row per column, and returns what is left of
    each without the columns of its feature, and for which features that holds.
    """

    @property
    def slope(self) -> Array: ...
    def left(self, columns: Array, features: Sequence[Feature]) -> tuple[Array, Flags]: ...


def factorised(plan: Plan, scale: Scale, columns: Array) -> Solved | None:
    """Return the triangle, or for dependent columns the decomposition; None where in doubt."""
    assert isinstance(plan.learner, Linear)
    ridge = plan.learner.ridge * (
        scale.unit**2 if plan.learner.is_unitless else np.ones_like(scale.unit)
    )
    n_rows = columns.shape[1]
    if (scale.unit <= EPS * n_rows * np.abs(scale.centre)).any():
        return None  # what varies there is rounding
    triangle = None
    if n_rows >= len(columns):
        triangle = _by_cholesky(scale, ridge) or _by_qr(scale, columns.T, ridge)
    return triangle or Decomposition.of(scale, columns.T, ridge)


@dataclass(frozen=True)
class Triangle:
    """The inverse of the factor R of the training rows, and the slopes of y.

    Where no column is close to a mix of the others its `square` serves as well: P over P_jj.
    """

    inverse: Array
    slope: Array
    square: Array | None = None

    def left(self, columns: Array, features: Sequence[Feature]) -> tuple[Array, Flags]:
        """Return what is left of each column, for all features."""
        several = [list(f.columns) for f in features if len(f.columns) > 1]
        if self.square is not None and not several:
            return self.square @ columns, np.ones(len(features), dtype=bool)
        turned = blas.dtrmm(1.0, self.inverse, columns.T, side=1)
        blocks = [self._left_of_block(turned, block) for block in several]
        over_square = self.inverse / np.einsum("ij,ij->i", self.inverse, self.inverse)[:, None]
        left = blas.dtrmm(1.0, over_square, turned, side=1, trans_a=1, overwrite_b=True).T
        for block, value in zip(several, blocks, strict=True):
            left[block] = value
        return left, np.ones(len(features), dtype=bool)

    def _left_of_block(self, turned: Array, block: list[int]) -> Array:
        """Return what is left of columns that one feature owns."""
        # By QR, since the block of P itself has the square of the condition.
        Q, S = np.linalg.qr(self.inverse[block].T)
        return np.asarray(lapack.dtrtrs(S, Q.T @ turned.T)[0])


def _by_cholesky(scale: Scale, ridge: Array) -> Triangle | None:
    """Return the triangle from X'X; None where squaring loses too much."""
    gram = scale.gram[:-1] / scale.unit[:, None]
    square = gram[:, :-1] / scale.unit
    if ridge.any() or not scale.spread.all():
        hold = np.where(scale.spread > 0, ridge, 1.0)  # a constant column needs one in any case
        square.flat[:: len(square) + 1] += hold / scale.unit**2
    R, singular = lapack.dpotrf(square)
    if singular:
        return None
    inverse = lapack.dtrtri(R)[0]
    P = inverse @ inverse.T
    inflation = square.diagonal() * P.diagonal()
    if not inflation.max() < MILD_INFLATION:
        return None
    slope = lapack.dpotrs(R, gram[:, -1])[0] / scale.unit
    inverse = np.divide(inverse, scale.unit[:, None], order="F")
    P /= P.diagonal()[:, None] * scale.unit
    P *= scale.unit[:, None]
    return Triangle(inverse, slope, P)


def _by_qr(scale: Scale, rows: Array, ridge: Array) -> Triangle | None:
    """Return the triangle from X itself; None where it is near singular."""
    rows = _with_penalty(scale, rows, ridge)
    size = int(lapack.dgeqrf_lwork(*rows.shape)[0])
    packed = lapack.dgeqrf(rows, lwork=size)[0]
    p = rows.shape[1] - 1
    R = np.tril(packed[:p, :p].T).T  # in the order LAPACK likes
    inverse, singular = lapack.dtrtri(R)
    if singular or np.linalg.norm(R) * np.linalg.norm(inverse) > ILL_CONDITIONED:
        return None
    slope = lapack.dtrtrs(R, packed[:p, p])[0]
    inverse = np.divide(inverse, scale.unit[:, None], order="F")
    return Triangle(inverse, slope / scale.unit)


def _with_penalty(scale: Scale, rows: Array, ridge: Array) -> Array:
    """Return the rows with scaled columns, above further ones that hold slopes small."""
    p = rows.shape[1] - 1
    scaled: Array = rows / np.append(scale.unit, 1.0)
    # Without ridge only the slope of a constant column needs a hold.
    held = np.arange(p) if ridge.any() else np.flatnonzero(scale.spread == 0)
    if not len(held):
        return scaled
    holds = np.zeros((len(held), p + 1))
    size = np.sqrt(np.where(ridge > 0, ridge, 1.0)) / scale.unit
    holds[np.arange(len(held)), held] = size[held]
    return np.vstack([scaled, holds])


@dataclass(frozen=True)
class Decomposition:
    """The singular values and axes of rows whose columns depend on each other.

    With ridge, P is what `kept` leaves of the identity: I − V diag(kept) V'. Without, this is
    its limit as the ridge vanishes, the projection on slopes that change no fitted value; a
    column that takes no part in those has a P as usual.
    """

    slope: Array
    unit: Array
    size: Array
    axes: Array
    kept: Array

    @classmethod
    def of(cls, scale: Scale, rows: Array, ridge: Array) -> Decomposition | None:
        """Return the decomposition, or None where the rank is in doubt."""
        # Ridge holds the slopes of its columns small; without it those of scaled ones are.
        held = bool(ridge.any())
        unit = np.sqrt(ridge) if held else scale.unit
        columns, y = rows[:, :-1] / unit, rows[:, -1]
        U, size, axes = svd(columns, full_matrices=False, check_finite=False)
        floor = EPS * max(columns.shape) * size.max(initial=0)
        known = size > floor
        if not held and (size[known] < IN_DOUBT * size.max(initial=0)).any():
            return None
        U, size, axes = U[:, known], size[known], axes[known].T
        kept = size**2 / (size**2 + 1) if held else np.ones_like(size)
        slope = axes @ (kept / size * (y @ U)) / unit
        return cls(slope, unit, size, axes, kept)

    def left(self, columns: Array, features: Sequence[Feature]) -> tuple[Array, Flags]:
        """Return what is left of each column, and which features it holds for."""
        columns = columns / self.unit[:, None]
        share = 1 - self.axes**2 @ self.kept
        left = columns - (self.axes * self.kept) @ (self.axes.T @ columns)
        left /= np.maximum(share, TINY_SHARE)[:, None]
        free = (share < TINY_SHARE) & (self.kept == 1).all()
        left[free] = self._left_of_free(columns, free)
        left *= self.unit[:, None]
        good = free | (share > LARGE_SHARE)
        # A feature of several columns may be both free and bound: too rare to go into.
        return left, np.array([len(f.columns) == 1 and good[f.columns[0]] for f in features])

    def _left_of_free(self, columns: Array, free: Flags) -> Array:
        """Return what is left of the columns that no others determine."""
        inverse = self.axes / self.size
        left = inverse[free] @ (inverse.T @ columns)
        return np.asarray(left / np.sum(inverse[free] ** 2, axis=1)[:, None])
