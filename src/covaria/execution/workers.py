"""A process beside this one: it is sent a task, answers, and is sent the next.

Each has two pipes of its own and shares nothing with others. So one that dies takes along its own
task and no other, and is missed at once: its pipe is closed. Those that are idle stay for a while.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Any, Protocol, cast

from covaria.execution.sharing import folder, forget_files, from_file, packed, unpacked

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# Idle processes stay for so many seconds: the next call finds them awake.
IDLE = 300.0
# So long may one take to leave by itself when this process ends.
LEAVE = 2.0
READY, FAREWELL = b"ready", b""


class Gone(Exception):
    """The process of a worker is no more."""


class Feed(Protocol):
    """What has tasks for a worker."""

    def serve(self, worker: Worker) -> None:
        """Ask the worker, in its thread, as long as there is something to ask."""
        ...


class Worker:
    """A process, and the thread here that asks it."""

    def __init__(self) -> None:
        self.is_ready = self.is_gone = False
        self._feeds: SimpleQueue[Feed] = SimpleQueue()
        self._process = subprocess.Popen(
            _command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, **ONE_THREAD}, **_group_of_its_own(),
        )  # fmt: skip
        _living.add(self)
        for duty in (self._work, self._bury):
            threading.Thread(target=duty, daemon=True).start()

    @property
    def pid(self) -> int:
        """Return the number of the process."""
        return self._process.pid

    def feed(self, feed: Feed) -> None:
        """Let the worker be asked by a feed, once it is ready and has served those before."""
        self._feeds.put(feed)

    def ask(self, task: bytes) -> tuple[bool, object]:
        """Return whether a task was done, and its value or its error; raise if nobody answers."""
        try:
            _write(self._process.stdin, task)
            answer = _read(self._process.stdout)
        except Gone:
            self.is_gone = True
            raise
        return cast(tuple[bool, object], unpacked(answer, from_file))

    def end(self) -> None:
        """End the process at once, whatever it is at."""
        self._process.kill()

    def leave(self) -> None:
        """Let the process end, which is idle."""
        with suppress(Gone, OSError):
            _write(self._process.stdin, FAREWELL)
            self._process.stdin.close()  # type: ignore[union-attr]

    def wait(self, seconds: float) -> None:
        """Wait for the end of the process, and not for ever."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.end()
            self._process.wait()

    def _work(self) -> None:
        with suppress(Gone):
            _read(self._process.stdout)
            self.is_ready = True
            while True:
                self._feeds.get().serve(self)
        self.is_gone = True
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]

    def _bury(self) -> None:
        """Wait for the end; what the process had started and left would keep its pipes open."""
        with suppress(AttributeError, OSError):  # not on Windows, and not if it is buried already
            # Until then no other process has its number.
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            if ended is not None and ended.si_status:
                os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        _living.discard(self)


def _command() -> list[str]:
    from multiprocessing.spawn import get_executable

    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    path = [one for one in sys.path if isinstance(one, str)]
    start = (
        f"import sys; sys.path[:] = {path!r}; from covaria.execution import workers; "
        f"workers.serve({os.getpid()}, {folder()!r})"
    )
    return [os.fsdecode(get_executable()), *flags, "-c", start]


def _group_of_its_own() -> dict[str, Any]:
    """Return how a process is started that no Ctrl-C on the terminal reaches."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"process_group": 0}


def _write(pipe: IO[bytes] | None, message: bytes) -> None:
    assert pipe is not None
    try:
        pipe.write(len(message).to_bytes(8, "little") + message)
        pipe.flush()
    except (OSError, ValueError):
        raise Gone from None


def _read(pipe: IO[bytes] | None) -> bytes:
    assert pipe is not None
    try:
        size = pipe.read(8)
        message = pipe.read(int.from_bytes(size, "little")) if len(size) == 8 else b""
    except (OSError, ValueError):
        raise Gone from None
    if len(size) < 8 or len(message) < int.from_bytes(size, "little"):
        raise Gone
    return message


# --- those that are idle ------------------------------------------------------------------------

_lock = threading.RLock()
_living: set[Worker] = set()
_idle: dict[Worker, threading.Timer] = {}
_of_the_parent: list[object] = []  # what a forked process must leave alone


def hire() -> Worker:
    """Return a worker that is idle, or a new one."""
    with _lock:
        while _idle:
            worker, timer = _idle.popitem()
            timer.cancel()
            if not worker.is_gone:
                return worker
    return Worker()


def dismiss(worker: Worker) -> None:
    """Keep a worker that is idle for a while, without what was shared with it."""
    worker.feed(_Forget())
    timer = threading.Timer(IDLE, _let_go, [worker])
    timer.daemon = True
    with _lock:
        _idle[worker] = timer
    timer.start()


def _let_go(worker: Worker) -> None:
    with _lock:
        if _idle.pop(worker, None) is None:  # it was hired
            return
    worker.leave()


class _Forget:
    def serve(self, worker: Worker) -> None:
        worker.ask(packed((_forget, None)))


def _forget(_: None) -> None:
    forget_files()


@atexit.register
def _end_all() -> None:
    with _lock:
        idle, every = list(_idle), list(_living)
        _idle.clear()
    for worker in every:
        worker.leave() if worker in idle else worker.end()
    until = time.monotonic() + LEAVE
    for worker in every:
        worker.wait(max(0.0, until - time.monotonic()))


def _begin_anew() -> None:
    """Start without workers in a forked process: those of its parent are not its own."""
    global _lock
    _lock = threading.RLock()
    _of_the_parent.extend([*_living, dict(_idle)])
    _living.clear()
    _idle.clear()
    folder.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


# --- in the process of a worker -----------------------------------------------------------------


def serve(parent: int, folder: str) -> None:
    """Answer what is asked, until a farewell; who leaves without one has left the folder too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tasks, answers = _pipes()
    threading.Thread(target=_watch, args=(parent, folder), daemon=True).start()
    try:
        _write(answers, READY)
        while (task := _read(tasks)) != FAREWELL:
            _write(answers, _answer(task))
    except Gone:
        shutil.rmtree(folder, ignore_errors=True)


def _pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Return the pipes out of the way of whatever reads or prints here, which prints to stderr."""
    tasks, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is none
        os.dup2(nothing, 1)
    return tasks, answers


def _answer(task: bytes) -> bytes:
    try:
        function, item = unpacked(task, from_file)
        return packed((True, function(item)))
    except BaseException as error:
        error.add_note(traceback.format_exc())
        try:
            return packed((False, error))
        except Exception:
            return packed((False, RuntimeError(traceback.format_exc())))


def _watch(parent: int, folder: str) -> None:
    """End this process soon after its parent, even one killed without a word, and its folder."""
    if sys.platform == "win32":  # it gives an orphan no other parent
        import _winapi

        handle = _winapi.OpenProcess(_winapi.SYNCHRONIZE, False, parent)
        _winapi.WaitForSingleObject(handle, _winapi.INFINITE)
    else:
        while os.getppid() == parent:
            time.sleep(0.5)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)
