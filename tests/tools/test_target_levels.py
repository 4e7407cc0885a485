"""The level of the tests for every kind of target; docs/targets.md has the rates of more runs."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("levels", ROOT / "tools/target_levels.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


KINDS = ["poisson", "gamma", "absolute", "ordinal", "several", "survival", "crossing_hazards"]


@pytest.mark.parametrize("kind", KINDS)
def test_few_runs_find_few_useless_features(tool, kind):
    # Of 40 tests at .05 eight or more are rejected once in 500 times, if the level is right.
    rates = tool.rates(kind, "linear", 20, n_rows=200)
    assert all(rate <= 7 / 40 for rate in rates.values()), rates


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "quantile"])
def test_useless_features_are_found_at_the_level(tool, kind):
    # A rate of .05 is above .085 in 600 tests of pairs once in 1,000 times.
    rates = tool.rates(kind, "linear", 300)
    assert 0.02 <= rates["gcm"] <= 0.085, rates
    assert all(rates[name] <= 0.085 for name in rates), rates


@pytest.mark.slow
def test_censoring_by_a_useless_feature_does_not_make_it_useful(tool):
    rates = tool.rates("censored_by_feature", "auto", 150)
    assert all(rate <= 0.10 for rate in rates.values()), rates
