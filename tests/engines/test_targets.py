"""Other targets in the place of a feature's columns, and some of the tasks only."""

from dataclasses import replace

import numpy as np
import pytest
from as_plain import assert_as_plain, by_task

from residua.assess import prepare
from residua.engines import plain
from residua.residuals import engine_for

LEARNERS = (
    "linear",
    "linear(ridge=1.0)",
    "splines",
    "splines(df='gcv')",
    "boosting(trees=20, splits=2)",
    "kernel(kind='ridge')",
    "network(epochs=3)",
)


def a_plan(learner, *, weighted=False, splits=2, n_rows=90, n_features=4):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n_rows, n_features))
    X[:, 1] += X[:, 0]
    y = X[:, 0] + X[:, 2] ** 2 + rng.normal(size=n_rows)
    weights = rng.uniform(0.5, 2, n_rows) if weighted else None
    groups = {"pair": ["x2", "x3"]} if n_features == 4 else None
    job = prepare(X, y, learner=learner, splits=splits, groups=groups, sample_weight=weights)
    plan = job.plan(0)
    columns = [list(feature.columns) for feature in plan.data.features]
    targets = np.column_stack([np.sin(plan.data.X[:, c].sum(axis=1)) for c in columns])
    return plan, replace(plan, needs=frozenset({"x_given_rest"}), targets=targets)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_engine_predicts_other_targets_as_the_plain_one(learner, weighted):
    _, plan = a_plan(learner, weighted=weighted)
    assert_as_plain(engine_for(plan), plan, tolerance=1e-5 if "network" in learner else 1e-8)


@pytest.mark.parametrize("learner", LEARNERS)
def test_some_tasks_alone_come_out_as_among_all(learner):
    plan, _ = a_plan(learner)
    everything = dict(zip(plan.tasks, by_task(plan, engine_for(plan).run(plan)), strict=True))
    some = replace(plan, only=frozenset(plan.tasks[1::3]))
    found = by_task(some, engine_for(some).run(some))
    assert len(found) == len(some.tasks) == len(plan.tasks[1::3])
    for task, outcome in zip(some.tasks, found, strict=True):
        np.testing.assert_allclose(
            outcome.prediction, everything[task].prediction, rtol=1e-6, atol=1e-6
        )


def test_more_columns_than_rows_predict_other_targets_too():
    for learner in ("linear", "splines"):
        _, plan = a_plan(learner, n_rows=40, n_features=60)
        assert_as_plain(engine_for(plan), plan, tolerance=1e-6)


def test_a_target_takes_one_model_whatever_its_feature_owns():
    plan, other = a_plan("linear")
    assert sorted(plan.models(task) for task in plan.tasks if task.need[0] == "x") == [1, 1, 1, 1, 2, 2]
    assert {other.models(task) for task in other.tasks} == {1}
    assert plain.run(other)[0].prediction.shape == (45, 1)
