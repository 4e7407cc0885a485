"""Functions as machine code, in one way for all who need it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Return the function compiled, free of the GIL and kept on disk; it takes numba."""
    from numba import njit

    return cast(Function, njit(cache=True, nogil=True, error_model="numpy")(function))


def compiled_or_plain(function: Function) -> Function:
    """Return the function compiled, or as it is where numba is missing."""
    try:
        return compiled(function)
    except ImportError:
        return function
