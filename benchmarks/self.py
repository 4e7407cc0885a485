"""What runs on parts of the rows gain by leaving out diagnostics that nobody sees.

    make bench-self

stability, refit and a study task, with diagnostics (as they ran until they became `result.cost`'s
own rows) and without, in one run: CPU seconds, the least of three, and the same tables.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import time
from collections.abc import Callable
from typing import Any

import covaria

RUNS = 3


def cpu(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least CPU seconds of some runs, and what the last one returned."""
    seconds = []
    for _ in range(RUNS):
        start = time.process_time()
        found = call()
        seconds.append(time.process_time() - start)
    return min(seconds), found


def main() -> None:
    """Print a line for each door and learner."""
    X, y = covaria.draw("additive", n_rows=1000, seed=0)
    doors: dict[str, Callable[..., Any]] = {
        "stability": lambda **o: covaria.stability(X, y, methods="gcm", **o).table,
        "refit": lambda learner, **o: (
            covaria.refit(X, y, methods="gcm", learners=[learner], **o).errors
        ),
        "study task": lambda **o: covaria.assess(X, y, methods="gcm", **o).table,
    }
    for learner in ("linear", "boosting"):
        for name, door in doors.items():
            with_checks, before = cpu(lambda d=door, one=learner: d(learner=one, check=True))
            without, after = cpu(lambda d=door, one=learner: d(learner=one, check=False))
            same = "same table" if before.equals(after) else "OTHER NUMBERS"
            ratio = with_checks / without
            print(f"{name}, {learner}: {with_checks:.2f} s → {without:.2f} s, {ratio:.1f}×, {same}")


if __name__ == "__main__":
    main()
