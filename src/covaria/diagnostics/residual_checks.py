"""Residual diagnostics: what regressions left undone, and how far that can shift GCM.

Every test here is only as valid as its nuisance regressions. Their residuals are regressed once
more on the other features, out of fold: where that succeeds, something was left undone. With η and
δ the parts of the residuals of x_j and of y that the other features still explain, GCM's mean is
off by E[ηδ]; its estimate over the standard error is the `bias` of the test, in the units of its
statistic.

Trees look for it, which find jumps, waves and products; kernels, which find what bends slowly in
three columns or more; and curves, which find what bends in one. `auto` had the like of the latter
two among its candidates: there trees look alone. In wide tables pairs of rows that are alike show
what many columns do together, though nobody can learn it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from covaria.inference.tests import normal_p, standard_error
from covaria.learners import Auto, Boosting, Kernel, Splines
from covaria.learners.estimators.kernel import Scale
from covaria.nuisance.fit import by_task, run_plan
from covaria.nuisance.halves import PRODUCT
from covaria.nuisance.plan import Plan, Task
from covaria.nuisance.residuals import Residuals
from covaria.nuisance.splits import Fold, in_parts
from covaria.options.policy import Policy, threshold
from covaria.randomness import stream
from covaria.tables.arrays import Rows, of_all_classes

Array = NDArray[np.float64]
Look = Callable[[Plan, Rows, Array, Array, Array], tuple[Array, Array]]

# Few trees that learn fast, deep enough for a product of features.
TREES = Boosting(trees=15, splits=4, shrinkage=0.3)
N_FOLDS = 5
PURPOSE = "residual diagnostics"  # of models that are fitted here, in the cost
# Kernels exp(-|z - z'|² / columns) of standardised values stand on so many rows and cost this much.
CENTRES, COST = 100, 1 / 3
# A curve of one column is made of so many waves along its ranks, dear from BENT on, and a parabola
# for its ends. The column that tells most is taken, by steps of this much.
WAVES, BENT, ENDS_COST = 12, 6, 0.05
STEPS, STEP = 5, 0.5
# Both look at so many rows and columns at most: others would take longer than the tests. So do
# trees beyond as many rows, of which 3% that can still be learned are 17 standard errors.
MOST_ROWS, MOST_COLUMNS, MOST_FOR_TREES = 5000, 60, 10_000
ALIKE = "docs/auto.md: warned of where all columns act a little, and seldom elsewhere"


@dataclass(frozen=True)
class LikenessPolicy(Policy):
    """When rows that are alike have a say in what GCM's mean is off by.

    wide    in tables of fewer rows than so many times the columns
    sure    where chance would make them say as much less often than this
    noted   and GCM's statistic is at least this
    """

    wide: int = threshold(4, ALIKE)
    sure: float = threshold(0.1, ALIKE)
    noted: float = threshold(1.28, "formula: the normal 90% point; smaller ones find nothing")


LIKENESS = LikenessPolicy()


@dataclass(frozen=True)
class ResidualCheck:
    """What the other features still explain of residuals: a share and a p-value for x_j and y.

    `bias` is what that does to GCM, in standard errors, and `bias_p` the p-value of there being
    none, 1 where that was not tested.
    """

    x: Array
    x_p: Array
    y: Array
    y_p: Array
    bias: Array
    bias_p: Array
    f: Array | None = None
    f_p: Array | None = None


def check_residuals(plan: Plan, residuals: Residuals) -> ResidualCheck | None:
    """Return what the others still explain of the residuals; None where GCM was not asked for."""
    rows = residuals.rows
    if not residuals.arrays.keys() >= PRODUCT or len(rows) < 2 * N_FOLDS * TREES.min_node:
        return None
    counted = Counted(_ones_or(residuals.weights, len(rows)), residuals.clusters)
    x, y = _one_column_each(residuals, counted)
    found = [_seen(_of_both_by_trees, plan, rows, counted, x, y, MOST_FOR_TREES)]
    if not isinstance(plan.learner, Auto) and 1 < plan.data.X.shape[1] <= MOST_COLUMNS:
        looks = (_by_kernels, _by_curves)
        found += [_seen(look, plan, rows, counted, x, y, MOST_ROWS) for look in looks]
    picked = _most_of_x(found)
    if "f_given_rest" in residuals.arrays:
        f = _widest(residuals.f_given_rest, counted)
        share, chance = _share_by_trees(plan, rows, counted, f)
        picked = replace(picked, f=share, f_p=chance)
    is_wide = LIKENESS.wide * plan.data.X.shape[1] > len(rows) and plan.data.n_classes <= 2
    if not is_wide:
        return picked
    by_learners = _one_column_each(residuals.by_learners or residuals, counted)
    return _with_likeness(picked, plan, rows, x * y, by_learners[0] * by_learners[1])


def _widest(left: Array, counted: Counted) -> Array:
    """Return what is left of each feature's function, of three or more classes that of one."""
    left = left - counted.mean(left.reshape(len(left), -1)).reshape(left.shape[1:])
    if left.ndim == 2:
        return left
    spread = np.tensordot(counted.weights, left**2, axes=1)
    return np.take_along_axis(left, np.argmax(spread, axis=1)[None, :, None], axis=2)[:, :, 0]


@dataclass(frozen=True)
class Counted:
    """How much each row counts, 1 on average, and which rows may depend on each other."""

    weights: Array
    clusters: Rows | None

    def every(self, step: int) -> Counted:
        """Return every so many rows."""
        clusters = None if self.clusters is None else self.clusters[::step]
        return Counted(self.weights[::step], clusters)

    def mean(self, values: Array) -> Array:
        """Return the weighted mean of each column."""
        return np.asarray(np.average(values, axis=0, weights=self.weights))

    def error(self, values: Array) -> Array:
        """Return the standard error of that mean."""
        return standard_error(self.weights[:, None] * (values - self.mean(values)), self.clusters)


def _ones_or(weights: Array | None, n_rows: int) -> Array:
    return np.ones(n_rows) if weights is None else weights


def _one_column_each(residuals: Residuals, counted: Counted) -> tuple[Array, Array]:
    """Return what is left of x and y, for each feature one column: the one that varies most."""
    n_features = residuals.data.n_features
    x, y = (np.zeros((len(residuals.rows), n_features)) for _ in range(2))
    for j, feature in enumerate(residuals.data.features):
        if feature.columns:
            of_x, of_y = residuals.feature(j)
            of_y = of_all_classes(of_y) if of_y.shape[1] > 1 else of_y
            for out, left in ((x, of_x), (y, of_y)):
                spread = counted.mean((left - counted.mean(left)) ** 2)
                out[:, j] = left[:, int(np.argmax(spread))]
    return x - counted.mean(x), y - counted.mean(y)


def _folds(plan: Plan, rows: Rows) -> list[Fold]:
    """Return the folds of a search, as places among the rows; clusters stay together."""
    rng = stream(plan.seed, "leftover", plan.repeat)  # the name sets the draw: it stays
    part = in_parts(rows, plan.data.clusters, N_FOLDS, rng)
    there = [k for k in range(N_FOLDS) if (part == k).any()]
    return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in there]


# --- who looks ----------------------------------------------------------------------------------


def _by_trees(plan: Plan, rows: Rows, folds: Sequence[Fold], left: Array) -> Array:
    """Return what trees predict of residuals from the other features, out of fold."""
    targets = np.zeros((plan.data.n_rows, left.shape[1]))
    targets[rows] = left
    alive = np.flatnonzero(left.std(axis=0) > 0)
    second = replace(
        plan, learner=TREES, folds=[(rows[train], rows[test]) for train, test in folds],
        targets=targets, needs=frozenset({"x_given_rest"}),
        only=frozenset(Task("x_given_rest", k, int(j)) for k in range(len(folds)) for j in alive),
        choices=None, progress=None, purpose=PURPOSE,
    )  # fmt: skip
    found = np.zeros_like(left)
    for task, outcome in by_task(second, run_plan(second)).items():
        if outcome.prediction is not None:
            found[folds[task.fold][1], task.feature] = outcome.prediction[:, 0]
    return found


def _of_both_by_trees(plan: Plan, rows: Rows, w: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Return what trees predict of residuals of x and y."""
    folds = _folds(plan, rows)
    return _by_trees(plan, rows, folds, x), _by_trees(plan, rows, folds, y)


def _share_by_trees(plan: Plan, rows: Rows, counted: Counted, left: Array) -> tuple[Array, Array]:
    """Return the share of residuals that trees explain, and its p-value, of some of many rows."""
    every = -(-len(rows) // MOST_FOR_TREES)
    some, left, counted = rows[::every], left[::every], counted.every(every)
    found = _by_trees(plan, some, _folds(plan, some), left)
    return _share(counted, left, _not_overstated(counted, left, found))


def _seen(
    look: Look,
    plan: Plan,
    rows: Rows,
    counted: Counted,
    x: Array,
    y: Array,
    most_rows: int,
) -> ResidualCheck:
    """Return what a look still explains, of some of the rows where they are many."""
    every = -(-len(rows) // most_rows)
    x, y, some, counted = x[::every], y[::every], rows[::every], counted.every(every)
    weights = counted.weights

    def looked() -> tuple[Array, Array]:
        return look(plan, some, weights, x, y)

    name = f"{look.__name__}, repeat {plan.repeat}"
    pair = plan.memory.once(name, (x, y, weights), looked) if plan.memory else looked()
    seen = _compared(counted, x, y, *pair)
    return replace(seen, bias=seen.bias * np.sqrt(len(rows) / len(some)))


def _by_kernels(plan: Plan, rows: Rows, w: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Return what kernel ridge predicts of residuals from the other features, out of fold.

    One kernel serves x_j and y; without x_j's columns its exponents are less by their part.
    """
    from scipy.linalg import solve
    from scipy.spatial.distance import cdist

    found, start, models = np.zeros((2, *x.shape)), time.perf_counter(), 0
    Z = plan.data.X[rows]
    Z = Scale.of(Z, w).apply(Z)
    for train, test in _folds(plan, rows):
        count = min(CENTRES, len(train))
        centres = Z[train[np.arange(count) * len(train) // count]]
        apart = cdist(Z, centres, "sqeuclidean")
        among = cdist(centres, centres, "sqeuclidean")
        for j, feature in enumerate(plan.data.features):
            own, n_others = list(feature.columns), Z.shape[1] - len(feature.columns)
            if not own or not n_others or not x[:, j].any():
                continue
            less, fewer = (cdist(A[:, own], centres[:, own], "sqeuclidean") for A in (Z, centres))
            kernel = np.exp((less - apart) / n_others)
            held = COST * np.exp((fewer - among) / n_others)
            held.flat[:: count + 1] += 1e-8 * COST
            learned, targets = kernel[train], np.column_stack([x[train, j], y[train, j]])
            weighted = w[train, None] * learned
            held += weighted.T @ learned
            slopes = solve(held, weighted.T @ targets, assume_a="pos")
            found[:, test, j] = (kernel[test] @ slopes).T
            models += targets.shape[1]
    _charge(plan, Kernel.name, models, start)
    return found[0], found[1]


def _by_curves(plan: Plan, rows: Rows, w: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Return what curves predict of residuals from the other features, out of fold.

    All residuals are fitted at once: each takes a step towards the curve that tells most of it.
    """
    start = time.perf_counter()
    curves, cost = _curves(plan.data.X[rows], w)
    n_columns, width = curves.shape[1:]
    left = np.column_stack([x, y])
    features = plan.data.features
    own = np.array([[c in f.columns for f in features] * 2 for c in range(n_columns)])
    each, flat = np.arange(left.shape[1]), curves.reshape(len(left), -1)
    found = np.zeros_like(left)
    folds = _folds(plan, rows)
    for train, test in folds:
        learned, targets, own_w = flat[train], left[train], w[train, None]
        blocks = curves[train].transpose(1, 0, 2)
        held = blocks.transpose(0, 2, 1) @ (own_w * blocks) + own_w.sum() * np.diag(cost)
        inverse = np.linalg.inv(held)
        slopes = np.zeros((n_columns, width, len(each)))
        for _ in range(STEPS):
            missing = own_w * (targets - learned @ slopes.reshape(-1, len(each)))
            told = np.where(own[:, None], 0.0, (learned.T @ missing).reshape(slopes.shape))
            towards = inverse @ told
            best = np.argmax((towards * told).sum(axis=1), axis=0)
            slopes[best, :, each] += STEP * towards[best, :, each]
        found[test] = flat[test] @ slopes.reshape(-1, len(each))
    _charge(plan, Splines.name, len(folds) * int(left.any(axis=0).sum()), start)
    return found[:, : x.shape[1]], found[:, x.shape[1] :]


def _charge(plan: Plan, learner: str, models: int, start: float) -> None:
    """Add models that were fitted here to what diagnostics cost."""
    if plan.ledger:
        plan.ledger.charge(PURPOSE, learner, models, time.perf_counter() - start)


def _with_likeness(
    left: ResidualCheck, plan: Plan, rows: Rows, products: Array, by_learners: Array
) -> ResidualCheck:
    """Return the check with the bias seen in rows that are alike, where that is surer.

    Where many columns do a little each, none can be learned, but together they show: rows that are
    alike in the other features are then alike in x and in y, and x of one in y of the other
    (Haseman and Elston, 1972). With likenesses K, Σ K_ik x_i y_k / Σ K_ik² over i ≠ k is the
    covariance that they owe to the other features. What the models did not take off it is left in
    GCM. Whether there is such a thing, products that learners left have to say: columns chosen from
    all rows take off what chance made of them as well. Nothing is said where GCM is small.
    """
    Z = plan.data.X[rows]
    Z = Scale.of(Z, np.ones(len(Z))).apply(Z)
    raw_x, raw_y = _raw(plan, rows)
    owed, unsure = _alike(Z, _own_columns(plan), raw_x, raw_y)
    now, error = products.mean(axis=0), products.std(axis=0) / np.sqrt(len(rows))
    raw = (raw_x * raw_y).mean(axis=0)
    missing = owed - (raw - np.stack([by_learners.mean(axis=0), now]))
    size = np.stack([unsure, error])
    ratio, bias = np.divide(missing, size, out=np.zeros_like(size), where=size > 0)
    p = normal_p(ratio * np.sign(now), "greater")
    surer = (p < LIKENESS.sure) & (np.abs(bias) > np.abs(left.bias))
    surer &= np.abs(now) > LIKENESS.noted * error
    surer &= raw_x.any(axis=0)
    return replace(
        left, bias=np.where(surer, bias, left.bias), bias_p=np.where(surer, p, left.bias_p)
    )


def _raw(plan: Plan, rows: Rows) -> tuple[Array, Array]:
    """Return features of one column, and y beside each, less their means; others are zero."""
    data = plan.data
    raw = np.zeros((len(rows), data.n_features))
    for j, feature in enumerate(data.features):
        if len(feature.columns) == 1:
            raw[:, j] = data.X[rows, feature.columns[0]]
    y = np.repeat(np.asarray(data.y[rows], dtype=float)[:, None], data.n_features, axis=1)
    return raw - raw.mean(axis=0), y - y.mean(axis=0)


def _own_columns(plan: Plan) -> Array:
    """Return which columns each feature owns, (columns, features)."""
    own = np.zeros((plan.data.X.shape[1], plan.data.n_features))
    for j, feature in enumerate(plan.data.features):
        own[list(feature.columns), j] = 1.0
    return own


def _alike(Z: Array, own: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Return for each feature the covariance of x and y that the others explain, and its error."""
    others = 1 - own
    n_others = np.maximum(others.sum(axis=0), 1.0)
    sizes = np.square(Z) @ others / n_others
    agreement = (others * (Z.T @ x) * (Z.T @ y)).sum(axis=0) / n_others
    agreement -= (sizes * x * y).sum(axis=0)
    K = Z @ Z.T / max(Z.shape[1], 1)
    np.fill_diagonal(K, 0.0)
    squares = K**2
    total = max(float(squares.sum()), 1e-300)
    return agreement / total, np.sqrt((x**2 * (squares @ y**2)).sum(axis=0)) / total


def _curves(Z: Array, w: Array) -> tuple[Array, Array]:
    """Return the parts of every column's curve, (rows, columns, parts), and what each costs."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    ranks = (rankdata(Z, axis=0) - 0.5) / len(Z)
    ends = ndtri(ranks)
    wave = np.arange(1, WAVES + 1)
    waves = np.sqrt(2) * np.cos(np.pi * ranks[:, :, None] * wave)
    curves = np.concatenate([waves, np.stack([ends, ends**2 / np.sqrt(2)], axis=2)], axis=2)
    return curves - np.average(curves, axis=0, weights=w), np.append(
        (wave / BENT) ** 4, [ENDS_COST, ENDS_COST]
    )


# --- what they saw ------------------------------------------------------------------------------


def _compared(counted: Counted, x: Array, y: Array, eta: Array, delta: Array) -> ResidualCheck:
    """Return the shares that predictions explain of what is left of x and y, and the bias."""
    eta, delta = _not_overstated(counted, x, eta), _not_overstated(counted, y, delta)
    products, mended = x * y, (x - eta) * (y - delta)
    error = counted.error(products)
    shift = counted.mean(products - mended)
    bias = np.divide(shift, error, out=np.zeros_like(error), where=error > 0)
    shares = (*_share(counted, x, eta), *_share(counted, y, delta))
    return ResidualCheck(*shares, bias, np.ones_like(bias))


def _not_overstated(counted: Counted, left: Array, found: Array) -> Array:
    """Return predictions of residuals, shrunk where they say too much."""
    found = found - counted.mean(found)
    size, agreement = counted.mean(found**2), counted.mean(found * left)
    slope = np.divide(agreement, size, out=np.zeros_like(size), where=size > 0)
    return np.asarray(found * np.clip(slope, 0.0, 1.0))


def _share(counted: Counted, left: Array, explained: Array) -> tuple[Array, Array]:
    """Return the share of the residuals that is explained, and the p-value of there being none."""
    products, total = left * explained, counted.mean(left**2)
    gain = 2 * counted.mean(products) - counted.mean(explained**2)
    share = np.divide(gain, total, out=np.zeros_like(total), where=total > 0)
    error = counted.error(products)
    ratio = np.divide(counted.mean(products), error, out=np.zeros_like(error), where=error > 0)
    return np.maximum(share, 0.0), normal_p(ratio, "greater")


def _most_of_x(found: Sequence[ResidualCheck]) -> ResidualCheck:
    """Return, for each feature, what explains most of its residuals; each look adds to p."""
    best = np.argmax([one.x for one in found], axis=0)
    picked = {}
    for name in ("x", "x_p", "y", "y_p", "bias", "bias_p"):
        values = np.array([getattr(one, name) for one in found])
        picked[name] = values[best, np.arange(len(best))]
    for name in ("x_p", "y_p"):
        picked[name] = np.minimum(1.0, len(found) * picked[name])
    return ResidualCheck(**picked)
