"""Try the wheel as a new user would: no repository, compiler or network, a read-only home.

    python tools/newcomer.py [dist/covaria-….whl]

An empty environment gets the wheel. Then, in a folder of its own: the demo, the Python lines of the
README, and those of the docs' first pages. Where `unshare` may not cut the network off, it is said.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from matrix import built, uv

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/index.md", "docs/start.md")
CUT_OFF = ("unshare", "-rn")


def can_cut_off() -> bool:
    return bool(shutil.which("unshare")) and not subprocess.run([*CUT_OFF, "true"]).returncode


def unwritable(folder: Path) -> Path:
    """Return a home in which nobody can write: for root, who may write anywhere, one of /proc."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    home.chmod(0o555)
    return Path("/proc") if os.access(home, os.W_OK) else home


def python_of(page: str) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.M))


def tried(name: str, command: list[str], folder: Path, python: Path) -> bool:
    """Return whether a command leaves by 0 without network, compiler and a home to write to."""
    home = unwritable(folder)
    for_python = {"PATH": str(python.parent), "HOME": str(home), "LANG": "C.UTF-8"}
    prefix = list(CUT_OFF) if can_cut_off() else []
    prefix[:1] = [str(shutil.which(word)) for word in prefix[:1]]
    done = subprocess.run(
        [*prefix, *command], cwd=folder, env=for_python, capture_output=True, text=True
    )
    print(f"{name}: {'ran' if done.returncode == 0 else done.stderr[-1500:]}", flush=True)
    return done.returncode == 0


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = Path(sys.argv[1]).resolve() if sys.argv[1:] else built(folder)
        python = folder / "env" / "bin" / "python"
        subprocess.run([uv(), "venv", "-q", folder / "env"], check=True)
        subprocess.run([uv(), "pip", "install", "-q", "-p", python, wheel], check=True)
        if not can_cut_off():
            print("the network could not be cut off here")
        runs = {"covaria demo": [str(python.parent / "covaria"), "demo", "--out", "demo"]}
        runs |= {page: [str(python), "-c", python_of(page)] for page in PAGES}
        held = [tried(what, command, folder, python) for what, command in runs.items()]
    print(f"{sum(held)} of {len(held)} ran, as user {os.getuid()}")
    return 0 if all(held) else 1


if __name__ == "__main__":
    raise SystemExit(main())
