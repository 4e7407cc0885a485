"""Nulls in tables of many columns: what x_j and y have in common is learned, or warned of."""

from dataclasses import replace

import numpy as np
import pytest

from covaria.assessment import prepare
from covaria.learners.estimators.wide import SparseModel

LINKS = {"square": np.square, "kink": np.abs, "wave": np.cos, "sine": np.sin}


def even_index(n_rows, n_columns, link, rng):
    """Return a table in which x0 and y follow one function of the same sum of 20 others."""
    Z = rng.normal(size=(n_rows, n_columns - 1))
    used = Z[:, :20]
    m = used.sum(axis=1) / np.sqrt(used.shape[1])
    x, y = (link(m + 0.5 * rng.normal(size=n_rows)) for _ in range(2))
    return np.column_stack([x, Z]), y


def of_one(X, y, seed, methods=("gcm",), check=False):
    """Return the p-values of x0 alone, and whether it comes with a warning: others would take long.

    The others are columns that no feature owns.
    """
    job = prepare(X, y, methods=methods, seed=seed, check=check)
    features = tuple(f if f.name == "x0" else replace(f, columns=()) for f in job.data.features)
    result = replace(job, data=replace(job.data, features=features)).run()
    table = result.table[result.table["feature"] == "x0"]
    quality = result.quality[result.quality["regression"] == "x given rest"]
    return dict(zip(table["method"], table["p_value"], strict=True)), any(quality["alarm"] != "")


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
    rates = rejected(lambda rng: shared_by(4, size=2.0)(100, 300, rng), 6, methods="default")
    assert rates["gcm+pcm"] <= 0.17


def test_what_all_of_many_columns_do_is_warned_of():
    assert warned(shared_by(None), 5, 200, 200) >= 0.8


def test_independent_features_of_wide_tables_bring_few_warnings():
    assert warned(independent, 5, 100, 200) <= 0.2


@pytest.mark.slow
@pytest.mark.parametrize("size", [(200, 200), (300, 300)])
def test_wide_tables_hold_their_level_or_warn(size):
    rates = rejected(lambda rng: shared_by(4)(*size, rng), 100, methods="default")
    assert max(rates.values()) <= 0.13
    assert warned(shared_by(None), 50, *size) >= 0.8
    assert warned(independent, 50, *size) <= 0.14
