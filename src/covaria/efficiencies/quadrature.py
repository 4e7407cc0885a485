"""Integrals against the normal and the t density, for curves that may be steep or kinked.

All rules are composite Gauss–Legendre: the line is cut where the curve is not smooth, and each
piece is integrated as a polynomial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covaria.simulation.model import Curve

Array = NDArray[np.float64]

POINTS, WEIGHTS = np.polynomial.legendre.leggauss(14)
# Where the pieces are looked at beside the nodes, to see whether they are smooth.
BETWEEN = np.cos(np.pi * (np.arange(9) + 0.37) / 9)
# In standard deviations: the fourth power of e^{2z} has faded there.
REACH = 20.0
STEP = 2.0
# A rule that would need more pieces than this is left as it is; its error says so.
MOST_PIECES = 800


def _barycentric(points: Array) -> Array:
    differences = points[:, None] - points[None, :]
    np.fill_diagonal(differences, 1.0)
    return np.asarray(1.0 / differences.prod(axis=1))


def _interpolation(points: Array, at: Array) -> Array:
    """Return the matrix that takes values at `points` to the polynomial's values `at`."""
    terms = _barycentric(points) / (at[:, None] - points[None, :])
    return np.asarray(terms / terms.sum(axis=1, keepdims=True))


def _differentiation(points: Array) -> Array:
    """Return the matrix that takes values at `points` to the polynomial's slopes there."""
    weights = _barycentric(points)
    differences = points[:, None] - points[None, :]
    np.fill_diagonal(differences, 1.0)
    matrix = weights[None, :] / weights[:, None] / differences
    np.fill_diagonal(matrix, 0.0)
    return np.asarray(matrix - np.diag(matrix.sum(axis=1)))


TO_BETWEEN = _interpolation(POINTS, BETWEEN)
TO_SLOPES = _differentiation(POINTS)


def normal_density(z: Array) -> Array:
    """Return the standard normal density."""
    return np.asarray(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))


def spread_nodes(edges: Array) -> tuple[Array, Array]:
    """Return the nodes and weights of the pieces between edges, which lie along the last axis."""
    middle, half = (edges[..., 1:] + edges[..., :-1]) / 2, np.diff(edges, axis=-1) / 2
    flat = (*edges.shape[:-1], -1)
    nodes = middle[..., None] + half[..., None] * POINTS
    return nodes.reshape(flat), (half[..., None] * WEIGHTS).reshape(flat)


def smooth_edges(curve: Curve, sd: float) -> Array:
    """Return where to cut the line so that the curve of a normal of that sd is smooth between.

    The first pass looks closely and halves down to kinks, jumps and narrow bumps; the second cuts
    there and, in between, only as often as it must.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _smooth_edges(curve, sd)


def _smooth_edges(curve: Curve, sd: float) -> Array:
    ends = sd * np.array([-REACH, 0.0, REACH])
    close = np.union1d(ends, sd * np.arange(-8.0, 8.0 + 1 / 32, 1 / 16))
    edges = _halved(curve, close, sd)
    tiny = np.diff(edges) < 1e-4 * sd
    near_tiny = np.append(tiny, False) | np.append(False, tiny)
    narrow = np.setdiff1d(edges[~near_tiny], close)
    kinks = [_placed_kink(curve, at, width) for at, width in _runs(edges, tiny)]
    return _halved(curve, np.unique(np.concatenate([ends, narrow, kinks])), sd)


def _runs(edges: Array, tiny: NDArray[np.bool_]) -> list[tuple[float, float]]:
    """Return middle and width of the smallest piece in each run of tiny ones."""
    widths = np.where(tiny, np.diff(edges), np.inf)
    run = np.cumsum(np.diff(tiny, prepend=False) & tiny)
    found = []
    for number in np.unique(run[tiny]):
        members = np.flatnonzero(tiny & (run == number))
        at = members[np.argmin(widths[members])]
        found.append((float(edges[at] + edges[at + 1]) / 2, float(widths[at])))
    return found


def _placed_kink(curve: Curve, near: float, width: float) -> float:
    """Return where the lines from both sides meet, if they do nearby; else the place given."""
    away = 8 * width
    x = near + away * np.array([-2.0, -1.0, 1.0, 2.0])
    y = _values(curve, x)
    left, right = (y[1] - y[0]) / away, (y[3] - y[2]) / away
    if left == right:
        return near
    meet = float((y[2] - y[1] + left * x[1] - right * x[2]) / (left - right))
    return meet if abs(meet - near) < away else near


def _halved(curve: Curve, edges: Array, sd: float) -> Array:
    """Return the edges with more between them, until the curve is a polynomial on each piece."""
    low, high = edges[:-1], edges[1:]
    kept: list[Array] = [edges]
    largest = 0.0
    for _ in range(60):
        if not len(low) or sum(map(len, kept)) > MOST_PIECES:
            break
        middle, half = (low + high) / 2, (high - low) / 2
        values = _values(curve, middle[:, None] + half[:, None] * POINTS)
        between = _values(curve, middle[:, None] + half[:, None] * BETWEEN)
        error = np.abs(between - values @ TO_BETWEEN.T).max(axis=1)
        size = np.maximum(np.abs(values).max(axis=1), np.abs(between).max(axis=1))
        nearest = np.where(low * high < 0, 0.0, np.minimum(np.abs(low), np.abs(high)))
        # Fourth powers are integrated, so the density's fourth root is what fades here.
        fading = np.exp(-((nearest / sd) ** 2) / 8)
        largest = max(largest, float((size * fading).max()))
        rough = (error > 1e-10 * size) & (error * fading * half > 1e-14 * largest * sd)
        kept.append(middle[rough])
        low, high = (
            np.concatenate([low[rough], middle[rough]]),
            np.concatenate([middle[rough], high[rough]]),
        )
    return np.unique(np.concatenate(kept))


def _values(curve: Curve, at: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.asarray(curve(at.ravel()), dtype=float).reshape(at.shape)
    return np.asarray(np.nan_to_num(values, nan=0.0, posinf=1e150, neginf=-1e150))


@dataclass(frozen=True)
class Piecewise:
    """A curve with the places where to cut the line to integrate it."""

    curve: Curve
    edges: Array

    @classmethod
    def of(cls, curve: Curve, sd: float) -> Piecewise:
        """Return the curve cut for a normal argument of that sd."""
        return cls(curve, smooth_edges(curve, sd))


def slope_moments(link: Piecewise, sd: float, powers: tuple[int, ...]) -> list[float]:
    """Return E[link'(m)^k] for m normal with mean zero and that sd."""
    if sd == 0:
        slope = slope_at_zero(link)
        return [slope**k for k in powers]
    edges = np.union1d(link.edges, sd * np.arange(-REACH, REACH + STEP, STEP))
    edges = edges[np.abs(edges) <= REACH * sd]
    nodes, weights = spread_nodes(edges)
    values = _values(link.curve, nodes).reshape(-1, len(POINTS))
    slopes = (values @ TO_SLOPES.T / (np.diff(edges)[:, None] / 2)).ravel()
    density = weights * normal_density(nodes / sd) / sd
    return [float(np.sum(density * slopes**k)) for k in powers]


def slope_at_zero(link: Piecewise) -> float:
    """Return link'(0), the mean of the slopes from the left and from the right."""
    at = int(np.searchsorted(link.edges, 0.0))
    sides = []
    for low, high, end in ((at - 1, at, 1.0), (at, at + 1, -1.0)):
        half = (link.edges[high] - link.edges[low]) / 2
        values = _values(link.curve, (link.edges[high] + link.edges[low]) / 2 + half * POINTS)
        slopes = TO_SLOPES @ values / half
        sides.append(float((_interpolation(POINTS, np.array([end])) @ slopes)[0]))
    return (sides[0] + sides[1]) / 2


@dataclass(frozen=True)
class Rule:
    """Nodes of a standard normal vector, their weights, and how well they integrate."""

    nodes: Array
    weights: Array
    error: float = 0.0
    is_random: bool = False


def adaptive(integrand: Callable[[Array], Array], edges: Array, judged: int) -> tuple[Rule, Array]:
    """Return a rule for a standard normal, and the integrand's rows at its nodes.

    Pieces are halved until halving changes none of the first `judged` columns, which are
    positive, by more than 1e-12 of its integral.
    """
    edges = np.concatenate([edges, np.arange(-REACH, REACH + 1, STEP)])
    edges = np.unique(np.clip(edges, *ENDS))
    todo = _Pieces.of(integrand, edges[:-1], edges[1:])
    total = todo.integrals()[:, :judged].sum(axis=0)
    kept: list[_Pieces] = []
    error, count = np.zeros(judged), 0
    for _ in range(40):
        before = todo.integrals()[:, :judged]
        # What has no weight needs no second look.
        heavy = (before > 1e-14 * total).any(axis=1)
        kept.append(todo.only(~heavy))
        todo, before = todo.only(heavy), before[heavy]
        if not heavy.any():
            break
        halves = todo.halved(integrand)
        after = halves.integrals()[:, :judged]
        change = np.abs(after[: len(before)] + after[len(before) :] - before)
        rough = (change > 1e-12 * total).any(axis=1)
        if count > MOST_PIECES:
            rough[:] = False
        error += change[~rough].sum(axis=0)
        kept.append(halves.only(np.tile(~rough, 2)))
        count += int(rough.sum())
        todo = halves.only(np.tile(rough, 2))
        if not rough.any():
            break
    whole = _Pieces.joined(kept)
    relative = float((error / np.where(total > 0, total, 1.0)).max())
    nodes = whole.nodes.ravel()
    rule = Rule(nodes[:, None], whole.weights.ravel(), relative)
    return rule, whole.values.reshape(len(nodes), -1)


ENDS = (-REACH, REACH)


@dataclass(frozen=True)
class _Pieces:
    """Pieces of the line with an integrand's rows at their nodes."""

    ends: Array  # (pieces, 2)
    nodes: Array  # (pieces, points)
    weights: Array  # with the normal density in them
    values: Array  # (pieces, points, columns)

    @classmethod
    def of(cls, integrand: Callable[[Array], Array], low: Array, high: Array) -> _Pieces:
        ends = np.column_stack([low, high])
        nodes, weights = spread_nodes(ends)
        values = integrand(nodes.reshape(-1, 1)).reshape(len(low), len(POINTS), -1)
        return cls(ends, nodes, weights * normal_density(nodes), values)

    @classmethod
    def joined(cls, parts: list[_Pieces]) -> _Pieces:
        names = ("ends", "nodes", "weights", "values")
        return cls(*[np.concatenate([getattr(part, name) for part in parts]) for name in names])

    def only(self, chosen: NDArray[np.bool_]) -> _Pieces:
        """Return some of the pieces."""
        return _Pieces(
            self.ends[chosen], self.nodes[chosen], self.weights[chosen], self.values[chosen]
        )

    def halved(self, integrand: Callable[[Array], Array]) -> _Pieces:
        """Return the left halves, then the right halves."""
        low, high = self.ends.T
        middle = (low + high) / 2
        return _Pieces.of(integrand, np.concatenate([low, middle]), np.concatenate([middle, high]))

    def integrals(self) -> Array:
        """Return each piece's integral of each column."""
        return np.asarray(np.einsum("pn,pnc->pc", self.weights, self.values))


def grid(dimensions: int, step: float) -> Rule:
    """Return the trapezoid rule for a standard normal vector: exact to rounding where smooth."""
    half = round(10.0 / step)
    line = step * np.arange(-half, half + 1)
    axes = np.meshgrid(*[line] * dimensions, indexing="ij")
    nodes = np.stack([axis.ravel() for axis in axes], axis=1)
    nodes = nodes[(nodes**2).sum(axis=1) <= 100.0]
    return Rule(nodes, step**dimensions * normal_density(nodes).prod(axis=1))


def coarser(rule: Rule) -> Array:
    """Return the weights of every second node along each axis of a grid."""
    step = np.diff(np.unique(rule.nodes[:, 0])).min()
    even = (np.rint(rule.nodes / step) % 2 == 0).all(axis=1)
    return np.where(even, rule.weights * 2.0 ** rule.nodes.shape[1], 0.0)


def along(edges: Array, n_rows: int, step: float) -> tuple[Array, Array]:
    """Return nodes and weights of a standard normal for each row, cut at the row's own edges."""
    regular = np.arange(-REACH, REACH + step / 2, step)
    regular = np.broadcast_to(regular, (n_rows, len(regular)))
    cuts = np.sort(np.clip(np.concatenate([regular, edges], axis=1), *ENDS), axis=1)
    nodes, weights = spread_nodes(cuts)
    return nodes, weights * normal_density(nodes)


@dataclass(frozen=True)
class StudentT:
    """Expectations of a t variable of variance one.

    The density is cut off smoothly at 64, 128, … and the powers of the cut-off that are missing,
    degree − df − m, are extrapolated away; what oscillates averages out under the smooth cut.
    """

    df: float
    nodes: Array
    faded: Array

    @classmethod
    def of(cls, df: float, edges: Array) -> StudentT:
        """Return the law, with the line cut at those edges too."""
        cuts = 64.0 * 2.0 ** np.arange(6)
        regular = np.arange(-cuts[-1], cuts[-1] + 0.25, 0.5)
        nodes, weights = spread_nodes(np.union1d(edges, regular))
        mass = weights * t_density(nodes, df)
        return cls(df, nodes, np.stack([mass * _fade(np.abs(nodes) / cut) for cut in cuts]))

    def expectation(self, values: Array, degree: float) -> float:
        """Return the mean of a function that grows as |x|^degree, from its values at the nodes."""
        if degree >= self.df:
            return np.inf
        return _extrapolated(self.faded @ values, self.df - degree)


def t_density(x: Array, df: float) -> Array:
    """Return the density of a t variable scaled to variance one."""
    from scipy.special import gammaln

    scale = np.sqrt((df - 2) / df)
    constant = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(df * np.pi) - np.log(scale)
    return np.asarray(np.exp(constant - (df + 1) / 2 * np.log1p((x / scale) ** 2 / df)))


def _fade(x: Array) -> Array:
    """Return 1 below ½, 0 above 1 and a smooth passage between."""
    inside = np.clip(2 * x - 1, 1e-12, 1 - 1e-12)
    passage = 1 / (1 + np.exp(np.clip(1 / (1 - inside) - 1 / inside, -700, 700)))
    return np.asarray(np.where(x <= 0.5, 1.0, np.where(x >= 1, 0.0, passage)))


def _extrapolated(found: Array, power: float) -> float:
    """Return the limit of values whose errors fall as cut^-(power + m), the cut doubling."""
    rows = [found]
    for order in range(len(found) - 1):
        change = np.diff(rows[-1])
        rows.append(rows[-1][1:] + change / (2.0 ** (power + order) - 1))
    settled = [abs(row[-1] - row[-2]) for row in rows if len(row) > 1]
    return float(rows[int(np.argmin(settled))][-1])


def chunks(n_rows: int, n_nodes: int) -> Iterator[slice]:
    """Yield slices of rows that keep an array of rows × nodes small."""
    size = max(1, int(1_500_000 // max(n_nodes, 1)))
    return (slice(start, start + size) for start in range(0, n_rows, size))
