"""The paper's real tables and figures: table1 to table6, fig8, fig9 and sfig5 to sfig8."""

from __future__ import annotations

from functools import partial

from covaria.nuisance.plan import Progress
from covaria.paper import statements as real_items
from covaria.paper.captions import CAPTIONS
from covaria.paper.published import LEARNERS, SHOWN, published
from covaria.paper.registry import Claim, Figure, Made, add
from covaria.paper.run import Run, timed
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
    seeds = run.repeats or (FAST_SEEDS if run.fast else SEEDS)
    there = _there(name, run, seeds)
    if there is not None:
        return there
    known = published(name)
    key = (known.table, run.mode)
    if key not in run.real:
        made = partial(
            real_items.run, name, mode=run.mode, fast=run.fast, seeds=seeds, seed=run.seed,
            n_jobs=run.n_jobs, progress=_progress(name, run),
            kept=run.folder / "stores" / f"{known.dataset}-{run.mode}.draws",
        )  # fmt: skip
        run.real[key] = timed(made, run.n_jobs)
    return run.real[key][0]


def _there(name: str, run: Run, seeds: int) -> real_items.Frames | None:
    """Return what a run goes on from, where that has just these draws of the folds."""
    if run.onto is None or run.fast:
        return None
    folder = run.onto / "real"
    found = real_items.stored(folder, name, run.mode)
    if found is None or real_items.seed_of(folder, name, run.mode) != run.seed:
        return None
    errors = found["errors"]
    whole = set(errors["learner"]) == set(LEARNERS) and set(errors["seeds"]) == {seeds}
    return found if whole else None


def _progress(name: str, run: Run) -> Progress | None:
    advance = run.progress(name) if run.progress else None
    if advance is None:
        return None
    return lambda done, total: advance(Standing(total, done, 0))


for _name, _about in real_items.ITEMS.items():
    _caption = CAPTIONS.get(_name, "")
    add(Figure(_name, _about, partial(make, _name), simulated=False, caption=_caption))
