"""Projection pursuit: a sum of smooth functions, each of one weighted sum of the columns.

Friedman and Stuetzle (1981). A direction starts where least squares points, or where what is left
bends most, at a principal Hessian direction (Li, 1992), which sees even functions that least
squares is blind to. Gauss-Newton steps then make it better. Nothing is pursued where slopes and
bends are no larger than those of noise, so that such regressions cost next to nothing. A model
without some of the columns may start from the one on all of them: from what the columns that are
left tell of its sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log
from typing import Self

import numpy as np

from covaria.learners.estimators import Array
from covaria.learners.estimators.pursuit_curves import (
    PARTS,
    SCALE,
    best_smoothing,
    parts,
    products,
    slopes,
    uncoupled,
    values_of,
)
from covaria.learners.estimators.single_index import center_and_scale, unit
from covaria.learners.estimators.splines import (
    TINY,
    counted,
    diagonalise,
    gram,
    probabilities,
    targets,
)

# Two products of columns are four sums.
MOST = 4
# The Hessian directions tried for each; steps to make one better, how often each is halved, and
# rounds for all of them.
BENDS, STEPS, HALVINGS, ROUNDS = 2, 8, 4, 3
# A gain of the score that is not worth another step, and one that steps will hardly make.
LITTLE, HOPE = 1e-3, 0.3
# Directions are sought among many, so that a parameter costs twice what it would if known before.
DEAR = 2.0
SMOOTHINGS = np.logspace(-6, 4, 21)
# Values of y among so large a share at either end say no more of directions than the next ones.
OUTERMOST = 0.05
# Values of a column count as no further out than this many standard deviations.
FURTHEST = 5.0
# Up to so many columns a step is solved exactly; beyond, by so many conjugate gradients.
FEW, GRADIENTS = 50, 5
# A sum of which the columns that are left tell a smaller share is not one of theirs.
LOST = 0.05
# No more sums are sought where they would use up this share of the rows.
USED_UP = 0.8
_DIFFERENCES = np.diff(np.eye(PARTS), 2, axis=0)
ROUGHNESS = _DIFFERENCES.T @ _DIFFERENCES
# B-splines add up to one: what they can say of a curve beyond its level are these contrasts.
CONTRASTS = np.linalg.qr(np.column_stack([np.ones(PARTS), np.eye(PARTS)[:, 1:]]))[0][:, 1:]
ROUGH_CONTRASTS = CONTRASTS.T @ ROUGHNESS @ CONTRASTS
# The spread of B-splines is singular where its inverse is so many times its own.
SINGULAR = 1e8


class PursuitModel:
    """A sum of curves along directions; for classes one such sum per class, normalised."""

    def __init__(self, *, n_classes: int = 0, start: PursuitModel | None = None) -> None:
        self.n_classes, self.start = n_classes, start
        self.sums: list[list[Index]] = []

    def fit(self, X: Array, y: Array, weights: Array | None = None) -> Self:
        """Return the model with its directions and curves fitted."""
        X, y, weights = counted(X, y, weights)
        self.center, self.scale = center_and_scale(X, weights)
        Z = self._standardised(X)
        self.level = weights @ Z
        self.white = whitening(Z - self.level, weights)
        V = (Z - self.level) @ self.white
        each = targets(y, self.n_classes)
        self.means = [float(weights @ target) for target in each]
        before = self.start.sums if self.start else [[] for _ in each]
        self.sums = [
            fit_sum(V, target - mean, weights, own)
            for target, mean, own in zip(each, self.means, before, strict=True)
        ]
        return self

    def _standardised(self, X: Array) -> Array:
        return np.clip((X - self.center) / self.scale, -FURTHEST, FURTHEST)

    def predict(self, X: Array) -> Array:
        """Return means, or a row of probabilities per row of X."""
        V = (self._standardised(X) - self.level) @ self.white
        found = [m + total(own, V) for m, own in zip(self.means, self.sums, strict=True)]
        curves = np.column_stack(found)
        if self.n_classes:
            return probabilities(np.clip(curves, 1e-3, 1 - 1e-3))
        return curves[:, 0]


def whitening(Z: Array, weights: Array) -> Array:
    """Return the weights of columns that make them uncorrelated, with variance one."""
    among = gram(Z, weights)
    if (quick := _inverse_root(among)) is not None:
        return quick
    scale, axes = np.linalg.eigh(among)
    known = scale > 1e-8 * max(scale.max(initial=0.0), 1e-8)
    return np.asarray(axes[:, known] / np.sqrt(scale[known]))


def _inverse_root(among: Array) -> Array | None:
    """Return W with W'AW = 1 by Cholesky, in a tenth of the time; None where A is singular."""
    from scipy.linalg.lapack import dpotrf, dtrtri

    if not len(among):
        return None
    root, failed = dpotrf(among, lower=0, clean=1)
    if failed or root.diagonal().min() ** 2 < 1e-6 * among.diagonal().max():
        return None
    found, failed = dtrtri(root, lower=0)
    return None if failed else np.asarray(found)


# --- one curve along one direction --------------------------------------------------------------


def _uncoupled(among: Array) -> tuple[Array, Array]:
    """Return the mix of B-splines that makes them orthonormal, and the roughness of each.

    B-splines add up to one, so that contrasts of them say all, unless rows leave some unseen.
    """
    inside = CONTRASTS.T @ among @ CONTRASTS
    turn, penalty = uncoupled(inside, ROUGH_CONTRASTS)
    if not np.vdot(turn, turn) * max(inside.trace(), 1e-3) <= SINGULAR:
        return diagonalise(among, ROUGHNESS)
    penalty = np.maximum(penalty, 1e-16 * penalty[-1])
    penalty[0] = 0
    return CONTRASTS @ turn, penalty


@dataclass(frozen=True)
class Index:
    """A direction and the curve along it: values on the training rows, and its log GCV score."""

    theta: Array
    u: Array
    design: Array  # the B-splines of the training rows
    mix: Array
    center: Array
    loads: Array
    shrinkage: Array
    values: Array
    score: float

    @classmethod
    def along(cls, theta: Array, V: Array, y: Array, weights: Array) -> Self:
        """Return the curve of least GCV score; its direction has cost a parameter a column."""
        u = V @ theta
        B = parts(u)
        (center, with_y), among = products(B, weights, y)
        level = weights @ y
        mix, penalty = _uncoupled(among - center[:, None] * center)
        loads = mix.T @ (with_y - level * center)
        terms = np.array([DEAR, V.shape[1] - 1, len(y), USED_UP, TINY])
        total = float(weights @ (y * y))
        smoothing, least = best_smoothing(loads, penalty, SMOOTHINGS, total, terms)
        shrinkage = 1 / (1 + smoothing * penalty)
        curve = mix @ (shrinkage * loads)
        values = values_of(B, curve, float(center @ curve))
        return cls(theta, u, B, mix, center, loads, shrinkage, values, least)

    @property
    def curve(self) -> Array:
        """Return the weights of the B-splines."""
        return np.asarray(self.mix @ (self.shrinkage * self.loads))

    def __call__(self, V: Array) -> Array:
        """Return the curve at other rows."""
        return np.asarray((parts(V @ self.theta) - self.center) @ self.curve)

    def step(self, V: Array, y: Array, weights: Array) -> tuple[Array, float]:
        """Return the change of the direction that the linearised fit asks for, and its gain.

        Rows V change the curve by s(V − uθ), s its slope; of that what is in the curve's own
        smoother asks for no change. All comes from products of V with a few columns.
        """
        slope, left = slopes(self.u, self.curve), y - self.values
        pull, steep, own = _across(self.theta, V, weights * slope, left, self.design)
        seen = self.mix.T @ (own - self.center[:, None] * steep)
        lost = self.shrinkage * (1 - self.shrinkage) * self.loads
        pull = pull - (weights @ left) * steep - seen.T @ lost
        rest = np.vstack([steep, np.sqrt(_explained(self.shrinkage))[:, None] * seen])
        turn = _turned(self.theta, V, weights * slope**2, rest, pull)
        return turn / SCALE, float(pull @ turn) / max(float(weights @ left**2), TINY)

    def improved(self, V: Array, y: Array, weights: Array, steps: int) -> Index:
        """Return the index after at most so many Gauss-Newton steps downhill."""
        best: Index = self
        for _ in range(steps):
            (step, gain), before = best.step(V, y, weights), best.score
            if gain < LITTLE:
                break
            for shorter in 0.5 ** np.arange(HALVINGS):
                trial = Index.along(unit(best.theta + shorter * step), V, y, weights)
                if trial.score < best.score:
                    best = trial
                    break
            if before - best.score < LITTLE:
                break
        return best


def _explained(shrinkage: Array) -> Array:
    """Return the share of squares that a shrunk part explains."""
    return np.asarray(2 * shrinkage - shrinkage**2)


def _without(theta: Array, rows: Array) -> Array:
    """Return rows of coordinates less what lies along a direction."""
    return np.asarray(rows - (rows @ theta)[:, None] * theta)


def _turned(theta: Array, V: Array, weights: Array, rest: Array, pull: Array) -> Array:
    """Return the turn d across a direction with A d = pull, A = V'diag(weights)V − rest'rest.

    V is white, so that A is not far from a multiple of 1. Of many columns a few conjugate gradients
    then do for a step what all products of columns would, for a tenth of the time.
    """
    if len(theta) <= FEW:
        held = V.T @ (weights[:, None] * V)
        held = _without(theta, _without(theta, held).T) - rest.T @ rest
        held.flat[:: len(held) + 1] += 1e-8 * held.trace() + TINY
        return _solved(held, pull)
    turn, left = np.zeros_like(pull), pull
    along, size = left, left @ left
    for _ in range(GRADIENTS):
        held = V.T @ (weights * (V @ along)) - rest.T @ (rest @ along)
        held -= (held @ theta) * theta
        bent = along @ held
        if bent <= TINY:
            break
        turn = turn + size / bent * along
        left = left - size / bent * held
        size, before = left @ left, size
        along = left + size / before * along
    return np.asarray(turn)


def _solved(A: Array, b: Array) -> Array:
    """Return the solution of a symmetric system; LAPACK's own call spares half of its time."""
    from scipy.linalg.lapack import dposv

    _, found, failed = dposv(A, b)
    return np.asarray(np.linalg.solve(A, b) if failed else found)


def _across(
    theta: Array, V: Array, weights: Array, left: Array, design: Array
) -> tuple[Array, Array, Array]:
    """Return weighted sums of V across a direction: with residuals, alone, and with B-splines."""
    columns = np.column_stack([left, np.ones(len(left)), design])
    found = _without(theta, (weights[:, None] * columns).T @ V)
    return found[0], found[1], found[2:]


def score(error: float, used: float, n_rows: int) -> float:
    """Return the log GCV score, infinite where next to all rows are used up."""
    share = used / n_rows
    if share >= USED_UP:
        return inf
    return log(max(error, TINY)) - 2 * log(max(1 - share, TINY))


# --- sums of them -------------------------------------------------------------------------------


def total(indices: list[Index], V: Array) -> Array:
    """Return the sum of all curves at some rows."""
    return np.asarray(sum((index(V) for index in indices), np.zeros(len(V))))


def left_by(indices: list[Index], y: Array) -> Array:
    """Return what the curves leave of y on the training rows."""
    return np.asarray(y - sum((index.values for index in indices), np.zeros(len(y))))


def fit_sum(V: Array, y: Array, weights: Array, before: list[Index]) -> list[Index]:
    """Return directions found from all but the outermost values of y, with curves through all.

    Few rows far out would else each draw a direction towards themselves. `before` are those of a
    model on more columns of the same rows.
    """
    low, high = np.quantile(y, [OUTERMOST, 1 - OUTERMOST])
    inside = np.clip(y, low, high) if high > low else y
    found = pursued(V, inside - weights @ inside, weights, before)
    return better(found, V, y, weights, steps=0)


def pursued(V: Array, y: Array, weights: Array, before: list[Index]) -> list[Index]:
    """Return the directions and curves that explain y, of mean zero, best for what they cost."""
    again = better(restarted(before, V, y, weights), V, y, weights, rounds=1)
    found = pruned(again, V, y, weights)
    while len(found) < MOST and _has_room(found, V):
        left, least = left_by(found, y), cost(found, V, y, weights)
        starts = [Index.along(t, V, left, weights) for t in directions(V, left, weights)]
        if not starts:
            break
        start = min(starts, key=lambda index: index.score)
        if cost([*found, start], V, y, weights) > least + HOPE:
            break
        more = better([*found, start], V, y, weights)
        if cost(more, V, y, weights) >= least:
            break
        found = more
    return pruned(found, V, y, weights)


def _has_room(found: list[Index], V: Array) -> bool:
    """Return whether one more sum, even if it were straight, would leave enough rows."""
    n_rows, n_columns = V.shape
    used = sum(index.shrinkage.sum() + n_columns - 1 for index in found) + n_columns
    return bool(1 + DEAR * used < USED_UP * n_rows)


def restarted(before: list[Index], V: Array, y: Array, weights: Array) -> list[Index]:
    """Return curves along what the columns tell of sums that others were part of."""
    found: list[Index] = []
    for index in before:
        theta = V.T @ (weights * index.u)
        if theta @ theta > LOST:
            found.append(Index.along(unit(theta), V, left_by(found, y), weights))
    return found


def directions(V: Array, left: Array, weights: Array) -> list[Array]:
    """Return where residuals rise or bend more than noise would: least squares, two Hessians.

    Were they noise, the length of the slopes would be known from the sizes of the rows, and the
    eigenvalues of the Hessian would fill a half circle of known radius (Wigner, 1955).
    """
    n_columns, sizes = V.shape[1], np.square(V).sum(axis=1)
    if not n_columns:
        return []
    slopes = V.T @ (weights * left)
    noise = float(np.sum((weights * left) ** 2 * sizes))
    is_rising = slopes @ slopes > (1 + 2 * np.sqrt(2 / n_columns)) * noise
    left = left - V @ slopes
    noise = float(np.sum((weights * left * sizes) ** 2))
    radius = 2 * np.sqrt(noise / n_columns) * (1 + n_columns ** (-2 / 3))
    bent = _bends(gram(V, weights * left), radius)
    return [unit(slopes), *bent] if is_rising else bent


def _bends(hessian: Array, radius: float) -> list[Array]:
    """Return the axes of the largest eigenvalues that lie beyond a radius, at most two."""
    values = np.linalg.eigvalsh(hessian)  # vectors take thrice as long
    if max(-values[0], values[-1]) <= radius:
        return []
    values, turn = np.linalg.eigh(hessian)
    most = np.argsort(-np.abs(values))[:BENDS]
    return [unit(turn[:, k]) for k in most if abs(values[k]) > radius]


def better(
    indices: list[Index],
    V: Array,
    y: Array,
    weights: Array,
    *,
    steps: int = STEPS,
    rounds: int = ROUNDS,
) -> list[Index]:
    """Return the same sums after rounds in which each fits what the others leave."""
    found = list(indices)
    for _ in range(rounds if len(found) > 1 else 1):
        before = cost(found, V, y, weights)
        for k, index in enumerate(found):
            left = left_by(found[:k] + found[k + 1 :], y)
            start = Index.along(index.theta, V, left, weights)
            found[k] = start.improved(V, left, weights, steps)
        if before - cost(found, V, y, weights) < LITTLE:
            break
    return found


def cost(indices: list[Index], V: Array, y: Array, weights: Array) -> float:
    """Return the log GCV score of a sum."""
    used = 1 + DEAR * sum(index.shrinkage.sum() + V.shape[1] - 1 for index in indices)
    return score(float(weights @ left_by(indices, y) ** 2), float(used), len(y))


def pruned(indices: list[Index], V: Array, y: Array, weights: Array) -> list[Index]:
    """Return the sums without those that cost more than they explain."""
    kept = list(indices)
    for index in indices:
        fewer = [other for other in kept if other is not index]
        if cost(fewer, V, y, weights) < cost(kept, V, y, weights):
            kept = fewer
    return kept
