"""GCM: numbers known from elsewhere, and the quadratic form for several columns."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

from covaria import assess
from covaria.learners import Boosting, Linear

FIXTURES = Path(__file__).parents[1] / "fixtures"


def fixture(name):
    with (FIXTURES / name).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {
        key: np.array([float(row[key]) for row in rows])
        for key in rows[0]
        if is_number(rows[0][key])
    }


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def r_table():
    table = fixture("r_data.csv")
    return np.column_stack([table[f"x{j}"] for j in (1, 2, 3, 4)]), table["y"]


def test_in_sample_linear_statistics_are_the_known_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = 2 * X[:, 0] + 0.3 * X[:, 1] + rng.normal(size=400)
    found = assess(X, y, learner="linear", splits="none", methods=["gcm"]).table["statistic"]
    known = [13.92270958339889, 3.263022563970958, 0.6939598860515355, -1.4955758667355965]
    assert np.allclose(found, known, atol=1e-9, rtol=0)


@pytest.mark.parametrize(
    ("learner", "name"), [(Linear(), "r_gcm_lm.csv"), (Boosting(bag=1.0), "r_gcm_gbm.csv")]
)
def test_statistics_and_p_values_equal_those_from_residuals_in_r(learner, name):
    known = fixture(name)
    table = assess(*r_table(), learner=learner, splits="none", methods=["gcm"]).table
    assert np.allclose(table["statistic"], known["statistic"], rtol=1e-8)
    assert np.allclose(table["p_value"], known["p_value"], rtol=1e-7)


def test_loco_equals_that_from_residuals_in_r():
    known = fixture("r_loco_gbm.csv")
    options = {"learner": Boosting(bag=1.0), "splits": "none", "methods": ["loco"]}
    one_sided = assess(*r_table(), **options).table
    two_sided = assess(*r_table(), **options, alternative="two-sided").table
    assert np.allclose(one_sided["statistic"], known["statistic"], rtol=1e-8)
    assert np.allclose(one_sided["p_value"], known["p_value"], rtol=1e-7)
    assert np.allclose(two_sided["p_value"], known["p_two_sided"], rtol=1e-7)


def by_hand(x, y, j_columns):
    """Return n m'S⁻¹m for in-sample least-squares residuals."""
    rest = np.column_stack([np.ones(len(y)), np.delete(x, j_columns, axis=1)])

    def left(v):
        return v - rest @ np.linalg.lstsq(rest, v, rcond=None)[0]

    products = left(x[:, j_columns]) * left(y)[:, None]
    mean, sigma = products.mean(axis=0), np.cov(products.T, bias=True)
    return len(y) * mean @ np.linalg.solve(sigma, mean)


def test_a_group_is_tested_by_the_quadratic_form():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 5))
    y = X[:, 0] + 0.2 * X[:, 1] + 0.1 * X[:, 2] + rng.normal(size=300)
    groups = {"pair": ["x1", "x2"]}
    result = assess(X, y, learner="linear", splits="none", methods=["gcm"], groups=groups)
    row = result.table.set_index("feature").loc["pair"]
    expected = by_hand(X, y, [1, 2])
    assert row["statistic"] == pytest.approx(expected, rel=1e-9)
    assert row["df"] == 2
    assert row["p_value"] == pytest.approx(chi2.sf(expected, 2), rel=1e-9)
    scores = result.scores["gcm"][:, 1]
    assert len(scores) * scores.mean() ** 2 / scores.var() == pytest.approx(expected, rel=1e-9)
    assert 0 <= row["low"] <= row["estimate"] <= row["high"]


def test_a_category_is_one_feature_whatever_its_reference_level():
    rng = np.random.default_rng(3)
    level = rng.choice(list("abcd"), 400)
    frame = pd.DataFrame({"level": level, "z": rng.normal(size=400)})
    y = (level == "b") + frame["z"] + rng.normal(size=400)
    relabelled = frame.assign(level=frame["level"].map(dict(zip("abcd", "wzyx", strict=True))))
    one, two = (assess(f, y, learner="linear", methods=["gcm"]).table for f in (frame, relabelled))
    assert one.loc[0, "df"] == 3
    assert np.allclose(one["p_value"], two["p_value"], rtol=1e-6)


def test_the_statistic_of_a_group_does_not_depend_on_units():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 3))
    y = 0.2 * X[:, 0] + rng.normal(size=300)
    groups = {"g": ["x0", "x1"]}
    options = {"learner": "linear", "methods": ["gcm"], "groups": groups}
    p = [assess(X * s, 100 * y, **options).table["p_value"][0] for s in ([1, 1, 1], [1e4, 1e-4, 1])]
    assert p[0] == pytest.approx(p[1], rel=1e-6)


def test_a_full_one_hot_in_a_group_has_the_rank_it_has():
    rng = np.random.default_rng(5)
    level = rng.integers(0, 3, 300)
    X = np.column_stack([np.eye(3)[level], rng.normal(size=300)])
    y = (level == 1) + X[:, 3] + rng.normal(size=300)
    groups = {"level": ["x0", "x1", "x2"]}
    table = assess(X, y, learner="linear", methods=["gcm"], groups=groups).table
    assert table.loc[0, "df"] == 2
    assert table.loc[0, "p_value"] < 1e-4


def test_three_classes_give_two_degrees_of_freedom_a_column():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 2))
    y = np.array(list("abc"))[np.digitize(X[:, 0] + rng.normal(size=300), [-0.5, 0.5])]
    table = assess(X, y, learner="linear", methods=["gcm"]).table
    assert table["df"].tolist() == [2, 2]
    assert table["p_value"][0] < 1e-6 < 1e-3 < table["p_value"][1]


def test_gcm_is_blind_to_an_even_effect_and_says_that_loco_is_not():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(500, 3))
    y = X[:, 0] ** 2 + X[:, 1] + 0.5 * rng.normal(size=500)
    result = assess(X, y, learner="boosting", methods=["gcm", "loco"])
    assert "x0" in result.selected["loco"]
    assert "x0" not in result.selected["gcm"]
    assert any("even" in alert and "'x0'" in alert for alert in result.alerts)
