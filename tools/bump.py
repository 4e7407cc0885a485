"""Give the next release its number, everywhere at once.

    python tools/bump.py 1.0.0 [--date 2026-12-01]

`src/covaria/__init__.py` is the place that has the version; the citation and the conda recipe get
it from there, what is unreleased in the CHANGELOG becomes the version's, and from 1.0 on the
package calls itself stable. Nothing is committed, tagged or uploaded.
"""

from __future__ import annotations

import argparse
import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NUMBER = re.compile(r"\d+\.\d+\.\d+")
UNRELEASED = "## Unreleased\n"


def changes(number: str, date: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return for each file what is looked for and what takes its place, once each."""
    stage = "4 - Beta" if number.startswith("0.") else "5 - Production/Stable"
    return {
        "src/covaria/__init__.py": ((r'^__version__ = ".+"$', f'__version__ = "{number}"'),),
        "CITATION.cff": (
            (r"^version: .+$", f"version: {number}"),
            (r"^date-released: .+$", f'date-released: "{date}"'),
        ),
        "conda/recipe.yaml": ((r'^  version: ".+"$', f'  version: "{number}"'),),
        "pyproject.toml": ((r'"Development Status :: .+",$', f'"Development Status :: {stage}",'),),
        "CHANGELOG.md": ((f"^{UNRELEASED}", f"{UNRELEASED}\n## {number} ({date})\n"),),
    }


def replaced(text: str, pattern: str, by: str) -> str:
    """Return a text with the one match of a pattern replaced."""
    changed, count = re.subn(pattern, lambda _: by, text, flags=re.M)
    if count != 1:
        raise SystemExit(f"{pattern!r} stands {count} times, not once.")
    return changed


def bump(root: Path, number: str, date: str) -> None:
    """Write a version into all files that say it, or into none."""
    written: list[Callable[[], int]] = []
    for name, pairs in changes(number, date).items():
        text = (root / name).read_text(encoding="utf-8")
        for pattern, by in pairs:
            text = replaced(text, pattern, by)
        written.append(lambda path=root / name, text=text: path.write_text(text, "utf-8"))
    for write in written:
        write()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("number")
    parser.add_argument(
        "--date", type=dt.date.fromisoformat, default=dt.datetime.now(dt.UTC).date()
    )
    parser.add_argument("--root", type=Path, default=ROOT)
    asked = parser.parse_args()
    if not NUMBER.fullmatch(asked.number):
        parser.error(f"{asked.number!r} is no version: three numbers, such as 1.0.0.")
    bump(asked.root, asked.number, asked.date.isoformat())


if __name__ == "__main__":
    main()
