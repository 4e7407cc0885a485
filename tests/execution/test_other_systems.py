"""What macOS and Windows do otherwise: no fork, paths without case, names that may not be."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.linear_model import Ridge

import covaria

ROOT = Path(__file__).parents[2]
# Names of devices on Windows, whatever their ending.
RESERVED = {"con", "prn", "aux", "nul", *(f"com{i}" for i in range(10))}
TREE = [
    path.relative_to(ROOT)
    for top in ("src", "tests", "tools", "docs", "results", "benchmarks", ".github")
    for path in (ROOT / top).rglob("*")
    if not {"__pycache__", "_build", "gallery"} & set(path.parts)
]
WITHOUT_FORK = """
import json, multiprocessing, os
from sklearn.linear_model import Ridge
import covaria

def no_fork():
    raise OSError("there is no fork here")

if __name__ == "__main__":
    multiprocessing.set_start_method("spawn", force=True)
    os.fork = no_fork
    X, y = covaria.draw("linear", n_rows=80, seed=0)
    result = covaria.assess(X, y, learner=Ridge(), methods="gcm", n_jobs=2, progress=False)
    print(json.dumps(result.table["p_value"].tolist()))
"""


def test_processes_are_spawned_where_nothing_can_fork(tmp_path):
    script = tmp_path / "a script.py"
    script.write_text(WITHOUT_FORK, encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    X, y = covaria.draw("linear", n_rows=80, seed=0)
    here = covaria.assess(X, y, learner=Ridge(), methods="gcm", progress=False)
    assert json.loads(done.stdout) == here.table["p_value"].tolist()


def test_no_two_files_of_the_tree_differ_by_case_alone():
    folded = [str(path).casefold() for path in TREE]
    assert len(folded) > 400
    assert len(set(folded)) == len(folded)


def test_every_file_of_the_tree_can_be_named_on_windows():
    for path in TREE:
        assert not set('<>:"|?*\\') & set(path.name), path
        assert path.name[-1] not in ". ", path
        assert path.stem.casefold() not in RESERVED, path
        assert len(str(path)) < 150, path


@pytest.mark.parametrize("name", ["Result.json", "RESULT.JSON", "result.Json"])
def test_an_ending_is_known_in_any_case(name, tmp_path):
    X, y = covaria.draw("linear", n_rows=60, seed=0)
    result = covaria.assess(X, y, learner="linear", methods="gcm", check=False)
    result.to_json(tmp_path / name)
    assert covaria.Result.from_json(tmp_path / name) == result


def test_a_picture_is_written_by_its_ending_in_any_case(tmp_path):
    from covaria import plots

    X, y = covaria.draw("linear", n_rows=60, seed=0)
    axes = plots.forest(covaria.assess(X, y, learner="linear", methods="gcm", check=False))
    plots.save(axes, tmp_path / "Forest.SVG")
    assert (tmp_path / "Forest.SVG").read_text(encoding="utf-8").startswith("<?xml")
