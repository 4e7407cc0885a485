"""The boosting engine grows the trees of the plain estimator, sooner."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numba import njit

from as_plain import by_task
from covaria.assessment import prepare
from covaria.learners import Boosting, Linear
from covaria.learners.estimators import boosting as estimator
from covaria.learners.estimators.boosting import GradientBoosting
from covaria.nuisance.engines import boosting, boosting_kernels, boosting_parts, plain
from covaria.nuisance.plan import Task
from cpu_time import least_seconds

ALL = ["gcm", "loco", "dropout", "permutation"]
TOLERANCE = 1e-8


def a_table(kind="numbers", n_rows=120, seed=3):
    """Return five numbers, of which three matter, made harder in one way."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_rows, 5)), columns=[f"x{j}" for j in range(5)])
    y = 2 * X["x0"] + np.sin(3 * X["x1"]) + X["x2"] * X["x3"] + 0.5 * rng.normal(size=n_rows)
    if kind == "ties":
        X["x0"], X["binary"] = X["x0"].round(1), (rng.random(n_rows) < 0.3) * 1.0
        X["twin"], X["mirror"], X["complement"] = X["x1"], -X["x1"], 1 - X["binary"]
    if kind == "categories":
        X["letter"], X["constant"] = rng.choice(list("abcd"), n_rows), 7.0
    if kind == "gaps":
        X = X.mask(rng.random(X.shape) < 0.15)
    return X, y.to_numpy()


def with_classes(table, n_classes):
    X, y = table
    return X, np.array(list("abc"))[pd.qcut(y, n_classes, labels=False)]


def a_plan(table, learner, *, methods=ALL, splits=3, **options):
    X, y = table
    return prepare(X, y, learner=learner, methods=methods, splits=splits, **options).plan(0)


def assert_same(plan, tolerance=TOLERANCE):
    assert boosting.supports(plan)
    found = by_task(plan, boosting.run(plan))
    for task, ours, theirs in zip(plan.tasks, found, plain.run(plan), strict=True):
        assert ours.failure == theirs.failure == ""
        for part in ("prediction", "dropped", "permuted"):
            one, other = getattr(ours, part), getattr(theirs, part)
            assert (one is None) == (other is None), (task, part)
            if one is not None:
                np.testing.assert_allclose(one, other, rtol=0, atol=tolerance, err_msg=str(task))


def weights_of(kind, n_rows):
    rng = np.random.default_rng(5)
    if kind == "none":
        return {}
    drawn = rng.gamma(1.0, size=n_rows) if kind == "any" else rng.integers(0, 3, n_rows)
    return {"sample_weight": drawn.astype(float)}


@pytest.mark.parametrize("kind", ["numbers", "ties", "categories", "gaps"])
@pytest.mark.parametrize("weights", ["none", "any", "counts"])
@pytest.mark.parametrize("n_splits", [1, 3])
def test_numbers_are_those_of_the_plain_engine(kind, weights, n_splits):
    X, y = a_table(kind)
    groups = {"pair": ["x3", "x4"]} if kind == "categories" else None
    learner = Boosting(splits=n_splits, trees=20, min_node=5)
    options = weights_of(weights, len(y))
    assert_same(a_plan((X, y), learner, groups=groups, **options))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["ties", "categories"])
@pytest.mark.parametrize("weights", ["none", "any"])
@pytest.mark.parametrize("n_splits", [1, 2])
def test_classes_are_those_of_the_plain_engine(kind, n_classes, weights, n_splits):
    learner = Boosting(splits=n_splits, trees=15, min_node=5)
    X, y = with_classes(a_table(kind), n_classes)
    assert_same(a_plan((X, y), learner, **weights_of(weights, len(y))))


@pytest.fixture
def few_bins(monkeypatch):
    """Put the values of every column into a few bins, whatever the number of rows."""
    monkeypatch.setattr(estimator, "BINNED_ABOVE", 50)
    monkeypatch.setattr(estimator, "MOST_BINS", 12)


@pytest.mark.parametrize("kind", ["numbers", "ties", "categories", "gaps"])
@pytest.mark.parametrize("weights", ["none", "any", "counts"])
@pytest.mark.parametrize("n_splits", [1, 4])
def test_binned_numbers_are_those_of_the_plain_engine(few_bins, kind, weights, n_splits):
    X, y = a_table(kind)
    groups = {"pair": ["x3", "x4"]} if kind == "categories" else None
    learner = Boosting(splits=n_splits, trees=8, shrinkage=0.3, min_node=5)
    plan = a_plan((X, y), learner, groups=groups, **weights_of(weights, len(y)))
    assert boosting.Grounds(plan, 0).table.n_bins.max() <= 12
    assert_same(plan)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weights", ["none", "any"])
@pytest.mark.parametrize("n_splits", [1, 4])
def test_binned_classes_are_those_of_the_plain_engine(few_bins, n_classes, weights, n_splits):
    X, y = with_classes(a_table("ties"), n_classes)
    learner = Boosting(splits=n_splits, trees=8, shrinkage=0.3, min_node=5)
    assert_same(a_plan((X, y), learner, **weights_of(weights, len(y))))


@pytest.mark.parametrize("n_splits", [1, 4])
def test_binned_trees_are_equal_to_the_last_bit(few_bins, n_splits):
    learner = Boosting(splits=n_splits, trees=30)
    assert_same(a_plan(a_table("ties"), learner, methods=["gcm", "loco"]), tolerance=0.0)


def test_a_table_is_binned_where_a_model_learns_from_more_rows_than_the_limit(monkeypatch):
    monkeypatch.setattr(estimator, "BINNED_ABOVE", 80)
    plans = [a_plan(a_table(n_rows=n), Boosting(), splits=3) for n in (120, 123)]
    assert [boosting.Grounds(plan, 0).binned for plan in plans] == [False, True]


@pytest.mark.parametrize("n_splits", [1, 4])
@pytest.mark.parametrize("kind", ["numbers", "ties"])
def test_sums_of_32_bits_are_as_good_as_sums_of_16(monkeypatch, kind, n_splits):
    monkeypatch.setattr(boosting_kernels, "NARROW", 0)
    learner = Boosting(splits=n_splits, trees=40)
    plan = a_plan(a_table(kind), learner, methods=["gcm", "loco"], splits="none")
    assert_same(plan, tolerance=0.0)


@pytest.mark.parametrize("n_splits", [1, 4])
@pytest.mark.parametrize("narrow", [0, 1024])
def test_no_outlier_hides_the_other_rows(monkeypatch, n_splits, narrow):
    monkeypatch.setattr(boosting_kernels, "NARROW", narrow)
    X, y = a_table()
    y = y.copy()
    X["x0"], X["x1"] = np.random.default_rng(1).standard_cauchy((2, 120))
    y[[3, 50]] = [1e9, -1e9]
    learner = Boosting(splits=n_splits, min_node=1)
    plan = a_plan((X, y), learner, methods=["gcm", "loco"], splits="none")
    assert_same(plan, tolerance=0.0)


@pytest.mark.parametrize("n_splits", [1, 3])
def test_models_that_do_not_fit_into_memory_together_are_the_same(monkeypatch, n_splits):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 40))
    table, learner = (X, X[:, 0] + rng.normal(size=100)), Boosting(trees=10, splits=n_splits)
    plan = a_plan(table, learner)
    at_once = by_task(plan, boosting.run(plan))
    monkeypatch.setattr(boosting, "ROOM", 2000)
    monkeypatch.setattr(boosting, "AT_ONCE", 500)
    assert len(list(boosting.run(plan))) > len(plan.folds) * 3
    for a, b in zip(at_once, by_task(plan, boosting.run(plan)), strict=True):
        np.testing.assert_array_equal(a.prediction, b.prediction)


@pytest.mark.parametrize("splits", ["none", 0.33, 5])
@pytest.mark.parametrize("methods", [["gcm"], ["loco"], ["gcm", "loco"]])
@pytest.mark.parametrize("n_splits", [1, 4])
def test_only_what_is_asked_for_is_fitted(splits, methods, n_splits):
    learner = Boosting(splits=n_splits, trees=15)
    assert_same(a_plan(a_table(), learner, methods=methods, splits=splits))


@pytest.mark.parametrize(
    "learner",
    [
        Boosting(trees=1),
        Boosting(trees=10, bag=1.0),
        Boosting(trees=10, bag=0.01),
        Boosting(trees=10, min_node=1, splits=6),
        Boosting(trees=10, min_node=100),
        Boosting(trees=10, shrinkage=1.0, splits=2),
    ],
)
def test_unusual_settings_are_kept(learner):
    assert_same(a_plan(a_table(), learner))


def test_in_sample_the_trees_are_equal_to_the_last_bit():
    plan = a_plan(a_table("ties"), Boosting(splits=4), methods=["gcm", "loco"], splits="none")
    assert_same(plan, tolerance=0.0)


def test_one_feature_alone_is_left_to_the_mean():
    X, y = a_table()
    assert_same(a_plan((X[["x0"]], y), Boosting(trees=10)))


def test_numbers_of_any_size_survive_float32():
    X, y = a_table()
    for factor, shift in ((1e50, 0.0), (1e-50, 0.0), (1.0, 1e9)):
        plan = a_plan((X * factor + shift, y), Boosting(trees=10, splits=2), methods=["gcm"])
        assert_same(plan, tolerance=TOLERANCE * max(factor, 1.0))


def test_a_table_of_few_values_is_full_of_equal_gains():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (60, 12)).astype(float)).rename(columns=str)
    y = rng.integers(0, 3, 60).astype(float)
    assert_same(a_plan((X, y), Boosting(trees=30, splits=3, min_node=2), methods=["gcm", "loco"]))


def test_more_rows_than_numpy_sums_in_one_go():
    plan = a_plan(a_table(n_rows=2500), Boosting(trees=3, splits=3), methods=["gcm"], splits="none")
    assert_same(plan, tolerance=0.0)


def test_rows_in_any_order_and_tested_rows_that_were_learned_from():
    X, y = a_table()
    rng = np.random.default_rng(2)
    folds = [(rng.permutation(120)[:90], np.arange(60)), (rng.permutation(120), np.arange(60, 99))]
    # Nobody is tested so, but the functions of PCM are wanted in all rows.
    plan = a_plan((X, y), Boosting(trees=10, splits=2), methods=["gcm", "loco"], splits=2)
    assert_same(replace(plan, folds=folds))


def test_a_feature_the_full_model_never_uses_keeps_its_answer():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 10))
    plan = a_plan((X, 10 * X[:, 0]), Boosting(trees=5), methods=["loco"], splits="none")
    found = dict(zip(plan.tasks, by_task(plan, boosting.run(plan)), strict=True))
    full = found[Task("y_given_all", 0)].prediction
    same = [np.array_equal(full, found[Task("y_given_rest", 0, j)].prediction) for j in range(10)]
    assert same == [False] + [True] * 9


@pytest.mark.parametrize("room", [100, 2**23])
@pytest.mark.parametrize("looks", [1, 4e9])
def test_progress_reaches_the_end_and_never_turns_back(monkeypatch, room, looks):
    monkeypatch.setattr(boosting, "ROOM", room)
    monkeypatch.setattr(boosting, "LOOKS_AT_ONCE", looks)
    X, y = a_table()
    seen = []
    job = prepare(X, y, learner=Boosting(trees=45), methods=["gcm", "loco"], splits=3)
    plan = job.plan(0, lambda done, total: seen.append((done, total)))
    list(boosting.run(plan))
    assert seen == sorted(seen)
    assert seen[-1] == (len(plan.tasks), len(plan.tasks))


def test_every_outcome_is_charged_for():
    plan = a_plan(a_table(), Boosting(trees=10))
    outcomes = list(boosting.run(plan))
    assert all(outcome.seconds > 0 for outcome in outcomes)
    assert outcomes[0].seconds_dropped > 0
    assert outcomes[0].seconds_permuted > 0


def test_other_learners_are_not_supported():
    assert not boosting.supports(a_plan(a_table(), Linear(), methods=["gcm"]))


def test_without_numba_the_plain_engine_has_to_do(monkeypatch):
    monkeypatch.setattr(boosting, "HAS_NUMBA", False)
    assert not boosting.supports(a_plan(a_table(), Boosting()))


def test_sums_are_numpys_sums():
    @njit
    def total(values, stack):
        return boosting_parts.pairwise_sum(values, values.size, stack)

    rng = np.random.default_rng(0)
    for n in [*range(1, 300), 1000, 1001, 5003]:
        values = rng.normal(size=n) * 10.0 ** rng.integers(-3, 3, n)
        assert total(values, np.empty((3, 64))) == values.sum()


def test_many_rows_need_little_more_than_what_comes_back(monkeypatch):
    monkeypatch.setattr(estimator, "BINNED_ABOVE", 10_000)
    monkeypatch.setattr(boosting, "ROOM", 8 * 40_000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 20))
    plan = a_plan((X, X[:, 0] + X[:, 1]), Boosting(trees=3), methods=["gcm", "loco"], splits=5)
    list(boosting.run(plan))
    tracemalloc.start()
    for _ in boosting.run(plan):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.5 * X.nbytes


@pytest.mark.parametrize("n_splits", [1, 4])
def test_it_is_faster_than_one_model_after_the_other(n_splits):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 20))
    y = X[:, 0] ** 2 + X[:, 1] * X[:, 2] + rng.normal(size=1000)
    learner = Boosting(splits=n_splits)
    plan = a_plan((X, y), learner, methods=["gcm", "loco"], splits="none")
    list(boosting.run(plan))
    ours = least_seconds(lambda: list(boosting.run(plan)), 2)
    one = least_seconds(lambda: GradientBoosting(splits=n_splits).fit(X, y))
    assert ours < 41 * one / 5


@pytest.mark.parametrize("splits", [1, 4])
@pytest.mark.parametrize("n_rows", [120, 400])
def test_the_mean_over_other_values_is_that_of_asking_for_each(splits, n_rows):
    rng = np.random.default_rng(11)
    X = np.round(rng.normal(size=(n_rows, 5)), 1)
    y = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + 0.1 * rng.normal(size=n_rows)
    job = prepare(
        X, y, learner=Boosting(trees=30, splits=splits), groups={"pair": ["x1", "x3"]}, splits=2
    )
    plan = replace(job.plan(0), needs=frozenset({"y_direction"}))
    for fast, slow in zip(boosting.run(plan), plain.run(plan), strict=True):
        np.testing.assert_allclose(fast.direction, slow.direction, atol=1e-12)
