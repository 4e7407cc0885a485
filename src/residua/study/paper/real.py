"""The paper's real tables and figures: table1 to table6, fig8, fig9 and sfig5 to sfig8."""

from __future__ import annotations

from functools import partial

from residua.study import real_items
from residua.study.paper.registry import Claim, Figure, Made, add
from residua.study.paper.run import Run

# Draws of the folds; networks take a quarter of them.
SEEDS = 20


def make(name: str, run: Run) -> Made:
    """Return a table or figure from stored results, or after running it where none are given."""
    from residua import plots

    if run.results is not None:
        item = real_items.stored(run.results / "real", name, run.mode)
        if item is None:
            raise run.missing(name)
    else:
        item = real_items.make(
            name, mode=run.mode, fast=run.fast, seeds=run.repeats or SEEDS, seed=run.seed,
            n_jobs=run.n_jobs,
        )  # fmt: skip
    shown = item.frame
    return Made(
        table=shown,
        claims=[Claim(name, *verdict) for verdict in item.verdicts],
        draw=partial(plots.selection_rates, shown) if item.is_figure else None,
        runs=item.draws,
        notes=item.notes,
    )


for _name, _about in real_items.ITEMS.items():
    add(Figure(_name, _about, partial(make, _name), simulated=False))
