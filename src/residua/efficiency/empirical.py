"""Relative variability and efficiency, from the scores a Result holds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def relative_variability(scores: Array) -> Array:
    """Return sd over |mean| of each feature's scores; infinite where the mean is zero.

    >>> relative_variability(np.array([[1.0, 0.0], [3.0, 0.0]])).tolist()
    [0.5, inf]
    """
    sd, mean = scores.std(axis=0), np.abs(scores.mean(axis=0))
    ratio = np.full(mean.shape, np.inf)
    np.divide(sd, mean, out=ratio, where=mean > 0)
    return ratio


def relative_efficiency(scores: Array, rival: Array) -> Array:
    """Return how many rows the rival needs for each row of ours."""
    ours, theirs = relative_variability(scores), relative_variability(rival)
    ratio = np.full(ours.shape, np.nan)
    np.divide(theirs, ours, out=ratio, where=np.isfinite(ours) | np.isfinite(theirs))
    return np.asarray(ratio**2)
