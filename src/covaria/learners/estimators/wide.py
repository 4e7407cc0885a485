"""Linear regressions for tables of many columns and few rows: a ridge, and a lasso fitted anew.

Both choose their penalty from the training rows. The ridge takes what many columns do a little
each; the lasso takes what few columns do, without holding it small (Meinshausen, 2007).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np

from covaria.learners.estimators import Array, as_chances, as_targets
from covaria.learners.estimators.single_index import center_and_scale
from covaria.learners.estimators.splines import counted

# Penalties over the sum of the eigenvalues, from next to none to next to all.
PENALTIES = np.logspace(-6, 2, 33)
# Scores that differ by less than this share are tied.
TIED = 1e-3
# The lasso's penalties: so many, down to this share of the first that lets a column in.
STEPS, LEAST = 25, 0.1
# At most this share of the rows are columns.
FULLEST = 0.25
# A column has to explain as much as the best of all would by chance: 2 log(columns) variances.
CHANCE = 2.0


@dataclass(frozen=True)
class Scaling:
    """What makes columns of unit variance, as weights count rows."""

    weights: Array  # that add up to one, of all rows
    center: Array
    scale: Array

    @classmethod
    def of(cls, X: Array, weights: Array | None) -> Self:
        """Return the scaling of some rows; those without weight have no say."""
        weights = np.ones(len(X)) if weights is None else weights
        kept = weights > 0
        w = weights[kept] / weights[kept].sum()
        return cls(weights / weights.sum(), *center_and_scale(X[kept], w))

    @property
    def root(self) -> Array:
        """Return the roots of the weights of those rows that have any, which average one."""
        own = self.weights[self.weights > 0]
        return np.asarray(np.sqrt(own * len(own))[:, None])

    def apply(self, X: Array) -> Array:
        """Return the rows that have weight, scaled."""
        kept = self.weights > 0
        return np.asarray((X[kept] - self.center) / self.scale * self.root)

    def centred(self, targets: Array) -> tuple[Array, Array]:
        """Return the means of targets, and what they leave in the rows that have weight."""
        kept = self.weights > 0
        means = self.weights[kept] @ targets[kept]
        return means, np.asarray((targets[kept] - means) * self.root)


class _Scaled:
    """A linear model of columns of unit variance; classes are regressed on indicators."""

    def __init__(self, *, n_classes: int = 0) -> None:
        self.n_classes = n_classes

    def fit(self, X: Array, y: Array, weights: Array | None = None) -> Self:
        """Return the model, fitted to `y`: numbers, or class codes from 0."""
        scaling = Scaling.of(X, weights)
        self.center_, self.scale_ = scaling.center, scaling.scale
        self.mean_, targets = scaling.centred(as_targets(y, self.n_classes))
        self.slopes_ = self._slopes(scaling.apply(X), targets)
        return self

    def _slopes(self, Z: Array, targets: Array) -> Array:
        """Return a column of slopes for each column of targets."""
        raise NotImplementedError

    def predict(self, X: Array) -> Array:
        """Return means, or a row of probabilities per row of X."""
        found = self.mean_ + (X - self.center_) / self.scale_ @ self.slopes_
        return as_chances(found) if self.n_classes else np.asarray(found[:, 0])


class RidgePathModel(_Scaled):
    """Ridge at the penalty of least generalised cross-validation score."""

    def _slopes(self, Z: Array, targets: Array) -> Array:
        left, values, right = np.linalg.svd(Z, full_matrices=False)
        values = values**2
        if not values.sum() > 0:
            return np.zeros((Z.shape[1], targets.shape[1]))
        rotated = left.T @ targets
        penalties = PENALTIES[:, None] * values.sum()
        kept = values / (values + penalties)
        missed = float(np.square(targets).sum() - np.square(rotated).sum())
        errors = missed + (1 - kept) ** 2 @ np.square(rotated).sum(axis=1)
        best = best_penalty(errors, kept.sum(axis=1), len(Z))
        shrunk = kept[best] / np.sqrt(np.maximum(values, 1e-300))
        return np.asarray(right.T @ (shrunk[:, None] * rotated))


def best_penalty(errors: Array, used: Array, n_rows: int) -> int:
    """Return the place of the least generalised cross-validation score, of ties the last.

    The mean takes one parameter more than `used`. Where columns outnumber rows the score is flat
    at small penalties, and rounding would choose among them.
    """
    scores = errors / np.maximum(1 - (1 + used) / n_rows, 1e-6) ** 2
    return int(np.flatnonzero(scores <= (1 + TIED) * scores.min())[-1])


class SparseModel(_Scaled):
    """Least squares on the columns that a lasso lets in, as many as the risk inflation allows.

    Foster and George (1994): with p columns to choose from, each costs 2 log p variances. With
    targets `beside`, the columns are chosen for all targets together, by the lasso of groups: a
    test is misled by a column that matters a little for both x_j and y, and is missed for both
    (Belloni, Chernozhukov and Hansen, 2014, take the union of two choices instead).
    """

    def __init__(self, *, n_classes: int = 0, beside: Array | None = None) -> None:
        super().__init__(n_classes=n_classes)
        self.beside = beside

    def fit(self, X: Array, y: Array, weights: Array | None = None) -> Self:
        """Return the model, fitted to `y`: numbers, or class codes from 0."""
        self._others = _unit(self.beside, weights) if self.beside is not None else None
        return super().fit(X, y, weights)

    def _slopes(self, Z: Array, targets: Array) -> Array:
        if self._others is None:
            return np.column_stack([_refitted(Z, target[:, None]) for target in targets.T])
        every = np.column_stack([targets, self._others])
        return _refitted(Z, every)[:, : targets.shape[1]]


def _unit(columns: Array, weights: Array | None) -> Array:
    """Return the columns that vary, centred and of unit length, as weights count rows."""
    columns, _, w = counted(columns, columns[:, 0], weights)
    left = (columns - w @ columns) * np.sqrt(w * len(w))[:, None]
    length = np.linalg.norm(left, axis=0)
    varies = length > 1e-9 * np.abs(columns).max(initial=1e-300)
    return np.asarray(left[:, varies] / length[varies])


def _refitted(Z: Array, targets: Array) -> Array:
    """Return the least-squares slopes, a column a target, of the best of the lasso's sets."""
    n_rows, n_columns = Z.shape
    slopes = np.zeros((n_columns, targets.shape[1]))
    total = np.square(targets).sum(axis=0)
    if not n_columns or not (total > 0).any():
        return slopes
    of_unit = targets[:, total > 0] / np.sqrt(total[total > 0])
    each = CHANCE * np.log(max(n_columns, 2)) / n_rows
    alone = np.square(Z.T @ of_unit) / np.maximum(np.square(Z).sum(axis=0), 1e-12)[:, None]
    best = 0.0
    if np.log(np.maximum(1 - alone, 1e-12)).sum(axis=1).min() + each >= best:
        return slopes  # not even the best column alone is more than chance
    for chosen in _sets(Z, of_unit, int(FULLEST * n_rows)):
        found = np.linalg.lstsq(Z[:, chosen], of_unit, rcond=None)[0]
        error = np.square(of_unit - Z[:, chosen] @ found).sum(axis=0)
        score = float(np.log(np.maximum(error, 1e-12)).sum()) + len(chosen) * each
        if score < best:
            best, slopes = score, np.zeros_like(slopes)
            slopes[np.ix_(chosen, total > 0)] = found * np.sqrt(total[total > 0])
    return slopes


def _sets(Z: Array, targets: Array, most: int) -> list[list[int]]:
    """Return the columns that the lasso of groups lets in at each penalty, of at most so many."""
    from sklearn.linear_model import lasso_path

    target = targets[:, 0] if targets.shape[1] == 1 else np.asfortranarray(targets)
    first = float(np.linalg.norm(Z.T @ targets, axis=1).max()) / len(Z)
    penalties = first * np.geomspace(1.0, LEAST, STEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a set of columns need not be exact: it is fitted anew
        _, path, _ = lasso_path(
            np.asfortranarray(Z), target, alphas=penalties, tol=1e-3, max_iter=200
        )
    let_in = np.abs(path).reshape(-1, *path.shape[-2:]).any(axis=0)
    sets = {tuple(np.flatnonzero(one).tolist()) for one in let_in.T}
    return sorted(
        (list(one) for one in sets if 0 < len(one) <= most), key=lambda one: (len(one), one)
    )
