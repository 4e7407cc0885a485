"""Projection pursuit: sums of columns are found, and nothing is pursued where there is nothing."""

import numpy as np
import pytest

from covaria.learners.estimators.pursuit import Index, PursuitModel, parts, unit
from covaria.learners.estimators.quadratic import QuadraticModel

LINKS = {"square": np.square, "kink": np.abs, "wave": np.cos, "sine": np.sin}


def a_sum(rng, n_rows, n_columns):
    """Return columns and the sum of the first twenty, of variance 1."""
    X = rng.normal(size=(n_rows, n_columns))
    return X, X[:, :20].sum(axis=1) / np.sqrt(20)


def explained(model, X, y, new, truth):
    return 1 - np.mean((model.fit(X, y).predict(new) - truth) ** 2) / truth.var()


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("n_columns", [20, 30])
def test_a_function_of_a_sum_of_twenty_columns_is_found_from_400_rows(link, n_columns):
    rng = np.random.default_rng(0)
    (X, m), (new, m_new) = a_sum(rng, 400, n_columns), a_sum(rng, 2000, n_columns)
    y = LINKS[link](m) + 0.3 * rng.normal(size=400)
    assert explained(PursuitModel(), X, y, new, LINKS[link](m_new)) > 0.9


def test_all_products_by_ridge_miss_more_of_it_where_the_noise_grows_with_it():
    rng = np.random.default_rng(0)
    (X, m), (new, m_new) = a_sum(rng, 300, 20), a_sum(rng, 2000, 20)
    y = (m + 0.5 * rng.normal(size=300)) ** 2
    missed = [1 - explained(k, X, y, new, m_new**2) for k in (PursuitModel(), QuadraticModel())]
    assert missed[0] < 0.5 * missed[1]


def test_two_products_are_four_sums():
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(600, 15)), rng.normal(size=(2000, 15))
    truth, truth_new = (Z[:, 0] * Z[:, 1] + Z[:, 2] * Z[:, 3] for Z in (X, new))
    model = PursuitModel()
    y = truth + 0.5 * rng.normal(size=600)
    assert explained(model, X, y, new, truth_new) > 0.9
    assert len(model.sums[0]) == 4


def test_nothing_is_pursued_in_noise():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(20, 300, 20)), rng.normal(size=(20, 300))
    models = [PursuitModel().fit(*table) for table in zip(X, y, strict=True)]
    assert sum(not model.sums[0] for model in models) >= 15


def test_a_plane_is_found_as_well_as_by_least_squares():
    rng = np.random.default_rng(3)
    X, new = rng.normal(size=(300, 10)), rng.normal(size=(1000, 10))
    slopes = rng.normal(size=10)
    y = X @ slopes + rng.normal(size=300)
    assert explained(PursuitModel(), X, y, new, new @ slopes) > 0.98


def test_units_do_not_matter():
    rng = np.random.default_rng(4)
    X, m = a_sum(rng, 300, 20)
    y = m**2 + rng.normal(size=300)
    units = 10.0 ** rng.integers(-3, 4, 20)
    once = PursuitModel().fit(X, y).predict(X)
    again = PursuitModel().fit(X * units + 5, 2 * y).predict(X * units + 5)
    assert again == pytest.approx(2 * once, abs=1e-6)


def test_rows_without_weight_are_as_good_as_absent():
    rng = np.random.default_rng(5)
    X, m = a_sum(rng, 400, 20)
    y = m**2 + 0.3 * rng.normal(size=400)
    weights = np.repeat([1.0, 0.0], 200)
    given, absent = PursuitModel().fit(X, y, weights), PursuitModel().fit(X[:200], y[:200])
    assert given.predict(X) == pytest.approx(absent.predict(X))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_get_chances_that_add_up_to_one(n_classes):
    rng = np.random.default_rng(6)
    X, m = a_sum(rng, 400, 20)
    y = np.digitize(m**2, [0.4, 1.2][: n_classes - 1]).astype(float)
    chances = PursuitModel(n_classes=n_classes).fit(X, y).predict(X)
    assert chances.shape == (400, n_classes)
    assert chances.sum(axis=1) == pytest.approx(1)
    assert np.mean(chances.argmax(axis=1) == y) > 0.7


def test_without_columns_or_variation_it_is_the_mean():
    nothing, y = np.zeros((4, 0)), np.array([0.0, 1, 2, 1])
    assert PursuitModel().fit(nothing, y).predict(nothing) == pytest.approx([1] * 4)
    X = np.random.default_rng(7).normal(size=(50, 4))
    assert PursuitModel().fit(X, np.full(50, 7.0)).predict(X) == pytest.approx([7] * 50)
    constant = np.ones((50, 4))
    assert PursuitModel().fit(constant, X[:, 0]).predict(constant) == pytest.approx(X[:, 0].mean())


def test_the_parts_of_a_curve_add_up_to_one_and_go_on_as_lines():
    u = np.linspace(-4, 4, 81)
    assert parts(u).sum(axis=1) == pytest.approx(1)
    assert np.diff(parts(u)[-10:], 2, axis=0) == pytest.approx(0, abs=1e-12)


def test_a_step_is_the_least_squares_fit_of_what_the_direction_changes():
    rng = np.random.default_rng(8)
    V, weights = rng.normal(size=(200, 5)), np.full(200, 1 / 200)
    y = V[:, 0] ** 2 + V[:, 1] + rng.normal(size=200)
    y -= y.mean()
    index = Index.along(unit(np.array([1.0, 0.5, 0, 0, 0.2])), V, y, weights)
    smooth = (index.design - index.center) @ index.mix
    nudge = 1e-6
    slope = (parts(index.u + nudge) - parts(index.u - nudge)) @ index.curve / (2 * nudge)
    turned = slope[:, None] * (V - np.outer(index.u, index.theta))
    turned -= turned.mean(axis=0)
    turned -= (smooth * index.shrinkage) @ (smooth.T @ (weights[:, None] * turned))
    expected = np.linalg.lstsq(turned, y - index.values, rcond=1e-6)[0]
    step, gain = index.step(V, y, weights)
    along = np.outer(index.theta, index.theta)  # is free: length one follows
    assert step - along @ step == pytest.approx(expected - along @ expected, rel=1e-3, abs=1e-4)
    explained = np.sum((turned @ expected) ** 2) / np.sum((y - index.values) ** 2)
    assert gain == pytest.approx(explained, rel=1e-3)


def test_a_model_without_a_column_starts_from_the_one_on_all_and_ends_where_it_would_have_alone():
    rng = np.random.default_rng(9)
    X, new = rng.normal(size=(600, 8)), rng.normal(size=(2000, 8))
    y, truth = (np.abs(Z[:, 0] + Z[:, 1]) + np.sin(Z[:, 2]) for Z in (X, new))
    y = y + 0.3 * rng.normal(size=600)
    full = PursuitModel().fit(X, y)
    for left_out, least in ((7, 0.9), (2, 0.6)):
        rest = np.delete(np.arange(8), left_out)
        alone = explained(PursuitModel(), X[:, rest], y, new[:, rest], truth)
        warm = explained(PursuitModel(start=full), X[:, rest], y, new[:, rest], truth)
        assert warm > alone - 0.02
        assert warm > least


def test_many_columns_are_turned_by_conjugate_gradients_as_by_the_exact_step(monkeypatch):
    from covaria.learners.estimators import pursuit

    rng = np.random.default_rng(10)
    (X, m), (new, m_new) = a_sum(rng, 900, 60), a_sum(rng, 2000, 60)
    y = np.sin(2 * m) + 0.3 * rng.normal(size=900)
    quick = explained(PursuitModel(), X, y, new, np.sin(2 * m_new))
    monkeypatch.setattr(pursuit, "FEW", 100)
    exact = explained(PursuitModel(), X, y, new, np.sin(2 * m_new))
    assert quick == pytest.approx(exact, abs=0.01)
    assert quick > 0.85
