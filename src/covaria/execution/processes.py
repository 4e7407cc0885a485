"""Processes beside this one as an executor: items are sent to them one by one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar, cast

from covaria.errors import InputError
from covaria.execution.executors import Attempt, Unsendable
from covaria.execution.sharing import Shared, drop_file, to_file
from covaria.execution.workers import Gone, Worker, dismiss, hire

T = TypeVar("T")
R = TypeVar("R")
# So often may a process die before it has begun anything.
MOST_FALSE_STARTS = 3
# Between two looks at whether processes are still there that have not begun.
POLL = 0.2


class Processes:
    """Processes beside this one, which works too unless it is to stay `apart`.

    They are started once there is work for them. Until the first of them is awake this process goes
    on by itself, and they stay for the next call. Those that stay apart may have run anybody's
    code, of which nothing is to be left: they end with the call.
    """

    name = "processes"

    def __init__(self, n_jobs: int, *, apart: bool = False) -> None:
        from joblib import cpu_count, effective_n_jobs

        # More than the cores would only take turns; two show what is not fit for processes.
        self.n_workers: int = min(effective_n_jobs(n_jobs), max(2, cpu_count()))
        self.apart = apart
        self.pace: dict[str, float] = {}
        self.worked = 0.0
        self._shared = Shared(to_file, drop_file)
        self._workers: list[Worker] = []
        self._false_starts = 0

    def share(self, value: object) -> None:
        """Send a value once, not with every item that holds it."""
        self._shared.add(value)

    def close(self) -> None:
        """Forget what was shared, and let the processes go."""
        for worker in self._workers:
            worker.leave() if self.apart else dismiss(worker)
        self._workers = []
        self._shared.clear()

    def is_awake(self, *, wanted: bool) -> bool:
        """Return whether processes are there or on their way; where they are wanted, call them."""
        self._count(self._n_beside if wanted else 0)
        return bool(self._workers)

    def attempt(
        self, function: Callable[[T], R], items: Sequence[T], queue: list[int], *, alone: bool
    ) -> Attempt[R]:
        """Yield place and value of items until a process dies; return what it was at.

        What others are at then is waited for, and no more is sent.
        """
        feed = _Feed(self._shared, function, items, queue)
        works_too = not (self.apart or alone)
        asked: list[Worker] = []
        try:
            while feed.more():
                if not works_too:
                    self._count(1 if alone else self._n_beside)
                for worker in self._workers[: 1 if alone else None]:
                    if worker not in asked:
                        asked.append(worker)
                        worker.feed(feed)
                yield from feed.finished(wait=not (queue and works_too))
                if works_too and (place := feed.take()) is not None:
                    yield place, function(items[place])
        finally:
            for worker in feed.stop():
                worker.end()
        return feed.died

    @property
    def _n_beside(self) -> int:
        return self.n_workers if self.apart else self.n_workers - 1

    def _count(self, wanted: int) -> None:
        """Strike off those that are gone, and hire until there are so many.

        The death of a process that had not even begun is no item's fault.
        """
        gone = [worker for worker in self._workers if worker.is_gone]
        self._workers = [worker for worker in self._workers if not worker.is_gone]
        self._false_starts += sum(not worker.is_ready for worker in gone)
        while len(self._workers) < wanted and self._false_starts < MOST_FALSE_STARTS:
            try:
                self._workers.append(Worker() if self.apart else hire())
            except OSError:  # there may be no more processes, or no memory
                self._false_starts += 1
        if self.apart and not self._workers and self._false_starts >= MOST_FALSE_STARTS:
            raise InputError(
                "The processes that n_jobs asks for cannot be started, or die at once. Use "
                "n_jobs=1."
            )


class _Feed(Generic[T, R]):
    """Items on their way to workers: each takes the next from the queue when it is free."""

    def __init__(
        self, shared: Shared[str], function: Callable[[T], R], items: Sequence[T], queue: list[int]
    ) -> None:
        self.shared, self.function, self.items, self.queue = shared, function, items, queue
        self.died: list[int] = []
        self._lock = threading.Lock()
        self._stopped = False
        self._under_way: dict[int, Worker] = {}
        self._back: SimpleQueue[tuple[int, bool, object]] = SimpleQueue()

    def take(self, worker: Worker | None = None) -> int | None:
        """Return the place of the next item, for a worker or for this process."""
        with self._lock:
            if self._stopped or not self.queue:
                return None
            place = self.queue.pop(0)
            if worker is not None:
                self._under_way[place] = worker
            return place

    def serve(self, worker: Worker) -> None:
        """Ask a worker, in its thread, until nothing is left."""
        while (place := self.take(worker)) is not None:
            try:
                self._back.put((place, *worker.ask(self._task(place))))
            except Gone as gone:
                self._back.put((place, False, gone))
                raise
            except Exception as error:  # in whatever thread: it is raised in ours
                self._back.put((place, False, error))

    def _task(self, place: int) -> bytes:
        try:
            return self.shared.packed((self.function, self.items[place]))
        except Exception as error:  # pickle knows many ways to refuse
            raise Unsendable(str(error)) from error

    def more(self) -> bool:
        """Return whether anything is to be done."""
        with self._lock:
            return bool(self._under_way or (self.queue and not self._stopped))

    def finished(self, *, wait: bool) -> Iterator[tuple[int, R]]:
        """Yield place and value of one that is back; wait a moment for it if that is asked."""
        try:
            place, is_done, value = self._back.get(block=wait, timeout=POLL)
        except Empty:
            return
        with self._lock:
            del self._under_way[place]
        if is_done:
            yield place, cast(R, value)
        elif isinstance(value, Gone):
            self.died.append(place)
            self._stopped = True
        else:
            raise cast(BaseException, value)

    def stop(self) -> list[Worker]:
        """Hand out no more, and return who is at something that nobody waits for."""
        with self._lock:
            self._stopped = True
            return list(self._under_way.values())
