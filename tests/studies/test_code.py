"""Python that a study names or its store holds runs only where the user says so."""

import json
import sys

import pytest

import covaria
from covaria.cli import app as cli
from covaria.errors import InputError
from covaria.studies.runner import resume_study
from covaria.studies.store import readable
from tiny_study import changed, exported

HARMLESS = """import covaria

def bent(power=2):
    return covaria.Model([lambda x: x**power, lambda x: 0 * x], noise=1.0)
"""
STUDY = """
repeats = 2
splits = 2
methods = ["gcm"]
learner = ["linear"]
[[scenario]]
name = "bent"
{}
n_rows = 40
"""


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["covaria", "study", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        return left.value.code or 0, capsys.readouterr().err

    return run


@pytest.fixture
def marked(tmp_path):
    """Return a Python text that leaves a file where it is run, and that file."""
    mark = tmp_path / "it ran"
    return f"open({str(mark)!r}, 'w').close()\n{HARMLESS}", mark


@pytest.fixture
def untrusted(tmp_path, marked):
    """Return a store whose Python was changed by someone, one task left to do."""
    (tmp_path / "models.py").write_text(HARMLESS)
    (tmp_path / "study.toml").write_text(STUDY.format('file = "models.py"'))
    store = tmp_path / "study.sqlite"
    covaria.run_study(
        tmp_path / "study.toml", store=store, code=str(tmp_path / "models.py"), first=1
    )
    with readable(store) as opened:
        identity = opened.identity
    identity["grid"]["scenario"][0]["source"] = marked[0]
    changed(store, ("UPDATE study SET value = ? WHERE name = 'identity'", [json.dumps(identity)]))
    return store


def test_resume_runs_no_python_of_a_store_that_nobody_trusts(command, untrusted, marked):
    code, err = command("resume", "--store", untrusted)
    assert code == 2
    assert err.count("\n") == 1
    assert "--code models.py" in err
    assert "--trust" in err
    with pytest.raises(InputError, match="would run Python that this study holds"):
        resume_study(untrusted)
    assert not marked[1].exists()


def test_a_file_that_is_not_the_one_of_the_store_is_refused_with_the_difference(
    command, untrusted, marked
):
    code, err = command("resume", "--store", untrusted, "--code", "models.py")
    assert (code, err.count("\n")) == (2, 1)
    assert "models.py is not what the study was begun with: line 1 was" in err
    assert "open(" in err
    assert not marked[1].exists()


@pytest.mark.parametrize("way", [("--trust",), ("--code", "models.py")])
def test_what_the_user_allows_is_run(command, tmp_path, way):
    (tmp_path / "models.py").write_text(HARMLESS)
    (tmp_path / "study.toml").write_text(STUDY.format('file = "models.py"'))
    code, err = command("run", "study.toml", "--quiet", *way)
    assert code == 0, err
    whole = exported("study.sqlite")
    covaria.run_study("study.toml", store="half.sqlite", first=1, trust=True)
    code, err = command("resume", "--store", "half.sqlite", "--quiet", *way)
    assert code == 0, err
    assert exported("half.sqlite") == whole


@pytest.mark.parametrize("how", ["file", "source", "source in a dictionary"])
def test_a_study_file_runs_no_python_that_was_not_named(command, tmp_path, marked, how):
    text, mark = marked
    (tmp_path / "models.py").write_text(text)
    inside = json.dumps(text)
    line = 'file = "models.py"' if how == "file" else f"source = {inside}"
    (tmp_path / "study.toml").write_text(STUDY.format(line))
    if how == "source in a dictionary":
        scenario = {"name": "bent", "source": text, "n_rows": 40}
        with pytest.raises(InputError, match="would run Python"):
            covaria.run_study({"scenario": [scenario], "learner": ["linear"]}, store="s.sqlite")
    else:
        code, err = command("run", "study.toml")
        assert (code, err.count("\n")) == (2, 1)
        assert "allow it with --code" in err
    assert not mark.exists()


def test_another_file_of_the_same_name_is_not_the_one_that_was_named(command, tmp_path, marked):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "models.py").write_text(HARMLESS)
    (tmp_path / "models.py").write_text(marked[0])
    (tmp_path / "study.toml").write_text(STUDY.format('file = "models.py"'))
    code, err = command("run", "study.toml", "--code", "mine/models.py")
    assert (code, err.count("\n")) == (2, 1)
    assert not marked[1].exists()


@pytest.mark.parametrize(
    "settings", ["trust = true", "[study.resume]\ntrust = true", '[study]\ncode = "models.py"']
)
def test_a_file_of_settings_cannot_trust_for_the_user(command, tmp_path, untrusted, settings):
    (tmp_path / "covaria.toml").write_text(settings)
    code, err = command("resume", "--store", untrusted)
    assert (code, err.count("\n")) == (2, 1)
    assert "has to be typed" in err


def test_a_file_that_fails_is_one_sentence(command, tmp_path):
    (tmp_path / "study.toml").write_text(STUDY.format('file = "models.py"'))
    for text, said in {
        "import nothing_of_that_name": "ModuleNotFoundError",
        "raise SystemExit(0)": "SystemExit",
        "def bent():\n    return 1 / 0": "ZeroDivisionError",
        "def bent():\n    return 3": "Return a Model",
        "x = (": "SyntaxError",
    }.items():
        (tmp_path / "models.py").write_text(text)
        code, err = command("run", "study.toml", "--code", "models.py")
        assert (code, err.count("\n")) == (2, 1), err
        assert said in err
    code, err = command("run", "study.toml", "--code", "study.toml")
    assert "ends in .py" in err
