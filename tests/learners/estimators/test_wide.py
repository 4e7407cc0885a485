"""Linear models for more columns than rows: few columns are found, and many held small."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from covaria.learners.estimators.wide import RidgePathModel, SparseModel

BOTH = (RidgePathModel, SparseModel)


def few(n_rows, n_columns, seed):
    """Return a table of which four columns matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    truth = X[:, :4].sum(axis=1) / 2
    return X, truth, truth + rng.normal(size=n_rows)


def explained(model, table, new):
    (X, _, y), (X_new, truth, _) = table, new
    return 1 - np.mean((model.fit(X, y).predict(X_new) - truth) ** 2) / truth.var()


def test_four_columns_of_two_hundred_are_found_and_not_held_small():
    sparse, ridge = (
        explained(k(), few(160, 200, 0), few(1000, 200, 1)) for k in (SparseModel, *BOTH[:1])
    )
    assert sparse > 0.85
    assert ridge < 0.4


def test_where_nothing_is_to_be_found_the_mean_is_left():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(40, 100, 200)), rng.normal(size=(40, 100))
    found = [SparseModel().fit(*table).slopes_.any() for table in zip(X, y, strict=True)]
    assert np.mean(found) <= 0.4


def test_the_ridge_is_scikit_learns_at_some_penalty():
    X, _, y = few(60, 100, 3)
    ours = RidgePathModel().fit(X, y).predict(X)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    apart = [
        np.abs(Ridge(alpha=a).fit(Z, y).predict(Z) - ours).max() for a in np.logspace(0, 5, 400)
    ]
    assert min(apart) < 0.01


@pytest.mark.parametrize("model", BOTH)
def test_units_do_not_matter(model):
    X, _, y = few(60, 100, 4)
    units = 10.0 ** np.random.default_rng(0).integers(-3, 4, 100)
    once, again = model().fit(X, y).predict(X), model().fit(X * units + 3, y).predict(X * units + 3)
    assert again == pytest.approx(once, abs=1e-6)


@pytest.mark.parametrize("model", BOTH)
def test_rows_without_weight_are_as_good_as_absent(model):
    X, _, y = few(120, 100, 5)
    given = model().fit(X, y, np.repeat([1.0, 0.0], 60)).predict(X)
    assert given == pytest.approx(model().fit(X[:60], y[:60]).predict(X))


@pytest.mark.parametrize("model", BOTH)
def test_classes_get_chances_that_add_up_to_one(model):
    X, truth, _ = few(100, 200, 6)
    chances = model(n_classes=2).fit(X, (truth > 0).astype(float)).predict(X)
    assert chances.sum(axis=1) == pytest.approx(1)
    assert np.mean(chances.argmax(axis=1) == (truth > 0)) > 0.7


@pytest.mark.parametrize("model", BOTH)
def test_without_columns_or_variation_it_is_the_mean(model):
    nothing, y = np.zeros((4, 0)), np.array([0.0, 1, 2, 1])
    assert model().fit(nothing, y).predict(nothing) == pytest.approx([1] * 4)
    X = np.random.default_rng(7).normal(size=(50, 60))
    assert model().fit(X, np.full(50, 7.0)).predict(X) == pytest.approx([7] * 50)
