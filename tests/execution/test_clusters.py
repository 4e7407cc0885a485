"""A Dask cluster as an executor: what we opened is closed, what was given is not."""

import os
import time

import pytest

from covaria.execution import clusters
from covaria.execution.clusters import on_dask
from covaria.execution.executors import each, in_order

distributed = pytest.importorskip("distributed", reason="needs pip install 'covaria[dask]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # distributed's own remarks


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_cluster_of_ours_ends_with_the_call_and_a_client_that_was_given_stays():
    with on_dask("local", 1) as ours:
        assert list(in_order(each(ours, abs, [-3, 2]))) == [3, 2]
        with pytest.raises(ValueError, match="No clients found"):
            distributed.default_client()  # what others compute is not sent there
        pids = list(ours.client.run(os.getpid).values())
        (surroundings,) = ours.client.run(lambda: dict(os.environ)).values()
        assert surroundings["OMP_NUM_THREADS"] == "1"
        assert "MALLOC_TRIM_THRESHOLD_" not in surroundings  # slow
        with on_dask(ours.client) as given:
            assert given.client is ours.client
            assert given.n_workers == len(pids) == 1
        assert ours.client.status == "running"
    assert ours.client.status == "closed"
    until = time.monotonic() + 120
    while any(map(is_alive, pids)):
        assert time.monotonic() < until
        time.sleep(0.1)


class Fake:
    """A future of a cluster that is not there."""

    def __init__(self, key, status="pending"):
        self.key, self.status = key, status

    def add_done_callback(self, put):
        if self.status != "pending":
            put(self)

    def exception(self, timeout):
        return distributed.scheduler.KilledWorker("fit", None, 3)


class FakeClient:
    """A client with one task that died, one that a worker has, and others that none has yet."""

    status, begun = "running", {"one", "two"}

    def submit(self, function, key, pure):
        return Fake(key, "error" if key == "one" else "pending")

    def processing(self):
        return {"tcp://worker": tuple(self.begun)}

    def cancel(self, futures):
        self.taken_back = [future.key for future in futures]


def test_what_no_worker_has_is_taken_back_where_a_process_died():
    client = FakeClient()
    calls = {name: (abs, name) for name in ("one", "two", "three", "four")}
    found = clusters.outcomes(client, calls)
    came = [next(found)[:2] for _ in range(3)]
    assert came == [("one", clusters.DEAD), ("three", clusters.LOST), ("four", clusters.LOST)]
    assert client.taken_back == ["three", "four"]
