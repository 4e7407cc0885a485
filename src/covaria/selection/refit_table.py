"""The tables of `refit`, which still know the names their columns had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from covaria.tables.renamed import Renamed


class RefitTable(Renamed):
    """A row for each draw of the folds, or for each feature."""

    old_names: ClassVar[Mapping[str, str]] = {"wavering": "unstable"}
