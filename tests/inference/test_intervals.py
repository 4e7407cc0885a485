"""Intervals: that they hold the truth, and never contradict their p-values."""

import numpy as np
import pandas as pd
import pytest

from covaria import assess
from covaria.inference.tests import agreeing, correlation, interval, mean_test

LINEAR = {"learner": "linear", "check": False}


def linear(seed, slope, n_rows=300):
    rng = np.random.default_rng([seed, 21])
    X = pd.DataFrame(rng.normal(size=(n_rows, 2)), columns=["a", "x"])
    X["x"] += 0.5 * X["a"]
    return X, X["a"].to_numpy() + slope * X["x"].to_numpy() + rng.normal(size=n_rows)


def share(slope):
    return slope**2 / ((1 + 0.5 * slope) ** 2 + slope**2 + 1)


@pytest.mark.parametrize("slope", [0.1, 0.5, 3.0])
def test_gcms_interval_holds_the_partial_correlation(slope):
    truth, held = slope / np.sqrt(1 + slope**2), []
    for seed in range(120):
        table = assess(*linear(seed, slope), methods="gcm", seed=seed, **LINEAR).table
        row = table.set_index("feature").loc["x"]
        assert -1 <= row["effect_low"] <= row["effect"] <= row["effect_high"] <= 1
        held.append(row["effect_low"] <= truth <= row["effect_high"])
    assert abs(np.mean(held) - 0.95) <= 3.5 * np.sqrt(0.95 * 0.05 / 120)


@pytest.mark.parametrize("slope", [0.2, 1.0])
def test_the_lower_bounds_of_pcm_and_loco_hold_the_share_of_variance(slope):
    held = {"pcm": [], "loco": []}
    for seed in range(60):
        table = assess(*linear(seed, slope), methods=["pcm", "loco"], seed=seed, **LINEAR).table
        rows = table[table["feature"] == "x"].set_index("method")
        for method in held:
            held[method].append(rows.loc[method, "effect_low"] <= share(slope))
            assert rows.loc[method, "effect_high"] <= 1
    assert min(np.mean(one) for one in held.values()) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 60)


def contradicts(table, confidence):
    """Return the rows whose interval and p-value say different things of zero."""
    ok = table[table["status"] == "ok"]
    found = ok["p_value"] < 1 - confidence
    for low, high in (("low", "high"), ("effect_low", "effect_high")):
        outside = (ok[low] > 0) | (ok[high] < 0)
        if (outside != found).any():
            return ok[outside != found]
    return ok.iloc[:0]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"repeats": 3},
        {"confidence": 0.8},
        {"alternative": "greater"},
        {"alternative": "less"},
        {"groups": {"both": ["a", "b"]}},
        {"groups": {"both": ["a", "b"]}, "alternative": "less"},
        {"groups": {"both": ["a", "b"]}, "alternative": "less", "repeats": 3},
        {"clusters": "cluster"},
    ],
    ids=str,
)
def test_an_interval_never_contradicts_its_p_value(options):
    for seed in range(15):
        rng = np.random.default_rng([seed, 22])
        X = pd.DataFrame(rng.normal(size=(90, 4)), columns=["a", "b", "c", "d"])
        y = 0.25 * X["a"] + 0.2 * X["c"] + rng.standard_t(4, size=90)
        X["cluster"] = rng.integers(12, size=90)
        if "clusters" not in options:
            X = X.drop(columns="cluster")
        methods = ["gcm", "pcm", "loco", "dropout"]
        table = assess(X, y.to_numpy(), methods=methods, seed=seed, **LINEAR, **options).table
        confidence = options.get("confidence", 0.95)
        assert not len(contradicts(table, confidence))
        assert (table["low"] <= table["estimate"]).all()
        assert (table["estimate"] <= table["high"]).all()
        assert (table["effect_low"] <= table["effect"] + 1e-12).all()
        assert (table["effect"] <= table["effect_high"] + 1e-12).all()


def test_with_repeats_the_interval_uses_the_standard_error_of_the_table():
    table = assess(*linear(0, 0.5), methods="gcm", repeats=4, **LINEAR).table
    assert np.allclose(table["high"] - table["estimate"], 1.959963984540054 * table["std_error"])


@pytest.mark.parametrize("clusters", [10, 15])
def test_few_clusters_hold_their_level(clusters):
    rng, n_tables = np.random.default_rng(3), 4000
    of = np.repeat(np.arange(clusters), 8)
    scores = rng.normal(size=(clusters, n_tables))[of] + rng.normal(size=(len(of), n_tables))
    rejected = (mean_test(scores, scale=np.ones(n_tables), clusters=of).p_value < 0.05).mean()
    assert abs(rejected - 0.05) < 4 * np.sqrt(0.05 * 0.95 / n_tables)


@pytest.mark.parametrize("share", [0.25, 0.4, 0.6])
def test_a_cluster_of_many_rows_does_not_decide_alone(share):
    # With a degree of freedom for each of the 20 they were .10, .27 and .54.
    largest = int(400 * share)
    of = np.r_[np.zeros(largest, int), 1 + np.arange(400 - largest) % 19]
    rejected, n_tables = 0, 60
    for seed in range(n_tables):
        rng = np.random.default_rng(seed)
        x, y = (rng.normal(size=20)[of] + rng.normal(size=400) for _ in range(2))
        result = assess(x[:, None], y, methods="gcm", seed=seed, clusters=of, **LINEAR)
        rejected += result.table["p_value"][0] < 0.05
    assert rejected / n_tables < 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / n_tables)


def test_several_columns_and_few_clusters_follow_hotelling():
    rng, rejected, n_tables = np.random.default_rng(4), 0, 400
    of = np.repeat(np.arange(20), 6)
    for _ in range(n_tables):
        products = rng.normal(size=(20, 3))[of] + rng.normal(size=(120, 3))
        sums = np.array(
            [(products - products.mean(axis=0))[of == k].sum(axis=0) for k in range(20)]
        )
        sigma = 20 / 19 * sums.T @ sums / 120**2
        scores = products @ np.linalg.solve(sigma, products.mean(axis=0))
        test = mean_test(scores[:, None], scale=np.ones(1), degrees=np.array([3]), clusters=of)
        rejected += test.p_value[0] < 0.05
    assert abs(rejected / n_tables - 0.05) < 3.5 * np.sqrt(0.05 * 0.95 / n_tables)


def test_fewer_than_ten_clusters_are_said():
    X, y = linear(5, 0.5)
    result = assess(X, y, methods="gcm", clusters=np.arange(300) % 7, splits=3, **LINEAR)
    assert any("only 7 clusters" in alert for alert in result.alerts)


def test_a_cluster_of_many_rows_is_said():
    X, y = linear(5, 0.5)
    clusters = np.r_[np.zeros(120, int), 1 + np.arange(180) % 20]
    result = assess(X, y, methods="gcm", clusters=clusters, **LINEAR)
    assert any("One cluster has 40% of the rows" in alert for alert in result.alerts)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-55, 1e55])
def test_the_verdict_does_not_depend_on_the_unit_of_y(size):
    X, y = linear(6, 0.1, n_rows=200)
    plain, scaled = (assess(X, k * y, **LINEAR).table["p_value"] for k in (1.0, size))
    assert np.allclose(plain, scaled, rtol=1e-6)


def test_the_correlation_of_two_scores_is_that_of_their_means():
    rng = np.random.default_rng(7)
    a = rng.normal(size=500)
    b = a + rng.normal(size=500)
    assert correlation(a, 1e60 * b) == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert correlation(a, np.zeros(500)) == 0.0


def test_an_end_next_to_zero_is_moved_to_agree_with_the_p_value():
    one = np.ones(1)
    low, high = agreeing(-0.1 * one, 2 * one, one, 0.04 * one, "two-sided", 0.95)
    assert 0 < low[0] < 0.1
    assert high[0] == 2
    low, _ = agreeing(0.1 * one, 2 * one, one, 0.06 * one, "two-sided", 0.95)
    assert low[0] == 0
    _, high = agreeing(-2 * one, -0.1 * one, -one, 0.06 * one, "two-sided", 0.95)
    assert high[0] == 0
    low, high = agreeing(2 * one, 3 * one, one, 0.01 * one, "two-sided", 0.95)
    assert (low[0], high[0]) == (1, 3)


def test_a_one_sided_interval_has_a_bound_for_its_other_end():
    bounds = (-5 * np.ones(1), 5 * np.ones(1))
    low, high = interval(np.ones(1), np.ones(1), "greater", 0.95, bounds=bounds)
    assert (low[0], high[0]) == pytest.approx((1 - 1.6448536, 5))
    low, high = interval(np.ones(1), np.ones(1), "less", 0.95, bounds=bounds)
    assert (low[0], high[0]) == pytest.approx((-5, 1 + 1.6448536))


@pytest.mark.parametrize("seed", range(12))
def test_the_interval_of_a_slope_holds_0_just_where_gcm_finds_nothing(seed):
    # A rare flag's p-value is permuted; its slope's interval, which is not, left 0 out.
    rng = np.random.default_rng([seed, 9])
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    X["flag"] = rng.random(60) < 0.1
    y = X["a"] + rng.standard_t(3, size=60)
    table = assess(X, y, learner="linear", methods="gcm", effect="plm", check=False).table
    leaves_out = (table["effect_low"] > 0) | (table["effect_high"] < 0)
    assert leaves_out.tolist() == (table["p_value"] < 0.05).tolist()
    assert table["effect"].between(table["effect_low"], table["effect_high"]).all()


def test_no_correlation_of_several_columns_is_above_1():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    y = 3 * X["a"] + 3 * X["b"] + 0.1 * rng.normal(size=40)
    groups = {"both": ["a", "b"]}
    row = assess(X, y, learner="linear", methods="gcm", groups=groups, check=False).table.iloc[0]
    assert row["feature"] == "both"
    assert 0 < row["effect_low"] < row["effect"] <= row["effect_high"] <= 1
