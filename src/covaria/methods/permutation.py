"""Permutation: the loss gained by shuffling the feature among the tested rows.

Breiman, "Random forests", Machine Learning 45 (2001). It asks what the fitted model uses, as
dropout does, on rows that need not look like any real one.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.methods.collinearity import collinearity_corrected
from covaria.nuisance.residuals import Residuals


def permutation(residuals: Residuals, rng: Generator) -> NDArray[np.float64]:
    """Return the loss with x_j shuffled, on average over shuffles, less the loss as it is."""
    gains = residuals.weighted(residuals.loss_permuted - residuals.loss_given_all)
    return collinearity_corrected(residuals, gains, weight=2.0, free=0.5)
