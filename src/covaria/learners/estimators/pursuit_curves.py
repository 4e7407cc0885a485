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
