"""The page about the real tables."""

from pathlib import Path

import pandas as pd
import pytest

from covaria.errors import InputError
from covaria.paper import real_page
from covaria.paper import statements as real_items

ROOT = Path(__file__).parents[2]


def test_the_page_is_the_one_its_tables_make():
    page = (ROOT / "docs" / "real_data.md").read_text(encoding="utf-8")
    assert page == real_page.page(ROOT / "results" / "real")


def test_a_missing_table_says_how_to_make_it(tmp_path):
    (tmp_path / "about.json").write_text("{}")
    with pytest.raises(InputError, match=r"tools/real_data.py"):
        real_page.page(tmp_path)


def test_new_rows_replace_those_of_the_same_data_and_learner_only(tmp_path):
    rows = pd.DataFrame({"data": "boston", "learner": ["lm", "NN"], "error": [1.0, 2.0]})
    for new in (
        rows,
        rows.iloc[:1].assign(error=3.0),
        rows.assign(data="wine_red"),
        rows.iloc[:0],  # nothing to say replaces nothing
    ):
        real_items.keep(tmp_path / "errors.csv", new)
    kept = pd.read_csv(tmp_path / "errors.csv")
    assert kept["data"].tolist() == ["wine_red"] * 2 + ["boston"] * 2  # as in the paper
    assert kept["error"].tolist() == [1.0, 2.0, 3.0, 2.0]
