"""What a run costs: models fitted and seconds, by stage, purpose and learner.

A `Ledger` is opened for each run and handed down with the plan. Whoever fits models charges them to
it; what else a stage takes is charged when the stage ends. So the rows add up to the run.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

# What a stage does beside fitting models.
OTHER = "everything else"
COLUMNS = ["stage", "purpose", "learner", "models", "seconds"]


@dataclass
class Ledger:
    """Models and seconds by (stage, purpose, learner).

    Seconds are those of whoever fitted: several workers may have more than went by. `passed` are
    the seconds of the clock that were charged to someone.
    """

    rows: dict[tuple[str, str, str], tuple[int, float]] = field(default_factory=dict)
    current: str = ""
    passed: float = 0.0

    def charge(
        self, purpose: str, learner: str, models: int, seconds: float, passed: float | None = None
    ) -> None:
        """Add models and seconds to what the current stage cost."""
        self.passed += seconds if passed is None else passed
        key = (self.current, purpose, learner)
        before, already = self.rows.get(key, (0, 0.0))
        self.rows[key] = (before + models, already + seconds)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Charge to a stage what happens inside, and the time that nobody else charges."""
        outer, passed, start = self.current, self.passed, time.perf_counter()
        self.current = name
        try:
            yield
        finally:
            took = time.perf_counter() - start
            self.charge(OTHER, "", 0, max(0.0, took - (self.passed - passed)))
            self.current = outer

    @property
    def models(self) -> int:
        """Return all models charged so far."""
        return sum(models for models, _ in self.rows.values())

    def columns(self) -> dict[str, list[str | int | float]]:
        """Return a row for each stage, purpose and learner, in the order in which they came."""
        rows = [(*key, *cost) for key, cost in self.rows.items() if any(cost)]
        return {name: [row[at] for row in rows] for at, name in enumerate(COLUMNS)}

    def table(self) -> pd.DataFrame:
        """Return the same as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.columns(), columns=COLUMNS)


def added(costs: Iterable[pd.DataFrame], stage: str = "", took: float = 0.0) -> pd.DataFrame:
    """Return the cost of several runs as that of one; what else `took` time goes to the stage."""
    ledger = Ledger()
    rows = (row for cost in costs for row in cost.itertuples(index=False))
    for own, purpose, learner, models, seconds in rows:
        ledger.current = own
        ledger.charge(purpose, learner, int(models), float(seconds))
    ledger.current = stage
    ledger.charge(OTHER, "", 0, max(0.0, took - ledger.passed))
    return ledger.table()
