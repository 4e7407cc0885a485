"""The partially linear effect: θ in y = θ x_j + g(the others) + noise.

Robinson, "Root-N-consistent semiparametric regression", Econometrica 56 (1988). Chernozhukov et
al., "Double/debiased machine learning for treatment and structural parameters", Econometrics
Journal 21 (2018). With ξ what the others leave of x_j and ε what they leave of y,

    θ = Σ ξε / Σ ξ²        and row i moves it by ξ(ε − θξ) / mean(ξ²)

which is DML2 with the score "partialling out". Where the effect of x_j is not a constant, θ is its
mean with weights Var(x_j | the others): of a 0/1 feature the average effect over rows that could
have had either value.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covaria.inference.tests import standard_error
from covaria.nuisance.residuals import Residuals

Array = NDArray[np.float64]


def partially_linear(residuals: Residuals) -> tuple[Array, Array]:
    """Return θ of each feature and its standard error; NaN for features of several columns."""
    theta, error = np.full((2, residuals.data.n_features), np.nan)
    weights = np.ones(len(residuals.rows)) if residuals.weights is None else residuals.weights
    for j, feature in enumerate(residuals.data.features):
        x, y = residuals.feature(j) if feature.columns else (np.zeros((1, 0)), np.zeros((1, 1)))
        if x.shape[1] != 1 or y.shape[1] != 1 or not x.any():
            continue
        xi, epsilon = x[:, 0], y[:, 0]
        size = float(np.mean(weights * xi**2))
        theta[j] = np.mean(weights * xi * epsilon) / size
        influence = weights * xi * (epsilon - theta[j] * xi) / size
        error[j] = standard_error(influence[:, None], residuals.clusters)[0]
    return theta, error if residuals.widening is None else error * residuals.widening
