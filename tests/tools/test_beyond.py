"""docs/beyond.md: figure and table are those of the stored runs."""

import importlib.util
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("beyond", ROOT / "tools/beyond.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_figure_is_drawn_from_the_stored_runs(tool, tmp_path):
    pytest.importorskip("matplotlib")
    drawn = tool.draw(pd.read_csv(tool.STORE), tmp_path / "again.svg").read_text(encoding="utf-8")
    assert drawn == tool.PICTURE.read_text(encoding="utf-8")


def test_the_page_has_the_table_of_the_stored_runs(tool):
    page = (ROOT / "docs/beyond.md").read_text(encoding="utf-8")
    assert tool.as_markdown(pd.read_csv(tool.STORE)) in page


def test_a_draw_counts_what_each_method_found(tool):
    pytest.importorskip("torch")
    rows = pd.DataFrame(tool.one_draw("linear", 0, "network(hidden=4, epochs=3)"))
    assert list(rows["method"]) == list(tool.TESTED)
    assert (rows["useful"] == 8).all()
    assert (rows["useless"] == 12).all()
    assert (rows["found"] <= 8).all()
    assert dict(zip(rows["method"], rows["models"], strict=True))["lazy_gcm"] == 2 * tool.N_FOLDS
