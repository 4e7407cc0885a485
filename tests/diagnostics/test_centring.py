"""Learners that do not predict means are told, and others are not."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import HuberRegressor, LinearRegression, LogisticRegression
from sklearn.model_selection import TimeSeriesSplit

from covaria import assess
from covaria.assessment import prepare
from covaria.diagnostics.centring import POLICY, Centring, _lesser, _with_pairs, centring
from covaria.nuisance.regressions import fit_residuals
from covaria.report.alerts import _unseen
from covaria.results.cautions import against_gcm
from covaria.tables.tidy import Tidy

QUANTILE = GradientBoostingRegressor(loss="quantile", alpha=0.9, n_estimators=20)


def useless(n_rows=200, seed=0, noise=None):
    """Return a table in which only x0 matters, and the noise is normal unless given."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    return X, X[:, 0] + (noise or np.random.Generator.normal)(rng, size=n_rows)


def rare(n_rows=400, seed=0):
    """Return a table and classes of which one is rare."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    return X, np.where(X[:, 0] + rng.logistic(size=n_rows) > 2.5, "sick", "well")


def off(X, y, **options):
    """Return the regressions that are off."""
    job = prepare(X, y, methods=["gcm"], **options)
    return {key for key, found in centring(fit_residuals(job.plan(0))).items() if found.is_off}


# --- what is told -------------------------------------------------------------------------------


def test_a_quantile_in_both_regressions_rejects_nulls_and_is_told():
    result = assess(*useless(), learner=QUANTILE, methods=["gcm"], splits=3)
    assert (result.table["p_value"][1:] < 0.01).all()  # these features are useless
    assert result.alerts[0].startswith("The learner does not predict the mean of 'y', 'x0', 'x1'")
    assert "Both regressions miss the mean for 'x0', 'x1', 'x2', 'x3'" in result.alerts[1]
    assert "these p-values mean nothing" in result.alerts[1]
    assert (result.quality["kind"] == "not_a_mean").all()
    assert result.quality["warning"].str.startswith("The learner does not predict the mean").all()


def test_the_shift_of_gcm_is_the_product_of_both_means():
    result = assess(*useless(1000), learner=QUANTILE, methods=["gcm"], splits=3)
    sizes = result.quality.set_index(["regression", "feature"])["mean_shift"]
    shift = sizes["y given rest", "x3"] * sizes["x given rest", "x3"] * np.sqrt(1000)
    left = result.residuals
    product = left["x_given_rest"][:, 3] * left["y_given_rest"][:, 3]
    spread = left["x_given_rest"][:, 3].std() * left["y_given_rest"][:, 3].std()
    assert shift == pytest.approx(np.sqrt(1000) * product.mean() / spread, abs=3)
    assert shift > 20


def test_class_weights_are_told_of_the_target_only():
    result = assess(*rare(), learner=LogisticRegression(class_weight="balanced"), methods=["gcm"])
    assert result.alerts[0].startswith("The learner does not predict the mean of 'y': ")
    assert "without quantiles or class weights" in result.alerts[0]
    assert not any("Both regressions" in alert for alert in result.alerts)
    rows = result.quality.set_index("regression")["kind"] == "not_a_mean"
    assert rows["y given rest"].all()
    assert not rows["x given rest"].any()


def test_a_learner_off_for_y_alone_leaves_gcm_its_level():
    rejected = [
        assess(
            *rare(200, seed),
            learner=LogisticRegression(class_weight="balanced"),
            methods=["gcm"],
            check=False,
        ).table["p_value"][1:]
        < 0.05
        for seed in range(25)
    ]
    assert np.mean(rejected) < 0.14  # of 75


def test_huber_is_told_where_noise_is_lopsided_and_rows_are_many():
    X, y = useless(2000, noise=np.random.Generator.standard_exponential)
    assert {("y_given_rest", j) for j in (1, 2, 3)} <= off(X, y, learner=HuberRegressor())
    assert off(*useless(2000), learner=HuberRegressor()) == set()


def medians(n_rows=300, seed=0):
    """Return a table with lopsided noise in x and y, and what is left of medians of both."""
    rng = np.random.default_rng([81, seed])
    X = pd.DataFrame(rng.normal(size=(n_rows, 2)), columns=["a", "b"])
    X["x"] = np.exp(0.5 * X["a"] + 0.5 * rng.normal(size=n_rows))
    return X, X["a"] + rng.exponential(size=n_rows)


def test_two_regressions_that_are_off_a_little_are_told_together():
    # Neither is off surely; together they shift GCM by half a standard error and more.
    learner = GradientBoostingRegressor(loss="absolute_error", n_estimators=40, max_depth=2)
    told = [off(*medians(seed=seed), learner=learner, features=["x"]) for seed in range(3)]
    both = {("y_given_rest", 0), ("x_given_rest", 0)}
    assert all(both <= some for some in told)
    assert sum(len(off(*medians(seed=s), learner="boosting")) for s in range(3)) == 0


def test_two_regressions_that_are_off_by_chance_in_one_hold_out_are_not_told_together():
    found = {
        key: Centring(0.15, chance=0.004) for key in (("x_given_rest", 0), ("y_given_rest", 0))
    }
    assert all(one.is_off for one in _with_pairs(found, 300, 5).values())
    assert not any(one.is_off for one in _with_pairs(found, 300, 1).values())
    assert not any(one.is_off for one in _with_pairs(found, 100, 5).values())


def test_three_classes_are_looked_at_one_by_one():
    X, y = useless(600)
    y = np.array(["a", "b", "c"])[np.digitize(y, [1, 3])]
    weights = LogisticRegression(class_weight="balanced")
    assert len(off(X, y, learner=weights)) == 4
    assert off(X, y, learner=LogisticRegression()) == set()


# --- what is not --------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["linear", "boosting", "auto"])
@pytest.mark.parametrize("splits", [5, 0.33])
def test_learners_of_means_raise_no_alarm(learner, splits):
    for seed in range(3):
        X, y = useless(150, seed, noise=np.random.Generator.standard_exponential)
        assert off(np.exp(X), y**2, learner=learner, splits=splits) == set()
        assert off(*rare(150, seed), learner=learner, splits=splits) == set()


@pytest.mark.parametrize("learner", ["linear", "boosting"])
def test_a_drift_that_no_learner_could_foresee_is_not_its_fault(learner):
    X, y = useless(600)
    y = y + 4 * np.arange(600) / 600
    assert off(X, y, learner=learner, splits=TimeSeriesSplit(5)) == set()
    assert ("x_given_rest", 1) in off(X, y, learner=QUANTILE, splits=TimeSeriesSplit(5))


def test_what_lies_between_no_drift_and_all_of_it_counts_as_nothing():
    mean, drift = np.array([1.0, 0.5, -1.0, 3.0]), np.array([1.0, 1.0, 0.0, 1.0])
    assert _lesser(mean, drift).tolist() == [0.0, 0.0, -1.0, 2.0]


def test_clusters_that_differ_raise_no_alarm():
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(12), 50)
    X = rng.normal(size=(600, 3))
    y = X[:, 0] + 2 * rng.normal(size=12)[clusters] + rng.normal(size=600)
    assert off(X, y, learner="linear", clusters=clusters, splits=0.4) == set()


def test_weights_count():
    X, y = useless(400)
    weights = np.where(y > 0, 3.0, 1.0)
    assert off(X, y, learner=LinearRegression(), sample_weight=weights) == set()
    assert off(X, y, learner=QUANTILE, sample_weight=weights, splits=2)


def test_a_perfect_fit_is_not_off_by_rounding():
    X, _ = useless()
    assert off(X, 1e6 + X[:, 0], learner="linear") == set()


def test_in_sample_nothing_is_said():
    assert off(*useless(), learner="linear", splits="none") == set()
    result = assess(*useless(), learner=QUANTILE, methods=["gcm"], splits="none")
    assert not (result.quality["kind"] == "not_a_mean").any()
    assert POLICY.far == 0.1


# --- who did not run ----------------------------------------------------------------------------


def table(**status):
    """Return a table in which LOCO finds x, and the others do or could not say."""
    rows = [
        {"method": method, "feature": "x", "selected": said == "found", "status": "ok"}
        | ({"status": said} if said not in ("found", "ok") else {})
        for method, said in {"loco": "found", **status}.items()
    ]
    return Tidy({name: [row[name] for row in rows] for name in rows[0]})


def test_loco_is_held_against_gcm_only_where_gcm_ran():
    assert "LOCO finds 'x' and GCM does not" in next(iter(against_gcm(table(gcm="ok")))).text
    assert list(against_gcm(table(gcm="failed: it broke"))) == []
    assert list(against_gcm(table())) == []
    assert list(against_gcm(table(gcm="found"))) == []


def test_pcm_has_a_say_only_where_it_ran():
    assert "Only LOCO finds" in next(iter(against_gcm(table(gcm="ok", pcm="ok")))).text
    assert "LOCO and PCM find" in next(iter(against_gcm(table(gcm="ok", pcm="found")))).text
    assert (
        "add it to the methods" in next(iter(against_gcm(table(gcm="ok", pcm="failed: no")))).text
    )


def test_the_page_holds_no_gain_against_a_gcm_that_failed(small_data):
    from dataclasses import replace

    result = assess(*small_data, learner="linear", methods=["gcm", "dropout"])
    rows, is_gcm = result.table, result.table["method"] == "gcm"
    unseen = rows.assign(selected=rows["selected"] & ~is_gcm)
    assert list(_unseen(replace(result, table=unseen)))
    failed = unseen.assign(status=unseen["status"].where(~is_gcm, "failed: it broke"))
    assert list(_unseen(replace(result, table=failed))) == []
    assert list(_unseen(result.only("dropout"))) == []
