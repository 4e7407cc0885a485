"""The same regressions on halves of the training rows: how fast their errors shrink.

Where y follows E[x_j | the others], both regressions shrink the same function, and products of
residuals average C(n) instead of 0, though x_j is useless. C falls with the rows learned from, and
how fast can be seen: learners that were given halves of each fold's training rows, the same for x_j
and y, err by C(n/2) in common. If C(n) goes with n^−γ, the mean product with endless rows is
P_n − κ (P_n/2 − P_n) with κ = 1/(2^γ − 1), and each row's share of it is a score like any other:

    s = (1 + κ) · ξ ε  −  κ · mean over the two halves of ξ ε
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from covaria.nuisance.plan import Choices, Plan
from covaria.nuisance.splits import in_parts
from covaria.randomness import stream

Array = NDArray[np.float64]

# γ ≈ .74, between 1 and the ½ at which GCM ceases to be valid. docs/auto.md says what others do
# to nulls and effects on real tables.
KAPPA = 1.5
# Learners without a systematic part: their errors are noise, and cost power to take off.
UNBIASED = ("mean", "linear", "sparse")
# A half of fewer rows tells nothing.
FEWEST_ROWS = 40


def halves_of(plan: Plan) -> tuple[Plan, Plan] | None:
    """Return the plan with either half of each fold's training rows; None where too few."""
    folds: tuple[list[tuple[NDArray[np.intp], NDArray[np.intp]]], ...] = ([], [])
    for k, (train, test) in enumerate(plan.folds):
        rng = stream(plan.seed, "halves", plan.repeat, k)
        part = in_parts(train, plan.data.clusters, 2, rng)
        for half in range(2):
            own = train[part == half]
            if len(own) < FEWEST_ROWS:
                return None
            folds[half].append((own, test))
    first, second = (
        replace(plan, folds=own, progress=None, purpose="extrapolation") for own in folds
    )
    return first, second


def kappas(plan: Plan, n_features: int) -> Array:
    """Return κ for each fold and feature: 0 where both learners have no systematic error."""
    found = np.zeros((len(plan.folds), n_features))
    if plan.choices is None:
        return found
    for k in range(len(plan.folds)):
        for j in range(n_features):
            found[k, j] = KAPPA * _is_biased(plan.choices, k, j)
    return found


def _is_biased(choices: Choices, fold: int, feature: int) -> bool:
    of_x = choices.x[fold].get(feature)
    if of_x is None:
        return False
    of_y = choices.y_rest[fold].get(feature, choices.y[fold])
    # What one of the two has learned without a systematic error, they do not miss in common.
    return all(any(one.name not in UNBIASED for one, _ in blend) for blend in (of_x, of_y))
