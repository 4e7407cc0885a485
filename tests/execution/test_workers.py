"""Processes end with the one that started them, and are not started without end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

import covaria
from covaria.errors import InputError
from covaria.nuisance.engines import plain
from covaria.nuisance.plan import Outcome
from covaria.studies import pools

HAS_PROC = Path("/proc/self/stat").exists()
ASSESS = """
import time
import numpy as np
import covaria
class Slow:
    def fit(self, X, y):
        time.sleep(100)
    def predict(self, X):
        return X[:, 0]
x = np.random.default_rng(0).normal(size=(60, 3))
covaria.assess(x, x[:, 0], learner=Slow(), methods="gcm", n_jobs=2)
"""
STABILITY = ASSESS.replace("assess(", "stability(").replace("methods=", "method=")
STUDY = """
import time
import covaria
def slow(rng, n_rows):
    time.sleep(100 if n_rows == 60 else 0)
    return rng.normal(size=(n_rows, 3))
model = covaria.Model([1.0, 0.0, 0.0], sampler=slow, name="slow")
scenario = [{"name": "slow", "model": model, "n_rows": 60}]
study = {"repeats": 4, "scenario": scenario, "learner": [{"name": "linear"}]}
covaria.run_study(study, store="study.sqlite", n_jobs=2)
"""


def living(session):
    """Return the processes of a session, without those that are only not yet buried."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of = path.read_text().rsplit(")", 1)[1].split()[:4]
        except OSError:  # it ended while we looked
            continue
        if int(of) == session and state != "Z":
            found.append(int(path.parent.name))
    return found


def wait_until(is_so, seconds=60):
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.2)


@pytest.mark.skipif(not HAS_PROC, reason="looks into /proc")
@pytest.mark.parametrize("code", [ASSESS, STABILITY, STUDY], ids=["assess", "stability", "study"])
def test_killed_without_a_word_no_worker_is_left(code, tmp_path):
    started = subprocess.Popen(
        [sys.executable, "-c", code], start_new_session=True, cwd=tmp_path, stderr=subprocess.PIPE
    )
    try:
        # This process, two that keep books, and two that work.
        wait_until(lambda: len(living(started.pid)) >= 5 or started.poll() is not None)
        assert started.poll() is None, started.stderr.read().decode()
        os.kill(started.pid, signal.SIGKILL)
        started.wait()
        wait_until(lambda: not living(started.pid), seconds=30)
    finally:
        for process in living(started.pid):
            os.kill(process, signal.SIGKILL)
        started.stderr.close()


# --- learners whose process dies ----------------------------------------------------------------


def outcomes(dies, monkeypatch):
    """Return the failures of tasks one by one, of which some die, and how many were tried."""
    tried = []

    def alone(_, task):
        tried.append(task)
        return Outcome(failure=plain.DIED if dies[task] else "")

    monkeypatch.setattr(plain, "_alone", alone)
    found = plain._one_by_one(SimpleNamespace(), list(range(len(dies))))
    return [outcome.failure for outcome in found], len(tried)


def test_a_learner_that_dies_in_every_fit_is_tried_three_times(monkeypatch):
    failures, tried = outcomes([True] * 500, monkeypatch)
    assert tried == plain.MOST_DEATHS == 3
    assert failures[:3] == [plain.DIED] * 3
    assert set(failures[3:]) == {
        "the learner's process died in 3 fits in a row, so this was not tried"
    }


def test_a_fit_that_survives_starts_the_count_again(monkeypatch):
    dies = [True, True, False] * 20
    failures, tried = outcomes(dies, monkeypatch)
    assert tried == 60
    assert [failure == plain.DIED for failure in failures] == dies


class Dies(RegressorMixin, BaseEstimator):
    """A learner that takes its process along where it has four columns."""

    def fit(self, X, y):
        if X.shape[1] == 4:
            os._exit(3)
        self.mean_ = y.mean()
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


Dies.__module__ = "__main__"  # other processes cannot import a test


def test_one_fit_alone_does_not_bring_this_process_down():
    """With one part held out, LOCO has one model of all features: it was fitted in this process."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 4))).add_prefix("c")
    with pytest.raises(
        InputError, match=r"No feature could be tested .* the learner's process died"
    ):
        covaria.assess(X, X["c0"], learner=Dies(), methods="loco", splits=0.5, n_jobs=2)


def test_a_cell_whose_tasks_all_die_is_given_up_and_another_is_not(monkeypatch):
    tasks = [(cell, repeat) for repeat in range(9) for cell in (0, 1)]
    starts = []

    def until_broken(works, queue, n_jobs, *, ahead):
        """Do as processes do of which those that take a task of cell 0 die."""
        starts.append(n_jobs)
        while queue:
            taken, queue[:] = queue[:ahead], queue[ahead:]
            if any(cell == 0 for cell, _ in taken):
                return taken
            yield from (pools.Done(*task, (), 0.0) for task in taken)
        return []

    monkeypatch.setattr(pools, "_until_broken", until_broken)
    found = list(pools.processes(2)({}, tasks))
    assert sorted((done.cell, done.repeat) for done in found) == sorted(tasks)
    said = [done.failure for done in found if done.cell == 0]
    assert said.count(pools.DIED) == pools.MOST_IN_A_ROW
    assert said.count("not tried: 3 tasks in a row died") == 6
    assert {done.failure for done in found if done.cell == 1} == {""}
    assert len(starts) < 10
