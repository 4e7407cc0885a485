"""The same table and seed give the same bytes, whatever the threads, processes and hashes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib, json, sys
import numpy as np
import pandas as pd
import covaria
from sklearn.linear_model import Ridge

learners, n_jobs = sys.argv[1].split(";"), int(sys.argv[2])
n, columns = map(int, sys.argv[3].split("x"))
rng = np.random.default_rng(1)
X = pd.DataFrame(rng.normal(size=(n, columns))).add_prefix("c")
X["town"] = rng.choice(["a", "b", "c", None], size=n)
X["when"] = pd.date_range("2020-01-01", periods=n)
y = X["c0"] + np.sin(X["c1"]) + (X["town"] == "a") + rng.normal(size=n)
for name in learners:
    learner = Ridge() if name == "Ridge()" else name
    methods = "gcm,pcm,loco,dropout,permutation,basis_gcm" + (",lasso" if name == "linear" else "")
    result = covaria.assess(X, y, learner=learner, methods=methods, splits=3, n_jobs=n_jobs)
    kept = result.to_dict()
    timed = {key for key in kept["about"] if "seconds" in key or key in ("cost", "n_jobs")}
    kept["about"] = {k: v for k, v in kept["about"].items() if k not in timed}
    print(name, hashlib.sha256(json.dumps(kept).encode()).hexdigest())
"""


def said(learners, threads, hashes, n_jobs, size):
    """Return the digests that a fresh process prints."""
    many = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), threads)
    environment = {**os.environ, **many, "PYTHONHASHSEED": hashes}
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, ";".join(learners), n_jobs, size],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def same(learners, size):
    one = said(learners, "1", "0", "1", size)
    assert one.count("\n") == len(learners)
    assert said(learners, "2", "1", "1", size) == one
    assert said(learners, "2", "12345", "2", size) == one


def test_threads_hashes_and_processes_change_no_byte():
    same(["linear", "splines", "boosting(trees=10)", "Ridge()"], "300x8")


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["surfaces", "quadratic", "sparse", "single_index", "splines"])
def test_products_large_enough_for_two_threads_have_the_same_bytes(learner):
    same([learner], "3000x24")


@pytest.mark.slow
def test_threads_hashes_and_processes_change_no_byte_of_any_learner():
    same(
        ["auto", "forest(trees=20)", "kernel", "network(epochs=5)", "surfaces", "pursuit"], "300x24"
    )
