"""The mutator: what it changes, what it finds, and what it leaves alone."""

import subprocess
import sys
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "mutate.py"


@pytest.fixture(scope="module")
def mutate():
    spec = spec_from_file_location("mutate", TOOL)
    module = module_from_spec(spec)
    sys.modules["mutate"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mutate"]


CHANGES = {
    "a < b": {"a <= b", "a >= b"},
    "a is b": {"a is not b"},
    "a + b": {"a - b"},
    "a and b": {"a or b", "a", "b"},
    "-a": {"a"},
    "a + 3": {"a - 3", "a + 4", "a + 2"},
    "max(a, b)": {"min(a, b)"},
    "np.minimum(a, b)": {"np.maximum(a, b)"},
    "law.sf(a)": {"law.cdf(a)"},
    "np.sqrt(a)": {"a"},
    "a[:b]": {"a[:]", "a[:b + 1]"},
    "a if b else c": {"a if not b else c"},
    "[a for a in b if c]": {"[a for a in b]"},
    "a": set(),
    "'text'": set(),
}


@pytest.mark.parametrize("code", CHANGES)
def test_an_expression_has_these_mutants_and_no_others(mutate, code):
    found = {one.source for one in mutate.mutants(f"value = {code}")}
    assert found == {f"value = {changed}" for changed in CHANGES[code]}


def test_statements_are_changed_but_no_types_imports_or_docstrings(mutate):
    source = '''
"""Text."""
import numpy as np
def double(a: int | None = 2) -> int | None:
    """More text."""
    check(a)
    if a:
        a *= b
    return a
'''
    changes = [one.change for one in mutate.mutants(source)]
    assert changes == [
        "double: 2 -> 3",
        "double: 2 -> 1",
        "double: check(a) -> pass",
        "double: if a -> if not a",
        "double: a *= b -> a /= b",
        "double: a *= b -> a = b",
        "double: return a -> return None",
    ]


def run(tmp_path, tests, *options):
    module, file = tmp_path / "planted.py", tmp_path / "test_planted.py"
    module.write_text("def least(a, b):\n    return a if a < b else b\n", encoding="utf-8")
    file.write_text(f"from planted import least\n\n\n{tests}", encoding="utf-8")
    command = [sys.executable, str(TOOL), "--file", str(module), "--tests", str(file), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert module.read_text(encoding="utf-8").endswith("a if a < b else b\n")
    return done.returncode, done.stdout, done.stderr


ONE_SIDE = "def test_least():\n    assert least(1, 2) == 1\n"


def test_it_finds_a_planted_survivor_and_kills_a_planted_kill(tmp_path):
    code, said, _ = run(tmp_path, ONE_SIDE)
    # Only the boundary survives, where both are the same.
    assert "planted.py:2: least: a < b -> a <= b" in said
    assert "a >= b" not in said
    assert "None" not in said
    assert "planted: 75% (3 of 4 mutants found" in said
    assert code == 1


def test_a_mutant_that_never_ends_is_found(tmp_path):
    tests = "def test_least():\n    while least(1, 2) != 1:\n        pass\n"
    code, said, _ = run(tmp_path, tests, "--limit", "3", "--jobs", "4", "--least", "70")
    assert "planted: 75% (3 of 4 mutants found" in said
    assert code == 0


def test_tests_that_fail_by_themselves_are_refused(tmp_path):
    code, _, said = run(tmp_path, "def test_least():\n    assert least(1, 2) == 2\n")
    assert code == 1
    assert "its tests fail without a mutant" in said


def test_every_target_is_there_with_its_tests(mutate):
    for target in mutate.TARGETS.values():
        assert target.path.is_file()
        files = [test for test in target.tests if test.startswith("tests/")]
        assert files
        assert all((mutate.ROOT / test).is_file() for test in files)


def test_every_listed_equivalent_is_one_mutant(mutate):
    there = Counter(
        f"{name}: {one.change}"
        for name, target in mutate.TARGETS.items()
        for one in mutate.mutants(target.path.read_text(encoding="utf-8"))
    )
    assert {change: there[change] for change in mutate.EQUIVALENT if there[change] != 1} == {}
