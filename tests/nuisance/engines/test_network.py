"""The network engine: what the plain engine says, sooner."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from covaria.assessment import prepare
from covaria.learners import Linear, Network
from covaria.nuisance.engines import network, plain
from covaria.nuisance.outcomes import gather
from covaria.results.conclusion import conclude
from cpu_time import least_seconds

pytest.importorskip("torch")

EVERYTHING = ["gcm", "loco", "dropout", "permutation"]
BRIEF = Network(hidden=(8,), batch=32, epochs=4, lr=1e-2)
SPLITS = {
    "three folds": {"splits": 3},
    "held out": {"splits": 0.3},
    "in sample": {"paper": True, "shared_randomness": True},
}
TABLES = ("plain", "weights", "groups and category", "gaps")


def numbers(n_rows=95, n_columns=4):
    """Return a table of which the first two columns matter."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(n_rows, n_columns))).add_prefix("x")
    return X, 5 + 3 * X["x0"] + X["x1"] ** 2 + rng.normal(size=n_rows)


def table(kind):
    """Return a table with what `kind` says in it, and the options that go with it."""
    X, y = numbers()
    rng = np.random.default_rng(4)
    if kind == "weights":
        return X, y, {"sample_weight": rng.integers(0, 4, len(X))}
    if kind == "groups and category":
        X["town"] = rng.choice(["a", "b", "c"], len(X))
        return X, y, {"groups": {"pair": ["x1", "x2"]}}
    if kind == "gaps":
        X.loc[rng.random(len(X)) < 0.2, "x1"] = np.nan
    return X, y, {}


def classes(y, number):
    """Return the numbers, or classes made of them."""
    if not number:
        return y
    return pd.Series(np.searchsorted(np.quantile(y, np.linspace(0, 1, number + 1)[1:-1]), y)).map(
        "class {}".format
    )


def plan_of(X, y, learner=BRIEF, methods=EVERYTHING, **options):
    return prepare(X, y, learner=learner, methods=methods, **options).plan(0)


def difference(ours, theirs):
    """Return the largest difference between two lists of outcomes of the same kind."""
    assert [o.failure for o in ours] == [o.failure for o in theirs]
    worst = 0.0
    for one, other in zip(ours, theirs, strict=True):
        for name in ("prediction", "dropped", "permuted"):
            a, b = getattr(one, name), getattr(other, name)
            assert (a is None) == (b is None)
            if a is not None:
                assert a.shape == b.shape
                worst = max(worst, float(np.abs(a - b).max()))
    return worst


def assert_equal_to_plain(plan, tolerance=1e-8):
    assert difference(network.run(plan), plain.run(plan)) < tolerance


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("splits", SPLITS)
def test_it_says_what_the_plain_engine_says(splits, kind, n_classes):
    X, y, options = table(kind)
    assert_equal_to_plain(plan_of(X, classes(y, n_classes), **SPLITS[splits], **options))


@pytest.mark.parametrize(
    "learner",
    [
        Network(hidden=(7, 5), batch=32, epochs=4, weight_decay=0.01),
        Network(hidden=(6, 5, 4), batch=1000, epochs=4),
        Network(hidden=(6,), batch=31, epochs=4),
        Network(hidden=(1,), batch=1, epochs=1),
    ],
)
@pytest.mark.parametrize("n_classes", [0, 3])
def test_depth_decay_and_any_batch_are_alike(learner, n_classes):
    X, y = numbers()
    assert_equal_to_plain(plan_of(X, classes(y, n_classes), learner, splits=3))


@pytest.mark.parametrize("learner", [Network(), Network(lr=1e-2, batch=32)])
def test_p_values_agree_after_training_to_the_end(learner):
    X, y = numbers(n_rows=200)
    job = prepare(X, y, learner=learner, methods=["gcm", "loco"], splits=2)
    plan = job.plan(0)
    outcomes = network.run(plan), plain.run(plan)
    assert difference(*outcomes) < 1e-6  # rounding grows with the steps; 1e-13 when written
    ours, theirs = (
        conclude([gather(plan, o)], job.learner, job.methods, job.options, {}).table["p_value"]
        for o in outcomes
    )
    assert ours.to_numpy() == pytest.approx(theirs.to_numpy(), abs=1e-6)


def test_models_stop_early_and_each_at_its_own_time(monkeypatch):
    X, y = numbers()
    plan = plan_of(X, y, replace(BRIEF, lr=0.05, epochs=100), ["gcm"], splits=0.3)
    stops = []
    kept = network.settled
    monkeypatch.setattr(network, "settled", lambda losses: stops.append(losses) or kept(losses))
    assert_equal_to_plain(plan)
    lengths = {id(losses): len(losses) for losses in stops}.values()
    assert max(lengths) < 100
    assert len(set(lengths)) > 1


@pytest.mark.parametrize(
    "needs",
    [
        {"y_given_all"},
        {"y_given_rest"},
        {"x_given_rest"},
        {"y_dropped"},
        {"y_permuted"},
        {"y_given_all", "y_given_rest"},
        {"x_given_rest", "y_given_rest"},
    ],
)
def test_only_what_is_needed_is_fitted(needs, monkeypatch):
    X, y = numbers()
    plan = replace(plan_of(X, y, splits=0.3), needs=frozenset(needs))
    fitted = []
    train = network._trained
    monkeypatch.setattr(network, "_trained", lambda *given: fitted.append(1) or train(*given))
    assert_equal_to_plain(plan)
    assert len(fitted) == len(plan.tasks)


def test_a_single_feature_leaves_the_mean():
    X, y = numbers(n_columns=2)
    assert_equal_to_plain(plan_of(X[["x0"]], y, splits=3))
    assert_equal_to_plain(plan_of(X[["x0"]], classes(y, 3), splits=3))


def test_constant_and_duplicate_columns_are_alike():
    X, y = numbers()
    X["fixed"], X["twin"] = 7.0, X["x0"]
    X["nearly"] = (np.arange(len(X)) == 10).astype(float)  # constant in some folds
    assert_equal_to_plain(plan_of(X, y, splits=3))


def test_a_loss_beyond_all_bounds_is_reported_as_plain_does():
    X, y = numbers()
    plan = plan_of(X, y, Network(lr=1e99), ["loco"], splits=0.3)
    outcomes = network.run(plan)
    assert all("lower lr" in outcome.failure for outcome in outcomes)
    assert difference(outcomes, plain.run(plan)) == 0


def test_progress_and_seconds_are_told():
    told = []
    X, y = numbers()
    job = prepare(X, y, learner=BRIEF, methods=EVERYTHING, splits=3)
    plan = job.plan(0, lambda done, total: told.append((done, total)))
    outcomes = network.run(plan)
    assert told == [(k + 1, len(plan.tasks)) for k in range(len(plan.tasks))]
    assert all(o.seconds > 0 for o in outcomes)
    full = [o for t, o in zip(plan.tasks, outcomes, strict=True) if t.need == "y_given_all"]
    assert all(o.seconds_dropped > 0 and o.seconds_permuted > 0 for o in full)


def test_it_supports_networks_and_nothing_else():
    X, y = numbers()
    assert network.supports(plan_of(X, y, splits=0.3))
    assert not network.supports(plan_of(X, y, Linear(), splits=0.3))


def test_it_is_many_times_faster_than_plain():
    X, y = numbers(n_rows=1000, n_columns=20)
    plan = plan_of(X, y, Network(batch=32, epochs=2), ["gcm", "loco"], splits=0.5)
    network.run(plan)
    ours, theirs = (least_seconds(partial(engine.run, plan), 2) for engine in (network, plain))
    assert theirs > 4 * ours


def test_it_needs_no_torch():
    code = """
import sys, numpy as np
from covaria.assessment import prepare
from covaria.nuisance.engines import network
X = np.random.default_rng(0).normal(size=(40, 2))
plan = prepare(X, X[:, 0], learner="network(epochs=1)", splits=2).plan(0)
assert not any(outcome.failure for outcome in network.run(plan))
sys.exit("torch" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
