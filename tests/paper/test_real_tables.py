"""The paper's real tables: its numbers beside ours, and what is made of them."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from covaria import datasets
from covaria.cli.app import app
from covaria.datasets.entries import ENTRIES
from covaria.errors import InputError
from covaria.paper import real_tables as real
from covaria.paper import statements as real_items
from covaria.paper.published import PUBLISHED, published
from covaria.paper.registry import Verdict
from covaria.selection.refit import EVERYTHING, refit


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
    table = real.table("table4", real.errors("table4", some))
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
    errors = real.errors("boston", some).assign(learner=learner, error=ours)
    row = real.table(name, errors).iloc[0]
    assert row["verdict"] == verdict
    other = real.table(name, errors, "ours").iloc[0]  # another procedure has no such verdict
    assert (other["verdict"], other["note"]) == ("another procedure", "")
    assert other["in_paper_se"] == row["in_paper_se"]


def test_where_the_stated_setting_cannot_give_the_number_the_note_says_which_would(some):
    errors = real.errors("boston", some).assign(learner="GBM", error=5.55)
    note = real.table("crab_age", errors)["note"].iloc[0]
    assert "cannot give it" in note
    assert "trees of five splits" in note
    assert PUBLISHED["table5"].instead[0].splits == 5
    networks = real.table("crab_age", errors.assign(learner="NN", error=2.0))["note"].iloc[0]
    assert "docs/real_data.md" in networks


def test_claims_tell_how_often_each_feature_came_back(made_up):
    found = real.run("table4", learners={"GBM": "linear"}, seeds=1)
    claims = real.claims("table4", found.frequencies).set_index(["method", "feature"])
    assert claims["stable"]["gcm", "rm"]
    assert claims["stable"]["loco", "lstat"]
    assert not claims["stable"]["gcm", "tax"]
    # The paper has GCM but not LOCO find it.
    assert claims["expected"]["gcm", "tax"]
    assert not claims["expected"]["loco", "tax"]


def test_orderings_compare_the_methods_draw_by_draw(some):
    row = real.orderings("table4", some).iloc[0]
    means = some.errors.groupby(["seed", "method"])["error"].mean().unstack()
    gap = means["loco"] - means["gcm"]
    assert row["draws"] == 3
    assert (row["gap"], row["gap_sd"]) == pytest.approx((gap.mean(), gap.std()))
    assert row["gcm_better"] == pytest.approx((gap > 0).mean())
    assert row["same"] == pytest.approx((gap == 0).mean())
    assert row["all_features"] == pytest.approx(means[EVERYTHING].mean())
    unstable = some.draws.pivot(index="seed", columns="method", values="unstable")
    steadier = unstable["loco"] - unstable["gcm"]
    assert (row["steadier"], row["steadier_sd"]) == pytest.approx((steadier.mean(), steadier.std()))
    rates = some.frequencies.groupby("method")["unstable"].sum()
    assert row["loco_wavering"] == pytest.approx(rates["loco"])


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


def test_a_table_is_tested_with_the_papers_learners_ours_and_the_default(monkeypatch, houses):
    asked = []

    def verdicts(name, **settings):
        way = (settings["grouped"], settings["other_units"])
        asked.append((*settings["learners"], settings["methods"][-1], way))
        return pd.DataFrame({"feature": ["Sex" if settings["grouped"] else "Sex_I"]})

    monkeypatch.setattr(real, "verdicts", verdicts)
    monkeypatch.setattr(datasets, "load", lambda name: houses)
    found = real.all_verdicts("table5")
    theirs, default = ("lm", "GBM", "NN", "deep GBM", "loco"), ("auto", "gcm+pcm")
    ways = [(False, False), (True, False)]
    assert asked == [(*who, way) for way in ways for who in (theirs, default)]
    assert found.loc[found["grouped"], "feature"].tolist() == ["Sex", "Sex"]
    assert len(real.all_verdicts("table4")) == 2  # no category: nothing to take as one feature
    two = pd.concat([houses[0]] * 2, ignore_index=True)
    in_towns = two.assign(rm=np.arange(240.0))  # two tracts of every town
    monkeypatch.setattr(datasets, "load", lambda name: (in_towns, None))
    assert real.all_verdicts("table4")["other_units"].tolist() == [False, False, True, True]


def test_towns_are_other_units_for_boston_and_rows_for_wine(monkeypatch, houses):
    X, y = houses
    towns = X.assign(**{name: np.arange(120) // 3 for name in ENTRIES["boston"].of_place})
    monkeypatch.setattr(datasets, "load", lambda name: (towns, y))
    settings = {"learners": ["lm"], "methods": ["gcm"], "repeats": 1}
    assert set(real.verdicts("boston", **settings)["units"]) == {120}
    assert set(real.verdicts("boston", other_units=True, **settings)["units"]) == {40}
    copies = X.iloc[np.arange(120) // 2].reset_index(drop=True)
    monkeypatch.setattr(datasets, "load", lambda name: (copies, y))
    assert set(real.verdicts("wine_red", **settings)["units"]) == {60}
    assert set(real.verdicts("wine_red", other_units=True, **settings)["units"]) == {120}


def test_our_mode_keeps_clusters_in_one_fold_and_the_papers_does_not(monkeypatch, houses):
    asked = {}
    monkeypatch.setattr(datasets, "load", lambda name: houses)
    monkeypatch.setattr(real, "refit", lambda X, y, **settings: asked.update(settings))
    for mode, is_kept in (("paper", False), ("ours", True)):
        real.run("gas_turbine_2013", mode=mode, learners=["lm"])
        assert asked["paper"] != is_kept
        assert (asked["clusters"] is not None) == is_kept
        assert asked["groups"] is None


def test_other_settings_and_raw_networks_are_run_through_the_same_pipeline(monkeypatch, houses):
    X, y = houses
    monkeypatch.setattr(datasets, "load", lambda name: (X, y))
    found = real.instead("table5", seeds=1)
    assert found["setting"].str.contains("splits=5").all()
    assert set(found["method"]) == {"gcm", "loco", EVERYTHING}
    assert real.instead("table4").empty
    raw = real.raw_networks("boston", epochs=2)
    assert set(raw["setting"]) == {"target not standardised, 2 epochs"}
    assert len(raw) == 3
    # Columns on another scale change nothing: the pipeline standardises each training part.
    far = (1000 + 50 * X, y)
    monkeypatch.setattr(datasets, "load", lambda name: far)
    again = real.raw_networks("boston", epochs=2)
    assert again["error"].iloc[-1] == pytest.approx(raw["error"].iloc[-1], rel=1e-4)


def test_epochs_show_what_standardising_does(monkeypatch, houses):
    X, y = houses
    monkeypatch.setattr(datasets, "load", lambda name: (X, y + 100))
    found = real.epochs("boston", (1, 30)).set_index("standardised")
    assert found.loc["columns", "epochs_1"] > 5000  # it has to learn the mean first
    assert found.loc["columns, target", "epochs_1"] < 100
    assert (found["epochs_30"] < found["epochs_1"]).all()


def test_unknown_modes_and_learners_are_one_sentence():
    with pytest.raises(InputError, match="mode='theirs'"):
        real.run("table4", mode="theirs")
    with pytest.raises(InputError, match="no learner 'svm'"):
        real.run("table4", learners=["svm"])


@pytest.mark.parametrize("name", ["social_media", "wine_red", "boston", "gas_turbine_2013"])
def test_least_squares_gives_the_papers_errors_within_two_of_its_standard_errors(name, real_data):
    found = real.errors(name, real.run(name, learners=["lm"], seeds=4))
    assert real.table(name, found)["verdict"].tolist() == ["agrees", "agrees"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wine_red", "boston"])
def test_boosting_gives_the_papers_errors_within_two_of_its_standard_errors(name, real_data):
    found = real.errors(name, real.run(name, learners=["GBM"], seeds=20))
    assert real.table(name, found)["verdict"].tolist() == ["agrees", "agrees"]


@pytest.fixture(scope="module")
def quick(houses):
    """Return what a quick run of the made-up Boston gives."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "load", lambda name: houses)
        return real_items.run("table4", fast=True, seeds=2)


def test_every_table_and_figure_has_a_name_and_fast_leaves_the_networks_out(quick):
    assert {"table1", "table6", "fig8", "fig9", "sfig5", "sfig8"} <= set(real_items.ITEMS)
    item = real_items.item("table4", "paper", quick)
    assert item.frame["learner"].tolist() == ["lm", "lm", "GBM", "GBM"]
    assert "no networks" in item.notes[-1]
    assert item.said[0].text.startswith("lm, GCM: 25.79 ± 2.09")
    assert len(item.said) == 4 + 2  # which learner is best cannot be told without networks
    ours = real_items.item("table4", "ours", quick)
    assert len(ours.said) == 2  # errors are shown, and not judged by the paper's
    assert any("the paper's 25.79 and 32.28 are of its own procedure" in n for n in ours.notes)
    figure = real_items.item("sfig6", "paper", quick)
    assert len(figure.frame) == 2 * 2 * 13
    held = {said.text: said.verdict is Verdict.HELD for said in figure.said}
    assert held["with boosting both find rm and lstat (GBM, GCM)"]
    only = "with boosting GCM but not LOCO finds dis, tax and ptratio (GBM, {})"
    assert not held[only.format("GCM")]
    assert held[only.format("LOCO")]
    with pytest.raises(InputError, match="Give 'table4' or 'sfig6'"):
        real_items.item("boston", "paper", quick)


@pytest.mark.parametrize(
    ("name", "learner", "gap", "sd", "verdict"),
    [
        ("table4", "lm", 1.0, 1.0, "held"),
        ("table4", "lm", 0.1, 1.0, "undecided"),  # within two standard errors of 0
        ("table4", "lm", -1.0, 1.0, "not held"),
        ("table2", "lm", 0.0, 0.0, "held"),  # the paper has them the same
        ("table2", "lm", 1.0, 1.0, "not held"),
    ],
)
def test_a_difference_between_gcm_and_loco_counts_beyond_two_standard_errors(
    quick, name, learner, gap, sd, verdict
):
    orderings = quick["orderings"].assign(learner=learner, draws=20, gap=gap, gap_sd=sd)
    item = real_items.item(name, "ours", {**quick, "orderings": orderings.iloc[:1]})
    assert [said.verdict for said in item.said] == [verdict]
    steadier = orderings.assign(steadier=gap, steadier_sd=sd).iloc[:1]
    figure = real_items.item("sfig5", "ours", {**quick, "orderings": steadier})
    assert (figure.said[-1].verdict is Verdict.HELD) == (gap == 1.0)
    assert "GCM is steadier" in figure.said[-1].text


def test_the_best_learner_is_judged_where_the_paper_names_one(quick):
    errors = quick["errors"]
    others = errors[errors["learner"] == "GBM"].assign(learner="NN")
    for error, held in ((1e9, True), (0.0, False)):
        every = pd.concat([errors.assign(error=errors["error"].where(
            errors["learner"] == "GBM", 1e6)), others.assign(error=error)])  # fmt: skip
        verdict = real_items.item("table4", "paper", {**quick, "errors": every}).said[-1]
        assert verdict.text == "GBM predicts better than the others"
        assert (verdict.verdict is Verdict.HELD) == held


def test_what_was_stored_reads_as_what_was_made(quick, tmp_path):
    real_items.keep_all(tmp_path, "paper", quick)
    for name in ("table4", "sfig6"):
        made = real_items.item(name, "paper", quick)
        again = real_items.item(name, "paper", real_items.stored(tmp_path, name))
        assert again.said == made.said
        assert again.notes == made.notes
        assert again.draws == made.draws == 2
    assert real_items.stored(tmp_path, "table1") is None
    assert real_items.stored(tmp_path, "table4", "ours") is None
    (tmp_path / "paper_errors.csv").write_text("")
    with pytest.raises(InputError, match=r"paper_errors.csv cannot be read .* Make it again"):
        real_items.stored(tmp_path, "table4")


def test_the_command_makes_a_real_table_and_a_figure_by_name(made_up, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cli = CliRunner()
    said = cli.invoke(app, ["paper", "table4", "--fast", "--mode", "paper", "--quiet"])
    assert said.exit_code == 0, said.output
    assert "lm, GCM: 25.79 ± 2.09" in said.stdout
    assert (tmp_path / "covaria-paper" / "table4-paper.csv").is_file()
    said = cli.invoke(app, ["paper", "sfig6", "--fast", "--mode", "ours", "--quiet"])
    assert "with boosting both find rm and lstat" in said.stdout
    assert (tmp_path / "covaria-paper" / "sfig6-ours.svg").is_file()
    # What was run is kept, for another time.
    again = ["paper", "sfig6", "--mode", "ours", "--results", "covaria-paper/results"]
    assert cli.invoke(app, again).stdout == said.stdout.split("\n", 1)[1]
    said = cli.invoke(
        app, ["paper", "table4", "--fast", "--repeats", "3", "--mode", "paper", "--dask", "nowhere"]
    )
    assert "over 3 draws" in said.stdout
    assert "--dask is for the simulations" in said.stdout
    names = {row["name"]: row["ready"] for row in json.loads(
        cli.invoke(app, ["paper", "list", "--json"]).stdout
    )}  # fmt: skip
    assert all(names[name] == "yes" for name in real_items.ITEMS)
