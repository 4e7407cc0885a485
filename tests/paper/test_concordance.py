"""The concordance names functions and tests that exist, and claims that the page has."""

import importlib
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
