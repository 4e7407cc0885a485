"""The splines engine finds what the plain engine finds, from one Gram matrix a fold."""

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from as_plain import assert_as_plain
from residua.assess import prepare
from residua.engines import plain, splines
from residua.learners import Splines

ALL = ["gcm", "loco", "dropout", "permutation"]
# Two searches whose scores differ by rounding end this near to each other, most of them nearer.
SEARCH = 1e-4


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
    tolerance = SEARCH if df == "gcv" else 1e-8
    assert_as_plain(splines, planned(table[["a", "b", "few"]], y, df, methods, 2), tolerance)


@pytest.mark.parametrize("splits", [2, "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_smoothing_chosen_by_the_data_is_what_plain_fits_choose(
    table, y, weights, splits, weighted
):
    options = {"sample_weight": weights} if weighted else {}
    plan = planned(table, y, "gcv", splits=splits, groups={"pair": ["a", "c"]}, **options)
    assert_as_plain(splines, plan, SEARCH)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_are_fitted_plainly_and_features_fast(table, n_classes):
    labels = np.random.default_rng(6).choice(list("uvw")[:n_classes], 120)
    assert_as_plain(splines, planned(table[["a", "b", "kind"]], labels, splits=2))


@pytest.mark.parametrize("df", [4, "gcv"])
@pytest.mark.parametrize("splits", [2, "none"])
def test_a_single_feature_leaves_the_mean(df, splits, small_data):
    X, y = small_data
    assert_as_plain(
        splines, planned(X[:, :1], y, df, splits=splits), SEARCH if df == "gcv" else 1e-8
    )


@pytest.mark.parametrize("df", [4, "gcv"])
def test_no_columns_at_all_leave_the_mean(df, small_data):
    assert_as_plain(splines, planned(np.ones((120, 2)), small_data[1], df, ["loco"]))


@pytest.mark.parametrize("df", [4, "gcv"])
@pytest.mark.parametrize("splits", [3, "none"])
def test_duplicate_columns_share_a_curve(df, splits, small_data):
    X, y = small_data
    X = np.column_stack([X[:, :2], 3 * X[:, 0] + 1])
    assert_as_plain(splines, planned(X, y, df, splits=splits))


def test_more_columns_of_the_design_than_rows():
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(60, 12)), rng.normal(size=60)
    assert_as_plain(splines, planned(X, y, methods=["gcm", "loco"]))


@pytest.mark.parametrize("df", [4, "gcv"])
def test_more_jobs_give_the_same_bits(df, small_data):
    plan = planned(*small_data, df, splits=2)
    for one, two in zip(splines.run(plan), splines.run(replace(plan, n_jobs=2)), strict=True):
        assert np.array_equal(one.prediction, two.prediction)
        assert np.array_equal(one.dropped, two.dropped)


def test_the_score_is_that_of_the_plain_model(small_data):
    X, y = small_data
    fold = splines.ChosenFold.of(planned(X, y, "gcv", ["gcm"], 2), 0)
    args = (fold.basis.terms, fold.gram, fold.basis.products(fold.basis.y), 7.0, 60)
    at = np.linspace(-9, 2, len(fold.basis.terms))
    (score, gradient), (same, slope) = splines.Gcv(*args)(at), splines.QuickGcv(*args)(at)
    assert same == pytest.approx(score, abs=1e-12)
    assert np.allclose(gradient, slope, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("df", "factor"), [(4, 5), ("gcv", 1.5)])
def test_it_is_sooner_than_plain_fits(df, factor):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 20 if df == 4 else 8)), rng.normal(size=1000)
    plan = planned(X, y, df, ["loco"], "none")
    assert factor * fastest(splines.run, plan) < fastest(plain.run, plan)


def fastest(run, plan):
    seconds = []
    for _ in range(2):
        start = time.process_time()
        run(plan)
        seconds.append(time.process_time() - start)
    return min(seconds)
