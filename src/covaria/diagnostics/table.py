"""The table of regressions' quality, which still knows the names its columns had."""

from __future__ import annotations

import warnings
from typing import Any

import pandas as pd

# Names of version 0.1, accepted for one version more.
RENAMED = {
    "unsettled": "learning_curve_gap",
    "uneven": "fold_ratio",
    "stray": "outlier_share",
    "off": "mean_shift",
}


class Quality(pd.DataFrame):
    """A row for every regression."""

    @property
    def _constructor(self) -> type[Quality]:
        return Quality

    def __getitem__(self, key: object) -> Any:
        if isinstance(key, str) and key in RENAMED and key not in self.columns:
            warnings.warn(
                f"The column '{key}' is now called '{RENAMED[key]}'.",
                DeprecationWarning,
                stacklevel=2,
            )
            key = RENAMED[key]
        return super().__getitem__(key)
