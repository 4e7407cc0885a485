"""What a study found: its long table, and the metrics that come from it."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from covaria.studies import metrics
from covaria.studies.store import COLUMNS, Store
from covaria.tables.files import safe_cell
from covaria.tables.writing import whole

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Study:
    """Many results over scenarios, learners and repeats, as one long table.

    table     one row per scenario, setting, learner, repeat, method and feature
    failures  tasks without rows, as (scenario, setting, learner, repeat, reason)
    """

    table: pd.DataFrame
    failures: tuple[tuple[str, str, str, int, str], ...] = ()
    about: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, store: Store) -> Study:
        """Return what a store holds."""
        import pandas as pd

        names, rows = _long(store)
        table = pd.DataFrame(list(rows), columns=names)
        for name in ("selected", "active"):
            if table[name].notna().all():
                table[name] = table[name].astype(bool)
        cells = {row[0]: row[1:] for row in store.cells()}
        failures = tuple(
            (*cells[cell][:3], repeat, reason)
            for (cell, repeat), reason in sorted(store.tasks().items())
            if reason
        )
        return cls(table, failures, store.identity)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Return a row per run and method: counts, accuracy, recall, F1, FDR, seconds."""
        return metrics.runs(self.table)

    @cached_property
    def features(self) -> pd.DataFrame:
        """Return a row per method and feature: mean and sd of its p-value, share selected."""
        return metrics.features(self.table)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """Return a row per method and metric: mean, sd, Monte-Carlo error; and guessing."""
        return metrics.summary(self.runs)

    def paired(self, method: str, rival: str) -> pd.DataFrame:
        """Return how much higher a method's metrics are than a rival's on the same rows."""
        return metrics.paired(self.runs, method, rival)

    def __repr__(self) -> str:
        done = self.table[["scenario", "setting", "learner", "options", "repeat"]]
        return f"Study({len(done.drop_duplicates())} runs, {len(self.table)} rows)"


def _long(store: Store) -> tuple[list[str], Iterator[tuple[object, ...]]]:
    """Return the names and the rows of the long table; a parameter that varies has a column."""
    cells = {row[0]: row[1:] for row in store.cells()}
    parameters = {at: json.loads(cell[4]) for at, cell in cells.items()}
    varied = _varied(parameters.values())
    head = {
        at: (cell[0], cell[1], *(parameters[at].get(name) for name in varied), cell[2], cell[3])
        for at, cell in cells.items()
    }
    names = [*metrics.CELL[:2], *varied, *metrics.CELL[2:], "repeat", *COLUMNS]
    return names, ((*head[cell], *rest) for cell, *rest in store.rows())


def _varied(parameters: Iterable[dict[str, object]]) -> list[str]:
    parameters = list(parameters)
    names = sorted({name for given in parameters for name in given} - set(COLUMNS))
    return [n for n in names if len({json.dumps(given.get(n)) for given in parameters}) > 1]


def write_table(store: Store, path: str | Path | None = None) -> int:
    """Return how many rows of the long table were written as CSV, to a file or the terminal."""
    import sys

    names, rows = _long(store)
    if path is None:
        return _write(sys.stdout, names, rows)
    with whole(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        return _write(file, names, rows)


def _write(file: TextIO, names: list[str], rows: Iterable[tuple[object, ...]]) -> int:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(safe_cell, names))
    count = 0
    for row in rows:
        writer.writerow(["" if value is None else safe_cell(value) for value in row])
        count += 1
    return count
