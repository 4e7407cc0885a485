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


# Metrics and parameters as people write them.
NAMES = {
    "f1": "F1", "fdr": "FDR", "seconds": "seconds (log)", "rho": "correlation ρ of x1 and x2",
    "df": "degrees of freedom",
}  # fmt: skip


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
                at, own["p_mean"], yerr=_inside(own["p_mean"], own["p_sd"]),
                fmt=MARKS[k % len(MARKS)], ms=3.5, lw=0.8,
                color=COLOURS[k % len(COLOURS)], label=method,
            )  # fmt: skip
        ax.axhline(alpha, color="#B00020", lw=1, ls="--")
        if "active" in table:
            useful = set(table.loc[table["active"].astype(bool), "feature"])
            _shade(ax, [name in useful for name in names])
        ax.set_xticks(np.arange(len(names))[::2], names[::2], fontsize=7)
        ax.set_ylim(-0.03, 1.3)
        ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
        ax.set_title(title, fontsize=10)
        ax.set_ylabel("p-value")
    axes.flat[0].legend(frameon=False, fontsize=7, ncols=2, loc="upper left")
    first: Axes = axes.flat[0]
    return first


def _shade(ax: Axes, marked: Sequence[bool]) -> None:
    """Shade the places that are marked, neighbours in one piece: pieces side by side show seams."""
    edges = np.flatnonzero(np.diff([False, *marked, False]))
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        ax.axvspan(first - 0.5, end - 0.5, color="0.93", lw=0, zorder=0)


def _inside(mean: pd.Series[float], error: pd.Series[float]) -> list[pd.Series[float]]:
    """Return how far bars of an error reach down and up, inside 0 and 1."""
    return [error.clip(upper=mean.clip(lower=0)), error.clip(upper=(1 - mean).clip(lower=0))]


def _value(value: float) -> str:
    """Return a value of a parameter as people write it.

    >>> _value(0.3), _value(5.0), _value(float("inf"))
    ('0.3', '5', '∞')
    """
    return "∞" if np.isinf(value) else f"{value:g}"


def metric_panels(
    table: pd.DataFrame, *, rows: str, metrics: Sequence[str], guess: str = "guess"
) -> Axes:
    """Return a panel per metric and value of `rows`: a bar a method with its sd, guessing dashed.

    The table has method, metric, mean, sd and the column `rows`.
    """
    parts = list(table[rows].drop_duplicates())
    methods = [m for m in table["method"].drop_duplicates() if not m.startswith(guess)]
    axes = panels(len(parts), len(metrics), width=1.9, height=0.5 + 0.22 * len(methods))
    times = table.loc[(table["metric"] == "seconds") & table["method"].isin(methods), "mean"]
    for i, part in enumerate(parts):
        for j, metric in enumerate(metrics):
            ax = axes[i, j]
            own = table[(table[rows] == part) & (table["metric"] == metric)].set_index("method")
            _bars(ax, own, methods, metric)
            if metric == "seconds":
                _times(ax, times)
            if guess in own.index and metric != "seconds":
                ax.axvline(own.loc[guess, "mean"], color="0.3", lw=1, ls="--")
            names = methods if j == 0 else [""] * len(methods)
            ax.set_yticks(np.arange(len(methods)), names, fontsize=7)
            ax.tick_params(axis="x", labelsize=7)
            ax.tick_params(axis="y", length=0)
            if i == 0:
                ax.set_title(NAMES.get(metric, metric), fontsize=9)
            if j == 0:
                ax.set_ylabel(part, fontsize=9)
    first: Axes = axes[0, 0]
    return first


def _bars(ax: Axes, own: pd.DataFrame, methods: Sequence[str], metric: str) -> None:
    """Draw a bar a method with its sd, inside what the metric can be."""
    shown = own.reindex(list(methods))
    mean, sd = shown["mean"], shown["sd"].fillna(0)
    colours = [COLOURS[k % len(COLOURS)] for k in range(len(methods))]
    if metric == "seconds":
        ax.barh(np.arange(len(methods)), mean, color=colours)
    else:
        ax.barh(np.arange(len(methods)), mean, xerr=_inside(mean, sd), color=colours,
                error_kw={"lw": 0.8})  # fmt: skip
        ax.set_xlim(0, 1)
        ax.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
    ax.invert_yaxis()


def _times(ax: Axes, seconds: pd.Series[float]) -> None:
    """Draw times on a log axis of whole powers of ten, the same in every row."""
    low, high = (int(round_(np.log10(v))) for round_, v in
                 ((np.floor, seconds.min()), (np.ceil, seconds.max())))  # fmt: skip
    ax.set_xscale("log")
    ax.set_xlim(10.0**low, 10.0 ** max(high, low + 1))
    powers = list(range(low, max(high, low + 1) + 1))
    ax.set_xticks([10.0**k for k in powers], [f"{10.0**k:g}" for k in powers])
    ax.minorticks_off()


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
                    [values.index(v) for v in line.index], line["mean"],
                    yerr=_inside(line["mean"], line["se"]), ms=3,
                    marker=MARKS[k % len(MARKS)], lw=1, color=COLOURS[k % len(COLOURS)],
                    label=method,
                )  # fmt: skip
            if metric.startswith("p of"):
                ax.axhline(alpha, color="0.4", lw=0.8, ls="--")
            ax.set_xticks(range(len(values)), [_value(v) for v in values], fontsize=7)
            ax.tick_params(axis="y", labelsize=7)
            ax.set_ylim(-0.05, 1.05)
            if i == 0:
                ax.set_title(NAMES.get(metric, metric), fontsize=9)
            if j == 0:
                ax.set_ylabel(part, fontsize=9)
            if i == len(parts) - 1:
                ax.set_xlabel(NAMES.get(over, over), fontsize=8)
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
    ax.legend(frameon=False, loc="upper left")
    return ax


def limits(table: pd.DataFrame) -> Axes:
    """Return how a spread comes to its limit over n, a line a method and feature.

    The table has n_rows, method, feature, ratio and se.
    """
    ax: Axes = panels(1, 1, width=6.0, height=3.4)[0, 0]
    for k, ((method, feature), own) in enumerate(table.groupby(["method", "feature"], sort=False)):
        ax.errorbar(own["n_rows"], own["ratio"], yerr=own["se"], marker=MARKS[k % len(MARKS)],
                    ms=4, lw=1, color=COLOURS[k % len(COLOURS)],
                    label=f"{method}, {feature}")  # fmt: skip
    ax.axhline(1.0, color="0.4", lw=1, ls="--")
    ax.set_xscale("log")
    ax.set_xticks(sorted(set(table["n_rows"])), [f"{n:,}" for n in sorted(set(table["n_rows"]))])
    ax.minorticks_off()
    ax.set_ylim(0, 1.25 * max(1.2, float(table["ratio"].max())))
    ax.set_xlabel("rows tested")
    ax.set_ylabel("sd of √n (estimate − truth),\nover that of the limit")
    ax.legend(frameon=False, fontsize=8, ncols=3, loc="upper center")
    return ax


def shares_over(
    table: pd.DataFrame, *, over: str, title: str, ylabel: str, threshold: float = 0.05
) -> Axes:
    """Return shares over a parameter with their standard errors, a panel a part, a line a label.

    The table has part, label, share, se and the column `over`.
    """
    parts = list(table["part"].drop_duplicates())
    labels = list(table["label"].drop_duplicates())
    values = sorted(set(table[over]))
    axes = panels(1, len(parts), width=3.1, height=3.2)
    for ax, part in zip(axes.flat, parts, strict=True):
        for k, label in enumerate(labels):
            own = table[(table["part"] == part) & (table["label"] == label)].sort_values(over)
            if own.empty:
                continue
            ax.errorbar(
                [values.index(v) for v in own[over]], own["share"],
                yerr=_inside(own["share"], own["se"]), ms=4, lw=1.2,
                marker=MARKS[k % len(MARKS)], color=COLOURS[k % len(COLOURS)], label=label,
            )  # fmt: skip
        ax.axhline(threshold, color="0.5", lw=0.8, ls="--")
        ax.set_xticks(range(len(values)), [_value(v) for v in values], fontsize=8)
        ax.set_ylim(-0.03, 1.4)  # with room for the names
        ax.set_title(part, fontsize=10)
        ax.set_xlabel(NAMES.get(over, over), fontsize=9)
        ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
        ax.legend(frameon=False, fontsize=8, loc="upper left")
    axes.flat[0].set_ylabel(ylabel)
    first: Axes = axes.flat[0]
    figure = first.get_figure(root=True)
    assert figure is not None
    figure.suptitle(title, fontsize=11)
    return first
