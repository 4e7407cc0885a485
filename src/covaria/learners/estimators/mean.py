"""The model that learns nothing from the columns: the mean, or the share of each class."""

from __future__ import annotations

from typing import Self

import numpy as np

from covaria.learners.estimators import Array


class MeanModel:
    """Predict the mean of the target, whatever the columns say."""

    def __init__(self, *, n_classes: int = 0) -> None:
        self.n_classes = n_classes

    def fit(self, X: Array, y: Array, weights: Array | None = None) -> Self:
        """Return the model, fitted to `y`: numbers, or class codes from 0."""
        targets = np.eye(self.n_classes)[y.astype(int)] if self.n_classes else y
        self.mean_ = np.average(targets, axis=0, weights=weights)
        self.used_ = np.zeros(X.shape[1], dtype=bool)
        return self

    def predict(self, X: Array) -> Array:
        """Return the mean for every row."""
        return np.tile(self.mean_, (len(X), 1)) if self.n_classes else np.full(len(X), self.mean_)
