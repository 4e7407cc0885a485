"""Efficiency from scores: estimates, intervals, flags and advice."""

import numpy as np
import pandas as pd
import pytest

import covaria
from covaria import InputError, Model, assess
from covaria.efficiencies.empirical import (
    FeatureResiduals,
    assumption_a,
    interval,
    is_heavy,
    log_variability_influence,
    signal,
)

BOTH = ["gcm", "loco"]


def linear_model(noise=1.0):
    covariance = np.eye(3)
    covariance[0, 1] = covariance[1, 0] = 0.5
    return Model([1.0, 0.5, 0.0], noise=noise, covariance=covariance)


@pytest.fixture(scope="module")
def result():
    X, y = linear_model().draw(4000, seed=1)
    return assess(X, y, learner="linear", methods=["gcm", "loco", "dropout"])


@pytest.fixture(scope="module")
def table(result):
    return covaria.efficiency(result)


def test_it_has_a_row_for_every_feature_and_pair(table):
    assert len(table) == 3 * 3
    promised = [
        "feature",
        "method",
        "rival",
        "are",
        "low",
        "high",
        "assumption_a",
        "flag",
        "advice",
    ]
    assert [name for name in table.columns if name in promised] == promised
    pairs = table[["method", "rival"]].drop_duplicates().to_numpy().tolist()
    assert pairs == [["gcm", "loco"], ["gcm", "dropout"], ["loco", "dropout"]]


def test_it_is_what_the_linear_theorem_says(table):
    own = table[(table["method"] == "gcm") & (table["rival"] == "loco")].set_index("feature")
    theory = covaria.theory.table(linear_model()).set_index("feature")
    for name in ("x1", "x2"):
        assert own.loc[name, "are"] == pytest.approx(theory.loc[name, "are_gcm_loco"], rel=0.1)
        assert own.loc[name, "assumption_a"] == pytest.approx(theory.loc[name, "A_ratio"], rel=0.1)
        assert own.loc[name, "limit_noisy"] == pytest.approx(4.0, rel=0.02)
    assert own["sigma"].iloc[0] == pytest.approx(1.0, rel=0.05)


def test_it_is_not_defined_for_a_useless_feature(table):
    useless = table[table["feature"] == "x3"]
    assert useless["are"].isna().all()
    assert useless["advice"].str.startswith("Neither").all()


def test_the_debiased_efficiency_is_the_ratio_of_squared_z_scores_less_one(result, table):
    lines = result.table.set_index(["method", "feature"])["statistic"]
    gcm, loco = lines["gcm", "x1"], lines["loco", "x1"]
    assert table["are"].iloc[0] == pytest.approx((gcm**2 - 1) / (loco**2 - 1))


def test_the_advice_is_in_words(table):
    first = table.iloc[0]
    assert first["advice"].startswith("Trust GCM: LOCO needs 2.")
    assert first["omnibus_p"] < 1e-10


def test_gcm_is_told_to_be_blind_to_an_even_effect():
    X, y = Model([lambda x: x**2, lambda x: x], noise=0.5).draw(1000, seed=0)
    found = covaria.efficiency(assess(X, y, learner="splines", methods=BOTH))
    assert found["advice"].iloc[0].startswith("GCM is blind here")
    assert found["are"].iloc[0] < 0.2


def test_the_influence_is_that_of_a_changed_weight():
    rng = np.random.default_rng(0)
    scores = rng.gamma(2.0, size=300)
    influence = log_variability_influence(scores)
    weights = np.full(300, 1 / 300)
    for row in (0, 17):
        tilted = weights * (1 - 1e-6)
        tilted[row] += 1e-6

        def log_variability(w):
            mean = w @ scores
            return np.log((w @ scores**2 - mean**2) / mean**2)

        slope = (log_variability(tilted) - log_variability(weights)) / 1e-6
        assert influence[row] == pytest.approx(slope, rel=1e-4)


def test_the_bootstrap_agrees_with_the_delta_method(result):
    delta = covaria.efficiency(result).iloc[0]
    drawn = covaria.efficiency(result, bootstrap=2000, seed=1).iloc[0]
    assert drawn["are"] == delta["are"]
    assert drawn[["low", "high"]].tolist() == pytest.approx(
        delta[["low", "high"]].tolist(), rel=0.05
    )
    once, again = (covaria.efficiency(result, bootstrap=50, seed=1).iloc[0] for _ in range(2))
    assert again["low"] == once["low"]


def coverage(runs, n_rows):
    """Return how often the intervals of the ARE and of (A) cover the theory, over two features."""
    model = linear_model()
    theory = covaria.theory.table(model).set_index("feature")
    hits = {"are": 0, "assumption_a": 0}
    for seed in range(runs):
        X, y = model.draw(n_rows, seed=seed)
        found = covaria.efficiency(
            assess(X, y, learner="linear", methods=BOTH, seed=seed, check=False)
        ).set_index("feature")
        for name in ("x1", "x2"):
            row = found.loc[name]
            hits["are"] += row["low"] <= theory.loc[name, "are_gcm_loco"] <= row["high"]
            bounds = row["assumption_a_low"], row["assumption_a_high"]
            hits["assumption_a"] += bounds[0] <= theory.loc[name, "A_ratio"] <= bounds[1]
    return {name: hit / (2 * runs) for name, hit in hits.items()}


def test_intervals_cover_the_theory():
    found = coverage(40, 4000)
    # 80 intervals: three standard errors of .95 are .07.
    assert 0.88 <= found["are"] <= 1
    assert 0.88 <= found["assumption_a"] <= 1


@pytest.mark.slow
def test_intervals_cover_the_theory_at_twenty_thousand_rows():
    found = coverage(400, 20_000)
    assert 0.93 <= found["are"] <= 0.97
    assert 0.93 <= found["assumption_a"] <= 0.98


CURVES = {
    "x": (lambda x: x, False),
    "sin": (np.sin, False),
    "x³": (lambda x: x**3, True),
    "e^{x/3}": (lambda x: np.exp(x / 3) - np.exp(1 / 18), True),
}


@pytest.mark.parametrize("name", CURVES)
def test_heavy_tails_are_flagged_in_nine_of_ten_runs(name):
    curve, heavy = CURVES[name]
    raised = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        x, noise = rng.standard_normal(1000), 0.1 * rng.standard_normal(1000)
        gain = (curve(x) + noise) ** 2 - noise**2
        raised += is_heavy(gain)
    assert raised > 90 if heavy else raised < 5


def test_the_flag_is_in_the_table_and_in_the_advice():
    X, y = Model([lambda x: x**3, lambda x: x], noise=0.1).draw(1000, seed=0)
    row = covaria.efficiency(assess(X, y, learner="splines(df=8)", methods=BOTH)).iloc[0]
    assert row["flag"] == "heavy tails"
    assert "rough" in row["advice"]


def test_a_gain_below_zero_is_no_signal():
    scores = np.random.default_rng(0).normal(-1.0, 1.0, 200)
    assert signal(scores, two_sided=False) == 0
    assert signal(scores, two_sided=True) > 100
    assert signal(np.zeros(10), two_sided=True) == 0


def test_assumption_a_is_its_formula():
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, 2000))
    effect = np.sin(x)
    found = assumption_a(FeatureResiduals(x, effect + noise, noise))
    m = {k: np.mean(v) for k, v in {"xf": x * effect, "xx": x**2, "ff": effect**2}.items()}
    squared = m["xf"] ** 2 / (m["xx"] * m["ff"])
    above = np.mean(effect**4) + 4 * np.mean(noise**2) * m["ff"]
    below = np.mean((x * effect) ** 2) * m["ff"] / m["xx"] + np.mean(noise**2) * m["ff"]
    assert found.ratio.value == pytest.approx(squared * above / below)
    assert found.correlation == pytest.approx(squared)
    assert found.ratio.low < found.ratio.value < found.ratio.high


def test_groups_and_classes_have_an_efficiency_and_no_assumption():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 4)), columns=list("abcd"))
    y = X["a"] + X["b"] + rng.normal(size=400)
    found = covaria.efficiency(
        assess(X, y, learner="linear", methods=BOTH, groups={"ab": ["a", "b"]})
    )
    row = found[found["feature"] == "ab"].iloc[0]
    assert np.isfinite(row["are"])
    assert np.isnan(row["assumption_a"])
    classes = covaria.efficiency(assess(X, y > 0, learner="linear", methods=BOTH))
    assert classes["assumption_a"].isna().all()


def test_what_cannot_be_compared_gets_one_sentence(result):
    with pytest.raises(InputError, match="two tests"):
        covaria.efficiency(result.only("gcm"))
    with pytest.raises(InputError, match="bootstrap"):
        covaria.efficiency(result, bootstrap=-1)
    with pytest.raises(InputError, match="confidence"):
        covaria.efficiency(result, confidence=2)


def test_an_interval_of_a_constant_influence_is_a_point():
    assert interval(2.0, np.zeros(10), confidence=0.95) == (2.0, 2.0)


@pytest.mark.filterwarnings("error")
def test_a_balanced_flag_has_no_limit_for_little_noise():
    x = np.tile([-1.0, 1.0], 10)
    noise = np.tile([0.5, 0.5, -0.5, -0.5], 5)
    found = assumption_a(FeatureResiduals(x, 0.5 * x + noise, noise))
    assert np.isfinite(found.ratio.value)
    assert np.isnan(found.quiet)
