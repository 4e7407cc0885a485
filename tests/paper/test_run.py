"""A quick run replaces nothing fuller, and the draws of a real table are resumed."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from typer.testing import CliRunner

from covaria import datasets
from covaria.cli.app import app
from covaria.errors import InputError
from covaria.paper import kept, studies
from covaria.paper import real as of_real
from covaria.paper import real_tables as real
from covaria.paper import statements as real_items
from covaria.paper.kept import Stamp, read_results, write_results, write_table
from covaria.paper.run import Run
from covaria.selection.refit import FRAMES, refit
from covaria.studies.store import readable


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


FEW = studies.Simulation(
    "fig3", ({"name": "linear", "n_rows": 60},), ({"name": "linear"},), studies.SIX, 4, 1
)


@pytest.fixture
def few(monkeypatch, tmp_path):
    """Return a function that runs so many repeats of a small simulation, and what it keeps."""
    monkeypatch.setitem(studies.STUDIES, "boosting", FEW)
    kept._grid.cache_clear()
    yield lambda repeats, name="a", onto=None: Run(tmp_path / name, repeats=repeats, onto=onto).of(
        "boosting"
    )
    kept._grid.cache_clear()


def test_a_quick_simulation_replaces_nothing_fuller(few, tmp_path):
    path = tmp_path / "a" / "results" / "boosting-paper.csv"
    assert few(3).repeats == 3
    before = path.read_text()
    assert few(2).repeats == 2
    assert path.read_text() == before
    assert pd.read_csv(path, comment="#")["repeat"].max() == 2


def test_a_simulation_goes_on_from_kept_results_without_their_store(few, tmp_path):
    few(2)
    kept_before = tmp_path / "a" / "results"
    whole = few(4, "b")
    # Another folder, as in a fresh clone: there is no store, and two repeats are left to run.
    found = few(4, "c", onto=kept_before)
    with readable(tmp_path / "c" / "stores" / "boosting-paper.sqlite") as store:
        assert sorted(store.tasks()) == [(0, 2), (0, 3)]
    answers = ["repeat", "method", *kept.COUNTS, *kept.KEPT[:2]]
    assert_frame_equal(found.runs[answers], whole.runs[answers])
    assert_frame_equal(found.features, whole.features)
    stored = read_results(kept_before, "boosting", "paper")
    assert_frame_equal(stored.runs[answers].astype(str), whole.runs[answers].astype(str))
    (stamp,) = stored.stamps
    assert stamp.tasks == 4


def test_what_is_kept_of_another_seed_is_not_gone_on_from(few, tmp_path):
    few(1)
    with pytest.raises(InputError, match="holds results of boosting with seed 0, not 1"):
        Run(tmp_path / "b", seed=1, onto=tmp_path / "a" / "results").of("boosting")


def test_averages_of_features_are_those_of_their_rows(few):
    found = few(3)
    table = found.features.set_index(["method", "feature"])
    runs = found.runs[found.runs["method"] == "gcm"]
    p = np.array([[float(v) for v in cell.split()] for cell in runs["p_values"]])
    assert table.loc["gcm"]["p_mean"].to_numpy() == pytest.approx(p.mean(axis=0))
    assert table.loc["gcm"]["p_sd"].to_numpy() == pytest.approx(p.std(axis=0, ddof=1))
    chosen = [set(cell.split()) for cell in runs["chosen"]]
    assert table.loc[("gcm", "x8"), "selected"] == np.mean(["8" in one for one in chosen])
    assert table.loc["gcm"]["active"].tolist() == [True] * 8 + [False] * 12
    assert table.loc["lasso"]["p_mean"].isna().all()
    counts = runs[["tp", "fp"]].sum().sum()
    assert table.loc["gcm"]["selected"].sum() * 3 == pytest.approx(counts)


def test_damaged_results_are_written_again(few, tmp_path):
    found = few(2)
    path = tmp_path / "boosting-paper.csv"
    path.write_text("# by hand\n")
    write_results(tmp_path, "boosting", "paper", found)
    assert read_results(tmp_path, "boosting", "paper").repeats == 2


def test_stamps_of_one_origin_are_one_with_the_sum_of_their_tasks():
    one = Stamp("covaria paper fig3", 0, {"covaria": "1"}, "abc", 8, 1.5)
    other = replace(one, commit="def", tasks=4, cpu_seconds=1.0)
    found = kept.gathered([one, other, replace(one, tasks=2, cpu_seconds=0.5)])
    assert [(s.commit, s.tasks, s.cpu_seconds) for s in found] == [
        ("abc", 10, 2.0),
        ("def", 4, 1.0),
    ]
    assert Stamp.read(one.line) == one


def test_a_small_table_is_made_once_and_again_for_other_draws_or_seeds(tmp_path):
    made = []

    def make():
        made.append(1)
        return pd.DataFrame({"feature": ["x1"], "runs": 5, "mean": [0.5 * len(made)]})

    run = Run(tmp_path, onto=tmp_path / "kept")
    table = run.table("fig2", make, 5)
    write_table(
        run.kept, "fig2", table, Stamp.now("covaria paper fig2", 0, seconds=run.tables["fig2"][1])
    )
    (stamp,) = kept.stamps(run.kept / "fig2.csv")
    assert stamp.cpu_seconds is not None
    assert_frame_equal(Run(tmp_path, onto=run.onto).table("fig2", make, 5), table)
    assert len(made) == 1
    Run(tmp_path, onto=run.onto).table("fig2", make, 4)
    Run(tmp_path, onto=run.onto, seed=1).table("fig2", make, 5)
    assert len(made) == 3


def test_a_real_table_that_is_stored_whole_is_not_made_again(tmp_path, monkeypatch):
    found = real_items.run("table4", fast=True, seeds=2)
    networks = {
        part: rows[rows["learner"] == "GBM"].assign(learner="NN") for part, rows in found.items()
    }
    folder = tmp_path / "kept" / "real"
    for frames in (found, networks):
        assert real_items.keep_all(folder, "paper", frames, keep_fuller=True)
    real_items.sign(folder, "paper", ["table4"], Stamp.now("covaria paper table4", 3, seconds=1.0))
    assert real_items.signed(folder)["paper"]["table4"]["cpu_seconds"] == 1.0
    monkeypatch.setattr(real, "refit", counting(made := []))
    settings = {"onto": tmp_path / "kept", "repeats": 2, "seed": 3}
    of_real.make("table4", Run(tmp_path / "out", **settings))
    assert made == []
    # Fewer draws and the quick run are made; so is another seed.
    of_real.make("table4", Run(tmp_path / "out", **settings, fast=True))
    assert made == [3, 4, 3, 4]
