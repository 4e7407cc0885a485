"""Copies of rows: which are found, which are chance, and what becomes of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold

import covaria
from covaria import InputError, assess
from covaria.nuisance.splits import make_splits
from covaria.tables.copies import find_copies
from covaria.tables.dataset import Dataset

N = 400
RNG = np.random.default_rng


def twice(table):
    return pd.concat([table, table], ignore_index=True)


def numbers(n_rows=N, seed=0, digits=9):
    """Return three columns and y, which only a uses."""
    rng = RNG(seed)
    table = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["a", "b", "c"])
    return table.assign(y=table["a"] + rng.normal(size=n_rows)).round(digits)


def copies_of(table):
    return Dataset.from_table(table, "y").n_copies


# --- which are copies ---------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [9, 1])
def test_rows_entered_twice_are_found(digits):
    table = numbers(digits=digits)
    assert copies_of(table) == 0
    assert copies_of(twice(table)) == N


def test_some_rows_entered_again_are_found_and_one_in_a_hundred_is_the_least():
    table = numbers()
    for extra, found in ((40, 40), (2, 0)):
        assert copies_of(pd.concat([table, table[:extra]], ignore_index=True)) == found


def test_the_copies_of_the_red_wines_are_found():
    X, y = wine_like(1599, 240)
    assert copies_of(X.assign(y=y)) == 240


def wine_like(n_rows, n_copies):
    """Return rounded columns that go together, and marks from 3 to 8, some rows twice."""
    rng = RNG(3)
    first = n_rows - n_copies
    common = rng.normal(size=(first, 1))
    X = pd.DataFrame(0.5 * common + rng.normal(size=(first, 11))).round(2).add_prefix("c")
    y = pd.Series(np.clip(np.round(5.5 + common[:, 0] + 0.5 * rng.normal(size=first)), 3, 8))
    rows = np.append(np.arange(first), rng.choice(first, n_copies, replace=False))
    return X.iloc[rows].reset_index(drop=True), y.iloc[rows].reset_index(drop=True)


def yes_no(rng, n_rows):
    table = pd.DataFrame(rng.integers(0, 2, size=(n_rows, 5))).add_prefix("c")
    return table.assign(y=rng.random(n_rows) < 0.1 + 0.16 * table.sum(axis=1))


def determined(rng, n_rows):
    table = pd.DataFrame(rng.integers(0, 2, size=(n_rows, 5))).add_prefix("c")
    return table.assign(y=table.sum(axis=1) > 2)


def questionnaire(rng, n_rows):
    mood = rng.normal(size=(n_rows, 1))
    table = pd.DataFrame(mood * 2 + rng.normal(size=(n_rows, 20)) > 1.5).add_prefix("q")
    return table.assign(y=mood[:, 0] + rng.normal(size=n_rows) > 0)


def indicators(rng, n_rows):
    levels = pd.DataFrame(rng.integers(0, 4, size=(n_rows, 4)).astype(str)).add_prefix("c")
    return pd.get_dummies(levels).assign(y=(levels["c0"] == "0") | (levels["c1"] == "1"))


def shops(rng, n_rows):
    shop = rng.integers(0, 20, n_rows)
    table = pd.DataFrame(rng.normal(size=(20, 4))[shop]).add_prefix("c")
    return table.assign(y=rng.random(n_rows) < 1 / (1 + np.exp(-2 * table["c0"])))


def rounded(rng, n_rows):
    x = rng.normal(size=n_rows).round(1)
    return pd.DataFrame({"x": x, "y": (x + rng.normal(size=n_rows)).round(1)})


def counts(rng, n_rows):
    table = pd.DataFrame(rng.poisson(0.3, size=(n_rows, 6))).add_prefix("c")
    return table.assign(y=rng.poisson(1 + table["c0"]))


@pytest.mark.parametrize("n_rows", [100, 1000])
@pytest.mark.parametrize(
    "make", [yes_no, determined, questionnaire, indicators, shops, rounded, counts]
)
def test_rows_that_agree_by_chance_are_no_copies(make, n_rows):
    table = make(RNG(n_rows), n_rows)
    assert table.duplicated().any()
    assert copies_of(table) == 0


def test_rows_that_differ_in_a_name_or_a_gap_are_no_copies():
    table = twice(numbers())
    named = table.assign(name=[f"n{i}" for i in range(2 * N)])
    assert copies_of(named) == 0
    gaps = table.assign(b=table["b"].where(np.arange(2 * N) < N))
    assert copies_of(gaps) == 0


def test_copies_with_unlike_weights_are_copies():
    # Counted as rows of their own they made GCM reject .17 of nulls.
    weights = np.repeat([1.0, 2.0], N)
    assert Dataset.from_table(twice(numbers()), "y", sample_weight=weights).n_copies == N


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("make", [yes_no, rounded, counts])
def test_a_coarse_table_entered_several_times_is_found_and_chance_stays_chance(make, times):
    table = make(RNG(3), 1000)
    found = Dataset.from_table(pd.concat(times * [table], ignore_index=True), "y")
    assert found.n_copies == (times - 1) * 1000
    assert (np.bincount(found.clusters) == times).all()


def oversampled(seed, replace):
    """Return rounded rows of which those of the rare class stand there four times, or as drawn."""
    rng = RNG(seed)
    table = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "x"]).round(1)
    table["y"] = np.where(table["a"] + rng.normal(size=300) > 1.3, "few", "most")
    few = np.flatnonzero(table["y"] == "few")
    more = rng.choice(few, size=3 * len(few)) if replace else np.repeat(few, 3)
    return table.iloc[np.append(np.arange(300), more)].reset_index(drop=True), len(few)


def test_copies_of_a_rare_class_are_found_among_rounded_rows_and_keep_the_level():
    p_values = []
    for seed in range(60):
        table, n_few = oversampled(seed, replace=False)
        result = assess(table, "y", learner="linear", methods="gcm", seed=seed, check=False)
        p_values.append(result.table.set_index("feature").loc["x", "p_value"])
        assert Dataset.from_table(table, "y").n_copies == 3 * n_few
    assert np.mean(np.array(p_values) < 0.05) <= 0.12  # it was .32


def test_a_rare_class_drawn_again_and_again_is_pointed_out_where_chance_might_do_it():
    table, _ = oversampled(0, replace=True)
    result = assess(table, "y", learner="linear", methods="gcm", check=False)
    assert any("rows of class 'few' repeat another" in alert for alert in result.alerts)
    given = assess(table, "y", learner="linear", methods="gcm", clusters=range(len(table)))
    assert not any("repeat another" in alert for alert in given.alerts)


@pytest.mark.parametrize("make", [yes_no, determined, questionnaire, indicators, shops])
def test_classes_that_repeat_by_chance_are_not_pointed_out(make):
    notes = Dataset.from_table(make(RNG(1), 1000), "y").notes
    assert not any("repeat another" in note for note in notes)


def test_labels_and_gaps_are_compared_as_they_came():
    table = numbers().assign(kind=np.where(np.arange(N) % 3, "u", None))
    table["b"] = table["b"].where(np.arange(N) % 5 > 0)
    assert copies_of(twice(table)) == N


def test_neither_the_order_of_columns_nor_signs_of_zero_matter():
    table = twice(numbers())
    table["c"] = 0.0 * np.sign(RNG(0).normal(size=2 * N)) + (np.arange(2 * N) % N < 5)
    columns = [table[name].to_numpy() for name in table]
    first = find_copies(columns)
    assert_array_equal(first, np.tile(np.arange(N), 2))
    assert_array_equal(first, find_copies(columns[::-1]))


# --- what becomes of them -----------------------------------------------------------------------


def test_copies_are_one_cluster_and_the_alert_says_so():
    table = twice(numbers())
    result = assess(table, "y", learner="linear", methods=["gcm", "loco"])
    by_hand = assess(
        table, "y", learner="linear", methods=["gcm", "loco"], clusters=np.tile(np.arange(N), 2)
    )
    assert_allclose(result.table["p_value"], by_hand.table["p_value"], rtol=1e-12)
    (alert,) = [text for text in result.alerts if "repeat" in text]
    assert "400 rows of 800 repeat another" in alert
    assert "clusters=range(len(y))" in alert
    assert not any("repeat" in text for text in by_hand.alerts)


def test_rows_numbered_one_by_one_overrule_it():
    table = twice(numbers())
    kept = assess(table, "y", learner="linear", methods=["gcm"], clusters=range(2 * N))
    assert kept.about["clusters"] == 0
    assert not any("repeat" in text for text in kept.alerts)


def test_the_paper_counted_copies():
    table = twice(numbers())
    result = assess(table, "y", learner="linear", paper=True)
    assert result.about["clusters"] == 0


def test_splits_that_part_copies_are_refused_with_the_cure():
    with pytest.raises(InputError, match=r"400 rows .* repeat others.*clusters=range\(len\(y\)\)"):
        assess(twice(numbers()), "y", learner="linear", splits=KFold(3))


def test_folds_keep_copies_together_and_the_shares_of_classes():
    table = twice(numbers().assign(y=np.where(np.arange(N) % 10, "most", "few")))
    data = Dataset.from_table(table, "y")
    for splits in (5, 0.25):
        for train, test in make_splits(data, splits, seed=0):
            assert not set(data.clusters[train]) & set(data.clusters[test])
            assert (data.y[test] == 0).mean() == pytest.approx(0.1, abs=0.005)


def test_parts_of_the_rows_keep_copies_together_too():
    table = twice(numbers())
    for scheme in ("folds", "half_samples"):
        found = covaria.stability(table, "y", learner="linear", scheme=scheme, pairs=2)
        for rows, others in found.samples:
            assert not set(rows % N) & set(others % N)


@pytest.mark.parametrize("method", ["gcm", "gcm+pcm"])
def test_a_table_entered_twice_keeps_the_level(method):
    rejected = tests = 0
    for seed in range(100):
        X = RNG(seed).normal(size=(250, 5))
        y = X[:, 0] + RNG(seed + 1000).normal(size=250)
        result = assess(np.vstack([X, X]), np.tile(y, 2), learner="linear", methods=[method],
                        correction="none", check=False)  # fmt: skip
        p_values = result.table.query("method == @method")["p_value"].to_numpy()[1:]
        rejected, tests = rejected + (p_values < 0.05).sum(), tests + len(p_values)
    assert tests == 400
    assert rejected / tests <= 0.07


def test_one_column_that_tells_all_rows_apart_is_enough_unless_it_has_gaps():
    flag = np.tile([0.0, 1.0], 50)
    number = np.arange(100.0)
    assert find_copies([flag, flag, number]) is None
    gaps = np.where(np.arange(100) < 50, np.nan, np.arange(100) // 2.0)
    copied = find_copies([gaps, RNG(0).permutation(np.repeat(np.arange(50.0), 2))])
    assert copied is None
    table = RNG(0).normal(size=(50, 2))
    table[:10, 0] = np.nan
    both = np.vstack([table, table])
    assert find_copies(list(both.T))[50:].tolist() == list(range(50))
