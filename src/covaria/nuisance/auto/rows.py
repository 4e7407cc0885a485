"""Inner folds: which models tell which outer fold of the errors of candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covaria.learners.policy import AutoPolicy
from covaria.nuisance.plan import Plan
from covaria.nuisance.splits import Fold, in_parts
from covaria.randomness import stream
from covaria.tables.dataset import Rows

POLICY = AutoPolicy()


@dataclass(frozen=True)
class Inner:
    """Inner folds, and which outer folds may look at which of their test rows.

    `looks[i]` are pairs of an outer fold and places among the test rows of inner fold i.
    """

    folds: list[Fold]
    looks: list[list[tuple[int, Rows]]]
    n_outer: int


def inner_folds(plan: Plan) -> Inner:
    """Return the inner folds of a plan: pairs of its folds, or thirds of each training part."""
    rng = stream(plan.seed, "choosing", plan.repeat)
    in_pairs = _is_cross_fit(plan) and len(plan.folds) >= 4
    inner = _pairs(plan) if in_pairs else _thirds(plan, rng)
    return Inner(
        [(_some(train, rng), test) for train, test in inner.folds], inner.looks, len(plan.folds)
    )


def _some(rows: Rows, rng: np.random.Generator) -> Rows:
    if len(rows) <= POLICY.most_rows:
        return rows
    return np.sort(rng.choice(rows, POLICY.most_rows, replace=False))


def _is_cross_fit(plan: Plan) -> bool:
    """Return whether every fold learns from exactly the rows that others test."""
    tested = np.concatenate([test for _, test in plan.folds])
    n_rows = plan.data.n_rows
    return len(tested) == n_rows and all(
        len(train) + len(test) == n_rows and not np.isin(test, train).any()
        for train, test in plan.folds
    )


def _pairs(plan: Plan) -> Inner:
    """Return a fold for each pair of neighbours, the last and the first being neighbours too."""
    tests = [test for _, test in plan.folds]
    folds: list[Fold] = []
    looks: list[list[tuple[int, Rows]]] = []
    for one in range(len(tests)):
        other = (one + 1) % len(tests)
        test = np.sort(np.concatenate([tests[one], tests[other]]))
        is_out = np.zeros(plan.data.n_rows, dtype=bool)
        is_out[test] = True
        folds.append((np.flatnonzero(~is_out), test))
        of_one = np.isin(test, tests[one])
        looks.append([(one, np.flatnonzero(~of_one)), (other, np.flatnonzero(of_one))])
    return Inner(folds, looks, len(tests))


def _thirds(plan: Plan, rng: np.random.Generator) -> Inner:
    """Return three folds inside the training rows of each fold; clusters stay together."""
    folds: list[Fold] = []
    looks: list[list[tuple[int, Rows]]] = []
    for outer, (train, _) in enumerate(plan.folds):
        third = in_parts(train, plan.data.clusters, 3, rng)
        for k in range(3):
            test = train[third == k]
            if 0 < len(test) < len(train):
                folds.append((train[third != k], test))
                looks.append([(outer, np.arange(len(test)))])
    return Inner(folds, looks, len(plan.folds))
