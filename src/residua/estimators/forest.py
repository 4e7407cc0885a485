"""A forest of deep trees, each grown on a bootstrap sample: scikit-learn's."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from residua.estimators import Array

# Numbers are learned in multiples of this share of their spread: their sums are then exact, and
# rounding does not decide between splits that are equally good.
GRID = 2.0**-20


class ForestModel:
    """The mean of trees that may split on any column; class shares for classes."""

    def __init__(
        self, *, trees: int = 100, min_node: int = 5, n_classes: int = 0, seed: int = 0
    ) -> None:
        self.n_classes = n_classes
        self.settings = {
            "n_estimators": trees,
            "min_samples_leaf": min_node,
            "max_features": None,
            "random_state": seed % 2**32,
        }

    def fit(self, X: Array, y: Array, weights: Array | None = None) -> Self:
        """Return the model, fitted to `y`: numbers, or class codes from 0."""
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        # The trees keep columns in single precision: without centring, units would matter.
        self.centre_ = X.mean(axis=0)
        spread = X.std(axis=0)
        self.scale_ = np.where(spread > 0, spread, 1.0)
        kind: Any = RandomForestClassifier if self.n_classes else RandomForestRegressor
        if not self.n_classes:
            self.mean_, self.unit_ = y.mean(), (y.std() or 1.0) * GRID
            y = np.round((y - self.mean_) / self.unit_)
        self.forest_ = kind(**self.settings).fit(self._scaled(X), y, sample_weight=weights)
        return self

    def _scaled(self, X: Array) -> Array:
        return np.asarray((X - self.centre_) / self.scale_)

    def predict(self, X: Array) -> Array:
        """Return means, or class probabilities."""
        if not self.n_classes:
            return np.asarray(self.mean_ + self.unit_ * self.forest_.predict(self._scaled(X)))
        chances = np.zeros((len(X), self.n_classes))
        chances[:, self.forest_.classes_.astype(int)] = self.forest_.predict_proba(self._scaled(X))
        return chances
