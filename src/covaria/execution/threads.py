"""One thread for matrix products, so that any number of cores gives the same bits."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which libraries compute with one thread."""
    threads = _threads(len(sys.modules))
    if all(library.num_threads == 1 for library in threads.lib_controllers):
        return nullcontext()
    limited: AbstractContextManager[object] = threads.limit(limits=1)
    return limited


@lru_cache(maxsize=1)
def _threads(n_modules: int) -> Any:
    """Return the setter of all libraries' threads, looked for again when more is imported."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
