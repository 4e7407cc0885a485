"""Estimators that name columns: do they want frames, and what to do when a column is left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Protocol, Self, TypeGuard, cast

# Settings of boosters that can name columns.
_NAMED = ("categorical_features", "categorical_feature", "cat_features", "monotonic_cst")
_PREFIX = "name:"  # how LightGBM marks names


class NothingLeft(Exception):
    """An estimator looks at no column that is left."""


class HasParams(Protocol):
    """What people hand us: scikit-learn's estimators, and what has their settings."""

    def get_params(self, deep: bool = True) -> dict[str, object]: ...

    def set_params(self, **settings: object) -> Self: ...


class Table(Protocol):
    """A dataframe, as far as a choice of columns looks at it."""

    @property
    def columns(self) -> Collection[object]: ...


class Transforms(Protocol):
    """A ColumnTransformer: whose class need not be imported to be known."""

    transformers: Iterable[tuple[str, object, object]]
    remainder: object


def inside(estimator: object) -> list[tuple[str, object]]:
    """Return the estimator and all that it is made of, with the names of settings."""
    if not hasattr(estimator, "get_params") or isinstance(estimator, type):
        return [("", estimator)]
    found = estimator.get_params(deep=True).items()
    return [("", estimator), *((name.rsplit("__", 1)[-1], value) for name, value in found)]


def wants_frames(estimator: object) -> bool:
    """Return whether the estimator asks for columns by name or kind, which arrays do not have."""
    return any(
        _is_a(part, "ColumnTransformer")
        or _is_a(part, "make_column_selector")
        or (name in _NAMED and _has_names(part))
        for name, part in inside(estimator)
    )


def _is_a(part: object, kind: str) -> bool:
    """Return whether a part is of a class with this name, which need not be imported for that."""
    return any(base.__name__ == kind for base in type(part).__mro__)


def _has_names(setting: object) -> bool:
    if isinstance(setting, str):
        return setting.startswith(_PREFIX)
    return _is_listed(setting) and any(isinstance(value, str) for value in setting)


def _is_listed(setting: object) -> TypeGuard[Iterable[object]]:
    return isinstance(setting, Iterable) and not isinstance(setting, str)


def tell_what_is_left(estimator: object, names: Sequence[str], left: Collection[str]) -> None:
    """Change an estimator so that it speaks only of columns that are left, or raise NothingLeft.

    Columns that its transformers have by place or by mask are found by name from here on.
    """
    gone = set(names) - set(left)
    if gone:
        _tell(estimator, list(names), gone)


def _tell(part: object, seen: list[str] | None, gone: set[str]) -> None:
    """Tell an estimator, and those inside, that columns are gone of those it would have seen."""
    if _is_a(part, "ColumnTransformer"):
        _tell_transformers(cast(Transforms, part), seen, gone)
    elif hasattr(part, "steps"):
        for _, step in part.steps:
            _tell(step, seen, gone)
            seen = seen if step in (None, "passthrough") else None
    elif hasattr(part, "get_params") and not isinstance(part, type):
        for name, setting in part.get_params(deep=False).items():
            if name in _NAMED and _has_names(setting):
                cast(HasParams, part).set_params(**{name: _less(setting, gone)})
            for member in _members(setting):
                _tell(member, seen, gone)


def _members(setting: object) -> list[object]:
    """Return a setting, or what a list of (name, estimator) pairs has in it."""
    if isinstance(setting, (list, tuple)):
        return [pair[1] for pair in setting if isinstance(pair, tuple) and len(pair) > 1]
    return [setting]


def _less(setting: object, gone: set[str]) -> object:
    """Return a booster's setting without the names of columns that are gone."""
    if isinstance(setting, str):
        kept = [name for name in setting.removeprefix(_PREFIX).split(",") if name not in gone]
        return _PREFIX + ",".join(kept) if kept else None
    if isinstance(setting, dict):
        return {name: value for name, value in setting.items() if name not in gone} or None
    return [name for name in cast(Iterable[str], setting) if name not in gone] or None


def _tell_transformers(part: Transforms, seen: list[str] | None, gone: set[str]) -> None:
    """Take columns away from transformers; scikit-learn passes over one that has none left."""
    told = []
    for name, transformer, columns in part.transformers:
        whole = None if callable(columns) else named(columns, seen)
        if transformer not in ("drop", "passthrough"):
            _tell(transformer, whole, gone)
        told.append((name, transformer, _still(columns, whole, gone)))
    _tell(part.remainder, None, gone)
    part.transformers = told
    empty = [isinstance(columns, list) and not columns for *_, columns in told]
    if all(empty) and isinstance(part.remainder, str) and part.remainder == "drop":
        raise NothingLeft


def _still(columns: object, whole: list[str] | None, gone: set[str]) -> object:
    """Return which columns a transformer takes, as it says it, now that some are gone."""
    if callable(columns):
        return Present(cast(Callable[[Table], object], columns))
    if whole is None:
        return columns
    if isinstance(columns, str):
        return [] if columns in gone else columns
    if _is_place(columns):
        return [] if whole[0] in gone else whole[0]
    return [name for name in whole if name not in gone]


def named(columns: object, seen: list[str] | None) -> list[str] | None:
    """Return the names behind a choice of columns: names, places, a slice or a mask.

    None where they cannot be told.

    >>> named([True, False, True], ["age", "sex", "fare"]), named(slice("sex", "fare"), None)
    (['age', 'fare'], None)
    """
    if isinstance(columns, str):
        return [columns]
    if _is_listed(columns) and all(isinstance(column, str) for column in columns):
        return cast(list[str], list(columns))
    if seen is None:
        return None
    if _is_place(columns):
        return [seen[columns]]
    if isinstance(columns, slice):
        return seen[_places(columns, seen)]
    listed = list(cast(Iterable[int], columns))
    if len(listed) == len(seen) and all(str(value) in ("True", "False") for value in listed):
        return [name for name, is_in in zip(seen, listed, strict=True) if is_in]
    return [seen[int(at)] for at in listed]


def _is_place(columns: object) -> TypeGuard[int]:
    return isinstance(columns, Integral) and not isinstance(columns, bool)


def _places(columns: slice, seen: list[str]) -> slice:
    """Return a slice of places; one between names has both its ends in it, as in pandas."""
    start, stop = columns.start, columns.stop
    start = seen.index(start) if isinstance(start, str) else start
    stop = seen.index(stop) + 1 if isinstance(stop, str) else stop
    return slice(start, stop, columns.step)


@dataclass(frozen=True)
class Present:
    """A function that chooses columns, kept to those that are there."""

    choose: Callable[[Table], object]

    def __call__(self, X: Table) -> object:
        """Return what it chooses of a table."""
        chosen = self.choose(X)
        if isinstance(chosen, str):
            return chosen if chosen in X.columns else []
        if _is_listed(chosen) and all(isinstance(name, str) for name in chosen):
            return [name for name in chosen if name in X.columns]
        return chosen
