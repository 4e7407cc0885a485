"""PCM's formula, on residuals that are drawn."""

from dataclasses import replace

import numpy as np
import pytest

from by_hand import drawn, further, influence, weights_of
from covaria.methods.pcm import factors, pcm, reach, unexplained
from covaria.nuisance.policy import POLICY

RNG = np.random.default_rng(0)


def of_all(left):
    """Return what is left of every class: it adds up to 0."""
    return np.concatenate([-left.sum(axis=2, keepdims=True), left], axis=2)


def products(residuals):
    f, y = (residuals.arrays[name] for name in ("f_given_rest", "y_given_rest"))
    return f * y if y.ndim == 2 else np.einsum("ijc,ijc->ij", f, of_all(y))


@pytest.mark.parametrize("n_classes", [0, 2, 3, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_scores_of_a_held_out_part_are_products_summed_over_classes(n_classes, weighted):
    residuals = drawn(n_classes=n_classes, weighted=weighted)
    assert np.allclose(pcm(residuals, RNG), influence(residuals, products(residuals)))


@pytest.mark.parametrize("n_folds", [2, 5])
def test_folds_that_learn_from_each_other_count_with_twice_the_variance(n_folds):
    residuals = drawn(n_folds=n_folds)
    assert np.allclose(pcm(residuals, RNG), further(products(residuals), np.sqrt(2)))


def test_means_taken_off_within_levels_widen_the_scores_as_well():
    wide = np.array([1.0, 1.5, 3.0])
    one, many = (drawn(n_folds=count, widening=wide) for count in (1, 2))
    assert np.allclose(pcm(one, RNG), further(products(one), wide))
    assert np.allclose(pcm(many, RNG), further(products(many), np.sqrt(2) * wide))


@pytest.mark.parametrize("n_classes", [0, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_factors_of_a_feature_multiply_to_its_weighted_products(n_classes, weighted):
    residuals = drawn(n_classes=n_classes, weighted=weighted)
    for j in range(3):
        f, y = factors(residuals, j)
        assert f.shape == y.shape == (80, max(n_classes, 1))
        expected = weights_of(residuals) * products(residuals)[:, j]
        assert np.allclose((f * y).sum(axis=1), expected)
        whole = residuals.y_given_rest[:, [j]]
        assert np.allclose(y, of_all(whole)[:, 0] if n_classes else whole)


def test_what_a_feature_could_explain_is_the_mean_square_of_what_is_left_of_y():
    y = drawn().y_given_rest
    assert np.allclose(unexplained(drawn()), (y**2).mean(axis=0))
    three = drawn(n_classes=3)
    expected = np.einsum("ijc,ijc->j", of_all(three.y_given_rest), of_all(three.y_given_rest)) / 80
    assert np.allclose(unexplained(three), expected)


@pytest.mark.parametrize("n_classes", [0, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_a_second_learner_does_not_confirm_is_taken_off_the_mean(n_classes, weighted):
    rows = {"n_classes": n_classes, "weighted": weighted}
    plain = drawn(**rows)
    rng = np.random.default_rng(3)
    second = tuple(_nearby(plain, rng) for _ in range(3))
    residuals = drawn(**rows, second=second, asked=(0, 1), matched={0, 1})
    seen, *others = (influence(one, products(one)) for one in (plain, *second))
    endless = others[0] + POLICY.endless * (others[0] - (others[1] + others[2]) / 2)
    ratio, other = (one.mean(axis=0) / one.std(axis=0) for one in (seen, endless))
    stands = np.where((ratio > 0) & (np.arange(3) < 2), np.clip(other / ratio, 0, 1), 1)
    assert np.allclose(pcm(residuals, RNG), seen - (1 - stands) * seen.mean(axis=0))


@pytest.mark.parametrize("n_classes", [0, 3])
def test_what_learning_curves_say_is_still_missed_is_taken_off_where_no_second_learner_matches(
    n_classes,
):
    plain = drawn(n_classes=n_classes)
    curves = np.array([[0.02, 0.01], [0.03, 0.02], [0.4, 0.4]])
    noise = np.array([0.0, 0.025, 0.0])
    residuals = drawn(
        n_classes=n_classes, second=(plain,) * 3, asked=(0, 1), learning_curves=curves,
        model_noise=noise,
    )  # fmt: skip
    y = plain.y_given_rest[:, :, None] if n_classes == 0 else of_all(plain.y_given_rest)
    f = plain.f_given_rest.reshape(80, 3, -1)
    size = np.sqrt((f**2).mean(axis=0).sum(axis=1) * (y**2).mean(axis=0).sum(axis=1))
    missed = POLICY.still_missed * np.sqrt([0.02 * 0.01, 0.03 * 0.025, 0]) * size
    seen = products(plain).mean(axis=0)
    less = np.where(seen > 0, np.minimum(seen, missed), 0)
    assert less.max() > 0
    assert np.allclose(pcm(residuals, RNG).mean(axis=0), seen - less)


def _nearby(residuals, rng):
    f = residuals.f_given_rest
    return replace(
        residuals, arrays={**residuals.arrays, "f_given_rest": f + rng.normal(size=f.shape)}
    )


def test_parts_of_held_out_rows_that_learn_from_each_other_count_twice_too():
    one = drawn()
    parts = replace(one, arrays={**one.arrays, "spread_given_rest": np.zeros((80, 3))})
    assert np.allclose(pcm(parts, RNG), further(products(one), np.sqrt(2)))
    given = replace(parts, n_folds=5, is_given=True)
    assert np.allclose(pcm(given, RNG), products(one))


def test_the_estimate_varies_more_with_an_effect_as_the_function_has_its_size_from_rows():
    assert reach(drawn(n_folds=5)) == reach(drawn(n_folds=2)) == np.sqrt(2)
    assert reach(drawn(n_folds=1, n_train=160)) == np.sqrt(1.5)
    assert reach(drawn(n_folds=1, n_train=40)) == np.sqrt(3)
    assert reach(drawn(n_folds=1, n_train=0)) == 9  # of its own 80 rows
    assert reach(drawn(n_folds=1, n_train=40, is_given=True)) == 1
