"""The splines engine: every additive model of a fold from one design and one Gram matrix.

A curve's basis and, at fixed df, its smoothing depend on its own column alone, so all models of
a fold are least squares on the same columns with the same penalty, less a block of them. With P
the inverse of Gram plus penalty, leaving out block B turns coefficients b into
b − P_·B (P_BB)⁻¹ b_B. This holds for every target: for y, and for the features themselves.

With df="gcv" each model chooses its own smoothing. There the models share the design and the
Gram matrix, of which each takes its part, and repeat the plain model's search from its start:
they end where it ends, to the tolerance of the search.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import blas, cho_factor, cho_solve, lapack
from scipy.optimize import minimize

from residua.data import Feature, Rows
from residua.engines import Array, Outcome, Plan
from residua.engines.linear import Flags, run_by_fold
from residua.estimators.splines import (
    TINY,
    Gcv,
    Term,
    counted,
    design,
    gram,
    penalties,
    smoothing_for,
    solve,
)
from residua.learners import Splines

# Columns of the design have variance one; an axis with less than this is shared by two curves.
DUPLICATED = 1e-6


def supports(plan: Plan) -> bool:
    """Return whether the learner is additive splines."""
    return isinstance(plan.learner, Splines)


def run(plan: Plan) -> list[Outcome]:
    """Return the outcome of every task, in the order of the plan."""
    assert isinstance(plan.learner, Splines)
    return run_by_fold(plan, ChosenFold.of if plan.learner.df == "gcv" else FixedFold.of)


@dataclass(frozen=True)
class Basis:
    """What all models of a fold share: each column's term, and the columns of these.

    `train` and `test` are the design on the rows of either kind, `mean` its row where every
    column of X is at its mean; the design has the intercept first, then term by term.
    """

    terms: Sequence[Term]
    train: Array
    test: Array
    mean: Array
    X: Array
    y: Array
    weights: Array

    @classmethod
    def of(cls, plan: Plan, fold: int) -> Basis:
        """Return the basis of a fold."""
        data, (train, test) = plan.data, plan.folds[fold]
        given = None if data.weights is None else data.weights[train]
        X, y, weights = counted(data.X[train], data.y[train], given)
        terms = [Term.through(x, weights) for x in X.T]
        M = design(terms, X)
        in_sample = given is None and np.array_equal(train, test)
        M_test = M if in_sample else design(terms, data.X[test])
        mean = np.average(data.X[train], axis=0, weights=given)
        return cls(terms, M, M_test, design(terms, mean[None])[0], X, y, weights)

    def owned(self, columns: Iterable[int]) -> Rows:
        """Return the columns of the design that belong to some columns of X."""
        ends = 1 + np.cumsum([0, *(len(term.penalty) for term in self.terms)])
        return np.concatenate([ends[:0], *(np.arange(ends[c], ends[c + 1]) for c in columns)])

    def products(self, target: Array) -> Array:
        """Return the products of the design with y, or with several columns."""
        return np.asarray(self.train.T @ (self.weights * target.T).T)

    def predicted(self, coefficients: Array) -> Array:
        """Return predictions for the test rows, a row for each row of coefficients."""
        return np.asarray(coefficients @ self.test.T)


@dataclass(frozen=True)
class Curves:
    """A fold's full model: `y` are the coefficients of y on everything."""

    features: Sequence[Feature]
    basis: Basis
    y: Array

    @property
    def sound(self) -> Flags:
        return np.ones(len(self.features), dtype=bool)

    def y_given_all(self) -> Array:
        """Return the prediction of y from all columns."""
        return self.basis.predicted(self.y)

    def parts(self) -> Array:
        """Return what each feature's curves add to the prediction of y, less that at its mean."""
        own = np.zeros((len(self.features), len(self.y)))
        for row, feature in zip(own, self.features, strict=True):
            block = self.basis.owned(feature.columns)
            row[block] = self.y[block]
        return self.basis.predicted(own) - (own @ self.basis.mean)[:, None]


# --- fixed df -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class FixedFold(Curves):
    """All additive models of one fold at fixed df.

    `X` are the coefficients of each column of X on everything, a row for each, and `inverse`
    the upper triangle of P; both are empty where no model needs them.
    """

    X: Array
    inverse: Array

    @classmethod
    def of(cls, plan: Plan, fold: int) -> FixedFold:
        """Return the models of a fold."""
        assert isinstance(plan.learner, Splines)
        basis, df = Basis.of(plan, fold), float(plan.learner.df)
        smoothing = [smoothing_for(term, df) for term in basis.terms]
        A = gram(basis.train, basis.weights)
        A.flat[:: len(A) + 1] += penalties(basis.terms, smoothing)
        factor = cho_factor(A)
        # Apart from X: how duplicated columns share a curve is rounding, here as in plain fits.
        y = cho_solve(factor, basis.products(basis.y))
        X = inverse = np.empty((0, 0))
        if "x_given_rest" in plan.needs:
            X = cho_solve(factor, basis.products(basis.X)).T
        if plan.needs & {"y_given_rest", "x_given_rest"}:
            inverse = lapack.dpotri(factor[0], overwrite_c=True)[0]
        return cls(plan.data.features, basis, y, X, inverse)

    def y_given_rest(self) -> Array:
        """Return the prediction of y without each feature."""
        blocks = [self.basis.owned(feature.columns) for feature in self.features]
        everything = np.tile(self.y, (len(blocks), 1))
        return self.basis.predicted(self._without(blocks, everything))

    def x_given_rest(self) -> Array:
        """Return the prediction of each column without its feature."""
        blocks = [np.empty(0, dtype=np.intp)] * len(self.X)
        for feature in self.features:
            for column in feature.columns:
                blocks[column] = self.basis.owned(feature.columns)
        return self.basis.predicted(self._without(blocks, self.X))

    def _without(self, blocks: Sequence[Rows], coefficients: Array) -> Array:
        """Return each row of coefficients as it is in the model that lacks a block."""
        lost = np.zeros(coefficients.shape)
        for row, block, b in zip(lost, blocks, coefficients, strict=True):
            if len(block):
                row[block] = solve(self.inverse[np.ix_(block, block)], b[block])
        reduced: Array = coefficients - blas.dsymm(1.0, self.inverse, lost.T).T
        for row, block in zip(reduced, blocks, strict=True):
            row[block] = 0
        return reduced


# --- smoothing chosen by generalised cross-validation -------------------------------------------


@dataclass(frozen=True)
class ChosenFold(Curves):
    """All additive models of one fold, each of which chooses its own smoothing."""

    gram: Array
    smoothing: dict[tuple[int, float], float] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan, fold: int) -> ChosenFold | None:
        """Return what the models of a fold share, with the full model where a task needs it."""
        basis = Basis.of(plan, fold)
        shared = cls(plan.data.features, basis, np.empty(0), gram(basis.train, basis.weights))
        if shared._has_duplicates():
            return None
        if plan.data.classes or plan.needs <= {"y_given_rest", "x_given_rest"}:
            return shared
        return replace(shared, y=shared._fit(range(len(basis.terms)), basis.y))

    def y_given_rest(self) -> Array:
        """Return the prediction of y without each feature."""
        reduced = [self._fit(self._rest(feature), self.basis.y) for feature in self.features]
        return self.basis.predicted(np.array(reduced))

    def x_given_rest(self) -> Array:
        """Return the prediction of each column without its feature."""
        reduced = np.zeros((len(self.basis.terms), len(self.gram)))
        for feature in self.features:
            for column in feature.columns:
                reduced[column] = self._fit(self._rest(feature), self.basis.X[:, column])
        return self.basis.predicted(reduced)

    def _has_duplicates(self) -> bool:
        """Return whether curves can stand in for each other, so that rounding steers a search."""
        smoothing = [self._at(column, 4.0) for column in range(len(self.basis.terms))]
        A = self.gram + np.diag(penalties(self.basis.terms, smoothing))
        return bool(np.linalg.eigvalsh(A)[0] < DUPLICATED)

    def _rest(self, feature: Feature) -> list[int]:
        return [column for column in range(len(self.basis.terms)) if column not in feature.columns]

    def _fit(self, columns: Sequence[int], target: Array) -> Array:
        """Return the coefficients of the model that has these columns of X, zero for others."""
        basis, kept = self.basis, np.concatenate([[0], self.basis.owned(columns)])
        terms = [basis.terms[column] for column in columns]
        centred = target - basis.weights @ target
        square = float(basis.weights @ centred**2)
        own, right = self.gram[np.ix_(kept, kept)], basis.products(centred)[kept]
        chosen = self._search(columns, QuickGcv(terms, own, right, square, len(target)))
        A = own + np.diag(penalties(terms, chosen))
        coefficients = np.zeros(len(self.gram))
        coefficients[kept] = solve(A, basis.products(target)[kept])
        return coefficients

    def _search(self, columns: Sequence[int], score: Gcv) -> Array:
        """Return the smoothings that the plain model's search finds."""
        if not any(len(term.penalty) for term in score.terms):
            return np.zeros(len(columns))
        most = max(1.02, score.n_rows / 2 / len(columns))
        ends = [[self._at(c, df) for c in columns] for df in (most, min(4, most), 1.01)]
        low, start, high = np.log(np.maximum(ends, 1e-12))
        bounds = list(zip(low, high, strict=True))
        return np.exp(minimize(score, start, jac=True, method="L-BFGS-B", bounds=bounds).x)

    def _at(self, column: int, df: float) -> float:
        """Return a column's smoothing at some df, found once for all models."""
        if (column, df) not in self.smoothing:
            self.smoothing[column, df] = smoothing_for(self.basis.terms[column], df)
        return self.smoothing[column, df]


class QuickGcv(Gcv):
    """The same score and gradient; inverse × Gram is the identity less inverse × penalty."""

    def __call__(self, log_smoothing: Array) -> tuple[float, Array]:
        """Return the score and its gradient."""
        penalty = penalties(self.terms, np.exp(log_smoothing))
        A = self.gram.copy()
        A.flat[:: len(A) + 1] += penalty
        factor = cho_factor(A, overwrite_a=True, check_finite=False)
        b = cho_solve(factor, self.right, check_finite=False)
        more_error = b * cho_solve(factor, penalty * b, check_finite=False)
        square = lapack.dpotri(factor[0], overwrite_c=True)[0]
        diagonal = square.diagonal().copy()
        square *= square
        error = self.square - float(b @ self.right + penalty @ b**2)
        error = max(error, 1e-12 * self.square + TINY)
        free = max(1 - float(np.sum(1 - penalty * diagonal)) / self.n_rows, 1e-3)
        more_free = (diagonal - blas.dsymv(1.0, square, penalty)) / self.n_rows
        gradient = 2 * self._by_term(penalty * (more_error / error - more_free / free))
        return float(np.log(error) - 2 * np.log(free)), gradient
