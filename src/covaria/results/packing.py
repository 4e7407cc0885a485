"""Arrays as compressed text, read again within bounds: little text may unpack to much."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterable
from math import prod
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError

# All arrays of a file may take this many bytes, or this many for each byte of the file.
ROOM, RATIO = 2**29, 100
DTYPES = re.compile(r"[fiu][1248]|b1")


class Packed(TypedDict):
    """An array as values that json can hold."""

    shape: list[int]
    dtype: str
    data: str


def pack(array: NDArray[np.generic]) -> Packed:
    """Return an array as values that json can hold."""
    array = np.ascontiguousarray(array)
    text = base64.b64encode(zlib.compress(array.astype(array.dtype.newbyteorder("<")).tobytes(), 6))
    return {
        "shape": list(array.shape),
        "dtype": array.dtype.str.lstrip("=<>|"),
        "data": text.decode(),
    }


def check_room(stored: Iterable[Packed]) -> None:
    """Raise where arrays would unpack to more than anyone packs."""
    stored = list(stored)
    wanted = sum(_bytes_of(array) for array in stored)
    if wanted > max(ROOM, RATIO * sum(len(array["data"]) for array in stored)):
        raise InputError(f"its arrays unpack to {wanted:,} bytes, far more than it holds")


def unpack(stored: Packed) -> NDArray[np.generic]:
    """Return the array that `pack` described; it takes no more room than its shape says."""
    wanted = _bytes_of(stored)
    unpacker = zlib.decompressobj()
    raw = unpacker.decompress(base64.b64decode(stored["data"], validate=True), wanted + 1)
    if len(raw) != wanted or not unpacker.eof or unpacker.unused_data:
        raise InputError("an array has not the size it says")
    array = np.frombuffer(raw, dtype="<" + stored["dtype"]).reshape(stored["shape"])
    return array.astype(stored["dtype"])


def _bytes_of(stored: Packed) -> int:
    shape, dtype = stored["shape"], stored["dtype"]
    if not all(type(size) is int and size >= 0 for size in shape) or len(shape) > 4:
        raise InputError("an array has no shape")
    if not DTYPES.fullmatch(dtype) or dtype in ("f1", "f2"):
        raise InputError("an array has no kind of number")
    size: int = prod(shape) * int(dtype[1:])
    return size
