"""Names and values that no one means to have: each gets an answer or one sentence."""

import csv
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import covaria
from covaria.errors import InputError
from covaria.tables.files import read_csv, read_table, write_csv
from covaria.tables.layout import natural

N = 40
HALF = "\ud800"  # half a character
DIGITS = "9" * 5000


def noise(n_columns=2):
    return np.random.default_rng(0).normal(size=(N, n_columns))


def a_frame(names, first=None):
    """Return a frame whose names pandas has not looked at."""
    frame = pd.DataFrame(noise(len(names))).astype(object)
    if first is not None:
        frame[0] = pd.Series(first, dtype=object)
    return frame.set_axis(pd.Index(names, dtype=object), axis=1)


def answer(X, y=None, folder=None, **options):
    """Return the result, after it was written in every way."""
    y = noise()[:, 0] if y is None else y
    found = covaria.assess(X, y, learner="linear", methods=["gcm"], **options)
    assert found.table["p_value"].notna().all()
    assert str(found)
    if folder is not None:
        found.to_json(folder / "result.json")
        assert covaria.Result.from_json(folder / "result.json").features == found.features
        write_csv(found.table, folder / "result.csv")
        assert len(read_csv(folder / "result.csv")) == len(found.table)
        covaria.write_report(found, folder / "page.html")
    return found


# --- long lines ---------------------------------------------------------------------------------


def test_a_line_longer_than_pythons_longest_cell_is_read(tmp_path):
    names = [f"a_column_with_a_long_name_{k:05d}" for k in range(7000)]
    lines = [",".join(names), *(",".join([str(k)] * 7000) for k in range(12))]
    (tmp_path / "wide.csv").write_text("\n".join(lines))
    usual = csv.field_size_limit()
    frame, _ = read_table(tmp_path / "wide.csv")
    assert list(frame.columns) == names
    assert len(frame) == 12
    assert csv.field_size_limit() == usual


def test_a_long_cell_is_read_and_an_open_quote_is_named(tmp_path):
    rows = "\n".join(f"{k},{k}" for k in range(12))
    (tmp_path / "long.csv").write_text(f'a,b\n"{"x" * 200_000}",1\n{rows}')
    assert len(read_table(tmp_path / "long.csv")[0]) == 13
    (tmp_path / "name.csv").write_text(f'"{"x" * 200_000}",b\n{rows}')
    assert len(read_table(tmp_path / "name.csv")[0].columns[0]) == 200_000
    (tmp_path / "open.csv").write_text('a,b\n"x,1\n' + "q,2\n" * 50_000)
    with pytest.raises(InputError, match="EOF inside string"):
        read_table(tmp_path / "open.csv")


# --- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "table",
    [
        lambda big: pa.table({"big": pa.array(big), "x": noise()[:, 1]}),
        lambda big: pd.DataFrame(
            {"big": pd.array(big, dtype="int64[pyarrow]"), "x": noise()[:, 1]}
        ),
        lambda big: pa.table({"big": pa.array(big, pa.uint64()), "x": noise()[:, 1]}),
    ],
)
def test_whole_numbers_of_arrow_beyond_those_a_float_holds_are_rounded(table):
    big = 2**53 + 1 + 10**12 * np.arange(N)
    expected = answer({"big": big.astype(float), "x": noise()[:, 1]})
    pd.testing.assert_frame_equal(answer(table(big)).table, expected.table)


def test_gaps_among_large_whole_numbers_of_arrow_stay_gaps():
    big = [None, *(2**53 + 1 + 10**12 * np.arange(1, N)).tolist()]
    found = answer(pa.table({"big": pa.array(big), "x": noise()[:, 1]}))
    assert any("missing in 2%" in note for note in found.alerts)


def test_numbers_of_thousands_of_digits_sort_as_numbers_do():
    names = [f"x{DIGITS}", f"x{DIGITS}0", "x10", "x2", "x010", "x02"]
    assert sorted(names, key=natural) == ["x02", "x2", "x010", "x10", names[0], names[1]]


def test_a_name_of_thousands_of_digits_is_a_name(tmp_path):
    found = answer(pd.DataFrame(noise(), columns=[f"x{DIGITS}", "b"]), folder=tmp_path)
    assert found.features == [f"x{DIGITS}", "b"]


def test_a_whole_number_of_thousands_of_digits_is_a_name_or_a_level(tmp_path):
    huge = 10**5000
    assert answer({huge: noise()[:, 0], "b": noise()[:, 1]}, folder=tmp_path).features[1] == "b"
    assert answer({"a": [huge, "u"] * (N // 2), "b": noise()[:, 1]}).features == ["a", "b"]


# --- missing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [pd.NA, pd.NaT, np.nan, None])
def test_a_target_whose_name_is_missing_is_called_y(name):
    assert answer(noise(), pd.Series(noise()[:, 0], name=name)).about["target"] == "y"


# --- text ---------------------------------------------------------------------------------------


def test_half_a_character_in_a_name_is_shown_as_its_code(tmp_path):
    found = answer(a_frame(["a" + HALF, "b"]), folder=tmp_path)
    assert found.features == ["a\\ud800", "b"]
    named = answer(a_frame(["a" + HALF, "b"]), "a" + HALF, folder=tmp_path)
    assert named.about["target"] == "a\\ud800"
    group = answer(a_frame(["a" + HALF, "b"]), groups={"g" + HALF: ["a" + HALF]}, folder=tmp_path)
    assert group.features == ["g\\ud800", "b"]
    target = pd.Series(noise()[:, 0], name="y" + HALF)
    assert answer(noise(), target, folder=tmp_path).about["target"] == "y\\ud800"


def test_half_a_character_in_a_level_is_shown_as_its_code(tmp_path):
    levels = ["u" + HALF, "v"] * (N // 2)
    answer(a_frame(["a", "b"], first=levels), folder=tmp_path)
    found = answer(noise(), pd.Series(levels, dtype=object), folder=tmp_path)
    assert "u\\ud800" in found.about["classes"]


@pytest.mark.parametrize("of", ["a name", "a level", "an array", "the target", "clusters"])
def test_half_a_character_that_pandas_refuses_is_said(of):
    half, levels = noise()[:, 0], ["u" + HALF, "v"] * (N // 2)
    tries = {
        "a name": lambda: answer({"a" + HALF: half, "b": half**2}),
        "a level": lambda: answer({"a": levels, "b": half}),
        "an array": lambda: answer(np.array([levels, levels], dtype=object).T),
        "the target": lambda: answer(noise(), levels),
        "clusters": lambda: answer(noise(), clusters=[f"{k // 4}{HALF}" for k in range(N)]),
    }
    try:
        tries[of]()  # a pandas whose text is not Arrow's takes it
    except InputError as error:
        assert "half a character" in str(error)  # noqa: PT017


def test_a_file_whose_name_is_not_utf_8_is_no_trouble(tmp_path):
    table = os.path.join(os.fsencode(tmp_path), b"caf\xe9.csv")
    with open(table, "wb") as file:
        file.write(b"a,y\n" + b"".join(b"%d,%d\n" % (k * 7 % 11, k * 3 % 17) for k in range(30)))
    command = [sys.executable, "-m", "covaria", "assess", table, "-t", "y", "-l", "linear"]
    done = subprocess.run([*command, "--out", tmp_path / "out"], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert covaria.Result.from_json(tmp_path / "out" / "results.json").about["source"]


# --- blank names --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pandas", "arrow", "polars"])
def test_columns_without_names_are_called_by_their_places(kind):
    columns = [pa.array(column) for column in noise(3).T]
    X = {
        "pandas": pd.DataFrame(noise(3), columns=["", "", "b"]),
        "arrow": pa.Table.from_arrays(columns, names=["", "", "b"]),
        "polars": pl.DataFrame(dict(zip(["", " ", "b"], noise(3).T, strict=True))),
    }[kind]
    assert answer(X).features == ["(column 1)", "(column 2)", "b"]


# --- others -------------------------------------------------------------------------------------


class Mute:
    """An object that has no text and cannot be compared."""

    def __str__(self):
        raise RuntimeError("no")

    def __eq__(self, other):
        raise RuntimeError("no")

    __repr__ = __str__
    __hash__ = object.__hash__


def test_an_object_that_has_no_text_is_called_by_its_kind():
    assert answer({Mute(): noise()[:, 0], "b": noise()[:, 1]}).features == ["Mute", "b"]
    found = answer({"a": [Mute() for _ in range(N)], "b": noise()[:, 1]})
    assert found.table["status"].tolist() == ["constant", "ok"]


def test_dates_of_two_thousand_years_are_days():
    days = np.arange(N) * np.timedelta64(20_000, "D") + np.datetime64("0001-01-01")
    expected = answer({"a": np.arange(N) * 20_000.0, "b": noise()[:, 1]})
    found = answer(pa.table({"a": pa.array(days), "b": noise()[:, 1]}))
    np.testing.assert_allclose(found.table["p_value"], expected.table["p_value"], rtol=1e-6)


def test_whole_numbers_that_name_columns_are_their_names():
    X = {1: noise()[:, 0], 2: noise()[:, 1]}
    assert answer(X).features == ["1", "2"]
    assert answer(X, groups={3: [1, 2]}).features == ["3"]
    assert answer(X, "1").features == ["2"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"methods": "knockoffs(repeats=99999999999)"}, "repeats=99999999999 is too many"),
        ({"methods": "knockoffs(fdr=1e-320)"}, "fdr=1e-320 selects nothing"),
        ({"learner": "network(hidden=(99999999999,))"}, "hidden=(99999999999,)"),
        ({"learner": "network(hidden=(1000000, 1000000))"}, "would fill the memory"),
        ({"learner": f"network(hidden={[5] * 100_000})"}, "would fill the memory"),
        ({"learner": "boosting(trees=99999999999)"}, "trees=99999999999) is too many"),
        ({"learner": "kernel(C=1e400)"}, "C=inf"),
        ({"learner": "splines(df=[-1, 2])"}, "must be numbers, 0 or more"),
        ({"learner": f"linear(ridge={'-' * 100_000}1)"}, "cannot be read"),
        ({"methods": f"knockoffs(fdr={'[' * 100_000})"}, "cannot be read"),
        ({"learner": "x" * 100_000}, "There is no learner 'xxx"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_setting_that_would_fill_the_memory_is_refused_in_a_sentence(options, said):
    with pytest.raises(InputError) as caught:
        covaria.assess(noise(), noise()[:, 0], **{"learner": "linear", "methods": "gcm", **options})
    assert said in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.filterwarnings("error")
def test_a_band_of_the_kernel_wider_than_a_small_float_holds_fits_the_mean():
    wide = [f"kernel(epsilon={epsilon})" for epsilon in (1e30, 1e99)]
    once, again = (covaria.assess(noise(), noise()[:, 1], learner=w, methods="gcm") for w in wide)
    pd.testing.assert_frame_equal(once.table, again.table)


def a_result():
    return covaria.assess(noise(), noise()[:, 0], learner="linear", methods="gcm,loco")


REFUSED = {
    "rows that fill the memory": (lambda: covaria.draw("linear", n_rows=10**9), "is too many"),
    "a report to nowhere": (lambda: covaria.write_report(a_result(), None), "path=None must be"),
    "a title of bytes": (lambda: covaria.write_report(a_result(), "p", title=b"x"), "title=b'x'"),
    "a title of numbers": (
        lambda: covaria.write_report(a_result(), "p", title=np.array([1, 2])),
        "must be a text",
    ),
    "a study that is a number": (lambda: covaria.run_study(3), "study=3 must be the name of"),
    "results read from bytes": (lambda: covaria.Result.from_json(b"x"), "path=b'x' must be"),
    "an efficiency of nothing": (lambda: covaria.efficiency(None), "result=None must be what"),
    "scores that are none": (lambda: covaria.relative_variability(None), "scores=None must be"),
    "no scores": (lambda: covaria.relative_variability(np.array([])), "must be an array"),
    "scores of other features": (
        lambda: covaria.relative_efficiency(noise(2), noise(3)),
        "the same features",
    ),
    "a mode that is neither": (
        lambda: covaria.StabilitySelector(paper=pd.NA).fit(noise(), noise()[:, 0]),
        "paper=<NA> must be True or False",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_file_text_or_result_is_refused_in_a_sentence(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    act, said = REFUSED[case]
    with pytest.raises(InputError) as caught:
        act()
    assert said in str(caught.value)
    assert list(tmp_path.iterdir()) == []
