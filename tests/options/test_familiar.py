"""Options that people know under other names are told what they are called here."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone

import covaria
from covaria.errors import InputError
from covaria.options.familiar import FAMILIAR

X = np.random.default_rng(0).normal(size=(40, 2))
DOORS = {
    "assess": covaria.assess,
    "stability": covaria.stability,
    "refit": covaria.refit,
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("random_state", "use seed="),
        ("cv", "use splits="),
        ("n_splits", "use splits="),
        ("estimator", "learner="),
        ("prefit", "learner="),
        ("scoring", "loss="),
        ("n_repeats", "use repeats="),
    ],
)
def test_a_name_of_scikit_learns_is_answered_with_the_one_to_use(door, name, cure):
    with pytest.raises(InputError, match=cure) as error:
        door(X, X[:, 0], **{name: 3})
    assert isinstance(error.value, TypeError)
    assert name in str(error.value)


@pytest.mark.parametrize("selector", [covaria.Selector, covaria.StabilitySelector])
@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("seed", "use random_state="),
        ("cv", "use splits="),
        ("estimator", "use learner="),
        ("methods", "use method="),
        ("groups", "use feature_groups="),
        ("permutations", r"use options=\{'permutations': …\}"),
        ("prefit", "learner="),
    ],
)
def test_selectors_name_their_own_options(selector, name, cure):
    with pytest.raises(InputError, match=cure) as error:
        selector(**{name: 3})
    assert selector.__name__ in str(error.value)


def test_a_plan_has_all_options_of_a_fit():
    with pytest.raises(TypeError, match="fit_residuals has no option 'random_state'"):
        covaria.fit_residuals(random_state=1)
    with pytest.raises(InputError, match="fit_residuals takes plan"):
        covaria.fit_residuals(X, X[:, 0])
    with pytest.raises(InputError, match=r"prepare\(X, y\)\.plan\(0\)"):
        covaria.fit_residuals(X)
    plan = covaria.prepare(X, X[:, 0], learner="linear", methods="gcm").plan(0)
    assert covaria.fit_residuals(plan).x_given_rest.shape == X.shape


def test_a_misspelt_option_is_answered_with_the_nearest():
    with pytest.raises(InputError, match=r"no option 'aplha'\. Did you mean 'alpha'"):
        covaria.assess(X, X[:, 0], aplha=0.1)


def test_options_are_given_by_name():
    with pytest.raises(InputError, match=r"assess takes X and y; give all else by name"):
        covaria.assess(X, X[:, 0], "linear")


def test_every_name_that_is_pointed_to_exists():
    assert set(FAMILIAR.values()) <= set(inspect.signature(covaria.assess).parameters)


def test_the_names_of_a_selector_are_still_seen_by_scikit_learn():
    selector = clone(covaria.StabilitySelector(folds=3, random_state=4))
    assert selector.get_params()["folds"] == 3
    assert selector.get_params()["random_state"] == 4
