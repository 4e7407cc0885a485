"""The splines engine: every additive model of a fold from one design.

A curve's basis and, at fixed df, its smoothing depend on its own column alone, so all models of
a fold are least squares on the same columns with the same penalty, less a block of them. With P
the inverse of Gram plus penalty, leaving out block B turns coefficients b into
b − P_·B (P_BB)⁻¹ b_B. This holds for every target: for y, and for the features themselves. Where
the design has more columns than rows, a matrix of the size of the rows says the same as P.

With df="gcv" each model chooses its own smoothing by the plain model's search. There the models
share the Gram matrix and the straight lines: what lines explain of every bend is found once, and
a model without one of them adds back what only that one explained.

The design itself is never held for all rows of a long table, nor for all columns of a wide one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import blas, cho_factor, cho_solve, lapack

from covaria.learners import Splines
from covaria.learners.estimators.splines import (
    RIDGE,
    Moments,
    Term,
    chunks,
    counted,
    design,
    each_df,
    lines_and_bends,
    may_bend,
    mirrored,
    penalties,
    ridge,
    search,
    smoothing_for,
    solve,
)
from covaria.nuisance.engines.linear import Flags, FoldFit, run_by_fold
from covaria.nuisance.plan import Array, Outcome, Plan
from covaria.tables.arrays import Rows
from covaria.tables.layout import Feature

# Columns of the design have variance one; a line of which the others leave less than this share
# is as good as a copy, and rounding decides how the two divide a curve between them.
COPIED = 1e-6
# A design of as many numbers is kept from plan to plan, 4 MB.
SMALL = 2**19
# Up to this many columns a matrix of their size is quick to invert.
FEW = 1000
# A column with less penalty than this stands with those that have none (see `Dual`).
UNPENALISED = 1e-2


def supports(plan: Plan) -> bool:
    """Return whether the learner is additive splines, with a df for each column if for any."""
    if not isinstance(plan.learner, Splines):
        return False
    df = plan.learner.df
    return not isinstance(df, tuple) or len(df) == plan.data.X.shape[1]


def cut_by(plan: Plan) -> str:
    """Return how a plan may be cut: at fixed df all models of a fold come from one matrix."""
    assert isinstance(plan.learner, Splines)
    return "features" if plan.learner.df == "gcv" else "folds"


def run(plan: Plan) -> list[Outcome]:
    """Return the outcome of every task, in the order of the plan."""
    assert isinstance(plan.learner, Splines)
    return run_by_fold(plan, ChosenFold.of if plan.learner.df == "gcv" else fixed_fold)


@dataclass(frozen=True)
class Basis:
    """What all models of a fold share: each column's term, and the rows.

    The design has the intercept first, then term by term.
    """

    terms: Sequence[Term]
    X: Array
    y: Array
    weights: Array
    X_test: Array
    mean: Array
    x_targets: Array

    @classmethod
    def of(cls, plan: Plan, fold: int, *, curves: int = 0) -> Basis:
        """Return the basis of a fold, of so many of the smoothest curves where that is given."""
        train, test = plan.folds[fold]
        key = ("splines", id(plan.data), id(train), id(test), curves)
        kept = plan.shelf.get(key)
        basis = kept[0] if kept else cls._of_columns(plan, fold, curves)
        if basis.is_small:
            # With what has these ids, so that nothing else gets them.
            plan.shelf[key] = (basis, plan.data, train, test)
        return basis.with_targets(plan, fold)

    @classmethod
    def _of_columns(cls, plan: Plan, fold: int, curves: int) -> Basis:
        data, (train, test) = plan.data, plan.folds[fold]
        given = None if data.weights is None else data.weights[train]
        X_train, X_test = rows_of(data.X, train), rows_of(data.X, test)
        X, y, weights = counted(X_train, rows_of(data.y, train), given)
        terms = [
            Term.smoothest(x, weights, curves) if curves else Term.through(x, weights) for x in X.T
        ]
        mean = np.average(X_train, axis=0, weights=given)
        return cls(terms, X, y, weights, X_test, mean, X)

    @property
    def is_small(self) -> bool:
        """Return whether the design of all rows may be kept."""
        return len(self.X) * self.width <= SMALL

    def with_targets(self, plan: Plan, fold: int) -> Basis:
        """Return the basis with the plan's targets in the place of the columns."""
        if plan.targets is None:
            return self
        data, train = plan.data, plan.folds[fold][0]
        given = None if data.weights is None else data.weights[train]
        targets = counted(rows_of(plan.targets, train), rows_of(data.y, train), given)[0]
        other = copy.copy(self)  # with the design and its products, where they are there
        object.__setattr__(other, "x_targets", targets)
        return other

    @property
    def in_sample(self) -> bool:
        """Return whether the test rows are the training rows."""
        return self.X is self.X_test

    @cached_property
    def ends(self) -> Rows:
        """Return where the columns of each term start, and the last ones end."""
        return 1 + np.cumsum([0, *(len(term.penalty) for term in self.terms)])

    @property
    def width(self) -> int:
        """Return the number of columns of the design."""
        return int(self.ends[-1])

    def owned(self, columns: Iterable[int]) -> Rows:
        """Return the columns of the design that belong to some columns of X."""
        ends = self.ends
        return np.concatenate([ends[:0], *(np.arange(ends[c], ends[c + 1]) for c in columns)])

    def train_parts(self) -> Iterator[tuple[slice, Array]]:
        """Return the design on the training rows, some rows at a time."""
        return self._parts(self.X)

    def test_parts(self) -> Iterator[tuple[slice, Array]]:
        """Return the design on the test rows, some rows at a time."""
        return self._parts(self.X_test)

    def _parts(self, X: Array) -> Iterator[tuple[slice, Array]]:
        parts = list(chunks(len(X), self.width))
        if len(parts) == 1 and X is self.X:
            yield parts[0], self._whole
        else:
            yield from ((rows, design(self.terms, X[rows])) for rows in parts)

    @cached_property
    def _whole(self) -> Array:
        return design(self.terms, self.X)

    @cached_property
    def gram(self) -> Array:
        """Return the products of all pairs of columns."""
        G = np.zeros((self.width, self.width))
        for rows, M in self.train_parts():
            G += M.T @ (self.weights[rows, None] * M)
        return G

    def products(self, target: Array) -> Array:
        """Return the products of the design with y, or with several columns."""
        found = np.zeros((self.width, *target.shape[1:]))
        for rows, M in self.train_parts():
            found += M.T @ (self.weights[rows] * target[rows].T).T
        return found

    def predicted(self, coefficients: Array) -> Array:
        """Return predictions for the test rows, a row for each row of coefficients."""
        found = np.empty((*coefficients.shape[:-1], len(self.X_test)))
        for rows, M in self.test_parts():
            found[..., rows] = coefficients @ M.T
        return found

    def curve(self, column: int, coefficients: Array) -> Array:
        """Return a curve on the test rows, less its value at the column's mean."""
        term, x = self.terms[column], self.X_test[:, column]
        at_mean = term.design(self.mean[[column]])[0] @ coefficients
        found = np.empty(len(x))
        for rows in chunks(len(x), len(coefficients)):
            found[rows] = term.design(x[rows]) @ coefficients - at_mean
        return found


def rows_of(values: Array, rows: Rows) -> Array:
    """Return some rows, without a copy where they are all rows in their order."""
    if len(rows) == len(values) and np.array_equal(rows, np.arange(len(rows))):
        return values
    return values[rows]


def owners(plan: Plan) -> list[int]:
    """Return the feature that each of the plan's x targets belongs to."""
    owner = [-1] * plan.x_targets.shape[1]
    for j in range(plan.data.n_features):
        for column in plan.targets_of(j):
            owner[column] = j
    return owner


@dataclass(frozen=True)
class Curves:
    """A fold's full model: `y` are the coefficients of y on everything.

    `owner` is the feature without which each of the basis' `x_targets` is predicted.
    """

    features: Sequence[Feature]
    owner: Sequence[int]
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
        found = np.zeros((len(self.features), len(self.basis.X_test)))
        for row, feature in zip(found, self.features, strict=True):
            for column in feature.columns:
                row += self.basis.curve(column, self.y[self.basis.owned([column])])
        return found


# --- fixed df -----------------------------------------------------------------------------------


def fixed_fold(plan: Plan, fold: int) -> FoldFit | None:
    """Return the models of a fold, from a matrix of the size of the rows or of the columns."""
    assert isinstance(plan.learner, Splines)
    basis = Basis.of(plan, fold)
    dfs = each_df(plan.learner.df, len(basis.terms))
    smoothing = [smoothing_for(*pair) for pair in zip(basis.terms, dfs, strict=True)]
    penalty, n_rows = penalties(basis.terms, smoothing), len(basis.y)
    # Where lines alone go through all rows only the ridge decides, and by some six digits: small
    # fits are then left to the plain engine, so that they are the same to the last.
    through_all = np.sum(penalty <= RIDGE) >= n_rows
    if basis.width <= max(n_rows, FEW):
        return None if through_all else FixedFold.of(plan, basis, penalty)
    free = penalty == 0 if through_all else penalty < UNPENALISED
    if free.sum() < n_rows:
        dual = Dual.of(basis, penalty, free)
        if dual.S_inverse.diagonal().max() < 1 / COPIED:
            return WideFold.of(plan, dual)
    return FixedFold.of(plan, basis, penalty)


@dataclass(frozen=True)
class FixedFold(Curves):
    """All additive models of one fold at fixed df.

    `X` are the coefficients of each column of X on everything, a row for each, and `inverse`
    the upper triangle of P; both are empty where no model needs them.
    """

    X: Array
    inverse: Array

    @classmethod
    def of(cls, plan: Plan, basis: Basis, penalty: Array) -> FixedFold:
        """Return the models of a fold."""
        A = basis.gram.copy()
        A.flat[:: len(A) + 1] += penalty
        factor = cho_factor(A, overwrite_a=True)
        # Apart from X: how duplicated columns share a curve is rounding, here as in plain fits.
        y = cho_solve(factor, basis.products(basis.y))
        X = inverse = np.empty((0, 0))
        if "x_given_rest" in plan.needs:
            X = cho_solve(factor, basis.products(basis.x_targets)).T
        if plan.needs & {"y_given_rest", "x_given_rest"}:
            inverse = lapack.dpotri(factor[0], overwrite_c=True)[0]
        return cls(plan.data.features, owners(plan), basis, y, X, inverse)

    def y_given_rest(self) -> Array:
        """Return the prediction of y without each feature."""
        blocks = [self.basis.owned(feature.columns) for feature in self.features]
        everything = np.tile(self.y, (len(blocks), 1))
        return self.basis.predicted(self._without(blocks, everything))

    def x_given_rest(self) -> Array:
        """Return the prediction of each target without its feature."""
        columns = [self.features[j].columns if j >= 0 else () for j in self.owner]
        blocks = [self.basis.owned(own) for own in columns]
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


# --- fixed df, more columns than rows -----------------------------------------------------------


@dataclass(frozen=True)
class WideFold(Curves):
    """All additive models of one fold at fixed df, as predictions of y and of the columns of X."""

    y_rest: Array
    X_rest: Array

    @classmethod
    def of(cls, plan: Plan, dual: Dual) -> WideFold:
        """Return the models of a fold."""
        basis = dual.basis
        wants_y, wants_x = (need in plan.needs for need in ("y_given_rest", "x_given_rest"))
        features, n_test = plan.data.features, len(basis.X_test)
        y_rest = np.empty((len(features) if wants_y else 0, n_test))
        X_rest = np.empty((basis.x_targets.shape[1] if wants_x else 0, n_test))
        for some in batches(features if wants_y or wants_x else []):
            numbers = range(*some.indices(len(features)))
            own = [plan.targets_of(j) if wants_x else () for j in numbers]
            targets = [[*([0] if wants_y else []), *(1 + c for c in columns)] for columns in own]
            found = dual.without([f.columns for f in features[some]], targets)
            if wants_y:
                y_rest[some] = [predictions[0] for predictions in found]
            for columns, predictions in zip(own, found, strict=True):
                X_rest[list(columns)] = predictions[len(predictions) - len(columns) :]
        return cls(features, owners(plan), basis, dual.y_coefficients(), y_rest, X_rest)

    def y_given_rest(self) -> Array:
        """Return the prediction of y without each feature."""
        return self.y_rest

    def x_given_rest(self) -> Array:
        """Return the prediction of each column without its feature."""
        return self.X_rest


def batches(things: Sequence[object]) -> Iterator[slice]:
    """Return slices of a few things each: enough for quick products, few enough to be small."""
    return (slice(start, start + 16) for start in range(0, len(things), 16))


@dataclass(frozen=True)
class Batch:
    """Some columns of Z (see `Dual`): which they are, their rows, and their products."""

    at: Rows
    Z: Array
    Z_test: Array
    RZ: Array
    ZE: Array


@dataclass(frozen=True)
class Dual:
    """One penalised fit, by a matrix of the size of the rows.

    Let F be the columns without a penalty to speak of, Z the others times L⁻¹, L their
    penalties, and U the inverse of I + Z L Z', rows times root weights. Then the coefficients of
    F are a = S⁻¹F'Ut with S = F'UF, the target t leaves Rt with R = U − EF'U and E = UFS⁻¹, and
    the others are Z'Rt. And P, on which leaving out rests, is S⁻¹ for F, −Z'E for Z with F, and
    L⁻¹ − Z'RZ for Z. A coefficient's column of P moves what is left by one of E or RZ.

    Targets are y, then the columns of X; `a` and `left` have a column for each.
    """

    basis: Basis
    penalty: Array
    free: Flags
    a: Array
    left: Array
    E: Array
    S_inverse: Array
    R: Array
    F_test: Array
    kernel: Array

    @classmethod
    def of(cls, basis: Basis, penalty: Array, free: Flags) -> Dual:
        """Return the fit."""
        n_rows, root = len(basis.y), np.sqrt(basis.weights)
        n_test = 0 if basis.in_sample else len(basis.X_test)
        F, F_test = np.empty((n_rows, free.sum())), np.empty((n_test, free.sum()))
        F[:, 0], F_test[:, 0] = root, 1
        V, kernel = np.eye(n_rows, order="F"), np.zeros((n_test, n_rows))
        rank = np.cumsum(free) - 1
        for some in batches(basis.terms):
            at = basis.owned(range(*some.indices(len(basis.terms))))
            line, bent = free[at], ~free[at]
            M = root[:, None] * design(basis.terms[some], basis.X[:, some])[:, 1:]
            F[:, rank[at[line]]] = M[:, line]
            Z = M[:, bent] / np.sqrt(penalty[at[bent]])
            V = blas.dsyrk(1.0, Z, beta=1.0, c=V, overwrite_c=True)
            if n_test:
                M = design(basis.terms[some], basis.X_test[:, some])[:, 1:]
                F_test[:, rank[at[line]]] = M[:, line]
                kernel += M[:, bent] / np.sqrt(penalty[at[bent]]) @ Z.T
        U = inverse_of(V)
        UF = U @ F
        S = F.T @ UF
        S.flat[:: len(S) + 1] += penalty[free]
        S_inverse = inverse_of(S)
        E = UF @ S_inverse
        targets = root[:, None] * np.column_stack([basis.y, basis.x_targets])
        U -= E @ UF.T
        a, left = E.T @ targets, U @ targets
        return cls(basis, penalty, free, a, left, E, S_inverse, U, F_test, kernel)

    @property
    def rank(self) -> Rows:
        """Return the place of each column of the design among the free ones."""
        return np.cumsum(self.free) - 1

    def y_coefficients(self) -> Array:
        """Return the coefficients of y on everything."""
        coefficients = np.zeros(len(self.penalty))
        coefficients[self.free] = self.a[:, 0]
        terms = self.basis.terms
        for some in batches(terms):
            at, Z = self._bent(range(*some.indices(len(terms))))
            coefficients[at] = Z.T @ self.left[:, 0]
        return coefficients

    def _bent(self, columns: Sequence[int], *, test: bool = False) -> tuple[Rows, Array]:
        """Return which columns of Z belong to some columns of X, and these."""
        basis, at = self.basis, self.basis.owned(columns)
        bent = ~self.free[at]
        X = basis.X_test if test else basis.X
        M = design([basis.terms[c] for c in columns], X[:, list(columns)])[:, 1:][:, bent]
        if not test:
            M *= np.sqrt(basis.weights)[:, None]
            M /= self.penalty[at[bent]]
        return at[bent], M

    def without(
        self, features: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[Array]:
        """Return predictions for the test rows, for each feature a row for each of its targets."""
        columns = [c for feature in features for c in feature]
        at, Z = self._bent(columns)
        Z_test = Z if self.basis.in_sample else self._bent(columns, test=True)[1]
        batch = Batch(at, Z, Z_test, self.R @ Z, Z.T @ self.E)
        pairs = zip(features, targets, strict=True)
        return [self._without_one(batch, feature, wanted) for feature, wanted in pairs]

    def _without_one(self, batch: Batch, feature: Sequence[int], wanted: Sequence[int]) -> Array:
        """Return predictions of some targets by the model that lacks a feature's columns."""
        own = self.basis.owned(feature)
        f, z = self.rank[own[self.free[own]]], np.flatnonzero(np.isin(batch.at, own))
        Z, RZ, ZE = batch.Z[:, z], batch.RZ[:, z], batch.ZE[z]
        a, left = self.a[:, wanted], self.left[:, wanted]
        P_zz = np.diag(1 / self.penalty[batch.at[z]]) - Z.T @ RZ
        P = np.block([[self.S_inverse[np.ix_(f, f)], -ZE[:, f].T], [-ZE[:, f], P_zz]])
        lost = solve(P, np.vstack([a[f], Z.T @ left])) if len(own) else a[:0]
        left = left + np.hstack([self.E[:, f], RZ]) @ lost
        if self.basis.in_sample:
            return self._from_left(left, wanted)
        a = a - self.S_inverse[:, f] @ lost[: len(f)] + ZE.T @ lost[len(f) :]
        a[f] = 0
        rest = self.F_test @ a + self.kernel @ left - batch.Z_test[:, z] @ (Z.T @ left)
        return np.asarray(rest.T)

    def _from_left(self, left: Array, wanted: Sequence[int]) -> Array:
        """Return predictions for the training rows from what is left there."""
        prediction = -left.T / np.sqrt(self.basis.weights)
        for row, target in zip(prediction, wanted, strict=True):
            row += self.basis.x_targets[:, target - 1] if target else self.basis.y
        return prediction


def inverse_of(A: Array) -> Array:
    """Return the inverse of a positive definite matrix, of which the upper half is given."""
    factor, failed = lapack.dpotrf(A, overwrite_a=True, clean=True)
    if failed:
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    return mirrored(lapack.dpotri(factor, overwrite_c=True)[0])


# --- smoothing chosen by generalised cross-validation -------------------------------------------


@dataclass(frozen=True)
class ChosenFold(Curves):
    """All additive models of one fold, each of which chooses its own smoothing.

    `lines` and `bends` are the columns of the design of either kind. Of the lines `inverse` is
    that of their Gram matrix, and `T` and `beta` are the coefficients on them of the bends and of
    the targets (y, then the columns of X, less their `means`). `gram`, `right` and `squares` are
    what lines leave of products of bends, bends with targets, and targets; `totals` is all of it.
    """

    lines: Rows
    bends: Rows
    inverse: Array
    T: Array
    beta: Array
    gram: Array
    right: Array
    squares: Array
    totals: Array
    means: Array
    asked: frozenset[int]
    to_enter: float

    @classmethod
    def of(cls, plan: Plan, fold: int) -> ChosenFold | None:
        """Return what the models of a fold share, or None where lines are copies."""
        assert isinstance(plan.learner, Splines)
        basis = Basis.of(plan, fold, curves=plan.learner.curves)
        a_line = np.array([len(term.penalty) > 0 for term in basis.terms])
        every = (*plan.data.features, *plan.data.others)
        most = max(a_line[list(feature.columns)].sum() for feature in every)
        if not may_bend(1 + a_line.sum() - most, len(basis.y)):
            basis = replace(basis, terms=[term.first(1) for term in basis.terms])
        lines, bends = lines_and_bends(basis.terms)
        targets = np.column_stack([basis.y, basis.x_targets])
        means = basis.weights @ targets
        targets -= means
        G, products = basis.gram, basis.products(targets)
        inverse = inverse_of(G[np.ix_(lines, lines)] + ridge(len(lines)))
        if inverse.diagonal().max() > 1 / COPIED:
            return None
        across = G[np.ix_(lines, bends)]
        T, beta = inverse @ across, inverse @ products[lines]
        own = G[np.ix_(bends, bends)] - across.T @ T
        right = products[bends] - across.T @ beta
        totals = np.einsum("i,ij,ij->j", basis.weights, targets, targets)  # without a copy
        squares = totals - np.sum(products[lines] * beta, axis=0)
        shared = cls(
            plan.data.features, owners(plan), basis, np.empty(0),
            lines, bends, inverse, T, beta, own, right, squares, totals, means,
            frozenset(task.feature for task in plan.tasks if task.fold == fold),
            plan.learner.to_enter,
        )  # fmt: skip
        if plan.data.classes or plan.needs <= {"y_given_rest", "x_given_rest"}:
            return shared
        return replace(shared, y=shared._fit((), 0))

    def y_given_rest(self) -> Array:
        """Return the prediction of y without each feature."""
        reduced = np.zeros((len(self.features), self.basis.width))
        for j, feature in enumerate(self.features):
            if j in self.asked:
                reduced[j] = self._fit(feature.columns, 0)
        return self.basis.predicted(reduced)

    def x_given_rest(self) -> Array:
        """Return the prediction of each target without its feature, where it is asked for."""
        reduced = np.zeros((len(self.owner), self.basis.width))
        for target, j in enumerate(self.owner):
            if j in self.asked:
                reduced[target] = self._fit(self.features[j].columns, 1 + target)
        return self.basis.predicted(reduced)

    def _fit(self, without: Sequence[int], target: int) -> Array:
        """Return the coefficients of the model that lacks some columns of X, zero for these."""
        gone = np.zeros(self.basis.width, dtype=bool)
        gone[self.basis.owned(without)] = True
        f, kept = np.flatnonzero(gone[self.lines]), np.flatnonzero(~gone[self.bends])
        terms = [t for c, t in enumerate(self.basis.terms) if c not in without]
        # What only the missing lines explained comes back, as of any least squares fit.
        back = np.linalg.inv(self.inverse[np.ix_(f, f)])
        T, beta = self.T[np.ix_(f, kept)], self.beta[f, target]
        moments = Moments(
            self.gram[kept[:, None], kept] + T.T @ (back @ T),
            self.right[kept, target] + T.T @ (back @ beta),
            float(self.squares[target] + beta @ back @ beta),
            float(self.totals[target]),
            len(self.lines) - len(f),
            len(self.basis.y),
            self.to_enter,
        )
        penalty = penalties(terms, search(terms, moments))[lines_and_bends(terms)[1]]
        bent = np.isfinite(penalty)
        A = moments.gram[np.ix_(bent, bent)] + np.diag(penalty[bent])
        b = solve(A, moments.right[bent]) if bent.any() else np.empty(0)
        slopes = self.beta[:, target] - self.T[:, kept[bent]] @ b
        slopes -= self.inverse[:, f] @ (back @ slopes[f])
        slopes[f] = 0
        coefficients = np.zeros(self.basis.width)
        coefficients[self.lines] = slopes
        coefficients[self.bends[kept[bent]]] = b
        coefficients[0] += self.means[target]
        return coefficients
