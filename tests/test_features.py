"""Some features alone: tested given all others, with the numbers and the cost that are theirs."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

import covaria
from covaria import InputError, Result
from covaria.cli import app as cli
from covaria.report.words import methods_paragraph

N_ROWS = 150
NUMBERS = [
    "estimate", "std_error", "low", "high", "statistic", "p_value", "effect", "effect_low",
    "effect_high", "df",
]  # fmt: skip
EVERY = ["gcm", "pcm", "gcm+pcm", "loco", "dropout", "permutation", "weighted_gcm", "basis_gcm"]


@pytest.fixture(scope="module")
def homes():
    """Return a table with numbers, gaps, text of few and of many levels, and its target."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N_ROWS, 4)), columns=["rooms", "age", "lat", "lon"])
    X["size"] = X["rooms"] + 0.5 * rng.normal(size=N_ROWS)
    X["kind"] = rng.choice(["flat", "house", "hut"], N_ROWS)
    X["rent"] = np.where(rng.random(N_ROWS) < 0.1, np.nan, X["age"] * X["lat"])
    X["town"] = [f"t{at}" for at in rng.integers(0, 40, N_ROWS)]
    X["same"] = 1.0
    y = X["rooms"] + X["age"] ** 2 + (X["kind"] == "hut") + rng.normal(size=N_ROWS)
    return X, y.rename("price")


def compared(X, y, features, **asked):
    """Return the runs that test all features and some, having compared what they say of these."""
    every = covaria.assess(X, y, **asked)
    some = covaria.assess(X, y, features=features, **asked)
    wanted = every.table[every.table["feature"].isin(features)].reset_index(drop=True)
    for name in ("method", "feature", "status"):
        assert some.table[name].tolist() == wanted[name].tolist()
    np.testing.assert_allclose(some.table[NUMBERS], wanted[NUMBERS], rtol=1e-9, atol=1e-9)
    return every, some


@pytest.mark.parametrize("learner", ["linear", "splines", "boosting(trees=20)"])
def test_some_features_get_the_numbers_that_they_get_among_all(homes, learner):
    compared(*homes, ["kind", "size", "rent"], learner=learner, methods=EVERY)


@pytest.mark.parametrize(
    "asked",
    [
        {"groups": {"place": ["lat", "lon"]}},
        {"splits": 0.4},
        {"splits": "none", "methods": "gcm,loco"},
        {"paper": True, "methods": "gcm,loco,dropout"},
        {"repeats": 2},
        {"sample_weight": np.linspace(1, 2, N_ROWS), "clusters": np.arange(N_ROWS) // 3},
        {"methods": "lasso,knockoffs"},
    ],
    ids=str,
)
def test_so_they_do_however_it_is_asked(homes, asked):
    X, y = homes
    names = ["place"] if "groups" in asked else ["lat"]
    compared(X, y, [*names, "town"], **{"learner": "linear", **asked})


@pytest.mark.parametrize("classes", [2, 3])
def test_so_they_do_for_classes(homes, classes):
    X, y = homes
    kinds = pd.qcut(y, classes, labels=list("abc")[:classes]).astype(str)
    compared(X, kinds, ["kind", "age"], learner="linear")


def test_so_they_do_where_learners_are_chosen(homes):
    X, y = homes
    every, some = compared(X.drop(columns="town"), y, ["age", "size"])
    assert set(some.quality["feature"]) == {"", "age", "size"}
    assert some.about.models < 0.6 * every.about.models


def test_so_they_do_for_networks_refitted_lazily(homes):
    pytest.importorskip("torch")
    X, y = homes
    columns = ["rooms", "age", "lat", "lon"]
    compared(X[columns], y, ["lat"], learner="network(epochs=20)", methods="lazy,loco")


def test_what_is_fitted_is_what_the_tested_need(homes):
    X, y = homes
    some = covaria.assess(X, y, learner="boosting(trees=10)", methods="gcm,loco", features=["age"])
    models = some.cost.groupby("purpose")["models"].sum()
    # In each of five folds: y on all columns, y on the others, and age on the others.
    assert models["nuisance regressions"] == 15
    # Trees, kernels and curves look at two residuals in five folds, once.
    assert models["residual diagnostics"] == 30
    assert some.residuals["y_given_rest"].shape == (N_ROWS, 1)
    assert some.scores["gcm"].shape == (N_ROWS, 1)


def test_the_correction_counts_those_tested(homes):
    X, y = homes
    every = covaria.assess(X, y, learner="linear", methods="gcm", correction="bonferroni")
    some = covaria.assess(
        X, y, learner="linear", methods="gcm", correction="bonferroni", features=["lat", "lon"]
    )
    assert some.table["p_adjusted"].to_numpy() == pytest.approx(
        np.minimum(1, 2 * some.table["p_value"])
    )
    assert len(every.features) == 9


def test_a_result_says_that_not_all_features_were_tested(homes):
    X, y = homes
    some = covaria.assess(X, y, learner="linear", features=["age", "kind"])
    assert some.features == ["age", "kind"]
    assert (some.about.n_features, some.about.n_others) == (2, 7)
    assert "2 features of 9 were tested, given all others" in str(some)
    assert "each of 2 of 9 features helps" in methods_paragraph(some)
    one = covaria.assess(X, y, learner="linear", features="age")
    assert "1 feature of 9 was tested" in str(one)
    assert one.about.fingerprint == some.about.fingerprint
    everything = covaria.assess(X, y, learner="linear")
    assert everything.about.fingerprint == some.about.fingerprint
    assert "were tested" not in str(everything)


def test_the_order_is_that_of_the_table_and_a_name_counts_once(homes):
    X, y = homes
    some = covaria.assess(X, y, learner="linear", methods="gcm", features=["kind", "age", "kind"])
    assert some.features == ["age", "kind"]


def test_settings_files_and_arrays_of_names_carry_the_features(homes, tmp_path):
    X, y = homes
    some = covaria.assess(X, y, learner="linear", features=np.array(["age", "lat"]))
    assert some.settings["features"] == ["age", "lat"]
    again = covaria.assess(X, y, **some.settings)
    pd.testing.assert_frame_equal(again.table, some.table)
    some.to_json(tmp_path / "some.json")
    read = Result.from_json(tmp_path / "some.json")
    assert (read.settings["features"], read.about.n_others) == (["age", "lat"], 7)
    covaria.write_report(read, tmp_path / "some.html")
    assert "features=[&#x27;age&#x27;, &#x27;lat&#x27;]" in (tmp_path / "some.html").read_text(
        "utf-8"
    ).replace("&#39;", "&#x27;")


@pytest.mark.parametrize(
    ("features", "said"),
    [
        (["aeg"], "'aeg', which is no feature. Did you mean 'age'"),
        (["price"], "'price', which is no feature."),
        ([], "features=[] names none. Give a list of names"),
        ({}, "features={} names none."),
        (3, "features=3 names none."),
        (["lat"], "'lat', which is tested as part of group 'place'. Ask for the group."),
    ],
)
def test_an_odd_name_is_one_sentence(homes, features, said):
    X, y = homes
    with pytest.raises(InputError) as error:
        covaria.assess(X, y, learner="linear", features=features, groups={"place": ["lat", "lon"]})
    assert said in str(error.value)


def test_a_constant_feature_alone_is_constant(homes):
    X, y = homes
    some = covaria.assess(X, y, learner="linear", methods="gcm", features=["same"])
    assert some.table["status"].tolist() == ["constant"]


def test_stability_counts_those_asked_for(homes):
    X, y = homes
    given = {"learner": "linear", "methods": "gcm,lasso", "seed": 2}
    some = covaria.stability(X, y, features=["kind", "rooms"], correction="none", **given)
    every = covaria.stability(X, y, correction="none", **given)
    wanted = every.table[every.table["feature"].isin(["kind", "rooms"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(some.table, wanted)
    assert some.about["n_features"] == 2


def test_refit_says_that_it_selects_among_all(homes):
    with pytest.raises(InputError, match="refit compares learners on what is selected of all"):
        covaria.refit(*homes, learner="linear", features=["age"])


def test_a_selector_keeps_none_that_was_not_asked_for(homes):
    X, y = homes
    selector = covaria.Selector("gcm", learner="linear", features=["rooms", "lat"], top=1)
    selector.fit(X, y)
    assert selector.get_feature_names_out().tolist() == ["rooms"]
    asked = [X.columns.get_loc(name) for name in ("rooms", "lat")]
    assert np.flatnonzero(np.isfinite(selector.pvalues_)).tolist() == asked
    assert np.flatnonzero(np.isfinite(selector.scores_)).tolist() == asked
    grouped = covaria.Selector(
        "gcm",
        learner="linear",
        features=["place"],
        feature_groups={"place": ["lat", "lon"]},
        top=1,
    )
    assert grouped.fit(X, y).get_feature_names_out().tolist() == ["lat", "lon"]
    of_array = covaria.Selector("gcm", learner="linear", features=["x1"], top=1)
    assert of_array.fit(X[["lat", "rooms"]].to_numpy(), y).get_support().tolist() == [False, True]


def test_a_stability_selector_keeps_none_that_was_not_asked_for(homes):
    X, y = homes
    selector = covaria.StabilitySelector("gcm", learner="linear", features=["lat", "rooms"])
    selector.fit(X, y)
    assert selector.get_feature_names_out().tolist() == ["rooms"]
    assert selector.scores_[X.columns.get_loc("size")] == 0


def test_a_study_tests_some_features(tmp_path):
    grid = {
        "repeats": 1,
        "scenario": [{"name": "linear", "n_rows": 100}],
        "learner": [{"name": "linear"}],
        "methods": {"names": ["gcm"]},
        "features": [["x1", "x5"], ["x6"]],
    }
    table = covaria.run_study(grid, store=tmp_path / "s.sqlite", n_jobs=1).table
    assert table["feature"].tolist() == ["x1", "x5", "x6"]
    with pytest.raises(InputError, match="'y9', which is no feature"):
        covaria.run_study({**grid, "features": ["y9"]}, store=tmp_path / "t.sqlite", n_jobs=1)


def test_the_commands_take_names_between_commas(homes, tmp_path, monkeypatch, capsys):
    X, y = homes
    X.assign(price=y).drop(columns="town").to_csv(tmp_path / "homes.csv", index=False)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["covaria", *map(str, words)])
        with pytest.raises(SystemExit) as leaving:
            cli.main()
        output = capsys.readouterr()
        return leaving.value.code or 0, output.out, output.err

    shared = [tmp_path / "homes.csv", "-t", "price", "-l", "linear", "--features", "age, kind"]
    code, out, _ = run("assess", *shared)
    assert code == 0
    assert "8 features (1 category, 1 constant, 2 tested)" in out
    assert "of 2 features matter for 'price'" in out
    code, out, _ = run("stability", *shared, "-m", "gcm", "--json")
    assert sorted(set(json.loads(out)["table"]["feature"])) == ["age", "kind"]
    code, _, err = run("assess", *shared[:-1], "agee")
    assert code == cli.BAD_INPUT
    assert "Did you mean 'age'" in err
