"""From a file's bytes to features and target: the rows and columns the paper used."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from covaria.datasets.entries import Entry
from covaria.errors import InputError, listed

if TYPE_CHECKING:
    import pandas as pd

ADDICTION = {"Low": 0.0, "Medium": 1.0, "High": 2.0}


def cleaned(entry: Entry, raw: bytes) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Return the features and the target: incomplete rows dropped, categories coded."""
    import pandas as pd

    separator = ";" if entry.name == "wine_red" else ","
    try:
        frame = pd.read_csv(io.BytesIO(raw), sep=separator)
        frame = _CODED.get(entry.name, _as_it_is)(frame).dropna().reset_index(drop=True)
        y = frame.pop(entry.target).astype(float)
        frame = frame.astype(float)
    except (KeyError, ValueError, AttributeError) as error:
        raise InputError(
            f"{entry.file} does not have the columns of {entry.name} ({error}). Get it from "
            f"{entry.url}."
        ) from error
    if frame.empty:
        raise InputError(f"{entry.file} has no complete row. Get it from {entry.url}.")
    return frame, y


def _as_it_is(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


def _airbnb(frame: pd.DataFrame) -> pd.DataFrame:
    """Return log prices, and a 0/1 column for each room type but entire homes."""
    import numpy as np
    import pandas as pd

    frame = frame.dropna()
    price = frame.pop("price").str.replace(r"[$,]", "", regex=True).astype(float)
    frame = pd.get_dummies(frame, columns=["room_type"], dtype=float)
    return frame.drop(columns="room_type_Entire home/apt").assign(log_price=np.log(price))


def _social(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the level of addiction as a number; a level that is not known counts as missing."""
    return frame.assign(addiction_level=frame["addiction_level"].map(ADDICTION))


def _crab(frame: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    return pd.get_dummies(frame, columns=["Sex"], dtype=float).drop(columns="Sex_F")


def _gas(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(columns="CO")


_CODED = {
    "airbnb_quebec": _airbnb,
    "social_media": _social,
    "crab_age": _crab,
    "gas_turbine_2013": _gas,
}


def only_columns(raw: bytes, columns: tuple[str, ...]) -> bytes:
    """Return a CSV with these columns only, cell for cell as they were written.

    The listings hold names and texts of real persons: what is not used is not kept.
    """
    try:
        rows = list(csv.reader(io.StringIO(raw.decode("utf-8-sig"), newline="")))
    except csv.Error as error:
        raise ValueError(str(error)) from error
    header = rows[0] if rows else []
    missing = [name for name in columns if name not in header]
    if missing:
        raise ValueError(f"there is no column {listed(missing)}")
    at = [header.index(name) for name in columns]
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row[i] for i in at] for row in rows[1:] if row)
    return written.getvalue().encode()
