"""Make the pictures of the README from the demo, and the one that previews of the docs show.

python tools/pictures.py            needs chromium, and playwright from [dev]
"""

from __future__ import annotations

import html
import os
import pty
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"
WIDTH = 1200
COLUMNS = 118
# What others show of a link to the docs; networks want 1200 × 630.
CARD = """<!doctype html><meta charset="utf-8"><body style="margin:0;width:1200px;height:630px;
box-sizing:border-box;padding:72px 80px;background:#0d1117;color:#e6edf3;
font:34px/1.35 'DejaVu Sans'">
<div style="font-size:92px;font-weight:700">covaria</div>
<p style="font-size:44px;margin:.5em 0">Which features really matter, for any model, with a p-value
you can defend.</p>
<pre style="font:30px/1.5 'DejaVu Sans Mono';color:#3fb950;margin:1.2em 0 0">pip install covaria
covaria assess table.csv --target price --report price.html</pre>"""


def main() -> None:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("There is no chromium: apt-get install chromium.")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        shown = on_a_terminal(["covaria", "demo", "--out", "covaria-demo"], Path(folder))
        report = Path(folder) / "covaria-demo" / "report.html"
        terminal = Path(folder) / "terminal.html"
        terminal.write_text(as_page("$ covaria demo\n" + shown), encoding="utf-8")
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        photograph(browser, report, DOCS / "report.png", height=900)
        photograph(browser, terminal, DOCS / "terminal.png", selector="pre")
        card = Path(folder) / "card.html"
        card.write_text(CARD, encoding="utf-8")
        photograph(browser, card, DOCS / "_static" / "social.png", height=630)
        browser.close()


def photograph(
    browser: Any, page_file: Path, picture: Path, *, height: int = 900, selector: str = ""
) -> None:
    """Write what a page shows to a file."""
    page = browser.new_page(viewport={"width": WIDTH, "height": height})
    page.goto(page_file.as_uri())
    (page.locator(selector) if selector else page).screenshot(path=str(picture))
    page.close()
    print(picture, picture.stat().st_size)


def on_a_terminal(words: list[str], folder: Path) -> str:
    """Return what a command prints on a terminal, without its progress."""
    main_end, child = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": "50"}
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-m", *words]
    with subprocess.Popen(
        command, cwd=folder, stdin=child, stdout=child, stderr=subprocess.DEVNULL, env=environment
    ):
        os.close(child)
        shown = b""
        while True:
            try:
                part = os.read(main_end, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
    return shown.decode().replace("\r\n", "\n")


def as_page(shown: str) -> str:
    """Return the text of a terminal as a page, its colours kept."""
    from rich.text import Text

    lines = []
    for line in shown.rstrip().split("\n"):
        text = Text.from_ansi(line)
        plain, at, parts = text.plain, 0, []
        for span in sorted(text.spans, key=lambda s: s.start):
            parts.append(html.escape(plain[at : span.start]))
            style = str(span.style)
            green = "green" in style or "color(2)" in style
            colour = "#3fb950" if green else "#8b949e" if "dim" in style else "inherit"
            weight = 600 if "bold" in style else 400
            inside = html.escape(plain[span.start : span.end])
            parts.append(f'<span style="color:{colour};font-weight:{weight}">{inside}</span>')
            at = span.end
        lines.append("".join(parts) + html.escape(plain[at:]))
    body = "\n".join(lines)
    return (
        '<!doctype html><meta charset="utf-8"><body style="margin:0"><pre style="'
        "margin:0;padding:22px 26px;display:inline-block;color:#e6edf3;background:#0d1117;"
        f"font:15px/1.45 'DejaVu Sans Mono',monospace\">{body}</pre>"
    )


if __name__ == "__main__":
    main()
