"""Tables in which one feature says nothing about y given the rest: hard nulls for validity.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Array = NDArray[np.float64]
Table = tuple[Array, Array]

# The tested feature is the first; z₁ and z₂ come next; the rest are noise.
N_FEATURES = 7


def _table(x: Array, rest: Array, y: Array) -> Table:
    return np.column_stack([x, rest]), y


def independent(n: int, rng: Generator) -> Table:
    """Nothing depends on anything but y on z."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    return _table(rng.normal(size=n), z, z[:, 0] + np.sin(2 * z[:, 1]) + rng.normal(size=n))


def autoregressive(n: int, rng: Generator) -> Table:
    """A chain of features with correlation .7; the tested one stands between two useful ones."""
    e = rng.normal(size=(n, N_FEATURES))
    for j in range(1, N_FEATURES):
        e[:, j] = 0.7 * e[:, j - 1] + np.sqrt(1 - 0.7**2) * e[:, j]
    X = e[:, [3, 2, 4, 0, 1, 5, 6]]
    return X, X[:, 1] + np.abs(X[:, 2]) + rng.normal(size=n)


def smooth(n: int, rng: Generator) -> Table:
    """x and y follow the same smooth curve of z."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    x = np.sin(z[:, 0]) + 0.5 * rng.normal(size=n)
    return _table(x, z, np.sin(z[:, 0]) + rng.normal(size=n))


def wiggly(n: int, rng: Generator) -> Table:
    """x and y follow sin 2πz with z on [-1, 1]; x has little noise of its own."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    z[:, 0] = rng.uniform(-1, 1, n)
    curve = np.sin(2 * np.pi * z[:, 0])
    return _table(curve + 0.1 * rng.normal(size=n), z, curve + rng.normal(size=n))


def very_wiggly(n: int, rng: Generator) -> Table:
    """The same with a normal z: some six waves."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    curve = np.sin(2 * np.pi * z[:, 0])
    return _table(curve + 0.1 * rng.normal(size=n), z, curve + rng.normal(size=n))


def interaction(n: int, rng: Generator) -> Table:
    """x and y follow the product of two others."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    product = z[:, 0] * z[:, 1]
    return _table(product + 0.5 * rng.normal(size=n), z, product + rng.normal(size=n))


def heavy_tailed(n: int, rng: Generator) -> Table:
    """x and y follow z with errors of a t distribution with 3 degrees of freedom."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    return _table(z[:, 0] + rng.standard_t(3, n), z, z[:, 0] + rng.standard_t(3, n))


def heteroscedastic(n: int, rng: Generator) -> Table:
    """x and y follow z with errors that grow with it."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    size = np.abs(z[:, 0])
    return _table(z[:, 0] + size * rng.normal(size=n), z, z[:, 0] + size * rng.normal(size=n))


def binary_x(n: int, rng: Generator) -> Table:
    """x is 0 or 1 with a chance that follows z, as y does."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    x = (rng.random(n) < 1 / (1 + np.exp(-3 * np.sin(z[:, 0])))).astype(float)
    return _table(x, z, np.sin(z[:, 0]) + rng.normal(size=n))


def binary_y(n: int, rng: Generator) -> Table:
    """y is 0 or 1 with a chance that follows z, as x does."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    y = (rng.random(n) < 1 / (1 + np.exp(-3 * np.sin(z[:, 0])))).astype(float)
    return _table(np.sin(z[:, 0]) + 0.5 * rng.normal(size=n), z, y)


# --- others of the same kind --------------------------------------------------------------------


def step(n: int, rng: Generator) -> Table:
    """x and y jump together."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    jump = (z[:, 0] > 0.3).astype(float)
    return _table(jump + 0.3 * rng.normal(size=n), z, 2 * jump + rng.normal(size=n))


def bump(n: int, rng: Generator) -> Table:
    """x and y rise where z is near zero."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    hill = 2 * np.exp(-4 * z[:, 0] ** 2)
    return _table(hill + 0.3 * rng.normal(size=n), z, hill + rng.normal(size=n))


def waves(n: int, rng: Generator) -> Table:
    """x and y follow cos 3πz with z on [-1, 1]."""
    z = rng.uniform(-1, 1, size=(n, N_FEATURES - 1))
    curve = np.cos(3 * np.pi * z[:, 0])
    return _table(curve + 0.2 * rng.normal(size=n), z, curve + rng.normal(size=n))


def two_curves(n: int, rng: Generator) -> Table:
    """x and y follow the same sum of two curves."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    curve = np.sin(2 * z[:, 0]) + np.abs(z[:, 1])
    return _table(curve + 0.4 * rng.normal(size=n), z, curve + rng.normal(size=n))


def correlated_product(n: int, rng: Generator) -> Table:
    """x and y follow the product of two others that go together."""
    z = np.sqrt(0.4) * rng.normal(size=(n, N_FEATURES - 1)) + np.sqrt(0.6) * rng.normal(size=(n, 1))
    product = z[:, 0] * z[:, 1]
    return _table(product + 0.5 * rng.normal(size=n), z, product + rng.normal(size=n))


def gate(n: int, rng: Generator) -> Table:
    """x and y follow z₁ where z₂ is positive."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    gated = z[:, 0] * (z[:, 1] > 0)
    return _table(gated + 0.5 * rng.normal(size=n), z, gated + rng.normal(size=n))


def counts(n: int, rng: Generator) -> Table:
    """x counts events at a rate that follows z, as y does."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    x = rng.poisson(np.exp(np.sin(z[:, 0]))).astype(float)
    return _table(x, z, np.sin(z[:, 0]) + rng.normal(size=n))


def skewed(n: int, rng: Generator) -> Table:
    """x and y follow the logarithm of a skewed z."""
    z = np.exp(rng.normal(size=(n, N_FEATURES - 1)))
    curve = np.log(z[:, 0])
    return _table(curve + 0.5 * rng.normal(size=n), z, curve + rng.normal(size=n))


def kink(n: int, rng: Generator) -> Table:
    """x and y follow the absolute value of z."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    return _table(
        np.abs(z[:, 0]) + 0.3 * rng.normal(size=n), z, np.abs(z[:, 0]) + rng.normal(size=n)
    )


def larger(n: int, rng: Generator) -> Table:
    """x and y follow the larger of two others."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    top = np.maximum(z[:, 0], z[:, 1])
    return _table(top + 0.4 * rng.normal(size=n), z, top + rng.normal(size=n))


def chirp(n: int, rng: Generator) -> Table:
    """x and y follow waves that get shorter."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    z[:, 0] = rng.uniform(0, 2, n)
    curve = np.sin(np.pi * z[:, 0] ** 2)
    return _table(curve + 0.2 * rng.normal(size=n), z, curve + rng.normal(size=n))


def ridge_wave(n: int, rng: Generator) -> Table:
    """x and y follow a wave of the sum of two others."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    curve = np.sin(1.5 * (z[:, 0] + z[:, 1]))
    return _table(curve + 0.3 * rng.normal(size=n), z, curve + rng.normal(size=n))


def radius(n: int, rng: Generator) -> Table:
    """x and y follow the distance of two others from the middle."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    far = np.hypot(z[:, 0], z[:, 1])
    return _table(far + 0.3 * rng.normal(size=n), z, far + rng.normal(size=n))


def two_classes(n: int, rng: Generator) -> Table:
    """x and y are 0 or 1, each with a chance that follows a product of two others."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    chance = 1 / (1 + np.exp(-2 * z[:, 0] * z[:, 1]))
    x, y = ((rng.random(n) < chance).astype(float) for _ in range(2))
    return _table(x, z, y)


def lopsided(n: int, rng: Generator) -> Table:
    """x and y follow z with skewed errors that grow with it."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    size = np.exp(0.5 * z[:, 0])
    x = np.sin(z[:, 0]) + size * (rng.exponential(size=n) - 1)
    return _table(x, z, np.sin(z[:, 0]) + size * (rng.exponential(size=n) - 1))


def among_many(n: int, rng: Generator) -> Table:
    """x and y follow a curve of one of twenty others that go together."""
    z = np.sqrt(0.5) * rng.normal(size=(n, 20)) + np.sqrt(0.5) * rng.normal(size=(n, 1))
    curve = np.sin(2 * z[:, 0])
    return _table(curve + 0.3 * rng.normal(size=n), z, curve + rng.normal(size=n))


# --- written before they were run; the first three have been looked at since --------------------


def index_of_three(n: int, rng: Generator) -> Table:
    """x and y follow a bent function of the sum of three others."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    curve = np.tanh(z[:, :3].sum(axis=1))
    return _table(curve + 0.3 * rng.normal(size=n), z, curve + rng.normal(size=n))


def middle(n: int, rng: Generator) -> Table:
    """x and y follow the middle one of three others."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    curve = np.median(z[:, :3], axis=1)
    return _table(curve + 0.3 * rng.normal(size=n), z, curve + rng.normal(size=n))


def switched(n: int, rng: Generator) -> Table:
    """x and y follow a wave that another column of 0 and 1 switches on."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    z[:, 1] = rng.integers(0, 2, n)
    curve = z[:, 1] * np.sin(2 * z[:, 0])
    return _table(curve + 0.3 * rng.normal(size=n), z, curve + rng.normal(size=n))


def sawtooth(n: int, rng: Generator) -> Table:
    """x and y rise and fall back, three times."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    z[:, 0] = rng.uniform(0, 3, n)
    curve = 2 * (z[:, 0] % 1)
    return _table(curve + 0.3 * rng.normal(size=n), z, curve + rng.normal(size=n))


def apart(n: int, rng: Generator) -> Table:
    """x and y follow the distance between two of a chain of others."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    for j in range(1, N_FEATURES - 1):
        z[:, j] = 0.7 * z[:, j - 1] + np.sqrt(1 - 0.7**2) * z[:, j]
    curve = np.abs(z[:, 0] - z[:, 1])
    return _table(curve + 0.3 * rng.normal(size=n), z, curve + rng.normal(size=n))


def counted(n: int, rng: Generator) -> Table:
    """y counts events at a rate that follows z, as x does."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    curve = np.sin(2 * z[:, 0])
    return _table(curve + 0.3 * rng.normal(size=n), z, rng.poisson(np.exp(curve)).astype(float))


def product_and_curve(n: int, rng: Generator) -> Table:
    """x and y follow a product of two others and a curve of a third."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    curve = z[:, 0] * z[:, 1] + np.sin(2 * z[:, 2])
    return _table(curve + 0.5 * rng.normal(size=n), z, curve + rng.normal(size=n))


def unlike(n: int, rng: Generator) -> Table:
    """x and y follow different functions of the same two others."""
    z = rng.normal(size=(n, N_FEATURES - 1))
    x = np.exp(-(z[:, 0] ** 2) - z[:, 1] ** 2)
    return _table(
        2 * x + 0.3 * rng.normal(size=n), z, -np.hypot(z[:, 0], z[:, 1]) + rng.normal(size=n)
    )


Null = Callable[[int, Generator], Table]
FRESH: dict[str, Null] = {
    f.__name__: f
    for f in (
        index_of_three,
        middle,
        sawtooth,
        switched,
        apart,
        counted,
        product_and_curve,
        unlike,
    )
}
OTHERS: dict[str, Null] = {
    f.__name__: f
    for f in (
        step,
        bump,
        waves,
        two_curves,
        correlated_product,
        gate,
        counts,
        skewed,
        kink,
        larger,
        chirp,
        ridge_wave,
        radius,
        two_classes,
        lopsided,
        among_many,
    )
}
NULLS: dict[str, Null] = {
    f.__name__: f
    for f in (
        independent,
        autoregressive,
        smooth,
        wiggly,
        very_wiggly,
        interaction,
        heavy_tailed,
        heteroscedastic,
        binary_x,
        binary_y,
    )
}
