"""Write the address of the repository into the package, just before it is built for a release.

    python tools/stamp.py https://host/owner/covaria [--root .]

The tree itself names no address: a fork has another. pyproject.toml gets its project URLs, and the
links and pictures of the README lead to the files of this version, as a package index shows the
page without the repository beside it.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURES = (".png", ".svg")


def version(root: Path = ROOT) -> str:
    """Return the version, from the one place that has it."""
    text = (root / "src" / "covaria" / "__init__.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "(.+)"$', text, flags=re.M)[0]


def urls(address: str) -> str:
    """Return the table of project URLs."""
    pages = {
        "Homepage": address,
        "Documentation": f"{address}/blob/main/docs/start.md",
        "Source": address,
        "Issues": f"{address}/issues",
        "Changelog": f"{address}/blob/main/CHANGELOG.md",
    }
    return "[project.urls]\n" + "".join(f'{name} = "{page}"\n' for name, page in pages.items())


def with_urls(pyproject: str, address: str) -> str:
    """Return pyproject.toml with the project URLs in front of the extras."""
    head, extras, rest = pyproject.partition("[project.optional-dependencies]")
    return f"{head}{urls(address)}\n{extras}{rest}"


def with_full_links(readme: str, address: str, tag: str) -> str:
    """Return a page whose relative links and pictures are addresses."""

    def full(match: re.Match[str]) -> str:
        target = match[1]
        if "://" in target or target.startswith("#"):
            return match[0]
        kind = "raw" if target.endswith(PICTURES) else "blob"
        return f"]({address}/{kind}/{tag}/{target})"

    return re.sub(r"\]\(([^)\s]+)\)", full, readme)


def stamp(root: Path, address: str) -> None:
    """Write the address into the two files."""
    tag, address = f"v{version(root)}", address.rstrip("/")
    changes = {
        "pyproject.toml": lambda text: with_urls(text, address),
        "README.md": lambda text: with_full_links(text, address, tag),
    }
    for name, change in changes.items():
        path = root / name
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("--root", type=Path, default=ROOT)
    asked = parser.parse_args()
    if not re.match(r"https://[^/]+/.+", asked.address):
        parser.error(f"{asked.address!r} is no address of a repository: https://host/owner/name.")
    stamp(asked.root, asked.address)


if __name__ == "__main__":
    main()
