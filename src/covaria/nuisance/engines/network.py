"""The network engine: each model trained by one compiled loop, with no call in between.

A small network spends its time between the sums, not in them: torch asks for a dozen calls a
step. Here a whole epoch is one compiled function, and one model is trained at a time, so that
its weights stay in the core's cache. What the models of a fold share (standardised columns, the
draws they start from) is made once. Numbers are float64 throughout; the steps are those of
`estimators.network`, and only the order in which products are added differs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  (np.dot in numba; threads can be limited once loaded)
from numpy.typing import NDArray
from scipy.special import softmax

from covaria.execution.compiling import compiled
from covaria.execution.threads import one_thread
from covaria.learners import Network
from covaria.learners.estimators.network import BATCHES, draws, settled, starting_weights
from covaria.learners.estimators.single_index import center_and_scale
from covaria.nuisance.engines import plain
from covaria.nuisance.engines.lazy import Full, lazy_outputs
from covaria.nuisance.plan import Array, Outcome, Plan, Task
from covaria.tables.arrays import Rows

Widths = NDArray[np.int64]


def supports(plan: Plan) -> bool:
    """Return whether the plan's learner is a network, and there is a quick way."""
    return isinstance(plan.learner, Network) and "y_direction" not in plan.needs


def cut_by(plan: Plan) -> str:
    """Return how a plan may be cut: every network learns by itself."""
    return "features"


def run(plan: Plan) -> list[Outcome]:
    """Return the outcome of every task, in the order of the plan."""
    tasks = plan.tasks
    outcomes: list[Outcome] = []
    with one_thread():  # the same bits on any number of cores
        for task, outcome in zip(tasks, _outcomes(plan, tasks), strict=True):
            outcomes.append(outcome or plain.fit_task(plan, task))
            if plan.progress:
                plan.progress(len(outcomes), len(tasks))
    return outcomes


def _outcomes(plan: Plan, tasks: list[Task]) -> Iterator[Outcome | None]:
    for fold, same in groupby(tasks, key=lambda task: task.fold):
        of_fold = list(same)
        start = time.perf_counter()
        shared = Shared.of(plan, fold)
        share = (time.perf_counter() - start) / len(of_fold)
        yield from (_outcome(plan, shared, share, task) for task in of_fold)


# --- one step of training, compiled -------------------------------------------------------------


class Table(NamedTuple):
    """What a network learns from: standardised columns, goals, and a column of weights."""

    X: Array
    Y: Array
    weights: Array


class State(NamedTuple):
    """The parameters of a network in one flat vector, and what Adam remembers of each."""

    flat: Array
    gradient: Array
    mean: Array
    square: Array


class Rules(NamedTuple):
    """How a network is trained."""

    batch: int
    lr: float
    weight_decay: float


@compiled
def _layer(flat: Array, widths: Widths, layer: int) -> tuple[Array, Array]:
    """Return the part of a flat vector that is a layer's weight and bias, (out, in) and (out,)."""
    start = 0
    for below in range(layer):
        start += (widths[below] + 1) * widths[below + 1]
    end = start + widths[layer] * widths[layer + 1]
    weight = flat[start:end].reshape(widths[layer + 1], widths[layer])
    return weight, flat[end : end + widths[layer + 1]]


@compiled
def _add_bias(sums: Array, bias: Array, least: float) -> None:
    """Add the bias to each row, and raise what is below `least` to it."""
    for i in range(sums.shape[0]):
        for h in range(sums.shape[1]):
            value = sums[i, h] + bias[h]
            sums[i, h] = least if value < least else value


@compiled
def _forward(flat: Array, widths: Widths, X: Array) -> list[Array]:
    """Return the signals from layer to layer: the inputs first, the outputs last."""
    signals = [X]
    last = len(widths) - 2
    for layer in range(last + 1):
        weight, bias = _layer(flat, widths, layer)
        sums = np.dot(signals[layer], weight.T)
        _add_bias(sums, bias, -np.inf if layer == last else 0.0)
        signals.append(sums)
    return signals


@compiled
def _outputs(flat: Array, widths: Widths, X: Array) -> Array:
    """Return the outputs of a network."""
    return _forward(flat, widths, X)[-1]


@compiled
def _to_slopes_of_squares(outputs: Array, Y: Array, weights: Array) -> float:
    """Return the mean squared error; the outputs become its derivative by them."""
    loss = 0.0
    for i in range(len(Y)):
        share = weights[i, 0] / len(Y)
        miss = outputs[i, 0] - Y[i, 0]
        loss += share * miss**2
        outputs[i, 0] = 2 * share * miss
    return loss


@compiled
def _to_slopes_of_entropy(outputs: Array, Y: Array, weights: Array) -> float:
    """Return the cross-entropy; the outputs become its derivative by them."""
    loss = 0.0
    for i in range(len(Y)):
        share = weights[i, 0] / len(Y)
        top = outputs[i].max()
        log_total = top + math.log(np.exp(outputs[i] - top).sum())
        for k in range(Y.shape[1]):
            log_chance = outputs[i, k] - log_total
            loss -= share * Y[i, k] * log_chance
            outputs[i, k] = share * (math.exp(log_chance) - Y[i, k])
    return loss


@compiled
def _keep_where_alive(slope: Array, signal: Array) -> None:
    """Set slopes to zero where the ReLU let nothing through."""
    for i in range(slope.shape[0]):
        for h in range(slope.shape[1]):
            slope[i, h] = slope[i, h] if signal[i, h] > 0 else 0.0


@compiled
def _add_rows(slope: Array, out: Array) -> None:
    """Write the sum of the rows into `out`."""
    out[:] = 0.0
    for i in range(slope.shape[0]):
        for h in range(slope.shape[1]):
            out[h] += slope[i, h]


@compiled
def _backward(flat: Array, widths: Widths, signals: list[Array], gradient: Array) -> None:
    """Write the derivatives of the loss by all parameters, given those by the outputs."""
    slope = signals[-1]
    for layer in range(len(widths) - 2, -1, -1):
        by_weight, by_bias = _layer(gradient, widths, layer)
        np.dot(slope.T, signals[layer], by_weight)
        _add_rows(slope, by_bias)
        if layer:
            slope = np.dot(slope, _layer(flat, widths, layer)[0])
            _keep_where_alive(slope, signals[layer])


@compiled
def _adam(state: State, steps: int, rules: Rules) -> None:
    """Move the parameters one step of Adam, the `steps`-th, against the gradient."""
    flat, gradient, mean, square = state
    rate = rules.lr / (1 - 0.9**steps)
    widening = 1 / math.sqrt(1 - 0.999**steps)
    for k in range(len(flat)):
        slope = gradient[k] + rules.weight_decay * flat[k]
        mean[k] += 0.1 * (slope - mean[k])
        square[k] = 0.999 * square[k] + 0.001 * slope * slope
        flat[k] -= rate * mean[k] / (math.sqrt(square[k]) * widening + 1e-8)


@compiled
def _taken(values: Array, rows: Rows) -> Array:
    """Return some rows of a table."""
    taken = np.empty((len(rows), values.shape[1]))
    for i in range(len(rows)):
        for k in range(values.shape[1]):
            taken[i, k] = values[rows[i], k]
    return taken


@compiled
def _epoch(
    table: Table, order: Rows, state: State, widths: Widths, steps: int, rules: Rules
) -> float:
    """Return the mean loss over one pass through the rows, a step of Adam after each batch."""
    total = 0.0
    for first in range(0, len(order), rules.batch):
        rows = order[first : first + rules.batch]
        Y, weights = _taken(table.Y, rows), _taken(table.weights, rows)
        signals = _forward(state.flat, widths, _taken(table.X, rows))
        if Y.shape[1] == 1:
            total += len(rows) * _to_slopes_of_squares(signals[-1], Y, weights)
        else:
            total += len(rows) * _to_slopes_of_entropy(signals[-1], Y, weights)
        _backward(state.flat, widths, signals, state.gradient)
        steps += 1
        _adam(state, steps, rules)
    return total / len(order)


@compiled
def _moved(sums: Array, change: Array, weight: Array) -> Array:
    """Return the first layer's signal after its inputs changed: ReLU(sums + change · weight)."""
    signal: Array = np.dot(change, weight)
    for i in range(sums.shape[0]):
        for h in range(sums.shape[1]):
            value = sums[i, h] + signal[i, h]
            signal[i, h] = 0.0 if value < 0 else value
    return signal


# --- what the models of a fold share ------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """What a network learns, standardised or a column per class, and the way back."""

    goal: Array
    center: float = 0.0
    scale: float = 1.0

    def answers(self, outputs: Array) -> Array:
        """Return means, or a row of probabilities per row."""
        if self.goal.shape[1] > 1:
            return np.asarray(softmax(outputs, axis=1))
        return np.asarray(self.center + self.scale * outputs[:, 0])


@dataclass(frozen=True)
class Shared:
    """What the models of one fold share: standardised rows, weights, targets and first draws."""

    learner: Network
    seed: int
    center: Array
    scale: Array
    train: Array
    test: Array
    weights: Array
    y: Target
    starts: dict[int, list[Array]]

    @classmethod
    @np.errstate(all="ignore")
    def of(cls, plan: Plan, fold: int) -> Shared:
        """Return what the models of a fold share."""
        data, learner, (train, test) = plan.data, plan.learner, plan.folds[fold]
        assert isinstance(learner, Network)
        weights = np.ones(len(train)) if data.weights is None else data.weights[train]
        shares = weights / weights.sum()
        center, scale = center_and_scale(data.X[train], shares)
        Z, seed = (data.X[train] - center) / scale, plan.learner_seed(fold)
        y = _y_target(data.y[train], data.n_classes, shares)
        return cls(
            learner=learner,
            seed=seed,
            center=center,
            scale=scale,
            train=Z,
            test=(data.X[test] - center) / scale,
            weights=len(train) * shares[:, None],
            y=y,
            starts={n: _starts(Z, shares, learner, n, seed) for n in {1, y.goal.shape[1]}},
        )

    def column(self, c: int) -> Target:
        """Return a column as what is to be learned."""
        return Target(self.train[:, [c]], self.center[c], self.scale[c])


def _y_target(y: Array, n_classes: int, shares: Array) -> Target:
    if n_classes:
        return Target(np.eye(n_classes)[y.astype(int)])
    center, scale = center_and_scale(y[:, None], shares)
    return Target((y[:, None] - center) / scale, float(center[0]), float(scale[0]))


def _starts(Z: Array, shares: Array, learner: Network, n_outputs: int, seed: int) -> list[Array]:
    """Return the parameters from which the network on all columns starts."""
    if not Z.shape[1]:
        return []
    start = starting_weights(range(Z.shape[1]), learner.hidden, n_outputs, seed)
    # A column that did not vary has taught us nothing, so it gets no say in predictions.
    start[0] *= shares @ Z**2 > 0.5
    return start


# --- training and predicting --------------------------------------------------------------------


@dataclass(frozen=True)
class Trained:
    """A trained network."""

    flat: Array
    widths: Widths
    target: Target

    def predict(self, Z: Array) -> Array:
        """Return means or probabilities at standardised rows."""
        return self.target.answers(_outputs(self.flat, self.widths, Z))

    @property
    def first(self) -> tuple[Array, Array]:
        """Return weight and bias of the first layer."""
        return _layer(self.flat, self.widths, 0)

    def after(self, sums: Array, change: Array, weight: Array) -> Array:
        """Return the answers when inputs with these weights change; `sums` are what they were."""
        upper, signal = (self.widths[0] + 1) * self.widths[1], _moved(sums, change, weight)
        return self.target.answers(_outputs(self.flat[upper:], self.widths[1:], signal))


def _started(shared: Shared, columns: Rows, n_outputs: int) -> State:
    """Return the state before the first step: the full network's, scaled to fewer columns."""
    weight, bias, *upper = shared.starts[n_outputs]
    widening = np.sqrt(weight.shape[1] / len(columns))
    parameters = [widening * weight[:, columns], widening * bias, *upper]
    flat = np.concatenate([p.ravel() for p in parameters])
    return State(flat, np.zeros(len(flat)), np.zeros(len(flat)), np.zeros(len(flat)))


def _trained(shared: Shared, columns: Rows, X: Array, target: Target) -> Trained:
    """Return the network that learned the target from `columns`, whose training rows are `X`."""
    learner, n_outputs = shared.learner, target.goal.shape[1]
    state = _started(shared, columns, n_outputs)
    widths = np.array([len(columns), *learner.hidden, n_outputs])
    table = Table(X, target.goal, shared.weights)
    rules = Rules(int(learner.batch), float(learner.lr), float(learner.weight_decay))
    order, n_batches = draws(shared.seed, BATCHES, len(X)), -(-len(X) // rules.batch)
    losses: list[float] = []
    while len(losses) < learner.epochs and not settled(losses):
        rows, steps = order.permutation(len(X)), n_batches * len(losses)
        losses.append(_epoch(table, rows, state, widths, steps, rules))
        if not np.isfinite(losses[-1]) or not np.isfinite(state.flat).all():
            state.flat.fill(np.nan)  # so that no prediction of it passes for one
            break
    return Trained(state.flat, widths, target)


# --- from a task to its outcome -----------------------------------------------------------------


@np.errstate(all="ignore")
def _outcome(plan: Plan, shared: Shared, share: float, task: Task) -> Outcome | None:
    """Return the outcome of a task; None where the plain engine is to say what it is."""
    start = time.perf_counter()
    columns = _inputs(plan, task)
    if not len(columns):
        return None
    X = shared.train.take(columns, axis=1)
    models = [_trained(shared, columns, X, target) for target in _targets(plan, shared, task)]
    prediction = _predicted(models, shared.test.take(columns, axis=1), task)
    seconds = share + time.perf_counter() - start
    if not np.isfinite(prediction).all():
        return None
    dropped, seconds_dropped = plain.timed(_dropped, plan, shared, task, models[0])
    permuted, seconds_permuted = plain.timed(_permuted, plan, shared, task, models[0])
    lazy, seconds_lazy = plain.timed(_lazy, plan, shared, task, models[0])
    if not all(
        np.isfinite(array).all() for array in (dropped, permuted, lazy) if array is not None
    ):
        return None
    return Outcome(
        prediction,
        dropped,
        permuted,
        seconds,
        seconds_dropped,
        seconds_permuted,
        lazy=lazy,
        seconds_lazy=seconds_lazy,
    )


def _inputs(plan: Plan, task: Task) -> Rows:
    """Return the columns that the models of a task see."""
    if task.need == "y_given_all":
        return np.arange(plan.data.X.shape[1], dtype=np.intp)
    return plan.data.without(task.feature)


def _targets(plan: Plan, shared: Shared, task: Task) -> list[Target]:
    """Return what the models of a task learn: y, or each column of a feature."""
    if task.need != "x_given_rest":
        return [shared.y]
    if plan.targets is None:
        return [shared.column(c) for c in plan.data.features[task.feature].tested]
    train = plan.folds[task.fold][0]
    shares = shared.weights[:, 0] / shared.weights.sum()
    return [_y_target(plan.targets[train, task.feature], 0, shares)]


def _predicted(models: list[Trained], Z: Array, task: Task) -> Array:
    """Return the predictions of a task: of y, or a column for each of a feature's columns."""
    predictions = [model.predict(Z) for model in models]
    return np.column_stack(predictions) if task.need == "x_given_rest" else predictions[0]


def _dropped(plan: Plan, shared: Shared, task: Task, model: Trained) -> Array | None:
    """Return the loss of each row and feature with the feature at its training mean."""
    if task.need != "y_given_all" or "y_dropped" not in plan.needs:
        return None
    # Standardised, the training mean is zero.
    return _losses_after(plan, shared, task, model, -shared.test)


def _permuted(plan: Plan, shared: Shared, task: Task, model: Trained) -> Array | None:
    """Return the loss of each row and feature with the feature permuted, the mean over shuffles."""
    if task.need != "y_given_all" or "y_permuted" not in plan.needs:
        return None
    shuffles = plan.shuffles(task.fold)
    losses = np.zeros((len(shared.test), plan.data.n_features))
    for order in shuffles:
        change = shared.test[order] - shared.test
        losses += _losses_after(plan, shared, task, model, change)
    return losses / len(shuffles)


def _lazy(plan: Plan, shared: Shared, task: Task, model: Trained) -> Array | None:
    """Return what lazily refitted networks leave of each row's y, last what the full one leaves."""
    if task.need != "y_given_all" or "y_lazy" not in plan.needs:
        return None
    layers = [_layer(model.flat, model.widths, layer) for layer in range(len(model.widths) - 1)]
    goal = model.target.goal[:, 0]
    full = Full(layers, shared.train, goal, roots=np.sqrt(shared.weights))
    try:
        outputs = lazy_outputs(full, shared.test, plan.held, plan.lazy, plan.not_held)
    except np.linalg.LinAlgError:
        return np.array([np.nan])  # the plain engine says what it is
    answers = model.target.center + model.target.scale * outputs
    return np.asarray(plan.data.y[plan.folds[task.fold][1], None] - answers)


def _losses_after(plan: Plan, shared: Shared, task: Task, model: Trained, change: Array) -> Array:
    """Return each row's loss when the columns of each feature in turn change.

    Only the first layer's sums see the columns, and the change adds to them.
    """
    data, test = plan.data, plan.folds[task.fold][1]
    weight, bias = model.first
    sums, weight = shared.test @ weight.T + bias, weight.T.copy()
    losses = np.empty((len(test), data.n_features))
    for j, feature in enumerate(data.features):
        columns = list(feature.columns)
        prediction = model.after(sums, change.take(columns, axis=1), weight[columns])
        losses[:, j] = data.loss(prediction, test)
    return losses
