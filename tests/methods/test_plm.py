"""The coefficient in y = θ x + g(others): DoubleML's numbers, and its own formula by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression

import covaria
from covaria.errors import InputError

FIXTURES = Path(__file__).parent.parent / "fixtures"


def table_of(n_rows, seed, theta=0.5):
    rng = np.random.default_rng(seed)
    a, noise, left = rng.standard_normal((3, n_rows))
    x = 0.7 * a + left
    return pd.DataFrame({"a": a, "x": x}), theta * x + np.sin(a) + noise


def coefficients(X, y, **options):
    options = {"learner": "linear", "methods": ["gcm"], "check": False, "effect": "plm"} | options
    result = covaria.assess(X, y, **options)
    return result, result.table[result.table["method"] == "gcm"].set_index("feature")


def test_they_are_those_of_doubleml():
    table = pd.read_csv(FIXTURES / "doubleml_table.csv")
    expected = pd.read_csv(FIXTURES / "doubleml_plr.csv").set_index("feature")
    rows = np.arange(len(table))
    folds = [(rows[rows % 5 != k], rows[rows % 5 == k]) for k in range(5)]
    _, found = coefficients(table, "y", learner=LinearRegression(), splits=folds)
    for ours, theirs in {
        "effect": "coef", "effect_error": "se", "effect_low": "low", "effect_high": "high"
    }.items():  # fmt: skip
        assert np.allclose(found[ours], expected[theirs], rtol=0, atol=1e-8)


def test_they_are_those_of_the_formula_with_weights():
    X, y = table_of(200, 0)
    weights = np.random.default_rng(1).uniform(0.2, 3, 200)
    result, found = coefficients(X, y, sample_weight=weights)
    x, left = result.residuals["x_given_rest"][:, 1], result.residuals["y_given_rest"][:, 1]
    theta = np.sum(weights * x * left) / np.sum(weights * x**2)
    psi = weights * x * (left - theta * x)
    error = np.sqrt(np.sum(psi**2)) / np.sum(weights * x**2)
    row = found.loc["x"]
    reach = norm.ppf(0.975) * error
    expected = [theta, error, theta - reach, theta + reach]
    columns = ["effect", "effect_error", "effect_low", "effect_high"]
    assert np.allclose(row[columns].to_numpy(float), expected, rtol=0, atol=1e-8)


def test_copies_of_rows_as_clusters_count_once():
    X, y = table_of(150, 2)
    twice, both = pd.concat([X, X], ignore_index=True), np.tile(y, 2)
    own = np.tile(np.arange(150), 2)
    _, alone = coefficients(twice, both, clusters=np.arange(300))
    _, pairs = coefficients(twice, both, clusters=own)
    ratio = pairs.loc["x", "effect_error"] / alone.loc["x", "effect_error"]
    assert ratio == pytest.approx(np.sqrt(2), rel=0.05)


def test_all_else_stays_as_it_is_without_it():
    X, y = table_of(200, 3)
    plain = covaria.assess(X, y, learner="linear", methods="default")
    result, _ = coefficients(X, y, methods="default", check=True)
    other = [name for name in plain.table.columns if not name.startswith("effect")]
    assert plain.table[other].equals(result.table[other])
    assert "effect_error" not in plain.table
    pcm = [table[table["method"] == "pcm"]["effect"] for table in (plain.table, result.table)]
    assert pcm[0].equals(pcm[1])
    assert plain.about.effects["gcm"] == "partial correlation"
    assert result.about.effects["gcm"].startswith("coefficient")


def test_it_is_kept_in_files_and_settings(tmp_path):
    X, y = table_of(120, 4)
    result, _ = coefficients(X, y)
    result.to_json(tmp_path / "result.json")
    again = covaria.Result.from_json(tmp_path / "result.json")
    assert again == result
    assert covaria.assess(X, y, **again.settings).table.equals(result.table)


def test_repeats_are_averaged_with_their_spread():
    X, y = table_of(150, 5)
    _, many = coefficients(X, y, repeats=3)
    _, one = coefficients(X, y)
    assert many.loc["x", "effect"] == pytest.approx(one.loc["x", "effect"], abs=0.05)
    assert many.loc["x", "effect_error"] == pytest.approx(one.loc["x", "effect_error"], rel=0.1)


def test_of_a_flag_it_is_the_mean_effect_over_rows_that_could_have_either_value():
    rng = np.random.default_rng(6)
    a = rng.choice([-1.0, 1.0], size=20_000)
    chance = np.where(a > 0, 0.9, 0.5)
    flag = (rng.random(20_000) < chance).astype(float)
    y = np.where(a > 0, 2.0, 1.0) * flag + a + rng.standard_normal(20_000)
    _, found = coefficients(pd.DataFrame({"a": a, "flag": flag}), y)
    expected = (0.09 * 2 + 0.25 * 1) / (0.09 + 0.25)  # weights p(1 − p)
    assert found.loc["flag", "effect"] == pytest.approx(
        expected, abs=4 * found.loc["flag", "effect_error"]
    )


def test_two_classes_have_a_coefficient_of_their_chance():
    X, y = table_of(400, 7, theta=1.0)
    _, found = coefficients(X, np.where(y > 0, "yes", "no"))
    assert 0 < found.loc["x", "effect"] < 1


def test_a_feature_of_several_columns_has_none_and_says_so():
    X, y = table_of(200, 8)
    X["town"] = np.random.default_rng(0).choice(["A", "B", "C"], 200)
    result, found = coefficients(X, y)
    assert np.isnan(found.loc["town", "effect"])
    assert any("town" in text and "no single coefficient" in text for text in result.alerts)
    assert "—" in str(result)


def test_odd_questions_get_a_sentence():
    X, y = table_of(100, 9)
    with pytest.raises(InputError, match="effect='ate' is not known"):
        coefficients(X, y, effect="ate")
    with pytest.raises(InputError, match="add gcm to the methods"):
        coefficients(X, y, methods=["loco"])
    with pytest.raises(InputError, match="two classes"):
        coefficients(X, np.digitize(y, [-1, 1]).astype(str))


def test_intervals_hold_the_coefficient():
    """Of 80 intervals of 90% at least 62 hold it (p < .001 were it .9)."""
    held = 0
    for seed in range(80):
        X, y = table_of(200, [seed, 10])
        _, found = coefficients(X, y, learner="splines(df=3)" if seed < 5 else "linear",
                                confidence=0.9)  # fmt: skip
        held += found.loc["x", "effect_low"] <= 0.5 <= found.loc["x", "effect_high"]
    assert held >= 62


def curved(seed, theta, n_rows=500):
    rng = np.random.default_rng([11, seed])
    a, b, left, noise = rng.normal(size=(4, n_rows))
    x = np.sin(a) + b / 2 + left
    y = theta * x + a**2 / 2 + np.cos(b) + noise
    return pd.DataFrame({"x": x, "a": a, "b": b}), y


def test_an_interval_beside_learners_that_err_reaches_the_coefficient():
    # Splines served y and stumps x, which erred by .06 of a variance of .96: [2.698, 2.920] before.
    _, found = coefficients(*curved(26, 3.0), learner="auto", features=["x"], seed=26)
    assert found["effect_low"]["x"] < 3 < found["effect_high"]["x"]
    assert found["effect"]["x"] == pytest.approx(2.809, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("theta", [0.1, 0.3])  # at 3 .873 of 150 runs: docs/coefficients.md
def test_intervals_with_auto_hold_the_coefficient(theta):
    runs, held = 300, 0
    for seed in range(1000, 1000 + runs):
        _, found = coefficients(*curved(seed, theta), learner="auto", features=["x"], seed=seed)
        held += found["effect_low"]["x"] < theta < found["effect_high"]["x"]
    assert held / runs > 0.93 - 2 * np.sqrt(0.05 * 0.95 / runs)
