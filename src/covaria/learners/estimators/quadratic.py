"""Ridge regression on columns, their squares and products, with the penalty the data choose."""

from __future__ import annotations

from typing import Self

import numpy as np

from covaria.learners.estimators import Array, as_chances, as_targets

# Penalties over the largest singular value squared, from next to none to next to all.
PENALTIES = np.logspace(-9, 1, 41)


class QuadraticModel:
    """Least squares on x, x² and x·x', shrunk by the penalty of least leave-one-out error.

    Classes are regressed on indicators, clipped to chances.
    """

    def __init__(self, *, n_classes: int = 0) -> None:
        self.n_classes = n_classes

    def fit(self, X: Array, y: Array, weights: Array | None = None) -> Self:
        """Return the model, fitted to `y`: numbers, or class codes from 0."""
        w = np.ones(len(y)) if weights is None else weights / weights.mean()
        self.center_ = np.average(X, axis=0, weights=w)
        spread = np.sqrt(np.average((X - self.center_) ** 2, axis=0, weights=w))
        self.scale_ = np.where(spread > 0, spread, np.inf)
        terms = self._terms(X)
        self.mean_ = np.average(terms, axis=0, weights=w)
        size = np.sqrt(np.average((terms - self.mean_) ** 2, axis=0, weights=w))
        self.size_ = np.where(size > 1e-9, size, np.inf)
        M = (terms - self.mean_) / self.size_ * np.sqrt(w)[:, None]
        targets = as_targets(y, self.n_classes)
        self.start_ = np.average(targets, axis=0, weights=w)
        self.slopes_ = _least_error(M, (targets - self.start_) * np.sqrt(w)[:, None], w)
        return self

    def _terms(self, X: Array) -> Array:
        """Return the columns and all their products, of values that reach no further than 5 sd."""
        Z = np.clip((X - self.center_) / self.scale_, -5, 5)
        first, second = np.triu_indices(Z.shape[1])
        return np.hstack([Z, Z[:, first] * Z[:, second]])

    def predict(self, X: Array) -> Array:
        """Return means, or a row of probabilities per row of X."""
        found = self.start_ + (self._terms(X) - self.mean_) / self.size_ @ self.slopes_
        if not self.n_classes:
            return np.asarray(found[:, 0])
        return as_chances(found)


def _least_error(M: Array, targets: Array, weights: Array) -> Array:
    """Return the slopes at the penalty of least leave-one-out error over all targets."""
    U, d, V = np.linalg.svd(M, full_matrices=False)
    if not d.size or d[0] <= 0:
        return np.zeros((M.shape[1], targets.shape[1]))
    rotated = U.T @ targets
    errors = []
    for penalty in PENALTIES * d[0] ** 2:
        shrink = d**2 / (d**2 + penalty)
        left = targets - U @ (shrink[:, None] * rotated)
        # The mean takes one degree of freedom of its own.
        leverage = np.square(U) @ shrink + weights / weights.sum()
        errors.append(np.sum((left / np.maximum(1 - leverage, 1e-6)[:, None]) ** 2))
    penalty = PENALTIES[int(np.argmin(errors))] * d[0] ** 2
    return np.asarray(V.T @ ((d / (d**2 + penalty))[:, None] * rotated))
