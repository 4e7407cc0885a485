"""Lazy-VI: the loss gained by a linearised refit of the network without the feature.

Gao, Stevens, Raskutti and Willett, "Lazy estimation of variable importance for large neural
networks", ICML (2022). The step that stands for a retraining also goes on with the training of
the full network, where that stopped early. So the rival of the reduced networks is the full one
after such a step of its own; the paper takes the full one as it is.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.nuisance.residuals import Residuals

Array = NDArray[np.float64]


def lazy(residuals: Residuals, rng: Generator) -> Array:
    """Return the loss after a step without x_j less the loss after a step with it."""
    return residuals.weighted(residuals.loss_lazy - residuals.loss_stepped)


def published_lazy(residuals: Residuals, rng: Generator) -> Array:
    """Return the loss after a step without x_j less the loss of the full network, as published."""
    return residuals.weighted(residuals.loss_lazy - residuals.loss_given_all)
