"""Weighted GCM and GCM with a square."""

import numpy as np
import pytest
from scipy.stats import chi2

from covaria import assess
from covaria.assessment import prepare
from covaria.methods.weighted import _signs
from covaria.nuisance.regressions import fit_residuals


def by_sign(n_rows=400, seed=0):
    """Return a table in which the effect of x0 has the sign of x1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    return X, X[:, 0] * np.sign(X[:, 1]) + rng.normal(size=n_rows)


def test_weights_see_an_effect_that_changes_sign():
    table = assess(*by_sign(), learner="linear", methods=["gcm", "weighted_gcm"]).table
    p = table.set_index(["method", "feature"])["p_value"]
    assert p["gcm", "x0"] > 0.05
    assert p["weighted_gcm", "x0"] < 1e-6
    assert p["weighted_gcm", "x3"] > 0.01


def test_the_statistic_is_the_largest_of_the_standardised_means():
    X, y = by_sign()
    job = prepare(X, y, learner="linear", methods=["weighted_gcm"])
    residuals = fit_residuals(job.plan(0))
    products = (residuals.x_given_rest * residuals.y_given_rest)[:, [2]] * _signs(residuals, 2)
    ratios = np.sqrt(len(y)) * products.mean(axis=0) / products.std(axis=0)
    table = assess(X, y, learner="linear", methods=["weighted_gcm"]).table
    assert table["statistic"][2] == pytest.approx(np.abs(ratios).max())


def test_signs_are_one_each_column_and_each_pair():
    X, y = by_sign()
    residuals = fit_residuals(prepare(X, y, learner="linear", methods=["weighted_gcm"]).plan(0))
    assert _signs(residuals, 0).shape == (400, 1 + 3 + 3)
    assert set(np.unique(_signs(residuals, 0))) == {-1.0, 1.0}


def test_p_values_are_uniform_where_nothing_matters():
    rng = np.random.default_rng(5)
    p = []
    for seed in range(60):
        X = rng.normal(size=(150, 4))
        table = assess(
            X,
            rng.normal(size=150),
            learner="linear",
            methods=["weighted_gcm"],
            seed=seed,
            check=False,
        )
        p += table.table["p_value"].tolist()
    # 240 tests: .05 ± 3 standard errors.
    assert np.mean(np.array(p) < 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 240)


def test_units_change_nothing():
    X, y = by_sign(200)
    options = {"learner": "linear", "methods": ["weighted_gcm", "basis_gcm"]}
    plain, scaled = assess(X, y, **options), assess(1e3 * X, 1e-3 * y, **options)
    np.testing.assert_allclose(plain.table["p_value"], scaled.table["p_value"], rtol=1e-6)


def test_a_square_makes_gcm_see_an_even_effect_with_two_degrees_of_freedom():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] ** 2 + rng.normal(size=300)
    table = assess(X, y, learner="linear", methods=["gcm", "basis_gcm"]).table
    rows = table.set_index(["method", "feature"])
    assert rows.loc[("gcm", "x0"), "p_value"] > 0.05
    assert rows.loc[("basis_gcm", "x0"), "p_value"] < 0.01
    row = rows.loc[("basis_gcm", "x1")]
    assert row["df"] == 2
    assert row["p_value"] == pytest.approx(chi2.sf(row["statistic"], 2))


def test_a_yes_or_no_feature_has_no_square_of_its_own():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 200), rng.normal(size=(200, 2))])
    table = assess(X, X[:, 0] + rng.normal(size=200), learner="linear", methods=["basis_gcm"]).table
    assert table["df"].tolist() == [1, 2, 2]
