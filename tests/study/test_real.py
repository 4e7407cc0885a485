"""The paper's real tables: its numbers beside ours, and what is made of them."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from residua import datasets
from residua.cli import app
from residua.errors import InputError
from residua.refit import EVERYTHING, refit
from residua.study import real, real_items
from residua.study.published import PUBLISHED, published


@pytest.fixture(scope="module")
def houses():
    """Return a made-up Boston: 120 houses whose value rm and lstat drive."""
    rng = np.random.default_rng(2)
    names = ["crim", "zn", "indus", "chas", "nox", "rm", "age", "dis", "rad", "tax", "ptratio",
             "b", "lstat"]  # fmt: skip
    X = pd.DataFrame(rng.normal(size=(120, 13)), columns=names)
    return X, pd.Series(3 * X["rm"] - 3 * X["lstat"] + rng.normal(size=120), name="medv")


@pytest.fixture(scope="module")
def some(houses):
    """Return what least squares gives on the made-up houses."""
    return refit(*houses, learners={"lm": "linear"}, methods=["gcm", "loco"], paper=True, seeds=3)


@pytest.fixture
def made_up(monkeypatch, houses):
    monkeypatch.setattr(datasets, "load", lambda name: houses)


def test_a_table_goes_by_three_names():
    for known in PUBLISHED.values():
        names = (known.table, known.figure, known.dataset)
        assert all(published(name) is known for name in names)
        assert set(known.learners) == set(known.errors) == {"lm", "GBM", "NN"}
    with pytest.raises(InputError, match="Did you mean 'table6'"):
        published("table7")


def test_the_published_claims_name_columns_that_exist(real_data):
    for known in PUBLISHED.values():
        columns = set(datasets.load(known.dataset)[0].columns)
        assert all(set(claim.features) <= columns for claim in known.claims)


def test_the_difference_is_told_in_the_papers_standard_errors(some):
    table = real.table("table4", some)
    ours = some.table.set_index("method")["error"]
    row = table.set_index("method").loc["gcm"]
    assert row["in_paper_se"] == pytest.approx((ours["gcm"] - 25.79) / 2.09)
    assert row["verdict"] == "differs"  # made-up houses have another price
    assert table["method"].tolist() == ["gcm", "loco"]


@pytest.mark.parametrize(
    ("name", "learner", "ours", "verdict"),
    [
        ("boston", "lm", 25.79 + 2 * 2.09, "agrees"),
        ("boston", "lm", 25.79 + 2.1 * 2.09, "differs"),
        ("social_media", "NN", 84.70 * 1.09, "within 10%"),
        ("social_media", "NN", 84.70 * 1.11, "differs"),
        ("airbnb_quebec", "lm", 0.3338, "other data"),
    ],
)
def test_a_number_is_judged_by_two_standard_errors_and_a_network_by_ten_percent(
    some, name, learner, ours, verdict
):
    table = some.table.assign(learner=learner, error=ours)
    row = real.beside(published(name), replace(some, table=table)).iloc[0]
    assert row["verdict"] == verdict


def test_where_the_stated_setting_cannot_give_the_number_the_note_says_which_would(some):
    about = {**some.about, "learners": {"GBM": "Boosting()"}}
    found = replace(some, table=some.table.assign(learner="GBM", error=5.55), about=about)
    note = real.table("crab_age", found)["note"].iloc[0]
    assert "cannot give it" in note
    assert "Boosting(trees=100, splits=5" in note


def test_claims_tell_how_often_each_feature_came_back(made_up):
    found = real.run("table4", learners={"GBM": "linear"}, seeds=1)
    claims = real.claims("table4", found)
    stable = claims.set_index(["method", "feature"])["stable"]
    assert stable["gcm", "rm"]
    assert stable["loco", "lstat"]
    assert not stable["gcm", "tax"]


def test_orderings_compare_the_methods_draw_by_draw(some):
    row = real.orderings("table4", some).iloc[0]
    means = some.errors.groupby(["seed", "method"])["error"].mean().unstack()
    assert row["gap"] == pytest.approx((means["loco"] - means["gcm"]).mean())
    assert row["gcm_better"] + row["same"] <= 1
    assert row["all_features"] == pytest.approx(means[EVERYTHING].mean())


def test_verdicts_are_corrected_tests_on_all_rows(made_up):
    found = real.verdicts("table4", learners=["lm"], repeats=1)
    chosen = found.loc[found["selected"] & (found["method"] == "gcm"), "feature"].tolist()
    assert {"rm", "lstat"} <= set(chosen)
    assert len(chosen) < 5
    assert found["r2"].iloc[0] > 0.8
    assert set(found["units"]) == {120}
    assert not found["warned"].any()


def test_verdicts_tell_which_regressions_the_library_warns_of(monkeypatch, houses):
    X, y = houses
    bent = X.assign(age=X["dis"] ** 2 + 0.3 * X["age"])
    monkeypatch.setattr(datasets, "load", lambda name: (bent, y + 2 * bent["dis"] ** 2))
    found = real.verdicts("table4", learners=["lm"], repeats=1)
    assert "age" in set(found.loc[found["warned"], "feature"])
    assert not found["warned"].all()


def test_a_table_is_tested_with_the_papers_learners_ours_and_the_default(monkeypatch):
    asked = []

    def verdicts(name, **settings):
        asked.append((*settings["learners"], settings["methods"][-1], settings["grouped"]))
        return pd.DataFrame({"feature": ["Sex" if settings["grouped"] else "Sex_I"]})

    monkeypatch.setattr(real, "verdicts", verdicts)
    found = real.all_verdicts("table5")
    theirs, default = ("lm", "GBM", "NN", "deep GBM", "loco"), ("auto", "gcm+pcm")
    assert asked == [(*who, again) for again in (False, True) for who in (theirs, default)]
    assert found.loc[found["grouped"], "feature"].tolist() == ["Sex", "Sex"]
    assert len(real.all_verdicts("table4")) == 2  # no category: nothing to take as one feature


def test_unknown_modes_and_learners_are_one_sentence():
    with pytest.raises(InputError, match="mode='theirs'"):
        real.run("table4", mode="theirs")
    with pytest.raises(InputError, match="no learner 'svm'"):
        real.run("table4", learners=["svm"])


@pytest.mark.parametrize("name", ["social_media", "wine_red", "boston", "gas_turbine_2013"])
def test_least_squares_gives_the_papers_errors_within_two_of_its_standard_errors(name, real_data):
    found = real.run(name, learners=["lm"], seeds=4)
    assert real.table(name, found)["verdict"].tolist() == ["agrees", "agrees"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wine_red", "boston"])
def test_boosting_gives_the_papers_errors_within_two_of_its_standard_errors(name, real_data):
    found = real.run(name, learners=["GBM"], seeds=20)
    assert real.table(name, found)["verdict"].tolist() == ["agrees", "agrees"]


def test_every_table_and_figure_has_a_name_and_fast_leaves_the_networks_out(made_up):
    assert {"table1", "table6", "fig8", "fig9", "sfig5", "sfig8"} <= set(real_items.ITEMS)
    item = real_items.make("table4", fast=True)
    assert item.frame["learner"].tolist() == ["lm", "lm", "GBM", "GBM"]
    assert "no networks" in item.notes[-1]
    assert item.verdicts[0].text == "lm, GCM: 25.79 ± 2.09"
    assert len(item.verdicts) == 4 + 2
    figure = real_items.make("sfig6", fast=True)
    assert len(figure.frame) == 2 * 2 * 13
    held = {verdict.text: verdict.held for verdict in figure.verdicts}
    assert held["with boosting both find rm and lstat (GBM, GCM)"]
    assert not held["with boosting GCM also finds dis, tax and ptratio (GBM, GCM)"]
    with pytest.raises(InputError, match="Give 'table4' or 'sfig6'"):
        real_items.make("boston")


def test_what_was_stored_reads_as_what_was_made(made_up, tmp_path):
    for name, kind in (("table4", "table"), ("sfig6", "frequencies")):
        made = real_items.make(name, fast=True)
        for part, frame in {kind: made.frame, "claims": made.claims}.items():
            frame.assign(data="boston").to_csv(tmp_path / f"paper_{part}.csv", index=False)
        made.orderings.to_csv(tmp_path / "paper_orderings.csv", index=False)
        errors = pd.DataFrame({"data": "boston", "learner": ["lm", "GBM"], "seeds": [2, 1]})
        errors.to_csv(tmp_path / "paper_errors.csv", index=False)
        again = real_items.stored(tmp_path, name)
        assert again.verdicts == made.verdicts
        assert again.draws == made.draws == 2
    assert real_items.stored(tmp_path, "table1") is None
    assert real_items.stored(tmp_path, "table4", "ours") is None


def test_the_command_makes_a_real_table_and_a_figure_by_name(made_up, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cli = CliRunner()
    said = cli.invoke(app, ["paper", "table4", "--fast", "--mode", "paper", "--quiet"])
    assert said.exit_code == 0, said.output
    assert "lm, GCM: 25.79 ± 2.09" in said.stdout
    assert (tmp_path / "residua-paper" / "table4-paper.csv").is_file()
    said = cli.invoke(app, ["paper", "sfig6", "--fast", "--mode", "ours", "--quiet"])
    assert "GCM is steadier than LOCO" in said.stdout
    assert (tmp_path / "residua-paper" / "sfig6-ours.svg").is_file()
    names = {row["name"]: row["ready"] for row in json.loads(
        cli.invoke(app, ["paper", "list", "--json"]).stdout
    )}  # fmt: skip
    assert all(names[name] == "yes" for name in real_items.ITEMS)
