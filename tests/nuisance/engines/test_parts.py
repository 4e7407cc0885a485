"""A plan in parts gives the bits of the whole: the promise that any number of workers rests on."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import Ridge as SkRidge

from covaria.assessment import prepare
from covaria.execution.executors import Serial
from covaria.learners import Boosting, Forest, Kernel, Linear, Mean, Pursuit, Splines, Surfaces
from covaria.nuisance import fit
from covaria.nuisance.fit import along, by_task, run_plan
from covaria.nuisance.parts import parts_of
from covaria.nuisance.plan import Task

LEARNERS = {
    "mean": Mean(),
    "linear": Linear(),
    "splines": Splines(),
    "splines by gcv": Splines(df="gcv"),
    "surfaces": Surfaces(),
    "stumps": Boosting(trees=20),
    "trees": Boosting(trees=10, splits=4),
    "kernel ridge": Kernel(kind="ridge", C=10.0),
    "svr": Kernel(),
    "forest": Forest(trees=5, min_node=3),
    "pursuit": Pursuit(),
    "estimator": SkRidge(),
}
ARRAYS = ("prediction", "dropped", "permuted", "direction")


class Cutting(Serial):
    """An executor of so many workers that cuts like a large one and runs all of it here."""

    def is_awake(self, *, wanted):
        return True


def a_table(n_rows=100, n_columns=20):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n_rows, n_columns))
    X[:, 1:] += 0.5 * X[:, :-1]
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + rng.normal(size=n_rows)


def same(one, two):
    """Check that two plans' outcomes are the same to the last bit."""
    assert list(one) == list(two)
    for task in one:
        for name in ARRAYS:
            a, b = getattr(one[task], name), getattr(two[task], name)
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_array_equal(a, b, err_msg=f"{name} of {task}")


def plan_of(learner, *, classes=False, methods="gcm,loco,dropout"):
    X, y = a_table()
    y = np.where(y > 0, "yes", "no") if classes else y
    methods = "gcm,loco" if isinstance(learner, Mean) else methods
    return prepare(X, y, learner=learner, methods=methods, splits=3, task="auto").plan(0)


def check_parts(name, *, classes, n_workers, monkeypatch):
    monkeypatch.setattr(fit, "_stays", lambda *_: False)
    plan = plan_of(LEARNERS[name], classes=classes)
    whole = by_task(plan, run_plan(plan))
    same(by_task(plan, run_plan(replace(plan, executor=Cutting(n_workers=n_workers)))), whole)


@pytest.mark.parametrize("name", LEARNERS)
def test_parts_have_the_bits_of_the_whole(name, monkeypatch):
    check_parts(name, classes=False, n_workers=2, monkeypatch=monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_parts_for_three_workers_and_of_classes_have_the_bits_of_the_whole(name, monkeypatch):
    for classes in (False, True):
        check_parts(name, classes=classes, n_workers=3, monkeypatch=monkeypatch)


@pytest.mark.parametrize("name", LEARNERS)
def test_one_fold_is_cut_too_and_so_are_other_targets(name, monkeypatch):
    monkeypatch.setattr(fit, "_stays", lambda *_: False)
    X, _ = a_table()
    tasks = frozenset(Task("x_given_rest", 1, j) for j in range(3, 17))
    plan = replace(
        plan_of(LEARNERS[name], methods="gcm"), only=tasks, needs=frozenset({"x_given_rest"}),
        targets=X**2,
    )  # fmt: skip
    same(
        by_task(plan, run_plan(replace(plan, executor=Cutting(n_workers=2)))),
        by_task(plan, run_plan(plan)),
    )


def test_functions_of_features_are_the_same_in_parts(monkeypatch):
    monkeypatch.setattr(fit, "_stays", lambda *_: False)
    for learner in (Boosting(trees=10, splits=2), Splines(df="gcv"), SkRidge()):
        plan = replace(plan_of(learner), needs=frozenset({"y_direction"}))
        whole = by_task(plan, run_plan(plan))
        same(by_task(plan, run_plan(replace(plan, executor=Cutting(n_workers=2)))), whole)


def test_trees_on_their_way_are_the_same_in_parts(monkeypatch):
    monkeypatch.setattr(fit, "_stays", lambda *_: False)
    plan = plan_of(Boosting(trees=20))
    plan = replace(plan, needs=frozenset({"y_given_all", "x_given_rest"}))
    one, two = (along(replace(plan, executor=e), (5, 20)) for e in (None, Cutting(n_workers=3)))
    assert list(one) == list(two) == plan.tasks
    for task in one:
        for a, b in zip(one[task], two[task], strict=True):
            np.testing.assert_array_equal(a, b)


def test_every_task_is_in_one_part_and_workers_have_like_shares():
    plan = plan_of(Boosting(), methods="gcm")
    for cut in ("features", "needs", "folds"):
        parts = parts_of(plan, cut, 2, 1)
        tasks = [task for part in parts for task in part.tasks]
        assert sorted(tasks) == sorted(plan.tasks)
    # Three folds of 40 tasks for two workers: one each, and half of the last.
    assert [len(part.tasks) for part in parts_of(plan, "features", 2, 1)] == [40, 40, 20, 20]
    assert [len(part.tasks) for part in parts_of(plan, "features", 3, 1)] == [40, 40, 40]
    assert parts_of(plan, "", 2, 1) == [plan]


def test_what_parts_cost_adds_up_to_what_the_whole_costs(monkeypatch):
    from covaria.execution.cost import Ledger

    monkeypatch.setattr(fit, "_stays", lambda *_: False)
    for learner in (Boosting(trees=10), GradientBoostingRegressor(n_estimators=3), SkRidge()):
        charged = []
        for executor in (None, Cutting(n_workers=2)):
            ledger = Ledger()
            list(run_plan(replace(plan_of(learner), ledger=ledger, executor=executor)))
            charged.append(ledger.models)
        assert charged[0] == charged[1] > 0


def test_progress_counts_the_tasks_of_the_plan(monkeypatch):
    monkeypatch.setattr(fit, "_stays", lambda *_: False)
    told = []
    plan = plan_of(Boosting(trees=5), methods="gcm")
    list(
        run_plan(
            replace(plan, executor=Cutting(n_workers=2), progress=lambda *now: told.append(now))
        )
    )
    assert told == sorted(told)
    assert told[-1] == (len(plan.tasks), len(plan.tasks))
    assert len(told) >= 4
