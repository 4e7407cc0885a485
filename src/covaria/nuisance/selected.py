"""More columns than rows: what columns chosen for x_j and y together tell of both is taken off.

A part of the rows overlooks columns that both x_j and y need. Chosen from all rows, for both at
once, they mislead no test (Belloni, Chernozhukov and Hansen, 2014): a column enters for the sum of
what it explains of x_j and of y, which does not tell whether the two go together. Of x_j, and of y,
either these columns alone explain more, or they and what was learned before: the smaller residuals
count. Slopes come from other folds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from covaria.learners import Sparse
from covaria.nuisance.halves import PRODUCT
from covaria.nuisance.plan import Plan
from covaria.nuisance.residuals import Residuals, row_parts
from covaria.tables.arrays import Rows
from covaria.tables.dataset import Dataset

Array = NDArray[np.float64]


def without_selected(plan: Plan, residuals: Residuals) -> Residuals:
    """Return residuals less what columns chosen for x_j and y together tell of both."""
    if not residuals.arrays.keys() >= PRODUCT:
        return residuals
    start = time.perf_counter()
    arrays = {name: residuals.arrays[name] for name in PRODUCT}
    parts = row_parts(plan, residuals)
    (found,), alone = less_selected(plan.data, residuals.rows, parts, [arrays])
    if plan.ledger:
        models = sum(1 for feature in plan.data.features if feature.columns)
        plan.ledger.charge("selection", Sparse.name, models, time.perf_counter() - start)
    return replace(
        residuals,
        arrays={**residuals.arrays, **found},
        # Least squares on a few columns have the noise of these.
        most_noise=alone / residuals.n_train,
        by_learners=residuals,
    )


def less_selected(
    data: Dataset,
    rows: Rows,
    fold: Rows,
    found: Sequence[Mapping[str, Array]],
    only: Sequence[int] | None = None,
) -> tuple[list[dict[str, Array]], Array]:
    """Return residuals of x and y, less what the columns chosen for each pair tell of it.

    `found` has those of all training rows, and of models that learned from fewer; of the features
    `only` some may be asked for. Beside them comes
    how many columns were chosen for a feature, infinite where none of its two regressions is theirs
    alone.
    """
    result = [{name: array.copy() for name, array in one.items()} for one in found]
    alone = np.full(data.n_features, np.inf)
    zero = np.zeros((len(rows), data.n_classes) if data.classes else len(rows))
    y = data.left(zero, rows)
    root = np.ones(len(rows)) if data.weights is None else np.sqrt(data.weights[rows])
    for j in range(data.n_features) if only is None else only:
        own = list(data.features[j].tested)
        chosen = jointly_chosen(data, rows, j) if own else ()
        if not len(chosen):
            continue
        columns = data.X[np.ix_(rows, chosen)]
        parts = (("x_given_rest", own, data.X[rows][:, own]), ("y_given_rest", j, y))
        for name, at, target in parts:
            by_them = _less(columns, target, root, fold)
            left = [_less(columns, one[name][:, at], root, fold) for one in found]
            if _size(by_them, root) < _size(left[0], root):
                left, alone[j] = [by_them] * len(left), len(chosen)
            for arrays, own_left in zip(result, left, strict=True):
                arrays[name][:, at] = own_left
    return result, alone


def jointly_chosen(data: Dataset, rows: Rows, j: int) -> Rows:
    """Return the columns of others that a lasso chooses for a feature and y together."""
    from covaria.learners.estimators.wide import SparseModel

    others = data.without(j)
    weights = None if data.weights is None else data.weights[rows]
    of_feature = data.X[rows][:, list(data.features[j].tested)]
    model = SparseModel(beside=of_feature, n_classes=data.n_classes if data.n_classes > 2 else 0)
    model.fit(data.X[np.ix_(rows, others)], data.y[rows], weights)
    return np.asarray(others[model.slopes_.any(axis=1)])


def _less(columns: Array, values: Array, root: Array, fold: Rows) -> Array:
    """Return values less what columns tell of them, as learned from other folds."""
    design = np.column_stack([np.ones(len(columns)), columns])
    flat = values.reshape(len(values), -1)
    found = np.empty_like(flat)
    for k in np.unique(fold):
        test = fold == k
        weighted = root[~test, None]
        slopes = np.linalg.lstsq(weighted * design[~test], weighted * flat[~test], rcond=None)[0]
        found[test] = flat[test] - design[test] @ slopes
    return found.reshape(values.shape)


def _size(left: Array, root: Array) -> float:
    return float(((root * left.reshape(len(left), -1).T) ** 2).sum())
