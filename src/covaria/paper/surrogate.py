"""Model (e), where the paper's GCM and LOCO part ways with the truth: who selects the surrogate x2.

x2 is a copy of x1 with noise and has no effect of its own: it is a true null, and selecting it is
a false discovery that no correction for many tests removes.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from covaria import plots
from covaria.errors import InputError
from covaria.paper.captions import SURROGATE
from covaria.paper.evidence import number
from covaria.paper.run import DECIDES, Run
from covaria.paper.studies import LEARNERS, SHOWN

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

FEATURE, OVER = "x2", "rho"
STUDIES = ("surrogate", "surrogate_network")
DEFAULT_PART, RIGHT_PART = "covaria's default", "GCM, done right"
PICTURE = "model-e.svg"


def shares(run: Run) -> pd.DataFrame:
    """Return the share of runs that select x2, by method, learner and rho."""
    import pandas as pd

    paper = replace(run, mode="paper").together(STUDIES).features
    tables = [
        _of(paper, method, f"{SHOWN[method]}, the paper's mode") for method in ("gcm", "loco")
    ]
    with suppress(InputError):  # not stored yet
        right = replace(run, mode="ours").together(STUDIES).features
        tables.append(_of(right, "gcm", RIGHT_PART))
    default = replace(run, mode="default").of(STUDIES[0]).features
    tables.append(_of(default, DECIDES, DEFAULT_PART, label="GCM+PCM, auto"))
    return pd.concat(tables, ignore_index=True)


def _of(features: pd.DataFrame, method: str, part: str, label: str = "") -> pd.DataFrame:
    own = features[(features["feature"] == FEATURE) & (features["method"] == method)]
    share, runs = own["selected"].to_numpy(dtype=float), own["runs"].to_numpy()
    return own[[OVER]].assign(
        part=part, label=label or _learners(own["learner"]), share=share, runs=runs,
        se=np.sqrt(share * (1 - share) / runs),
        unwarned=own.get("unwarned", np.nan),
    )  # fmt: skip


def _learners(names: pd.Series[str]) -> list[str]:
    first = [name.split("(")[0] for name in names]
    return [LEARNERS.get(name, name) for name in first]


def picture(table: pd.DataFrame) -> Axes:
    """Return the picture of the story."""
    return plots.shares_over(
        table, over=OVER, title="How often x2, a true null of model (e), is selected",
        ylabel="share of runs",
    )  # fmt: skip


def story(run: Run, folder: str) -> str:
    """Return the story for the page: a picture, three sentences, and the numbers."""
    try:
        table = shares(run)
    except InputError:
        return ""
    lines = ["## The surrogate that GCM takes for a cause", ""]
    if folder:
        lines += [f"![How often x2 of model (e) is selected]({folder}/{PICTURE})", ""]
        lines += [f"*{SURROGATE}*", ""]
    lines += [sentences(table), "", *_numbers(table)]
    return "\n".join(lines)


def sentences(table: pd.DataFrame) -> str:
    """Return what there is to say of it, from the numbers."""
    high = sorted(set(table[OVER]))[-3:]
    gcm, right = (
        ", ".join(map(number, _row(table, part, "boosting", high)))
        for part in ("GCM, the paper's mode", RIGHT_PART)
    )
    ours = table[table["part"] == DEFAULT_PART]
    runs, many = int(ours["runs"].sum()), int(ours["runs"].min())
    chosen = round(float((ours["share"] * ours["runs"]).sum()))
    silent = round(float((ours["unwarned"].fillna(ours["share"]) * ours["runs"]).sum()))
    corrected = f", and cross-fitted and corrected in {right}" if right else ""
    return (
        "In the paper's model (e) x2 copies x1 and has no effect of its own, and the paper calls "
        f"GCM robust there. At correlations of {', '.join(f'{value:g}' for value in high)} its GCM "
        f"with boosting selects x2 in {gcm} of the runs{corrected}: the learner leaves some of x1 "
        "in both residuals, and the test takes what is left for an effect. "
        f"covaria's default, on the same rows, selects it in {chosen} of {runs} runs over all "
        f"correlations, {silent} of them without a warning ({many} runs at each)."
    )


def _row(table: pd.DataFrame, part: str, label: str, values: list[float]) -> list[float]:
    own = table[(table["part"] == part) & (table["label"] == label)].set_index(OVER)["share"]
    return [float(own[value]) for value in values if value in own.index]


def _numbers(table: pd.DataFrame) -> list[str]:
    values = sorted(set(table[OVER]))
    lines = ["| share of runs that select x2, at ρ = | " + " | ".join(f"{v:g}" for v in values) +
             " | runs each |", "| --- |" + " --- |" * (len(values) + 1)]  # fmt: skip
    for (part, label), own in table.groupby(["part", "label"], sort=False):
        by = own.set_index(OVER)["share"]
        cells = [number(float(by[v])) if v in by.index else "—" for v in values]
        lines.append(f"| {part}: {label} | " + " | ".join(cells) + f" | {own['runs'].min()} |")
    return lines
