"""A small forest on binned columns."""

import numpy as np
import pytest

from covaria.learners.estimators.binned_forest import BINS, binned, forest_predictions


def table(n_rows=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], rng


def predicted(X, y, rng, *, weights=None, trees=60, leaf=5.0, n_train=400):
    weights = np.ones(len(y)) if weights is None else weights
    train, test = np.arange(n_train), np.arange(n_train, len(y))
    drawn = rng.integers(n_train, size=(trees, n_train))
    return forest_predictions(binned(X), y, weights, train, test, leaf, drawn, 5)


def test_bins_keep_the_order_of_a_column_and_few_values_apart():
    X, _, _ = table()
    for column, bins in zip(X.T, binned(X), strict=True):
        assert (np.diff(bins[np.argsort(column)].astype(int)) >= 0).all()
        assert bins.max() == BINS - 1
        assert np.bincount(bins).min() > len(X) / BINS / 2
    few = np.array([[5.0], [1.0], [5.0], [3.0]])
    assert binned(few).tolist() == [[2, 0, 2, 1]]


def test_it_errs_about_as_little_as_the_forest_of_scikit_learn():
    from sklearn.ensemble import RandomForestRegressor

    X, y, rng = table(1500)
    y = y + 0.5 * rng.normal(size=len(y))
    ours = predicted(X, y, rng, n_train=1000)
    theirs = RandomForestRegressor(60, min_samples_leaf=5, max_features=0.5, random_state=0)
    theirs = theirs.fit(X[:1000], y[:1000]).predict(X[1000:])
    errors = [np.mean((y[1000:] - found) ** 2) for found in (ours, theirs)]
    assert errors[0] < 1.1 * errors[1]


def test_a_tree_of_one_leaf_is_the_mean_of_its_rows():
    X, y, rng = table()
    drawn = rng.integers(400, size=(3, 400))
    train, test = np.arange(400), np.arange(400, 600)
    found = forest_predictions(binned(X), y, np.ones(600), train, test, 300.0, drawn, 5)
    assert found == pytest.approx(y[drawn].mean(axis=1).mean())


def test_a_step_is_found_where_it_is():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 8, size=(600, 1)).astype(float)
    y = np.where(X[:, 0] > 3, 2.0, -1.0)
    assert predicted(X, y, rng) == pytest.approx(y[400:])


def test_a_row_of_weight_two_is_two_rows():
    X, y, rng = table(300)
    drawn = rng.integers(200, size=(20, 200))
    train, test = np.arange(200), np.arange(200, 300)
    one = forest_predictions(binned(X), y, np.full(300, 2.0), train, test, 10.0, drawn, 5)
    other = forest_predictions(binned(X), y, np.ones(300), train, test, 5.0, drawn, 5)
    assert one == pytest.approx(other)


def test_rows_that_are_not_learned_from_do_not_matter():
    X, y, _ = table()
    changed = y.copy()
    changed[400:] = 99.0
    one, other = (predicted(X, own, np.random.default_rng(2)) for own in (y, changed))
    assert np.array_equal(one, other)
