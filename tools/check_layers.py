"""Check that imports inside covaria point one way.

Between the doors at the top the order is that of pyproject.toml: from a row to the rows below it,
and inside a row from left to right. Inside a package no two modules may need each other. Imports by
name (`import_module("covaria.…")`) count too. `__init__` and `__main__` are no doors: they stand
above all rows.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
NAME = "covaria"
PACKAGE = ROOT / "src" / NAME
ABOVE = ("", "__main__")  # the package itself, and `python -m`
TOP = (-1, -1)


def layers() -> list[list[str]]:
    """Return the doors, the packages and modules at the top, the highest row first."""
    found: list[list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][NAME][
        "layers"
    ]
    return found


def modules() -> dict[str, Path]:
    """Return every module by its dotted name without the package's."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path, known: dict[str, Path]) -> Iterator[tuple[int, str]]:
    """Yield the line and the module of every import from covaria, those by name too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == NAME:
            base = (node.module or "").removeprefix(NAME).removeprefix(".")
            for alias in node.names:
                full = f"{base}.{alias.name}".strip(".")
                yield node.lineno, full if full in known else base
        elif isinstance(node, ast.Import):
            dotted = [alias.name for alias in node.names if alias.name.startswith(f"{NAME}.")]
            yield from ((node.lineno, name.removeprefix(f"{NAME}.")) for name in dotted)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            yield from ((node.lineno, name) for name in _by_name(node))


def _by_name(call: ast.Call) -> Iterator[str]:
    """Yield the module, or the package of modules, that a call imports by its name."""
    for argument in call.args:
        parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
        first = parts[0] if parts else None
        if isinstance(first, ast.Constant) and str(first.value).startswith(f"{NAME}."):
            yield str(first.value).removeprefix(f"{NAME}.").rstrip(".")


def arrows() -> dict[str, set[str]]:
    """Return which modules each module imports."""
    known = modules()
    return {
        name: {other for _, other in imported(path, known) if other != name}
        for name, path in known.items()
    }


def _wrong_way(place: dict[str, tuple[int, int]]) -> Iterator[str]:
    """Yield every import that points up or to the left, or at something without a layer."""
    known = modules()
    for name, path in known.items():
        own = name.split(".")[0]
        if own in ABOVE:
            continue
        if own not in place:
            yield f"{path}: add '{own}' to the layers in pyproject.toml"
            continue
        for line, other in imported(path, known):
            top = other.split(".")[0]
            if top and top != own and not place.get(top, TOP) > place[own]:
                yield f"{path}:{line}: '{own}' may not import '{top}'"


def _not_there(place: dict[str, tuple[int, int]]) -> Iterator[str]:
    """Yield the doors in pyproject.toml that no package or module has."""
    there = {name.split(".")[0] for name in modules()}
    yield from (f"pyproject.toml: there is no '{name}'" for name in place if name not in there)


def _rings() -> Iterator[str]:
    """Yield modules of one package that need each other."""
    needs = arrows()
    for name in needs:
        if _reaches(name, name, needs):
            yield f"{name} needs itself by way of {', '.join(sorted(needs[name]))}"


def _reaches(start: str, goal: str, needs: dict[str, set[str]]) -> bool:
    """Return whether imports inside the goal's package lead from one module to another."""
    package, seen, edge = goal.split(".")[0], set[str](), {start}
    while edge:
        further = {other for one in edge for other in needs.get(one, ())}
        # A package's own page of names may be imported by its modules and import them in turn.
        further = {o for o in further if o.split(".")[0] == package and o != package}
        if goal in further:
            return True
        edge = further - seen
        seen |= further
    return False


def main() -> int:
    """Return 0 where every import points down or right, else 1 after naming those that do not."""
    rows = layers()
    place = {name: (at, k) for at, row in enumerate(rows) for k, name in enumerate(row)}
    wrong = [*_not_there(place), *_wrong_way(place), *_rings()]
    right = f"{len(place)} doors in {len(rows)} layers, every import points down or to the right"
    print("\n".join(wrong) or right)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
