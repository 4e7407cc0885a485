"""The noise of least squares out of fold, and what GCM makes of it."""

import numpy as np
import pandas as pd
import pytest

from covaria import assess
from covaria.nuisance.model_noise import noise_of_lines

N_FOLDS = 5


def out_of_fold(n_rows, n_columns, rng):
    """Return the matrix H that makes predictions out of fold of what is to be predicted."""
    Z = np.column_stack([np.ones(n_rows), rng.normal(size=(n_rows, n_columns))])
    fold, H = rng.permutation(n_rows) % N_FOLDS, np.zeros((n_rows, n_rows))
    for k in range(N_FOLDS):
        H[np.ix_(fold == k, fold != k)] = Z[fold == k] @ np.linalg.pinv(Z[fold != k])
    return H


@pytest.mark.parametrize(("n_rows", "n_columns"), [(30, 3), (60, 3), (150, 30), (200, 19)])
def test_the_noise_of_least_squares_makes_the_spread_of_products_too_small(n_rows, n_columns):
    rng, ratios, noise = np.random.default_rng(1), [], []
    for _ in range(10):
        H = out_of_fold(n_rows, n_columns, rng)
        h, left = (H**2).sum(axis=1), np.eye(n_rows) - H
        ratios.append(np.linalg.norm(left.T @ left) / np.sqrt(((1 + h) ** 2).sum()))
        noise.append(h.mean())
    found = noise_of_lines(np.array([n_columns]), n_rows - n_rows // N_FOLDS)[0]
    assert found == pytest.approx(np.mean(noise), rel=0.1)
    assert (1 + 2 * found) / (1 + found) == pytest.approx(np.mean(ratios), rel=0.03)


def test_columns_as_many_as_rows_have_a_noise_of_one():
    assert noise_of_lines(np.array([40, 200]), 50).tolist() == [1.0, 1.0]


def table(n_rows, n_columns, seed):
    rng = np.random.default_rng([seed, n_rows, n_columns])
    X = pd.DataFrame(rng.normal(size=(n_rows, n_columns))).add_prefix("z")
    X["x"] = 0.5 * X["z0"] + rng.normal(size=n_rows)
    return X, X["z0"] + rng.normal(size=n_rows)


def statistic(X, y, **options):
    return assess(
        X, y, learner="linear", methods="gcm", features=["x"], check=False, **options
    ).table["statistic"][0]


def test_gcm_by_least_squares_allows_for_it_in_a_cross_fit_of_few_rows_a_column():
    X, y = table(150, 30, seed=1)
    scores = by_hand(X, y, np.arange(150) % N_FOLDS)
    plain = np.sqrt(150) * scores.mean() / scores.std()
    noise = 31 / (120 - 32)
    folds = [(np.flatnonzero(np.arange(150) % 5 != k), np.arange(k, 150, 5)) for k in range(5)]
    assert statistic(X, y, splits=folds) == pytest.approx(plain * (1 + noise) / (1 + 2 * noise))


def test_with_many_rows_a_column_or_without_a_cross_fit_gcm_is_its_formula():
    X, y = table(200, 3, seed=2)
    scores = by_hand(X, y, np.arange(200) % N_FOLDS)
    folds = [(np.flatnonzero(np.arange(200) % 5 != k), np.arange(k, 200, 5)) for k in range(5)]
    plain = np.sqrt(200) * scores.mean() / scores.std()
    assert statistic(X, y, splits=folds) == pytest.approx(plain)
    X, y = table(200, 30, seed=3)
    half = [(np.arange(0, 200, 2), np.arange(1, 200, 2))]
    scores = by_hand(X, y, np.arange(200) % 2)[1::2]
    plain = np.sqrt(100) * scores.mean() / scores.std()
    assert statistic(X, y, splits=half) == pytest.approx(plain)


def by_hand(X, y, fold):
    """Return products of residuals out of fold of x and y given the others."""
    Z = np.column_stack([np.ones(len(X)), X.drop(columns="x")])
    both = np.column_stack([X["x"], y])
    left = np.empty_like(both)
    for k in np.unique(fold):
        train, test = fold != k, fold == k
        left[test] = both[test] - Z[test] @ np.linalg.lstsq(Z[train], both[train], rcond=None)[0]
    return left.prod(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(("n_rows", "n_columns"), [(30, 3), (60, 10), (150, 30)])
def test_few_rows_a_column_do_not_make_gcm_reject_too_often(n_rows, n_columns):
    runs = 1000
    found = [
        assess(*table(n_rows, n_columns, 500 + seed), learner="linear", methods="gcm",
               features=["x"], seed=seed, check=False).table["p_value"][0] < 0.05
        for seed in range(runs)
    ]  # fmt: skip
    assert np.mean(found) < 0.06 + 3 * np.sqrt(0.06 * 0.94 / runs)
