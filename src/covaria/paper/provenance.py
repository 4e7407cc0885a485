"""Where the numbers come from: every stored table with its command, seed, commit and versions."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from covaria.paper.kept import Stamp, stamps

HEAD = """## Where the numbers come from

Each file of `results/` has these on its first lines. Rows of a simulation are kept run by run: the
features that each method chose and their p-values, from which the tables above are made.
"""
COLUMNS = "| file | command | seed | commit | tasks | CPU seconds | versions |"


def provenance(folder: Path) -> str:
    """Return a table of all stamped files of a folder, for the page; "" where there are none."""
    found = []
    for path in sorted(folder.glob("*.csv")):
        with suppress(ValueError):  # not a table of ours
            found += [(path.name, stamp) for stamp in stamps(path)]
    if not found:
        return ""
    named: dict[str, str] = {}
    rows = [_row(name, stamp, named) for name, stamp in found]
    legend = [f"- {letter}: {versions}" for versions, letter in named.items()]
    return "\n".join([HEAD, COLUMNS, "| --- |" * 1 + " --- |" * 6, *rows, "", *legend])


def _row(name: str, stamp: Stamp, named: dict[str, str]) -> str:
    versions = ", ".join(f"{package} {version}" for package, version in stamp.versions.items())
    letter = named.setdefault(versions, chr(ord("A") + len(named)))
    took = "not measured" if stamp.cpu_seconds is None else f"{stamp.cpu_seconds:,.0f}"
    cells = (name, f"`{stamp.command}`", stamp.seed, stamp.commit or "not recorded",
             stamp.tasks or "—", took, letter)  # fmt: skip
    return "| " + " | ".join(str(cell) for cell in cells) + " |"
