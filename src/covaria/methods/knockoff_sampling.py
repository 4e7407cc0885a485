"""Second-order Gaussian knockoffs: columns as alike to the features as to each other.

Candès, Fan, Janson and Lv, "Panning for gold: model-X knockoffs", JRSSB 80 (2018). With the mean μ
and the covariance Σ of the features and a diagonal S, the knockoffs are

    X̃ = X − (X − μ) Σ⁻¹S + N(0, 2S − SΣ⁻¹S)

Then Cov(X̃) = Σ and Cov(X, X̃) = Σ − S: swapping a feature with its knockoff changes no second
moment. S has to leave 2Σ − S positive semidefinite, and is chosen on the correlation matrix C:

    equicorrelated   s_j = min(1, 2 λ_min(C)), the same for all
    sdp              the largest Σ s_j with 0 ≤ s ≤ 1
    mvr              the smallest tr((2C − S)⁻¹) + Σ 1/s_j, which is the trace of the inverse
                     covariance of (X, X̃): Spector and Janson, Annals of Statistics 50 (2022)

Both problems are convex and are solved by interior steps of Newton's method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.errors import plural

Array = NDArray[np.float64]

# A correlation matrix whose smallest eigenvalue is below this is shrunk.
SINGULAR = 1e-6
# The SDP stops where no Σ s_j can be larger by more than this share.
GAP = 1e-7
# Its steps aim at a gap between these shares of the present one, and stop short of the edge.
LEAST_CUT, MOST_CUT = 0.8, 0.001
SHORT_OF_EDGE = 0.95
# MVR stops where a Newton step promises to gain less than this share of the objective.
CONVERGED = 1e-13
MOST_STEPS = 100
# By what a step is shortened, and how often, until it is inside.
SHORTER = 0.8
MOST_SHORTER = 150
# A step must gain this share of what its slope promises, unless that is too little to be seen.
ENOUGH = 0.1
TRUSTED = 1e-8
# By how much s is scaled down until the draws have a covariance: each is tried in turn.
MARGINS = tuple(10.0**power for power in range(-8, 0))


def equicorrelated(correlation: Array) -> Array:
    """Return the same s for all: twice the smallest eigenvalue, at most 1."""
    smallest = float(np.linalg.eigvalsh(correlation)[0])
    return np.full(len(correlation), min(1.0, 2 * max(0.0, smallest)))


class Duals(NamedTuple):
    """An s and the prices of its limits: Z of 2C − S ⪰ 0, floor of s ≥ 0, ceiling of s ≤ 1.

    With Z_jj − floor_j + ceiling_j = 1 no feasible s has a sum above 2 tr(ZC) + Σ ceiling_j.
    """

    s: Array
    Z: Array
    floor: Array
    ceiling: Array


def sdp(correlation: Array) -> Array:
    """Return the s of largest sum with 0 ≤ s ≤ 1 and 2C − S positive semidefinite."""
    return solve_sdp(correlation).s


def solve_sdp(correlation: Array) -> Duals:
    """Return the s of largest sum, with the prices that prove it.

    A primal-dual interior-point method: Helmberg, Rendl, Vanderbei and Wolkowicz, SIAM Journal
    on Optimization 6 (1996). Each step aims at all products of a limit and its price being equal.
    """
    n = len(correlation)
    half = np.full(n, 0.5)
    here = Duals(half * equicorrelated(correlation), np.eye(n), half, half)
    for _ in range(MOST_STEPS):
        gap = duality_gap(correlation, here)
        if gap <= GAP * here.s.sum():
            break
        direction = _directions(correlation, here)
        greedy = _moved(correlation, here, direction(0.0), 1.0)
        share = (duality_gap(correlation, greedy) / gap) ** 2
        product = min(LEAST_CUT, max(MOST_CUT, share)) * gap / (3 * n)
        here = _moved(correlation, here, direction(product), SHORT_OF_EDGE)
    return here


def duality_gap(correlation: Array, at: Duals) -> float:
    """Return by how much the sum of s can at most be improved."""
    room = 2 * correlation - np.diag(at.s)
    return float((at.Z * room).sum() + at.floor @ at.s + at.ceiling @ (1 - at.s))


def _directions(correlation: Array, at: Duals) -> Callable[[float], Duals]:
    """Return the Newton step towards limit × price = product, as a function of the product."""
    s, Z, floor, ceiling = at
    inverse = _inverse(2 * correlation - np.diag(s))
    curvature = Z * inverse + np.diag(floor / s + ceiling / (1 - s))
    edges = np.diag(inverse) - 1 / s + 1 / (1 - s)
    uphill, inwards = np.linalg.solve(curvature, np.column_stack([np.ones_like(s), edges])).T

    def direction(product: float) -> Duals:
        step = uphill - product * inwards
        turned = (Z * step) @ inverse
        return Duals(
            step,
            product * inverse - Z + (turned + turned.T) / 2,
            product / s - floor - floor * step / s,
            product / (1 - s) - ceiling + ceiling * step / (1 - s),
        )

    return direction


def _moved(correlation: Array, at: Duals, step: Duals, share: float) -> Duals:
    """Return the place this share of the way to the edge, s and the prices each on their own."""
    room = 2 * correlation - np.diag(at.s)
    length = min(_to_zero(at.s, step.s), _to_zero(1 - at.s, -step.s))
    length = share * _to_singular(room, -np.diag(step.s), length)
    price = min(_to_zero(at.floor, step.floor), _to_zero(at.ceiling, step.ceiling))
    price = share * _to_singular(at.Z, step.Z, price)
    lengths = (length, price, price, price)
    return Duals(*(a + far * b for a, b, far in zip(at, step, lengths, strict=True)))


def _to_zero(values: Array, step: Array) -> float:
    """Return how much of the step, at most all, keeps the values positive."""
    falling = step < 0
    return float(np.min(-values[falling] / step[falling], initial=1.0))


def _to_singular(matrix: Array, step: Array, length: float) -> float:
    """Return a length, at most the given one, for which matrix + length × step is definite."""
    for _ in range(MOST_SHORTER):
        if is_definite(matrix + length * step):
            return length
        length *= SHORTER
    return 0.0


def is_definite(matrix: Array) -> bool:
    """Return whether a symmetric matrix is positive definite."""
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def _inverse(matrix: Array) -> Array:
    """Return the inverse of a symmetric matrix, itself symmetric to the last digit."""
    inverse = np.linalg.inv(matrix)
    return np.asarray((inverse + inverse.T) / 2)


def mvr(correlation: Array) -> Array:
    """Return the s that makes tr((2C − S)⁻¹) + Σ 1/s_j smallest, by Newton's method.

    There is no s above 1 in it: the slope is positive there.
    """
    s = 0.5 * equicorrelated(correlation)
    for _ in range(MOST_STEPS):
        value, inverse = _reconstructability(correlation, s)
        squared = inverse @ inverse
        slope = np.diag(squared) - 1 / s**2
        curvature = 2 * inverse * squared + np.diag(2 / s**3)
        step = np.asarray(-np.linalg.solve(curvature, slope), dtype=float)
        promised = -float(slope @ step) / 2
        s = _lowered(correlation, s, step, value, promised)
        if promised <= CONVERGED * value:
            break
    return s


def _reconstructability(correlation: Array, s: Array) -> tuple[float, Array]:
    """Return tr((2C − S)⁻¹) + Σ 1/s_j, and the inverse in it."""
    inverse = _inverse(2 * correlation - np.diag(s))
    return float(np.trace(inverse) + (1 / s).sum()), inverse


def _lowered(correlation: Array, s: Array, step: Array, value: float, promised: float) -> Array:
    """Return s after as much of the step as is inside and lowers the value."""
    room = 2 * correlation - np.diag(s)
    length = _to_singular(room, -np.diag(step), min(1.0, SHORT_OF_EDGE * _to_zero(s, step)))
    # Below this the value is rounding, and the step is short enough to be trusted.
    while promised > TRUSTED * value:
        there, _ = _reconstructability(correlation, s + length * step)
        if there <= value - ENOUGH * length * promised:
            break
        length *= SHORTER
    return s + length * step


CONSTRUCTIONS: dict[str, Callable[[Array], Array]] = {
    "sdp": sdp,
    "mvr": mvr,
    "equicorrelated": equicorrelated,
}


@dataclass(frozen=True)
class Sampler:
    """What a draw of knockoffs needs: moments of the features, and the noise to add."""

    mean: Array
    scale: Array
    s: Array
    kept: Array
    root: Array
    shrinkage: float

    def draw(self, X: Array, rng: Generator) -> Array:
        """Return knockoffs of the rows of X."""
        centred = (X - self.mean) / self.scale
        noise = rng.standard_normal(X.shape) @ self.root.T
        return self.mean + self.scale * (centred @ self.kept + noise)

    def note(self, n_rows: int) -> str:
        """Return what a reader should know of a covariance that had to be shrunk."""
        if not self.shrinkage:
            return ""
        return (
            f"In {plural(n_rows, 'row')} the covariance of {plural(len(self.s), 'column')} is "
            f"singular: correlations are shrunk by {100 * self.shrinkage:.2g}%, and knockoffs are "
            "approximate."
        )


def fit_sampler(X: Array, construction: str) -> Sampler:
    """Return the sampler for features with the moments of X, none of them constant."""
    mean, scale = X.mean(axis=0), X.std(axis=0, ddof=1)
    correlation, shrinkage = shrunken_correlation((X - mean) / scale)
    s = CONSTRUCTIONS[construction](correlation)
    s, kept, root = conditional(correlation, s)
    return Sampler(mean, scale, s, kept, root, shrinkage)


def conditional(correlation: Array, s: Array) -> tuple[Array, Array, Array]:
    """Return s, I − C⁻¹S and the Cholesky root of 2S − SC⁻¹S, s scaled down until it has one."""
    inverse = _inverse(correlation)
    for margin in MARGINS:
        smaller = s * (1 - margin)
        covariance = 2 * np.diag(smaller) - smaller[:, None] * inverse * smaller
        try:
            root = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            continue
        return smaller, np.eye(len(s)) - inverse * smaller, root.astype(float)
    raise np.linalg.LinAlgError("2C − S is not positive definite.")


def shrunken_correlation(Z: Array) -> tuple[Array, float]:
    """Return the correlation matrix of standardised columns, and how far it was shrunk to be one.

    A matrix that is not positive definite goes towards the identity by the share of Schäfer and
    Strimmer (2005), Σ Var(r_jk) / Σ r_jk² over pairs, as R's corpcor does it; variances stay.
    """
    correlation = Z.T @ Z / (len(Z) - 1)
    np.fill_diagonal(correlation, 1.0)
    if np.linalg.eigvalsh(correlation)[0] >= SINGULAR:
        return correlation, 0.0
    share = shrinkage_share(Z, correlation)
    correlation *= 1 - share
    np.fill_diagonal(correlation, 1.0)
    return correlation, share


def shrinkage_share(Z: Array, correlation: Array) -> float:
    """Return how far correlations are best pulled towards 0: 0 not at all, 1 all the way."""
    n = len(Z)
    # Σ_i (w_i − w̄)² for the products w_i = z_ij z_ik, whose mean is r_jk (n − 1)/n.
    spread = (Z**2).T @ Z**2 - correlation**2 * (n - 1) ** 2 / n
    variance = spread * n / (n - 1) ** 3
    pairs = ~np.eye(len(correlation), dtype=bool)
    share = float(variance[pairs].sum() / (correlation[pairs] ** 2).sum())
    return min(1.0, max(SINGULAR, share))
