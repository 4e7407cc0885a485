"""Where a table's file lies: the folder COVARIA_DATA, the user's cache, or its public origin."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from covaria.datasets.cleaning import only_columns
from covaria.datasets.download import DownloadError, Progress, download, member_of
from covaria.datasets.entries import Entry
from covaria.errors import InputError
from covaria.tables.writing import write_bytes

# The project was called residua.
OLD_VARIABLE = "RESIDUA_DATA"


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
        return _checked_own(own, entry) if check else _used(_read(own), entry)
    kept = cache_folder() / entry.file
    raw = _kept(kept, entry)
    if raw is not None:
        return raw
    if not download:
        is_other = f"is not what {kept} holds (its sha256 differs)"
        raise InputError(
            _what_to_do(entry, is_other if kept.exists() else "is not on this machine")
        )
    raw = fetched(entry, timeout=timeout, progress=progress)
    keep(raw, kept)
    return raw


def find(entry: Entry) -> Path | None:
    """Return where a table's file lies, None where it is not or is not the one."""
    own = _own(entry)
    if own is not None:
        return own if _is_right(_used(_read(own), entry), entry) else None
    kept = cache_folder() / entry.file
    return kept if _kept(kept, entry) is not None else None


def _kept(path: Path, entry: Entry) -> bytes | None:
    """Return what the cache has of a table, None where it has nothing that can be used.

    A file saved there by hand may have more columns than are used: they are not left there.
    """
    try:
        found = path.read_bytes()
    except OSError:
        return None
    raw = _used(found, entry)
    if not _is_right(raw, entry):
        return None
    if raw != found:
        keep(raw, path)
    return raw


def _used(raw: bytes, entry: Entry) -> bytes:
    """Return a file narrowed to the columns used, as it is where it has others altogether."""
    if entry.columns and not _is_right(raw, entry):
        with suppress(ValueError, IndexError):
            return only_columns(raw, entry.columns)
    return raw


def cache_folder() -> Path:
    """Return the folder downloads are kept in: COVARIA_CACHE, or where the system keeps such."""
    if named := os.environ.get("COVARIA_CACHE"):
        return Path(named)
    try:
        if sys.platform == "win32":
            base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        base = tempfile.gettempdir()
    return Path(base) / "covaria"


def own_folder() -> str:
    """Return the folder that COVARIA_DATA names, or the variable's name of before; else nothing."""
    if "COVARIA_DATA" not in os.environ and (before := os.environ.get(OLD_VARIABLE)):
        print(f"covaria: {OLD_VARIABLE} is now called COVARIA_DATA.", file=sys.stderr)
        return before
    return os.environ.get("COVARIA_DATA", "")


def _own(entry: Entry) -> Path | None:
    """Return the file in the user's own folder, None where there is none."""
    named = own_folder()
    if not named:
        return None
    folder = Path(named)
    if not folder.is_dir():
        raise InputError(f"COVARIA_DATA={named} is not a folder. Make it, or unset it.")
    path = folder / entry.file
    return path if path.is_file() else None


def _checked_own(path: Path, entry: Entry) -> bytes:
    """Return the user's own file, if need be narrowed to the columns used, or raise."""
    raw = _used(_read(path), entry)
    if not _is_right(raw, entry):
        raise InputError(
            f"{path} is not the file that {entry.name} stands for (its sha256 differs): replace it "
            f"by the one from {entry.url}{_inside(entry)}, or in Python load it with check=False."
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
    folder = own_folder() or cache_folder()
    return (
        f"{entry.name} {problem}: download {entry.url}{_inside(entry)} and save it as "
        f"{Path(folder) / entry.file}."
    )


def _inside(entry: Entry) -> str:
    return f" (take {entry.member} out of the zip)" if entry.member else ""


def keep(raw: bytes, path: Path) -> None:
    """Write a checked file in one step: it is there whole or not at all.

    A cache that cannot be written, as in many containers, costs a download and nothing else.
    """
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, raw)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be opened ({error.strerror}). Check it.") from error


def _is_right(raw: bytes, entry: Entry) -> bool:
    return hashlib.sha256(raw).hexdigest() == entry.sha256
