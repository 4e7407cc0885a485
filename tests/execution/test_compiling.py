"""Without numba, or where it may write nowhere, there is an answer and one notice."""

import importlib.util
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from covaria import assess
from covaria.cli.app import app
from covaria.execution import compiling


@pytest.fixture
def read_only(monkeypatch):
    """Let numba find no folder, as where both the install and the home are read-only."""
    monkeypatch.setattr("numba.core.config.CACHE_LOCATOR_CLASSES", "IPythonCacheLocator")
    compiling._has_folder.cache_clear()
    yield
    compiling._has_folder.cache_clear()


def test_where_numba_can_write_nowhere_functions_are_compiled_in_memory(read_only):
    def twice(number):
        return 2 * number

    assert compiling.compiled(twice)(21) == 42
    assert not compiling.keeps_on_disk()


def a_module(folder):
    """Return a module of one function, in a folder of its own for numba to write in."""
    (folder / "thrice.py").write_text("def thrice(number):\n    return 3 * number\n")
    spec = importlib.util.spec_from_file_location("thrice", folder / "thrice.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_where_the_disk_is_full_functions_are_compiled_in_memory(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile._save_data", full)
    monkeypatch.setattr(compiling, "_unkept", [])
    thrice = compiling.compiled(a_module(tmp_path).thrice)
    assert thrice(2) == 6
    assert thrice(0.5) == 1.5
    assert not compiling.keeps_on_disk()
    (note,) = compiling.numba_notes()
    assert "No space left on device" in note
    assert "NUMBA_CACHE_DIR" in note


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_compiled_code_whose_file_was_cut_short_is_compiled_anew(tmp_path, ending, monkeypatch):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", "")
    module = a_module(tmp_path)
    assert compiling.compiled(module.thrice)(2) == 6
    (kept,) = (tmp_path / "__pycache__").glob(f"*.{ending}")
    kept.write_bytes(kept.read_bytes()[:9])
    assert compiling.compiled(module.thrice)(2) == 6


@pytest.mark.parametrize(("learner", "said"), [("forest(trees=2)", True), ("linear", False)])
def test_a_cache_that_cannot_be_written_is_said_once(small_data, monkeypatch, learner, said):
    monkeypatch.setattr(compiling, "keeps_on_disk", lambda: False)
    alerts = assess(*small_data, learner=learner, methods="gcm").alerts
    assert sum("NUMBA_CACHE_DIR" in alert for alert in alerts) == said


def test_doctor_says_that_the_cache_cannot_be_written(read_only):
    found = CliRunner().invoke(app, ["doctor"])
    assert "nowhere to write" in found.stdout
    assert "NUMBA_CACHE_DIR" in found.stdout


def test_doctor_says_that_numba_cannot_be_loaded(monkeypatch):
    monkeypatch.setattr(compiling, "_missing", lambda: "numba cannot be loaded (no)")
    assert "cannot be loaded" in CliRunner().invoke(app, ["doctor"]).stdout


@pytest.mark.parametrize(
    ("numba", "said"),
    [
        ("raise ModuleNotFoundError", "numba is not installed"),
        ("raise ImportError('Numba needs NumPy 1.0')", "Numba needs NumPy 1.0"),
        ("raise OSError('no such library')", "no such library"),
    ],
)
def test_the_default_learner_does_without_numba(tmp_path, numba, said):
    (tmp_path / "numba.py").write_text(numba)
    code = (
        "import numpy as np, covaria\n"
        "rng = np.random.default_rng(0)\n"
        "X = rng.normal(size=(30, 2))\n"
        "found = covaria.assess(X, X[:, 0] + rng.normal(size=30), methods='gcm', splits=2)\n"
        "print(found.table['p_value'].notna().all(), found.alerts)\n"
    )
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    env = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("True"), done.stderr
    assert said in done.stdout
