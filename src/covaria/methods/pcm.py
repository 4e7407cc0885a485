"""The projected covariance measure: a test that also sees even effects and interactions.

Lundborg, Kim, Shah and Samworth, "The projected covariance measure for assumption-lean variable
significance testing", Annals of Statistics 52 (2024). Where GCM multiplies what is left of x_j
with what is left of y, PCM takes what is left of a *function* of x_j that the training rows
suggest: the full model less its mean over other values of the feature (partial dependence), or with
"auto" the sum of parts that go with y in other folds (`nuisance/directions.py`). The function is
right if anything is, so the test is one-sided.

Every fold has its function from the other folds' rows, and what one fold's noise suggests the
others then see confirmed: a pair of folds counts twice. Without an effect the sum of the folds'
statistics has a variance of up to 2 instead of 1 (2 for functions of many parts, less for few),
so scores stand √2 times as far from their mean as they are. Let S_k be normal vectors in d
dimensions, one a fold, and T_k = S_k·S/|S| with S the sum of the others: then Σ T_k / √(2K) is
above 1.645 in at most 5% of draws, for all d and K (tests/methods/test_pcm.py computes them). With
weights t³ instead of t it was 4.9, 5.9 and 5.1% of 1,500 draws for 12, 42 and 202 parts.

With three or more classes there is a function for each, and the score is the sum of all their
products: no class is left out, so their names and order do not matter.

Of several targets each has functions of its own. The target that says most of a feature counts, and
its scores stand so much further from their mean that its p-value is multiplied by the number of
targets (Bonferroni). Products added up over targets were not calibrated: .12 of 60 nulls.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.inference.tests import freedom_of, standard_error, stretched, student_p
from covaria.methods.gcm import weighed, wider
from covaria.nuisance.residuals import Residuals
from covaria.tables.arrays import of_all_classes

Array = NDArray[np.float64]
Whole = NDArray[np.intp]

# By as much the spread of the scores grows where folds learn from each other's rows.
SHARED = np.sqrt(2.0)
# A p-value of one half has a statistic of 0, which nothing stretches to.
NOTHING_LEFT = 0.499


def pcm(residuals: Residuals, rng: Generator) -> Array:
    """Return the product of what is left of a function of x_j and what is left of y."""
    if residuals.data.outputs is None:
        return _scores(residuals, *_pair(residuals))
    every = _of_targets(residuals)
    best, factor = _of_best_target(residuals, every)
    own = every[:, np.arange(len(best)), best]
    return stretched(own, factor)


def _of_targets(residuals: Residuals) -> Array:
    """Return the scores of each target by itself, (rows, features, targets)."""
    f, y = _pair(residuals)
    every = [_scores(residuals, f[:, :, k], y[:, :, k]) for k in range(y.shape[2])]
    return np.stack(every, axis=2)


def _of_best_target(residuals: Residuals, scores: Array) -> tuple[Whole, Array]:
    """Return which target says most of each feature, and how far its p-value widens its scores.

    Where none is left of a p-value that was multiplied, the widest that rounding allows.
    """
    from scipy.stats import t

    freedom, count = freedom_of(residuals.clusters), scores.shape[2]
    ratio = np.stack([_ratio(scores[:, :, k], residuals) for k in range(count)], axis=1)
    best, most = ratio.argmax(axis=1), ratio.max(axis=1)
    p = count * student_p(most, "greater", freedom)
    wanted = t.isf(np.minimum(p, NOTHING_LEFT), freedom)
    return best, np.where(most > 0, most / wanted, 1.0)


def _ratio(scores: Array, residuals: Residuals) -> Array:
    """Return the statistic of each feature, 0 where its scores do not vary."""
    error = standard_error(scores, residuals.clusters)
    mean = scores.mean(axis=0)
    return np.asarray(np.divide(mean, error, out=np.zeros_like(mean), where=error > 0))


def _scores(residuals: Residuals, f: Array, y: Array) -> Array:
    """Return the scores of functions and of what is left of one target."""
    products = f * y if y.ndim == 2 else (f * y).sum(axis=2)
    scores = residuals.weighted(np.asarray(products))
    if residuals.second:
        scores = scores - residuals.doubt_of_functions * scores.mean(axis=0)
    alone = residuals.n_folds == 1 and "spread_given_rest" not in residuals.arrays
    return wider(residuals, scores, 1.0 if alone or residuals.is_given else SHARED)


def factors(residuals: Residuals, j: int) -> tuple[Array, Array]:
    """Return what the scores of a feature are products of, (rows, classes) each."""
    f, y = _pair(residuals)
    f, y = (array[:, j].reshape(len(array), -1) for array in (f, y))
    if residuals.data.outputs is not None:
        ratio = _ratio(residuals.weighted(f * y), residuals)
        f, y = (part[:, [ratio.argmax()]] for part in (f, y))
    return weighed(residuals, f, y)


def pairs(residuals: Residuals, features: Sequence[int]) -> tuple[Array, Array] | None:
    """Return the factors of several features, a column each, where each has one product a row."""
    f, y = _pair(residuals)
    if f.ndim > 2 or residuals.data.outputs is not None:
        return None
    own = list(features)
    return weighed(residuals, f[:, own], y[:, own])


def _pair(residuals: Residuals) -> tuple[Array, Array]:
    """Return what is left of the functions and of y; of three or more classes, of each of them."""
    y = residuals.y_given_rest
    return residuals.f_given_rest, of_all_classes(y) if residuals.data.n_classes > 2 else y


def unexplained(residuals: Residuals) -> Array:
    """Return the mean square of what is left of y without each feature: all it could explain."""
    squares = _pair(residuals)[1] ** 2
    return np.asarray(squares.reshape(*squares.shape[:2], -1).sum(axis=2).mean(axis=0))


def reach(residuals: Residuals) -> float:
    """Return by how much more the estimate varies where there is an effect.

    The function has its size from the training rows: with slope β̂ of theirs and covariance c of
    the tested rows the estimate is β̂c, which both move. In a cross-fit they are the same rows, so
    that its sd is twice that of c, not √2 times; held-out rows add those that were learned from.
    """
    if residuals.is_given:  # by a model of other rows, which is as it is
        return 1.0
    if residuals.n_folds > 1:
        return float(np.sqrt(2))
    return float(np.sqrt(1 + len(residuals.rows) / max(1, residuals.n_train)))
