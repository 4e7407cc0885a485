"""What people give as x, y and given, as one table: arrays, Series, frames, or names of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from covaria.errors import InputError, did_you_mean, listed, plural, short, text_of
from covaria.options.checks import shown
from covaria.tables.formulas import read_formula
from covaria.tables.reading import frame_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Columns:
    """A table, and which of its columns are x, y and given."""

    table: pd.DataFrame
    x: tuple[str, ...]
    y: tuple[str, ...]
    given: tuple[str, ...]


def of_frame(frame: object, x: object, y: object, given: object) -> Columns:
    """Return the columns of a frame that have these names."""
    if not (hasattr(frame, "columns") or isinstance(frame, Mapping)):
        raise InputError(
            "Of three arrays the third is given: write independence_test(x, y, given=z)."
        )
    table = frame_of(frame)
    roles = {role: _names(role, names) for role, names in {"x": x, "y": y}.items()}
    roles["given"] = () if given is None else _names("given", given)
    for names in roles.values():
        for name in names:
            if name not in table.columns:
                hint = did_you_mean(name, table.columns)
                raise InputError(f"There is no column '{short(name)}'.{hint}")
    _check_apart(roles)
    return Columns(table, **roles)


def of_formula(text: str, table: object, beside: Iterable[object] = ()) -> Columns:
    """Return the columns of a formula "y ~ x | a + b": what stands behind | is given."""
    formula = read_formula(text, table, beside)
    named = {name for name in beside if isinstance(name, str)}
    features = [str(name) for name in formula.table if name != formula.target and name not in named]
    tested = features if formula.features is None else formula.features
    x = tuple(column for name in tested for column in formula.groups.get(name, [name]))
    given = tuple(name for name in features if name not in x)
    return Columns(formula.table.reset_index(drop=True), x, (formula.target,), given)


def of_arrays(x: object, y: object, given: object) -> Columns:
    """Return arrays, Series and frames side by side."""
    import pandas as pd

    parts = {"x": _part("x", x), "y": _part("y", y)}
    if given is not None:
        parts["given"] = _part("given", given)
    _check_rows({"x": x, "y": y, "given": given}, parts)
    taken: set[str] = {str(name) for part in parts.values() for name in part if name is not None}
    roles = {role: _named(role, part, taken) for role, part in parts.items()}
    _check_apart(roles)
    table = pd.concat([part.reset_index(drop=True) for part in parts.values()], axis=1)
    return Columns(table, roles["x"], roles["y"], roles.get("given", ()))


def _names(role: str, given: object) -> tuple[str, ...]:
    """Return one name or several."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        given = [given]
    names = tuple(dict.fromkeys(text_of(name) for name in given if name is not None))
    if not names and role != "given":
        raise InputError(f"{role} names no column. Name one or more.")
    return names


def _part(role: str, given: object) -> pd.DataFrame:
    """Return one or more columns; the name of one that has none is None."""
    import pandas as pd

    if isinstance(given, (str, bytes)) or not (hasattr(given, "__len__") or _has_array(given)):
        raise InputError(
            f"{role}={shown(given)} must be a column or a table. With names of columns write "
            "independence_test(frame, 'x', 'y', given=['a', 'b'])."
        )
    if _is_one_column(given):
        name = getattr(given, "name", None)
        values = given if isinstance(given, pd.Series) else _values(given)
        column = pd.Series(values).reset_index(drop=True)
        return pd.DataFrame({None if name is None else text_of(name): column})
    frame = frame_of(given)
    has_names = isinstance(given, Mapping) or hasattr(given, "columns")
    if not has_names:
        frame.columns = pd.Index([None] * frame.shape[1], dtype=object)
    return frame


def _has_array(given: object) -> bool:
    return hasattr(given, "__array__") or hasattr(given, "toarray")


def _is_one_column(given: object) -> bool:
    """Return whether something has one dimension: a list of values, an array, a Series."""
    if hasattr(given, "columns") or isinstance(given, Mapping) or hasattr(given, "toarray"):
        return False
    if hasattr(given, "ndim"):
        return bool(given.ndim == 1)
    if isinstance(given, (list, tuple)):
        first = given[0] if len(given) else None
        return isinstance(first, str) or not hasattr(first, "__len__")
    return True


def _values(given: Any) -> Any:
    """Return the values of a Series of another library, or of anything with one dimension."""
    if type(given).__module__.startswith("pandas") or isinstance(given, (np.ndarray, list)):
        return given
    return given.to_list() if hasattr(given, "to_list") else list(given)


def _check_rows(given: Mapping[str, Any], parts: Mapping[str, pd.DataFrame]) -> None:
    """Raise where lengths differ, or rows have labels that do."""
    n_rows = len(parts["y"])
    for role, part in parts.items():
        if len(part) != n_rows:
            columns = role if part.shape[1] == n_rows else ""
            cure = f"Columns stand beside each other: np.column_stack({columns})"
            raise InputError(
                f"{role} has {plural(len(part), 'row')} but y has {n_rows:,}. "
                f"{cure if columns else 'Give all the same'}."
            )
    indexes = [one.index for one in given.values() if hasattr(one, "iloc")]
    if any(not index.equals(indexes[0]) for index in indexes):
        raise InputError(
            "x, y and given have different row labels. Give columns of one frame, or "
            "reset_index(drop=True) where rows go by their place."
        )


def _named(role: str, part: pd.DataFrame, taken: set[str]) -> tuple[str, ...]:
    """Return the names of columns, having called those without one x, y, z1, z2, …"""
    names, letter = [], "z" if role == "given" else role
    for at, name in enumerate(part.columns):
        if name is None:
            name = letter if part.shape[1] == 1 else f"{letter}{at + 1}"
            while name in taken:
                name += "_"
            taken.add(name)
        names.append(str(name))
    part.columns = names
    return tuple(names)


def _check_apart(roles: Mapping[str, Sequence[str]]) -> None:
    """Raise where a column is asked for twice."""
    seen: dict[str, str] = {}
    for role, names in roles.items():
        twice = [name for name in names if name in seen]
        if twice:
            raise InputError(
                f"{listed(twice)} is both {seen[twice[0]]} and {role}. Leave it out of one, or "
                "rename it where it is another column."
            )
        seen.update(dict.fromkeys(names, role))
