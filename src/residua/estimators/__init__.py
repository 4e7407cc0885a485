"""How one model of each learner family is fitted: plain, exact and without tricks.

Every class here keeps the promise of `Model`. It is the reference that the fast engines
have to equal, so it says what it does and leaves speed to them.
"""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Model(Protocol):
    """One regression: numbers in, a mean or class probabilities out.

    `fit` takes targets that are numbers, or class codes 0 … K-1 when the model was made for
    K classes; `predict` answers (n,) means for numbers and (n, K) probabilities for classes.
    """

    def fit(self, X: Array, y: Array, weights: Array | None = None) -> Self: ...

    def predict(self, X: Array) -> Array: ...
