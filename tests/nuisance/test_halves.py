"""Regressions on halves of the training rows."""

from dataclasses import replace

import numpy as np
import pytest

from covaria.assessment import prepare
from covaria.execution.cost import Ledger
from covaria.learners import Boosting
from covaria.nuisance.fit import by_task, run_plan
from covaria.nuisance.halves import PRODUCT, fitted_once, halves_of
from covaria.nuisance.outcomes import gather


def waves(n_rows=300, seed=0):
    """Return a table in which x0 and y follow the same wave of x1, and x0 says nothing more."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1, 1, n_rows)
    wave = np.sin(7 * z)
    X = np.column_stack([wave + 0.5 * rng.normal(size=n_rows), z, rng.normal(size=n_rows)])
    return X, wave + 0.5 * rng.normal(size=n_rows)


def test_halves_are_disjoint_and_make_up_the_training_rows():
    plan = prepare(*waves(), check=False).plan(0)
    first, second = halves_of(plan)
    for k, (train, test) in enumerate(plan.folds):
        both = [part.folds[k][0] for part in (first, second)]
        assert sorted(np.concatenate(both)) == sorted(train)
        assert abs(len(both[0]) - len(both[1])) <= 1
        assert all((part.folds[k][1] == test).all() for part in (first, second))


@pytest.mark.parametrize("splits", [2, 3, 4, 5, 0.4])
def test_halves_of_a_cross_fit_are_learned_from_once(splits):
    plan = prepare(*waves(), splits=splits, learner=Boosting(trees=5), check=False).plan(0)
    plan = replace(plan, needs=PRODUCT)
    halves = halves_of(plan)
    ledger = Ledger()
    charged = [replace(half, ledger=ledger) for half in halves]
    with ledger.stage("fit"):
        found = [gather(*pair) for pair in zip(halves, fitted_once(charged), strict=True)]
    for half, residuals in zip(halves, found, strict=True):
        for k, (train, test) in enumerate(half.folds):
            assert not set(train) & set(test)
            learned = plan.folds[k][0]
            assert set(train) <= set(learned)
            assert abs(2 * len(train) - len(learned)) <= len(plan.folds)
        assert (residuals.rows == np.sort(np.concatenate([test for _, test in plan.folds]))).all()
        assert not residuals.failures
        assert np.isfinite(residuals.x_given_rest).all()
    each = len(plan.folds) if splits in (3, 5) else 2 * len(plan.folds)
    assert ledger.models == 6 * each


def test_what_halves_predict_is_what_models_of_their_rows_predict():
    plan = prepare(*waves(), learner=Boosting(trees=5, bag=1.0), check=False).plan(0)
    halves = halves_of(replace(plan, needs=PRODUCT))
    for half, outcomes in zip(halves, fitted_once(halves), strict=True):
        alone = by_task(half, run_plan(half))
        for task, outcome in zip(half.tasks, outcomes, strict=True):
            np.testing.assert_allclose(outcome.prediction, alone[task].prediction, atol=1e-12)
