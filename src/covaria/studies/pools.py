"""Tasks of a study handed to an executor: what came of each, as soon as it is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from covaria.execution.executors import DIED, MOST_IN_A_ROW, Died, Executor, each
from covaria.studies.store import Done
from covaria.studies.task import Work, run_task

Task = tuple[int, int]
Works = Mapping[int, Work]
NOT_TRIED = f"not tried: {MOST_IN_A_ROW} tasks in a row died"


def run_tasks(executor: Executor, works: Works, tasks: Sequence[Task]) -> Iterator[Done]:
    """Yield what came of each task, in any order; a process that dies costs its task alone.

    The works, one a cell, are sent to each worker once.
    """
    executor.share(works)
    items = [(works, cell, repeat) for cell, repeat in tasks]
    for place, value in each(executor, _run, items, kind=_cell):
        if isinstance(value, Died):
            yield Done(*tasks[place], (), 0.0, DIED if value.tried else NOT_TRIED)
        else:
            yield value


def _run(item: tuple[Works, int, int]) -> Done:
    works, cell, repeat = item
    return run_task(works[cell], repeat)


def _cell(item: tuple[Works, int, int]) -> int:
    return item[1]
