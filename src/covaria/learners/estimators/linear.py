"""Least squares, ridge and logistic regression."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np

from covaria.learners.estimators import Array

# Separated classes have no finite maximum-likelihood fit; this much ridge gives them one.
WHISPER_OF_RIDGE = 1e-4


class LinearModel:
    """A mean, or class log-odds, that is linear in the columns; the intercept is not shrunk."""

    def __init__(
        self, *, ridge: float = 0.0, is_unitless: bool = False, n_classes: int = 0
    ) -> None:
        self.ridge = ridge
        self.is_unitless = is_unitless
        self.n_classes = n_classes

    def fit(self, X: Array, y: Array, weights: Array | None = None) -> Self:
        """Return self, fitted."""
        self.centre_ = np.average(X, axis=0, weights=weights)
        spread = np.sqrt(np.average((X - self.centre_) ** 2, axis=0, weights=weights))
        # A column that varies by rounding alone is constant: its scale must not blow it up.
        varies = spread > 64 * np.finfo(float).eps * np.abs(self.centre_)
        self.scale_ = np.where(varies, spread, 1.0)
        if self.n_classes:
            self._fit_classes(X, y, weights)
        else:
            self._fit_numbers(X, y, weights)
        return self

    def _fit_numbers(self, X: Array, y: Array, weights: Array | None) -> None:
        root = np.ones(len(y)) if weights is None else np.sqrt(weights)
        self.mean_ = float(np.average(y, weights=weights))
        Z = (X - self.centre_) / self.scale_ * root[:, None]
        target = (y - self.mean_) * root
        if self.ridge > 0:
            # Extra rows whose squares are ridge × |slope|², of the raw columns or of the scaled.
            unit = np.ones_like(self.scale_) if self.is_unitless else self.scale_
            Z = np.vstack([Z, np.diag(np.sqrt(self.ridge) / unit)])
            target = np.concatenate([target, np.zeros(X.shape[1])])
        self.slope_ = np.linalg.lstsq(Z, target, rcond=None)[0]

    def _fit_classes(self, X: Array, y: Array, weights: Array | None) -> None:
        from sklearn.linear_model import LogisticRegression

        solver: Any = LogisticRegression(
            C=1 / (self.ridge or WHISPER_OF_RIDGE), solver="newton-cholesky", max_iter=200
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an unfinished Newton path is still a good fit
            self.logit_ = solver.fit((X - self.centre_) / self.scale_, y, sample_weight=weights)

    def predict(self, X: Array) -> Array:
        """Return means, or class probabilities."""
        Z = (X - self.centre_) / self.scale_
        if not self.n_classes:
            return np.asarray(self.mean_ + Z @ self.slope_)
        seen = self.logit_.classes_.astype(int)
        probabilities = np.zeros((len(X), self.n_classes))
        probabilities[:, seen] = self.logit_.predict_proba(Z)
        return probabilities
