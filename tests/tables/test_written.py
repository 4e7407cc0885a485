"""Text that holds numbers is read as what it is, and all that is wrong is said at once."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import covaria
from covaria.errors import InputError
from covaria.tables.dataset import Dataset
from covaria.tables.files import read_table
from covaria.tables.written import read_written

N = 24
ROWS = np.arange(N)
NOISE = np.random.default_rng(0).normal(size=N)


def one(values, **options):
    return Dataset.from_table({"x": values}, NOISE, **options)


def days(*texts):
    return [pd.Timestamp(text).timestamp() / 86_400 for text in texts]


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["$1,234.50", "$9", "-$3.25", "($2)"], [1234.5, 9, -3.25, -2]),
        (["1.234,50 €", "9 €", "-3,25 €", "12 €"], [1234.5, 9, -3.25, 12]),
        (["12.1%", "3 %", "-0.5%", "100%"], [12.1, 3, -0.5, 100]),
        (["1,234", "56", "1,234,567.5", "7"], [1234, 56, 1234567.5, 7]),
        (["3,14", "2", "1.000,5", "12,75"], [3.14, 2, 1000.5, 12.75]),
        (["0,126", "-1,234", "2", "12,750"], [0.126, -1.234, 2, 12.75]),
        (["0.126", "1.234", "2", "1,200.5"], [0.126, 1.234, 2, 1200.5]),
        (["CHF 1'200.50", "CHF 3", "CHF 4", "CHF 5"], [1200.5, 3, 4, 5]),
    ],
)
def test_amounts_and_percentages_are_numbers(texts, numbers):
    data = one(texts * 6)
    assert_allclose(data.X[:4, 0], numbers)
    assert data.features[0].kind == "number"
    assert any("'x' holds" in note for note in data.notes)


def test_numbers_with_one_unit_stay_a_category_and_the_cure_is_said():
    data = one(["12.5 kg", "9 kg", "-30kg", "8,5 kg"] * 6)
    assert data.features[0].kind == "category"
    assert any("unit 'kg'" in note and "removesuffix('kg')" in note for note in data.notes)
    for texts in (["1 room", "2 rooms", "3 rooms"], ["A1", "B2", "C3"], ["5 kg", "9 kg"]):
        assert not any("unit" in note for note in one(texts * (N // len(texts))).notes)


def test_periods_count_days_from_their_start():
    months = pd.period_range("2024-01", periods=N, freq="M")
    data = one(pd.Series(months))
    assert data.features[0].kind == "number"
    assert_allclose(data.X[:2, 0], days("2024-01-01", "2024-02-01"))


@pytest.mark.parametrize(
    ("texts", "dates", "order"),
    [
        (["2024-01-31", "1999-12-01 12:00"], ["2024-01-31", "1999-12-01 12:00"], "yyyy-mm-dd"),
        (["31/01/2024", "2/3/1999"], ["2024-01-31", "1999-03-02"], "dd/mm/yyyy"),
        (["01/31/2024", "2/3/1999"], ["2024-01-31", "1999-02-03"], "mm/dd/yyyy"),
        (["1.2.2024", "2.3.1999"], ["2024-02-01", "1999-03-02"], "dd.mm.yyyy"),
        (["2024/01/31", "1999/12/01"], ["2024-01-31", "1999-12-01"], "yyyy/mm/dd"),
        (["31/01/2024 06:00", "2/3/1999 0:00"], ["2024-01-31 06:00", "1999-03-02"], "dd/mm/yyyy"),
    ],
)
def test_dates_count_days(texts, dates, order):
    data = one(texts * 12)
    assert_allclose(data.X[:2, 0], days(*dates))
    assert any(f"holds dates ({order})" in note for note in data.notes)


def test_dates_that_could_be_read_in_two_ways_say_so():
    assert any("could be mm/dd/yyyy" in n for n in one(["01/02/2024", "03/04/2024"] * 12).notes)
    assert not any("could be" in n for n in one(["1.2.2024", "3.4.2024"] * 12).notes)


def test_what_is_no_day_of_the_calendar_is_a_label():
    assert one(["31/02/2024", "30/02/2023"] * 12).features[0].kind == "category"


def test_labels_stay_labels():
    for texts in (["A12", "B13"], ["10", "20", "50+"], ["$", "$$"], ["1-2", "3-4"], ["a", "5%"]):
        values = (texts * N)[:N]
        assert one(values).features[0].kind == "category"
    assert one(pd.Categorical(["5%", "7%"] * 12)).features[0].kind == "category"


def test_words_for_a_gap_among_numbers_are_gaps():
    values = ["1", "2", "unknown", "4", "N/A", "6"] * 4
    data = one(values)
    assert_array_equal(data.holes[:6, 0], [False, False, True, False, True, False])
    assert any("has 'N/A', 'unknown' among its numbers" in note for note in data.notes)
    assert one(["a", "b", "unknown"] * 8).features[0].kind == "category"


def test_gaps_and_amounts_go_together():
    data = one(["$1,000", "unknown", "$2", "$3"] * 6)
    assert_array_equal(data.holes[:4, 0], [False, True, False, False])
    assert_array_equal(data.X[[0, 2], 0], [1000, 2])


def test_numbers_of_several_units_are_refused():
    for texts in (["$5", "€6"], ["5%", "0.05"]):
        with pytest.raises(InputError, match="several units"):
            one(texts * 12)


def test_a_slip_among_amounts_is_refused():
    with pytest.raises(InputError, match="text among its numbers \\('call us'\\)"):
        one([*(f"${i}" for i in range(N - 1)), "call us"])


def test_a_long_column_of_text_is_not_read_to_its_end():
    texts = (f"name {i}" if i < 100 else 1 / 0 for i in range(100))
    assert read_written("x", texts) is None


def test_files_and_frames_are_read_alike(tmp_path):
    columns = {
        "price": [f"${1000 + i:,}.50" for i in ROWS],
        "rate": [f"{i / 2}%" for i in ROWS],
        "day": [f"{1 + i:02}/03/2024" for i in ROWS],
        "age": ["unknown" if i % 7 == 3 else str(20 + i) for i in ROWS],
        "y": NOISE,
    }
    frame = pd.DataFrame(columns)
    frame.to_csv(tmp_path / "t.csv", index=False)
    read, _ = read_table(tmp_path / "t.csv")
    kinds = [Dataset.from_table(t, "y").X for t in (read, frame, pl.DataFrame(columns), columns)]
    for other in kinds[1:]:
        assert_allclose(other, kinds[0], rtol=1e-15)
    assert_allclose(kinds[0][:, 3], 1000.5 + ROWS)


# --- rows of y and of X -------------------------------------------------------------------------


def test_a_target_in_another_order_is_put_in_that_of_the_table():
    X = pd.DataFrame({"x": ROWS}, index=[f"r{i}" for i in ROWS])
    y = pd.Series(NOISE, X.index)
    shuffled = y.sample(frac=1, random_state=1)
    data = Dataset.from_table(X, shuffled, sample_weight=pd.Series(ROWS + 1.0, X.index)[::-1])
    assert_array_equal(data.y, NOISE)
    assert_allclose(data.weights, (ROWS + 1) / np.mean(ROWS + 1))
    assert any("order of X's row labels" in note for note in data.notes)


def test_a_target_with_other_row_labels_is_refused():
    X = pd.DataFrame({"x": ROWS}, index=ROWS + 100)
    with pytest.raises(InputError, match=r"The target 'y' has other row labels.*to_numpy"):
        Dataset.from_table(X, pd.Series(NOISE))
    assert_array_equal(Dataset.from_table(X, pd.Series(NOISE).to_numpy()).y, NOISE)
    twice = X.set_axis([0] * N)
    assert_array_equal(Dataset.from_table(twice, pd.Series(NOISE, twice.index)).y, NOISE)


# --- all problems at once -----------------------------------------------------------------------


def test_all_problems_of_a_table_are_said_at_once():
    X = {
        "a": np.where(ROWS == 3, np.inf, ROWS),
        "b": [[1]] * N,
        "c": ["oops", *map(str, ROWS[1:])],
    }
    y = np.where(ROWS == 5, np.nan, NOISE)
    with pytest.raises(InputError) as error:
        Dataset.from_table(X, y, sample_weight=-(NOISE**2), groups={"g": ["a", "zzz"]})
    for said in ("There are 6 problems. (1)", "'y' is missing", "'a' has infinite", "'b' holds",
                 "'c' has text among", "sample_weight must", "names 'zzz'"):  # fmt: skip
        assert said in str(error.value)


def test_one_problem_is_said_as_it_is():
    with pytest.raises(InputError, match=r"^Column 'x' has infinite"):
        one(np.where(ROWS == 3, np.inf, ROWS))


# --- rows without a target ----------------------------------------------------------------------


def test_rows_without_a_target_are_refused_with_the_option_that_drops_them():
    with pytest.raises(InputError, match="missing_target='drop'"):
        Dataset.from_table({"x": ROWS}, np.where(ROWS < 2, np.nan, NOISE))


def test_rows_without_a_target_are_dropped_with_a_note():
    there = ROWS % 5 != 2
    y = pd.Series(np.where(there, NOISE, np.nan))
    X = pd.DataFrame({"x": NOISE[::-1], "g": ROWS // 4})
    given = {"sample_weight": ROWS + 1.0, "clusters": ROWS // 2, "keep_frame": True}
    data = Dataset.from_table(X, y, missing_target="drop", **given)
    given = {"sample_weight": (ROWS + 1.0)[there], "clusters": (ROWS // 2)[there]}
    by_hand = Dataset.from_table(X[there], y[there], **given, keep_frame=True)
    assert_array_equal(data.X, by_hand.X)
    assert_array_equal(data.y, by_hand.y)
    assert_array_equal(data.weights, by_hand.weights)
    assert_array_equal(data.clusters, by_hand.clusters)
    assert len(data.frame.table) == there.sum()
    assert any("5 rows of 24 without a target left out" in note for note in data.notes)


def test_a_result_numbers_rows_as_the_table_does():
    X, y = covaria.draw("linear", n_rows=80, seed=1)
    y = np.where(np.arange(80) % 4 == 0, np.nan, y)
    found = covaria.assess(X, y, learner="linear", methods="gcm", missing_target="drop")
    assert_array_equal(found.rows, np.flatnonzero(np.arange(80) % 4))
    there = np.arange(80) % 4 != 0
    by_hand = covaria.assess(X[there], y[there], learner="linear", methods="gcm")
    pd.testing.assert_frame_equal(found.table, by_hand.table)
    assert found.settings["missing_target"] == "drop"


def test_lists_of_row_numbers_do_not_go_with_dropped_rows():
    X, y = covaria.draw("linear", n_rows=80, seed=1)
    y = np.where(np.arange(80) % 4 == 0, np.nan, y)
    folds = [(np.arange(40), np.arange(40, 80)), (np.arange(40, 80), np.arange(40))]
    with pytest.raises(InputError, match="splits as lists of row numbers"):
        covaria.assess(X, y, learner="linear", splits=folds, missing_target="drop")
