"""The kernel engine: distances once a fold, every reduced kernel by taking a feature away.

|x − x'|² without a feature is |x − x'|² less that feature's own part, so the kernel of the rest
costs one pass and no product of matrices. y and the feature share it. Support vectors come from
`kernel_solver`, ridge from one Cholesky factor. At ksvm's tol a support vector machine is
defined to about tol, and so is its equality with the plain engine: kernels and gradients are
float32 there, as libsvm's kernel is, and float64 for a tol below 1e-4 and for ridge. Every
machine starts from 0: the way from the full model is a third shorter, but ends twice as far from
libsvm, and would let one method change the numbers of another. For dropout and permutation one
kernel of the support vectors serves every feature and shuffle (`kernel_nodes`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.spatial.distance import cdist, pdist

from covaria.execution.threads import one_thread
from covaria.learners import Fit
from covaria.learners.estimators import as_chances, as_targets
from covaria.learners.estimators.kernel import (
    BLOCK_BYTES,
    MOST_ROWS_FOR_SIGEST,
    KernelMachine,
    Scale,
    check_size,
)
from covaria.nuisance.engines import plain
from covaria.nuisance.engines.kernel_nodes import Swap, chebyshev, counts, levels, sums_after
from covaria.nuisance.engines.kernel_solver import (
    Columns,
    Floats,
    across_only,
    across_without,
    fill_square,
    pairs_without,
    positive_quantiles,
    support_vectors,
)
from covaria.nuisance.plan import Array, Outcome, Plan, Task
from covaria.tables.arrays import Rows
from covaria.tables.dataset import Dataset

# Kernels are held whole: 28,000 rows for support vectors, 20,000 for ridge, which takes no more.
# Machines of more support vectors are left to libsvm and its cache. Workers have one each, of
# 10,000 rows at most.
MOST_BYTES, MOST_BYTES_BESIDE = 3.2e9, 8e8
# Distances between training rows, and from test rows, are kept while they take no more than this
# (11,000 rows). Beyond, each model computes those it needs: nine columns cost a tenth more.
MOST_BYTES_OF_DISTANCES = 5e8
# Features whose nodes take about this much are altered together: it stays in the cache.
GROUP_BYTES = 2e6
# Below this tol, or above this cost of an error, float32 is no longer enough.
LOOSE_TOL, LARGE_COST = 1e-4, 100.0
# Rows that lie closer than this says are left to the plain engine: their distances underflow.
LARGEST_SIGMA = 1e30


def supports(plan: Plan) -> bool:
    """Return whether the kernel fits in memory and some model is not a classifier.

    Raise where the plain engine has no room for it either.
    """
    machine, most = _machine(plan), max(len(train) for train, _ in plan.folds)
    check_size(machine.kind, most)
    has_room = _kernel_type(machine)().nbytes * most**2 <= MOST_BYTES
    has_way = "y_direction" not in plan.needs
    return has_room and has_way and plan.data.X.shape[1] > 0 and bool(_fast_needs(plan))


def cut_by(plan: Plan) -> str:
    """Return how a plan may be cut: the models of a feature share a kernel, which takes room."""
    most = max(len(train) for train, _ in plan.folds)
    return "features" if 8 * most**2 <= MOST_BYTES_BESIDE else ""


def run(plan: Plan) -> list[Outcome]:
    """Return the outcome of every task, in the order of the plan."""
    fast = replace(plan, needs=_fast_needs(plan))
    slow = replace(plan, needs=plan.needs - fast.needs, progress=None)
    outcomes = dict(zip(slow.tasks, plain.run(slow), strict=True)) if slow.needs else {}
    report = _reporter(plan, len(outcomes))
    tasks = fast.tasks
    with one_thread():  # the same bits on any number of cores
        for fold, own in groupby(tasks, key=lambda task: task.fold):
            outcomes |= _fit_fold(fast, fold, list(own), report)
    return [outcomes[task] for task in plan.tasks]


def _fast_needs(plan: Plan) -> frozenset[str]:
    """Return the needs whose models are regressions: Platt's machines are left to libsvm."""
    if plan.data.classes and _machine(plan).kind == "svr":
        return plan.needs & {"x_given_rest"}
    return plan.needs


def _machine(plan: Plan) -> KernelMachine:
    """Return the plain model, unfitted: it knows the settings."""
    machine = plan.learner.model(Fit(0, (), plan.data.n_classes))
    assert isinstance(machine, KernelMachine)
    return machine


def _kernel_type(machine: KernelMachine) -> type[np.floating]:
    """Return the type that kernels are held in: libsvm rounds its own to float32 at any tol."""
    return np.float64 if machine.kind == "ridge" else np.float32


def _reporter(plan: Plan, done: int) -> Callable[[int], None]:
    """Return a function that adds to the number of tasks done and tells the user."""
    total = len(plan.tasks)

    def report(more: int) -> None:
        nonlocal done
        done += more
        if plan.progress:
            plan.progress(done, total)

    return report


# --- what all models of a fold share ------------------------------------------------------------


class Sample(NamedTuple):
    """Some rows, a column of the table in a row, and the squared distances between them."""

    rows: Array
    pairs: Array


@dataclass(frozen=True)
class Space:
    """The standardised rows of a fold, and the squared distances between them.

    A column of the table lies in a row of `train` and `test`. `pairs` of training rows, and
    `across` from test to training rows, are None where nobody asks or they take too much memory.
    `looked_at` has what `sigest` takes, None for all pairs.
    """

    machine: KernelMachine
    rows: Rows
    weights: Array
    scale: Scale
    train: Array
    test: Array
    in_sample: bool
    pairs: Array | None
    across: Array | None
    looked_at: Sample | None

    @classmethod
    def of(cls, plan: Plan, fold: int) -> Space:
        """Return the space of a fold, made from its training rows with weight."""
        (train, test), data = plan.folds[fold], plan.data
        weights = np.ones(len(train)) if data.weights is None else data.weights[train]
        rows, weights = train[weights > 0], weights[weights > 0]
        weights = weights / weights.mean()
        scale = Scale.of(data.X[rows], weights)
        here, there = scale.apply(data.X[rows]), scale.apply(data.X[test])
        in_sample = np.array_equal(rows, test)
        is_idle = in_sample and not plan.needs & {"y_dropped", "y_permuted"}
        has_pairs = 4 * len(rows) ** 2 <= MOST_BYTES_OF_DISTANCES
        has_across = 8 * len(rows) * len(test) <= MOST_BYTES_OF_DISTANCES and not is_idle
        sees_all = has_pairs and len(rows) <= MOST_ROWS_FOR_SIGEST
        return cls(
            machine=_machine(plan),
            rows=rows,
            weights=weights,
            scale=scale,
            train=np.ascontiguousarray(here.T),
            test=np.ascontiguousarray(there.T),
            in_sample=in_sample,
            pairs=pdist(here, "sqeuclidean") if has_pairs else None,
            across=cdist(there, here, "sqeuclidean") if has_across else None,
            looked_at=None if sees_all else _looked_at(here),
        )

    @property
    def is_ridge(self) -> bool:
        return self.machine.kind == "ridge"

    @property
    def is_precise(self) -> bool:
        cost = self.machine.C * self.weights.max()
        return self.is_ridge or self.machine.tol < LOOSE_TOL or cost > LARGE_COST

    @property
    def kind(self) -> type[np.floating]:
        """Return the type that kernels are computed in."""
        return np.float64 if self.is_precise else np.float32

    @property
    def block(self) -> int:
        """Return how many rows of a kernel are made at once."""
        return max(1, int(BLOCK_BYTES / (8 * len(self.rows))))

    @property
    def blocks(self) -> list[slice]:
        """Return the test rows in blocks."""
        return _blocks(self.test.shape[1], self.block)


def _blocks(n_rows: int, size: int) -> list[slice]:
    """Return all rows, at most so many in each slice."""
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def _looked_at(rows: Array) -> Sample:
    """Return the evenly spaced rows of the plain `sigest`."""
    n_looked_at = min(len(rows), MOST_ROWS_FOR_SIGEST)
    some = rows[np.linspace(0, len(rows) - 1, n_looked_at).astype(np.intp)]
    return Sample(np.ascontiguousarray(some.T), pdist(some, "sqeuclidean"))


class Workspace:
    """The arrays that one thread fills anew for every feature."""

    def __init__(self, space: Space) -> None:
        n_train = space.train.shape[1]
        # Memory is taken when it is first written to, so what a plan does not use is free.
        self.pairs: Floats = np.empty(n_train * (n_train - 1) // 2, space.kind)
        self.square: Floats = np.empty((n_train, n_train), _kernel_type(space.machine))
        self.across: Floats = np.empty((space.block, n_train), space.kind)


def _gaussian(distances: Floats, sigma: float) -> Floats:
    """Return exp(−sigma·d), in the place of the distances."""
    with np.errstate(over="ignore", under="ignore"):  # far apart is 0
        np.multiply(distances, distances.dtype.type(-sigma), out=distances)
        np.exp(distances, out=distances)
    return distances


def _sigma(space: Space, columns: Columns, rest: Floats, n_zero: int) -> float:
    """Return the plain estimator's sigma for what is left of the distances."""
    if space.machine.sigma is not None:
        return space.machine.sigma
    if space.looked_at is not None:
        rest = np.empty(len(space.looked_at.pairs), space.kind)
        n_zero = pairs_without(space.looked_at.pairs, space.looked_at.rows, columns, rest)
    if n_zero == len(rest):
        return 1.0
    with np.errstate(divide="ignore"):
        return float(np.mean(1 / np.array(positive_quantiles(rest, n_zero, (0.9, 0.1)))))


# --- models -------------------------------------------------------------------------------------


class Targets(NamedTuple):
    """What is fitted in the training rows, a column each, and its centre and spread."""

    values: Array
    unit: Scale


@dataclass(frozen=True)
class Model:
    """Several targets on one kernel: offset + kernel @ coefficients, and the answers in sample."""

    sigma: float
    coefficients: Array
    offset: Array
    fitted: Array


def _fit_model(space: Space, columns: Columns, targets: Targets, work: Workspace) -> Model | None:
    """Return the targets fitted on all but some columns; None where that fails."""
    n_zero = 0
    if space.pairs is not None:
        n_zero = pairs_without(space.pairs, space.train, columns, work.pairs)
    sigma = _sigma(space, columns, work.pairs, n_zero)
    if sigma > LARGEST_SIGMA:
        return None
    if space.pairs is not None:
        fill_square(_gaussian(work.pairs, sigma), work.square)
    else:
        _fill_from_rows(space, columns, sigma, work)
    fit = _ridge if space.is_ridge else _support
    model = fit(space, sigma, targets, work.square)
    return model if model and np.isfinite(model.coefficients).all() else None


def _fill_from_rows(space: Space, columns: Columns, sigma: float, work: Workspace) -> None:
    """Set the kernel of all but some columns without distances at hand."""
    for rows in _blocks(len(work.square), space.block):
        part = work.across[: rows.stop - rows.start]
        across_only(np.ascontiguousarray(space.train[:, rows]), space.train, columns.kept, part)
        work.square[rows] = _gaussian(part, sigma)


def _ridge(space: Space, sigma: float, targets: Targets, kernel: Floats) -> Model | None:
    """Return the ridge of all targets from one Cholesky factor, which takes the kernel's place."""
    (values, (centre, _)), alpha = targets, 1 / space.machine.C
    root = np.sqrt(space.weights)[:, np.newaxis]
    if np.ptp(root) > 0:
        kernel *= root
        kernel *= root.T
    kernel.flat[:: len(kernel) + 1] += alpha
    try:
        factor = cho_factor(kernel.T, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    solved = _by_column(partial(cho_solve, factor, check_finite=False), root * (values - centre))
    return Model(sigma, root * solved, centre, values - alpha * solved / root)


def _support(space: Space, sigma: float, targets: Targets, kernel: Floats) -> Model | None:
    """Return a support vector regression of each target."""
    machine, (centre, spread) = space.machine, targets.unit
    fits = [
        support_vectors(
            kernel,
            target,
            machine.C * space.weights,
            epsilon=machine.epsilon,
            tol=machine.tol,
            precise=space.is_precise,
        )
        for target in targets.unit.apply(targets.values).T
    ]
    found = [fit for fit in fits if fit is not None]
    if len(found) < len(fits):
        return None
    beta, fitted = (np.column_stack([fit[k] for fit in found]) for k in (0, 2))
    offset = centre + spread * [fit.offset for fit in found]
    return Model(sigma, spread * beta, offset, centre + spread * fitted)


def _answers(space: Space, model: Model, columns: Columns, work: Workspace) -> Array:
    """Return the answers to the test rows, a column a target."""
    if space.in_sample:
        return model.fitted
    answers = np.empty((space.test.shape[1], len(model.offset)))
    for rows in space.blocks:
        kernel = _gaussian(_distances(space, rows, columns, work), model.sigma)
        answers[rows] = model.offset + _sums(kernel, model.coefficients)
    return answers


def _distances(space: Space, rows: slice, columns: Columns, work: Workspace) -> Floats:
    """Return the squared distances from a block of test rows without some columns."""
    here, rest = np.ascontiguousarray(space.test[:, rows]), work.across[: rows.stop - rows.start]
    if space.across is None:
        across_only(here, space.train, columns.kept, rest)
    else:
        across_without(space.across[rows], here, space.train, columns, rest)
    return rest


def _sums(kernel: Floats, coefficients: Array) -> Array:
    """Return the kernel's weighted sums, a column a target."""
    return _by_column(kernel.__matmul__, coefficients.astype(kernel.dtype))


def _by_column(function: Callable[[Floats], Floats], columns: Floats) -> Array:
    """Return a function of each column: of several at once, the last bits hang on their number."""
    return np.column_stack([function(np.ascontiguousarray(column)) for column in columns.T])


# --- tasks --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FoldJob:
    """A fold's tasks by feature, and what they are fitted to."""

    plan: Plan
    fold: int
    tasks: dict[int, list[Task]]
    space: Space
    y: Targets

    @property
    def data(self) -> Dataset:
        return self.plan.data

    @property
    def test(self) -> Rows:
        return self.plan.folds[self.fold][1]

    def columns(self, feature: int) -> Columns:
        """Return the columns of a feature, −1 for none, and the rest."""
        if feature < 0:
            return Columns(np.arange(0), np.arange(self.data.X.shape[1]))
        owned = self.data.features[feature].columns
        return Columns(np.array(owned, np.intp), self.data.without(feature))


def _fit_fold(
    plan: Plan, fold: int, tasks: list[Task], report: Callable[[int], None]
) -> dict[Task, Outcome]:
    """Return the outcomes of a fold's tasks."""
    begin = time.perf_counter()
    by_feature: dict[int, list[Task]] = {}
    for task in tasks:
        by_feature.setdefault(task.feature, []).append(task)
    space = Space.of(plan, fold)
    job = FoldJob(plan, fold, by_feature, space, _y(plan, space))
    work = Workspace(space)
    shared = time.perf_counter() - begin
    outcomes = {task: _fit_full(job, task, work) for task in by_feature.pop(-1, [])}
    report(len(outcomes))
    for feature in by_feature:
        some = _fit_feature(job, feature, work)
        outcomes |= some
        report(len(some))
    return {
        task: replace(outcome, seconds=outcome.seconds + shared / len(tasks))
        for task, outcome in outcomes.items()
    }


def _fit_full(job: FoldJob, task: Task, work: Workspace) -> Outcome:
    """Return the outcome of y on all columns."""
    begin = time.perf_counter()
    columns = job.columns(task.feature)
    model = _fit_model(job.space, columns, job.y, work)
    if model is None:
        return plain.fit_task(job.plan, task)
    answers = _answers(job.space, model, columns, work)
    prediction = _prediction(job, answers)
    fitted = time.perf_counter()
    dropped = _losses(job, model, answers, "y_dropped", work)
    middle = time.perf_counter()
    permuted = _losses(job, model, answers, "y_permuted", work)
    seconds = (fitted - begin, middle - fitted, time.perf_counter() - middle)
    return Outcome(prediction, dropped, permuted, *seconds)


def _fit_feature(job: FoldJob, feature: int, work: Workspace) -> dict[Task, Outcome]:
    """Return the outcomes of y and of a feature on the rest, which share a kernel."""
    begin = time.perf_counter()
    tasks, columns = job.tasks[feature], job.columns(feature)
    targets = [job.y if task.need == "y_given_rest" else _x(job, feature) for task in tasks]
    alone = len(columns.kept) == 0
    model = None if alone else _fit_model(job.space, columns, _side_by_side(targets), work)
    if model is None:
        return {task: plain.fit_task(job.plan, task) for task in tasks}
    widths = [target.values.shape[1] for target in targets]
    parts = np.split(_answers(job.space, model, columns, work), np.cumsum(widths)[:-1], axis=1)
    each = (time.perf_counter() - begin) / sum(widths)
    return {
        task: Outcome(
            _prediction(job, part) if task.need == "y_given_rest" else part.copy(),
            seconds=each * part.shape[1],
        )
        for task, part in zip(tasks, parts, strict=True)
    }


def _y(plan: Plan, space: Space) -> Targets:
    """Return y of the training rows as a column, or a column a class."""
    values = as_targets(plan.data.y[space.rows], plan.data.n_classes)
    return Targets(values, Scale.of(values, space.weights))


def _x(job: FoldJob, feature: int) -> Targets:
    """Return a feature's columns in the training rows, or what is predicted in their place."""
    own = list(job.plan.targets_of(feature))
    values = np.take(job.plan.x_targets[:, own], job.space.rows, axis=0)
    if job.plan.targets is not None:
        return Targets(values, Scale.of(values, job.space.weights))
    return Targets(values, Scale(*(part[own] for part in job.space.scale)))


def _side_by_side(targets: list[Targets]) -> Targets:
    values = np.hstack([target.values for target in targets])
    return Targets(values, Scale(*(np.hstack([t.unit[k] for t in targets]) for k in (0, 1))))


def _prediction(job: FoldJob, answers: Array) -> Array:
    """Return answers about y as its mean, or as the probability of each class."""
    if not job.data.classes:
        return answers[:, 0].copy()
    return as_chances(answers)


# --- dropout and permutation --------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A block of test rows under the full model, and the values its columns are to take."""

    rows: slice
    answers: Array
    sigma: float
    support: Rows
    vectors: Array
    coefficients: Array
    kernel: Array
    swap: Swap

    @classmethod
    def of(
        cls, job: FoldJob, model: Model, answers: Array, rows: slice, swap: Swap, work: Workspace
    ) -> Block:
        """Return a block of rows with their kernel to the support vectors."""
        support = np.flatnonzero(model.coefficients.any(axis=1))
        if len(support) == 0:  # the same answer everywhere: a vector that counts 0 will do
            support = np.zeros(1, np.intp)
        distances = _distances(job.space, rows, job.columns(-1), work)
        return cls(
            rows=rows,
            answers=answers[rows],
            sigma=model.sigma,
            support=support,
            vectors=np.take(job.space.train, support, axis=1),
            coefficients=model.coefficients[support],
            kernel=_gaussian(np.take(distances, support, axis=1), model.sigma).astype(float),
            swap=Swap(swap.values, np.ascontiguousarray(swap.orders[:, rows])),
        )


def _losses(job: FoldJob, model: Model, answers: Array, need: str, work: Workspace) -> Array | None:
    """Return the loss of each test row and feature with the feature at its mean, or permuted."""
    if need not in job.plan.needs:
        return None
    space, n_rows = job.space, len(job.test)
    if need == "y_dropped":  # the mean of standardised columns is 0
        swap = Swap(np.zeros((len(space.test), 1)), np.zeros((1, n_rows), np.intp))
    else:
        swap = Swap(space.test, np.array(job.plan.shuffles(job.fold)))
    losses = np.empty((n_rows, job.data.n_features))
    for rows in space.blocks:
        block = Block.of(job, model, answers, rows, swap, work)
        for group in _groups(job, block):
            losses[rows, group.features] = _group_losses(job, block, group, work)
    return losses


class Group(NamedTuple):
    """Features of one column that need so many nodes, or one feature of another kind and 0."""

    features: list[int]
    n_nodes: int


def _groups(job: FoldJob, block: Block) -> list[Group]:
    """Return the features in groups whose kernel sums are found together."""
    columns = [feature.columns for feature in job.data.features]
    needed = counts(block.vectors, job.space.test, block.swap.values, block.sigma)
    n_nodes = [int(needed[c[0]]) if len(c) == 1 else 0 for c in columns]
    groups = [Group([j], 0) for j, count in enumerate(n_nodes) if count == 0]
    n_rows = len(job.test) + len(block.support)
    for count in sorted(set(n_nodes) - {0}):
        # In the order of their columns: where a feature stands in a product decides its last bit.
        features = sorted((j for j, n in enumerate(n_nodes) if n == count), key=columns.__getitem__)
        size = max(1, int(GROUP_BYTES / (8 * count * n_rows)))
        groups += [Group(features[part], count) for part in _blocks(len(features), size)]
    return groups


def _group_losses(job: FoldJob, block: Block, group: Group, work: Workspace) -> Array:
    """Return each row's loss with each feature of a group altered, the mean over shuffles."""
    test, changes = job.test[block.rows], _changes(job, block, group, work)
    losses = np.empty((len(test), len(group.features)))
    for k in range(len(group.features)):
        altered = block.answers + changes[:, :, k]
        losses[:, k] = np.mean([job.data.loss(_prediction(job, a), test) for a in altered], axis=0)
    return losses


def _changes(job: FoldJob, block: Block, group: Group, work: Workspace) -> Array:
    """Return how altered features change the answers: (shuffles, rows, features, targets).

    Sums before and after come from one kernel, so where nothing changes, nothing does.
    """
    columns = [c for j in group.features for c in job.data.features[j].columns]
    values, vectors = job.space.test[columns], block.vectors[columns]
    swap, sigma = Swap(block.swap.values[columns], block.swap.orders), block.sigma
    alone = group.n_nodes == 0
    nodes = levels(vectors, values, sigma) if alone else chebyshev(vectors, group.n_nodes)
    here, coefficients = values[:, block.rows], block.coefficients
    if nodes is None:
        rest = _distances(job.space, block.rows, job.columns(group.features[0]), work)
        sums = _sums_anew(np.take(rest, block.support, axis=1), vectors, block)
        now = sums(here)
        return np.array([sums(swap.values[:, order]) - now for order in swap.orders])[:, :, None]
    now = _sums(block.kernel, coefficients)[:, np.newaxis]
    each = [sums_after(nodes, block.kernel, beta, here, swap, sigma) for beta in coefficients.T]
    return np.stack(each, axis=-1) - now


def _sums_anew(rest: Floats, vectors: Array, block: Block) -> Callable[[Array], Array]:
    """Return a function of a feature's values to the sums of a new kernel: slower, for any."""
    distances, columns = np.empty_like(rest), np.arange(len(vectors))

    def sums(values: Array) -> Array:
        across_only(np.ascontiguousarray(values), vectors, columns, distances)
        np.add(distances, rest, out=distances)
        return _sums(_gaussian(distances, block.sigma), block.coefficients)

    return sums
