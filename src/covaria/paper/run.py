"""What the figures are made from: simulations run or resumed, or their stored results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from covaria.errors import InputError
from covaria.paper import kept
from covaria.paper.kept import Results, Stamp, read_results
from covaria.paper.studies import MODES, STUDIES
from covaria.studies import metrics
from covaria.studies.pools import Task
from covaria.studies.results import Study
from covaria.studies.runner import Standing, read_study, run_in_store
from covaria.studies.store import readable
from covaria.tables.files import read_csv

if TYPE_CHECKING:
    import pandas as pd

DECIDES = "gcm+pcm"
Made = TypeVar("Made")
Timed = tuple[Made, float | None]


def timed(make: Callable[[], Made], n_jobs: int = 1) -> Timed[Made]:
    """Return what a function makes, and the CPU's seconds; None where other processes helped."""
    before = time.process_time()
    made = make()
    return made, time.process_time() - before if n_jobs == 1 else None


@dataclass(frozen=True)
class Run:
    """How figures are made: in which mode, from how many repeats, and where things are kept.

    `results` is a folder of CSV files written before: they are read, and nothing is run. `onto` is
    one that a run goes on from and adds to, `results` in its own folder where none is given.
    `known` and `real` keep what was made of simulations and of real tables: several figures share
    it.
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
    real: dict[tuple[str, str], Timed[dict[str, pd.DataFrame]]] = field(default_factory=dict)
    tables: dict[str, Timed[pd.DataFrame]] = field(default_factory=dict)
    onto: Path | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"mode {self.mode!r} is not one of {', '.join(MODES)}.")

    def store(self, study: str) -> Path:
        """Return the store of a simulation in this mode."""
        return self.folder / "stores" / f"{study}-{self.mode}.sqlite"

    @property
    def kept(self) -> Path:
        """Return the folder of results that a run goes on from and adds to."""
        return self.onto or self.folder / "results"

    def many(self, study: str) -> int | None:
        """Return how many repeats are wanted of a simulation, None for all."""
        return self.repeats or (STUDIES[study].fast if self.fast else None)

    def of(self, study: str) -> Results:
        """Return a simulation's results: as stored, or after running what is left of it."""
        key = (study, self.mode)
        if key not in self.known:
            self.known[key] = self._run(study) if self.results is None else self._read(study)
        return self.known[key]

    def together(self, studies: Sequence[str]) -> Results:
        """Return the results of several simulations; in default mode beside the paper's rivals.

        One whose results are not stored is left out, as long as another is there.
        """
        if self.mode == "default":
            rivals = replace(self, mode="paper").together(studies)
            return in_its_place(self.of(STUDIES[studies[0]].default or studies[0]), rivals)
        found, reason = [], None
        for study in studies:
            try:
                found.append(self.of(study))
            except InputError as error:
                if self.results is None:
                    raise
                reason = error
        if not found:
            assert reason is not None
            raise reason
        return joined(found)

    def table(self, name: str, make: Callable[[], pd.DataFrame], size: int) -> pd.DataFrame:
        """Return a small table of so many runs: as stored, or made now to be kept."""
        if self.results is not None:
            path = self.results / f"{name}.csv"
            if not path.is_file():
                raise self.missing(name)
            return read_csv(path, comment="#")
        if name not in self.tables:
            there = kept.read_table(self.kept, name, size, self.seed)
            if there is not None:
                return there
            self.tables[name] = timed(make)
        return self.tables[name][0]

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
        """Return a simulation's results after running what is not kept of it yet."""
        many, before = self.many(study), self._before(study)
        skip = kept.tasks_of(study, self.mode, before.runs) if before else set()
        wanted = kept.tasks(study, self.mode, many)
        if before is None or not skip.issuperset(wanted):
            new = self._new(study, many, skip)
            kept.write_results(self.kept, study, self.mode, new)
            before = new if before is None else kept.beside(study, self.mode, before, new)
        return kept.only(before, wanted, study, self.mode)

    def _before(self, study: str) -> Results | None:
        """Return the kept results of a simulation; raise where they are of another seed."""
        found = read_results(self.kept, study, self.mode)
        others = {stamp.seed for stamp in found.stamps} - {self.seed} if found else set()
        if others:
            raise InputError(
                f"{self.kept} holds results of {study} with seed {min(others)}, not {self.seed}. "
                "Give another folder with --onto or --out."
            )
        return found

    def _new(self, study: str, many: int | None, skip: set[Task]) -> Results:
        store = self.store(study)
        store.parent.mkdir(parents=True, exist_ok=True)
        run_in_store(
            STUDIES[study].grid(self.mode, self.seed), store, n_jobs=self.n_jobs, dask=self.dask,
            first=many, progress=self.progress(f"{study} ({self.mode})") if self.progress else None,
            apart=self.apart, skip=skip,
        )  # fmt: skip
        found = read_study(store)
        runs = from_rows(found)
        done = kept.tasks_of(study, self.mode, runs) - skip
        with readable(store) as opened:
            seconds = opened.seconds()
        command = f"covaria paper {STUDIES[study].figure} --mode {self.mode}"
        stamp = Stamp.now(command, self.seed, len(done), sum(seconds[task] for task in done))
        return kept.results(study, self.mode, kept.without(runs, skip, study, self.mode), [stamp])


def from_rows(found: Study) -> pd.DataFrame:
    """Return a row per run and method of a study: its counts, and what it chose."""
    runs = found.runs.drop(columns=list(metrics.METRICS))
    drawn = kept.per_draw(found.table)
    return runs.merge(drawn, how="left", on=[c for c in kept.DRAW if c in runs])


def joined(found: Sequence[Results]) -> Results:
    """Return results of several simulations as one."""
    import pandas as pd

    if len(found) == 1:
        return found[0]
    runs = pd.concat([one.runs for one in found], ignore_index=True)
    truth = {name: known for one in found for name, known in one.truth.items()}
    stamps = tuple(stamp for one in found for stamp in one.stamps)
    if all(one.averages is None for one in found):
        return Results(runs, truth, stamps)
    averages = pd.concat([one.features for one in found], ignore_index=True)
    return Results(runs, truth, stamps, averages)


def in_its_place(default: Results, rivals: Results) -> Results:
    """Return the default's verdicts in the place of GCM's, beside rivals on the same rows.

    The default has one learner, whose rows stand beside those of each of the rivals'.
    """
    import pandas as pd

    kinds = rivals.runs[["scenario", "learner", "options"]].drop_duplicates()
    own = default.runs[default.runs["method"] == DECIDES].assign(method="gcm")
    copies = [
        own[own["scenario"] == scenario].assign(learner=learner, options=options)
        for scenario, learner, options in kinds.itertuples(index=False)
    ]
    others = rivals.runs
    same = (others["method"] != "gcm") & (others["repeat"] <= own["repeat"].max())
    runs = pd.concat([*copies, others[same]], ignore_index=True)
    # Rivals that were kept by their counts alone have no features.
    averages = None if "chosen" in others else pd.DataFrame()
    return Results(runs, rivals.truth, default.stamps, averages)
