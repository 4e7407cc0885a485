"""A study can be stopped at any instant, split, merged and repeated, and its table is the same."""

import multiprocessing
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import covaria
from covaria.errors import InputError, StoreError
from covaria.execution.processes import Processes
from covaria.studies import pools, runner
from covaria.studies.grid import read_grid
from covaria.studies.store import Store, readable, writable
from tiny_study import TINY, TOML, changed, exported


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the store and the table of the tiny study run without a break."""
    store = tmp_path_factory.mktemp("whole") / "study.sqlite"
    study = covaria.run_study(TINY, store=store)
    assert len(study.table) == 10 * 2 * 2 * 2 * 20
    return store, exported(store)


def command(*words, cwd, **options):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "covaria", "study", *map(str, words)],
        cwd=cwd, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, **options,
    )  # fmt: skip


def in_a_fork(function):
    """Return a process that runs the function; it starts at once, with all imports done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of threads
        process = multiprocessing.get_context("fork").Process(target=function)
        process.start()
    return process


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_twenty_instants_the_table_is_the_same(tmp_path, whole, seed):
    store = tmp_path / "study.sqlite"
    rng = np.random.default_rng(seed)
    kills, seen = 0, 0
    while kills < 20:
        process = in_a_fork(lambda: covaria.run_study(TINY, store=store))
        process.join(rng.uniform(0.0, 0.06))
        assert process.exitcode in (None, 0)
        if process.exitcode == 0 and kills < 20:
            store.unlink()  # it was done before the kill: start over for the kills that are left
            seen = 0
            continue
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        kills += 1
        now = _tasks_in(store)
        assert now >= seen  # nothing that was committed is lost
        seen = now
    covaria.run_study(TINY, store=store)
    assert exported(store) == whole[1]


def _tasks_in(store):
    try:
        with readable(store) as opened:
            return len(opened.tasks())
    except InputError:  # killed before the first table was there
        return 0


@pytest.mark.slow
def test_the_command_killed_at_twenty_instants_ends_with_the_same_table(tmp_path):
    many = TOML.replace("repeats = 3", "repeats = 1000").replace(', "lasso"', "")
    (tmp_path / "study.toml").write_text(many)
    store, seen = tmp_path / "study.sqlite", 0
    rng = np.random.default_rng(1)
    for _ in range(20):
        process = command("run", "study.toml", "--jobs", 2, cwd=tmp_path)
        deadline = time.monotonic() + 200
        while _tasks_in(store) <= seen if store.exists() else True:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(rng.uniform(0.0, 0.3))
        assert process.poll() is None  # it is at work
        process.kill()
        process.communicate()
        seen = _tasks_in(store)
    process = command("resume", "--jobs", 2, cwd=tmp_path)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    covaria.run_study(tmp_path / "study.toml", store=tmp_path / "other.sqlite")
    assert exported(store) == exported(tmp_path / "other.sqlite")


def test_two_processes_give_the_bytes_of_one_and_a_command_the_bytes_of_python(tmp_path):
    (tmp_path / "study.toml").write_text(TOML)
    covaria.run_study(tmp_path / "study.toml", store=tmp_path / "one.sqlite")
    process = command("run", "study.toml", "--store", "two.sqlite", "--jobs", 2, cwd=tmp_path)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert "3 of 3 tasks done, 0 failed" in out
    assert exported(tmp_path / "one.sqlite") == exported(tmp_path / "two.sqlite")


def test_ctrl_c_ends_after_few_tasks_and_says_how_to_resume(tmp_path):
    slow = TOML.replace("repeats = 3", "repeats = 5000")
    (tmp_path / "study.toml").write_text(slow)
    process = command("run", "study.toml", "--store", "my study.sqlite", cwd=tmp_path)
    store = tmp_path / "my study.sqlite"
    deadline = time.monotonic() + 200
    while _tasks_in(store) < 1 if store.exists() else True:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    before = _tasks_in(store)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 130
    assert "covaria study resume --store 'my study.sqlite'" in err
    assert "Traceback" not in out + err
    assert before <= _tasks_in(store) < before + 200  # of 5,000: seconds of work at most


def test_shards_merged_are_the_study_run_at_once(tmp_path, whole):
    parts = [tmp_path / f"part{k}.sqlite" for k in (1, 2, 3)]
    for k, part in enumerate(parts, start=1):
        covaria.run_study(TINY, store=part, shard=f"{k}/3")
    sizes = [_tasks_in(part) for part in parts]
    assert sum(sizes) == 40
    assert max(sizes) - min(sizes) <= 1
    merged = tmp_path / "all.sqlite"
    found = runner.merge_stores(parts, store=merged)
    assert (found.total, found.done, found.failed) == (40, 40, 0)
    assert exported(merged) == whole[1]
    runner.merge_stores(parts, store=merged)  # again changes nothing
    assert exported(merged) == whole[1]


def test_a_shard_is_resumed_as_a_shard_and_two_of_three_leave_the_rest_to_run(tmp_path, whole):
    parts = [tmp_path / f"part{k}.sqlite" for k in (1, 2)]
    for k, part in enumerate(parts, start=1):
        covaria.run_study(TINY, store=part, shard=(k, 3), first=4)
        assert _tasks_in(part) < 13
        runner.resume_study(part)
        assert _tasks_in(part) in (13, 14)
    merged = tmp_path / "all.sqlite"
    assert runner.merge_stores(parts, store=merged).done < 40
    runner.resume_study(merged)
    assert exported(merged) == whole[1]


def test_stores_of_different_studies_are_not_merged(tmp_path, whole):
    other = tmp_path / "other.sqlite"
    covaria.run_study({**TINY, "seed": 4, "repeats": 1}, store=other)
    with pytest.raises(InputError, match=r"repeats was 10 and is 1; seed was 3 and is 4"):
        runner.merge_stores([whole[0], other], store=tmp_path / "all.sqlite")


def test_parts_that_disagree_are_not_merged(tmp_path, whole):
    copy = tmp_path / "copy.sqlite"
    covaria.run_study(TINY, store=copy, shard="1/3")
    changed(copy, "UPDATE rows SET p_value = 0.5 WHERE place = 3")
    merged = tmp_path / "all.sqlite"
    runner.merge_stores([whole[0]], store=merged)
    with pytest.raises(InputError, match="disagree on repeat"):
        runner.merge_stores([copy], store=merged)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"repeats": 11}, "repeats was 10 and is 11"),
        ({"seed": 4}, "seed was 3 and is 4"),
        ({"splits": 3}, "splits was 2 and is 3"),
        ({"methods": {"names": ["gcm"]}}, r"methods.names was \['gcm', 'loco'\] and is \['gcm'\]"),
        ({"learner": [{"name": "linear"}]}, "learner 2.name was linear and is not given"),
    ],
)
def test_a_changed_grid_is_refused_with_the_difference(whole, change, said):
    with pytest.raises(InputError, match=said) as raised:
        covaria.run_study({**TINY, **change}, store=whole[0])
    assert "--new" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert exported(whole[0]) == whole[1]


def test_a_changed_version_is_refused_with_the_difference(whole, monkeypatch):
    monkeypatch.setattr(covaria, "__version__", "99.0")
    with pytest.raises(InputError, match=r"versions.covaria was .* and is 99.0"):
        covaria.run_study(TINY, store=whole[0])


def test_changed_data_is_refused_with_the_difference(tmp_path):
    table = tmp_path / "data.csv"
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 3))
    write_rows(table, values)
    study = {
        "repeats": 2, "splits": 2, "learner": ["linear"], "methods": ["gcm"],
        "scenario": [{"name": "mine", "table": str(table), "target": "y"}],
    }  # fmt: skip
    store = tmp_path / "study.sqlite"
    found = covaria.run_study(study, store=store)
    assert found.table["active"].isna().all()
    assert len(found.runs) == 0  # the truth of a table is not known
    values[3, 1] += 1
    write_rows(table, values)
    with pytest.raises(InputError, match=r"data.mine was \w+ and is \w+"):
        covaria.run_study(study, store=store)
    covaria.run_study(study, store=store, new=True)


def write_rows(path, values):
    lines = ["a,b,y", *(",".join(map(str, row)) for row in values.tolist())]
    path.write_text("\n".join(lines))


def test_new_starts_over_and_removes_no_file_that_is_not_a_study(tmp_path):
    store = tmp_path / "study.sqlite"
    covaria.run_study({**TINY, "repeats": 2}, store=store)
    covaria.run_study({**TINY, "repeats": 1}, store=store, new=True)
    assert _tasks_in(store) == 4
    empty = tmp_path / "empty.sqlite"
    empty.touch()  # as a kill before the first table leaves it
    covaria.run_study({**TINY, "repeats": 1}, store=empty, new=True)
    other = tmp_path / "letter.txt"
    other.write_text("not a study, and dear to someone")
    with pytest.raises(InputError, match="not a store"):
        covaria.run_study(TINY, store=other, new=True)
    assert other.read_text().startswith("not a study")


def test_a_second_process_on_the_store_is_refused_and_readers_are_not(tmp_path, whole):
    (tmp_path / "study.toml").write_text(TOML)
    store = tmp_path / "study.sqlite"
    covaria.run_study(tmp_path / "study.toml", store=store)
    with writable(store):
        with pytest.raises(StoreError, match="another process"):
            covaria.run_study(tmp_path / "study.toml", store=store)
        process = command("resume", cwd=tmp_path)
        _, err = process.communicate(timeout=200)
        assert process.returncode == 5
        assert re.fullmatch(r"covaria: study.sqlite is being written by another .*\n", err)
        assert exported(store).startswith("scenario,setting")


def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path, whole, monkeypatch):
    store = tmp_path / "study.sqlite"
    begin = Store.begin

    def with_little_room(self, *given):
        begin(self, *given)
        pages = self.connection.execute("PRAGMA page_count").fetchone()[0]
        self.connection.execute(f"PRAGMA max_page_count = {pages + 30}")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "begin", with_little_room)
        with pytest.raises(StoreError, match="the disk is full") as raised:
            covaria.run_study(TINY, store=store)
    assert "\n" not in str(raised.value)
    kept = _tasks_in(store)
    assert 0 < kept < 40
    covaria.run_study(TINY, store=store)
    assert exported(store) == whole[1]


def test_a_file_that_cannot_grow_ends_the_command_with_one_sentence(tmp_path):
    (tmp_path / "study.toml").write_text(TOML.replace("repeats = 3", "repeats = 9"))

    def no_large_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (70_000, 70_000))

    process = command("run", "study.toml", cwd=tmp_path, preexec_fn=no_large_files)
    _, err = process.communicate(timeout=200)
    assert process.returncode == 5
    *progress, said = err.splitlines()
    assert all(line.startswith("study ") for line in progress)  # where it takes its time
    assert re.fullmatch(r"covaria: study.sqlite cannot be written: .* resume\.", said)
    assert 0 < _tasks_in(tmp_path / "study.sqlite") < 9
    study = tmp_path / "study.toml"
    covaria.run_study(study, store=tmp_path / "study.sqlite")
    covaria.run_study(study, store=tmp_path / "other.sqlite")
    assert exported(tmp_path / "study.sqlite") == exported(tmp_path / "other.sqlite")


@pytest.fixture
def read_only():
    """Return a folder that this process, even root's, cannot write to."""
    with tempfile.TemporaryDirectory() as parent:
        os.chmod(parent, 0o755)
        folder = Path(parent) / "locked"
        folder.mkdir()
        covaria.run_study({**TINY, "repeats": 1}, store=folder / "study.sqlite")
        (folder / "study.sqlite").chmod(0o444)
        (folder / "study.sqlite-lock").unlink()
        folder.chmod(0o555)
        before = os.geteuid()
        if before == 0:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if before == 0:
                os.seteuid(0)
            folder.chmod(0o755)


def test_a_read_only_folder_is_one_sentence_and_can_still_be_read(read_only):
    for store in (read_only / "study.sqlite", read_only / "new.sqlite"):
        with pytest.raises(StoreError, match=r"cannot be written .* Choose another place"):
            covaria.run_study(TINY, store=store)
    assert len(exported(read_only / "study.sqlite").splitlines()) == 1 + 4 * 2 * 20
    with pytest.raises(StoreError, match="is a folder"):
        covaria.run_study(TINY, store=read_only)


def test_a_process_that_dies_costs_its_task_only():
    grid = read_grid({**TINY, "repeats": 1})
    works = {at: runner.Work.of(grid, at) for at in range(len(grid.cells))}
    died = []
    for done in pools.run_tasks(Processes(2, apart=True), {**works, 1: _Deadly()}, grid.tasks):
        assert (done.failure == pools.DIED) == (done.cell == 1)
        died.append((done.cell, done.repeat))
    assert sorted(died) == sorted(grid.tasks)


class _Deadly:
    """A work that kills the process that runs it."""

    def __getattr__(self, name):
        if name in ("cell", "model"):
            os.kill(os.getpid(), signal.SIGKILL)
        raise AttributeError(name)


def test_a_task_that_fails_is_kept_as_failed_and_tried_again(tmp_path):
    def fragile(noise=1.0):
        return covaria.Model([1.0, 0.0, 0.0], noise=noise, sampler=_sampler, name="fragile")

    covaria.simulation.scenarios.add_scenario("fragile", fragile)
    study = {**TINY, "repeats": 2, "scenario": [{"name": "fragile", "n_rows": 30}]}
    store = tmp_path / "study.sqlite"
    _sampler.broken = True
    found = covaria.run_study(study, store=store)
    assert len(found.table) == 0
    assert len(found.failures) == 4
    assert "no rows today" in found.failures[0][-1]
    _sampler.broken = False
    found = covaria.run_study(study, store=store)
    assert not found.failures
    assert len(found.table) == 4 * 2 * 3


def _sampler(rng, n_rows):
    if _sampler.broken and n_rows == 30:
        raise RuntimeError("no rows today")
    return rng.normal(size=(n_rows, 3))


_sampler.broken = False


def test_one_more_scenario_learner_or_repeat_changes_no_number(tmp_path, whole):
    more = {
        **TINY,
        "repeats": 2,
        "scenario": [{"name": "additive", "n_rows": 40}, *TINY["scenario"]],
        "learner": [{"name": "linear", "ridge": 2.0}, *TINY["learner"]],
    }
    found = covaria.run_study(more, store=tmp_path / "more.sqlite").table
    mine = found[(found["scenario"] == "surrogate") & ~found["learner"].str.contains("2.0")]
    theirs = runner.read_study(whole[0]).table
    theirs = theirs[theirs["repeat"] < 2]
    keys = ["setting", "learner", "repeat", "method", "feature"]
    both = mine.merge(theirs, on=keys, suffixes=("", "_before"))
    assert len(both) == len(mine) == len(theirs)
    assert (both["p_value"] == both["p_value_before"]).all()


def test_learners_of_a_scenario_see_the_same_rows():
    grid = read_grid(TINY)
    seeds = [grid.seed_of(cell, 0) for cell in range(4)]
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]


def test_the_store_holds_plain_columns(whole):
    connection = sqlite3.connect(whole[0])
    kinds = connection.execute("SELECT DISTINCT typeof(p_value), typeof(feature) FROM rows")
    assert kinds.fetchall() == [("real", "text")]
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (table,) in tables:
        for row in connection.execute(f"SELECT * FROM {table} LIMIT 50"):
            assert not any(isinstance(value, bytes) for value in row)
    connection.close()
