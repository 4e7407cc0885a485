"""The store of a study: one SQLite file, plain columns, one transaction a task."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from residua.errors import InputError, StoreError, short

FORMAT = 1
COLUMNS = (
    "method", "feature", "active", "estimate", "std_error", "low", "high", "statistic", "p_value",
    "p_adjusted", "selected", "status", "seconds",
)  # fmt: skip
CELL_COLUMNS = ("scenario", "setting", "learner", "options")
_SCHEMA = """
CREATE TABLE study (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE cells (
    cell INTEGER PRIMARY KEY, scenario TEXT, setting TEXT, learner TEXT, options TEXT,
    parameters TEXT);
CREATE TABLE tasks (
    cell INTEGER, repeat INTEGER, failure TEXT NOT NULL, seconds REAL,
    PRIMARY KEY (cell, repeat)) WITHOUT ROWID;
CREATE TABLE rows (
    cell INTEGER, repeat INTEGER, place INTEGER, method TEXT, feature TEXT, active INTEGER,
    estimate REAL, std_error REAL, low REAL, high REAL, statistic REAL, p_value REAL,
    p_adjusted REAL, selected INTEGER, status TEXT, seconds REAL,
    PRIMARY KEY (cell, repeat, place)) WITHOUT ROWID;
"""
Row = tuple[Any, ...]
Identity = Mapping[str, Any]


@dataclass(frozen=True)
class Done:
    """What came of one task: a row for each method and feature, or why there is none."""

    cell: int
    repeat: int
    rows: tuple[Row, ...]
    seconds: float
    failure: str = ""


class Store:
    """An open store; `writable` and `readable` below open one."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self.connection = connection

    @property
    def identity(self) -> dict[str, Any]:
        """Return the grid, the data and the versions that the store belongs to."""
        found = self._value("identity")
        if found is None:
            raise InputError(f"{self.path} does not hold a study. Start one with: study run.")
        return json.loads(found)  # type: ignore[no-any-return]

    @property
    def shard(self) -> tuple[int, int]:
        """Return which part of the tasks the store is for: (1, 1) is all of them."""
        part, parts = json.loads(self._value("shard") or "[1, 1]")
        return part, parts

    def _value(self, name: str) -> str | None:
        with _sentences(self.path):
            found = self.connection.execute(
                "SELECT value FROM study WHERE name = ?", [name]
            ).fetchone()
        return None if found is None else str(found[0])

    def begin(
        self, identity: Identity, cells: Iterable[Row], shard: tuple[int, int] = (1, 1)
    ) -> None:
        """Write what the study is, all in one transaction."""
        with _sentences(self.path), self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA.split(";"):
                self.connection.execute(statement)
            kept = {"format": FORMAT, "identity": json.dumps(identity), "shard": json.dumps(shard)}
            self.connection.executemany(
                "INSERT INTO study VALUES (?, ?)", [(k, str(v)) for k, v in kept.items()]
            )
            self.connection.executemany("INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?)", cells)

    def tables(self) -> list[str]:
        """Return the names of the tables that are there: none in a store that has not begun."""
        with _sentences(self.path):
            found = self.connection.execute("SELECT name FROM sqlite_master").fetchall()
        return [str(name) for (name,) in found]

    def set_shard(self, shard: tuple[int, int]) -> None:
        """Change which part of the tasks the store is for."""
        with _sentences(self.path), self.connection:
            self.connection.execute(
                "UPDATE study SET value = ? WHERE name = 'shard'", [json.dumps(shard)]
            )

    def add(self, done: Done) -> None:
        """Write one task; where that fails the store is as before."""
        with _sentences(self.path), self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            self._put(done)

    def _put(self, done: Done) -> None:
        key = (done.cell, done.repeat)
        self.connection.execute("DELETE FROM rows WHERE cell = ? AND repeat = ?", key)
        self.connection.execute(
            "INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?)", (*key, done.failure, done.seconds)
        )
        self.connection.executemany(
            f"INSERT INTO rows VALUES ({', '.join('?' * (3 + len(COLUMNS)))})",
            [(*key, place, *row) for place, row in enumerate(done.rows)],
        )

    def tasks(self) -> dict[tuple[int, int], str]:
        """Return the tasks that were run, each with its failure or ''."""
        with _sentences(self.path):
            found = self.connection.execute("SELECT cell, repeat, failure FROM tasks").fetchall()
        return {(cell, repeat): failure for cell, repeat, failure in found}

    def seconds(self, first: int | None = None) -> float:
        """Return how long the tasks took in all, or those of the first repeats."""
        with _sentences(self.path):
            found = self.connection.execute(
                "SELECT total(seconds) FROM tasks WHERE repeat < ?",
                [2**62 if first is None else first],
            ).fetchone()
        return float(found[0])

    def failed_fits(self) -> int:
        """Return how many tests have no answer because a fit failed."""
        with _sentences(self.path):
            found = self.connection.execute(
                "SELECT count(*) FROM rows WHERE status LIKE 'failed%'"
            ).fetchone()
        return int(found[0])

    def cells(self) -> list[Row]:
        """Return cell, scenario, setting, learner, options and parameters, in order."""
        with _sentences(self.path):
            return self.connection.execute("SELECT * FROM cells ORDER BY cell").fetchall()

    def rows(self) -> Iterator[Row]:
        """Yield cell, repeat and the columns of every test, in a fixed order."""
        with _sentences(self.path):
            found = self.connection.execute(
                f"SELECT cell, repeat, {', '.join(COLUMNS)} FROM rows ORDER BY cell, repeat, place"
            )
        yield from found

    def done(self, cell: int, repeat: int) -> Done:
        """Return what came of one task."""
        key = (cell, repeat)
        with _sentences(self.path):
            failure, seconds = self.connection.execute(
                "SELECT failure, seconds FROM tasks WHERE cell = ? AND repeat = ?", key
            ).fetchone()
            rows = self.connection.execute(
                f"SELECT {', '.join(COLUMNS)} FROM rows "
                "WHERE cell = ? AND repeat = ? ORDER BY place", key,
            ).fetchall()  # fmt: skip
        return Done(cell, repeat, tuple(rows), seconds, failure)

    def add_all(self, many: Iterable[Done]) -> None:
        """Write many tasks in one transaction."""
        with _sentences(self.path), self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            for done in many:
                self._put(done)


@contextmanager
def writable(path: str | Path, *, new: bool = False) -> Iterator[Store]:
    """Yield the store to write to; another process that wants it is refused meanwhile."""
    path = Path(path)
    if path.is_dir():
        raise StoreError(f"{path} is a folder. Name a file for the store, such as study.sqlite.")
    with _alone(path):
        if new:
            _removed(path)
        connection = _connected(path)
        try:
            yield Store(path, connection)
        finally:
            with suppress(sqlite3.Error):
                connection.close()


@contextmanager
def readable(path: str | Path) -> Iterator[Store]:
    """Yield the store to read from, also while another process writes to it."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"There is no store {path}. Check the path, or start with: study run.")
    connection = _read_only(path)
    try:
        yield Store(path, connection)
    finally:
        connection.close()


def _connected(path: Path) -> sqlite3.Connection:
    with _sentences(path):
        connection = sqlite3.connect(path, timeout=30, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            # Each task is on the disk before the next is asked for, whatever happens to the power.
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
    return connection


def _read_only(path: Path) -> sqlite3.Connection:
    """Return a connection that writes nothing, also in a folder that cannot be written."""
    with _sentences(path, "read"):
        for mode in ("mode=ro", "immutable=1"):
            connection = sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True, timeout=30)
            try:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite3.OperationalError:
                connection.close()
                if mode == "immutable=1" or Path(f"{path}-wal").exists():
                    raise
            else:
                return connection
    raise AssertionError  # the loop returns or raises


def _removed(path: Path) -> None:
    """Remove a store that is to be started over, and nothing that is not one."""
    if not path.exists():
        return
    with readable(path) as store:
        if not store.tables():  # killed before it began
            return
        _ = store.identity
    try:
        for ending in ("-wal", "-shm", ""):
            Path(f"{path}{ending}").unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{path} cannot be removed ({error.strerror}).") from error


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the store for this process; the system lets go of it however the process ends."""
    beside = Path(f"{path}-lock")
    with _sentences(path):
        lock = sqlite3.connect(beside, timeout=0, isolation_level=None)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            lock.close()
            if "locked" in str(error):
                raise StoreError(
                    f"{path} is being written by another process. Wait until it ends, or give "
                    "this one a --store of its own."
                ) from None
            raise
    try:
        yield
    finally:
        with suppress(sqlite3.Error):
            lock.execute("ROLLBACK")
        lock.close()


@contextmanager
def _sentences(path: Path, what: str = "written") -> Iterator[None]:
    """Turn what SQLite says into one sentence with the cure in it."""
    try:
        yield
    except sqlite3.OperationalError as error:
        said = str(error)
        if "no such table" in said:
            raise InputError(f"{path} does not hold a study. Check the path.") from None
        if "full" in said or "disk I/O" in said:
            raise StoreError(
                f"{path} cannot be written: the disk is full ({short(said)}). Every finished task "
                "is kept; make room and resume."
            ) from None
        raise StoreError(
            f"{path} cannot be {what} ({short(said)}). Choose another place with --store."
        ) from None
    except sqlite3.DatabaseError as error:
        raise InputError(
            f"{path} is not a store of a study ({short(str(error))}). Choose another --store."
        ) from None
