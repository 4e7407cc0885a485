"""Processes that share the work, and end when the one that started them does."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def in_processes(
    function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], n_jobs: int
) -> Iterator[Any]:
    """Yield what the function returns for every task, in order, from this many processes."""
    from joblib import Parallel, delayed, parallel_config

    watch = {"initializer": end_with, "initargs": (os.getpid(),)}
    with parallel_config("loky", inner_max_num_threads=1, **watch):
        workers = Parallel(n_jobs=n_jobs, return_as="generator")
        return iter(workers(delayed(function)(*task) for task in tasks))


def end_with(parent: int) -> None:
    """End this process soon after its parent, even one killed without a word."""
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    if sys.platform == "win32":  # it gives an orphan no other parent
        import _winapi

        handle = _winapi.OpenProcess(_winapi.SYNCHRONIZE, False, parent)
        _winapi.WaitForSingleObject(handle, _winapi.INFINITE)
    else:
        while os.getppid() == parent:
            time.sleep(0.5)
    os._exit(1)
