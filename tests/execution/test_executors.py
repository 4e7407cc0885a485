"""One executor below the plan: the same bytes from one process and from several, all at work."""

import json
import os
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import covaria
from covaria.assessment import prepare
from covaria.execution import processes
from covaria.execution.executors import Serial, each, in_order
from covaria.execution.processes import Processes
from covaria.execution.sharing import Shared, drop_file, from_file, to_file, unpacked
from covaria.nuisance import fit


def a_table(n_rows=200, n_columns=8):
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(n_rows, n_columns))).add_prefix("c")
    X["c1"] += 0.6 * X["c0"]
    X["town"] = rng.choice(["a", "b", None], size=n_rows)
    return X, X["c0"] + np.sin(2 * X["c2"]) + rng.normal(size=n_rows)


def numbers(result):
    """Return all of a result but how long it took."""
    kept = result.to_dict()
    timed = {key for key in kept["about"] if "seconds" in key or key in ("cost", "n_jobs")}
    kept["about"] = {k: v for k, v in kept["about"].items() if k not in timed}
    return json.dumps({k: v for k, v in kept.items() if k != "cost"})


class Noting(Processes):
    """Processes that note who answered, and in which this one takes no more than the other."""

    def __init__(self, n_jobs):
        super().__init__(n_jobs)
        self.said = []

    def attempt(self, function, items, queue, *, alone):
        found = super().attempt(_Signed(function), items, queue, alone=alone)
        while True:
            try:
                place, (who, value) = next(found)
            except StopIteration as end:
                return end.value
            self.said.append(who)
            yield place, value


class _Signed:
    def __init__(self, function):
        self.function = function

    def __call__(self, item):
        return os.getpid(), self.function(item)


_Signed.__module__ = "__main__"  # other processes cannot import a test


def in_turn(take):
    """Let this process take an item only after a worker took one: no clock decides who works."""
    taken = Counter()

    def taken_in_turn(feed, worker=None):
        if worker is None and taken[feed, True] < taken[feed, False] + 1:
            time.sleep(0.001)
            return None
        place = take(feed, worker)
        taken[feed, worker is not None] += place is not None
        return place

    return taken_in_turn


@pytest.fixture
def eager(monkeypatch):
    """Let everything that can be cut be sent, though it is small."""
    monkeypatch.setattr(fit, "MANY_NUMBERS", 0)
    monkeypatch.setattr(fit, "WORTH_CALLING", 0)
    monkeypatch.setattr(fit, "SHORTEST", 0)
    monkeypatch.setattr(fit, "SHORT", 0)


def test_the_default_uses_both_workers_and_has_the_bytes_of_one(eager, monkeypatch):
    job = prepare(*a_table())
    alone = job.run()
    monkeypatch.setattr(processes._Feed, "take", in_turn(processes._Feed.take))
    with closing(Noting(2)) as executor:
        both = job.run(executor=executor)
    assert numbers(both) == numbers(alone)
    assert both.cost["models"].sum() == alone.cost["models"].sum()
    assert len(set(executor.said)) == 2
    assert 0.1 < np.mean(np.array(executor.said) == os.getpid()) < 0.9


@pytest.mark.parametrize(
    ("learner", "n_jobs"), [("boosting(trees=10)", 2), (Ridge(), 3), ("splines(df='gcv')", 2)]
)
def test_more_jobs_give_the_bytes_of_one(learner, n_jobs, eager, monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    settings = {"learner": learner, "methods": "gcm,pcm,loco,permutation", "splits": 3}
    one, more = (covaria.assess(*a_table(), n_jobs=n, **settings) for n in (1, n_jobs))
    assert numbers(more) == numbers(one)
    assert more.cost["models"].sum() == one.cost["models"].sum()


def test_processes_that_are_not_awake_yet_keep_nobody_waiting():
    executor = Processes(2)
    executor._workers = [_Asleep()]
    assert list(in_order(each(executor, str, [1, 2, 3]))) == ["1", "2", "3"]


class _Asleep:
    is_gone = False

    def feed(self, feed):
        pass


def test_a_short_run_starts_no_process(monkeypatch):
    def never():
        raise AssertionError("a process was started")

    monkeypatch.setattr(processes, "hire", never)
    for learner in ("linear", "boosting(trees=5)"):
        covaria.assess(*a_table(60, 3), learner=learner, methods="gcm", n_jobs=2)


def test_the_table_is_sent_once_and_a_task_is_small():
    sent = []
    shared = Shared(lambda value: sent.append(value) or to_file(value), drop_file)
    plan = prepare(*a_table(5000, 30), learner="boosting").plan(0)
    shared.add(plan.data)
    shared.add(plan.folds)
    tasks = [shared.packed(plan) for _ in range(3)]
    assert len(sent) == 2
    assert max(map(len, tasks)) < 5000
    back = unpacked(tasks[0], from_file)
    assert unpacked(tasks[1], from_file).data is back.data
    np.testing.assert_array_equal(back.data.X, plan.data.X)
    assert back.data.X.flags.c_contiguous == plan.data.X.flags.c_contiguous
    files = [Path(name) for name in shared.names]
    assert all(file.exists() for file in files)
    shared.clear()
    assert not any(file.exists() for file in files)


def test_what_is_written_to_a_shared_array_stays_in_its_process():
    values, fixed = np.arange(10.0), np.arange(3.0)
    fixed.flags.writeable = False
    path = to_file((values, fixed))
    one, same = from_file(path)
    one[0] = 7.0
    assert not same.flags.writeable
    from_file.cache_clear()
    assert from_file(path)[0][0] == 0.0
    drop_file(path)


def test_values_come_in_the_order_of_their_items():
    assert list(in_order([(2, "c"), (0, "a"), (1, "b")])) == ["a", "b", "c"]
    assert list(in_order(each(Serial(), str, [3, 1, 2]))) == ["3", "1", "2"]


def test_an_error_of_a_task_is_raised_here():
    def divide(number):
        return 1 / number

    with pytest.raises(ZeroDivisionError):
        list(each(Processes(2, apart=True), divide, [1, 0]))
