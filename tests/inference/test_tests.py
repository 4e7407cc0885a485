"""From scores to p-values and intervals."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2, f, ncx2, norm, t

from covaria.efficiencies import relative_efficiency, relative_variability
from covaria.inference import tests as inference
from covaria.inference.tests import (
    SMALLEST_P,
    agreeing,
    chi_squared_p,
    combine_repeats,
    correlation,
    covariance,
    either_p,
    freedom_of,
    interval,
    mean_test,
    normal_p,
    normal_quantile,
    quantile,
    standard_error,
    student_p,
)
from covaria.tables import arrays
from covaria.tables.arrays import AT_ONCE, column_blocks


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


def test_errors_of_uneven_clusters_are_those_of_leaving_each_out():
    rng = np.random.default_rng(1)
    scores, clusters = (
        rng.normal(1, 1, size=(100, 2)),
        np.r_[np.zeros(40, int), 1 + np.arange(60) // 6],
    )
    left_out = np.array([scores[clusters != c].mean(axis=0) for c in range(11)])
    squares = 10 / 11 * ((left_out - scores.mean(axis=0)) ** 2).sum(axis=0)
    assert np.allclose(standard_error(scores, clusters) ** 2, squares)
    assert np.allclose(np.diag(covariance(scores, clusters)), squares)
    effective = 1 / (0.4**2 + 10 * 0.06**2)
    assert freedom_of(clusters) == pytest.approx(effective - 1)
    ratio = scores.mean(axis=0) / np.sqrt(squares)
    tests = mean_test(scores, scale=np.ones(2), clusters=clusters)
    assert np.allclose(tests.p_value, 2 * t(effective - 1).sf(ratio))


def test_clusters_of_much_the_same_size_have_a_degree_of_freedom_each():
    clusters = np.random.default_rng(2).integers(0, 10, 90)
    assert freedom_of(clusters) == 9
    assert freedom_of(None) == np.inf
    assert freedom_of(np.r_[np.zeros(96, int), 1 + np.arange(4)]) == 1  # there is always one


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


# --- by hand ------------------------------------------------------------------------------------

SIDES = ("two-sided", "greater", "less")


def standing_at(mean, sd, n_rows=100):
    """Return one column of scores with just this mean and sd."""
    return mean + sd * np.resize([1.0, -1.0], (n_rows, 1))


@pytest.mark.parametrize("n_rows", [0, 1, 3, 2**18, 2**20, 2**23])
def test_blocks_hold_every_column_once_and_no_more_numbers_than_allowed(n_rows):
    blocks = column_blocks(n_rows, 11)
    widths = [len(range(11)[block]) for block in blocks]
    assert [j for block in blocks for j in range(11)[block]] == list(range(11))
    assert max(widths) == max(1, min(11, AT_ONCE // max(1, n_rows)))
    assert set(widths[:-1]) <= {max(widths)}
    assert len(column_blocks(1, AT_ONCE)) == 1


def test_errors_are_the_same_however_many_columns_are_copied_at_once(monkeypatch):
    scores = np.random.default_rng(0).normal(size=(30, 7))
    monkeypatch.setattr(arrays, "AT_ONCE", 60)
    assert np.allclose(standard_error(scores), scores.std(axis=0) / np.sqrt(30), rtol=1e-14)


def test_covariances_are_those_of_the_means_by_hand():
    rng = np.random.default_rng(1)
    scores, clusters = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)), rng.integers(0, 9, 60)
    assert np.allclose(covariance(scores), np.cov(scores.T, bias=True) / 60)
    sums = [(scores - scores.mean(axis=0))[clusters == c].sum(axis=0) for c in range(9)]
    expected = 9 / 8 * sum(np.outer(one, one) for one in sums) / 60**2
    assert np.allclose(covariance(scores, clusters), expected)


def test_each_row_its_own_cluster_is_the_plain_error_but_for_one_degree_of_freedom():
    scores = np.random.default_rng(2).normal(size=(40, 2))
    ratio = standard_error(scores, np.arange(40)) / standard_error(scores)
    assert np.allclose(ratio, np.sqrt(40 / 39))


@pytest.mark.parametrize("unit", [1e-120, 1.0, 1e120])
def test_the_correlation_of_two_means_is_pearsons_whatever_the_units(unit):
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 50)) + rng.normal(size=50)
    assert correlation(unit * a, unit * b) == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert correlation(unit * a, -b) == pytest.approx(-np.corrcoef(a, b)[0, 1])


def test_the_correlation_of_clustered_means_is_that_of_their_sums():
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, 80)) + rng.normal(size=80)
    clusters = rng.integers(0, 12, 80)
    of_a, of_b = (np.bincount(clusters, v - v.mean()) for v in (a, b))
    expected = of_a @ of_b / np.sqrt((of_a @ of_a) * (of_b @ of_b))
    assert correlation(a, b, clusters) == pytest.approx(expected)


def test_scores_that_do_not_vary_go_with_nothing():
    varies = np.arange(5.0)
    assert correlation(varies, np.ones(5)) == correlation(np.zeros(5), varies) == 0


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("alternative", SIDES)
@pytest.mark.parametrize("clustered", [False, True])
def test_estimate_error_p_value_and_interval_are_those_of_a_textbook(sign, alternative, clustered):
    rng = np.random.default_rng(5)
    scores = rng.normal(sign * 0.15, 1, size=(90, 2))
    clusters = rng.integers(0, 10, 90) if clustered else None
    tests = mean_test(
        scores, scale=np.ones(2), alternative=alternative, confidence=0.8, clusters=clusters
    )
    error = standard_error(scores, clusters)
    ratio, law = scores.mean(axis=0) / error, t(9) if clustered else norm
    tails = {"greater": law.sf(ratio), "less": law.cdf(ratio), "two-sided": 2 * law.sf(abs(ratio))}
    assert np.allclose(tests.statistic, ratio)
    assert np.allclose(tests.std_error, error)
    assert np.allclose(tests.p_value, tails[alternative], rtol=1e-12)
    reach = law.ppf(0.9 if alternative == "two-sided" else 0.8) * error
    if alternative != "less":
        assert np.allclose(tests.low, tests.estimate - reach)
    if alternative != "greater":
        assert np.allclose(tests.high, tests.estimate + reach)
    assert not tests.is_zero.any()


def test_a_factor_multiplies_the_statistic_and_not_the_estimate():
    tests = mean_test(standing_at(0.1, 1.0), scale=np.ones(1), factor=2.0)
    assert tests.statistic[0] == pytest.approx(2.0)
    assert tests.p_value[0] == pytest.approx(2 * norm.sf(2.0))
    assert tests.estimate[0] == pytest.approx(0.1)
    assert tests.std_error[0] == pytest.approx(0.1)


def test_scores_are_zero_up_to_a_share_of_their_scale_and_no_further():
    scores = standing_at(3.0, 1.0, 4).repeat(2, axis=1)
    tests = mean_test(scores, scale=np.array([1e12, 0.9e12]))
    assert tests.is_zero.tolist() == [True, False]
    assert tests.estimate.tolist() == [0.0, 3.0]
    assert tests.std_error.tolist() == [0.0, 0.5]
    assert (tests.p_value[0], tests.low[0], tests.high[0]) == (1.0, 0.0, 0.0)
    assert tests.p_value[1] == pytest.approx(2 * norm.sf(6.0))


def test_of_several_features_only_those_of_several_columns_have_a_chi_squared():
    scores = np.hstack([standing_at(-0.3, 1.0)] * 3)
    tests = mean_test(scores, scale=np.ones(3), degrees=np.array([1, 2, 4]))
    assert tests.statistic == pytest.approx([-3.0, 9.0, 9.0])
    expected = [2 * norm.sf(3), chi2.sf(9, 2), chi2.sf(9, 4)]
    assert tests.p_value == pytest.approx(expected)


@pytest.mark.parametrize("columns", [2, 3, 9, 12])
def test_several_columns_of_clusters_have_hotellings_t_squared(columns):
    clusters = np.arange(100) % 10
    scores = np.random.default_rng(6).normal(0.6, 1, size=(100, 1))
    tests = mean_test(scores, scale=np.ones(1), degrees=np.array([columns]), clusters=clusters)
    squared = (scores.mean() / standard_error(scores, clusters)[0]) ** 2
    # T² (G − d) / (d (G − 1)) is F with d and G − d; with too few clusters, as if one were left.
    left = max(10 - columns, 1)
    expected = f.sf(squared * left / (columns * 9), columns, left)
    assert tests.p_value[0] == pytest.approx(expected)
    assert chi2.sf(tests.statistic[0], columns) == pytest.approx(expected)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("squared", [0.3, 4.0, 30.0, 900.0, 9_800.0])
def test_intervals_of_a_length_are_where_its_square_is_a_quantile(squared, confidence):
    scores = standing_at(2.0, 2.0 / np.sqrt(squared / 100))
    tests = mean_test(scores, scale=np.ones(1), degrees=np.array([3]), confidence=confidence)
    assert tests.statistic[0] == pytest.approx(squared)
    tail = (1 - confidence) / 2
    for end, level in ((tests.low[0], 1 - tail), (tests.high[0], tail)):
        if chi2.cdf(squared, 3) <= level:
            assert end == pytest.approx(max(0.0, 2.0 if level == tail else 0.0))
        else:
            there = squared * (end / 2.0) ** 2
            assert ncx2.cdf(squared, 3, there) == pytest.approx(level, abs=1e-6)


def test_the_interval_of_a_great_length_is_that_of_a_normal():
    # √χ² is normal with unit variance far from 0: here it is 1,000.
    tests = mean_test(standing_at(2.0, 0.02), scale=np.ones(1), degrees=np.array([3]))
    assert tests.low[0] == pytest.approx(2 * (1 - norm.ppf(0.975) / 1000), rel=1e-9)
    assert tests.high[0] == pytest.approx(2 * (1 + norm.ppf(0.975) / 1000), rel=1e-9)


def test_a_length_of_zero_has_an_interval_of_zero():
    tests = mean_test(standing_at(0.0, 1.0), scale=np.ones(1), degrees=np.array([2]))
    assert (tests.low[0], tests.high[0], tests.p_value[0]) == (0.0, 0.0, 1.0)


def test_a_one_sided_interval_ends_at_what_the_estimate_can_be():
    estimate, error = np.array([0.3, 0.3]), np.array([0.1, 0.1])
    bounds = (np.array([-1.0, 0.4]), np.array([1.0, 0.2]))
    reach = norm.ppf(0.9) * 0.1
    low, high = interval(estimate, error, "greater", 0.9, bounds=bounds)
    assert low == pytest.approx(0.3 - reach)
    assert high.tolist() == [1.0, 0.3]
    low, high = interval(estimate, error, "less", 0.9, bounds=bounds)
    assert low.tolist() == [-1.0, 0.3]
    assert high == pytest.approx(0.3 + reach)
    low, high = interval(estimate, error, "two-sided", 0.9, bounds=bounds)
    assert low == pytest.approx(0.3 - norm.ppf(0.95) * 0.1)
    assert high == pytest.approx(0.3 + norm.ppf(0.95) * 0.1)


@pytest.mark.parametrize("level", [0.3, 0.9])
def test_quantiles_are_the_normals_or_students(level):
    assert quantile(level) == pytest.approx(norm.ppf(level))
    assert quantile(level, 4.0) == pytest.approx(t.ppf(level, 4))


@pytest.mark.parametrize("alternative", SIDES)
@pytest.mark.parametrize("freedom", [3.0, np.inf])
def test_no_p_value_is_zero_and_all_are_the_tails(alternative, freedom):
    ratio, law = np.array([-1.2, 0.0, 0.7]), norm if np.isinf(freedom) else t(freedom)
    tails = {"greater": law.sf(ratio), "less": law.cdf(ratio), "two-sided": 2 * law.sf(abs(ratio))}
    assert student_p(ratio, alternative, freedom) == pytest.approx(tails[alternative])
    assert student_p(np.array([1e300, -1e300]), alternative, freedom).min() >= SMALLEST_P
    assert chi_squared_p(1e6, 2) == SMALLEST_P
    assert chi_squared_p(5.0, 2) == pytest.approx(np.exp(-2.5))


# --- an interval that agrees with its p-value -----------------------------------------------------


@pytest.mark.parametrize("alternative", SIDES)
def test_an_interval_holds_its_estimate_and_zero_just_where_nothing_is_found(alternative):
    ends = np.array([-2.0, -0.5, 0.0, 0.5, 2.0])
    grid = np.meshgrid(ends, ends, [-1.0, 1.0], [1e-9, 0.04, 0.06, 1.0])
    low, high, estimate, p = (values.ravel() for values in grid)
    direction = {"greater": estimate > 0, "less": estimate < 0, "two-sided": estimate != 0}
    possible = (low <= high) & ((p > 0.5) | direction[alternative])
    low, high, estimate, p = (values[possible] for values in (low, high, estimate, p))
    new_low, new_high = agreeing(low, high, estimate, p, alternative, 0.95)
    assert (new_low <= estimate).all()
    assert (estimate <= new_high).all()
    assert (((new_low > 0) | (new_high < 0)) == (p < 0.05)).all()
    holds_zero, held = (low <= 0) & (high >= 0), (low <= estimate) & (estimate <= high)
    same = held & (holds_zero == (p >= 0.05))
    assert np.array_equal(new_low[same], low[same])
    assert np.array_equal(new_high[same], high[same])


@pytest.mark.parametrize("alternative", SIDES)
def test_an_end_that_disagrees_moves_to_where_a_normal_test_of_that_p_value_has_it(alternative):
    sign, sides = (-1 if alternative == "less" else 1), (2 if alternative == "two-sided" else 1)
    p, estimate = np.array([0.001, 0.03]), sign * np.array([2.0, 3.0])
    error = np.abs(estimate) / norm.isf(p / sides)
    near = estimate - sign * norm.isf(0.05 / sides) * error
    ends = agreeing(estimate - 9, estimate + 9, estimate, p, alternative, 0.95)
    assert np.allclose(ends[0 if sign > 0 else 1], near)
    assert np.allclose(ends[1 if sign > 0 else 0], estimate + sign * 9)


@pytest.mark.parametrize("alternative", SIDES)
def test_a_length_has_the_same_ends_whatever_was_asked_of_means(alternative):
    low, high, length = np.zeros(2), np.full(2, 0.9), np.full(2, 0.5)
    args = low, high, length, np.array([0.001, 0.2])
    ends = agreeing(*args, alternative, 0.95, lengths=np.ones(2, dtype=bool))
    assert np.array_equal(ends, agreeing(*args, "two-sided", 0.95))


def test_a_p_value_that_is_just_the_level_finds_nothing():
    one = np.ones(1)
    assert agreeing(0.5 * one, 2 * one, one, 0.5 * one, "two-sided", 0.5)[0][0] == 0
    assert agreeing(-2 * one, -0.5 * one, -one, 0.5 * one, "two-sided", 0.5)[1][0] == 0


def test_an_end_moved_off_zero_stays_off_it_however_close_the_p_value_is_to_the_level():
    one, p = np.ones(1), np.array([np.nextafter(1 - 0.95, 0)])
    assert 0 < agreeing(-one, 2 * one, one, p, "two-sided", 0.95)[0][0] < 1e-8
    assert -1e-8 < agreeing(-2 * one, one, -one, p, "two-sided", 0.95)[1][0] < 0


def test_nothing_estimated_is_nothing_found():
    zero = np.zeros(1)
    ends = agreeing(zero - 1, zero + 1, zero, np.array([1e-9]), "two-sided", 0.95)
    assert [end[0] for end in ends] == [-1.0, 1.0]


# --- the smaller of two p-values ------------------------------------------------------------------


def either_by_quadrature(m, rho):
    """Return P(|T₁| > z(m/2) or T₂ > z(m)), integrated over T₁."""
    spread, edge, bound = np.sqrt(1 - rho**2), norm.isf(m / 2), norm.isf(m)
    inside, _ = quad(
        lambda one: norm.pdf(one) * norm.sf((bound - rho * one) / spread), -edge, edge,
        epsabs=1e-13, limit=200,
    )  # fmt: skip
    return m + inside


@pytest.mark.parametrize("rho", [-0.9, -0.3, 0.0, 0.5, 0.95])
@pytest.mark.parametrize("m", [1e-4, 0.02, 0.3, 0.8])
def test_the_smaller_of_two_p_values_has_the_probability_of_either(m, rho):
    expected = either_by_quadrature(m, rho)
    larger = (1 + m) / 2
    p = either_p(np.array([m, larger, m]), np.array([larger, m, m]), np.full(3, rho))
    assert p == pytest.approx(np.full(3, expected), rel=1e-5)


def test_two_p_values_of_independent_or_of_equal_tests_are_known():
    m = np.array([1e-6, 0.01, 0.2, 1.0])
    assert either_p(m, m, np.zeros(4)) == pytest.approx(2 * m - m**2)
    # T₁ = T₂: beyond z(m) above, or z(m/2) below.
    assert either_p(m[:3], m[:3], np.ones(3)) == pytest.approx(1.5 * m[:3], rel=0.05)
    assert either_p(m[:3], m[:3], -np.ones(3)) == pytest.approx(1.5 * m[:3], rel=0.05)
    assert (either_p(np.ones(2), np.ones(2), np.array([-1.0, 0.3])) <= 1).all()


# --- repeats --------------------------------------------------------------------------------------


def repeats_of(alternative, seed=7, n_runs=3):
    rng, shift = np.random.default_rng(seed), -0.2 if alternative == "less" else 0.2
    return [
        mean_test(rng.normal(shift, 1, (50, 4)), scale=np.ones(4), alternative=alternative)
        for _ in range(n_runs)
    ]


def test_one_repeat_is_what_it_is():
    (only,) = repeats_of("two-sided", n_runs=1)
    assert combine_repeats([only]) is only


@pytest.mark.parametrize("alternative", SIDES)
def test_repeats_have_the_error_of_both_spreads_and_its_interval(alternative):
    runs, bounds = repeats_of(alternative), (np.full(4, -3.0), np.full(4, 3.0))
    together = combine_repeats(runs, alternative, 0.9, bounds=bounds)
    estimates = np.array([run.estimate for run in runs])
    within = np.mean([run.std_error**2 for run in runs], axis=0)
    error = np.sqrt(within + estimates.var(axis=0))
    assert np.allclose(together.std_error, error)
    expected = interval(estimates.mean(axis=0), error, alternative, 0.9, bounds=bounds)
    expected = agreeing(*expected, together.estimate, together.p_value, alternative, 0.9)
    assert np.allclose([together.low, together.high], expected)


def test_a_repeat_that_says_nothing_counts_as_almost_one():
    run = repeats_of("greater", n_runs=1)[0]
    silent = mean_test(np.zeros((50, 4)), scale=np.ones(4), alternative="greater")
    score = (norm.isf(run.p_value) + norm.isf(0.99)) / 2
    assert np.allclose(combine_repeats([run, silent], "greater").p_value, norm.sf(score))


def test_only_features_that_are_zero_in_every_repeat_are_zero():
    scores = np.hstack([standing_at(0.5, 1.0), np.zeros((100, 1))])
    one = mean_test(scores, scale=np.ones(2))
    two = mean_test(np.zeros((100, 2)), scale=np.ones(2))
    together = combine_repeats([one, two])
    assert together.is_zero.tolist() == [False, True]
    assert together.p_value[0] < 1
    assert (together.p_value[1], together.low[1], together.high[1]) == (1.0, 0.0, 0.0)
    assert together.high[0] > 0.25


def test_the_interval_of_a_length_is_the_mean_of_those_of_the_repeats():
    degrees, rng = np.array([1, 2, 3]), np.random.default_rng(8)
    runs = [mean_test(rng.normal(0.9, 1, (60, 3)), scale=np.ones(3), degrees=degrees)
            for _ in range(3)]  # fmt: skip
    lengths, plain = combine_repeats(runs, degrees=degrees), combine_repeats(runs)
    for end in ("low", "high"):
        means = np.mean([getattr(run, end) for run in runs], axis=0)
        assert getattr(lengths, end)[1:] == pytest.approx(means[1:])
        assert getattr(lengths, end)[0] == getattr(plain, end)[0] != pytest.approx(means[0])


def test_repeats_of_opposite_signs_cancel():
    def at(z):
        value = np.array([z])
        p = normal_p(value, "two-sided")
        return inference.Tests(value, np.ones(1), value, p, value - 2, value + 2, np.zeros(1, bool))

    assert combine_repeats([at(2.0), at(-2.0)]).p_value[0] == pytest.approx(1.0)
    assert combine_repeats([at(3.0), at(-1.0)]).p_value[0] == pytest.approx(2 * norm.sf(1.0))


def test_clusters_of_unlike_size_keep_their_freedom_where_none_has_a_tenth_of_the_rows():
    of = np.repeat(np.arange(30), np.arange(1, 31) ** 2)  # the largest has .095, 17 are effective
    assert freedom_of(of) == 29
    of = np.repeat(np.arange(25), np.arange(1, 26) ** 2)  # .113, and 14 are effective
    assert freedom_of(of) == pytest.approx(5525**2 / 2153645 - 1)


def test_tails_and_quantiles_are_those_of_scipy_to_the_last_bit():
    rng = np.random.default_rng(0)
    z = np.concatenate([10 * rng.normal(size=1000), [0.0, -0.0, 40.0, np.inf, -np.inf]])
    p = np.concatenate([rng.random(1000), 10.0 ** -rng.uniform(0, 320, 1000), [0.0, 0.5, 1.0]])
    np.testing.assert_array_equal(inference.upper_tail(z), norm.sf(z))
    np.testing.assert_array_equal(inference.upper_tail(z, 7.5), t(7.5).sf(z))
    np.testing.assert_array_equal(normal_quantile(p), norm.isf(p))
    assert not np.signbit(normal_quantile(0.5))
    assert quantile(0.975) == norm.ppf(0.975)
