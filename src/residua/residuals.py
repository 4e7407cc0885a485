"""Residuals: the shared models planned, handed to an engine, and what they leave over."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from residua.data import Dataset, Rows
from residua.engines import Outcome, Plan, plain

Array = NDArray[np.float64]
# The learners whose models have an engine of their own, of the same name.
ENGINES = ("boosting", "kernel", "linear", "network", "splines")
NEEDS = ("y_given_all", "y_given_rest", "x_given_rest", "y_dropped", "y_permuted")


@dataclass(frozen=True)
class Residuals:
    """What is left of y and of each feature, out of fold, and each row's loss.

    Rows are the tested rows in the order of the table. `y_given_rest` and the losses have a
    column per feature, `x_given_rest` a column per column of `data.X`. With three or more
    classes what is left of y has one more axis: a column per class but the first. `n_train` is
    the rows a model learned from, 0 where it was tested on those same rows.
    """

    data: Dataset
    rows: Rows
    arrays: Mapping[str, Array]
    failures: Mapping[tuple[str, int], str] = field(default_factory=dict)
    fits: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    n_folds: int = 1
    n_train: int = 0
    engine: str = "plain"

    @property
    def y_given_all(self) -> Array:
        return self.arrays["y_given_all"]

    @property
    def y_given_rest(self) -> Array:
        return self.arrays["y_given_rest"]

    @property
    def x_given_rest(self) -> Array:
        return self.arrays["x_given_rest"]

    @property
    def loss_given_all(self) -> Array:
        """Return each row's loss under the full model, as a column beside the features."""
        return self.arrays["loss_given_all"][:, None]

    @property
    def loss_given_rest(self) -> Array:
        return self.arrays["loss_given_rest"]

    @property
    def loss_dropped(self) -> Array:
        return self.arrays["loss_dropped"]

    @property
    def loss_permuted(self) -> Array:
        return self.arrays["loss_permuted"]

    @property
    def weights(self) -> Array | None:
        """Return the weights of the tested rows, scaled to mean one."""
        if self.data.weights is None:
            return None
        weights = self.data.weights[self.rows]
        return np.asarray(weights / weights.mean())

    @property
    def clusters(self) -> Rows | None:
        return None if self.data.clusters is None else self.data.clusters[self.rows]

    def weighted(self, scores: Array) -> Array:
        """Return scores whose plain mean and sd are the weighted mean and its sd.

        A row with weight w stands at mean + w (score − mean): the influence of that row on
        the weighted mean. So estimate, error and efficiency still come from one array.
        """
        if self.weights is None:
            return scores
        w = self.weights.reshape(-1, *[1] * (scores.ndim - 1))
        mean = (w * scores).mean(axis=0)
        return np.asarray(mean + w * (scores - mean))

    def feature(self, j: int) -> tuple[Array, Array]:
        """Return what is left of a feature, (n, columns), and of y given the rest, (n, classes)."""
        x = self.x_given_rest[:, list(self.data.features[j].columns)]
        y = self.y_given_rest[:, j]
        return x, y.reshape(len(y), -1)

    def failure(self, needs: Iterable[str], feature: int) -> str:
        """Return why a feature has no score, or nothing."""
        for need in needs:
            for key in ((need, feature), (need, -1)):
                if key in self.failures:
                    return self.failures[key]
        return ""

    @cached_property
    def mean_loss(self) -> float:
        """Return the loss of predicting the mean: Var(Y), or for classes the entropy."""
        data, everything = self.data, np.arange(self.data.n_rows, dtype=np.intp)
        losses = data.loss(data.mean_prediction(everything, data.n_rows), everything)
        return float(np.average(losses, weights=data.weights))


def fit_residuals(plan: Plan) -> Residuals:
    """Return what every regression of the plan leaves over, each fitted once."""
    engine = engine_for(plan)
    residuals = gather(plan, engine.run(plan))
    if engine is not plain and not _is_sound(residuals):
        engine, residuals = plain, gather(plan, plain.run(plan))  # it says which fit failed
    return replace(residuals, engine=engine.__name__.rsplit(".", 1)[-1])


def _is_sound(residuals: Residuals) -> bool:
    """Return whether all that is left over is finite, and its losses can be squared."""
    return all(
        _within(array, plain.LARGEST ** (1 + name.startswith("loss")))
        for name, array in residuals.arrays.items()
    )


def _within(array: Array, most: float) -> bool:
    return bool(-most <= array.min(initial=0.0) and array.max(initial=0.0) <= most)


def engine_for(plan: Plan) -> Any:
    """Return the engine that fits the plan soonest; the plain one fits any.

    Fast engines are compiled by numba. Where it is missing the plain engine serves.
    """
    if plan.learner.name not in ENGINES:
        return plain
    try:
        engine = importlib.import_module(f"residua.engines.{plan.learner.name}")
    except ImportError:
        return plain
    return engine if engine.supports(plan) else plain


def gather(plan: Plan, outcomes: list[Outcome]) -> Residuals:
    """Return the outcomes of all folds put side by side, in the order of the rows."""
    rows = np.sort(np.concatenate([test for _, test in plan.folds]))
    arrays = _empty(plan, len(rows))
    failures: dict[tuple[str, int], str] = {}
    fitted: dict[tuple[int, str], list[tuple[int, Outcome]]] = {}
    for task, outcome in zip(plan.tasks, outcomes, strict=True):
        if outcome.failure:
            where = f"fold {task.fold + 1}: " if len(plan.folds) > 1 else ""
            failures.setdefault((task.need, task.feature), where + outcome.failure)
        else:
            fitted.setdefault((task.fold, task.need), []).append((task.feature, outcome))
    for (fold, need), found in fitted.items():
        test = plan.folds[fold][1]
        at = np.arange(len(rows)) if len(test) == len(rows) else np.searchsorted(rows, test)
        _PLACES[need](plan.data, test, at, found, arrays)
    fits, seconds = _cost(plan, outcomes)
    return Residuals(
        plan.data, rows, arrays, failures, fits, seconds, len(plan.folds), _n_train(plan)
    )


def _n_train(plan: Plan) -> int:
    """Return how many rows a model learned from, 0 where it was tested on the same rows."""
    learned = np.zeros(plan.data.n_rows, dtype=bool)
    for train, test in plan.folds:
        learned[:] = False
        learned[train] = True
        if learned[test].any():
            return 0
    return int(np.mean([len(train) for train, _ in plan.folds]))


def _empty(plan: Plan, n_rows: int) -> dict[str, Array]:
    data, classes = plan.data, (plan.data.n_classes - 1,) if plan.data.n_classes > 2 else ()
    shapes: dict[str, Any] = {}
    if any(task.need == "y_given_all" for task in plan.tasks):
        shapes |= {"y_given_all": (n_rows, *classes), "loss_given_all": (n_rows,)}
    if "y_given_rest" in plan.needs:
        shapes["y_given_rest"] = (n_rows, data.n_features, *classes)
        shapes["loss_given_rest"] = (n_rows, data.n_features)
    if "x_given_rest" in plan.needs:
        shapes["x_given_rest"] = (n_rows, data.X.shape[1])
    for need in ("dropped", "permuted"):
        if f"y_{need}" in plan.needs:
            shapes[f"loss_{need}"] = (n_rows, data.n_features)
    # Feature by feature in memory, as the tasks fill it.
    return {name: np.zeros(shape, order="F") for name, shape in shapes.items()}


Found = list[tuple[int, Outcome]]


def _place_full(
    data: Dataset, test: Rows, at: Rows, found: Found, arrays: dict[str, Array]
) -> None:
    """Put what the full model of a fold left over where it belongs."""
    _, outcome = found[0]
    arrays["y_given_all"][at] = data.left(_prediction(outcome), test)
    arrays["loss_given_all"][at] = data.loss(_prediction(outcome), test)
    for name in ("dropped", "permuted"):
        losses = getattr(outcome, name)
        if losses is not None:
            arrays[f"loss_{name}"][at] = losses


def _place_reduced(
    data: Dataset, test: Rows, at: Rows, found: Found, arrays: dict[str, Array]
) -> None:
    """Put what a fold's models without a feature left over where it belongs."""
    if data.classes:
        for j, outcome in found:
            arrays["y_given_rest"][at, j] = data.left(_prediction(outcome), test)
            arrays["loss_given_rest"][at, j] = data.loss(_prediction(outcome), test)
        return
    block = _block([j for j, _ in found], at)
    left = data.y[test] - np.array([_prediction(outcome) for _, outcome in found])
    arrays["y_given_rest"].T[block] = left
    arrays["loss_given_rest"].T[block] = left**2


def _place_features(
    data: Dataset, test: Rows, at: Rows, found: Found, arrays: dict[str, Array]
) -> None:
    """Put what a fold's models of the features left over where it belongs."""
    columns = [c for j, _ in found for c in data.features[j].columns]
    predicted = np.concatenate([_prediction(outcome).T for _, outcome in found])
    arrays["x_given_rest"].T[_block(columns, at)] = data.X.T[_block(columns, test)] - predicted


def _block(rows: Sequence[int], columns: Rows) -> Any:
    """Return an index of rows × columns, by slices where they lie side by side: it is quicker."""
    first, second = as_slice(np.asarray(rows)), as_slice(columns)
    if isinstance(first, slice) or isinstance(second, slice):
        return first, second
    return np.ix_(first, second)


def as_slice(index: Rows) -> Rows | slice:
    """Return a run of numbers as a slice, which needs no copy; any other index as it is."""
    start, stop = int(index[0]), int(index[-1]) + 1
    side_by_side = stop - start == len(index) and (np.diff(index) == 1).all()
    return slice(start, stop) if side_by_side else index


_PLACES = {
    "y_given_all": _place_full,
    "y_given_rest": _place_reduced,
    "x_given_rest": _place_features,
}


def _prediction(outcome: Outcome) -> Array:
    assert outcome.prediction is not None
    return outcome.prediction


def _cost(plan: Plan, outcomes: list[Outcome]) -> tuple[dict[str, int], dict[str, float]]:
    """Return how many models each need took, and how many seconds."""
    fits = dict.fromkeys(NEEDS, 0)
    seconds = dict.fromkeys(NEEDS, 0.0)
    for task, outcome in zip(plan.tasks, outcomes, strict=True):
        fits[task.need] += plan.models(task)
        seconds[task.need] += outcome.seconds
        seconds["y_dropped"] += outcome.seconds_dropped
        seconds["y_permuted"] += outcome.seconds_permuted
    return fits, seconds
