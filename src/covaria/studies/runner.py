"""Run a study, or what is left of it: tasks to an executor, results to the store one by one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import effective_n_jobs

from covaria.errors import InputError, short
from covaria.execution.clusters import on_dask
from covaria.execution.executors import Executor, Serial
from covaria.execution.processes import Processes
from covaria.options.checks import jobs, reporter, shown, truth, whole
from covaria.studies.code import Files, changed_lines
from covaria.studies.grid import Grid, read_grid
from covaria.studies.pools import Task, run_tasks
from covaria.studies.results import Study
from covaria.studies.store import Done, Store, readable, writable
from covaria.studies.task import Work

Progress = Callable[["Standing"], None]
PACKAGES = ("covaria", "numpy", "scipy", "pandas", "scikit-learn", "numba", "torch")


@dataclass(frozen=True)
class Standing:
    """How far a study is: tasks in all, done, of these failed, and done since it was started."""

    total: int
    done: int
    failed: int
    now: int = 0


def run_study(
    study: str | Path | Mapping[str, object],
    *,
    store: str | Path = "study.sqlite",
    n_jobs: int = 1,
    dask: object = None,
    shard: str | tuple[int, int] | None = None,
    new: bool = False,
    first: int | None = None,
    progress: Progress | None = None,
    code: Files = (),
    trust: bool = False,
) -> Study:
    """Return the study after running what its store does not hold yet.

    Parameters
    ----------
    study
        A TOML file, or the same as a dictionary; `docs/study.md` shows one.
    store
        An SQLite file; where it holds part of the same study, the rest is run.
    n_jobs
        Processes; 1 runs in this one, -1 takes all cores.
    dask
        A scheduler's address, "local", or a `distributed.Client`.
    shard
        "3/10" runs the third of ten parts.
    new
        Start over where the store holds another study.
    first
        Run this many repeats of each cell at most, the rest another time.
    progress
        A function of a `Standing`, called after every task.
    code
        The Python file, or files, that the scenarios of the study may run.
    trust
        Run whatever Python the study names or its store holds.
    """
    grid = read_grid(study, code=code, trust=trust)
    run_in_store(
        grid, store, n_jobs=n_jobs, dask=dask, shard=shard, new=new, first=first, progress=progress
    )
    return read_study(store)


def run_in_store(
    study: str | Path | Mapping[str, object] | Grid,
    store: str | Path,
    *,
    n_jobs: int = 1,
    dask: object = None,
    shard: str | tuple[int, int] | None = None,
    new: bool = False,
    first: int | None = None,
    progress: Progress | None = None,
    apart: bool = False,
    skip: Collection[Task] = (),
) -> None:
    """Run what the store does not hold yet, but for tasks to `skip`.

    `apart` keeps even one job out of this process.
    """
    grid = study if isinstance(study, Grid) else read_grid(study)
    first, progress = None if first is None else whole("first", first, 0), reporter(progress)
    n_jobs, new = jobs(n_jobs, "jobs"), truth("new", new)
    with writable(store, new=new) as opened:
        _begin(opened, grid, shard)
        most = min(effective_n_jobs(n_jobs), len(grid.tasks))
        with _executor(most, dask, apart=apart or n_jobs != 1) as executor:
            run_grid(opened, grid, executor, first=first, progress=progress, skip=skip)


def resume_study(store: str | Path, **choices: Any) -> Study:
    """Return the study of a store after running what is left of it; choices as in `run_study`."""
    return run_study(grid_of(store), store=store, **choices)


def read_study(store: str | Path) -> Study:
    """Return what a store holds so far."""
    with readable(store) as opened:
        return Study.read(opened)


def run_grid(
    store: Store,
    grid: Grid,
    executor: Executor,
    *,
    first: int | None = None,
    progress: Progress | None = None,
    skip: Collection[Task] = (),
) -> None:
    """Run the tasks that the store does not hold, or holds as failed, and add each to it."""
    tasks = [task for task in _shard_of(grid, store.shard, first) if task not in skip]
    before = store.tasks()
    todo = [task for task in tasks if before.get(task, "not run") != ""]
    failed = dict.fromkeys((task for task in tasks if before.get(task)), True)
    done = len(tasks) - len(todo) + len(failed)
    if progress:
        progress(Standing(len(tasks), done, len(failed)))
    works = {cell: Work.of(grid, cell) for cell in sorted({cell for cell, _ in todo})}
    for count, result in enumerate(run_tasks(executor, works, todo), start=1):
        store.add(result)
        task = (result.cell, result.repeat)
        done += task not in before
        failed.pop(task, None)
        if result.failure:
            failed[task] = True
        if progress:
            progress(Standing(len(tasks), done, len(failed), count))


@contextmanager
def _executor(n_jobs: int, dask: object, *, apart: bool = False) -> Iterator[Executor]:
    """Yield where the tasks run; this process is for the store alone."""
    if dask is not None:
        with on_dask(dask, n_jobs) as cluster:
            yield cluster
    elif n_jobs == 1 and not apart:
        yield Serial()
    else:
        with closing(Processes(n_jobs, apart=True)) as processes:
            yield processes


def _shard_of(grid: Grid, shard: tuple[int, int], first: int | None = None) -> list[Task]:
    part, parts = shard
    mine = grid.tasks[part - 1 :: parts]
    return [task for task in mine if first is None or task[1] < first]


def read_shard(text: str | Sequence[int] | None) -> tuple[int, int]:
    """Return (3, 10) of "3/10".

    >>> read_shard("3/10")
    (3, 10)
    """
    if text is None:
        return 1, 1
    try:
        part, parts = (int(n) for n in (text.split("/") if isinstance(text, str) else text))
    except (TypeError, ValueError):
        part, parts = 0, 0
    if not 1 <= part <= parts:
        raise InputError(f"shard {shown(text)} is not a part such as 3/10.")
    return part, parts


# --- is it the same study? ----------------------------------------------------------------


def identity(grid: Grid) -> dict[str, object]:
    """Return what has to be the same for two runs to be one study."""
    return {"grid": _plain(dict(grid.given)), "data": grid.data, "versions": versions()}


def _plain(value: object) -> object:
    """Return a value as JSON holds it."""
    return json.loads(json.dumps(value, default=str))


def versions() -> dict[str, str]:
    """Return the versions of what the numbers come from."""
    from importlib.metadata import PackageNotFoundError, version

    import covaria

    found = {"covaria": covaria.__version__}
    for name in PACKAGES[1:]:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _begin(store: Store, grid: Grid, shard: str | tuple[int, int] | None) -> None:
    """Write what the study is to a fresh store; refuse one that holds another study."""
    ours = identity(grid)
    fresh = not store.tables()
    if fresh:
        cells = [
            (at, c.scenario, c.setting, c.learner, c.option, json.dumps(_plain(c.parameters)))
            for at, c in enumerate(grid.cells)
        ]
        store.begin(ours, cells, read_shard(shard))
        return
    changes = differences(store.identity, ours)
    if changes:
        raise InputError(
            f"{store.path} holds another study: {'; '.join(changes)}. Use --new to start over, or "
            "another --store."
        )
    if shard is not None and read_shard(shard) != store.shard:
        store.set_shard(read_shard(shard))


def differences(stored: Mapping[str, object], ours: Mapping[str, object]) -> list[str]:
    """Return what differs between two studies, a phrase each.

    >>> differences({"grid": {"repeats": 3}}, {"grid": {"repeats": 4}})
    ['repeats was 3 and is 4']
    """
    before, now = dict(_flat(stored)), dict(_flat(ours))
    found = []
    for name in dict.fromkeys([*before, *now]):
        was, is_now = before.get(name, "not given"), now.get(name, "not given")
        if was != is_now:
            label = name.removeprefix("grid.")
            if label.endswith(".source"):
                lines = changed_lines(str(was), str(is_now))
                found.append(f"the file of {label.removesuffix('.source')} has changed: {lines}")
            else:
                found.append(f"{label} was {short(str(was))} and is {short(str(is_now))}")
    return found


def _flat(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, inside in value.items():
            yield from _flat(inside, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(inside, Mapping) for inside in value):
        for at, inside in enumerate(value, start=1):
            yield from _flat(inside, f"{name} {at}")
    else:
        yield name, value


def grid_of(store: str | Path) -> dict[str, Any]:
    """Return the study that a store belongs to, as a dictionary."""
    with readable(store) as opened:
        given: dict[str, Any] = opened.identity["grid"]
    for entry in given["scenario"]:
        if entry.get("model") == "given in Python":
            raise InputError(
                f"Scenario '{entry['name']}' of {store} was given in Python. Resume it there with "
                "covaria.run_study."
            )
    return given


# --- shards together ----------------------------------------------------------------------


def merge_stores(parts: Sequence[str | Path], *, store: str | Path) -> Standing:
    """Return how far a study is after putting the tasks of several stores into one."""
    if not parts:
        raise InputError("There is nothing to merge. Name the stores of the shards.")
    with writable(store) as whole:
        for part in parts:
            if os.path.realpath(part) == os.path.realpath(store):
                continue
            with readable(part) as opened:
                _take(whole, opened)
        whole.set_shard((1, 1))
        return standing(whole)


def _take(whole: Store, part: Store) -> None:
    """Copy the tasks of a part that the whole does not have."""
    if not whole.tables():
        whole.begin(part.identity, part.cells())
    changes = differences(whole.identity, part.identity)
    if changes:
        raise InputError(f"{part.path} is of another study than the others: {'; '.join(changes)}.")
    there = whole.tasks()
    missing = [task for task, failure in part.tasks().items() if there.get(task, "none") != ""
               and not (failure and task in there)]  # fmt: skip
    for both in (
        task for task, failure in part.tasks().items() if there.get(task) == "" == failure
    ):
        if _answers(whole.done(*both)) != _answers(part.done(*both)):
            raise InputError(
                f"{part.path} and {whole.path} disagree on repeat {both[1]} of cell {both[0]}. "
                "Run one of them again."
            )
    whole.add_all(part.done(*task) for task in missing)


def _answers(done: Done) -> list[object]:
    """Return a task's rows without the seconds, which are never twice the same."""
    return [row[:-1] for row in done.rows]


def standing(store: Store) -> Standing:
    """Return how far a store is."""
    grid = store.identity["grid"]
    cells = len(store.cells())
    part, parts = store.shard
    total = len(range(part - 1, cells * int(grid.get("repeats", 1)), parts))
    tasks = store.tasks()
    return Standing(total, len(tasks), sum(bool(failure) for failure in tasks.values()))
