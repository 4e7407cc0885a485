"""How long the whole reproduction takes, from the seconds of the CPU on the stamps of results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from covaria.errors import InputError
from covaria.paper.kept import path_of, stamps, tasks
from covaria.paper.statements import signed
from covaria.paper.studies import COLUMNS, OPEN, STUDIES
from covaria.tables.files import read_csv

CORES, HOUR = 2, 3600.0
SMALL = ("fig2", "theory", "permutation")
HEAD = f"""## How long it takes

`covaria paper all` at full size in three columns, from the seconds of the CPU on the stamps: what
was run tells what a task takes, and all tasks take as many times that. Methods of one task share
models, so that times of methods do not add up to it; where a stamp has no time their sum stands
here as a limit (≤). Full means the paper's repeats; {CORES} cores halve the hours.
"""
TABLE = "| simulation | column | tasks with a time | all tasks | seconds a task | hours |"


@dataclass(frozen=True)
class Cost:
    """What a part takes: pieces whose time is known, all pieces, seconds of the CPU a piece."""

    part: str
    column: str
    known: int
    full: int
    seconds: float  # of one piece
    is_limit: bool = False

    @property
    def hours(self) -> float:
        return self.full * self.seconds / HOUR

    @property
    def row(self) -> str:
        limit = "≤ " if self.is_limit else ""
        return (
            f"| {self.part} | {self.column} | {self.known:,} | {self.full:,} | "
            f"{limit}{self.seconds:.3g} | {limit}{self.hours:.2f} |"
        )


def costs(folder: Path) -> list[Cost]:
    """Return what each simulation of each column takes, and each table, as far as it is known."""
    simulated = [_simulation(folder, study, mode) for mode in COLUMNS for study in STUDIES]
    return [one for one in (*simulated, *_small(folder), *_real(folder)) if one]


def _simulation(folder: Path, study: str, mode: str) -> Cost | None:
    path = path_of(folder, study, mode)
    if not path.is_file() or mode not in STUDIES[study].modes:
        return None
    full = len(tasks(study, mode))
    timed = [stamp for stamp in stamps(path) if stamp.cpu_seconds is not None and stamp.tasks]
    if timed:
        many = sum(stamp.tasks for stamp in timed)
        return Cost(study, mode, many, full, sum(stamp.cpu_seconds or 0 for stamp in timed) / many)
    runs = read_csv(path, comment="#")
    key = ["scenario", "setting", "learner", "repeat"]
    each = runs.groupby(key, sort=False)["seconds"].sum()
    return Cost(study, mode, 0, full, float(each.mean()), is_limit=True)


def _small(folder: Path) -> Iterator[Cost]:
    for name in SMALL:
        path = folder / f"{name}.csv"
        for stamp in stamps(path) if path.is_file() else ():
            if stamp.cpu_seconds is not None:
                yield Cost(name, "all", 1, 1, stamp.cpu_seconds)


def _real(folder: Path) -> Iterator[Cost]:
    for mode, made in signed(folder / "real").items():
        for name, how in made.items():
            if how.get("cpu_seconds") is not None:
                yield Cost(name, mode, 1, 1, float(how["cpu_seconds"]))


def missing(folder: Path) -> list[str]:
    """Return the parts of which no time is known."""
    known = {(one.part, one.column) for one in costs(folder)}
    panels = {setting.study for settings in OPEN.values() for setting in settings}
    wanted = [
        (study, mode)
        for mode in COLUMNS
        for study in STUDIES
        if mode in STUDIES[study].modes and (mode == COLUMNS[0] or study not in panels)
    ]
    return [f"{study} ({mode})" for study, mode in wanted if (study, mode) not in known]


def how_long(folder: Path) -> str:
    """Return the table of costs for the page, "" where none are known."""
    try:
        found = costs(folder)
    except InputError:
        return ""
    if not found:
        return ""
    exact = sum(one.hours for one in found if not one.is_limit)
    limits = sum(one.hours for one in found if one.is_limit)
    total = (
        f"In all {exact:.1f} hours of the CPU that were measured and at most {limits:.1f} that "
        f"were not: {exact / CORES:.1f} to {(exact + limits) / CORES:.1f} hours on {CORES} cores."
    )
    left = missing(folder)
    without = f" Not counted, for no run of them is stored: {', '.join(left)}." if left else ""
    return "\n".join([HEAD, TABLE, "| --- |" + " --- |" * 5, *(one.row for one in found), "",
                      total + without])  # fmt: skip
