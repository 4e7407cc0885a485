"""Additive models: one smooth curve per column, as in R's gam::gam(y ~ s(x, df = 4)).

Hastie and Tibshirani, Generalized Additive Models (1990). Each curve is a penalised cubic
spline; all of them are found by one solve, which is where backfitting would converge to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline
from scipy.linalg import blas, cho_factor, cho_solve, lapack
from scipy.optimize import brentq
from scipy.special import expit, logit

from covaria.learners.estimators import Array

# Small beside a column of variance one, large beside rounding: it shares a slope evenly
# between duplicated columns and leaves every other fit alone.
RIDGE = 1e-9
FLOOR = 1e-6  # no probability comes nearer to 0 or 1
TINY = float(np.finfo(float).tiny)  # keeps logarithms and quotients finite
Flags = NDArray[np.bool_]
Positions = NDArray[np.intp]
Tolerance = tuple[float, int]
Fitter = Callable[[Array, Array, Array, Array], Array]
# A design is held for this many numbers at a time, 16 MB, or this many rows.
CHUNK, FEWEST = 2**21, 256


def place_knots(values: Array, size: int, degree: int, *, even: float = 0.0) -> Array:
    """Return the knots of at most `size` B-splines on [0, 1], at quantiles of the values.

    `even` moves them towards equal distances: 1 is there, 0.5 halfway.
    """
    places = np.linspace(0, 1, size - degree + 1)[1:-1]
    inner = (1 - even) * np.quantile(values, places) + even * places
    # Under a wild tail knots crowd so closely that only rounding would tell them apart.
    inner = np.setdiff1d(inner.round(5), [0, 1])
    return np.concatenate([np.zeros(degree + 1), inner, np.ones(degree + 1)])


def basis(u: Array, knots: Array, degree: int) -> Array:
    """Return the B-splines at `u`, continued as straight lines outside [0, 1]."""
    inside = np.clip(u, 0, 1)
    values = evaluate(inside, knots, degree)
    if (u == inside).all():
        return values
    return values + (u - inside)[:, None] * evaluate(inside, knots, degree, derivative=1)


def evaluate(u: Array, knots: Array, degree: int, *, derivative: int = 0) -> Array:
    """Return every B-spline, or a derivative of it, at points of [0, 1]."""
    spline = BSpline(knots, np.eye(len(knots) - degree - 1), degree)
    return np.asarray(spline(u, derivative))


def roughness(knots: Array, degree: int) -> Array:
    """Return the integrals of all products of two B-splines' second derivatives."""
    ends = np.unique(knots)
    half = np.diff(ends) / 2
    # Second derivatives are straight between knots, so two Gauss points are exact.
    points = ends[:-1] + half + np.outer([-1, 1], half / np.sqrt(3))
    bend = evaluate(points.ravel(), knots, degree, derivative=2)
    return gram(bend, np.tile(half, 2))


@dataclass(frozen=True)
class Term:
    """One column's curve, in the basis where its fit and its penalty are both diagonal.

    On the training rows the columns of `design` have mean zero, variance one and no
    correlation, and the roughness of the curve with coefficients b is sum(penalty * b**2).
    """

    low: float
    span: float
    degree: int
    knots: Array
    mix: Array
    center: Array
    penalty: Array

    @classmethod
    def through(
        cls, x: Array, weights: Array, *, size: int = 12, even: float = 0.0, reach: float = np.inf
    ) -> Self:
        """Return the term of a column; with three distinct values or fewer it is a line.

        Its curves bend up to `reach` times the middle half's width beyond the middle half.
        """
        low, span = where_bends_lie(x, reach)
        u = (x - low) / span
        distinct = np.unique(np.clip(u, 0, 1).round(9))
        degree = 3 if len(distinct) > 3 else 1
        size = min(size, len(distinct)) if degree == 3 else 2
        knots = place_knots(distinct, size, degree, even=even)
        center, products = spread(u, weights, knots, degree)
        mix, penalty = diagonalise(products, roughness(knots, degree))
        return cls(low, span, degree, knots, mix, center @ mix, penalty)

    @classmethod
    def smoothest(cls, x: Array, weights: Array, count: int = 9) -> Self:
        """Return the term that holds a column's nine smoothest curves, as many as R's s(x) has.

        They are those of a spline with many more knots, so where these lie matters little. A long
        tail, which would else count for the smoothness of all the rest, is straight.
        """
        size = max(20, count + 10)
        return cls.through(x, weights, size=size, even=0.5, reach=3).first(count)

    def first(self, count: int) -> Self:
        """Return the term of the smoothest `count` of its curves; the first is a line."""
        mix, center = self.mix[:, :count], self.center[:count]
        return replace(self, mix=mix, center=center, penalty=self.penalty[:count])

    def design(self, x: Array) -> Array:
        """Return the values of the basis at `x`, straight lines outside the training range."""
        u = (x - self.low) / self.span
        return basis(u, self.knots, self.degree) @ self.mix - self.center

    def slope(self, x: Array) -> Array:
        """Return the derivative of the basis at `x`."""
        u = np.clip((x - self.low) / self.span, 0, 1)
        return evaluate(u, self.knots, self.degree, derivative=1) @ self.mix / self.span


def where_bends_lie(x: Array, reach: float) -> tuple[float, float]:
    """Return the lower end and the width of the range in which curves may bend."""
    low, high = float(x.min()), float(x.max())
    # A spread that is only rounding makes a constant column, not a narrow one.
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        return low, 1.0
    if np.isfinite(reach):
        lower, upper = np.quantile(np.unique(x), [0.25, 0.75])
        beyond = reach * (upper - lower)
        low, high = max(low, float(lower - beyond)), min(high, float(upper + beyond))
    return low, high - low


def spread(u: Array, weights: Array, knots: Array, degree: int) -> tuple[Array, Array]:
    """Return the B-splines' means over the rows, and the products of what is beyond these."""
    # Few rows at a time: a design of a million would be the largest thing in memory.
    parts = [(u[rows], weights[rows]) for rows in chunks(len(u), len(knots))]
    if len(parts) == 1:
        values = basis(u, knots, degree)
        center = weights @ values
        return center, gram(values - center, weights)
    center = np.sum([w @ basis(part, knots, degree) for part, w in parts], axis=0)
    products = [gram(basis(part, knots, degree) - center, w) for part, w in parts]
    return center, np.sum(products, axis=0)


def chunks(n_rows: int, width: int) -> Iterator[slice]:
    """Return the rows of a design of some width in parts that fit into `CHUNK`."""
    step = max(FEWEST, CHUNK // max(width, 1))
    return (slice(start, start + step) for start in range(0, n_rows, step))


def diagonalise(products: Array, rough: Array) -> tuple[Array, Array]:
    """Return the mix of columns that makes them orthonormal and uncouples the roughness."""
    scale, axes = np.linalg.eigh(products)
    # The constant, and whatever the rows cannot tell apart, has no variance and goes.
    known = scale > 1e-9 * max(scale[-1], 1e-3)
    white, unseen = axes[:, known] / np.sqrt(scale[known]), axes[:, ~known]
    # Where there are no rows a curve goes on as smoothly as it can; so a line stays a line.
    bend = unseen.T @ rough
    hold = (1e-12 * np.abs(rough).max() + TINY) * np.eye(len(bend))
    white = white - unseen @ np.linalg.solve(bend @ unseen + hold, bend @ white)
    penalty, turn = np.linalg.eigh(white.T @ rough @ white)
    # Whatever rounding says, a straight line is not rough and every other curve is.
    penalty = np.maximum(penalty, 1e-16 * penalty.max(initial=0))
    penalty[:1] = 0
    return white @ turn, penalty


def smoothing_for(term: Term, df: float) -> float:
    """Return the smoothing at which the column's own smoother has trace `df` + 1."""
    bent = term.penalty[1:]
    if not len(bent):
        return 0.0
    low, high = np.log(1e-9 / bent[-1]), np.log(1e9 / bent[0])

    def excess(log_smoothing: float) -> float:
        return float(1 + np.sum(1 / (1 + np.exp(log_smoothing) * bent)) - df)

    if excess(low) <= 0:
        return 0.0
    return float(np.exp(brentq(excess, low, high) if excess(high) < 0 else high))


def each_df(df: float | str | Sequence[float], count: int) -> list[float]:
    """Return the degrees of freedom of each of some curves."""
    return [float(df)] * count if isinstance(df, (int, float, str)) else [float(d) for d in df]


def df_at(term: Term, smoothing: float) -> float:
    """Return the trace of a column's own smoother less one, at a smoothing that may be infinite."""
    bent = term.penalty[1:]
    return float(1 + np.sum(1 / (1 + smoothing * bent[bent > 0])))


def penalties(terms: Sequence[Term], smoothing: Sequence[float] | Array) -> Array:
    """Return the diagonal penalty of intercept and terms, each at its own smoothing.

    An infinite smoothing leaves a term its line, and an infinite penalty takes a column out.
    """
    bent = [s * t.penalty[1:] for s, t in zip(smoothing, terms, strict=True)]
    parts = [p for t, b in zip(terms, bent, strict=True) for p in (t.penalty[:1], b)]
    penalty = np.concatenate([np.zeros(1), *parts])
    penalty[1:] += RIDGE
    return penalty


def design(terms: Sequence[Term], X: Array) -> Array:
    """Return the intercept and every term's columns, side by side."""
    blocks = [term.design(x) for term, x in zip(terms, X.T, strict=True)]
    return np.column_stack([np.ones(len(X)), *blocks])


def gram(M: Array, weights: Array) -> Array:
    """Return the weighted products of all pairs of columns."""
    product: Array = M.T @ (weights[:, None] * M)
    return product


def least_squares(M: Array, y: Array, weights: Array, penalty: Array) -> Array:
    """Return the coefficients of the penalised weighted least squares fit."""
    return solve(gram(M, weights) + np.diag(penalty), M.T @ (weights * y))


def without_infinite(fit: Fitter, M: Array, y: Array, weights: Array, penalty: Array) -> Array:
    """Return the coefficients of a fit, zero for columns whose penalty is infinite."""
    kept = np.isfinite(penalty)
    if kept.all():
        return fit(M, y, weights, penalty)
    coefficients = np.zeros(len(penalty))
    coefficients[kept] = fit(M[:, kept], y, weights, penalty[kept])
    return coefficients


def solve(A: Array, b: Array) -> Array:
    """Return the solution of a positive definite system."""
    solution: Array = cho_solve(cho_factor(A), b)
    return solution


# --- smoothing chosen by generalised cross-validation -------------------------------------------
#
# A line costs no roughness, so lines are fitted first and taken out of everything; what is left
# to choose is how far each curve may bend. The search counts a bend in degrees of freedom, those
# of the column's own smoother beyond its line: in these the score has no flat tails, neither
# towards the straight line nor towards the free curve, and Newton's steps are soon exact.

# A curve whose smoothest bend has a larger penalty is a line, and one whose roughest bend has a
# smaller one is as good as free.
STIFF, LOOSE = 100.0, 0.01
WORTH = 1e-5  # how much of the log score a new bend must promise
AT_ONCE = 0.5  # where bends have to be clear, this share of what the best of them promises
STEP = 2.0  # degrees of freedom a curve may win or lose at once
NEWTON = 1e-3  # steps shorter than this are taken without asking whether the score falls
# How far the last step may go, and how many there may be, before and after the last new bend.
ROUGHLY: Tolerance = (0.3, 3)
EXACTLY: Tolerance = (1e-5, 40)  # Newton's error is then some 1e-10


def choose_smoothing(
    terms: Sequence[Term], M: Array, y: Array, weights: Array, to_enter: float = 0.0
) -> Array:
    """Return one smoothing per term, together minimising generalised cross-validation."""
    centred = y - weights @ y
    square = float(weights @ centred**2)
    lines, bends = lines_and_bends(terms)
    G, right = gram(M, weights), M.T @ (weights * centred)
    held = G[np.ix_(lines, lines)] + ridge(len(lines))
    across = G[np.ix_(lines, bends)]
    slopes = solve(held, np.column_stack([across, right[lines]]))
    own = G[np.ix_(bends, bends)] - across.T @ slopes[:, :-1]
    left = right[bends] - across.T @ slopes[:, -1]
    unexplained = square - float(right[lines] @ slopes[:, -1])
    moments = Moments(own, left, unexplained, square, len(lines), len(y), to_enter)
    return search(terms, moments)


def ridge(n_lines: int) -> Array:
    """Return the penalty of the intercept, none, and of lines."""
    return np.diag(RIDGE * (np.arange(n_lines) > 0))


def may_bend(straight: int, n_rows: int) -> bool:
    """Return whether lines leave curves any degrees of freedom: all may use half the rows."""
    return 2 * straight < n_rows


def lines_and_bends(terms: Sequence[Term]) -> tuple[Positions, Positions]:
    """Return the columns of the design that are the intercept or a line, and all others."""
    line = np.concatenate([[True], *(np.arange(len(t.penalty)) == 0 for t in terms)])
    return np.flatnonzero(line), np.flatnonzero(~line)


@dataclass(frozen=True)
class Moments:
    """The products of the bent columns with each other and the target, once lines are taken out.

    `square` is what lines leave of the target, `total` its variance; lines take `straight`
    degrees of freedom. A bend enters where the rows times the log score fall by `to_enter`.
    """

    gram: Array
    right: Array
    square: float
    total: float
    straight: int
    n_rows: int
    to_enter: float = 0.0


@dataclass(frozen=True)
class Surface:
    """The log score at some smoothings, with its slope and curvature in degrees of freedom.

    Behind it are the fit's `coefficients`, its squared `error`, and the rows left `free`.
    """

    score: float
    df: Array
    slope: Array
    curvature: Array
    coefficients: Array
    error: float
    free: float


@dataclass(frozen=True)
class Gcv:
    """Generalised cross-validation of curves, each of which is bent.

    `penalty` has a row per curve and inf where a curve has fewer bends than another.
    """

    moments: Moments
    penalty: Array

    @classmethod
    def of(cls, terms: Sequence[Term], moments: Moments) -> Self:
        """Return the score of all terms that can bend."""
        bends = [term.penalty[1:] for term in terms if len(term.penalty) > 1]
        penalty = np.full((len(bends), max(map(len, bends), default=0)), np.inf)
        for row, bend in zip(penalty, bends, strict=True):
            row[: len(bend)] = bend
        return cls(moments, penalty)

    @cached_property
    def is_bend(self) -> Flags:
        """Return which entries of `penalty` are columns."""
        return np.isfinite(self.penalty)

    @cached_property
    def sizes(self) -> Positions:
        """Return the number of bends of each curve."""
        return np.asarray(self.is_bend.sum(axis=1))

    @cached_property
    def starts(self) -> Positions:
        """Return where the columns of each curve start."""
        return np.asarray(np.cumsum(self.sizes) - self.sizes)

    @cached_property
    def stiffest(self) -> Array:
        """Return the log smoothings from which on curves are lines."""
        return np.asarray(np.log(STIFF / self.penalty[:, 0]))

    @cached_property
    def loosest(self) -> Array:
        """Return the log smoothings below which curves are as good as free."""
        roughest = self.penalty[np.arange(len(self.sizes)), self.sizes - 1]
        return np.asarray(np.log(LOOSE / roughest))

    def columns(self, bent: Flags) -> Positions:
        """Return the columns of some curves."""
        return np.flatnonzero(np.repeat(bent, self.sizes))

    def only(self, bent: Flags) -> Gcv:
        """Return the score as a function of some curves, when all others are lines."""
        at, m = self.columns(bent), self.moments
        part = replace(m, gram=m.gram[at[:, None], at], right=m.right[at])
        return Gcv(part, self.penalty[bent])

    def kept(self, log_smoothing: Array) -> Array:
        """Return the share of each bend that curves keep, zero where they have none."""
        return np.asarray(1 / (1 + np.exp(log_smoothing)[..., None] * self.penalty))

    def score(self, error: float, free: float) -> float:
        """Return the log score at some squared error and rows left free."""
        m = self.moments
        # With next to no error, or few free rows, the score means nothing.
        sound = 2 * free > m.n_rows and error > 1e-10 * m.total
        return math.log(error) - 2 * math.log(free) if sound else math.inf

    def surface(self, log_smoothing: Array) -> Surface:
        """Return the score and its derivatives.

        K is the inverse of Gram plus penalty, in units of the penalty. There a change of a log
        smoothing changes K by −K K over the columns of its curve, and the coefficients b by −K b.
        """
        m, none = self.moments, np.empty(0)
        if not len(log_smoothing):
            free = float(m.n_rows - m.straight)
            score = self.score(m.square, free)
            return Surface(score, none, none, np.empty((0, 0)), none, m.square, free)
        scale = 1 / np.sqrt((np.exp(log_smoothing)[:, None] * self.penalty)[self.is_bend])
        K, b = inverse_and_solution(m.gram, m.right, scale)
        D = K - mirrored(blas.dsyrk(1.0, K.T))
        h = K @ b
        error = max(m.square - float(b @ (scale * m.right + b)), 1e-16 * m.total)
        free = max(m.n_rows - m.straight - len(b) + float(K.trace()), 1e-3)
        more_error = 2 / error * self._sums(b * h)
        more_df = -self._sums(D.diagonal()) / free
        slope = more_error + 2 * more_df
        # For each pair of curves, sums over the columns of both.
        pairs = (self._sums(b[:, None] * D) - self._sums(h[:, None] * K)) * b
        pairs -= self._sums(b[:, None] * K) * h
        pairs *= 1 / error
        D *= K
        pairs += 2 / free * self._sums(D)
        curvature = 2 * self._sums(pairs.T)
        curvature += 2 * np.outer(more_df, more_df) - np.outer(more_error, more_error)
        curvature.flat[:: len(slope) + 1] += slope
        derivatives = self._in_df(log_smoothing, slope, curvature)
        return Surface(self.score(error, free), *derivatives, scale * b, error, free)

    def _sums(self, values: Array) -> Array:
        """Return the sums over the columns of each curve."""
        return np.add.reduceat(values, self.starts)

    def _in_df(self, at: Array, slope: Array, curvature: Array) -> tuple[Array, Array, Array]:
        """Return the curves' own df, and derivatives in log smoothings as derivatives in df."""
        kept = self.kept(at)
        change = kept * (1 - kept)
        first, second = -change.sum(axis=1), (change * (1 - 2 * kept)).sum(axis=1)
        slope = slope / first
        curvature = curvature / np.outer(first, first)
        curvature.flat[:: len(slope) + 1] -= slope * second / first**2
        return kept.sum(axis=1), slope, curvature

    def log_smoothing(self, df: Array, start: Array) -> Array:
        """Return the log smoothings at which curves have some df of their own, within bounds."""
        goal = np.log(df / (self.sizes - df))
        for _ in range(2):  # this logit is close to linear in the log smoothing
            kept = self.kept(start)
            own = kept.sum(axis=1)
            slope = -(kept * (1 - kept)).sum(axis=1) * (1 / own + 1 / (self.sizes - own))
            start = start - (np.log(own / (self.sizes - own)) - goal) / slope
            start = np.clip(start, self.loosest, self.stiffest)
        return start


def inverse_and_solution(gram: Array, right: Array, scale: Array) -> tuple[Array, Array]:
    """Return the inverse of I + Gram, columns scaled, and the coefficients of the right side."""
    A = gram * scale
    A *= scale[:, None]
    A.flat[:: len(scale) + 1] += 1
    factor = lapack.dpotrf(A.T, overwrite_a=True)[0]
    b = lapack.dpotrs(factor, scale * right)[0]
    return mirrored(lapack.dpotri(factor, overwrite_c=True)[0]), b


def mirrored(half: Array) -> Array:
    """Return the symmetric matrix of which one half is given, the other being zero."""
    whole = half + half.T
    whole.flat[:: len(half) + 1] /= 2
    return whole


@dataclass(frozen=True)
class Place:
    """Where a search stands: each curve's log smoothing, inf for a line, and the score there.

    `part` is the score as a function of the bent curves, `surface` what it is here.
    """

    found: Array
    part: Gcv
    surface: Surface

    @classmethod
    def at(cls, gcv: Gcv, found: Array) -> Place:
        """Return the place at some log smoothings."""
        part = gcv.only(np.isfinite(found))
        return cls(found, part, part.surface(found[np.isfinite(found)]))

    @property
    def bent(self) -> Flags:
        return np.isfinite(self.found)

    def straightened(self) -> Place:
        """Return the place with lines for curves that want to be still stiffer.

        The score hardly changes by this, and is not computed anew.
        """
        stiff = (self.found[self.bent] >= self.part.stiffest) & (self.surface.slope > 0)
        if not stiff.any():
            return self
        found, at = self.found.copy(), self.surface
        found[np.flatnonzero(self.bent)[stiff]] = np.inf
        surface = replace(
            at,
            df=at.df[~stiff],
            slope=at.slope[~stiff],
            curvature=at.curvature[np.ix_(~stiff, ~stiff)],
            coefficients=at.coefficients[self.part.columns(~stiff)],
        )
        return Place(found, self.part.only(~stiff), surface)

    def moved(self, bent: Array, surface: Surface) -> Place:
        """Return the place with other smoothings for the bent curves."""
        found = self.found.copy()
        found[self.bent] = bent
        return Place(found, self.part, surface)


def search(terms: Sequence[Term], moments: Moments) -> Array:
    """Return the smoothing of each term, inf for a line, at a minimum of the score.

    All curves start as lines. Those that promise to win by a bend get one, all bends are moved
    to where they do best together, and so on until no other curve promises anything.
    """
    gcv = Gcv.of(terms, moments)
    smoothing = np.full(len(terms), np.inf)
    if not len(gcv.sizes) or moments.square <= 1e-12 * moments.total + TINY:
        return smoothing
    place = Place.at(gcv, np.full(len(gcv.sizes), np.inf))
    tries = np.zeros(len(gcv.sizes), dtype=np.intp)
    for _ in range(12 if moments.to_enter else 6):
        new = promising(gcv, place, tries < 2)
        if not np.isfinite(new).any():
            break
        tries += np.isfinite(new)
        there = settled(Place.at(gcv, np.minimum(place.found, new)), ROUGHLY)
        place = there if there.surface.score < place.surface.score else place
    place = settled(place, EXACTLY)
    smoothing[[len(term.penalty) > 1 for term in terms]] = np.exp(place.found)
    return smoothing


def promising(gcv: Gcv, place: Place, allowed: Flags) -> Array:
    """Return log smoothings for lines that would gain by a bend, inf for all others.

    A bend's gain is judged as if it had nothing in common with the other curves.
    """
    m, at = gcv.moments, place.surface
    left = np.zeros(gcv.penalty.shape)
    left[gcv.is_bend] = m.right - m.gram[:, gcv.columns(place.bent)] @ at.coefficients
    grid = np.linspace(gcv.stiffest, gcv.loosest, 10)[1:]
    kept = gcv.kept(grid)
    won = np.sum(left**2 * kept * (2 - kept), axis=2) / at.error
    df = kept.sum(axis=2)
    gain = np.log1p(-np.minimum(won, 0.999)) - 2 * np.log1p(-np.minimum(df / at.free, 0.999))
    best = gain.argmin(axis=0), np.arange(len(allowed))
    enough = max(WORTH, m.to_enter / m.n_rows, AT_ONCE * -gain[best].min() if m.to_enter else 0.0)
    chosen = np.flatnonzero(allowed & ~place.bent & (gain[best] < -enough))
    # Together curves use no more df than one by one, and at least half the rows stay free.
    chosen = chosen[np.argsort(gain[best][chosen], kind="stable")]
    chosen = chosen[np.cumsum(df[best][chosen]) < at.free - m.n_rows / 2]
    found = np.full(len(allowed), np.inf)
    found[chosen] = grid[best][chosen]
    return found


def settled(place: Place, tolerance: Tolerance) -> Place:
    """Return the place moved downhill until a step is short; some curves become lines there."""
    shortest, most = tolerance
    for _ in range(most):
        place = place.straightened()
        if not place.bent.any():
            break
        before, place = place, downhill_step(place)
        if np.abs(place.surface.df - before.surface.df).max() < shortest:
            break
    return place


def downhill_step(place: Place) -> Place:
    """Return a place with a lower score, or the same where none is found."""
    at, gcv, found = place.surface, place.part, place.found[place.bent]
    step = np.clip(newton_step(at, (found <= gcv.loosest) & (at.slope < 0)), -STEP, STEP)
    for shorter in (1, 1 / 4, 1 / 16, 1 / 64):
        df = np.clip(at.df + shorter * step, 1e-4 * gcv.sizes, (1 - 1e-4) * gcv.sizes)
        there = gcv.log_smoothing(df, found)
        new = gcv.surface(there)
        if new.score < at.score or np.abs(shorter * step).max() < NEWTON:
            return place.moved(there, new)
    return place


def newton_step(at: Surface, fixed: Flags) -> Array:
    """Return Newton's step for the curves that are not fixed, turned downhill where it is not."""
    step, free = np.zeros(len(fixed)), np.flatnonzero(~fixed)
    if len(free):
        size, axes, _ = lapack.dsyev(at.curvature[free[:, None], free])
        size = np.maximum(np.abs(size), 1e-9 * np.abs(size).max() + TINY)
        step[free] = -axes @ (axes.T @ at.slope[free] / size)
    return step


def logistic(M: Array, y: Array, weights: Array, penalty: Array) -> Array:
    """Return the coefficients of the penalised logistic fit, by Newton steps."""

    def loss(b: Array) -> float:
        eta = M @ b
        return float(weights @ (np.logaddexp(0, eta) - y * eta) + np.sum(penalty * b**2) / 2)

    b = np.zeros(M.shape[1])
    b[0] = logit(np.clip(weights @ y, FLOOR, 1 - FLOOR))
    for _ in range(30):
        chance = np.clip(expit(M @ b), FLOOR, 1 - FLOOR)
        curvature = gram(M, weights * chance * (1 - chance)) + np.diag(penalty)
        step = solve(curvature, M.T @ (weights * (y - chance)) - penalty * b)
        before, b = b, downhill(loss, b, step)
        if loss(before) - loss(b) < 1e-10:
            break
    return b


def downhill(loss: Callable[[Array], float], start: Array, step: Array) -> Array:
    """Return where the first of ever shorter steps lowers the loss, or the start if none does."""
    before = loss(start)
    for shorter in 0.5 ** np.arange(10):
        if loss(start + shorter * step) < before:
            return np.asarray(start + shorter * step)
    return start


def counted(X: Array, y: Array, weights: Array | None) -> tuple[Array, Array, Array]:
    """Return the rows that carry weight, with weights that sum to one."""
    weights = np.ones(len(y)) if weights is None else weights
    kept = weights > 0
    if not kept.all():
        X, y, weights = X[kept], y[kept], weights[kept]
    return X, y, weights / weights.sum()


def targets(y: Array, n_classes: int) -> list[Array]:
    """Return what to regress on: y itself, or an indicator per class (one of two is enough)."""
    if n_classes == 0:
        return [y]
    return [(y == k).astype(float) for k in (range(n_classes) if n_classes > 2 else [1])]


def probabilities(chances: Array) -> Array:
    """Return class probabilities from one chance per class, or of the second of two."""
    chances = np.clip(chances, FLOOR, 1 - FLOOR)
    if chances.shape[1] == 1:
        return np.hstack([1 - chances, chances])
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


class AdditiveSplines:
    """A sum of smooth curves; for classes a penalised logistic fit, one class against the rest.

    `df` is the degrees of freedom of each curve as in R's s(x, df), that is the trace of the
    column's own smoother less one for the constant; or a number for each curve; "gcv" lets the
    data choose them all, of at most as many as there are `curves`; a column is a line unless the
    rows times the log score fall by `to_enter` if it bends.
    """

    terms: list[Term]
    coefficients: Array

    def __init__(
        self,
        *,
        df: float | str | Sequence[float] = 4,
        curves: int = 9,
        to_enter: float = 0.0,
        n_classes: int = 0,
    ) -> None:
        self.df = df
        self.curves = curves
        self.to_enter = to_enter
        self.n_classes = n_classes

    def fit(self, X: Array, y: Array, weights: Array | None = None) -> Self:
        """Return the model with its curves fitted."""
        X, y, weights = counted(X, y, weights)
        self.terms = [self._term(x, weights) for x in X.T]
        M = design(self.terms, X)
        fit_one = self._fit_classes if self.n_classes else self._fit_mean
        fits = [fit_one(M, target, weights) for target in targets(y, self.n_classes)]
        self.coefficients = np.column_stack(fits)
        return self

    def _term(self, x: Array, weights: Array) -> Term:
        if self.df == "gcv":
            return Term.smoothest(x, weights, self.curves)
        return Term.through(x, weights)

    def predict(self, X: Array) -> Array:
        """Return means, or a row of probabilities per row of X."""
        curves = design(self.terms, X) @ self.coefficients
        return probabilities(expit(curves)) if self.n_classes else curves[:, 0]

    def _smoothing(self, M: Array, y: Array, weights: Array) -> Array:
        if self.df == "gcv":
            return choose_smoothing(self.terms, M, y, weights, self.to_enter)
        pairs = zip(self.terms, each_df(self.df, len(self.terms)), strict=True)
        return np.array([smoothing_for(term, df) for term, df in pairs])

    def _fit_mean(self, M: Array, y: Array, weights: Array) -> Array:
        smoothing = self._smoothing(M, y, weights)
        self.chosen_df = [df_at(*pair) for pair in zip(self.terms, smoothing, strict=True)]
        return without_infinite(least_squares, M, y, weights, penalties(self.terms, smoothing))

    def _fit_classes(self, M: Array, y: Array, weights: Array) -> Array:
        chance = np.full(len(y), weights @ y)
        # Fixed df are set at the null model's curvature; "gcv" looks again where it landed.
        for _ in range(3 if self.df == "gcv" else 1):
            chance = np.clip(chance, FLOOR, 1 - FLOOR)
            curvature = weights * chance * (1 - chance)
            working = logit(chance) + (y - chance) / (chance * (1 - chance))
            scale = curvature.sum()
            smoothing = scale * self._smoothing(M, working, curvature / scale)
            penalty = penalties(self.terms, smoothing)
            b = without_infinite(logistic, M, y, weights, penalty)
            chance = expit(M @ b)
        return b
