"""List the versions of the docs that lie in a folder, for the switch at the foot of every page.

    python tools/versions.py site      writes site/versions.json and site/index.html

`latest` comes first, then the tags, the newest first; the index leads to the newest tag, or to
`latest` where there is none.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

NUMBERED = re.compile(r"v(\d+)\.(\d+)\.(\d+)$")


def versions(site: Path) -> list[str]:
    """Return the names of the folders that hold docs."""
    found = [folder.name for folder in site.iterdir() if (folder / "index.html").exists()]
    tags = [name for name in found if NUMBERED.match(name)]
    newest_first = sorted(tags, key=lambda tag: [int(n) for n in NUMBERED.findall(tag)[0]])[::-1]
    return ["latest"] * ("latest" in found) + newest_first


def write(site: Path) -> None:
    """Write the list, and the page that leads to the newest."""
    names = versions(site)
    first = next((name for name in names if name != "latest"), "latest")
    (site / "versions.json").write_text(json.dumps(names), encoding="utf-8")
    (site / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><title>covaria</title>'
        f'<meta http-equiv="refresh" content="0; url={first}/"><a href="{first}/">covaria</a>\n',
        encoding="utf-8",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    write(parser.parse_args().site)


if __name__ == "__main__":
    main()
