"""Every door has the names and defaults of `assess`."""

import inspect
import json
import shlex
import sys

import numpy as np
import pandas as pd
import pytest

import covaria
from covaria.assessment import defaults
from covaria.cli import app as cli
from covaria.cli.app import assess
from covaria.cli.efficiency import efficiency, plan
from covaria.cli.independence import independence
from covaria.cli.options import read_extrapolate, read_features, read_splits
from covaria.cli.stability import refit, stability
from covaria.studies.grid import OPTIONS

# What a command cannot be told: arrays beside the table.
BY_PYTHON_ALONE = {"predictions"}
# What tells nothing where features are only selected.
OF_TABLES = {"check", "confidence", "effect", "margin"}
# How the commands call what is too long to type; `stability` and `refit` take several learners.
TYPED = {"sample_weight": "weights", "learner": "learners"}
SELECTING = BY_PYTHON_ALONE | OF_TABLES
DOORS = {
    assess: BY_PYTHON_ALONE,
    stability: SELECTING,
    refit: SELECTING | {"features"},  # it selects among all
}
READ = {"splits": read_splits, "features": read_features, "extrapolate": read_extrapolate}


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_a_command_has_every_option_of_assess_with_its_default(door):
    known = {name: p.default for name, p in inspect.signature(door).parameters.items()}
    for name, default in defaults().items():
        if name not in DOORS[door]:
            own = name if name in known else TYPED[name]
            assert READ.get(name, lambda value: value)(known[own]) == default, name


@pytest.mark.parametrize("door", [covaria.stability, covaria.refit, covaria.Selector,
                                  covaria.StabilitySelector])  # fmt: skip
def test_a_function_or_selector_has_the_defaults_of_assess(door):
    known = {name: p.default for name, p in inspect.signature(door).parameters.items()}
    shared = known.keys() & defaults().keys()
    assert shared >= {"learner"}
    assert {name: known[name] for name in shared} == {name: defaults()[name] for name in shared}
    assert known.get("methods", known.get("method")) == "default"


@pytest.mark.parametrize("door", [efficiency, plan, independence], ids=lambda door: door.__name__)
def test_other_commands_regress_as_assess_does(door):
    known = {name: p.default for name, p in inspect.signature(door).parameters.items()}
    shared = (known.keys() & defaults().keys()) - {"methods", "correction"}  # of pairs of tests
    assert shared >= {"learner", "splits", "rows", "seed"}
    for name in shared:
        assert READ.get(name, lambda value: value)(known[name]) == defaults()[name], name


# What one question of a table has no use for, or calls otherwise.
OF_MANY = {"features", "groups", "correction", "top", "predictions", "paper", "validity",
           "permutations", "check", "extrapolate", "shared_randomness"}  # fmt: skip


def test_the_command_of_one_question_has_every_option_of_assess_that_bears_on_one():
    known = inspect.signature(independence).parameters
    wanted = {TYPED.get(name, name) if name != "learner" else name for name in defaults()} - OF_MANY
    assert wanted <= known.keys()


@pytest.mark.parametrize("words", [
    "independence {} --x a --y y --given b -l linear",
    "efficiency {} --target y -l linear",
    "plan {} --target y -l linear",
], ids=lambda words: words.split()[0])  # fmt: skip
def test_every_command_leaves_rows_without_a_target_out(words, tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 2)), columns=["a", "b"])
    frame["y"] = (frame["a"] + rng.normal(size=100)).where(frame.index > 4)
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = words.format(tmp_path / "t.csv").split()
    for asked, code in (([], 2), (["--missing-target", "drop"], 0)):
        monkeypatch.setattr(sys, "argv", ["covaria", *words, *asked])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert (ended.value.code or 0) == code
    told = capsys.readouterr().err
    assert "missing_target='drop' (--missing-target drop)" in told


def test_one_question_of_one_side_by_command(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    frame["y"] = frame["a"] + rng.normal(size=200)
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ["--x", "a", "--y", "y", "--given", "b", "-l", "linear", "--methods", "gcm", "--json"]
    found = {}
    for side in ("greater", "less"):
        monkeypatch.setattr(
            sys, "argv",
            ["covaria", "independence", str(tmp_path / "t.csv"), *words, "--alternative", side],
        )  # fmt: skip
        with pytest.raises(SystemExit):
            cli.main()
        found[side] = json.loads(capsys.readouterr().out)
    assert found["greater"]["p_value"] + found["less"]["p_value"] == pytest.approx(1)
    assert found["greater"]["interval"][1] == 1
    assert found["less"]["interval"][0] == -1


def test_a_study_knows_its_options_by_the_names_of_assess():
    assert set(OPTIONS) <= defaults().keys()


# --- what was typed is repeated ------------------------------------------------------------------

WORDS = [
    "--methods gcm,loco --alternative greater",
    "--methods loco --validity zipper",
    "--correction holm --alpha 0.1 --confidence 0.9",
    "--top 1",
    "--splits 0.4",
    "--splits 3 --repeats 2",
    "--methods permutation --permutations 2",
    "--no-check",
    "--extrapolate yes",
    "--effect plm --margin 0.2",
    "--own-randomness -l boosting(trees=5)",
    "--features lat",
    "--drop lon",
    "--categories town",
    "--weights weight",
    "--clusters town",
    "--event sold",
    "--task regression",
    "--loss absolute",
    "--missing-target drop",
    "--rows 60 --seed 3",
    "--paper",
    "--groups groups.toml",
]


@pytest.fixture
def homes(tmp_path, monkeypatch):
    """Be in a folder with a table of homes and a file of groups."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(80, 3)), columns=["area", "lat", "lon"])
    frame["price"] = 20 + 2 * frame["area"] + rng.normal(size=80)
    frame["weight"], frame["town"] = rng.integers(1, 4, 80), rng.integers(0, 20, 80)
    frame["sold"] = rng.integers(0, 2, 80)
    frame.to_csv(tmp_path / "homes.csv", index=False)
    (tmp_path / "groups.toml").write_text('place = ["lat", "lon"]\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def typed(monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["covaria", *words])
        with pytest.raises(SystemExit) as leaving:
            cli.main()
        assert not leaving.value.code, capsys.readouterr().err
        return capsys.readouterr().out

    return run


def numbers(folder):
    stored = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    del stored["about"]["seconds"], stored["checksum"]
    return stored, (folder / "results.csv").read_bytes()


@pytest.mark.parametrize("words", WORDS)
def test_the_repeat_line_repeats_every_option(words, homes, typed):
    told = ["assess", "homes.csv", "-t", "price", "-l", "linear", "--out", "out", *words.split()]
    out = typed(*told)
    first = numbers(homes / "out")
    line = next(line for line in out.splitlines() if line.startswith("Repeat"))
    typed(*shlex.split(line.removeprefix("Repeat"))[1:])
    assert numbers(homes / "out") == first


def test_what_a_file_says_no_to_is_repeated_too(homes, typed):
    (homes / "covaria.toml").write_text(
        "[assess]\ncheck = false\nshared-randomness = false\nlearner = 'linear'\n"
    )
    out = typed("assess", "homes.csv", "-t", "price", "--out", "out")
    line = next(line for line in out.splitlines() if line.startswith("Repeat"))
    assert "--no-check" in line
    assert "--own-randomness" in line
    first = numbers(homes / "out")[1]
    (homes / "covaria.toml").unlink()
    typed(*shlex.split(line.removeprefix("Repeat"))[1:])
    assert numbers(homes / "out")[1] == first


@pytest.mark.parametrize("command", ["stability", "refit"])
def test_options_reach_the_function_a_command_is_named_for(command, homes, typed):
    told = ["homes.csv", "-t", "price", "-l", "linear", "-m", "gcm", "--json", "--folds", "2",
            "--alternative", "greater", "--correction", "none", "--categories", "town"]  # fmt: skip
    found = json.loads(typed(command, *told))
    frame = pd.read_csv("homes.csv")
    frame["town"] = frame["town"].astype("category")
    by_python = getattr(covaria, command)(
        frame, "price", learner="linear", methods="gcm", folds=2, alternative="greater",
        correction="none",
    ).to_dict()  # fmt: skip
    tables = {name for name, value in by_python.items() if isinstance(value, list)}
    assert tables
    assert {name: found[name] for name in tables} == {name: by_python[name] for name in tables}
