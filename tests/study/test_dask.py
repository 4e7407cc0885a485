"""The same study on Dask: real processes, one of them killed."""

import os
import signal
import warnings

import pytest
from pandas.testing import assert_frame_equal

import covaria
from covaria.errors import InputError
from covaria.studies.on_dask import assess_on_dask
from tiny_study import TINY, exported

distributed = pytest.importorskip("distributed", reason="needs pip install 'covaria[dask]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # distributed's own remarks


@pytest.fixture(scope="module")
def client():
    """Return a client of a cluster of two processes on this machine."""
    with (
        warnings.catch_warnings(),
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
    client.wait_for_workers(2, timeout=30)
    seen, sent, scatter = [], [], client.scatter

    def counted(works, **choices):
        sent.append(len(works))
        return scatter(works, **choices)

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


def test_assess_on_dask_outlives_a_killed_worker(client):
    client.wait_for_workers(2, timeout=30)
    X, y = covaria.draw("linear", n_rows=120, seed=2)
    settings = {"learner": "linear", "methods": ["gcm"], "splits": 5, "repeats": 4}
    pid = next(iter(client.run(os.getpid).values()))

    def kill_one(done, total):
        if done == 2:
            os.kill(pid, signal.SIGKILL)

    there = assess_on_dask(client, X, y, progress=kill_one, **settings)
    assert_frame_equal(there.table, covaria.assess(X, y, **settings).table)
