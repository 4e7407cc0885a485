"""Formulas such as "price ~ rooms + C(kind) | city", read by formulaic.

Left of ~ stands the target. Each term to its right is a feature that is tested, given all the
others; what stands behind | is adjusted for in the same way but not tested. A column is taken as it
is, text and gaps included; C(kind) makes a category of it; any other term, such as log(area) or
bs(age, df=4), is computed, and is one feature however many columns it has.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from covaria.errors import InputError, MissingExtra, did_you_mean, short
from covaria.tables.reading import frame_of

if TYPE_CHECKING:
    import pandas as pd

CATEGORY = ("C(", ")")
# As R's survival and lifelines have it.
SURVIVAL = re.compile(r"Surv\(.*\)\s*~", re.IGNORECASE)


class Factor(Protocol):
    """A column or an expression, as formulaic has it."""

    @property
    def expr(self) -> str: ...


class Term(Protocol):
    """Factors whose product is taken."""

    @property
    def factors(self) -> Sequence[Factor]: ...


@dataclass
class Formula:
    """A table as a formula asks for it: its target, its groups, and what is tested of it."""

    table: pd.DataFrame
    target: str
    groups: dict[str, list[str]] = field(default_factory=dict)
    features: list[str] | None = None


def is_formula(X: object) -> bool:
    """Return whether the first thing given is a formula.

    >>> is_formula("price ~ rooms"), is_formula("homes.parquet"), is_formula("~/homes.csv")
    (True, False, False)
    """
    return isinstance(X, str) and "~" in X and not X.startswith("~/")


def read_formula(text: str, table: object, beside: Iterable[object] = ()) -> Formula:
    """Return the table that a formula asks for, with columns `beside` that are named elsewhere."""
    if table is None or isinstance(table, str):
        raise InputError(f"'{short(text)}' is a formula. Give a table after it: assess(…, frame).")
    frame, named = frame_of(table), {name for name in beside if isinstance(name, str)}
    # A dot is every column that has no other part.
    features = [str(name) for name in frame.columns if name not in named]
    target, tested, given = _terms(text, features)
    made = {name: _columns(name, frame, text) for name in dict.fromkeys([target, *tested, *given])}
    if made[target].shape[1] != 1:
        raise InputError(f"'{short(target)}', the target, has {made[target].shape[1]} columns.")
    own = {name for part in made.values() for name in part.columns}
    kept = [name for name in frame.columns if name in named and name not in own]
    import pandas as pd

    return Formula(
        pd.concat([*made.values(), frame[kept]], axis=1),
        str(made[target].columns[0]),
        {n: list(part.columns) for n, part in made.items() if part.shape[1] > 1},
        [_feature(name, made[name]) for name in tested] if given else None,
    )


def _feature(name: str, part: pd.DataFrame) -> str:
    """Return what the feature of a term is called: its column, or the term where it has several."""
    return str(part.columns[0]) if part.shape[1] == 1 else name


def _terms(text: str, names: list[str]) -> tuple[str, list[str], list[str]]:
    """Return the target, the terms that are tested, and those that are given."""
    parsed = _parsed(text, names)
    left, right = (getattr(parsed, side, None) for side in ("lhs", "rhs"))
    sides = right if isinstance(right, tuple) else (right,)
    if left is None or len(list(left)) != 1 or len(sides) > 2:
        raise InputError(
            f"'{short(text)}' is not of the form 'target ~ feature + feature | adjusted for'."
        )
    target = _name(next(iter(left)), text)
    parts = [[name for name in _names_of(part, text) if name != target] for part in sides]
    tested, given = _apart(parts, _without_dots(text), target, names)
    if not tested:
        raise InputError(f"'{short(text)}' names no feature to test right of ~.")
    return target, tested, given


def _apart(
    parts: list[list[str]], named: list[list[str]], target: str, columns: list[str]
) -> tuple[list[str], list[str]]:
    """Return what is tested and what is given, each term once.

    A dot is every column that no term names or is made of. What is named on both sides is given.
    """
    own = [name for names in named for name in names]
    made_of = {column for name in [*own, target] for column in columns_in(name, columns)}
    kept = [[name for name in part if name in own or name not in made_of] for part in parts]
    tested, given = kept[0], kept[1] if len(kept) == 2 else []
    behind = named[1] if len(named) == 2 else []
    tested = [name for name in tested if name not in behind]
    return tested, [name for name in given if name not in tested]


def _without_dots(text: str) -> list[list[str]]:
    """Return the terms of each side of the bar that are named, not meant by a dot."""
    right = getattr(_parsed(text, []), "rhs", ())
    return [_names_of(part, text) for part in (right if isinstance(right, tuple) else (right,))]


def columns_in(term: str, columns: Iterable[str]) -> set[str]:
    """Return the columns that a term is made of.

    >>> sorted(columns_in("bs(`my col`, df=log)", ["my col", "bs", "log", "df"]))
    ['log', 'my col']
    """
    known = set(columns)
    if term in known:
        return {term}
    quoted = re.findall("`([^`]+)`", term)
    try:
        tree = ast.parse(re.sub("`[^`]+`", "0", term), mode="eval")
    except SyntaxError:
        return known & set(quoted)
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n not in called}
    return known & {*names, *quoted}


def _parsed(text: str, names: list[str]) -> object:
    try:
        import formulaic
        from formulaic.errors import FormulaicError
    except ImportError:
        raise MissingExtra("A formula", "formula") from None
    try:
        known = {"__formulaic_variables_available__": names}
        return formulaic.Formula(text, _context=known)
    except FormulaicError as error:
        raise _refused(text, error) from None


def _names_of(terms: Iterable[Term], text: str) -> list[str]:
    every = [_name(term, text) for term in terms]
    return [name for name in dict.fromkeys(every) if name not in ("1", "0")]


def _name(term: Term, text: str) -> str:
    """Return what a term is called, or raise where it is a product of several."""
    names = [factor.expr for factor in term.factors]
    if len(names) > 1:
        raise InputError(
            f"'{short(text)}' asks for {short(':'.join(names))}. Learners find what features do "
            "together by themselves: name each once, and use covaria.interactions(result)."
        )
    return names[0]


def _columns(name: str, frame: pd.DataFrame, text: str) -> pd.DataFrame:
    """Return the column or columns of a term."""
    if name in frame.columns:
        return frame[[name]]
    inside = name.removeprefix(CATEGORY[0]).removesuffix(CATEGORY[1])
    if name == f"{CATEGORY[0]}{inside}{CATEGORY[1]}" and inside in frame.columns:
        texts = frame[inside].map(str, na_action="ignore")
        return texts.astype("category").to_frame(inside)
    if name.isidentifier():
        hint = did_you_mean(name, frame.columns)
        raise InputError(f"'{short(text)}' names '{short(name)}', which is no column.{hint}")
    return _computed(name, frame, text)


def _computed(name: str, frame: pd.DataFrame, text: str) -> pd.DataFrame:
    import pandas as pd
    from formulaic import model_matrix

    try:
        made = model_matrix(f"0 + {{{name}}}", frame, na_action="ignore", context={})
    except Exception as error:
        raise _refused(text, error) from None
    return pd.DataFrame(made).set_axis(_called(name, made.shape[1]), axis=1)


def _called(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}[{at + 1}]" for at in range(count)]


def _refused(text: str, error: Exception) -> InputError:
    if SURVIVAL.match(text.strip()):
        return InputError(
            f"'{short(text)}': name the time left of ~, and the column that says whether the event "
            "was seen as event=."
        )
    why = short(str(error).split("\n")[0], 120).rstrip(".")
    return InputError(f"'{short(text)}' cannot be read as a formula ({why}). Mend it.")
