"""What errors of regressions take off a correlation, and intervals that allow for it."""

import numpy as np
import pandas as pd
import pytest

from covaria import assess
from covaria.nuisance.attenuation import attenuation, shortfall, slope

N_ROWS = 200_000


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("g", "h"), [(0.05, 0.0), (0.02, 0.03)])
def test_halving_the_rows_shows_what_errors_take_off_a_correlation(sign, g, h):
    rng = np.random.default_rng(1)
    x = rng.normal(size=N_ROWS)
    y = sign * 0.9 * x + np.sqrt(1 - 0.81) * rng.normal(size=N_ROWS)

    def with_errors(times):
        errors = np.sqrt(times * np.array([[g], [h]])) * rng.normal(size=(2, N_ROWS))
        return x + errors[0], y + errors[1]

    found = attenuation(with_errors(1), [with_errors(2), with_errors(2)], np.ones(N_ROWS))
    assert found == pytest.approx(0.9 * (1 - 1 / np.sqrt((1 + g) * (1 + h))), rel=0.15)


@pytest.mark.parametrize("sign", [1, -1])
def test_of_a_coefficient_only_the_errors_of_x_take_something_off(sign):
    rng = np.random.default_rng(6)
    x, noise, *errors = rng.normal(size=(4, N_ROWS))
    y = 3 * sign * x + noise
    for g, h in ((0.03, 0.0), (0.0, 0.3)):
        full, half = ((x + np.sqrt(t * g) * errors[0], y + np.sqrt(t * h) * errors[1])
                      for t in (1, 2))  # fmt: skip
        found = attenuation(full, [half, half], np.ones(N_ROWS), slope)
        assert found == pytest.approx(3 * g / (1 + g), abs=0.008)


def test_errors_in_common_take_off_nothing_and_a_larger_correlation_is_not_doubted():
    rng = np.random.default_rng(2)
    x, error = rng.normal(size=(2, 1000))
    assert attenuation((x, 3 * x), [(x + error, 3 * (x + error))], np.ones(1000)) == 0
    assert attenuation((x, error), [(x + error, error + x)], np.ones(1000)) == 0


def test_rows_count_by_their_weight():
    rng = np.random.default_rng(3)
    x, y, error = rng.normal(size=(3, 60))
    y, weights = y + 2 * x, np.repeat([1.0, 3.0], 30)
    often = np.repeat(np.arange(60), weights.astype(int))
    pairs = [(x, y), (x + error, y)]
    repeated = [(one[often], other[often]) for one, other in pairs]
    weighted = attenuation(pairs[0], pairs[1:], weights)
    assert weighted > 0
    assert weighted == pytest.approx(attenuation(repeated[0], repeated[1:], np.ones(len(often))))


@pytest.mark.parametrize("sign", [1, -1])
def test_residuals_made_small_by_chance_fall_short_of_plainer_ones_that_err_no_more(sign):
    # Errors of 5% that make what is left 5% smaller: Cov(ξ̂, ξ) = Var(ξ̂) = .95, so r̂ = √.95 r.
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, N_ROWS))
    y += 3 * sign * x
    noise = rng.normal(size=N_ROWS)
    error = -0.05 * x + np.sqrt(0.05 - 0.05**2) * noise  # Var(x + error) = .95
    found, plainer = (x + error, y), (x, y)
    own, other = (np.corrcoef(*pair)[0, 1] for pair in (found, plainer))
    few = slice(0, 300)  # the plainer residuals are larger, by less than two standard errors
    assert shortfall(found, plainer, np.ones(N_ROWS)) == 0  # but not in so many rows
    assert abs(other - own) == pytest.approx(0.024, abs=0.002)
    short = shortfall(*([one[few] for one in pair] for pair in (found, plainer)), np.ones(300))
    own, other = (_correlation(*(one[few] for one in pair)) for pair in (found, plainer))
    assert short == pytest.approx(abs(other - own))
    assert short > 0.01


def test_plainer_residuals_of_a_smaller_correlation_take_nothing_off():
    rng = np.random.default_rng(5)
    x, error = rng.normal(size=(2, 200))
    assert shortfall((x, x + 0.1 * error), (x, x + 0.2 * error), np.ones(200)) == 0


def _correlation(x, y):
    return x @ y / np.sqrt((x @ x) * (y @ y))


def test_an_interval_beside_a_learner_that_was_chosen_by_chance_holds_the_truth():
    # A kernel was chosen for x, which is a line in a: the interval was [.889, .935].
    name, run, n = b"slope 3", 30041, 500
    rng = np.random.default_rng([run, n, *name])
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    X["x"] = 0.5 * X["a"] + rng.normal(size=n)
    y = X["a"] + 3 * X["x"] + rng.normal(size=n)
    row = assess(X, y, methods="gcm", features=["x"], seed=run, check=False).table.iloc[0]
    assert row["effect_low"] <= 3 / np.sqrt(10) <= row["effect_high"]
    assert row["effect_high"] < 0.96


def test_an_interval_beside_a_poor_learner_of_the_feature_holds_the_truth():
    # Stumps were chosen for x, a line for y: the interval ended at .9476, the truth is .9487.
    name, run, n = b"slope 3", 10047, 1000
    rng = np.random.default_rng([run, n, *name])
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    X["x"] = 0.5 * X["a"] + rng.normal(size=n)
    y = X["a"] + 3 * X["x"] + rng.normal(size=n)
    row = assess(X, y, methods="gcm", features=["x"], seed=run, check=False).table.iloc[0]
    assert row["effect_low"] <= 3 / np.sqrt(10) <= row["effect_high"]
    assert row["effect_high"] < 0.96
