"""The lasso as R's glmnet computes it: its path, its cross-validation, its choice of features.

Tibshirani, "Regression shrinkage and selection via the lasso", JRSS B 58 (1996); Friedman, Hastie
and Tibshirani, "Regularization paths for generalized linear models via coordinate descent",
Journal of Statistical Software 33 (2010).

Columns have mean 0 and variance 1 (divisor n), weights sum to one, and coefficients b make

    ½ Σ w (y − a − x'b)² + λ Σ |b|    or for two classes    −Σ w log P(y) + λ Σ |b|

small; `lasso_solver` does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.errors import InputError, did_you_mean, is_whole, plural, short
from covaria.methods.choice import Choice
from covaria.methods.lasso_solver import (
    PROBABILITY_CUT,
    Columns,
    Numbers,
    Path,
    Problem,
    TwoClasses,
    interpolated,
    probability,
)
from covaria.tables.arrays import Rows
from covaria.tables.dataset import Dataset
from covaria.tables.layout import is_constant

Array = NDArray[np.float64]

RULES = ("1se", "min")
FAMILIES = ("gaussian", "binomial")
MIN_FOLDS = 3

# glmnet's: how deep the path goes.
DEPTH, DEPTH_WIDE = 1e-4, 1e-2
# cv.glmnet's: smaller folds are not averaged one by one.
SMALLEST_FOLD = 3
# A correlation this small is rounding.
NO_CORRELATION = 1e-12


@dataclass(frozen=True)
class CrossValidated:
    """The path of all rows, and what each of its lambdas costs on rows it was not fitted to."""

    path: Path
    error: Array
    spread: Array
    lambda_min: float
    lambda_1se: float

    def coef(self, rule: str = "1se") -> Array:
        """Return the coefficients at the lambda of least error ("min"), or at the largest within
        one standard error of it ("1se")."""
        return np.asarray(self.path.coefs[self.path.lambdas == self.chosen(rule)][0])

    def chosen(self, rule: str = "1se") -> float:
        """Return the lambda of a rule."""
        _check_rule(rule)
        return self.lambda_1se if rule == "1se" else self.lambda_min


def lasso_path(
    X: Array,
    y: Array,
    *,
    weights: Array | None = None,
    lambdas: Array | None = None,
    n_lambdas: int = 100,
    family: str = "gaussian",
) -> Path:
    """Return the lasso for each lambda; where none are given, for glmnet's grid of them."""
    table = _Table.checked(X, y, weights, family)
    if not is_whole(n_lambdas) or n_lambdas < 1:
        raise InputError(f"n_lambdas={n_lambdas!r} must be a whole number of 1 or more.")
    return table.path(_checked_lambdas(lambdas), n_lambdas)


def cross_validate(
    X: Array,
    y: Array,
    rng: Generator,
    *,
    folds: int = 10,
    fold_of: Rows | None = None,
    weights: Array | None = None,
    lambdas: Array | None = None,
    family: str = "gaussian",
) -> CrossValidated:
    """Return the path with each lambda's error on held-out rows, as cv.glmnet reports it.

    Folds are dealt at random, evenly over classes and over rows of weight zero; `fold_of` gives
    each row's fold instead. A fold has a path of its own, read off between its lambdas.
    """
    table = _Table.checked(X, y, weights, family)
    grid = _checked_lambdas(lambdas)
    if fold_of is None:
        _check_folds(folds)
        fold_of = _dealt(table.strata, min(folds, table.n_rows), rng)
    held_out = _checked_fold_of(fold_of, table.n_rows)
    path = table.path(grid)
    losses = [table.held_out_loss(rows, path.lambdas, grid) for rows in held_out]
    error, spread = _summarised(losses, [table.weights[rows] for rows in held_out])
    least = int(np.argmin(error))
    one_se = int(np.argmax(error <= error[least] + spread[least]))
    lambda_min, lambda_1se = (float(path.lambdas[at]) for at in (least, one_se))
    return CrossValidated(path, error, spread, lambda_min, lambda_1se)


@dataclass(frozen=True)
class Lasso:
    """The lasso as a selection without a p-value: coefficients other than 0 at the rule's lambda.

    >>> Lasso(rule="min").folds
    10
    """

    rule: str = "1se"
    folds: int = 10

    def __post_init__(self) -> None:
        _check_rule(self.rule)
        _check_folds(self.folds)

    def choose(self, data: Dataset, rng: Generator) -> Choice:
        """Return each feature's coefficient per standard deviation, and whether it is not 0."""
        if data.n_classes > 2:
            raise InputError(
                f"The lasso takes numbers or two classes; the target '{short(data.target)}' has "
                f"{data.n_classes} classes. Use gcm or loco, or merge classes."
            )
        if not data.X.shape[1]:
            return _chosen(data, np.zeros(0), "No feature varies.")
        found = cross_validate(
            data.X,
            data.y,
            rng,
            folds=self.folds,
            fold_of=self._fold_of(data, rng),
            weights=data.weights,
            family="binomial" if data.classes else "gaussian",
        )
        return _chosen(data, found.coef(self.rule) * _spread(data), self._note(found))

    def _fold_of(self, data: Dataset, rng: Generator) -> Rows | None:
        """Return the fold of each row where rows of a cluster are to share theirs."""
        if data.clusters is None:
            return None
        units, unit_of = np.unique(data.clusters, return_inverse=True)
        return _dealt(np.zeros(len(units)), min(self.folds, len(units)), rng)[unit_of]

    def _note(self, found: CrossValidated) -> str:
        if not found.coef(self.rule).any():
            return "No feature lowers the cross-validated error enough to be chosen."
        rule = "within one standard error of least" if self.rule == "1se" else "of least"
        return f"lambda is {found.chosen(self.rule):.3g}, {rule} cross-validated error."


def _chosen(data: Dataset, standardised: Array, note: str) -> Choice:
    """Return a number per feature: its coefficient, or the length of those of its columns."""
    owned = [standardised[list(feature.columns)] for feature in data.features]
    statistic = [float(b[0]) if len(b) == 1 else float(np.linalg.norm(b)) for b in owned]
    selected = np.array([bool(b.any()) for b in owned], dtype=bool)
    return Choice(np.array(statistic), selected, note)


def _spread(data: Dataset) -> Array:
    centred = data.X - np.average(data.X, axis=0, weights=data.weights)
    return np.asarray(np.sqrt(np.average(centred**2, axis=0, weights=data.weights)))


# --- what is given ------------------------------------------------------------------------


def _check_rule(rule: object) -> None:
    if rule not in RULES:
        raise InputError(f"rule={rule!r} is not known.{did_you_mean(rule, RULES)}")


def _check_folds(folds: object) -> None:
    if not is_whole(folds) or folds < MIN_FOLDS:
        raise InputError(f"folds={folds!r} must be a whole number of {MIN_FOLDS} or more.")


def _checked_lambdas(lambdas: object) -> Array | None:
    """Return the lambdas from large to small."""
    if lambdas is None:
        return None
    values = np.asarray(lambdas, dtype=float)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all() or values.min() < 0:
        raise InputError("lambdas must be a list of numbers of 0 or more.")
    return np.sort(values)[::-1]


def _checked_fold_of(fold_of: object, n_rows: int) -> list[Rows]:
    """Return the rows of each fold."""
    labels = np.asarray(fold_of)
    if labels.shape != (n_rows,):
        raise InputError(f"fold_of must name the fold of each of the {plural(n_rows, 'row')}.")
    names, codes = np.unique(labels, return_inverse=True)
    if len(names) < MIN_FOLDS:
        raise InputError(f"There are {plural(len(names), 'fold')}; {MIN_FOLDS} or more are needed.")
    return [np.flatnonzero(codes == code) for code in range(len(names))]


def _dealt(strata: NDArray[np.generic], folds: int, rng: Generator) -> Rows:
    """Return a fold for each row at random, each fold with its share of every stratum."""
    order = np.lexsort((rng.permutation(len(strata)), strata))
    fold_of = np.empty(len(strata), dtype=np.intp)
    fold_of[order] = np.arange(len(strata)) % folds
    return fold_of


# --- a table and its path -----------------------------------------------------------------


@dataclass(frozen=True)
class _Table:
    """Rows to fit: X, y (0 and 1 for two classes) and weights."""

    X: Array
    y: Array
    weights: Array
    two_classes: bool

    @classmethod
    def checked(cls, X: object, y: object, weights: object, family: str) -> _Table:
        """Return the table, or raise InputError where the lasso cannot be fitted to it."""
        if family not in FAMILIES:
            raise InputError(f"family={family!r} is not known.{did_you_mean(family, FAMILIES)}")
        X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        if X.ndim != 2 or y.shape != X.shape[:1]:
            raise InputError("X must be a table and y must have a value for each of its rows.")
        if len(y) < MIN_FOLDS:
            raise InputError(f"X has {plural(len(y), 'row')}; the lasso needs {MIN_FOLDS} or more.")
        if not (np.isfinite(X).all() and np.isfinite(y).all()):
            raise InputError("X and y must be finite. Drop or fill rows with gaps first.")
        weights = _checked_weights(weights, len(y))
        values = np.unique(y[weights > 0])
        if is_constant(values):
            raise InputError(
                "y is the same in every row of weight above 0. Choose a target that varies."
            )
        if family == "gaussian":
            return cls(X, y, weights, two_classes=False)
        if len(values) > 2:
            raise InputError(f"y has {len(values):,} values; family='binomial' needs two.")
        return cls(X, (y == values[1]).astype(float), weights, two_classes=True)

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def strata(self) -> NDArray[np.bool_] | Array:
        """Return what folds are to have equal shares of: rows of weight, and of each class."""
        unused = np.asarray(self.weights == 0)
        return np.where(unused, 2.0, self.y) if self.two_classes else unused

    def without(self, rows: Rows) -> _Table:
        """Return the table of the other rows."""
        kept = np.ones(self.n_rows, dtype=bool)
        kept[rows] = False
        if not self.weights[kept].any():
            raise InputError("One fold holds all rows of weight above 0. Spread them over folds.")
        return _Table(self.X[kept], self.y[kept], self.weights[kept], self.two_classes)

    def path(self, lambdas: Array | None, n_lambdas: int = 100) -> Path:
        """Return the lasso for these lambdas, or for glmnet's grid until little more is gained."""
        used = self.weights > 0
        y, weights = self.y[used], self.weights[used] / self.weights[used].sum()
        columns = Columns.of(self.X if used.all() else self.X[used], weights)
        problem: Problem = (TwoClasses if self.two_classes else Numbers)(columns, y, weights)
        if problem.top <= NO_CORRELATION * problem.size:
            grid = np.zeros(1) if lambdas is None else lambdas
            slopes = np.zeros((len(grid), columns.n_varying))
            return columns.raw(grid, slopes, np.full(len(grid), problem.level))
        if lambdas is not None:
            return columns.raw(lambdas, *problem.solve(lambdas, ends=False))
        depth = DEPTH_WIDE if self.n_rows < self.X.shape[1] else DEPTH
        grid = problem.top * depth ** (np.arange(n_lambdas) / max(n_lambdas - 1, 1))
        slopes, levels = problem.solve(grid, ends=True)
        return columns.raw(grid[: len(slopes)], slopes, levels)

    def held_out_loss(self, rows: Rows, lambdas: Array, grid: Array | None) -> Array:
        """Return the loss of each of these rows at each lambda, by the path of the others."""
        own = self.without(rows).path(grid)
        known = own.coefs @ self.X[rows].T + own.intercepts[:, None]
        prediction = interpolated(own.lambdas, known, lambdas).T
        if not self.two_classes:
            return np.asarray((self.y[rows, None] - prediction) ** 2)
        share = np.clip(probability(prediction), PROBABILITY_CUT, 1 - PROBABILITY_CUT)
        return np.asarray(-2 * np.log(np.where(self.y[rows, None] == 1, share, 1 - share)))


def _checked_weights(weights: object, n_rows: int) -> Array:
    if weights is None:
        return np.ones(n_rows)
    values = np.asarray(weights, dtype=float)
    if values.shape != (n_rows,) or not np.isfinite(values).all() or values.min() < 0:
        raise InputError("weights must be a number of 0 or more for each row.")
    if not values.any():
        raise InputError("weights are all 0. Give some rows a weight above 0.")
    return values


def _summarised(losses: list[Array], weights: list[Array]) -> tuple[Array, Array]:
    """Return the mean loss of each lambda and its standard error, over folds or over rows."""
    if sum(len(loss) for loss in losses) >= SMALLEST_FOLD * len(losses):
        pairs = [(loss, w) for loss, w in zip(losses, weights, strict=True) if w.any()]
        units = np.array([np.average(loss, axis=0, weights=w) for loss, w in pairs])
        sizes = np.array([w.sum() for _, w in pairs])
    else:
        units, sizes = np.concatenate(losses), np.concatenate(weights)
    error = np.average(units, axis=0, weights=sizes)
    variance = np.average((units - error) ** 2, axis=0, weights=sizes)
    return error, np.sqrt(variance / max(len(units) - 1, 1))
