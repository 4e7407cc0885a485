"""Conditional predictive impact: copies that go with the other features as the feature does."""

import numpy as np
import pandas as pd
import pytest

import covaria
from covaria.nuisance.conditional import NOT_DRAWN, _donors


def table_of(n_rows, seed, slope=1.0):
    rng = np.random.default_rng(seed)
    a, b, noise = rng.standard_normal((3, n_rows))
    b = 0.9 * a + np.sqrt(1 - 0.81) * b
    return pd.DataFrame({"a": a, "b": b}), slope * a + noise


def cpi_of(X, y, **options):
    options = {"learner": "linear", "methods": ["cpi"], "check": False} | options
    result = covaria.assess(X, y, **options)
    return result, result.table.set_index("feature")


def test_a_useful_feature_is_found_and_its_useless_neighbour_is_not():
    _, found = cpi_of(*table_of(500, 0))
    assert found.loc["a", "p_value"] < 1e-6
    assert found.loc["b", "p_value"] > 0.05


def test_the_gain_of_least_squares_is_twice_what_the_others_leave_of_the_effect():
    # y = a + noise: a copy differs by ξ − ξ', so the loss grows by 2 Var(a|b) = 2 · .19.
    result, found = cpi_of(*table_of(20_000, 1), permutations=20)
    assert found.loc["a", "estimate"] == pytest.approx(2 * 0.19, abs=0.03)
    assert result.about.effects["cpi"] == "loss gained, as a share of Var(Y)"


def test_two_learners_that_serve_together_are_asked_together():
    X, y = table_of(300, 2)
    both = covaria.learners.Auto(candidates=["linear", "splines"], stack=True)
    _, found = cpi_of(X, y, learner=both)
    _, linear = cpi_of(X, y)
    assert found.loc["a", "effect"] == pytest.approx(linear.loc["a", "effect"], rel=0.2)


@pytest.mark.parametrize("learner", ["linear", "boosting"])
def test_flags_and_categories_take_values_that_there_are(learner):
    rng = np.random.default_rng(3)
    town = rng.choice(["A", "B", "C"], 600)
    flag = (rng.random(600) < np.where(town == "A", 0.8, 0.3)).astype(float)
    y = flag + rng.standard_normal(600)
    _, found = cpi_of(pd.DataFrame({"flag": flag, "town": town}), y, learner=learner)
    assert found.loc["flag", "p_value"] < 1e-6
    assert found.loc["town", "p_value"] > 0.01


def test_levels_are_drawn_by_their_chances():
    rng = np.random.default_rng(4)
    code = np.repeat([0.0, 1.0, 2.0], 10_000)
    chances = np.tile([0.2, 0.5], (30_000, 1))
    shares = np.bincount(code[_donors(chances, code, rng)].astype(int)) / 30_000
    assert np.allclose(shares, [0.3, 0.2, 0.5], atol=0.02)


@pytest.mark.parametrize("learner", ["linear", "boosting"])
def test_gaps_are_drawn_as_they_come(learner):
    X, y = table_of(600, 5)
    X["c"] = np.where(np.random.default_rng(0).random(600) < 0.3, np.nan, X["b"] ** 2)
    y = y + X["c"].isna()
    _, found = cpi_of(X, y, learner=learner)
    assert found.loc["c", "p_value"] < 1e-3
    _, found = cpi_of(X, y - X["c"].isna(), learner=learner)
    assert found.loc["c", "p_value"] > 0.01


def test_groups_are_not_drawn_and_say_so():
    X, y = table_of(200, 5)
    X["c"] = X["b"] ** 2
    result, found = cpi_of(X, y, groups={"both": ["b", "c"]})
    assert found.loc["both", "status"] == f"failed: {NOT_DRAWN}"
    assert found.loc["a", "status"] == "ok"
    assert any(NOT_DRAWN in text for text in result.alerts)


def test_useless_features_are_seldom_found():
    """Of 60 runs at level .1 at most 14 reject (p < .001 were it .1)."""
    rejected = 0
    for seed in range(60):
        X, y = table_of(200, [seed, 6])
        _, found = cpi_of(X, y, seed=seed)
        rejected += found.loc["b", "p_value"] < 0.1
    assert rejected <= 14
