"""Published designs, in which it is known which columns are useful: tables for yardsticks.py.

Formulas are the authors'. Where a paper's text leaves something open, the docstring ends with what
was chosen, after "Chosen:"; docs/yardsticks.md repeats it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations, combinations_with_replacement

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
# The features, the target, and which features say something of the target given all others.
Table = tuple[Array, Array, Mask]
# The rates of the authors: a method, and its type-I error and power at .05.
Rates = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Design:
    """A law of tables, where it comes from, and what others reach on it.

    With `only_first` the published test is of the first column given all others together, so these
    are tested as one feature and only the first is counted.
    """

    name: str
    source: str
    formula: str
    draw: Callable[[Generator], Table]
    published: Rates
    only_first: bool = False


def _mask(n_columns: int, useful: NDArray[np.intp]) -> Mask:
    mask = np.zeros(n_columns, bool)
    mask[useful] = True
    return mask


# --- Chamma, Engemann & Thirion, NeurIPS 2023 -----------------------------------------------------

BLOCKS, BLOCK, WITHIN = 10, 5, 0.8
CHAMMA_ROWS, CHAMMA_USEFUL, SIGNAL_TO_NOISE = 1000, 20, 4.0
EFFECTS = np.array([-3, -2, -1, -0.5, 0.5, 1, 2, 3])


def blocks(n: int, rng: Generator) -> Array:
    """Return ten independent blocks of five normal columns, with correlation .8 within a block."""
    shared = np.repeat(rng.normal(size=(n, BLOCKS)), BLOCK, axis=1)
    own = rng.normal(size=(n, BLOCKS * BLOCK))
    return np.sqrt(WITHIN) * shared + np.sqrt(1 - WITHIN) * own


def products(X: Array) -> Array:
    """Return the product of every pair of columns: 190 of 20."""
    return np.column_stack([X[:, i] * X[:, j] for i, j in combinations(range(X.shape[1]), 2)])


def _chamma(rng: Generator, terms: Callable[[Array], Array]) -> tuple[Array, Array, Mask]:
    """Return the features, the signal (a weight from ±{.5, 1, 2, 3} a term), and who is useful."""
    X = blocks(CHAMMA_ROWS, rng)
    useful = rng.choice(X.shape[1], CHAMMA_USEFUL, replace=False)
    columns = terms(X[:, useful])
    return X, columns @ rng.choice(EFFECTS, columns.shape[1]), _mask(X.shape[1], useful)


def _noisy(signal: Array, rng: Generator) -> Array:
    """Return the signal with noise of a quarter of its size (root mean square)."""
    size = np.sqrt(np.mean(signal**2)) / SIGNAL_TO_NOISE
    return signal + size * rng.normal(size=len(signal))


def chamma_linear(rng: Generator) -> Table:
    """y = Xβ + noise. Chosen: useful columns at random; signal-to-noise of standard deviations."""
    X, signal, useful = _chamma(rng, lambda own: own)
    return X, _noisy(signal, rng), useful


def chamma_relu(rng: Generator) -> Table:
    """y = max(Xβ + noise, 0). Chosen: as for the linear design."""
    X, signal, useful = _chamma(rng, lambda own: own)
    return X, np.maximum(_noisy(signal, rng), 0), useful


def chamma_classes(rng: Generator) -> Table:
    """y is 1 with chance 1 / (1 + exp −Xβ), else 0. Chosen: no noise but that of the classes."""
    X, signal, useful = _chamma(rng, lambda own: own)
    return X, (rng.random(len(X)) < 1 / (1 + np.exp(-signal))).astype(float), useful


def chamma_products(rng: Generator) -> Table:
    """y = products of the pairs of useful columns, weighted, + noise. Chosen: no squares."""
    X, signal, useful = _chamma(rng, products)
    return X, _noisy(signal, rng), useful


def chamma_both(rng: Generator) -> Table:
    """y = Xβ + products + noise. Chosen: all 210 weights from the same set."""
    X, signal, useful = _chamma(rng, lambda own: np.column_stack([own, products(own)]))
    return X, _noisy(signal, rng), useful


# --- Reyero Lobo, Thirion & Neuvial, Semi-knockoffs, ICML 2026 ------------------------------------

SEMI_ROWS, SEMI_COLUMNS, SEMI_USEFUL, TOEPLITZ = 300, 50, 12, 0.6


def toeplitz(innovations: Array) -> Array:
    """Return columns with correlation .6^|i − j|, from independent ones."""
    X = innovations.copy()
    for j in range(1, X.shape[1]):
        X[:, j] = TOEPLITZ * X[:, j - 1] + np.sqrt(1 - TOEPLITZ**2) * innovations[:, j]
    return X


def _normal_chain(rng: Generator) -> Array:
    return toeplitz(rng.normal(size=(SEMI_ROWS, SEMI_COLUMNS)))


def _twelve(rng: Generator) -> NDArray[np.intp]:
    return rng.choice(SEMI_COLUMNS, SEMI_USEFUL, replace=False)


def semi_masked(rng: Generator) -> Table:
    """y = x_j + .5N, and x_{j−1} is replaced by x_j + .1N. Chosen: j at random."""
    X = _normal_chain(rng)
    j = rng.integers(1, SEMI_COLUMNS)
    X[:, j - 1] = X[:, j] + 0.1 * rng.normal(size=SEMI_ROWS)
    return X, X[:, j] + 0.5 * rng.normal(size=SEMI_ROWS), _mask(SEMI_COLUMNS, j)


def semi_cosines(rng: Generator) -> Table:
    """y = Σ cos x over 12 columns + .2N. Chosen: all columns independent, uniform on (−π, π)."""
    X = rng.uniform(-np.pi, np.pi, size=(SEMI_ROWS, SEMI_COLUMNS))
    useful = _twelve(rng)
    y = np.cos(X[:, useful]).sum(axis=1) + 0.2 * rng.normal(size=SEMI_ROWS)
    return X, y, _mask(SEMI_COLUMNS, useful)


def semi_spread(rng: Generator) -> Table:
    """x_j given y ~ N(0, (1 + 1.5·1{y > 0})²). Chosen: y ~ N(0, 1); j at random; no other tie."""
    X, y = _normal_chain(rng), rng.normal(size=SEMI_ROWS)
    j = rng.integers(SEMI_COLUMNS)
    X[:, j] = (1 + 1.5 * (y > 0)) * rng.normal(size=SEMI_ROWS)
    return X, y, _mask(SEMI_COLUMNS, j)


def semi_threshold(rng: Generator) -> Table:
    """y = 1{x'b > 0} + .3N. Chosen: 12 useful columns at random, b ~ N(0, I)."""
    X, useful = _normal_chain(rng), _twelve(rng)
    is_above = X[:, useful] @ rng.normal(size=SEMI_USEFUL) > 0
    return X, is_above + 0.3 * rng.normal(size=SEMI_ROWS), _mask(SEMI_COLUMNS, useful)


def semi_heavy(rng: Generator) -> Table:
    """y = x'b + N, x a chain of t₃ draws. Chosen: the first 12 columns useful, b ~ N(0, I)."""
    X = toeplitz(rng.standard_t(3, size=(SEMI_ROWS, SEMI_COLUMNS)))
    useful = np.arange(SEMI_USEFUL)
    y = X[:, useful] @ rng.normal(size=SEMI_USEFUL) + rng.normal(size=SEMI_ROWS)
    return X, y, _mask(SEMI_COLUMNS, useful)


def cubic_terms(X: Array) -> Array:
    """Return all monomials of degree 1 to 3: 454 of 12 columns."""
    own = range(X.shape[1])
    powers = [c for degree in (1, 2, 3) for c in combinations_with_replacement(own, degree)]
    return np.column_stack([X[:, list(power)].prod(axis=1) for power in powers])


def semi_cubic(rng: Generator) -> Table:
    """y = all monomials of 12 columns to degree 3 + N. Chosen: weights ±1, columns at random."""
    X, useful = _normal_chain(rng), _twelve(rng)
    terms = cubic_terms(X[:, useful])
    y = terms @ rng.choice([-1.0, 1.0], terms.shape[1]) + rng.normal(size=SEMI_ROWS)
    return X, y, _mask(SEMI_COLUMNS, useful)


# --- tests of one x given all of Z --------------------------------------------------------------

ROWS = 500
PCM_COLUMNS = 7


def pcm_wave(rng: Generator, square: float) -> Table:
    """x = sin 2πZ₁ + .1N, y = sin 2πZ₁ + (0 or .2)·x² + N.

    Chosen: n = 500, Z ~ N(0, I₇). A test that knew all regressions would find .2x² in 16% of runs.
    """
    Z = rng.normal(size=(ROWS, PCM_COLUMNS))
    wave = np.sin(2 * np.pi * Z[:, 0])
    x = wave + 0.1 * rng.normal(size=ROWS)
    useful = np.array([square != 0, True, *[False] * (PCM_COLUMNS - 1)])
    return np.column_stack([x, Z]), wave + square * x**2 + rng.normal(size=ROWS), useful


def damped_wave(z: Array, a: float) -> Array:
    return np.exp(-(z**2) / 2) * np.sin(a * z)


def shah_peters(rng: Generator, a: float) -> Table:
    """x = f_a(Z) + N, y = f_a(Z) + N, f_a(z) = exp(−z²/2) sin az. Chosen: n = 500, Z ~ N(0, 1)."""
    z = rng.normal(size=ROWS)
    x, y = (damped_wave(z, a) + rng.normal(size=ROWS) for _ in range(2))
    return np.column_stack([x, z]), y, np.array([False, True])


SHAPES: tuple[Callable[[Array], Array], ...] = (
    lambda s: s,
    np.square,
    lambda s: s**3,
    np.tanh,
    lambda s: np.exp(-np.abs(s)),
)


def post_nonlinear(rng: Generator, n_z: int) -> Table:
    """x = h₁(ΣZ + N), y = h₂(ΣZ + N). Chosen: n = 500, Z ~ N(0, I), h₁ and h₂ drawn every run."""
    Z = rng.normal(size=(ROWS, n_z))
    first, second = (SHAPES[k] for k in rng.integers(len(SHAPES), size=2))
    x, y = (h(Z.sum(axis=1) + rng.normal(size=ROWS)) for h in (first, second))
    return np.column_stack([x, Z]), y, np.array([False, *[True] * n_z])


DOUBLE_ROWS, DOUBLE_COLUMNS, DOUBLE_EFFECT = 1000, 50, 0.45


def double_robust(rng: Generator, b: float) -> Table:
    """x = sin(a'Z + .5N), y = cos(c'Z + bx + .5N), d = 50.

    Chosen: n = 1,000, Z ~ N(0, I), a and c uniform on (0, 1) and divided by their sums, b = .45.
    """
    Z = rng.normal(size=(DOUBLE_ROWS, DOUBLE_COLUMNS))
    a, c = (w / w.sum() for w in rng.random((2, DOUBLE_COLUMNS)))
    x = np.sin(Z @ a + 0.5 * rng.normal(size=DOUBLE_ROWS))
    y = np.cos(Z @ c + b * x + 0.5 * rng.normal(size=DOUBLE_ROWS))
    return np.column_stack([x, Z]), y, np.array([b != 0, *[True] * DOUBLE_COLUMNS])


# --- all of them --------------------------------------------------------------------------------


def _rates(methods: tuple[str, ...], *pairs: tuple[float, float]) -> Rates:
    return dict(zip(methods, pairs, strict=True))


_chamma_rates = partial(_rates, ("CPI-DNN", "d0CRT", "LOCO"))
_semi_rates = partial(_rates, ("dCRT", "HRT", "LOCO"))

DESIGNS = {
    design.name: design
    for design in (
        Design(
            "chamma_linear", "chamma", "Xβ + noise", chamma_linear,
            _chamma_rates((0.027, 0.89), (0.080, 0.80), (0.041, 0.22)),
        ),
        Design(
            "chamma_relu", "chamma", "max(Xβ + noise, 0)", chamma_relu,
            _chamma_rates((0.032, 0.78), (0.049, 0.70), (0.048, 0.14)),
        ),
        Design(
            "chamma_classes", "chamma", "classes, logit Xβ", chamma_classes,
            _chamma_rates((0.034, 0.65), (0.051, 0.64), (0.020, 0.05)),
        ),
        Design(
            "chamma_products", "chamma", "190 products of the 20 + noise", chamma_products,
            _chamma_rates((0.025, 0.93), (0.026, 0.04), (0.039, 0.07)),
        ),
        Design(
            "chamma_both", "chamma", "Xβ + products + noise", chamma_both,
            _chamma_rates((0.024, 0.94), (0.026, 0.16), (0.026, 0.09)),
        ),
        Design(
            "semi_masked", "semi", "y = x_j + .5N, x_{j−1} = x_j + .1N", semi_masked,
            _semi_rates((0.040, 0.40), (0.051, 0.26), (0.048, 0.20)),
        ),
        Design(
            "semi_cosines", "semi", "Σ cos x over 12, x uniform, + .2N", semi_cosines,
            _semi_rates((0.063, 0.07), (0.039, 0.72), (0.029, 0.21)),
        ),
        Design(
            "semi_spread", "semi", "x_j given y ~ N(0, (1 + 1.5·1{y > 0})²)", semi_spread,
            _semi_rates((0.041, 0.10), (0.050, 0.90), (0.053, 0.63)),
        ),
        Design(
            "semi_threshold", "semi", "1{x'b > 0} + .3N", semi_threshold,
            _semi_rates((0.042, 0.46), (0.053, 0.27), (0.058, 0.13)),
        ),
        Design(
            "semi_heavy", "semi", "t₃ columns, linear", semi_heavy,
            _semi_rates((0.030, 0.80), (0.055, 0.55), (0.049, 0.32)),
        ),
        Design(
            "semi_cubic", "semi", "cubic polynomial of 12", semi_cubic,
            _semi_rates((0.045, 0.46), (0.058, 0.27), (0.073, 0.15)),
        ),
        Design(
            "pcm_null", "single", "PCM paper: sin 2πZ₁ in x and y", partial(pcm_wave, square=0.0),
            {}, only_first=True,
        ),
        Design(
            "pcm_alternative", "single", "the same, y with .2x²", partial(pcm_wave, square=0.2),
            {}, only_first=True,
        ),
        *(
            Design(
                f"shah_peters_{a}", "single", f"Shah & Peters, a = {a}",
                partial(shah_peters, a=float(a)), {}, only_first=True,
            )
            for a in (2, 6, 12)
        ),
        *(
            Design(
                f"post_nonlinear_{n_z}", "single", f"post-nonlinear, dim Z = {n_z}",
                partial(post_nonlinear, n_z=n_z), {}, only_first=True,
            )
            for n_z in (1, 5, 20)
        ),
        Design(
            "double_null", "single", "double-robust test, d = 50, b = 0",
            partial(double_robust, b=0.0), {}, only_first=True,
        ),
        Design(
            "double_alternative", "single", f"the same, b = {DOUBLE_EFFECT}",
            partial(double_robust, b=DOUBLE_EFFECT), {}, only_first=True,
        ),
    )
}  # fmt: skip
