"""Features in a row, each correlated with the next, for tests of the level."""

import numpy as np


def neighbours(seed, correlation, n_rows=400):
    """Return six features, each correlated with the next, the first of them useful."""
    rng = np.random.default_rng([seed, 11])
    X = rng.normal(size=(n_rows, 6))
    for j in range(1, 6):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    return X, X[:, 0] + rng.normal(size=n_rows)
