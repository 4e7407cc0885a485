"""The single-index model y = link(theta'x), as in R's gplsim.

Härdle, Hall and Ichimura (1993). The link is a penalised spline whose smoothing minimises
generalised cross-validation; theta minimises the same score, the link being refitted at
every theta (profile least squares).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from covaria.learners.estimators import Array
from covaria.learners.estimators.splines import (
    TINY,
    Term,
    counted,
    gram,
    probabilities,
    solve,
    targets,
)

SMOOTHINGS = np.logspace(-12, 2, 71)


@dataclass(frozen=True)
class Link:
    """A curve through y over one index, with the log GCV score it reaches."""

    term: Term
    mean: float
    coefficients: Array
    shrinkage: Array
    score: float

    @classmethod
    def through(cls, u: Array, y: Array, weights: Array, *, size: int) -> Self:
        """Return the curve at the smoothing of least generalised cross-validation."""
        term = Term.through(u, weights, size=size)
        mean = float(weights @ y)
        centred = y - mean
        loads = term.design(u).T @ (weights * centred)
        shrinkages = 1 / (1 + np.outer(SMOOTHINGS, term.penalty))
        explained = (2 * shrinkages - shrinkages**2) @ loads**2
        scores = gcv(float(weights @ centred**2), explained, 1 + shrinkages.sum(axis=1), len(y))
        best = int(np.argmin(scores))
        shrinkage = shrinkages[best]
        return cls(term, mean, shrinkage * loads, shrinkage, float(scores[best]))

    def __call__(self, u: Array) -> Array:
        """Return the curve at `u`."""
        return self.mean + self.term.design(u) @ self.coefficients

    def slope(self, u: Array) -> Array:
        """Return the derivative of the curve at `u`."""
        return self.term.slope(u) @ self.coefficients

    def unexplained(self, columns: Array, u: Array, weights: Array) -> Array:
        """Return what this curve's smoother leaves of each column."""
        Z = self.term.design(u)
        loads = Z.T @ (weights[:, None] * columns)
        return columns - weights @ columns - (Z * self.shrinkage) @ loads


def gcv(total: float, explained: Array, used: Array, n_rows: int) -> Array:
    """Return the log GCV score at each smoothing, infinite where half the rows are used up."""
    error = np.maximum(total - explained, 1e-12 * total + TINY)
    scores = np.log(error) - 2 * np.log(np.maximum(1 - used / n_rows, 1e-3))
    # The stiffest curve, a straight line, stays allowed however few the rows.
    allowed = (used < 1 + n_rows / 2) | (used == used[-1])
    return np.where(allowed, scores, np.inf)


def unit(direction: Array) -> Array:
    """Return the direction with length one, its largest coordinate positive."""
    largest = direction[np.argmax(np.abs(direction))]
    if largest == 0:
        return np.asarray(np.eye(len(direction))[0])
    return np.asarray(direction / np.linalg.norm(direction) * np.sign(largest))


def starting_directions(X: Array, y: Array, weights: Array) -> list[Array]:
    """Return the least-squares direction and the two principal Hessian directions.

    Least squares is blind to an even link such as exp(-u²); the Hessian is not (Li, 1992).
    """
    scale, axes = np.linalg.eigh(gram(X, weights))
    known = scale > 1e-8 * max(scale[-1], 1e-8)
    white = axes[:, known] / np.sqrt(scale[known])
    Z = X @ white
    slopes = Z.T @ (weights * y)
    left = y - weights @ y - Z @ slopes
    bends, turn = np.linalg.eigh(gram(Z, weights * left))
    steepest = turn[:, np.argsort(-np.abs(bends))[:2]]
    return [unit(white @ start) for start in (slopes, *steepest.T)]


def gauss_newton(link: Link, theta: Array, X: Array, y: Array, weights: Array) -> Array:
    """Return the step of theta, across theta, that the linearised fit asks for."""
    u = X @ theta
    across = X - np.outer(u, theta)
    slopes = link.unexplained(link.slope(u)[:, None] * across, u, weights)
    curvature = gram(slopes, weights)
    ridge = 1e-8 * np.trace(curvature) + TINY
    return solve(curvature + ridge * np.eye(len(theta)), slopes.T @ (weights * (y - link(u))))


@dataclass(frozen=True)
class Index:
    """One direction with the link along it."""

    theta: Array
    link: Link

    @classmethod
    def along(cls, theta: Array, X: Array, y: Array, weights: Array, *, size: int) -> Self:
        """Return the best link along a direction."""
        return cls(theta, Link.through(X @ theta, y, weights, size=size))

    def improved(self, X: Array, y: Array, weights: Array, *, size: int, steps: int) -> Index:
        """Return the index after at most `steps` Gauss-Newton steps downhill."""
        best = self
        for _ in range(steps):
            step = gauss_newton(best.link, best.theta, X, y, weights)
            before = best
            for shorter in 0.5 ** np.arange(8):
                theta = unit(best.theta + shorter * step)
                trial = Index.along(theta, X, y, weights, size=size)
                if trial.link.score < best.link.score:
                    best = trial
                    break
            if before.link.score - best.link.score < 1e-7:
                break
        return best

    def __call__(self, X: Array) -> Array:
        """Return the fitted mean."""
        return self.link(X @ self.theta)


def fit_index(X: Array, y: Array, weights: Array, *, size: int) -> Index:
    """Return the best index found from all starts."""
    tries = [
        Index.along(theta, X, y, weights, size=size).improved(X, y, weights, size=size, steps=4)
        for theta in starting_directions(X, y, weights)
    ]
    best = min(tries, key=lambda index: index.link.score)
    return best.improved(X, y, weights, size=size, steps=40)


class SingleIndexModel:
    """One curve along one direction; for classes one such model per class, normalised.

    `theta` belongs to the standardised columns, has length one and a positive largest
    coordinate. Classes are fitted by least squares on their indicators, and the fitted
    chances are clipped to [0.001, 0.999]. `knots` is the number of B-splines of the link.
    """

    center: Array
    scale: Array
    indices: list[Index]

    def __init__(self, *, knots: int = 13, n_classes: int = 0) -> None:
        self.knots = knots
        self.n_classes = n_classes

    def fit(self, X: Array, y: Array, weights: Array | None = None) -> Self:
        """Return the model with its directions and links fitted."""
        X, y, weights = counted(X, y, weights)
        self.center, self.scale = center_and_scale(X, weights)
        Z = self._standardised(X)
        self.indices = [
            fit_index(Z, target, weights, size=self.knots) for target in targets(y, self.n_classes)
        ]
        return self

    def predict(self, X: Array) -> Array:
        """Return means, or a row of probabilities per row of X."""
        curves = np.column_stack([index(self._standardised(X)) for index in self.indices])
        if self.n_classes:
            return probabilities(np.clip(curves, 1e-3, 1 - 1e-3))
        return curves[:, 0]

    @property
    def theta(self) -> Array:
        """Return the direction of the (first) index."""
        return self.indices[0].theta

    def _standardised(self, X: Array) -> Array:
        # Without columns the index is a constant, and its link the mean.
        Z = (X - self.center) / self.scale
        return Z if Z.shape[1] else np.zeros((len(X), 1))


def center_and_scale(X: Array, weights: Array) -> tuple[Array, Array]:
    """Return the columns' weighted means and standard deviations, one where they are zero."""
    # Plain sums, not BLAS: they give the same bits however many threads it has.
    center = (weights[:, None] * X).sum(axis=0)
    scale = np.sqrt((weights[:, None] * (X - center) ** 2).sum(axis=0))
    # A constant column's spread is only rounding, which a division would magnify.
    varies = scale > 1e-12 * np.maximum(1, np.abs(center))
    return np.where(varies, center, X[np.argmax(weights)]), np.where(varies, scale, 1.0)
