"""How many features a stability selection is expected to choose in error.

With q features chosen a time on average, p features, θ = q/p, threshold π and B pairs of halves,
the expected number V of false selections is

    V ≤ θ q / (2π − 1)    worst case: Shah and Samworth (2013), Theorem 1, for the features that a
                          half selects with probability at most θ; for exchangeable useless ones
                          Meinshausen and Bühlmann (2010) have the same number, q²/((2π − 1) p)
    V ≤ C(π, B) θ q       where the share of pairs that choose a feature in both halves is unimodal
    V ≤ p min(D, D')      where it and the frequency are r-concave, r = −1/2 and −1/4

Folds have no such theorem; `folds_level` gives the level of a single useless feature.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray

from covaria.inference.tests import quantile

Array = NDArray[np.float64]

# A threshold of .8 is .8, whatever rounding makes of it.
ROUNDING = 1e-9


def worst_case_bound(q: float, p: int, threshold: float) -> float:
    """Return q²/((2π − 1) p): Markov's inequality for the share of pairs that agree.

    >>> round(worst_case_bound(50, 1000, 0.9), 3)
    3.125
    """
    return q**2 / p / (2 * threshold - 1)


def unimodal_bound(q: float, p: int, threshold: float, pairs: int) -> float | None:
    """Return C(π, B) q²/p, where the share of pairs that agree is unimodal; None beyond its range.

    >>> round(unimodal_bound(50, 1000, 0.9, 50), 3)
    1.078
    """
    theta = q / p
    if theta > 1 / np.sqrt(3) or threshold < 0.5 + 1 / pairs - ROUNDING:
        return None
    if threshold > 0.75 + ROUNDING:
        return q * theta * 4 * (1 - threshold + 1 / (2 * pairs)) / (1 + 1 / pairs)
    if threshold <= 0.5 + min(theta**2, 1 / (2 * pairs) + 0.75 * theta**2):
        return None
    return q * theta / (2 * (2 * threshold - 1 - 1 / (2 * pairs)))


def r_concave_bound(q: float, p: int, threshold: float, pairs: int) -> float | None:
    """Return p min(D(θ², 2π − 1, B, −1/2), D(θ, π, 2B, −1/4)); None where that says nothing.

    >>> round(r_concave_bound(50, 1000, 0.9, 50), 3)
    0.17
    """
    theta, at = q / p, round(threshold * 2 * pairs)
    if q == 0:
        return 0.0
    agreeing = r_concave_tail(theta**2, at - pairs, pairs, -1 / 2)
    tail = min(agreeing, r_concave_tail(theta, at, 2 * pairs, -1 / 4))
    return None if tail >= 1 else p * tail


def r_concave_tail(mean: float, at: int, steps: int, r: float) -> float:
    """Return the largest P(X ≥ at/steps) of an r-concave X on {0, 1/steps, …, 1} with this mean.

    The largest belongs to a mass (a + i)^(1/r) at i = 0 … k with at most as much at k + 1 as the
    same power has there (Shah and Samworth, section 3.4). The mean fixes k for a given a, so one
    number is left to search over. Where at ≤ 2 mean steps the answer is that nothing is known: 1.
    """
    goal = mean * steps
    if at <= ceil(2 * goal) or ceil(2 * goal) + 1 > steps:
        return 1.0
    # A smaller a does not reach the mean with all steps, a larger one reaches it before `at`.
    low, high = _log_a(goal, steps, 1 / r), _log_a(goal, at - 1, 1 / r)
    best = 0.0
    for _ in range(4):  # each time the grid is 200 times finer
        grid = np.linspace(low, high, 401)
        tails = _power_tails(grid, goal, at, steps, 1 / r)
        top = int(np.argmax(tails))
        best = max(best, float(tails[top]))
        low, high = grid[max(top - 1, 0)], grid[min(top + 1, 400)]
    return best


def _powers(log_a: Array, steps: int, power: float) -> tuple[Array, Array]:
    """Return i = 0 … steps and, a row for each a, masses in proportion to (a + i)^power."""
    i = np.arange(steps + 1, dtype=float)
    return i, np.asarray((1 + i * np.exp(-log_a)[:, None]) ** power)


def _log_a(goal: float, steps: int, power: float) -> float:
    """Return log a where the mean of (a + i)^power on 0 … steps is `goal`; a is at most e^30."""
    from scipy.optimize import brentq

    def excess(log_a: float) -> float:
        i, mass = _powers(np.array([log_a]), steps, power)
        return float(np.average(i, weights=mass[0]) - goal)

    return 30.0 if excess(30.0) <= 0 else float(brentq(excess, -60.0, 30.0, xtol=1e-12))


def _power_tails(log_a: Array, goal: float, at: int, steps: int, power: float) -> Array:
    """Return, for each a, P(X ≥ at) of the mass (a + i)^power cut off where its mean is `goal`."""
    i, mass = _powers(log_a, steps, power)
    total, first_moment = np.cumsum(mass, axis=1), np.cumsum(i * mass, axis=1)
    last = np.sum(first_moment <= goal * total, axis=1) - 1
    rows = np.arange(len(log_a))
    scale = (last + 1 - goal) / ((last + 1) * total[rows, last] - first_moment[rows, last])
    return np.where(last + 1 < at, 0.0, 1 - scale * total[:, at - 1])


def folds_level(folds: int, needed: int, alpha: float, two_sided: bool = True) -> float:
    """Return the probability that a useless feature is selected in at least `needed` folds.

    Training parts of K folds share (K − 2)/(K − 1) of their rows, and so do the test
    statistics their variance, which are normal in large samples: given the common part they are
    independent, and the number of selections is binomial.

    >>> round(folds_level(5, 4, 0.05), 3)
    0.015
    """
    from scipy.stats import binom, norm

    shared = (folds - 2) / (folds - 1)
    common = np.linspace(-10, 10, 4001)
    limit = quantile(1 - alpha / 2 if two_sided else 1 - alpha)
    spread = np.sqrt(1 - shared)
    chance = norm.sf((limit - np.sqrt(shared) * common) / spread)
    if two_sided:
        chance = chance + norm.cdf((-limit - np.sqrt(shared) * common) / spread)
    weight = norm.pdf(common) * (common[1] - common[0])
    return float(np.sum(weight * binom.sf(needed - 1, folds, np.minimum(chance, 1.0))))
