"""Columns that no feature owns, such as means by level: they are nobody's."""

from dataclasses import replace

import numpy as np
import pytest

from covaria.assessment import prepare
from covaria.learners import Boosting
from covaria.nuisance.engines import boosting, plain
from covaria.nuisance.fit import by_task


@pytest.mark.parametrize("need", ["y_direction", "y_dropped", "y_permuted"])
def test_what_boosting_does_with_columns_of_no_feature_is_not_the_first_features(need):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = 3 * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=200)
    plan = prepare(X, y, learner=Boosting(trees=20, splits=2), methods=["gcm"]).plan(0)
    alone = [f if f.name == "x0" else replace(f, columns=()) for f in plan.data.features]
    plan = replace(plan, data=replace(plan.data, features=tuple(alone)), needs=frozenset({need}))
    fast, slow = (by_task(plan, engine.run(plan)) for engine in (boosting, plain))
    name = need.removeprefix("y_")
    for task in plan.tasks:
        found, expected = (getattr(one[task], name)[:, 0] for one in (fast, slow))
        np.testing.assert_allclose(found, expected, atol=1e-9)
