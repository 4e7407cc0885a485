"""Nulls in tables of many columns: what x_j and y have in common is learned, or warned of."""

from dataclasses import replace

import numpy as np
import pytest

from covaria.assessment import prepare
from covaria.learners.estimators.wide import SparseModel
from covaria.nuisance.selected import jointly_chosen, less_selected
from covaria.tables.dataset import Dataset

LINKS = {"square": np.square, "kink": np.abs, "wave": np.cos, "sine": np.sin}


def even_index(n_rows, n_columns, link, rng):
    """Return a table in which x0 and y follow one function of the same sum of 20 others."""
    Z = rng.normal(size=(n_rows, n_columns - 1))
    used = Z[:, :20]
    m = used.sum(axis=1) / np.sqrt(used.shape[1])
    x, y = (link(m + 0.5 * rng.normal(size=n_rows)) for _ in range(2))
    return np.column_stack([x, Z]), y


def of_one(X, y, seed, methods=("gcm",), check=False, **options):
    """Return the p-values of x0 alone, and whether it comes with a warning: others would take long.

    The others are columns that no feature owns.
    """
    job = prepare(X, y, methods=methods, seed=seed, check=check, **options)
    features = tuple(f if f.name == "x0" else replace(f, columns=()) for f in job.data.features)
    result = replace(job, data=replace(job.data, features=features)).run()
    table = result.table[result.table["feature"] == "x0"]
    quality = result.quality[result.quality["regression"] == "x given rest"]
    return dict(zip(table["method"], table["p_value"], strict=True)), any(quality["warning"] != "")


def rejected(draw, n_runs, **options):
    """Return the share of runs in which each method rejects at .05."""
    runs = [of_one(*draw(np.random.default_rng(run)), run, **options)[0] for run in range(n_runs)]
    return {name: np.mean([run[name] < 0.05 for run in runs]) for name in runs[0]}


@pytest.mark.parametrize("n_columns", [13, 21])
def test_one_column_more_takes_no_capability_away(n_columns):
    rates = rejected(lambda rng: even_index(400, n_columns, np.square, rng), 6)
    assert rates["gcm"] <= 0.34  # 1 without sums of columns


@pytest.mark.slow
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("n_columns", [13, 21, 30])
def test_functions_of_a_sum_of_twenty_columns_do_not_pass_for_effects(link, n_columns):
    def draw(rng):
        return even_index(500, n_columns, LINKS[link], rng)

    rates = rejected(draw, 100, methods="default")
    # At a rate of .07, more than this has a chance of 1%.
    assert max(rates.values()) <= 0.13


def shared_by(n_shared, size=1.0):
    """Return tables in which x0 and y follow the same sum of so many others, or of all."""

    def draw(n_rows, n_columns, rng):
        Z = rng.normal(size=(n_rows, n_columns - 1))
        used = Z[:, :n_shared]
        m = size * used.sum(axis=1) / np.sqrt(used.shape[1])
        x, y = (m + rng.normal(size=n_rows) for _ in range(2))
        return np.column_stack([x, Z]), y

    return draw


def independent(n_rows, n_columns, rng):
    """Return a table in which x0 is noise and y follows four others."""
    Z = rng.normal(size=(n_rows, n_columns - 1))
    y = Z[:, :4].sum(axis=1) / 2 + rng.normal(size=n_rows)
    return np.column_stack([rng.normal(size=n_rows), Z]), y


def warned(draw, n_runs, *size):
    """Return the share of runs in which x0 comes with a warning."""
    runs = [draw(*size, np.random.default_rng(run)) for run in range(n_runs)]
    return np.mean([of_one(*table, run, check=True)[1] for run, table in enumerate(runs)])


def test_what_four_of_many_columns_do_is_learned():
    rates = rejected(lambda rng: shared_by(4)(200, 200, rng), 5)
    assert rates["gcm"] <= 0.21  # 1 with ridge alone


def test_columns_are_chosen_for_a_feature_and_y_together():
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(80, 300))
    shared = (Z[:, 7] - Z[:, 7].mean()) / Z[:, 7].std()
    noise = [rng.normal(size=80) for _ in range(2)]
    noise = [e - np.mean(shared * e) * shared for e in noise]
    x, y = (0.36 * shared + e / e.std() for e in noise)  # too little for each, enough for both
    for target, other in ((x, y), (y, x)):
        alone = SparseModel().fit(Z, target)
        both = SparseModel(beside=other[:, None]).fit(Z, target)
        assert not alone.slopes_.any()
        assert np.flatnonzero(both.slopes_[:, 0]).tolist() == [7]
        assert both.slopes_[7, 0] == pytest.approx(np.mean(shared * target))  # not held small


def test_a_target_beside_has_no_units():
    rng = np.random.default_rng(1)
    Z, y = rng.normal(size=(60, 100)), rng.normal(size=60)
    x = Z[:, 3] + rng.normal(size=60)
    one, other = (SparseModel(beside=scale * y[:, None]).fit(Z, x) for scale in (1.0, 1e9))
    np.testing.assert_allclose(one.slopes_, other.slopes_)


def test_a_constant_target_beside_changes_nothing():
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(60, 100))
    x = Z[:, 3] + rng.normal(size=60)
    beside = SparseModel(beside=np.full((60, 1), 5.0)).fit(Z, x)
    np.testing.assert_array_equal(beside.slopes_, SparseModel().fit(Z, x).slopes_)


def test_what_four_of_three_hundred_columns_do_is_learned_from_a_hundred_rows():
    rates = rejected(lambda rng: shared_by(4, size=2.0)(100, 300, rng), 4, methods="default")
    assert rates["gcm+pcm"] <= 0.25


def residuals_of(values, fold):
    """Return residuals of a mean: each row's value less the mean of other folds."""
    return np.array([v - values[fold != k].mean() for v, k in zip(values, fold, strict=True)])


def one_test(X, y, fold, **options):
    """Return the table, its rows, the folds and what a mean leaves of x0 and y."""
    data = Dataset.from_table(X, y, **options)
    data = replace(data, features=(data.features[0],))
    found = {
        "x_given_rest": np.column_stack([residuals_of(x, fold) for x in X.T]),
        "y_given_rest": residuals_of(y, fold)[:, None],
    }
    return data, np.arange(len(y)), fold, found


def by_hand(columns, values, fold, rows=None):
    """Return what least squares leave of values, learned from the rows of other folds."""
    rows = np.arange(len(values)) if rows is None else rows
    design, left = np.column_stack([np.ones(len(values)), columns]), values.astype(float)
    for k in np.unique(fold):
        own = rows[fold[rows] != k]
        slopes = np.linalg.lstsq(design[own], values[own], rcond=None)[0]
        left[fold == k] -= design[fold == k] @ slopes
    return left


def test_with_more_columns_than_rows_what_chosen_columns_tell_is_taken_off_x_and_y():
    X, y = shared_by(4, size=2.0)(80, 200, np.random.default_rng(5))
    data, rows, fold, found = one_test(X, y, np.arange(80) % 5)
    chosen = jointly_chosen(data, rows, 0)
    assert {1, 2, 3, 4} <= set(chosen.tolist())
    (full, half), alone = less_selected(data, rows, fold, [found, found])
    assert alone.tolist() == [len(chosen)]
    for name, target in (("x_given_rest", X[:, 0]), ("y_given_rest", y)):
        left = full[name][:, 0]
        np.testing.assert_allclose(left, by_hand(X[:, chosen], target, fold))
        np.testing.assert_array_equal(left, half[name][:, 0])
        assert left.var() < 0.5 * found[name][:, 0].var()
    np.testing.assert_array_equal(full["x_given_rest"][:, 1:], found["x_given_rest"][:, 1:])


def test_slopes_of_chosen_columns_count_a_row_of_weight_two_twice():
    X, y = shared_by(4, size=2.0)(80, 200, np.random.default_rng(6))
    fold, twice = np.arange(80) % 5, np.arange(80) % 3 == 0
    data, rows, _, found = one_test(X, y, fold, sample_weight=1.0 + twice)
    left = less_selected(data, rows, fold, [found])[0][0]["y_given_rest"][:, 0]
    copies = np.concatenate([rows, rows[twice]])
    chosen = X[:, jointly_chosen(data, rows, 0)]
    np.testing.assert_allclose(left, by_hand(chosen, y, fold, copies))


def test_what_was_learned_before_stays_where_chosen_columns_alone_explain_less():
    rng = np.random.default_rng(7)
    X, y = shared_by(4, size=2.0)(80, 200, rng)
    curve = 5 * rng.normal(size=80)  # that a learner has found
    data, rows, fold, _ = one_test(X, y + curve, np.arange(80) % 5)
    noise = rng.normal(size=X.shape)  # all that another has
    found = {"x_given_rest": X + noise, "y_given_rest": y[:, None]}
    (left,), alone = less_selected(data, rows, fold, [found])
    chosen = jointly_chosen(data, rows, 0)
    np.testing.assert_allclose(left["y_given_rest"][:, 0], by_hand(X[:, chosen], y, fold))
    np.testing.assert_allclose(left["x_given_rest"][:, 0], by_hand(X[:, chosen], X[:, 0], fold))
    assert alone.tolist() == [len(chosen)]


def test_columns_are_chosen_for_classes_too():
    rng = np.random.default_rng(7)
    X, y = shared_by(2, size=3.0)(100, 150, rng)
    for classes in ((y > 0) * 1, np.digitize(y, (-1, 1))):
        data = Dataset.from_table(X, classes.astype(str))
        assert {1, 2} <= set(jointly_chosen(data, np.arange(100), 0).tolist())


def test_columns_that_tell_of_neither_x_nor_y_are_left_alone():
    X, y = np.random.default_rng(8).normal(size=(60, 90)), np.random.default_rng(9).normal(size=60)
    data, rows, fold, found = one_test(X, y, np.arange(60) % 5)
    (left,), alone = less_selected(data, rows, fold, [found])
    np.testing.assert_array_equal(left["y_given_rest"], found["y_given_rest"])
    assert alone.tolist() == [np.inf]


@pytest.mark.parametrize("splits", [5, 0.5])
def test_auto_takes_chosen_columns_off_only_where_columns_outnumber_rows(splits, monkeypatch):
    asked = []

    def seen(data, rows, fold, found):
        asked.append((data.X.shape, len(np.unique(fold))))
        return found, np.full(data.n_features, np.inf)

    monkeypatch.setattr("covaria.nuisance.selected.less_selected", seen)
    for n_columns in (60, 61):
        X, y = shared_by(2)(60, n_columns, np.random.default_rng(0))
        of_one(X, y, 0, splits=splits)
    assert asked == [((60, 61), 5)]


def test_what_all_of_many_columns_do_is_warned_of():
    assert warned(shared_by(None), 3, 150, 150) >= 0.6


def test_independent_features_of_wide_tables_bring_few_warnings():
    assert warned(independent, 3, 100, 150) <= 0.34


@pytest.mark.slow
@pytest.mark.parametrize("size", [(200, 200), (300, 300)])
def test_wide_tables_hold_their_level_or_warn(size):
    rates = rejected(lambda rng: shared_by(4)(*size, rng), 100, methods="default")
    assert max(rates.values()) <= 0.13
    assert warned(shared_by(None), 50, *size) >= 0.8
    assert warned(independent, 50, *size) <= 0.14


@pytest.mark.slow
def test_more_columns_than_rows_hold_their_level_or_warn():
    rates = rejected(lambda rng: shared_by(4)(100, 300, rng), 100, methods="default")
    assert max(rates.values()) <= 0.13  # at .07, more than this has a chance of 1%
    assert warned(shared_by(None), 40, 100, 300) >= 0.8
