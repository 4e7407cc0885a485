"""The kernel engine: distances once a fold, every reduced kernel by taking a feature away.

|x − x'|² without a feature is |x − x'|² less that feature's own part, so the kernel of the rest
costs one pass and no product of matrices. y and the feature share it. Support vectors come from
`kernel_solver`, ridge from one Cholesky factor. At ksvm's tol a support vector machine is
defined to about tol, and so is its equality with the plain engine: kernels and gradients are
float32 there, as libsvm's kernel is, and float64 for a tol below 1e-4 and for ridge. Every
machine starts from 0: the way from the full model is a third shorter, but ends twice as far from
libsvm, and would let one method change the numbers of another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

import numpy as np
from joblib import effective_n_jobs
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.spatial.distance import cdist, pdist
from threadpoolctl import threadpool_limits

from residua.data import Dataset, Rows
from residua.engines import Array, Outcome, Plan, Task, plain
from residua.engines.kernel_solver import (
    Columns,
    Floats,
    across_only,
    across_without,
    fill_square,
    pairs_without,
    positive_quantiles,
    support_vectors,
)
from residua.estimators.kernel import (
    MOST_ROWS_FOR_SIGEST,
    KernelMachine,
    Scale,
    as_probabilities,
    as_targets,
)
from residua.learners import Fit

Result = TypeVar("Result")

# The kernel is held whole: beyond this it outgrows the memory that libsvm's cache would take.
MOST_ROWS = 6000
MOST_BYTES = 2e9
# Below this tol, or above this cost of an error, float32 is no longer enough.
LOOSE_TOL, LARGE_COST = 1e-4, 100.0
# Rows that lie closer than this says are left to the plain engine: their distances underflow.
LARGEST_SIGMA = 1e30


def supports(plan: Plan) -> bool:
    """Return whether the kernel fits in memory and some model is not a classifier."""
    most = max(len(train) for train, _ in plan.folds)
    return most <= MOST_ROWS and plan.data.X.shape[1] > 0 and bool(_fast_needs(plan))


def run(plan: Plan) -> list[Outcome]:
    """Return the outcome of every task, in the order of the plan."""
    fast = replace(plan, needs=_fast_needs(plan))
    slow = replace(plan, needs=plan.needs - fast.needs, progress=None)
    outcomes = dict(zip(slow.tasks, plain.run(slow), strict=True)) if slow.needs else {}
    report = _reporter(plan, len(outcomes))
    tasks = fast.tasks
    with threadpool_limits(1):  # the same bits for any number of threads
        for fold in range(len(plan.folds)):
            outcomes |= _fit_fold(fast, fold, [t for t in tasks if t.fold == fold], report)
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


@dataclass(frozen=True)
class Space:
    """The standardised rows of a fold, and the squared distances between them.

    A column of the table lies in a row of `train` and `test`. `looked_at` has the rows that
    `sigest` takes where there are too many, None for all.
    """

    machine: KernelMachine
    rows: Rows
    weights: Array
    scale: Scale
    train: Array
    test: Array
    pairs: Array
    in_sample: bool
    across: Array | None
    looked_at: Array | None
    looked_at_pairs: Array

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
        few, pairs = _looked_at(len(rows)), pdist(here, "sqeuclidean")
        return cls(
            machine=_machine(plan),
            rows=rows,
            weights=weights,
            scale=scale,
            train=np.ascontiguousarray(here.T),
            test=np.ascontiguousarray(there.T),
            pairs=pairs,
            in_sample=in_sample,
            across=None if is_idle else cdist(there, here, "sqeuclidean"),
            looked_at=None if few is None else np.ascontiguousarray(here[few].T),
            looked_at_pairs=pairs if few is None else pdist(here[few], "sqeuclidean"),
        )

    @property
    def is_ridge(self) -> bool:
        return self.machine.kind == "ridge"

    @property
    def is_precise(self) -> bool:
        cost = self.machine.C * self.weights.max()
        return self.is_ridge or self.machine.tol < LOOSE_TOL or cost > LARGE_COST

    @property
    def kind(self) -> type[np.floating[Any]]:
        """Return the type that kernels are computed in."""
        return np.float64 if self.is_precise else np.float32


def _looked_at(n_rows: int) -> Rows | None:
    """Return the evenly spaced rows of the plain `sigest`, None where it takes all."""
    few = MOST_ROWS_FOR_SIGEST
    return None if n_rows <= few else np.linspace(0, n_rows - 1, few).astype(np.intp)


class Workspace:
    """The arrays that one thread fills anew for every feature."""

    def __init__(self, space: Space) -> None:
        n_train, n_test = space.train.shape[1], space.test.shape[1]
        self.pairs: Floats = np.empty(n_train * (n_train - 1) // 2, space.kind)
        # libsvm rounds its kernel to float32 at any tol.
        self.square: Floats = np.empty((n_train, n_train), float if space.is_ridge else np.float32)
        # Memory is taken when it is first written to, so what a plan does not use is free.
        self.across: Floats = np.empty((3, n_test, n_train), space.kind)


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
        rest = np.empty(len(space.looked_at_pairs), space.kind)
        n_zero = pairs_without(space.looked_at_pairs, space.looked_at, columns, rest)
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
    n_zero = pairs_without(space.pairs, space.train, columns, work.pairs)
    sigma = _sigma(space, columns, work.pairs, n_zero)
    if sigma > LARGEST_SIGMA:
        return None
    fill_square(_gaussian(work.pairs, sigma), work.square)
    fit = _ridge if space.is_ridge else _support
    model = fit(space, sigma, targets, work.square)
    return model if model and np.isfinite(model.coefficients).all() else None


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
    if space.in_sample or space.across is None:
        return model.fitted
    kernel = work.across[0]
    across_without(space.across, space.test, space.train, columns, kernel)
    return _sum(model, _gaussian(kernel, model.sigma))


def _sum(model: Model, kernel: Floats) -> Array:
    """Return the offset and the kernel's weighted sum."""
    return model.offset + _by_column(kernel.__matmul__, model.coefficients.astype(kernel.dtype))


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
    desks = [Workspace(space) for _ in range(_n_threads(plan, space))]
    shared = time.perf_counter() - begin
    outcomes = {task: _fit_full(job, task, desks) for task in by_feature.pop(-1, [])}
    report(len(outcomes))
    for some in _in_threads(partial(_fit_feature, job), by_feature, desks):
        outcomes |= some
        report(len(some))
    return {
        task: replace(outcome, seconds=outcome.seconds + shared / len(tasks))
        for task, outcome in outcomes.items()
    }


def _n_threads(plan: Plan, space: Space) -> int:
    """Return how many threads may work: each has a kernel of its own in memory."""
    most = max(1, int(MOST_BYTES / (12 * len(space.rows) ** 2)))
    return min(int(effective_n_jobs(plan.n_jobs)), plan.data.n_features, most)


def _in_threads(
    function: Callable[[int, Workspace], Result], features: Iterable[int], desks: list[Workspace]
) -> Iterator[Result]:
    """Yield a function's results in the order of the features, each with a free workspace."""
    free: SimpleQueue[Workspace] = SimpleQueue()
    for desk in desks:
        free.put(desk)

    def borrowing(feature: int) -> Result:
        desk = free.get()
        try:
            return function(feature, desk)
        finally:
            free.put(desk)

    if len(desks) == 1:
        yield from map(borrowing, features)
        return
    with ThreadPoolExecutor(len(desks)) as pool:
        yield from pool.map(borrowing, features)


def _fit_full(job: FoldJob, task: Task, desks: list[Workspace]) -> Outcome:
    """Return the outcome of y on all columns."""
    begin = time.perf_counter()
    columns = job.columns(task.feature)
    model = _fit_model(job.space, columns, job.y, desks[0])
    if model is None:
        return plain.fit_task(job.plan, task)
    prediction = _prediction(job, _answers(job.space, model, columns, desks[0]))
    fitted = time.perf_counter()
    dropped = _losses(job, model, "y_dropped", desks)
    middle = time.perf_counter()
    permuted = _losses(job, model, "y_permuted", desks)
    seconds = (fitted - begin, middle - fitted, time.perf_counter() - middle)
    return Outcome(prediction, dropped, permuted, *seconds)


def _fit_feature(job: FoldJob, feature: int, work: Workspace) -> dict[Task, Outcome]:
    """Return the outcomes of y and of a feature on the rest, which share a kernel."""
    begin = time.perf_counter()
    tasks, columns = job.tasks[feature], job.columns(feature)
    targets = [job.y if task.need == "y_given_rest" else _x(job, columns) for task in tasks]
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


def _x(job: FoldJob, columns: Columns) -> Targets:
    """Return a feature's columns in the training rows."""
    values = np.take(job.data.X[:, columns.gone], job.space.rows, axis=0)
    return Targets(values, Scale(*(part[columns.gone] for part in job.space.scale)))


def _side_by_side(targets: list[Targets]) -> Targets:
    values = np.hstack([target.values for target in targets])
    return Targets(values, Scale(*(np.hstack([t.unit[k] for t in targets]) for k in (0, 1))))


def _prediction(job: FoldJob, answers: Array) -> Array:
    """Return answers about y as its mean, or as the probability of each class."""
    if not job.data.classes:
        return answers[:, 0].copy()
    return as_probabilities(lambda pressed: pressed, answers)


# --- dropout and permutation --------------------------------------------------------------------


def _losses(job: FoldJob, model: Model, need: str, desks: list[Workspace]) -> Array | None:
    """Return the loss of each test row and feature with the feature at its mean, or permuted."""
    if need not in job.plan.needs:
        return None
    features = range(job.data.n_features)
    return np.column_stack(list(_in_threads(partial(_loss, job, model, need), features, desks)))


def _loss(job: FoldJob, model: Model, need: str, feature: int, work: Workspace) -> Array:
    """Return each test row's loss with one feature altered, the mean over shuffles.

    The kernel is a product over columns: that of the rest stays, that of the feature is taken
    from another row.
    """
    space, columns = job.space, job.columns(feature)
    assert space.across is not None
    rest, swapped = work.across[0], work.across[2]
    across_without(space.across, space.test, space.train, columns, rest)
    if need == "y_dropped":
        orders = [np.zeros(len(job.test), np.intp)]
        here = np.zeros((len(space.test), 1))  # the mean of standardised columns
    else:
        orders, here = job.plan.shuffles(job.fold), space.test
    own = work.across[1, : here.shape[1]]
    across_only(here, space.train, columns.gone, own)
    for kernel in (rest, own):
        _gaussian(kernel, model.sigma)
    losses = []
    for order in orders:
        np.take(own, order, axis=0, out=swapped, mode="clip")
        swapped *= rest
        losses.append(job.data.loss(_prediction(job, _sum(model, swapped)), job.test))
    return np.asarray(np.mean(losses, axis=0))
