"""Products of residuals as they would be with endless rows."""

import numpy as np
import pytest

import covaria
from covaria.assessment import prepare
from covaria.errors import InputError
from covaria.nuisance.extrapolation import KAPPA, halves_of
from covaria.nuisance.residuals import fit_residuals


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
    by_hand = (1 + kappa) * full - kappa * (halves[0] + halves[1]) / 2
    assert set(np.unique(kappa)) <= {0, KAPPA}
    assert kappa[:, 0].max() == KAPPA
    assert result.scores["gcm"].mean(axis=0) == pytest.approx(by_hand.mean(axis=0))


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
