"""Write what each package that covaria needs brings along, in megabytes.

python tools/weigh.py      in an environment with covaria installed; writes docs/dependencies.md
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "dependencies.md"
BEGIN, END = "<!-- tools/weigh.py writes below -->", "<!-- and to here -->"
WHAT = {
    "numpy": "arrays",
    "scipy": "distributions, solvers, sparse columns",
    "pandas": "tables in results, CSV",
    "narwhals": "any dataframe, without a dependency on each",
    "scikit-learn": "estimators people bring, forests, SVR's reference",
    "joblib": "processes",
    "threadpoolctl": "one thread where bits count",
    "numba": "the fast engines",
    "matplotlib": "pictures",
    "jinja2": "the report",
    "typer": "the command line",
    "rich": "tables on a terminal",
}
EXTRAS = {
    "torch": ("nn", "networks (the CPU's build)"),
    "distributed": ("dask", "many machines"),
    "lightgbm": ("lightgbm", "its estimators as learners"),
    "polars": ("polars", "its dataframes"),
    "pyarrow": ("parquet", "Parquet and Arrow"),
    "formulaic": ("formula", "`y ~ a + b`"),
}


def needs(name: str) -> set[str]:
    """Return the packages that one asks for, without its extras."""
    asked = distribution(name).requires or []
    return {re.split(r"[^\w.-]", line)[0].lower() for line in asked if "extra ==" not in line}


def all_needs(name: str, seen: set[str]) -> set[str]:
    """Return a package and all below it that are installed and not yet counted."""
    if name in seen:
        return seen
    try:
        below = needs(name)
    except PackageNotFoundError:
        return seen
    seen = seen | {name}
    for other in sorted(below):
        seen = all_needs(other, seen)
    return seen


def megabytes(name: str) -> float:
    """Return the size of the files that a package installed, compiled ones of Python left out."""
    files = [file for file in distribution(name).files or [] if file.suffix != ".pyc"]
    paths = [Path(str(file.locate())) for file in files]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def table() -> str:
    """Return a row for each package that is asked for; what two need counts for the first."""
    lines = ["| package | for | MB | with it come | MB |", "| --- | --- | --- | --- | --- |"]
    counted, total = set(WHAT), 0.0
    for name, what in WHAT.items():
        new = sorted(all_needs(name, counted - {name}) - counted)
        counted |= set(new)
        own, below = megabytes(name), sum(map(megabytes, new))
        total += own + below
        lines.append(f"| {name} | {what} | {own:.0f} | {', '.join(new) or '–'} | {below:.0f} |")
    return "\n".join([*lines, f"| **all** | | | | **{total:.0f}** |", "", extras(counted)])


def extras(counted: set[str]) -> str:
    """Return a row for each extra: what it adds to the packages that are always there."""
    lines = ["| extra | for | MB | with it come | MB |", "| --- | --- | --- | --- | --- |"]
    for name, (extra, what) in EXTRAS.items():
        new = sorted(all_needs(name, counted - {name}) - counted - {name})
        own, below = megabytes(name), sum(map(megabytes, new))
        brought = ", ".join(new) or "–"
        lines.append(f"| `[{extra}]` {name} | {what} | {own:.0f} | {brought} | {below:.0f} |")
    return "\n".join(lines)


def main() -> None:
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    text = f"{head}{BEGIN}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
