"""What a method that chooses features without a test gives back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Choice:
    """One statistic per feature, whether it was chosen, and what a reader should know of it."""

    statistic: Array
    selected: NDArray[np.bool_]
    note: str = ""
