"""The plain engine: a fresh model for every task.

It is the reference for every other engine and the home of any estimator. A task never raises:
what goes wrong in a fit becomes the reason on that task's outcome.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from covaria.execution.threads import one_thread
from covaria.learners import Estimator, Fit, Learner, Prefit
from covaria.learners.estimators import Model, as_targets
from covaria.learners.estimators.wrapped import looks_at_all_columns
from covaria.nuisance.plan import Array, Outcome, Plan, Task
from covaria.tables.arrays import Rows, as_slice

if TYPE_CHECKING:
    import pandas as pd

    Inputs = Array | pd.DataFrame  # what a model is given

T = TypeVar("T")

# Beyond this the square of a loss overflows.
LARGEST = 1e70
# A frame is predicted in parts of about so many rows.
AT_ONCE = 50_000
DIED = "the learner's process died"
# A process takes seconds to start again; a learner that dies in every fit gets no more.
MOST_DEATHS = 3
NOT_TRIED = f"{DIED} in {MOST_DEATHS} fits in a row, so this was not tried"


def supports(plan: Plan) -> bool:
    """Return True: it fits any plan."""
    return True


def cut_by(plan: Plan) -> str:
    """Return how a plan may be cut: a full model may spare others of y, the rest stand alone."""
    has_full = any(task.need == "y_given_all" for task in plan.tasks)
    shares = plan.learner.starts_from_full or (has_full and _may_spare(plan.learner))
    return "needs" if shares else "features"


def _may_spare(learner: Learner) -> bool:
    """Return whether a model may say which columns it never used (`used_`)."""
    if isinstance(learner, Estimator):
        return looks_at_all_columns(learner.y)
    return learner.says_used


def run(plan: Plan) -> list[Outcome]:
    """Return the outcome of every task, in the order of the plan.

    The full models come first: a booster that never used a feature needs no refit without it.
    """
    done: dict[Task, Outcome] = {}
    with one_thread():  # the same bits as in a worker, which has one thread
        _fit_all(plan, [task for task in plan.tasks if task.need == "y_given_all"], done)
        full = {task.fold: outcome for task, outcome in done.items()}
        for task in plan.tasks:
            if task.need == "y_given_rest" and task.fold in full:
                same = full[task.fold]
                if task.feature in same.unused:
                    done[task] = Outcome(same.prediction, models=0)
        _fit_all(plan, [task for task in plan.tasks if task not in done], done)
    return [done[task] for task in plan.tasks]


def _fit_all(plan: Plan, tasks: list[Task], done: dict[Task, Outcome]) -> None:
    """Put the outcome of every task into `done` and tell how far it is."""
    full: dict[int, Model | None] = {}
    for task in tasks:
        done[task] = fit_task(plan, task, full)
        if plan.progress:
            plan.progress(len(done), len(plan.tasks))


def fit_task(plan: Plan, task: Task, full: dict[int, Model | None] | None = None) -> Outcome:
    """Return the outcome of one task; never raise.

    `full` keeps the models of y on all columns that others start from, by fold.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # learners' remarks are not the user's concern
            return _fit(plan, task, {} if full is None else full)
    except (Exception, SystemExit) as error:
        # Only what a learner does can fail here: the table was checked at the door.
        return Outcome(failure=reason(error))


def reason(error: BaseException) -> str:
    """Return what went wrong, in a line."""
    first = str(error).strip().splitlines()
    return f"{type(error).__name__}: {first[0]}"[:200] if first else type(error).__name__


def _fit(plan: Plan, task: Task, full: dict[int, Model | None]) -> Outcome:
    start = time.perf_counter()
    if task.need == "x_given_rest":
        prediction = _predict_feature(plan, task)
        return Outcome(prediction, seconds=time.perf_counter() - start)
    data, (train, test) = plan.data, plan.folds[task.fold]
    everything = np.arange(data.X.shape[1], dtype=np.intp)
    columns = everything if task.need == "y_given_all" else data.without(task.feature)
    before, models = _start(plan, task, full)
    model = _fitted(plan, task, columns, data.y, data.n_classes, full=before)
    prediction = predicted(plan, model, _part(plan, test, columns), train)
    seconds = time.perf_counter() - start
    if task.need == "y_given_rest":
        return Outcome(prediction, seconds=seconds, models=models)
    dropped, seconds_dropped = timed(_dropped, plan, task, model)
    permuted, seconds_permuted = timed(_permuted, plan, task, model)
    lazy, seconds_lazy = timed(_lazy, plan, task, model)
    return Outcome(
        prediction,
        dropped,
        permuted,
        seconds,
        seconds_dropped,
        seconds_permuted,
        unused=_unused(plan, model) if plan.shared_randomness else frozenset(),
        lazy=lazy,
        seconds_lazy=seconds_lazy,
        direction=_direction(plan, task, model),
        models=0 if isinstance(plan.learner, Prefit) else None,
    )


def _start(
    plan: Plan, task: Task, full: dict[int, Model | None]
) -> tuple[Model | None, int | None]:
    """Return the model that one without a feature starts from; how many are fitted, if two."""
    if task.need != "y_given_rest" or not plan.learner.starts_from_full:
        return None, None
    if task.fold in full:
        return full[task.fold], None
    full[task.fold] = full_model(plan, Task("y_given_all", task.fold))
    return full[task.fold], 2


def _unused(plan: Plan, model: Model | None) -> frozenset[int]:
    """Return the features a full model never used, if it says so."""
    used = getattr(model, "used_", None)
    if used is None or not plan.learner.says_used:
        return frozenset()
    features = enumerate(plan.data.features)
    return frozenset(j for j, f in features if f.columns and not used[list(f.columns)].any())


def timed(function: Callable[..., T], *arguments: object) -> tuple[T, float]:
    """Return what a function returns, and the seconds that took."""
    start = time.perf_counter()
    return function(*arguments), time.perf_counter() - start


def full_model(plan: Plan, task: Task) -> Model | None:
    """Return a model of y on all columns of a fold's training rows."""
    data = plan.data
    everything = np.arange(data.X.shape[1], dtype=np.intp)
    return _fitted(plan, task, everything, data.y, data.n_classes)


def inputs_of(plan: Plan, rows: Rows) -> Inputs:
    """Return all that a model of y on all columns sees of some rows."""
    asked = plan if plan.full is None else replace(plan, learner=plan.full, full=None)
    return _part(asked, rows, np.arange(plan.data.X.shape[1], dtype=np.intp))


def _fitted(
    plan: Plan,
    task: Task,
    columns: Rows,
    target: Array,
    n_classes: int,
    of_feature: bool = False,
    full: Model | None = None,
) -> Model | None:
    """Return a model of the target fitted on a fold's training rows; None without columns."""
    train = plan.folds[task.fold][0]
    inputs = _part(plan, train, columns, of_feature)
    if inputs.shape[1] == 0:
        return None
    weights = None if plan.data.weights is None else plan.data.weights[train]
    frame = plan.frame(of_feature=of_feature)
    names = () if frame is None else frame.names
    fit = Fit(
        plan.task_seed(task), tuple(columns.tolist()), n_classes, of_feature, names,
        plan.data.classes if n_classes else (), frame is not None and frame.was_array,
        _beside(plan, task, train), full,
    )  # fmt: skip
    return plan.learner.model(fit).fit(cast(Array, inputs), target[train], weights)


def _beside(plan: Plan, task: Task, train: Rows) -> Array | None:
    """Return what the other regression of a test predicts, where the learner looks at both."""
    if not plan.learner.chooses_jointly or task.need == "y_given_all":
        return None
    if task.need == "x_given_rest":
        of_classes = as_targets(plan.data.y[train], plan.data.n_classes)
        return of_classes[:, :1] if plan.data.n_classes == 2 else of_classes
    return plan.x_targets[:, list(plan.targets_of(task.feature))][train]


def _part(plan: Plan, rows: Rows, columns: Rows, of_feature: bool = False) -> Inputs:
    """Return a copy of some rows and columns of the inputs, as numbers or as a frame."""
    frame = plan.frame(of_feature=of_feature)
    if frame is not None:
        return frame.part(rows, _left_out(plan, columns))
    at = as_slice(rows)
    if isinstance(at, slice):  # it is quicker
        return np.take(plan.inputs[at], columns, axis=1)
    return plan.inputs[np.ix_(rows, columns)]


def _left_out(plan: Plan, columns: Rows) -> list[str]:
    """Return the features that have a column which is not among these."""
    there = set(columns.tolist())
    return [f.name for f in plan.data.features if not there.issuperset(f.columns)]


def predicted(plan: Plan, model: Model | None, inputs: Inputs, train: Rows) -> Array:
    """Return finite predictions of y, or raise."""
    data = plan.data
    if model is None:
        return data.mean_prediction(train, len(inputs))
    shape = (len(inputs), data.n_classes) if data.classes else (len(inputs),)
    return _finite(model.predict(cast(Array, inputs)), shape)


def _finite(prediction: Array, shape: tuple[int, ...]) -> Array:
    if prediction.shape != shape:
        raise ValueError(f"the learner predicted shape {prediction.shape} instead of {shape}")
    if not (np.abs(prediction) <= LARGEST).all():
        raise ValueError("the learner predicted values that are not finite or beyond 1e70")
    return prediction


def _predict_feature(plan: Plan, task: Task) -> Array:
    """Return predictions of each column of a feature, or its target, from the other features."""
    data, (train, test) = plan.data, plan.folds[task.fold]
    rest = data.without(task.feature)
    test_inputs = _part(plan, test, rest, of_feature=True)
    weights = None if data.weights is None else data.weights[train]
    predictions = []
    for column in plan.targets_of(task.feature):
        target = plan.x_targets[:, column]
        model = _fitted(plan, task, rest, target, 0, of_feature=True)
        mean = np.average(target[train], weights=weights)
        predictions.append(
            np.full(len(test), mean)
            if model is None
            else _finite(model.predict(cast(Array, test_inputs)), (len(test),))
        )
    return np.column_stack(predictions)


def _dropped(plan: Plan, task: Task, model: Model | None) -> Array | None:
    """Return the loss of each row and feature with the feature at its training mean.

    In a frame, text and the like take their most common level.
    """
    if "y_dropped" not in plan.needs:
        return None
    data, (train, test), frame = plan.data, plan.folds[task.fold], plan.frame()
    weights = None if data.weights is None else data.weights[train]
    if frame is not None:
        return _losses_with(
            plan, task, model, lambda j: frame.with_usual(test, data.names[j], train, weights)
        )
    means, inputs = np.average(data.X[train], axis=0, weights=weights), plan.inputs[test]
    return _losses_with(plan, task, model, lambda j: _altered(plan, inputs, j, means[None]))


def _permuted(plan: Plan, task: Task, model: Model | None) -> Array | None:
    """Return the loss of each row and feature with the feature permuted, the mean over shuffles."""
    if "y_permuted" not in plan.needs:
        return None
    losses = [_losses_in(plan, task, model, order) for order in plan.shuffles(task.fold)]
    return np.asarray(np.mean(losses, axis=0))


def _losses_in(plan: Plan, task: Task, model: Model | None, order: Rows) -> Array:
    """Return each row's loss when each feature in turn is permuted."""
    test, frame, names = plan.folds[task.fold][1], plan.frame(), plan.data.names
    if frame is not None:
        return _losses_with(
            plan, task, model, lambda j: frame.with_rows(test, names[j], test[order])
        )
    inputs = plan.inputs[test]
    return _losses_with(plan, task, model, lambda j: _altered(plan, inputs, j, inputs[order]))


def _lazy(plan: Plan, task: Task, model: Model | None) -> Array | None:
    """Return what lazily refitted networks leave of each row's y, last what the full one leaves."""
    if "y_lazy" not in plan.needs:
        return None
    from covaria.learners.estimators.network import NeuralNetwork
    from covaria.nuisance.engines.lazy import lazy_predictions

    assert isinstance(model, NeuralNetwork)  # no other learner gets here
    data, (train, test) = plan.data, plan.folds[task.fold]
    weights = None if data.weights is None else data.weights[train]
    answers = lazy_predictions(
        model,
        data.X[train],
        data.y[train],
        data.X[test],
        plan.held,
        weights=weights,
        settings=plan.lazy,
        others=plan.not_held,
    )
    return np.asarray(data.y[test, None] - _finite(answers, answers.shape))


def _direction(plan: Plan, task: Task, model: Model | None) -> Array | None:
    """Return the prediction less its mean over other values of each feature."""
    if "y_direction" not in plan.needs:
        return None
    data, (train, test) = plan.data, plan.folds[task.fold]
    frame = plan.frame()
    inputs = plan.inputs[test] if frame is None else frame.part(test)
    own = data.signal(predicted(plan, model, inputs, train))
    found = np.zeros((len(test), data.n_features, *own.shape[1:]))
    unused, references = _unused(plan, model), plan.references(task.fold)
    averaged = None if data.classes else getattr(model, "averaged", None)
    for j, feature in enumerate(data.features):
        if not feature.columns or j in unused:
            continue
        columns = list(feature.columns)
        if averaged:  # it knows a short cut
            found[:, j] = own - averaged(inputs, columns, references[:, columns])
            continue
        for altered, count in _with_references(plan, task, j, inputs, references):
            said = data.signal(predicted(plan, model, altered, train))
            found[:, j] -= said.reshape(count, *own.shape).sum(axis=0)
        found[:, j] = found[:, j] / len(references) + own
    return found


def _with_references(
    plan: Plan, task: Task, j: int, inputs: Inputs, references: Array
) -> Iterator[tuple[Inputs, int]]:
    """Yield the inputs with other values of a feature in all rows, for so many values at once.

    Frames go through slow pipelines, so these see many values at once.
    """
    frame, test = plan.frame(), plan.folds[task.fold][1]
    if frame is None:
        columns, altered = list(plan.data.features[j].columns), inputs.copy()
        for values in references[:, columns]:
            altered[:, columns] = values
            yield altered, 1
        return
    rows, step = plan.reference_rows(task.fold, j), max(1, AT_ONCE // len(test))
    for some in (rows[start : start + step] for start in range(0, len(rows), step)):
        others = np.repeat(some, len(test))
        yield frame.with_rows(np.tile(test, len(some)), plan.data.names[j], others), len(some)


def _altered(plan: Plan, inputs: Array, j: int, values: Array) -> Array:
    """Return a copy of inputs in which a feature has its columns of other values."""
    columns = list(plan.data.features[j].columns)
    altered = inputs.copy()
    altered[:, columns] = values[:, columns]
    return altered


def _losses_with(
    plan: Plan, task: Task, model: Model | None, altered: Callable[[int], Inputs]
) -> Array:
    """Return each row's loss when each feature in turn takes other values."""
    data, (train, test) = plan.data, plan.folds[task.fold]
    losses = np.empty((len(test), data.n_features))
    for j in range(data.n_features):
        losses[:, j] = data.loss(predicted(plan, model, altered(j), train), test)
    return losses
