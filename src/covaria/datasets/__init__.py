"""The six real tables of the paper: found, checked, cleaned to the paper's rows.

A table is looked for in the folder `COVARIA_DATA`, then in the user's cache, and else downloaded
from its public origin. What a file holds is checked by its sha256 wherever it came from.

    X, y = covaria.datasets.load("wine_red")
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from covaria.datasets.cleaning import cleaned
from covaria.datasets.download import Progress
from covaria.datasets.entries import ALIASES, ENTRIES, Entry
from covaria.datasets.places import content, find
from covaria.errors import InputError, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

__all__ = [
    "ALIASES",
    "ENTRIES",
    "Entry",
    "alike",
    "clusters",
    "entry",
    "groups",
    "listing",
    "load",
]

# Hours of a week.
WEEK = 168


def load(
    name: str,
    *,
    download: bool = True,
    check: bool = True,
    timeout: float = 30.0,
    progress: Progress | None = None,
) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Return the features and the target of a table, cleaned to the rows the paper used.

    Parameters
    ----------
    name
        airbnb_quebec, social_media, wine_red (or wine), boston, crab_age or gas_turbine_2013.
    download
        False looks in `COVARIA_DATA` and the cache only.
    check
        False takes a file in `COVARIA_DATA` whatever its sha256, such as a newer snapshot.
    timeout
        Seconds without a byte before a download is given up; four times as many in all.
    progress
        A function of (bytes, total).
    """
    if not isinstance(timeout, (int, float)) or not 0 < timeout < float("inf"):
        raise InputError(f"timeout={timeout!r} must be a number of seconds above 0.")
    wanted = entry(name)
    raw = content(wanted, download=download, check=check, timeout=timeout, progress=progress)
    return cleaned(wanted, raw)


def entry(name: str) -> Entry:
    """Return what is known of a table: origin, licence, rows, columns."""
    known = ALIASES.get(name, name) if isinstance(name, str) else ""
    if known not in ENTRIES:
        raise InputError(f"There is no dataset {name!r}.{did_you_mean(name, ENTRIES)}")
    return ENTRIES[known]


def groups(name: str) -> dict[str, list[str]]:
    """Return the columns that code one category, as `groups=` of `assess` takes them.

    >>> groups("crab_age")
    {'Sex': ['Sex_I', 'Sex_M']}
    """
    return {group: list(columns) for group, columns in entry(name).groups.items()}


def clusters(name: str, X: pd.DataFrame) -> NDArray[np.integer] | None:
    """Return a number per row of a table, shared by rows that depend on each other; None if none.

    The gas turbine's rows are hours in the order of time: a week of them is one cluster. Copies
    of a row are one too; only the wine has such, 240 of 1,599. On both sides of a fold either would
    flatter flexible learners. Two more tables have rows that are alike, which nothing in them
    names: Boston's tracts of one town (see `alike`), and Airbnb's listings of one host.
    """
    import numpy as np

    if entry(name).in_time:
        return np.arange(len(X)) // WEEK
    return _numbered(X, list(X.columns))


def alike(name: str, X: pd.DataFrame) -> NDArray[np.integer] | None:
    """Return a number per row, shared by rows that seem to come from one place; None if unknown.

    Boston's tracts that agree on taxes, schools and zones are 78 towns, more or less: 132 of the
    506 are the city itself. As clusters they are a check on what is found with tracts as rows; a
    learner that has not seen the city has to guess at a quarter of the rows.
    """
    telling = list(entry(name).of_place)
    return _numbered(X, telling) if telling else None


def _numbered(X: pd.DataFrame, columns: list[str]) -> NDArray[np.integer] | None:
    if not X.duplicated(columns).any():
        return None
    return X.groupby(columns, sort=False).ngroup().to_numpy()


def listing() -> list[dict[str, object]]:
    """Return every table with its provenance, and where it lies on this machine."""
    rows = []
    for known in ENTRIES.values():
        place: Path | None = find(known)
        rows.append(
            {
                "name": known.name,
                "rows": known.n_rows,
                "columns": known.n_columns,
                "target": known.target,
                "paper_rows": known.paper_rows,
                "licence": known.licence,
                "origin": known.origin,
                "url": known.url,
                "sha256": known.sha256,
                "note": known.note,
                "present": place is not None,
                "place": str(place) if place else "",
            }
        )
    return rows
