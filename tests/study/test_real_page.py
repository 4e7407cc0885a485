"""The page about the real tables."""

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

from residua.errors import InputError
from residua.study import real_page

ROOT = Path(__file__).parents[2]


def test_the_page_is_the_one_its_tables_make():
    page = (ROOT / "docs" / "real_data.md").read_text(encoding="utf-8")
    assert page == real_page.page(ROOT / "results" / "real")


def test_a_missing_table_says_how_to_make_it(tmp_path):
    (tmp_path / "about.json").write_text("{}")
    with pytest.raises(InputError, match=r"tools/real_data.py"):
        real_page.page(tmp_path)


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Return tools/real_data.py, writing to a folder of this test."""
    spec = importlib.util.spec_from_file_location("real_data", ROOT / "tools" / "real_data.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    return module


def test_new_rows_replace_those_of_the_same_data_and_learner_only(tool, tmp_path):
    rows = pd.DataFrame({"data": "boston", "learner": ["lm", "NN"], "error": [1.0, 2.0]})
    tool._keep("errors", rows)
    tool._keep("errors", rows.iloc[:1].assign(error=3.0))
    tool._keep("errors", rows.assign(data="wine_red"))
    tool._keep("errors", rows.iloc[:0])  # nothing to say replaces nothing
    kept = pd.read_csv(tmp_path / "errors.csv")
    assert kept["data"].tolist() == ["wine_red"] * 2 + ["boston"] * 2  # as in the paper
    assert kept["error"].tolist() == [1.0, 2.0, 3.0, 2.0]
