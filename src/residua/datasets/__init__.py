"""The six real tables of the paper: found, checked, cleaned to the paper's rows.

A table is looked for in the folder `RESIDUA_DATA`, then in the user's cache, and else downloaded
from its public origin. What a file holds is checked by its sha256 wherever it came from.

    X, y = residua.datasets.load("wine_red")
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from residua.datasets.cleaning import cleaned
from residua.datasets.download import Progress
from residua.datasets.entries import ALIASES, ENTRIES, Entry
from residua.datasets.places import content, find
from residua.errors import InputError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ALIASES", "ENTRIES", "Entry", "entry", "groups", "listing", "load"]


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
        False looks in `RESIDUA_DATA` and the cache only.
    check
        False takes a file in `RESIDUA_DATA` whatever its sha256, such as a newer snapshot.
    timeout, progress
        Seconds without a byte before a download is given up; a function of (bytes, total).
    """
    wanted = entry(name)
    raw = content(wanted, download=download, check=check, timeout=timeout, progress=progress)
    return cleaned(wanted, raw)


def entry(name: str) -> Entry:
    """Return what is known of a table: origin, licence, rows, columns."""
    known = ALIASES.get(name, name) if isinstance(name, str) else name
    if known not in ENTRIES:
        raise InputError(f"There is no dataset {name!r}.{did_you_mean(name, ENTRIES)}")
    return ENTRIES[known]


def groups(name: str) -> dict[str, list[str]]:
    """Return the columns that code one category, as `groups=` of `assess` takes them.

    >>> groups("crab_age")
    {'Sex': ['Sex_I', 'Sex_M']}
    """
    return {group: list(columns) for group, columns in entry(name).groups.items()}


def listing() -> list[dict[str, Any]]:
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
