"""What the figures are made from: simulations run or resumed, or their stored results."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from covaria.errors import InputError
from covaria.paper.studies import MODES, STUDIES
from covaria.studies import metrics
from covaria.studies.metrics import CELL
from covaria.studies.results import Study
from covaria.studies.runner import Standing, read_study, run_in_store, versions
from covaria.studies.store import readable
from covaria.tables.files import read_csv
from covaria.tables.writing import write_text

if TYPE_CHECKING:
    import pandas as pd

COUNTS = ["tp", "fp", "tn", "fn"]
# Above this many features a table of each of them is not small any more.
MOST_FEATURES = 50
# What tells a run's method from the others, and what is kept of each beside its counts.
DRAW = (*CELL, "repeat", "method")
KEPT = ("chosen", "p_values")
DECIDES = "gcm+pcm"


@dataclass(frozen=True)
class Results:
    """A simulation's runs and features, as `metrics.runs` and `metrics.features` give them."""

    runs: pd.DataFrame
    features: pd.DataFrame
    made_by: str = ""

    @property
    def repeats(self) -> int:
        """Return how many repeats the cell with the fewest has."""
        return int(self.repeats_by.min())

    @property
    def repeats_by(self) -> pd.Series[int]:
        """Return the repeats of each cell."""
        return self.runs.groupby(["scenario", "setting", "learner"])["repeat"].nunique()

    @property
    def by_learner(self) -> dict[str, int]:
        """Return the repeats of each learner, of the cell with the fewest."""
        found = self.repeats_by.groupby("learner", sort=False).min()
        return {str(name).split("(")[0]: int(many) for name, many in found.items()}


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
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)

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

    def table(self, name: str, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """Return a small table: as stored in the folder of results, or made now and kept there."""
        if self.results is not None:
            path = self.results / f"{name}.csv"
            if not path.is_file():
                raise self.missing(name)
            return read_csv(path, comment="#")
        if name not in self.tables:
            self.tables[name] = make()
        return self.tables[name]

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
        with readable(store) as opened:
            seconds = opened.seconds(many)
        made_by = stamp(found.about["versions"], self.seed, _flags(self, study), seconds)
        return from_rows(replace(found, table=table), made_by)


def from_rows(found: Study, made_by: str) -> Results:
    """Return the results of a study: what each run chose, and each feature on average."""
    drawn = per_draw(found.table)
    runs = found.runs.merge(drawn, how="left", on=[c for c in DRAW if c in found.runs])
    return Results(runs, _warned(found), made_by)


def per_draw(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row per run and method: the numbers of the features it chose, and its p-values.

    P-values have four digits; of many features there are none.
    """
    import pandas as pd

    rows = []
    for key, own in table.groupby(list(DRAW), sort=False):
        chosen = [name.removeprefix("x") for name in own.loc[own["selected"] == 1, "feature"]]
        p = own["p_value"].to_numpy(dtype=float)
        shown = [f"{value:.4g}" for value in p] if len(p) <= MOST_FEATURES else []
        rows.append(
            dict(zip(DRAW, key, strict=True))
            | {
                "chosen": " ".join(chosen),
                "p_values": " ".join(shown) if np.isfinite(p).all() else "",
            }
        )
    return pd.DataFrame(rows, columns=[*DRAW, *KEPT])


def _warned(found: Study) -> pd.DataFrame:
    """Return each feature on average, with the share of runs that warned of it."""
    table, features = found.table, found.features
    warned = table["status"].str.startswith("ok: ")
    if not warned.any():
        return features
    keys = [c for c in (*CELL, "method", "feature") if c in features]
    silent = table["selected"].astype(bool) & ~warned
    both = table.assign(warned=warned.astype(float), unwarned=silent.astype(float))
    shares = both.groupby(keys, sort=False)[["warned", "unwarned"]].mean()
    return features.merge(shares.reset_index(), how="left", on=keys)


def stamp(packages: Mapping[str, str], seed: int, command: str, seconds: float | None) -> str:
    """Return what made results: versions, commit, seed, command and time, as one line."""
    named = ", ".join(f"{name} {version}" for name, version in packages.items())
    took = "" if seconds is None else f"; all tasks took {seconds:.0f} s of one process"
    return f"{named}, commit {commit()}, seed {seed}, {command}{took}"


@cache
def commit() -> str:
    """Return the commit of the source that runs, or "unknown" where there is no repository."""
    words = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    with suppress(OSError, subprocess.SubprocessError):
        found = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)
        if found.returncode == 0:
            return found.stdout.strip()
    return "unknown"


def joined(found: Sequence[Results]) -> Results:
    """Return results of several simulations as one."""
    import pandas as pd

    if len(found) == 1:
        return found[0]
    runs = pd.concat([one.runs for one in found], ignore_index=True)
    features = pd.concat([one.features for one in found], ignore_index=True)
    return Results(runs, features, "\n".join(one.made_by for one in found))


def in_its_place(default: Results, rivals: Results) -> Results:
    """Return the default's verdicts in the place of GCM's, beside rivals on the same rows.

    The default has one learner, whose rows stand beside those of each of the rivals'.
    """
    import pandas as pd

    kinds = rivals.runs[["scenario", "learner", "options"]].drop_duplicates()
    cells = list(kinds.itertuples(index=False))

    def placed(own: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
        both = own[own["method"] == DECIDES].assign(method="gcm")
        copies = [
            both[both["scenario"] == scenario].assign(learner=learner, options=options)
            for scenario, learner, options in cells
        ]
        left = others[others["method"] != "gcm"]
        found: pd.DataFrame = pd.concat([*copies, left], ignore_index=True)
        return found

    many = default.runs["repeat"].max()
    beside = rivals.runs[rivals.runs["repeat"] <= many]
    features = rivals.features
    if not (features.empty or default.features.empty):
        features = placed(default.features, features)
    return Results(placed(default.runs, beside), features, default.made_by)


def _flags(run: Run, study: str) -> str:
    flags = f" --mode {run.mode}" + (" --fast" if run.fast else "")
    flags += f" --repeats {run.repeats}" if run.repeats else ""
    return f"covaria paper {STUDIES[study].figure}{flags}"


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


def write_table(folder: Path, name: str, table: pd.DataFrame, run: Run) -> None:
    """Write a small table with what made it; a quick one replaces nothing fuller."""
    path, size = folder / f"{name}.csv", "runs" if "runs" in table else "draws"
    if path.is_file() and read_csv(path, comment="#")[size].max() > table[size].max():
        return
    folder.mkdir(parents=True, exist_ok=True)
    flags = (" --fast" if run.fast else "") + (f" --repeats {run.repeats}" if run.repeats else "")
    _write(path, table, stamp(versions(), run.seed, f"covaria paper {name}{flags}", None))


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
