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


def by_hand(X, y, fold, weights=None):
    """Return products of residuals out of fold of x and y given the others."""
    root = np.ones((len(X), 1)) if weights is None else np.sqrt(weights)[:, None]
    Z = np.column_stack([np.ones(len(X)), X.drop(columns="x")])
    both = np.column_stack([X["x"], y])
    left = np.empty_like(both)
    for k in np.unique(fold):
        train, test = fold != k, fold == k
        known = root[train] * Z[train], root[train] * both[train]
        left[test] = both[test] - Z[test] @ np.linalg.lstsq(*known, rcond=None)[0]
    return left.prod(axis=1)


@pytest.mark.parametrize("spread", [0.4, 0.8])
def test_weighted_least_squares_have_the_noise_of_the_rows_that_weights_are_worth(spread):
    """Of w ξ̂'ε̂ with H that of weighted least squares, as above without weights."""
    rng, ratios, worth, n = np.random.default_rng(2), [], [], 400
    for _ in range(10):
        w, fold = np.exp(spread * rng.normal(size=n)), np.arange(n) % N_FOLDS
        Z, H = np.column_stack([np.ones(n), rng.normal(size=(n, 20))]), np.zeros((n, n))
        for k in range(N_FOLDS):
            train, root = fold != k, np.sqrt(w[fold != k])
            fit = np.linalg.pinv(root[:, None] * Z[train]) * root
            H[np.ix_(fold == k, train)] = Z[fold == k] @ fit
        h, left = (H**2).sum(axis=1), np.eye(n) - H
        seen = np.sqrt((w**2 * (1 + h) ** 2).sum())
        ratios.append(np.linalg.norm(left.T @ (w[:, None] * left)) / seen)
        worth.append(w.sum() ** 2 / (w**2).sum())
    noise = noise_of_lines(np.array([20]), int(0.8 * np.mean(worth)))[0]
    assert (1 + 2 * noise) / (1 + noise) == pytest.approx(np.mean(ratios), rel=0.03)


def test_gcm_by_weighted_least_squares_allows_for_it():
    X, y = table(400, 20, seed=4)
    w = np.exp(np.random.default_rng(5).normal(size=400))
    folds = [(np.flatnonzero(np.arange(400) % 5 != k), np.arange(k, 400, 5)) for k in range(5)]
    noise = 21 / (int(320 * w.sum() ** 2 / (w**2).sum() / 400) - 22)
    w /= w.mean()
    products = by_hand(X, y, np.arange(400) % N_FOLDS, w)
    scores = w * (products - np.mean(w * products))
    plain = np.sqrt(400) * np.mean(w * products) / scores.std()
    found = statistic(X, y, splits=folds, sample_weight=w)
    assert found == pytest.approx(plain * (1 + noise) / (1 + 2 * noise))


def test_a_row_given_twice_says_as_much_as_a_row_of_twice_the_weight():
    X, y = table(300, 25, seed=6)
    folds = [(np.flatnonzero(np.arange(300) % 5 != k), np.arange(k, 300, 5)) for k in range(5)]
    w = np.where(np.arange(300) % 3, 1, 2)
    twice = np.repeat(np.arange(300), w)
    again = [tuple(np.flatnonzero(np.isin(twice, part)) for part in fold) for fold in folds]
    weighted = statistic(X, y, splits=folds, sample_weight=w)
    X, y = X.iloc[twice].reset_index(drop=True), y.iloc[twice].reset_index(drop=True)
    assert statistic(X, y, splits=again) == pytest.approx(weighted * np.sqrt(299 / 300), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [1.0, 1.5])
def test_weights_do_not_make_gcm_reject_too_often(spread):
    """.074 and .12 of 500 before."""
    runs, found = 500, []
    for seed in range(runs):
        X, y = table(200, 3, 900 + seed)
        w = np.exp(spread * np.random.default_rng(seed).normal(size=200))
        result = assess(X, y, learner="linear", methods="gcm", sample_weight=w, features=["x"],
                        seed=seed, check=False)  # fmt: skip
        found.append(result.table["p_value"][0] < 0.05)
    assert np.mean(found) < 0.06 + 3 * np.sqrt(0.06 * 0.94 / runs)


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
