"""Code never reads English: what a sentence says is beside it as a kind, a status or a flag."""

import ast
from pathlib import Path

import pytest

import covaria

ROOT = Path(covaria.__file__).parent
# What sentences are called; a part of one is no ground for a decision.
SENTENCES = {
    "advice", "alarm", "alert", "answer", "caption", "headline", "message", "note", "reason",
    "said", "sentence", "text", "verdict", "warning", "words",
}  # fmt: skip
LOOKS = {"startswith", "endswith", "find", "index", "removeprefix", "partition", "split"}
# SQLite has one code for a table, a column and a schema that is not there: its words tell.
OF_OTHERS = {"studies/store.py"}


def called(node):
    """Return the last name of what is looked at: x.text → text, row["verdict"] → verdict."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return getattr(node, "attr", getattr(node, "id", ""))


def is_word(node):
    """Return whether something is a constant with three letters or more."""
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_text and sum(letter.isalpha() for letter in node.value) > 2


def looked_at(node):
    """Return the sentence and the parts of it that an expression looks for, or nothing."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return called(node.comparators[0]), [node.left]
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in LOOKS:
        return called(node.func.value), node.args
    return "", []


def read_back(tree):
    """Yield the lines on which a part of a sentence decides."""
    for node in ast.walk(tree):
        name, parts = looked_at(node)
        if name in SENTENCES and any(map(is_word, parts)):
            yield node.lineno


PLACES = [p for p in sorted(ROOT.rglob("*.py")) if str(p.relative_to(ROOT)) not in OF_OTHERS]


@pytest.mark.parametrize("path", PLACES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_sentence_is_read_back(path):
    assert list(read_back(ast.parse(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    "code",
    ['"determined" in alarm', 'row["verdict"].startswith("matters")', '"Only" not in one.advice',
     'reason.removeprefix("failed: ")'],
)  # fmt: skip
def test_one_that_is_would_be_seen(code):
    assert list(read_back(ast.parse(code))) == [1]


def test_the_exception_is_there():
    assert all((ROOT / name).exists() for name in OF_OTHERS)
