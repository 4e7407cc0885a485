"""Select, refit, measure on the rows left out: by hand, by the library, by the command."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, QuantileRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from covaria.cli.app import main
from covaria.errors import InputError
from covaria.learners import Boosting, Linear, Prefit, Splines, get_learner
from covaria.selection.refit import (
    EVERYTHING,
    Refit,
    held_out_error,
    joined,
    name_learners,
    refit,
    with_features,
)
from covaria.selection.stability import stability
from covaria.tables.dataset import Dataset
from covaria.tables.sampling import at_hand


@pytest.fixture(scope="module")
def table():
    """Return 90 rows of 5 features, two of which matter."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(90, 5)), columns=list("edcba"))
    X["c"] = 0.5 * X["e"] + X["c"]
    return X, pd.Series(X["e"] - 0.6 * X["a"] + rng.normal(size=90), name="y")


def least_squares(X, y, new):
    design = np.column_stack([np.ones(len(X)), X])
    return np.column_stack([np.ones(len(new)), new]) @ np.linalg.lstsq(design, y, rcond=None)[0]


def selected_by_hand(X, y):
    """Return the features that GCM and LOCO select as the paper does: in sample, two-sided, .05."""
    full = y - least_squares(X, y, X)
    flags = {"gcm": [], "loco": []}
    for j in range(X.shape[1]):
        rest = np.delete(X, j, axis=1)
        reduced = y - least_squares(rest, y, rest)
        scores = {
            "gcm": reduced * (X[:, j] - least_squares(rest, X[:, j], rest)),
            "loco": reduced**2 - full**2,
        }
        for method, score in scores.items():
            z = np.sqrt(len(y)) * score.mean() / score.std()
            flags[method].append(2 * norm.sf(abs(z)) < 0.05)
    return {method: np.array(kept) for method, kept in flags.items()}


def test_errors_are_those_of_selecting_and_refitting_by_hand(table):
    X, y = table[0].to_numpy(), table[1].to_numpy()
    found = refit(*table, learners="linear", methods="gcm,loco", paper=True, seed=3)
    samples = stability(*table, method="gcm", learner="linear", paper=True, seed=3).samples
    expected = {"gcm": [], "loco": [], EVERYTHING: []}
    for train, test in samples:
        kept = {**selected_by_hand(X[train], y[train]), EVERYTHING: np.ones(5, dtype=bool)}
        for method, flags in kept.items():
            predicted = least_squares(X[train][:, flags], y[train], X[test][:, flags])
            expected[method].append(np.mean((y[test] - predicted) ** 2))
    for method, errors in expected.items():
        row = found.table.set_index("method").loc[method]
        assert row["error"] == pytest.approx(np.mean(errors))
        assert row["std_error"] == pytest.approx(np.std(errors, ddof=1) / np.sqrt(5))
    assert found.errors["error"].notna().all()


def test_where_nothing_is_selected_the_mean_is_predicted(table):
    data = Dataset.from_table(*table)
    fold = (np.arange(60), np.arange(60, 90))
    nothing = np.zeros(5, dtype=bool)
    error = held_out_error(data, Linear(), nothing, fold, seed=0)
    y = table[1].to_numpy()
    assert error == pytest.approx(np.mean((y[60:] - y[:60].mean()) ** 2))


def test_a_column_that_does_not_vary_in_training_is_left_out(table):
    X, y = table
    fold = (np.arange(60), np.arange(60, 90))
    late = X.assign(d=np.where(np.arange(90) < 60, 1.0, X["d"]))
    kept = np.ones(5, dtype=bool)
    with_it = held_out_error(Dataset.from_table(late, y), Linear(), kept, fold, seed=0)
    without = held_out_error(
        Dataset.from_table(X.drop(columns="d"), y), Linear(), kept[:4], fold, seed=0
    )
    assert with_it == pytest.approx(without)


def test_draws_of_the_folds_are_averaged_and_their_spread_is_shown(table):
    found = refit(*table, learners="linear", methods="gcm", paper=True, seeds=3)
    alone = [
        refit(*table, learners="linear", methods="gcm", paper=True, seed=s).table["error"][0]
        for s in range(3)
    ]
    row = found.table.iloc[0]
    assert row["error"] == pytest.approx(np.mean(alone))
    assert row["spread"] == pytest.approx(np.std(alone, ddof=1))
    assert (row["low"], row["high"]) == pytest.approx((min(alone), max(alone)))
    assert found.about["seeds"] == 3


def test_our_mode_is_cross_fitted_and_corrected(table):
    """On each training part the features are those that `assess` selects there by default."""
    from covaria import assess
    from covaria.randomness import seed_of

    X, y = table
    ours = refit(X, y, learners="linear", methods="gcm", seed=4)
    assert ours.about["mode"] == "cross-fitted"
    found = stability(X, y, method="gcm", learner="linear", seed=4)
    chosen = []
    for at, (train, _) in enumerate(found.samples):
        own = assess(
            X.iloc[train], y.iloc[train], learner="linear", methods="gcm",
            seed=seed_of(4, "stability", "folds", at),
        )  # fmt: skip
        chosen.append(own.table["selected"].to_numpy())
    expected = dict(zip(X.columns, np.mean(chosen, axis=0), strict=True))
    assert ours.frequencies.set_index("feature")["frequency"].to_dict() == pytest.approx(expected)
    assert 0 < np.mean(chosen) < 1


def test_a_draw_tells_what_is_unstable_and_a_star_marks_what_is_stable_in_most(table):
    found = refit(*table, learners="linear", methods="gcm", paper=True, seeds=3)
    for seed in range(3):
        one = refit(*table, learners="linear", methods="gcm", paper=True, seed=seed)
        unstable = one.frequencies["frequency"].between(0.01, 0.99).sum()
        drawn = found.draws[(found.draws["seed"] == seed) & (found.draws["method"] == "gcm")]
        assert drawn["unstable"].item() == unstable
        assert drawn["error"].item() == pytest.approx(one.table["error"][0])
    assert found.draws.groupby("method")["error"].mean()["gcm"] == found.table["error"][0]
    starred = [line.split()[0] for line in str(found).splitlines() if line.endswith("*")]
    assert starred == found.stable["linear"]["gcm"]
    often = found.frequencies.assign(frequency=0.8 - 1e-16, stable=1.0)
    assert str(replace(found, frequencies=often)).count("0.80 *") == 5


def test_a_group_is_selected_and_refitted_as_one_feature(table):
    found = refit(*table, learners="linear", methods="gcm", paper=True, groups={"both": ["e", "a"]})
    assert found.frequencies["feature"].tolist() == ["both", "d", "c", "b"]
    assert found.frequencies["frequency"].iloc[0] == 1.0


def test_classes_are_measured_by_the_log_loss(table):
    X, y = table
    found = refit(X, (y > 0).astype(int), learners="linear", methods="gcm")
    assert found.about["loss"] == "log-loss"
    assert found.table["error"].between(0.1, 0.75).all()


def test_two_learners_of_one_kind_go_by_their_settings():
    named = name_learners(["boosting", Boosting(splits=4)])
    first, second = named
    assert first == "boosting"
    assert "splits=4" in second
    assert list(name_learners({"stumps": "boosting"})) == ["stumps"]


def test_bad_input_is_one_sentence(table):
    for wrong, said in [
        ({"seeds": 0}, "seeds=0"),
        ({"learners": []}, "names none"),
        ({"learners": "linaer"}, "Did you mean 'linear'"),
        ({"folds": 80}, "too many"),
        ({"folds": None}, "folds=None must be"),
        ({"learners": {}}, "names none"),
        ({"method": "gcm"}, "Did you mean 'methods'"),
        ({"scheme": "folds"}, "There is no option 'scheme'"),
    ]:
        with pytest.raises(InputError, match=said):
            refit(*table, **{"learners": "linear", **wrong})


def run(monkeypatch, capsys, *words):
    monkeypatch.setattr("sys.argv", ["covaria", *words])
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr()
    return left.value.code or 0, said.out, said.err


def test_the_command_prints_errors_and_frequencies_and_writes_files(
    table, tmp_path, monkeypatch, capsys
):
    path, out = tmp_path / "t.csv", tmp_path / "out"
    table[0].assign(y=table[1]).to_csv(path, index=False)
    page = tmp_path / "new folder" / "page.html"
    words = ("refit", str(path), "--target", "y", "--learners", "linear, linear(ridge=0.1)")
    words += ("--report", str(page))
    code, said, _ = run(monkeypatch, capsys, *words, "--seeds", "2", "--out", str(out))
    assert code == 0
    assert "Linear(ridge=0.1)" in said
    assert "all features" in said
    tables = ["draws.csv", "errors.csv", "frequencies.csv"]
    names = [*tables, "rates.svg", "results.json", "table.csv"]
    assert sorted(p.name for p in out.iterdir()) == names
    assert "Linear(ridge=0.1)" in page.read_text(encoding="utf-8")
    code, said, _ = run(monkeypatch, capsys, *words, "--seeds", "2", "--json")
    assert json.loads(said) == json.loads((out / "results.json").read_text())
    code, said, _ = run(monkeypatch, capsys, *words, "--paper", "--json")
    assert json.loads(said)["about"]["mode"] == "the paper's mode"


def test_the_command_keeps_clusters_together_and_weighs_rows(table, tmp_path, monkeypatch, capsys):
    X, y = table
    path = tmp_path / "t.csv"
    own = np.arange(len(X))
    full = X.assign(clinic=own // 4, w=1.0 + own % 3, y=y)
    full.to_csv(path, index=False, sep=";")
    words = ("refit", str(path), "-t", "y", "-l", "linear", "-m", "gcm", "--json")
    options = ("--clusters", "clinic", "--weights", "w")
    code, said, noted = run(monkeypatch, capsys, *words, *options)
    assert code == 0
    assert "separated by ';'" in noted
    found = json.loads(said)
    by_hand = refit(
        full, "y", learners="linear", methods="gcm", clusters="clinic", sample_weight="w"
    )
    assert found["table"] == by_hand.to_dict()["table"]
    assert found["about"]["n_features"] == X.shape[1]
    alone = json.loads(run(monkeypatch, capsys, *words, "--drop", "clinic,w")[1])
    assert alone["table"] != found["table"]


def test_a_known_table_brings_its_clusters_but_not_to_the_papers_mode(table, monkeypatch, capsys):
    X, y = table
    monkeypatch.setattr("covaria.datasets.load", lambda name: (X, y))
    monkeypatch.setattr("covaria.datasets.clusters", lambda name, X: np.arange(len(X)) // 3)
    words = ("refit", "gas_turbine", "-l", "linear", "-m", "gcm", "--json")
    code, said, noted = run(monkeypatch, capsys, *words)
    assert code == 0
    assert "30 clusters" in noted
    own = {"learners": "linear", "methods": "gcm"}
    by_hand = refit(X, y, clusters=np.arange(90) // 3, **own)
    assert json.loads(said)["table"] == by_hand.to_dict()["table"]
    code, said, noted = run(monkeypatch, capsys, *words, "--paper")
    assert "clusters" not in noted
    assert json.loads(said)["table"] == refit(X, y, paper=True, **own).to_dict()["table"]


def test_the_command_says_what_is_missing(table, tmp_path, monkeypatch, capsys):
    path = tmp_path / "t.csv"
    table[0].assign(y=table[1]).to_csv(path, index=False)
    for words, said in [
        ((str(path),), "--target"),
        ((str(path), "--target", "y", "--drop", "f"), "no column 'f' to drop"),
        ((str(tmp_path / "no.csv"), "--target", "y"), "There is no file"),
        (("bostn",), "Did you mean 'boston'"),
        ((str(path), "--target", "y", "--weights", "y"), "sample_weight='y' is the target"),
        ((str(path), "--target", "y", "--weights", "e"), "without gaps; mend column 'e'"),
        ((str(path), "--target", "y", "--splits", "many"), "--splits many"),
    ]:
        code, _, err = run(monkeypatch, capsys, "refit", *words)
        assert code == 2
        assert said in err
        assert len(err.strip().splitlines()) == 1


def test_the_command_stability_says_what_stability_says(table, tmp_path, monkeypatch, capsys):
    X, y = table
    path = tmp_path / "t.csv"
    pd.DataFrame(X).assign(y=y).to_csv(path, index=False)
    words = ("stability", str(path), "-t", "y", "-l", "linear", "-m", "gcm", "--splits", "2")
    code, said, _ = run(monkeypatch, capsys, *words, "--json", "--out", str(tmp_path / "out"))
    assert code == 0
    frame = pd.read_csv(path)
    by_hand = stability(frame, "y", learner="linear", methods="gcm", splits=2)
    assert json.loads(said)["table"] == by_hand.to_dict()["table"]
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"stability.csv", "stability.json"}
    code, said, _ = run(monkeypatch, capsys, *words, "--learners", "linear,linear(ridge=0.1)")
    assert code == 0
    assert "linear: Of" in said


def test_every_draw_of_folds_has_the_same_sample_of_rows(table):
    X, y = table
    frame = X.assign(y=y)
    asked = {"learner": "linear", "methods": "gcm", "progress": False}
    found = refit(frame, "y", rows=60, seeds=2, **asked)
    part = at_hand(frame, 60, seed=0)[0]
    alone = [refit(part, "y", seed=seed, **asked) for seed in (0, 1)]
    np.testing.assert_array_equal(
        found.errors["error"], pd.concat([one.errors for one in alone])["error"]
    )


def test_what_a_formula_gives_is_not_refitted(table):
    pytest.importorskip("formulaic")
    X, y = table
    with pytest.raises(InputError, match=r"the \| of a formula"):
        refit("y ~ a + b | c", X.assign(y=y), learner="linear", methods="gcm")


def test_errors_are_measured_by_the_loss_that_is_asked_for(table):
    X, y = table
    found = refit(X, y, loss="pinball(0.9)", learner="linear", methods="gcm", progress=False)
    assert found.about["loss"] == "pinball loss of quantile 0.9"
    errors = found.errors[found.errors["method"] == EVERYTHING]
    by_hand = []
    for train, test in stability(X, y, learner="linear", methods="gcm").samples:
        model = QuantileRegressor(quantile=0.9, alpha=0).fit(X.iloc[train], y.iloc[train])
        left = (y.iloc[test] - model.predict(X.iloc[test])).to_numpy()
        by_hand.append(np.mean(left * np.where(left > 0, 0.9, -0.1)))
    np.testing.assert_allclose(errors["error"], by_hand, rtol=1e-6)


def test_several_targets_have_several_errors(table):
    X, y = table
    with pytest.raises(InputError, match="the error of one target"):
        refit(X, np.column_stack([y, y**2]), learner="linear", methods="gcm")


def test_lines_count_folds_from_one_and_draws_are_told_apart_in_words(table):
    one = refit(*table, learners="linear", methods="gcm", paper=True, folds=3)
    two = refit(*table, learners="linear", methods="gcm", paper=True, folds=3, seeds=2)
    for found, seeds in ((one, 1), (two, 2)):
        assert sorted(found.errors["fold"].unique()) == [1, 2, 3]
        assert len(found.errors) == 2 * 3 * seeds  # by gcm, and on everything
    assert "1 draw of them" in str(one)
    assert "mostly" not in str(one)
    assert "2 draws of them" in str(two)
    assert "mostly" in str(two)


def test_a_feature_wavers_where_some_parts_select_it_and_others_do_not(table):
    found = refit(*table, learners="linear", methods="gcm", paper=True)
    own = found.frequencies
    between = (own["frequency"] > 0) & (own["frequency"] < 1)
    assert between.any()
    assert not between.all()
    assert (own["unstable"] > 0).tolist() == between.tolist()
    counted = found.draws.loc[found.draws["method"] == "gcm", "unstable"].tolist()
    assert counted == [between.sum()]


def test_stable_features_stand_by_learner_and_method_in_the_order_asked_for(table):
    found = refit(*table, learners=["splines", "linear"], methods="loco,gcm", paper=True)
    assert list(found.stable) == list(dict.fromkeys(found.frequencies["learner"]))
    assert all(list(own) == ["loco", "gcm"] for own in found.stable.values())
    assert {"e"} <= set(found.stable[list(found.stable)[1]]["gcm"])


def test_progress_counts_the_parts_of_all_draws(table):
    seen = []
    refit(*table, learners="linear", methods="gcm", paper=True, folds=2, seeds=2,
          progress=lambda *at: seen.append(at))  # fmt: skip
    assert seen[-1] == (4, 4)
    assert [at for at, _ in seen] == sorted(at for at, _ in seen)


def test_a_learner_that_fails_when_refitted_is_told_in_a_sentence(table):
    from sklearn.neighbors import KNeighborsRegressor

    data, rows = Dataset.from_table(*table), np.arange(90)
    fold = (rows[:60], rows[60:])
    hungry = get_learner(KNeighborsRegressor(n_neighbors=80))
    with pytest.raises(InputError, match="could not be refitted"):
        held_out_error(data, hungry, np.ones(5, dtype=bool), fold, 0)
    none = held_out_error(data, hungry, np.zeros(5, dtype=bool), fold, 0)
    assert none == pytest.approx(np.mean((table[1][60:] - table[1][:60].mean()) ** 2))


def test_a_single_selected_feature_is_fitted_and_not_replaced_by_the_mean(table):
    X, y = table[0].to_numpy(), table[1].to_numpy()
    train, test = np.arange(60), np.arange(60, 90)
    only_e = np.arange(5) == 0
    error = held_out_error(Dataset.from_table(*table), Linear(), only_e, (train, test), seed=0)
    predicted = least_squares(X[train][:, :1], y[train], X[test][:, :1])
    assert error == pytest.approx(np.mean((y[test] - predicted) ** 2))


def test_weights_count_in_the_fit_and_in_the_error(table):
    """By repeating rows: the last rows are tested, the first ones train."""
    X, y = table
    weights = np.resize([1, 2, 3], 90)
    fold = (np.arange(60), np.arange(60, 90))
    data = Dataset.from_table(X, y, sample_weight=weights.astype(float))
    own = (np.repeat(fold[0], weights[:60]), np.repeat(fold[1], weights[60:]))
    for kept in (np.ones(5, dtype=bool), np.zeros(5, dtype=bool)):
        design = X.to_numpy()[:, kept]
        predicted = least_squares(design[own[0]], y[own[0]], design[own[1]])
        by_hand = np.mean((y[own[1]] - predicted) ** 2)
        assert held_out_error(data, Linear(), kept, fold, seed=0) == pytest.approx(by_hand)


def test_gaps_reach_the_learner_that_is_refitted(table):
    rng = np.random.default_rng(2)
    X, y = table[0].mask(rng.random((90, 5)) < 0.2), table[1].to_numpy()
    train, test = np.arange(60), np.arange(60, 90)
    model = HistGradientBoostingRegressor(min_samples_leaf=5, random_state=0)
    kept = np.array([True, False, False, True, True])
    data = Dataset.from_table(X, y)
    error = held_out_error(data, get_learner(model), kept, (train, test), seed=0)
    # As numbers, columns stand by their names, each before the flag of its gaps.
    parts = [part for name in "abe" for part in (X[name], 1.0 * X[name].isna())]
    numbers = np.column_stack(parts)
    predicted = model.fit(numbers[train], y[train]).predict(numbers[test])
    assert error == pytest.approx(np.mean((y[test] - predicted) ** 2))


def test_a_pipeline_that_names_columns_is_refitted_on_those_selected(table):
    X, y = table[0].to_numpy(), table[1].to_numpy()
    train, test = np.arange(60), np.arange(60, 90)
    kept = np.array([True, False, False, True, True])
    scale = ColumnTransformer([("scaled", StandardScaler(), list("edcba"))])
    learner = get_learner(make_pipeline(scale, LinearRegression()))
    data = Dataset.from_table(*table, keep_frame=True)
    error = held_out_error(data, learner, kept, (train, test), seed=0)
    predicted = least_squares(X[train][:, kept], y[train], X[test][:, kept])
    assert error == pytest.approx(np.mean((y[test] - predicted) ** 2))


def test_features_keep_their_columns_but_for_those_that_do_not_vary(table):
    X, y = table
    X = X.assign(d=np.where(np.arange(90) < 60, 1.0, X["d"]), c=1.0 * (np.arange(90) == 80))
    data = Dataset.from_table(X, y, groups={"both": ["e", "d"]})
    assert data.names == ["both", "c", "b", "a"]
    kept = with_features(data, np.array([True, True, False, True]), np.arange(60))
    assert kept.names == ["both", "a"]
    for feature, column in zip(kept.features, "ea", strict=True):
        np.testing.assert_array_equal(kept.X[:, feature.columns], X[[column]])


def test_one_draw_of_five_folds_and_four_of_five_parts_are_the_default(table):
    found = refit(*table, learner="linear", methods="gcm")
    spelled = refit(
        *table, learner="linear", methods="gcm", folds=5, threshold=0.8, seeds=1, seed=0
    )
    assert found.to_dict() == spelled.to_dict()
    asked = ("folds", "threshold", "seeds", "seed", "loss", "n_features", "paper")
    values = (5, 0.8, 1, 0, "mean squared error", 5, False)
    assert {name: found.about[name] for name in asked} == dict(zip(asked, values, strict=True))
    assert (found.table["spread"] == 0).all()


def test_draws_made_one_by_one_and_joined_are_those_made_at_once(table):
    asked = {"learners": ["splines", "linear"], "methods": "loco,gcm", "paper": True}
    parts = [refit(*table, seed=seed, **asked) for seed in (2, 3)]
    one, once = joined(parts), refit(*table, seed=2, seeds=2, **asked)
    pd.testing.assert_frame_equal(one.table, once.table)
    pd.testing.assert_frame_equal(one.frequencies, once.frequencies)
    assert (one.about, one.alerts, str(one)) == (once.about, once.alerts, str(once))
    assert one.errors.index.tolist() == list(range(2 * 2 * 3 * 5))
    assert one.draws["seed"].tolist() == [2] * 6 + [3] * 6
    pairs = [("splines", "loco"), ("splines", "gcm"), ("splines", EVERYTHING)]
    names = list(zip(one.table["learner"], one.table["method"], strict=True))
    assert names == [*pairs, *(("linear", method) for _, method in pairs)]
    shown = [line for line in str(one).splitlines() if line.startswith("How often")]
    assert [line.split()[2] for line in shown] == ["splines", "linear"]


def test_what_was_found_comes_back_from_its_description(table):
    found = refit(*table, learners="linear", methods="loco,gcm", paper=True, seeds=2)
    found = replace(found, alerts=("Look twice.",))
    again = Refit.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.to_dict() == found.to_dict()
    assert str(again) == str(found)
    assert str(again).endswith("\n! Look twice.")


def test_all_features_are_selected_as_such_and_none_is_unstable(table):
    found = refit(*table, learners="linear", methods="gcm", paper=True)
    chosen = stability(*table, learner="linear", methods="gcm", paper=True).chosen["gcm"]
    by_method = dict(list(found.errors.groupby("method")))
    assert by_method["gcm"]["selected"].tolist() == chosen.sum(axis=1).tolist()
    assert by_method[EVERYTHING]["selected"].tolist() == [5] * 5
    draws = found.draws.set_index("method")
    assert draws.loc[EVERYTHING, "unstable"] == 0
    assert draws.loc["gcm", "unstable"] == 5 - sum(chosen.mean(axis=0) % 1 == 0)
    assert draws.loc["gcm", "selected"] == pytest.approx(chosen.sum() / 5)


def test_stable_in_half_of_the_draws_is_not_stable_in_most(table):
    found = refit(*table, learners="linear", methods="gcm", paper=True, folds=2)
    for share, kept in ((0.5, []), (0.51, list("edcba"))):
        often = replace(found, frequencies=found.frequencies.assign(stable=share))
        assert often.stable == {"linear": {"gcm": kept}}
        assert str(often).count("*") == 1 + len(kept)


def test_a_thousand_draws_and_more_are_heard_but_not_beyond_ten_thousand(table):
    with pytest.raises(InputError, match="seeds=10001"):
        refit(*table, seeds=10_001, learners=[])
    with pytest.raises(InputError, match="names none"):
        refit(*table, seeds=10_000, learners=[])


def test_learners_come_in_a_list_an_array_a_text_or_alone():
    for given in (["linear", "splines"], np.array(["linear", "splines"]), "linear, splines"):
        assert name_learners(given) == {"linear": Linear(), "splines": Splines()}
    assert name_learners(Linear(ridge=0.1)) == {"linear": Linear(ridge=0.1)}


def test_a_prefit_model_is_refused_even_among_others(table):
    model = LinearRegression().fit(*table)
    with pytest.raises(InputError, match="a prefit model is not fitted again"):
        refit(*table, learners={"fresh": "linear", "old": Prefit(model)}, methods="gcm")


def test_all_features_are_needed_and_splits_must_be_drawn_anew(table):
    with pytest.raises(InputError, match="neither features nor"):
        refit(*table, learner="linear", methods="gcm", features=["a"])
    fold = [(np.arange(60), np.arange(60, 90))]
    with pytest.raises(InputError, match="splits"):
        refit(*table, learner="linear", methods="gcm", splits=fold)


def test_what_is_unstable_was_called_wavering_and_is_read_so(table):
    found = refit(*table, learners="linear", methods="gcm", paper=True)
    stored = json.loads(json.dumps(found.to_dict()))
    for name in ("draws", "frequencies"):
        for row in stored[name]:
            row["wavering"] = row.pop("unstable")
    for again in (found, Refit.from_dict(stored)):
        for frame in (again.draws, again.frequencies):
            with pytest.warns(DeprecationWarning, match="now called 'unstable'"):
                assert frame["wavering"].tolist() == frame["unstable"].tolist()
