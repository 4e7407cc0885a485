"""Other targets in the place of a feature's columns, and some of the tasks only."""

from dataclasses import replace

import numpy as np
import pytest

from as_plain import assert_as_plain, by_task
from covaria.assessment import prepare
from covaria.nuisance.engines import plain
from covaria.nuisance.engines.boosting import along
from covaria.nuisance.fit import engine_for

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
        _, plan = a_plan(learner, n_rows=20, n_features=28)
        assert_as_plain(engine_for(plan), plan, tolerance=1e-6)


def test_a_target_takes_one_model_whatever_its_feature_owns():
    plan, other = a_plan("linear")
    assert sorted(plan.models(task) for task in plan.tasks if task.need[0] == "x") == [
        1,
        1,
        1,
        1,
        2,
        2,
    ]
    assert {other.models(task) for task in other.tasks} == {1}
    assert plain.run(other)[0].prediction.shape == (45, 1)


@pytest.mark.parametrize("classes", [0, 2, 3])
@pytest.mark.parametrize("learner", LEARNERS[:1] + LEARNERS[2:5])
def test_every_engine_finds_the_directions_of_the_plain_one(learner, classes):
    plan, _ = a_plan(learner)
    if classes:
        codes = np.searchsorted(np.quantile(plan.data.y, [0.3, 0.6][: classes - 1]), plan.data.y)
        data = replace(plan.data, y=codes.astype(float), classes=tuple("abc"[:classes]))
        plan = replace(plan, data=data)
    everything = np.arange(plan.data.n_rows)
    folds = [(train, everything) for train, _ in plan.folds]
    plan = replace(plan, folds=folds, needs=frozenset({"y_direction"}))
    for ours, theirs in zip(engine_for(plan).run(plan), plain.run(plan), strict=True):
        gap = ours.direction - theirs.direction
        assert theirs.direction.std() > 0
        assert np.abs(gap - gap.mean(axis=0)).max() < 1e-8


def test_a_path_of_trees_passes_through_the_shorter_models():
    plan, _ = a_plan("boosting(trees=20, splits=2)")
    plan = replace(plan, needs=frozenset({"y_given_all", "x_given_rest"}))
    path = along(plan, (5, 12, 20))
    for i, trees in enumerate((5, 12, 20)):
        shorter = replace(plan, learner=replace(plan.learner, trees=trees))
        for task, outcome in zip(plan.tasks, plain.run(shorter), strict=True):
            np.testing.assert_allclose(path[task][i], outcome.prediction, atol=1e-9)
