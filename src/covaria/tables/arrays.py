"""Numbers, rows and parts of rows, as all tables have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Index = Rows | slice
# As many numbers are copied at once: 8 MB.
AT_ONCE = 2**20


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


def column_blocks(n_rows: int, n_columns: int) -> list[slice]:
    """Return the columns in blocks whose copy takes little room, one block for a small table."""
    step = max(1, AT_ONCE // max(1, n_rows))
    return [slice(first, first + step) for first in range(0, n_columns, step)]


def in_one_piece(array: Array, columns: Sequence[int]) -> Array:
    """Return some columns, each in one piece of memory, without a copy where they are that."""
    return np.asfortranarray(array[:, as_slice(np.array(columns))])
