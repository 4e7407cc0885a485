"""The curves of projection pursuit: six cubic B-splines, of which a value meets four.

What a direction needs of its rows are a few sums, so they are added up row by row and no design is
ever written down.
"""

from __future__ import annotations

import numpy as np

from covaria.execution.compiling import compiled_or_plain
from covaria.learners.estimators import Array

# A curve is made of so many B-splines within so many standard deviations, and straight beyond.
PARTS, REACH = 6, 1.7
# The knots that a standard deviation holds.
SCALE = (PARTS - 3) / (2 * REACH)
# Jacobi's rotations of five columns end after five sweeps or so.
SWEEPS = 30


@compiled_or_plain
def parts(u: Array) -> Array:
    """Return the B-splines of a curve at values of mean 0 and variance 1, straight far out."""
    found = np.zeros((len(u), PARTS))
    for i in range(len(u)):
        spot = (u[i] + REACH) * SCALE
        inside = min(max(spot, 0.0), PARTS - 3.0)
        knot = min(int(inside), PARTS - 4)
        f, beyond = inside - knot, spot - inside
        g = 1 - f
        found[i, knot] = (g * g * g - 3 * beyond * g * g) / 6
        found[i, knot + 1] = (4 - 6 * f * f + 3 * f * f * f + beyond * (9 * f * f - 12 * f)) / 6
        found[i, knot + 2] = (4 - 6 * g * g + 3 * g * g * g + beyond * (12 * g - 9 * g * g)) / 6
        found[i, knot + 3] = (f * f * f + 3 * beyond * f * f) / 6
    return found


@compiled_or_plain
def products(B: Array, weights: Array, y: Array) -> tuple[Array, Array]:
    """Return the weighted sums of B-splines and of their products with y, and with each other."""
    sums, among = np.zeros((2, PARTS)), np.zeros((PARTS, PARTS))
    for i in range(len(y)):
        for a in range(PARTS):
            if B[i, a] != 0:
                weighted = weights[i] * B[i, a]
                sums[0, a] += weighted
                sums[1, a] += weighted * y[i]
                for b in range(a, min(a + 4, PARTS)):
                    among[a, b] += weighted * B[i, b]
    for a in range(PARTS):
        for b in range(a):
            among[a, b] = among[b, a]
    return sums, among


@compiled_or_plain
def slopes(u: Array, curve: Array) -> Array:
    """Return how steep a curve is at values of mean 0 and variance 1, a knot's width being 1."""
    found = np.empty(len(u))
    for i in range(len(u)):
        inside = min(max((u[i] + REACH) * SCALE, 0.0), PARTS - 3.0)
        knot = min(int(inside), PARTS - 4)
        f = inside - knot
        g = 1 - f
        found[i] = (
            -g * g * curve[knot]
            + (3 * f * f - 4 * f) * curve[knot + 1]
            + (4 * g - 3 * g * g) * curve[knot + 2]
            + f * f * curve[knot + 3]
        ) / 2
    return found


@compiled_or_plain
def best_smoothing(
    loads: Array, penalty: Array, smoothings: Array, total: float, terms: Array
) -> tuple[float, float]:
    """Return the smoothing of least log GCV score, and the score.

    `terms` are the price of a parameter, the parameters of the direction, the number of rows, the
    share of rows that may be used up, and the least error.
    """
    price, others, n_rows, most, least = terms
    best, lowest = smoothings[0], np.inf
    for smoothing in smoothings:
        error, used = total, 0.0
        for k in range(len(loads)):
            shrinkage = 1 / (1 + smoothing * penalty[k])
            error -= (2 * shrinkage - shrinkage * shrinkage) * loads[k] * loads[k]
            used += shrinkage
        share = (1 + price * (used + others)) / n_rows
        if share < most:
            score = np.log(max(error, least)) - 2 * np.log(max(1 - share, least))
            if score < lowest:
                best, lowest = smoothing, score
    return best, lowest


@compiled_or_plain
def uncoupled(among: Array, rough: Array) -> tuple[Array, Array]:
    """Return the mix that makes columns with these products orthonormal, and their roughness.

    With LL' the products, these are the eigenvectors and -values of L⁻¹RL⁻ᵀ, by Jacobi's
    rotations: for five columns a tenth of the time of LAPACK with all its checks. Columns that
    are not independent have an infinite mix.
    """
    n = len(among)
    root, turn = np.zeros((n, n)), np.eye(n)
    for a in range(n):
        for b in range(a + 1):
            rest = among[a, b]
            for k in range(b):
                rest -= root[a, k] * root[b, k]
            if a > b:
                root[a, b] = rest / root[b, b]
            elif rest <= 0:
                return np.full((n, n), np.inf), np.zeros(n)
            else:
                root[a, a] = np.sqrt(rest)
    inverse = np.zeros((n, n))
    for c in range(n):
        for a in range(c, n):
            rest = 1.0 if a == c else 0.0
            for k in range(c, a):
                rest -= root[a, k] * inverse[k, c]
            inverse[a, c] = rest / root[a, a]
    left = np.zeros((n, n))
    for a in range(n):
        for b in range(n):
            for i in range(a + 1):
                for k in range(b + 1):
                    left[a, b] += inverse[a, i] * rough[i, k] * inverse[b, k]
    _rotate(left, turn)
    order = np.argsort(np.diag(left))
    mix, penalty = np.zeros((n, n)), np.empty(n)
    for at in range(n):
        penalty[at] = left[order[at], order[at]]
        for a in range(n):
            for k in range(a, n):
                mix[a, at] += inverse[k, a] * turn[k, order[at]]
    return mix, penalty


@compiled_or_plain
def _rotate(left: Array, turn: Array) -> None:
    """Make a symmetric matrix diagonal by rotations, and let `turn` gather them."""
    n = len(left)
    for _ in range(SWEEPS):
        off = 0.0
        for p in range(n):
            for q in range(p + 1, n):
                off += left[p, q] * left[p, q]
        if off <= 1e-30 * np.trace(left) ** 2:
            return
        for p in range(n):
            for q in range(p + 1, n):
                if left[p, q] == 0:
                    continue
                theta = (left[q, q] - left[p, p]) / (2 * left[p, q])
                t = 1 / (abs(theta) + np.sqrt(theta * theta + 1))
                if theta < 0:
                    t = -t
                c = 1 / np.sqrt(t * t + 1)
                s = t * c
                for k in range(n):
                    one, other = left[k, p], left[k, q]
                    left[k, p], left[k, q] = c * one - s * other, s * one + c * other
                for k in range(n):
                    one, other = left[p, k], left[q, k]
                    left[p, k], left[q, k] = c * one - s * other, s * one + c * other
                for k in range(n):
                    one, other = turn[k, p], turn[k, q]
                    turn[k, p], turn[k, q] = c * one - s * other, s * one + c * other


@compiled_or_plain
def values_of(B: Array, curve: Array, shift: float) -> Array:
    """Return a curve's values where these are its B-splines, less a shift."""
    found = np.empty(len(B))
    for i in range(len(B)):
        value = -shift
        for a in range(PARTS):
            value += B[i, a] * curve[a]
        found[i] = value
    return found
