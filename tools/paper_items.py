"""The list of what the paper defines, states and shows, from its TeX.

    python tools/paper_items.py PAPER.tex    write tests/fixtures/paper_items.csv

A row is an item in the paper's order: its name as people write it and its label where it has one.
docs/concordance.md has a row for each; tests/paper/test_concordance.py holds it to the list, and
needs no paper.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

STORE = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "paper_items.csv"
NAMES = {
    "definition": "Definition", "theorem": "Theorem", "assumptionp": "Assumption",
    "example": "Example", "remark": "Remark", "figure": "Fig.", "table": "Table",
}  # fmt: skip
MARK = re.compile(
    rf"\\(?:begin\{{(?P<kind>{'|'.join(NAMES)})\}}(?:\{{(?P<given>\([^)]*\))\}})?"
    r"|(?P<section>section)\{|item\[\((?P<model>[a-z])\)\])"
)
LABEL = re.compile(r"\\label\{([^}]*)\}")


def items(tex: str) -> Iterator[tuple[str, str]]:
    """Yield name and label of every item of the paper."""
    tex = re.sub(r"(?<!\\)%.*", "", tex)
    main = tex.index(r"\section{Additional additive model example}")  # the supplement begins
    counts: Counter[str] = Counter()
    section = 0
    for mark in MARK.finditer(tex):
        if mark["section"]:
            section += 1
            counts["in section"] = 0
        elif mark["model"]:
            yield f"model ({mark['model']})", ""
        elif mark["kind"]:
            end = tex.index(rf"\end{{{mark['kind']}}}", mark.end())
            label = LABEL.search(tex, mark.end(), end)
            number = mark["given"] or _number(mark["kind"], counts, section, mark.start() > main)
            yield f"{NAMES[mark['kind']]} {number}", label[1] if label else ""


def _number(kind: str, counts: Counter[str], section: int, is_supplement: bool) -> str:
    """Return the number that is printed: definitions by section, figures and examples by part."""
    if kind == "definition":
        counts["in section"] += 1
        return f"{section}.{counts['in section']}"
    is_apart = is_supplement and kind in ("figure", "example")
    key = f"S {kind}" if is_apart else kind
    counts[key] += 1
    return f"S{counts[key]}" if is_apart else str(counts[key])


def as_csv(tex: str) -> str:
    """Return the list as it is stored."""
    return "\n".join(["name,label", *(",".join(item) for item in items(tex)), ""])


if __name__ == "__main__":
    STORE.write_text(as_csv(Path(sys.argv[1]).read_text("utf-8")), encoding="utf-8")
    print(STORE)
