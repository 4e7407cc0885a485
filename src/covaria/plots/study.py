"""Pictures of studies: p-values by feature, metrics by method, lines over a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from covaria.plots.axes import Panels, new_panels
from covaria.plots.saving import COLOURS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MARKS = "osD^vPX"


def panels(rows: int, columns: int, *, width: float = 3.4, height: float = 2.6) -> Panels:
    """Return an array of axes on a new figure, without a window."""
    return new_panels(rows, columns, (width * columns, height * rows))


def p_value_panels(parts: Mapping[str, pd.DataFrame], *, alpha: float = 0.05) -> Axes:
    """Return a panel per part: each feature's mean p-value and its sd, a colour a method.

    A part is a table with method, feature, p_mean and p_sd.
    """
    columns = 2 if len(parts) > 1 else 1
    axes = panels(-(-len(parts) // columns), columns, width=5.0, height=2.8)
    for ax, (title, table) in zip(axes.flat, parts.items(), strict=False):
        names = list(table["feature"].drop_duplicates())
        methods = list(table["method"].drop_duplicates())
        for k, method in enumerate(methods):
            own = table[table["method"] == method].set_index("feature").loc[names]
            at = np.arange(len(names)) + 0.7 * (k / max(1, len(methods) - 1) - 0.5)
            ax.errorbar(
                at, own["p_mean"], yerr=own["p_sd"], fmt=MARKS[k % len(MARKS)], ms=3.5, lw=0.8,
                color=COLOURS[k % len(COLOURS)], label=method,
            )  # fmt: skip
        ax.axhline(alpha, color="#B00020", lw=1, ls="--")
        ax.set_xticks(np.arange(len(names)), names, rotation=90, fontsize=7)
        ax.set_ylim(-0.05, 1.3)
        ax.set_title(title, fontsize=10)
        ax.set_ylabel("p-value")
    axes.flat[0].legend(frameon=False, fontsize=7, ncols=2, loc="upper left")
    first: Axes = axes.flat[0]
    return first


def metric_panels(
    table: pd.DataFrame, *, rows: str, metrics: Sequence[str], guess: str = "guess"
) -> Axes:
    """Return a panel per metric and value of `rows`: a bar a method with its sd, guessing dashed.

    The table has method, metric, mean, sd and the column `rows`.
    """
    parts = list(table[rows].drop_duplicates())
    methods = [m for m in table["method"].drop_duplicates() if not m.startswith(guess)]
    axes = panels(len(parts), len(metrics), width=2.3, height=2.2)
    for i, part in enumerate(parts):
        for j, metric in enumerate(metrics):
            own = table[(table[rows] == part) & (table["metric"] == metric)].set_index("method")
            ax = axes[i, j]
            shown = own.loc[[m for m in methods if m in own.index]]
            colours = [COLOURS[methods.index(m) % len(COLOURS)] for m in shown.index]
            low = np.minimum(shown["mean"], shown["sd"])
            ax.bar(
                np.arange(len(shown)), shown["mean"], yerr=[low, shown["sd"]], color=colours,
                error_kw={"lw": 0.8},
            )  # fmt: skip
            if guess in own.index:
                ax.axhline(own.loc[guess, "mean"], color="0.3", lw=1, ls="--")
            ax.set_xticks(np.arange(len(shown)), shown.index, rotation=90, fontsize=7)
            ax.tick_params(axis="y", labelsize=7)
            if i == 0:
                ax.set_title(metric, fontsize=9)
            if j == 0:
                ax.set_ylabel(part, fontsize=9)
    first: Axes = axes[0, 0]
    return first


def sweep_panels(
    table: pd.DataFrame, *, over: str, rows: str, metrics: Sequence[str], alpha: float = 0.05
) -> Axes:
    """Return a panel per metric and value of `rows`: a line a method over `over`, with its error.

    The table has method, metric, mean, se and the columns `over` and `rows`.
    """
    parts, values = list(table[rows].drop_duplicates()), list(table[over].drop_duplicates())
    methods = list(table["method"].drop_duplicates())
    axes = panels(len(parts), len(metrics), width=2.3, height=2.0)
    for i, part in enumerate(parts):
        for j, metric in enumerate(metrics):
            ax = axes[i, j]
            own = table[(table[rows] == part) & (table["metric"] == metric)]
            for k, method in enumerate(methods):
                line = own[own["method"] == method].set_index(over)
                line = line.loc[[v for v in values if v in line.index]]
                ax.errorbar(
                    [values.index(v) for v in line.index], line["mean"], yerr=line["se"], ms=3,
                    marker=MARKS[k % len(MARKS)], lw=1, color=COLOURS[k % len(COLOURS)],
                    label=method,
                )  # fmt: skip
            if metric.startswith("p of"):
                ax.axhline(alpha, color="#0072B2", lw=0.8, ls="--")
            ax.set_xticks(range(len(values)), [f"{v:g}" for v in values], fontsize=7)
            ax.tick_params(axis="y", labelsize=7)
            ax.set_ylim(-0.05, 1.05)
            if i == 0:
                ax.set_title(metric, fontsize=9)
            if j == 0:
                ax.set_ylabel(part, fontsize=9)
            if i == len(parts) - 1:
                ax.set_xlabel(over, fontsize=8)
    axes[0, 0].legend(frameon=False, fontsize=7)
    first: Axes = axes[0, 0]
    return first


def ratio_bars(table: pd.DataFrame) -> Axes:
    """Return the ratios of Assumption (A), a group of bars a feature, theory as crosses.

    The table has noise (which noise), feature, mean, sd and theory.
    """
    kinds = list(table["noise"].drop_duplicates())
    names = list(table["feature"].drop_duplicates())
    ax: Axes = panels(1, 1, width=7.0, height=4.0)[0, 0]
    for k, kind in enumerate(kinds):
        own = table[table["noise"] == kind].set_index("feature").loc[names]
        at = np.arange(len(names)) + 0.4 * (k - (len(kinds) - 1) / 2)
        ax.bar(at, own["mean"], 0.36, yerr=own["sd"], color=COLOURS[k], label=kind)
        ax.plot(at, own["theory"], "x", color="0.1", ms=6, label="theory" if k == 0 else None)
    ax.axhline(1.0, color="0.4", lw=1, ls="--")
    ax.set_xticks(np.arange(len(names)), names)
    ax.set_ylabel("left over right side of (A)")
    ax.legend(frameon=False)
    return ax
