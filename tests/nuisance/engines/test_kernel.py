"""The kernel engine says what the plain engine says, sooner."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist

from covaria.assessment import prepare
from covaria.errors import InputError
from covaria.learners import Kernel
from covaria.learners.estimators import kernel as estimators
from covaria.learners.estimators.kernel import gaussian_kernel, sigest
from covaria.nuisance.engines import kernel, kernel_nodes, plain
from covaria.nuisance.engines.kernel_nodes import Swap
from covaria.nuisance.engines.kernel_solver import Columns, pairs_without, positive_quantiles
from covaria.nuisance.plan import Plan
from covaria.nuisance.splits import make_splits
from covaria.tables.dataset import Dataset
from cpu_time import least_seconds

ALL = frozenset({"y_given_all", "y_given_rest", "x_given_rest", "y_dropped", "y_permuted"})
NEEDS = [
    {"x_given_rest", "y_given_rest"},
    {"y_given_all", "y_given_rest"},
    {"x_given_rest"},
    {"y_dropped"},
    {"y_permuted"},
]


@dataclass(frozen=True)
class Solved(Kernel):
    """A machine that is fitted to the end, where there is one right answer."""

    tol: float = 1e-8


# What libsvm's own tol leaves open, what its float32 kernel leaves open, and nothing.
LEARNERS = [(Kernel(), 2e-3), (Solved(), 1e-6), (Kernel(kind="ridge"), 1e-8)]
RIDGE = Kernel(kind="ridge")


def table(n=90, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["a", "b", "c", "d"])
    y = X["a"] + np.sin(2 * X["b"]) + 0.3 * rng.normal(size=n)
    return X, y.to_numpy()


def plan_of(X, y, learner, splits=3, needs=ALL, **options):
    data = Dataset.from_table(X, y, **options)
    folds = make_splits(data, splits, 0)
    return Plan(data, learner, folds, frozenset(needs), permutations=2)


def check_equal(plan, apart):
    """Compare predictions in sds of the training rows, and losses as the errors they square."""
    for task, ours, theirs in zip(plan.tasks, kernel.run(plan), plain.run(plan), strict=True):
        assert ours.failure == theirs.failure == ""
        train, data = plan.folds[task.fold][0], plan.data
        columns = list(data.features[task.feature].columns)
        target = data.X[:, columns] if task.need == "x_given_rest" else data.y
        sd = np.ones(1) if data.classes and task.need[0] == "y" else target[train].std(axis=0)
        assert ours.prediction.shape == theirs.prediction.shape
        assert (np.abs(ours.prediction - theirs.prediction) <= apart * sd + 1e-12).all()
        for need in ("dropped", "permuted"):
            one, two = getattr(ours, need), getattr(theirs, need)
            assert (one is None) == (two is None)
            if one is not None:
                error = np.array if data.classes else np.sqrt
                assert_allclose(error(one), error(two), rtol=0, atol=2 * apart * sd.max())


@pytest.mark.parametrize(("learner", "apart"), LEARNERS)
@pytest.mark.parametrize("splits", [3, 0.4, "none"])
@pytest.mark.parametrize("case", ["plain", "weights", "groups", "gaps"])
def test_outcomes_are_those_of_the_plain_engine(learner, apart, splits, case):
    X, y = table()
    rng = np.random.default_rng(1)
    options = {}
    if case == "weights":
        options["sample_weight"] = rng.integers(0, 4, len(y)) * rng.exponential(size=len(y))
    if case == "groups":
        X["kind"] = rng.choice(["u", "v", "w"], len(y))
        options["groups"] = {"pair": ["a", "c"]}
    if case == "gaps":
        X.loc[::5, "b"] = np.nan
    check_equal(plan_of(X, y, learner, splits, **options), apart)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("learner", "apart"), [LEARNERS[0], LEARNERS[2]])
def test_classes_are_those_of_the_plain_engine(learner, apart, n_classes):
    X, y = table(60)
    classes = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    check_equal(plan_of(X, classes, learner, task="classification"), apart)
    weights = np.random.default_rng(2).exponential(size=len(y))
    needs = {"y_given_rest", "y_dropped"}
    plan = plan_of(X, classes, RIDGE, 0.5, needs, task="classification", sample_weight=weights)
    check_equal(plan, 1e-8)


@pytest.mark.parametrize("needs", NEEDS)
@pytest.mark.parametrize("splits", [0.4, "none"])
@pytest.mark.parametrize(("learner", "apart"), [LEARNERS[0], LEARNERS[2]])
def test_one_more_need_changes_not_a_bit(learner, apart, splits, needs):
    X, y = table(50)
    plan = plan_of(X, y, learner, splits, needs)
    check_equal(plan, apart)
    everything = replace(plan, needs=ALL)
    found = dict(zip(everything.tasks, kernel.run(everything), strict=True))
    for task, outcome in zip(plan.tasks, kernel.run(plan), strict=True):
        assert_array_equal(outcome.prediction, found[task].prediction)


@pytest.mark.parametrize(("learner", "apart"), LEARNERS)
def test_one_feature_leaves_the_mean(learner, apart):
    X, y = table(40)
    check_equal(plan_of(X[["a"]], y, learner), apart)
    check_equal(plan_of(X[["a", "b"]], y, learner, groups={"all": ["a", "b"]}), apart)


@pytest.mark.parametrize(("learner", "apart"), LEARNERS)
def test_constant_equal_and_rare_columns_are_no_trouble(learner, apart):
    X, y = table(60)
    X["same"], X["twin"], X["rare"] = 1.0, X["a"], np.arange(len(y)) == 7
    check_equal(plan_of(X, y, learner), apart)
    bits = np.random.default_rng(3).integers(0, 2, (60, 3)).astype(float)
    check_equal(plan_of(bits, y, learner), apart)


@pytest.mark.parametrize(("learner", "apart"), LEARNERS[1:])
def test_a_feature_that_drowns_the_others_is_taken_away_exactly(learner, apart):
    X, y = table(150, seed=4)
    far = np.where(np.random.default_rng(5).random(X.shape) < 0.01, 1e4, X)
    check_equal(plan_of(far, y, learner), apart)


@pytest.mark.parametrize(("learner", "apart"), LEARNERS)
def test_rows_too_close_for_float32_are_fitted_plainly(learner, apart):
    X, y = table(40)
    X.loc[3, "b"] = 1e30
    check_equal(plan_of(X, y, learner, "none"), apart)
    check_equal(plan_of(X[["a", "b"]], y, learner), apart)


@pytest.mark.parametrize(
    "learner",
    [Solved(C=0.1), Solved(epsilon=0.0), Solved(C=20.0, sigma=0.3), Kernel(C=100.0, kind="ridge")],
)
def test_settings_are_heeded(learner):
    check_equal(plan_of(*table(60), learner), 2e-6)


@pytest.mark.parametrize("n_columns", [1, 3])
@pytest.mark.parametrize("rows", ["numbers", "levels"])
def test_sigma_of_the_rest_is_that_of_sigest(rows, n_columns):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 5)) if rows == "numbers" else rng.integers(0, 3, (400, 5)) * 0.7
    columns = Columns(np.arange(n_columns), np.arange(n_columns, 5))
    pairs = pdist(X, "sqeuclidean")
    rest = np.empty_like(pairs)
    n_zero = pairs_without(pairs, np.ascontiguousarray(X.T), columns, rest)
    exact = pdist(X[:, n_columns:], "sqeuclidean")
    assert n_zero == np.sum(exact == 0)
    assert_allclose(rest, exact, rtol=1e-9)
    sigma = np.mean(1 / np.array(positive_quantiles(rest, n_zero, (0.9, 0.1))))
    assert sigma == pytest.approx(sigest(X[:, n_columns:]), rel=1e-12)


def test_many_rows_have_the_sigma_of_those_sigest_looks_at():
    X = np.random.default_rng(7).normal(size=(2100, 2))
    plan = plan_of(X, X[:, 0] + X[:, 1] ** 2, Kernel(), "none", {"y_given_rest"})
    check_equal(plan, 2e-3)


@pytest.mark.parametrize("n", [2, 3, 50, 8192, 8193, 100_000])
def test_quantiles_are_numpys(n):
    values = np.random.default_rng(n).exponential(size=n)
    values[n // 2] = 0
    found = positive_quantiles(values, 1, (0.9, 0.5, 0.1))
    assert_allclose(found, np.quantile(values[values > 0], (0.9, 0.5, 0.1)), rtol=1e-14)


def test_progress_ends_with_all_tasks_and_every_task_costs_something():
    X, y = table(50)
    told = []
    plan = replace(plan_of(X, y, Kernel()), progress=lambda *counts: told.append(counts))
    outcomes = kernel.run(plan)
    assert told[-1] == (len(plan.tasks), len(plan.tasks))
    assert all(outcome.seconds > 0 for outcome in outcomes)


def test_what_does_not_fit_is_left_to_the_plain_engine(monkeypatch):
    X, y = table(50)
    monkeypatch.setattr(kernel, "support_vectors", lambda *a, **k: None)
    check_equal(plan_of(X, y, Kernel(), 0.5), 0)


def test_classifiers_alone_and_large_tables_are_not_supported(monkeypatch):
    X, y = table(50)
    assert kernel.supports(plan_of(X, y, Kernel()))
    assert kernel.supports(plan_of(X, y > 0, Kernel()))
    assert not kernel.supports(plan_of(X, y > 0, Kernel(), needs={"y_given_all"}))
    assert kernel.supports(plan_of(X, y > 0, RIDGE, needs={"y_given_all"}))
    monkeypatch.setattr(kernel, "MOST_BYTES", 4 * 20**2)
    assert not kernel.supports(plan_of(X, y, Kernel()))


def test_more_rows_than_ridge_has_room_for_are_told(monkeypatch):
    X, y = table(50)
    monkeypatch.setattr(estimators, "MOST_ROWS_FOR_RIDGE", 20)
    assert kernel.supports(plan_of(X, y, Kernel()))
    with pytest.raises(InputError, match=r"at most 20 rows to learn from.*Use kind='svr'"):
        kernel.supports(plan_of(X, y, RIDGE))


# --- large tables -------------------------------------------------------------------------------


@pytest.mark.parametrize(("learner", "apart"), LEARNERS)
@pytest.mark.parametrize("splits", [3, "none"])
def test_little_memory_changes_nothing(monkeypatch, learner, apart, splits):
    X, y = table()
    monkeypatch.setattr(kernel, "MOST_BYTES_OF_DISTANCES", 0)
    monkeypatch.setattr(kernel, "BLOCK_BYTES", 5000)
    monkeypatch.setattr(kernel, "GROUP_BYTES", 0)
    plan = plan_of(X, y, learner, splits)
    space = kernel.Space.of(plan, 0)
    assert space.pairs is None
    assert space.across is None
    assert len(space.blocks) > 1
    check_equal(plan, apart)


def test_20000_rows_are_fitted_from_a_kernel_alone():
    kept, held = kernel.MOST_BYTES_OF_DISTANCES, kernel.MOST_BYTES
    assert kept > 4 * 7152**2  # distances are at hand, which is quicker
    assert kept < 4 * 20_000**2 < 8 * 20_000**2 <= held


# --- dropout and permutation --------------------------------------------------------------------


def feature_of(kind, n, rng):
    """Return the columns of a feature, a row each."""
    if kind == "numbers":
        return rng.normal(size=(1, n))
    if kind == "skewed":
        return rng.exponential(size=(1, n))
    if kind == "constant":
        return np.ones((1, n))
    if kind == "two levels":
        return (rng.random((1, n)) < 0.1) * 3.0
    return np.eye(3)[rng.integers(0, 3, n)].T * 2.0


@pytest.mark.parametrize("sigma", [1e-3, 0.03, 0.1])
@pytest.mark.parametrize("kind", ["numbers", "skewed", "constant", "two levels", "three columns"])
def test_sums_at_nodes_are_those_of_a_kernel_made_anew(kind, sigma):
    rng = np.random.default_rng(9)
    vectors, values = feature_of(kind, 80, rng), feature_of(kind, 60, rng)
    others, rest = rng.normal(size=(80, 3)), rng.normal(size=(60, 3))
    beta = rng.normal(size=80)
    orders = np.array([rng.permutation(60) for _ in range(3)])
    exact = [
        gaussian_kernel(
            np.vstack([values[:, o], rest.T]).T, np.vstack([vectors, others.T]).T, sigma
        )
        for o in orders
    ]
    whole = gaussian_kernel(np.vstack([values, rest.T]).T, np.vstack([vectors, others.T]).T, sigma)
    count = kernel_nodes.counts(vectors, values, values, sigma)[0] if len(vectors) == 1 else 0
    nodes = [kernel_nodes.chebyshev(vectors, int(count))] if count else []
    if kind in ("constant", "two levels", "three columns"):
        nodes.append(kernel_nodes.levels(vectors, values, sigma))
    assert nodes
    for some in nodes:
        sums = kernel_nodes.sums_after(some, whole, beta, values, Swap(values, orders), sigma)
        scale = np.abs(beta).sum()
        assert_allclose(sums[:, :, 0], np.array(exact) @ beta, rtol=0, atol=1e-11 * scale)


def test_values_too_far_away_or_too_many_have_no_nodes():
    rng = np.random.default_rng(10)
    vectors, values = rng.normal(size=(2, 50)), rng.normal(size=(2, 40))
    assert (kernel_nodes.counts(vectors, values, values, 0.05) > 0).all()
    assert kernel_nodes.levels(vectors, values, 0.05) is None
    levels = np.sign(vectors)
    assert kernel_nodes.levels(levels, values, 0.05) is not None
    for far in (40.0, 1e30, 1e200):
        values[0, 3] = far
        found = kernel_nodes.counts(vectors, values, values, 0.05)
        assert found[0] == 0
        assert found[1] > 0
        assert kernel_nodes.levels(levels, values, 0.05) is None


def mixed_table(n=80):
    """Return features of every kind: numbers, far values, levels, and several columns."""
    X, y = table(n)
    rng = np.random.default_rng(11)
    X["far"] = rng.standard_cauchy(n) * 30
    X["kind"] = rng.choice(["u", "v", "w"], n)
    X["bit"] = rng.random(n) < 0.2
    return X, y + (X["kind"] == "u") + X["bit"], {"groups": {"pair": ["c", "d"]}}


@pytest.mark.parametrize(("learner", "apart"), LEARNERS)
@pytest.mark.parametrize("way", ["each its own", "levels", "anew"])
def test_every_way_to_alter_a_feature_gives_what_the_plain_engine_gives(
    monkeypatch, learner, apart, way
):
    X, y, options = mixed_table()
    if way != "each its own":
        monkeypatch.setattr(kernel, "counts", lambda vectors, *_: np.zeros(len(vectors), int))
    if way == "anew":
        monkeypatch.setattr(kernel, "levels", lambda *_: None)
    check_equal(plan_of(X, y, learner, 0.4, {"y_dropped", "y_permuted"}, **options), apart)


def test_a_mixed_table_takes_every_way(monkeypatch):
    X, y, options = mixed_table()
    taken = set()

    def watch(name, was):
        def watched(*arguments):
            found = was(*arguments)
            if found is not None:
                taken.add(name)
            return found

        monkeypatch.setattr(kernel, name, watched)

    for name in ("chebyshev", "levels", "_sums_anew"):
        watch(name, getattr(kernel, name))
    kernel.run(plan_of(X, y, Kernel(), 0.4, {"y_permuted"}, **options))
    assert taken == {"chebyshev", "levels", "_sums_anew"}


def test_a_feature_that_is_constant_in_the_test_rows_loses_nothing_when_permuted():
    X, y = table()
    train = plan_of(X, y, Kernel(), 0.4).folds[0][0]
    X["rare"] = np.arange(len(y)) == train[0]
    plan = plan_of(X, y, Kernel(), 0.4)
    outcome, test = kernel.run(plan)[0], plan.folds[0][1]
    rare = [feature.name for feature in plan.data.features].index("rare")
    loss = plan.data.loss(outcome.prediction, test)
    assert_allclose(outcome.permuted[:, rare], loss, rtol=1e-10)


def test_a_machine_without_support_vectors_answers_as_before():
    X, y = table(60)
    plan = plan_of(X, np.arctan(y), Kernel(epsilon=5.0), 0.4)
    outcome, test = kernel.run(plan)[0], plan.folds[0][1]
    loss = plan.data.loss(outcome.prediction, test)
    assert_allclose(outcome.dropped, np.tile(loss[:, np.newaxis], 4), rtol=1e-12)
    check_equal(plan, 1e-6)


def test_features_are_altered_sooner_than_by_predicting_anew():
    rng = np.random.default_rng(12)
    X = rng.normal(size=(600, 20))
    y = 2 * X[:, 0] ** 2 + 3 * X[:, 1] + rng.normal(size=600)
    plan = plan_of(X, y, Kernel(), 0.5, {"y_dropped", "y_permuted"})
    kernel.run(plan)  # compiled or read from disk
    ours = least_seconds(lambda: kernel.run(plan))
    assert least_seconds(lambda: plain.run(plan), 1) > 5 * ours


@pytest.mark.parametrize(("learner", "factor"), [(Kernel(), 5), (RIDGE, 1.5)])
def test_it_is_faster_than_the_plain_engine(learner, factor):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(1000, 20))
    y = 2 * X[:, 0] ** 2 + 3 * X[:, 1] + rng.normal(size=1000)
    plan = prepare(X, y, learner=learner, methods=["gcm", "loco"], splits="none").plan(0)
    kernel.run(plan_of(X[:50, :3], y[:50], learner, "none"))  # compiled or read from disk
    ours = least_seconds(lambda: kernel.run(plan), 2) / len(plan.tasks)
    one = np.mean(
        [least_seconds(partial(plain.fit_task, plan, task), 1) for task in plan.tasks[:4]]
    )
    assert one > factor * ours
