"""The concordance names functions and tests that exist, and claims that the page has."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [
    line for line in (ROOT / "docs" / "concordance.md").read_text("utf-8").splitlines()
    if line.startswith("| ") and "`covaria." in line
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_every_row_names_what_there_is(row):
    _, function, test, verdict = row.strip("| ").split(" | ")
    module, _, name = function.strip("` ").rpartition(".")
    assert callable(getattr(importlib.import_module(module), name))
    path, _, sentence = test.strip("` ").partition("::")
    assert f"def {sentence}(" in (ROOT / path).read_text("utf-8")
    page = (ROOT / "docs" / "reproduction.md").read_text("utf-8")
    for claim in re.findall(r"\b(?:theory|s?fig\d|table\d)-\d+", verdict):
        assert f"| {claim} |" in page


ITEMS = (ROOT / "tests" / "fixtures" / "paper_items.csv").read_text("utf-8").splitlines()[1:]
KINDS = "Definition|Theorem|Assumption|Example|Remark|Fig.|Table|model"
PART = r"(?:\([A-Za-z]\d?\)|S?\d+(?:\.\d+)?)"
NAMED = re.compile(rf"({KINDS.replace('.', '')})s?\.? ({PART}(?:(?:, | and | to ){PART})*)")


def named(text):
    """Return the items that a text names, ranges written out.

    >>> sorted(named("Figs. 8, S1 to S3; Assumptions (B1) and (B2), Theorem 5"))
    ['Assumption (B1)', 'Assumption (B2)', 'Fig. 8', 'Fig. S1', 'Fig. S2', 'Fig. S3', 'Theorem 5']
    """
    found = set()
    for kind, parts in NAMED.findall(text):
        name = "Fig." if kind == "Fig" else kind
        for part in re.split(", | and ", parts):
            first, _, last = part.partition(" to ")
            found |= {f"{name} {one}" for one in (between(first, last) if last else [first])}
    return found


def between(first, last):
    """Return the members of a range that differ in one character."""
    at = next(k for k, (a, b) in enumerate(zip(first, last, strict=True)) if a != b)
    return [
        first[:at] + chr(code) + first[at + 1 :]
        for code in range(ord(first[at]), ord(last[at]) + 1)
    ]


@pytest.mark.parametrize("item", [line.partition(",")[0] for line in ITEMS])
def test_every_item_of_the_paper_has_a_row(item):
    assert any(item in named(row.split(" | ")[0]) for row in ROWS)


def test_the_list_of_items_is_that_of_the_paper():
    """Where the paper is at hand; the list itself has seven theorems, 17 figures and six tables."""
    names = [line.partition(",")[0] for line in ITEMS]
    assert len(set(names)) == len(names) == 49
    for kind, many in (("Definition", 2), ("Theorem", 7), ("Fig.", 17), ("Table", 6), ("model", 6)):
        assert sum(name.startswith(kind) for name in names) == many
    paper = Path("/work/shared/paper.tex")
    if paper.is_file():
        assert tool().as_csv(paper.read_text("utf-8")).splitlines()[1:] == ITEMS


def tool():
    spec = importlib.util.spec_from_file_location("paper_items", ROOT / "tools/paper_items.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_list_is_read_from_tex():
    tex = r"""\section{One}\begin{definition}a\end{definition}\item[(a)] Linear:
    % \begin{theorem}not this\end{theorem}
    \begin{figure}\caption{b}\label{first}\end{figure}\begin{assumptionp}{(A)}c\end{assumptionp}
    \section{Additional additive model example}\begin{figure}d\end{figure}"""
    assert list(tool().items(tex)) == [
        ("Definition 1.1", ""), ("model (a)", ""), ("Fig. 1", "first"), ("Assumption (A)", ""),
        ("Fig. S1", ""),
    ]  # fmt: skip
