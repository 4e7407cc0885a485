"""The paper's real tables and figures: table1 to table6, fig8, fig9 and sfig5 to sfig8."""

from __future__ import annotations

from functools import partial

from residua.study import real_items
from residua.study.paper.registry import Claim, Figure, Made, add
from residua.study.paper.run import Run

# Draws of the folds; networks take a quarter of them.
SEEDS = 20


def make(name: str, run: Run) -> Made:
    """Return a table or figure from stored results where there are any, else after running it."""
    from residua import plots

    item = None if run.results is None else real_items.stored(run.results / "real", name, run.mode)
    seeds = run.repeats or SEEDS
    if item is None:
        item = real_items.make(
            name, mode=run.mode, fast=run.fast, seeds=seeds, seed=run.seed, n_jobs=run.n_jobs
        )
    shown = item.frame
    return Made(
        table=shown,
        claims=[Claim(name, *verdict) for verdict in item.verdicts],
        draw=partial(plots.selection_rates, shown) if item.is_figure else None,
        runs=2 if run.fast else seeds,
        notes=item.notes,
    )


for _name, _about in real_items.ITEMS.items():
    add(Figure(_name, _about, partial(make, _name), simulated=False))
