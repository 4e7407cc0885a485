"""From p-values to chosen features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from residua.errors import InputError, did_you_mean

Array = NDArray[np.float64]


def adjust(p_values: Array, correction: str) -> Array:
    """Return p-values adjusted for the number of features tested.

    >>> adjust(np.array([0.01, 0.02, 0.5]), "bh").tolist()
    [0.03, 0.03, 0.5]
    """
    if not isinstance(correction, str) or correction not in CORRECTIONS:
        raise InputError(
            f"correction={correction!r} is not known.{did_you_mean(str(correction), CORRECTIONS)}"
        )
    adjusted = CORRECTIONS[correction](np.asarray(p_values, dtype=float))
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


def _unsorted(values: Array, order: NDArray[np.intp]) -> Array:
    back = np.empty_like(values)
    back[order] = values
    return back


CORRECTIONS = {
    "bh": _benjamini_hochberg,
    "by": _benjamini_yekutieli,
    "holm": _holm,
    "bonferroni": _bonferroni,
    "none": _none,
}
