"""A table is checked once: what comes in as people have it comes out as columns of numbers."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold

from covaria.errors import InputError, did_you_mean
from covaria.nuisance.splits import describe, make_splits
from covaria.tables.dataset import Dataset
from covaria.tables.layout import MAX_LEVELS, natural

N = 24
ROWS = np.arange(N)


def noise(seed=0):
    return np.random.default_rng(seed).normal(size=N)


def one(values, **options):
    """Return the dataset with this one feature."""
    return Dataset.from_table({"x": values}, noise(), **options)


# --- numbers and gaps ---------------------------------------------------------------------------


def test_a_number_stays_as_it_is():
    x = noise(1)
    data = one(x)
    assert_array_equal(data.X[:, 0], x)
    assert data.features[0].kind == "number"
    assert data.holes is None


def test_gaps_are_filled_with_the_median_and_marked_in_the_same_feature():
    x = np.where(ROWS % 6 == 0, np.nan, ROWS)
    data = one(x)
    assert data.features[0].columns == (0, 1)
    assert_array_equal(data.X[:, 1], np.isnan(x))
    assert_array_equal(data.X[:, 0], np.where(np.isnan(x), np.nanmedian(x), x))
    assert any("missing in 17% of rows" in note for note in data.notes)


def test_a_learner_that_takes_gaps_sees_them():
    x = np.where(ROWS % 6 == 0, np.nan, ROWS)
    data = one(x)
    assert_array_equal(data.inputs(gaps=True)[:, 0], x)
    assert_array_equal(data.inputs(gaps=False), data.X)


@pytest.mark.parametrize("values", [np.full(N, 3.0), np.full(N, np.nan), ["a"] * N, [None] * N])
def test_what_says_nothing_owns_no_columns(values):
    data = one(values)
    assert data.features[0].columns == ()
    assert data.features[0].kind == "constant"
    assert any("'x'" in note for note in data.notes)


def test_a_constant_with_gaps_keeps_the_mark_of_its_gaps():
    data = one(np.where(ROWS < 4, np.nan, 2.0))
    assert_array_equal(data.X, (ROWS < 4)[:, None])


def test_numbers_written_as_text_are_numbers():
    assert_array_equal(one(["1", " 2.5", "-3e2", ""] * 6).X[:4, 0], [1.0, 2.5, -300.0, 1.0])


def test_objects_that_are_all_numbers_are_numbers():
    values = pd.Series([True, 2, 3.5, None] * 6, dtype=object)
    assert_array_equal(one(values).X[:4, 0], [1.0, 2.0, 3.5, 2.0])


def test_dates_of_every_kind_count_the_same_days():
    stamps = pd.date_range("1999-12-30 12:00", periods=N, freq="36h")
    kinds = [
        stamps.to_series().reset_index(drop=True),
        stamps.tz_localize("UTC").tz_convert("Asia/Tokyo").to_series().reset_index(drop=True),
        stamps.to_pydatetime().tolist(),
        [stamp.replace(tzinfo=dt.UTC) for stamp in stamps.to_pydatetime()],
        pl.Series(stamps.to_pydatetime().tolist()),
        pa.array(stamps.to_pydatetime().tolist()),
    ]
    expected = (stamps - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    for values in kinds:
        y = Dataset.from_table({"x": noise()}, values).y
        assert_allclose(y, expected, rtol=1e-12)


def test_date_objects_are_days_since_1970():
    days = [dt.date(1970, 1, 1) + dt.timedelta(int(i)) for i in ROWS]
    assert_array_equal(one(days).X[:, 0], ROWS)


def test_durations_are_seconds():
    assert_array_equal(one(pd.to_timedelta(ROWS, unit="min")).X[:, 0], 60 * ROWS)
    assert_array_equal(one([dt.timedelta(minutes=int(i)) for i in ROWS]).X[:, 0], 60 * ROWS)


# --- categories ---------------------------------------------------------------------------------


def test_a_category_has_a_column_for_each_level_but_the_most_common():
    labels = ["b", "a", "b", "c"] * 6
    data = one(labels)
    assert data.features[0].kind == "category"
    assert_array_equal(data.X, [[v == "a", v == "c"] for v in labels])


def test_a_gap_is_a_level_of_its_own():
    labels = ["a", "a", "a", "b", None, ""] * 4
    assert_array_equal(one(labels).X, [[not v, v == "b"] for v in labels])


def test_rare_levels_count_as_one():
    labels = [f"k{min(i, 30)}" for i in range(60)]
    data = Dataset.from_table({"x": labels}, np.random.default_rng(0).normal(size=60))
    assert data.X.shape[1] < MAX_LEVELS
    assert any("31 levels" in note for note in data.notes)


def test_the_order_of_rows_does_not_choose_the_levels():
    labels = np.array(["a", "b", "c", "d"] * 6)
    order = np.random.default_rng(0).permutation(N)
    assert_array_equal(one(labels[order]).X, one(labels).X[order])


# --- tables and names ---------------------------------------------------------------------------

COLUMNS = {"b10": noise(1), "b2": noise(2), "kind": ["u", "v", "w"] * 8}


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS),
        pl.LazyFrame(COLUMNS),
        pa.table(COLUMNS),
        [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)],
        pd.DataFrame(COLUMNS).to_records(index=False),
        pd.DataFrame(COLUMNS).astype({"kind": "category"}),
        pl.DataFrame(COLUMNS).with_columns(pl.col("kind").cast(pl.Categorical)),
    ],
    ids=["pandas", "polars", "lazy", "arrow", "records", "structured", "category", "Categorical"],
)
def test_every_container_gives_the_same_numbers(table):
    ours, plain = Dataset.from_table(table, noise()), Dataset.from_table(COLUMNS, noise())
    assert_array_equal(ours.X, plain.X)
    assert ours.features == plain.features


def test_arrays_and_lists_call_their_columns_x0_x1():
    numbers = np.column_stack([noise(1), noise(2)])
    for table in (numbers, numbers.tolist(), numbers.astype(object), list(numbers)):
        assert Dataset.from_table(table, noise()).names == ["x0", "x1"]


def test_columns_lie_in_the_order_of_names_and_features_in_the_order_of_the_table():
    data = Dataset.from_table(COLUMNS, noise())
    assert data.names == ["b10", "b2", "kind"]
    assert [f.columns for f in data.features] == [(1,), (0,), (2, 3)]


def test_the_target_weights_and_clusters_can_be_columns():
    table = {**COLUMNS, "y": noise(), "w": ROWS + 1.0, "town": ROWS % 6}
    data = Dataset.from_table(table, "y", sample_weight="w", clusters="town")
    assert data.names == ["b10", "b2", "kind"]
    assert data.target == "y"
    assert_allclose(data.weights, (ROWS + 1) / (ROWS + 1).mean())
    assert_array_equal(data.clusters, ROWS % 6)


def test_weights_have_mean_one_whatever_their_scale():
    for scale in (1e-300, 1.0, 1e300):
        data = one(noise(1), sample_weight=scale * (ROWS % 3 + 1.0))
        assert_allclose(data.weights, (ROWS % 3 + 1) / 2)


def test_what_came_in_is_not_changed():
    frame = pd.DataFrame(COLUMNS).assign(gap=np.where(ROWS < 3, np.nan, ROWS), y=noise())
    before = frame.copy()
    Dataset.from_table(frame, "y", groups={"g": ["b2", "gap"]})
    pd.testing.assert_frame_equal(frame, before)


def test_a_group_owns_the_columns_of_its_members_and_stands_where_the_first_stood():
    data = Dataset.from_table(COLUMNS, noise(), groups={"g": ["kind", "b10", "kind"]})
    assert [(f.name, f.kind, len(f.columns)) for f in data.features] == [
        ("g", "group", 3),
        ("b2", "number", 1),
    ]
    assert_array_equal(np.sort([*data.features[0].columns, *data.features[1].columns]), range(4))


def test_the_rest_is_all_that_a_feature_does_not_own():
    data = Dataset.from_table(COLUMNS, noise())
    assert data.without(2).tolist() == [0, 1]
    assert data.without(0).tolist() == [0, 2, 3]


def checked(X, y):
    """Return the dataset, or None where it is refused in a sentence."""
    try:
        return Dataset.from_table(X, y)
    except InputError as error:
        refused = str(error)
    assert refused.isprintable()
    assert refused[-1] in ".?"
    return None


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=6, unique=True))
def test_any_names_at_all_are_kept_or_refused(names):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(12, len(names))), columns=names)
    data = checked(frame, np.arange(12.0))
    assert data is None or [n for n in data.names if n in names] == [n for n in names if n.strip()]


CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.decimals(),
    st.dates(),
    st.datetimes(timezones=st.none() | st.just(dt.UTC)),
    st.timedeltas(),
    st.complex_numbers(),
    st.binary(max_size=3),
    st.lists(st.integers(), max_size=2),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(CELLS, min_size=12, max_size=12))
def test_any_cells_at_all_become_finite_numbers_or_a_sentence(cells):
    data = checked({"x": pd.Series(cells, dtype=object)}, np.arange(12.0))
    assert data is None or np.isfinite(data.X).all()


@settings(max_examples=150, deadline=None)
@given(st.lists(CELLS, min_size=12, max_size=12))
def test_any_target_at_all_becomes_finite_numbers_or_a_sentence(cells):
    data = checked(np.arange(12.0)[:, None], pd.Series(cells, dtype=object))
    assert data is None or np.isfinite(data.y).all()


# --- targets ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["no", "yes"] * 12, ("no", "yes")),
        ([0, 1] * 12, ("0", "1")),
        ([2.5, -1.0] * 12, ("-1", "2.5")),
        (["c", "a", "b"] * 8, ("a", "b", "c")),
        ([1, 2, 3] * 8, ()),
        (pd.Categorical([1, 2, 3] * 8), ("1", "2", "3")),
    ],
)
def test_words_and_two_values_are_classes_and_other_numbers_are_numbers(y, classes):
    assert Dataset.from_table({"x": noise()}, y).classes == classes


def test_the_task_can_be_said():
    assert one(noise(1), task="regression").task == "regression"
    numbers = Dataset.from_table({"x": noise()}, [0, 1] * 12, task="regression")
    classes = Dataset.from_table({"x": noise()}, [1, 2, 3] * 8, task="classification")
    assert (numbers.n_classes, classes.n_classes) == (0, 3)


def test_what_is_left_of_a_class_is_indicator_less_probability():
    data = Dataset.from_table({"x": noise()}, ["a", "b", "c"] * 8)
    shares = np.tile([0.5, 0.3, 0.2], (3, 1))
    assert_allclose(data.left(shares, np.arange(3)), [[-0.3, -0.2], [0.7, -0.2], [-0.3, 0.8]])
    assert_allclose(data.loss(shares, np.arange(3)), -np.log([0.5, 0.3, 0.2]))


def test_a_class_held_impossible_costs_much_but_not_everything():
    data = Dataset.from_table({"x": noise()}, ["a", "b"] * 12)
    assert np.isfinite(data.loss(np.tile([1.0, 0.0], (N, 1)), ROWS)).all()


def test_without_features_one_predicts_the_weighted_mean():
    weights = ROWS + 1.0
    data = Dataset.from_table({"x": noise(1)}, noise(), sample_weight=weights)
    assert_allclose(data.mean_prediction(ROWS, 2), np.average(noise(), weights=weights))


# --- splits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("splits", [2, 5, 12])
def test_folds_test_every_row_once_and_never_learn_from_it(splits):
    folds = make_splits(one(noise(1)), splits, seed=0)
    assert len(folds) == splits
    assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), ROWS)
    assert all(len(np.intersect1d(train, test)) == 0 for train, test in folds)


def test_a_share_is_held_out_once():
    ((train, test),) = make_splits(one(noise(1)), 0.25, seed=0)
    assert (len(train), len(test)) == (18, 6)


def test_folds_keep_the_shares_of_classes():
    data = Dataset.from_table({"x": noise()}, ["a"] * 18 + ["b"] * 6)
    assert {int(data.y[test].sum()) for _, test in make_splits(data, 3, seed=0)} == {2}


def test_a_cluster_stays_in_one_fold():
    data = one(noise(1), clusters=ROWS % 8)
    for train, test in make_splits(data, 4, seed=0):
        assert not set(data.clusters[train]) & set(data.clusters[test])


def test_the_same_seed_gives_the_same_folds_and_a_repeat_others():
    data = one(noise(1))

    def tested(seed, repeat=0):
        return [test.tolist() for _, test in make_splits(data, 3, seed, repeat)]

    assert tested(0) == tested(0)
    assert tested(0) != tested(1)
    assert tested(0) != tested(0, repeat=1)


def test_a_splitter_without_a_seed_takes_ours_and_is_not_changed():
    splitter = KFold(3, shuffle=True)
    first, again = (make_splits(one(noise(1)), splitter, seed=4) for _ in range(2))
    assert [test.tolist() for _, test in first] == [test.tolist() for _, test in again]
    assert splitter.random_state is None


@pytest.mark.parametrize(
    ("splits", "words"),
    [(5, "5-fold cross-fit"), (0.33, "hold-out of 33%"), ("none", "in sample"), ([], "given")],
)
def test_splits_are_described_in_words(splits, words):
    assert describe(splits).startswith(words)


# --- small things -------------------------------------------------------------------------------


def test_a_hint_names_what_is_near_or_what_there_is():
    assert did_you_mean("prize", ["price", "area"]) == " Did you mean 'price'?"
    assert did_you_mean(None, ["a", "b"]) == " There are 'a', 'b'."
    assert did_you_mean("a\nc", ["a\nb"]).isprintable()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text()))
def test_any_names_can_be_put_in_order(names):
    ordered = sorted(names, key=natural)
    names.reverse()
    assert sorted(names, key=natural) == ordered


def test_a_level_that_ends_in_nul_has_a_column_of_its_own():
    labels = ["$"] * 12 + ["b"] * 10 + ["\x00"] * 8
    data = Dataset.from_table(pd.DataFrame({"c": labels, "d": range(30)}), np.arange(30.0))
    assert (data.variance > 0).all()
