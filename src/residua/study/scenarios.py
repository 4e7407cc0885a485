"""The paper's simulation models (a) to (f), as values that can be drawn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from residua.errors import InputError, did_you_mean
from residua.randomness import stream

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scenario:
    """A regression function, the law of its features and the sd of its noise."""

    name: str
    mean: Callable[[Array], Array]
    features: Callable[[Generator, int], Array]
    active: tuple[int, ...]
    n_features: int = 20
    noise: float = 0.1
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [f"x{j + 1}" for j in range(self.n_features)]

    @property
    def support(self) -> list[str]:
        """Return the features that matter."""
        return [self.names[j] for j in self.active]

    def draw(self, n_rows: int = 1000, *, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
        """Return features and target, the same for the same seed."""
        import pandas as pd

        rng = stream(seed, "draw", self.name, *sorted(self.settings.items()))
        X = self.features(rng, n_rows)
        y = self.mean(X) + self.noise * rng.standard_normal(n_rows)
        return pd.DataFrame(X, columns=self.names), pd.Series(y, name="y")


def draw(name: str, *, n_rows: int = 1000, seed: int = 0, **settings: Any) -> Any:
    """Return features and target drawn from one of the paper's models.

    >>> X, y = draw("additive", n_rows=100, seed=0)
    >>> X.shape, y.shape
    ((100, 20), (100,))
    """
    return scenario(name, **settings).draw(n_rows, seed=seed)


def scenario(name: str, **settings: Any) -> Scenario:
    """Return one of the paper's models by its name or its letter, with its settings.

    >>> scenario("f", df=3).support
    ['x1', 'x2', 'x3', 'x4', 'x5']
    """
    full = dict(zip("abcdef", SCENARIOS, strict=True)).get(name, name)
    if full not in SCENARIOS:
        raise InputError(f"There is no scenario '{name}'.{did_you_mean(name, SCENARIOS)}")
    try:
        return SCENARIOS[full](**settings)
    except TypeError:
        raise InputError(f"Scenario '{full}' does not take {', '.join(settings)}.") from None


def _gaussian(n_features: int, pairs: dict[int, float] | None = None) -> Any:
    """Return a sampler of standard normals; a pair (j: r) gives x_{j+1} correlation r with x_j."""

    def features(rng: Generator, n_rows: int) -> Array:
        X = rng.standard_normal((n_rows, n_features))
        for j, r in (pairs or {}).items():
            X[:, j + 1] = r * X[:, j] + np.sqrt(1 - r**2) * X[:, j + 1]
        return X

    return features


def _copied(block: Callable[[Array], Array], copies: int) -> Callable[[Array], Array]:
    """Return the sum of a function of 8 features over that many blocks of 8."""

    def mean(X: Array) -> Array:
        return np.asarray(sum(block(X[:, 8 * c : 8 * c + 8]) for c in range(copies)))

    return mean


def _check_width(n_features: int, needed: int) -> None:
    if n_features < needed:
        raise InputError(f"n_features={n_features} is too few: this scenario uses {needed}.")


def linear(*, copies: int = 1, n_features: int = 20, noise: float = 0.1) -> Scenario:
    """Return model (a)."""
    _check_width(n_features, 8 * copies)
    beta = np.array([0.01, 0.1, 1, 1, 1.5, 2, 3, 4])
    pairs = {8 * c + 2: 0.5 for c in range(copies)}
    return Scenario(
        "linear",
        _copied(lambda Z: Z @ beta, copies),
        _gaussian(n_features, pairs),
        tuple(range(8 * copies)),
        n_features,
        noise,
        {"copies": copies, "n_features": n_features, "noise": noise},
    )


def additive(*, copies: int = 1, n_features: int = 20, noise: float = 0.1) -> Scenario:
    """Return model (b)."""
    _check_width(n_features, 8 * copies)
    return Scenario(
        "additive",
        _copied(lambda Z: np.sum([f(Z[:, j]) for j, f in enumerate(CURVES)], axis=0), copies),
        _gaussian(n_features),
        tuple(range(8 * copies)),
        n_features,
        noise,
        {"copies": copies, "n_features": n_features, "noise": noise},
    )


CURVES: tuple[Callable[[Array], Array], ...] = (
    lambda x: 2 * x**2,
    lambda x: 2 * np.cos(4 * x),
    np.sin,
    lambda x: np.exp(x / 3),
    lambda x: 3 * x,
    lambda x: x**3,
    lambda x: 5 * x,
    lambda x: np.maximum(0.0, x),
)


def interaction(*, n_features: int = 20, noise: float = 0.1) -> Scenario:
    """Return model (c)."""
    _check_width(n_features, 8)

    def mean(X: Array) -> Array:
        x1, x2, x3, x4, x5, x6, x7, x8 = X[:, :8].T
        joint = 3 * x1 * x2 + np.cos(x3 + x4) + x6 * x7 * x8
        return np.asarray(2 * np.sin(x1) + np.log(np.abs(x2) + 1) + x5**3 + joint)

    settings = {"n_features": n_features, "noise": noise}
    return Scenario(
        "interaction", mean, _gaussian(n_features), tuple(range(8)), n_features, noise, settings
    )


def single_index(*, link: str = "sigmoid", n_features: int = 20, noise: float = 0.1) -> Scenario:
    """Return model (d), with the sigmoid or the Gaussian link."""
    _check_width(n_features, 8)
    if link not in ("sigmoid", "gaussian"):
        raise InputError(f"link={link!r} is not known. Use 'sigmoid' or 'gaussian'.")
    beta = np.array([6, 5, 4, 3, 2, 1, 0.5, 0.1])

    def mean(X: Array) -> Array:
        from scipy.special import expit

        index = X[:, :8] @ beta
        return np.asarray(expit(index) if link == "sigmoid" else np.exp(-(index**2)))

    settings = {"link": link, "n_features": n_features, "noise": noise}
    return Scenario(
        "single_index",
        mean,
        _gaussian(n_features, {0: 0.5}),
        tuple(range(8)),
        n_features,
        noise,
        settings,
    )


def surrogate(
    *, rho: float = 0.5, beta: float = 1.0, n_features: int = 20, noise: float = 1.0
) -> Scenario:
    """Return model (e): x2 only stands in for x1. The paper leaves beta open; 1 is our choice."""
    _check_width(n_features, 5)
    if not -1 <= rho <= 1:
        raise InputError(f"rho={rho} must lie between -1 and 1.")

    def mean(X: Array) -> Array:
        x1, _, x3, x4, x5 = X[:, :5].T
        return np.asarray(beta * x1 + 0.05 * (x3 * x4**2 + x4 * x3**2) + x5)

    settings = {"rho": rho, "beta": beta, "n_features": n_features, "noise": noise}
    features = _gaussian(n_features, {0: rho})
    return Scenario("surrogate", mean, features, (0, 2, 3, 4), n_features, noise, settings)


def heavy_tails(
    *, df: float = 5.0, beta: float = 1.0, n_features: int = 20, noise: float = 1.0
) -> Scenario:
    """Return model (f): t-distributed features of variance one. beta = 1 is our choice."""
    _check_width(n_features, 5)
    if not df > 2:
        raise InputError(f"df={df} must be above 2, or the features have no variance.")

    def mean(X: Array) -> Array:
        x1, x2, x3, x4, x5 = X[:, :5].T
        return np.asarray(beta * x1 + 1.5 * np.sin(x2) + 2 * (x3 > 0) + np.tanh(x4) + 0.6 * x5**3)

    def features(rng: Generator, n_rows: int) -> Array:
        if np.isinf(df):
            return rng.standard_normal((n_rows, n_features))
        return np.asarray(rng.standard_t(df, (n_rows, n_features)) * np.sqrt((df - 2) / df))

    settings = {"df": df, "beta": beta, "n_features": n_features, "noise": noise}
    return Scenario("heavy_tails", mean, features, tuple(range(5)), n_features, noise, settings)


SCENARIOS: dict[str, Callable[..., Scenario]] = {
    "linear": linear,
    "additive": additive,
    "interaction": interaction,
    "single_index": single_index,
    "surrogate": surrogate,
    "heavy_tails": heavy_tails,
}
