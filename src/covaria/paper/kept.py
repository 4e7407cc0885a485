"""What is kept of a simulation: one CSV file, a row per run and method, and who made the rows.

A row has the counts, the numbers of the features that were chosen and warned of, and the p-values.
Figures, claims and the averages of each feature come from these rows alone. The lines on top are
stamps, one for each piece of the study that was run by itself.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError
from covaria.paper.studies import STUDIES
from covaria.studies import metrics
from covaria.studies.grid import Grid, Source, read_grid
from covaria.studies.metrics import CELL
from covaria.studies.pools import Task
from covaria.studies.runner import versions
from covaria.tables.files import read_csv
from covaria.tables.writing import write_text

if TYPE_CHECKING:
    import pandas as pd

COUNTS = ["tp", "fp", "tn", "fn"]
# Above this many features p-values and a table of each feature are not small any more.
MOST_FEATURES = 50
# What tells a run's method from the others, and what is kept of each beside its counts.
DRAW = (*CELL, "repeat", "method")
KEPT = ("chosen", "p_values", "warned")


@dataclass(frozen=True)
class Stamp:
    """What made rows: the command, its seed, the commit, the versions, and the time of the CPU.

    `cpu_seconds` is None where it was not measured, `commit` empty where it is not known.
    """

    command: str
    seed: int
    versions: Mapping[str, str]
    commit: str = ""
    tasks: int = 0
    cpu_seconds: float | None = None

    @classmethod
    def now(cls, command: str, seed: int, tasks: int = 0, seconds: float | None = None) -> Stamp:
        """Return the stamp of what this source makes."""
        took = None if seconds is None else round(seconds, 1)
        return cls(command, seed, versions(), commit(), tasks, took)

    @classmethod
    def read(cls, line: str) -> Stamp:
        """Return the stamp in the first line of a file."""
        try:
            return cls(**json.loads(line.removeprefix("#")))
        except (ValueError, TypeError) as error:
            raise ValueError(f"no stamp: {line[:60]}") from error

    @property
    def line(self) -> str:
        return "# " + json.dumps(asdict(self), ensure_ascii=False, sort_keys=True)

    @property
    def origin(self) -> tuple[object, ...]:
        """Return what two pieces share that may stand under one stamp."""
        return self.command, self.seed, self.commit, tuple(sorted(self.versions.items()))


@cache
def commit() -> str:
    """Return the commit of the source that runs, "" where there is no repository."""
    words = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    with suppress(OSError, subprocess.SubprocessError):
        found = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)
        if found.returncode == 0:
            return found.stdout.strip()
    return ""


# The features of each scenario, and those that matter.
Truth = Mapping[str, tuple[Sequence[str], Collection[str]]]


@dataclass(frozen=True, eq=False)
class Results:
    """A simulation's runs with what each chose, what is true of its features, who made them.

    Runs that were kept by their counts alone have the averages of their features beside them.
    """

    runs: pd.DataFrame
    truth: Truth = field(default_factory=dict)
    stamps: tuple[Stamp, ...] = ()
    averages: pd.DataFrame | None = None

    @cached_property
    def features(self) -> pd.DataFrame:
        """Return a row per method and feature: p-values on average, how often selected."""
        return features(self.runs, self.truth) if self.averages is None else self.averages

    def of(self, runs: pd.DataFrame) -> Results:
        """Return these results with other runs of the same scenarios."""
        return replace(self, runs=runs)

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


# --- from the rows of a study ------------------------------------------------------------------


def per_draw(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row per run and method: the numbers of the features it chose, and its p-values.

    P-values have four digits; of many features there are none. The numbers of the features that a
    run warned of stand beside them, where it looked for warnings.
    """
    import pandas as pd

    rows = [
        dict(zip(DRAW, key, strict=True)) | _of_draw(own)
        for key, own in table.groupby(list(DRAW), sort=False)
    ]
    return pd.DataFrame(rows, columns=[*DRAW, *KEPT])


def _of_draw(own: pd.DataFrame) -> dict[str, str]:
    p = own["p_value"].to_numpy(dtype=float)
    shown = [f"{value:.4g}" for value in p] if len(p) <= MOST_FEATURES else []
    return {
        "chosen": _numbers(own.loc[own["selected"] == 1, "feature"]),
        "p_values": " ".join(shown) if np.isfinite(p).all() else "",
        "warned": _numbers(own.loc[own["status"].str.startswith("ok: "), "feature"]),
    }


def _numbers(features: Iterable[str]) -> str:
    return " ".join(name.removeprefix("x") for name in features)


# --- from the rows of the file -----------------------------------------------------------------


def results(study: str, mode: str, runs: pd.DataFrame, stamps: Sequence[Stamp] = ()) -> Results:
    """Return runs with their rates, and the average of each feature."""
    rates = metrics.rates(*(runs[name].to_numpy(dtype=float) for name in COUNTS))
    at = list(runs.columns).index("fn") + 1
    full = runs.copy()
    for name in reversed(metrics.METRICS):
        full.insert(at, name, np.asarray(rates[name]))
    return Results(full, _truth(study, mode), tuple(stamps))


@cache
def _grid(study: str, mode: str) -> Grid:
    return read_grid(STUDIES[study].grid(mode))


def _truth(study: str, mode: str) -> Truth:
    first = {cell.scenario: cell for cell in reversed(_grid(study, mode).cells)}
    models = {name: Source(cell).model() for name, cell in first.items()}
    return {name: (model.names, set(model.support)) for name, model in models.items() if model}


def features(runs: pd.DataFrame, truth: Truth) -> pd.DataFrame:
    """Return a row per method and feature: p-values on average, their sd, how often selected."""
    import pandas as pd

    most = max((len(names) for names, _ in truth.values()), default=0)
    if "chosen" not in runs or not 0 < most <= MOST_FEATURES:
        return pd.DataFrame()
    runs = _filled(runs)
    keys = [*(c for c in runs.columns[: list(runs.columns).index("repeat")]), "method"]
    parts = []
    for key, own in runs.groupby(keys, sort=False, dropna=False):
        part = _averages(own, *truth[str(key[0])])
        head = pd.DataFrame([key] * len(part), columns=keys)
        parts.append(pd.concat([head, part], axis=1))
    return pd.concat(parts, ignore_index=True)


def _averages(runs: pd.DataFrame, names: Sequence[str], active: Collection[str]) -> pd.DataFrame:
    import pandas as pd

    p, chosen = _p_values(runs["p_values"], len(names)), _marked(runs["chosen"], len(names))
    spread = p.std(axis=0, ddof=1) if len(runs) > 1 else np.full(len(names), np.nan)
    found = {
        "feature": list(names), "active": [name in active for name in names],
        "runs": len(runs), "p_mean": p.mean(axis=0), "p_sd": spread,
        "p_se": spread / np.sqrt(len(runs)), "selected": chosen.mean(axis=0),
    }  # fmt: skip
    if "warned" in runs:
        warned = _marked(runs["warned"], len(names))
        found |= {"warned": warned.mean(axis=0), "unwarned": (chosen & ~warned).mean(axis=0)}
    return pd.DataFrame(found)


def _p_values(cells: pd.Series[str], many: int) -> NDArray[np.float64]:
    """Return p-values, a row a run; nan of methods that have none."""
    none = [np.nan] * many
    return np.array([[float(v) for v in cell.split()] or none for cell in cells])


def _marked(cells: pd.Series[str], many: int) -> NDArray[np.bool_]:
    """Return which features have their number in each cell."""
    found = np.zeros((len(cells), many), dtype=bool)
    for row, cell in zip(found, cells, strict=True):
        row[[int(number) - 1 for number in cell.split()]] = True
    return found


# --- the file ----------------------------------------------------------------------------------


def path_of(folder: Path, study: str, mode: str) -> Path:
    return folder / f"{study}-{mode}.csv"


def read_results(folder: Path, study: str, mode: str) -> Results | None:
    """Return what `write_results` wrote, or None where there is nothing of this simulation."""
    path = path_of(folder, study, mode)
    if not path.is_file():
        return None
    made_by = stamps(path)
    table = read_csv(path, comment="#", dtype=dict.fromkeys(KEPT, str))
    if "chosen" not in table:
        beside = path.with_name(f"{path.stem}-features.csv")
        averages = read_csv(beside, comment="#") if beside.is_file() else None
        return replace(results(study, mode, table, made_by), averages=averages)
    if table["method"].isna().any():
        raise InputError(f"{path} has runs without a method. Take results that are whole.")
    return results(study, mode, _filled(table), made_by)


def _filled(table: pd.DataFrame) -> pd.DataFrame:
    """Return rows in which what was not chosen or warned of is empty text."""
    return table.assign(**{name: table[name].fillna("") for name in KEPT if name in table})


def stamps(path: Path) -> list[Stamp]:
    """Return the stamps on top of a file."""
    with path.open(encoding="utf-8") as file:
        return [Stamp.read(line) for line in takewhile(lambda line: line.startswith("#"), file)]


def write_results(folder: Path, study: str, mode: str, new: Results) -> None:
    """Write a simulation's rows, beside those of other draws that the file has already."""
    before = None
    with suppress(ValueError, KeyError):  # what cannot be read is written again
        before = read_results(folder, study, mode)
    found = new if before is None else beside(study, mode, before, new)
    if before is not None and len(found.runs) == len(before.runs):
        return
    shown = found.runs.drop(columns=list(metrics.METRICS))
    shown = shown.assign(seconds=[float(f"{s:.3g}") for s in shown["seconds"]])
    folder.mkdir(parents=True, exist_ok=True)
    _write(path_of(folder, study, mode), shown, found.stamps)


def read_table(folder: Path, name: str, size: int, seed: int) -> pd.DataFrame | None:
    """Return a small table of so many runs with this seed, None where there is no such."""
    path = folder / f"{name}.csv"
    if not path.is_file() or {stamp.seed for stamp in stamps(path)} != {seed}:
        return None
    table = read_csv(path, comment="#")
    return table if _runs(table) == size else None


def _runs(table: pd.DataFrame) -> int:
    return int(table["runs" if "runs" in table else "draws"].max())


def write_table(folder: Path, name: str, table: pd.DataFrame, stamp: Stamp) -> None:
    """Write a small table with what made it; a quick one replaces nothing fuller."""
    path = folder / f"{name}.csv"
    if path.is_file() and _runs(read_csv(path, comment="#")) > _runs(table):
        return
    folder.mkdir(parents=True, exist_ok=True)
    _write(path, table, [stamp])


def _write(path: Path, frame: pd.DataFrame, stamps: Sequence[Stamp]) -> None:
    head = "".join(f"{stamp.line}\n" for stamp in stamps)
    write_text(path, head + frame.to_csv(index=False, lineterminator="\n", float_format="%.6g"))


# --- pieces of one study -----------------------------------------------------------------------


def cells_of(study: str, mode: str) -> dict[tuple[str, str, str], int]:
    """Return the number of each cell, by scenario, setting and learner."""
    cells = _grid(study, mode).cells
    return {(c.scenario, c.setting, c.learner): at for at, c in enumerate(cells)}


def _places(study: str, mode: str, runs: pd.DataFrame) -> list[Task]:
    """Return the task of each row."""
    cells = cells_of(study, mode)
    keys = zip(runs["scenario"], runs["setting"], runs["learner"], runs["repeat"], strict=True)
    try:
        return [
            (cells[scenario, setting, learner], int(at)) for scenario, setting, learner, at in keys
        ]
    except KeyError as error:
        raise InputError(
            f"The results of {study} in {mode} mode have a cell that it has not: {error}. Make "
            "them again."
        ) from error


def tasks(study: str, mode: str, first: int | None = None) -> set[Task]:
    """Return all tasks of a study, or those of the first repeats."""
    return {task for task in _grid(study, mode).tasks if first is None or task[1] < first}


def tasks_of(study: str, mode: str, runs: pd.DataFrame) -> set[Task]:
    """Return the tasks of which there are rows."""
    return set(_places(study, mode, runs))


def without(runs: pd.DataFrame, tasks: Collection[Task], study: str, mode: str) -> pd.DataFrame:
    """Return the rows of all other tasks."""
    return runs[[task not in tasks for task in _places(study, mode, runs)]]


def only(found: Results, tasks: Collection[Task], study: str, mode: str) -> Results:
    """Return the results of some tasks."""
    return found.of(found.runs[[task in tasks for task in _places(study, mode, found.runs)]])


def beside(study: str, mode: str, before: Results, new: Results) -> Results:
    """Return two pieces as one, in the order of the study; what is there already stays."""
    import pandas as pd

    more = without(new.runs, tasks_of(study, mode, before.runs), study, mode)
    both = pd.concat([before.runs, more], ignore_index=True).drop(columns=list(metrics.METRICS))
    places = _places(study, mode, both)
    order = sorted(range(len(both)), key=places.__getitem__)
    return results(study, mode, _filled(both.iloc[order].reset_index(drop=True)),
                   gathered([*before.stamps, *new.stamps]))  # fmt: skip


def gathered(stamps: Iterable[Stamp]) -> list[Stamp]:
    """Return stamps, those of one origin as one."""
    found: dict[tuple[object, ...], Stamp] = {}
    for stamp in stamps:
        known = found.get(stamp.origin)
        if known is None:
            found[stamp.origin] = stamp
            continue
        seconds = (known.cpu_seconds or 0) + (stamp.cpu_seconds or 0)
        found[stamp.origin] = replace(
            stamp, tasks=known.tasks + stamp.tasks, cpu_seconds=round(seconds, 1)
        )
    return list(found.values())
