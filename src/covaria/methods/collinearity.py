"""The collinearity correction: what a useless feature gains from its neighbours.

Dropout and permutation ask what the fitted model uses. A model never knows its coefficients
exactly, and among correlated features the errors compensate: it leans a little on a useless
feature and a little less on its neighbours. Take that feature away without a refit and the
loss rises, although the feature is useless. For least squares with noise variance σ², n training
rows and variance inflation V = 1/(1 − R²) of the feature on the others, the lean δ has variance
Vσ²/n, and the expected rise is

    permutation   2 (V − 1) σ²/n          dropout   (V − 2) σ²/n

Uncorrected, permutation rejects 20% of nulls at AR(.7) and 57% at AR(.9). So the expected rise
is taken off the scores, and since δ² varies as much as its mean, the spread of the scores is
widened by twice that. It is of order 1/n: beside the gain of a useful feature it is soon small.
Permutation pays for V − ½: folds share training rows, which makes its scores a little dependent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covaria.inference.tests import ROUNDING, standard_error
from covaria.nuisance.model_noise import worth_of_rows
from covaria.nuisance.residuals import Residuals
from covaria.options.policy import Policy, threshold

Array = NDArray[np.float64]

WIDER = (
    "formula: δ² is a χ² of one degree of freedom, whose 95% point lies 1.73 × 1.645 means above "
    "its mean; 2 covers that σ² and V are estimated (docs/calibration.md: at most .039 rejected)"
)


@dataclass(frozen=True)
class CollinearityPolicy(Policy):
    """How much wider scores get where a feature is collinear with its neighbours.

    widen   times what collinearity is expected to add to their mean
    """

    widen: float = threshold(2.0, WIDER)


POLICY = CollinearityPolicy()


def collinearity_corrected(
    residuals: Residuals, gains: Array, *, weight: float, free: float
) -> Array:
    """Return the gains without what collinearity explains: weight × (V − free) σ²/n a feature."""
    if not residuals.n_learned:
        return gains
    excess = np.maximum(0.0, residuals.data.inflation - free)
    shift = weight * excess * _loss_per_row(residuals)
    mean, error = gains.mean(axis=0), standard_error(gains, residuals.clusters)
    used = error * np.sqrt(len(gains)) > ROUNDING * residuals.mean_loss
    more = POLICY.widen * shift
    widen = np.sqrt(1 + np.divide(more, error, out=np.zeros_like(error), where=used) ** 2)
    return np.asarray(mean - np.where(used, shift, 0.0) + widen * (gains - mean))


def _loss_per_row(residuals: Residuals) -> float:
    """Return the loss one useless coefficient costs: σ²/n, or for a log-loss ½/n a class."""
    data = residuals.data
    n_rows = residuals.n_learned * worth_of_rows(data)
    if data.rule is not None:
        return _loss_of_a_move(residuals, n_rows)
    if data.classes:
        return 0.5 * (data.n_classes - 1) / n_rows
    loss = np.average(residuals.loss_given_all[:, 0], weights=residuals.weights)
    return float(loss) / n_rows


def _loss_of_a_move(residuals: Residuals, n_rows: float) -> float:
    """Return what predictions cost that are off by σ/√n, up or down: σ²/n for a squared error."""
    data, left = residuals.data, residuals.y_given_all
    if data.classes:
        return 0.0
    size = np.sqrt(np.average(left**2, weights=residuals.weights) / n_rows)
    full = data.y[residuals.rows] - left
    up, as_it_is, down = (data.loss(full + m, residuals.rows) for m in (size, 0.0, -size))
    found = np.average((up + down) / 2 - as_it_is, weights=residuals.weights)
    return float(max(0.0, found))
