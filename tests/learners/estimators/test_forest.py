"""The forest: its trees are those of scikit-learn, its mean as good."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from covaria.learners.estimators.forest import ForestModel, _grow_trees, _mean_of_leaves


def table(seed, n_rows=300, n_columns=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    return X, X[:, 0] * (X[:, 1] > 0) + np.sin(2 * X[:, 2]) + 0.5 * rng.normal(size=n_rows)


def one_tree(X, y, counts, min_node):
    order = np.argsort(X, axis=0, kind="stable").T.copy()
    return _grow_trees(np.ascontiguousarray(X.T), order, y, counts[None, :], min_node)


@pytest.mark.parametrize("min_node", [1, 3, 20])
@pytest.mark.parametrize("digits", [15, 0])  # whole numbers tie
def test_a_tree_is_that_of_scikit_learn(min_node, digits):
    X, y = table(min_node)
    X, y = np.round(X, digits), np.round(1e6 * y)
    nodes = one_tree(X, y, np.ones(len(y)), min_node)
    theirs = DecisionTreeRegressor(min_samples_leaf=min_node, random_state=0).fit(X, y)
    found = _mean_of_leaves(np.ascontiguousarray(X.T), *nodes)
    if digits:
        assert found == pytest.approx(theirs.predict(X))
    else:
        errors = [np.mean((some - y) ** 2) for some in (found, theirs.predict(X))]
        assert errors[0] == pytest.approx(errors[1], rel=0.05)


def test_a_row_that_counts_twice_is_two_rows():
    X, y = table(5, n_rows=80)
    counts = np.random.default_rng(6).integers(0, 3, size=80).astype(float)
    again = np.repeat(np.arange(80), counts.astype(int))
    theirs = DecisionTreeRegressor(min_samples_leaf=4, random_state=0)
    kept = counts > 0
    theirs.fit(X[kept], y[kept], sample_weight=counts[kept])
    found = _mean_of_leaves(np.ascontiguousarray(X.T), *one_tree(X, y, counts, 4))
    assert found[again] == pytest.approx(theirs.predict(X[again]))


def test_a_forest_predicts_as_well_as_that_of_scikit_learn():
    (X, y), (new, _) = table(1), table(2)
    truth = new[:, 0] * (new[:, 1] > 0) + np.sin(2 * new[:, 2])
    ours = ForestModel(trees=100, min_node=3, seed=1).fit(X, y).predict(new)
    theirs = RandomForestRegressor(100, min_samples_leaf=3, random_state=1).fit(X, y).predict(new)
    errors = [np.mean((found - truth) ** 2) for found in (ours, theirs)]
    assert errors[0] == pytest.approx(errors[1], rel=0.1)


def test_units_and_a_column_that_does_not_vary_change_nothing():
    X, y = table(3)
    plain = ForestModel(trees=20, seed=2).fit(X, y).predict(X)
    other = np.column_stack([X * 1e6 - 3, np.ones(len(X))])
    assert ForestModel(trees=20, seed=2).fit(other, 7 * y + 1).predict(other) == pytest.approx(
        7 * plain + 1, rel=1e-5
    )


def test_a_target_that_does_not_vary_is_its_own_prediction():
    X, _ = table(4)
    assert ForestModel(trees=3).fit(X, np.full(len(X), 2.5)).predict(X) == pytest.approx(2.5)
