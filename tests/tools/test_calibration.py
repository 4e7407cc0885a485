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


@pytest.mark.parametrize("learner", ["linear", "auto"])
def test_x_is_tested_alone_as_it_is_beside_others(tool, learner):
    X, y = tool.effect_of(80, np.random.default_rng(0), slope=0.2)
    job = tool.prepare(X, y, learner=learner, methods=["gcm", "loco"], seed=0, check=False)
    tables = (one.run().table for one in (job, tool.only_x(job)))
    beside, alone = (table[table["feature"] == "x"]["p_value"].to_list() for table in tables)
    assert alone == pytest.approx(beside)
