"""Measure how often true nulls are rejected where held-out trials found them rejected too often.

    python tools/calibration.py [--runs 100] [--only rare,linear] [--most-seconds 600]

Every run is a line of benchmarks/calibration.csv, so that an interrupted measurement goes on where
it stopped; the tables of docs/calibration.md are written from that file. A cell with fewer than
100 runs is a smoke test and is called so.
"""

from __future__ import annotations

import argparse
import csv
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from numpy.typing import NDArray

import covaria

Array = NDArray[np.float64]
ROOT = Path(__file__).resolve().parent.parent
STORE, PAGE = ROOT / "benchmarks" / "calibration.csv", ROOT / "docs" / "calibration.md"
BEGIN, END = "<!-- tools/calibration.py writes below -->", "<!-- and to here -->"
FIELDS = ("part", "cell", "n", "learner", "run", "measure", "value")
ENOUGH = 100
LEVEL = 0.05
METHODS = ("gcm", "pcm", "gcm+pcm", "loco")


# --- tables in which the feature "x" is useless -------------------------------------------------


def others(n: int, rng: Generator) -> pd.DataFrame:
    return pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])


def classes(n: int, share: float, rng: Generator) -> Array:
    """Return classes of which so many are 1; at least five, one a fold."""
    y = (rng.random(n) < share).astype(int)
    y[rng.choice(n, 5, replace=False)] = 1
    return y


def with_ones(n: int, count: int, rng: Generator) -> Array:
    x = np.zeros(n)
    x[rng.choice(n, count, replace=False)] = 1
    return x


def rare_flag(n: int, rng: Generator, *, ones: int, share: float) -> tuple[Any, Any]:
    return others(n, rng).assign(x=with_ones(n, ones, rng)), classes(n, share, rng)


def few_gaps(n: int, rng: Generator, *, gaps: int, share: float) -> tuple[Any, Any]:
    x = rng.normal(size=n)
    x[rng.choice(n, gaps, replace=False)] = np.nan
    return others(n, rng).assign(x=x), classes(n, share, rng)


def text(n: int, rng: Generator, *, levels: int, share: float) -> tuple[Any, Any]:
    x = [f"level {k}" for k in rng.integers(levels, size=n)]
    return others(n, rng).assign(x=x), classes(n, share, rng)


def lopsided_numbers(n: int, rng: Generator, *, ones: int, kind: str) -> tuple[Any, Any]:
    y = rng.exponential(size=n)
    if kind == "zero-inflated":
        y = np.where(rng.random(n) < 0.9, 0.0, np.exp(rng.normal(size=n)))
    return others(n, rng).assign(x=with_ones(n, ones, rng)), y


def many_levels(n: int, rng: Generator, *, levels: int, zipf: bool) -> tuple[Any, Any]:
    """Return a shop whose effect drives x, y and another column."""
    share = 1 / np.arange(1, levels + 1) if zipf else np.ones(levels)
    shop = rng.choice(levels, size=n, p=share / share.sum())
    effect = rng.normal(size=levels)[shop]
    X = others(n, rng)
    X["a"] += effect
    X["x"] = effect + rng.normal(size=n)
    X["shop"] = [f"shop {k}" for k in shop]
    return X, effect + X["a"].to_numpy() + rng.normal(size=n)


def few_clusters(n: int, rng: Generator, *, clusters: int) -> tuple[Any, Any]:
    of = np.arange(n) % clusters
    X = others(n, rng)
    X["x"] = rng.normal(size=clusters)[of] + rng.normal(size=n)
    y = X["a"].to_numpy() + rng.normal(size=clusters)[of] + rng.normal(size=n)
    return X.assign(cluster=of), y


def every_row_twice(n: int, rng: Generator) -> tuple[Any, Any]:
    X = others(n // 2, rng)
    X["x"] = rng.normal(size=n // 2)
    y = X["a"].to_numpy() + rng.normal(size=n // 2)
    return pd.concat([X, X], ignore_index=True), np.tile(y, 2)


# --- intervals ----------------------------------------------------------------------------------


def effect_of(n: int, rng: Generator, *, slope: float) -> tuple[Any, Any]:
    """Return a linear model in which x has this slope beside noise of sd 1, given the others."""
    X = others(n, rng)
    X["x"] = 0.5 * X["a"] + rng.normal(size=n)
    return X, X["a"].to_numpy() + slope * X["x"].to_numpy() + rng.normal(size=n)


def true_effects(slope: float) -> dict[str, float]:
    """Return the partial correlation, and the share of Var(Y) that x explains given the others."""
    variance = (1 + 0.5 * slope) ** 2 + slope**2 + 1
    share = slope**2 / variance
    return {"gcm": slope / np.sqrt(1 + slope**2), "pcm": share, "loco": share}


# --- cells --------------------------------------------------------------------------------------

Cell = tuple[str, str, int, str, Callable[..., tuple[Any, Any]], dict[str, Any]]


def cells() -> Iterator[Cell]:
    """Yield part, name, rows, learner, table and its settings."""
    for n in (500, 2000, 20_000):
        for ones in (3, 5, 10, 20, 50, 100):
            for share in (0.01, 0.05, 0.1, 0.5):
                name = f"{ones} ones, y {100 * share:.0f}% ones"
                yield "rare", name, n, "linear", rare_flag, {"ones": ones, "share": share}
    for n in (500, 2000, 20_000):
        for share in (0.01, 0.1):
            name = f"10 blank cells, y {100 * share:.0f}% ones"
            yield "rare", name, n, "linear", few_gaps, {"gaps": 10, "share": share}
        for levels in (5, 50, 500, 2000):
            name = f"text of {levels} levels, y 10% ones"
            yield "rare", name, n, "linear", text, {"levels": levels, "share": 0.1}
        for kind in ("exponential", "zero-inflated"):
            for ones in (5, 20, 100):
                name = f"{ones} ones, {kind} y"
                yield "rare", name, n, "linear", lopsided_numbers, {"ones": ones, "kind": kind}
    for ones, share in ((5, 0.1), (20, 0.01)):
        name = f"{ones} ones, y {100 * share:.0f}% ones"
        yield "rare", name, 2000, "auto", rare_flag, {"ones": ones, "share": share}
    for learner in ("linear", "auto"):
        for n, levels in ((1000, 60), (1000, 300), (5000, 60), (5000, 2000)):
            for zipf in (False, True):
                name = f"{levels} {'uneven' if zipf else 'even'} levels"
                yield "levels", name, n, learner, many_levels, {"levels": levels, "zipf": zipf}
    for count in (10, 15, 30):
        yield "clusters", f"{count} clusters", 300, "linear", few_clusters, {"clusters": count}
    yield "clusters", "every row twice", 500, "linear", every_row_twice, {}
    for learner in ("linear", "auto"):
        for n in (500, 1000):
            for slope in (0.1, 0.3, 3.0):
                yield "intervals", f"slope {slope:g}", n, learner, effect_of, {"slope": slope}


def asked(part: str) -> list[str]:
    """Return the methods that a part measures."""
    return [m for m in METHODS if part != "levels" or m != "loco"]


def answers(cell: Cell, run: int, methods: list[str]) -> pd.DataFrame:
    """Return what the methods say of x in one run, tested alone, given all other columns."""
    _, name, n, learner, draw, settings = cell
    X, y = draw(n, np.random.default_rng([run, n, *name.encode()]), **settings)
    options = {"clusters": "cluster"} if "cluster" in X else {}
    result = covaria.assess(
        X, y, learner=learner, methods=methods, features=["x"], seed=run, check=False, **options
    )
    return result.table.set_index("method")


def measured(cell: Cell, run: int, methods: list[str]) -> dict[str, float]:
    """Return what one run says: p-values below the level, or intervals that hold the truth."""
    rows, settings = answers(cell, run, methods), cell[5]
    if cell[0] != "intervals":
        return {method: float(rows.loc[method, "p_value"] < LEVEL) for method in methods}
    return {
        method: float(rows.loc[method, "effect_low"] <= truth <= rows.loc[method, "effect_high"])
        for method, truth in true_effects(settings["slope"]).items()
        if method in methods
    }


# --- store and page -----------------------------------------------------------------------------


def stored() -> dict[tuple[str, str, int, str], dict[str, dict[int, float]]]:
    found: dict[Any, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    if STORE.exists():
        with STORE.open(encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                if line["part"] == "part":  # the head of another run that began at the same time
                    continue
                key = (line["part"], line["cell"], int(line["n"]), line["learner"])
                found[key][line["measure"]][int(line["run"])] = float(line["value"])
    return found


def chosen(only: list[str], named: str, rows: range) -> list[Cell]:
    """Return the cells of a part, of a learner, of so many rows, and with a name like this."""
    every = (c for c in cells() if {c[0], c[3]} >= set(only) and c[2] in rows)
    return [c for c in every if re.search(named, c[1])]


def measure(
    runs: range, wanted: list[Cell], most_seconds: float, methods: Collection[str] = METHODS
) -> None:
    """Run what is missing, the cells in turn, and write every run down."""
    have, begin = stored(), time.monotonic()
    with STORE.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if file.tell() == 0:
            writer.writerow(FIELDS)
        for run in runs:
            for cell in wanted:
                if time.monotonic() - begin > most_seconds:
                    return
                done = have.get(cell[:4], {})
                if any(run in of_measure for of_measure in done.values()):
                    continue
                some = [name for name in asked(cell[0]) if name in methods]
                for name, value in measured(cell, run, some).items():
                    writer.writerow([*cell[:4], run, name, f"{value:g}"])
                file.flush()


TITLES = {
    "rare": "Rare values and lopsided targets",
    "levels": "A confounder of many levels",
    "clusters": "Few clusters, and copies of rows",
    "intervals": "How often an interval holds the truth",
}
ABOUT = {
    "rare": "x is useless: a 0/1 flag with so many ones, a number with gaps, or text.",
    "levels": "A shop drives x, y and another column; given the shop x is useless.",
    "clusters": "Effects of clusters in x and y, or every row twice.",
    "intervals": "Intervals of 95%; PCM's and LOCO's are lower bounds. GCM's is of the partial "
    "correlation, which is .1, .29 and .95.",
}


def page() -> str:
    lines = []
    have = stored()
    for part, title in TITLES.items():
        rows = [(key, value) for key, value in have.items() if key[0] == part]
        if not rows:
            continue
        names = [m for m in METHODS if any(m in value for _, value in rows)]
        lines += [f"## {title}", "", ABOUT[part], ""]
        lines += [f"| cell | n | learner | {' | '.join(names)} | runs |"]
        lines += ["| --- " * (len(names) + 4) + "|"]
        for (_, cell, n, learner), value in rows:
            count = max(len(of_measure) for of_measure in value.values())
            rates = [_rate(list(value[m].values()), count) if m in value else "" for m in names]
            smoke = "" if count >= ENOUGH else " (smoke test)"
            lines += [f"| {cell} | {n:,} | {learner} | {' | '.join(rates)} | {count}{smoke} |"]
        lines += [""]
    return "\n".join(lines)


def _rate(values: list[float], of_all: int) -> str:
    """Return a share and its error, and of how many runs where others have more."""
    rate = float(np.mean(values))
    error = np.sqrt(max(rate * (1 - rate), 0.25 / len(values)) / len(values))
    fewer = f" of {len(values)}" if len(values) < of_all else ""
    return f"{rate:.3f} ± {error:.3f}".replace("0.", ".") + fewer


def write_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    if BEGIN not in text:
        text = f"{text.rstrip()}\n\n{BEGIN}\n{END}\n"
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{page()}\n{END}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the first run, which is its seed")
    parser.add_argument("--only", default="", help="a part, a learner, or both: rare,linear")
    parser.add_argument("--cells", default="", help="a pattern that their names match")
    parser.add_argument("--methods", default=",".join(METHODS), help="as gcm,pcm")
    parser.add_argument("--least", type=int, default=0, help="tables of at least these rows")
    parser.add_argument("--largest", type=int, default=10**9, help="tables of at most these rows")
    parser.add_argument("--most-seconds", type=float, default=np.inf)
    parser.add_argument("--page", action="store_true", help="write the page and run nothing")
    given = parser.parse_args()
    if not given.page:
        only = [name for name in given.only.split(",") if name]
        wanted = chosen(only, given.cells, range(given.least, given.largest + 1))
        runs = range(given.first, given.first + given.runs)
        measure(runs, wanted, given.most_seconds, given.methods.split(","))
    write_page()


if __name__ == "__main__":
    main()
