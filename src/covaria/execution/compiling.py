"""Functions as machine code, in one way for all who need it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar, cast

from covaria.errors import short

Function = TypeVar("Function", bound=Callable[..., object])

MISSING = "numba is not installed"
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_unkept: list[str] = []  # why compiled code could not be written


def compiled(function: Function) -> Function:
    """Return the function compiled, free of the GIL and kept on disk; it takes numba.

    Where numba may write nowhere, as in a locked container or on a full disk, it is kept in memory
    alone.
    """
    if why := _missing():
        raise ImportError(why)
    from numba import njit

    made = njit(**OPTIONS)(function)
    with suppress(RuntimeError):  # no folder that can be written
        made._cache = _forgiving()(function)
    return cast(Function, made)


@cache
def _forgiving() -> Any:
    """Return numba's files of compiled code, done without where they cannot be read or written."""
    from numba.core import caching

    files: Any = caching.FunctionCache

    class Forgiving(files):  # type: ignore[misc]
        def load_overload(self, *given: object) -> object:
            try:
                return super().load_overload(*given)
            except Exception:  # such as a file that was cut short
                return None

        def save_overload(self, *given: object) -> None:
            try:
                super().save_overload(*given)
            except Exception as error:  # such as a full disk
                self.disable()
                _unkept.append(short(str(error)))

    return Forgiving


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
            f"{_why_unkept()}, so every run compiles its engine anew, about 20 s: set "
            "NUMBA_CACHE_DIR to a folder of your own."
        ]
    return []


def _why_unkept() -> str:
    if _unkept:
        return f"numba could not keep what it compiled ({_unkept[0].rstrip('.')})"
    return "numba can write nowhere"


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


def keeps_on_disk() -> bool:
    """Return whether what numba compiles is kept, as far as was tried."""
    return not _unkept and _has_folder()


@cache
def _has_folder() -> bool:
    try:
        _forgiving()(has_numba)  # any function of a file will do: none is compiled yet
    except RuntimeError:
        return False
    return True
