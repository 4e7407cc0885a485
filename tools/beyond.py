"""Recall against models fitted, for docs/beyond.md: GCM, LOCO, PCM, gcm+pcm and Lazy-GCM.

    python tools/beyond.py [--draws 5]       run, store results/beyond.csv, draw
    python tools/beyond.py --draw            draw docs/beyond.svg from the stored table

All methods test the same draws of models (a) and (b) with the same network in three folds. A row
of the table is a draw and a method: useful features that were found at p < .05, useless ones, how
many of each there are, and the models that the method fitted.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import covaria
from covaria.methods import METHODS
from covaria.plots.saving import COLOURS, MARKERS, save

ROOT = Path(__file__).resolve().parent.parent
STORE, PICTURE = ROOT / "results" / "beyond.csv", ROOT / "docs" / "beyond.svg"
MODELS = {"linear": "(a), linear", "additive": "(b), additive"}
TESTED = ("gcm", "loco", "pcm", "gcm+pcm", "lazy_gcm")
N_ROWS, N_FOLDS, LEVEL = 300, 3, 0.05


def one_draw(model: str, seed: int, learner: str = "network") -> list[dict[str, object]]:
    """Return what each method found in one draw of a model, and how many models that took."""
    X, y = covaria.draw(model, n_rows=N_ROWS, seed=seed)
    useful = np.isin(X.columns, covaria.scenario(model).support)
    options = {"learner": learner, "splits": N_FOLDS, "seed": seed, "check": False}
    result = covaria.assess(X, y, methods=list(TESTED), **options)
    rows = []
    for method in TESTED:
        p = result.table.loc[result.table["method"] == method, "p_value"].to_numpy()
        counts = [(p[kind] < LEVEL).sum() for kind in (useful, ~useful)]
        rows.append({
            "model": model, "seed": seed, "method": method, "n_rows": N_ROWS,
            "found": counts[0], "useful": useful.sum(), "false": counts[1],
            "useless": (~useful).sum(), "models": result.about.fits[method],
        })  # fmt: skip
    return rows


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return recall, its standard error over draws, the rate of false finds, and models."""
    table = table.assign(recall=table["found"] / table["useful"])
    grouped = table.groupby(["model", "method"], sort=False)
    sums = grouped[["false", "useless"]].sum()
    return pd.DataFrame({
        "recall": grouped["recall"].mean(), "error": grouped["recall"].sem(),
        "false": sums["false"] / sums["useless"], "models": grouped["models"].mean(),
    })  # fmt: skip


def as_markdown(table: pd.DataFrame) -> str:
    """Return the table of the page."""
    found = summary(table)
    lines = [
        "| | models fitted | recall, model (a) | recall, model (b) | useless ones found, both |",
        "| --- | --- | --- | --- | --- |",
    ]
    for method in TESTED:
        a, b = (found.loc[model, method] for model in MODELS)
        both = table[table["method"] == method][["false", "useless"]].sum()
        cells = [f"{row['recall']:.2f} ± {row['error']:.2f}" for row in (a, b)]
        cells += [f"{both['false']} of {both['useless']}"]
        lines.append(f"| {METHODS[method].label} | {a['models']:.0f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(table: pd.DataFrame, path: Path = PICTURE) -> Path:
    """Return the path of the picture that was drawn."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    _, panels = pyplot.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
    found, draws = summary(table), table["seed"].nunique()
    for axes, (model, title) in zip(panels, MODELS.items(), strict=True):
        for k, method in enumerate(TESTED):
            row = found.loc[model, method]
            axes.errorbar(
                row["models"], row["recall"], yerr=row["error"], color=COLOURS[k],
                marker=MARKERS[k], linestyle="", label=METHODS[method].label,
            )  # fmt: skip
        axes.set(xscale="log", ylim=(0, 1), xlabel="models fitted", title=f"model {title}")
        axes.set_xticks([6, 20, 60, 120, 240], ["6", "20", "60", "120", "240"], minor=False)
        axes.minorticks_off()
    panels[0].set_ylabel(f"recall, mean of {draws} draws")
    panels[1].legend(loc="lower center", fontsize="small")
    return save(panels[0], path)


def main() -> None:
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--draw", action="store_true", help="from the stored table alone")
    given = parser.parse_args()
    if not given.draw:
        rows = [one_draw(model, seed) for seed in range(given.draws) for model in MODELS]
        pd.DataFrame([row for some in rows for row in some]).to_csv(STORE, index=False)
    table = pd.read_csv(STORE)
    print(as_markdown(table))
    print(draw(table))


if __name__ == "__main__":
    main()
