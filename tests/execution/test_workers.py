"""Processes end with the one that started them, and are not started without end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

import covaria
from covaria.errors import InputError
from covaria.execution import processes, workers
from covaria.execution.executors import Died, each
from covaria.execution.processes import Processes
from covaria.execution.sharing import folder
from covaria.nuisance.engines import plain
from covaria.nuisance.fit import _or_dead
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


def wait_until(is_so, seconds=200):
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.2)


@pytest.mark.skipif(not HAS_PROC, reason="looks into /proc")
@pytest.mark.parametrize("code", [ASSESS, STABILITY, STUDY], ids=["assess", "stability", "study"])
def test_killed_without_a_word_no_worker_is_left(code, tmp_path):
    code = "import os; from covaria.execution import sharing; sharing.MEMORY = os.getcwd()" + code
    started = subprocess.Popen(
        [sys.executable, "-c", code], start_new_session=True, cwd=tmp_path, stderr=subprocess.PIPE
    )
    try:
        # This process and two that work.
        wait_until(lambda: len(living(started.pid)) >= 3 or started.poll() is not None)
        assert started.poll() is None, started.stderr.read().decode()
        os.kill(started.pid, signal.SIGKILL)
        started.wait()
        wait_until(lambda: not living(started.pid))
        assert not list(tmp_path.glob("covaria-*"))
    finally:
        for process in living(started.pid):
            os.kill(process, signal.SIGKILL)
        started.stderr.close()


# --- one process and its pipes ------------------------------------------------------------------


def grow(number):
    """Return a number after this process has taken 310 MB for good."""
    import builtins
    import time

    builtins.held = getattr(builtins, "held", None) or b"x" * 310_000_000
    time.sleep(1.1)
    return number


def die(number):
    """Return a number; the process of number 2 is killed, and leaves one that it has started."""
    import os
    import signal
    import time

    if number == 2:
        if os.fork() == 0:
            time.sleep(1000)
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def die_once(item):
    """Return the name of a file; its process is killed unless the file is there already."""
    import os
    import signal

    if not os.path.exists(item):
        with open(item, "w"):
            os.kill(os.getpid(), signal.SIGKILL)
    return item


def speak(number):
    """Return who answers, after reading and printing what there is."""
    import os
    import subprocess
    import sys

    assert not sys.stdin.read()
    print("a learner that prints", flush=True)
    subprocess.run([sys.executable, "-c", "print(input() if 0 else 1)"], check=True)
    return os.getpid()


for function in (grow, die, die_once, speak):
    function.__module__ = "__main__"  # other processes cannot import a test


def answers(function, items, n_jobs=2):
    with closing(Processes(n_jobs, apart=True)) as executor:
        return dict(each(executor, function, items))


def test_a_process_that_grows_goes_on_working():
    """Such as one that compiles: loky ends it, and with warnings as errors nobody answered."""
    assert answers(grow, range(6)) == dict(enumerate(range(6)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_process_takes_its_own_item_along_whatever_it_had_started():
    assert answers(die, range(5)) == {0: 0, 1: 1, 2: Died(), 3: 3, 4: 4}


def test_an_item_whose_process_was_killed_by_chance_is_tried_again(tmp_path):
    items = [str(tmp_path / name) for name in "abc"]
    assert answers(die_once, items) == dict(enumerate(items))


def test_what_a_learner_prints_or_reads_is_not_taken_for_an_answer(capfd):
    assert os.getpid() not in answers(speak, range(3)).values()
    printed = capfd.readouterr()
    assert not printed.out
    assert printed.err.count("a learner that prints") == 3


def test_a_process_serves_the_next_call_too_and_ends_when_it_was_idle(monkeypatch):
    monkeypatch.setattr(workers, "IDLE", 0.0)
    worker = workers.hire()
    workers.dismiss(worker)
    worker.wait(200)
    assert worker._process.returncode == 0
    monkeypatch.undo()
    first = workers.hire()
    workers.dismiss(first)
    assert workers.hire() is first
    first.end()


def test_a_process_in_which_foreign_code_ran_ends_with_the_call():
    (first,) = answers(_pid, [0], n_jobs=1).values()
    (second,) = answers(_pid, [0], n_jobs=1).values()
    assert os.getpid() != first != second
    wait_until(lambda: not {first, second} & {worker.pid for worker in workers._living})


def _pid(_):
    return os.getpid()


_pid.__module__ = "__main__"


NO_PROCESS = r"processes that n_jobs asks for cannot be started, or die at once\. Use n_jobs=1\."


def test_processes_that_die_at_once_are_one_sentence(monkeypatch):
    monkeypatch.setattr(workers, "_command", lambda: [sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(InputError, match=NO_PROCESS):
        answers(str, [1, 2])


def test_processes_that_cannot_be_started_are_one_sentence_or_done_without(monkeypatch):
    monkeypatch.setattr(workers, "_command", lambda: ["/no/such/python"])
    with pytest.raises(InputError, match=NO_PROCESS):
        answers(str, [1, 2])
    monkeypatch.setattr(processes, "hire", workers.Worker)
    assert not Processes(2).is_awake(wanted=True)


def test_processes_that_die_at_once_are_done_without(monkeypatch):
    monkeypatch.setattr(workers, "_command", lambda: [sys.executable, "-c", "raise SystemExit(3)"])
    monkeypatch.setattr(processes, "hire", workers.Worker)
    executor = Processes(2)
    for _ in range(9):
        executor.is_awake(wanted=True)
        assert dict(each(executor, str, [1, 2])) == {0: "1", 1: "2"}
        for worker in executor._workers:
            worker.wait(200)
            wait_until(lambda worker=worker: worker.is_gone)
    assert executor._false_starts == processes.MOST_FALSE_STARTS
    assert not executor.is_awake(wanted=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_leaves_the_workers_of_its_parent_alone():
    worker = workers.hire()
    workers.dismiss(worker)
    folder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of later Pythons: there are threads
        child = os.fork()
    if child == 0:
        os._exit(1 if workers._idle or workers._living or folder.cache_info().currsize else 0)
    assert os.waitpid(child, 0)[1] == 0
    assert workers.hire() is worker
    worker.end()


def test_two_threads_may_ask_at_once():
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda count: answers(abs, range(-count, 0)), [20, 30]))
    assert found == [{at: count - at for at in range(count)} for count in (20, 30)]


# --- learners whose process dies ----------------------------------------------------------------


class Deadly:
    """An executor of one process, in which some items die; it notes those that were tried."""

    def __init__(self, dies):
        self.dies, self.tried = dies, []

    def attempt(self, function, items, queue, *, alone):
        while queue:
            place = queue.pop(0)
            self.tried += [place] if alone else []
            if self.dies[place]:
                return [place]
            yield place, function(items[place])
        return []


def fitted(dies):
    """Return what is said of tasks of which some die, and how many were tried by themselves."""
    executor = Deadly(dies)
    found = dict(each(executor, str, range(len(dies)), most_deaths=plain.MOST_DEATHS))
    said = [_or_dead(found[at]) if isinstance(found[at], Died) else None for at in range(len(dies))]
    return [one.outcomes[0].failure if one else "" for one in said], len(executor.tried)


def test_a_learner_that_dies_in_every_fit_is_tried_three_times():
    failures, tried = fitted([True] * 500)
    assert tried == plain.MOST_DEATHS == 3
    assert failures[:3] == [plain.DIED] * 3
    assert set(failures[3:]) == {
        "the learner's process died in 3 fits in a row, so this was not tried"
    }


def test_a_fit_that_survives_starts_the_count_again():
    dies = [True, True, False] * 20
    failures, _ = fitted(dies)
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


class DiesAlways(Dies):
    """A learner that takes its process along in every fit."""

    def fit(self, X, y):
        os._exit(3)


DiesAlways.__module__ = "__main__"


def test_a_learner_that_dies_in_every_fold_is_given_up_once_for_all_of_them(monkeypatch):
    started = []
    monkeypatch.setattr(
        processes, "Worker", lambda: started.append(workers.Worker()) or started[-1]
    )
    X = np.random.default_rng(0).normal(size=(60, 6))
    with pytest.raises(InputError, match="the learner's process died in 3 fits in a row"):
        covaria.assess(X, X[:, 0], learner=DiesAlways(), methods="gcm", splits=5, n_jobs=2)
    assert len(started) < 10  # of 60 fits


def test_a_cell_whose_tasks_all_die_is_given_up_and_another_is_not(monkeypatch):
    tasks = [(cell, repeat) for repeat in range(9) for cell in (0, 1)]
    executor = Deadly([cell == 0 for cell, _ in tasks])
    executor.share = lambda value: None
    monkeypatch.setattr(pools, "_run", lambda item: pools.Done(*item[1:], (), 0.0))
    found = list(pools.run_tasks(executor, {}, tasks))
    assert sorted((done.cell, done.repeat) for done in found) == sorted(tasks)
    said = [done.failure for done in found if done.cell == 0]
    assert said.count(pools.DIED) == pools.MOST_IN_A_ROW
    assert said.count("not tried: 3 tasks in a row died") == 6
    assert {done.failure for done in found if done.cell == 1} == {""}
    assert len(executor.tried) < 10
