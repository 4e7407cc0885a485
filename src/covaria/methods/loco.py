"""Leave one covariate out: the loss gained by refitting without the feature.

Lei, G'Sell, Rinaldo, Tibshirani and Wasserman, "Distribution-free predictive inference for
regression", JASA 113 (2018). When a feature is useless the two fits agree and the scores
shrink to zero, so the usual normal limit fails exactly at the null. Three ways out are here:

conservative  the paired scores, one-sided: rejects too rarely rather than too often
split         full and reduced loss on separate halves (Williamson, Gilbert, Simon and Carone,
              JASA 2023): the right level, at a great cost in power
zipper        the halves overlap but for 50 rows each (Chen, Jia, Wang and Zou, NeurIPS 2024)
signed_root   least squares in sample: twice the statistic is the t statistic
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.nuisance.residuals import Residuals

Array = NDArray[np.float64]

VALIDITIES = ("conservative", "zipper", "split", "signed_root")
ZIPPER_ROWS = 50


def loco(residuals: Residuals, rng: Generator) -> Array:
    """Return the loss without x_j less the loss with it."""
    return residuals.weighted(residuals.loss_given_rest - residuals.loss_given_all)


def split_loco(residuals: Residuals, rng: Generator) -> Array:
    """Return scores with the full loss on one half of the rows, the reduced loss on the other."""
    return _partly_paired(residuals, rng, len(residuals.rows) // 2)


def zipper_loco(residuals: Residuals, rng: Generator) -> Array:
    """Return scores that are paired but for a few rows on either side."""
    return _partly_paired(residuals, rng, min(ZIPPER_ROWS, len(residuals.rows) // 2))


def _partly_paired(residuals: Residuals, rng: Generator, n_single: int) -> Array:
    """Return the influence of each row on τ mean(D) + (1 − τ)(mean reduced − mean full).

    D is the paired gain on the shared rows; `n_single` rows carry the full loss alone and as
    many the reduced loss alone. Mean and sd of what comes back are the estimate and its sd.
    """
    full = np.broadcast_to(residuals.loss_given_all, residuals.loss_given_rest.shape)
    reduced = residuals.loss_given_rest
    n_rows = len(full)
    weights = np.ones(n_rows) if residuals.weights is None else residuals.weights
    order = rng.permutation(n_rows)
    only_full, only_reduced, both = np.split(order, [n_single, 2 * n_single])
    share = (n_rows - 2 * n_single) / (n_rows - n_single)
    parts = [(both, reduced - full, share), (only_full, -full, 1 - share)]
    parts.append((only_reduced, reduced, 1 - share))
    scores = np.zeros(reduced.shape)
    for rows, values, part in parts:
        if len(rows) == 0 or part == 0:
            continue
        w = weights[rows, None] / weights[rows].sum()
        mean = (w * values[rows]).sum(axis=0)
        scores[rows] += part * n_rows * w * (values[rows] - mean)
        scores += part * mean
    # A feature the learner never used has nothing to test: its two losses are the same.
    scores[:, (reduced == full).all(axis=0)] = 0.0
    return scores
