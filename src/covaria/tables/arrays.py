"""Numbers, rows and parts of rows, as all tables have them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Index = Rows | slice


def of_all_classes(left: Array) -> Array:
    """Return what is left of all classes, from what is left of all but the first.

    Probabilities add up to 1, so what is left of them adds up to 0.
    """
    return np.concatenate([-left.sum(axis=-1, keepdims=True), left], axis=-1)


def over(some: Array, others: Array) -> Array:
    """Return some numbers over others, 0 where those are 0."""
    return np.asarray(np.divide(some, others, out=np.zeros_like(others), where=others > 0))


def as_slice(index: Rows) -> Index:
    """Return a run of numbers as a slice, which needs no copy; any other index as it is."""
    start, stop = int(index[0]), int(index[-1]) + 1
    side_by_side = stop - start == len(index) and (index[1:] - index[:-1] == 1).all()
    return slice(start, stop) if side_by_side else index
