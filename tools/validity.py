"""Measure how often the tests reject true nulls, and what they find: docs/validity.md.

    python tools/validity.py [--runs 200] [--jobs 2] [--only nulls,others,fresh,mirror,power,…]

Every run is a line of benchmarks/validity.csv, so that an interrupted measurement goes on where
it stopped; the page is written from that file. Rivals run in .venv-rivals, and the real tables
are taken from COVARIA_DATA; what is missing is left out and said to be.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import mirror_nulls
import numpy as np
from numpy.typing import NDArray
from validity_nulls import FRESH, NULLS, OTHERS

import covaria

Array = NDArray[np.float64]
ROOT = Path(__file__).resolve().parent.parent
STORE, PAGE = ROOT / "benchmarks" / "validity.csv", ROOT / "docs" / "validity.md"
SIZES = (250, 500, 1000)
LEVEL = 0.05
# Of fewer runs no verdict is given; a cell that may fail by chance gets more, and all count.
ENOUGH, MORE = 100, {"nulls": 1000, "others": 400, "fresh": 400}
# The most that a valid test may reject, and the least share of runs that warns of an invalid one.
MOST, WARNED = 0.07, 0.8
# A run: what was measured, in which cell, by whom, which run, and the numbers.
FIELDS = ("part", "cell", "n", "who", "run", "gcm", "pcm", "both", "alarm")
LEARNERS = {"auto": "auto", "stumps": "boosting"}
# Runs of the auto before learners were chosen on the folds themselves: shown, and marked, where
# there are none of today's.
EARLIER, MARK = "earlier auto", "†"
POWER = ("friedman", "a", "b", "c", "d", "even")
POWER_LEARNERS = {"auto": "auto", "500 stumps": "boosting(trees=500)"}
REAL = ("boston", "wine_red", "crab_age", "gas_turbine_2013", "social_media", "airbnb_quebec")
SEEDS = 10
OTHERS_SIZE = 500
# Mirror nulls: a table and what made its target, at two sizes; the first four were looked at when
# rules were set, and R² goes round by run.
MIRRORS = ("airbnb", "wine_red", "social_media", "gas_turbine", "crab_age", "breast_cancer")
MIRROR_SIZES, MIRROR_R2 = (500, 1000), (0.5, 0.3, 0.7)
TABLES = {"nulls": NULLS, "others": OTHERS, "fresh": FRESH}
# Rivals with forests take long: they get this share of the runs.
RIVALS_SHARE = 4

TESTS = ("gcm", "pcm", "both")
KINDS: dict[str, Callable[[float], bool]] = {
    "invalid": lambda rate: rate > 0.1,
    "between": lambda rate: MOST < rate <= 0.1,
    "valid": lambda rate: rate <= MOST,
}

Task = tuple[str, str, int, str, int]


# --- runs ---------------------------------------------------------------------------------------


def null_run(cell: str, n: int, who: str, run: int) -> dict[str, float]:
    """Return the p-values of a feature that says nothing, and whether a warning was raised."""
    draw = (NULLS | OTHERS | FRESH)[cell]
    X, y = draw(n, np.random.default_rng([run, n, *cell.encode()]))
    return tested(X, y, "x0", LEARNERS[who], run)


def mirror_run(cell: str, n: int, who: str, run: int) -> dict[str, float]:
    """Return the same of a real table whose target follows what the others tell of a feature."""
    X = mirror_nulls.table_of(cell).drop_duplicates()
    n_rows = min(n, len(X) - mirror_nulls.FEWEST_ROWS)
    drawn = mirror_nulls.draw(X, n_rows, run, MIRROR_R2[run % len(MIRROR_R2)], who)
    return tested(*drawn, "auto", run)


def tested(X: Any, y: Array, feature: str, learner: str, seed: int) -> dict[str, float]:
    """Return the p-values of a feature, and whether a warning or the verdict puts them in doubt."""
    result = covaria.assess(X, y, features=[feature], learner=learner, seed=seed)
    table = result.table.set_index("method")
    p, verdict = table["p_value"], table["verdict"]["gcm+pcm"]
    warned = any(finding.feature in ("", feature) for finding in result.warnings)
    return {
        "gcm": float(p["gcm"]),
        "pcm": float(p["pcm"]),
        "both": float(p["gcm+pcm"]),
        "alarm": float(warned or verdict == "cannot tell"),
    }


def table_of(cell: str, n: int, run: int) -> tuple[Array, Array, list[int]]:
    """Return a table in which some features matter, and which they are."""
    if cell in ("friedman", "even"):
        rng = np.random.default_rng([run, n, *cell.encode()])
        X = rng.uniform(size=(n, 10))
        if cell == "friedman":
            y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
            y += 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=n)
            return X, y, [0, 1, 2, 3, 4]
        X = rng.normal(size=(n, 10))
        y = 0.4 * X[:, 0] ** 2 + np.cos(2 * X[:, 1]) + np.abs(X[:, 2]) + rng.normal(size=n)
        return X, y, [0, 1, 2]
    model = covaria.scenario(cell)
    frame, target = model.draw(n, seed=run)
    useful = [frame.columns.get_loc(name) for name in model.support]
    return frame.to_numpy(), target.to_numpy(), useful


def power_run(cell: str, n: int, who: str, run: int) -> dict[str, float]:
    """Return the share of useful features that each test finds at .05, and of others as "alarm"."""
    X, y, useful = table_of(cell, n, run)
    result = covaria.assess(X, y, learner=POWER_LEARNERS[who], seed=run, check=False)
    found = result.table.pivot(index="feature", columns="method", values="p_value") < LEVEL
    found = found.reindex([f"x{j}" for j in range(X.shape[1])])
    recall = found.iloc[useful].mean()
    others = found["gcm+pcm"].drop(found.index[useful])
    return {
        "gcm": float(recall["gcm"]),
        "pcm": float(recall["pcm"]),
        "both": float(recall["gcm+pcm"]),
        "alarm": float(others.mean()) if len(others) else 0.0,
    }


def flip_run(cell: str, n: int, who: str, run: int) -> dict[str, float]:
    """Return the features that the verdict selects with a seed, as a number in binary."""
    X, y = covaria.datasets.load(cell)
    result = covaria.assess(X, y, seed=run, repeats=5, check=False)
    chosen = result.table[result.table["method"] == "gcm+pcm"]["selected"].tolist()
    code = sum(2**j for j, selected in enumerate(chosen) if selected)
    return {"gcm": float(len(chosen)), "pcm": 0.0, "both": float(code), "alarm": 0.0}


PARTS = dict.fromkeys(TABLES, null_run) | {
    "mirror": mirror_run,
    "power": power_run,
    "flips": flip_run,
}


def tasks(parts: Iterable[str], runs: int) -> Iterator[Task]:
    """Yield what is to be run."""
    for part in parts:
        if part == "nulls":
            cells = [(c, n, w) for n in SIZES for c in NULLS for w in LEARNERS]
            yield from ((part, c, n, w, r) for r in range(runs) for c, n, w in cells)
        if part in ("others", "fresh"):
            cells = [(c, OTHERS_SIZE, w) for c in TABLES[part] for w in LEARNERS]
            yield from ((part, c, n, w, r) for r in range(runs // 2) for c, n, w in cells)
        if part == "mirror":
            cells = [(c, n, w) for c in MIRRORS for n in sizes_of(c) for w in mirror_nulls.MODELS]
            yield from ((part, c, n, w, r) for r in range(runs) for c, n, w in cells)
        if part == "power":
            cells = [
                (c, 500 if c == "friedman" else 1000, w) for c in POWER for w in POWER_LEARNERS
            ]
            yield from ((part, c, n, w, r) for r in range(runs) for c, n, w in cells)
        if part == "flips" and hasattr(covaria, "datasets") and os.environ.get("COVARIA_DATA"):
            yield from ((part, c, 0, "auto", r) for c in REAL for r in range(SEEDS))


def sizes_of(name: str) -> tuple[int, ...]:
    """Return the sizes at which a real table is drawn from, none if it is not there."""
    if not hasattr(mirror_nulls.datasets, f"load_{name}") and not os.environ.get("COVARIA_DATA"):
        return ()
    rows = len(mirror_nulls.table_of(name).drop_duplicates())
    enough = rows >= max(MIRROR_SIZES) + mirror_nulls.FEWEST_ROWS
    return MIRROR_SIZES if enough else MIRROR_SIZES[:1]


def once_more(parts: Iterable[str]) -> Iterator[Task]:
    """Yield more runs of the cells that fail by no more than chance may do."""
    for (part, cell, n, who), own in settings(stored()).items():
        rate = worst_rate(own)
        error = np.sqrt(rate * (1 - rate) / len(own))
        is_near = MOST < rate <= MOST + 2 * error and mean_of(own, "alarm") < WARNED
        if part in parts and who == "auto" and is_near:
            yield from ((part, cell, n, who, run) for run in range(MORE[part]))


def do(task: Task) -> tuple[Task, dict[str, float]]:
    part, cell, n, who, run = task
    return task, PARTS[part](cell, n, who, run)


def measure(wanted: list[Task], jobs: int) -> None:
    """Run what is not in the store yet, and put it there."""
    from joblib import Parallel, delayed

    done = {key_of(line) for line in stored()}
    left = [task for task in wanted if task not in done]
    new = not STORE.exists()
    with STORE.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        if new:
            writer.writeheader()
        found = Parallel(jobs, return_as="generator_unordered")(delayed(do)(task) for task in left)
        for i, (task, numbers) in enumerate(found, start=1):
            row = dict(zip(FIELDS, task, strict=False))
            writer.writerow(row | {name: f"{value:.6g}" for name, value in numbers.items()})
            file.flush()
            if i % 50 == 0:
                print(f"{i} of {len(left)}", file=sys.stderr, flush=True)


def key_of(line: dict[str, str]) -> Task:
    """Return the task of a line."""
    return line["part"], line["cell"], int(line["n"]), line["who"], int(line["run"])


def stored() -> list[dict[str, str]]:
    """Return the lines of the store."""
    if not STORE.exists():
        return []
    with STORE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# --- rivals -------------------------------------------------------------------------------------


def measure_rivals(runs: int) -> None:
    """Let rivals test the same tables with their defaults, in an environment of their own."""
    python = ROOT / ".venv-rivals" / "bin" / "python"
    if not python.exists():
        print("no .venv-rivals: make bench sets it up", file=sys.stderr)
        return
    done = {(one["cell"], one["n"]) for one in stored() if one["part"] == "rivals"}
    for n in SIZES:
        for cell in NULLS:
            if (cell, str(n)) in done:
                continue
            drawn = [
                NULLS[cell](n, np.random.default_rng([r, n, *cell.encode()])) for r in range(runs)
            ]
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "tables.npz"
                np.savez(path, X=[X for X, _ in drawn], y=[y for _, y in drawn])
                script = Path(__file__).with_name("validity_rivals.py")
                text = subprocess.run(
                    [python, script, path], capture_output=True, text=True, check=True
                ).stdout
            with STORE.open("a", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, FIELDS)
                for line in text.splitlines():
                    who, run, p_value = line.split("\t")
                    writer.writerow(
                        dict.fromkeys(FIELDS, "")
                        | {"part": "rivals", "cell": cell, "n": n, "who": who, "run": run}
                        | {"both": p_value}
                    )


# --- the page -----------------------------------------------------------------------------------


def mean_of(lines: list[dict[str, str]], name: str) -> float:
    return float(np.mean([float(line[name]) for line in lines]))


def share_below(lines: list[dict[str, str]], name: str) -> float:
    """Return how often a p-value is below the level."""
    return float(np.mean([float(line[name]) < LEVEL for line in lines]))


def worst_rate(lines: list[dict[str, str]]) -> float:
    """Return how often the test that rejects most does."""
    return max(share_below(lines, name) for name in TESTS)


def rate(lines: list[dict[str, str]], name: str) -> str:
    """Return the rate of rejections and its Monte-Carlo error, or a dash."""
    if not lines:
        return "–"
    share = share_below(lines, name)
    error = np.sqrt(share * (1 - share) / len(lines))
    return f"{bare(share)} ± {bare(error)}"


def bare(number: float) -> str:
    """Return a share with three digits."""
    return f"{number:.3f}".lstrip("0") if number < 1 else "1"


def select(lines: list[dict[str, str]], **wanted: Any) -> list[dict[str, str]]:
    return [line for line in lines if all(line[k] == str(v) for k, v in wanted.items())]


def of_auto(lines: list[dict[str, str]], **wanted: Any) -> tuple[list[dict[str, str]], str]:
    """Return the runs of today's auto, or those of the earlier one and their mark."""
    own = select(lines, who="auto", **wanted)
    return (own, "") if own else (select(lines, who=EARLIER, **wanted), MARK)


def settings(lines: list[dict[str, str]]) -> dict[tuple[str, str, int, str], list[dict[str, str]]]:
    """Return the runs of each null, size and learner."""
    found: dict[tuple[str, str, int, str], list[dict[str, str]]] = {}
    for line in lines:
        if line["part"] in TABLES and line["who"] != EARLIER:
            part, cell, n, who, _ = key_of(line)
            found.setdefault((part, cell, n, who), []).append(line)
    return found


def words(cell: str) -> str:
    return cell.replace("_", " ")


def row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def head(titles: list[str]) -> Iterator[str]:
    yield row(titles)
    yield "|" + "---|" * len(titles)


def nulls_table(lines: list[dict[str, str]], part: str) -> Iterator[str]:
    """Yield the table of nulls."""
    own_titles = ["gcm", "pcm", "gcm+pcm", "warned"]
    titles = ["null", "n", *own_titles, *(f"stumps: {title}" for title in own_titles)]
    yield from head([*titles, "runs", "verdict"])
    for cell in TABLES[part]:
        for n in SIZES:
            own, mark = of_auto(lines, part=part, cell=cell, n=n)
            fixed = select(lines, part=part, cell=cell, n=n, who="stumps")
            if own:
                cells = [words(cell), str(n), *rates(own), *rates(fixed), f"{len(own)}{mark}"]
                yield row([*cells, verdict_of(own)])


def mirrors_table(lines: list[dict[str, str]]) -> Iterator[str]:
    """Yield the table of mirror nulls."""
    yield from head(["table", "made by", "n", "gcm", "pcm", "gcm+pcm", "in doubt", "runs"])
    for cell in MIRRORS:
        for n in MIRROR_SIZES:
            for who in mirror_nulls.MODELS:
                own = select(lines, part="mirror", cell=cell, n=n, who=who)
                if own:
                    yield row([words(cell), who, str(n), *rates(own), str(len(own))])


def rates(lines: list[dict[str, str]]) -> list[str]:
    """Return the cells of one learner."""
    alarm = f"{mean_of(lines, 'alarm'):.2f}" if lines else "–"
    return [*(rate(lines, name) for name in TESTS), alarm]


def verdict_of(own: list[dict[str, str]]) -> str:
    if len(own) < ENOUGH:
        return "too few runs"
    if worst_rate(own) <= MOST:
        return "holds"
    return "warned of" if mean_of(own, "alarm") >= WARNED else "**fails**"


def warnings_table(lines: list[dict[str, str]]) -> Iterator[str]:
    """Yield how often warnings are raised where they should be, and where not."""
    yield from head(["settings", "how many", "warned of", "share of their runs that warn"])
    many = [own for own in settings(lines).values() if len(own) >= ENOUGH]
    for title, is_kind in KINDS.items():
        kind = [own for own in many if is_kind(worst_rate(own))]
        if kind:
            alarms = [mean_of(own, "alarm") for own in kind]
            warned = f"{np.mean([alarm > 0.5 for alarm in alarms]):.0%}"
            yield row([title, str(len(kind)), warned, f"{np.mean(alarms):.0%}"])


def rivals_table(lines: list[dict[str, str]]) -> Iterator[str]:
    """Yield what rivals do with the same nulls."""
    rivals = sorted({line["who"] for line in lines if line["part"] == "rivals"})
    yield from head(["null", "n", *rivals, "runs", "covaria, auto: gcm+pcm"])
    for cell in NULLS:
        for n in SIZES:
            theirs = [select(lines, part="rivals", cell=cell, n=n, who=who) for who in rivals]
            own, _ = of_auto(lines, part="nulls", cell=cell, n=n)
            if any(theirs):
                numbers = [rate(some, "both") for some in theirs]
                runs = str(max(map(len, theirs)))
                yield row([words(cell), str(n), *numbers, runs, rate(own, "both")])


def power_table(lines: list[dict[str, str]]) -> Iterator[str]:
    """Yield the table of what is found."""
    titles = ["model", "n", "learner", "gcm", "pcm", "gcm+pcm", "gcm+pcm less gcm"]
    yield from head([*titles, "others chosen by gcm+pcm", "runs"])
    for cell in POWER:
        for who in POWER_LEARNERS:
            own, mark = select(lines, part="power", cell=cell, who=who), ""
            if who == "auto":
                own, mark = of_auto(lines, part="power", cell=cell)
            if own:
                gain = [float(line["both"]) - float(line["gcm"]) for line in own]
                cells = [
                    {"friedman": "Friedman-1", "even": "x², cos, abs"}.get(cell, f"({cell})"),
                    own[0]["n"], who, *(average(own, name) for name in TESTS),
                    f"{np.mean(gain):+.3f} ± {np.std(gain) / np.sqrt(len(own)):.3f}",
                    average(own, "alarm"), f"{len(own)}{mark}",
                ]  # fmt: skip
                yield row(cells)


def average(lines: list[dict[str, str]], name: str) -> str:
    """Return a mean and its Monte-Carlo error."""
    values = [float(line[name]) for line in lines]
    return f"{np.mean(values):.3f} ± {np.std(values) / np.sqrt(len(values)):.3f}"


def flips_table(lines: list[dict[str, str]]) -> Iterator[str]:
    """Yield how often verdicts change between seeds."""
    titles = ["table", "features", "seeds", "verdicts unlike those of most seeds"]
    yield from head([*titles, "verdicts on which two seeds differ", "features with any difference"])
    every = []
    for cell in REAL:
        own, mark = of_auto(lines, part="flips", cell=cell)
        if own:
            codes = np.array([int(float(line["both"])) for line in own])
            n_features = int(float(own[0]["gcm"]))
            share = ((codes[:, None] >> np.arange(n_features)) & 1).mean(axis=0)
            pairs = 2 * share * (1 - share) * len(own) / max(1, len(own) - 1)
            found = np.array([np.minimum(share, 1 - share), pairs, pairs > 0])
            every.append(found)
            yield row([words(cell), str(n_features), f"{len(own)}{mark}", *_flips(found)])
    found = np.hstack(every)
    yield row(["all", str(found.shape[1]), "", *_flips(found)])


def _flips(found: Array) -> list[str]:
    unlike, pairs, differ = found
    return [f"{unlike.mean():.1%}", f"{pairs.mean():.1%}", f"{differ.sum():.0f} of {len(differ)}"]


HEAD = f"""# Are the p-values right, and do the tests see?

Written by `make validity` from benchmarks/validity.csv, with covaria {covaria.__version__}; run r
of a cell takes seed r. Every null below has one feature that says nothing about y given the
others, though both may follow the same function of these (tools/validity_nulls.py). A test at .05
should reject it in .05 of the runs. Behind ± stands the Monte-Carlo standard error. "warned" is the
share of runs with a warning of the feature (`result.warnings`) or the verdict *cannot tell*. A cell
*holds* if GCM, PCM and gcm+pcm reject at most .07, and is *warned of* if it does not and 80% of
its runs warn. With 200 runs a rate of .05 comes out above .07 in one of thirteen cells by chance,
so a cell that is above it by no more than two errors is run {MORE["nulls"]:,} times
({MORE["others"]} times in the later tables, of {ENOUGH} runs), and all its runs count. A cell of
fewer runs is a smoke test. {MARK} marks runs of an earlier `auto`, which chose learners inside
training rows and took nothing off findings; they have not been run again yet.

## True nulls, learner = "auto", and fixed stumps
"""

OTHERS_HEAD = f"""
## Other nulls of the same kind

None of them is in the list above (n = {OTHERS_SIZE}). They are no independent check: most were
looked at when candidates of `auto` or the threshold of a warning were set.
"""

FRESH_HEAD = f"""
## Nulls that came last

Written before any of them was run (n = {OTHERS_SIZE}). The first three, found to fail, were looked
at since: of these the rest are the independent check.
"""

MIRRORS_HEAD = """
## Mirror nulls: real tables whose target follows what the others tell of a feature

A forest, or boosting, learns x_j from the other columns on *other rows* of the table; y is what it
predicts plus noise (R² .5, .3 and .7 in turn; the feature changes from run to run). Given the
others x_j says nothing of y, and both nuisance regressions have the same hard function to learn.
Copies of rows are left out; n is what could be had of short tables. "In doubt": a warning, or the
verdict *cannot tell*. Airbnb, wine, social media and gas turbine were looked at when the rule
was set ([auto](auto.md#what-both-regressions-may-miss)), on draws of other seeds. These runs are of
the rule before the second learner; its own check is on the page of auto.
"""

WARNINGS_HEAD = """

## Are the warnings right?

A setting is a null, a size and a learner, of all tables above. It is invalid if a test rejects
more than .10, valid if none rejects more than .07; it is warned of if most of its runs warn.
"""

RIVALS_HEAD = """
## Rivals on the same tables

Both with scikit-learn's random forests. comets, whose default they are too, is not in the package
registry: dowhy has the same test.
"""

POWER_HEAD = """
## What is found

The share of useful features with p < .05, before any correction.
"""

FLIPS_HEAD = """
## Another seed, the same story?

The verdicts of gcm+pcm (`repeats=5`, `auto`) on six real tables with ten seeds.
"""


def write_page() -> None:
    """Write the page from the store."""
    lines = stored()
    there = {line["part"] for line in lines}
    parts = [HEAD, *nulls_table(lines, "nulls")]
    for part, title in (("others", OTHERS_HEAD), ("fresh", FRESH_HEAD)):
        if part in there:
            parts += [title, *nulls_table(lines, part)]
    if "mirror" in there:
        parts += [MIRRORS_HEAD, *mirrors_table(lines)]
    parts += [WARNINGS_HEAD, *warnings_table(lines)]
    for part, title, table in (
        ("rivals", RIVALS_HEAD, rivals_table),
        ("power", POWER_HEAD, power_table),
        ("flips", FLIPS_HEAD, flips_table),
    ):
        if part in there:
            parts += [title, *table(lines)]
    PAGE.write_text("\n".join(parts) + "\n", encoding="utf-8")


def main() -> None:
    """Measure, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="nulls,others,fresh,mirror,power,rivals,flips")
    given = parser.parse_args()
    parts = given.only.split(",")
    measure(list(tasks(parts, given.runs)), given.jobs)
    if given.runs >= ENOUGH:
        measure(list(once_more(parts)), given.jobs)
    if "rivals" in parts:
        measure_rivals(given.runs // RIVALS_SHARE)
    write_page()


if __name__ == "__main__":
    main()
