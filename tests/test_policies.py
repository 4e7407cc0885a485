"""Every threshold that decides a verdict, a warning or a learner says where it comes from."""

import ast
import importlib
import re
from collections import defaultdict
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path

import pytest

import covaria
from covaria.diagnostics.quality import QualityPolicy
from covaria.options.policy import Policy, threshold

ROOT = Path(covaria.__file__).parent
REPOSITORY = Path(__file__).parent.parent
KINDS = ("formula: ", "convention: ", "judgement", "cost", "docs/", "tests/", "surfaces are")


def written():
    """Return the classes called Policy in the source, by module."""
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name.endswith("Policy"):
                yield ".".join(path.relative_to(ROOT.parent).with_suffix("").parts), node.name


POLICIES = [
    getattr(importlib.import_module(module), name) for module, name in written() if name != "Policy"
]


def test_policies_are_where_decisions_are():
    homes = {policy.__module__.split(".")[1] for policy in POLICIES}
    assert homes >= {
        "diagnostics",
        "inference",
        "learners",
        "methods",
        "report",
        "results",
        "tables",
    }


@pytest.mark.parametrize("policy", POLICIES)
def test_every_threshold_has_its_evidence_and_is_explained(policy):
    assert issubclass(policy, Policy)
    assert is_dataclass(policy)
    with pytest.raises(AttributeError):
        setattr(policy(), fields(policy)[0].name, 0)  # frozen
    for name, evidence in policy.evidence().items():
        assert evidence.startswith(KINDS), f"{policy.__name__}.{name}: {evidence!r}"
        assert re.search(rf"\b{name}\b", policy.__doc__), (
            f"{policy.__name__}.{name} is not explained"
        )


@pytest.mark.parametrize("policy", POLICIES)
def test_evidence_names_pages_and_tests_that_are_there(policy):
    for evidence in policy.evidence().values():
        for page, anchor in re.findall(
            r"((?:docs|tests)/[\w/.]+\.(?:md|py))(?:#([\w-]+))?", evidence
        ):
            text = (REPOSITORY / page).read_text(encoding="utf-8")
            titles = [re.sub(r"[^\w -]", "", line).strip() for line in text.splitlines()
                      if line.startswith("#")]  # fmt: skip
            assert not anchor or anchor in [title.lower().replace(" ", "-") for title in titles]


def test_the_page_of_warnings_names_the_thresholds_there_are():
    quality, page = QualityPolicy(), (REPOSITORY / "docs" / "auto.md").read_text(encoding="utf-8")
    assert (
        f"`residual_r2` ≥ {quality.poor:.0%} with p < {quality.sure:.2f}".replace("0.", ".") in page
    )
    assert f"`bias`\\| ≥ {quality.shifted:.2f}".replace("0.", ".") in page
    assert (
        f"`learning_curve_gap` ≥ {quality.gap:.0%}, `fold_ratio` ≥ {quality.ratio:.0f} or "
        f"`outlier_share` ≥ {quality.outliers:.0%}"
    ) in page


def test_no_constant_is_a_second_home_of_a_threshold():
    """A module that has a policy keeps no constant with the name of one of its thresholds."""
    named = defaultdict(set)
    for policy in POLICIES:
        module = importlib.import_module(policy.__module__)
        for name in policy.evidence():
            if hasattr(module, name.upper()):
                named[module.__name__].add(name)
    assert not named


@dataclass(frozen=True)
class Bare(Policy):
    """A policy with a number that comes from nowhere."""

    given: int = threshold(3, "convention: three")
    bare: int = 4


def test_a_threshold_without_evidence_is_noticed():
    assert Bare.evidence() == {"given": "convention: three", "bare": ""}
    assert not "".startswith(KINDS)
