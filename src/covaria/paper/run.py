"""What the figures are made from: simulations run or resumed, or their stored results."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from covaria.errors import InputError
from covaria.paper.studies import MODES, STUDIES
from covaria.studies import metrics
from covaria.studies.runner import Standing, read_study, run_in_store
from covaria.studies.store import readable
from covaria.tables.files import read_csv
from covaria.tables.writing import write_text

if TYPE_CHECKING:
    import pandas as pd

COUNTS = ["tp", "fp", "tn", "fn"]
# Above this many features a table of each of them is not small any more.
MOST_FEATURES = 50


@dataclass(frozen=True)
class Results:
    """A simulation's runs and features, as `metrics.runs` and `metrics.features` give them."""

    runs: pd.DataFrame
    features: pd.DataFrame
    made_by: str = ""

    @property
    def repeats(self) -> int:
        """Return how many repeats the cell with the fewest has."""
        cells = self.runs.groupby(["scenario", "setting", "learner"])["repeat"].nunique()
        return int(cells.min())


@dataclass(frozen=True)
class Run:
    """How figures are made: in which mode, from how many repeats, and where things are kept.

    `results` is a folder of CSV files written before: they are read, and nothing is run. `known`
    and `real` keep what was made of simulations and of real tables: several figures share it.
    """

    folder: Path
    mode: str = "paper"
    fast: bool = False
    n_jobs: int = 1
    dask: object = None
    seed: int = 0
    results: Path | None = None
    apart: bool = False
    progress: Callable[[str], Callable[[Standing], None] | None] | None = None
    repeats: int | None = None
    known: dict[tuple[str, str], Results] = field(default_factory=dict)
    real: dict[tuple[str, str], dict[str, pd.DataFrame]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"mode {self.mode!r} is not one of {', '.join(MODES)}.")

    def store(self, study: str) -> Path:
        """Return the store of a simulation in this mode."""
        return self.folder / "stores" / f"{study}-{self.mode}.sqlite"

    def many(self, study: str) -> int | None:
        """Return how many repeats are wanted of a simulation, None for all."""
        return self.repeats or (STUDIES[study].fast if self.fast else None)

    def of(self, study: str) -> Results:
        """Return a simulation's results: as stored, or after running what is left of it."""
        key = (study, self.mode)
        if key not in self.known:
            self.known[key] = self._run(study) if self.results is None else self._read(study)
        return self.known[key]

    def missing(self, what: str) -> InputError:
        """Return what to say of results that are not in the folder."""
        return InputError(
            f"{self.results} has nothing of {what} in {self.mode} mode. "
            "Leave --results out to run it."
        )

    def _read(self, study: str) -> Results:
        assert self.results is not None
        found = read_results(self.results, study, self.mode)
        if found is None:
            raise self.missing(f"the simulation '{study}'")
        return found

    def _run(self, study: str) -> Results:
        store = self.store(study)
        store.parent.mkdir(parents=True, exist_ok=True)
        many = self.many(study)
        run_in_store(
            STUDIES[study].grid(self.mode, self.seed), store, n_jobs=self.n_jobs, dask=self.dask,
            first=many, progress=self.progress(f"{study} ({self.mode})") if self.progress else None,
            apart=self.apart,
        )  # fmt: skip
        found = read_study(store)
        table = found.table
        if many is not None:
            table = table[table["repeat"] < many]
        found = replace(found, table=table)
        with readable(store) as opened:
            seconds = opened.seconds(many)
        versions = found.about["versions"]
        made_by = (
            f"covaria {versions['covaria']}, numpy {versions['numpy']}, seed {self.seed}, "
            f"{_flags(self, study)}; all tasks took {seconds:.0f} s of one process"
        )
        return Results(found.runs, found.features, made_by)


def _flags(run: Run, study: str) -> str:
    flags = f" --mode {run.mode}" + (" --fast" if run.fast else "")
    flags += f" --repeats {run.repeats}" if run.repeats else ""
    names = {"boosting": "fig3", "kernel": "sfig3", "surrogate": "fig4", "heavy_tails": "fig5",
             "network": "fig6", "wide_boosting": "fig7", "wide_kernel": "sfig4",
             "canonical": "sfig1"}  # fmt: skip
    return f"covaria paper {names[study]}{flags}"


def _paths(folder: Path, study: str, mode: str) -> tuple[Path, Path]:
    return folder / f"{study}-{mode}-runs.csv", folder / f"{study}-{mode}-features.csv"


def write_results(folder: Path, study: str, mode: str, found: Results) -> None:
    """Write a simulation's results as small CSV files, with what made them in the first line."""
    folder.mkdir(parents=True, exist_ok=True)
    runs, features = _paths(folder, study, mode)
    shown = found.runs.drop(columns=list(metrics.METRICS))
    shown = shown.assign(seconds=[float(f"{s:.3g}") for s in shown["seconds"]])
    _write(runs, shown, found.made_by)
    of = features if found.features["feature"].nunique() <= MOST_FEATURES else None
    if of is not None:
        _write(of, found.features, found.made_by)


def has_fuller(folder: Path, study: str, mode: str, found: Results) -> bool:
    """Return whether results of more repeats than these are stored."""
    with suppress(ValueError, KeyError):  # what cannot be read is written again
        stored = read_results(folder, study, mode)
        return stored is not None and stored.repeats > found.repeats
    return False


def _write(path: Path, frame: pd.DataFrame, made_by: str) -> None:
    text = f"# {made_by}\n" + frame.to_csv(index=False, lineterminator="\n", float_format="%.6g")
    write_text(path, text)


def read_results(folder: Path, study: str, mode: str) -> Results | None:
    """Return what `write_results` wrote, or None where there is nothing of this simulation."""
    import pandas as pd

    runs, features = _paths(folder, study, mode)
    if not runs.is_file():
        return None
    with runs.open(encoding="utf-8") as file:
        made_by = file.readline().removeprefix("#").strip()
    table = read_csv(runs, comment="#")
    rates = metrics.rates(*(table[name].to_numpy(dtype=float) for name in COUNTS))
    at = list(table.columns).index("fn") + 1
    for name in reversed(metrics.METRICS):
        table.insert(at, name, np.asarray(rates[name]))
    per_feature = read_csv(features, comment="#") if features.is_file() else pd.DataFrame()
    return Results(table, per_feature, made_by)
