"""Try random tables, odd options and damaged files, and write down what came of them.

    python tools/fuzz.py [--tables 1500] [--files 600] [--seeds 1,2,3] [--most-seconds 600]
    python tools/fuzz.py --show 2:417          # one table again, with what was said
    python tools/fuzz.py --show-file 2:33      # one damaged file again
    python tools/fuzz.py --page                # write the page and run nothing

Case k of seed s is always the same. What came of each kind is a line of
benchmarks/reliability.csv; docs/reliability.md is written from it. `fuzz_tables.py` has the tables
and their law, `fuzz_files.py` the damaged files and theirs.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import platform
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fuzz_files
import fuzz_tables
import numpy as np
from fuzz_law import Verdict

import covaria

ROOT = Path(__file__).resolve().parent.parent
STORE, PAGE = ROOT / "benchmarks" / "reliability.csv", ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- tools/fuzz.py writes below -->", "<!-- and to here -->"
FIELDS = ("date", "covaria", "python", "part", "seed", "kind", "outcome", "class", "count", "first")
Tried = tuple[int, str, Verdict]


def tables(seed: int, cases: range, *, dear: float = 0.02) -> Iterator[Tried]:
    """Yield the number, the kind and the verdict of every table."""
    with tempfile.TemporaryDirectory() as folder:
        for at in cases:
            case = fuzz_tables.case(seed, at, dear=dear)
            yield at, case.kind, fuzz_tables.verdict(case, Path(folder))


def files(seed: int, cases: range) -> Iterator[Tried]:
    """Yield the number, the kind and the verdict of every damaged file."""
    with tempfile.TemporaryDirectory() as folder:
        originals = fuzz_files.Originals(Path(folder))
        for at in cases:
            mutant = fuzz_files.mutant(originals, seed, at)
            yield at, mutant.kind, fuzz_files.verdict(mutant)


PARTS: dict[str, Callable[[int, range], Iterator[Tried]]] = {"tables": tables, "files": files}


# --- the store ----------------------------------------------------------------------------------


def measure(wanted: dict[str, int], seeds: list[int], most_seconds: float) -> None:
    """Try so many cases of every part, the seeds in equal shares, and write the counts down."""
    lines = []
    today = dt.datetime.now(dt.UTC).date().isoformat()
    versions = (today, covaria.__version__, platform.python_version())
    until = time.monotonic() + most_seconds
    for part, count in wanted.items():
        for seed in seeds:
            counts: Counter[tuple[str, str, str]] = Counter()
            first: dict[tuple[str, str, str], int] = {}
            for at, kind, found in PARTS[part](seed, range(count // len(seeds))):
                key = (kind, found.outcome, found.broken)
                counts[key] += 1
                first.setdefault(key, at)
                if found.broken:
                    print(f"{part} {seed}:{at} {kind}: {found.broken}", flush=True)
                if time.monotonic() > until:
                    break
            lines += [(*versions, part, seed, *key, n, first[key]) for key, n in counts.items()]
    write(lines, [part for part, count in wanted.items() if count])


def write(lines: list[Any], parts: list[str]) -> None:
    """Put lines in place of those of the same parts."""
    kept = [[line[name] for name in FIELDS] for line in stored() if line["part"] not in parts]
    with STORE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        writer.writerows(sorted([*kept, *lines], key=lambda line: list(map(str, line))))


def stored() -> list[dict[str, str]]:
    if not STORE.exists():
        return []
    with STORE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# --- the page -----------------------------------------------------------------------------------

TITLES = {"tables": "Tables and options", "files": "Damaged files"}


def page() -> str:
    found = stored()
    lines: list[str] = []
    for part, title in TITLES.items():
        rows = [row for row in found if row["part"] == part]
        if rows:
            lines += [f"## {title}", "", _when(rows), "", *_by_kind(rows), "", *_broken(rows), ""]
    return "\n".join(lines)


def _when(rows: list[dict[str, str]]) -> str:
    total = sum(int(row["count"]) for row in rows)
    broken = sum(int(row["count"]) for row in rows if row["class"])
    seeds = ", ".join(sorted({row["seed"] for row in rows}, key=int))
    first = rows[0]
    return (
        f"{total:,} cases, {broken} of them broke the law. Seeds {seeds}; covaria "
        f"{first['covaria']}, Python {first['python']}, {first['date']}."
    )


def _by_kind(rows: list[dict[str, str]]) -> list[str]:
    outcomes = sorted({row["outcome"] for row in rows if row["outcome"] != "broken"})
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        outcome = "broken" if row["class"] else row["outcome"]
        counts[row["kind"], outcome] += int(row["count"])
    head = ["kind", "cases", *outcomes, "broken"]
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    for kind in sorted({kind for kind, _ in counts}):
        cells = [counts[kind, outcome] for outcome in (*outcomes, "broken")]
        lines.append(f"| {kind} | {' | '.join(str(c) for c in (sum(cells), *cells))} |")
    return lines


def _broken(rows: list[dict[str, str]]) -> list[str]:
    counts: Counter[str] = Counter()
    where: dict[str, list[tuple[int, int]]] = {}
    for row in rows:
        if row["class"]:
            counts[row["class"]] += int(row["count"])
            where.setdefault(row["class"], []).append((int(row["seed"]), int(row["first"])))
    if not counts:
        return ["No case broke the law."]
    lines = ["| broken | cases | first |", "| --- | --- | --- |"]
    for name, count in counts.most_common():
        seed, at = min(where[name])
        lines.append(f"| `{name}` | {count} | {seed}:{at} |")
    return lines


def write_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{page()}\n{END}{rest.split(END)[1]}", encoding="utf-8")


# --- the command --------------------------------------------------------------------------------


def show(which: str) -> None:
    seed, at = map(int, which.split(":"))
    case = fuzz_tables.case(seed, at)
    print(case.kind, *case.notes, f"options {case.options}", repr(case.X), repr(case.y), sep="\n")
    with tempfile.TemporaryDirectory() as folder:
        print(fuzz_tables.verdict(case, Path(folder)))


def show_file(which: str) -> None:
    seed, at = map(int, which.split(":"))
    with tempfile.TemporaryDirectory() as folder:
        mutant = fuzz_files.mutant(fuzz_files.Originals(Path(folder)), seed, at)
        print(mutant, mutant.path.read_bytes()[:3000], sep="\n")
        print(fuzz_files.verdict(mutant))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", type=int, default=1500)
    parser.add_argument("--files", type=int, default=600)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--most-seconds", type=float, default=np.inf)
    parser.add_argument("--page", action="store_true", help="write the page and run nothing")
    parser.add_argument("--show", help="seed:case of a table, tried again and told")
    parser.add_argument("--show-file", help="seed:case of a damaged file")
    given = parser.parse_args()
    if given.show:
        show(given.show)
        return
    if given.show_file:
        show_file(given.show_file)
        return
    if not given.page:
        seeds = [int(seed) for seed in given.seeds.split(",")]
        measure({"tables": given.tables, "files": given.files}, seeds, given.most_seconds)
    write_page()


if __name__ == "__main__":
    main()
