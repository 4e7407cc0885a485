"""The paper's simulation models (a) to (f), as values that can be drawn from."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.errors import InputError, did_you_mean, is_whole, short, text_of
from covaria.options.checks import LARGEST_WHOLE, plain_all, shown
from covaria.simulation.model import Curve, Model, Term, straight

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
# Most scenarios have a matrix of all pairs of features.
MOST_FEATURES = 5_000


def draw(
    name: str, *, n_rows: int = 1000, seed: int = 0, **settings: Any
) -> tuple[pd.DataFrame, pd.Series]:
    """Return features and target drawn from one of the paper's models.

    >>> X, y = draw("additive", n_rows=100, seed=0)
    >>> X.shape, y.shape
    ((100, 20), (100,))
    """
    return scenario(name, **settings).draw(n_rows, seed=seed)


def scenario(name: str, **settings: object) -> Model:
    """Return one of the paper's models by its name or its letter, with its settings.

    >>> scenario("f", df=3).support
    ['x1', 'x2', 'x3', 'x4', 'x5']
    """
    name, settings = text_of(name), plain_all(settings)
    full = LETTERS.get(name, name)
    if full not in SCENARIOS:
        raise InputError(f"There is no scenario '{short(name)}'.{did_you_mean(name, SCENARIOS)}")
    make = SCENARIOS[full]
    _check_settings(full, make, settings)
    model = make(**settings)
    if not isinstance(model, Model):
        raise InputError(f"Scenario '{full}' made a {type(model).__name__}. Return a Model.")
    return model


def add_scenario(name: str, make: Callable[..., Model]) -> None:
    """Make a scenario of your own known by its name, for `scenario`, `draw` and studies.

    >>> add_scenario("tiny", lambda noise=1.0: Model([1.0, 0.0], noise=noise, name="tiny"))
    >>> scenario("tiny", noise=0.5).support
    ['x1']
    """
    if not isinstance(name, str) or not name or name in LETTERS or name in LETTERS.values():
        raise InputError(f"The name {name!r} is taken or empty. Choose another for your scenario.")
    if not callable(make):
        raise InputError(f"Scenario '{name}' needs a function that returns a Model.")
    SCENARIOS[name] = make


def _check_settings(name: str, make: Callable[..., Model], settings: dict[str, object]) -> None:
    """Raise a sentence where a scenario has no such setting, or where one is not a number."""
    taken = signature(make).parameters
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in taken.values()):
        return
    for setting, value in settings.items():
        if setting not in taken:
            hint = did_you_mean(setting, taken) if taken else " It has none."
            raise InputError(f"Scenario '{name}' has no setting '{short(setting)}'.{hint}")
        default = taken[setting].default
        if isinstance(default, int | float) and not _is_number(value, whole=is_whole(default)):
            kind = "a whole number" if is_whole(default) else "a number"
            raise InputError(f"{setting}={shown(value)} of scenario '{name}' must be {kind}.")
        if isinstance(default, str) and not isinstance(value, str):
            raise InputError(f"{setting}={shown(value)} of scenario '{name}' must be a text.")


def _is_number(value: object, *, whole: bool) -> bool:
    if whole:
        return is_whole(value) and abs(value) <= LARGEST_WHOLE
    return isinstance(value, Real) and not isinstance(value, bool)


def _pairs(n_features: int, pairs: dict[int, float]) -> Array:
    """Return the identity with correlation r between x_j and x_{j+1} for each pair (j: r)."""
    covariance = np.eye(n_features)
    for j, r in pairs.items():
        covariance[j, j + 1] = covariance[j + 1, j] = r
    return covariance


def _check_width(n_features: int, needed: int) -> None:
    if n_features < needed:
        raise InputError(f"n_features={n_features} is too few: this scenario uses {needed}.")
    if n_features > MOST_FEATURES:
        raise InputError(
            f"n_features={short(str(n_features))} is too many: {MOST_FEATURES:,} at most."
        )


def linear(*, copies: int = 1, n_features: int = 20, noise: float = 0.1) -> Model:
    """Return model (a)."""
    _check_width(n_features, 8 * copies)
    beta = (0.01, 0.1, 1, 1, 1.5, 2, 3, 4)
    return Model(
        [Term(straight, range(8 * c, 8 * c + 8), beta, growth=1) for c in range(copies)],
        noise=noise,
        covariance=_pairs(n_features, {8 * c + 2: 0.5 for c in range(copies)}),
        name="linear",
        settings={"copies": copies, "n_features": n_features, "noise": noise},
    )


def additive(*, copies: int = 1, n_features: int = 20, noise: float = 0.1) -> Model:
    """Return model (b)."""
    _check_width(n_features, 8 * copies)
    return Model(
        {8 * c + j: curve for c in range(copies) for j, curve in enumerate(CURVES)},
        noise=noise,
        n_features=n_features,
        name="additive",
        settings={"copies": copies, "n_features": n_features, "noise": noise},
    )


CURVES: tuple[Curve, ...] = (
    lambda x: 2 * x**2,
    lambda x: 2 * np.cos(4 * x),
    np.sin,
    lambda x: np.exp(x / 3),
    lambda x: 3 * x,
    lambda x: x**3,
    lambda x: 5 * x,
    lambda x: np.maximum(0.0, x),
)


def interaction(*, n_features: int = 20, noise: float = 0.1) -> Model:
    """Return model (c)."""
    _check_width(n_features, 8)
    return Model(
        [
            Term(lambda x: 2 * np.sin(x), [0]),
            Term(lambda x: np.log(np.abs(x) + 1), [1]),
            Term(lambda x: x**3, [4]),
            Term(lambda Z: 3 * Z[:, 0] * Z[:, 1], [0, 1]),
            Term(np.cos, [2, 3], weights=[1, 1]),
            Term(lambda Z: Z[:, 0] * Z[:, 1] * Z[:, 2], [5, 6, 7]),
        ],
        noise=noise,
        n_features=n_features,
        name="interaction",
        settings={"n_features": n_features, "noise": noise},
    )


def single_index(*, link: str = "sigmoid", n_features: int = 20, noise: float = 0.1) -> Model:
    """Return model (d), with the sigmoid or the Gaussian link."""
    _check_width(n_features, 8)
    if link not in LINKS:
        raise InputError(f"link={short(repr(link))} is not known. Use 'sigmoid' or 'gaussian'.")
    return Model(
        (6, 5, 4, 3, 2, 1, 0.5, 0.1),
        link=LINKS[link],
        noise=noise,
        covariance=_pairs(n_features, {0: 0.5}),
        name="single_index",
        settings={"link": link, "n_features": n_features, "noise": noise},
    )


def _sigmoid(index: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(index))


LINKS: dict[str, Curve] = {"sigmoid": _sigmoid, "gaussian": lambda index: np.exp(-(index**2))}


def surrogate(
    *, rho: float = 0.5, beta: float = 1.0, n_features: int = 20, noise: float = 1.0
) -> Model:
    """Return model (e): x2 only stands in for x1. The paper leaves beta open; 1 is our choice."""
    _check_width(n_features, 5)
    if not -1 <= rho <= 1:
        raise InputError(f"rho={rho} must lie between -1 and 1.")
    # At rho = ±1 x2 repeats x1: there is a table to draw, but no covariance to invert.
    repeats = abs(rho) == 1
    return Model(
        [
            Term(straight, [0, 4], weights=[beta, 1.0], growth=1),
            Term(lambda Z: 0.05 * (Z[:, 0] * Z[:, 1] ** 2 + Z[:, 1] * Z[:, 0] ** 2), [2, 3]),
        ],
        noise=noise,
        covariance=None if repeats else _pairs(n_features, {0: rho}),
        sampler=_repeating(rho, n_features) if repeats else None,
        n_features=n_features,
        name="surrogate",
        settings={"rho": rho, "beta": beta, "n_features": n_features, "noise": noise},
    )


def _repeating(rho: float, n_features: int) -> Callable[[Generator, int], Array]:
    """Return a sampler of normals in which x2 is x1, or minus x1."""

    def features(rng: Generator, n_rows: int) -> Array:
        X = rng.standard_normal((n_rows, n_features))
        X[:, 1] = rho * X[:, 0]
        return X

    return features


def heavy_tails(
    *, df: float = 5.0, beta: float = 1.0, n_features: int = 20, noise: float = 1.0
) -> Model:
    """Return model (f): t-distributed features of variance one. beta = 1 is our choice."""
    _check_width(n_features, 5)
    return Model(
        [
            Term(straight, [0], weights=[beta], growth=1),
            Term(lambda x: 1.5 * np.sin(x), [1], growth=0),
            Term(lambda x: 2.0 * (x > 0), [2], growth=0),
            Term(np.tanh, [3], growth=0),
            Term(lambda x: 0.6 * x**3, [4], growth=3),
        ],
        noise=noise,
        df=df,
        n_features=n_features,
        name="heavy_tails",
        settings={"df": df, "beta": beta, "n_features": n_features, "noise": noise},
    )


SCENARIOS: dict[str, Callable[..., Model]] = {
    "linear": linear,
    "additive": additive,
    "interaction": interaction,
    "single_index": single_index,
    "surrogate": surrogate,
    "heavy_tails": heavy_tails,
}
LETTERS = dict(zip("abcdef", SCENARIOS, strict=True))
