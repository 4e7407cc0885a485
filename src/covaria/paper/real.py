"""The paper's real tables and figures: table1 to table6, fig8, fig9 and sfig5 to sfig8."""

from __future__ import annotations

from functools import partial

from covaria.nuisance.plan import Progress
from covaria.paper import statements as real_items
from covaria.paper.captions import CAPTIONS
from covaria.paper.published import SHOWN, published
from covaria.paper.registry import Claim, Figure, Made, add
from covaria.paper.run import Run
from covaria.studies.runner import Standing

# Draws of the folds; --fast takes fewer.
SEEDS, FAST_SEEDS = 20, 2
LOCAL = "Run on this machine: --dask is for the simulations."


def make(name: str, run: Run) -> Made:
    """Return a table or figure from stored results, or after running it where none are given."""
    from covaria import plots

    item = real_items.item(name, run.mode, _found(name, run))
    named = item.frame.assign(method=item.frame["method"].map(lambda m: SHOWN.get(m, m)))
    is_local = run.dask is not None and run.results is None
    return Made(
        table=item.frame,
        claims=_claims(name, item),
        draw=partial(plots.selection_rates, named) if item.is_figure else None,
        runs=item.draws,
        notes=(*item.notes, LOCAL) if is_local else item.notes,
    )


def _claims(name: str, item: real_items.Item) -> list[Claim]:
    section = published(name).section
    return [
        Claim(name, said.text, said.numbers, said.verdict, f"{name}-{at}", said.quote, section)
        for at, said in enumerate(item.said, start=1 + item.not_judged)
    ]


def _found(name: str, run: Run) -> real_items.Frames:
    if run.results is not None:
        stored = real_items.stored(run.results / "real", name, run.mode)
        if stored is None:
            raise run.missing(name)
        return stored
    dataset = published(name).dataset
    key = (dataset, run.mode)
    if key not in run.real:
        usual = FAST_SEEDS if run.fast else SEEDS
        run.real[key] = real_items.run(
            name, mode=run.mode, fast=run.fast, seeds=run.repeats or usual, seed=run.seed,
            n_jobs=run.n_jobs, progress=_progress(name, run),
            kept=run.folder / "stores" / f"{dataset}-{run.mode}.draws",
        )  # fmt: skip
    return run.real[key]


def _progress(name: str, run: Run) -> Progress | None:
    advance = run.progress(name) if run.progress else None
    if advance is None:
        return None
    return lambda done, total: advance(Standing(total, done, 0))


for _name, _about in real_items.ITEMS.items():
    _caption = CAPTIONS.get(_name, "")
    add(Figure(_name, _about, partial(make, _name), simulated=False, caption=_caption))
