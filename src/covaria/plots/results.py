"""Pictures of a Result: effects, p-values, residuals, regressions and cost."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError, did_you_mean, short
from covaria.plots.axes import new_axes
from covaria.plots.saving import COLOURS, MARKERS, MOST_FEATURES, picture_name
from covaria.results.residual_views import binned, residual_pair
from covaria.results.result import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
SMALLEST_P = 1e-16
GREY = "0.55"
# The arm of an error bar that a one-sided test does not have.
FAR_END = {"greater": 1, "less": 0}


def forest(
    result: Result, method: str | None = None, *, most: int = MOST_FEATURES, ax: Axes | None = None
) -> Axes:
    """Return the effects of one method with their intervals, the clearest feature on top.

    Filled points are selected. Without a name it is the first method of the result.
    """
    own = _rows(result, method, most)
    ax = ax or new_axes(height=1.2 + 0.28 * max(1, len(own)))
    at = np.arange(len(own))
    ok = own["status"].eq("ok").to_numpy()
    side = result.about.methods[_method(result, method)]
    chosen = own["selected"].to_numpy(dtype=bool)
    for kept, colour, face in (
        (ok & chosen, COLOURS[0], COLOURS[0]),
        (ok & ~chosen, GREY, "white"),
    ):
        effect, low, high = (
            own[name].to_numpy(float)[kept] for name in ("effect", "effect_low", "effect_high")
        )
        reach = np.nan_to_num(np.abs([effect - low, high - effect]), posinf=0.0)
        if side in FAR_END:  # it is a bound, no estimate
            reach[FAR_END[side]] = 0.0
        ax.errorbar(
            effect, at[kept], xerr=reach, fmt="o", ms=5, color=colour, mfc=face, capsize=0, lw=1.5
        )
    ax.axvline(0.0, color="0.4", lw=1)
    _name_rows(ax, own["feature"])
    name = _method(result, method)
    ax.set_xlabel(f"{name}: {result.about.effects[name]}")
    return ax


def p_values(
    result: Result, *, alpha: float | None = None, most: int = MOST_FEATURES, ax: Axes | None = None
) -> Axes:
    """Return the adjusted p-values of all tests, a row a feature, with the level as a line."""
    alpha = float(result.about.alpha) if alpha is None else alpha
    if not 0 < alpha < 1:
        raise InputError(f"alpha={alpha!r} must lie between 0 and 1.")
    names = _clearest(result, most)
    ax = ax or new_axes(height=1.2 + 0.28 * max(1, len(names)))
    tests = result.table[result.table["p_adjusted"].notna()]
    for k, (method, own) in enumerate(tests.groupby("method", sort=False)):
        shown = own.set_index("feature")["p_adjusted"].reindex(names).clip(lower=SMALLEST_P)
        colour, marker = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
        ax.plot(shown, np.arange(len(names)), marker, ms=6, color=colour, mfc="none", mew=1.5,
                label=picture_name(str(method)))  # fmt: skip
    ax.axvline(alpha, color="0.4", lw=1, ls="--")
    ax.set_xscale("log")
    ax.invert_xaxis()
    _name_rows(ax, names)
    adjusted = "p-value" if result.about.correction == "none" else "adjusted p-value"
    ax.set_xlabel(f"{adjusted} (clearer to the right; dashed: {alpha:g})")
    if len(tests):
        ax.legend(frameon=False, loc="best")
    return ax


def residuals(result: Result, feature: str, *, most: int = 2000, ax: Axes | None = None) -> Axes:
    """Return what is left of y against what is left of a feature, with its mean in bins."""
    if feature not in result.features:
        hint = did_you_mean(feature, result.features)
        raise InputError(f"There is no feature '{short(str(feature))}'.{hint}")
    left = residual_pair(result, result.features.index(feature))
    if left is None:
        raise InputError(
            f"'{short(feature)}' has no residuals in this result. Assess with methods=['gcm']."
        )
    ax = ax or new_axes(6.0, 4.5)
    kept = left.thinned(most)
    ax.plot(left.x[kept], left.y[kept], ".", ms=4, color="0.35", alpha=0.4)
    ax.axhline(0.0, color="0.6", lw=1)
    ax.axvline(0.0, color="0.6", lw=1)
    curve = binned(left)
    if curve is not None:
        ax.errorbar(curve.at, curve.mean, yerr=1.96 * curve.error, color=COLOURS[1], lw=2)
    ax.set_xlabel(picture_name(left.x_label))
    ax.set_ylabel(picture_name(left.y_label))
    return ax


def quality(result: Result, *, most: int = MOST_FEATURES, ax: Axes | None = None) -> Axes:
    """Return the out-of-fold R² of every regression: of y without, and of, each feature."""
    table = result.quality
    if not {"regression", "feature", "r2"} <= set(table.columns) or not len(table):
        raise InputError("This result says nothing of its regressions.")
    names = _clearest(result, most)
    ax = ax or new_axes(height=1.2 + 0.28 * max(1, len(names)))
    for k, (kind, own) in enumerate(
        table[table["feature"] != ""].groupby("regression", sort=False)
    ):
        shown = own.drop_duplicates("feature").set_index("feature")["r2"].reindex(names)
        marker = MARKERS[k % len(MARKERS)]
        ax.plot(shown, np.arange(len(names)), marker, ms=6, mfc="none", mew=1.5,
                color=COLOURS[k % len(COLOURS)], label=str(kind))  # fmt: skip
    full = table.loc[table["regression"] == "y given all", "r2"]
    if len(full):
        ax.axvline(float(full.iloc[0]), color=COLOURS[0], lw=1, ls="--", label="y given all")
    ax.axvline(0.0, color="0.4", lw=1)
    _name_rows(ax, names)
    ax.set_xlabel("R² out of fold")
    if ax.get_legend_handles_labels()[1]:
        ax.legend(frameon=False, loc="best")
    return ax


def cost(result: Result, *, ax: Axes | None = None) -> Axes:
    """Return the seconds each method is charged, with the models it needed."""
    methods = result.methods
    ax = ax or new_axes(height=1.2 + 0.35 * len(methods))
    seconds = [float(result.about.seconds[m]) for m in methods]
    ax.barh(np.arange(len(methods)), seconds, color=COLOURS[0], height=0.6)
    labels = [f"{picture_name(m)} ({result.about.fits[m]:,} models)" for m in methods]
    ax.set_yticks(np.arange(len(methods)), labels)
    ax.invert_yaxis()
    ax.set_xlabel("seconds charged")
    return ax


def stability(found: Any, *, most: int = MOST_FEATURES, ax: Axes | None = None) -> Axes:
    """Return how often each feature of a stability run was selected, with the threshold."""
    if not hasattr(found, "table") or "frequency" not in found.table.columns:
        raise InputError("stability draws what covaria.stability found.")
    frequency = found.table.pivot(index="feature", columns="method", values="frequency")
    order = (
        frequency.reindex(found.features).max(axis=1).sort_values(ascending=False, kind="stable")
    )
    names = [str(name) for name in order.index[:most]]
    ax = ax or new_axes(height=1.2 + 0.28 * max(1, len(names)))
    for k, method in enumerate(found.methods):
        marker = MARKERS[k % len(MARKERS)]
        ax.plot(frequency[method].reindex(names), np.arange(len(names)), marker, ms=6, mfc="none",
                mew=1.5, color=COLOURS[k % len(COLOURS)], label=picture_name(method))  # fmt: skip
    ax.axvline(found.about["needed"] / found.about["count"], color="0.4", lw=1, ls="--")
    _name_rows(ax, names)
    ax.set_xlim(-0.03, 1.03)
    ax.set_xlabel(f"share of {found.about['count']} {found.about['parts']} that select it")
    ax.legend(frameon=False, loc="best")
    return ax


def _method(result: Result, method: str | None) -> str:
    name = result.methods[0] if method is None else method
    if name not in result.methods:
        raise InputError(f"There is no method '{short(name)}'.{did_you_mean(name, result.methods)}")
    return name


def _rows(result: Result, method: str | None, most: int) -> pd.DataFrame:
    """Return a method's rows, the clearest feature first."""
    own = result.table[result.table["method"] == _method(result, method)]
    return own.set_index("feature", drop=False).reindex(_clearest(result, most))


def _clearest(result: Result, most: int) -> list[str]:
    return [str(name) for name in result.verdicts["feature"].head(most)]


def _name_rows(ax: Axes, names: Collection[str]) -> None:
    """Write the names beside the rows, the first on top."""
    ax.set_yticks(np.arange(len(names)), [picture_name(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
