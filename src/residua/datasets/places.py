"""Where a table's file lies: the folder RESIDUA_DATA, the user's cache, or its public origin."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from residua.datasets.cleaning import only_columns
from residua.datasets.download import DownloadError, Progress, download, member_of
from residua.datasets.entries import Entry
from residua.errors import InputError


def content(
    entry: Entry,
    *,
    download: bool = True,
    check: bool = True,
    timeout: float = 30.0,
    progress: Progress | None = None,
) -> bytes:
    """Return the bytes of a table's file from the first place that has it, checked."""
    own = _own(entry)
    if own is not None:
        return _checked_own(own, entry) if check else _read(own)
    kept = cache_folder() / entry.file
    if kept.is_file() and _is_right(raw := _read(kept), entry):
        return raw
    if not download:
        raise InputError(_what_to_do(entry, "is not on this machine"))
    raw = fetched(entry, timeout=timeout, progress=progress)
    keep(raw, kept)
    return raw


def find(entry: Entry) -> Path | None:
    """Return where a table's file lies, None where it would have to be downloaded."""
    own = _own(entry)
    if own is not None:
        return own
    kept = cache_folder() / entry.file
    return kept if kept.is_file() and _is_right(_read(kept), entry) else None


def cache_folder() -> Path:
    """Return the folder downloads are kept in: RESIDUA_CACHE, or where the system keeps such."""
    if named := os.environ.get("RESIDUA_CACHE"):
        return Path(named)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "residua"


def _own(entry: Entry) -> Path | None:
    """Return the file in the user's own folder, None where there is none."""
    named = os.environ.get("RESIDUA_DATA")
    if not named:
        return None
    folder = Path(named)
    if not folder.is_dir():
        raise InputError(f"RESIDUA_DATA={named} is not a folder. Make it, or unset it.")
    path = folder / entry.file
    return path if path.is_file() else None


def _checked_own(path: Path, entry: Entry) -> bytes:
    """Return the user's own file, if need be narrowed to the columns used, or raise."""
    raw = _read(path)
    if not _is_right(raw, entry) and entry.columns:
        with suppress(ValueError, IndexError):  # a table of something else is caught below
            raw = only_columns(raw, entry.columns)
    if not _is_right(raw, entry):
        raise InputError(
            f"{path} is not the file that {entry.name} stands for (its sha256 differs): replace it "
            f"by the one from {entry.url}, or load it with check=False."
        )
    return raw


def fetched(entry: Entry, *, timeout: float = 30.0, progress: Progress | None = None) -> bytes:
    """Return the table's file from its origin, checked, or raise what to do by hand."""
    try:
        raw = download(entry.url, limit=entry.limit, timeout=timeout, progress=progress)
        if entry.member:
            raw = member_of(raw, entry.member, entry.limit)
        if entry.columns:
            raw = _narrowed(raw, entry)
        if not _is_right(raw, entry):
            raise DownloadError("what came has another sha256 than the file that was studied")
    except DownloadError as error:
        raise InputError(_what_to_do(entry, f"could not be downloaded ({error})")) from error
    return raw


def _narrowed(raw: bytes, entry: Entry) -> bytes:
    try:
        return only_columns(raw, entry.columns)
    except (ValueError, IndexError) as error:
        raise DownloadError(f"what came is not the table ({error})") from error


def _what_to_do(entry: Entry, problem: str) -> str:
    """Return one sentence: what is wrong, what to download, from where, where to put it."""
    folder = os.environ.get("RESIDUA_DATA") or cache_folder()
    inside = f" (take {entry.member} out of the zip)" if entry.member else ""
    return (
        f"{entry.name} {problem}: download {entry.url}{inside} and save it as "
        f"{Path(folder) / entry.file}."
    )


def keep(raw: bytes, path: Path) -> None:
    """Write a checked file in one step: it is there whole or not at all.

    A cache that cannot be written, as in many containers, costs a download and nothing else.
    """
    part = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as file:
            part = Path(file.name)
            file.write(raw)
        part.replace(path)
    except OSError:
        pass
    finally:
        if part is not None:
            part.unlink(missing_ok=True)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be opened ({error.strerror}). Check it.") from error


def _is_right(raw: bytes, entry: Entry) -> bool:
    return hashlib.sha256(raw).hexdigest() == entry.sha256
