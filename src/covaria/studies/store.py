"""The store of a study: one SQLite file, plain columns, one transaction a task."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import quote

from covaria.errors import InputError, StoreError, short
from covaria.tables.texts import checksum

# Format 1, of covaria 0.1, has no checksums; it is read, and goes on, without them.
FORMAT = 2
COLUMNS = (
    "method", "feature", "active", "estimate", "std_error", "low", "high", "statistic", "p_value",
    "p_adjusted", "selected", "status", "seconds",
)  # fmt: skip
_FIRST_SCHEMA = """
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
# Of every task a checksum of it and its rows; those of study and cells stand in study.
_SCHEMA = _FIRST_SCHEMA.replace(
    "seconds REAL,\n    PRIMARY KEY (cell, repeat)) WITHOUT",
    "seconds REAL, checksum TEXT NOT NULL,\n    PRIMARY KEY (cell, repeat)) WITHOUT",
)
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
        try:
            return json.loads(found)  # type: ignore[no-any-return]
        except (ValueError, RecursionError) as error:
            raise _damaged(self.path, str(error)) from error

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
            self._mark()

    def tables(self) -> list[str]:
        """Return the names of the tables that are there: none in a store that has not begun."""
        with _sentences(self.path):
            found = self.connection.execute("SELECT name FROM sqlite_master").fetchall()
        return [str(name) for (name,) in found]

    def set_shard(self, shard: tuple[int, int]) -> None:
        """Change which part of the tasks the store is for."""
        with _sentences(self.path), self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.execute(
                "UPDATE study SET value = ? WHERE name = 'shard'", [json.dumps(shard)]
            )
            if self.is_marked:
                self._mark()

    @property
    def is_marked(self) -> bool:
        """Return whether the store has checksums."""
        return self._value("format") != "1"

    def _mark(self) -> None:
        """Write the checksum of what the study is."""
        self.connection.execute("DELETE FROM study WHERE name = 'checksum'")
        kept = self.connection.execute("SELECT * FROM study ORDER BY name").fetchall()
        found = checksum([kept, self.cells()])
        self.connection.execute("INSERT INTO study VALUES ('checksum', ?)", [found])

    def add(self, done: Done) -> None:
        """Write one task; where that fails the store is as before."""
        with _sentences(self.path), self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            self._put(done)

    def _put(self, done: Done) -> None:
        key = (done.cell, done.repeat)
        self.connection.execute("DELETE FROM rows WHERE cell = ? AND repeat = ?", key)
        task: Row = (*key, done.failure, done.seconds)
        task += (task_checksum(task, done.rows),) if self.is_marked else ()
        self.connection.execute(
            f"INSERT OR REPLACE INTO tasks VALUES ({', '.join('?' * len(task))})", task
        )
        self.connection.executemany(
            _NEW_ROW, [(*key, place, *row) for place, row in enumerate(done.rows)]
        )

    def tasks(self) -> dict[tuple[int, int], str]:
        """Return the tasks that were run, each with its failure or ''."""
        with _sentences(self.path):
            found = self.connection.execute("SELECT cell, repeat, failure FROM tasks").fetchall()
        return {(cell, repeat): failure for cell, repeat, failure in found}

    def seconds(self) -> dict[tuple[int, int], float]:
        """Return how long each task took, in seconds of the CPU."""
        with _sentences(self.path):
            found = self.connection.execute("SELECT cell, repeat, seconds FROM tasks").fetchall()
        return {(cell, repeat): float(seconds) for cell, repeat, seconds in found}

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
        with _sentences(self.path, "read"):
            for cell, repeat, _, *row in self.connection.execute(_ALL_ROWS):
                yield (cell, repeat, *row)

    def done(self, cell: int, repeat: int) -> Done:
        """Return what came of one task."""
        key = (cell, repeat)
        with _sentences(self.path):
            failure, seconds = self.connection.execute(
                "SELECT failure, seconds FROM tasks WHERE cell = ? AND repeat = ?", key
            ).fetchone()
            rows = self.connection.execute(_ROWS_OF_ONE, key).fetchall()
        return Done(cell, repeat, tuple(row[3:] for row in rows), seconds, failure)

    def add_all(self, many: Iterable[Done]) -> None:
        """Write many tasks in one transaction."""
        with _sentences(self.path), self.connection:
            self.connection.execute("BEGIN IMMEDIATE")
            for done in many:
                self._put(done)


def task_checksum(task: Row, rows: Iterable[Row]) -> str:
    """Return the checksum of a task (cell, repeat, failure, seconds) and its rows."""
    return checksum([task, list(rows)])


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
            store = Store(path, connection)
            if store.tables():
                check(store)
            yield store
        finally:
            with suppress(sqlite3.Error):
                connection.close()


@contextmanager
def readable(path: str | Path, *, checked: bool = True) -> Iterator[Store]:
    """Yield the store to read from, also while another process writes to it."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"There is no store {path}. Check the path, or start with: study run.")
    connection = _read_only(path)
    try:
        store = Store(path, connection)
        if checked and store.tables():
            check(store)
        yield store
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
    with readable(path, checked=False) as store:
        if not store.tables():  # killed before it began
            return
        _ = store.identity
    try:
        for ending in ("-wal", "-shm", ""):
            Path(f"{path}{ending}").unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"{path} cannot be removed ({error.strerror}).") from error


# --- is it as it was written? ------------------------------------------------------------------


def check(store: Store) -> None:
    """Raise a sentence where a store is not as it was written, or not one that this version reads.

    What SQLite itself sees, the tables as they were made, and the checksums where there are any.
    """
    with _sentences(store.path, "read"), _at_one_time(store.connection):
        _check_tables(store)
        found = store.connection.execute("PRAGMA quick_check(1)").fetchone()
        if found[0] != "ok":
            raise _damaged(store.path, str(found[0]))
        try:
            _check_study(store)
            _check_tasks(store)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise _damaged(store.path, f"{type(error).__name__}: {error}") from error


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(
        f"{path} is damaged ({short(reason)}). Take a copy from before, or start over with --new."
    )


@contextmanager
def _at_one_time(connection: sqlite3.Connection) -> Iterator[None]:
    """See the store as it is now, whatever another process writes meanwhile."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")


def _check_tables(store: Store) -> None:
    """Raise where there is anything but our four tables, made as we make them."""
    found = store.connection.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY sql"
    ).fetchall()
    if not any("study" in str(sql) for (sql,) in found):
        raise InputError(f"{store.path} does not hold a study. Check the path.")
    made = [str(sql) for (sql,) in found]
    schemas = {1: _FIRST_SCHEMA, FORMAT: _SCHEMA}
    fits = [
        number
        for number, schema in schemas.items()
        if sorted(s.strip() for s in schema.split(";") if s.strip()) == made
    ]
    if not fits:
        raise _damaged(store.path, "its tables are not those of a study as this version makes them")
    said = store._value("format")
    if said != str(fits[0]):
        raise InputError(
            f"{store.path} has format {short(str(said))}, which this version of covaria does not "
            "read. Use the version that wrote it."
        )


def _check_study(store: Store) -> None:
    kept = store.connection.execute(
        "SELECT * FROM study WHERE name != 'checksum' ORDER BY name"
    ).fetchall()
    cells = store.cells()
    if store.is_marked and store._value("checksum") != checksum([kept, cells]):
        raise _damaged(store.path, "the checksum of the study does not fit")
    grid = store.identity["grid"]
    part, parts = store.shard
    versions, scenarios = store.identity["versions"], grid["scenario"]
    fits = (
        1 <= part <= parts
        and int(grid.get("repeats", 1)) >= 1
        and all(isinstance(name, str) for name in versions.values())
        and all(isinstance(entry["name"], str) for entry in scenarios)
        and [row[0] for row in cells] == list(range(len(cells)))
        and all(isinstance(text, str) for row in cells for text in row[1:])
        and all(isinstance(json.loads(row[5]), dict) for row in cells)
    )
    if not fits:
        raise _damaged(store.path, "the study in it is none")


def _check_tasks(store: Store) -> None:
    """Raise where a task has no cell, a row no task, or a value of another kind than it should."""
    n_cells = len(store.cells())
    marked = store.is_marked
    found = store.connection.execute("SELECT * FROM tasks ORDER BY cell, repeat")
    rows = groupby(store.connection.execute(_ALL_ROWS), key=lambda row: row[:2])
    key, own = next(rows, _NO_MORE)
    for cell, repeat, failure, seconds, *mark in found:
        mine: list[Row] = []
        if key == (cell, repeat):
            mine = [row[3:] for row in own]
            key, own = next(rows, _NO_MORE)
        kinds = (cell, repeat, failure, seconds)
        if not (type(cell) is type(repeat) is int and 0 <= cell < n_cells and repeat >= 0):
            raise _damaged(store.path, "a task belongs to no cell")
        if marked and mark != [task_checksum(kinds, mine)]:
            raise _damaged(
                store.path, f"the checksum of repeat {repeat} of cell {cell} does not fit"
            )
        if not isinstance(failure, str) or not all(map(_is_row, mine)):
            raise _damaged(store.path, f"repeat {repeat} of cell {cell} is no result")
    if key is not None:
        raise _damaged(store.path, "it has rows of a task that it does not have")


def _is_row(row: Row) -> bool:
    """Return whether the columns of a test hold texts and numbers where they should."""
    texts, numbers = (row[0], row[1], row[11]), (row[2], *row[3:11], row[12])
    return all(isinstance(t, str) for t in texts) and all(
        n is None or (isinstance(n, int | float) and isfinite(n)) for n in numbers
    )


_PLACED = ", ".join(("cell", "repeat", "place", *COLUMNS))
_ROWS = f"SELECT {_PLACED} FROM rows"  # nosec B608 # the names are ours
_ALL_ROWS = f"{_ROWS} ORDER BY cell, repeat, place"
_ROWS_OF_ONE = f"{_ROWS} WHERE cell = ? AND repeat = ? ORDER BY place"
_MARKS = ", ".join("?" * (3 + len(COLUMNS)))
_NEW_ROW = f"INSERT INTO rows VALUES ({_MARKS})"  # nosec B608 # question marks alone
_NO_MORE: tuple[Any, Iterator[Row]] = (None, iter(()))


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
    except UnicodeDecodeError:  # of what SQLite says itself
        raise _damaged(path, "its text is not UTF-8") from None
    except sqlite3.OperationalError as error:
        said = str(error)
        if "no such table" in said:
            raise InputError(f"{path} does not hold a study. Check the path.") from None
        if "full" in said or "disk I/O" in said:
            raise StoreError(
                f"{path} cannot be written: the disk is full ({short(said)}). Every finished task "
                "is kept; make room and resume."
            ) from None
        if any(word in said for word in ("no such column", "decode", "malformed", "unsupported")):
            raise _damaged(path, said) from None
        raise StoreError(
            f"{path} cannot be {what} ({short(said)}). Choose another place with --store."
        ) from None
    except (sqlite3.DatabaseError, sqlite3.Warning) as error:
        raise InputError(
            f"{path} is not a store of a study ({short(str(error))}). Choose another --store."
        ) from None
