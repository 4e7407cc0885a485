"""The features whose products of residuals stand out.

What only matters for findings (halves of the training rows, a second learner) is fitted for these.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covaria.nuisance.policy import POLICY
from covaria.nuisance.residuals import Residuals

Array = NDArray[np.float64]


def promising(residuals: Residuals, alpha: float) -> list[int]:
    """Return the features that GCM or PCM might call significant at a level, and some more.

    Of a feature of several columns, and of clusters, any sign is enough.
    """
    from scipy.special import ndtri

    level = min(alpha, 0.5)
    of_gcm, of_pcm = -ndtri(level / 2) - POLICY.nearly, -ndtri(level) - POLICY.nearly
    if residuals.n_folds > 1:
        of_pcm *= np.sqrt(2)
    found = []
    for j, feature in enumerate(residuals.data.features):
        if not feature.tested:
            continue
        products = residuals.products_of(j)
        is_one = products.shape[1] == 1 and residuals.clusters is None
        size = np.abs(_statistics(residuals.weighted(products))).max(initial=0.0)
        is_found = size > (of_gcm if is_one else POLICY.nearly)
        if not is_found and "f_given_rest" in residuals.arrays:
            own = _statistics(residuals.weighted(residuals.products_of_functions(j)))
            is_found = own[0] > (of_pcm if residuals.clusters is None else POLICY.nearly)
        if is_found:
            found.append(j)
    return found


def _statistics(scores: Array) -> Array:
    sd = scores.std(axis=0)
    ratio = scores.mean(axis=0) / np.where(sd > 0, sd, np.inf)
    return np.asarray(ratio * np.sqrt(len(scores)))
