"""Where tasks run: in this process, in processes of their own, or on a Dask cluster.

Each pool takes the works (one a cell) and the tasks to do, and yields what came of each task as
soon as it is there, in any order. A process that dies costs the tasks it had and no others.
"""

from __future__ import annotations

import importlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from covaria.errors import InputError, MissingExtra
from covaria.execution.workers import end_with
from covaria.studies.store import Done
from covaria.studies.task import Work, run_task

if TYPE_CHECKING:
    from concurrent.futures import Executor

Task = tuple[int, int]
Works = Mapping[int, Work]
Pool = Callable[[Works, Sequence[Task]], Iterator[Done]]
DIED = "its process died"
# A process takes seconds to start again; a cell whose tasks all die gets no more in one run.
MOST_DEATHS = 3
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def inline(works: Works, tasks: Sequence[Task]) -> Iterator[Done]:
    """Yield what came of each task, run here one after the other."""
    for cell, repeat in tasks:
        yield run_task(works[cell], repeat)


# --- processes ----------------------------------------------------------------------------


def processes(n_jobs: int) -> Pool:
    """Return a pool of joblib's processes, which a Ctrl-C ends at once."""
    from joblib import effective_n_jobs

    count = effective_n_jobs(n_jobs)

    def pool(works: Works, tasks: Sequence[Task]) -> Iterator[Done]:
        left, suspects = list(tasks), list[Task]()
        deaths: dict[int, int] = {}  # in a row, by cell
        while left or suspects:
            if not suspects:
                found = _until_broken(works, left, count, ahead=2 * count)
                suspects = yield from _counted(found, deaths)
                continue
            # What was under way when a process died is tried again, one at a time.
            culprits = yield from _counted(_until_broken(works, suspects, 1, ahead=1), deaths)
            for cell, repeat in culprits:
                yield Done(cell, repeat, (), 0.0, DIED)
                deaths[cell] = deaths.get(cell, 0) + 1
            for queue in (left, suspects):
                yield from _given_up(queue, deaths)

    return pool


def _counted(found: Any, deaths: dict[int, int]) -> Any:
    """Yield what came of tasks and forget the deaths of their cells; return what `found` does."""
    while True:
        try:
            done = next(found)
        except StopIteration as end:
            return end.value
        deaths.pop(done.cell, None)
        yield done


def _given_up(queue: list[Task], deaths: dict[int, int]) -> Iterator[Done]:
    """Take the tasks of cells in which one process after the other died out of the queue."""
    hopeless = [task for task in queue if deaths.get(task[0], 0) >= MOST_DEATHS]
    queue[:] = [task for task in queue if deaths.get(task[0], 0) < MOST_DEATHS]
    for cell, repeat in hopeless:
        yield Done(cell, repeat, (), 0.0, f"not tried: {MOST_DEATHS} tasks in a row died")


def _until_broken(works: Works, queue: list[Task], n_jobs: int, *, ahead: int) -> Any:
    """Yield what came of the tasks in the queue; return those a dying process took along.

    What was not yet begun stays in the queue.
    """
    from concurrent.futures import FIRST_COMPLETED, Future, wait
    from concurrent.futures.process import BrokenProcessPool

    waiting: dict[Future[Done], Task] = {}
    first = True
    with _executor(works, n_jobs) as executor:
        while queue or waiting:
            while queue and len(waiting) < ahead:
                task = queue.pop(0)
                try:
                    # The first starts the processes; later on no interrupt is to be missed.
                    with _deaf_to_interrupts() if first else nullcontext():
                        future = executor.submit(_run_known, *task)
                    first = False
                except BrokenProcessPool:
                    queue.insert(0, task)
                    return list(waiting.values())
                waiting[future] = task
            finished, _ = wait(waiting, timeout=1.0, return_when=FIRST_COMPLETED)
            for future in finished:
                try:
                    done = future.result()
                except BrokenProcessPool:
                    return list(waiting.values())
                del waiting[future]
                yield done
    return []


@contextmanager
def _executor(works: Works, n_jobs: int) -> Iterator[Executor]:
    """Yield joblib's executor, every process with all works; its processes end with it."""
    from joblib.externals.loky import ProcessPoolExecutor

    executor = ProcessPoolExecutor(
        max_workers=n_jobs,
        timeout=None,
        initializer=_begin,
        initargs=(dict(works), os.getpid()),
        env=ONE_THREAD,
    )
    try:
        yield executor
    finally:
        with _deaf_to_interrupts():
            executor.shutdown(wait=True, kill_workers=True)


_known: dict[int, Work] = {}


def _begin(works: dict[int, Work], parent: int) -> None:
    """Get ready in a process of its own: take the works, and end when the parent does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _known.update(works)
    end_with(parent)


def _run_known(cell: int, repeat: int) -> Done:
    return run_task(_known[cell], repeat)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Leave Ctrl-C unheard for a moment, and by the processes started meanwhile for good."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# --- Dask ---------------------------------------------------------------------------------


def dask(where: Any, n_jobs: int = 2) -> Pool:
    """Return a pool on Dask: a scheduler's address, "local" for a cluster here, or a client."""

    def pool(works: Works, tasks: Sequence[Task]) -> Iterator[Done]:
        with client_of(where, n_jobs) as client:
            yield from _on_dask(client, works, list(tasks))

    return pool


@contextmanager
def client_of(where: Any, n_jobs: int = 2) -> Iterator[Any]:
    """Yield a Dask client for an address, for "local" or for a client that is there already."""
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise MissingExtra("dask", "dask") from None
    if isinstance(where, distributed.Client):
        yield where
        return
    if where == "local":
        from joblib import effective_n_jobs

        with (
            distributed.LocalCluster(
                n_workers=effective_n_jobs(n_jobs),
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            try:
                yield client
            finally:
                _end(cluster)
        return
    try:
        client = distributed.Client(where, timeout=5)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"There is no Dask scheduler at {where} ({type(error).__name__}). Check the address, "
            "such as tcp://host:8786, or use local."
        ) from None
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close()


def _end(cluster: Any) -> None:
    """End a cluster's processes at once: it would wait for what they are at."""
    for nanny in cluster.workers.values():
        with suppress(Exception):
            nanny.auto_restart = False
            os.kill(nanny.process.pid, signal.SIGKILL)


def _on_dask(client: Any, works: Works, tasks: list[Task]) -> Iterator[Done]:
    """Yield results as they come; the works are sent to the cluster once, not with each task."""
    as_completed = importlib.import_module("distributed").as_completed
    tries = dict.fromkeys(tasks, 0)
    while tasks:
        sent = _sent(client, works, {cell for cell, _ in tasks})
        futures = {
            client.submit(run_task, sent[cell], repeat, pure=False): (cell, repeat)
            for cell, repeat in tasks
        }
        tasks = []
        for future in as_completed(list(futures), raise_errors=False):
            task = futures.pop(future)
            done = answer(future)
            if done is not None:
                yield done
            elif tries[task] < 2:
                # Its work was on the process that died alone: send that again.
                tries[task] += 1
                tasks.append(task)
            else:
                yield Done(*task, (), 0.0, DIED)


def answer(future: Any) -> Any:
    """Return what a Dask task returned, or None where it was lost with the process that had it."""
    if future.status != "finished":
        return None
    try:
        return future.result()
    except Exception:  # a task of ours does not raise: what raises here is the cluster
        return None


def _sent(client: Any, works: Works, cells: set[int]) -> dict[int, Any]:
    """Return each work where every worker has it."""
    order = sorted(cells)
    there = client.scatter([works[cell] for cell in order], broadcast=True, hash=False)
    return dict(zip(order, there, strict=True))
