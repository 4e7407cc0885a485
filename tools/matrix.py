"""Install the wheel into empty environments, old and new, and try it there.

    python tools/matrix.py                        every Python found, oldest and newest packages
    python tools/matrix.py --python 3.12 --packages oldest
    python tools/matrix.py --with scipy==1.12.0   one package held, to look for a lower bound

Each environment is made by uv in a temporary folder, gets the wheel and pytest, and nothing of the
repository but a copy of the tests: it runs the demo and the fast tests of SUBSET. What came of
it is a line of benchmarks/matrix.csv.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STORE = ROOT / "benchmarks" / "matrix.csv"
FIELDS = ("date", "covaria", "python", "packages", "numpy", "scipy", "pandas", "scikit-learn",
          "numba", "matplotlib", "demo", "tests", "seconds")  # fmt: skip
MINORS = (11, 12, 13, 14)
RESOLUTIONS = {"oldest": "lowest-direct", "newest": "highest"}
# Fast, and between them every layer: tables, learners, engines, methods, results, pages.
SUBSET = (
    "inference/test_tests.py",
    "methods/test_gcm_by_hand.py",
    "nuisance/test_splits.py",
    "tables/test_dataset.py",
    "results/test_result.py",
    "plots/test_plots.py",
    "report/test_report.py",
)
# Of others' packages: a warning that only an old or a new one gives is no failure of ours.
WARNINGS = ("-W", "default")
FOR_TESTS = ("pytest>=8.3", "pytest-timeout", "hypothesis", "polars", "pyarrow")


@dataclass(frozen=True)
class Environment:
    """An empty environment with the wheel in it."""

    python: Path
    versions: dict[str, str]

    def run(self, *command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        clean = {"PATH": f"{self.python.parent}:/usr/bin:/bin", "HOME": str(cwd), "LANG": "C.UTF-8"}
        return subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True)


def pythons() -> dict[str, str]:
    """Return the interpreters of each version that this machine has."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found: dict[str, str] = {}
    for minor in MINORS:
        paths = [*sorted(kept.glob(f"3.{minor}.*/bin/python")), shutil.which(f"python3.{minor}")]
        for path in filter(None, paths):
            if _runs(str(path)):
                found[f"3.{minor}"] = str(path)
                break
    return found


def _runs(path: str) -> bool:
    return subprocess.run([path, "-c", "import venv"], capture_output=True).returncode == 0


def built(folder: Path) -> Path:
    """Return the wheel of this tree."""
    subprocess.run([uv(), "build", "-q", "--wheel", "-o", folder, ROOT], check=True)
    return next(folder.glob("*.whl"))


def uv() -> str:
    beside = Path(sys.executable).parent / "uv"
    found = str(beside) if beside.exists() else shutil.which("uv")
    if not found:
        raise SystemExit("uv is not installed. Run pip install uv.")
    return found


def environment(
    folder: Path, python: str, wheel: Path, packages: str, held: list[str]
) -> Environment:
    """Return a new environment with the wheel and the oldest or newest packages it allows."""
    own = folder / "env" / "bin" / "python"
    subprocess.run([uv(), "venv", "-q", "-p", python, folder / "env"], check=True)
    asked = [uv(), "pip", "compile", "-q", "-p", own, "--only-binary", ":all:", "--no-header"]
    chosen = ["--resolution", RESOLUTIONS[packages], "-o", folder / "exact.txt"]
    extra = ["--override", _written(folder / "held.txt", held)] if held else []
    source = _written(folder / "asked.txt", [*dependencies(wheel), *held])
    subprocess.run([*asked, *chosen, *extra, source], check=True, capture_output=True)
    install = [uv(), "pip", "install", "-q", "-p", own, "--only-binary", ":all:"]
    subprocess.run([*install, "-r", folder / "exact.txt"], check=True)
    subprocess.run([*install, "--no-deps", wheel], check=True)
    subprocess.run([*install, "-c", folder / "exact.txt", *FOR_TESTS], check=True)
    listed = subprocess.check_output([uv(), "pip", "freeze", "-p", own], text=True)
    versions = dict(re.findall(r"^([\w-]+)==(\S+)$", listed, flags=re.M))
    return Environment(own, versions)


def dependencies(wheel: Path) -> list[str]:
    """Return what a wheel asks for, without its extras."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        asked = re.findall(r"^Requires-Dist: (.+)$", archive.read(name).decode(), flags=re.M)
    return [line for line in asked if "extra ==" not in line]


def _written(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def tried(found: Environment, folder: Path) -> dict[str, str]:
    """Return what the demo and the tests say in an environment, and how long they took."""
    began = time.monotonic()
    demo = found.run(found.python.parent / "covaria", "demo", "--out", "demo", cwd=folder)
    shutil.copytree(ROOT / "tests", folder / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    tests = [folder / "tests" / name for name in SUBSET]
    options = ("-q", "--tb=line", "-p", "no:cacheprovider", *WARNINGS)
    done = found.run(found.python, "-m", "pytest", *options, *tests, cwd=folder)
    if demo.returncode or done.returncode:
        print(demo.stderr[-2000:], done.stdout[-6000:], done.stderr[-2000:], file=sys.stderr)
    last = (done.stdout.strip().splitlines() or ["nothing ran"])[-1]
    counts = re.findall(r"\d+ (?:passed|failed|errors?|skipped)", last)
    return {
        "demo": "ran" if demo.returncode == 0 else f"exit {demo.returncode}",
        "tests": ", ".join(counts) or last,
        "seconds": f"{time.monotonic() - began:.0f}",
    }


def line(name: str, python: str, wheel: Path, packages: str, held: list[str]) -> dict[str, str]:
    """Return the line of one environment."""
    about = {
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "covaria": wheel.name.split("-")[1],
    }
    about |= {"python": name, "packages": packages}
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = environment(Path(folder), python, wheel, packages, held)
        except subprocess.CalledProcessError:
            return about | {"demo": "cannot be installed", "tests": ""}
        return (
            about
            | {k: v for k, v in found.versions.items() if k in FIELDS}
            | tried(found, Path(folder))
        )


def is_fine(row: dict[str, str]) -> bool:
    return (
        row["demo"] == "ran"
        and not re.search("failed|error", row["tests"])
        and "passed" in row["tests"]
    )


def stored() -> list[dict[str, str]]:
    if not STORE.exists():
        return []
    with STORE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def store(rows: list[dict[str, str]]) -> None:
    """Put lines in the place of those of the same Python and packages."""
    kept = {(row["python"], row["packages"]): row for row in (*stored(), *rows)}
    with STORE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(kept[key] for key in sorted(kept))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", help="a version such as 3.12")
    parser.add_argument("--packages", choices=RESOLUTIONS, action="append")
    parser.add_argument("--with", dest="held", action="append", default=[], metavar="NAME==VERSION")
    asked = parser.parse_args()
    there, rows = pythons(), []
    wanted = asked.python or [f"3.{minor}" for minor in MINORS]
    with tempfile.TemporaryDirectory() as folder:
        wheel = built(Path(folder))
        for name in wanted:
            if name not in there:
                print(f"Python {name} is not on this machine: not tried.")
                continue
            for packages in asked.packages or RESOLUTIONS:
                rows.append(line(name, there[name], wheel, packages, asked.held))
                print("  ".join(f"{k} {v}" for k, v in rows[-1].items()), flush=True)
                if not asked.held:
                    store(rows)
    return 0 if rows and all(map(is_fine, rows)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
