"""Additive models: one smooth curve per column, as in R's gam::gam(y ~ s(x, df = 4)).

Hastie and Tibshirani, Generalized Additive Models (1990). Each curve is a penalised cubic
spline; all of them are found by one solve, which is where backfitting would converge to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit

from residua.estimators import Array

# Small beside a column of variance one, large beside rounding: it shares a slope evenly
# between duplicated columns and leaves every other fit alone.
RIDGE = 1e-9
FLOOR = 1e-6  # no probability comes nearer to 0 or 1
TINY = float(np.finfo(float).tiny)  # keeps logarithms and quotients finite


def place_knots(values: Array, size: int, degree: int) -> Array:
    """Return the knots of at most `size` B-splines on [0, 1], at quantiles of the values."""
    inner = np.quantile(values, np.linspace(0, 1, size - degree + 1)[1:-1])
    # Under a wild tail knots crowd so closely that only rounding would tell them apart.
    inner = np.setdiff1d(inner.round(5), [0, 1])
    return np.concatenate([np.zeros(degree + 1), inner, np.ones(degree + 1)])


def basis(u: Array, knots: Array, degree: int) -> Array:
    """Return the B-splines at `u`, continued as straight lines outside [0, 1]."""
    inside = np.clip(u, 0, 1)
    values = evaluate(inside, knots, degree)
    if (u == inside).all():
        return values
    return values + (u - inside)[:, None] * evaluate(inside, knots, degree, derivative=1)


def evaluate(u: Array, knots: Array, degree: int, *, derivative: int = 0) -> Array:
    """Return every B-spline, or a derivative of it, at points of [0, 1]."""
    spline = BSpline(knots, np.eye(len(knots) - degree - 1), degree)
    return np.asarray(spline(u, derivative))


def roughness(knots: Array, degree: int) -> Array:
    """Return the integrals of all products of two B-splines' second derivatives."""
    ends = np.unique(knots)
    half = np.diff(ends) / 2
    # Second derivatives are straight between knots, so two Gauss points are exact.
    points = ends[:-1] + half + np.outer([-1, 1], half / np.sqrt(3))
    bend = evaluate(points.ravel(), knots, degree, derivative=2)
    return gram(bend, np.tile(half, 2))


@dataclass(frozen=True)
class Term:
    """One column's curve, in the basis where its fit and its penalty are both diagonal.

    On the training rows the columns of `design` have mean zero, variance one and no
    correlation, and the roughness of the curve with coefficients b is sum(penalty * b**2).
    """

    low: float
    span: float
    degree: int
    knots: Array
    mix: Array
    center: Array
    penalty: Array

    @classmethod
    def through(cls, x: Array, weights: Array, *, size: int = 12) -> Self:
        """Return the term of a column; with three distinct values or fewer it is a line."""
        low, span = float(x.min()), float(np.ptp(x))
        # A spread that is only rounding makes a constant column, not a narrow one.
        span = span if span > 1e-12 * np.abs(x).max() else 1.0
        u = (x - low) / span
        distinct = np.unique(u.round(9))
        degree = 3 if len(distinct) > 3 else 1
        knots = place_knots(distinct, min(size, len(distinct)) if degree == 3 else 2, degree)
        raw = basis(u, knots, degree)
        center = weights @ raw
        mix, penalty = diagonalise(raw - center, weights, roughness(knots, degree))
        return cls(low, span, degree, knots, mix, center @ mix, penalty)

    def design(self, x: Array) -> Array:
        """Return the values of the basis at `x`, straight lines outside the training range."""
        u = (x - self.low) / self.span
        return basis(u, self.knots, self.degree) @ self.mix - self.center

    def slope(self, x: Array) -> Array:
        """Return the derivative of the basis at `x`."""
        u = np.clip((x - self.low) / self.span, 0, 1)
        return evaluate(u, self.knots, self.degree, derivative=1) @ self.mix / self.span


def diagonalise(centred: Array, weights: Array, rough: Array) -> tuple[Array, Array]:
    """Return the mix of columns that makes them orthonormal and uncouples the roughness."""
    scale, axes = np.linalg.eigh(gram(centred, weights))
    # The constant, and whatever the rows cannot tell apart, has no variance and goes.
    known = scale > 1e-9 * max(scale[-1], 1e-3)
    white = axes[:, known] / np.sqrt(scale[known])
    penalty, turn = np.linalg.eigh(white.T @ rough @ white)
    # Whatever rounding says, a straight line is not rough and every other curve is.
    penalty = np.maximum(penalty, 1e-16 * penalty.max(initial=0))
    penalty[:1] = 0
    return white @ turn, penalty


def smoothing_for(term: Term, df: float) -> float:
    """Return the smoothing at which the column's own smoother has trace `df` + 1."""
    bent = term.penalty[1:]
    if not len(bent):
        return 0.0
    low, high = np.log(1e-9 / bent[-1]), np.log(1e9 / bent[0])

    def excess(log_smoothing: float) -> float:
        return float(1 + np.sum(1 / (1 + np.exp(log_smoothing) * bent)) - df)

    if excess(low) <= 0:
        return 0.0
    return float(np.exp(brentq(excess, low, high) if excess(high) < 0 else high))


def penalties(terms: Sequence[Term], smoothing: Sequence[float] | Array) -> Array:
    """Return the diagonal penalty of intercept and terms, each at its own smoothing."""
    parts = [s * t.penalty + RIDGE for s, t in zip(smoothing, terms, strict=True)]
    return np.concatenate([np.zeros(1), *parts])


def design(terms: Sequence[Term], X: Array) -> Array:
    """Return the intercept and every term's columns, side by side."""
    blocks = [term.design(x) for term, x in zip(terms, X.T, strict=True)]
    return np.column_stack([np.ones(len(X)), *blocks])


def gram(M: Array, weights: Array) -> Array:
    """Return the weighted products of all pairs of columns."""
    product: Array = M.T @ (weights[:, None] * M)
    return product


def least_squares(M: Array, y: Array, weights: Array, penalty: Array) -> Array:
    """Return the coefficients of the penalised weighted least squares fit."""
    return solve(gram(M, weights) + np.diag(penalty), M.T @ (weights * y))


def solve(A: Array, b: Array) -> Array:
    """Return the solution of a positive definite system."""
    solution: Array = cho_solve(cho_factor(A), b)
    return solution


def choose_smoothing(terms: Sequence[Term], M: Array, y: Array, weights: Array) -> Array:
    """Return one smoothing per term, together minimising generalised cross-validation."""
    if not any(len(term.penalty) for term in terms):
        return np.zeros(len(terms))
    centred = y - weights @ y
    square = float(weights @ centred**2)
    score = Gcv(terms, gram(M, weights), M.T @ (weights * centred), square, len(y))
    # Curves that could use up more than half the rows would make the score meaningless.
    most = max(1.02, len(y) / 2 / len(terms))
    ends = [[smoothing_for(term, df) for term in terms] for df in (most, min(4, most), 1.01)]
    low, start, high = np.log(np.maximum(ends, 1e-12))
    bounds = list(zip(low, high, strict=True))
    found = minimize(score, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return np.exp(np.asarray(found.x))


@dataclass(frozen=True)
class Gcv:
    """The logarithm of generalised cross-validation, a function of the log smoothings."""

    terms: Sequence[Term]
    gram: Array
    right: Array
    square: float
    n_rows: int

    def __call__(self, log_smoothing: Array) -> tuple[float, Array]:
        """Return the score and its gradient."""
        penalty = penalties(self.terms, np.exp(log_smoothing))
        inverse = solve(self.gram + np.diag(penalty), np.eye(len(penalty)))
        shrink = inverse @ self.gram
        b = inverse @ self.right
        error = self.square - float(b @ self.right + penalty @ b**2)
        error = max(error, 1e-12 * self.square + TINY)
        free = max(1 - np.trace(shrink) / self.n_rows, 1e-3)
        more_error = b * (inverse @ (penalty * b))
        more_free = np.sum(shrink * inverse, axis=1) / self.n_rows
        gradient = 2 * self._by_term(penalty * (more_error / error - more_free / free))
        return float(np.log(error) - 2 * np.log(free)), gradient

    def _by_term(self, values: Array) -> Array:
        owner = np.repeat(np.arange(len(self.terms)), [len(t.penalty) for t in self.terms])
        return np.bincount(owner, values[1:], minlength=len(self.terms)).astype(float)


def logistic(M: Array, y: Array, weights: Array, penalty: Array) -> Array:
    """Return the coefficients of the penalised logistic fit, by Newton steps."""

    def loss(b: Array) -> float:
        eta = M @ b
        return float(weights @ (np.logaddexp(0, eta) - y * eta) + np.sum(penalty * b**2) / 2)

    b = np.zeros(M.shape[1])
    b[0] = logit(np.clip(weights @ y, FLOOR, 1 - FLOOR))
    for _ in range(30):
        chance = np.clip(expit(M @ b), FLOOR, 1 - FLOOR)
        curvature = gram(M, weights * chance * (1 - chance)) + np.diag(penalty)
        step = solve(curvature, M.T @ (weights * (y - chance)) - penalty * b)
        before, b = b, downhill(loss, b, step)
        if loss(before) - loss(b) < 1e-10:
            break
    return b


def downhill(loss: Callable[[Array], float], start: Array, step: Array) -> Array:
    """Return where the first of ever shorter steps lowers the loss, or the start if none does."""
    before = loss(start)
    for shorter in 0.5 ** np.arange(10):
        if loss(start + shorter * step) < before:
            return np.asarray(start + shorter * step)
    return start


def counted(X: Array, y: Array, weights: Array | None) -> tuple[Array, Array, Array]:
    """Return the rows that carry weight, with weights that sum to one."""
    weights = np.ones(len(y)) if weights is None else weights
    kept = weights > 0
    return X[kept], y[kept], weights[kept] / weights.sum()


def targets(y: Array, n_classes: int) -> list[Array]:
    """Return what to regress on: y itself, or an indicator per class (one of two is enough)."""
    if n_classes == 0:
        return [y]
    return [(y == k).astype(float) for k in (range(n_classes) if n_classes > 2 else [1])]


def probabilities(chances: Array) -> Array:
    """Return class probabilities from one chance per class, or of the second of two."""
    chances = np.clip(chances, FLOOR, 1 - FLOOR)
    if chances.shape[1] == 1:
        return np.hstack([1 - chances, chances])
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


class AdditiveSplines:
    """A sum of smooth curves; for classes a penalised logistic fit, one class against the rest.

    `df` is the degrees of freedom of each curve as in R's s(x, df), that is the trace of the
    column's own smoother less one for the constant; "gcv" lets the data choose them all.
    """

    terms: list[Term]
    coefficients: Array

    def __init__(self, *, df: float | str = 4, n_classes: int = 0) -> None:
        self.df = df
        self.n_classes = n_classes

    def fit(self, X: Array, y: Array, weights: Array | None = None) -> Self:
        """Return the model with its curves fitted."""
        X, y, weights = counted(X, y, weights)
        self.terms = [Term.through(x, weights) for x in X.T]
        M = design(self.terms, X)
        fit_one = self._fit_classes if self.n_classes else self._fit_mean
        fits = [fit_one(M, target, weights) for target in targets(y, self.n_classes)]
        self.coefficients = np.column_stack(fits)
        return self

    def predict(self, X: Array) -> Array:
        """Return means, or a row of probabilities per row of X."""
        curves = design(self.terms, X) @ self.coefficients
        return probabilities(expit(curves)) if self.n_classes else curves[:, 0]

    def _smoothing(self, M: Array, y: Array, weights: Array) -> Array:
        if self.df == "gcv":
            return choose_smoothing(self.terms, M, y, weights)
        return np.array([smoothing_for(term, float(self.df)) for term in self.terms])

    def _fit_mean(self, M: Array, y: Array, weights: Array) -> Array:
        smoothing = self._smoothing(M, y, weights)
        return least_squares(M, y, weights, penalties(self.terms, smoothing))

    def _fit_classes(self, M: Array, y: Array, weights: Array) -> Array:
        chance = np.full(len(y), weights @ y)
        # Fixed df are set at the null model's curvature; "gcv" looks again where it landed.
        for _ in range(3 if self.df == "gcv" else 1):
            chance = np.clip(chance, FLOOR, 1 - FLOOR)
            curvature = weights * chance * (1 - chance)
            working = logit(chance) + (y - chance) / (chance * (1 - chance))
            scale = curvature.sum()
            smoothing = scale * self._smoothing(M, working, curvature / scale)
            b = logistic(M, y, weights, penalties(self.terms, smoothing))
            chance = expit(M @ b)
        return b
