"""Every engine returns what the plain engine returns: one contract for all of them."""

import numpy as np
import pandas as pd
import pytest

from as_plain import assert_as_plain, by_task
from covaria.assessment import prepare
from covaria.learners import (
    Boosting,
    Kernel,
    Linear,
    Mean,
    Network,
    Ridge,
    RidgePath,
    Splines,
    Surfaces,
)
from covaria.nuisance.engines import plain, ridge_path, surfaces
from covaria.nuisance.fit import ENGINES, engine_for
from covaria.nuisance.outcomes import gather

METHODS = "gcm,loco,dropout,permutation"
LAZY = ",lazy"
# Largest difference in units of the target's sd, and in p-values. libsvm stops at 1e-3, so two
# of its own runs differ by that much.
LEARNERS = {
    "mean": (Mean(), 1e-12, 1e-12),
    "linear": (Linear(), 1e-8, 1e-6),
    "ridge": (Linear(ridge=3.0), 1e-8, 1e-6),
    "unitless ridge": (Ridge(ridge=3.0), 1e-8, 1e-6),
    "ridge path": (RidgePath(), 1e-7, 1e-6),
    "splines": (Splines(), 1e-8, 1e-6),
    "splines by gcv": (Splines(df="gcv"), 1e-8, 1e-6),
    "surfaces": (Surfaces(), 1e-8, 1e-6),
    "stumps": (Boosting(trees=25), 1e-8, 1e-6),
    "trees": (Boosting(trees=20, splits=3, shrinkage=0.3), 1e-8, 1e-6),
    "kernel ridge": (Kernel(kind="ridge"), 1e-8, 1e-6),
    "svr": (Kernel(), 1e-2, 2e-2),
    "network": (Network(hidden=(6,), epochs=4, batch=32), 1e-8, 1e-6),
}
SPLITS = {"cross-fit": 3, "hold-out": 0.4, "in sample": "none"}
TABLES = ("numbers", "weights", "groups", "missing", "two classes", "three classes")


def table(kind):
    """Return the options of a plan: a table of one kind and its target."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(90, 4)), columns=list("abcd"))
    X["d"] += 0.7 * X["a"]
    y = np.sin(2 * X["a"]) + X["b"] ** 2 + 0.5 * rng.normal(size=90)
    options = {"X": X, "y": y}
    if kind == "weights":
        options["sample_weight"] = rng.integers(0, 4, 90)
    elif kind == "groups":
        X["level"] = rng.choice(list("pqr"), 90)
        options["groups"] = {"pair": ["a", "c"]}
    elif kind == "missing":
        X.loc[rng.random(90) < 0.2, "b"] = np.nan
    elif kind == "two classes":
        options["y"] = np.where(y > y.median(), "yes", "no")
    elif kind == "three classes":
        options["y"] = pd.cut(y, [-np.inf, 0.3, 1.2, np.inf], labels=["p", "q", "r"])
    return options


@pytest.mark.parametrize("splits", SPLITS)
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", LEARNERS)
def test_an_engine_leaves_what_the_plain_engine_leaves(name, kind, splits):
    learner, tolerance, p_tolerance = LEARNERS[name]
    if learner.name == "network":
        pytest.importorskip("torch")
    job = prepare(
        **table(kind),
        learner=learner,
        methods=methods_for(learner, kind),
        splits=SPLITS[splits],
        paper=splits == "in sample",
        shared_randomness=True,
    )
    plan = job.plan(0)
    engine = engine_for(plan)
    assert engine is not plain
    reference, fast = gather(plan, plain.run(plan)), gather(plan, engine.run(plan))
    assert dict(fast.failures) == dict(reference.failures) == {}
    scale = max(1.0, plan.data.y.std(), plan.data.X.std(axis=0).max()) ** 2
    for array in reference.arrays:
        assert np.abs(fast.arrays[array] - reference.arrays[array]).max() <= tolerance * scale, (
            array
        )
    for method in job.methods:
        ours, theirs = (p_values(method, residuals) for residuals in (fast, reference))
        assert np.abs(ours - theirs).max() <= p_tolerance, method.name


def methods_for(learner, kind):
    if learner.name in ("mean", "ridge_path"):
        return "gcm,loco"  # nothing else is asked of them
    return METHODS + LAZY * (learner.name == "network" and "classes" not in kind)


def p_values(method, residuals):
    from covaria.inference.tests import mean_test

    degrees = method.degrees(residuals) if method.degrees else None
    scores = method.score(residuals, np.random.default_rng(0))
    return mean_test(scores, scale=method.scale(residuals), degrees=degrees).p_value


@pytest.mark.parametrize("name", LEARNERS)
def test_an_engine_fits_no_more_than_it_is_asked(name):
    learner = LEARNERS[name][0]
    for methods in ("gcm", "loco", "dropout"):
        plan = prepare(**table("numbers"), learner=learner, methods=methods, splits=2).plan(0)
        outcomes = by_task(plan, engine_for(plan).run(plan))
        assert len(outcomes) == len(plan.tasks)
        assert all(outcome.prediction is not None for outcome in outcomes)


def test_every_engine_is_in_the_contract():
    fitted = set(ENGINES) - {"predictions"}  # those are given
    assert fitted <= {learner.name for learner, _, _ in LEARNERS.values()}


def test_models_of_surfaces_without_features_that_were_not_tried_are_spared():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(120, 8))
    y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=120)
    plan = prepare(X, y, learner=Surfaces(), methods="gcm", splits=2).plan(0)
    assert "y_given_all" not in plan.needs
    outcomes = surfaces.run(plan)
    rest = [o for task, o in zip(plan.tasks, outcomes, strict=True) if task.need == "y_given_rest"]
    assert len({id(outcome.prediction) for outcome in rest}) < len(rest)
    assert_as_plain(surfaces, plan)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_columns", [10, 90])
def test_ridges_of_more_columns_than_rows_are_those_of_a_fit_each(weighted, n_columns):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, n_columns)) + rng.normal(size=(60, 1))
    X[:, 3] = 2.0
    X[:, 5] = X[:, 4]
    weights = rng.integers(0, 3, 60) if weighted else None
    y = X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=60)
    plan = prepare(
        X, y, learner=RidgePath(), methods="gcm,loco", sample_weight=weights, splits=3
    ).plan(0)
    assert engine_for(plan) is ridge_path
    assert_as_plain(ridge_path, plan)
