"""Tidy tables as bare columns: a DataFrame of few rows takes longer than the numbers in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Tidy:
    """Columns of one length by their names: numbers in arrays, text in lists.

    >>> table = Tidy({"feature": ["a", "b"], "p_value": np.array([0.2, 0.01])})
    >>> table.where(table["p_value"] < 0.05)["feature"]
    ['b']
    """

    columns: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def where(self, mask: Any) -> Tidy:
        """Return the rows for which a mask holds."""
        at = np.flatnonzero(mask)
        return Tidy({name: _taken(column, at) for name, column in self.columns.items()})

    def but(self, **columns: Any) -> Tidy:
        """Return the table with other columns, or more of them."""
        return Tidy({**self.columns, **columns})

    def frame(self) -> pd.DataFrame:
        """Return the table as a DataFrame."""
        import pandas as pd

        if not len(self):
            return pd.DataFrame([], columns=list(self.columns))
        return pd.DataFrame(dict(self.columns))


def _taken(column: Any, at: NDArray[np.intp]) -> Any:
    return [column[place] for place in at.tolist()] if isinstance(column, list) else column[at]


def stacked(parts: Sequence[Tidy]) -> Tidy:
    """Return tables below each other; what one of them does not have is NaN there."""
    names = dict.fromkeys(name for part in parts for name in part.columns)
    return Tidy({name: _joined([_column(part, name) for part in parts]) for name in names})


def _column(part: Tidy, name: str) -> Any:
    return part.columns[name] if name in part.columns else np.full(len(part), np.nan)


def _joined(columns: list[Any]) -> Any:
    if any(isinstance(column, list) for column in columns):
        return [value for column in columns for value in column]
    return np.concatenate(columns)
