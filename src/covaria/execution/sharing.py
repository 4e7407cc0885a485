"""Values that many tasks need, such as the table: sent to a worker once, not with every task.

A task is pickled with the name of each shared value in its place. On one machine the name is that
of a file in memory, which all workers map: their arrays are one.
"""

from __future__ import annotations

import atexit
import importlib
import io
import mmap
import os
import pickle
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from types import ModuleType
from typing import Any, Generic, TypeVar

Name = TypeVar("Name")

# So many values are kept at a time: the table, folds, other targets than the columns.
KEPT = 4
MEMORY = "/dev/shm"  # nosec B108 # mkdtemp makes a folder of our own in it
# Arrays start at multiples of so many bytes.
STEP = 64


class Shared(Generic[Name]):
    """Values that were sent, by the names that workers know them by; the last few of them."""

    def __init__(self, put: Callable[[object], Name], drop: Callable[[Name], None]) -> None:
        self._put, self._drop = put, drop
        self._sent: OrderedDict[int, tuple[object, Name]] = OrderedDict()

    def add(self, value: object) -> None:
        """Send a value, if it is not among those sent last."""
        if id(value) not in self._sent:
            self._sent[id(value)] = (value, self._put(value))
        self._sent.move_to_end(id(value))
        while len(self._sent) > KEPT:
            self._drop(self._sent.popitem(last=False)[1][1])

    def clear(self) -> None:
        """Forget all values."""
        while self._sent:
            self._drop(self._sent.popitem()[1][1])

    @property
    def names(self) -> list[Name]:
        """Return the names of the values."""
        return [name for _, name in self._sent.values()]

    def packed(self, task: object) -> bytes:
        """Return a task as bytes, with names in the place of values that were sent."""
        return packed(task, {key: name for key, (_, name) in self._sent.items()})


def packed(task: object, names: Mapping[int, object] | None = None) -> bytes:
    """Return anything as bytes, with names in the place of some things."""
    file = io.BytesIO()
    _pickler()(file, names or {}).dump(task)
    return file.getvalue()


@cache
def _pickler() -> Callable[..., pickle.Pickler]:
    """Return what pickles functions and classes of scripts too, with names for some things."""

    class Named(_cloudpickle().Pickler):  # type: ignore[misc]
        def __init__(
            self, file: io.BytesIO, names: Mapping[int, object], **choices: object
        ) -> None:
            super().__init__(file, protocol=5, **choices)
            self.names = names

        def persistent_id(self, thing: object) -> object:
            return self.names.get(id(thing))

    return Named


def _cloudpickle() -> ModuleType:
    try:
        return importlib.import_module("cloudpickle")
    except ImportError:  # joblib up to 1.5 has its own
        return importlib.import_module("joblib.externals.cloudpickle")


class _Reader(pickle.Unpickler, Generic[Name]):
    def __init__(self, task: bytes, value_of: Callable[[Name], object]) -> None:
        super().__init__(io.BytesIO(task))
        self.value_of = value_of

    def persistent_load(self, name: Name) -> object:
        return self.value_of(name)


def unpacked(task: bytes, value_of: Callable[[Name], object]) -> Any:
    """Return a task from its bytes, given the values of the names in it."""
    return _Reader(task, value_of).load()


# --- files in memory ----------------------------------------------------------------------------


@cache
def folder(where: str | None = None) -> str:
    """Return this process's folder for shared values, in memory or where said; it ends with us."""
    usual = MEMORY if os.access(MEMORY, os.W_OK) else None
    made = tempfile.mkdtemp(prefix="covaria-", dir=where or usual)
    atexit.register(_remove, made, os.getpid())
    return made


def _remove(made: str, owner: int) -> None:
    if os.getpid() == owner:  # not those forked from it
        shutil.rmtree(made, ignore_errors=True)


def to_file(value: object) -> str:
    """Return the file that a value was written to: how to make it, then its arrays."""
    found: list[pickle.PickleBuffer] = []
    file = io.BytesIO()
    _pickler()(file, {}, buffer_callback=found.append).dump(value)
    read_only = [memoryview(buffer).readonly for buffer in found]
    parts = [buffer.raw() for buffer in found]
    index = [(part.nbytes, fixed) for part, fixed in zip(parts, read_only, strict=True)]
    head = pickle.dumps((file.getvalue(), index))
    blocks: list[bytes | memoryview] = [len(head).to_bytes(8, "little") + head, *parts]
    try:
        return _written(folder(), blocks)
    except OSError:  # that of a container may be small
        return _written(folder(tempfile.gettempdir()), blocks)


def _written(where: str, blocks: Iterable[bytes | memoryview]) -> str:
    number, path = tempfile.mkstemp(dir=where)
    try:
        with os.fdopen(number, "wb") as beside:
            for block in blocks:
                beside.write(block)
                beside.write(bytes(-beside.tell() % STEP))
    except OSError:
        drop_file(path)
        raise
    return path


def drop_file(path: str) -> None:
    """Remove a file; who has mapped it keeps what is in it."""
    with suppress(OSError):
        os.remove(path)


@lru_cache(maxsize=KEPT)
def from_file(path: str) -> object:
    """Return the value of a file. What is written to its arrays stays in this process."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        made, index = pickle.loads(file.read(size))  # nosec B301 # of our own closed folder
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    start, arrays = _round_up(8 + size), []
    for length, fixed in index:
        part = mapped[start : start + length]
        arrays.append(part.toreadonly() if fixed else part)
        start = _round_up(start + length)
    return pickle.loads(made, buffers=arrays)  # nosec B301 # as above


def forget_files() -> None:
    """Give back the memory of files that were read."""
    from_file.cache_clear()


def _round_up(size: int) -> int:
    return -(-size // STEP) * STEP
