"""A second learner for findings: would other regressions, with endless rows, still see them?

Where y follows E[x_j | others], both regressions shrink the same function, and products of their
residuals do not average 0, though x_j is useless. So a feature that would be significant has to
stand against two doubts.

What the chosen learners have still to learn their learning curves tell: of x_j's residuals what
halving the rows added is a share g, of y's a share h, no less than the noise of their models (of a
line, what is beyond it). What both still miss may have a correlation of about √(gh), which is taken
off.

A learner that cannot bend as the function does shows nothing there: it errs as much with half the
rows. So x_j, and y without it, are regressed once more by forests, which can learn any function, if
slowly. With P their mean product of residuals with all rows, and P½ with halves of them, products
that fall like rows^−γ leave P − κ (P½ − P) for endless rows, κ = 1/(2^γ − 1). The finding stands as
far as this product, in its own standard errors, confirms it. Forests that err by far more than the
chosen learners (the first fold tells) are no witnesses, and are left out.

Where least squares, or the mean, serves both regressions, their errors are noise that the two have
not in common, and nothing is asked.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covaria.learners import Mean
from covaria.nuisance.directions import directions
from covaria.nuisance.halves import PRODUCT, halves_of
from covaria.nuisance.learning_curves import is_unbiased
from covaria.nuisance.plan import Plan, Task
from covaria.nuisance.policy import POLICY
from covaria.nuisance.promising import promising
from covaria.nuisance.residuals import Residuals, row_parts
from covaria.nuisance.selected import less_selected
from covaria.nuisance.splits import Fold
from covaria.randomness import stream
from covaria.tables.arrays import Rows, of_all_classes, over

Array = NDArray[np.float64]
Bins = NDArray[np.uint8]
TREES, LEAF = 20, 8.0
# Of more training rows a tree sees so many, of halves half as many.
MOST_ROWS = 10_000
# Of more columns a forest splits on those that alone explain most of its target.
MOST_COLUMNS = 40
# Targets are learned in multiples of this share of their spread: sums of them are then exact, and
# rounding does not decide between splits that are equally good.
GRID = 2.0**-20
NAME = "forest"


def with_second_opinion(plan: Plan, residuals: Residuals) -> Residuals:
    """Return the residuals with those of forests beside, for features that would be significant."""
    if not _can_be_asked(plan, residuals):
        return residuals
    asked = [j for j in promising(residuals, plan.alpha) if not _is_plain(plan, j)]
    halves = halves_of(plan) if asked else None
    if halves is None:
        return residuals
    start = time.perf_counter()
    second, matched, models = _by_forests(plan, residuals, asked, [half.folds for half in halves])
    if plan.ledger:
        plan.ledger.charge("second opinion", NAME, models, time.perf_counter() - start)
    return replace(residuals, second=second, asked=tuple(asked), matched=frozenset(matched))


def _can_be_asked(plan: Plan, residuals: Residuals) -> bool:
    if plan.choices is None or plan.of_y is not None or residuals.n_train == 0:
        return False
    shortest = min(len(train) for train, _ in plan.folds)
    is_wanted = plan.extrapolate and residuals.arrays.keys() >= PRODUCT
    return is_wanted and shortest >= 2 * POLICY.fewest_half and plan.data.rule is None


def _is_plain(plan: Plan, j: int) -> bool:
    """Return whether lines serve both regressions of a feature, or the mean one, in all folds."""
    for k in range(len(plan.folds)):
        x, y = (plan.blend(Task(need, k, j)) for need in ("x_given_rest", "y_given_rest"))
        is_line = is_unbiased(x) and is_unbiased(y)
        if not is_line and Mean.name not in {learner.name for learner, _ in (*x, *y)}:
            return False
    return True


@dataclass(frozen=True)
class Part:
    """Training rows, and for each set of folds that has them the rows that are tested."""

    number: int
    train: Rows
    tests: tuple[tuple[int, Rows], ...]

    @classmethod
    def of(cls, folds: Sequence[Sequence[Fold]]) -> list[Part]:
        """Return the parts of several sets of folds: what learns from the same rows is one."""
        found: dict[int, Part] = {}
        for at, own in enumerate(folds):
            for train, test in own:
                before = found.get(id(train), cls(len(found), train, ()))
                found[id(train)] = replace(before, tests=(*before.tests, (at, test)))
        return list(found.values())


def _by_forests(
    plan: Plan, residuals: Residuals, asked: Sequence[int], halves: Sequence[Sequence[Fold]]
) -> tuple[tuple[Residuals, ...], list[int], int]:
    """Return residuals of forests on all training rows and on halves, for which, and their count.

    Of other features they are those that the chosen learners left.
    """
    from covaria.learners.estimators.binned_forest import binned

    data, rows = plan.data, residuals.rows
    first, *rest = Part.of([plan.folds, *halves])
    bins, count, matched = binned(data.X), 0, []
    arrays = [{name: residuals.arrays[name].copy() for name in PRODUCT} for _ in range(3)]
    zero = np.zeros((data.n_rows, data.n_classes) if data.classes else data.n_rows)
    y = data.left(zero, np.arange(data.n_rows, dtype=np.intp)).reshape(data.n_rows, -1)
    y = of_all_classes(y) if data.n_classes > 2 else y
    for j in asked:
        own = list(data.features[j].tested)
        targets = np.column_stack([data.X[:, own], y])
        left = np.zeros((3, len(rows), targets.shape[1]))
        _put_left(left, plan, bins, targets, j, [first], rows)
        tested, usual = np.searchsorted(rows, plan.folds[0][1]), residuals.pair(j)
        of_forests = left[0][:, : len(own)], left[0][:, len(own) :]
        count += targets.shape[1]
        if _times_larger(of_forests, usual, tested) > POLICY.matched:
            continue
        _put_left(left, plan, bins, targets, j, rest, rows)
        count += len(rest) * targets.shape[1]
        matched.append(j)
        for at, found in zip(arrays, left, strict=True):
            at["x_given_rest"][:, own] = found[:, : len(own)]
            of_y = found[:, len(own) :]
            if data.n_classes > 2:  # chances of all classes add up to 1
                of_y = (of_y - of_y.mean(axis=1, keepdims=True))[:, 1:]
            at["y_given_rest"][:, j] = of_y.reshape(at["y_given_rest"][:, j].shape)
    if data.X.shape[1] > data.n_rows:
        arrays = less_selected(data, rows, row_parts(plan, residuals), arrays, matched)[0]
    if "f_given_rest" in residuals.arrays:
        _put_functions(plan, residuals, matched, arrays)
    return tuple(replace(residuals, arrays=own) for own in arrays), matched, count


def _times_larger(found: Sequence[Array], usual: Sequence[Array], rows: Rows) -> float:
    """Return how many times larger the products of some residuals are than is usual."""
    larger = 1.0
    for one, other in zip(found, usual, strict=True):
        sizes = [np.square(left[rows]).mean(axis=0) for left in (one, other)]
        larger *= over(*sizes).mean().item()
    return float(np.sqrt(larger))


def _put_functions(
    plan: Plan, residuals: Residuals, asked: Sequence[int], arrays: Sequence[dict[str, Array]]
) -> None:
    """Put PCM's functions beside: of the forests' residuals where they are made of such."""
    if "curve_given_rest" not in residuals.arrays:
        for own in arrays:
            own["f_given_rest"] = residuals.f_given_rest
        return
    shared = {name: residuals.arrays[name] for name in ("spread_given_rest", "curve_given_rest")}
    found = [{**residuals.arrays, "f_given_rest": shared["curve_given_rest"]}]
    found += [{**own, **shared, "f_given_rest": shared["curve_given_rest"]} for own in arrays]
    functions = directions(plan.data, residuals.rows, row_parts(plan, residuals), found, asked)
    for own, function in zip(arrays, functions[1:], strict=True):
        own["f_given_rest"] = residuals.f_given_rest.copy()
        own["f_given_rest"][:, asked] = function[:, asked]


def _put_left(
    left: Array, plan: Plan, bins: Bins, targets: Array, j: int, parts: Sequence[Part], rows: Rows
) -> None:
    """Put what forests leave of targets without a feature where the parts' rows are tested."""
    data = plan.data
    weights = np.ones(data.n_rows) if data.weights is None else data.weights
    weights = weights / weights.mean()
    share = min(1.0, MOST_ROWS / len(plan.folds[0][0]))
    for part in parts:
        rng = stream(plan.seed, "second opinion", plan.repeat, part.number, data.features[j].name)
        n_drawn = round(share * len(part.train))
        drawn = rng.integers(len(part.train), size=(TREES, n_drawn))
        seed = int(rng.integers(2**62))
        every = np.concatenate([test for _, test in part.tests])
        for c, target in enumerate(targets.T):
            columns = _telling(bins, data.without(j), target, part.train)
            mean = np.average(target[part.train], weights=weights[part.train])
            unit = (target[part.train].std() or 1.0) * GRID
            found = unit * forest_predictions(
                columns, np.round((target - mean) / unit), weights, part.train, every, LEAF,
                drawn, seed,
            )  # fmt: skip
            for (at, test), own in zip(part.tests, _split(found, part), strict=True):
                left[at, np.searchsorted(rows, test), c] = target[test] - mean - own


def forest_predictions(*given: Any) -> Array:
    """Return what `binned_forest.forest_predictions` returns, compiled when it is first asked."""
    from covaria.learners.estimators import binned_forest

    return binned_forest.forest_predictions(*given)


def _split(found: Array, part: Part) -> list[Array]:
    """Return the predictions of each set of test rows of a part."""
    return np.split(found, np.cumsum([len(test) for _, test in part.tests])[:-1])


def _telling(bins: Bins, others: Rows, target: Array, train: Rows) -> Bins:
    """Return the bins of other columns, of many those that alone explain most of the target."""
    if len(others) <= MOST_COLUMNS:
        return bins[others]
    n_bins = int(bins.max()) + 1
    y = target[train] - target[train].mean()
    explained = np.empty(len(others))
    for at, column in enumerate(others):
        own = bins[column, train]
        count = np.bincount(own, minlength=n_bins)
        total = np.bincount(own, weights=y, minlength=n_bins)
        used = max(2, int((count > 0).sum()))
        explained[at] = (total**2 / np.maximum(count, 1)).sum() / (used - 1)
    most = np.argsort(-explained, kind="stable")[:MOST_COLUMNS]
    return bins[others[np.sort(most)]]
