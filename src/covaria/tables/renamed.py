"""Tables whose columns had other names: the old ones are accepted for one version more."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar, TypeVar

import pandas as pd

Key = TypeVar("Key")


def _by_name(method: Callable[..., Any]) -> Any:
    """Return a method of tables that is asked for columns first, with old names as well."""

    @wraps(method)
    def asked(self: Renamed, *columns: object, **options: object) -> object:
        first = {name: self.of_today(options[name]) for name in ("by", "keys") if name in options}
        some = [self.of_today(one) for one in columns[:1]]
        return method(self, *some, *columns[1:], **(options | first))

    return asked


class Renamed(pd.DataFrame):
    """A table that knows the names its columns had, wherever a column is asked for by name."""

    old_names: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def of(cls, stored: pd.DataFrame) -> Renamed:
        """Return a stored table, its columns under today's names."""
        return cls(stored).rename(columns=dict(cls.old_names))

    @property
    def _constructor(self) -> Callable[..., Renamed]:
        return type(self)

    @property
    def _constructor_sliced(self) -> Callable[..., pd.Series[Any]]:
        return self._row

    @classmethod
    def _row(cls, *args: Any, **options: Any) -> pd.Series[Any]:
        """Return a column, or a row that knows its labels' old names."""
        found: pd.Series[Any] = pd.Series(*args, **options)
        if not any(name in found.index for name in cls.old_names.values()):
            return found
        row = _Row(found)
        row._old_names = cls.old_names
        return row

    def of_today(self, key: Key, depth: int = 3) -> Key:
        """Return a name, or a list of names, as they are today; old ones are warned of."""
        if isinstance(key, list):
            return type(key)([self.of_today(one, depth + 1) for one in key])
        if not isinstance(key, str) or key not in self.old_names or key in self.columns:
            return key
        return type(key)(warned(key, self.old_names[key], depth + 1))

    def __getitem__(self, key: object) -> Any:
        return super().__getitem__(self.of_today(key))

    def __getattr__(self, name: str) -> Any:  # type: ignore[misc]
        if name in self.old_names:
            return self[self.of_today(name)]
        return super().__getattr__(name)

    def __contains__(self, key: object) -> bool:  # type: ignore[misc]
        return super().__contains__(self.of_today(key))

    @property
    def loc(self) -> Any:
        return _ByName(self, super().loc)

    @property
    def at(self) -> Any:
        return _ByName(self, super().at)

    groupby = _by_name(pd.DataFrame.groupby)
    sort_values = _by_name(pd.DataFrame.sort_values)
    set_index = _by_name(pd.DataFrame.set_index)

    def eval(self, expr: str, *args: Any, **options: Any) -> Any:
        """Evaluate an expression of columns; `query` does so as well."""
        words = set(re.findall(r"\w+", expr)) & self.old_names.keys() - set(self.columns)
        old = {name: self[self.of_today(name, 4)] for name in sorted(words)}
        resolvers = (*options.pop("resolvers", ()), old)
        return super().eval(expr, *args, resolvers=resolvers, **options)


class _Row(pd.Series):
    """A row of the table."""

    _metadata = ["_old_names"]  # noqa: RUF012

    _old_names: Mapping[str, str] = {}

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str) and key in self._old_names and key not in self.index:
            key = warned(key, self._old_names[key], 3)
        return super().__getitem__(key)


class _ByName:
    """`loc` or `at` of a table, columns by their names of today or by old ones."""

    def __init__(self, table: Renamed, places: Any) -> None:
        self.table, self.places = table, places

    def __call__(self, *args: object, **options: object) -> _ByName:
        return _ByName(self.table, self.places(*args, **options))

    def __getitem__(self, key: object) -> Any:
        return self.places[self._of_today(key)]

    def __setitem__(self, key: object, value: object) -> None:
        self.places[self._of_today(key)] = value

    def _of_today(self, key: object) -> object:
        if isinstance(key, tuple) and len(key) == 2:
            return key[0], self.table.of_today(key[1], 4)
        return key


def warned(old: str, new: str, depth: int) -> str:
    """Return the new name, having told whoever called that the old one is out of use."""
    message = f"The column '{old}' is now called '{new}'."
    warnings.warn(message, DeprecationWarning, stacklevel=depth)
    return new
