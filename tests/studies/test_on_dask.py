"""The same study on Dask: real processes, one of them killed."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import warnings

import pytest
from pandas.testing import assert_frame_equal
from sklearn.linear_model import LinearRegression

import covaria
from covaria.errors import InputError, StoreError
from covaria.execution.clusters import LOCAL
from covaria.nuisance import fit
from covaria.studies import pools
from covaria.studies.on_dask import assess_on_dask
from covaria.studies.store import readable
from covaria.tables.dataset import Dataset
from tiny_study import TINY, exported

distributed = pytest.importorskip("distributed", reason="needs pip install 'covaria[dask]'")
dask = pytest.importorskip("dask")
pytestmark = pytest.mark.filterwarnings("ignore")  # distributed's own remarks


@pytest.fixture(scope="module")
def client():
    """Return a client of a cluster of two processes on this machine."""
    with (
        warnings.catch_warnings(),
        dask.config.set(LOCAL),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        warnings.simplefilter("ignore")
        yield client


def test_a_study_on_dask_is_the_study_here_though_a_worker_is_killed(tmp_path, client):
    covaria.run_study(TINY, store=tmp_path / "here.sqlite")
    pids = list(client.run(os.getpid).values())
    assert len(set(pids)) == 2
    assert os.getpid() not in pids
    killed = []

    def kill_one(standing):
        if standing.now == 3:
            os.kill(pids[0], signal.SIGKILL)
            killed.append(standing.done)

    found = covaria.run_study(TINY, store=tmp_path / "there.sqlite", dask=client, progress=kill_one)
    assert killed == [3]
    assert not found.failures
    assert exported(tmp_path / "there.sqlite") == exported(tmp_path / "here.sqlite")


def test_the_works_are_sent_once_and_results_come_one_by_one(tmp_path, client, monkeypatch):
    client.wait_for_workers(2, timeout=120)
    seen, sent, scatter = [], [], client.scatter

    def counted(values, **choices):
        sent.extend(len(works) for works in values)
        return scatter(values, **choices)

    monkeypatch.setattr(client, "scatter", counted)
    covaria.run_study(
        TINY, store=tmp_path / "study.sqlite", dask=client, progress=lambda s: seen.append(s.done)
    )
    assert sent == [4]  # a work for each of the four cells, once for all of its repeats
    assert seen == list(range(41))  # a report for every task, not one at the end


def test_an_address_without_a_scheduler_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"There is no Dask scheduler at tcp://127\.0\.0\.1:9"):
        covaria.run_study(TINY, store=tmp_path / "study.sqlite", dask="tcp://127.0.0.1:9")


@pytest.mark.parametrize("learner", ["linear", "boosting(trees=20)", "splines"])
def test_assess_on_dask_gives_the_table_of_assess(client, learner):
    X, y = covaria.draw("additive", n_rows=150, seed=2)
    settings = {
        "learner": learner, "methods": ["gcm", "loco", "permutation", "lasso"], "splits": 3,
        "seed": 5, "repeats": 2,
    }  # fmt: skip
    here = covaria.assess(X, y, **settings)
    there = assess_on_dask(client, X, y, **settings)
    assert_frame_equal(there.table, here.table)
    assert there.about["engine"] == here.about["engine"]
    assert there.about["fits"] == here.about["fits"]


def test_the_default_on_dask_is_many_tasks_on_both_workers_and_the_table_goes_once(
    client, monkeypatch
):
    client.wait_for_workers(2, timeout=120)
    for name in ("MANY_NUMBERS", "WORTH_CALLING", "SHORTEST", "SHORT"):
        monkeypatch.setattr(fit, name, 0)  # small as it is
    X, y = covaria.draw("linear", n_rows=100, seed=2)
    X, tables, scatter = X.iloc[:, :5], [], client.scatter

    def counted(values, **choices):
        tables.extend(value for value in values if isinstance(value, Dataset))
        return scatter(values, **choices)

    monkeypatch.setattr(client, "scatter", counted)
    before = set(client.run(os.getpid).values())
    there, here = assess_on_dask(client, X, y), covaria.assess(X, y)
    assert_frame_equal(there.table, here.table)
    assert there.cost["models"].sum() == here.cost["models"].sum()
    assert len(tables) == 1
    counts = client.run(lambda dask_worker: dask_worker.state.transition_counter)
    assert len(before) == 2
    assert min(counts.values()) > 100


def test_assess_on_dask_outlives_a_killed_worker(client):
    client.wait_for_workers(2, timeout=120)
    X, y = covaria.draw("linear", n_rows=120, seed=2)
    settings = {"learner": LinearRegression(), "methods": ["gcm"], "splits": 5, "repeats": 4}
    pid = next(iter(client.run(os.getpid).values()))
    killed = []

    def kill_one(done, total):
        if done < total and not killed:
            os.kill(pid, signal.SIGKILL)
            killed.append(done)

    there = assess_on_dask(client, X, y, progress=kill_one, **settings)
    assert killed
    assert_frame_equal(there.table, covaria.assess(X, y, **settings).table)


# --- what breaks --------------------------------------------------------------------------------


def stored(path):
    """Return the tasks of a store that are done, and why any of them failed."""
    with readable(path) as opened:
        tasks = opened.tasks()
    return len(tasks), {failure for failure in tasks.values() if failure}


def test_a_lost_client_is_one_sentence_and_no_task_fails_for_it(tmp_path, client):
    store = tmp_path / "study.sqlite"
    other = distributed.Client(client.scheduler.address, set_as_default=False)

    def close(standing):
        if standing.now == 3:
            other.close()

    with pytest.raises(StoreError, match=r"Dask cluster is not there any more .* kept"):
        covaria.run_study({**TINY, "repeats": 100}, store=store, dask=other, progress=close)
    count, failures = stored(store)
    assert 3 <= count < 400
    assert not failures


@pytest.fixture
def far(tmp_path):
    """Return a scheduler and a worker in processes of their own, and the scheduler's address."""
    path = tmp_path / "scheduler.json"
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m"]
    where = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(path)]
    started = [subprocess.Popen([*command, "distributed.cli.dask_scheduler", *where,
                                 "--no-dashboard"], **options)]  # fmt: skip
    deadline = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    started.append(
        subprocess.Popen([*command, "distributed.cli.dask_worker", "--scheduler-file",
                          str(path), "--nthreads", "1", "--no-dashboard", "--no-nanny"], **options)
    )  # fmt: skip
    yield started[0], json.loads(path.read_text())["address"]
    for process in started:
        process.kill()
        process.wait()


def test_a_killed_scheduler_is_one_sentence_and_no_task_fails_for_it(tmp_path, far):
    import dask

    scheduler, address = far
    store = tmp_path / "study.sqlite"

    def kill(standing):
        if standing.now == 3:
            scheduler.kill()

    before = dask.config.get("scheduler", None)
    with pytest.raises(StoreError, match="Dask cluster is not there any more"):
        covaria.run_study({**TINY, "repeats": 100}, store=store, dask=address, progress=kill)
    assert dask.config.get("scheduler", None) == before
    count, failures = stored(store)
    assert 3 <= count < 400
    assert not failures
    assert dask.delayed(abs)(-3).compute() == 3  # the lost cluster is not what others compute on


def deadly():
    """Return a model whose draws end the process, but for the one that the tests run in."""
    here = os.getpid()

    def features(rng, n_rows):
        if os.getpid() != here:
            os._exit(3)
        return rng.normal(size=(n_rows, 2))

    return covaria.Model([1.0, 0.0], sampler=features, conditional="independent", n_features=2)


def test_a_task_that_ends_its_process_fails_alone(tmp_path, client):
    client.wait_for_workers(2, timeout=120)
    store = tmp_path / "study.sqlite"
    scenarios = [*TINY["scenario"], {"name": "deadly", "model": deadly(), "n_rows": 30}]
    study = {**TINY, "repeats": 1, "learner": ["linear"], "scenario": scenarios}
    found = covaria.run_study(study, store=store, dask=client)
    assert [failure[0] for failure in found.failures] == ["deadly"]
    assert stored(store) == (3, {pools.DIED})


class Ends(LinearRegression):
    """A learner that ends the process it is fitted in, but for the first of all."""

    def fit(self, X, y):
        assert multiprocessing.parent_process() is not None, "it would have ended the tests"
        os._exit(3)


def test_a_learner_that_ends_its_process_is_one_sentence_of_assess(client):
    client.wait_for_workers(1, timeout=120)
    X, y = covaria.draw("linear", n_rows=60, seed=2)
    with pytest.raises(InputError, match=r"fails on Dask again and again: the process .* dies"):
        assess_on_dask(client, X.iloc[:, :8], y, learner=Ends(), methods="gcm", splits=2)


def test_a_learner_that_leaves_fails_its_task_only(tmp_path):
    def features(rng, n_rows):
        if n_rows == 30:
            sys.exit(0)
        return rng.normal(size=(n_rows, 2))

    model = covaria.Model([1.0, 0.0], sampler=features, conditional="independent", n_features=2)
    study = {**TINY, "repeats": 1, "learner": ["linear"],
             "scenario": [{"name": "leaves", "model": model, "n_rows": 30}]}  # fmt: skip
    found = covaria.run_study(study, store=tmp_path / "study.sqlite")
    assert found.failures[0][-1] == "SystemExit: 0"


@pytest.mark.parametrize(
    "address", ["nonsense", "tcp://", "tcp://[::", "http://x:1", "", "tcp://x"]
)
def test_an_address_that_is_none_is_one_sentence(tmp_path, address):
    with pytest.raises(InputError, match="There is no Dask scheduler at"):
        covaria.run_study(TINY, store=tmp_path / "study.sqlite", dask=address)
