"""Files and settings that nobody should write: each is an answer or one sentence."""

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import covaria
from covaria.cli import app as cli
from covaria.execution.processes import Processes

RESULTS = Path(__file__).parent.parent / "results"
STUDY = """
repeats = 1
splits = 2
methods = ["gcm"]
learner = ["linear"]
[[scenario]]
name = "m"
y = "x1"
n_rows = 40
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a table, a study, its store, and things that are no files."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "y"]).to_csv("t.csv", index=False)
    Path("study.toml").write_text(STUDY)
    covaria.run_study("study.toml", store="study.sqlite")
    os.mkfifo("pipe.toml")
    os.symlink("/dev/zero", "zero.toml")
    os.symlink("loop", "loop")
    Path("folder").mkdir()
    return tmp_path


@pytest.fixture
def told(monkeypatch, capsys):
    """Return a function that runs a command, which has to end with one sentence, and returns it."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["covaria", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        err = capsys.readouterr().err
        assert left.value.code in (2, 5), err
        assert err.count("\n") == 1
        assert err.startswith("covaria: ")
        return err

    return run


ASSESS = ("assess", "t.csv", "-t", "y", "-l", "linear", "-m", "gcm")


@pytest.mark.parametrize(
    "text",
    ["x = " + "[" * 50_000, "x = " + "9" * 10_000, "[study]\nrun = 3", "[study.run]\nstore.x = 1",
     "\x00", "'' = 3", '"\\u001b" = 3'],
)  # fmt: skip
def test_a_file_of_settings_that_is_none_is_one_sentence(folder, told, text):
    Path("covaria.toml").write_text(text)
    assert "covaria.toml" in told(*ASSESS)


@pytest.mark.parametrize("name", ["pipe.toml", "zero.toml", "loop", "folder", ""])
def test_what_is_no_file_is_not_read_without_end(folder, told, name):
    told("--config", name, "methods")
    told(*ASSESS, "--groups", name)
    told("study", "run", name)
    told("study", "status", "--store", name)
    told("study", "merge", name, "--store", "all.sqlite")


def test_groups_without_a_bottom_are_one_sentence(folder, told):
    Path("groups.toml").write_text("place = " + "[" * 50_000)
    assert "groups.toml is not TOML such as" in told(*ASSESS, "--groups", "groups.toml")


def test_a_table_that_is_a_device_is_not_read(folder, told):
    os.symlink("/dev/zero", "zero.csv")
    Path("study.toml").write_text(
        'learner = "linear"\n[[scenario]]\nname = "t"\ntable = "zero.csv"\ntarget = "y"'
    )
    assert "zero" in told("study", "run", "study.toml", "--store", "new.sqlite")


@pytest.mark.parametrize("words", [("--shard", "1/" + "9" * 5000), ("--shard", "1/2/3")])
def test_a_shard_that_is_none_is_one_sentence(folder, told, words):
    assert "is not a part such as 3/10" in told("study", "run", "study.toml", *words)


def test_an_export_to_a_folder_is_one_sentence(folder, told):
    for out in ("folder", ""):
        assert "is a folder" in told("study", "export", "--store", "study.sqlite", "--out", out)


@pytest.mark.parametrize(
    "words", [("--seed", "-1"), ("--repeats", "1000000000000"), ("--repeats", "0")]
)
def test_a_figure_of_odd_numbers_is_one_sentence(folder, told, words):
    assert words[0] in told("paper", "fig2", "--fast", *words)


@pytest.mark.parametrize(
    ("file", "figure"),
    [
        ("boosting-paper.csv", "fig3"),
        ("boosting-paper.csv", "fig1"),
        ("real/paper_errors.csv", "table4"),
        ("real/paper_frequencies.csv", "sfig6"),
        ("real/paper_orderings.csv", "table4"),
    ],
)
def test_damaged_results_of_the_paper_are_one_sentence(folder, told, file, figure):
    shutil.copytree(RESULTS, "results")
    path = Path("results") / file
    text = path.read_text()
    header = next(line for line in text.splitlines() if not line.startswith("#"))
    words = ("paper", figure, "--results", "results", "--mode", "paper", "--out", "out")
    less = text.replace("gcm", "", 5)
    for damaged in (
        *([less] if figure == "fig1" else []),
        "a,b\n1,2\n",
        text.replace(header, header.upper(), 1),
        "\x00\x01",
    ):
        path.write_text(damaged)
        assert "results" in told(*words)


def test_a_draw_that_is_no_draw_is_made_again(tmp_path):
    from covaria.studies.draws import Draws
    from covaria.tables.texts import checksum

    path, about = tmp_path / "x.draws", {"data": "x"}
    name = Draws(path, about)._name({"seed": 1})
    line = {"name": name, "draw": {"about": {}, "alerts": [], "table": [], "errors": [],
                                   "draws": [], "frequencies": []}}  # fmt: skip
    path.write_text(json.dumps({**line, "checksum": checksum(line)}))
    assert Draws(path, about).get({"seed": 1}) is None


def test_more_processes_than_tasks_are_not_started(folder, monkeypatch):
    from covaria.studies import runner

    asked = []

    def noted(n_jobs, **choices):
        asked.append(n_jobs)
        return Processes(n_jobs, **choices)

    monkeypatch.setattr(runner, "Processes", noted)
    covaria.run_study("study.toml", store="new.sqlite", n_jobs=500)
    assert asked == [1]
