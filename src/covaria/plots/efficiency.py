"""Pictures of efficiency: which test needs fewer rows, and how power grows with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from covaria.errors import InputError
from covaria.plots.axes import new_axes
from covaria.plots.saving import COLOURS, MOST_FEATURES, picture_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def efficiencies(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Return the relative efficiencies of `covaria.efficiency`, with intervals, a row a feature."""
    shown = table[np.isfinite(table["are"]) & (table["are"] > 0)]
    shown = shown[shown["feature"].isin(list(shown["feature"].drop_duplicates())[:MOST_FEATURES])]
    names = list(shown["feature"].drop_duplicates())
    pairs = list(shown[["method", "rival"]].drop_duplicates().itertuples(index=False, name=None))
    ax = ax or new_axes(height=1.5 + 0.3 * max(1, len(names)))
    for k, (method, rival) in enumerate(pairs):
        own = shown[(shown["method"] == method) & (shown["rival"] == rival)]
        at = np.array([names.index(name) for name in own["feature"]]) + 0.6 * (k + 0.5) / len(pairs)
        ax.errorbar(
            own["are"], at, xerr=np.abs([own["are"] - own["low"], own["high"] - own["are"]]),
            fmt="o", ms=4, color=COLOURS[k % len(COLOURS)], label=f"{method} over {rival}",
        )  # fmt: skip
    ax.axvline(1.0, color="0.4", lw=1)
    ax.set_xscale("log")
    ax.set_yticks(np.arange(len(names)) + 0.3, [picture_name(name) for name in names])
    ax.invert_yaxis()
    ax.set_xlabel("rows the second test needs for one row of the first")
    if pairs:
        ax.legend(frameon=False, loc="best")
    return ax


def power_curves(
    table: pd.DataFrame, *, power: float | None = None, ax: Axes | None = None
) -> Axes:
    """Return the power of `covaria.power_at` against rows: a colour a method, a line a feature."""
    if not {"method", "feature", "n_rows", "power"} <= set(table.columns):
        raise InputError("power_curves draws the table of covaria.power_at.")
    ax = ax or new_axes()
    for k, (method, own) in enumerate(table.groupby("method", sort=False)):
        for i, (_, line) in enumerate(own.groupby("feature", sort=False)):
            ax.plot(
                line["n_rows"], line["power"], color=COLOURS[k % len(COLOURS)], lw=1, alpha=0.8,
                label=str(method) if i == 0 else None,
            )  # fmt: skip
    if power is not None:
        ax.axhline(power, color="0.4", lw=1, ls="--")
    ax.set_xscale("log")
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("rows")
    ax.set_ylabel("power")
    ax.legend(frameon=False, loc="best")
    return ax


def theory_bars(table: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Return the efficiency of GCM over LOCO in theory, a bar a feature."""
    known = table[table["are_gcm_loco"].notna()]
    ax = ax or new_axes()
    values = np.minimum(known["are_gcm_loco"], 10)
    ax.bar(np.arange(len(known)), values, color=COLOURS[0])
    ax.axhline(1.0, color="0.4", lw=1)
    ax.set_xticks(np.arange(len(known)), [picture_name(name) for name in known["feature"]])
    ax.set_ylabel("rows LOCO needs for one row of GCM")
    return ax
