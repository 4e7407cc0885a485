"""The slope of an unknown monotone link, from an index and a target.

Foster, Taylor and Nan, Statistics in Medicine 32 (2013), section 2.2: pool adjacent violators,
smooth by Nadaraya–Watson, take the slopes between neighbours, smooth those. Their one bandwidth
for the whole line fails where the index reaches far beyond the steep part of the link. Here the
bandwidth is the distance to the k-th neighbour, with k chosen by cross-validation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covaria.errors import InputError

Array = NDArray[np.float64]
FOLDS = 5


def eta_prime(index: ArrayLike, y: ArrayLike, at: ArrayLike | None = None) -> Array:
    """Return the estimated slope of E[y given index], at the index or at the places given.

    >>> index = np.linspace(-2, 2, 400)
    >>> bool(abs(eta_prime(index, 3 * index, at=[0.0])[0] - 3) < 0.1)
    True
    """
    u, v = _checked(index, y)
    where = u if at is None else np.asarray(at, dtype=float)
    direction = 1.0 if np.corrcoef(u, v)[0, 1] >= 0 else -1.0
    # Rows that share an index say one thing between them: their mean.
    u, group, count = np.unique(u, return_inverse=True, return_counts=True)
    v = direction * np.bincount(group, v) / count
    weights = count.astype(float)
    return direction * _slopes(u, v, weights, where, _chosen(u, v, weights))


def _checked(index: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    u, v = np.asarray(index, dtype=float), np.asarray(y, dtype=float)
    if u.ndim != 1 or u.shape != v.shape:
        raise InputError(
            f"index and y have shapes {u.shape} and {v.shape}. Give two equal columns."
        )
    if not (np.isfinite(u).all() and np.isfinite(v).all()):
        raise InputError("index or y has values that are not finite. Drop those rows.")
    if len(np.unique(u)) < 4 * FOLDS or np.ptp(v) == 0:
        raise InputError(f"index needs {4 * FOLDS} different values, and y two. Give more rows.")
    return u, v


def _slopes(u: Array, v: Array, weights: Array, at: Array, neighbours: int) -> Array:
    """Return the slope of a rising link at the places given; u is sorted, no two alike."""
    # A light first smoothing: the second does the work, and two wide ones would flatten the ends.
    smooth = _smoothed(u, _rising(v, weights), weights, u, max(neighbours // 4, 4))
    gaps = np.diff(u)
    apart = gaps > 1e-9 * (u[-1] - u[0])
    middles, gaps = (u[1:] + u[:-1])[apart] / 2, gaps[apart]
    # Weighted by the gap: two neighbours that nearly touch say little about a slope.
    return _smoothed(middles, np.diff(smooth)[apart] / gaps, gaps, at, neighbours)


def _rising(y: Array, weights: Array) -> Array:
    """Return the nearest rising sequence: pool adjacent violators."""
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(y, weights=weights).x)


def _smoothed(x: Array, values: Array, weights: Array, at: Array, neighbours: int) -> Array:
    """Return the Nadaraya–Watson mean, the k-th neighbour's distance the bandwidth; x is sorted.

    The kernel 1 − (away / width)² is a polynomial, so running sums of x^k do for all windows.
    """
    centre, scale = x.mean(), np.ptp(x)
    x, at = (x - centre) / scale, (at - centre) / scale
    # Towards an end the window narrows rather than leaning inwards, which would flatten the end.
    room = np.maximum(np.minimum(at - x[0], x[-1] - at), _reach(x, at, max(neighbours // 4, 4)))
    width = np.minimum(_reach(x, at, neighbours), room)
    low, high = np.searchsorted(x, at - width, "right"), np.searchsorted(x, at + width, "left")

    def window(each: Array) -> Array:
        total = np.concatenate([[0.0], np.cumsum(each)])
        return np.asarray(total[high] - total[low])

    def kernel_sum(each: Array) -> Array:
        squares = window(each * x**2) - 2 * at * window(each * x) + at**2 * window(each)
        return np.asarray(window(each) - squares / width**2)

    # Far out, beyond all neighbours but one, the window is empty: take the nearest value.
    nearest = values[np.clip(np.searchsorted(x, at), 0, len(x) - 1)]
    total = kernel_sum(weights)
    enough = total > 1e-9 * weights.mean()
    return np.asarray(
        np.where(enough, kernel_sum(weights * values) / np.where(enough, total, 1), nearest)
    )


def _reach(x: Array, at: Array, neighbours: int) -> Array:
    """Return the distance to the k-th nearest of sorted x."""
    neighbours = min(neighbours, len(x))
    place = np.searchsorted(x, at)
    low = np.clip(place - neighbours, 0, len(x) - neighbours)
    high = np.clip(place, 0, len(x) - neighbours)
    while (low < high).any():
        middle = (low + high) // 2
        right = x[middle + neighbours - 1] - at >= at - x[middle]
        low, high = (
            np.where(right, low, np.minimum(middle + 1, high)),
            np.where(right, middle, high),
        )
    first = np.maximum(at - x[low], x[low + neighbours - 1] - at)
    before = np.maximum(low - 1, 0)
    second = np.maximum(at - x[before], x[before + neighbours - 1] - at)
    return np.asarray(np.maximum(np.minimum(first, second), 1e-12))


def _chosen(u: Array, v: Array, weights: Array) -> int:
    """Return the most neighbours whose slopes, summed up, predict held-out rows as well as any."""
    tried = np.unique(np.geomspace(16, max(len(u) // 2, 20), 12).astype(int))
    errors = np.empty((len(tried), len(u)))
    for fold in range(FOLDS):
        held = np.arange(len(u)) % FOLDS == fold
        for k, neighbours in enumerate(tried):
            slopes = _slopes(u[~held], v[~held], weights[~held], u, int(neighbours))
            level = np.concatenate([[0.0], np.cumsum((slopes[1:] + slopes[:-1]) / 2 * np.diff(u))])
            level += np.average((v - level)[~held], weights=weights[~held])
            errors[k, held] = weights[held] * (v[held] - level[held]) ** 2
    # A slope wants a wider window than a level: the widest within two standard errors of the best.
    worse = errors - errors[np.argmin(errors.mean(axis=1))]
    within = worse.mean(axis=1) <= 2 * worse.std(axis=1) / np.sqrt(len(u))
    return int(tried[within].max())
