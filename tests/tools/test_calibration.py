"""The tool behind docs/calibration.md."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tool(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("calibration", ROOT / "tools/calibration.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "STORE", tmp_path / "calibration.csv")
    monkeypatch.setattr(module, "PAGE", tmp_path / "calibration.md")
    module.PAGE.write_text("# Head\n", encoding="utf-8")
    return module


def test_an_interrupted_measurement_goes_on_and_writes_its_page_again(tool, monkeypatch):
    for runs in ("1", "2", "2"):
        arguments = ["calibration.py", "--only", "clusters,linear", "--runs", runs]
        monkeypatch.setattr(sys, "argv", arguments)
        tool.main()
    assert len(tool.STORE.read_text().splitlines()) == 1 + 2 * 4 * len(tool.METHODS)
    page = tool.PAGE.read_text(encoding="utf-8")
    assert page.startswith("# Head\n")
    assert page.count("Few clusters") == 1
    assert "2 (smoke test)" in page


def test_the_true_effects_are_those_of_many_rows(tool):
    X, y = tool.effect_of(200_000, np.random.default_rng(0), slope=0.5)
    rest = np.column_stack([np.ones(len(y)), X[["a", "b", "c"]]])

    def left(target):
        return target - rest @ np.linalg.lstsq(rest, target, rcond=None)[0]

    x, e = left(X["x"].to_numpy()), left(y)
    truth = tool.true_effects(0.5)
    assert np.corrcoef(x, e)[0, 1] == pytest.approx(truth["gcm"], abs=0.01)
    gained = (e @ e - (e - x * (x @ e) / (x @ x)) @ (e - x * (x @ e) / (x @ x))) / len(y)
    assert gained / y.var() == pytest.approx(truth["loco"], abs=0.01)


def test_every_cell_draws_a_table_with_the_feature_x(tool):
    for _, name, n, _, table, settings in tool.cells():
        X, y = table(n, np.random.default_rng(1), **settings)
        assert "x" in X, name
        assert len(X) == len(y) == n


@pytest.mark.parametrize(
    ("part", "draw", "settings", "learner"),
    [
        ("intervals", "effect_of", {"slope": 0.2}, "linear"),
        ("intervals", "effect_of", {"slope": 0.2}, "auto"),
        ("levels", "many_levels", {"levels": 30, "zipf": True}, "linear"),
    ],
)
def test_x_is_tested_alone_as_it_is_beside_others(tool, part, draw, settings, learner):
    cell = (part, "some", 90, learner, getattr(tool, draw), settings)
    X, y = cell[4](90, np.random.default_rng([0, 90, *b"some"]), **settings)
    methods = tool.asked(part)
    table = tool.covaria.assess(X, y, learner=learner, methods=methods, seed=0, check=False).table
    beside = table[table["feature"] == "x"]["p_value"].to_list()
    assert tool.answers(cell, 0, methods)["p_value"].to_list() == pytest.approx(beside)


def test_runs_can_begin_at_other_seeds_and_cells_be_named(tool, monkeypatch):
    arguments = ["calibration.py", "--first", "70", "--runs", "1", "--cells", "^15 clusters"]
    for more in (["--runs", "2", "--methods", "gcm"], []):
        monkeypatch.setattr(sys, "argv", arguments + more)
        tool.main()
    rows = [row.split(",")[1:6] for row in tool.STORE.read_text().splitlines()[1:]]
    assert rows == [["15 clusters", "300", "linear", run, "gcm"] for run in ("70", "71")]


def test_a_method_measured_less_often_says_so(tool):
    assert tool._rate([0.0] * 50, 100) == ".000 ± .010 of 50"
    assert tool._rate([0.0] * 50 + [1.0] * 50, 100) == ".500 ± .050"
