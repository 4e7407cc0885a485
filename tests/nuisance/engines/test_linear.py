"""The linear engine finds what the plain engine finds, from one factorisation a fold."""

import time
from functools import partial

import numpy as np
import pandas as pd
import pytest

from as_plain import assert_as_plain, by_task
from covaria.assessment import prepare
from covaria.learners import Linear, Ridge
from covaria.nuisance.engines import linear, plain
from cpu_time import least_seconds

KINDS = [Linear(), Linear(ridge=3.0), Ridge(ridge=3.0)]

ALL = ["gcm", "loco", "dropout", "permutation"]


def never_plain(monkeypatch):
    """Let a task that is handed on fail the test."""

    def refuse(plan, task):
        raise AssertionError(f"{task} was fitted plainly")

    monkeypatch.setattr(linear.plain, "fit_task", refuse)


@pytest.fixture
def table():
    """Return a table with correlated and far-off columns, gaps, and categories one of them rare."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(120, 5)), columns=list("abcde"))
    X["b"] += X["a"]
    X["e"] = 1e4 + 1e-3 * X["e"]
    X.loc[:11, "d"] = np.nan
    X["kind"] = rng.choice(list("pqrs"), 120)
    X["rare"] = np.where(np.arange(120) == 5, "once", "often")  # constant in some folds
    return X


@pytest.fixture
def y(table):
    rng = np.random.default_rng(4)
    return table["a"] - 2 * table["c"] + rng.normal(size=120)


@pytest.mark.parametrize("learner", KINDS, ids=str)
@pytest.mark.parametrize("splits", [3, 0.4, "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_groups_categories_and_gaps_come_out_as_plain(
    table, y, learner, splits, weighted, monkeypatch
):
    weights = np.random.default_rng(5).choice([0.0, 1.0, 2.5], 120) if weighted else None
    job = prepare(
        table,
        y,
        learner=learner,
        methods=ALL,
        splits=splits,
        groups={"pair": ["a", "c"]},
        sample_weight=weights,
    )
    assert_as_plain(linear, job.plan(0))
    never_plain(monkeypatch)
    linear.run(job.plan(0))


@pytest.mark.parametrize("methods", [["gcm"], ["loco"], ["dropout"], ["permutation"]])
def test_each_method_alone_comes_out_as_plain(table, y, methods):
    assert_as_plain(linear, prepare(table, y, learner="linear", methods=methods, splits=2).plan(0))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_are_fitted_plainly_and_features_fast(table, n_classes):
    labels = np.random.default_rng(6).choice(list("uvw")[:n_classes], 120)
    plan = prepare(table, labels, learner="linear", methods=ALL, splits=2).plan(0)
    assert_as_plain(linear, plan)


@pytest.mark.parametrize("learner", KINDS, ids=str)
@pytest.mark.parametrize("splits", [2, "none"])
def test_a_single_feature_leaves_the_mean(learner, splits, small_data):
    X, y = small_data
    job = prepare(X[:, :1], y, learner=learner, methods=ALL, splits=splits)
    assert_as_plain(linear, job.plan(0))


def test_no_columns_at_all_leave_the_mean(small_data):
    X, y = np.ones((120, 2)), small_data[1]
    assert_as_plain(linear, prepare(X, y, learner="linear", methods=["loco"], splits=2).plan(0))


@pytest.mark.parametrize("learner", KINDS, ids=str)
@pytest.mark.parametrize("splits", [3, "none"])
def test_duplicate_columns_share_the_shortest_slopes(learner, splits, small_data, monkeypatch):
    X, y = small_data
    X = np.column_stack([X, 3 * X[:, 0] + 1, X[:, 1] - X[:, 2]])
    plan = prepare(X, y, learner=learner, methods=ALL, splits=splits).plan(0)
    assert_as_plain(linear, plan)
    never_plain(monkeypatch)
    linear.run(plan)


@pytest.mark.parametrize("learner", KINDS, ids=str)
@pytest.mark.parametrize("splits", [2, "none"])
@pytest.mark.parametrize("n_columns", [40, 59, 60, 61, 90])
def test_more_columns_than_rows(learner, splits, n_columns):
    rng = np.random.default_rng(n_columns)
    X, y = rng.normal(size=(60, n_columns)) * np.geomspace(0.1, 10, n_columns), rng.normal(size=60)
    job = prepare(X, y, learner=learner, methods=["gcm", "loco"], splits=splits)
    assert_as_plain(linear, job.plan(0))


def test_a_column_that_varies_only_in_test_rows_is_left_to_plain_fits(small_data):
    X, y = small_data[0].copy(), small_data[1]
    X[:, 3] = 0.1
    X[:5, 3] = 0.3
    folds = [(np.arange(5, 120), np.arange(5))]
    assert_as_plain(linear, prepare(X, y, learner="linear", methods=ALL, splits=folds).plan(0))


def test_near_collinear_columns_keep_the_digits_that_their_condition_allows():
    rng = np.random.default_rng(0)
    for noise in (1e-4, 1e-5, 1e-6):
        X = rng.normal(size=(200, 5))
        X[:, 4] = X[:, 3] + noise * X[:, 4]
        y = X[:, 0] + X[:, 3] + rng.normal(size=200)
        plan = prepare(X, y, learner="linear", methods=["gcm"], splits="none").plan(0)
        tasks = zip(plan.tasks, by_task(plan, linear.run(plan)), strict=True)
        for task, outcome in tasks:
            target = y if task.need == "y_given_rest" else X[:, task.feature]
            left = target - outcome.prediction.ravel()
            exact = left_exactly(np.delete(X, task.feature, 1), target)
            assert np.linalg.norm(left - exact) < 1e-14 / noise * np.linalg.norm(exact)


def left_exactly(X, target):
    """Return what least squares leaves of the target, in long double by Gram-Schmidt twice."""
    columns = np.column_stack([np.ones(len(X)), X, target]).astype(np.longdouble)
    for k in range(columns.shape[1]):
        for before in [*range(k), *range(k)]:
            columns[:, k] -= columns[:, before] * (columns[:, before] @ columns[:, k])
        if k < columns.shape[1] - 1:
            columns[:, k] /= np.sqrt(columns[:, k] @ columns[:, k])
    return columns[:, -1].astype(float)


def test_progress_ends_at_the_number_of_tasks(small_data):
    told = []
    job = prepare(*small_data, learner="linear", splits=3)
    linear.run(job.plan(0, progress=lambda done, total: told.append((done, total))))
    assert told == [(9, 27), (18, 27), (27, 27)]


def test_every_model_bears_its_share_of_the_seconds(small_data):
    plan, shares = prepare(*small_data, learner="linear", methods=ALL, splits=2).plan(0), []
    for _ in range(5):  # another's turn at the processor may fall between two models
        start = time.perf_counter()
        outcomes = linear.run(plan)
        spent = time.perf_counter() - start
        assert all(outcome.seconds > 0 for outcome in outcomes)
        parts = [o.seconds + o.seconds_dropped + o.seconds_permuted for o in outcomes]
        shares.append(sum(parts) / spent)
    assert 0.1 < max(shares) <= 1


def test_it_is_sooner_than_plain_fits():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 20)), rng.normal(size=1000)
    plan = prepare(X, y, learner="linear", splits="none").plan(0)
    ours, theirs = (least_seconds(partial(engine.run, plan)) for engine in (linear, plain))
    assert 5 * ours < theirs
