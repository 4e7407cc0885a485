"""The function of each feature that PCM tests, put together from parts.

The effects that GCM is blind to are even in x_j, or differ from row to row. With ξ what the others
leave of x_j, and ψ each other column in turn, ξψ and (ξ² − E[ξ² | others])ψ have mean zero given
the others without another regression but that of ξ². A part that goes with what is left of y in
other folds, with statistic t, enters a fold's function with weight t³: one that stands out takes
over, a thousand that do not add up to little. ψ = 1, the effect that all rows have in common,
counts as much as all columns together, and so does the curve of x_j that boosted stumps suggest,
where it is none of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from covaria.tables.arrays import Rows, of_all_classes
from covaria.tables.dataset import Dataset

Array = NDArray[np.float64]

# The power of its t-statistic by which a part is weighed.
POWER = 3


def directions(
    data: Dataset,
    rows: Rows,
    fold: Rows,
    found: Sequence[Mapping[str, Array]],
    only: Sequence[int] | None = None,
) -> list[Array]:
    """Return the function of every feature, less its mean given the others.

    Of the residuals in `found` the first decide on the weights of parts; the others, of models
    of a second learner, get the same. Of the features `only` some may be asked for.
    """
    psi = _standardised(data.X[rows])
    squares = psi**2
    weights = np.ones(len(rows)) if data.weights is None else data.weights[rows]
    y = _of_classes(found[0]["y_given_rest"])
    result = [np.zeros_like(y) for _ in found]
    for j in range(data.n_features) if only is None else only:
        feature = data.features[j]
        if not feature.columns:
            continue
        own = [1 + column for column in feature.columns]
        for c in range(y.shape[2]):
            bases = [_bases(one, feature.tested, j, c) for one in found]
            t, size = _statistics(bases[0], psi, squares, y[:, j, c], weights, fold)
            t[..., own] = 0.0  # a feature's own columns are no others
            functions = _functions(bases, psi, t, size, fold)
            slope = max(
                1e-3 * y[:, j, c].std(), np.average(functions[0] * y[:, j, c], weights=weights)
            )
            for at, function in enumerate(functions):
                result[at][:, j, c] = slope * function
    return [one if y.shape[2] > 1 else one[:, :, 0] for one in result]


def _of_classes(y: Array) -> Array:
    """Return what is left of y as (rows, features, classes)."""
    return of_all_classes(y) if y.ndim == 3 else y[:, :, None]


def _standardised(X: Array) -> Array:
    """Return a column of ones, and the columns with mean 0 and variance 1."""
    sd = X.std(axis=0)
    psi = np.ones((len(X), 1 + X.shape[1]))
    psi[:, 1:] = (X - X.mean(axis=0)) / np.where(sd > 0, sd, 1.0)
    return psi


def _bases(found: Mapping[str, Array], columns: Sequence[int], j: int, c: int) -> list[Array]:
    """Return what is left of a feature, of its squares, and of the curve that trees suggest."""
    own = list(columns)
    curve = found["f_given_rest"]
    return [
        *found["x_given_rest"][:, own].T,
        found["spread_given_rest"][:, j],
        curve[:, j] if curve.ndim == 2 else curve[:, j, c],
    ]


def _functions(
    bases: Sequence[list[Array]], psi: Array, t: Array, size: Array, fold: Rows
) -> list[Array]:
    """Return the functions that parts add up to, of all residuals alike."""
    coefficients = t * np.abs(t) ** (POWER - 1)
    coefficients[..., 0] *= np.sqrt(psi.shape[1])
    coefficients /= np.where(size > 0, size, 1.0)
    return _evened([_added_up(own, psi, coefficients, fold) for own in bases], fold)


def _statistics(
    bases: list[Array], psi: Array, squares: Array, y: Array, weights: Array, fold: Rows
) -> tuple[Array, Array]:
    """Return t of every part in the rows that a fold does not test, and the size of each part.

    t has the shape (folds, bases, columns of ψ), and the size (bases, columns).
    """
    count = int(fold.max()) + 1
    sums = np.zeros((count, len(bases), psi.shape[1]))
    size = np.zeros(sums.shape[1:])
    tested = [np.flatnonzero(fold == k) for k in range(count)]
    for b, base in enumerate(bases):
        size[b] = np.sqrt((weights * base**2) @ squares / weights.sum())
        for k, rows in enumerate(tested):
            sums[k, b] = (weights[rows] * base[rows] * y[rows]) @ psi[rows]
    size[-1, 1:] = 0.0  # the curve is one part
    sums[:, -1, 1:] = 0.0
    total, sd = sums.sum(axis=0), np.sqrt(np.average(y**2, weights=weights)) or 1.0
    unit = np.where(size > 0, size, np.inf) * sd
    learned = np.array([max(1, len(fold) - len(rows)) for rows in tested])
    return np.asarray((total - sums) / unit / np.sqrt(learned)[:, None, None]), size


def _added_up(bases: list[Array], psi: Array, coefficients: Array, fold: Rows) -> Array:
    function = np.zeros(len(fold))
    for k in range(len(coefficients)):
        rows = fold == k
        for base, own in zip(bases, coefficients[k], strict=True):
            function[rows] += base[rows] * (psi[rows] @ own)
    return function


def _evened(found: Sequence[Array], fold: Rows) -> list[Array]:
    """Return functions of one size in every fold, that of the first in each."""
    result = [one.copy() for one in found]
    for k in range(int(fold.max()) + 1):
        rows = fold == k
        size = np.sqrt(np.mean(found[0][rows] ** 2))
        for one in result:
            one[rows] /= size if size > 0 else 1.0
    return result
