"""Findings are records: a kind, a feature, a number and a sentence."""

import json

import numpy as np
import pytest

import covaria
from covaria.learners import get_learner
from covaria.results.cautions import unstable
from covaria.results.findings import KINDS, Finding, of_each, ranked, texts
from covaria.results.options import Options
from covaria.results.status import Outcome, Status, has_failed
from covaria.tables.tidy import Tidy


@pytest.fixture(scope="module")
def poor():
    """Return a result in which a straight line is asked for a wave that x0 and y share."""
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, 400)
    wave = np.sin(6 * z)
    X = np.column_stack([wave + 0.2 * rng.normal(size=400), z, rng.normal(size=400)])
    return covaria.assess(X, wave + 0.2 * rng.normal(size=400), learner="linear")


def test_a_poor_regression_is_a_record_and_a_warning(poor):
    kinds = {one.feature: one for one in poor.findings if one.kind == "poor_regression"}
    found = kinds["x0"]
    assert (found.feature, found in poor.warnings) == ("x0", True)
    assert abs(found.value) > 0.75
    assert found.text in str(poor)


def test_alerts_are_the_sentences_of_findings_each_once():
    findings = [
        *of_each("collinear", ["a", "b"], "They explain each other."),
        *of_each("note", [], ""),
    ]
    assert texts(findings) == ("They explain each other.",)


def test_findings_survive_a_trip_to_disk(poor, tmp_path):
    poor.to_json(tmp_path / "result.json")
    assert covaria.Result.from_json(tmp_path / "result.json").findings == poor.findings


def test_results_that_had_sentences_only_are_still_read(poor):
    stored = json.loads(poor.to_json())
    del stored["findings"], stored["cost"]
    stored["alerts"] = ["Something to know."]
    stored.pop("checksum", None)
    old = covaria.Result.from_dict(stored)
    assert old.findings == (Finding("note", "", None, "Something to know."),)
    assert (old.alerts, old.warnings) == (("Something to know.",), ())


def test_every_kind_says_what_it_is_about():
    assert all(kind.about for kind in KINDS.values())


@pytest.mark.parametrize("outcome", Outcome)
def test_a_status_is_read_as_it_was_written(outcome):
    for status in (Status(outcome), Status(outcome, "fold 1: ValueError: a: b")):
        assert Status.of(str(status)) == status
        assert has_failed(str(status)) == (outcome is Outcome.FAILED)


def decided_at(p_adjusted, learner="auto", **options):
    p_value, p_adjusted = np.full(2, 0.01), np.array(p_adjusted)
    table = Tidy({"feature": ["a", "b"], "p_value": p_value, "p_adjusted": p_adjusted})
    return list(unstable(table, get_learner(learner), Options(**options)))


def test_a_feature_near_the_line_is_said_to_hang_on_the_seed():
    (found,) = decided_at([0.04, 0.4])  # normal statistics of 2.05 and .84, and a line at 1.96
    assert (found.kind, found.feature) == ("unstable", "a")
    assert "repeats=5" in found.text


def test_repeats_bring_the_line_nearer_before_a_seed_matters():
    assert decided_at([0.03, 0.4])  # 2.17
    assert not decided_at([0.03, 0.4], repeats=10)


def test_a_table_whose_folds_are_given_does_not_hang_on_a_seed():
    rows = np.arange(10)
    assert not decided_at([0.04, 0.4], splits=[(rows[:5], rows[5:]), (rows[5:], rows[:5])])
    assert not decided_at([0.04, 0.4], top=1)
    assert not decided_at([0.04, 0.4], learner="linear")  # its folds matter little
    assert not list(
        unstable(
            Tidy({"feature": [], "p_value": np.empty(0), "p_adjusted": np.empty(0)}),
            get_learner("auto"),
            Options(),
        )
    )


def test_verdicts_in_doubt_are_read_first_and_cleaning_last():
    kinds = ["codes", "note", "collinear", "poor_regression", "identifier", "few_rows"]
    found = ranked([Finding(kind, "", None, kind) for kind in kinds], matter=())
    assert [one.kind for one in found] == [
        "poor_regression", "few_rows", "collinear", "codes", "note", "identifier",
    ]  # fmt: skip


def test_a_warning_of_a_feature_that_was_not_found_comes_after_what_was():
    said = [("poor_regression", "useless"), ("determined", "b"), ("unstable", "c"),
            ("few_rows", "found")]  # fmt: skip
    found = ranked([Finding(kind, name, None, kind) for kind, name in said], matter={"found"})
    assert [one.kind for one in found] == [
        "few_rows", "unstable", "poor_regression", "determined",
    ]  # fmt: skip
