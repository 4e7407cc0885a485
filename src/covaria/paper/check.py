"""Is the page that of the stored results, and do tasks run again give the stored digits?

The page is made again from the store and compared letter by letter; then a random hundredth of all
stored tasks is run, as far as a limit of time allows, and each run compared with what is stored of
it: the features chosen and the p-values to four digits, or the counts where older results have
those alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from covaria.errors import InputError, plural
from covaria.paper.kept import COUNTS, DRAW, KEPT, read_results, tasks_of
from covaria.paper.run import from_rows
from covaria.paper.studies import MODES, STUDIES
from covaria.paper.whole import make_all, whole_page
from covaria.randomness import stream
from covaria.studies.grid import read_grid
from covaria.studies.results import Study
from covaria.studies.store import COLUMNS, Row
from covaria.studies.task import Work, run_task

if TYPE_CHECKING:
    import pandas as pd

SHARE = 0.01
LIMIT = 120.0  # seconds, for the tasks


@dataclass(frozen=True)
class Checked:
    """What was looked at, a line each, and whether all of it was as stored."""

    lines: tuple[str, ...]
    passed: bool


@dataclass(frozen=True)
class Stored:
    """A task whose runs are stored."""

    study: str
    mode: str
    cell: int
    repeat: int

    def __str__(self) -> str:
        return f"{self.study} ({self.mode} mode), cell {self.cell}, repeat {self.repeat}"


def check(
    results: Path, page: Path, *, seed: int = 0, share: float = SHARE, limit: float = LIMIT
) -> Checked:
    """Return whether the page and a share of the stored tasks come out again."""
    if not results.is_dir():
        raise InputError(f"There is no folder {results}. Give one with --results.")
    same = _is_same_page(results, page)
    lines = [f"{page} is {'' if same else 'not '}what the stored results give."]
    tasks = stored_tasks(results)
    many = math.ceil(share * len(tasks))
    order = stream(seed, "check").permutation(len(tasks))[:many]
    start, done, wrong = time.monotonic(), 0, []
    for task in (tasks[at] for at in order):
        if time.monotonic() - start > limit:
            break
        done += 1
        difference = again(results, task)
        wrong += [f"{task}: {difference}"] if difference else []
    lines.append(
        f"{done} of {plural(many, 'task')} drawn from {len(tasks):,} run again in "
        f"{time.monotonic() - start:.0f} s: {done - len(wrong)} with the stored digits."
    )
    return Checked((*lines, *wrong), same and not wrong)


def _is_same_page(results: Path, page: Path) -> bool:
    run, made = make_all(results)
    return page.is_file() and page.read_text(encoding="utf-8") == whole_page(run, made)


def stored_tasks(results: Path) -> list[Stored]:
    """Return all tasks of which there are stored runs, but for 500 features: minutes each."""
    short = [study for study in STUDIES if not study.startswith("wide")]
    return [task for study in short for mode in MODES for task in _tasks(results, study, mode)]


def _tasks(results: Path, study: str, mode: str) -> Iterator[Stored]:
    found = read_results(results, study, mode)
    if found is None:
        return
    for cell, repeat in sorted(tasks_of(study, mode, found.runs)):
        yield Stored(study, mode, cell, repeat)


def again(results: Path, task: Stored) -> str:
    """Return how a task that is run again differs from what is stored of it, "" where not."""
    grid = read_grid(STUDIES[task.study].grid(task.mode))
    cell = grid.cells[task.cell]
    done = run_task(Work.of(grid, task.cell), task.repeat)
    if done.failure:
        return done.failure
    found = read_results(results, task.study, task.mode)
    assert found is not None
    key = {"scenario": cell.scenario, "setting": cell.setting, "learner": cell.learner,
           "repeat": task.repeat}  # fmt: skip
    now = from_rows(Study(_table(key, cell.option, done.rows))).set_index("method")
    old = found.runs
    for name, value in key.items():
        old = old[old[name] == value]
    return _difference(now, old.set_index("method"))


def _table(key: Mapping[str, object], option: str, rows: Sequence[Row]) -> pd.DataFrame:
    """Return the rows of a task as a study has them."""
    import pandas as pd

    before = {**key, "options": option}
    names = [name for name in DRAW if name in before]
    first = [before[name] for name in names]
    return pd.DataFrame([(*first, *row) for row in rows], columns=[*names, *COLUMNS])


def _difference(now: pd.DataFrame, old: pd.DataFrame) -> str:
    """Return the first thing in which two runs differ."""
    compared = [name for name in (*COUNTS, *KEPT) if name in old]
    for method in old.index:
        for name in compared:
            a, b = now.loc[method, name], old.loc[method, name]
            if str("" if b != b else b) != str(a):
                return f"{method}: {name} is {a}, and {b} is stored"
    return ""
