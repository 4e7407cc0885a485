"""GCM's formulas, on residuals that are drawn."""

import numpy as np
import pytest
from scipy.stats import chi2

from by_hand import drawn, further, influence, weights_of
from covaria.inference import tests as inference
from covaria.inference.tests import mean_test
from covaria.methods.gcm import (
    correlation_scale,
    degrees_of_freedom,
    factors,
    fisher_scale,
    gcm,
    of_products,
    product_scale,
    wider,
)
from covaria.tables import arrays

RNG = np.random.default_rng(0)
# A feature without a column, one of two, one alone, one of three, one alone.
MIXED = ((), (0, 3), (1,), (2, 5, 6), (4,))


def of_feature(residuals, j):
    x = residuals.arrays["x_given_rest"][:, list(residuals.data.features[j].columns)]
    return x, residuals.arrays["y_given_rest"][:, j].reshape(len(x), -1)


def every_product(residuals, j):
    x, y = of_feature(residuals, j)
    pairs = [x[:, a] * y[:, b] for a in range(x.shape[1]) for b in range(y.shape[1])]
    return influence(residuals, np.column_stack(pairs))


def quadratic_form(products, clusters=None):
    """Return m'Σ⁻¹m, Σ the covariance of the means."""
    n_rows, mean = len(products), products.mean(axis=0)
    centred, correct = products - mean, 1.0
    if clusters is not None:
        count = len(np.unique(clusters))
        centred = np.array([centred[clusters == c].sum(axis=0) for c in np.unique(clusters)])
        correct = count / (count - 1)
    sigma = correct * centred.T @ centred / n_rows**2
    return mean @ np.linalg.solve(sigma, mean)


def multiple_correlation(residuals, j, n_columns=None):
    """Return the root of the mean squared canonical correlation, around zero."""
    x, y = of_feature(residuals, j)
    x = x[:, :n_columns]
    w = np.sqrt(weights_of(residuals))[:, None]
    (Qx, _), (Qy, _) = np.linalg.qr(w * x), np.linalg.qr(w * y)
    canonical = np.linalg.svd(Qx.T @ Qy, compute_uv=False)
    return np.sqrt((canonical**2).sum() / min(x.shape[1], y.shape[1]))


# --- one column ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [0, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("owned", [((0,), (1,), (2,)), ((2,), (0,), (1,)), ((0,), (2,), (4,))])
def test_the_score_of_a_column_is_the_product_of_what_is_left(owned, weighted, n_classes):
    residuals = drawn(owned, weighted=weighted, n_classes=n_classes)
    found = gcm(residuals, RNG)
    for j in range(3):
        assert np.allclose(found[:, j], every_product(residuals, j)[:, 0])
    assert degrees_of_freedom(residuals).tolist() == [1, 1, 1]


def test_noise_that_folds_share_widens_the_scores():
    # The noise q adds q to the variance twice where the sd over rows sees it once.
    noise, plain = np.array([0.0, 0.2, 1.0]), gcm(drawn(), RNG)
    found = gcm(drawn(model_noise=noise), RNG)
    assert np.allclose(found, further(plain, np.array([1.0, 1.4 / 1.2, 1.5])))


def test_means_taken_off_within_levels_widen_the_scores():
    wide, plain = np.array([1.0, 2.0, 1.5]), gcm(drawn(), RNG)
    assert np.allclose(gcm(drawn(widening=wide), RNG), further(plain, wide))
    both = gcm(drawn(widening=wide, model_noise=np.array([1.0, 0.0, 0.2])), RNG)
    assert np.allclose(both, further(plain, np.array([1.5, 2.0, 1.5 * 1.4 / 1.2])))


def test_nothing_is_wider_by_a_factor_of_one():
    scores = np.random.default_rng(1).normal(size=(80, 3))
    assert wider(drawn(), scores) is scores
    assert wider(drawn(), scores, np.ones(3)) is scores
    assert np.allclose(wider(drawn(), scores, 3.0), further(scores, 3.0))


# --- several columns ----------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_clusters", [0, 25])
def test_several_products_are_one_score_with_their_quadratic_form(n_classes, weighted, n_clusters):
    residuals = drawn(MIXED, weighted=weighted, n_classes=n_classes, n_clusters=n_clusters)
    found, clusters = gcm(residuals, RNG), residuals.data.clusters
    assert (found[:, 0] == 0).all()
    width = max(1, n_classes - 1)
    assert degrees_of_freedom(residuals).tolist() == [0, 2 * width, width, 3 * width, width]
    for j in range(1, 5):
        products = every_product(residuals, j)
        assert np.allclose(of_products(residuals, j), products)
        if products.shape[1] == 1:
            assert np.allclose(found[:, j], products[:, 0])
            continue
        assert found[:, j].mean() == pytest.approx(multiple_correlation(residuals, j))
        assert 0 < found[:, j].mean() < 1
        ratio = found[:, j].mean() / inference.standard_error(found[:, [j]], clusters)[0]
        assert ratio**2 == pytest.approx(quadratic_form(products, clusters))


def test_the_score_of_several_columns_gives_the_chi_squared_test():
    residuals = drawn(MIXED)
    scores, degrees = gcm(residuals, RNG), degrees_of_freedom(residuals)
    tests = mean_test(scores, scale=np.ones(5), degrees=degrees)
    expected = quadratic_form(every_product(residuals, 3))
    assert tests.p_value[3] == pytest.approx(chi2.sf(expected, 3))


def with_columns(change):
    """Return residuals of a feature of three columns and one of one, after a change to them."""
    residuals = drawn(((0, 1, 2), (3,)))
    change(residuals.arrays["x_given_rest"])
    return residuals


def repeat_a_column(x):
    x[:, 2] = -1e3 * x[:, 1]


def leave_rounding_of_a_column(x):
    x[:, 2] *= 1e-14


def leave_nothing_of_a_column(x):
    x[:, 2] = 0.0


@pytest.mark.parametrize(
    "change", [repeat_a_column, leave_rounding_of_a_column, leave_nothing_of_a_column]
)
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_a_column_that_says_no_more_than_others_does_not_count(change, unit):
    residuals = with_columns(change)
    residuals.arrays["x_given_rest"][:] *= unit
    assert degrees_of_freedom(residuals).tolist() == [2, 1]
    scores, two = gcm(residuals, RNG)[:, 0], every_product(residuals, 0)[:, :2]
    assert 80 * (scores.mean() / scores.std()) ** 2 == pytest.approx(quadratic_form(two))
    assert scores.mean() == pytest.approx(multiple_correlation(residuals, 0, 2))


def test_units_of_columns_do_not_matter():
    def in_other_units(x):
        x *= [1e6, 1.0, 1e-3, 1.0]

    plain, other = with_columns(lambda x: None), with_columns(in_other_units)
    assert degrees_of_freedom(other).tolist() == [3, 1]
    assert np.allclose(gcm(plain, RNG)[:, 0], gcm(other, RNG)[:, 0], rtol=1e-6)


def test_columns_of_which_nothing_is_left_have_scores_of_zero_and_no_degrees_of_freedom():
    def leave_nothing(x):
        x[:, :3] = 0.0

    residuals = with_columns(leave_nothing)
    assert (gcm(residuals, RNG)[:, 0] == 0).all()
    assert degrees_of_freedom(residuals).tolist() == [0, 1]


# --- scales -------------------------------------------------------------------------------------


@pytest.fixture(params=[2**20, 100])
def blocks(request, monkeypatch):
    """Copy all columns at once, or one at a time."""
    monkeypatch.setattr(arrays, "AT_ONCE", request.param)


def test_a_product_can_be_as_large_as_both_spreads():
    residuals = drawn(MIXED)
    found, data = product_scale(residuals), residuals.data
    assert found[[2, 4]] == pytest.approx(data.X.std(axis=0)[[1, 4]] * data.y.std())
    assert found[[0, 1, 3]].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_an_estimate_over_its_scale_is_a_correlation_around_zero(unit, weighted, blocks):
    residuals = drawn(MIXED, weighted=weighted)
    residuals.arrays["x_given_rest"][:] *= unit
    w, scale = weights_of(residuals), correlation_scale(residuals)
    for j in (2, 4):
        x, y = of_feature(residuals, j)
        assert scale[j] == pytest.approx(np.sqrt((w @ x**2).item() * (w @ y**2).item()) / 80)
    assert scale[[0, 1, 3]].tolist() == [1.0, 1.0, 1.0]


def test_where_nothing_is_left_the_scale_is_one():
    residuals = drawn()
    residuals.arrays["x_given_rest"][:, 1] = 0.0
    assert correlation_scale(residuals)[1] == 1.0
    z, error = fisher_scale(residuals, gcm(residuals, RNG))
    assert (z[1], error[1]) == (0.0, 0.0)


def correlation_by(weights, x, y):
    """Return the weighted correlation of two columns around zero."""
    return (weights @ (x * y)) / np.sqrt((weights @ x**2) * (weights @ y**2))


def jackknifed(residuals, j, step=1e-6):
    """Return r, and what each row adds to n times it, by the slope in the row's weight."""
    (x, y), w = of_feature(residuals, j), weights_of(residuals)
    x, y = x[:, 0], y[:, 0]
    slopes = []
    for row in range(len(w)):
        up, down = w.copy(), w.copy()
        up[row] *= 1 + step
        down[row] *= 1 - step
        slopes.append((correlation_by(up, x, y) - correlation_by(down, x, y)) / (2 * step))
    return correlation_by(w, x, y), len(w) * np.array(slopes)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_clusters", [0, 20])
def test_fishers_z_has_the_error_of_the_jackknife(weighted, n_clusters, blocks):
    residuals = drawn(MIXED, weighted=weighted, n_clusters=n_clusters)
    residuals.arrays["x_given_rest"][:] *= 1e-3
    z, error = fisher_scale(residuals, gcm(residuals, RNG))
    for j in (2, 4):
        r, moves = jackknifed(residuals, j)
        assert z[j] == pytest.approx(np.arctanh(r))
        expected = inference.standard_error(moves[:, None], residuals.data.clusters)[0]
        assert error[j] == pytest.approx(expected / (1 - r**2), rel=1e-5)
    assert np.isnan(z[[0, 1, 3]]).all()
    assert np.isnan(error[[0, 1, 3]]).all()


def test_what_widens_the_scores_widens_the_error_of_fishers_z():
    residuals = drawn(MIXED)
    scores = gcm(residuals, RNG)
    plain, wide = fisher_scale(residuals, scores), fisher_scale(residuals, further(scores, 2.5))
    assert np.allclose(wide[0], plain[0], equal_nan=True)
    assert np.allclose(wide[1], 2.5 * plain[1], equal_nan=True)


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_perfect_correlation_has_a_finite_z_of_its_sign(sign):
    residuals = drawn()
    residuals.arrays["y_given_rest"][:, 0] = sign * residuals.arrays["x_given_rest"][:, 0]
    z, error = fisher_scale(residuals, gcm(residuals, RNG))
    assert 10 < sign * z[0] < 20
    assert np.isfinite(error).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_factors_of_a_feature_multiply_to_its_weighted_products(weighted):
    residuals = drawn(MIXED, weighted=weighted)
    (x, y), (of_x, of_y) = of_feature(residuals, 3), factors(residuals, 3)
    assert np.allclose(of_x, weights_of(residuals)[:, None] * x)
    assert np.allclose(of_y, y)
