"""From p-values to chosen features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covaria.options.checks import one_of

Array = NDArray[np.float64]


def adjust(p_values: Array, correction: str) -> Array:
    """Return p-values adjusted for the number of features tested.

    >>> adjust(np.array([0.01, 0.02, 0.5]), "bh").tolist()
    [0.03, 0.03, 0.5]
    """
    correct = CORRECTIONS[one_of("correction", correction, CORRECTIONS)]
    adjusted = correct(np.asarray(p_values, dtype=float))
    return np.asarray(np.minimum(1.0, adjusted))


def _none(p: Array) -> Array:
    return p


def _bonferroni(p: Array) -> Array:
    return p * len(p)


def _holm(p: Array) -> Array:
    """Return the running maximum of p times the number not yet rejected."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return _unsorted(steps, order)


def _benjamini_hochberg(p: Array) -> Array:
    """Return the running minimum, from the largest p down, of p times m over rank."""
    order = np.argsort(p, kind="stable")[::-1]
    steps = np.minimum.accumulate(p[order] * len(p) / np.arange(len(p), 0, -1))
    return _unsorted(steps, order)


def _benjamini_yekutieli(p: Array) -> Array:
    """Return BH paid for any dependence: times 1 + 1/2 + … + 1/m."""
    return _benjamini_hochberg(p) * float(np.sum(1 / np.arange(1, len(p) + 1)))


def _storey(p: Array) -> Array:
    """Return BH times the share of useless features, estimated from the p-values above one half."""
    share = (1 + np.sum(p > 0.5)) / (0.5 * len(p))
    return _benjamini_hochberg(p) * min(1.0, float(share))


def _unsorted(values: Array, order: NDArray[np.intp]) -> Array:
    back = np.empty_like(values)
    back[order] = values
    return back


def strongest(p_values: Array, statistic: Array, count: int) -> NDArray[np.bool_]:
    """Return the `count` features with the smallest p-values, or statistics where there are none.

    >>> strongest(np.array([0.2, 0.01, 0.03]), np.array([1.3, 2.6, -2.2]), 2).tolist()
    [False, True, True]
    """
    p = np.where(np.isnan(p_values), 1.0, p_values)
    chosen = np.zeros(len(p), dtype=bool)
    chosen[np.lexsort((-np.abs(statistic), p))[:count]] = True
    return np.asarray(chosen & (statistic != 0))


CORRECTIONS = {
    "bh": _benjamini_hochberg,
    "by": _benjamini_yekutieli,
    "holm": _holm,
    "bonferroni": _bonferroni,
    "storey": _storey,
    "none": _none,
}
