"""Permuted residuals, against every permutation there is and closed moments."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import chi2, norm

from covaria.inference import resampling
from covaria.inference.resampling import (
    POLICY,
    Shuffles,
    floor_factor,
    form_factor,
    is_far_from_normal,
    product_factor,
)


def shuffles(fold, seed=0):
    return Shuffles(np.asarray(fold), lambda: np.random.default_rng(seed))


# --- shuffles -----------------------------------------------------------------------------------


def test_no_row_leaves_its_fold_and_every_order_is_as_likely():
    own = shuffles([4, 0, 4, 0, 4])
    assert [rows.tolist() for rows in own.members] == [[1, 3], [0, 2, 4]]
    orders = own.orders(6000)
    assert orders.shape == (6000, 5)
    assert (np.sort(orders[:, [1, 3]], axis=1) == [1, 3]).all()
    assert (np.sort(orders[:, [0, 2, 4]], axis=1) == [0, 2, 4]).all()
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert len(counts) == 12
    assert np.abs(counts - 500).max() < 5 * np.sqrt(500)


def test_orders_are_drawn_once_and_all_draws_begin_anew():
    own, other = (shuffles(np.arange(30) % 2) for _ in range(2))
    assert own.places(50) is own.places(50)
    assert replace(own, fold=own.fold[::-1]).places(50) is own.places(50)  # of the same sizes
    assert len(replace(own, fold=np.zeros(30, int)).places(50)) == 50
    assert len(own.orders(50)) == 50
    assert np.array_equal(own.orders(50), other.orders(50))


def test_large_tables_have_fewer_draws_but_never_fewer_than_the_first():
    draws = POLICY.most_drawn
    assert shuffles(np.zeros(10, int)).affordable(3999) == 3999
    assert shuffles(np.zeros(20_000, int)).affordable(3999) == draws // 20_000
    assert shuffles(np.zeros(200_000, int)).affordable(3999) == POLICY.draws[0]


# --- how far from normal ------------------------------------------------------------------------


def few(count, n_rows=10_000, signs=(1.0,)):
    """Return a column of zeros but for some rows."""
    column = np.zeros((n_rows, 1))
    column[:count, 0] = np.resize(signs, count)
    return column


def test_the_skewness_of_few_rows_counts_on_both_sides():
    # k ones of n: the skewness around zero is √(n/k), so that of the sum is √(n / kl).
    assert is_far_from_normal(few(664), few(664))
    assert is_far_from_normal(-few(664), few(664))
    assert not is_far_from_normal(few(670), few(670))
    assert is_far_from_normal(few(10_000 // 8), few(350))
    assert not is_far_from_normal(few(10_000 // 8), few(360))


def test_the_kurtosis_counts_where_there_is_no_skewness():
    # k of n rows are 1 or −1: the kurtosis is n/k, and that of the sum n / kl.
    both = (1.0, -1.0)
    assert is_far_from_normal(few(256, signs=both), 3 * few(256, signs=both))
    assert not is_far_from_normal(few(262, signs=both), 3 * few(262, signs=both))
    two = few(300, signs=both).repeat(2, axis=1)
    assert is_far_from_normal(two, few(300, signs=both))
    assert is_far_from_normal(few(300, signs=both), two)
    assert not is_far_from_normal(few(300, signs=both), few(300, signs=both))


def test_the_worst_of_several_columns_counts_and_nothing_left_is_not_far():
    both = (1.0, -1.0)
    wide = np.hstack([few(10_000, signs=both), few(100, signs=both)])
    assert is_far_from_normal(wide, few(500, signs=both))
    assert not is_far_from_normal(np.zeros((100, 1)), np.zeros((100, 1)))


def test_normal_residuals_are_normal():
    x, y = np.random.default_rng(0).normal(size=(2, 500, 1))
    assert not is_far_from_normal(x, y)


def test_the_floor_is_the_root_of_what_the_variance_falls_short():
    assert floor_factor(1.0, 9.0) == 3.0
    assert floor_factor(9.0, 1.0) == floor_factor(0.0, 1.0) == 1.0


# --- one product a row --------------------------------------------------------------------------


def studentised(products):
    return np.sqrt(len(products)) * products.mean() / products.std()


def every_order(fold):
    """Yield all orders of the rows in which no row leaves its fold."""
    members = [np.flatnonzero(fold == k) for k in np.unique(fold)]
    for parts in product(*(permutations(rows) for rows in members)):
        order = np.empty(len(fold), dtype=int)
        for rows, part in zip(members, parts, strict=True):
            order[rows] = part
        yield order


def exact_p(x, y, fold, alternative):
    """Return the share of all orders whose studentised statistic is as far out as ours."""
    found = studentised((x * y).sum(axis=1))
    drawn = np.array([studentised((x * y[order]).sum(axis=1)) for order in every_order(fold)])
    below, above = (drawn <= found + 1e-9).mean(), (drawn >= found - 1e-9).mean()
    tails = {"greater": above, "less": below, "two-sided": min(1, 2 * min(below, above))}
    return tails[alternative]


def small(n_columns, sign, seed=5):
    """Return residuals of eight rows in two folds, of mean zero in each."""
    rng, fold = np.random.default_rng(seed), np.array([0, 1, 0, 1, 0, 1, 0, 1])
    x = rng.exponential(size=(8, n_columns))
    y = sign * (x + 1.5 * rng.normal(size=(8, n_columns)))
    for k in (0, 1):
        x[fold == k] -= x[fold == k].mean(axis=0)
        y[fold == k] -= y[fold == k].mean(axis=0)
    return x, y, fold


@pytest.mark.parametrize("n_columns", [1, 2])
@pytest.mark.parametrize(
    ("alternative", "sign"),
    [("greater", 1), ("less", -1), ("two-sided", 1), ("two-sided", -1)],
)
def test_the_widened_normal_p_value_is_the_share_of_all_orders(alternative, sign, n_columns):
    x, y, fold = small(n_columns, sign)
    scores = (x * y).sum(axis=1)
    factor = product_factor(x, y, scores, shuffles(fold), alternative)
    sides = 2 if alternative == "two-sided" else 1
    p = sides * norm.sf(abs(studentised(scores)) / factor)
    expected = exact_p(x, y, fold, alternative)
    assert 0.01 < expected < 0.25 * sides
    assert p == pytest.approx(expected, abs=4 * sides * np.sqrt(expected / sides / 399))


def flags(n_rows=60, both=14, seed=11):
    """Return a flag and a rare outcome that go together, so that most sums are tied."""
    rng = np.random.default_rng(seed)
    x, y = np.zeros((2, n_rows, 1))
    x[:20], y[20 - both : 40 - both] = 1.0, 1.0
    order = rng.permutation(n_rows)
    return x[order] - x.mean(), y[order] - y.mean(), np.arange(n_rows) % 2


def drawn_p(statistic, found, own, alternative="greater"):
    """Return the p-value of as many draws as it takes, ties on both sides, and the draws."""
    for count in POLICY.draws:
        drawn = np.array([statistic(order) for order in own.orders(count)])
        above = (drawn >= found - 1e-9 * abs(found)).sum()
        below = (drawn <= found + 1e-9 * abs(found)).sum()
        tails = {"greater": above, "less": below, "two-sided": min(below, above)}
        if tails[alternative] >= 20:
            break
    sides = 2 if alternative == "two-sided" else 1
    return sides * (1 + tails[alternative]) / (1 + count), count


@pytest.mark.parametrize(("both", "draws"), [(9, 399), (10, 399), (11, 3999)])
@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
def test_the_p_value_counts_ties_and_is_never_below_one_over_the_draws(both, draws, alternative):
    x, y, fold = flags(both=both)
    y = -y if alternative == "less" else y
    scores, own = (x * y)[:, 0], shuffles(fold)
    expected, count = drawn_p(
        lambda order: studentised(x[:, 0] * y[order, 0]), studentised(scores), own, alternative
    )
    assert count == draws
    factor = product_factor(x, y, scores, own, alternative)
    sides = 2 if alternative == "two-sided" else 1
    assert sides * norm.sf(abs(studentised(scores)) / factor) == pytest.approx(expected)


def test_only_of_many_rows_are_some_drawn(monkeypatch):
    def never(*given):
        raise AssertionError("the other way")

    x, y, fold = flags()
    scores = (x * y)[:, 0]
    for most, unused in ((60, "_main_rows"), (59, "_all_rows")):
        with monkeypatch.context() as patch:
            patch.setattr(resampling, "POLICY", replace(POLICY, most_rows=most))
            patch.setattr(resampling, unused, never)
            assert product_factor(x, y, scores, shuffles(fold), "greater") > 0


def test_where_nothing_is_found_only_the_floor_counts():
    x, y, fold = small(1, 1)
    for alternative in ("less", "two-sided"):
        slope = (x * y).sum() / (x**2).sum()
        off = y - slope * x + (0.0 if alternative == "two-sided" else 0.1) * x
        scores = (x * off)[:, 0]
        implied = (x**2).mean() * (off**2).mean()
        expected = np.sqrt(max(1.0, implied / scores.var()))
        assert product_factor(x, off, scores, shuffles(fold), alternative) == pytest.approx(
            expected
        )


def test_scores_that_do_not_vary_are_left_alone():
    x, y = np.ones((10, 1)), np.ones((10, 1))
    assert product_factor(x, y, np.ones(10), shuffles(np.zeros(10, int)), "greater") == 1.0
    assert form_factor(x, y, np.ones(10), 2, shuffles(np.zeros(10, int))) == 1.0


@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_beyond_the_draws_the_p_value_is_that_of_the_normal_above_the_floor(alternative):
    rng = np.random.default_rng(4)
    x = rng.normal(size=(200, 1))
    y = x + 0.1 * rng.normal(size=(200, 1))
    scores = (x * y)[:, 0]
    factor = product_factor(x, y, scores, shuffles(np.arange(200) % 2), alternative)
    floor = floor_factor(scores.var(), (x**2).mean() * (y**2).mean())
    assert factor == pytest.approx(floor)
    # Signs whose product is almost 1: the spread falls far short of what it would be.
    x = np.resize([1.0, -1.0], (200, 1))
    y = x + 0.1 * rng.normal(size=(200, 1))
    scores = (x * y)[:, 0]
    factor = product_factor(x, y, scores, shuffles(np.arange(200) // 100), alternative)
    assert factor == pytest.approx(np.sqrt((y**2).mean() / scores.var()))
    assert factor > 8


def test_the_rare_case_of_the_reference_keeps_its_level():
    # 5 ones in a fold and a rare y: the normal p-value rejects most nulls.
    rng, p = np.random.default_rng(5), []
    for seed in range(60):
        x = np.zeros((300, 1))
        x[rng.choice(300, 5, replace=False)] = 1.0
        x -= x.mean()
        y = (rng.random((300, 1)) < 0.1) - 0.1
        scores = (x * y)[:, 0]
        factor = product_factor(x, y, scores, shuffles(np.arange(300) % 2, seed), "two-sided")
        p.append(2 * norm.sf(abs(studentised(scores)) / factor))
    assert np.mean(np.array(p) < 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)


# --- many rows ----------------------------------------------------------------------------------


def heavy(n_rows=400, n_columns=1, seed=6):
    rng = np.random.default_rng(seed)
    x = rng.standard_t(3, size=(n_rows, n_columns)) + 0.3
    return x, rng.exponential(size=(n_rows, n_columns)) - 0.7, np.arange(n_rows) % 3


@pytest.mark.parametrize("n_columns", [1, 2])
@pytest.mark.parametrize("swapped", [False, True])
def test_of_many_rows_those_that_matter_are_drawn_and_the_law_stays(
    monkeypatch, n_columns, swapped
):
    x, y, fold = heavy(n_columns=n_columns)
    x, y = (y, x) if swapped else (x, y)
    whole = resampling._all_rows(x, y, shuffles(fold), 3000)
    monkeypatch.setattr(resampling, "POLICY", replace(POLICY, most_rows=60))
    part = resampling._main_rows(x, y, shuffles(fold, 1), 3000)
    assert len(part) == 3000
    assert part.mean() == pytest.approx(whole.mean(), abs=5 * whole.std() / np.sqrt(3000))
    assert part.std() == pytest.approx(whole.std(), rel=0.06)
    for level in (0.05, 0.95):
        share = (part < np.quantile(whole, level)).mean()
        assert share == pytest.approx(level, abs=0.02)


def test_a_row_that_outweighs_all_others_is_among_those_drawn(monkeypatch):
    rng = np.random.default_rng(12)
    x = rng.normal(size=(200, 1))
    x[77] = 400.0
    y, fold = rng.exponential(size=(200, 1)) - 1, np.zeros(200, int)
    whole = np.sort(resampling._all_rows(x, y, shuffles(fold), 2000))
    monkeypatch.setattr(resampling, "POLICY", replace(POLICY, most_rows=5))
    part = resampling._main_rows(x, y, shuffles(fold, 1), 2000)
    shares = np.searchsorted(whole, np.sort(part)) / 2000
    assert np.abs(shares - np.linspace(0, 1, 2000)).max() < 0.07


def test_sums_of_products_that_do_not_vary_are_zero_and_not_infinite():
    assert resampling._studentised(np.array([4.0]), np.array([4.0]), 4).tolist() == [0.0]
    assert resampling._studentised(np.array([3.0]), np.array([2.9]), 3).tolist() == [0.0]
    assert resampling._studentised(np.array([2.0]), np.array([5.0]), 4).tolist() == [1.0]


def test_permuted_sums_are_studentised():
    x, y, fold = heavy(60)
    drawn, own = resampling._all_rows(x, y, shuffles(fold), 50), shuffles(fold).orders(50)
    expected = [studentised(x[:, 0] * y[order, 0]) for order in own]
    assert np.allclose(drawn, expected)
    many = shuffles(fold)
    assert np.allclose(
        resampling._all_rows(x, y, many, POLICY.draws[0]),
        [studentised(x[:, 0] * y[order, 0]) for order in many.orders(POLICY.draws[0])],
    )


def test_many_rows_go_the_way_of_those_that_matter(monkeypatch):
    x, y, fold = heavy(300)
    y = y + 0.08 * x
    scores = (x * y)[:, 0]
    whole = product_factor(x, y, scores, shuffles(fold), "greater")
    monkeypatch.setattr(resampling, "POLICY", replace(POLICY, most_rows=299))
    part = product_factor(x, y, scores, shuffles(fold), "greater")
    assert part != whole
    assert part == pytest.approx(whole, rel=0.15)


# --- several products a row ---------------------------------------------------------------------


def form(x, y):
    """Return n times the squared length of the whitened covariance."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    inverse_x, inverse_y = (np.linalg.pinv(v.T @ v) for v in (x, y))
    C = x.T @ y
    return np.trace(inverse_x @ C @ inverse_y @ C.T)


def statistic_of(scores):
    return (scores.mean() / scores.std()) ** 2 * len(scores)


@pytest.mark.parametrize(("columns", "classes"), [(2, 1), (1, 2), (2, 2)])
def test_a_form_has_the_p_value_of_all_orders(columns, classes):
    rng, fold = np.random.default_rng(19), np.array([0, 1, 0, 1, 0, 1, 0, 1])
    x, y = rng.exponential(size=(8, columns)), rng.normal(size=(8, classes))
    y = 1.5 * y + 0.8 * x[:, :1]
    drawn = np.array([form(x, y[order]) for order in every_order(fold)])
    expected = (drawn >= form(x, y) - 1e-9).mean()
    assert 0.01 < expected < 0.6
    scores = rng.normal(3.5, 1, 8)  # a χ² so large that the permuted p-value counts
    statistic, df = statistic_of(scores), columns * classes
    factor = form_factor(x, y, scores, df, shuffles(fold))
    p = chi2.sf(statistic / factor**2, df)
    assert p == pytest.approx(expected, abs=4 * np.sqrt(expected / 399))


@pytest.mark.parametrize(("both", "draws"), [(10, 399), (11, 3999)])
def test_the_p_value_of_a_form_counts_ties_too(both, draws):
    x, y, fold = flags(both=both)
    x = np.column_stack([x, np.arange(60) % 2 * 1.0])  # the fold: no order changes it
    own = shuffles(fold)
    expected, count = drawn_p(lambda order: form(x, y[order]), form(x, y), own)
    assert count == draws
    assert resampling._form_p(x, y, own) == pytest.approx(expected)


def test_a_form_is_never_found_more_than_its_chi_squared():
    rng = np.random.default_rng(8)
    x = rng.normal(size=(100, 2))
    y = x @ [[1.0], [1.0]] + 0.1 * rng.normal(size=(100, 1))
    weak = np.resize([1.0, -1.0], 100) + 0.1  # a statistic of 1
    assert form_factor(x, y, weak, 2, shuffles(np.zeros(100, int))) == pytest.approx(1.0)


def test_beyond_the_draws_a_form_has_the_tail_of_a_gamma():
    # Of 300 normal rows n |C|² is about χ² with 2 degrees of freedom: its tail is exp(−s/2).
    rng = np.random.default_rng(9)
    x = rng.normal(size=(300, 2))
    y = x @ [[0.3], [0.2]] + rng.normal(size=(300, 1))
    p = resampling._form_p(x, y, shuffles(np.zeros(300, int)))
    expected = np.exp(-300 * form(x, y) / 2)
    assert expected < 1e-6
    assert np.log(p) == pytest.approx(np.log(expected), rel=0.2)


def test_columns_that_say_no_more_than_others_do_not_change_a_form():
    rng, own = np.random.default_rng(10), shuffles(np.arange(60) % 2)
    x, y = rng.exponential(size=(60, 2)), rng.exponential(size=(60, 1))
    plain = resampling._form_p(x, y, own)
    more = np.column_stack([x, 2 * x[:, 0] - x[:, 1]])
    assert resampling._form_p(more, y, own) == pytest.approx(plain)
    assert resampling._form_p(1e5 * x + 3, y, own) == pytest.approx(plain)


def test_a_form_that_no_order_changes_has_a_p_value_of_one():
    x = np.ones((20, 2)) * [[1.0, 2.0]]
    y = np.random.default_rng(0).normal(size=(20, 1))
    assert resampling._form_p(x, y, shuffles(np.zeros(20, int))) == pytest.approx(1.0)


def test_a_form_of_nothing_is_not_made_surer():
    # Its p-value is above .99, so that its χ² would have to grow.
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(40, 2)), rng.normal(size=(40, 1))
    y -= x @ np.linalg.lstsq(x, y, rcond=None)[0]
    scores = rng.normal(size=40)
    scores += 1e-6 - scores.mean()
    shuffles = Shuffles(np.zeros(40, dtype=int), lambda: np.random.default_rng(0))
    assert form_factor(x - x.mean(axis=0), y - y.mean(), scores, 2, shuffles) == 1.0
