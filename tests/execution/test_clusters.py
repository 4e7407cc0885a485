"""A Dask cluster as an executor: what we opened is closed, what was given is not."""

import os
import time

import pytest

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
