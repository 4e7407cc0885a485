"""Is the page that of the stored results, and do tasks run again give the stored digits?

The page is made again from the store and compared letter by letter; then a random hundredth of all
stored tasks is run, as far as a limit of time allows, and each run compared with what is stored of
it: the features chosen and the p-values to four digits, or the counts where older results have
those alone.

The default is of its day: learners that `auto` takes get better. A task of the default that comes
out otherwise today is run once more by the source of the commit on the stamp of its file.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from covaria.errors import InputError, plural
from covaria.paper.kept import COUNTS, DRAW, KEPT, path_of, read_results, stamps, tasks_of
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
LIMIT = 180.0  # seconds, for the tasks
# Run by the source of another commit: the differences of tasks, each as a tuple, as JSON.
AGAIN = """
import json, sys
from pathlib import Path
from covaria.paper.check import Stored, again
results, tasks = json.load(sys.stdin)
print(json.dumps([again(Path(results), Stored(*task)) for task in tasks]))
"""


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
    start, done = time.monotonic(), 0
    wrong: dict[Stored, str] = {}
    for task in (tasks[at] for at in order):
        if time.monotonic() - start > limit:
            break
        done += 1
        if difference := again(results, task):
            wrong[task] = difference
    lines.append(
        f"{done} of {plural(many, 'task')} drawn from {len(tasks):,} run again in "
        f"{time.monotonic() - start:.0f} s: {done - len(wrong)} with the stored digits."
    )
    then = of_their_day(results, [task for task in wrong if task.mode == "default"])
    lines += [f"{task}: other digits today, the stored ones at {at}." for task, at in then.items()]
    left = [f"{task}: {difference}" for task, difference in wrong.items() if task not in then]
    return Checked((*lines, *left), same and not left)


def of_their_day(results: Path, tasks: Sequence[Stored]) -> dict[Stored, str]:
    """Return the tasks that a commit on the stamps of their file gives the stored digits of."""
    at: dict[str, list[Stored]] = {}
    for task in tasks:
        for stamp in stamps(path_of(results, task.study, task.mode)):
            at.setdefault(stamp.commit, []).append(task)
    found: dict[Stored, str] = {}
    for commit, of in at.items():
        told = _by_source(results, commit, of)
        found |= {task: commit for task, other in zip(of, told, strict=True) if not other}
    return found


def _by_source(results: Path, commit: str, tasks: Sequence[Stored]) -> list[str]:
    """Return how tasks that the source of a commit runs differ from what is stored."""
    told = json.dumps([str(results.resolve()), [astuple(task) for task in tasks]])
    try:
        with _source(commit) as source:
            ran = subprocess.run(
                [sys.executable, "-c", AGAIN], input=told, text=True, capture_output=True,
                check=True, env={**os.environ, "PYTHONPATH": str(source)},
            )  # fmt: skip
    except (OSError, subprocess.CalledProcessError) as error:
        return [f"the source of {commit or 'no commit'} was not to be run: {error}"] * len(tasks)
    return [str(one) for one in json.loads(ran.stdout)]


@contextmanager
def _source(commit: str) -> Iterator[Path]:
    """Yield a folder with the source of a commit of this repository."""
    root = str(Path(__file__).parents[3])
    packed = subprocess.run(
        ["git", "-C", root, "archive", "--format=tar", commit, "src"], check=True,
        capture_output=True,
    )  # fmt: skip
    with TemporaryDirectory(prefix="covaria-") as folder:
        with tarfile.open(fileobj=BytesIO(packed.stdout)) as unpacked:
            unpacked.extractall(folder, filter="data")
        yield Path(folder) / "src"


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
