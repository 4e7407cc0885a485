"""One task of a study: draw the rows, run every method on them at once, keep plain rows."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from covaria.assessment import WITHOUT_CHECKS, assess
from covaria.errors import InputError
from covaria.execution.threads import one_thread
from covaria.randomness import seed_of
from covaria.results.result import Result
from covaria.results.status import Outcome, Status
from covaria.simulation.model import Model
from covaria.studies.grid import N_ROWS, Cell, Grid, Source
from covaria.studies.store import Done, Row

NUMBERS = (
    "estimate", "std_error", "low", "high", "statistic", "p_value", "p_adjusted",
)  # fmt: skip
_warm: set[tuple[str, tuple[str, ...], str]] = set()


@dataclass(frozen=True)
class Work:
    """All that a worker needs to run any repeat of one cell."""

    at: int
    cell: Cell
    methods: tuple[str, ...]
    seed: int
    model: Model | None
    table: object = None
    target: str = ""

    @classmethod
    def of(cls, grid: Grid, at: int) -> Work:
        """Return the work of one cell; a table is read once, here."""
        cell = grid.cells[at]
        source = Source(cell)
        if "table" in cell.origin:
            table, target = source.table()
            return cls(at, cell, grid.methods, grid.seed, None, table, target)
        return cls(at, cell, grid.methods, grid.seed, source.model())

    def rows(self, seed: int) -> tuple[Any, Any, set[str] | None]:
        """Return features, target and the names of those that matter, where that is known."""
        if self.model is None:
            return self.table, self.target, None
        X, y = self.model.draw(int(self.cell.parameters.get("n_rows", N_ROWS)), seed=seed)
        return X, y, set(self.model.support)


def run_task(work: Work, repeat: int) -> Done:
    """Return what came of one repeat of a cell; never raise for what a learner does."""
    start = time.process_time()
    try:
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # learners' remarks are not the user's concern
            _warm_up(work)
            start = time.process_time()
            rows = _rows(work, seed_of(work.seed, "study", *work.cell.source, repeat))
    except (Exception, SystemExit) as error:  # a learner that leaves ends its task only
        reason = " ".join(str(error).split())[:200]
        failure = reason if isinstance(error, InputError) else f"{type(error).__name__}: {reason}"
        return Done(work.at, repeat, (), time.process_time() - start, failure or "failed")
    return Done(work.at, repeat, rows, time.process_time() - start)


def _rows(work: Work, seed: int) -> tuple[Row, ...]:
    X, y, active = work.rows(seed)
    result = _assessed(work, X, y, seed)
    seconds: Mapping[str, float] = result.about.seconds
    table, warned = result.table, _warned(result)
    numbers = {name: table[name].tolist() for name in NUMBERS}
    selected, status = table["selected"].tolist(), table["status"].tolist()
    rows = []
    for i, (method, feature) in enumerate(zip(table["method"], table["feature"], strict=True)):
        values = [_plain(numbers[name][i]) for name in NUMBERS]
        matters = None if active is None else int(feature in active)
        cell = _status(status[i], warned.get(feature, ()))
        rows.append((method, feature, matters, *values, int(selected[i]), cell, seconds[method]))
    return tuple(rows)


def _warned(result: Result) -> dict[str, list[str]]:
    """Return the kinds of warnings there are of each feature, where the run looked for them."""
    found: dict[str, list[str]] = {}
    for finding in result.findings:
        if finding.is_warning and finding.feature:
            found.setdefault(finding.feature, []).append(finding.kind)
    return found


def _status(cell: str, kinds: Sequence[str]) -> str:
    """Return a status with the kinds of warnings there are of the feature.

    >>> _status("ok", ["few_rows"]), _status("unused", ["few_rows"]), _status("ok", [])
    ('ok: few_rows', 'unused', 'ok')
    """
    if cell != Outcome.OK or not kinds:
        return cell
    return str(Status(Outcome.OK, ", ".join(sorted(set(kinds)))))


def _assessed(work: Work, X: object, y: object, seed: int) -> Result:
    options: dict[str, Any] = WITHOUT_CHECKS | {"progress": False} | dict(work.cell.options)
    methods: Sequence[str] = work.methods
    return assess(X, y, learner=work.cell.learner, methods=methods, seed=seed, **options)


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _warm_up(work: Work) -> None:
    """Run a cell once on few rows, so that no method is charged what compiling takes."""
    key = (work.cell.learner, work.methods, work.cell.option)
    if key in _warm or work.model is None:
        return
    _warm.add(key)
    few = min(300, int(work.cell.parameters.get("n_rows", N_ROWS)))
    X, y = work.model.draw(few, seed=0)
    names = [*work.model.support[:2], *work.model.names[-2:]]
    with suppress(Exception):  # what is wrong shows in the task itself
        _assessed(work, X[list(dict.fromkeys(names))], y, 0)
