"""Dropout: the loss gained by setting the feature to its training mean.

It asks whether the fitted model uses the feature, not whether a refit could do without it. What a
useless feature gains by standing in for a useful neighbour is allowed for (`standing_in.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.methods.standing_in import less_standing_in
from covaria.nuisance.residuals import Residuals


def dropout(residuals: Residuals, rng: Generator) -> NDArray[np.float64]:
    """Return the loss with x_j at its mean less the loss as it is."""
    gains = residuals.weighted(residuals.loss_dropped - residuals.loss_given_all)
    return less_standing_in(residuals, gains, weight=1.0, free=2.0)
