"""What options may be: each check returns a value as plain Python, or raises one sentence.

NumPy's numbers, texts and truth values are as good as Python's, but no file of results holds them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import TypeVar, cast

import numpy as np

from covaria.errors import InputError, did_you_mean, is_whole, short

# A seed may have hundreds of bits; more digits than this no one writes.
LARGEST_WHOLE = 10**100
MOST_JOBS = 10_000
T = TypeVar("T")
P = TypeVar("P", bound=Callable[..., object] | bool | None)


def plain(value: T) -> T:
    """Return a NumPy scalar, or another kind of real number, as Python's own; others as they are.

    >>> plain(np.int64(3)), plain(np.float32(0.5)), plain(np.bool_(True)), plain(np.str_("bh"))
    (3, 0.5, True, 'bh')
    """
    return cast(T, _plain(value))


def _plain(value: object) -> object:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.str_):
        return str(value)
    if isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
        return value
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def plain_all(value: T) -> T:
    """Return lists, tuples, arrays and dictionaries of values with all of them plain.

    >>> plain_all({"ridge": np.array([1.0, 2.0]), "hidden": (np.int64(4),)})
    {'ridge': [1.0, 2.0], 'hidden': (4,)}
    """
    return cast(T, _plain_all(value))


def _plain_all(value: object) -> object:
    if isinstance(value, Mapping):
        return {plain(key): plain_all(inside) for key, inside in value.items()}
    if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind in "biufUS":
        return value.tolist()
    if type(value) is list:
        return [plain_all(inside) for inside in value]
    if type(value) is tuple:
        return tuple(plain_all(inside) for inside in value)
    return plain(value)


def shown(value: object) -> str:
    """Return a value on one line, as the sentence that refuses it shows it.

    >>> shown("a"), shown(10**5000)
    ("'a'", 'int')
    """
    try:
        return short(" ".join(repr(value).split()), 60)
    except Exception:  # thousands of digits, or an object that cannot show itself
        return type(value).__name__


def one_of(name: str, value: object, known: Iterable[str]) -> str:
    """Return a text that is among those known."""
    value, known = plain(value), list(known)
    if not isinstance(value, str) or value not in known:
        hint = did_you_mean(value if isinstance(value, str) else "", known)
        raise InputError(f"{name}={shown(value)} is not known.{hint}")
    return value


def text(name: str, value: object, what: str = "a text") -> str:
    """Return a text."""
    value = plain(value)
    if not isinstance(value, str):
        raise InputError(f"{name}={shown(value)} must be {what}.")
    return value


def file(name: str, value: object) -> Path:
    """Return the path of a file."""
    if not isinstance(value, (str, os.PathLike)):
        raise InputError(f"{name}={shown(value)} must be the name of a file.")
    return Path(value)


def truth(name: str, value: object) -> bool:
    """Return True or False; 1, 0 and None will do."""
    value = plain(value)
    if value is not None and not (isinstance(value, int) and value in (0, 1)):
        raise InputError(f"{name}={shown(value)} must be True or False.")
    return bool(value)


def whole(name: str, value: object, least: int, most: int = LARGEST_WHOLE, what: str = "") -> int:
    """Return a whole number from `least` to `most`."""
    value = plain(value)
    what = what or f"a whole number, {least} or more"
    if not is_whole(value) or value < least:
        raise InputError(f"{name}={shown(value)} must be {what}.")
    if value > most:
        limit = f"Use {most:,} or fewer" if most < LARGEST_WHOLE else "Use fewer digits"
        raise InputError(f"{name}={shown(value)} is too many. {limit}.")
    return int(value)


def between_0_and_1(name: str, value: object) -> float:
    """Return a number between 0 and 1, neither of them included."""
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1:
        raise InputError(f"{name}={shown(value)} must lie between 0 and 1.")
    return float(value)


def confidence_level(value: object, name: str = "confidence") -> float:
    """Return the confidence of an interval; one next to 1 would have no end."""
    level = between_0_and_1(name, value)
    if 0.5 + level / 2 >= 1:
        raise InputError(f"{name}={shown(value)} is next to 1. Use 0.999999 or less.")
    return level


def jobs(value: object, name: str = "n_jobs") -> int:
    """Return a number of processes: 1 or more, or -1 for all cores."""
    value = plain(value)
    if not is_whole(value) or value == 0 or abs(value) > MOST_JOBS:
        raise InputError(f"{name} must be a whole number of processes, or -1 for all cores.")
    return int(value)


def reporter(value: P) -> P:
    """Return the function that hears of progress, None, or False where no bar is to be shown."""
    if value is not None and value is not False and not callable(value):
        raise InputError(
            f"progress={shown(value)} must be a function of (done, total), such as print, or None."
        )
    return value
