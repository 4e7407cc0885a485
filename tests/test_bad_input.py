"""Whatever the table, there is a valid Result or one sentence that names the thing and the cure.

Every kind of input meets all four methods. Warnings are errors here, so silence is tested too.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, ShuffleSplit
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import covaria
from covaria.errors import InputError
from covaria.learners.estimators.wrapped import for_target
from covaria.report import render, summarize

METHODS = ["gcm", "loco", "dropout", "permutation"]
N = 60
ROWS = np.arange(N)
STATUS = r"ok|unused|redundant|constant|failed: .+"


def plain(n_rows=N, n_columns=3):
    """Return a table without anything odd: the first column matters."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(n_rows, n_columns))).add_prefix("c")
    return X, pd.Series(X["c0"] + rng.normal(size=n_rows), name="price")


def with_column(values, name="odd"):
    X, y = plain()
    X[name] = values
    return X, y


def but(value, at=5):
    """Return a good column with one odd value in it."""
    column = (ROWS % 7).astype(float)
    column[at] = value
    return column


def named(*names):
    X, y = plain()
    return X.set_axis([*names, *X.columns[len(names) :]], axis=1), y


def noise():
    return np.random.default_rng(2).normal(size=N)


def run(X, y, methods=METHODS, **options):
    return covaria.assess(X, y, methods=methods, **{"learner": "linear", "splits": 2, **options})


def assert_valid(result):
    """Check all that a Result promises, for whatever it was made of."""
    table = result.table
    assert len(table) == len(result.methods) * len(result.features)
    assert np.isfinite(table.select_dtypes("number").to_numpy(dtype=float)).all()
    for column in ("p_value", "p_adjusted"):
        assert table[column].between(0, 1).all()
        assert (table[column] > 0).all()
    assert (table["std_error"] >= 0).all()
    assert table["status"].str.fullmatch(STATUS).all()
    assert not table.loc[table["status"] != "ok", "selected"].any()
    assert all(np.isfinite(scores).all() for scores in result.scores.values())
    assert np.isfinite(result.quality["r2"].to_numpy(dtype=float)).all()
    assert covaria.Result.from_dict(json.loads(result.to_json())) == result
    if "gcm" in result.methods:  # once a table is enough: a page takes longer than a test
        assert_printable(result)


def assert_printable(result):
    """Check that odd names break neither the text nor the page."""
    assert all(alert.isprintable() for alert in result.alerts)
    assert all(line.isprintable() for line in str(result).splitlines())
    page = render(summarize(result))
    assert "<script>alert" not in page
    assert "nan" not in {cell.strip() for cell in page.split(">")}


def refusal(X, y, **options):
    """Return the one sentence with which something is refused."""
    with pytest.raises(InputError) as caught:
        run(X, y, **options)
    message = str(caught.value)
    assert message.isprintable()
    assert message[-1] in ".?"
    return message


def status(result, feature):
    rows = result.table[result.table["feature"] == feature]
    return dict(zip(rows["method"], rows["status"], strict=True))


# --- tables that can be tested ------------------------------------------------------------------


def one_hot_without_reference():
    X, y = plain()
    return X.assign(**{f"is_{level}": (level == ROWS % 3) * 1 for level in range(3)}), y


def many_levels():
    X, y = plain(10_500, 2)
    return X.assign(town=[f"t{i % 10_000}" for i in range(len(X))]), y


def polars_table():
    X, _ = plain()
    return pl.DataFrame({name: X[name].to_numpy() for name in X}).with_columns(
        category=pl.Series(["a", "b", "c"] * 20, dtype=pl.Categorical),
        enum=pl.Series(["a", "b", None] * 20, dtype=pl.Enum(["a", "b"])),
        nothing=pl.Series([None] * N),
        day=pl.Series([dt.date(2020, 1, 1) + dt.timedelta(int(i**2)) for i in ROWS]),
        wait=pl.Series([dt.timedelta(hours=int(i % 11)) for i in ROWS]),
        amount=pl.Series([Decimal(int(i % 13)) for i in ROWS]),
        yes=pl.Series([True, None, False] * 20),
        at=pl.Series([dt.time(int(i % 5)) for i in ROWS]),
    )


def dates(**options):
    return pd.Series(pd.date_range("2020-01-01", periods=N, **options))


TABLES = {
    # numbers
    "an empty column": lambda: with_column(np.nan),
    "an empty column of objects": lambda: with_column(pd.Series([None] * N, dtype=object)),
    "a blank text column": lambda: with_column(" "),
    "gaps": lambda: with_column(but(np.nan)),
    "gaps in a constant": lambda: with_column(np.where(ROWS < 9, np.nan, 1.0)),
    "numbers near the largest": lambda: with_column(noise() * 1e59),
    "numbers near the smallest": lambda: with_column(noise() * 1e-59),
    "one number near the largest": lambda: with_column(but(1e59)),
    "a few denormals": lambda: with_column(but(1e-310)),
    "a constant": lambda: with_column(3.0),
    "zeros": lambda: with_column(0.0),
    "nearly a constant": lambda: with_column(1 + 1e-12 * noise()),
    "a constant but for rounding": lambda: with_column(1 + 1e-15 * noise()),
    "only constants": lambda: (pd.DataFrame({"a": [1.0] * N, "b": ["u"] * N}), plain()[1]),
    "constant inside a training fold": lambda: with_column((ROWS == 3) * 1.0),
    "nullable integers": lambda: with_column(pd.array([1, 2, None] * 20, dtype="Int64")),
    "Decimal objects": lambda: with_column([Decimal(int(i)) / 7 for i in ROWS]),
    "a Decimal that signals": lambda: with_column([Decimal("sNaN"), *map(Decimal, range(N - 1))]),
    "pandas' NA among objects": lambda: with_column(pd.Series([pd.NA, 1, 2] * 20, dtype=object)),
    "numbers as text": lambda: with_column(["1", "2.5", "-3e2"] * 20),
    # labels
    "one level": lambda: with_column("a"),
    "a level for each row": lambda: with_column([f"id{i}" for i in ROWS]),
    "10,000 levels": many_levels,
    "levels unseen in training": lambda: with_column(["a", "b"] * 29 + ["c", "d"]),
    "booleans": lambda: with_column(ROWS % 2 == 0),
    "booleans with gaps": lambda: with_column(pd.array([True, False, None] * 20, dtype="boolean")),
    "a categorical with gaps": lambda: with_column(pd.Categorical(["a", "b", None] * 20)),
    "a categorical of numbers": lambda: with_column(pd.Categorical([1, 2, 3] * 20)),
    "numbers and text mixed": lambda: with_column([1, "a", 2.5, "b", None, "1"] * 10),
    "bytes": lambda: with_column([b"a", b"b"] * 30),
    "intervals": lambda: with_column(pd.cut(ROWS, 4)),
    # time
    "dates with gaps": lambda: with_column(dates().mask(ROWS % 9 == 0)),
    "dates with a time zone": lambda: with_column(dates(tz="Europe/Paris")),
    "date objects": lambda: with_column(dates().dt.date),
    "datetime objects with zones": lambda: with_column(dates(tz="UTC").astype(object)),
    "durations": lambda: with_column(pd.to_timedelta(ROWS**2, unit="h")),
    "durations with gaps": lambda: with_column(
        pd.Series(pd.to_timedelta(ROWS**2, unit="h")).mask(ROWS % 9 == 0)
    ),
    "times of day": lambda: with_column([dt.time(int(i % 24)) for i in ROWS]),
    "months": lambda: with_column(pd.period_range("2020-01", periods=N, freq="M")),
    # columns that say the same
    "the same column twice": lambda: with_column(plain()[0]["c0"]),
    "an exact sum": lambda: with_column(plain()[0]["c0"] + plain()[0]["c1"]),
    "one-hot without reference": one_hot_without_reference,
    "the target among the columns": lambda: with_column(plain()[1].to_numpy()),
    # sizes
    "one column": lambda: plain(n_columns=1),
    "10 rows": lambda: plain(10),
    "12 rows": lambda: plain(12),
    "more columns than rows": lambda: plain(30, 60),
    # targets
    "a target of 0 and 1": lambda: (plain()[0], (plain()[1] > 0).astype(int)),
    "a boolean target": lambda: (plain()[0], plain()[1] > 0),
    "a target of two words": lambda: (plain()[0], np.where(plain()[1] > 0, "yes", "no")),
    "a target of three words": lambda: (plain()[0], [("a", "b", "c")[i % 3] for i in ROWS]),
    "a target of numbers and words": lambda: (plain()[0], [1, "a"] * 30),
    "a categorical target": lambda: (plain()[0], pd.Categorical(["a", "b"] * 30)),
    "a target of dates": lambda: (plain()[0], pd.date_range("2020-01-01", periods=N)),
    "a target of durations": lambda: (plain()[0], ROWS.astype("timedelta64[h]")),
    "a target of Decimals": lambda: (plain()[0], [Decimal(int(i % 7)) for i in ROWS]),
    "a target near the largest": lambda: (plain()[0], plain()[1] * 1e59),
    "a target near the smallest": lambda: (plain()[0], plain()[1] * 1e-59),
    "a target in another order": lambda: (plain()[0], plain()[1].iloc[::-1]),
    "n/a among numbers": lambda: with_column([*["1", "2", "3"] * 19, "n/a", "3", "4"]),
    "a target as a frame": lambda: (plain()[0], plain()[1].to_frame()),
    "a target as a polars frame": lambda: (plain()[0], pl.DataFrame({"t": noise()})),
    "a target as an arrow array": lambda: (plain()[0], pa.chunked_array([noise()])),
    "a target as a column of numbers": lambda: (plain()[0], noise()[:, None]),
    # containers
    "a sparse matrix": lambda: (sp.csr_matrix(plain()[0].to_numpy()), plain()[1]),
    "a sparse array": lambda: (sp.coo_array(plain()[0].to_numpy()), plain()[1]),
    "sparse columns": lambda: (plain()[0].astype(pd.SparseDtype(float)), plain()[1]),
    "polars": lambda: (polars_table(), plain()[1]),
    "lazy polars": lambda: (polars_table().lazy(), "c0"),
    "an arrow table": lambda: (polars_table().to_arrow(), plain()[1]),
    "a structured array": lambda: (plain()[0].to_records(index=False), plain()[1]),
    "an array of objects": lambda: (plain()[0].to_numpy().astype(object), plain()[1]),
    "an array of text": lambda: (np.array([[str(i), "ab"[i % 2]] for i in ROWS]), plain()[1]),
    "an array of dates": lambda: (
        np.array([["2020-01-01", "NaT"], ["2021-01-01", "2020-05-05"]] * 30, "datetime64[D]"),
        plain()[1],
    ),
    "a masked array": lambda: (np.ma.masked_greater(plain()[0].to_numpy(), 1), plain()[1]),
    "lists": lambda: (plain()[0].to_numpy().tolist(), plain()[1].tolist()),
    "lists with None": lambda: ([[float(i), None if i % 5 else 1.0] for i in ROWS], noise()),
    "lists with text": lambda: ([[float(i), "ab"[i % 2]] for i in ROWS], noise()),
    "records": lambda: ([{"a": float(i), "b": int(i % 3)} for i in ROWS], noise()),
    "a dictionary": lambda: ({"a": noise(), "b": ["u", "v"] * 30}, plain()[1]),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", TABLES)
def test_an_odd_table_still_gives_a_valid_result(kind, method):
    assert_valid(run(*TABLES[kind](), methods=[method]))


ODD_NAMES = [
    "y",
    "x0",
    "price",
    "Unnamed: 0",
    "(column 2)",
    "<script>alert(1)</script>",
    "[/]",
    "[bold]b[/bold]",
    "$\\frac$",
    "{{ 7*7 }}",
    "=1+1",
    "数量",
    "السعر",
    "🎉",
    "é",
    "x" * 300,
    "a\n\x1b[31mb",
    "nan",
    7,
    1.5,
    ("a", "b"),
    None,
]


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_a_name_is_kept_as_it_is(name):
    X, y = named(name)
    result = run(X, y)
    assert_valid(result)
    assert result.features[0] == str(X.columns[0])


@pytest.mark.parametrize("name", ["", "  ", "\t"])
def test_a_column_without_a_name_is_called_by_its_place(name):
    result = run(*named(name))
    assert_valid(result)
    assert result.features[0] == "(column 1)"


def test_whole_number_names_become_text_and_can_be_the_target():
    X = plain()[0].set_axis([0, 1, 2], axis=1)
    assert run(X, "0").features == ["1", "2"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [(np.nan, "constant"), (3.0, "constant"), ("a", "constant"), (noise(), "ok")],
)
def test_what_says_nothing_is_called_constant_and_the_others_are_tested(values, expected):
    result = run(*with_column(values))
    assert set(status(result, "odd").values()) == {expected}
    assert set(status(result, "c0").values()) == {"ok"}


def test_a_column_that_is_there_twice_is_redundant_and_said_to_be():
    result = run(*with_column(plain()[0]["c0"]))
    assert status(result, "odd")["gcm"] == "redundant"
    assert status(result, "odd")["loco"] == "unused"
    assert any("'c0' and 'odd' hold the same values" in alert for alert in result.alerts)


def test_a_useful_group_of_all_features_is_tested_against_nothing():
    result = run(*plain(), groups={"all": ["c0", "c1", "c2"]})
    assert_valid(result)
    assert result.features == ["all"]
    assert result.selected["gcm"] == ["all"]


@pytest.mark.parametrize("method", METHODS)
def test_500_columns_and_12_rows_are_no_trouble(method):
    assert_valid(run(*plain(12, 500), methods=[method], splits=0.5))


SOME = [
    "gaps",
    "nearly a constant",
    "only constants",
    "constant inside a training fold",
    "numbers near the largest",
    "the same column twice",
    "one column",
    "10 rows",
    "a target of three words",
    "a target near the smallest",
    "polars",
]


@pytest.mark.parametrize("kind", SOME)
def test_boosting_meets_odd_tables_too(kind):
    assert_valid(run(*TABLES[kind](), learner="boosting(trees=10)"))


@pytest.mark.parametrize("kind", SOME)
def test_a_pipeline_meets_odd_tables_too(kind):
    assert_valid(run(*TABLES[kind](), learner=make_pipeline(StandardScaler(), Ridge())))


# --- tables that cannot -------------------------------------------------------------------------


def text_in_numbers():
    return with_column(pd.Series(["1", "2", "3"] * 19 + ["oops", "3", "4"], dtype=object))


def two_rows_of_names():
    names = pd.MultiIndex.from_tuples([("a", "b"), ("a", "c"), ("b", "c")])
    return plain()[0].set_axis(names, axis=1), plain()[1]


NO_TABLES = {
    "infinity": (lambda: with_column(but(np.inf)), "'odd' has infinite values in 1 row"),
    "minus infinity": (lambda: with_column(but(-np.inf)), "'odd' has infinite"),
    "a Decimal infinity": (lambda: with_column([Decimal("inf"), *range(N - 1)]), "'odd' has inf"),
    "a giant whole number": (lambda: with_column([10**400, *range(N - 1)]), "'odd' has infinite"),
    "1e308": (lambda: with_column(but(1e308)), "'odd' has values beyond 1e60"),
    "only denormals": (lambda: with_column(ROWS * 1e-310), "'odd' has only values below"),
    "complex numbers": (lambda: with_column(ROWS * 1j), "'odd' holds complex numbers"),
    "a complex array": (lambda: (plain()[0].to_numpy() * 1j, noise()), "'x0' holds complex"),
    "text among numbers": (text_in_numbers, r"'odd' has text among its numbers ('oops')"),
    "a target with another index": (
        lambda: (plain()[0], plain()[1].set_axis(ROWS + 1000)),
        r"has other row labels than X (1000, 1001, 1002, … where X has 0, 1, 2, …)",
    ),
    "lists in cells": (lambda: with_column([[1]] * N), "'odd' holds lists or records"),
    "arrays in cells": (lambda: with_column([np.arange(2)] * N), "'odd' holds lists or records"),
    "records in cells": (lambda: with_column([{"a": 1}] * N), "'odd' holds lists or records"),
    "polars lists": (
        lambda: (polars_table().with_columns(odd=pl.Series([[1]] * N)), noise()),
        "'odd' holds lists or records",
    ),
    "the same name twice": (lambda: named("a", "a"), "more than one column called 'a'"),
    "the same name after text": (lambda: named(0, "0"), "more than one column called '0'"),
    "a name twice in arrow": (
        lambda: (pa.table([pa.array(noise())] * 2, names=["a", "a"]), noise()),
        "more than one column called 'a'",
    ),
    "two rows of names": (two_rows_of_names, "several rows of column names"),
    "no columns besides the target": (lambda: (pd.DataFrame({"t": noise()}), "t"), "No features"),
    "no columns": (lambda: (np.zeros((N, 0)), noise()), "No features"),
    "1 row": (lambda: plain(1), "1 row; at least 10"),
    "2 rows": (lambda: plain(2), "2 rows; at least 10"),
    "3 rows": (lambda: plain(3), "3 rows; at least 10"),
    "no rows": (lambda: ([], []), "not a table"),
    "an empty frame": (lambda: (pd.DataFrame(), []), "No features"),
    "nothing": (lambda: (None, noise()), "not a table"),
    "a file name": (lambda: ("table.csv", "y"), "There is no file table.csv"),
    "a number": (lambda: (5, noise()), "not a table"),
    "a class": (lambda: (pd.DataFrame, noise()), "not a table"),
    "a generator": (lambda: ((i for i in range(3)), noise()), "not a table"),
    "one dimension": (lambda: (noise(), noise()), "1 dimension"),
    "a Series": (lambda: (pd.Series(noise()), noise()), "1 dimension"),
    "three dimensions": (lambda: (np.zeros((N, 2, 2)), noise()), "3 dimensions"),
    "ragged lists": (lambda: ([[1.0, 2.0], [1.0]] * 30, noise()), "rows of different lengths"),
    "ragged columns": (lambda: ({"a": noise(), "b": [1]}, noise()), "columns of different lengths"),
    "single values": (lambda: ({"a": 1, "b": 2}, noise()), "columns of different lengths"),
    "a giant sparse matrix": (
        lambda: (sp.csr_matrix((10**6, 10**5)), np.zeros(10**6)),
        "too many to test",
    ),
    # targets
    "no target": (lambda: (plain()[0], None), "no target"),
    "an unknown target": (lambda: (named("price")[0], "prize"), "Did you mean 'price'?"),
    "a single value as target": (lambda: (plain()[0], 3.0), "one value a row"),
    "two constant targets": (lambda: (plain()[0], np.zeros((N, 2))), "'y' is the same in every"),
    "a cube as target": (lambda: (plain()[0], np.zeros((N, 2, 2))), "shape (60, 2, 2)"),
    "a structured target": (lambda: (plain()[0], np.zeros(N, "f8,i4")), "one value a row"),
    "ragged lists as target": (lambda: (plain()[0], [[1], [1, 2]] * 30), "'y' holds lists"),
    "too short a target": (lambda: (plain()[0], plain()[1][:50]), "'price' has 50 values but X"),
    "a constant target": (lambda: (plain()[0], np.ones(N)), "'y' is the same in every row"),
    "a target constant but for rounding": (
        lambda: (plain()[0], 1 + 1e-15 * noise()),
        "'y' is the same in every row",
    ),
    "a target of one class": (lambda: (plain()[0], ["a"] * N), "'y' is the same in every row"),
    "a target with gaps": (
        lambda: (plain()[0], plain()[1].mask(ROWS == 4)),
        "'price' is missing in 1 row (the first is row 5)",
    ),
    "a masked target": (lambda: (plain()[0], np.ma.array(noise(), mask=ROWS == 4)), "is missing"),
    "an infinite target": (lambda: (plain()[0], but(np.inf)), "'y' has infinite values"),
    "a target of 1e99": (lambda: (plain()[0], plain()[1] * 1e99), "'price' has values beyond"),
    "a target of denormals": (lambda: (plain()[0], plain()[1] * 1e-310), "only values below"),
    "a complex target": (lambda: (plain()[0], noise() * 1j), "'y' holds complex numbers"),
    "a rare class": (lambda: (plain()[0], ["a"] * 59 + ["b"]), "Class 'b' of the target 'y'"),
    "too many classes": (lambda: (plain()[0], [f"k{i}" for i in ROWS]), "60 classes"),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", NO_TABLES)
def test_what_cannot_be_tested_is_refused_in_a_sentence(kind, method):
    make, said = NO_TABLES[kind]
    assert said in refusal(*make(), methods=[method])


# --- weights, groups, clusters, splits ----------------------------------------------------------


def weights(value, at=0):
    given = np.ones(N)
    given[at] = value
    return given


def halves(first, second):
    return [(first, second), (second, first)]


class Overlapping:
    """A splitter whose training part holds the test part."""

    def split(self, X, y, groups):
        yield np.arange(len(X)), np.arange(len(X) // 2)


CHOICES = {
    "a weight of zero": {"sample_weight": weights(0)},
    "many weights of zero": {"sample_weight": weights(0, slice(0, 40))},
    "giant weights": {"sample_weight": np.full(N, 1e308)},
    "tiny weights": {"sample_weight": np.full(N, 1e-310)},
    "one giant weight": {"sample_weight": weights(1e200)},
    "weights as a column": {"sample_weight": "c2"},
    "boolean weights": {"sample_weight": ROWS % 2 == 0},
    "a group of all": {"groups": {"g": ["c0", "c1", "c2"]}},
    "a member twice": {"groups": {"g": ["c0", "c0"]}},
    "a group named like its member": {"groups": {"c0": ["c0", "c1"]}},
    "a group called by a number": {"groups": {1: ("c0", "c1")}},
    "a group from an array": {"groups": {"g": np.array(["c0", "c1"])}},
    "no groups": {"groups": {}},
    "clusters of numbers": {"clusters": ROWS % 10},
    "clusters of words": {"clusters": [f"k{i % 12}" for i in ROWS]},
    "clusters of both": {"clusters": [i % 12 if i % 2 else f"k{i % 12}" for i in ROWS]},
    "5 clusters": {"clusters": ROWS % 5},
    "30 folds": {"splits": 30},
    "half held out": {"splits": 0.5},
    "in sample": {"splits": "none"},
    "masks": {"splits": halves(ROWS < 30, ROWS >= 30)},
    "a generator of pairs": {"splits": (pair for pair in halves(ROWS[:30], ROWS[30:]))},
    "one row to learn from": {"splits": [(np.array([1]), ROWS[30:])]},
    "two rows to test": {"splits": [(ROWS[:30], ROWS[40:42])]},
    "a splitter": {"splits": KFold(3)},
    "leave one out": {"splits": LeaveOneOut()},
    "a splitter of groups": {"splits": GroupKFold(3), "clusters": ROWS % 10},
    "two-sided": {"alternative": "two-sided"},
    "less": {"alternative": "less"},
    "three repeats": {"repeats": 3},
    "a giant seed": {"seed": 2**70},
    "all cores but many": {"n_jobs": -50},
    "two values as numbers": {"task": "regression"},
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", CHOICES)
def test_an_odd_choice_still_gives_a_valid_result(kind, method):
    X, y = plain()
    options = CHOICES[kind]
    if kind == "a generator of pairs":
        options = {"splits": iter(halves(ROWS[:30], ROWS[30:]))}
    if kind == "weights as a column":
        X = X.abs()
    assert_valid(run(X, y, methods=[method], **options))


MASKED = [(ROWS[:50] < 30, ROWS[:50] >= 30)]
NO_CHOICES = {
    "a negative weight": ({"sample_weight": weights(-1)}, "sample_weight must be numbers of 0"),
    "a weight that is missing": ({"sample_weight": weights(np.nan)}, "sample_weight must be"),
    "an infinite weight": ({"sample_weight": weights(np.inf)}, "sample_weight must be"),
    "weights of words": ({"sample_weight": ["a"] * N}, "sample_weight must be"),
    "only weights of zero": ({"sample_weight": np.zeros(N)}, "sample_weight leaves fewer than 10"),
    "too few weights": ({"sample_weight": [1, 2]}, "sample_weight has 2 values but X has 60"),
    "a single weight": ({"sample_weight": 2}, "sample_weight must be one value a row"),
    "weights under an unknown name": ({"sample_weight": "c9"}, "no column 'c9'"),
    "held-out rows without weight": (
        {"sample_weight": (ROWS < 10) * 1.0, "splits": [(ROWS[:30], ROWS[30:])]},
        "sample_weight is above 0 in fewer than 2 rows",
    ),
    "groups that overlap": ({"groups": {"g": ["c0", "c1"], "h": ["c1"]}}, "'c1' is in two groups"),
    "a group with an unknown member": ({"groups": {"g": ["c0", "d0"]}}, "Group 'g' names 'd0'"),
    "a group named like a column": ({"groups": {"c2": ["c0", "c1"]}}, "Group 'c2' has the name"),
    "an empty group": ({"groups": {"g": []}}, "Group 'g' needs a list"),
    "a group of one word": ({"groups": {"g": "c0"}}, "Group 'g' needs a list"),
    "a group of a number": ({"groups": {"g": 3}}, "Group 'g' needs a list"),
    "a group of lists": ({"groups": {"g": [["c0"], "c1"]}}, "Group 'g' names"),
    "a group without a name": ({"groups": {" ": ["c0", "c1"]}}, "group has no name"),
    "groups as a list": ({"groups": [["c0", "c1"]]}, "groups must name each group"),
    "few clusters": ({"clusters": ROWS % 3}, "3 clusters; at least 5"),
    "one cluster": ({"clusters": np.ones(N)}, "1 cluster; at least 5"),
    "clusters with gaps": ({"clusters": weights(np.nan)}, "clusters has gaps"),
    "more folds than clusters": ({"clusters": ROWS % 7, "splits": 8}, "many for 7 clusters"),
    "few clusters held out": ({"clusters": ROWS % 10, "splits": 0.2}, "splits tests 2 clusters"),
    "clusters on both sides": ({"clusters": ROWS % 10, "splits": KFold(3)}, "both training and"),
    "training rows as test rows": ({"splits": [(ROWS, ROWS)]}, "60 rows in both training and test"),
    "a row on both sides": ({"splits": [(ROWS[:31], ROWS[30:])]}, "splits has 1 row in both"),
    "a second pair that overlaps": (
        {"splits": [(ROWS[:30], ROWS[30:]), (ROWS[20:], ROWS[:30])]},
        "10 rows in both training and test (of pair 2)",
    ),
    "masks that overlap": ({"splits": halves(ROWS < 40, ROWS >= 30)}, "10 rows in both"),
    "a splitter that tests what it learns": ({"splits": Overlapping()}, "Use disjoint parts"),
    "rows of a cluster learned twice": (
        {"splits": [(ROWS, ROWS[:30])], "clusters": ROWS % 10},
        "30 rows in both",
    ),
    "no folds": ({"splits": 0}, "splits=0 is too few"),
    "one fold": ({"splits": 1}, "splits=1 is too few"),
    "minus three folds": ({"splits": -3}, "splits=-3 is too few"),
    "one and a half folds": ({"splits": 1.5}, "splits=1.5 must lie between 0 and 1"),
    "NaN folds": ({"splits": np.nan}, "splits=nan must lie"),
    "a billion folds": ({"splits": 10**9}, "Use 30 or fewer"),
    "hardly any held out": ({"splits": 0.001}, "splits=0.001 leaves too few"),
    "splits by an unknown word": ({"splits": "cv"}, "splits='cv' is not known"),
    "splits of no share, in the paper's mode": (
        {"splits": float("nan"), "paper": True},
        "splits=nan must lie between 0 and 1",
    ),
    "splits by a word, in the paper's mode": ({"splits": "cv", "paper": True}, "is not known"),
    "splits by nothing": ({"splits": None}, "splits must be"),
    "splits by a truth": ({"splits": True}, "splits must be"),
    "splits by an object": ({"splits": object()}, "splits must be"),
    "splits by a complex number": ({"splits": 5j}, "splits must be"),
    "splits by numbers": ({"splits": [1, 2]}, "splits must be"),
    "no splits": ({"splits": []}, "splits is empty"),
    "rows tested twice": (
        {"splits": [(ROWS[:30], ROWS[30:50]), (ROWS[:30], ROWS[40:])]},
        "splits tests some rows twice",
    ),
    "rows drawn twice": ({"splits": ShuffleSplit(9)}, "splits tests some rows twice"),
    "rows that are not there": ({"splits": [(ROWS, [59, 60])]}, "outside 0 … 59"),
    "negative rows": ({"splits": [(ROWS, [-1, 3])]}, "outside 0 … 59"),
    "nothing to test": ({"splits": [(ROWS, [])]}, "non-empty"),
    "one row to test": ({"splits": [(ROWS[:30], [31])]}, "fewer than two rows"),
    "masks of another length": ({"splits": MASKED}, "pairs of non-empty arrays"),
    "rows with fractions": ({"splits": [(ROWS * 1.0, ROWS * 1.0)]}, "row numbers"),
    "a splitter's class": ({"splits": KFold}, "splits=KFold(…)"),
    "a splitter that cannot": ({"splits": KFold(100)}, "splits=KFold(…)"),
    "a splitter without its groups": ({"splits": GroupKFold(3)}, "splits=GroupKFold(…)"),
    "repeats of given splits": ({"splits": KFold(3), "repeats": 2}, "repeats needs splits"),
    "alpha of 0": ({"alpha": 0}, "alpha=0"),
    "alpha of 1": ({"alpha": 1}, "alpha=1"),
    "alpha of NaN": ({"alpha": np.nan}, "alpha=nan"),
    "confidence of 95": ({"confidence": 95}, "confidence=95"),
    "no repeats": ({"repeats": 0}, "repeats=0"),
    "half a repeat": ({"repeats": 0.5}, "repeats=0.5"),
    "no permutations": ({"permutations": 0}, "permutations=0"),
    "a negative seed": ({"seed": -1}, "seed=-1"),
    "a broken seed": ({"seed": 1.5}, "seed=1.5"),
    "no jobs": ({"n_jobs": 0}, "n_jobs must be"),
    "half a job": ({"n_jobs": 0.5}, "n_jobs must be"),
    "an unknown task": ({"task": "regresion"}, "Did you mean 'regression'?"),
    "words as numbers": ({"task": "classification"}, "60 classes"),
    "an unknown learner": ({"learner": "liner"}, "Did you mean 'linear'"),
    "a learner with an unknown setting": ({"learner": "linear(rigde=1)"}, "Did you mean 'ridge'?"),
    "a learner with a bad setting": ({"learner": "boosting(trees=-1)"}, "trees=-1"),
    "a learner that cannot be read": ({"learner": "boosting(10)"}, "cannot be read"),
    "a learner's class": ({"learner": LinearRegression}, "neither a name"),
    "no learner": ({"learner": None}, "neither a name"),
    "a classifier for numbers": ({"learner": LogisticRegression()}, "LogisticRegression predicts"),
    "weights for one that takes none": (
        {"learner": KNeighborsRegressor(), "sample_weight": np.ones(N)},
        "KNeighborsRegressor takes no sample weights",
    ),
    "an unknown correction": ({"correction": "bhh"}, "Did you mean 'bh'?"),
    "an unknown alternative": ({"alternative": "two_sided"}, "Use two-sided, greater, less."),
    "an unknown validity": ({"validity": "zippper", "methods": ["loco"]}, "Did you mean 'zipper'?"),
    "validity of no kind": ({"validity": None, "methods": ["loco"]}, "validity=None"),
    "an unknown method": ({"methods": ["gmc"]}, "Did you mean 'gcm'?"),
    "no method": ({"methods": []}, "names no test"),
}


@pytest.mark.parametrize("kind", NO_CHOICES)
def test_a_choice_that_cannot_be_is_refused_in_a_sentence(kind):
    options, said = NO_CHOICES[kind]
    assert said in refusal(*plain(), **options)


@pytest.mark.parametrize("method", [*METHODS, "pcm", "gcm+pcm", "weighted_gcm", "lasso"])
def test_no_method_is_tested_on_rows_it_learned_from(method):
    said = refusal(*plain(), methods=[method], splits=[(ROWS, ROWS)])
    assert "Use disjoint parts, or splits='none' to test in sample knowingly." in said


def test_parts_of_the_rows_are_refused_splits_that_overlap_too():
    X, y = plain()
    for select in (covaria.stability, covaria.refit, lambda *a, **k: covaria.Selector(**k).fit(*a)):
        with pytest.raises(InputError, match="rows in both training and test"):
            select(X, y, splits=Overlapping())


WRONG_KINDS = {
    "alpha": ["x", None, [0.05]],
    "confidence": ["x", None],
    "repeats": ["x", None, np.nan, np.inf],
    "permutations": ["x", None, np.nan],
    "seed": ["x", None, np.nan, np.inf, 3.0],
    "n_jobs": ["x", None, np.nan, np.inf],
    "methods": [None, 5],
    "correction": [["bh"]],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG_KINDS.items() for value in values]
)
def test_a_choice_of_the_wrong_kind_is_refused_in_a_sentence(name, value):
    assert name in refusal(*plain(), **{name: value})


def test_a_prediction_too_large_to_square_is_a_failure():
    X, y = with_column(np.where(ROWS == 3, 1e50, noise() * 1e-50))
    assert_valid(run(X, y * 1e50))


@pytest.mark.parametrize("learner", [GaussianNB(), LinearSVC()], ids=repr)
def test_a_classifier_that_cannot_serve_says_what_would(learner):
    X, y = plain()
    message = refusal(X, y > 0, learner=learner)
    assert type(learner).__name__ in message


# --- learners that fail -------------------------------------------------------------------------


class FailsSometimes(RegressorMixin, BaseEstimator):
    """Least squares that goes wrong for so many columns or so many rows."""

    def __init__(self, how="raise", n_columns=None, n_rows=None):
        self.how = how
        self.n_columns = n_columns
        self.n_rows = n_rows

    def fit(self, X, y):
        self.fails_ = X.shape[1] == self.n_columns or len(X) == self.n_rows
        if self.fails_ and self.how == "raise":
            raise RuntimeError("the numbers\ndid not please me")
        if self.fails_ and self.how == "die":
            os._exit(7)
        self.model_ = LinearRegression().fit(X, y)
        return self

    def predict(self, X):
        answers = self.model_.predict(X)
        if self.fails_ and self.how == "nan":
            return answers * np.nan
        if self.fails_ and self.how == "inf":
            return answers * np.inf
        if self.fails_ and self.how == "none":
            return None
        return answers[:3] if self.fails_ and self.how == "shape" else answers


# Other processes get the class itself, as from a notebook: they cannot import a test.
FailsSometimes.__module__ = "__main__"


def with_three_levels():
    """Return a table in which one feature has two columns, so its rest has fewer than others'."""
    return with_column(["a", "b", "c"] * 20, "kind")


REASONS = {
    "raise": "RuntimeError: the numbers",
    "nan": "not finite",
    "inf": "not finite",
    "shape": r"shape \(3,\) instead of \(30,\)",
    "none": r"shape \(\)",
}


@pytest.mark.parametrize("how", REASONS)
def test_a_fit_that_fails_for_one_feature_costs_only_that_row(how):
    result = run(*with_three_levels(), learner=FailsSometimes(how, n_columns=3), splits=2)
    assert_valid(result)
    failed = result.table[result.table["status"].str.startswith("failed")]
    assert set(failed["feature"]) == {"kind"}
    assert set(failed["method"]) == {"gcm", "loco"}
    assert failed["status"].str.contains(REASONS[how]).all()
    assert (failed["p_value"] == 1).all()
    assert any("Some fits failed ('kind')" in alert for alert in result.alerts)


@pytest.mark.parametrize("how", REASONS)
def test_a_full_model_that_fails_leaves_gcm_alone(how):
    result = run(*with_three_levels(), learner=FailsSometimes(how, n_columns=5), splits=2)
    assert_valid(result)
    assert set(result.only("gcm").table["status"]) == {"ok"}
    assert result.only("loco", "dropout", "permutation").table["status"].str[:6].eq("failed").all()


def test_a_fold_that_fails_is_named():
    uneven = [(ROWS[:25], ROWS[25:]), (ROWS[25:], ROWS[:25])]
    said = refusal(*plain(), learner=FailsSometimes(n_rows=35), splits=uneven)
    assert "No feature could be tested" in said
    assert "fold 2: RuntimeError: the numbers. Mend the learner" in said


def test_a_feature_whose_fits_fail_still_counts_in_the_correction():
    learner = FailsSometimes("raise", n_columns=3)
    result = run(*with_three_levels(), learner=learner, methods=["gcm"], correction="bonferroni")
    c0 = result.table.set_index("feature").loc["c0"]
    assert c0["p_adjusted"] == pytest.approx(min(1.0, 4 * c0["p_value"]))


def test_a_learner_that_kills_its_process_takes_no_other_fit_along():
    learner = FailsSometimes("die", n_columns=3)
    result = run(*with_three_levels(), learner=learner, methods=["loco"], splits=0.5, n_jobs=2)
    assert_valid(result)
    assert status(result, "kind")["loco"] == "failed: the learner's process died"
    assert set(result.table.loc[result.table["feature"] != "kind", "status"]) == {"ok"}


def test_an_object_with_fit_and_predict_is_enough():
    class Mean:
        def fit(self, X, y):
            self.mean = y.mean()
            return self

        def predict(self, X):
            return np.full((len(X), 1), self.mean)

    result = run(*plain(), learner=Mean())
    assert_valid(result)
    assert set(status(result, "c0").values()) == {"ok", "unused"}


def test_a_classifier_that_needs_a_regressor_says_so():
    X, y = plain()
    many = MultiOutputClassifier(LogisticRegression())
    assert "MultiOutputClassifier predicts classes" in refusal(X, y > 0, learner=many)


def test_what_a_classifier_is_made_of_gets_its_regressor_too():
    bag = BaggingClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=3)
    twin = for_target(bag, 0)
    assert repr(twin) == (
        "BaggingRegressor(estimator=DecisionTreeRegressor(max_depth=2), n_estimators=3)"
    )


@pytest.mark.parametrize("learner", [Ridge(), make_pipeline(StandardScaler(), Ridge())], ids=repr)
def test_a_regressor_whose_classifier_has_no_probabilities_predicts_shares(learner):
    X, y = plain()
    assert_valid(run(X, y > 0, learner=learner))


def test_an_estimator_from_a_hidden_module_needs_no_twin():
    class HiddenRegressor(FailsSometimes):
        pass

    HiddenRegressor.__module__ = "_hidden.elsewhere"
    assert for_target(HiddenRegressor(), 2).__class__ is HiddenRegressor


class Says(RegressorMixin, BaseEstimator):
    """Predicts the mean as something else."""

    def __init__(self, turn=None):
        self.turn = turn

    def fit(self, X, y):
        self.mean_ = y.mean()
        return self

    def predict(self, X):
        return self.turn(np.full(len(X), self.mean_))


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        (lambda means: means + 1j, "predicted complex numbers"),
        (lambda means: (means + 1j).astype(object), "predicted complex numbers"),
        (lambda means: means.astype("datetime64[D]"), "predicted values of type datetime64"),
        (lambda means: means.astype("timedelta64[s]"), "predicted values of type timedelta64"),
        (lambda means: np.ma.masked_array(means, means == means), "not finite"),
    ],
)
def test_a_learner_that_predicts_no_numbers_has_failed(turn, said):
    X, y = plain()
    assert said in refusal(X, 100 * y, learner=Says(turn), methods=["gcm"])
