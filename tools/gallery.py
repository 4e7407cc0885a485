"""Run the examples and write a page for each: the question, the code, what it said and drew."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shutil
from pathlib import Path

REPORT = "../report.png"  # what an example that draws nothing itself is about


def write_gallery(examples: Path, folder: Path) -> list[Path]:
    """Return the pages that were written, one an example and one that lists them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    pages = [_page(path, folder) for path in sorted(examples.glob("*.py"))]
    names = "\n".join(page.stem for page in pages)
    (folder / "index.md").write_text(
        "# Questions people ask\n\nEvery page here was run when this site was built.\n\n"
        f"```{{toctree}}\n:hidden:\n\n{names}\n```\n\n" + "\n".join(map(_invitation, pages)),
        encoding="utf-8",
    )
    return pages


def _invitation(page: Path) -> str:
    """Return the question of a page and its first picture, which lead to it."""
    text = page.read_text(encoding="utf-8")
    question = text.splitlines()[0].removeprefix("# ")
    picture = re.findall(r"^!\[.*\]\((\S+)\)$", text, flags=re.M)[0]
    return f"## [{question}]({page.name})\n\n[![{question}]({picture})]({page.name})\n"


def _page(path: Path, folder: Path) -> Path:
    source = path.read_text(encoding="utf-8")
    told = ast.get_docstring(ast.parse(source)) or path.stem
    question, _, story = told.partition("\n")
    code = source.split('"""', 2)[2].strip()
    before = set(folder.iterdir())
    said = run(path, folder)
    drawn = sorted(set(folder.iterdir()) - before)
    lines = [f"# {question.strip()}", "", story.strip(), "", "```python", code, "```", ""]
    if said.strip():
        lines += ["```text", said.rstrip(), "```", ""]
    pictures = [picture.name for picture in drawn] or [REPORT]
    lines += [f"![{question.strip()}]({picture})\n" for picture in pictures]
    page = folder / f"{path.stem}.md"
    page.write_text("\n".join(lines), encoding="utf-8")
    return page


def run(path: Path, folder: Path) -> str:
    """Return what an example prints; its pictures land in the folder."""
    said, here = io.StringIO(), Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(said):
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "x"})
    finally:
        os.chdir(here)
    return said.getvalue()


def write_tables(folder: Path) -> None:
    """Write the pages that come from elsewhere: the errata from the theory, the benchmarks."""
    import covaria

    found = covaria.theory.errata()
    rows = found[["number", "claim", "paper", "truth", "shown_by"]].values.tolist()
    lines = ["# Errata of the paper", "",
             "Each value is computed when this site is built; `covaria theory errata` prints them.",
             "", "| | The paper says | Value there | True value | Code |",
             "| --- | --- | --- | --- | --- |"]  # fmt: skip
    lines += [
        "| " + " | ".join([*map(_cell, row[:4]), f"`{_cell(row[4])}`"]) + " |" for row in rows
    ]
    _write(folder / "gallery" / "errata.md", "\n".join(lines) + "\n")
    results = folder.parent / "benchmarks" / "results.md"
    _write(folder / "gallery" / "benchmarks.md", results.read_text(encoding="utf-8"))


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "not defined" if value != value else f"{value:.6g}"
    return str(value).replace("|", "\\|").replace("\n", " ")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
