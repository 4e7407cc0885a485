"""Our boosting is R's gbm, and stands what a table can throw at it."""

from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import GradientBoostingRegressor

from covaria.learners.estimators import boosting
from covaria.learners.estimators.boosting import GradientBoosting, bags, bin_edges, bins

FIXTURES = Path(__file__).parents[2] / "fixtures"
FEATURES = ["x1", "x2", "x3", "x4"]


def from_r(name):
    # numpy reads back every last digit; pandas did not always.
    path = FIXTURES / f"r_{name}.csv"
    rows = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
    return pd.DataFrame(np.atleast_1d(rows))


@pytest.fixture(scope="module")
def r():
    return {name: from_r(name) for name in ("data", "new", "gbm_fitted", "gbm_new")}


@pytest.fixture
def table():
    rng = np.random.default_rng(1)
    # scikit-learn rounds X to 32 bits; these numbers survive it.
    X = rng.normal(size=(300, 6)).astype(np.float32).astype(float)
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=300)
    return X, y


def answers(r, model, features, target, weights=None):
    model.fit(r["data"][features].to_numpy(), r["data"][target].to_numpy(), weights)
    return [model.predict(r[rows][features].to_numpy()) for rows in ("data", "new")]


def assert_as_in_r(r, ours, column):
    for answer, theirs in zip(ours, ("gbm_fitted", "gbm_new"), strict=True):
        assert_allclose(answer, r[theirs][column], rtol=0, atol=1e-8)


@pytest.mark.parametrize("splits", [1, 2, 4])
def test_y_given_all_is_what_gbm_says(r, splits):
    ours = answers(r, GradientBoosting(splits=splits, bag=1), FEATURES, "y")
    assert_as_in_r(r, ours, f"y_splits{splits}")


@pytest.mark.parametrize("splits", [1, 2, 4])
def test_x1_given_the_rest_is_what_gbm_says(r, splits):
    ours = answers(r, GradientBoosting(splits=splits, bag=1), FEATURES[1:], "x1")
    assert_as_in_r(r, ours, f"x1_splits{splits}")


@pytest.mark.parametrize("unit", [1, 1000])
def test_weights_are_gbms_and_have_no_unit(r, unit):
    weights = unit * r["data"]["weight"].to_numpy()
    ours = answers(r, GradientBoosting(splits=2, bag=1), FEATURES, "y", weights)
    assert_as_in_r(r, ours, "y_weighted_splits2")


@pytest.mark.parametrize("splits", [1, 2])
def test_two_classes_are_gbms_bernoulli(r, splits):
    ours = answers(r, GradientBoosting(splits=splits, bag=1, n_classes=2), FEATURES, "two")
    assert_as_in_r(r, [p[:, 1] for p in ours], f"two_response_splits{splits}")
    assert_as_in_r(r, [np.log(p[:, 1] / p[:, 0]) for p in ours], f"two_link_splits{splits}")


def test_three_balanced_classes_are_gbms_multinomial(r):
    ours = answers(r, GradientBoosting(splits=2, bag=1, n_classes=3), FEATURES, "three")
    for k in range(3):
        assert_as_in_r(r, [p[:, k] for p in ours], f"three_{k}_splits2")


def wald(scores):
    return scores.mean(axis=0) / scores.std(axis=0) * np.sqrt(len(scores))


def left_over(X, y):
    return y - GradientBoosting(bag=1).fit(X, y).predict(X)


def test_gcm_and_loco_from_our_residuals_are_those_from_gbms(r):
    X, y = r["data"][FEATURES].to_numpy(), r["data"]["y"].to_numpy()
    rests = [np.delete(X, j, axis=1) for j in range(4)]
    x_given_rest = np.stack([left_over(rest, X[:, j]) for j, rest in enumerate(rests)], axis=1)
    y_given_rest = np.stack([left_over(rest, y) for rest in rests], axis=1)
    gain = y_given_rest**2 - left_over(X, y)[:, np.newaxis] ** 2
    assert_allclose(wald(x_given_rest * y_given_rest), from_r("gcm_gbm")["statistic"], atol=1e-8)
    assert_allclose(wald(gain), from_r("loco_gbm")["statistic"], atol=1e-8)


@pytest.mark.parametrize("splits", [1, 2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_without_bagging_it_is_scikit_learns(table, splits, weighted):
    X, y = table
    weights = np.random.default_rng(2).exponential(size=len(y)) if weighted else None
    theirs = GradientBoostingRegressor(
        max_leaf_nodes=splits + 1, max_depth=None, min_samples_leaf=10
    )
    theirs.fit(X, y, sample_weight=weights)
    ours = GradientBoosting(splits=splits, bag=1).fit(X, y, weights)
    assert_allclose(ours.predict(X), theirs.predict(X), rtol=0, atol=1e-8)


def test_bags_hold_their_share_of_different_rows_and_differ_from_tree_to_tree():
    drawn = np.array(list(bags(3, 101, 20, 0.5)))
    assert_array_equal(drawn.sum(axis=1), 50)
    assert len(np.unique(drawn, axis=0)) == 20


def test_bags_hang_on_the_seed_and_more_trees_only_add_to_them():
    few, many = list(bags(3, 50, 5, 0.5)), list(islice(bags(3, 50, 50, 0.5), 5))
    assert_array_equal(few, many)
    assert not np.array_equal(few, list(bags(4, 50, 5, 0.5)))


def test_bags_of_equal_random_numbers_are_no_smaller():
    numbers = np.array([[0.5, 0.1, 0.5, 0.5, 0.9], [0.2, 0.2, 0.2, 0.2, 0.2]])
    assert_array_equal(
        boosting.smallest(numbers, 3),
        [[True, True, True, False, False], [True, True, True, False, False]],
    )


def test_bags_are_the_same_however_many_are_drawn_at_once(monkeypatch):
    at_once = list(bags(3, 50, 20, 0.5))
    monkeypatch.setattr(boosting, "DRAWN", 120)
    assert_array_equal(at_once, list(bags(3, 50, 20, 0.5)))


def test_a_full_bag_holds_every_row():
    assert all(seen.all() for seen in bags(0, 10, 3, 1.0))


def test_the_same_seed_gives_the_same_answer_and_another_seed_another(table):
    X, y = table
    one, same, other = (GradientBoosting(seed=s).fit(X, y).predict(X) for s in (5, 5, 6))
    assert_array_equal(one, same)
    assert not np.allclose(one, other)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("place", [0, 3, 6])
def test_a_column_no_tree_used_can_go_without_changing_a_bit(table, n_classes, weighted, place):
    X, y = table
    rng = np.random.default_rng(3)
    # Too few ones to stand alone in a node.
    useless = (np.arange(300) < 8).astype(float)
    y = np.digitize(y, np.linspace(-1, 1, n_classes - 1)).astype(float) if n_classes else y
    weights = rng.exponential(size=300) if weighted else None
    full = GradientBoosting(splits=3, n_classes=n_classes).fit(
        wide := np.insert(X, place, useless, axis=1), y, weights
    )
    rest = GradientBoosting(splits=3, n_classes=n_classes).fit(X, y, weights)
    assert_array_equal(full.used_, np.insert(rest.used_, place, False))
    assert_array_equal(full.predict(wide), rest.predict(X))


def test_used_columns_are_those_that_move_the_answer(table):
    X, y = table
    model = GradientBoosting(trees=5).fit(X, y)
    moved = [not np.array_equal(model.predict(shift(X, j)), model.predict(X)) for j in range(6)]
    assert_array_equal(model.used_, moved)


def shift(X, column):
    shifted = X.copy()
    shifted[:, column] = np.where(X[:, column] > 0, -9.0, 9.0)
    return shifted


def test_of_two_equal_columns_the_first_is_used(table):
    X, y = table
    model = GradientBoosting(splits=2).fit(np.hstack([X[:, :2], X[:, :2]]), y)
    assert_array_equal(model.used_, [True, True, False, False])


@pytest.mark.parametrize(
    "X",
    [np.empty((300, 0)), np.ones((300, 2)), np.eye(300)[:, :3]],
    ids=["no columns", "constant columns", "columns of one 1"],
)
def test_nothing_to_split_gives_the_weighted_mean(table, X):
    y = table[1]
    weights = np.arange(300.0)
    model = GradientBoosting().fit(X, y, weights)
    assert_allclose(model.predict(X), np.average(y, weights=weights), rtol=1e-14)
    assert not model.used_.any()


def test_nothing_to_split_gives_the_class_shares():
    y = np.repeat([0.0, 1.0, 2.0], [10, 20, 70])
    three = GradientBoosting(n_classes=3).fit(np.ones((100, 1)), y).predict(np.ones((2, 1)))
    two = GradientBoosting(n_classes=2).fit(np.ones((100, 1)), y > 1).predict(np.ones((2, 1)))
    assert_allclose(three, [[0.1, 0.2, 0.7]] * 2)
    assert_allclose(two, [[0.3, 0.7]] * 2)


@pytest.mark.parametrize("n_rows", [1, 2, 19, 39])
def test_too_few_rows_to_split_give_the_mean(n_rows):
    X, y = np.arange(n_rows)[:, np.newaxis] * 1.0, np.arange(n_rows) * 1.0
    assert_allclose(GradientBoosting().fit(X, y).predict(X), y.mean())


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 / 3])
def test_a_constant_y_uses_no_column(table, value):
    X = table[0]
    model = GradientBoosting(splits=3).fit(X, np.full(300, value))
    assert not model.used_.any()
    assert_allclose(model.predict(X), value)


def test_a_tree_stops_when_nothing_is_left_to_gain():
    x = np.repeat([0.0, 1.0], 20)
    model = GradientBoosting(trees=1, splits=5, shrinkage=1, bag=1).fit(x[:, np.newaxis], 3 * x)
    assert [len(tree.cuts) for trees in model.rounds_ for tree in trees] == [1]
    assert_allclose(model.predict(x[:, np.newaxis]), 3 * x)


def test_values_are_parted_midway_and_the_threshold_itself_goes_right():
    x = np.repeat([0.0, 1.0], 20)
    model = GradientBoosting(trees=1, shrinkage=1, bag=1).fit(x[:, np.newaxis], x)
    assert_allclose(model.predict(np.array([[0.499], [0.5], [0.501]])), [0, 1, 1])


def test_neighbouring_doubles_can_be_parted():
    x = np.repeat([1.0, np.nextafter(1.0, 2.0)], 20)
    y = np.repeat([0.0, 1.0], 20)
    model = GradientBoosting(trees=1, shrinkage=1, bag=1).fit(x[:, np.newaxis], y)
    assert_allclose(model.predict(x[:, np.newaxis]), y)


def test_rows_without_weight_do_not_pull(table):
    X, y = table
    weights = np.repeat([1.0, 0.0], 150)
    spoiled = np.where(weights > 0, y, 1e6)
    one, two = (GradientBoosting(splits=2).fit(X, v, weights).predict(X) for v in (y, spoiled))
    assert_array_equal(one, two)


def test_a_single_row_with_weight_gives_its_value(table):
    X, y = table
    weights = np.zeros(300)
    weights[7] = 2.0
    assert_allclose(GradientBoosting(splits=2).fit(X, y, weights).predict(X), y[7])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("wrong", [0, 1])
def test_classes_parted_perfectly_give_finite_probabilities(n_classes, wrong):
    x = np.arange(300.0)
    y = np.floor(x * n_classes / 300)
    y[:wrong] = n_classes - 1
    model = GradientBoosting(trees=500, splits=4, shrinkage=1, bag=1, n_classes=n_classes)
    answer = model.fit(x[:, np.newaxis], y).predict(x[:, np.newaxis])
    assert answer.shape == (300, n_classes)
    assert np.isfinite(answer).all()
    assert_allclose(answer.sum(axis=1), 1)
    assert (answer.argmax(axis=1) == y).mean() > 0.9


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_class_without_rows_is_improbable_but_does_no_harm(table, n_classes):
    X = table[0]
    answer = GradientBoosting(n_classes=n_classes).fit(X, np.zeros(300)).predict(X)
    assert_allclose(answer[:, 0], 1, atol=1e-4)
    assert np.isfinite(answer).all()


def test_many_rows_fit_in_memory():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 5))
    model = GradientBoosting(trees=5, splits=2, shrinkage=0.5).fit(X, np.sign(X[:, 0]))
    assert_allclose(model.predict(X), np.sign(X[:, 0]), atol=0.1)


def test_few_values_have_a_bin_each():
    values = np.array([3.0, 1.0, 2.0, 1.0, 3.0, 3.0])
    assert_array_equal(bin_edges(values), [1.5, 2.5])
    assert_array_equal(bins(values, bin_edges(values)), [2, 0, 1, 0, 2, 2])
    assert len(bin_edges(np.arange(255.0))) == 254


def test_many_values_are_put_into_255_bins_of_about_as_many_rows():
    values = np.random.default_rng(0).standard_cauchy(10_000)
    counts = np.bincount(bins(values, bin_edges(values)))
    assert len(counts) == 255
    assert set(counts) == {39, 40}


def test_equal_values_are_never_parted_and_crowd_out_other_bins():
    rng = np.random.default_rng(0)
    values = np.concatenate([np.zeros(9000), rng.normal(size=1000)])
    found = bins(values, bin_edges(values))
    assert len(np.unique(found[values == 0])) == 1
    assert 20 < len(np.unique(found)) < 60


def test_a_row_goes_left_where_its_bin_lies_left_of_the_threshold():
    values = np.random.default_rng(0).normal(size=1000)
    edges, new = bin_edges(values), np.random.default_rng(1).normal(size=500)
    new[:254] = edges
    for k, edge in enumerate(edges):
        assert_array_equal(new < edge, bins(new, edges) <= k)


@pytest.mark.parametrize("splits", [1, 4])
@pytest.mark.parametrize("n_classes", [0, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_bin_for_every_value_gives_the_trees_of_sorted_columns(
    table, monkeypatch, splits, n_classes, weighted
):
    X, y = table
    X, y = X[:250], (y[:250] > 0).astype(float) if n_classes else y[:250]
    weights = np.random.default_rng(2).exponential(size=250) if weighted else None
    model = GradientBoosting(splits=splits, bag=1, n_classes=n_classes)
    exact = model.fit(X, y, weights).predict(X)
    monkeypatch.setattr(boosting, "BINNED_ABOVE", 249)
    assert_allclose(model.fit(X, y, weights).predict(X), exact, rtol=0, atol=1e-10)


def test_few_bins_are_nearly_as_good_as_sorted_columns(table, monkeypatch):
    X, y = table
    fine = GradientBoosting().fit(X, y).predict(X)
    monkeypatch.setattr(boosting, "BINNED_ABOVE", 0)
    monkeypatch.setattr(boosting, "MOST_BINS", 16)
    model = GradientBoosting().fit(X, y)
    assert {cut.threshold for trees in model.rounds_ for tree in trees for cut in tree.cuts} <= {
        edge for column in X.T for edge in bin_edges(column)
    }
    assert 0.95 < np.corrcoef(model.predict(X), fine)[0, 1] < 1


def test_binned_columns_that_no_tree_used_can_go_without_changing_a_bit(table, monkeypatch):
    monkeypatch.setattr(boosting, "BINNED_ABOVE", 0)
    monkeypatch.setattr(boosting, "MOST_BINS", 16)
    X, y = table
    full = GradientBoosting(trees=3).fit(X, y)
    rest = GradientBoosting(trees=3).fit(X[:, full.used_], y)
    assert 0 < full.used_.sum() < 6
    assert_array_equal(full.predict(X), rest.predict(X[:, full.used_]))


@pytest.mark.parametrize(
    "X", [np.empty((300, 0)), np.ones((300, 2)), np.eye(300)[:, :3]], ids=["none", "same", "ones"]
)
def test_bins_that_cannot_be_parted_give_the_mean(table, monkeypatch, X):
    monkeypatch.setattr(boosting, "BINNED_ABOVE", 0)
    model = GradientBoosting().fit(X, table[1])
    assert_allclose(model.predict(X), table[1].mean(), rtol=1e-14)
    assert not model.used_.any()
