"""What lies beside the features: target, weights, clusters, copies of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError, Problems, did_you_mean, plural, short, text_of
from covaria.tables.arrays import Array, Rows
from covaria.tables.copies import find_copies, repeats
from covaria.tables.policy import POLICY
from covaria.tables.reading import Column, aligned, is_gap, vector

MIN_ROWS = 10
MIN_CLUSTERS = 5


@dataclass(frozen=True)
class Beside:
    """The features' columns and what lies beside them, of the same rows."""

    table: dict[str, Column]
    y: Column | None
    weights: Column | None
    clusters: Column | None
    event: Column | None
    n_rows: int
    notes: tuple[str, ...] = ()
    kept: Rows | None = None


def read_beside(
    problems: Problems, X: object, table: dict[str, Column], given: Mapping[str, object], drop: bool
) -> Beside:
    """Return the target, weights and clusters as columns, with those of their names taken out."""
    taken = {what: problems.of(take_column, table, value) for what, value in given.items()}
    n_rows = len(next(iter(table.values()), ()))
    problems.of(_check_size, table, n_rows)
    notes, columns = [], []
    for what, value in taken.items():
        found = problems.of(_column, what, value, X, n_rows)
        column, note = (None, "") if found is None else found
        columns.append(column)
        notes += [text for text in (note, column.note if column else "") if text]
    y, weights, clusters, event = columns
    if not drop or y is None:
        return Beside(table, y, weights, clusters, event, n_rows, tuple(notes))
    kept = np.array([at for at, value in enumerate(y.values) if not is_gap(value)], dtype=np.intp)
    if len(kept) == n_rows:
        return Beside(table, y, weights, clusters, event, n_rows, tuple(notes))
    table = {name: column.at(kept) for name, column in table.items()}
    problems.of(_check_size, table, len(kept))
    notes.append(f"{plural(n_rows - len(kept), 'row')} of {n_rows:,} without a target left out.")
    y, weights, clusters, event = (
        None if c is None else c.at(kept) for c in (y, weights, clusters, event)
    )
    return Beside(table, y, weights, clusters, event, len(kept), tuple(notes), kept)


def _column(what: str, value: object, X: object, n_rows: int) -> tuple[Column, str] | None:
    """Return one value a row, in the order of X's rows, and what was done for that."""
    if value is None:
        return None
    value, note = aligned(what, value, X)
    return vector(what, value, n_rows), note


def take_column(table: dict[str, Column], given: object) -> object:
    """Return a column taken out of the table where a name was given, else what was given."""
    if not isinstance(given, str):
        return given
    given = text_of(given)
    if given not in table:
        raise InputError(f"There is no column '{short(given)}'.{did_you_mean(given, table)}")
    return table.pop(given)


def _check_size(table: Mapping[str, Column], n_rows: int) -> None:
    if not table:
        raise InputError("No features are left besides the target. Give X at least one column.")
    if n_rows < MIN_ROWS:
        raise InputError(f"X has {plural(n_rows, 'row')}; at least {MIN_ROWS} are needed to test.")


def read_weights(given: object, n_rows: int, cure: str) -> Array | None:
    """Return weights scaled to mean one."""
    if given is None:
        return None
    values = vector("sample_weight", given, n_rows).values
    if values.dtype == object or not np.isfinite(values).all() or (values < 0).any():
        raise InputError(f"sample_weight must be numbers of 0 or more, without gaps{cure}.")
    if not (values > 0).sum() >= MIN_ROWS:
        few = f"fewer than {MIN_ROWS} rows with weight above zero"
        raise InputError(f"sample_weight leaves {few}{cure}.")
    values = values / values.max()
    return np.asarray(values / values.mean(), dtype=float)


def read_clusters(given: object, n_rows: int) -> Rows | None:
    """Return a code per cluster."""
    if given is None:
        return None
    raw = vector("clusters", given, n_rows)
    if any(is_gap(v) for v in raw.values):
        raise InputError("clusters has gaps. Give every row the cluster it belongs to.")
    distinct, codes = np.unique(raw.values, return_inverse=True)
    if len(distinct) == n_rows:  # every row is one by itself
        return None
    if len(distinct) < MIN_CLUSTERS:
        raise InputError(
            f"clusters has {plural(len(distinct), 'cluster')}; at least {MIN_CLUSTERS} are needed."
        )
    return codes.astype(np.intp)


def repeated_rows(
    columns: list[NDArray[np.generic]], y: Array, classes: Sequence[str]
) -> tuple[Rows | None, tuple[str, ...]]:
    """Return a cluster for each row and its copies, or what to say of a class of many repeats."""
    own = _copies(columns, y, bool(classes))
    if own is not None or not classes:
        return own, ()
    return None, tuple(_note_of_oversampling(columns, y, classes))


def _copies(columns: list[NDArray[np.generic]], y: Array, has_classes: bool) -> Rows | None:
    """Return a cluster for each row and its copies; None without copies, or with few other rows.

    Weights do not tell copies apart: they say how much a row counts, not what was observed.
    """
    found = find_copies([*columns, y], y if has_classes else None)
    return None if found is None or int(found.max()) + 1 < MIN_ROWS else found


def note_of_copies(n_copies: int, n_rows: int) -> Iterable[str]:
    if n_copies:
        yield (
            f"{plural(n_copies, 'row')} of {n_rows:,} {'repeats' if n_copies == 1 else 'repeat'} "
            "another in every column and the target. Copies stay in one fold and count as one "
            "cluster; if each is an observation of its own, give clusters=range(len(y))."
        )


def _note_of_oversampling(
    columns: list[NDArray[np.generic]], y: Array, classes: Sequence[str]
) -> Iterable[str]:
    """Yield which class has many more rows that repeat another, though chance may do that."""
    is_repeat = repeats([*columns, y])
    shares = np.array([is_repeat[y == k].mean() for k in range(len(classes))])
    *_, second, largest = np.sort(shares)
    if largest >= POLICY.oversampled and largest > POLICY.more_often * second:
        name = classes[int(np.argmax(shares))]
        yield (
            f"{100 * largest:.0f}% of the rows of class '{short(name)}' repeat another, of other "
            f"classes {100 * second:.0f}% or fewer. If rows were copied to balance the classes, "
            "p-values are too small: test the table as it was before."
        )


def note_of_clusters(clusters: Rows | None) -> Iterable[str]:
    count = 0 if clusters is None else len(np.unique(clusters))
    if 0 < count < POLICY.few_clusters:
        yield f"There are only {count} clusters: p-values rest on {count - 1} degrees of freedom."
    largest = 0.0 if clusters is None else np.bincount(clusters).max() / len(clusters)
    if largest > POLICY.largest_cluster:
        yield (
            f"One cluster has {100 * largest:.0f}% of the rows: p-values may be too small. Split "
            "it if its parts are independent."
        )
