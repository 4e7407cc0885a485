"""What regressions left undone, and when an alarm is raised."""

from dataclasses import replace

import numpy as np
import pytest

from covaria import Result, assess, draw
from covaria.assessment import prepare
from covaria.diagnostics.quality import (
    _take_few,
    fold_ratio,
    learning_curve_gap,
    missed_in_common,
    outlier_share,
    quality_table,
)
from covaria.diagnostics.residual_checks import ResidualCheck, check_residuals
from covaria.nuisance.halves import halves_of
from covaria.nuisance.regressions import fit_residuals


def confounded(n_rows=500, seed=0, waves=1.0):
    """Return a table in which x0 and y follow the same curve of x1, and x0 says nothing more."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1, 1, n_rows)
    curve = np.sin(2 * np.pi * waves * z)
    X = np.column_stack([curve + 0.2 * rng.normal(size=n_rows), z, rng.normal(size=(n_rows, 3))])
    return X, curve + rng.normal(size=n_rows)


def test_a_line_leaves_a_curve_behind_and_that_is_found():
    plan = prepare(*confounded(), learner="linear", methods=["gcm"]).plan(0)
    left = check_residuals(plan, fit_residuals(plan))
    assert left.x[0] > 0.5
    assert left.x_p[0] < 1e-6
    assert left.bias[0] > 3
    assert (left.x[2:] < 0.02).all()


def test_the_bias_is_what_gcm_is_off_by():
    X, y = confounded(4000)
    plan = prepare(X, y, learner="linear", methods=["gcm"]).plan(0)
    left = check_residuals(plan, fit_residuals(plan))
    statistic = assess(X, y, learner="linear", methods=["gcm"]).table["statistic"][0]
    assert left.bias[0] == pytest.approx(statistic, rel=0.25)  # without its shift it is near 0


def test_an_unfinished_regression_raises_an_alarm_and_auto_does_not():
    X, y = confounded()
    poor = assess(X, y, learner="linear", methods=["gcm"])
    warned = poor.quality.set_index(["regression", "feature"])["warning"]
    assert "poor" in warned["x given rest", "x0"]
    assert any("too small" in alert for alert in poor.alerts)
    good = assess(X, y, methods=["gcm"])
    assert not good.quality["warning"].str.contains("poor").any()


def test_a_determined_feature_is_said_to_be_determined():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[:, 2] = X[:, 0] + 0.01 * X[:, 2]
    warned = assess(X, X[:, 1], learner="linear", methods=["gcm"]).quality["warning"]
    assert warned.str.contains("% determined by the others").sum() == 2


def test_the_check_can_be_left_out():
    quality = assess(*confounded(200), learner="linear", methods=["gcm"], check=False).quality
    assert quality["residual_r2"].isna().all()


def test_warned_are_rare_where_all_is_well():
    raised = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(250, 4))
        y = X[:, 0] + rng.normal(size=250)
        raised += (assess(X, y, learner="linear", methods=["gcm"]).quality["warning"] != "").sum()
    assert raised <= 4  # of 80


def test_folds_of_equal_quality_are_even_and_others_are_not():
    X, y = confounded()
    plan = prepare(X, y, learner="linear", methods=["gcm"]).plan(0)
    residuals = fit_residuals(plan)
    assert fold_ratio(residuals, 2) < 1.7
    residuals.x_given_rest[residuals.fold == 1, 2] *= 3
    assert fold_ratio(residuals, 2) > 2


def test_more_rows_would_help_where_few_made_it_worse():
    X, y = confounded(300, waves=3)
    plan = prepare(X, y, methods=["gcm"]).plan(0)
    residuals = fit_residuals(plan)
    # Errors that fall like one over the rows are as much too large as halving the rows added.
    halves = [
        replace(half, progress=None) for half in halves_of(replace(plan, choices=residuals.choices))
    ]
    left = [
        np.mean(one.x_given_rest[:, 0] ** 2) for one in (residuals, *map(fit_residuals, halves))
    ]
    expected = (left[1] + left[2]) / 2 / left[0] - 1
    assert expected > 0.05
    assert learning_curve_gap(residuals, 0) == pytest.approx(expected)


def test_ordinary_values_far_off_are_strays_and_outliers_are_not():
    rng = np.random.default_rng(0)
    z = rng.normal(size=500)
    shares = []
    for x, far in (
        (z + 0.1 * rng.normal(size=500), 30.0),
        (z + rng.standard_t(3, 500), float(z[0])),
    ):
        z[0] = far  # the line goes on, and x does not
        table = np.column_stack([x, z])
        plan = prepare(table, x + z, learner="linear", methods=["gcm"]).plan(0)
        shares.append(outlier_share(fit_residuals(plan), 0))
    assert shares[0] > 0.5
    assert shares[1] < 0.1


def bent_in_three(n_rows=500, seed=0):
    """Return a table in which x0 and y follow a function of three others that bends slowly."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n_rows, 5))
    curve = np.tanh(z[:, :3].sum(axis=1))
    x = curve + 0.3 * rng.normal(size=n_rows)
    return np.column_stack([x, z]), curve + rng.normal(size=n_rows)


@pytest.mark.parametrize("seed", range(3))
def test_what_bends_slowly_in_three_columns_is_found_too(seed):
    found = assess(*bent_in_three(seed=seed), learner="boosting", methods=["gcm"])
    assert found.table["statistic"][0] > 1.5  # though x0 says nothing
    warned = found.quality.set_index(["regression", "feature"])["warning"]
    assert "poor" in warned["x given rest", "x0"]
    assert (warned["y given rest"] == "").all()


def test_units_do_not_change_what_is_found():
    X, y = bent_in_three()
    one, other = (
        assess(table, target, learner="boosting", methods=["gcm"]).quality
        for table, target in ((X, y), (X * [1e3, 1e-3, 1, 1, 10, 1] + 5, 100 * y))
    )
    assert other["residual_r2"].to_numpy(float) == pytest.approx(
        one["residual_r2"].to_numpy(float), abs=1e-6, nan_ok=True
    )


def test_many_rows_are_looked_at_in_part(monkeypatch):
    X, y = bent_in_three(1000)
    plan = prepare(X, y, learner="boosting", methods=["gcm"]).plan(0)
    residuals = fit_residuals(plan)
    whole = check_residuals(plan, residuals)
    monkeypatch.setattr("covaria.diagnostics.residual_checks.MOST_ROWS", 600)
    half = check_residuals(plan, residuals)
    assert half.x[0] == pytest.approx(whole.x[0], rel=0.4)
    assert half.bias[0] == pytest.approx(whole.bias[0], rel=0.4)  # for all rows


def test_trees_look_at_some_of_very_many_rows(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    X[:, 0] = np.sign(X[:, 1] * X[:, 2]) + 0.5 * X[:, 0]  # trees alone find it
    plan = prepare(X, X[:, 0] + rng.normal(size=2000), learner="linear").plan(0)
    residuals = fit_residuals(plan)
    whole = check_residuals(plan, residuals)
    monkeypatch.setattr("covaria.diagnostics.residual_checks.MOST_FOR_TREES", 1000)
    half = check_residuals(plan, residuals)
    assert half.x[0] != whole.x[0]
    assert half.x[0] == pytest.approx(whole.x[0], rel=0.4)
    assert half.f[0] == pytest.approx(whole.f[0], abs=0.3)


def test_a_group_is_not_looked_for_in_its_own_columns():
    X, y = bent_in_three()
    wider = np.column_stack([X, 0.5 * X[:, 0]])  # x6 tells all of x0, but belongs to it
    alone, grouped = (
        assess(table, y, learner="boosting", methods=["gcm"], groups=groups).quality
        for table, groups in ((X, None), (wider, {"pair": ["x0", "x6"]}))
    )
    shares = [
        quality.set_index(["regression", "feature"])["residual_r2"]["x given rest", name]
        for quality, name in ((alone, "x0"), (grouped, "pair"))
    ]
    assert shares[0] > 0.1
    assert shares[1] == pytest.approx(shares[0], abs=0.02)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bend", [np.abs, lambda z: 2 * np.exp(-4 * z**2)])
def test_what_bends_in_one_column_is_found_where_trees_have_looked(bend, seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(500, 8))
    X = np.column_stack([bend(z[:, 0]) + 0.3 * rng.normal(size=500), z])
    result = assess(X, bend(z[:, 0]) + rng.normal(size=500), learner="boosting", methods=["gcm"])
    warned = result.quality.set_index(["regression", "feature"])["warning"]
    assert "poor" in warned["x given rest", "x0"]
    assert (warned["x given rest"].drop("x0") == "").all()


def test_a_group_of_all_columns_has_no_rest_to_look_in():
    X, y = bent_in_three()
    everything = {"all": [f"x{j}" for j in range(X.shape[1])]}
    result = assess(X, y, learner="boosting", methods=["gcm"], groups=everything)
    assert result.quality["residual_r2"].dropna().max() == 0


def test_pcm_is_warned_of_where_both_its_regressions_leave_something_undone():
    X, y = draw("additive", n_rows=400, seed=0)
    job = prepare(X, y, learner="linear")
    residuals = fit_residuals(job.plan(0))
    nothing, sure = np.zeros(len(job.data.features)), np.full(len(job.data.features), 1e-6)
    left = ResidualCheck(
        nothing, sure, nothing + 0.2, sure, nothing, sure, f=nothing + 0.1, f_p=sure
    )
    # √(400 · .1 · .2), if both miss the same.
    assert missed_in_common(residuals, left, 0) == pytest.approx(np.sqrt(8))
    unsure = replace(left, f_p=nothing + 0.5)
    assert missed_in_common(residuals, unsure, 0) == 0.0
    told, untold = (quality_table([residuals], job.learner, one).frame() for one in (left, unsure))
    of_x = told["regression"] == "x given rest"
    assert told.loc[of_x, "warning"].str.contains("PCM's function").all()
    assert not untold["warning"].str.contains("PCM").any()


def test_what_is_left_of_pcms_function_is_looked_at():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 3))
    X[:, 0] = np.sin(3 * X[:, 1]) + 0.3 * X[:, 0]
    job = prepare(X, X[:, 0] + rng.normal(size=600), learner="linear")
    plan = job.plan(0)
    left = check_residuals(plan, fit_residuals(plan))
    # A line leaves the wave in x0, and so in the function of x0 that PCM tests.
    assert left.f[0] > 0.3
    assert left.f_p[0] < 1e-6
    assert left.f_p[2] > 0.01


OLD_NAMES = {
    "unsettled": "learning_curve_gap", "uneven": "fold_ratio", "stray": "outlier_share",
    "off": "mean_shift", "leftover": "residual_r2", "leftover_p": "residual_r2_p",
    "alarm": "warning",
}  # fmt: skip


@pytest.mark.parametrize("old", OLD_NAMES)
def test_old_names_of_columns_are_accepted_for_one_version(old, tmp_path):
    X, y = draw("linear", n_rows=200, seed=0)
    result = assess(X, y, learner="linear")
    result.to_json(tmp_path / "r.json")
    for quality in (result.quality, Result.from_json(tmp_path / "r.json").quality):
        with pytest.warns(DeprecationWarning, match=OLD_NAMES[old]):
            assert quality[old].equals(quality[OLD_NAMES[old]])


def test_a_column_takes_few_values_whatever_its_first_rows_are():
    rng = np.random.default_rng(0)
    many, few = rng.normal(size=900), rng.integers(0, 19, 900).astype(float)
    late, rare = (np.where(np.arange(900) < first, 0.0, many) for first in (100, 882))
    table = np.asfortranarray(np.column_stack([many, few, late, rare]))
    assert _take_few(table).tolist() == [False, True, False, True]
