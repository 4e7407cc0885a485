"""Processes that share the work, and end when the one that started them does."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from queue import Empty, SimpleQueue
from typing import Any

from covaria.errors import InputError
from covaria.execution.executors import Attempt, Unsendable
from covaria.execution.sharing import Shared, drop_file, folder, from_file, to_file, unpacked

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# Idle processes stay for so many seconds: the next call finds them awake.
IDLE = 300
# So often may a process die before it has begun anything.
MOST_FALSE_STARTS = 3


class Processes:
    """Processes beside this one, which works too unless it is to stay `apart`.

    They are started once there is work for them, and stay for the next call. Until the first of
    them is awake this process goes on by itself.
    """

    name = "processes"

    def __init__(
        self, n_jobs: int, *, apart: bool = False, warm: Callable[[], object] = os.getpid
    ) -> None:
        from joblib import cpu_count, effective_n_jobs

        # More than the cores would only take turns; two show what is not fit for processes.
        self.n_workers: int = min(effective_n_jobs(n_jobs), max(2, cpu_count()))
        self.apart, self.warm = apart, warm
        self.pace: dict[str, float] = {}
        self._shared = Shared(to_file, drop_file)
        self._first: Any = None  # what the first process says
        self.worked, self._false_starts = 0.0, 0

    def share(self, value: object) -> None:
        """Send a value once, not with every item that holds it."""
        self._shared.add(value)

    def close(self) -> None:
        """Forget what was shared; the processes stay."""
        self._shared.clear()

    def is_awake(self, *, wanted: bool) -> bool:
        """Return whether processes are there or on their way; where they are wanted, call them."""
        if self._first is None and wanted and self._n_beside:
            self._first = self._submit(_call_plainly, self.warm)
        return self._first is not None

    def attempt(
        self, function: Callable[[Any], Any], items: Sequence[Any], queue: list[int], *, alone: bool
    ) -> Attempt:
        """Yield place and value of items until a process dies; return what was under way then."""
        from concurrent.futures.process import BrokenProcessPool

        feed = _Feed(self, function, items, queue, alone=alone)
        works_too = not (self.apart or alone)
        try:
            while feed.more():
                yield from feed.finished(wait=not (queue and works_too))
                if works_too and (place := feed.take()) is not None:
                    yield place, function(items[place])
        except BrokenProcessPool:
            self._broken(feed)
            return feed.under_way()
        finally:
            if feed.under_way():
                end_pool(self._n_beside)
        return []

    def _broken(self, feed: _Feed) -> None:
        """Take note of a death; that of a process which had not even begun is no item's fault."""
        self._first = None
        end_pool(self._n_beside)
        self._false_starts += not feed.under_way()
        if self._false_starts >= MOST_FALSE_STARTS and self.apart:
            raise InputError("The processes that n_jobs asks for die at once. Use n_jobs=1.")

    @property
    def _n_beside(self) -> int:
        return self.n_workers if self.apart else self.n_workers - 1

    def is_served(self, *, wanted: bool) -> bool:
        """Return whether what is sent now is begun soon, or has to be sent anyway."""
        if self._false_starts >= MOST_FALSE_STARTS:
            return False
        return self.is_awake(wanted=wanted) and (wanted or self._first.done())

    def send(self, task: Any) -> Any:
        """Return the future of a function and its item."""
        try:
            packed = self._shared.packed(task)
        except Exception as error:  # pickle knows many ways to refuse
            raise Unsendable(str(error)) from error
        return self._submit(_call, packed)

    def _submit(self, *call: Any) -> Any:
        # The first starts the processes; later on no interrupt is to be missed.
        with _deaf_to_interrupts() if self._first is None else nullcontext():
            return _pool(os.getpid(), self._n_beside).submit(*call)

    @property
    def ahead(self) -> int:
        """Return how many items are sent at a time."""
        return 2 * self.n_workers if self.apart else self._n_beside


class _Feed:
    """Items on their way to processes: whenever one comes back the next is sent."""

    def __init__(
        self, owner: Processes, function: Callable[[Any], Any], items: Sequence[Any],
        queue: list[int], *, alone: bool,
    ) -> None:  # fmt: skip
        self.owner, self.function, self.items, self.queue = owner, function, items, queue
        self.alone = alone
        self.lock = threading.RLock()  # one may be back at once
        self.sent: dict[Any, int] = {}
        self.back: SimpleQueue[Any] = SimpleQueue()
        self.error: Exception | None = None

    def more(self) -> bool:
        """Send what can be sent, and return whether anything is to be done."""
        self._send()
        if self.error is not None:
            raise self.error
        return bool(self.queue or self.sent)

    def _send(self) -> None:
        wanted = self.owner.apart or self.alone
        with self.lock:
            try:
                while self._may_send() and self.owner.is_served(wanted=wanted):
                    place = self.queue[0]
                    future = self.owner.send((self.function, self.items[place]))
                    self.sent[future] = self.queue.pop(0)
                    future.add_done_callback(self._came_back)
            except Exception as error:  # in whatever thread: it is raised in ours
                self.error = error

    def _may_send(self) -> bool:
        if not self.queue or self.error is not None:
            return False
        # One waits beside those that are begun, but for the last: another may take that sooner.
        spare = not self.owner.apart and len(self.queue) > self.owner.n_workers
        most = 1 if self.alone else self.owner.ahead + spare
        return len(self.sent) - self.back.qsize() < most

    def _came_back(self, future: Any) -> None:
        """Take note that one is back, in the thread that brings it."""
        self.back.put(future)
        if future.exception() is None:
            self._send()

    def take(self) -> int | None:
        """Return the place of the next item, which is then not sent."""
        with self.lock:
            return self.queue.pop(0) if self.queue else None

    def finished(self, *, wait: bool) -> Iterator[tuple[int, Any]]:
        """Yield place and value of one that is back; wait a moment for it if that is asked."""
        try:
            future = self.back.get(timeout=1.0) if wait else self.back.get_nowait()
        except Empty:
            return
        value = future.result()
        yield self.sent.pop(future), value

    def under_way(self) -> list[int]:
        """Return the places of those that were sent and not taken back."""
        return list(self.sent.values())


def _call(task: bytes) -> Any:
    function, item = unpacked(task, from_file)
    return function(item)


def _call_plainly(function: Callable[[], object]) -> None:
    function()


_pools: dict[tuple[int, int], Any] = {}


def _pool(owner: int, count: int) -> Any:
    """Return the pool of so many processes; not joblib's own, which others may end."""
    from joblib.externals.loky import ProcessPoolExecutor

    if (owner, count) not in _pools:
        _pools[owner, count] = ProcessPoolExecutor(
            max_workers=count, timeout=IDLE, env=ONE_THREAD,
            initializer=_begin, initargs=(owner, folder()),
        )  # fmt: skip
    return _pools[owner, count]


def end_pool(count: int) -> None:
    """End the processes of a pool at once, whatever they are at."""
    pool = _pools.pop((os.getpid(), count), None)
    if pool is not None:
        with _deaf_to_interrupts():
            pool.shutdown(wait=True, kill_workers=True)


def _begin(parent: int, folder: str) -> None:
    """Get ready in a process of its own, which ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent, folder)


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


def end_with(parent: int, folder: str) -> None:
    """End this process soon after its parent, even one killed without a word, and its folder."""
    threading.Thread(target=_watch, args=(parent, folder), daemon=True).start()


def _watch(parent: int, folder: str) -> None:
    if sys.platform == "win32":  # it gives an orphan no other parent
        import _winapi

        handle = _winapi.OpenProcess(_winapi.SYNCHRONIZE, False, parent)
        _winapi.WaitForSingleObject(handle, _winapi.INFINITE)
    else:
        while os.getppid() == parent:
            time.sleep(0.5)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)
