"""The table of regressions' quality, which still knows the names its columns had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from covaria.tables.renamed import Renamed


class Quality(Renamed):
    """A row for every regression."""

    old_names: ClassVar[Mapping[str, str]] = {
        "unsettled": "learning_curve_gap",
        "uneven": "fold_ratio",
        "stray": "outlier_share",
        "off": "mean_shift",
        "leftover": "residual_r2",
        "leftover_p": "residual_r2_p",
        "alarm": "warning",
    }
