"""A sum of smooth surfaces over pairs of columns, found one after the other.

A target that depends on two columns at once is what additive curves miss and what trees and
kernels, which look at all columns, learn slowly and shrunk. Here every pair of columns, and every
column alone, is tried on what is left of the target with a coarse surface. The best gets a fine
one, in the products of the two columns' smoothest curves, and all surfaces so far are fitted
together. The search ends when generalised cross-validation sees no more gain. What the columns it
found do three or more at once, a kernel machine on them alone takes from what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, takewhile
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from covaria.learners.estimators import Array, as_chances, as_targets
from covaria.learners.estimators.kernel import Scale, gaussian_kernel
from covaria.learners.estimators.splines import Term

Flags = NDArray[np.bool_]

# The curves of a column in coarse surfaces, in fine ones, and where it stands alone; with a line.
COARSE, FINE, ALONE = 5, 9, 20
# Penalties on a column's roughness, where that of its smoothest bend is 1, and the coarse one.
PENALTIES = np.logspace(-3.5, 2.5, 7)
COARSE_PENALTY = 0.02
# Surfaces are rougher than GCV would have them: what they smooth away of a feature and of y alike
# is bias to a test, while noise is only noise.
UNDERSMOOTHED = 0.25
# A new surface takes this share off the GCV score, and there are so many at most.
WORTH, MOST = 0.005, 8
# By this share the coarse score of a pair has to be below that of a column alone: many pairs
# compete, and some do well by chance.
PAIRED = 0.02
# So many columns may act together; their kernels stand on so many rows, are exp(-width·|z - z'|²)
# of standardised values and cost one of these.
FEWEST_TOGETHER, MOST_TOGETHER, CENTRES = 3, 6, 150
WIDTHS, COSTS = (0.15, 0.05, 0.4), np.logspace(-6.5, -0.5, 13)
# Beyond this share of the rows, degrees of freedom count no more.
MOST_FREEDOM = 0.9
TINY = 1e-6

# Where on the grid of penalties two columns stand.
Place = tuple[int, int]
# Where to look next: a column alone has one penalty.
ALONG_ONE: tuple[Place, ...] = ((0, 0), (1, 0), (-1, 0))
ALONG_BOTH = (*ALONG_ONE, (0, 1), (0, -1))


class Pair(NamedTuple):
    """The columns of a surface; a column alone has no second."""

    first: int
    second: int | None


@dataclass(frozen=True)
class Curves:
    """A column's constant, line and bends at some rows, and how rough each of them is."""

    values: Array
    rough: Array

    @classmethod
    def of(cls, term: Term, x: Array) -> Self:
        """Return the curves of a column."""
        rough = np.concatenate([[0.0], term.penalty])
        unit = rough[2] if len(rough) > 2 and rough[2] > 0 else 1.0
        return cls(np.column_stack([np.ones(len(x)), term.design(x)]), rough / unit)

    def first(self, count: int) -> Curves:
        """Return the constant, and the smoothest of the others."""
        return Curves(self.values[:, : count + 1], self.rough[: count + 1])


@dataclass(frozen=True)
class Surface:
    """A surface's columns of the design, their products, and what each coefficient costs."""

    pair: Pair
    design: Array
    gram: Array
    penalty: Array


@dataclass(frozen=True)
class Together:
    """A smooth function of several columns: kernels on some rows, and their coefficients."""

    columns: list[int]
    scale: Scale
    centres: Array
    width: float
    slopes: Array

    @classmethod
    def of(cls, X: Array, columns: list[int], roots: Array, left: Array) -> Together | None:
        """Return the function that takes most from what is left by GCV; None if it takes little."""
        if not FEWEST_TOGETHER <= len(columns) <= MOST_TOGETHER:
            return None
        Z, weights, n_rows = X[:, columns], np.square(roots[:, 0]), len(X)
        centre = weights @ Z
        scale = Scale(centre, np.sqrt(weights @ (Z - centre) ** 2))
        Z = scale.apply(Z)
        count = min(CENTRES, n_rows)
        centres = Z[np.arange(count) * n_rows // count]
        total = np.square(left).sum()
        least, found = (1 - WORTH) * float(_gcv(total, 0.0, n_rows)), None
        for width in WIDTHS:
            own, axes = np.linalg.eigh(gaussian_kernel(centres, centres, width))
            known = own > 1e-7 * own[-1]
            white = axes[:, known] / np.sqrt(own[known])
            M = gaussian_kernel(Z, centres, width) @ white * roots
            size, turn = np.linalg.eigh(M.T @ M)
            size, right = np.maximum(size, 0.0), turn.T @ (M.T @ left)
            for cost in COSTS:
                shrink = 1 / (size + cost)
                taken = np.sum(np.square(right).sum(axis=1) * shrink * (2 - shrink * size))
                score = float(_gcv(total - taken, np.sum(size * shrink), n_rows))
                if score < least:
                    slopes = turn @ (right / (size + UNDERSMOOTHED * cost)[:, None])
                    least, found = score, cls(columns, scale, centres, width, white @ slopes)
            if found is None:
                return None  # the first width is in the middle
        return found

    def values(self, X: Array) -> Array:
        """Return the function at some rows, a column for each target."""
        Z = self.scale.apply(X[:, self.columns])
        return np.asarray(gaussian_kernel(Z, self.centres, self.width) @ self.slopes)


class Table:
    """All columns' curves and the coarse surfaces over all pairs, ready for any target.

    Nothing here depends on which columns a model may use, so all models of the rows share it.
    """

    def __init__(self, X: Array, weights: Array | None = None) -> None:
        w = np.ones(len(X)) if weights is None else weights
        self.kept = w > 0  # others would still count for where curves bend
        X, w = X[self.kept], w[self.kept] / w.sum()
        self.X = X
        self.roots = np.sqrt(w)[:, None]
        self.terms = [Term.smoothest(x, w, ALONE) for x in X.T]
        self.curves = [Curves.of(term, x) for term, x in zip(self.terms, X.T, strict=True)]
        varied = [c for c, one in enumerate(self.curves) if len(one.rough) > 1]
        self.pairs = [Pair(*pair) for pair in combinations(varied, 2)]
        self.pairs += [Pair(c, None) for c in varied]
        self.first = np.array([pair.first for pair in self.pairs], dtype=np.intp)
        self.second = np.array([-1 if b is None else b for _, b in self.pairs], dtype=np.intp)
        # The steps of searches over all columns, by targets: a pair, and the sum with it.
        self.searched: dict[bytes, list[tuple[int, Sum]]] = {}
        self._screen()

    def _screen(self) -> None:
        """Prepare a coarse surface for each pair; beside a column alone stands a constant."""
        size, shape = COARSE + 1, (len(self.roots), len(self.curves) + 1, COARSE + 1)
        # A column of few values has fewer curves: the others are 0 and cost something.
        self.values, rough = np.zeros(shape), np.ones(shape[1:])
        for c, one in enumerate(self.curves):
            few = one.first(COARSE)
            self.values[:, c, : len(few.rough)] = few.values
            rough[c, : len(few.rough)] = few.rough
        self.values[:, -1, 0], rough[-1, 0] = 1.0, 0.0
        # Products of two surfaces' columns are products of what is one column's and the other's.
        i, j = np.triu_indices(size)
        squares = self.values[:, :, i] * self.values[:, :, j]
        flat = squares.reshape(len(squares), -1)
        across = (flat * self.roots**2).T @ flat
        across = across.reshape(shape[1], len(i), shape[1], len(i))
        at = np.zeros((size, size), dtype=np.intp)
        at[i, j] = at[j, i] = np.arange(len(i))
        gram = across[self.first, :, self.second][:, at[:, None, :, None], at[None, :, None, :]]
        gram = gram.reshape(len(self.pairs), size**2, size**2)
        costs = (
            COARSE_PENALTY * (rough[self.first][:, :, None] + rough[self.second][:, None]) + TINY
        )
        held = gram.copy()
        # Where no column varies there is no pair, so the sizes have to be said.
        held.reshape(len(held), size**4)[:, :: size**2 + 1] += costs.reshape(len(held), size**2)
        self.inverse = np.linalg.inv(held)
        self.freedom = np.einsum("kij,kij->k", self.inverse, gram)

    def best(self, left: Array, allowed: Flags) -> int:
        """Return the pair, of those allowed, whose coarse surface has the least GCV score."""
        n_rows, size = len(left), self.values.shape[2]
        flat = self.values.reshape(n_rows, -1)
        explained = np.zeros(len(self.pairs))
        for target in (left * self.roots).T:
            products = ((flat * target[:, None]).T @ flat).reshape(
                -1, size, flat.shape[1] // size, size
            )
            right = products[self.first, :, self.second].reshape(len(self.pairs), -1)
            explained += np.einsum("ki,ki->k", right, (self.inverse @ right[:, :, None])[:, :, 0])
        scores = _gcv(np.square(left).sum() - explained, self.freedom, n_rows)
        scores[self.second < 0] *= 1 - PAIRED
        return int(np.argmin(np.where(allowed, scores, np.inf)))


class SurfacesModel:
    """The sum of surfaces over pairs of columns; classes are regressed on indicators.

    With the `table` of a wider X, `columns` are those of it that the model may use.
    """

    def __init__(
        self, *, n_classes: int = 0, table: Table | None = None, columns: Sequence[int] = ()
    ) -> None:
        self.n_classes, self.table, self.columns = n_classes, table, columns

    def fit(self, X: Array, y: Array, weights: Array | None = None) -> Self:
        """Return the model, fitted to `y`: numbers, or class codes from 0."""
        table = self.table or Table(X, weights)
        columns = list(self.columns) if self.table else list(range(X.shape[1]))
        place = dict(zip(columns, range(len(columns)), strict=True))
        targets = as_targets(y[table.kept], self.n_classes)
        self.start_ = np.square(table.roots[:, 0]) @ targets
        targets = (targets - self.start_) * table.roots
        found, tried = _search(table, columns, targets)
        taken, self.slopes_ = [surface.pair for surface in found.surfaces], found.slopes
        self.pairs_ = [Pair(place[a], None if b is None else place[b]) for a, b in taken]
        self.terms_ = {place[c]: table.terms[c] for pair in taken for c in pair if c is not None}
        acting = sorted({c for pair in taken for c in pair if c is not None})
        together = Together.of(table.X, acting, table.roots, found.left)
        self.together_ = together and replace(together, columns=[place[c] for c in acting])
        # Without a column that was not even tried, the same search finds the same.
        self.used_ = np.zeros(X.shape[1], dtype=bool)
        self.used_[[place[c] for pair in tried for c in pair if c is not None]] = True
        return self

    def predict(self, X: Array) -> Array:
        """Return means, or a row of probabilities per row of X."""
        found = self._sum(self._designs(self._curves(X)), len(X))
        if self.together_:
            found += self.together_.values(X)
        if not self.n_classes:
            return np.asarray(found[:, 0])
        return as_chances(found)

    def averaged(self, X: Array, columns: Sequence[int], values: Array) -> Array:
        """Return the means of numbers predicted with some columns at each row of `values`.

        A surface is a sum of products, so that the means of its factors will do.
        """
        own, others = self._curves(X), dict(zip(columns, values.T, strict=True))
        moved = {c: Curves.of(self.terms_[c], others[c]) for c in own if c in others}
        held = {
            c: Curves(curves.values.mean(axis=0)[None], curves.rough) for c, curves in moved.items()
        }
        designs = self._designs(own | held)
        for i, (a, b) in enumerate(self.pairs_):
            if a in moved and b in moved:
                designs[i] = _design(moved, self.pairs_[i]).mean(axis=0)[None]
        whole = [np.broadcast_to(design, (len(X), design.shape[1])) for design in designs]
        found = self._sum(whole, len(X))
        if self.together_:
            altered = np.repeat(X[None], len(values), axis=0)
            altered[:, :, columns] = values[:, None, :]
            every = self.together_.values(altered.reshape(-1, X.shape[1]))
            found += every.reshape(len(values), len(X), -1).mean(axis=0)
        return np.asarray(found[:, 0])

    def _sum(self, designs: Sequence[Array], n_rows: int) -> Array:
        """Return the sum of the surfaces, a column for each target."""
        M = np.hstack([np.zeros((n_rows, 0)), *designs])
        return np.asarray(self.start_ + M @ self.slopes_)

    def _curves(self, X: Array) -> dict[int, Curves]:
        return {c: Curves.of(term, X[:, c]) for c, term in self.terms_.items()}

    def _designs(self, curves: dict[int, Curves]) -> list[Array]:
        return [_design(curves, pair) for pair in self.pairs_]


@dataclass(frozen=True)
class Sum:
    """Surfaces fitted together to some targets, which one more surface extends.

    `half` is the inverse of the Cholesky factor of their penalised Gram matrix.
    """

    targets: Array
    surfaces: tuple[Surface, ...]
    half: Array
    projected: Array  # half @ design.T @ targets
    left: Array
    score: float

    @classmethod
    def empty(cls, targets: Array) -> Self:
        """Return the sum of no surfaces."""
        score = float(_gcv(np.square(targets).sum(), 0.0, len(targets)))
        return cls(targets, (), np.zeros((0, 0)), np.zeros((0, targets.shape[1])), targets, score)

    def extended(self, new: Surface) -> Sum:
        """Return the sum with one more surface; those it has keep their penalties."""
        targets, surfaces = self.targets, (*self.surfaces, new)
        across = [surface.design.T @ new.design for surface in self.surfaces]
        cross = self.half @ np.vstack([np.zeros((0, len(new.gram))), *across])
        corner = _half(new.gram - cross.T @ cross, new.penalty)
        below = -(corner @ cross.T) @ self.half
        half = np.block([[self.half, np.zeros((len(self.half), len(corner)))], [below, corner]])
        own = corner @ (new.design.T @ targets - cross.T @ self.projected)
        projected = np.vstack([self.projected, own])
        found = replace(self, surfaces=surfaces, half=half, projected=projected)
        left, penalty = targets - found.values, np.concatenate([one.penalty for one in surfaces])
        score = float(_gcv(np.square(left).sum(), _freedom(half, penalty), len(left)))
        return replace(found, left=left, score=score)

    @property
    def values(self) -> Array:
        """The sum at the rows it was fitted to, a column for each target."""
        ends = np.cumsum([len(surface.gram) for surface in self.surfaces])
        parts = zip(self.surfaces, np.split(self.slopes, ends[:-1]), strict=True)
        return sum((one.design @ own for one, own in parts), start=np.zeros_like(self.targets))

    @property
    def slopes(self) -> Array:
        """All surfaces' coefficients, a column for each target."""
        return np.asarray(self.half.T @ self.projected)


def _search(table: Table, columns: Sequence[int], targets: Array) -> tuple[Sum, list[Pair]]:
    """Return the surfaces taken, and the pairs tried.

    Over some columns it takes the steps of a search over all, as far as those are open to it.
    """
    best, tried, key = Sum.empty(targets), list[Pair](), targets.tobytes()
    mine = np.isin(np.arange(-1, len(table.curves)), [-1, *columns])
    allowed = mine[table.first + 1] & mine[table.second + 1]
    steps = list(takewhile(lambda step: allowed[step[0]], table.searched.get(key, [])))
    if allowed.all():
        table.searched[key] = steps
    while len(best.surfaces) < MOST and allowed.any():
        if len(tried) == len(steps):
            at = table.best(best.left, allowed)
            fine = _fine(table.pairs[at], table.curves, table.roots, best.left)
            steps.append((at, best.extended(fine)))
        at, longer = steps[len(tried)]
        allowed[at] = False
        tried.append(table.pairs[at])
        if longer.score >= (1 - WORTH) * best.score:
            break
        best = longer
    return best, tried


def _half(gram: Array, penalty: Array) -> Array:
    """Return the inverse of the Cholesky factor of a matrix with a penalty on its diagonal."""
    held = gram.copy()
    held.flat[:: len(held) + 1] += penalty
    factor = lapack.dpotrf(held.T, lower=True, overwrite_a=True)[0]
    return np.asarray(lapack.dtrtri(factor, lower=True, overwrite_c=True)[0])


def _freedom(half: Array, penalty: Array) -> float:
    """Return the degrees of freedom of a penalised fit."""
    return float(len(half) - penalty @ np.square(half).sum(axis=0))


def _fine(pair: Pair, curves: Sequence[Curves], roots: Array, left: Array) -> Surface:
    """Return the fine surface of a pair, with penalties that GCV finds good, and less of them."""
    first, second = _sides(curves, pair)
    M = _design(curves, pair) * roots
    gram, right, total = M.T @ M, M.T @ left, np.square(left).sum()
    n_rows = len(left)

    def penalty(at: Place) -> Array:
        one, other = PENALTIES[at[0]] * first.rough, PENALTIES[at[1]] * second.rough
        return np.asarray((one[:, None] + other).ravel())

    def score(at: Place) -> float:
        cost = penalty(at) + TINY
        half = _half(gram, cost)
        slopes = half.T @ (half @ right)
        error = total - np.sum(slopes * (right + cost[:, None] * slopes))
        return float(_gcv(error, _freedom(half, cost), n_rows))

    at = _lowest(score, ALONG_ONE if pair.second is None else ALONG_BOTH)
    return Surface(pair, M, gram, UNDERSMOOTHED * penalty(at) + TINY)


def _lowest(score: Callable[[Place], float], steps: Sequence[Place]) -> Place:
    """Return where on the grid of penalties no step leads to a lower score."""
    size = len(PENALTIES)
    at, known = (size // 2, size // 2), dict[Place, float]()
    while True:
        near = [(at[0] + i, at[1] + j) for i, j in steps]
        near = [(i, j) for i, j in near if 0 <= i < size and 0 <= j < size]
        known |= {place: score(place) for place in near if place not in known}
        best = min(near, key=known.__getitem__)
        if best == at:
            return at
        at = best


def _sides(curves: Mapping[int, Curves] | Sequence[Curves], pair: Pair) -> tuple[Curves, Curves]:
    """Return the curves of both columns; a column alone has more, and a constant beside it."""
    first = curves[pair.first]
    if pair.second is None:
        return first, first.first(0)
    return first.first(FINE), curves[pair.second].first(FINE)


def _design(curves: Mapping[int, Curves] | Sequence[Curves], pair: Pair) -> Array:
    """Return the products of each curve of the one column with each of the other."""
    first, second = _sides(curves, pair)
    products = first.values[:, :, None] * second.values[:, None, :]
    return np.asarray(products.reshape(len(products), -1))


def _gcv(error: Array | float, freedom: Array | float, n_rows: int) -> Any:
    """Return the generalised cross-validation score; the mean takes a degree of freedom."""
    return error / (1 - np.minimum((freedom + 1) / n_rows, MOST_FREEDOM)) ** 2
