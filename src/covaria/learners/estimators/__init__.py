"""How one model of each learner family is fitted: plain, exact and without tricks.

Every class here keeps the promise of `Model`. It is the reference that the fast engines
have to equal, so it says what it does and leaves speed to them.
"""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# A regression on class indicators can answer below 0; no class is ever called impossible.
SMALLEST_PROBABILITY = 1e-3


def as_chances(answers: Array) -> Array:
    """Return the answers of regressions on class indicators, pressed into [1e-3, 1], with sum 1."""
    pressed = np.clip(answers, SMALLEST_PROBABILITY, 1.0)
    return np.asarray(pressed / pressed.sum(axis=1, keepdims=True))


def as_targets(y: Array, n_classes: int) -> Array:
    """Return y as a column, or a 0/1 column for each class."""
    return (y[:, np.newaxis] == np.arange(n_classes)) * 1.0 if n_classes else y[:, np.newaxis] * 1.0


class Model(Protocol):
    """One regression: numbers in, a mean or class probabilities out.

    `fit` takes targets that are numbers, or class codes 0 … K-1 when the model was made for
    K classes; `predict` answers (n,) means for numbers and (n, K) probabilities for classes.
    """

    def fit(self, X: Array, y: Array, weights: Array | None = None) -> Self: ...

    def predict(self, X: Array) -> Array: ...
