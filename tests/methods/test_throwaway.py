"""A method is one entry in METHODS: everything else finds it there."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import covaria
from covaria import METHODS, plots
from covaria.cli.app import app
from covaria.report.words import methods_paragraph, references


def half_gcm(residuals, rng):
    """Return half of GCM's scores."""
    return METHODS["gcm"].score(residuals, rng) / 2


@pytest.fixture
def throwaway(monkeypatch):
    """Add a method that nobody has heard of."""
    method = replace(
        METHODS["gcm"],
        name="half",
        score=half_gcm,
        label="Half-GCM",
        long_name="half the generalised covariance measure",
        reference="Nobody, N. (2026). Halves. Journal of Halves 1, 1–2.",
        about="half of GCM",
    )
    monkeypatch.setitem(METHODS, "half", method)


@pytest.fixture
def result(throwaway):
    X, y = covaria.draw("linear", n_rows=200, seed=0)
    return covaria.assess(X, y, learner="linear", methods=["half", "loco"])


def test_it_is_in_the_table(result):
    assert "half" in result.table["method"].tolist()
    assert result.about["fits"]["half"] == 200


def test_it_is_in_the_report_and_the_methods_paragraph(result, tmp_path):
    covaria.write_report(result, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "half the generalised covariance measure (two-sided)" in methods_paragraph(result)
    assert "Journal of Halves" in " ".join(references(result))
    assert "half the generalised covariance measure" in page
    assert "Journal of Halves" in page


def test_it_is_in_pictures_and_advice(result):
    assert plots.forest(result, method="half") is not None
    assert covaria.efficiency(result)["advice"].str.contains("Half-GCM").any()


def test_the_commands_list_it_and_take_it(throwaway, tmp_path):
    runner = CliRunner()
    listed = json.loads(runner.invoke(app, ["methods", "--json"]).stdout)
    assert any(row["name"] == "half" and row["role"] == "test" for row in listed)
    X, y = covaria.draw("linear", n_rows=100, seed=0)
    X.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    words = ["assess", str(tmp_path / "t.csv"), "-t", "y", "-l", "linear", "-m", "half", "--json"]
    assert json.loads(runner.invoke(app, words).stdout)["table"][0]["method"] == "half"


def test_studies_take_it(throwaway, tmp_path):
    study = {
        "repeats": 1,
        "scenario": [{"name": "linear", "n_rows": 100}],
        "learner": [{"name": "linear"}],
        "methods": {"names": ["half"]},
    }
    found = covaria.run_study(study, store=tmp_path / "s.sqlite")
    assert set(found.table["method"]) == {"half"}


def test_the_docs_list_every_page_of_a_method_and_miss_its_own(throwaway):
    # `tests/test_docs.py::test_every_method_has_a_page` is this for the methods there are.
    docs = Path(__file__).parents[2] / "docs"
    written = {page.stem for page in (docs / "methods").glob("*.md")}
    assert set(METHODS) - written == {"half", "gcm+pcm"}
    listed = re.findall(r"^```{toctree}\n(.*?)^```", (docs / "index.md").read_text(), re.S | re.M)
    assert any(":glob:" in one and "methods/*" in one for one in listed)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_who_it_is(name):
    method = METHODS[name]
    assert method.label
    assert method.long_name
    assert method.role
    assert method.reference or method.role == "combination of tests"
