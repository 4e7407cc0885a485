"""Files from others: how much of one is read, and whether it is what was written."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any

from covaria.errors import InputError, short

# A file of settings, or of Python, of more bytes than these is not one.
MOST_BYTES = 10_000_000


def read_text(path: Path, what: str) -> str:
    """Return a small text file, or raise that it cannot be read or is too long to be `what`."""
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a file. Give the path of {what}.")
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise InputError(f"{path} has more than {MOST_BYTES:,} bytes, too many for {what}.")
        return raw.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise InputError(f"{path} cannot be opened ({error.strerror}). Check the path.") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not {what} ({short(str(error), 150)}).") from error


def read_toml(path: Path, what: str = "TOML") -> dict[str, Any]:
    """Return what a TOML file says, or raise why it cannot be read."""
    text = read_text(path, what)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also a number of 5,000 digits
        reason = short(str(error), 150) if isinstance(error, ValueError) else "too deep"
        raise InputError(f"{path} is not {what} ({reason}). Mend it.") from error


def checksum(value: object) -> str:
    """Return a digest of a value that json can hold, whatever the order of its keys.

    >>> checksum({"a": 1, "b": [0.5]}) == checksum({"b": [0.5], "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
