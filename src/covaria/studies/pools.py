"""Where tasks run: in this process, in processes of their own, or on a Dask cluster.

Each pool takes the works (one a cell) and the tasks to do, and yields what came of each task as
soon as it is there, in any order. A process that dies costs the tasks it had and no others.
"""

from __future__ import annotations

import importlib
import logging
import os
import queue
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from covaria.errors import InputError, MissingExtra, StoreError, short
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
MOST_IN_A_ROW = 3
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
        most = min(count, len(left))
        while left or suspects:
            if not suspects:
                found = _until_broken(works, left, most, ahead=2 * most)
                suspects = yield from _counted(found, deaths)
                continue
            # What was under way when a process died is tried again, one at a time.
            culprits = yield from _counted(_until_broken(works, suspects, 1, ahead=1), deaths)
            for cell, repeat in culprits:
                yield Done(cell, repeat, (), 0.0, DIED)
                deaths[cell] = deaths.get(cell, 0) + 1
            for waiting in (left, suspects):
                yield from _given_up(waiting, deaths)

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


def _given_up(waiting: list[Task], deaths: dict[int, int]) -> Iterator[Done]:
    """Take the tasks of cells in which one process after the other died out of those waiting."""
    hopeless = [task for task in waiting if deaths.get(task[0], 0) >= MOST_IN_A_ROW]
    waiting[:] = [task for task in waiting if deaths.get(task[0], 0) < MOST_IN_A_ROW]
    for cell, repeat in hopeless:
        yield Done(cell, repeat, (), 0.0, f"not tried: {MOST_IN_A_ROW} tasks in a row died")


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


# What a dying process took along we try again ourselves; and a process that is being started again
# is not to be given up by its cluster.
LOCAL = {
    "distributed.scheduler.allowed-failures": 0,
    "distributed.deploy.lost-worker-timeout": "1 hour",
}


def dask(where: Any, n_jobs: int = 2) -> Pool:
    """Return a pool on Dask: a scheduler's address, "local" for a cluster here, or a client."""

    def pool(works: Works, tasks: Sequence[Task]) -> Iterator[Done]:
        with client_of(where, n_jobs) as client, quiet():
            yield from _on_dask(client, works, list(tasks))

    return pool


@contextmanager
def client_of(where: Any, n_jobs: int = 2) -> Iterator[Any]:
    """Yield a Dask client for an address, for "local" or for a client that is there already.

    A client of ours never serves other work of the process: it may not end well.
    """
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise MissingExtra("dask", "dask") from None
    if isinstance(where, distributed.Client):
        yield where
        return
    if where == "local":
        from joblib import effective_n_jobs

        settings: Any = importlib.import_module("dask.config")
        with (
            settings.set(LOCAL),
            distributed.LocalCluster(
                n_workers=effective_n_jobs(n_jobs),
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            try:
                yield client
            finally:
                _end(cluster)
        return
    try:
        client = distributed.Client(where, timeout=5, set_as_default=False)
    except Exception as error:
        raise InputError(
            f"There is no Dask scheduler at {short(str(where))} ({type(error).__name__}). Check "
            "the address, such as tcp://host:8786, or use local."
        ) from None
    try:
        yield client
    finally:
        with suppress(Exception):
            client.close(timeout=2)


def _end(cluster: Any) -> None:
    """End a cluster's processes at once: it would wait for what they are at."""
    for nanny in cluster.workers.values():
        with suppress(Exception):
            nanny.auto_restart = False
            os.kill(nanny.process.pid, signal.SIGKILL)


def _on_dask(client: Any, works: Works, tasks: list[Task]) -> Iterator[Done]:
    """Yield results as they come; the works are sent to the cluster once, not with each task.

    A process that dies takes others' tasks along, so each of those is tried again by itself; what
    the cluster lost is sent again. No task fails because the cluster did: that is a sentence.
    """
    suspects: list[Task] = []
    deaths: Counter[Task] = Counter()
    idle = rounds = 0
    while tasks or suspects:
        alone = not tasks
        now, tasks = (tasks, []) if tasks else ([suspects.pop(0)], tasks)
        order = sorted({cell for cell, _ in now})
        there = send(client, [works[cell] for cell in order], again=rounds > 0)
        sent = dict(zip(order, there, strict=True))
        rounds += 1
        calls = {(cell, repeat): (run_task, sent[cell], repeat) for cell, repeat in now}
        idle += 1
        for task, outcome, found in outcomes(client, calls):
            if outcome == LOST:
                (suspects if alone else tasks).append(task)
                continue
            idle = 0
            deaths[task] += alone
            if outcome == DEAD and deaths[task] < MOST_DEATHS:
                suspects.append(task)
            elif outcome == FAILED:
                raise StoreError(
                    f"The Dask cluster cannot run the tasks ({short(_reason(found))}). Install "
                    "the same covaria on its workers; every finished task is kept."
                )
            else:
                yield found if outcome == GIVEN else Done(task[0], task[1], (), 0.0, DIED)
        if idle > MOST_IDLE:
            raise StoreError(GONE.format("it loses every task"))


# What can come of a call on a cluster: a value, an error, no process, or no cluster.
GIVEN, FAILED, DEAD, LOST = "given", "failed", "dead", "lost"
# So often may everything be lost before we say so, and so many seconds may there be no worker.
MOST_IDLE, POLL, PATIENCE = 3, 2.0, 300.0
# A process may die of what another task did; of so many deaths by itself a task is the cause.
MOST_DEATHS = 2
GONE = (
    "The Dask cluster is not there any more ({}). Everything finished is kept: start the cluster "
    "again and go on."
)


def outcomes(client: Any, calls: Mapping[Any, tuple[Any, ...]]) -> Iterator[tuple[Any, str, Any]]:
    """Yield (key, outcome, value or error) of every call (function, arguments) as they come."""
    finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
    with _of_the_cluster():
        futures = {client.submit(*call, pure=False): key for key, call in calls.items()}
        for future in futures:
            future.add_done_callback(finished.put)
    deserted = time.monotonic()
    while futures:
        try:
            found = [finished.get(timeout=POLL)]
        except queue.Empty:
            with _of_the_cluster():
                if client.status == "running" and client.nthreads():
                    deserted = time.monotonic()
            if time.monotonic() - deserted > PATIENCE:
                raise StoreError(GONE.format("it has no worker")) from None
            if client.status != "running":
                raise StoreError(GONE.format(f"the client is {client.status}")) from None
            found = [future for future in futures if future.status == "lost"]
        for future in found:
            if future in futures:
                key = futures.pop(future)
                yield key, *_outcome(client, future)


def _outcome(client: Any, future: Any) -> tuple[str, Any]:
    if future.status == "finished":
        try:
            return GIVEN, future.result(timeout=PATIENCE)
        except Exception:  # a task of ours does not raise: what raises here is the cluster
            pass
    elif future.status == "error":
        with _of_the_cluster():
            error = future.exception(timeout=PATIENCE)
        return (DEAD if type(error).__name__ == "KilledWorker" else FAILED), error
    if not _is_running(client):
        raise StoreError(GONE.format("the connection is lost"))
    return LOST, None


def _is_running(client: Any) -> bool:
    """Return whether the client has a scheduler, after the moment it may take to find it again."""
    until = time.monotonic() + 10.0
    while client.status == "connecting" and time.monotonic() < until:
        time.sleep(0.1)
    return bool(client.status == "running")


@contextmanager
def _of_the_cluster() -> Iterator[None]:
    """Turn what a broken cluster raises, which may be anything, into a sentence."""
    from asyncio import CancelledError

    try:
        yield
    except (Exception, CancelledError) as error:
        raise StoreError(GONE.format(short(_reason(error)))) from error


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def send(client: Any, values: list[Any], *, again: bool) -> list[Any]:
    """Return each value where the workers have it.

    What is sent again is lost with no worker: the scheduler has it as a task of its own.
    """
    with _of_the_cluster():
        if again:
            return [client.submit(_itself, value, pure=False) for value in values]
        there: list[Any] = client.scatter(values, broadcast=True, hash=False)
        return there


def _itself(value: Any) -> Any:
    return value


@contextmanager
def quiet() -> Iterator[None]:
    """Leave unsaid what Dask logs when a process or a connection is lost: we say it."""
    names = ("distributed", "tornado", "asyncio")
    there = [logging.getLogger(n) for n in logging.root.manager.loggerDict if n.startswith(names)]
    before = [(logger, logger.level) for logger in there]
    for logger in there:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in before:
            logger.setLevel(level)
