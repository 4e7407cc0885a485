"""Products of residuals as they would be with endless rows."""

from dataclasses import replace

import numpy as np
import pytest

import covaria
from covaria.assessment import prepare
from covaria.errors import InputError
from covaria.execution.cost import Ledger
from covaria.learners import Boosting, Linear, Mean
from covaria.nuisance.extrapolation import (
    PRODUCT,
    beside_a_line,
    fitted_once,
    halves_of,
)
from covaria.nuisance.fit import by_task, run_plan
from covaria.nuisance.outcomes import gather
from covaria.nuisance.plan import Choices
from covaria.nuisance.policy import POLICY
from covaria.nuisance.regressions import fit_residuals


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


def test_what_both_regressions_may_miss_is_taken_off_the_mean(residuals):
    result = covaria.assess(*waves(), check=False)
    full = residuals.x_given_rest * residuals.y_given_rest
    missed = np.zeros(3)
    for j in range(3):
        size, gaps = 1.0, []
        for name in ("x_given_rest", "y_given_rest"):
            left, *halves = (getattr(one, name)[:, j] for one in (residuals, *residuals.halves))
            larger, apart = np.mean([half**2 for half in halves]), halves[0] - halves[1]
            gap, noise = larger / np.mean(left**2) - 1, np.mean(apart**2) / 4 / np.mean(left**2)
            gaps.append(np.clip(POLICY.still_missed * max(gap, noise), 0, 1))
            size *= np.sqrt(np.mean(left**2))
        missed[j] = np.sqrt(gaps[0] * gaps[1]) * size * residuals.may_miss[j]
    assert missed[0] > 0
    expected = full.mean(axis=0) - np.clip(full.mean(axis=0), -missed, missed)
    np.testing.assert_allclose(result.scores["gcm"].mean(axis=0), expected, atol=1e-12)


def test_the_interval_holds_what_is_seen_and_what_is_left_of_it():
    X, y = waves()
    on, off = (
        covaria.assess(X, y, methods=["gcm", "pcm"], extrapolate=e, check=False).table
        for e in (True, False)
    )
    slack = 0.05 * (off["high"] - off["low"])  # the noise of models is measured in fewer folds
    assert (on["low"] <= off["low"] + slack).all()
    assert (on["high"] >= off["high"] - slack).all()
    gcm, plain = on[on["method"] == "gcm"], off[off["method"] == "gcm"]
    assert (gcm["estimate"].abs() <= plain["estimate"].abs() + 1e-12).all()
    assert ((gcm["low"] <= gcm["estimate"]) & (gcm["estimate"] <= gcm["high"])).all()
    excluded = (gcm["low"] > 0) | (gcm["high"] < 0)
    assert ((gcm["p_value"] < 0.05) == excluded).all()


def test_a_finding_that_what_both_miss_may_explain_is_one_that_cannot_be_told():
    found = {}
    for seed in range(4):
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
        alone = by_task(half, run_plan(half))
        for task, outcome in zip(half.tasks, outcomes, strict=True):
            np.testing.assert_allclose(outcome.prediction, alone[task].prediction, atol=1e-12)


def test_a_line_beside_a_curve_may_miss_the_same_only_while_the_curve_is_far_from_learned():
    plan = prepare(*waves(), check=False).plan(0)
    line, curve, mean = (((one, 1.0),) for one in (Linear(), Boosting(trees=100), Mean()))
    for x, y, expected in (
        (line, curve, True), (curve, line, True), (line, line, False),
        (curve, curve, False), (mean, curve, False), (curve, mean, False),
    ):  # fmt: skip
        each = dict.fromkeys(range(3), x)
        choices = Choices([y] * 5, [each] * 5, [each] * 5, [{}] * 5)
        assert (beside_a_line(replace(plan, choices=choices), 3) == expected).all()
    off = replace(plan, choices=choices, extrapolate=False)
    assert not beside_a_line(off, 3).any()
