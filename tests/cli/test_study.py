"""The commands of a study: what they print, write and leave with."""

import json
import sys

import pandas as pd
import pytest

import covaria
from covaria.cli import app as cli
from tiny_study import TINY, TOML, exported


@pytest.fixture
def covaria_study(monkeypatch, capsys, tmp_path):
    """Return a function that runs `covaria study …` here: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["covaria", "study", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        out, err = capsys.readouterr()
        return left.value.code or 0, out, err

    return run


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "study.sqlite"
    covaria.run_study({**TINY, "repeats": 2}, store=path)
    return path


def test_export_writes_the_table_and_its_metrics(covaria_study, store, tmp_path):
    code, out, _ = covaria_study("export", "--store", store, "--out", "table.csv")
    assert code == 0
    assert "320 rows in table.csv" in out
    table = pd.read_csv("table.csv")
    assert [c for c in table.columns if "seconds" in c] == ["seconds"]
    keys = ["scenario", "setting", "learner", "repeat", "method", "feature"]
    assert not table.duplicated(keys).any()
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    code, out, _ = covaria_study("export", "--store", store, "--what", "runs")
    assert code == 0
    assert out.splitlines()[0].startswith(
        "scenario,setting,rho,learner,options,repeat,method,tp,fp"
    )
    code, out, _ = covaria_study("export", "--store", store, "--versus", "gcm,loco")
    assert "gcm,loco" in out.splitlines()[1]
    code, _, err = covaria_study("export", "--store", store, "--what", "all")
    assert (code, err.count("\n")) == (2, 1)


def test_an_export_can_be_one_json_document(covaria_study, store):
    code, out, _ = covaria_study("export", "--store", store, "--what", "runs", "--json")
    assert code == 0
    assert {"method", "tp", "seconds"} <= json.loads(out)[0].keys()
    code, out, _ = covaria_study("export", "--store", store, "--json")
    assert len(json.loads(out)) == 320
    _, out, _ = covaria_study("export", "--store", store, "--out", "t.csv", "--json")
    assert json.loads(out) == {"rows": 320, "out": "t.csv"}


def test_a_study_has_a_page_of_its_own(covaria_study, store, tmp_path):
    code, out, err = covaria_study("export", "--store", store, "--report", "study.html")
    assert (code, out, err) == (0, "", "Report  study.html\n")
    page = (tmp_path / "study.html").read_text(encoding="utf-8")
    assert "<table" in page
    assert "gcm" in page


def test_status_tells_people_and_programs(covaria_study, store):
    code, out, _ = covaria_study("status", "--store", store)
    assert code == 0
    assert "8 of 8 tasks done, 0 failed." in out
    _, out, _ = covaria_study("status", "--store", store, "--json")
    assert json.loads(out) == {
        "store": str(store), "tasks": 8, "done": 8, "left": 0, "failed": 0, "failed_fits": 0,
        "shard": "1/1",
    }  # fmt: skip


def test_a_missing_store_and_a_file_that_is_none_are_one_sentence(covaria_study, tmp_path):
    (tmp_path / "text.sqlite").write_text("hello " * 100)
    for command in ("status", "export", "resume"):
        for path in ("none.sqlite", "text.sqlite"):
            code, out, err = covaria_study(command, "--store", path)
            assert code == 2
            assert not out
            assert err.count("\n") == 1
    assert not (tmp_path / "none.sqlite").exists()


def test_merge_puts_shards_together(covaria_study, store):
    for k in (1, 2):
        covaria.run_study({**TINY, "repeats": 2}, store=f"part{k}.sqlite", shard=f"{k}/2")
    code, out, _ = covaria_study("merge", "part1.sqlite", "part2.sqlite", "--store", "all.sqlite")
    assert code == 0
    assert "8 of 8 tasks done" in out
    assert exported("all.sqlite") == exported(store)


def test_a_changed_study_file_is_refused_and_new_starts_over(covaria_study, tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(TOML)
    covaria.run_study(path, store="study.sqlite")
    path.write_text(TOML.replace("seed = 1", "seed = 2"))
    code, _, err = covaria_study("run", path)
    assert code == 2
    assert "seed was 1 and is 2" in err
    assert "--new" in err
    code, _, err = covaria_study("run", path, "--shard", "4/3")
    assert (code, err.count("\n")) == (2, 1)


def test_failed_tasks_are_told_and_end_with_code_3(covaria_study, tmp_path):
    path = tmp_path / "study.toml"
    # Two rows cannot be split in five: every task of this scenario fails, the other goes on.
    path.write_text(TOML + '[[scenario]]\nname = "additive"\nn_rows = 2\n')
    code, out, _ = covaria_study("run", path, "--quiet")
    assert code == 3
    assert "6 of 6 tasks done, 3 failed." in out
    assert "covaria study resume" in out
