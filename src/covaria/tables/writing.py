"""Files are written whole or not at all: to a file beside, which then takes the place."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """Yield a path to write to, which becomes `path` at the end and goes if that never comes.

    What is not a file, such as /dev/stdout or a pipe, is written to directly. An OSError names
    `path`.
    """
    path = Path(path)
    with _naming(path):
        if path.exists() and not path.is_file():
            _refuse_folder(path)
            yield path
            return
        path = Path(os.path.realpath(path))  # a link stays a link
        _refuse_locked(path)
        beside = path.with_name(f".{secrets.token_hex(8)}.part")
        try:
            yield beside
            if path.exists():
                shutil.copymode(path, beside)
            beside.replace(path)
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write text as UTF-8; half a letter, which UTF-8 has not, is written as its code."""
    write_bytes(path, text.encode("utf-8", errors="backslashreplace"))


def write_bytes(path: str | Path, raw: bytes) -> None:
    """Write bytes."""
    with whole(path) as beside:
        beside.write_bytes(raw)


def make_room(*paths: Path | None) -> None:
    """Make the folders of files to come, and raise for the first that could not be written."""
    for path in paths:
        if path is None:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with _naming(path):
            if path.exists() and not path.is_file():
                _refuse_folder(path)
                continue
            _refuse_locked(path)
            tried = Path(os.path.realpath(path)).with_name(f".{secrets.token_hex(8)}.part")
            tried.touch(exist_ok=False)
            tried.unlink()


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let an OSError name this file rather than the one beside it."""
    try:
        yield
    except OSError as error:
        number = error.errno or errno.EIO
        raise OSError(number, error.strerror or str(error), str(path)) from error


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder", str(path))


def _refuse_locked(path: Path) -> None:
    """Raise where a file is there that may not be written, which a rename would not mind."""
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "may not be written", str(path))
