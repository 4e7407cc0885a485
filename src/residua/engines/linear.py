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
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack, svd

from residua.data import Feature, Rows
from residua.engines import Array, Outcome, Plan, Task, plain
from residua.learners import Linear

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
Answer = Callable[[Task], Outcome | None]


def run_by_fold(plan: Plan, fit: Fitter) -> list[Outcome]:
    """Return the outcome of every task, from one fit a fold and plainly where that has none."""
    tasks = plan.tasks
    outcomes: list[Outcome] = []
    with one_thread():
        for fold in range(len(plan.folds)):
            outcomes += _of_fold(plan, fit, [task for task in tasks if task.fold == fold])
            if plan.progress:
                plan.progress(len(outcomes), len(tasks))
    return outcomes


def one_thread() -> Any:
    """Return a context in which matrix products give the same bits on any number of cores."""
    return _threads().limit(limits=1)


@cache
def _threads() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # it looks through all loaded libraries, so we ask once


def _of_fold(plan: Plan, fit: Fitter, tasks: list[Task]) -> list[Outcome]:
    # Chances of classes are not linear in y: those models are fitted one by one.
    shared = [t for t in tasks if t.need == "x_given_rest" or not plan.data.classes]
    answers = _answers(plan, fit, shared) if shared and plan.data.X.shape[1] else {}
    outcomes = [answers[t.need](t) if t.need in answers else None for t in tasks]
    return [
        outcome or plain.fit_task(plan, task) for task, outcome in zip(tasks, outcomes, strict=True)
    ]


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
    if "y_given_rest" in needs:
        answers["y_given_rest"] = _reduced_models(plan, fitted, seconds)
    if "x_given_rest" in needs:
        answers["x_given_rest"] = _feature_models(plan, fitted, seconds)
    return answers


def _timed(function: Callable[..., Array], *arguments: Any) -> tuple[Array, float]:
    start = time.perf_counter()
    return function(*arguments), time.perf_counter() - start


def _full_model(plan: Plan, fitted: FoldFit, fold: int, seconds: float) -> Answer:
    prediction, own = _timed(fitted.y_given_all)
    left = plan.data.left(prediction, plan.folds[fold][1])
    dropped, permuted = None, None
    seconds_dropped, seconds_permuted = 0.0, 0.0
    if "y_dropped" in plan.needs:
        dropped, seconds_dropped = _timed(_losses_dropped, left, fitted)
    if "y_permuted" in plan.needs:
        permuted, seconds_permuted = _timed(_losses_permuted, left, fitted, plan.shuffles(fold))
    outcome = Outcome(
        prediction, dropped, permuted, seconds + own, seconds_dropped, seconds_permuted
    )
    return lambda task: outcome


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


def _reduced_models(plan: Plan, fitted: FoldFit, seconds: float) -> Answer:
    predictions, own = _timed(fitted.y_given_rest)
    each = seconds + own / plan.data.n_features
    sound = fitted.sound.tolist()
    return lambda task: (
        Outcome(predictions[task.feature], seconds=each) if sound[task.feature] else None
    )


def _feature_models(plan: Plan, fitted: FoldFit, seconds: float) -> Answer:
    predictions, own = _timed(fitted.x_given_rest)
    each = seconds + own / plan.data.n_features
    features, sound = plan.data.features, fitted.sound.tolist()

    def outcome(task: Task) -> Outcome | None:
        columns = features[task.feature].columns
        if not sound[task.feature]:
            return None
        if len(columns) == 1:
            return Outcome(predictions[columns[0]][:, None], seconds=each)  # a view, no copy
        return Outcome(predictions[list(columns)].T, seconds=each)

    return outcome


def by_feature(slope: Array, columns: Array, features: Sequence[Feature]) -> Array:
    """Return, for each feature, the sum of slope × column over the columns it owns."""
    if all(len(feature.columns) == 1 for feature in features):
        owned = [feature.columns[0] for feature in features]
        parts = columns[owned]
        parts *= slope[owned, None]
        return parts
    return np.array([slope[list(f.columns)] @ columns[list(f.columns)] for f in features])


# --- one fold of linear models ------------------------------------------------------------------


@dataclass(frozen=True)
class LinearFold:
    """All linear models of one fold, read off one factorisation.

    On the test rows, `centred` holds the columns of X less their training means `centre`, and
    `left` what is left of them given the rest, a row per column; `slope` is that of y on each.
    """

    features: Sequence[Feature]
    mean: float
    slope: Array
    centre: Array
    centred: Array
    left: Array
    sound: Flags

    @classmethod
    def of(cls, plan: Plan, fold: int) -> LinearFold | None:
        """Return the models of a fold, or None where only plain fits are safe."""
        data, test = plan.data, plan.folds[fold][1]
        scale, solved = factorised(plan, fold)
        if solved is None:
            return None
        # In this order of memory, (columns, rows), no later step has to turn the table round.
        centred = np.subtract(data.X[test].T, scale.centre[:, None], order="C")
        left, sound = centred, np.ones(data.n_features, dtype=bool)
        if plan.needs & {"y_given_rest", "x_given_rest"}:
            left, sound = solved.left(centred, data.features)
        if not (np.isfinite(left).all() and np.isfinite(solved.slope).all()):
            return None
        return cls(data.features, scale.mean, solved.slope, scale.centre, centred, left, sound)

    def y_given_all(self) -> Array:
        """Return the prediction of y from all columns."""
        return np.asarray(self.mean + self.slope @ self.centred)

    def y_given_rest(self) -> Array:
        """Return the prediction of y without each feature."""
        lost = by_feature(self.slope, self.left, self.features)
        return np.subtract(self.y_given_all(), lost, out=lost)

    def x_given_rest(self) -> Array:
        """Return the prediction of each column without its feature."""
        prediction = self.centred - self.left
        prediction += self.centre[:, None]
        return prediction

    def parts(self) -> Array:
        """Return what each feature adds to the prediction of y."""
        return by_feature(self.slope, self.centred, self.features)


@dataclass(frozen=True)
class Scale:
    """The training means of columns and y; the columns' spread, and the same or 1 as a unit."""

    centre: Array
    mean: float
    spread: Array
    unit: Array


def scaled(plan: Plan, fold: int) -> tuple[Scale, Array]:
    """Return the scale, and the training rows in it: the columns, then y, times root weights."""
    train = plan.folds[fold][0]
    X, y = plan.data.X[train], plan.data.y[train]
    weights = None if plan.data.weights is None else plan.data.weights[train]
    centre, mean = np.average(X, axis=0, weights=weights), np.average(y, weights=weights)
    rows = np.empty((len(y), len(centre) + 1))
    columns, target = rows[:, :-1], rows[:, -1]
    np.subtract(X, centre, out=columns)
    np.subtract(y, mean, out=target)
    if weights is not None:
        rows *= np.sqrt(weights)[:, None]
    total = len(y) if weights is None else weights.sum()
    spread = np.sqrt(np.einsum("ij,ij->j", columns, columns) / total)
    unit = np.where(spread > 0, spread, 1.0)
    columns /= unit
    return Scale(centre, float(mean), spread, unit), rows


class Solved(Protocol):
    """A factorisation of the training rows, in the units of the raw columns.

    `left` takes centred columns of test rows, a row per column, and returns what is left of
    each without the columns of its feature, and for which features that holds.
    """

    @property
    def slope(self) -> Array: ...
    def left(self, columns: Array, features: Sequence[Feature]) -> tuple[Array, Flags]: ...


def factorised(plan: Plan, fold: int) -> tuple[Scale, Solved | None]:
    """Return the triangle, or for dependent columns the decomposition; None where in doubt."""
    assert isinstance(plan.learner, Linear)
    ridge = plan.learner.ridge
    scale, rows = scaled(plan, fold)
    only_rounding = scale.spread <= EPS * len(rows) * np.abs(scale.centre)
    if (only_rounding & (scale.spread > 0)).any():
        return scale, None
    triangle = Triangle.of(scale, rows, ridge) if len(rows) >= rows.shape[1] else None
    return scale, triangle or Decomposition.of(scale, rows, ridge)


@dataclass(frozen=True)
class Triangle:
    """The inverse of the factor R of the training rows, and the slopes of y."""

    inverse: Array
    slope: Array

    @classmethod
    def of(cls, scale: Scale, rows: Array, ridge: float) -> Triangle | None:
        """Return the triangle, or None where it is near singular."""
        rows = _with_penalty(scale, rows, ridge)
        found = _by_cholesky(rows) or _by_qr(rows)
        if found is None:
            return None
        inverse, slope = found
        return cls(np.divide(inverse, scale.unit[:, None], order="F"), slope / scale.unit)

    def left(self, columns: Array, features: Sequence[Feature]) -> tuple[Array, Flags]:
        """Return what is left of each column, for all features."""
        turned = blas.dtrmm(1.0, self.inverse, columns.T, side=1)
        several = [list(f.columns) for f in features if len(f.columns) > 1]
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


def _by_cholesky(rows: Array) -> tuple[Array, Array] | None:
    """Return R⁻¹ and the slopes of the last column; None where squaring loses too much."""
    gram = rows.T @ rows
    R, singular = lapack.dpotrf(gram[:-1, :-1])
    inverse = R if singular else lapack.dtrtri(R)[0]
    inflation = gram.diagonal()[:-1] * np.einsum("ij,ij->i", inverse, inverse)
    if singular or not inflation.max() < MILD_INFLATION:
        return None
    return inverse, lapack.dpotrs(R, gram[:-1, -1])[0]


def _by_qr(rows: Array) -> tuple[Array, Array] | None:
    """Return R⁻¹ and the slopes of the last column; None where R is near singular."""
    size = int(lapack.dgeqrf_lwork(*rows.shape)[0])
    packed = lapack.dgeqrf(rows, lwork=size)[0]
    p = rows.shape[1] - 1
    R = np.tril(packed[:p, :p].T).T  # in the order LAPACK likes
    inverse, singular = lapack.dtrtri(R)
    if singular or np.linalg.norm(R) * np.linalg.norm(inverse) > ILL_CONDITIONED:
        return None
    return inverse, lapack.dtrtrs(R, packed[:p, p])[0]


def _with_penalty(scale: Scale, rows: Array, ridge: float) -> Array:
    """Return the rows above further ones that hold slopes small."""
    p = rows.shape[1] - 1
    # Without ridge only the slope of a constant column needs a hold.
    held = np.arange(p) if ridge > 0 else np.flatnonzero(scale.spread == 0)
    if not len(held):
        return rows
    holds = np.zeros((len(held), p + 1))
    holds[np.arange(len(held)), held] = np.sqrt(ridge or 1.0) / scale.unit[held]
    return np.vstack([rows, holds])


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
    def of(cls, scale: Scale, rows: Array, ridge: float) -> Decomposition | None:
        """Return the decomposition, or None where the rank is in doubt."""
        # Ridge holds the slopes of raw columns small; without it those of scaled ones are.
        unit = np.full(len(scale.unit), np.sqrt(ridge)) if ridge > 0 else scale.unit
        columns, y = rows[:, :-1] * (scale.unit / unit), rows[:, -1]
        U, size, axes = svd(columns, full_matrices=False, check_finite=False)
        floor = EPS * max(columns.shape) * size.max(initial=0)
        known = size > floor
        if ridge == 0 and (size[known] < IN_DOUBT * size.max(initial=0)).any():
            return None
        U, size, axes = U[:, known], size[known], axes[known].T
        kept = size**2 / (size**2 + 1) if ridge > 0 else np.ones_like(size)
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
