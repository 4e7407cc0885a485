"""Interactions: pairs that act together are found, sums of single effects are not."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import covaria
from covaria.assessment import prepare
from covaria.errors import InputError


def table_of(n_rows, seed, together=0.0):
    """Return four neighbours with correlation .5: a curve, a square, and b · d if wanted."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 4))
    for j in range(1, 4):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    y = np.sin(X[:, 0]) + X[:, 2] ** 2 / 2 + X[:, 1] + together * X[:, 1] * X[:, 3]
    return pd.DataFrame(X, columns=list("abcd")), y + rng.standard_normal(n_rows)


def result_of(X, y, **options):
    options = {"learner": "splines", "methods": ["gcm"], "check": False} | options
    return covaria.assess(X, y, **options)


@pytest.fixture(scope="module")
def result():
    return result_of(*table_of(600, 0, together=0.5))


def test_the_pair_that_acts_together_is_found_and_no_other(result):
    found = covaria.interactions(result)
    assert found.loc[found["selected"], ["feature", "other"]].to_numpy().tolist() == [["b", "d"]]
    assert len(found) == 6
    assert found["p_value"].is_monotonic_increasing
    assert len(covaria.interactions(result, top=2)) == 2


def test_the_statistic_is_that_of_the_formula(result):
    x, y = (result.residuals[name] for name in ("x_given_rest", "y_given_rest"))
    first, second = x[:, 1], x[:, 3]
    basis = np.column_stack([np.ones(600), first, second])
    left = [
        v - basis @ np.linalg.lstsq(basis, v, rcond=None)[0]
        for v in (first * second, (y[:, 1] + y[:, 3]) / 2)
    ]
    scores = left[0] * left[1]
    statistic = np.sqrt(600) * scores.mean() / scores.std()
    row = covaria.interactions(result).iloc[0]
    assert row["statistic"] == pytest.approx(statistic)
    assert row["p_value"] == pytest.approx(2 * norm.sf(abs(statistic)))
    assert row["share"] == pytest.approx(
        scores.mean() ** 2 / np.mean(left[0] ** 2) / result.about.variance
    )


def test_p_values_are_adjusted_for_all_pairs_not_for_those_shown(result):
    every, one = (covaria.interactions(result, top=top) for top in (99, 1))
    assert one["p_adjusted"][0] == every["p_adjusted"][0] == pytest.approx(6 * every["p_value"][0])
    few = covaria.interactions(result, features=["b", "d"])
    assert few["p_adjusted"][0] == few["p_value"][0]


def test_detectable_shrinks_with_rows_and_grows_with_pairs(result):
    more = result_of(*table_of(2400, 1))
    assert covaria.interactions(more)["detectable"].max() < 0.5 * (
        covaria.interactions(result)["detectable"].min()
    )
    alone = covaria.interactions(result, features=["b", "d"])["detectable"][0]
    assert alone < covaria.interactions(result)["detectable"][0]


def test_residuals_and_files_give_the_same_answer(result, tmp_path):
    X, y = table_of(600, 0, together=0.5)
    job = prepare(X, y, learner="splines", methods=["gcm"], check=False)
    fitted = covaria.fit_residuals(job.plan(0))
    result.to_json(tmp_path / "result.json")
    stored = covaria.Result.from_json(tmp_path / "result.json")
    expected = covaria.interactions(result)
    assert covaria.interactions(fitted).equals(expected)
    assert covaria.interactions(stored).equals(expected)


def test_copies_of_rows_as_clusters_count_once():
    X, y = table_of(200, 2, together=0.4)
    twice, both = pd.concat([X, X], ignore_index=True), np.tile(y, 2)
    alone, pairs = (
        covaria.interactions(result_of(twice, both, learner="linear", clusters=clusters))
        for clusters in (np.arange(400), np.tile(np.arange(200), 2))
    )
    ratio = pairs["detectable"].median() / alone["detectable"].median()
    assert ratio == pytest.approx(2, rel=0.2)


def test_weights_of_one_size_change_nothing():
    X, y = table_of(200, 3, together=0.4)
    plain, same = (
        covaria.interactions(result_of(X, y, learner="linear", sample_weight=w))
        for w in (None, np.full(200, 3.0))
    )
    assert np.allclose(plain["statistic"], same["statistic"])


def test_two_classes_have_pairs_too():
    X, y = table_of(1500, 4, together=1.0)
    found = covaria.interactions(result_of(X, y > 0, learner="linear"))
    assert found.loc[0, ["feature", "other"]].tolist() == ["b", "d"]


def test_odd_questions_get_a_sentence(result):
    X, y = table_of(120, 5)
    with pytest.raises(InputError, match="top=0 must be"):
        covaria.interactions(result, top=0)
    with pytest.raises(InputError, match="There is no feature 'e'"):
        covaria.interactions(result, features=["a", "e"])
    with pytest.raises(InputError, match="needs two features"):
        covaria.interactions(result, features=["a"])
    with pytest.raises(InputError, match="takes a result"):
        covaria.interactions(X)
    with pytest.raises(InputError, match="gcm among"):
        covaria.interactions(result_of(X, y, methods=["dropout"], learner="linear"))
    with pytest.raises(InputError, match="splits=5"):
        covaria.interactions(result_of(X, y, learner="linear", splits="none"))
    with pytest.raises(InputError, match="two classes"):
        covaria.interactions(result_of(X, np.digitize(y, [0, 1]).astype(str), learner="linear"))


def test_curves_and_correlation_do_not_pass_for_an_interaction():
    """Of 25 runs and 6 pairs without interaction at level .1 at most 31 reject (p < .001 at .1)."""
    rejected = 0
    for seed in range(25):
        found = covaria.interactions(result_of(*table_of(300, [seed, 6]), seed=seed), top=6)
        rejected += int((found["p_value"] < 0.1).sum())
    assert rejected <= 31
