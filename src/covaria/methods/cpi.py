"""Conditional predictive impact: the loss gained by drawing the feature anew given the others.

Watson and Wright, "Testing conditional independence in supervised learning algorithms", Machine
Learning 110 (2021). Permutation breaks what ties x_j to the other features, and asks the model
about rows that cannot be; here a copy takes the place of x_j that goes with the others as x_j does:
what they tell of x_j, plus what they leave of it in another row. If y depends on x_j only through
the others, the copy is as good as x_j, whatever the model makes of it.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.nuisance.residuals import Residuals


def cpi(residuals: Residuals, rng: Generator) -> NDArray[np.float64]:
    """Return the loss with a copy of x_j, on average over copies, less the loss as it is."""
    return residuals.weighted(residuals.loss_conditional - residuals.loss_given_all)
