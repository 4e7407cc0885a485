"""What stability, refit and study tasks gained when the house was straightened.

    make bench-self

Compares, in one run, three ways of calling the same doors with the same seeds:

before       the last commit before the straightening (`BEFORE`, then called residua), checked out
             into a temporary worktree of this repository and run from there; every door ran the
             residual diagnostics and threw them away
today        this tree, as the doors are called
diagnostics  this tree with `check=True`: what today's doors would take if they ran diagnostics

Times are CPU seconds in a fresh process each, the least of three calls after a first one that
compiles. Beside them stands whether the tables have the same bytes as today's. Where the history
is not at hand, as in a source archive, the first comparison is left out, and said to be.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BEFORE = "e282eaedc087686932e698d2cefc81f1d66c02d2"
LEARNERS = ("linear", "boosting")
WANTED = {"linear": 6.0, "boosting": 3.0}
RUNS = 3
# What both sides are told, so that no default that moved since then decides.
OPTIONS = {"alpha": 0.1, "correction": "bh", "splits": 5}


def main() -> None:
    """Print a line for each door and learner."""
    with tree_before() as before:
        for learner in LEARNERS:
            today = run(ROOT, "covaria", learner)
            others = {"diagnostics": run(ROOT, "covaria", learner, "check")}
            if before:
                others["before"] = run(before, "residua", learner)
            for door in today:
                print(line(door, learner, today[door], {k: v[door] for k, v in others.items()}))
        if not before:
            print(f"Commit {BEFORE[:7]} is not in this tree's history: not compared with it.")


def line(door: str, learner: str, today: Found, others: dict[str, Found]) -> str:
    """Return what a door takes today, and how many times that the others take."""
    parts = [f"{door}, {learner}: {today['seconds']:.2f} s today"]
    for name, found in others.items():
        same = "same bytes" if found["table"] == today["table"] else "OTHER NUMBERS"
        ratio = found["seconds"] / today["seconds"]
        parts.append(f"{name} {found['seconds']:.2f} s, {ratio:.1f}×, {same}")
    return f"{'; '.join(parts)} (wanted {WANTED[learner]:.0f}×)"


Found = dict[str, Any]


@contextmanager
def tree_before() -> Iterator[Path | None]:
    """Yield the tree of the commit before, checked out for a while; None where there is none."""
    git = ["git", "-C", str(ROOT)]
    known = subprocess.run([*git, "cat-file", "-e", f"{BEFORE}^{{commit}}"], capture_output=True)
    if known.returncode:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        subprocess.run([*git, "worktree", "add", "-q", "--detach", str(tree), BEFORE], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", str(tree)], check=True)


def run(tree: Path, package: str, learner: str, *options: str) -> dict[str, Found]:
    """Return what a tree's doors take, and digests of their tables, from a process of its own."""
    said = subprocess.run(
        [sys.executable, __file__, "--doors", package, learner, *options],
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
        cwd=tree, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    found: dict[str, Found] = json.loads(said)
    return found


def show_doors(package: str, learner: str, *options: str) -> None:
    """Print what each door of a package takes, as JSON."""
    covaria = import_module(package)
    assert str(Path.cwd()) in str(covaria.__file__)
    warnings.simplefilter("ignore")
    X, y = covaria.draw("additive", n_rows=1000, seed=0)
    told = OPTIONS | ({"check": True} if options else {})
    doors: dict[str, Callable[[], Any]] = {
        "stability": lambda: covaria.stability(X, y, method="gcm", learner=learner, **told).table,
        "refit": lambda: covaria.refit(X, y, methods="gcm", learners=[learner], **told).errors,
        "study task": lambda: task(package, learner, told),
    }
    print(json.dumps({name: measured(door) for name, door in doors.items()}))


def task(package: str, learner: str, told: dict[str, object]) -> Any:
    """Return the rows of one repeat of a cell of a study, without the seconds it took."""
    inside = "study" if package == "residua" else "studies"
    grid, task = (import_module(f"{package}.{inside}.{name}") for name in ("grid", "task"))
    cell = grid.Cell("additive", {"n_rows": 1000}, learner, told)
    done = task.run_task(task.Work(0, cell, ("gcm",), 0, grid.Source(cell).model()), 0)
    if not done.rows:
        raise RuntimeError(done)
    # A status has the kinds of the feature's warnings behind it by now, which it had not before.
    return [(*row[:-2], row[-2].split(":")[0]) for row in done.rows]


def measured(door: Callable[[], Any]) -> Found:
    """Return the least CPU seconds of some calls, and a digest of what they return."""
    table, seconds = door(), []
    for _ in range(RUNS):
        start = time.process_time()
        door()
        seconds.append(time.process_time() - start)
    return {"seconds": min(seconds), "table": sha256(written(table).encode()).hexdigest()}


def written(table: Any) -> str:
    """Return all digits of a table."""
    if isinstance(table, list):
        return repr(table)
    return repr([(str(name), table[name].tolist()) for name in table.columns])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--doors"]:
        show_doors(*sys.argv[2:])
    else:
        main()
