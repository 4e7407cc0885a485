"""A model whose truth is known: the law of the features, the regression function, the noise.

Theory, simulation and planning read the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.errors import InputError, did_you_mean, is_whole
from covaria.options.checks import plain, shown, whole
from covaria.randomness import stream

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Curve = Callable[[Array], NDArray[Any]]
MOST_FEATURES, MOST_ROWS, LARGEST_NOISE = 10**6, 10**9, 1e60


def straight(x: Array) -> Array:
    """Return x itself: the curve of a linear term."""
    return x


@dataclass(frozen=True, eq=False)
class Term:
    """One summand of a regression function, and the features that enter it together.

    Parameters
    ----------
    function
        Takes one column where there is one feature or an index, else (n, len(features)).
    features
        Positions from 0, or names.
    weights
        Where given, the function takes the weighted sum of the features (an index).
    growth
        d where |function(x)| grows as |x|^d (0: bounded); needed for heavy-tailed features.

    Examples
    --------
    >>> Term(np.sin, [0])(np.array([[0.0, 1.0]])).tolist()
    [0.0]
    """

    function: Curve
    features: Sequence[int | str]
    weights: Sequence[float] | None = None
    growth: float | None = None

    def __call__(self, X: Array) -> Array:
        """Return the term's value for each row."""
        columns = X[:, _side_by_side([int(j) for j in self.features])]
        if self.weights is not None:
            return np.asarray(self.function(columns @ np.asarray(self.weights, dtype=float)))
        return np.asarray(self.function(columns[:, 0] if len(self.features) == 1 else columns))

    @property
    def is_curve(self) -> bool:
        """Return whether the function takes a single column."""
        return self.weights is not None or len(self.features) == 1


def _side_by_side(at: list[int]) -> slice | list[int]:
    """Return a slice where the columns lie side by side, so that none is copied."""
    whole = list(range(at[0], at[0] + len(at)))
    return slice(at[0], at[0] + len(at)) if at == whole else at


Function = Curve | Mapping[int | str, Curve] | Sequence[object] | Array


@dataclass(frozen=True, eq=False)
class Model:
    """A regression function, the law of its features and the sd of its noise.

    Parameters
    ----------
    function
        Numbers are linear coefficients (of an index, where `link` is given); a list or a
        dictionary of curves is additive; a list may hold `Term` values; one callable takes X whole.
    noise
        The standard deviation of the noise.
    covariance
        Of the features, which are normal with mean zero; the identity where not given.
    n_features
        How many there are; what the function and the covariance tell where not given.
    link
        The curve of the index, for a single-index model.
    df
        Below infinity, the features are independent and t-distributed, of variance one.
    sampler
        Features of any other law: (generator, n_rows) -> (n_rows, n_features).
    conditional
        (generator, X, j) -> fresh x_j given the other columns; theory needs it to go
        with `sampler`, and takes the features as independent where it is the word "independent".
    name
        What studies and tables call it.
    settings
        What it was made with, for those who read a study.

    Examples
    --------
    >>> model = Model(function=[1.0, 0.0, 2.0], noise=0.5)
    >>> model.support
    ['x1', 'x3']
    >>> X, y = model.draw(5, seed=0)
    >>> X.shape
    (5, 3)
    """

    function: Function
    noise: float = 1.0
    covariance: Array | None = field(default=None, repr=False)
    n_features: int = 0
    link: Curve | None = None
    df: float = np.inf
    sampler: Callable[[Generator, int], Array] | None = None
    conditional: Callable[[Generator, Array, int], Array] | str | None = None
    name: str = "model"
    settings: Mapping[str, object] = field(default_factory=dict)
    terms: tuple[Term, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("noise", "n_features", "df"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        width = _width(self.function, self.covariance, self.n_features)
        object.__setattr__(self, "n_features", width)
        _check_noise(self.noise)
        _check_law(self)
        if self.covariance is not None:
            object.__setattr__(self, "covariance", _checked_covariance(self.covariance, width))
        object.__setattr__(self, "terms", _terms(self.function, self.link, self.names))
        _check_values(self)

    @property
    def names(self) -> list[str]:
        return [f"x{j + 1}" for j in range(self.n_features)]

    @property
    def active(self) -> tuple[int, ...]:
        """Return the positions of the features that matter."""
        used: set[int] = set()
        for term in self.terms:
            weights = [1.0] * len(term.features) if term.weights is None else term.weights
            used |= {int(j) for j, w in zip(term.features, weights, strict=True) if w != 0}
        return tuple(sorted(used))

    @property
    def support(self) -> list[str]:
        """Return the features that matter."""
        return [self.names[j] for j in self.active]

    def mean(self, X: Array) -> Array:
        """Return the regression function, E[y given X], for each row."""
        return np.asarray(sum((term(X) for term in self.terms), np.zeros(len(X))))

    def features(self, rng: Generator, n_rows: int) -> Array:
        """Return rows of features."""
        if self.sampler is not None:
            return self.sampler(rng, n_rows)
        shape = (n_rows, self.n_features)
        if self.df < np.inf:
            return np.asarray(rng.standard_t(self.df, shape) * np.sqrt((self.df - 2) / self.df))
        X = rng.standard_normal(shape)
        return X if self.covariance is None else _correlated(X, self.covariance)

    def draw(self, n_rows: int = 1000, *, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
        """Return features and target, the same for the same seed."""
        import pandas as pd

        most = MOST_ROWS // max(1, self.n_features)
        n_rows, seed = whole("n_rows", n_rows, 1, most), whole("seed", seed, 0)
        rng = stream(seed, "draw", self.name, *sorted(self.settings.items()))
        X = self.features(rng, n_rows)
        y = self.mean(X) + self.noise * rng.standard_normal(n_rows)
        return pd.DataFrame(X, columns=self.names), pd.Series(y, name="y")


def _correlated(Z: Array, covariance: Array) -> Array:
    """Return independent normals turned into normals with that covariance."""
    factor = np.linalg.cholesky(covariance)
    X = Z * np.diag(factor)
    # Only the entries that are there: most models correlate a pair or two.
    for row, column in zip(*np.nonzero(np.tril(factor, -1)), strict=True):
        X[:, row] += factor[row, column] * Z[:, column]
    return X


def _width(function: Function, covariance: Array | None, n_features: int) -> int:
    """Return the number of features: what was said, or the least that the parts need."""
    if not is_whole(n_features) or not 0 <= n_features <= MOST_FEATURES:
        raise InputError(f"n_features={shown(n_features)} must be a whole number above 0.")
    if n_features:
        return int(n_features)
    if covariance is not None:
        return len(np.atleast_1d(np.asarray(covariance)))
    if isinstance(function, Sequence | np.ndarray) and not any(
        isinstance(part, Term) for part in function
    ):
        return len(function)
    raise InputError("The number of features is not known. Give covariance= or n_features=.")


def _check_noise(noise: object) -> None:
    if not isinstance(noise, (int, float)) or not 0 < noise < LARGEST_NOISE:
        raise InputError(
            f"noise={shown(noise)} must be a number above 0: the noise's standard deviation."
        )


def _check_law(model: Model) -> None:
    if not isinstance(model.df, (int, float)) or not model.df > 2:
        raise InputError(f"df={shown(model.df)} must be above 2, or the features have no variance.")
    given = [model.covariance is not None, np.isfinite(model.df), model.sampler is not None]
    if sum(given) > 1:
        raise InputError("Give one law of the features: covariance=, df= or sampler=, not two.")
    if model.conditional is not None and model.sampler is None:
        raise InputError("conditional= goes with sampler=. Leave it out, or give both.")
    if isinstance(model.conditional, str) and model.conditional != "independent":
        raise InputError(f"conditional={model.conditional!r} must be 'independent' or a function.")


def _checked_covariance(covariance: object, width: int) -> Array:
    try:
        matrix = np.array(covariance, dtype=float)
    except (TypeError, ValueError):
        raise InputError("covariance is not a matrix of numbers. Give a square one.") from None
    if matrix.shape != (width, width):
        raise InputError(f"covariance has shape {matrix.shape}; it must be ({width}, {width}).")
    if not np.isfinite(matrix).all():
        raise InputError("covariance has values that are not finite. Replace them.")
    scale = np.abs(matrix).max()
    if np.abs(matrix - matrix.T).max() > 1e-10 * scale:
        raise InputError("covariance is not symmetric. Use (C + C.T) / 2.")
    if np.linalg.eigvalsh(matrix)[0] <= 1e-12 * scale:
        raise InputError(
            "covariance is not positive definite: a feature repeats others. "
            "Lower the correlations or drop that feature."
        )
    matrix.setflags(write=False)
    return matrix


def _terms(function: Function, link: Curve | None, names: list[str]) -> tuple[Term, ...]:
    """Return the regression function as a sum of terms with features by position."""
    if callable(function):
        _refuse_link(link)
        return (Term(_of_table(function, len(names)), tuple(range(len(names)))),)
    if isinstance(function, Mapping):
        _refuse_link(link)
        given = [Term(curve, (feature,)) for feature, curve in function.items()]
        return tuple(_placed(term, names) for term in given)
    parts = list(function)
    if not any(callable(part) for part in parts):
        return (_weighted(parts, link, names),)
    _refuse_link(link)
    if not all(callable(part) for part in parts):
        raise InputError("function mixes numbers and curves. Write b * x as `lambda x: b * x`.")
    given = [p if isinstance(p, Term) else Term(p, (j,)) for j, p in enumerate(parts)]
    return tuple(_placed(term, names) for term in given)


def _of_table(function: Curve, width: int) -> Curve:
    """Return a function of all of X; a single column is still a table to it."""
    return function if width > 1 else lambda x: function(x[:, None])


def _refuse_link(link: Curve | None) -> None:
    if link is not None:
        raise InputError("link= needs function= to be the coefficients of the index.")


def _weighted(parts: list[object], link: Curve | None, names: list[str]) -> Term:
    try:
        beta = np.array(parts, dtype=float)
    except (TypeError, ValueError):
        raise InputError("function is neither numbers nor curves. Give one kind.") from None
    if beta.ndim != 1 or not np.isfinite(beta).all():
        raise InputError("The coefficients must be a flat list of finite numbers.")
    if len(beta) > len(names):
        raise InputError(f"There are {len(beta)} coefficients for {len(names)} features.")
    growth = 1.0 if link is None else None
    return Term(link or straight, tuple(range(len(beta))), tuple(beta.tolist()), growth)


def _placed(term: Term, names: list[str]) -> Term:
    """Return the term with its features as positions, checked."""
    if not callable(term.function):
        raise InputError(f"The curve of {list(term.features)} cannot be called. Give a function.")
    at = []
    for feature in term.features:
        if isinstance(feature, str):
            if feature not in names:
                raise InputError(f"There is no feature '{feature}'.{did_you_mean(feature, names)}")
            feature = names.index(feature)
        if not (is_whole(feature) and 0 <= feature < len(names)):
            raise InputError(f"Feature {feature!r} is not among the {len(names)} (from 0).")
        at.append(int(feature))
    if not at or len(set(at)) < len(at):
        raise InputError(f"A term needs features, each once; it has {list(term.features)}.")
    if term.weights is not None and len(term.weights) != len(at):
        raise InputError(f"A term has {len(term.weights)} weights for {len(at)} features.")
    return replace(term, features=tuple(at))


def _check_values(model: Model) -> None:
    """Try three rows, so that a function of the wrong shape is found here and not later."""
    X = model.features(stream(0, "model"), 3)
    if X.shape != (3, model.n_features):
        raise InputError(f"sampler gave {X.shape} for 3 rows of {model.n_features} features.")
    for term in model.terms:
        try:
            with np.errstate(all="ignore"):
                value = term(X)
        except Exception as error:
            where = [model.names[int(j)] for j in term.features]
            raise InputError(f"The function of {where} fails on 3 rows: {error}") from error
        if value.shape != (3,):
            raise InputError(f"A function gave shape {value.shape} for 3 rows. Return one a row.")
        if not np.isfinite(value).all():
            raise InputError("A function is not finite where the features lie. Mend its domain.")
