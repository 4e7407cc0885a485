"""Products of residuals as they would be with endless rows."""

from dataclasses import replace

import numpy as np
import pytest

import covaria
from covaria.assessment import prepare
from covaria.errors import InputError
from covaria.execution.cost import Ledger
from covaria.learners import Boosting
from covaria.nuisance.extrapolation import (
    KAPPA,
    PRODUCT,
    fitted_once,
    halves_of,
    least_favourable,
)
from covaria.nuisance.fit import by_task, run
from covaria.nuisance.residuals import fit_residuals, gather


def waves(n_rows=300, seed=0):
    """Return a table in which x0 and y follow the same wave of x1, and x0 says nothing more."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1, 1, n_rows)
    wave = np.sin(7 * z)
    X = np.column_stack([wave + 0.5 * rng.normal(size=n_rows), z, rng.normal(size=n_rows)])
    return X, wave + 0.5 * rng.normal(size=n_rows)


@pytest.fixture(scope="module")
def residuals():
    return fit_residuals(prepare(*waves(), check=False).plan(0))


def test_scores_are_those_of_the_formula(residuals):
    result = covaria.assess(*waves(), check=False)
    full = residuals.x_given_rest * residuals.y_given_rest
    halves = [half.x_given_rest * half.y_given_rest for half in residuals.halves]
    kappa = residuals.kappa
    most = (1 + kappa) * full - kappa * (halves[0] + halves[1]) / 2
    assert set(np.unique(kappa)) <= {0, KAPPA}
    assert kappa[:, 0].max() == KAPPA
    for j, found in enumerate(result.scores["gcm"].mean(axis=0)):
        ends = full[:, j].mean(), most[:, j].mean()
        assert min(ends) - 1e-12 <= found <= max(ends) + 1e-12


@pytest.mark.parametrize("shift", [-1.0, 0.0, 0.1, 1.0, 3.0])
def test_the_rate_that_speaks_least_for_an_effect_counts(shift):
    rng = np.random.default_rng(1)
    found, step = 0.2 + rng.normal(size=(200, 1)), 0.3 * rng.normal(size=(200, 1)) - shift

    def statistic(share):
        scores = found + share * step
        return float(scores.mean() / scores.std())

    grid = np.array([statistic(share) for share in np.linspace(0, 1, 2001)])
    two_sided, one_sided = (
        statistic(float(least_favourable(lambda one: one, found, step, sides)[0]))
        for sides in (True, False)
    )
    assert abs(two_sided) <= np.abs(grid).min() + 1e-3
    assert one_sided == pytest.approx(grid.min(), abs=1e-9) or one_sided == min(grid[0], grid[-1])


def test_a_finding_that_what_both_miss_may_explain_is_one_that_cannot_be_told():
    found = {}
    for seed in range(6):
        X, y = waves(200, seed)
        on, off = (covaria.assess(X, y, extrapolate=e, check=False) for e in (True, False))
        own = on.table["verdict"].tolist(), off.table["selected"].tolist()
        for verdict, seen in zip(*own, strict=True):
            found.setdefault(verdict, set()).add(seen)
        assert (on.table["selected"] == (on.table["verdict"] == "matters")).all()
    assert found.get("cannot tell", {True}) == {True}


def test_halves_are_disjoint_and_make_up_the_training_rows():
    plan = prepare(*waves(), check=False).plan(0)
    first, second = halves_of(plan)
    for k, (train, test) in enumerate(plan.folds):
        both = [part.folds[k][0] for part in (first, second)]
        assert sorted(np.concatenate(both)) == sorted(train)
        assert abs(len(both[0]) - len(both[1])) <= 1
        assert all((part.folds[k][1] == test).all() for part in (first, second))


def test_what_has_no_systematic_error_is_not_extrapolated():
    X, y = waves()
    on, off = (covaria.assess(X, y, learner="linear", extrapolate=e) for e in (True, False))
    assert on.table.equals(off.table)


def test_nothing_changes_where_it_is_not_wanted():
    X, y = waves()
    off = covaria.assess(X, y, extrapolate=False, check=False)
    assert "extrapolation" not in set(off.cost["purpose"])
    on = covaria.assess(X, y, check=False)
    assert on.cost.loc[on.cost["purpose"] == "extrapolation", "models"].sum() > 0
    assert not on.table["p_value"].equals(off.table["p_value"])


@pytest.mark.parametrize("odd", [3, "yes", None, 0.5])
def test_an_odd_setting_is_one_sentence(odd):
    with pytest.raises(InputError, match="must be True, False or 'auto'"):
        covaria.assess(*waves(60), extrapolate=odd)


def test_few_rows_are_not_halved():
    result = covaria.assess(*waves(80), check=False)
    assert "extrapolation" not in set(result.cost["purpose"])


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
        alone = by_task(half, run(half))
        for task, outcome in zip(half.tasks, outcomes, strict=True):
            np.testing.assert_allclose(outcome.prediction, alone[task].prediction, atol=1e-12)
