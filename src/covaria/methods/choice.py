"""What a method that chooses features without a test gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Choice:
    """One statistic per feature, whether it was chosen, and what a reader should know of it."""

    statistic: Array
    selected: NDArray[np.bool_]
    note: str = ""

    def only(self, features: Sequence[int]) -> Choice:
        """Return what is said of some features."""
        some = list(features)
        return replace(self, statistic=self.statistic[some], selected=self.selected[some])
