"""Check that imports inside covaria point one way, as pyproject.toml orders them."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "covaria"


def main() -> int:
    """Return 0 where every import points down the layers, else 1 after naming those that do not."""
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["covaria"]["layers"]
    level = {name: at for at, row in enumerate(layers) for name in row}
    wrong = [line for path in sorted(PACKAGE.rglob("*.py")) for line in _wrong(path, level)]
    print("\n".join(wrong) or f"layers: {len(level)} modules, every import points down")
    return 1 if wrong else 0


def _wrong(path: Path, level: dict[str, int]) -> list[str]:
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if own == "__init__":
        return []
    if own not in level:
        return [f"{path}: add '{own}' to the layers in pyproject.toml"]
    found = []
    for line, name in _imported(path):
        if name not in level:
            found.append(f"{path}:{line}: imports covaria.{name}, which has no layer")
        elif name != own and level[name] <= level[own]:
            found.append(f"{path}:{line}: '{own}' may not import '{name}'")
    return found


def _imported(path: Path) -> list[tuple[int, str]]:
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "covaria":
            parts = (node.module or "").split(".")
            here = [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
            names += [(node.lineno, name) for name in here]
        elif isinstance(node, ast.Import):
            dotted = [alias.name.split(".") for alias in node.names]
            names += [(node.lineno, d[1]) for d in dotted if d[0] == "covaria" and len(d) > 1]
    return names


if __name__ == "__main__":
    sys.exit(main())
