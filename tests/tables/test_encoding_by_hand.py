"""Categories of many levels: means, F tests and fixed effects, by loops and least squares."""

import numpy as np
import pytest
from scipy.stats import f_oneway

from covaria.tables import encoding
from covaria.tables.dataset import Dataset
from covaria.tables.encoding import MOST_ENCODED, Means, encoded, goes_with, widening, within
from covaria.tables.layout import Feature, Levels

CODE = np.array([7, 3, 7, 9, 3, 7, 9, 3, 3, 9])


def values_of(n_rows=10, n_columns=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_columns))


def by_level(code, values):
    """Return for each row the mean of the rows of its level."""
    return np.array([values[code == own].mean(axis=0) for own in code])


def test_levels_are_numbered_anew_and_counted():
    means = Means.of(CODE)
    assert means.code.tolist() == [1, 0, 1, 2, 0, 1, 2, 0, 0, 2]
    assert means.count.tolist() == [4, 3, 3]


def test_every_row_has_the_means_of_its_level():
    values = values_of()
    assert np.allclose(Means.of(CODE).means(values), by_level(CODE, values))


@pytest.mark.parametrize("code", [
    CODE, np.arange(10) % 2, np.r_[np.arange(9), 0], np.r_[np.zeros(9, int), 1],
])  # fmt: skip
def test_the_chance_of_a_column_is_that_of_the_f_test(code):
    values = 5 + values_of() + 0.3 * code[:, None]
    expected = [
        f_oneway(*(column[code == level] for level in np.unique(code))).pvalue
        for column in values.T
    ] if np.bincount(np.unique(code, return_inverse=True)[1]).max() < 9 else None  # fmt: skip
    found = Means.of(code).chances(values)
    if expected is None:  # f_oneway wants two rows a level
        own, rest = values[-1], values[:-1]
        t = (own - rest.mean(axis=0)) / (rest.std(axis=0, ddof=1) * np.sqrt(1 + 1 / 9))
        from scipy.stats import t as student

        expected = 2 * student.sf(np.abs(t), 8)
    assert np.allclose(found, expected)
    assert np.allclose(Means.of(code).chances(1e-6 * values), expected)


def test_one_level_or_a_level_for_each_row_tell_nothing():
    assert Means.of(np.zeros(10, int)).chances(values_of()).tolist() == [1.0, 1.0]
    assert Means.of(np.arange(10)).chances(values_of()).tolist() == [1.0, 1.0]


def test_a_column_that_levels_determine_has_no_chance_and_a_constant_one_every():
    values = np.column_stack([CODE, np.full(10, 4.0)])
    found = Means.of(CODE).chances(values)
    assert found[0] < 1e-9
    assert found[1] == 1.0
    assert goes_with(values, CODE)
    assert not goes_with(values[:, 1:], CODE)


def test_a_column_goes_with_levels_where_chance_would_seldom_make_it():
    rng, code = np.random.default_rng(0), np.arange(60) % 6
    found = [goes_with(rng.normal(size=(60, 1)), code) for _ in range(600)]
    assert np.mean(found) == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 600))


# --- the table ----------------------------------------------------------------------------------


def with_levels(n_others=3, holes=False, seed=0):
    """Return a table: others that go with the levels but the last, a shop, a constant."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 12, 90)
    of_level = rng.normal(size=(12, n_others))
    X = rng.normal(size=(90, n_others + 1)) + np.c_[np.zeros(90), 2 * of_level[code]]
    X[:, -1] = np.arange(90) % 2 - code // 99  # goes with nothing
    others = tuple(Feature(f"x{j}", "number", (j,)) for j in range(1, n_others + 1))
    features = (Feature("constant", "number", ()), Feature("shop", "category", (0,)), *others)
    mask = rng.random(X.shape) < 0.1 if holes else None
    return Dataset(
        X=X, y=rng.normal(size=90), features=features, levels=(Levels(1, code),), holes=mask
    )


@pytest.mark.parametrize("holes", [False, True])
def test_means_of_the_columns_that_go_with_levels_stand_beside_the_category(holes):
    data = with_levels(holes=holes)
    code, found = data.levels[0].code, encoded(data)
    chances = Means.of(code).chances(data.X[:, 1:])
    kept = 1 + np.flatnonzero(chances < 0.1)
    assert kept.tolist() == [1, 2]
    assert found.features[1].columns == (0, 1, 2)
    assert found.features[1].tested == (0,)
    assert found.features[0].columns == ()
    assert np.allclose(found.X[:, [1, 2]], by_level(code, data.X[:, kept]))
    for before, after in zip(data.features, found.features, strict=True):
        own, now = list(before.columns), list(after.tested)
        assert np.array_equal(data.X[:, own], found.X[:, now])
        if holes:
            assert np.array_equal(data.holes[:, own], found.holes[:, now])
    assert found.X.shape[1] == data.X.shape[1] + 2
    if holes:
        assert not found.holes[:, [1, 2]].any()
        assert found.holes.shape == found.X.shape
    else:
        assert found.holes is None


def test_of_too_many_columns_those_that_go_with_levels_most_are_kept(monkeypatch):
    data = with_levels(n_others=6)
    chances = Means.of(data.levels[0].code).chances(data.X[:, 1:])
    monkeypatch.setattr(encoding, "MOST_ENCODED", 2)
    found = encoded(data)
    kept = 1 + np.sort(np.argsort(chances)[:2])
    assert np.allclose(found.X[:, [1, 2]], by_level(data.levels[0].code, data.X[:, kept]))
    assert found.features[1].n_encoded == 2
    assert MOST_ENCODED == 30


def test_two_categories_have_columns_of_their_own():
    data = with_levels()
    two = Levels(2, np.random.default_rng(1).integers(0, 9, 90))
    object.__setattr__(data, "levels", (data.levels[0], two))
    data.X[:, 3] += 3 * two.code
    found = encoded(data)
    assert found.features[1].n_encoded >= 2
    assert found.features[2].n_encoded >= 1
    columns = [column for feature in found.features for column in feature.columns]
    assert columns == list(range(found.X.shape[1]))
    at = found.features[2].columns[1:]
    assert np.allclose(found.X[:, at[-1]], by_level(two.code, data.X[:, [3]])[:, 0])


def test_columns_keep_their_order_whatever_the_order_of_the_features():
    data = with_levels()
    first, shop, *others = data.features
    object.__setattr__(data, "features", (*others[::-1], first, shop))
    object.__setattr__(data, "levels", (Levels(4, data.levels[0].code),))
    found = encoded(data)
    columns = [feature.columns for feature in found.features]
    assert columns == [(5,), (4,), (3,), (), (0, 1, 2)]
    assert np.array_equal(found.X[:, [0, 3, 4, 5]], data.X)


def test_a_table_without_levels_or_of_columns_that_do_not_go_with_them_stays_as_it_is():
    data = with_levels(n_others=1)
    assert encoded(data) is data
    object.__setattr__(data, "levels", ())
    assert encoded(data) is data


# --- within levels ------------------------------------------------------------------------------


def of_dummies(values, codes):
    """Return what least squares on a column for every level leaves."""
    D = np.hstack([code[:, None] == np.unique(code) for code in codes]).astype(float)
    return values - D @ np.linalg.lstsq(D, values, rcond=None)[0]


def test_what_is_left_within_levels_is_what_fixed_effects_leave():
    rng = np.random.default_rng(2)
    values, codes = rng.normal(size=(200, 3)), [rng.integers(0, k, 200) for k in (8, 5)]
    kept = values.copy()
    assert np.allclose(within(values, codes[:1]), of_dummies(values, codes[:1]))
    assert np.allclose(within(values, codes), of_dummies(values, codes), atol=1e-8)
    assert np.array_equal(values, kept)


def test_the_widening_makes_up_for_the_rows_share_of_their_levels():
    # A row keeps the diagonal of the projection in each factor, the sum keeps the trace.
    D = (CODE[:, None] == np.unique(CODE)).astype(float)
    M = np.eye(10) - D @ np.linalg.pinv(D)
    assert widening([CODE]) == pytest.approx(np.sqrt(np.trace(M) / (np.diag(M) ** 2).sum()))
    pairs = np.arange(10) // 2
    assert widening([pairs]) == pytest.approx(np.sqrt(2))
    assert widening([pairs, np.arange(10) % 2]) == pytest.approx(1 / np.sqrt(0.5 * 0.8))
    assert widening([np.arange(10)]) == 1.0
    assert widening([np.r_[0, 0, 2:10]]) == pytest.approx(np.sqrt(2))
