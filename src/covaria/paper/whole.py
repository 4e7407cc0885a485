"""The whole page of the reproduction and its pictures, from stored results."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from covaria.errors import InputError
from covaria.paper import surrogate
from covaria.paper.beside import left_open, sharing
from covaria.paper.cost import how_long
from covaria.paper.page import PICTURES, page
from covaria.paper.provenance import provenance
from covaria.paper.registry import Made, figures
from covaria.paper.run import Run
from covaria.paper.studies import COLUMNS
from covaria.plots import save

COMMAND = "covaria paper all --results results"
All = Mapping[str, Mapping[str, Made]]


def make_all(results: Path, seed: int = 0) -> tuple[Run, dict[str, dict[str, Made]]]:
    """Return every figure of every column that stored results hold."""
    run = Run(results.parent, results=results, seed=seed)
    made: dict[str, dict[str, Made]] = {}
    for mode in COLUMNS:
        made[mode] = {}
        for figure in figures().values():
            if figure.make is None or (mode != COLUMNS[0] and not figure.modes):
                continue
            if mode == "default" and not figure.simulated:
                continue  # its refits are the paper's
            try:
                made[mode][figure.name] = figure.make(replace(run, mode=mode))
            except InputError:
                continue  # what is not stored is left out, and the page shows what is
    return run, made | shared_instead(run, made)


def shared_instead(run: Run, made: All) -> dict[str, dict[str, Made]]:
    """Return figures with shared draws, where those of the paper's mode are not stored yet."""
    found = {}
    for name, figure in figures().items():
        if run.results is None or figure.make is None or name in made.get("paper", {name: None}):
            continue
        with suppress(InputError):
            found[name] = figure.make(replace(run, mode="shared"))
    return {"shared": found} if found else {}


def whole_page(run: Run, made: All, command: str = COMMAND) -> str:
    """Return the page, with the story of model (e) first."""
    lead = surrogate.story(run, PICTURES)
    text = page(made, figures(), command, lead=lead, pictures=PICTURES)
    folder = run.results or run.kept
    beside = [
        part
        for part in (sharing(run), left_open(run), how_long(folder), provenance(folder))
        if part
    ]
    return "\n".join([text, *beside]).rstrip() + "\n"


def write_pictures(run: Run, made: All, folder: Path) -> list[Path]:
    """Return the pictures that were written: each figure in the paper's mode, and model (e)."""
    place = folder / PICTURES
    place.mkdir(parents=True, exist_ok=True)
    shown = {name: one for of in reversed(list(made.values())) for name, one in of.items()}
    written = [
        save(one.draw(), place / f"{name}.svg")
        for name, one in shown.items()
        if one.draw is not None
    ]
    try:
        table = surrogate.shares(run)
    except InputError:
        return written
    return [*written, save(surrogate.picture(table), place / surrogate.PICTURE)]
