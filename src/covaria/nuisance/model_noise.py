"""The noise in predictions, which a cross-fit counts once and products of residuals hold twice.

Out of fold ξ̂ = (I − H)ξ, and ε̂ likewise, with H what predictions are made by. If nothing goes with
anything Var(ξ̂'ε̂) is |(I − H)'(I − H)|² for noise of variance 1, but the spread of the products over
rows shows Σ(1 + hᵢ)², with hᵢ the noise of row i's prediction: folds that learn from each other's
rows make its square root too small by about (1 + h)/(1 + 2h) (`methods/gcm.py`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from covaria.learners import Linear
from covaria.nuisance.plan import Plan
from covaria.nuisance.policy import POLICY
from covaria.nuisance.residuals import Residuals
from covaria.tables.dataset import Dataset

Array = NDArray[np.float64]


def with_noise_of_lines(plan: Plan, residuals: Residuals) -> Residuals:
    """Return residuals of least squares with the noise of its models, where that is not small."""
    if plan.learner != Linear() or plan.of_y is not None or residuals.n_folds < 2:
        return residuals
    owned = [len(feature.columns) for feature in plan.data.features]
    n_train = int(residuals.n_train * worth_of_rows(plan.data))
    noise = noise_of_lines(plan.data.X.shape[1] - np.array(owned), n_train)
    noise = np.where(noise > POLICY.least_noise, noise, 0.0)
    return replace(residuals, model_noise=noise) if noise.any() else residuals


def noise_of_lines(n_columns: NDArray[np.intp], n_train: int) -> Array:
    """Return the mean of h for least squares on so many columns and rows, at most 1.

    Of normal columns it is p/(n − p − 1), with p one more than the columns.

    >>> noise_of_lines(np.array([3, 30]), 120).round(3)
    array([0.035, 0.352])
    """
    p = n_columns + 1.0
    return np.asarray(np.minimum(p / np.maximum(n_train - p - 1, 1.0), 1.0))


def worth_of_rows(data: Dataset) -> float:
    """Return the rows that unequal weights, or copies of rows, are worth, as a share of the rows.

    It is (Σw)² / Σw² over n (Kish 1965), where copies of a row add up their weights: weighted least
    squares have the noise of so many rows.
    """
    weights = np.ones(data.n_rows) if data.weights is None else data.weights
    if data.n_copies and data.clusters is not None:
        weights = np.bincount(data.clusters, weights).astype(float)
    return float(weights.sum() ** 2 / (weights**2).sum() / data.n_rows)
