"""Tables larger than memory: a random sample of their rows, read batch by batch.

Files and folders of Parquet or Arrow, pyarrow datasets, polars' lazy frames and DuckDB relations
are counted first. Where all rows fit they are all taken. Else every row has the same chance: how
many of a batch are drawn is hypergeometric, so that no more is held than a batch and the sample.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError, MissingExtra, short
from covaria.options.checks import whole
from covaria.randomness import stream

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

RowNumbers = NDArray[np.int64]
PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".arrow", ".feather", ".ipc")
# A run holds so many bytes for each cell of its table, twice as many for text (docs/tables.md).
BYTES_PER_CELL = 100
# It may take this share of the memory that is free.
SHARE = 0.5
BATCH = 2**16
# NumPy draws hypergeometric numbers up to this many rows.
MOST_ROWS = 10**9
MEMORY = Path("/proc/meminfo")
# What a group of processes may take, and what it has taken.
LIMIT, TAKEN = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")


@dataclass(frozen=True)
class Source:
    """A table that is not in memory: its rows, its columns, and how to read all or some of them."""

    n_rows: int
    n_columns: int
    n_texts: int
    whole: Callable[[], object]
    drawn: Callable[[RowNumbers], pd.DataFrame]

    @property
    def bytes_per_row(self) -> int:
        """Return what a run holds for each row."""
        return BYTES_PER_CELL * (self.n_columns + self.n_texts)


def at_hand(X: object, rows: object = None, seed: object = 0) -> tuple[Any, list[str]]:
    """Return a table that is in memory, and what was done to have it there."""
    wanted, source = None if rows is None else whole("rows", _counted(rows), 2), source_of(X)
    number = 0 if wanted is None and source is None else whole("seed", seed, 0)
    if source is not None:
        return _read(source, wanted, number)
    if wanted is None:
        return X, []
    if not hasattr(X, "shape") or not hasattr(X, "columns"):
        raise InputError(
            "rows draws from a table with named columns that has its target in it, or from a file. "
            "Draw from X and y yourself, or give a dataframe and the name of its target."
        )
    return _some_of_frame(X, wanted, number)


def _counted(rows: object) -> object:
    """Return a whole number that was written as 1e6, anything else as it is."""
    return int(rows) if isinstance(rows, float) and rows.is_integer() else rows


def _read(source: Source, rows: int | None, seed: int) -> tuple[Any, list[str]]:
    if source.n_rows >= MOST_ROWS:
        raise InputError(
            f"The table has {source.n_rows:,} rows, and a sample is drawn from fewer than "
            f"{MOST_ROWS:,}. Give a part of its files."
        )
    fitting = max(2, int(SHARE * free_memory() / max(1, source.bytes_per_row)))
    wanted = min(fitting if rows is None else rows, source.n_rows)
    if wanted == source.n_rows:
        return source.whole(), []
    why = ", as many as memory allows" if rows is None else ""
    return source.drawn(drawn(source.n_rows, wanted, seed)), [note(source.n_rows, wanted, why)]


def note(n_rows: int, wanted: int, why: str = "") -> str:
    """Return the sentence that says what was read."""
    return (
        f"The table has {n_rows:,} rows; a random sample of {wanted:,} was read{why}. Another seed "
        "draws others, rows= or --rows another number."
    )


def _some_of_frame(X: Any, rows: int, seed: int) -> tuple[Any, list[str]]:
    """Return some rows of a dataframe in memory."""
    if rows >= len(X):
        return X, []
    some = drawn(len(X), rows, seed)
    return _rows_of(X, some), [note(len(X), rows)]


def _rows_of(X: Any, some: RowNumbers) -> Any:
    """Return some rows of a frame of pandas or polars, or of a table of Arrow."""
    if hasattr(X, "iloc"):
        return X.iloc[some]
    return X.take(some) if hasattr(X, "combine_chunks") else X[some]


def drawn(n_rows: int, wanted: int, seed: int) -> RowNumbers:
    """Return the numbers of rows of a simple random sample, in their order.

    >>> drawn(10**6, 3, seed=0).shape, bool((np.diff(drawn(10**6, 1000, seed=0)) > 0).all())
    ((3,), True)
    """
    rng, found = stream(seed, "rows"), []
    for start in range(0, n_rows, BATCH):
        size, left = min(BATCH, n_rows - start), n_rows - start
        here = int(rng.hypergeometric(wanted, left - wanted, size))
        found.append(start + np.sort(rng.choice(size, here, replace=False)))
        wanted -= here
    return np.concatenate(found).astype(np.int64)


def free_memory() -> float:
    """Return the bytes that are free to this process, infinite where nobody says."""
    found = [np.inf]
    with suppress(OSError, KeyError, ValueError):
        lines = dict(line.split(":") for line in MEMORY.read_text().splitlines())
        found.append(1024 * float(lines["MemAvailable"].split()[0]))
    with suppress(OSError, ValueError):  # "max": as much as there is
        found.append(float(LIMIT.read_text()) - float(TAKEN.read_text()))
    return max(0.0, min(found))


# --- what is read ------------------------------------------------------------------------------


def source_of(X: object) -> Source | None:
    """Return a table that is not in memory as a source, None for any other."""
    if isinstance(X, (str, os.PathLike)):
        return _of_path(Path(X).expanduser())
    home = type(X).__module__.split(".")[0]
    if home == "polars" and hasattr(X, "collect"):
        return _of_lazy_frame(X)
    if hasattr(type(X), "count_rows") and hasattr(type(X), "scanner"):
        return _of_dataset(X)
    if home in ("duckdb", "_duckdb") and hasattr(X, "aggregate"):
        return _of_relation(X)
    return None


def dataset_at(path: Path) -> Any:
    """Return the pyarrow dataset of a file, or of a folder of files of one kind."""
    kind = kind_of(path)
    if not kind:
        known = ", ".join((*PARQUET_ENDINGS, *ARROW_ENDINGS))
        raise InputError(
            f"'{short(str(path))}' is no table that can be read: it does not end in one of "
            f"{known}, .csv or .tsv, nor is it a folder of the first. Read it first, as with "
            "pandas."
        )
    try:
        import pyarrow.dataset as ds
    except ImportError:
        raise MissingExtra("Reading Parquet and Arrow datasets", "parquet") from None
    try:
        return ds.dataset(str(path), format=kind, partitioning="hive")
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: object, error: Exception) -> InputError:
    why = short(str(error).split("\n")[0] or type(error).__name__, 150).rstrip(".")
    return InputError(
        f"{path} cannot be read as a table ({why}). Check the path, or write it again."
    )


def kind_of(path: Path) -> str:
    """Return "parquet" or "arrow" for a file or a folder of such, else nothing.

    >>> kind_of(Path("a/homes.parquet")), kind_of(Path("homes.csv"))
    ('parquet', '')
    """
    try:
        inside = path.rglob("*") if path.is_dir() else [path]
        endings = {one.suffix.lower() for one in inside}
    except (OSError, ValueError):
        return ""
    if endings & set(PARQUET_ENDINGS):
        return "parquet"
    return "arrow" if endings & set(ARROW_ENDINGS) else ""


def _of_path(path: Path) -> Source:
    """Return a file or folder; pandas reads a whole file of Parquet."""
    source = _of_dataset(dataset_at(path))
    if path.is_dir() or kind_of(path) != "parquet":
        return source
    import pandas as pd

    return replace(source, whole=lambda: pd.read_parquet(path))


def _of_dataset(dataset: Any) -> Source:
    """Return a pyarrow dataset, read by one thread in the order of its files."""

    try:
        n_rows = dataset.count_rows()
    except (OSError, ValueError) as error:
        raise _unreadable("The dataset", error) from error
    schema = dataset.schema
    return Source(
        n_rows,
        len(schema),
        _n_texts(schema),
        lambda: dataset.to_table().to_pandas(),
        lambda some: _taken(schema, _batches(dataset), some),
    )


def _batches(dataset: Any) -> Iterator[pa.RecordBatch]:
    """Yield a dataset batch by batch, of which few are held; buffers would keep a whole file."""
    import pyarrow.dataset as ds

    few = {"batch_size": BATCH, "batch_readahead": 1, "fragment_readahead": 1}
    if isinstance(getattr(dataset, "format", None), ds.ParquetFileFormat):
        few["fragment_scan_options"] = ds.ParquetFragmentScanOptions(
            pre_buffer=False, use_buffered_stream=True
        )
    yield from dataset.scanner(use_threads=False, **few).to_batches()


def _of_relation(relation: Any) -> Source:
    """Return a DuckDB relation, in the order of its rows."""
    n_rows = int(relation.aggregate("count(*)").fetchall()[0][0])
    reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    schema = reader(BATCH).schema
    return Source(
        n_rows,
        len(schema),
        _n_texts(schema),
        lambda: reader(BATCH).read_all().to_pandas(),
        lambda some: _taken(schema, reader(BATCH), some),
    )


def _of_lazy_frame(frame: Any) -> Source:
    """Return a lazy frame of polars, whose streaming engine reads it."""
    import polars as pl

    at = "__row__"

    def some_of(some: RowNumbers) -> object:
        wanted = pl.LazyFrame({at: some.astype(np.uint32)})
        numbered = frame.with_row_index(at).join(wanted, on=at, how="semi")
        return numbered.collect(engine="streaming").sort(at).drop(at)

    schema = computed(frame.collect_schema)
    n_rows = int(computed(lambda: frame.select(pl.len()).collect(engine="streaming")).item())
    texts = sum(kind in (pl.String, pl.Categorical, pl.Object) for kind in schema.values())
    return Source(
        n_rows,
        len(schema),
        texts,
        lambda: computed(frame.collect),
        lambda some: computed(lambda: some_of(some)),
    )


def computed(work: Callable[[], Any]) -> Any:
    """Return what a lazy table gives; whatever its source does is one sentence."""
    try:
        return work()
    except Exception as error:
        why = short(f"{type(error).__name__}: {error}".split("\n")[0], 200)
        raise InputError(
            f"The table is computed when it is read, and that failed ({why}). Compute it first, or "
            "give the file."
        ) from None


def _n_texts(schema: pa.Schema) -> int:
    import pyarrow as pa

    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)
    return sum(any(is_kind(field.type) for is_kind in kinds) for field in schema)


def _taken(schema: pa.Schema, batches: Iterable[pa.RecordBatch], some: RowNumbers) -> pd.DataFrame:
    """Return some rows of a stream of batches, by their numbers in it."""
    import pyarrow as pa

    found, start = [], 0
    for batch in batches:
        stop = start + len(batch)
        low, high = np.searchsorted(some, [start, stop])
        if high > low:
            found.append(batch.take(pa.array(some[low:high] - start)))
        start = stop
    table = pa.Table.from_batches(found, schema=found[0].schema if found else schema)
    return cast("pd.DataFrame", table.to_pandas())
