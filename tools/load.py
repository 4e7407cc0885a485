"""Load covaria with much of something, and see that memory and pace hold.

    python tools/load.py calls [--calls 500]              one process, one call after the other
    python tools/load.py tall [--rows 1000000 --columns 50]
    python tools/load.py wide [--rows 1000 --columns 5000]
    python tools/load.py study [--tasks 20000]            one store, one process

calls and study: after the first fifth the process may grow by MOST_MEGABYTES in all, and the second
half may take SLOWER times as long as the first. tall and wide: the largest memory may be
MOST_TABLES times the table's and COMPILED beside, and every feature has a finite answer.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import covaria
from covaria.studies.runner import Standing

MOST_MEGABYTES, SLOWER = 20.0, 1.5
MOST_TABLES, COMPILED = 12.0, 500.0  # what numba and its code take comes on top, in megabytes


def megabytes() -> float:
    """Return the memory of this process; the largest so far where the system tells no other."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024
    return most_megabytes()


def most_megabytes() -> float:
    """Return the largest memory that this process had."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


class Pace:
    """The memory of the process and its seconds, step by step."""

    def __init__(self) -> None:
        self.sizes: list[float] = []
        self.seconds: list[float] = []
        self._began = time.process_time()

    def follow(self, standing: Standing) -> None:
        """Note a task of a study; the first word of a study comes before any."""
        if standing.now:
            self.step()

    def step(self) -> None:
        """Note that a step is done."""
        self.sizes.append(megabytes())
        self.seconds.append(time.process_time() - self._began)
        self._began = time.process_time()

    def held(self, what: str) -> bool:
        """Say what came of memory and pace, and return whether both held."""
        count = len(self.sizes)
        warm = count // 5
        half = (count + warm) // 2
        grown = max(self.sizes[warm:]) - self.sizes[warm]
        slower = float(np.mean(self.seconds[half:]) / np.mean(self.seconds[warm:half]))
        is_flat = grown <= MOST_MEGABYTES and slower <= SLOWER
        print(
            f"{'flat' if is_flat else 'grows'}: {count:,} {what}, {grown:+.1f} MB after the first "
            f"{warm:,}, later ones take {slower:.2f} times as long as earlier ones"
        )
        return is_flat


def calls(asked: argparse.Namespace) -> bool:
    """Call `assess` many times on one table."""
    X, y = covaria.draw("additive", n_rows=asked.rows or 300, seed=0)
    pace = Pace()
    for seed in range(asked.calls):
        covaria.assess(X, y, learner="linear", seed=seed, progress=False)
        pace.step()
    return pace.held("calls")


def study(asked: argparse.Namespace) -> bool:
    """Run a study of many small tasks in one process; its store has them all."""
    grid = {
        "repeats": asked.tasks,
        "scenario": [{"name": "linear", "n_rows": asked.rows or 60}],
        "learner": [{"name": "linear"}],
        "methods": {"names": ["gcm"]},
    }
    pace = Pace()
    with tempfile.TemporaryDirectory() as folder:
        done = covaria.run_study(grid, store=Path(folder) / "s.sqlite", progress=pace.follow)
        runs = len(done.runs)
    if runs != asked.tasks:
        print(f"grows: the store has {runs:,} of {asked.tasks:,} runs")
    return pace.held("tasks of a study") and runs == asked.tasks


def large(asked: argparse.Namespace) -> bool:
    """Run one table of many rows or columns, five of whose columns matter."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(asked.rows, asked.columns))
    y = X[:, :5].sum(axis=1) + rng.normal(size=asked.rows)
    before, began = megabytes(), time.monotonic()
    result = covaria.assess(X, y, learner=asked.learner, methods=["gcm", "loco"], progress=False)
    seconds, taken, size = time.monotonic() - began, most_megabytes() - before, X.nbytes / 2**20
    table = result.table
    p_values = table[table["method"] == "gcm"]["p_value"].to_numpy(float)
    is_finite = len(p_values) == asked.columns and bool(np.isfinite(p_values).all())
    found = len({f"x{k}" for k in range(5)} & set(result.selected["gcm"]))
    is_fine = is_finite and taken <= MOST_TABLES * size + COMPILED and found == 5
    print(f"{'fine' if is_fine else 'bad'}: {asked.rows:,} × {asked.columns:,} with ", end="")
    print(
        f"{asked.learner}, {seconds:.0f} s, {taken:,.0f} MB for a table of {size:,.0f} MB, ", end=""
    )
    print(f"{found} of 5 found, {'all answers finite' if is_finite else 'answers missing'}")
    return is_fine


KINDS = {"calls": calls, "study": study, "tall": large, "wide": large}
SIZES = {"tall": (1_000_000, 50, "linear"), "wide": (1_000, 5_000, "ridge_path")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--columns", type=int)
    parser.add_argument("--learner")
    asked = parser.parse_args()
    rows, columns, learner = SIZES.get(asked.kind, (None, None, "linear"))
    asked.rows, asked.columns = asked.rows or rows, asked.columns or columns
    asked.learner = asked.learner or learner
    return 0 if KINDS[asked.kind](asked) else 1


if __name__ == "__main__":
    raise SystemExit(main())
