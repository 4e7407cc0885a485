"""Functions as machine code, in one way for all who need it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

from covaria.errors import short

Function = TypeVar("Function", bound=Callable[..., Any])

MISSING = "numba is not installed"
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def compiled(function: Function) -> Function:
    """Return the function compiled, free of the GIL and kept on disk; it takes numba.

    Where numba may write nowhere, as in a locked container, it is kept in memory alone.
    """
    if why := _missing():
        raise ImportError(why)
    from numba import njit

    try:
        made = njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # no folder that can be written
        made = njit(**OPTIONS)(function)
    return cast(Function, made)


def compiled_or_plain(function: Function) -> Function:
    """Return the function compiled, or as it is where numba is missing."""
    try:
        return compiled(function)
    except ImportError:
        return function


def has_numba() -> bool:
    """Return whether numba is here and can be loaded."""
    return not _missing()


def numba_notes() -> list[str]:
    """Return what makes compiled engines slow here, and its cure; mostly nothing."""
    if why := _missing():
        upgrade = "" if why == MISSING else "--upgrade "
        return [f"{why}, so models are fitted one by one: pip install {upgrade}numba."]
    if not keeps_on_disk():
        return [
            "numba can write nowhere, so every run compiles its engine anew, about 20 s: set "
            "NUMBA_CACHE_DIR to a folder of your own."
        ]
    return []


@cache
def _missing() -> str:
    """Return why numba cannot be used; nothing where it can."""
    try:
        import numba  # noqa: F401
    except ModuleNotFoundError:
        return MISSING
    except Exception as error:  # such as one made for another NumPy
        return f"numba cannot be loaded ({short(str(error), 150).rstrip('.')})"
    return ""


@cache
def keeps_on_disk() -> bool:
    """Return whether numba finds a folder for what it has compiled."""
    from numba import njit

    try:
        njit(cache=True)(has_numba)  # any function of a file will do: none is compiled yet
    except RuntimeError:
        return False
    return True
