"""The splines engine finds what the plain engine finds, from one Gram matrix a fold."""

import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

import covaria
from as_plain import assert_as_plain
from covaria.assessment import prepare
from covaria.learners import Splines
from covaria.learners.estimators.splines import AdditiveSplines
from covaria.nuisance.engines import plain, splines
from cpu_time import least_seconds

ALL = ["gcm", "loco", "dropout", "permutation"]
FIXTURES = Path(__file__).parents[2] / "fixtures"


def planned(X, y, df=4, methods=ALL, splits=3, **options):
    """Return a plan; in sample, dropout and permutation need the paper's mode."""
    job = prepare(
        X,
        y,
        learner=Splines(df=df),
        methods=methods,
        splits=splits,
        paper=splits == "none",
        **options,
    )
    return job.plan(0)


@pytest.fixture
def table():
    """Return a table with correlated columns, gaps, few values, and a level too rare for a fold."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(120, 4)), columns=list("abcd"))
    X["b"] += X["a"]
    X.loc[:11, "d"] = np.nan
    X["few"] = rng.integers(0, 3, 120)
    X["kind"] = rng.choice(list("pqr"), 120)
    X["rare"] = np.where(np.arange(120) == 5, "once", "often")
    return X


@pytest.fixture
def y(table):
    rng = np.random.default_rng(4)
    return np.sin(2 * table["a"]) - table["c"] ** 2 + rng.normal(size=120)


@pytest.fixture
def weights():
    return np.random.default_rng(5).choice([0.0, 1.0, 2.5], 120)


@pytest.mark.parametrize("df", [1, 4])
@pytest.mark.parametrize("splits", [3, 0.4, "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_groups_categories_and_gaps_come_out_as_plain(table, y, weights, df, splits, weighted):
    options = {"sample_weight": weights} if weighted else {}
    plan = planned(table, y, df, splits=splits, groups={"pair": ["a", "c"]}, **options)
    assert_as_plain(splines, plan)


@pytest.mark.parametrize("df", [4, "gcv"])
@pytest.mark.parametrize("methods", [["gcm"], ["loco"], ["dropout"], ["permutation"]])
def test_each_method_alone_comes_out_as_plain(table, y, df, methods):
    assert_as_plain(splines, planned(table[["a", "b", "few"]], y, df, methods, 2))


@pytest.mark.parametrize("splits", [2, "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_smoothing_chosen_by_the_data_is_what_plain_fits_choose(
    table, y, weights, splits, weighted
):
    options = {"sample_weight": weights} if weighted else {}
    plan = planned(table, y, "gcv", splits=splits, groups={"pair": ["a", "c"]}, **options)
    assert_as_plain(splines, plan)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_are_fitted_plainly_and_features_fast(table, n_classes):
    labels = np.random.default_rng(6).choice(list("uvw")[:n_classes], 120)
    assert_as_plain(splines, planned(table[["a", "b", "kind"]], labels, splits=2))


@pytest.mark.parametrize("df", [4, "gcv"])
@pytest.mark.parametrize("splits", [2, "none"])
def test_a_single_feature_leaves_the_mean(df, splits, small_data):
    X, y = small_data
    assert_as_plain(splines, planned(X[:, :1], y, df, splits=splits))


@pytest.mark.parametrize("df", [4, "gcv"])
def test_no_columns_at_all_leave_the_mean(df, small_data):
    assert_as_plain(splines, planned(np.ones((120, 2)), small_data[1], df, ["loco"]))


@pytest.mark.parametrize("df", [4, "gcv"])
@pytest.mark.parametrize("splits", [3, "none"])
def test_duplicate_columns_share_a_curve(df, splits, small_data):
    X, y = small_data
    X = np.column_stack([X[:, :2], 3 * X[:, 0] + 1])
    assert_as_plain(splines, planned(X, y, df, splits=splits))


@pytest.mark.parametrize("kind", ["correlated", "nearly copied", "heavy tails", "few values"])
def test_each_model_chooses_the_smoothing_it_would_choose_alone(kind):
    rng = np.random.default_rng(7)
    X = rng.standard_t(2 if kind == "heavy tails" else 30, size=(200, 4))
    if kind == "correlated":
        X += 3 * rng.normal(size=(200, 1))
    elif kind == "nearly copied":
        X[:, 1] = X[:, 0] + 0.03 * X[:, 1]
    elif kind == "few values":
        X = X.round()
    y = np.sin(2 * X[:, 0]) + np.tanh(X[:, 1]) + 0.1 * rng.normal(size=200)
    assert_as_plain(splines, planned(X, y, "gcv", splits=2))


@pytest.fixture
def by_rows(monkeypatch):
    """Use the matrix of the size of the rows for small tables too, and count its uses."""
    used = []
    fit = splines.Dual.of
    monkeypatch.setattr(splines, "FEW", 0)
    monkeypatch.setattr(splines.Dual, "of", lambda *args: used.append(1) or fit(*args))
    return used


@pytest.mark.parametrize("splits", [3, "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("df", [2, 4])
def test_more_columns_of_the_design_than_rows(by_rows, table, y, weights, df, splits, weighted):
    options = {"sample_weight": weights[:40]} if weighted else {}
    groups = {"pair": ["a", "c"]}
    plan = planned(table[:40], y[:40], df, splits=splits, groups=groups, **options)
    assert_as_plain(splines, plan)
    assert len(by_rows) == len(plan.folds)


@pytest.mark.parametrize("methods", [["gcm"], ["loco"], ["dropout"], ["permutation"]])
def test_each_method_alone_with_more_columns_than_rows(by_rows, methods):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(60, 12)), rng.normal(size=60)
    assert_as_plain(splines, planned(X, y, methods=methods))
    assert by_rows


def test_curves_too_free_for_a_matrix_of_the_rows_take_one_of_the_columns(by_rows):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(40, 6)), rng.normal(size=40)
    assert_as_plain(splines, planned(X, y, df=10, methods=["gcm", "loco"], splits=2))
    assert not by_rows


def test_duplicate_columns_and_more_of_them_than_rows(by_rows):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(40, 6)), rng.normal(size=40)
    assert_as_plain(splines, planned(np.hstack([X, X[:, :1]]), y, methods=["gcm", "loco"]))


def test_more_features_than_rows_are_fitted_as_well_as_they_can_be(by_rows):
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(20, 12)), rng.normal(size=20)
    # Only the ridge of 1e-9 holds these fits, so the plain ones have no more than six digits.
    assert_as_plain(splines, planned(X, y, methods=["gcm", "loco"], splits=2), 1e-4)
    assert len(by_rows) == 2


@pytest.mark.parametrize("df", [4, "gcv"])
def test_a_long_table_goes_through_in_parts(df, small_data, monkeypatch):
    whole = splines.run(planned(*small_data, df, splits=2))
    monkeypatch.setattr("covaria.learners.estimators.splines.CHUNK", 1)
    monkeypatch.setattr("covaria.learners.estimators.splines.FEWEST", 7)
    for one, other in zip(splines.run(planned(*small_data, df, splits=2)), whole, strict=True):
        assert np.abs(one.prediction - other.prediction).max() < 1e-8


def park_miller(count):
    """Return the uniform numbers of the fixture's generator, which R and Python agree on."""
    state, numbers = 1, np.empty(count)
    for i in range(count):
        state = 16807 * state % 2147483647
        numbers[i] = state / 2147483647
    return numbers


def test_statistics_are_those_of_mgcv():
    """R's numbers come from tests/fixtures/make_mgcv_fixture.R."""
    mgcv = pd.read_csv(FIXTURES / "r_mgcv_z.csv", index_col="feature")
    drawn = ndtri(park_miller(21_000)).reshape(21, 1000)
    X, x, noise = drawn[:20].T, drawn[:8], drawn[20]
    y = 2 * x[0] ** 2 + 2 * np.cos(4 * x[1]) + np.sin(x[2]) + np.exp(x[3] / 3) + 3 * x[4]
    y += x[5] ** 3 + 5 * x[6] + np.maximum(0, x[7]) + 0.1 * noise
    X = pd.DataFrame(X, columns=mgcv.index)
    result = covaria.assess(X, y, learner=Splines(df="gcv"), methods=["gcm"], splits="none")
    z = result.table.set_index("feature")["statistic"][mgcv.index]
    useful = [f"x{j}" for j in range(3, 9)]
    for theirs in (mgcv["bam"], mgcv["gam"]):
        assert np.abs(z / theirs - 1)[useful].max() < 0.05
        assert ((z.abs() > 1.96) == (theirs.abs() > 1.96)).all()


@pytest.mark.parametrize(("df", "factor"), [(4, 5), ("gcv", 2)])
def test_it_is_sooner_than_plain_fits(df, factor):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 12)), rng.normal(size=500)
    plan = planned(X, y, df, ["loco"], "none")
    ours, theirs = (least_seconds(partial(engine.run, plan), 2) for engine in (splines, plain))
    assert factor * ours < theirs


@pytest.mark.parametrize("n_columns", [3, 12])
def test_curves_that_have_to_be_clear_come_out_as_plain_too(n_columns):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(150, n_columns)) + rng.normal(size=(150, 1))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=150)
    plan = planned(X, y, "gcv", splits=2)
    assert_as_plain(splines, replace(plan, learner=Splines(df="gcv", to_enter=4)))


def test_few_columns_bend_by_chance_where_that_has_to_be_clear():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(400, 20)) + rng.normal(size=(400, 1))
    y = 2 * np.sin(2 * X[:, 0]) + X.sum(axis=1) + rng.normal(size=400)
    any_gain, clear = (AdditiveSplines(df="gcv", to_enter=e).fit(X, y) for e in (0, 4))
    bent = [[df > 1.01 for df in model.chosen_df] for model in (any_gain, clear)]
    assert bent[1][0]
    assert sum(bent[1]) <= 4 < sum(bent[0])
    new = rng.normal(size=(400, 20)) + rng.normal(size=(400, 1))
    truth = 2 * np.sin(2 * new[:, 0]) + new.sum(axis=1)
    errors = [np.mean((model.predict(new) - truth) ** 2) for model in (any_gain, clear)]
    assert errors[1] < errors[0]


def test_a_plan_on_the_same_rows_takes_the_design_that_is_there(small_data):
    X, y = small_data
    plan = planned(X, y, "gcv", splits=2)
    first = splines.Basis.of(plan, 0, curves=9)
    again = splines.Basis.of(replace(plan, targets=X**2), 0, curves=9)
    assert again.terms is first.terms
    assert (again.x_targets == X[plan.folds[0][0]] ** 2).all()
    assert not pickle.loads(pickle.dumps(plan.shelf))  # no process sends it on
