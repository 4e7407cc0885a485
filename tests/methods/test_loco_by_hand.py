"""LOCO's formulas, on losses that are drawn."""

import numpy as np
import pytest

from by_hand import drawn, influence, weights_of
from covaria.methods.loco import ZIPPER_ROWS, loco, split_loco, zipper_loco


@pytest.mark.parametrize("weighted", [False, True])
def test_the_paired_score_is_the_loss_without_less_the_loss_with(weighted):
    residuals = drawn(weighted=weighted)
    gain = residuals.arrays["loss_given_rest"] - residuals.arrays["loss_given_all"][:, None]
    assert np.allclose(loco(residuals, np.random.default_rng(0)), influence(residuals, gain))


def mean_and_square(weights, values):
    """Return the weighted mean, and the squared error of it."""
    mean = weights @ values / weights.sum()
    return mean, weights**2 @ (values - mean) ** 2 / weights.sum() ** 2


def by_hand(residuals, j, n_single, seed):
    """Return the estimate of τ mean(D) + (1 − τ)(mean reduced − mean full), and its error."""
    full, reduced = (residuals.arrays[f"loss_given_{name}"] for name in ("all", "rest"))
    w, reduced = weights_of(residuals), reduced[:, j]
    order, n_rows = np.random.default_rng(seed).permutation(len(w)), len(w)
    one, two, both = order[:n_single], order[n_single : 2 * n_single], order[2 * n_single :]
    share = len(both) / (n_rows - n_single)
    mean_full, square_full = mean_and_square(w[one], full[one])
    mean_reduced, square_reduced = mean_and_square(w[two], reduced[two])
    estimate = (1 - share) * (mean_reduced - mean_full)
    square = (1 - share) ** 2 * (square_full + square_reduced)
    if len(both):
        mean, own = mean_and_square(w[both], (reduced - full)[both])
        estimate, square = estimate + share * mean, square + share**2 * own
    return estimate, np.sqrt(square)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("scores", "n_rows", "n_single"),
    [
        (split_loco, 80, 40),
        (split_loco, 81, 40),
        (zipper_loco, 160, ZIPPER_ROWS),
        (zipper_loco, 101, 50),
        (zipper_loco, 41, 20),
    ],
)
def test_partly_paired_scores_have_the_estimate_and_the_error_by_hand(
    scores, n_rows, n_single, weighted
):
    residuals = drawn(n_rows=n_rows, weighted=weighted)
    found = scores(residuals, np.random.default_rng(5))
    for j in range(3):
        estimate, error = by_hand(residuals, j, n_single, 5)
        assert found[:, j].mean() == pytest.approx(estimate)
        assert found[:, j].std() / np.sqrt(n_rows) == pytest.approx(error)


def test_the_zipper_leaves_fifty_rows_apart_on_either_side():
    assert ZIPPER_ROWS == 50  # as in docs/methods/loco.md


def test_a_row_moves_the_estimate_by_its_score():
    # Each row's score is the influence of its weight on the estimate, but for the mean.
    residuals, step = drawn(n_rows=150, weighted=True), 1e-6
    found = zipper_loco(residuals, np.random.default_rng(5))[:, 0]
    own = residuals.data.weights
    for row in (3, 70, 149):
        moved = own.copy()
        moved[row] *= 1 + step
        object.__setattr__(residuals.data, "weights", moved)
        changed = by_hand(residuals, 0, 50, 5)[0]
        object.__setattr__(residuals.data, "weights", own)
        slope = (changed - by_hand(residuals, 0, 50, 5)[0]) / step
        assert 150 * slope == pytest.approx(found[row] - found.mean(), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("scores", [split_loco, zipper_loco])
def test_a_feature_whose_two_losses_are_the_same_has_nothing_to_test(scores):
    residuals = drawn()
    reduced = residuals.arrays["loss_given_rest"]
    reduced[:, 1] = residuals.arrays["loss_given_all"]
    reduced[1:, 2] = residuals.arrays["loss_given_all"][1:]  # differs in one row
    found = scores(residuals, np.random.default_rng(0))
    assert (found[:, 1] == 0).all()
    assert found[:, 0].std() > 0
    assert found[:, 2].std() > 0
