"""Additive curves and the single index, beside R's gam and mgcv on the same rows."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from covaria.learners.estimators.single_index import SingleIndexModel
from covaria.learners.estimators.splines import AdditiveSplines

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture(scope="module")
def table():
    return pd.read_csv(FIXTURES / "r_gam.csv")


def fitted(model, table, target):
    X = table[["x1", "x2", "x3", "x4"]].to_numpy()
    return model.fit(X, table[target].to_numpy()).predict(X)


def apart(found, expected):
    """Return the root mean square difference, in standard deviations of what R fits."""
    return np.sqrt(np.mean((found - expected) ** 2)) / np.std(expected)


def test_curves_of_four_degrees_of_freedom_are_those_of_r(table):
    # R has a knot at every row, ours fewer: the curves agree, not the digits.
    found = fitted(AdditiveSplines(df=4), table, "additive")
    assert apart(found, table["gam"]) < 0.015
    left, theirs = table["additive"] - found, table["additive"] - table["gam"]
    assert np.corrcoef(left, theirs)[0, 1] > 0.999
    assert np.mean(left**2) == pytest.approx(np.mean(theirs**2), rel=0.02)


def test_the_single_index_is_that_of_a_search_over_mgcvs_curves(table):
    model = SingleIndexModel()
    assert apart(fitted(model, table, "index"), table["single_index"]) < 0.03
    theta = model.theta / model.scale
    theirs = pd.read_csv(FIXTURES / "r_single_index.csv")["theta"].to_numpy()
    assert abs(theta @ theirs) / np.linalg.norm(theta) > 0.9999
