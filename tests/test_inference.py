"""From scores to p-values and intervals."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2, ncx2, norm

from residua.efficiency import relative_efficiency, relative_variability
from residua.inference import combine_repeats, covariance, mean_test, normal_p, standard_error
from residua.selection import CORRECTIONS, adjust

FIXTURES = Path(__file__).parent / "fixtures"


def test_adjusted_p_values_equal_those_of_r():
    with (FIXTURES / "r_p_adjust.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    p = np.array([float(row["p_value"]) for row in rows])
    for ours, theirs in {
        "bh": "BH",
        "by": "BY",
        "holm": "holm",
        "bonferroni": "bonferroni",
    }.items():
        assert np.allclose(adjust(p, ours), [float(row[theirs]) for row in rows], rtol=1e-12)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_adjusting_never_lowers_a_p_value_nor_changes_their_order(correction):
    p = np.random.default_rng(0).uniform(size=50)
    adjusted = adjust(p, correction)
    assert (adjusted >= p - 1e-15).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()


def test_tails_are_accurate_and_never_zero():
    assert normal_p(np.array([20.0]), "greater")[0] == pytest.approx(norm.sf(20), rel=1e-12)
    assert normal_p(np.array([100.0, -100.0]), "two-sided").min() > 0
    assert normal_p(np.array([-2.0]), "less")[0] == pytest.approx(norm.cdf(-2))


def test_scores_that_vary_by_rounding_alone_are_zero():
    scores = np.column_stack([1e-16 * np.random.default_rng(0).normal(size=50), np.zeros(50)])
    tests = mean_test(scores, scale=np.ones(2))
    assert tests.p_value.tolist() == [1.0, 1.0]
    assert tests.statistic.tolist() == tests.estimate.tolist() == [0.0, 0.0]
    assert tests.is_zero.all()


def test_clustered_errors_are_the_sums_by_hand():
    rng = np.random.default_rng(1)
    scores, clusters = rng.normal(size=(60, 2)), rng.integers(0, 12, 60)
    centred = scores - scores.mean(axis=0)
    sums = np.array([centred[clusters == c].sum(axis=0) for c in range(12)])
    squares = 12 / 11 * (sums**2).sum(axis=0)
    assert np.allclose(standard_error(scores, clusters), np.sqrt(squares) / 60)
    assert np.allclose(np.diag(covariance(scores, clusters)), squares / 3600)


def test_the_interval_of_several_columns_inverts_the_noncentral_chi_squared():
    rng = np.random.default_rng(2)
    scores = rng.normal(0.4, 1, size=(100, 1))
    tests = mean_test(scores, scale=np.ones(1), degrees=np.array([3]), confidence=0.9)
    statistic, estimate = tests.statistic[0], tests.estimate[0]
    assert tests.p_value[0] == pytest.approx(chi2.sf(statistic, 3))
    low, high = (statistic * (end[0] / estimate) ** 2 for end in (tests.low, tests.high))
    assert ncx2.cdf(statistic, 3, low) == pytest.approx(0.95, abs=1e-6)
    assert ncx2.cdf(statistic, 3, high) == pytest.approx(0.05, abs=1e-6)


def test_very_large_statistics_of_several_columns_have_an_interval_too():
    scores = np.random.default_rng(3).normal(5, 1, size=(4000, 1))
    tests = mean_test(scores, scale=np.ones(1), degrees=np.array([2]))
    assert 0 < tests.low[0] < tests.estimate[0] < tests.high[0]


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_repeats_give_the_mean_and_the_p_value_of_the_mean_statistic(alternative):
    rng, shift = np.random.default_rng(4), -0.1 if alternative == "less" else 0.1
    runs = [
        mean_test(rng.normal(shift, 1, size=(80, 3)), scale=np.ones(3), alternative=alternative)
        for _ in range(5)
    ]
    together = combine_repeats(runs, alternative)
    statistic = np.mean([run.statistic for run in runs], axis=0)
    assert np.allclose(together.statistic, statistic)
    assert np.allclose(together.p_value, normal_p(statistic, alternative))
    assert np.allclose(together.estimate, np.mean([run.estimate for run in runs], axis=0))
    assert (together.std_error >= np.min([run.std_error for run in runs], axis=0)).all()


def test_repeats_that_say_nothing_at_all_leave_the_others_a_say():
    rng = np.random.default_rng(5)
    strong = mean_test(rng.normal(2, 1, size=(80, 2)), scale=np.ones(2), alternative="greater")
    nothing = mean_test(np.zeros((80, 2)), scale=np.ones(2), alternative="greater")
    assert (combine_repeats([strong, strong, nothing], "greater").p_value < 1e-6).all()
    assert (combine_repeats([nothing, nothing], "greater").p_value == 1).all()


@pytest.mark.parametrize("alternative", ["two-sided", "greater"])
@pytest.mark.parametrize("shared", [0.0, 0.5, 0.9])
def test_the_mean_of_repeats_keeps_the_level(alternative, shared):
    rng = np.random.default_rng(6)
    common, n_tables = rng.normal(size=(100, 4000)), 4000
    runs = [
        mean_test(
            np.sqrt(shared) * common + np.sqrt(1 - shared) * rng.normal(size=(100, n_tables)),
            scale=np.ones(n_tables), alternative=alternative,
        )
        for _ in range(5)
    ]  # fmt: skip
    rejected = (combine_repeats(runs, alternative).p_value < 0.05).mean()
    assert rejected < 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_tables)


def test_relative_efficiency_is_the_squared_ratio_of_the_statistics():
    rng = np.random.default_rng(5)
    a, b = rng.normal(1, 1, size=(500, 2)), rng.normal(0.5, 1, size=(500, 2))
    z = [s.mean(axis=0) / s.std(axis=0) for s in (a, b)]
    assert np.allclose(relative_efficiency(a, b), (z[0] / z[1]) ** 2)
    assert np.isinf(relative_variability(np.zeros((5, 1)))).all()
    assert np.isnan(relative_efficiency(np.zeros((5, 1)), np.zeros((5, 1)))).all()


def test_storey_is_bh_times_the_share_of_useless_features():
    p = np.array([0.001, 0.01, 0.02, 0.3, 0.6, 0.9, 0.04, 0.03])
    share = (1 + 2) / (0.5 * 8)
    assert adjust(p, "storey") == pytest.approx(np.minimum(1, share * adjust(p, "bh")))
    assert adjust(np.full(4, 0.9), "storey") == pytest.approx(0.9)  # never beyond BH
