"""Frame: the user's own columns, with names, text and gaps, for estimators that ask for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from covaria.tables.arrays import Rows

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Frame:
    """A table as it came, and the columns that each feature owns in it.

    `names` are the columns of the whole table, also those that were left out since.
    """

    table: pd.DataFrame
    owned: Mapping[str, tuple[str, ...]]
    names: tuple[str, ...]
    was_array: bool = False

    def part(self, rows: Rows, without: Iterable[str] = ()) -> pd.DataFrame:
        """Return a copy of some rows, without the columns of some features."""
        gone = {column for feature in without for column in self.owned[feature]}
        kept = [column for column in self.table.columns if column not in gone]
        return self.table[kept].iloc[rows].reset_index(drop=True)

    def with_rows(self, rows: Rows, feature: str, others: Rows) -> pd.DataFrame:
        """Return rows in which a feature has the values that it has in other rows."""
        part = self.part(rows)
        for column in self.owned[feature]:
            part[column] = self.table[column].iloc[others].reset_index(drop=True)
        return part

    def with_usual(
        self, rows: Rows, feature: str, train: Rows, weights: Array | None
    ) -> pd.DataFrame:
        """Return rows in which a feature has its mean in training, or its most common level."""
        part = self.part(rows)
        for column in self.owned[feature]:
            usual = _usual(self.table[column].iloc[train], weights)
            part[column] = usual.iloc[np.zeros(len(rows), dtype=np.intp)].reset_index(drop=True)
        return part

    def at_rows(self, rows: Rows) -> Frame:
        """Return some rows as a table of their own."""
        return replace(self, table=self.table.iloc[rows].reset_index(drop=True))

    def owning(self, owned: Mapping[str, tuple[str, ...]]) -> Frame:
        """Return the same table with other owners of its columns."""
        return replace(self, owned=owned)

    def only(self, features: Collection[str]) -> Frame:
        """Return the columns of some features."""
        owned = {name: columns for name, columns in self.owned.items() if name in features}
        kept = {column for columns in owned.values() for column in columns}
        table = self.table[[column for column in self.table.columns if column in kept]]
        return replace(self, table=table, owned=owned)


def _usual(values: pd.Series[Any], weights: Array | None) -> pd.Series[Any]:
    """Return one value: the mean of numbers or times, the most common of anything else."""
    import pandas as pd
    from pandas.api import types

    there = values.notna().to_numpy()
    if not there.any():
        return values.iloc[:1]
    shares = np.ones(len(values)) if weights is None else weights
    is_number = types.is_numeric_dtype(values) and not types.is_bool_dtype(values)
    if is_number and shares[there].any():
        mean = np.average(values[there].to_numpy(dtype=float), weights=shares[there])
        return pd.Series([mean])
    if types.is_datetime64_any_dtype(values) or types.is_timedelta64_dtype(values):
        return pd.Series([values.mean()]).astype(values.dtype)
    codes, levels = pd.factorize(values[there])
    most = int(np.argmax(np.bincount(codes, shares[there], len(levels))))
    return values[there].iloc[[int(np.flatnonzero(codes == most)[0])]]
