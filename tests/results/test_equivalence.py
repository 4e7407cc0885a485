"""Bounds on shares of variance: features that are proven negligible, and what others are worth."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import covaria
from covaria.errors import InputError


def table_of(n_rows, beta, seed, even=0.0):
    """Return a table in which x explains β² of Var(Y) = β² + β + 2.25 given a, and b nothing."""
    rng = np.random.default_rng(seed)
    a, b, noise, left = rng.standard_normal((4, n_rows))
    x = 0.5 * a + left
    y = beta * x + even * (left**2 - 1) + a + noise
    return pd.DataFrame({"a": a, "b": b, "x": x}), y


def by_feature(result, **options):
    return covaria.negligible(result, **options).set_index("feature")


@pytest.fixture(scope="module")
def result():
    return covaria.assess(*table_of(1000, 0.5, 0), learner="linear", methods=["gcm", "loco"])


def test_a_useless_feature_is_negligible_and_a_useful_one_matters(result):
    found = by_feature(result, margin=0.02)
    assert found["verdict"].to_dict() == {"a": "matters", "b": "negligible", "x": "matters"}
    assert list(found.columns) == [
        "share", "at_least", "at_most", "p_value", "p_adjusted", "verdict",
    ]  # fmt: skip


def test_the_bounds_are_those_of_the_formula(result):
    found = by_feature(result, correction="none").loc["x"]
    left = result.residuals
    x, y = left["x_given_rest"][:, 2], left["y_given_rest"][:, 2]
    h = y - left["y_given_all"]
    sizes = []
    for f in (x, h):
        size = np.mean(f**2)
        theta = np.mean(f * y) / np.sqrt(size)
        moved = f * y / np.sqrt(size) - theta * f**2 / size / 2
        sizes.append(
            (abs(theta) + norm.ppf(0.95) * moved.std() / np.sqrt(len(y))) ** 2
            / result.about.variance
        )
    assert found["at_most"] == pytest.approx(max(sizes), rel=1e-9)
    theta = np.mean(x * y) / np.sqrt(np.mean(x**2))
    moved = x * y / np.sqrt(np.mean(x**2)) - theta * x**2 / np.mean(x**2) / 2
    least = (abs(theta) - norm.ppf(0.975) * moved.std() / np.sqrt(len(y))) ** 2
    assert found["at_least"] == pytest.approx(least / result.about.variance, rel=1e-9)


def test_the_share_lies_between_its_bounds_and_near_the_truth(result):
    found = by_feature(result)
    assert (found["at_least"] <= found["share"]).all()
    assert (found["share"] <= found["at_most"]).all()
    truth = 0.25 / (0.25 + 0.5 + 2.0 + 0.25 * 0.25)
    assert found.loc["x", "at_least"] < truth < found.loc["x", "at_most"]


def test_what_is_negligible_lies_below_the_margin_with_its_upper_bound(result):
    for margin in (0.001, 0.01, 0.3):
        found = by_feature(result, margin=margin)
        assert (found.loc[found["verdict"] == "negligible", "at_most"] < margin).all()
    assert (by_feature(result, margin=0.5)["verdict"] == "negligible").all()


def test_the_result_keeps_its_own_verdicts(result):
    before = result.table.copy()
    covaria.negligible(result, margin=0.5)
    assert result.table.equals(before)


def test_with_few_rows_nothing_is_proven():
    few = covaria.assess(*table_of(100, 0.0, 1), learner="linear", methods=["gcm"])
    found = by_feature(few)
    assert found.loc["b", "verdict"] == "no evidence"
    assert found.loc["b", "at_most"] > 0.01


def test_an_even_effect_is_not_called_negligible_where_a_model_shows_it():
    X, y = table_of(1500, 0.0, 2, even=0.4)
    line = covaria.assess(X, y, learner="linear", methods=["gcm"])
    assert by_feature(line).loc["x", "verdict"] == "negligible"  # of lines it is true
    curves = covaria.assess(X, y, learner="splines", methods=["gcm", "pcm", "gcm+pcm"])
    found = by_feature(curves)
    assert found.loc["x", "verdict"] == "matters"
    assert found.loc["x", "at_least"] > 0.01
    assert found.loc["b", "at_least"] == 0


def test_weights_count_as_copies_of_rows_do_in_the_share():
    X, y = table_of(600, 0.3, 3)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 600)
    plain, same, other = (
        by_feature(
            covaria.assess(X, y, learner="linear", methods=["gcm"], sample_weight=w, check=False)
        )
        for w in (None, np.full(600, 7.0), weights)
    )
    assert np.allclose(plain["at_most"], same["at_most"])
    assert not np.allclose(plain["at_most"], other["at_most"])


def test_clusters_widen_the_bounds():
    X, y = table_of(300, 0.3, 4)
    twice, y2 = pd.concat([X, X], ignore_index=True), np.tile(y, 2)
    reach = []
    for clusters in (np.arange(600), np.tile(np.arange(300), 2)):
        result = covaria.assess(twice, y2, learner="linear", methods=["gcm"], clusters=clusters)
        found = by_feature(result)
        reach.append(np.sqrt(found.loc["b", "at_most"]) - np.sqrt(found.loc["b", "share"]))
    assert reach[1] == pytest.approx(np.sqrt(2) * reach[0], rel=0.1)  # every row counts once


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_have_bounds_too(classes):
    X, y = table_of(1200, 1.0, 5)
    y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes)).astype(str)
    names = ["gcm", "pcm", "loco"]
    found = by_feature(covaria.assess(X, y, learner="linear", methods=names), margin=0.03)
    assert found.loc["b", "verdict"] == "negligible"
    assert found.loc["x", "at_least"] > 0.01
    assert found["at_most"].max() <= 1


def test_a_group_is_judged_by_all_its_columns():
    X, y = table_of(2000, 0.5, 6)
    X["c"] = np.random.default_rng(9).standard_normal(2000)
    groups = {"both": ["x", "b"], "noise": ["c"]}
    found = by_feature(
        covaria.assess(X, y, learner="linear", methods=["gcm"], groups=groups), margin=0.02
    )
    assert found.loc["both", "verdict"] == "matters"
    assert found.loc["both", "at_least"] > 0.02
    assert found.loc["noise", "verdict"] == "negligible"


def test_of_a_constant_or_redundant_feature_nothing_is_proven():
    X, y = table_of(400, 0.5, 7)
    X = X.assign(same=1.0, copy=X["x"])
    result = covaria.assess(X, y, learner="linear", methods=["gcm", "loco"], check=False)
    found = by_feature(result, margin=0.4)
    assert found.loc["same", "verdict"] == "no evidence"
    assert found.loc["same", "at_most"] == 1
    assert np.isfinite(found.drop(columns="verdict").to_numpy(float)).all()


def test_a_file_gives_the_same_bounds(result, tmp_path):
    result.to_json(tmp_path / "result.json")
    again = covaria.Result.from_json(tmp_path / "result.json")
    assert covaria.negligible(again).equals(covaria.negligible(result))


def test_odd_questions_get_a_sentence(result):
    with pytest.raises(InputError, match="margin=2 must lie between 0 and 1"):
        covaria.negligible(result, margin=2)
    with pytest.raises(InputError, match="takes a result"):
        covaria.negligible("result")
    X, y = table_of(100, 0.5, 8)
    inside = covaria.assess(X, y, learner="linear", methods=["gcm"], splits="none")
    with pytest.raises(InputError, match="In sample"):
        covaria.negligible(inside)
    other = covaria.assess(X, y, learner="linear", methods=["dropout"])
    with pytest.raises(InputError, match="gcm, pcm or loco"):
        covaria.negligible(other)


@pytest.mark.parametrize("beta", [0.0, 0.2])
def test_bounds_hold_as_often_as_they_say(beta):
    """Of 30 runs at confidence .9 each bound fails in at most 9 (p < .001 were it .1)."""
    truth = beta**2 / (1.25 * beta**2 + beta + 2)
    low, high = 0, 0
    for seed in range(30):
        X, y = table_of(300, beta, [seed, 11])
        result = covaria.assess(X, y, learner="linear", methods=["gcm", "loco"], check=False)
        found = by_feature(result, confidence=0.9).loc["x"]
        low += found["at_least"] > truth
        high += found["at_most"] < truth
    assert low <= 9
    assert high <= 9


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.0, 0.1, 0.2, 0.4])
def test_bounds_hold_at_500_rows(beta):
    """Of 1,000 runs a bound of confidence .95 fails in at most 7%."""
    truth = beta**2 / (1.25 * beta**2 + beta + 2)
    failed = np.zeros(2)
    for seed in range(1000):
        X, y = table_of(500, beta, [seed, 12])
        result = covaria.assess(X, y, learner="linear", methods=["gcm", "loco"], check=False)
        found = by_feature(result).loc["x"]
        failed += [found["at_least"] > truth, found["at_most"] < truth]
    assert (failed <= 70).all()


def test_with_a_margin_the_table_says_negligible_of_what_no_test_finds():
    X, y = covaria.draw("linear", n_rows=1000, seed=0)
    usual, told = (covaria.assess(X, y, learner="linear", margin=m) for m in (None, 0.05))
    bounds = covaria.negligible(usual, margin=0.05)
    small = set(bounds.loc[bounds["verdict"] == "negligible", "feature"])
    both = told.table[told.table["method"] == "gcm+pcm"].set_index("feature")["verdict"]
    expected = dict.fromkeys(small - set(usual.selected["gcm+pcm"]), "negligible")
    assert expected
    assert both[both == "negligible"].to_dict() == expected
    assert told.selected == usual.selected
    pd.testing.assert_frame_equal(
        told.table.drop(columns="verdict"), usual.table.drop(columns="verdict")
    )
    assert "negligible" in str(told)


def test_a_margin_is_of_one_target_of_numbers_or_classes_and_of_rows_held_out():
    X, y = covaria.draw("linear", n_rows=100, seed=0)
    for asked in ({"event": y > 0}, {"splits": "none", "methods": "gcm"}):
        with pytest.raises(covaria.InputError, match="margin"):
            covaria.assess(X, y - y.min(), learner="linear", margin=0.01, **asked)
