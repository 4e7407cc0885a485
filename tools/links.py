"""Check every link within the built site: its file is there, and so is the heading it leads to.

    python tools/links.py docs/_build/html

Pages, pictures, styles and scripts are looked for; addresses elsewhere are counted, not visited.
"""

from __future__ import annotations

import argparse
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places that a page leads to, and the names that others may lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.names.add(value)
            elif name in ("href", "src") and value:
                self.targets.append(value)


def broken(site: Path) -> tuple[list[str], int, set[str]]:
    """Return what leads nowhere, how many links there are, and the other hosts' addresses."""
    site = site.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.glob("**/*.html")}
    lost, count, away = [], 0, set()
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                away |= {target} if parts.scheme in ("http", "https", "") else set()
                continue
            count += 1
            if not leads_somewhere(site, path, parts.path, unquote(parts.fragment), pages):
                lost.append(f"{path.relative_to(site)}: {target}")
    return lost, count, away


def leads_somewhere(
    site: Path, path: Path, target: str, name: str, pages: dict[Path, Page]
) -> bool:
    """Return whether a link of a page has its file and, on a page, its heading."""
    file = (path.parent / unquote(target)).resolve() if target else path
    file = file / "index.html" if file.is_dir() else file
    if not file.is_relative_to(site) or not file.exists():
        return False
    return not name or file not in pages or name in pages[file].names


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    lost, count, away = broken(parser.parse_args().site)
    for line in lost:
        print(line)
    print(f"{len(lost)} of {count} links lead nowhere; {len(away)} addresses elsewhere")
    return int(bool(lost) or not count)


if __name__ == "__main__":
    raise SystemExit(main())
