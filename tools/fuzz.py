"""Try random tables, odd options and damaged files, and write down what came of them.

    python tools/fuzz.py [--tables 1500] [--files 600] [--seeds 1-3,7] [--most-seconds 600]
    python tools/fuzz.py --show 2:417          # one table again, with what was said
    python tools/fuzz.py --show-file 2:33      # one damaged file again
    python tools/fuzz.py --page                # write the page and run nothing

Case k of seed s is always the same. What came of each kind is a line of
benchmarks/reliability.csv, from which docs/reliability.md is written. `--go-on` keeps what is
there, tries again what broke the law and goes on with the rest. `fuzz_tables.py` has the tables and
their law, `fuzz_files.py` the damaged files and theirs.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import fuzz_files
import fuzz_tables
import numpy as np
from fuzz_law import Verdict

import covaria

ROOT = Path(__file__).resolve().parent.parent
STORE, PAGE = ROOT / "benchmarks" / "reliability.csv", ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- tools/fuzz.py writes below -->", "<!-- and to here -->"
FIELDS = (
    "date", "covaria", "python", "part", "seed", "kind",
    "outcome", "class", "was", "count", "first",
)  # fmt: skip
CHUNK = 50
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
    """Try so many cases of every part, the seeds in equal shares, and write the counts down.

    Cases that are in the store are not tried again, but for those that broke the law.
    """
    until = time.monotonic() + most_seconds
    for part, count in wanted.items():
        for seed in seeds:
            for line in [line for line in stored() if _is_of(line, part, seed) and line["class"]]:
                at = int(line["first"])
                try_cases(part, seed, range(at, at + 1), instead_of=line)
            cases = range(reached(part, seed), count // len(seeds))
            for start in cases[::CHUNK]:
                if time.monotonic() > until:
                    return
                try_cases(part, seed, range(start, min(start + CHUNK, cases.stop)))


def reached(part: str, seed: int) -> int:
    """Return how many cases of a seed were tried."""
    return sum(int(line["count"]) for line in stored() if _is_of(line, part, seed))


def try_cases(part: str, seed: int, cases: range, instead_of: dict[str, str] | None = None) -> None:
    """Try cases and add them to the store; one that breaks the law has a line of its own."""
    found = {_key(line): line for line in stored() if line != instead_of}
    was = instead_of["was"] or instead_of["class"] if instead_of else ""
    today = dt.datetime.now(dt.UTC).date().isoformat()
    versions = (today, covaria.__version__, platform.python_version())
    for at, kind, verdict in PARTS[part](seed, cases):
        values = (*versions, part, seed, kind, verdict.outcome, verdict.broken, was, 1, at)
        line = dict(zip(FIELDS, map(str, values), strict=True))
        known = found.setdefault(_key(line), {**line, "count": "0"})
        known.update(count=str(int(known["count"]) + 1), date=today)
        if verdict.broken:
            print(f"{part} {seed}:{at} {kind}: {verdict.broken}", flush=True)
    write(list(found.values()))


def _is_of(line: dict[str, str], part: str, seed: int) -> bool:
    return line["part"] == part and int(line["seed"]) == seed


def _key(line: dict[str, str]) -> tuple[str, ...]:
    names = ("part", "seed", "kind", "outcome", "class", "was")
    return *(line[name] for name in names), line["first"] if line["class"] else ""


def write(lines: list[dict[str, str]]) -> None:
    """Put lines in place of those stored."""
    beside = STORE.with_suffix(".new")
    with beside.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(lines, key=lambda line: [line[name] for name in FIELDS[3:]]))
    beside.replace(STORE)


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
    was = sum(int(row["count"]) for row in rows if row["was"] and not row["class"])
    mended = f", {was} did before they were mended" if was else ""
    last = max(rows, key=lambda row: row["date"])
    return (
        f"{total:,} cases: {broken} of them break the law{mended}. Seeds {_seeds(rows)}; covaria "
        f"{last['covaria']}, Python {last['python']}, {last['date']}."
    )


def _seeds(rows: list[dict[str, str]]) -> str:
    seeds = sorted({int(row["seed"]) for row in rows})
    if len(seeds) > 3 and seeds == [*range(seeds[0], seeds[-1] + 1)]:
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


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
    lines = [*_classes(rows, "class", "broken"), ""] if any(row["class"] for row in rows) else []
    lines = lines or ["No case breaks the law.", ""]
    mended = [row for row in rows if row["was"] and not row["class"]]
    return [*lines, *_classes(mended, "was", "mended")] if mended else lines[:-1]


def _classes(rows: list[dict[str, str]], column: str, title: str) -> list[str]:
    """Return a table of the classes of failures, the most common first."""
    counts: Counter[str] = Counter()
    where: dict[str, list[tuple[int, int]]] = {}
    for row in rows:
        if row[column]:
            counts[row[column]] += int(row["count"])
            where.setdefault(row[column], []).append((int(row["seed"]), int(row["first"])))
    lines = [f"| {title} | cases | first |", "| --- | --- | --- |"]
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
    parser.add_argument("--seeds", default="1-3")
    parser.add_argument("--most-seconds", type=float, default=np.inf)
    parser.add_argument("--go-on", action="store_true", help="keep what the store has")
    parser.add_argument("--page", action="store_true", help="write the page and run nothing")
    parser.add_argument("--show", help="seed:case of a table, tried again and told")
    parser.add_argument("--show-file", help="seed:case of a damaged file")
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    given = parser.parse_args()
    if given.show:
        show(given.show)
        return
    if given.show_file:
        show_file(given.show_file)
        return
    if not given.page:
        ends = [list(map(int, seed.split("-"))) for seed in given.seeds.split(",")]
        seeds = [seed for end in ends for seed in range(end[0], end[-1] + 1)]
        wanted = {"tables": given.tables, "files": given.files}
        if not given.go_on:
            write([line for line in stored() if not wanted[line["part"]]])
        measure(wanted, seeds, given.most_seconds)
    write_page()


if __name__ == "__main__":
    main()
