"""Dropout: the loss gained by setting the feature to its training mean.

It asks whether the fitted model uses the feature, not whether a refit could do without it. What a
useless feature gains from a collinear, useful neighbour is allowed for (`collinearity.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.methods.collinearity import collinearity_corrected
from covaria.nuisance.residuals import Residuals


def dropout(residuals: Residuals, rng: Generator) -> NDArray[np.float64]:
    """Return the loss with x_j at its mean less the loss as it is."""
    gains = residuals.weighted(residuals.loss_dropped - residuals.loss_given_all)
    return collinearity_corrected(residuals, gains, weight=1.0, free=2.0)
