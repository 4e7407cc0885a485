"""From columns as they came to columns of numbers that features own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError, Problems, did_you_mean, plural, short, text_of
from covaria.tables.arrays import Array, Rows, column_blocks
from covaria.tables.policy import POLICY
from covaria.tables.reading import Column

MAX_LEVELS = 20
# Errors of scores are fourth powers of the numbers; beyond these they would overflow or vanish.
LARGEST, SMALLEST = 1e60, 1e-60
# Values that differ by a smaller share of the largest differ by rounding.
SAME = 64 * float(np.finfo(float).eps)
DIGITS = re.compile(r"([0-9]+)")


@dataclass(frozen=True)
class Feature:
    """One thing to test: its name, what kind it is, and the columns of `X` it owns."""

    name: str
    kind: str
    columns: tuple[int, ...]
    # So many of its last columns tell of its many levels, for the models of others; they are not
    # tested.
    n_encoded: int = 0

    @cached_property
    def tested(self) -> tuple[int, ...]:
        """Return the columns that are predicted from the other features."""
        return self.columns[: len(self.columns) - self.n_encoded]


@dataclass(frozen=True)
class Levels:
    """A category of more levels than have a column: whose it is, and the level of each row.

    The number of its feature is -1 where that is not tested.
    """

    feature: int
    code: Rows


def check_numbers(what: str, values: Array) -> None:
    """Raise where a number is infinite or too large to square."""
    bad = np.flatnonzero(np.isinf(values))
    if len(bad):
        raise InputError(
            f"{what} has infinite values in {plural(len(bad), 'row')} (the first is row "
            f"{bad[0] + 1}). Leave those cells blank or put in a finite number."
        )
    largest = float(np.nanmax(np.abs(values), initial=0.0))
    if largest > LARGEST:
        raise InputError(f"{what} has values beyond 1e60. Divide it by its scale first.")
    if 0 < largest < SMALLEST:
        raise InputError(f"{what} has only values below 1e-60. Divide it by its scale first.")


def is_constant(values: Array) -> bool:
    """Return whether the values differ by no more than rounding."""
    largest = float(np.max(np.abs(values), initial=0.0))
    return bool(np.ptp(values) <= SAME * largest)


@dataclass(frozen=True)
class Encoded:
    """The columns of numbers that one column of the table turns into."""

    kind: str
    columns: list[Array]
    holes: list[NDArray[np.bool_] | None]
    note: str = ""
    levels: Rows | None = None


NOTHING = Encoded("constant", [], [])


def encode_all(table: Mapping[str, Column], problems: Problems) -> dict[str, Encoded]:
    """Return the columns of numbers that each column of a table turns into."""
    usual = _usual_numbers(table)
    return {
        name: Encoded("number", [column.values], [None])
        if name in usual
        else problems.of(encode, name, column) or NOTHING
        for name, column in table.items()
    }


def _usual_numbers(table: Mapping[str, Column]) -> set[str]:
    """Return the columns of numbers that vary, without gaps and of a usual size, seen at once."""
    numbers = [n for n, one in table.items() if one.values.dtype == float and not one.problem]
    if not numbers or not len(table[numbers[0]]):
        return set()
    found: set[str] = set()
    for some in column_blocks(len(table[numbers[0]]), len(numbers)):
        values = np.array([table[name].values for name in numbers[some]])
        low, high = values.min(axis=1), values.max(axis=1)
        size = np.maximum(np.abs(low), np.abs(high))
        # A gap makes both NaN, of which nothing holds, and so does inf − inf.
        with np.errstate(invalid="ignore"):
            is_usual = (size <= LARGEST) & (size >= SMALLEST) & (high - low > SAME * size)
        found |= {name for name, is_one in zip(numbers[some], is_usual, strict=True) if is_one}
    return found


def encode(name: str, raw: Column) -> Encoded:
    if raw.problem:
        raise InputError(raw.problem)
    if raw.values.dtype == object:
        return _encode_labels(name, raw.values)
    return _encode_numbers(name, raw.values)


def _encode_numbers(name: str, values: Array) -> Encoded:
    """Return the number itself, or with gaps the filled number and a mark for each gap."""
    what = f"Column '{short(name)}'"
    check_numbers(what, values)
    holes = np.isnan(values)
    if holes.all():
        return Encoded("constant", [], [], f"{what} is empty: it says nothing and is left out.")
    filled = np.where(holes, np.median(values[~holes]), values) if holes.any() else values
    columns: list[Array] = []
    marks: list[NDArray[np.bool_] | None] = []
    if not is_constant(filled):
        columns, marks = [filled], [holes if holes.any() else None]
    if not holes.any():
        note = "" if columns else f"{what} is constant: it says nothing and is left out."
        return Encoded("number" if columns else "constant", columns, marks, note)
    share = f"{what} is missing in {100 * holes.mean():.0f}% of rows: "
    note = share + "gaps are filled with the median and marked, and the mark is tested with it."
    return Encoded("number", [*columns, holes.astype(float)], [*marks, None], note)


def _encode_labels(name: str, values: NDArray[np.generic]) -> Encoded:
    """Return a 0/1 column for every level but the most common; gaps are a level too."""
    labels = np.array(["(missing)" if v is None else v for v in values], dtype=object)
    counts = Counter(labels.tolist())
    what = f"Column '{short(name)}'"
    note, code = "", None
    if len(counts) > MAX_LEVELS:
        kept = _common_levels(counts)
        alone = sum(count for count in counts.values() if count == 1)
        if alone <= POLICY.most_alone * len(labels):
            place = {label: at for at, label in enumerate(sorted(counts))}
            code = np.array([place[label] for label in labels], dtype=np.intp)
        labels = np.array([v if v in kept else "(other)" for v in labels], dtype=object)
        note = (
            f"{what} has {len(counts):,} levels: {len(kept)} common ones are tested, the others "
            "as one. Tests of other features adjust for "
            f"{'these' if code is None else 'all of them'}."
        )
        counts = Counter(labels.tolist())
    if len(counts) == 1:
        reason = "every row has a level of its own" if note else "it has one level"
        return Encoded("constant", [], [], f"{what} is left out: {reason}.")
    levels = sorted(level for level, _ in ranked_levels(counts)[1:])
    # One by one: NumPy's text leaves out what ends in NUL.
    columns = [np.array([label == level for label in labels], dtype=float) for level in levels]
    return Encoded("category", columns, [None] * len(columns), note, code)


def _common_levels(counts: Counter[str]) -> set[str]:
    """Return the levels that have a column: the most common, if possible not of few rows."""
    ranked = ranked_levels(counts)[: MAX_LEVELS - 1]
    for least in (POLICY.rare, POLICY.rarest):
        common = {v for v, count in ranked if count >= least}
        if common:
            return common
    return {v for v, count in ranked[:1] if count > 1}


def ranked_levels(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return levels from common to rare, equals by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def grouped(
    encoded: Mapping[str, Encoded], groups: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, list[Encoded]]]:
    """Return feature name → (kind, its members), a group standing where its first member stood."""
    owner: dict[str, str] = {}
    for group, members in groups.items():
        _check_group(group, members, encoded, owner)
        owner.update(dict.fromkeys(members, group))
    parts: dict[str, tuple[str, list[Encoded]]] = {}
    for name, columns in encoded.items():
        if name not in owner:
            parts[name] = (columns.kind, [columns])
        elif owner[name] not in parts:
            members = sorted(groups[owner[name]], key=natural)
            parts[owner[name]] = ("group", [encoded[member] for member in members])
    return parts


def named_groups(groups: object) -> dict[str, list[str]]:
    """Return the groups with names as text, as the columns have them, and no member twice."""
    if groups is None:
        return {}
    if not isinstance(groups, Mapping):
        raise InputError("groups must name each group, such as {'place': ['lat', 'lon']}.")
    named = {}
    for group, members in groups.items():
        if isinstance(members, str) or not isinstance(members, Iterable):
            members = []
        named[text_of(group)] = list(dict.fromkeys(text_of(member) for member in members))
    return named


def _check_group(
    group: str, members: Sequence[str], encoded: Mapping[str, Encoded], owner: Mapping[str, str]
) -> None:
    if not group.strip():
        raise InputError("A group has no name. Call it by what its columns have in common.")
    if not members:
        raise InputError(f"Group '{short(group)}' needs a list of columns, such as ['lat', 'lon'].")
    for member in members:
        if member not in encoded:
            hint = did_you_mean(member, encoded)
            raise InputError(f"Group '{short(group)}' names '{short(member)}', not a column.{hint}")
        if member in owner:
            raise InputError(f"Column '{short(member)}' is in two groups. Leave it in one.")
    if group in encoded and group not in members:
        raise InputError(f"Group '{short(group)}' has the name of a column. Rename the group.")


def laid_out(
    parts: Mapping[str, tuple[str, list[Encoded]]], n_rows: int
) -> tuple[Array, NDArray[np.bool_] | None, tuple[Feature, ...]]:
    """Return the columns side by side and who owns them.

    Columns lie in the order of the features' names, whatever the order of the table: so a
    table with its columns permuted gives every learner the same numbers in the same places.
    """
    columns: list[Array] = []
    holes: list[NDArray[np.bool_] | None] = []
    owned: dict[str, tuple[int, ...]] = {}
    for name in sorted(parts, key=natural):
        members = parts[name][1]
        start = len(columns)
        columns += [column for member in members for column in member.columns]
        holes += [hole for member in members for hole in member.holes]
        owned[name] = tuple(range(start, len(columns)))
    X = np.empty((n_rows, len(columns)))
    for at, column in enumerate(columns):
        X[:, at] = column
    features = tuple(
        Feature(name, kind if owned[name] else "constant", owned[name])
        for name, (kind, _) in parts.items()
    )
    return X, _stacked_holes(holes, n_rows), features


def levels_of(parts: Mapping[str, tuple[str, list[Encoded]]]) -> tuple[Levels, ...]:
    """Return the categories of many levels, by the number of their feature."""
    return tuple(
        Levels(j, member.levels)
        for j, (_, members) in enumerate(parts.values())
        for member in members
        if member.levels is not None
    )


def natural(name: str) -> list[tuple[int, int, str, str]]:
    """Return a sort key under which x2 comes before x10.

    >>> sorted(["x10", "x2", "area"], key=natural)
    ['area', 'x2', 'x10']
    """
    parts = DIGITS.split(name)
    return [_number_key(p) if p.isdigit() and p.isascii() else (1, 0, p, "") for p in parts if p]


def _number_key(digits: str) -> tuple[int, int, str, str]:
    """Return a sort key of a number of any length: longer ones are larger."""
    bare = digits.lstrip("0")
    return (0, len(bare), bare, digits)


def _stacked_holes(holes: list[NDArray[np.bool_] | None], n_rows: int) -> NDArray[np.bool_] | None:
    if not any(hole is not None for hole in holes):
        return None
    none = np.zeros(n_rows, dtype=bool)
    return np.column_stack([none if hole is None else hole for hole in holes])
