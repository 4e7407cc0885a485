"""A quick run replaces nothing fuller, and the draws of a real table are resumed."""

import json

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from typer.testing import CliRunner

from covaria import datasets
from covaria.cli import paper as cli_paper
from covaria.cli.app import app
from covaria.paper import real_tables as real
from covaria.paper import statements as real_items
from covaria.paper import studies
from covaria.paper.run import Results, Run, has_fuller, write_results
from covaria.selection.refit import FRAMES, refit


@pytest.fixture(scope="module")
def houses():
    """Return a made-up Boston."""
    rng = np.random.default_rng(2)
    names = ["crim", "zn", "indus", "chas", "nox", "rm", "age", "dis", "rad", "tax", "ptratio",
             "b", "lstat"]  # fmt: skip
    X = pd.DataFrame(rng.normal(size=(80, 13)), columns=names)
    return X, pd.Series(3 * X["rm"] - 3 * X["lstat"] + rng.normal(size=80), name="medv")


@pytest.fixture(autouse=True)
def made_up(monkeypatch, houses):
    monkeypatch.setattr(datasets, "load", lambda name: houses)


@pytest.fixture
def paper(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        done = CliRunner().invoke(app, ["paper", *words, "--mode", "paper", "--quiet"])
        assert done.exit_code == 0, done.output
        return done.stdout

    return run


def test_draws_made_one_by_one_are_those_made_at_once(tmp_path):
    settings = {"learners": ["lm", "GBM"], "seeds": 2, "seed": 4}
    for mode in real.MODES:
        at_once = real.run("table4", mode=mode, **settings)
        one_by_one = real.run("table4", mode=mode, kept=tmp_path / "draws", **settings)
        again = real.run("table4", mode=mode, kept=tmp_path / "draws", **settings)
        for found in (one_by_one, again):
            for name in FRAMES:
                assert_frame_equal(getattr(found, name), getattr(at_once, name), check_exact=True)
            assert found.about == at_once.about
            assert found.alerts == at_once.alerts


def counting(made, until=99):
    """Return `refit` as it notes the seeds it is asked for, and is interrupted at some point."""

    def counted(*given, **settings):
        if len(made) == until:
            raise KeyboardInterrupt
        made.append(settings["seed"])
        return refit(*given, **settings)

    return counted


def test_an_interrupted_real_table_goes_on_where_it_was(tmp_path, monkeypatch):
    path = tmp_path / "stores" / "boston.draws"
    settings = {"learners": ["lm"], "seeds": 5}
    expected = real.run("table4", **settings)
    monkeypatch.setattr(real, "refit", counting(first := [], until=3))
    with pytest.raises(KeyboardInterrupt):
        real.run("table4", kept=path, **settings)
    assert first == [0, 1, 2]
    lines = path.read_bytes().splitlines()
    lines[1] = lines[1].replace(b'"error"', b'"errpr"', 1)  # somebody changed the first
    path.write_bytes(b"\n".join(lines)[:-20])  # and the last was being written
    monkeypatch.setattr(real, "refit", counting(second := []))
    found = real.run("table4", kept=path, **settings)
    assert second == [0, 2, 3, 4]
    assert_frame_equal(found.table, expected.table, check_exact=True)


def test_other_data_other_settings_and_other_versions_are_other_draws(
    tmp_path, monkeypatch, houses
):
    made = []
    monkeypatch.setattr(real, "refit", counting(made))
    settings = {"learners": ["lm"], "seeds": 1, "kept": tmp_path / "draws"}
    real.run("table4", **settings)
    real.run("table4", **settings)
    assert len(made) == 1
    real.run("table4", mode="ours", **settings)
    real.run("table4", methods=["gcm"], **settings)
    real.run("table4", **{**settings, "learners": {"lm": "linear(ridge=1.0)"}})
    assert len(made) == 4
    monkeypatch.setattr(real, "versions", lambda: {"covaria": "0.0"})
    real.run("table4", **settings)
    monkeypatch.setattr(datasets, "load", lambda name: (2 * houses[0], houses[1]))
    real.run("table4", **settings)
    assert len(made) == 6


def test_a_quick_run_of_a_real_table_replaces_nothing_fuller(paper, tmp_path):
    folder = tmp_path / "covaria-paper"
    paper("table4", "--fast", "--repeats", "3")
    table = (folder / "table4-paper.csv").read_bytes()
    results = {path: path.read_bytes() for path in (folder / "results" / "real").iterdir()}
    said = paper("table4", "--fast")
    assert "table4-paper.csv has 3 repeats and is kept; this is table4-paper-quick." in said
    assert (folder / "table4-paper.csv").read_bytes() == table
    assert pd.read_csv(folder / "table4-paper-quick.csv")["seeds"].tolist() == [2] * 4
    assert {path: path.read_bytes() for path in results} == results
    # A folder of covaria 0.1 has no sizes: its results tell.
    (folder / "sizes.json").unlink()
    paper("table4", "--fast")
    assert (folder / "table4-paper.csv").read_bytes() == table
    # And a fuller run replaces what is there.
    paper("table4", "--fast", "--repeats", "4")
    assert pd.read_csv(folder / "table4-paper.csv")["seeds"].tolist() == [4] * 4
    assert json.loads((folder / "sizes.json").read_text())["table4-paper"] == [4, 4]


def test_networks_that_are_stored_stay_beside_new_rows_of_the_others(tmp_path):
    found = real_items.run("table4", fast=True, seeds=2)
    networks = {
        part: rows[rows["learner"] == "GBM"].assign(learner="NN") for part, rows in found.items()
    }
    networks["errors"] = networks["errors"].assign(seeds=20)
    real_items.keep_all(tmp_path, "paper", networks)
    both = {part: pd.concat([found[part], networks[part].head(1)]) for part in found}
    both["errors"] = both["errors"].assign(seeds=2)
    real_items.keep_all(tmp_path, "paper", both, keep_fuller=True)
    stored = real_items.stored(tmp_path, "table4")
    assert stored["errors"].groupby("learner")["seeds"].max().to_dict() == {
        "GBM": 2, "NN": 20, "lm": 2,
    }  # fmt: skip
    assert len(stored["frequencies"]) == 3 * 2 * 13


def test_a_quick_simulation_replaces_nothing_fuller(tmp_path, monkeypatch):
    few = studies.Simulation("fig3", ({"name": "linear", "n_rows": 60},), ({"name": "linear"},),
                             studies.SIX, 3, 1)  # fmt: skip
    monkeypatch.setitem(studies.STUDIES, "boosting", few)
    folder = tmp_path / "covaria-paper"
    results = folder / "results" / "boosting-paper-runs.csv"
    keep = _kept_after(folder)
    assert keep(["--repeats", "3"]) == keep(["--fast"]) == keep(["--repeats", "2"])
    assert pd.read_csv(results, comment="#")["repeat"].max() == 2


def _kept_after(folder):
    """Return a function that writes results of a run, as the command does, and returns them."""

    def keep(words):
        repeats = int(words[-1]) if "--repeats" in words else None
        run = Run(folder, fast="--fast" in words, repeats=repeats)
        run.of("boosting")
        cli_paper._keep(run, folder, None)
        return (folder / "results" / "boosting-paper-runs.csv").read_text()

    return keep


def test_fewer_repeats_are_not_fuller_and_damaged_results_are_written_again(tmp_path):
    def results(repeats):
        runs = pd.DataFrame({"scenario": "a", "setting": "s", "learner": "l", "options": "",
                             "repeat": range(repeats), "method": "gcm", "tp": 1, "fp": 0,
                             "tn": 1, "fn": 0, "seconds": 0.1, "failed": 0})  # fmt: skip
        return Results(runs, pd.DataFrame({"feature": ["x1"]}), "by hand")

    full = results(3)
    full = Results(full.runs.assign(accuracy=1, recall=1, specificity=1, f1=1, fdr=0),
                   full.features, full.made_by)  # fmt: skip
    write_results(tmp_path, "boosting", "paper", full)
    assert has_fuller(tmp_path, "boosting", "paper", results(2))
    assert not has_fuller(tmp_path, "boosting", "paper", results(3))
    assert not has_fuller(tmp_path, "boosting", "ours", results(2))
    (tmp_path / "boosting-paper-runs.csv").write_text("# by hand\n")
    assert not has_fuller(tmp_path, "boosting", "paper", results(2))
