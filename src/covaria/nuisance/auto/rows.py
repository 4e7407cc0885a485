"""The folds on which candidates are compared."""

from __future__ import annotations

import numpy as np

from covaria.learners.policy import AutoPolicy
from covaria.nuisance.plan import Plan
from covaria.nuisance.splits import Fold, in_parts, is_cross_fit
from covaria.randomness import stream
from covaria.tables.arrays import Rows

POLICY = AutoPolicy()
# A cross-fit of more folds than this tests too few rows in each to compare learners by.
MOST_FOLDS = 10


def contest_folds(plan: Plan) -> list[Fold]:
    """Return the plan's own folds, or thirds of its training rows where they are no cross-fit.

    Of long tables some rows of each are enough, to learn from and to be compared on.
    """
    rng = stream(plan.seed, "choosing", plan.repeat)
    is_own = 2 <= len(plan.folds) <= MOST_FOLDS and is_cross_fit(plan.folds, plan.data.n_rows)
    folds = plan.folds if is_own else _thirds(plan, rng)
    longest = max(len(train) for train, _ in folds)
    if longest <= POLICY.most_rows:
        return folds
    share = POLICY.most_rows / longest
    return [(_some(train, share, rng), _some(test, share, rng)) for train, test in folds]


def _some(rows: Rows, share: float, rng: np.random.Generator) -> Rows:
    return np.sort(rng.choice(rows, max(1, round(share * len(rows))), replace=False))


def _thirds(plan: Plan, rng: np.random.Generator) -> list[Fold]:
    """Return three folds inside the first training part; clusters stay together."""
    train = plan.folds[0][0]
    third = in_parts(train, plan.data.clusters, 3, rng)
    folds = [(train[third != k], train[third == k]) for k in range(3)]
    return [(learned, tested) for learned, tested in folds if len(learned) and len(tested)]
