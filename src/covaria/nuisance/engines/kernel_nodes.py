"""Kernel sums with another value of one feature, read off at a few of its values: nodes.

The Gaussian kernel is a product over columns. When a row's x becomes x', its kernel to a support
vector v is multiplied by exp(sigma·(|x − v|² − |x' − v|²)), an exponential in v. That is smooth,
so its values at a few nodes u tell it everywhere, by shares s_u(v) that do not depend on x':

    Σ_v β_v K(x, v) exp(…)  =  Σ_u [Σ_v β_v K(x, v) s_u(v) / e(x, u)] · e(x', u)

with e(x, u) = exp(−sigma·|x − u|²). What is in brackets is a thin product of matrices and serves
all x'. Nodes are Chebyshev's, as many as rounding asks for, or the few levels a feature has:
Trefethen (2013), *Approximation Theory and Approximation Practice*, chapter 8.
"""

from __future__ import annotations

from functools import cache
from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import NDArray

from covaria.execution.compiling import compiled
from covaria.nuisance.plan import Array

# With more nodes, it is as quick to compute the kernel anew.
MOST_NODES = 32
# How far off a sum may be in units of Σ|β|K, and what may multiply its rounding, as a power of e.
PRECISION, LARGEST_EXPONENT = 1e-12, 12.0


class Nodes(NamedTuple):
    """The nodes of features, a row each, and their shares: (support vectors, features, nodes).

    Of one feature with several columns, the rows of `places` are its columns.
    """

    places: Array
    shares: Array


class Swap(NamedTuple):
    """The values that columns may take, a row each, and which of them each row is given in turn."""

    values: Array
    orders: NDArray[np.intp]


def exponents(vectors: Array, values: Array, sigma: float) -> Array:
    """Return sigma·|x − v|² of the farthest value and support vector, for each column."""
    above = values.max(axis=1) - vectors.min(axis=1)
    below = vectors.max(axis=1) - values.min(axis=1)
    with np.errstate(over="ignore"):
        return np.asarray(sigma * np.maximum(above, below) ** 2)


def counts(vectors: Array, values: Array, swapped: Array, sigma: float) -> NDArray[np.intp]:
    """Return how many of Chebyshev's nodes each column needs, 0 where they are too many.

    With T = sigma·radius·|x' − x|, what is left out is below 2 T^n / n! of the largest factor.
    """
    largest = exponents(vectors, values, sigma)
    below, above = values.min(axis=1), values.max(axis=1)
    change = np.maximum(above - swapped.min(axis=1), swapped.max(axis=1) - below)
    n = np.arange(1, MOST_NODES + 1)
    with np.errstate(over="ignore", invalid="ignore"):
        reach = sigma * np.ptp(vectors, axis=1) / 2 * change
        left_out = np.power.outer(reach, n) * [2.0 / factorial(k) for k in n.tolist()]
        is_enough = left_out * np.exp(largest)[:, np.newaxis] <= PRECISION
    is_enough &= (largest <= LARGEST_EXPONENT)[:, np.newaxis]
    return np.where(is_enough.any(axis=1), 1 + is_enough.argmax(axis=1), 0)


def chebyshev(vectors: Array, count: int) -> Nodes:
    """Return Chebyshev's nodes of columns, and their polynomials at the support vectors."""
    at, cardinal = _cardinal(count)
    low, high = vectors.min(axis=1), vectors.max(axis=1)
    centre, radius = (low + high) / 2, (high - low) / 2
    scaled = (vectors.T - centre) / np.where(radius > 0, radius, 1.0)
    shares = chebvander(scaled, count - 1) @ cardinal
    return Nodes(centre[:, np.newaxis] + np.multiply.outer(radius, at), shares)


@cache
def _cardinal(count: int) -> tuple[Array, Array]:
    """Return the nodes in [−1, 1], and the Chebyshev series that are 1 at one of them, else 0."""
    at: Array = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    series: Array = np.array(chebvander(at, count - 1).T * (2 / count), float)
    series[0] /= 2
    return at, series


def levels(vectors: Array, values: Array, sigma: float) -> Nodes | None:
    """Return a feature's values as nodes, each with all the share in its own support vectors.

    None where there are too many, or some lie too far from the values of the rows.
    """
    if len(vectors) == 0:
        return Nodes(np.empty((0, 1)), np.ones((vectors.shape[1], 1, 1)))
    places, which = np.unique(vectors, axis=1, return_inverse=True)
    count = places.shape[1]
    if count > MOST_NODES or not exponents(vectors, values, sigma).sum() <= LARGEST_EXPONENT:
        return None
    return Nodes(places, np.eye(count)[which.ravel(), np.newaxis])


def sums_after(
    nodes: Nodes, kernel: Array, beta: Array, values: Array, swap: Swap, sigma: float
) -> Array:
    """Return Σβ K of every row with values swapped: (orders, rows, features).

    `kernel` is that of the rows, with columns of `values`, and the support vectors.
    """
    n_vectors, n_features, n_nodes = nodes.shares.shape
    weighted = (beta[:, np.newaxis, np.newaxis] * nodes.shares).reshape(n_vectors, -1)
    weights = (kernel @ weighted).reshape(-1, n_features, n_nodes)
    weights /= _closeness(values, nodes, sigma)
    sums = np.empty((*swap.orders.shape, n_features))
    _add_up(weights, _closeness(swap.values, nodes, sigma), swap.orders, sums)
    return sums


@compiled
def _add_up(weights: Array, closeness: Array, orders: NDArray[np.intp], sums: Array) -> None:
    """Set each row's sum over nodes, with the closeness of the value it is given."""
    n_features, n_nodes = weights.shape[1:]
    for k, order in enumerate(orders):
        for i in range(len(order)):
            for j in range(n_features):
                total = 0.0
                for u in range(n_nodes):
                    total += weights[i, j, u] * closeness[order[i], j, u]
                sums[k, i, j] = total


def _closeness(values: Array, nodes: Nodes, sigma: float) -> Array:
    """Return exp(−sigma·|x − u|²): (values, features, nodes)."""
    gaps = np.ascontiguousarray(values.T)[:, :, np.newaxis] - nodes.places
    gaps *= gaps
    if nodes.shares.shape[1] != len(nodes.places):  # the columns of one feature
        gaps = gaps.sum(axis=1, keepdims=True)
    gaps *= -sigma
    return np.exp(gaps, out=gaps)
