"""The same regressions on halves of the training rows: how fast their errors shrink.

Where y follows E[x_j | the others], both regressions shrink the same function, and products of
residuals average C(n) instead of 0, though x_j is useless. C falls with the rows learned from, and
how fast can be seen: learners that were given halves of each fold's training rows, the same for x_j
and y, err by C(n/2) in common. If C(n) goes with n^−γ, the mean product with endless rows is
P_n − κ (P_n/2 − P_n) with κ = 1/(2^γ − 1), and each row's share of it is a score like any other:

    s = (1 + κ) · ξ ε  −  κ · mean over the two halves of ξ ε

Which γ it is, a table cannot tell. A finding has to hold for all of ½ ≤ γ < ∞: the κ from 0 to 2.4
that speaks least for an effect is the one that counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from covaria.nuisance.plan import Choices, Plan, Task
from covaria.nuisance.splits import in_parts
from covaria.randomness import stream

Array = NDArray[np.float64]

# γ = ½, below which GCM has no claim to be valid, whatever is done.
KAPPA = 2.4
# What the product of two residuals takes.
PRODUCT = frozenset({"x_given_rest", "y_given_rest"})
# Learners without a systematic part: their errors are noise, and cost power to take off.
UNBIASED = frozenset({"mean", "linear", "sparse"})
# A half of fewer rows tells nothing.
FEWEST_ROWS = 40


def halves_of(plan: Plan, purpose: str = "extrapolation") -> tuple[Plan, Plan] | None:
    """Return the plan with either half of each fold's training rows; None where there is none."""
    folds: tuple[list[tuple[NDArray[np.intp], NDArray[np.intp]]], ...] = ([], [])
    for k, (train, test) in enumerate(plan.folds):
        rng = stream(plan.seed, "halves", plan.repeat, k)
        part = in_parts(train, plan.data.clusters, 2, rng)
        for half in range(2):
            own = train[part == half]
            if len(own) < 2:
                return None  # all others are one cluster
            folds[half].append((own, test))
    # What is kept was learned from all rows.
    choices = None if plan.choices is None else replace(plan.choices, kept={})
    first, second = (
        replace(plan, folds=own, needs=PRODUCT, choices=choices, progress=None, purpose=purpose)
        for own in folds
    )
    return first, second


def wanted_of(plan: Plan, kappa: Array) -> frozenset[Task]:
    """Return what is fitted to halves: both regressions to extrapolate, else those without bias.

    The latter are cheap, and tell of the noise in models. Where nothing is extrapolated all of the
    first fold do too.
    """
    wanted, alone = [], not (kappa.any() or _others_may(plan))
    for task in replace(plan, needs=PRODUCT).tasks:
        is_plain = not any(one.name not in UNBIASED for one, _ in plan.blend(task))
        is_first = task.fold == 0 and alone
        if is_plain or is_first or kappa[task.fold, task.feature] > 0:
            wanted.append(task)
    return frozenset(wanted)


def _others_may(plan: Plan) -> bool:
    """Return whether features that are not tested would be extrapolated, as far as y tells.

    Their own learners are not known: nobody asked for them.
    """
    if not plan.data.others or plan.choices is None or not may_extrapolate(plan):
        return False
    return any(not {one.name for one, _ in blend} <= UNBIASED for blend in plan.choices.y)


def least_favourable(
    weighted: Callable[[Array], Array], found: Array, step: Array, two_sided: bool
) -> Array:
    """Return for each feature the share of the step, 0 to 1, at which its statistic is least.

    Between its ends the statistic has no other least value but 0.
    """
    at_ends = [weighted(scores) for scores in (found, found + step)]
    means = [scores.mean(axis=0) for scores in at_ends]
    first, last = (
        mean / np.where((sd := scores.std(axis=0)) > 0, sd, 1.0)
        for mean, scores in zip(means, at_ends, strict=True)
    )
    if not two_sided:
        return np.where(last < first, 1.0, 0.0)
    apart = means[0] - means[1]
    crossing = np.divide(means[0], apart, out=np.zeros_like(apart), where=apart != 0)
    at_end = np.where(np.abs(last) < np.abs(first), 1.0, 0.0)
    return np.where(means[0] * means[1] < 0, crossing, at_end)


def kappas(plan: Plan, n_features: int) -> Array:
    """Return κ for each fold and feature: 0 where a learner has no systematic error."""
    found = np.zeros((len(plan.folds), n_features))
    if plan.choices is None or not may_extrapolate(plan):
        return found
    for k in range(len(plan.folds)):
        for j in plan.choices.x[k]:
            found[k, j] = KAPPA * _is_biased(plan.choices, k, j)
    return found


def may_extrapolate(plan: Plan) -> bool:
    """Return whether halves are asked for, and have rows enough."""
    return plan.extrapolate and min(len(train) for train, _ in plan.folds) >= 2 * FEWEST_ROWS


def _is_biased(choices: Choices, fold: int, feature: int) -> bool:
    """Return whether both regressions may miss the same.

    One that a learner without bias serves alone does not: no other could add to it.
    """
    blends = (choices.x[fold][feature], choices.y_rest[fold].get(feature, choices.y[fold]))
    names = [{learner.name for learner, _ in blend} for blend in blends]
    return not any(own <= UNBIASED for own in names)
