"""A Dask cluster as an executor: values are sent to its workers once, tasks one by one."""

from __future__ import annotations

import importlib
import logging
import os
import queue
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import Protocol, TypeVar, cast

from covaria.errors import InputError, MissingExtra, StoreError, short
from covaria.execution.executors import Attempt, Unsendable
from covaria.execution.sharing import Shared, unpacked
from covaria.execution.workers import ONE_THREAD

T = TypeVar("T")
R = TypeVar("R")
Key = TypeVar("Key")
Call = tuple[Callable[..., object], *tuple[object, ...]]
# What a dying process took along we try again ourselves; and a process that is being started again
# is not to be given up by its cluster. Dask lets every array that is freed go back to the system
# (MALLOC_TRIM_THRESHOLD_): at 1,000 x 60 that doubles the workers' time.
LOCAL = {
    "distributed.nanny.pre-spawn-environ": ONE_THREAD,
    "distributed.scheduler.allowed-failures": 0,
    "distributed.deploy.lost-worker-timeout": "1 hour",
}


class Future(Protocol):
    """What is to come of a task, as Dask has it."""

    key: object
    status: str

    def result(self, timeout: float) -> object:
        """Return what came of it."""
        ...

    def exception(self, timeout: float) -> BaseException | None:
        """Return what it raised."""
        ...

    def add_done_callback(self, function: Callable[[Future], object]) -> object:
        """Have a function called with it once it is done."""
        ...


class Client(Protocol):
    """What we ask of Dask's client."""

    status: str

    def nthreads(self) -> Mapping[str, int]:
        """Return how many threads each worker has."""
        ...

    def processing(self) -> Mapping[str, Iterable[object]]:
        """Return the keys of what each worker is at."""
        ...

    def submit(self, function: Callable[..., object], *given: object, pure: bool) -> Future:
        """Have a function called on a worker."""
        ...

    def scatter(self, values: Sequence[object], *, broadcast: bool, hash: bool) -> Sequence[Future]:
        """Send values to the workers."""
        ...

    def cancel(self, futures: Sequence[Future]) -> object:
        """Take tasks back."""
        ...


class Cluster(Protocol):
    """A cluster of processes here, as Dask has it."""

    workers: Mapping[object, Nanny]


class Nanny(Protocol):
    """What keeps a process of a cluster."""

    auto_restart: bool
    process: Process


class Process(Protocol):
    """A process of a cluster."""

    pid: int


@contextmanager
def on_dask(where: object, n_jobs: int = 2) -> Iterator[Dask]:
    """Yield an executor on Dask: a scheduler's address, "local" for a cluster here, or a client."""
    with client_of(where, n_jobs) as client, quiet():
        executor = Dask(client)
        try:
            yield executor
        finally:
            executor.close()


class Dask:
    """The workers of a Dask client; this process only hands out."""

    name, apart = "Dask", True

    def __init__(self, client: Client) -> None:
        with _of_the_cluster():
            self.n_workers = max(1, sum(client.nthreads().values()))
        self.client = client
        self.pace: dict[str, float] = {}
        self.worked = 0.0
        self._numbers = count()
        self._values: dict[int, object] = {}
        self._there: dict[int, Future] = {}  # the same as the workers have them
        self._shared = Shared(self._put, self._drop)
        self._idle, self._shaken = 0, False

    def share(self, value: object) -> None:
        """Send a value once, not with every item that holds it."""
        self._shared.add(value)

    def close(self) -> None:
        """Forget what was shared."""
        self._shared.clear()

    def is_awake(self, *, wanted: bool) -> bool:
        """Return that its workers are."""
        return True

    def attempt(
        self, function: Callable[[T], R], items: Sequence[T], queue: list[int], *, alone: bool
    ) -> Attempt[R]:
        """Yield place and value of items; return those whose process died.

        What the cluster lost, or had not begun when a process died, stays in the queue. No item
        fails because the cluster did: that is a sentence.
        """
        now = queue[: 1 if alone else None]
        del queue[: len(now)]
        died: list[int] = []
        for _ in range(MOST_DEATHS if alone else 1):
            self._idle += 1
            died = []
            for place, outcome, found in outcomes(self.client, self._calls(function, items, now)):
                if outcome == GIVEN:
                    self._idle = 0
                    yield place, cast(R, found)
                elif outcome == FAILED:
                    if isinstance(found, (InputError, MissingExtra)):
                        raise found
                    raise StoreError(
                        f"The Dask cluster cannot run the tasks ({short(_reason(found))}). Install "
                        "the same covaria on its workers; every finished task is kept."
                    )
                else:
                    self._shaken = True
                    (died if outcome == DEAD else queue).append(place)
            if died:
                self._idle = 0
            else:
                break
        if self._idle > MOST_IDLE:
            raise StoreError(GONE.format("it loses every task"))
        return died

    def _calls(
        self, function: Callable[[T], R], items: Sequence[T], places: Sequence[int]
    ) -> dict[int, Call]:
        """Return the calls of some items; what was sent before a process died is sent again."""
        if self._shaken:
            for number, value in self._values.items():
                # It is lost with no worker: the scheduler has it as a task of its own.
                with _of_the_cluster():
                    self._there[number] = self.client.submit(_itself, value, pure=False)
            self._shaken = False
        try:
            packed = {place: self._shared.packed((function, items[place])) for place in places}
        except Exception as error:  # pickle knows many ways to refuse
            raise Unsendable(str(error)) from error
        return {place: (_call, task, dict(self._there)) for place, task in packed.items()}

    def _put(self, value: object) -> int:
        number = next(self._numbers)
        with _of_the_cluster():
            (self._there[number],) = self.client.scatter([value], broadcast=True, hash=False)
        self._values[number] = value
        return number

    def _drop(self, number: int) -> None:
        self._there.pop(number)
        self._values.pop(number)


def _call(task: bytes, shared: Mapping[int, object]) -> object:
    function, item = unpacked(task, shared.__getitem__)
    return function(item)


def _itself(value: T) -> T:
    return value


# --- clients and calls --------------------------------------------------------------------------


@contextmanager
def client_of(where: object, n_jobs: int = 2) -> Iterator[Client]:
    """Yield a Dask client for an address, for "local" or for a client that is there already."""
    try:
        distributed = importlib.import_module("distributed")
    except ImportError:
        raise MissingExtra("dask", "dask") from None
    if isinstance(where, distributed.Client):
        yield where
        return
    if where == "local":
        from joblib import effective_n_jobs

        settings = importlib.import_module("dask.config")
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


def _end(cluster: Cluster) -> None:
    """End a cluster's processes at once: it would wait for what they are at."""
    for nanny in cluster.workers.values():
        with suppress(Exception):
            nanny.auto_restart = False
            os.kill(nanny.process.pid, signal.SIGKILL)


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


def outcomes(client: Client, calls: Mapping[Key, Call]) -> Iterator[tuple[Key, str, object]]:
    """Yield (key, outcome, value or error) of every call (function, arguments) as they come."""
    finished: queue.SimpleQueue[Future] = queue.SimpleQueue()
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
                outcome, value = _outcome(client, future)
                yield key, outcome, value
                if outcome == DEAD:
                    yield from (
                        (futures.pop(one), LOST, None) for one in _recalled(client, futures)
                    )


def _recalled(client: Client, futures: Iterable[Future]) -> list[Future]:
    """Return the futures that no worker has yet, and take them back: more may die of them."""
    with _of_the_cluster():
        begun = {key for keys in client.processing().values() for key in keys}
        waiting = [one for one in futures if one.key not in begun and one.status == "pending"]
        client.cancel(waiting)
    return waiting


def _outcome(client: Client, future: Future) -> tuple[str, object]:
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


def _is_running(client: Client) -> bool:
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


def _reason(error: object) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


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
