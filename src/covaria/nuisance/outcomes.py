"""The outcomes of a plan's tasks, put side by side as residuals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from types import EllipsisType

import numpy as np
from numpy.typing import NDArray

from covaria.nuisance.engines import plain
from covaria.nuisance.plan import Outcome, Plan, Task
from covaria.nuisance.residuals import Residuals
from covaria.tables.arrays import Index, Rows, as_slice
from covaria.tables.dataset import Dataset

Array = NDArray[np.float64]
# What came of the tasks of one fold and need: for each outcome, the features it answers for.
Found = list[tuple[list[int], Outcome]]
# Where something stands in an array.
Place = tuple[int | slice | EllipsisType | Sequence[int] | NDArray[np.intp], ...]
Placed = Iterator[tuple[str, Place, Array]]
NEEDS = (
    "y_given_all",
    "y_given_rest",
    "x_given_rest",
    "y_dropped",
    "y_permuted",
    "y_lazy",
    "x_masked",
    "y_conditional",
    "f_given_rest",
    "square_given_rest",
    "spread_given_rest",
)


def is_sound(residuals: Residuals) -> bool:
    """Return whether all that is left over is finite, and its losses can be squared."""
    return all(
        _within(array, plain.LARGEST ** (1 + name.startswith("loss")))
        for name, array in residuals.arrays.items()
    )


def _within(array: Array, most: float) -> bool:
    flat = array.ravel(order="K")
    if flat @ flat <= most:  # no number is larger than the length of them all; this is quick
        return True
    return bool(-most <= array.min(initial=0.0) and array.max(initial=0.0) <= most)


def gather(plan: Plan, outcomes: Iterable[Outcome]) -> Residuals:
    """Return the outcomes of all folds put side by side, in the order of the rows."""
    rows = _tested_rows(plan)
    shapes = _shapes(plan, len(rows))
    arrays: dict[str, Array] = {}
    failures: dict[tuple[str, int], str] = {}
    learners: dict[tuple[str, int], list[str]] = {}
    fits, seconds = dict.fromkeys(NEEDS, 0), dict.fromkeys(NEEDS, 0.0)
    places = [places_of(rows, test) for _, test in plan.folds]
    for (need, fold), answered in groupby(_answered(plan, outcomes), key=_kind):
        found: Found = []
        for tasks, outcome in answered:
            _charge(plan, tasks, outcome, fits, seconds)
            if outcome.failure:
                where = f"fold {fold + 1}: " if len(plan.folds) > 1 else ""
                failures.setdefault((need, tasks[0].feature), where + outcome.failure)
            else:
                found.append(([task.feature for task in tasks], outcome))
                if outcome.learner:
                    learners.setdefault((need, tasks[0].feature), []).append(outcome.learner)
        for name, index, left in _LEFT[need](plan.data, *places[fold], found) if found else ():
            _put(arrays, name, shapes[name], index, left)
    for name in shapes.keys() - arrays.keys():
        arrays[name] = np.zeros(shapes[name])  # nothing of this kind could be fitted
    tested_in = np.zeros(len(rows), dtype=np.intp)
    for k, (_, at) in enumerate(places):
        tested_in[at] = k
    return Residuals(
        plan.data,
        rows,
        arrays,
        failures,
        fits,
        seconds,
        len(plan.folds),
        _n_train(plan),
        learners=learners,
        fold=tested_in,
        folds=plan.folds,
        is_given=plan.full is not None,
        n_given=(plan.full.n_train or 0) if plan.full else 0,
    )


def _tested_rows(plan: Plan) -> Rows:
    """Return the rows that some fold tests, in the order of the table."""
    tests = [test for _, test in plan.folds]
    if len(tests) == 1 and isinstance(as_slice(tests[0]), slice):
        return tests[0]
    return np.sort(np.concatenate(tests))


def _answered(plan: Plan, outcomes: Iterable[Outcome]) -> Iterator[tuple[list[Task], Outcome]]:
    """Yield each outcome with the tasks it answers: one, or several in a row."""
    start = 0
    for outcome in outcomes:
        stop = start + outcome.count
        yield plan.tasks[start:stop], outcome
        start = stop


def _kind(answered: tuple[list[Task], Outcome]) -> tuple[str, int]:
    """Return the need and the fold that an outcome is for."""
    return answered[0][0].need, answered[0][0].fold


def places_of(rows: Rows, test: Rows) -> tuple[Index, Index]:
    """Return a fold's test rows, and where they stand among all tested rows."""
    own = as_slice(test)
    if isinstance(own, slice) and len(test) == len(rows):
        return own, slice(0, len(rows))
    return own, as_slice(np.searchsorted(rows, test))


def _n_train(plan: Plan) -> int:
    """Return how many rows a model learned from, 0 where it was tested on the same rows."""
    learned = np.zeros(plan.data.n_rows, dtype=bool)
    for train, test in plan.folds:
        if train is test:
            return 0
        learned[:] = False
        learned[train] = True
        if learned[test].any():
            return 0
    return int(np.mean([len(train) for train, _ in plan.folds]))


def _shapes(plan: Plan, n_rows: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of every array that the plan's needs ask for."""
    data, classes = plan.data, (plan.data.n_classes - 1,) if plan.data.n_classes > 2 else ()
    shapes: dict[str, tuple[int, ...]] = {}
    if plan.tasks and plan.tasks[0].need == "y_given_all":
        shapes |= {"y_given_all": (n_rows, *classes), "loss_given_all": (n_rows,)}
    if "y_given_rest" in plan.needs:
        shapes["y_given_rest"] = (n_rows, data.n_features, *classes)
        shapes["loss_given_rest"] = (n_rows, data.n_features)
    if "x_given_rest" in plan.needs:
        shapes["x_given_rest"] = (n_rows, data.X.shape[1])
    for need in ("dropped", "permuted"):
        if f"y_{need}" in plan.needs:
            shapes[f"loss_{need}"] = (n_rows, data.n_features)
    if "y_lazy" in plan.needs:
        shapes["y_lazy"] = shapes["loss_lazy"] = (n_rows, data.n_features + 1)
    return shapes


def _put(
    arrays: dict[str, Array], name: str, shape: tuple[int, ...], index: Place, values: Array
) -> None:
    """Put values, a row per feature, where they belong in an array with a column per feature."""
    whole = tuple(slice(0, size) for size in reversed(shape))
    if all(isinstance(part, slice) for part in index) and index == whole:
        arrays[name] = values.T  # they are all of it
        return
    if name not in arrays:
        # Feature by feature in memory, as the tasks fill it.
        arrays[name] = np.zeros(shape, order="F")
    arrays[name].T[index] = values


def _left_of_full(data: Dataset, test: Index, at: Index, found: Found) -> Placed:
    """Yield what the full model of a fold left over, and where it belongs."""
    _, outcome = found[0]
    left = data.left(_prediction(outcome), test)
    yield "y_given_all", (at,) if left.ndim == 1 else (slice(0, left.shape[1]), at), left.T
    yield "loss_given_all", (at,), data.loss(_prediction(outcome), test)
    for name in ("dropped", "permuted"):
        losses = getattr(outcome, name)
        if losses is not None:
            yield f"loss_{name}", (slice(0, losses.shape[1]), at), losses.T
    if outcome.lazy is not None:
        block = (slice(0, outcome.lazy.shape[1]), at)
        yield "y_lazy", block, outcome.lazy.T
        yield "loss_lazy", block, (outcome.lazy**2).T


def _left_of_reduced(data: Dataset, test: Index, at: Index, found: Found) -> Placed:
    """Yield what a fold's models without a feature left over, and where it belongs."""
    if data.classes:
        for (j,), outcome in found:
            yield "y_given_rest", (..., j, at), data.left(_prediction(outcome), test).T
            yield "loss_given_rest", (j, at), data.loss(_prediction(outcome), test)
        return
    block = _block([j for features, _ in found for j in features], at)
    left = found[0][1].left
    if left is None:
        left = np.asarray(data.y[test] - _stacked(found))
    losses = left * left
    if data.rule is not None:
        predictions = data.y[test] - left
        losses = np.array([data.loss(one, test) for one in predictions])
        if data.rule.has_residuals:
            left = np.array([data.left(one, test) for one in predictions])
    yield "y_given_rest", block, left
    yield "loss_given_rest", block, losses


def _left_of_features(data: Dataset, test: Index, at: Index, found: Found) -> Placed:
    """Yield what a fold's models of the features left over, and where it belongs."""
    columns = [c for features, _ in found for j in features for c in data.features[j].tested]
    left = found[0][1].left
    if left is None:
        left = np.asarray(data.X.T[_block(columns, test)] - _stacked(found))
    yield "x_given_rest", _block(columns, at), left


def _stacked(found: Found) -> Array:
    """Return the predictions of all outcomes, a row per feature or column."""
    if len(found) == 1 and found[0][1].count > 1:
        return _prediction(found[0][1])
    parts = (
        _prediction(outcome) if outcome.count > 1 else np.atleast_2d(_prediction(outcome).T)
        for _, outcome in found
    )
    return np.concatenate(list(parts))


def _block(rows: Sequence[int], columns: Index) -> Place:
    """Return an index of rows × columns, by slices where they lie side by side: it is quicker."""
    start, stop = rows[0], rows[-1] + 1
    if list(rows) == list(range(start, stop)):
        return slice(start, stop), columns
    return (rows, columns) if isinstance(columns, slice) else np.ix_(np.asarray(rows), columns)


_LEFT = {
    "y_given_all": _left_of_full,
    "y_given_rest": _left_of_reduced,
    "x_given_rest": _left_of_features,
}


def _prediction(outcome: Outcome) -> Array:
    assert outcome.prediction is not None
    return outcome.prediction


def _charge(
    plan: Plan,
    tasks: list[Task],
    outcome: Outcome,
    fits: dict[str, int],
    seconds: dict[str, float],
) -> None:
    """Add how many models an outcome took, and how many seconds."""
    need = tasks[0].need
    if plan.full is None or need != "y_given_all":
        fits[need] += sum(plan.models(task) for task in tasks) if need[0] == "x" else len(tasks)
    seconds[need] += outcome.seconds
    seconds["y_dropped"] += outcome.seconds_dropped
    seconds["y_permuted"] += outcome.seconds_permuted
    seconds["y_lazy"] += outcome.seconds_lazy
