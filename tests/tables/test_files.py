"""A file in any dialect gives the same table, or one sentence that names it and the cure."""

from __future__ import annotations

import importlib.util
import re

import numpy as np
import pandas as pd
import pytest

from covaria.errors import InputError, MissingExtra
from covaria.tables.files import read_table

TABLE = pd.DataFrame({"height": [1.5, 2.25, 3.0], "count": [1, 2, 3], "kind": ["a", "b", "a"]})
PLAIN = TABLE.to_csv(index=False)


def written(folder, content, name="table.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


def refusal(path):
    """Return the one sentence with which a file is refused."""
    with pytest.raises(InputError) as caught:
        read_table(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert message.endswith(".")
    return message


DIALECTS = {
    "comma": PLAIN,
    "semicolon": TABLE.to_csv(index=False, sep=";"),
    "tab": TABLE.to_csv(index=False, sep="\t"),
    "pipe": TABLE.to_csv(index=False, sep="|"),
    "decimal comma after semicolons": TABLE.to_csv(index=False, sep=";", decimal=","),
    "decimal comma after tabs": TABLE.to_csv(index=False, sep="\t", decimal=","),
    "Windows line ends": PLAIN.replace("\n", "\r\n"),
    "old Macintosh line ends": PLAIN.replace("\n", "\r"),
    "UTF-8 with a mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "UTF-16, little end first": b"\xff\xfe" + PLAIN.encode("utf-16-le"),
    "UTF-16, big end first": b"\xfe\xff" + PLAIN.encode("utf-16-be"),
    "blank lines": "\n \n" + PLAIN.replace("\n", "\n\n") + "\n\n",
    "no last line end": PLAIN.rstrip(),
    "spaces after separators": PLAIN.replace(",", ", "),
    "everything quoted": TABLE.to_csv(index=False, quoting=1),
    "row numbers without a name": TABLE.to_csv(),
    "row numbers from 1": TABLE.set_axis([1, 2, 3]).to_csv(),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_gives_the_same_table(dialect, tmp_path):
    frame, _ = read_table(written(tmp_path, DIALECTS[dialect]))
    pd.testing.assert_frame_equal(frame, TABLE, check_dtype=False)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".txt", ".data", ".CSV"])
def test_the_ending_does_not_decide_the_dialect(ending, tmp_path):
    frame, _ = read_table(written(tmp_path, TABLE.to_csv(index=False, sep="\t"), f"t{ending}"))
    assert list(frame.columns) == list(TABLE.columns)


@pytest.mark.parametrize(
    ("dialect", "said"),
    [
        ("semicolon", "separated by ';'"),
        ("decimal comma after semicolons", "decimal commas"),
        ("UTF-16, big end first", "UTF-16"),
        ("row numbers without a name", "counts rows"),
    ],
)
def test_what_was_guessed_is_said(dialect, said, tmp_path):
    _, notes = read_table(written(tmp_path, DIALECTS[dialect]))
    assert any(said in note for note in notes)


def test_a_plain_file_needs_no_remark(tmp_path):
    assert read_table(written(tmp_path, PLAIN))[1] == []


def test_latin_1_keeps_its_accents_and_says_so(tmp_path):
    frame, notes = read_table(written(tmp_path, "größe,é\n1,2\n3,4\n", encoding="latin-1"))
    assert list(frame.columns) == ["größe", "é"]
    assert any("Latin-1" in note for note in notes)


def test_quotes_hold_separators_newlines_and_quotes(tmp_path):
    text = '"a,b","c\nd",e\n1,"x, ""y""",2\n3,"p\nq",4\n'
    frame, _ = read_table(written(tmp_path, text))
    assert list(frame.columns) == ["a,b", "c\nd", "e"]
    assert frame["c\nd"].tolist() == ['x, "y"', "p\nq"]


def test_a_column_without_a_name_is_called_by_its_place(tmp_path):
    frame, _ = read_table(written(tmp_path, "a,,b\n1,2,3\n4,5,6\n"))
    assert list(frame.columns) == ["a", "(column 2)", "b"]


def test_an_unnamed_first_column_that_does_not_count_rows_stays(tmp_path):
    frame, _ = read_table(written(tmp_path, ",a\n7,1\n9,2\n"))
    assert list(frame.columns) == ["(column 1)", "a"]


def test_names_that_pandas_would_change_stay_as_they_are(tmp_path):
    frame, _ = read_table(written(tmp_path, "a,a.1,1\n1,2,3\n"))
    assert list(frame.columns) == ["a", "a.1", "1"]


def test_one_column_is_a_table(tmp_path):
    frame, _ = read_table(written(tmp_path, "a\n1\n2\n"))
    assert frame["a"].tolist() == [1, 2]


def test_short_rows_have_gaps(tmp_path):
    frame, _ = read_table(written(tmp_path, "a,b\n1,2\n3\n"))
    assert np.isnan(frame["b"][1])


def test_dates_are_read_as_dates_and_gaps_stay(tmp_path):
    frame, notes = read_table(written(tmp_path, "day,a\n2024-01-31,1\n,2\n2024-02-01 12:00,3\n"))
    days = (frame["day"] - frame["day"][0]).dt.total_seconds() / 86_400
    assert days.iloc[[0, 2]].tolist() == [0.0, 1.5]
    assert frame["day"].isna().tolist() == [False, True, False]
    assert any("'day' holds dates" in note for note in notes)


@pytest.mark.parametrize("cell", ["2024-13-45", "soon", "2024-01-31x"])
def test_what_only_begins_like_dates_stays_text(cell, tmp_path):
    frame, notes = read_table(written(tmp_path, f"day,a\n2024-01-31,1\n{cell},2\n"))
    assert frame["day"].tolist() == ["2024-01-31", cell]
    assert notes == []


REFUSED = {
    "an empty file": (b"", "is empty"),
    "only blank lines": (b"\n \n\n", "is empty"),
    "only a byte-order mark": (b"\xef\xbb\xbf", "is empty"),
    "a header and no rows": (b"a,b\n", "no rows"),
    "NUL bytes": (b"a,b\n1,\x002\n", "NUL"),
    "UTF-16 without a mark": (PLAIN.encode("utf-16-le"), "NUL"),
    "UTF-32": (PLAIN.encode("utf-32"), "NUL"),
    "a picture": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "NUL"),
    "a row that is too long": (b"a,b\n1,2\n1,2,3\n", "line 3"),
    "row names without a name": (b"a,b\nr1,1,2\nr2,3,4\n", "Name every column"),
    "a separator at every end": (b"a,b\n1,2,\n3,4,\n", "Name every column"),
    "the same name twice": (b"a,b,a\n1,2,3\n", "'a'"),
    "an open quote": (b'a,b\n1,"2\n3,4\n', "cannot be read"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_file_that_is_no_table_is_refused_in_a_sentence(kind, tmp_path):
    content, said = REFUSED[kind]
    assert said in refusal(written(tmp_path, content))


def test_a_folder_is_not_a_table(tmp_path):
    assert "is a folder" in refusal(tmp_path)


def test_a_missing_file_is_named(tmp_path):
    assert "There is no file" in refusal(tmp_path / "nowhere.csv")


def test_an_impossible_path_is_refused(tmp_path):
    assert "Check the path" in refusal(tmp_path / ("x" * 1000 + ".csv"))


@pytest.mark.parametrize("name", ["table.xlsx", "table", "table.csv.gz"])
def test_an_unknown_ending_says_which_are_known(name, tmp_path):
    assert ".csv" in refusal(written(tmp_path, PLAIN, name))


# --- Parquet ------------------------------------------------------------------------------------


def without(*hidden):
    """Return a `find_spec` that does not find these packages."""
    find_spec = importlib.util.find_spec
    return lambda name, *rest: None if name in hidden else find_spec(name, *rest)


@pytest.mark.parametrize("ending", [".parquet", ".pq"])
def test_parquet_is_read_with_pyarrow(ending, tmp_path):
    path = tmp_path / f"table{ending}"
    TABLE.to_parquet(path)
    pd.testing.assert_frame_equal(read_table(path)[0], TABLE, check_dtype=False)


def test_parquet_is_read_with_polars_where_pyarrow_is_not_there(tmp_path, monkeypatch):
    path = tmp_path / "table.parquet"
    TABLE.to_parquet(path)
    monkeypatch.setattr(importlib.util, "find_spec", without("pyarrow"))
    frame, _ = read_table(path)
    assert type(frame).__module__.startswith("polars")
    assert frame["height"].to_list() == TABLE["height"].tolist()


def test_parquet_without_a_reader_says_what_to_install(tmp_path, monkeypatch):
    path = written(tmp_path, b"PAR1", "table.parquet")
    monkeypatch.setattr(importlib.util, "find_spec", without("pyarrow", "polars"))
    with pytest.raises(MissingExtra, match=re.escape("covaria[parquet]")):
        read_table(path)


@pytest.mark.parametrize("hidden", [(), ("pyarrow",)])
@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"PAR1" + bytes(50) + b"PAR1"])
def test_a_broken_parquet_file_is_refused(content, hidden, tmp_path, monkeypatch):
    path = written(tmp_path, content, "table.parquet")
    monkeypatch.setattr(importlib.util, "find_spec", without(*hidden))
    assert "Parquet" in refusal(path)


def test_an_empty_parquet_file_is_refused(tmp_path):
    assert "is empty" in refusal(written(tmp_path, b"", "table.parquet"))
