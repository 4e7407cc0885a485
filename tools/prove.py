"""Try every promise of docs/reliability.md once more and write down what came of it.

    python tools/prove.py                      every part at its small size
    python tools/prove.py fuzz kills bandit    some parts
    python tools/prove.py --large              the sizes of a release: hours

A part is a command that others can run; its figure is read off what the command prints, and it
fails where the command fails. What came of it is a line of benchmarks/proof.csv (date, version,
size, command, figure, seconds), from which the table of docs/reliability.md is written.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STORE, PAGE = ROOT / "benchmarks" / "proof.csv", ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- tools/prove.py writes below -->", "<!-- and to there -->"
FIELDS = ("part", "date", "covaria", "python", "size", "held", "figure", "seconds", "command")
PYTEST = "python -m pytest -q -p no:cacheprovider"


@dataclass(frozen=True)
class Part:
    """A promise, the commands that try it small and large, and how to read their figure."""

    promise: str
    small: str
    large: str
    figure: Callable[[str], str]
    # Commands such as fuzz leave by 0 whatever they find: then the figure decides.
    broken: str = "$^"


def last(pattern: str) -> Callable[[str], str]:
    """Return a reader of the last match of a pattern."""

    def read(said: str) -> str:
        found = re.findall(pattern, said)
        return (
            " ".join(found[-1]) if found and isinstance(found[-1], tuple) else "".join(found[-1:])
        )

    return read


tests = last(r"\d+ (?:passed|failed)[^\n]*?(?= in )")


def _issues(said: str) -> str:
    """Return what bandit counted: issues, and lines whose reason to pass stands beside them."""
    excused = re.findall(r"being disabled \(.*\): (\d+)", said)
    if not excused:
        return ""
    found = len(re.findall(">> Issue", said))
    return (
        f"{found} issues of medium or high severity; {excused[0]} read and excused, each with why"
    )


def _tests(promise: str, small: str, large: str = "") -> Part:
    return Part(promise, f"{PYTEST} {small}", f"{PYTEST} {large or small}", tests)


def _load(promise: str, small: str, large: str) -> Part:
    run = "python tools/load.py"
    words = last(r"(?:flat|fine|grows|bad): .*")
    return Part(promise, f"{run} {small}", f"{run} {large}", words, broken="^(?:grows|bad)")


# Of this environment, wherever pip-audit itself is installed.
AUDIT = "pip-audit --path $(python -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))')"
BROKE = r"(?m)^(?:tables|files) \d+:"
PARTS = {
    "fuzz": Part(
        "random tables, odd options, damaged files: an answer or one sentence",
        f"{PYTEST} tests/test_fuzz.py",
        "python tools/fuzz.py --seeds 5001-5020 --tables 20000 --files 2000 --go-on",
        lambda said: tests(said) or f"{len(re.findall(BROKE, said))} cases newly broke the law",
        broken=r"^[1-9]\d* cases",
    ),
    "faults": _tests(
        "learners that raise, hang, die or answer nonsense, here, in processes, on Dask",
        "tests/execution/test_workers.py",
        "tests/execution tests/studies/test_on_dask.py tests/test_odd_values.py",
    ),
    "kills": _tests(
        "a study that is killed goes on to the identical table",
        "tests/studies/test_runner.py -k 'kill or interrupt or stop'",
        "tests/studies/test_runner.py -m 'slow or not slow'",
    ),
    "disk": _tests(
        "a full or read-only disk is said before anything is lost",
        "tests/tables/test_writing.py tests/execution/test_compiling.py",
    ),
    "damage": _tests("a changed byte of a result or store is one sentence", "tests/test_damage.py"),
    "hostile": _tests(
        "strings that attack a page, a terminal or a spreadsheet are text",
        "tests/report/test_hostile.py tests/test_escapes.py",
        "tests/report tests/test_escapes.py tests/test_hostile_files.py",
    ),
    "load": _load("memory stays flat over many calls", "calls --calls 30", "calls"),
    "tall": _load(
        "a table of 10⁶ × 50 is answered in a few times its memory",
        "tall --rows 100000 --columns 20", "tall",
    ),
    "wide": _load(
        "a table of 1,000 × 5,000 is answered", "wide --rows 300 --columns 1000", "wide"
    ),
    "study": _load(
        "a study of 20,000 tasks keeps its pace and memory", "study --tasks 300", "study"
    ),
    "bytes": _tests("the same bytes for threads, hash seeds, jobs", "tests/test_same_bytes.py"),
    "mutation": Part(
        "tests find small errors that are put into the formulas",
        "python tools/mutate.py corrections --most 20", "python tools/mutate.py --jobs 2",
        last(r"\d+ of \d+[^\n]*|\d+%[^\n]*"),
    ),
    "coverage": Part(
        "lines that tests run",
        f"python -m coverage run -m {PYTEST[10:]} tests/inference "
        "tests/methods/test_gcm_by_hand.py && python -m coverage combine -q && "
        "python -m coverage report --include '*/covaria/inference/*'",
        f"python -m coverage run -m {PYTEST[10:]} && python -m coverage combine -q && "
        "python -m coverage report --fail-under 95",
        last(r"TOTAL.*?(\d+%)"),
    ),
    "bandit": Part(
        "no known unsafe pattern in the code", "bandit -r src -ll", "bandit -r src -ll",
        _issues,
    ),
    "audit": Part(
        "no dependency with a known hole", AUDIT, AUDIT,
        last(r"No known vulnerabilities found|Found \d+ known vulnerabilit[^\n]*"),
    ),
}  # fmt: skip


def proved(name: str, *, large: bool) -> dict[str, str]:
    """Return the line of one part, run now."""
    part = PARTS[name]
    command = part.large if large else part.small
    began = time.monotonic()
    done = subprocess.run(
        command, shell=True, cwd=ROOT, env=_environment(), capture_output=True, text=True
    )
    said = done.stdout + done.stderr
    figure = part.figure(said)
    is_held = done.returncode == 0 and bool(figure) and not re.search(part.broken, figure)
    return {
        "part": name, "date": dt.datetime.now(dt.UTC).date().isoformat(), "covaria": _version(),
        "python": ".".join(map(str, sys.version_info[:3])), "size": "large" if large else "small",
        "held": "yes" if is_held else "no", "figure": figure or _end_of(said),
        "seconds": f"{time.monotonic() - began:.0f}", "command": command,
    }  # fmt: skip


def _end_of(said: str) -> str:
    """Return the last line of what a command said that gave no figure."""
    return (said.strip().splitlines() or ["it said nothing"])[-1][:120]


def _environment() -> dict[str, str]:
    """Return the environment in which `python` and tools are those that run this file."""
    beside = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{beside}{os.pathsep}{os.environ.get('PATH', '')}"}


def _version() -> str:
    import covaria

    return covaria.__version__


def stored() -> list[dict[str, str]]:
    if not STORE.exists():
        return []
    with STORE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def store(rows: list[dict[str, str]]) -> None:
    """Put lines in the place of those of the same part and size."""
    kept = {(row["part"], row["size"]): row for row in (*stored(), *rows)}
    with STORE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept[key] for key in sorted(kept))


def page(rows: list[dict[str, str]]) -> str:
    """Return the table of promises; a part that was not run says so."""
    lines = ["| promise | held | figure | size | date | seconds | command |", "| --- " * 7 + "|"]
    for name, part in PARTS.items():
        found = [row for row in rows if row["part"] == name]
        for row in found:
            cells = [row[field] for field in ("held", "figure", "size", "date", "seconds")]
            shown = [cell.replace("|", "\\|") for cell in cells]
            command = row["command"].replace("|", "\\|")
            lines.append(f"| {part.promise} | {' | '.join(shown)} | `{command}` |")
        if not found:
            lines.append(f"| {part.promise} | not run | | | | | `{part.small}` |")
    return "\n".join(lines)


def write_page() -> None:
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    text = f"{head}{BEGIN}\n\n{page(stored())}\n\n{END}{rest.partition(END)[2]}"
    PAGE.write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--large", action="store_true", help="the sizes of a release")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    rows = []
    for name in asked.parts or PARTS:
        rows.append(proved(name, large=asked.large))
        print(f"{name}: {rows[-1]['held']}, {rows[-1]['figure']}", flush=True)
        store(rows)
        write_page()
    return 0 if all(row["held"] == "yes" for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
