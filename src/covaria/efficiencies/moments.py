"""The moments that every formula of the theory is made of, for one feature of a model.

With x the part of x_j that the other features do not explain and f the part of E[y given X] that
they do not explain, all methods need E[x²], E[xf], E[f²], E[x²f²] and E[f⁴]; dropout and
permutation need the moments of the change in the regression function when x_j is replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.efficiencies import quadrature
from covaria.efficiencies.quadrature import Piecewise, Rule, StudentT
from covaria.errors import InputError
from covaria.randomness import stream
from covaria.simulation.model import Model, Term, straight

Array = NDArray[np.float64]
INNER_DRAWS = 256


@dataclass(frozen=True)
class Moments:
    """What the theory needs to know of one feature; infinite where a moment does not exist."""

    spread: float  # E x²
    cross: float = 0.0  # E xf
    second: float = 0.0  # E f²
    mixed: float = 0.0  # E x²f²
    fourth: float = 0.0  # E f⁴
    drop_second: float = 0.0  # E d², d = the change when x_j becomes its mean
    drop_fourth: float = 0.0
    swap_second: float = 0.0  # E d², d = the change when x_j becomes another row's
    swap_fourth: float = 0.0
    swap_shared: float = 0.0  # Cov(E[d² given the row], E[d² given the row lent from])
    error: float = 0.0  # relative; of quadrature, or the standard error of a simulation


def moments(model: Model, feature: int, *, draws: int = 10_000, seed: int = 0) -> Moments:
    """Return the moments of one feature: by quadrature in few dimensions, else by simulation."""
    terms = [t for t in _split(model.terms) if feature in t.features]
    if model.sampler is not None:
        return _simulated(model, feature, terms, draws, seed)
    if np.isfinite(model.df):
        return _student(model, feature, terms)
    return _Normal.of(model, feature, terms, draws, seed).moments()


def _split(terms: tuple[Term, ...]) -> list[Term]:
    """Return the terms with a linear one split into its features, without what weighs nothing."""
    found: list[Term] = []
    for term in terms:
        if term.weights is None:
            found.append(term)
        elif term.function is straight:
            pairs = zip(term.features, term.weights, strict=True)
            found += [Term(straight, (j,), (w,), 1.0) for j, w in pairs if w != 0]
        else:
            kept = [(j, w) for j, w in zip(term.features, term.weights, strict=True) if w != 0]
            found.append(replace(term, features=[j for j, _ in kept], weights=[w for _, w in kept]))
    return found


def _is_additive(terms: list[Term]) -> bool:
    return all(len(term.features) == 1 for term in terms)


def _curve(terms: list[Term]) -> Callable[[Array], Array]:
    """Return the sum of terms that all take the same single feature."""
    parts = [(t.function, 1.0 if t.weights is None else t.weights[0]) for t in terms]
    return lambda x: np.asarray(sum(f(w * x) for f, w in parts), dtype=float)


# ------------------------------------------------------------------ independent t features


def _student(model: Model, feature: int, terms: list[Term]) -> Moments:
    if not terms:
        return Moments(spread=1.0)
    name = model.names[feature]
    if not _is_additive(terms):
        raise InputError(
            f"{name} interacts under heavy tails, where the theory is additive. "
            "Use normal features, or sampler= for a simulation."
        )
    if any(term.growth is None for term in terms):
        raise InputError(
            f"How fast the function of {name} grows is not known, so which moments exist is not "
            f"either. Write it as Term(function, ['{name}'], growth=d); d=0 is bounded."
        )
    growth = max(float(term.growth or 0.0) for term in terms)
    curve = _curve(terms)
    edges = quadrature.smooth_edges(curve, 3.0)
    law = StudentT.of(model.df, edges[1:-1])
    x, f = law.nodes, curve(law.nodes)
    centre = law.expectation(f, growth)
    if np.isinf(centre):
        return Moments(1.0, *[np.inf] * 9)
    f = f - centre
    drop = float(curve(np.zeros(1))[0]) - centre
    cross = law.expectation(x * f, 1 + growth)
    if np.isinf(cross):
        far = curve(np.array([1e6, -1e6]))
        cross = np.inf * np.sign(far[0] - far[1]) if far[0] != far[1] else np.nan
    return _of_independent(
        Moments(
            spread=1.0,
            cross=cross,
            second=law.expectation(f**2, 2 * growth),
            mixed=law.expectation((x * f) ** 2, 2 + 2 * growth),
            fourth=law.expectation(f**4, 4 * growth),
            drop_second=law.expectation((f - drop) ** 2, 2 * growth),
            drop_fourth=law.expectation((f - drop) ** 4, 4 * growth),
        )
    )


def _of_independent(m: Moments, variance: float = -1.0, fourth: float = -1.0) -> Moments:
    """Return the moments with permutation's, which an additive curve's own moments give."""
    second = m.second if variance < 0 else variance
    fourth = m.fourth if fourth < 0 else fourth
    # Where the second moment is infinite, the difference of the two has no meaning: infinite too.
    shared = fourth - second**2 if np.isfinite(second) else np.inf
    return replace(
        m,
        swap_second=2 * second,
        swap_fourth=2 * fourth + 6 * second**2,
        swap_shared=shared,
    )


# ------------------------------------------------------------------ jointly normal features


@dataclass(frozen=True)
class _Argument:
    """What a term takes: some linear combinations of the features."""

    term: Term
    weights: Array  # (n_features, columns)
    piecewise: Piecewise | None

    @classmethod
    def of(cls, term: Term, covariance: Array) -> _Argument:
        at = [int(j) for j in term.features]
        columns = np.zeros((len(covariance), 1 if term.is_curve else len(at)))
        if term.is_curve:
            columns[at, 0] = 1.0 if term.weights is None else term.weights
            sd = float(np.sqrt(columns[:, 0] @ covariance @ columns[:, 0]))
            return cls(term, columns, Piecewise.of(term.function, sd))
        columns[at, np.arange(len(at))] = 1.0
        return cls(term, columns, None)

    def value(self, at: Array) -> Array:
        """Return the function where its argument is `at`, (…, columns)."""
        shape = at.shape[:-1]
        flat = at.reshape(-1, at.shape[-1])
        given = flat[:, 0] if self.piecewise is not None else flat
        with np.errstate(over="ignore"):
            return np.asarray(self.term.function(given), dtype=float).reshape(shape)


@dataclass(frozen=True)
class _Normal:
    """One feature of a model with normal features."""

    name: str
    feature: int
    covariance: Array
    arguments: list[_Argument]
    spread: float
    draws: int
    seed: int
    step: float = quadrature.STEP

    @classmethod
    def of(cls, model: Model, feature: int, terms: list[Term], draws: int, seed: int) -> _Normal:
        identity = np.eye(model.n_features)
        covariance = identity if model.covariance is None else model.covariance
        spread = 1 / float(np.linalg.solve(covariance, identity[feature])[feature])
        arguments = [_Argument.of(term, covariance) for term in terms]
        name = model.names[feature]
        return cls(name, feature, covariance, arguments, spread, draws, seed)

    def moments(self) -> Moments:
        """Return the feature's moments."""
        empty = Moments(spread=self.spread)
        if not self.arguments:
            return empty
        with np.errstate(over="ignore", invalid="ignore"):
            found = self._replaced(self._checked(self._conditional(empty)))
        if not np.isfinite(list(vars(found).values())).all():
            raise InputError(f"The moments of {self.name} overflow. Lower its scale or its curve.")
        return found

    def _checked(self, found: Moments) -> Moments:
        """Return the moments with what a finer rule along x_j changes counted as error.

        Curves are cut where they kink; functions of several features are not.
        """
        if all(argument.piecewise is not None for argument in self.arguments):
            return found
        finer = replace(self, step=self.step / 2)._conditional(Moments(self.spread))
        names = ("second", "mixed", "fourth")
        pairs = [(getattr(finer, name), getattr(found, name)) for name in names]
        change = max(abs(a - b) / a for a, b in pairs) if found.second > 0 else 0.0
        return replace(finer, error=max(finer.error, change))

    def _stacked(self) -> tuple[Array, list[slice]]:
        """Return all arguments' weights side by side, and which columns belong to which."""
        widths = [a.weights.shape[1] for a in self.arguments]
        ends = np.cumsum([0, *widths]).tolist()
        parts = [slice(a, b) for a, b in pairwise(ends)]
        return np.concatenate([a.weights for a in self.arguments], axis=1), parts

    def _lines(self, base: Array, step: Array, parts: list[slice]) -> tuple[Array, Array, Array]:
        """Return nodes z, weights and values of the function on the lines base + step·z."""
        cuts = [np.empty((len(base), 0))]
        for argument, part in zip(self.arguments, parts, strict=True):
            if argument.piecewise is not None and step[part][0] != 0:
                edges = argument.piecewise.edges
                cuts.append((edges[None, :] - base[:, part]) / step[part][0])
        z, weights = quadrature.along(np.concatenate(cuts, axis=1), len(base), self.step)
        return z, weights, self._values(base[:, None, :] + step * z[:, :, None], parts)

    def _values(self, at: Array, parts: list[slice]) -> Array:
        pairs = zip(self.arguments, parts, strict=True)
        return np.asarray(sum(argument.value(at[..., part]) for argument, part in pairs))

    def _rule(
        self, factor: Array, parts: list[slice], judged: int, integrand: Callable[[Array], Array]
    ) -> tuple[Array, Rule, Array]:
        """Return the integrand's mean over a normal vector, the rule, and the rows' values.

        `factor` takes the vector to the arguments; the integrand takes nodes to rows of numbers,
        the first `judged` of which are positive and say how good the rule is.
        """
        rank = factor.shape[1]
        if rank == 1:
            rule, rows = quadrature.adaptive(integrand, self._outer_edges(factor, parts), judged)
            return rule.weights @ rows, rule, rows
        if rank == 0:
            rule = Rule(np.zeros((1, 0)), np.ones(1))
        elif rank <= 3:
            rule = quadrature.grid(rank, step=1 / 3 if rank == 2 else 0.5)
        else:
            rng = stream(self.seed, "theory", self.feature)
            nodes = rng.standard_normal((self.draws, rank))
            rule = Rule(nodes, np.full(self.draws, 1 / self.draws), is_random=True)
        rows = integrand(rule.nodes)
        error = _row_error(rule, rows[:, :judged])
        if rank == 2 and error > 1e-7:
            rule = quadrature.grid(rank, step=1 / 6)
            rows = integrand(rule.nodes)
            error = _row_error(rule, rows[:, :judged])
        return rule.weights @ rows, replace(rule, error=error), rows

    def _outer_edges(self, factor: Array, parts: list[slice]) -> Array:
        found = [np.empty(0)]
        for argument, part in zip(self.arguments, parts, strict=True):
            if argument.piecewise is not None and factor[part][0, 0] != 0:
                found.append(argument.piecewise.edges / factor[part][0, 0])
        return np.concatenate(found)

    def _conditional(self, empty: Moments) -> Moments:
        """Return the moments of x and f: outside over what the rest says, inside over x."""
        weights, parts = self._stacked()
        explained = self.covariance.copy()
        explained[self.feature, self.feature] -= self.spread
        factor = _factor(weights.T @ explained @ weights)
        sd = float(np.sqrt(self.spread))
        step = sd * weights[self.feature]

        def integrand(nodes: Array) -> Array:
            def rows(base: Array) -> Array:
                z, w, f = self._lines(base, step, parts)
                f = f - np.sum(w * f, axis=1, keepdims=True)
                f2 = f * f
                wanted = (f2, z * z * f2, f2 * f2, z * f)
                return np.stack([np.sum(w * each, axis=1) for each in wanted], axis=1)

            return _in_chunks(rows, nodes @ factor.T, self._n_nodes())

        mean, rule, _ = self._rule(factor, parts, 3, integrand)
        second, mixed, fourth, cross = mean.tolist()
        # What symmetry makes zero comes out as rounding.
        if cross**2 <= 1e-18 * second and not rule.is_random:
            cross = 0.0
        return replace(
            empty,
            cross=sd * cross,
            second=second,
            mixed=self.spread * mixed,
            fourth=fourth,
            error=rule.error,
        )

    def _n_nodes(self) -> int:
        cuts = sum(len(a.piecewise.edges) for a in self.arguments if a.piecewise is not None)
        regular = int(2 * quadrature.REACH / self.step) + 1
        return (cuts + regular) * len(quadrature.POINTS)

    def _replaced(self, m: Moments) -> Moments:
        """Return the moments with those of dropout and permutation."""
        if not _is_additive([a.term for a in self.arguments]):
            return self._replaced_among(m, _Others.of(self))
        weights, parts = self._stacked()
        step = np.sqrt(self.covariance[self.feature, self.feature]) * weights[self.feature]
        base = np.zeros((1, len(step)))
        _, w, f = self._lines(base, step, parts)
        dropped = f - self._values(base, parts)[:, None]
        f = f - np.sum(w * f)
        second, fourth = float(np.sum(w * f**2)), float(np.sum(w * f**4))
        m = replace(
            m,
            drop_second=float(np.sum(w * dropped**2)),
            drop_fourth=float(np.sum(w * dropped**4)),
        )
        return _of_independent(m, second, fourth)

    def _replaced_among(self, m: Moments, others: _Others) -> Moments:
        """Return them for a feature that interacts: outside over the others, inside over x_j."""

        def row_moments(base: Array, step: Array, zero: Array) -> Array:
            _, w, f = self._lines(base, step, others.parts)
            f = f - zero[:, None]
            f2 = f * f
            powers = (f, f2, f2 * f, f2 * f2)
            return np.stack([np.sum(w * power, axis=1) for power in powers], axis=1)

        def rows(nodes: Array) -> Array:
            base = nodes @ others.factor.T
            zero = self._values(base, others.parts)  # with x_j at its mean
            here = row_moments(base + others.drift(nodes), others.left * others.own, zero)
            lent = row_moments(base, others.sd * others.own, zero)
            swapped = _difference(here, lent)
            return np.column_stack([here[:, [1, 3]], swapped, here[:, :2], lent[:, :2]])

        def integrand(nodes: Array) -> Array:
            return _in_chunks(rows, nodes, self._n_nodes())

        mean, rule, found = self._rule(others.factor, others.parts, 4, integrand)
        drop2, drop4, swap2, swap4 = mean[:4].tolist()
        shared = self._shared(rule, found[:, 4:6], found[:, 6:8], others) - swap2**2
        return replace(
            m,
            drop_second=drop2,
            drop_fourth=drop4,
            swap_second=swap2,
            swap_fourth=swap4,
            swap_shared=shared,
            error=max(m.error, rule.error),
        )

    def _shared(self, rule: Rule, here: Array, lent: Array, others: _Others) -> float:
        """Return E[G(row) H(x_j)]: E[d²] given the row, times E[d²] given what it lends."""
        from scipy.interpolate import make_interp_spline

        kept = rule.weights > 1e-20
        nodes, weights = rule.nodes[kept], rule.weights[kept]
        base = nodes @ others.factor.T
        zero = self._values(base, others.parts)
        first, second = here[kept].T[:, :, None]
        knots = others.sd * np.linspace(-12.0, 12.0, 401)
        lending = np.empty(len(knots))
        for part in quadrature.chunks(len(knots), base.size):
            at = base[:, None, :] + others.own * knots[part][None, :, None]
            f = self._values(at, others.parts) - zero[:, None]
            lending[part] = weights @ (second - 2 * first * f + f**2)
        # With others in it, the mean is smooth in x_j.
        spline = make_interp_spline(knots, lending, k=7)

        def rows(keyed: Array) -> Array:
            nodes, (first, second, zero) = keyed[:, :-3], keyed[:, -3:].T[:, :, None]
            line = nodes @ others.factor.T + others.drift(nodes)
            z, w, f = self._lines(line, others.left * others.own, others.parts)
            f = f - zero
            x = (nodes @ others.slope)[:, None] + others.left * z
            lending = spline(np.clip(x, knots[0], knots[-1]))
            given = f**2 - 2 * f * first + second
            return np.asarray(np.sum(w * given * lending, axis=1, keepdims=True))

        keyed = np.column_stack([nodes, lent[kept], zero])
        return float(weights @ _in_chunks(rows, keyed, self._n_nodes())[:, 0])


@dataclass(frozen=True)
class _Others:
    """The arguments with x_j at zero, and x_j given them, which is normal."""

    factor: Array  # takes a standard normal vector to the arguments
    parts: list[slice]
    own: Array  # how the arguments move with x_j
    slope: Array  # of x_j's mean on the vector
    left: float  # sd of x_j given the vector
    sd: float  # of x_j

    @classmethod
    def of(cls, normal: _Normal) -> _Others:
        weights, parts = normal._stacked()
        covariance, j = normal.covariance, normal.feature
        own = weights[j].copy()
        weights[j] = 0.0
        factor = _factor(weights.T @ covariance @ weights)
        slope = np.linalg.lstsq(factor, covariance[j] @ weights, rcond=None)[0]
        left = np.sqrt(max(float(covariance[j, j] - slope @ slope), 0.0))
        return cls(factor, parts, own, slope, left, float(np.sqrt(covariance[j, j])))

    def drift(self, nodes: Array) -> Array:
        """Return how far the arguments move with the mean of x_j given the vector."""
        return np.outer(nodes @ self.slope, self.own)


def _difference(here: Array, lent: Array) -> Array:
    """Return the second and fourth moments of a difference from the moments of its parts."""
    a, b = here.T, lent.T
    second = a[1] - 2 * a[0] * b[0] + b[1]
    fourth = a[3] - 4 * a[2] * b[0] + 6 * a[1] * b[1] - 4 * a[0] * b[2] + b[3]
    return np.stack([second, fourth], axis=1)


def _factor(covariance: Array) -> Array:
    """Return a matrix with as few columns as can be, whose square is the covariance."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-12 * max(float(np.abs(values).max(initial=0.0)), 1e-300)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def _in_chunks(rows: Callable[[Array], Array], at: Array, n_nodes: int) -> Array:
    return np.concatenate([rows(at[part]) for part in quadrature.chunks(len(at), n_nodes)])


def _row_error(rule: Rule, rows: Array) -> float:
    """Return how far the rule may be off, relative to the means of these positive columns."""
    mean = rule.weights @ rows
    size = np.where(mean > 0, mean, 1.0)
    if rule.is_random:
        return float((rows.std(axis=0) / np.sqrt(len(rows)) / size).max())
    if rule.nodes.shape[1] < 2:
        return 0.0
    return float((np.abs(quadrature.coarser(rule) @ rows - mean) / size).max())


# ------------------------------------------------------------------ features of any law


def _simulated(model: Model, feature: int, terms: list[Term], draws: int, seed: int) -> Moments:
    """Return the moments from draws of the features and, for each, fresh draws of x_j."""
    if model.conditional is None:
        raise InputError(
            "Theory for a sampler needs conditional=: 'independent', or a function "
            "(generator, X, j) -> fresh x_j given the other columns."
        )
    rng = stream(seed, "theory", feature)
    rows: list[Array] = []
    for part in quadrature.chunks(draws, INNER_DRAWS * model.n_features):
        size = min(part.stop, draws) - part.start
        rows.append(_simulated_rows(model, feature, terms, size, rng))
    table = np.concatenate(rows)
    mean = table.mean(axis=0)
    error = (
        table.std(axis=0) / np.sqrt(draws) / np.where(table.any(axis=0), np.abs(table).mean(0), 1)
    )
    spread, cross, second, mixed, fourth, drop2, drop4, swap2, swap4, shared = mean.tolist()
    return Moments(
        spread, cross, second, mixed, fourth, drop2, drop4, swap2, swap4, shared - swap2**2,
        float(error.max()),
    )  # fmt: skip


def _simulated_rows(model: Model, j: int, terms: list[Term], n_rows: int, rng: Generator) -> Array:
    X = model.features(rng, n_rows)
    fresh = np.stack([_fresh(model, X, j, rng) for _ in range(INNER_DRAWS)], axis=1)
    lent = rng.permutation(X[:, j])
    mean = float(X[:, j].mean())

    def value(column: Array) -> Array:
        Z = X.copy()
        Z[:, j] = column
        return np.asarray(sum((term(Z) for term in terms), np.zeros(n_rows)))

    given = np.stack([value(fresh[:, k]) for k in range(INNER_DRAWS)], axis=1)
    # The mean of the fresh draws is itself uncertain by 1 / INNER_DRAWS of the variance.
    shrink = np.sqrt(1 + 1 / INNER_DRAWS)
    x = (X[:, j] - fresh.mean(axis=1)) / shrink
    f = (value(X[:, j]) - given.mean(axis=1)) / shrink
    dropped = value(X[:, j]) - value(np.full(n_rows, mean))
    swapped = value(X[:, j]) - value(lent)
    return np.column_stack(
        [x**2, x * f, f**2, (x * f) ** 2, f**4, dropped**2, dropped**4, swapped**2, swapped**4,
         _shared_rows(value, X[:, j], rng)]
    )  # fmt: skip


def _shared_rows(value: Callable[[Array], Array], column: Array, rng: Generator) -> Array:
    """Return unbiased terms of E[G(row) H(x_j)]: each row borrows once and lends once."""
    borrows = value(column) - value(rng.permutation(column))
    order = rng.permutation(len(column))
    lends = (value(column) - value(column[order]))[np.argsort(order)]
    return np.asarray(borrows**2 * lends**2)


def _fresh(model: Model, X: Array, j: int, rng: Generator) -> Array:
    if isinstance(model.conditional, str):
        return rng.permutation(X[:, j])
    assert model.conditional is not None
    return model.conditional(rng, X, j)
