"""The lasso's minima for a list of penalties: numbers and two classes.

`lasso_homotopy` follows the exact path where there is a Gram matrix, else scikit-learn does (Efron,
Hastie, Johnstone and Tibshirani, "Least angle regression", Annals of Statistics 32, 2004). Each
answer is checked against the conditions of a minimum; one that is off is mended by coordinate
descent. Two classes take Newton steps around it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covaria.execution.compiling import has_numba
from covaria.tables.layout import is_constant

Array = NDArray[np.float64]
ColumnNumbers = NDArray[np.intp]

# glmnet's: the gain in explained deviance at which the path ends, and where probabilities are cut.
LEAST_GAIN, ENOUGH_EXPLAINED, FEWEST_LAMBDAS = 1e-5, 0.999, 5
PROBABILITY_CUT = 1e-5

# The same for `follow`: where the path may end, and where it goes on to the last lambda.
STOPS = np.array([LEAST_GAIN, ENOUGH_EXPLAINED, FEWEST_LAMBDAS])
GOES_ON = np.array([-np.inf, np.inf, 0.0])

# Ours. The target has length one, so these are shares.
SLACK = 1e-9
ROUNDING = 1e-12
GAP = 1e-14
REPEATED = 1e-10
PASSES, LAST_PASSES, ROUNDS = 100, 10_000, 20
# scikit-learn's path ends when within 1e-7 of the last lambda, on whatever scale it is given.
MAGNIFIED = 2.0**20
MOST_BENDS = 20
# Machine code takes nine seconds to make, once; below this many columns there is less to gain.
COMPILED_FROM = 100
NEWTON_STEPS, NEWTON_CHANGE = 100, 1e-4
LEAST_VARIANCE = 1e-12


@dataclass(frozen=True)
class Path:
    """The coefficients on the raw scale of X, a row for each lambda, the lambdas decreasing."""

    lambdas: Array
    coefs: Array
    intercepts: Array


@dataclass(frozen=True)
class Columns:
    """The columns that vary, at mean 0 and variance 1, and how to go back."""

    X: Array
    varying: NDArray[np.bool_]
    mean: Array
    scale: Array

    @classmethod
    def of(cls, X: Array, weights: Array) -> Columns:
        largest = np.abs(X).max(axis=0, initial=0.0)
        varying = np.ptp(X, axis=0) > 64 * np.finfo(float).eps * largest
        kept = np.asfortranarray(X[:, varying])
        mean = weights @ kept
        centred = kept - mean
        # Once more, since a mean far from 0 leaves its rounding behind.
        rest = weights @ centred
        centred -= rest
        scale = np.sqrt(weights @ centred**2)
        centred /= scale
        return cls(centred, varying, mean + rest, scale)

    @property
    def n_varying(self) -> int:
        return len(self.scale)

    def raw(self, lambdas: Array, slopes: Array, levels: Array) -> Path:
        """Return the path for the columns as they were given; `levels` are at their means."""
        coefs = np.zeros((len(lambdas), len(self.varying)))
        coefs[:, self.varying] = slopes / self.scale
        return Path(lambdas, coefs, levels - coefs[:, self.varying] @ self.mean)


def _ends(explained: Sequence[float] | Array, *, relative: bool) -> bool:
    """Return whether the path stops here: glmnet asks for a gain relative only for numbers."""
    if len(explained) < FEWEST_LAMBDAS:
        return False
    least = LEAST_GAIN * explained[-1] if relative else LEAST_GAIN
    return bool(explained[-1] - explained[-2] < least or explained[-1] > ENOUGH_EXPLAINED)


# --- numbers ------------------------------------------------------------------------------


class Numbers:
    """The lasso of a target of numbers, scaled to length one."""

    def __init__(self, columns: Columns, y: Array, weights: Array) -> None:
        self.level = float(weights @ y)
        left = np.zeros_like(y) if is_constant(y) else y - self.level
        self.size = float(np.sqrt(weights @ left**2))
        root = np.sqrt(weights)
        target = root * left / (self.size or 1.0)
        rows = root[:, None] * columns.X
        self._quadratic: _Quadratic = _ByRows(rows, target)
        if rows.shape[0] >= rows.shape[1]:
            self._quadratic = _ByGram(rows.T @ rows, rows.T @ target)

    @property
    def top(self) -> float:
        """Return the smallest lambda at which all coefficients are 0."""
        return self.size * float(np.abs(self._quadratic.pull).max(initial=0.0))

    def solve(self, lambdas: Array, *, ends: bool) -> tuple[Array, Array]:
        """Return coefficients and levels for each lambda, until the path ends by itself."""
        coefs = self._quadratic.minima(lambdas / self.size, ends=ends)
        length = self._quadratic.length(coefs) if ends else len(coefs)
        return coefs[:length] * self.size, np.full(length, self.level)


class _Quadratic(ABC):
    """½ b'Gb − c'b with G = R'R and c = R'z, for some rows R and a target z of length one."""

    pull: Array
    """c: how steeply each coefficient is pulled away from 0."""

    @abstractmethod
    def times(self, coefs: Array) -> Array:
        """Return G b, for one b or for a row each."""

    @abstractmethod
    def block(self, active: ColumnNumbers) -> Array:
        """Return the rows and columns of G that belong to the active coefficients."""

    @abstractmethod
    def _bends(self, last: float) -> tuple[Array, Array]:
        """Return the lambdas down to the last at which the path bends, and coefficients there."""

    @abstractmethod
    def _descended(self, lam: float, start: Array, passes: int) -> Array:
        """Return the coefficients after these passes of coordinate descent."""

    def explained(self, coefs: Array) -> Array:
        """Return the share of a target of length one that each row of coefficients explains."""
        return np.asarray((coefs * (2 * self.pull - self.times(coefs))).sum(axis=1))

    def length(self, coefs: Array) -> int:
        """Return after how many lambdas the path ends by itself, or else all of them."""
        explained = self.explained(coefs)
        stops = (m for m in range(1, len(coefs) + 1) if _ends(explained[:m], relative=True))
        return next(stops, len(coefs))

    def minima(self, lambdas: Array, *, ends: bool = False) -> Array:
        """Return the minimum with λ‖b‖₁ added, a row for each lambda; `ends` may leave out those
        after the path's own end.

        Coefficients are straight lines in λ between the few lambdas at which a column comes in
        or goes out. Where such a path goes wrong (ties, columns that repeat others), the
        answer is sought from that of the lambda before.
        """
        coefs = _without_rounding(self._followed(lambdas, ends=ends))
        lambdas = lambdas[: len(coefs)]
        for at in np.flatnonzero(self._misses(lambdas, coefs) > SLACK):
            start = coefs[at - 1] if at else np.zeros(len(self.pull))
            coefs[at] = self.minimum(float(lambdas[at]), start)
        return coefs

    def _followed(self, lambdas: Array, *, ends: bool) -> Array:
        """Return what the path has for these lambdas, right or wrong."""
        bends, at_bends = self._bends(float(lambdas[-1]))
        return interpolated(bends, at_bends, lambdas)

    def _misses(self, lambdas: Array, coefs: Array) -> Array:
        """Return how far each row is from a minimum: where a slope is not λ, or beyond it."""
        slope = self.pull - self.times(coefs)
        bound = np.asarray(lambdas)[..., None]
        miss = np.where(coefs != 0, np.abs(slope - bound * np.sign(coefs)), np.abs(slope) - bound)
        return np.asarray(miss.max(axis=-1, initial=0.0))

    def minimum(self, lam: float, coef: Array) -> Array:
        """Return the minimum for one lambda: exact steps, and descents where signs must change."""
        for _ in range(ROUNDS):
            coef, is_minimum = self._solved(lam, coef)
            if is_minimum:
                return coef
            coef = self._descended(lam, coef, PASSES)
        return self._descended(lam, coef, LAST_PASSES)

    def _solved(self, lam: float, coef: Array) -> tuple[Array, bool]:
        """Return the minimum if the signs of `coef` are the right ones, else a step towards it."""
        active = np.flatnonzero(coef)
        here, signs = coef[active], np.sign(coef[active])
        goal = _root(self.block(active), self.pull[active] - lam * signs, here)
        moved = np.zeros_like(coef)
        moved[active] = goal
        kept = goal * signs > 0
        if kept.all():
            return moved, bool(self._misses(np.array(lam), moved) <= SLACK)
        # The objective falls all the way to where the first coefficient turns 0.
        reach = np.where(kept, np.inf, here / np.where(kept, 1.0, here - goal))
        first = int(np.argmin(reach))
        moved[active] = here + reach[first] * (goal - here)
        moved[active[first]] = 0.0
        return moved, False


class _ByGram(_Quadratic):
    """The quadratic kept as G and c."""

    def __init__(self, gram: Array, pull: Array) -> None:
        self._gram, self.pull = np.ascontiguousarray(gram), pull

    def times(self, coefs: Array) -> Array:
        return coefs @ self._gram

    def block(self, active: ColumnNumbers) -> Array:
        return self._gram[np.ix_(active, active)]

    def _followed(self, lambdas: Array, *, ends: bool) -> Array:
        if len(self.pull) < COMPILED_FROM or not has_numba():
            return super()._followed(lambdas, ends=ends)
        from covaria.methods.lasso_homotopy import follow

        coefs, reached = follow(self._gram, self.pull, lambdas, STOPS if ends else GOES_ON)
        if reached == len(lambdas) or (ends and reached > self.length(coefs[:reached])):
            return np.asarray(coefs[:reached])
        return super()._followed(lambdas, ends=ends)

    def _bends(self, last: float) -> tuple[Array, Array]:
        from sklearn.linear_model import lars_path_gram

        most = MOST_BENDS * len(self.pull)
        pull, end = self.pull * MAGNIFIED, last * MAGNIFIED
        with _quietly():
            lambdas, _, coefs = lars_path_gram(
                pull, self._gram, n_samples=1, alpha_min=end, max_iter=most, method="lasso"
            )
        return lambdas / MAGNIFIED, coefs.T / MAGNIFIED

    def _descended(self, lam: float, start: Array, passes: int) -> Array:
        # Beside a Gram matrix only the shape of X is looked at.
        X, y = np.zeros((1, len(self.pull)), order="F"), np.ones(1)
        return _descend(X, y, lam, start, passes, precompute=self._gram, Xy=self.pull)


class _ByRows(_Quadratic):
    """The quadratic kept as R and z: less to do than with G where columns outnumber rows."""

    def __init__(self, rows: Array, target: Array) -> None:
        self._rows, self._target = np.asfortranarray(rows), target
        self.pull = rows.T @ target

    def times(self, coefs: Array) -> Array:
        return (coefs @ self._rows.T) @ self._rows

    def block(self, active: ColumnNumbers) -> Array:
        return self._rows[:, active].T @ self._rows[:, active]

    def _bends(self, last: float) -> tuple[Array, Array]:
        from sklearn.linear_model import lars_path

        most = MOST_BENDS * len(self.pull)
        # scikit-learn divides by the number of rows.
        root, end = np.sqrt(len(self._rows)), last * MAGNIFIED
        X, y = self._rows * root, self._target * (root * MAGNIFIED)
        with _quietly():
            lambdas, _, coefs = lars_path(
                X, y, Gram=None, alpha_min=end, max_iter=most, method="lasso", copy_X=False
            )
        return lambdas / MAGNIFIED, coefs.T / MAGNIFIED

    def _descended(self, lam: float, start: Array, passes: int) -> Array:
        lam = lam / len(self._rows)
        return _descend(self._rows, self._target, lam, start, passes, precompute=False)


def _descend(X: Array, y: Array, lam: float, start: Array, passes: int, **given: object) -> Array:
    """Return the coefficients after these passes of coordinate descent."""
    from sklearn.linear_model import lasso_path as descend

    given |= {"coef_init": start.copy(), "tol": GAP, "max_iter": passes, "check_input": False}
    with _quietly():
        _, coefs, _ = descend(X, y, alphas=np.array([lam]), **given)
    return _without_rounding(np.ascontiguousarray(coefs[:, 0]))


def _root(matrix: Array, pull: Array, here: Array) -> Array:
    """Return where the quadratic's slope is 0; where it is so nowhere, a far point downhill."""
    try:
        goal = np.linalg.solve(matrix, pull)
        if np.abs(matrix @ goal - pull).max(initial=0.0) <= SLACK:
            return np.asarray(goal)
    except np.linalg.LinAlgError:
        pass
    # Some columns repeat others: of all steps that do, take the shortest.
    step = np.linalg.lstsq(matrix, pull - matrix @ here, rcond=REPEATED)[0]
    flat = pull - matrix @ (here + step)
    return np.asarray(here + step if np.abs(flat).max() <= SLACK else here + flat / SLACK)


def _without_rounding(coefs: Array) -> Array:
    """Return coefficients in which those that a column out of use left behind are 0."""
    return np.where(np.abs(coefs) < ROUNDING, 0.0, coefs)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep scikit-learn's remarks to ourselves: every answer is checked."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def interpolated(known: Array, values: Array, lambdas: Array) -> Array:
    """Return rows of values at these lambdas, on straight lines between those known."""
    if len(known) == 1:
        return np.repeat(values, len(lambdas), axis=0)
    place = np.interp(lambdas, known[::-1], np.arange(len(known))[::-1])
    left = np.minimum(place.astype(np.intp), len(known) - 2)
    share = (place - left)[:, None]
    return np.asarray(values[left] * (1 - share) + values[left + 1] * share)


# --- two classes --------------------------------------------------------------------------


def probability(link: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(link))


@dataclass(frozen=True)
class _Point:
    """Coefficients and level, and the log-odds they give each row."""

    coef: Array
    level: float
    link: Array

    def moved(self, size: float, step: _Point) -> _Point:
        """Return the point this share of a step away."""
        coef, level = self.coef + size * step.coef, self.level + size * step.level
        return _Point(coef, level, self.link + size * step.link)


class TwoClasses:
    """The lasso of log-odds, by Newton steps, each of them a lasso of numbers."""

    size = 1.0

    def __init__(self, columns: Columns, y: Array, weights: Array) -> None:
        self._X, self._y, self._weights = columns.X, y, weights
        self._is_one_class = is_constant(y)
        share = float(weights @ y)
        if self._is_one_class:
            share = float(np.clip(share, PROBABILITY_CUT, 1 - PROBABILITY_CUT))
        self.level = float(np.log(share / (1 - share)))
        self._null = _Point(np.zeros(columns.n_varying), self.level, np.full(len(y), self.level))

    @property
    def top(self) -> float:
        """Return the smallest lambda at which all coefficients are 0."""
        if self._is_one_class:
            return 0.0
        return float(np.abs(self._slope(self._null)).max(initial=0.0))

    def solve(self, lambdas: Array, *, ends: bool) -> tuple[Array, Array]:
        """Return coefficients and levels for each lambda, until the path ends by itself."""
        null_deviance = self._deviance(self._null)
        found: list[_Point] = []
        explained: list[float] = []
        point, slope, last = self._null, self._slope(self._null), max(self.top, lambdas[0])
        for lam in lambdas:
            # The sequential strong rule: few columns beyond these come in, and are looked for.
            tried = (point.coef != 0) | (np.abs(slope) >= 2 * lam - last)
            point, slope = self._minimum(float(lam), point, tried)
            last = lam
            found.append(point)
            explained.append(1 - self._deviance(point) / null_deviance)
            if ends and _ends(explained, relative=False):
                break
        return np.array([p.coef for p in found]), np.array([p.level for p in found])

    def _minimum(self, lam: float, point: _Point, tried: NDArray[np.bool_]) -> tuple[_Point, Array]:
        """Return the minimum for one lambda, and the slope of the likelihood there."""
        while True:
            point = self._minimum_among(np.flatnonzero(tried), lam, point)
            slope = self._slope(point)
            missed = ~tried & (np.abs(slope) > lam + SLACK)
            if not missed.any():
                return point, slope
            tried = tried | missed

    def _minimum_among(self, tried: ColumnNumbers, lam: float, point: _Point) -> _Point:
        """Return the minimum in which only the tried columns may have a coefficient."""
        X = self._X[:, tried]
        for _ in range(NEWTON_STEPS):
            step = self._newton_step(X, tried, lam, point)
            size = self._step_size(lam, point, step)
            point = point.moved(size, step)
            # Newton's error is about squared by each step.
            if size * np.abs(step.link).max() <= NEWTON_CHANGE:
                break
        return point

    def _newton_step(self, X: Array, tried: ColumnNumbers, lam: float, point: _Point) -> _Point:
        """Return how far the quadratic approximation here would move."""
        share = probability(point.link)
        left = self._weights * (self._y - share)
        variance = self._weights * np.maximum(share * (1 - share), LEAST_VARIANCE)
        total, total_left = float(variance.sum()), float(left.sum())
        mean = variance @ X / total
        rows = np.sqrt(variance)[:, None] * X
        gram = rows.T @ rows - total * np.outer(mean, mean)
        here = point.coef[tried]
        pull = gram @ here + left @ X - total_left * mean
        step = _ByGram(gram, pull).minimum(lam, here) - here
        coef = np.zeros_like(point.coef)
        coef[tried] = step
        level = total_left / total - float(mean @ step)
        return _Point(coef, level, X @ step + level)

    def _step_size(self, lam: float, point: _Point, step: _Point) -> float:
        """Return the first of 1, ½, ¼, … at which the objective does not grow, or else 0."""
        # Third derivatives are at most second ones: within 1 a full step always gains.
        if np.abs(step.link).max() <= 1:
            return 1.0
        value = self._objective(lam, point)
        for size in 0.5 ** np.arange(30):
            if self._objective(lam, point.moved(size, step)) <= value:
                return float(size)
        return 0.0

    def _slope(self, point: _Point) -> Array:
        left = self._weights * (self._y - probability(point.link))
        return np.asarray(left @ self._X)

    def _deviance(self, point: _Point) -> float:
        return float(2 * self._weights @ (np.logaddexp(0, point.link) - self._y * point.link))

    def _objective(self, lam: float, point: _Point) -> float:
        return self._deviance(point) / 2 + lam * float(np.abs(point.coef).sum())


Problem = Numbers | TwoClasses
