"""Lists of features of tables with far more columns than rows: how many are false, and the time.

200 rows and 1,000 or 5,000 columns, of which 20 are useful: y is their sum with random signs, times
an effect, and noise of variance 1. The columns are

  independent   of each other
  blocks        of ten, correlation .7 within
  chain         each with .6 to the next
  factors       five factors make 40% of each column; of the rest blocks of ten have .5
  genes         pathways of 5 to 40 columns with .3 to .9, three factors with 20%, skewed (e^{x/2})

`python tools/wide_tables.py STORE.csv --columns 1000 --runs 40 --designs blocks,chain --ways mvr`
runs what the store has not, and prints the table of docs/methods/knockoffs.md.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import covaria
from covaria.methods import knockoffs

Array = NDArray[np.float64]
N_ROWS, N_USEFUL, EFFECT, FDR = 200, 20, 0.6, 0.2
# Of one draw of copies, every list is read off the same statistics.
TARGETS = (0.1, FDR)
FIELDS = ("columns", "design", "way", "fdr", "run", "selected", "false", "power", "cpu_seconds")


def independent(rng: np.random.Generator, p: int) -> Array:
    """Return columns without any correlation."""
    return rng.normal(size=(N_ROWS, p))


def blocks(rng: np.random.Generator, p: int, share: float = 0.7) -> Array:
    """Return blocks of ten columns that share a factor."""
    shared = np.repeat(rng.normal(size=(N_ROWS, p // 10)), 10, axis=1)
    return np.sqrt(share) * shared + np.sqrt(1 - share) * rng.normal(size=(N_ROWS, p))


def chain(rng: np.random.Generator, p: int) -> Array:
    """Return columns of which each goes with the next."""
    X = rng.normal(size=(N_ROWS, p))
    for j in range(1, p):
        X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
    return X


def factors(rng: np.random.Generator, p: int) -> Array:
    """Return columns that share five factors, and blocks in what these leave."""
    return _with_factors(rng, blocks(rng, p, 0.5), 5, 0.4)


def genes(rng: np.random.Generator, p: int) -> Array:
    """Return pathways of unlike size and strength, batch effects, and long tails."""
    parts, size = [], 0
    while size < p:
        width, share = int(rng.integers(5, 41)), rng.uniform(0.3, 0.9)
        shared = np.sqrt(share) * rng.normal(size=(N_ROWS, 1))
        parts.append(shared + np.sqrt(1 - share) * rng.normal(size=(N_ROWS, width)))
        size += width
    X = np.exp(_with_factors(rng, np.hstack(parts)[:, :p], 3, 0.2) / 2)
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


def _with_factors(rng: np.random.Generator, X: Array, count: int, share: float) -> Array:
    loads = rng.normal(size=(count, X.shape[1]))
    loads *= np.sqrt(share / (loads**2).sum(axis=0))
    return np.asarray(rng.normal(size=(N_ROWS, count)) @ loads + np.sqrt(1 - share) * X)


DESIGNS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    made.__name__: made for made in (independent, blocks, chain, factors, genes)
}
# A method, by what it is called in the store.
WAYS = {
    **{name: f"knockoffs(fdr={FDR}, construction='{name}')"
       for name in ("mvr", "sdp", "equicorrelated")},
    "shrunken": f"knockoffs(fdr={FDR}, construction='equicorrelated')",
    "repeats": f"knockoffs(fdr={FDR}, construction='mvr', repeats=10)",
    "default": "default",
}  # fmt: skip


def run(design: str, way: str, p: int, seed: int) -> list[dict[str, object]]:
    """Return what one way selects of one table, at each target that one run can tell."""
    rng = np.random.default_rng([25, seed, p])
    X = DESIGNS[design](rng, p)
    useful = rng.choice(p, N_USEFUL, replace=False)
    y = EFFECT * X[:, useful] @ rng.choice([-1.0, 1.0], N_USEFUL) + rng.normal(size=N_ROWS)
    start = time.process_time()
    options = {"correction": "bh", "alpha": FDR} if way == "default" else {}
    with _covariance_shrunk(way == "shrunken"):
        result = covaria.assess(X, y, methods=WAYS[way], seed=seed, progress=False, **options)
    seconds = time.process_time() - start
    names = {f"x{j}" for j in useful}
    rows: list[dict[str, object]] = []
    for fdr, chosen in _lists(result, way).items():
        found = len(names & chosen)
        rows.append({
            "columns": p, "design": design, "way": way, "fdr": fdr, "run": seed,
            "selected": len(chosen), "false": len(chosen) - found, "power": found / N_USEFUL,
            "cpu_seconds": round(seconds, 2),
        })  # fmt: skip
    return rows


def _lists(result: covaria.Result, way: str) -> dict[float, set[str]]:
    """Return what is selected at each target."""
    if way in ("default", "repeats"):
        method = "gcm+pcm" if way == "default" else result.methods[0]
        return {FDR: set(result.selected[method])}
    wins = result.table.set_index("feature")["statistic"]
    wins = wins.astype(float)
    return {
        fdr: set(wins.index[wins >= knockoffs.knockoff_threshold(wins.to_numpy(), fdr)])
        for fdr in TARGETS
    }


@contextmanager
def _covariance_shrunk(is_shrunk: bool) -> Iterator[None]:
    """Draw copies by one covariance of all columns, shrunk, as it was before and as R does it."""
    usual = knockoffs.fit_blocks
    if is_shrunk:
        knockoffs.fit_blocks = knockoffs.fit_sampler
    try:
        yield
    finally:
        knockoffs.fit_blocks = usual


def stored(path: Path) -> list[dict[str, str]]:
    """Return the runs of a store."""
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def store(path: Path, row: dict[str, object]) -> None:
    """Add a run to a store."""
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def table(rows: list[dict[str, str]]) -> str:
    """Return FDR, power and seconds of each cell as Markdown."""
    lines = ["| columns | design | way | target | runs | FDR | power | seconds |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- | --- |")
    cells = dict.fromkeys((r["columns"], r["design"], r["way"], r["fdr"]) for r in rows)
    for cell in sorted(cells, key=lambda c: (int(c[0]), list(DESIGNS).index(c[1]), *c[2:])):
        own = [r for r in rows if (r["columns"], r["design"], r["way"], r["fdr"]) == cell]
        fdp = np.array([int(r["false"]) / max(1, int(r["selected"])) for r in own])
        error = fdp.std() / np.sqrt(len(own))
        power, seconds = (np.mean([float(r[k]) for r in own]) for k in ("power", "cpu_seconds"))
        lines.append(
            f"| {int(cell[0]):,} | {' | '.join(cell[1:])} | {len(own)} | {fdp.mean():.2f} ± "
            f"{error:.2f} | {power:.2f} | {seconds:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run what the store has not, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--designs", default=",".join(DESIGNS))
    parser.add_argument("--ways", default="mvr")
    asked = parser.parse_args()
    known = {(r["columns"], r["design"], r["way"], r["run"]) for r in stored(asked.path)}
    for seed in range(asked.runs):
        for design in asked.designs.split(","):
            for way in asked.ways.split(","):
                if (str(asked.columns), design, way, str(seed)) not in known:
                    for row in run(design, way, asked.columns, seed):
                        store(asked.path, row)
    print(table(stored(asked.path)))


if __name__ == "__main__":
    main()
