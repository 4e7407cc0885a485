"""No command writes raw control characters, and no cell of any CSV is a formula."""

import csv
import io
import json
import sys
from unicodedata import category

import numpy as np
import pandas as pd
import pytest

import covaria
from covaria.cli import app as cli
from covaria.errors import InputError
from covaria.execution.terminal import Shown, without_controls
from covaria.tables.files import FORMULA

EVIL = "=cmd()\x1b[31m\x9b5A\x07\u202e\u2028\x7f"


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["covaria", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        out, err = capsys.readouterr()
        assert raw_in(out + err) == set()
        assert "Traceback" not in err
        return left.value.code or 0, out, err

    return run


def raw_in(text):
    """Return the characters of a text that a terminal does not show but obey."""
    return {c for c in text if c not in "\n\t" and category(c) in ("Cc", "Cf", "Zl", "Zp")}


@pytest.fixture
def store(tmp_path):
    """Return a study whose scenario, settings and features have hostile names."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 3)), columns=[f"@{EVIL}", f"+{EVIL}", "y"])
    table.to_csv(tmp_path / "table.csv", index=False)
    study = {
        "repeats": 2,
        "splits": 2,
        "learner": ["linear"],
        "methods": ["gcm", "loco"],
        "scenario": [
            {"name": EVIL, "y": "x1 + x2", "n_rows": 40, "noise": [1.0, 2.0]},
            {"name": "t", "table": str(tmp_path / "table.csv"), "target": "y"},
        ],
    }
    covaria.run_study(study, store=tmp_path / "study.sqlite")
    return tmp_path / "study.sqlite"


def assert_no_formula(text):
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert not [c for c in cells if c.startswith(FORMULA) and not is_number(c)]
    assert any(cell.startswith("'=cmd()") for cell in cells)


def is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("what", ["table", "runs", "features", "summary", "versus"])
def test_no_cell_of_an_exported_study_is_a_formula(command, store, tmp_path, what):
    words = ["--versus", "gcm,loco"] if what == "versus" else ["--what", what]
    code, out, _ = command("study", "export", "--store", store, *words)
    assert code == 0
    assert_no_formula(out)
    command("study", "export", "--store", store, *words, "--out", "out.csv")
    assert_no_formula((tmp_path / "out.csv").read_text(encoding="utf-8"))
    _, out, _ = command("study", "export", "--store", store, *words, "--json")
    assert EVIL in {row["scenario"] for row in json.loads(out)}


def test_names_with_escapes_are_shown_as_codes_by_every_command(command, store, tmp_path):
    table = tmp_path / "table.csv"
    quick = ["-t", "y", "-l", "linear", "-m", "gcm"]
    for words in (
        ["study", "status", "--store", store],
        ["study", "resume", "--store", store],
        ["assess", table, *quick],
        ["assess", table, *quick, "--json"],
        ["assess", table, *quick, "--out", "out"],
        ["efficiency", table, "-t", "y", "-l", "linear"],
        ["plan", table, "-t", "y", "-l", "linear"],
        ["stability", table, "-t", "y", "-l", "linear", "-m", "gcm", "--json"],
        ["stability", table, "-t", "y", "-l", "linear", "-m", "gcm"],
    ):
        code, out, err = command(*words)
        assert code == 0, err
        if "--json" in words:
            json.loads(out)


@pytest.mark.parametrize(
    "words",
    [
        [EVIL], [f"--{EVIL}"], ["assess"], ["assess", EVIL], ["assess", "table.csv", "-t", EVIL],
        ["assess", "table.csv", "-t", "y", "-l", EVIL], ["assess", "table.csv", f"--{EVIL}"],
        ["assess", "table.csv", "-t", "y", "-m", EVIL], ["assess", "table.csv", "--splits", EVIL],
        ["assess", "table.csv", "-t", "y", "--splits", EVIL], ["report", EVIL],
        ["plot", EVIL, EVIL], ["assess", "table.csv", "-t", "y", "--drop", EVIL],
        ["--config", EVIL, "methods"], ["assess", "table.csv", "-t", "y", "--seed", EVIL],
        ["study", EVIL], ["paper", EVIL], ["study", "run", EVIL], ["study", "run", "table.csv"],
        ["study", "status", "--store", EVIL],
        ["study", "export", "--store", "study.sqlite", "--what", EVIL], ["theory", EVIL],
        ["study", "export", "--store", "study.sqlite", "--versus", EVIL],
        ["datasets", "--get", EVIL],
        ["study", "export", "--store", "study.sqlite", "--versus", f"gcm,{EVIL}"],
        ["study", "run", "study.toml", "--code", EVIL], ["stability", EVIL],
        ["theory", "d", "--link", EVIL],
        ["study", "resume", "--store", "study.sqlite", "--shard", EVIL], ["study", "merge", EVIL],
        ["paper", "fig2", "--mode", EVIL], ["paper", "fig2", "--results", EVIL],
    ],
)  # fmt: skip
def test_escapes_in_what_was_typed_come_back_as_codes(command, store, words):
    code, _, err = command(*words)
    assert code in (2, 5)
    assert err


def test_a_sentence_of_python_has_no_escapes_either():
    with pytest.raises(InputError) as raised:
        covaria.scenario(EVIL)
    assert str(raised.value).isprintable()
    assert raw_in(str(InputError(f"two\n{EVIL}"))) == set()


def test_json_stays_the_document_it_was():
    value = {EVIL: ["\U000e0001", "\ud800", "می\u200cخواهم", "a\u00a0b"]}
    text = json.dumps(value, ensure_ascii=False)
    assert json.loads(without_controls(text)) == value
    assert raw_in(without_controls(text)) <= {"\u200c"}


def test_a_stream_takes_text_only_and_is_otherwise_itself():
    below = io.StringIO()
    stream = Shown(below)
    stream.writelines(["a\r", "b\n"])
    assert below.getvalue() == "a\\u000db\n"
    assert stream.getvalue() == below.getvalue()
    with pytest.raises(TypeError, match="takes a text"):
        stream.write(b"")
