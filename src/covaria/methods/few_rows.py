"""Scores of tests that few rows carry, with the spread that permuted residuals give them.

GCM and PCM are sums of products of residuals, which can be permuted (`inference.resampling`). With
clusters they cannot, and a gain is no product: there the variance of the scores is only kept from
falling below what it would be if the two residuals had nothing to do with each other. For a
squared loss a model that moves its prediction by h gains 2hε − h², of variance 4h²σ²; for a
log-loss it is p(1 − p) times the squared difference of the two gains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.inference.resampling import (
    POLICY,
    Shuffles,
    are_far_from_normal,
    floor_factor,
    form_factor,
    independent_variance,
    is_far_from_normal,
    pairs_are_far_from_normal,
    product_factor,
)
from covaria.inference.tests import standard_error, stretched
from covaria.nuisance.residuals import Residuals
from covaria.tables.arrays import column_blocks, of_all_classes

if TYPE_CHECKING:
    from covaria.methods import Method

Array = NDArray[np.float64]


def steadied(
    method: Method,
    residuals: Residuals,
    scores: Array,
    alternative: str,
    draw: Callable[[], Generator],
) -> Array:
    """Return the scores, those of a feature further from their mean where few rows carry them."""
    if method.factors is not None:
        residuals = residuals if method.view is None else method.view(residuals)
        factor = _of_products(method, residuals, scores, alternative, draw)
    elif method.losses is not None:
        factor = _of_gains(method, residuals, scores)
    else:
        return scores
    return stretched(scores, factor)


def _of_products(
    method: Method,
    residuals: Residuals,
    scores: Array,
    alternative: str,
    draw: Callable[[], Generator],
) -> Array:
    assert method.factors is not None
    # Without degrees of freedom several columns are added up to one product.
    degrees = [0] * scores.shape[1] if method.degrees is None else method.degrees(residuals)
    found, shared = np.ones(scores.shape[1]), Shuffles(residuals.fold, draw)
    for j in _far_from_normal(method, residuals):
        x, y = method.factors(residuals, j)
        shuffles = replace(shared, fold=_strata(residuals, j))
        own, several = scores[:, j], degrees[j] > 0 and x.shape[1] * y.shape[1] > 1
        if several and residuals.clusters is None:
            found[j] = form_factor(x, y, own, int(degrees[j]), shuffles)
        elif residuals.clusters is not None:
            found[j] = 1.0 if several else _floor(residuals, own, independent_variance(x, y))
        elif j in residuals.within and len(own) <= POLICY.most_rows:
            found[j] = _within_levels(residuals, j, (x, y), own, alternative, draw)
        else:
            found[j] = product_factor(x, y, own, shuffles, alternative)
            if residuals.widening is not None and residuals.widening[j] > 1:
                # Rows of a level share their mean, which permuted rows do not.
                found[j] = max(found[j], _floor(residuals, own, independent_variance(x, y)))
    return found


def _far_from_normal(method: Method, residuals: Residuals) -> Iterator[int]:
    """Yield the features whose residuals are to be permuted."""
    assert method.factors is not None
    known = [
        j
        for j, feature in enumerate(residuals.data.features)
        if feature.columns and not residuals.failure(method.needs, j)
    ]
    for some in column_blocks(len(residuals.rows), len(known)):
        together = None if method.pairs is None else method.pairs(residuals, known[some])
        if together is not None:
            yield from np.array(known[some])[pairs_are_far_from_normal(*together)].tolist()
            continue
        for j in known[some]:
            if _is_far_from_normal(residuals, *method.factors(residuals, j)):
                yield j


def _is_far_from_normal(residuals: Residuals, x: Array, y: Array) -> bool:
    """Return whether residuals are to be permuted; of three or more classes the rarest says so."""
    is_without_one = y.shape[1] == residuals.data.n_classes - 1 > 1
    every = of_all_classes(y) if is_without_one else y
    return is_far_from_normal(x, every, x.shape[1] * y.shape[1])


def _within_levels(
    residuals: Residuals,
    j: int,
    factors: tuple[Array, Array],
    scores: Array,
    alternative: str,
    draw: Callable[[], Generator],
) -> float:
    """Return the factor that permuting inside levels gives, whose means are off both residuals.

    Of a level of two rows the products are the same, and a permutation swaps the sign of both.
    """
    assert residuals.widening is not None
    widening, mean = float(residuals.widening[j]), scores.mean()
    bare = mean + (scores - mean) / widening
    shuffles = Shuffles(residuals.within[j], draw)
    return product_factor(*factors, bare, shuffles, alternative) / widening


def _strata(residuals: Residuals, j: int) -> NDArray[np.intp]:
    """Return for each row the fold, and whether the others let expect a low, middling or high y.

    Rows of which other things are expected have other spreads, as those of rare classes and counts.
    """
    left = residuals.y_given_rest[:, j].reshape(len(residuals.rows), -1)
    expected = (_target(residuals)[:, -left.shape[1] :] - left)[:, 0]
    if residuals.data.n_classes == 2 and _is_second_common(residuals.data.y[residuals.rows]):
        expected = -expected  # of the rarer class, whichever comes first: ties go one way
    if residuals.data.n_classes > 2:  # how sure the class is, whichever comes first
        chances = _target(residuals, centred=False) - of_all_classes(left)
        expected = np.round((chances**2).sum(axis=1), 9)
    if residuals.data.rule is not None and residuals.data.rule.has_residuals:
        expected = np.zeros(len(left))  # y less its residual is no prediction
    found = residuals.fold * POLICY.strata
    for k in np.unique(residuals.fold):
        rows = np.flatnonzero(residuals.fold == k)
        count = max(1, min(POLICY.strata, len(rows) // POLICY.least_stratum))
        ends = np.quantile(expected[rows], np.arange(1, count) / count)
        found[rows] += np.searchsorted(ends, expected[rows] - 1e-9 * np.ptp(expected[rows]))
    return found


def _is_second_common(y: Array) -> bool:
    """Return whether most rows are of the second class, or half of them and the first row too."""
    return bool(y.mean() + 1e-9 * (2 * y[0] - 1) > 0.5)


def _of_gains(method: Method, residuals: Residuals, scores: Array) -> Array:
    assert method.losses is not None
    if residuals.data.rule is not None:  # how a move of the prediction shows in it is not known
        return np.ones(scores.shape[1])
    other, base = method.losses(residuals)
    target = _target(residuals)
    look = _of_log_loss if residuals.data.classes else _of_squared_loss
    found = np.ones(scores.shape[1])
    moves, implied = look(other, base)
    for j in np.flatnonzero(are_far_from_normal(moves, target)):
        found[j] = _floor(residuals, scores[:, j], float(implied[:, j].mean()))
    return found


def _target(residuals: Residuals, centred: bool = True) -> Array:
    """Return y, or which rows are of which class, less the mean."""
    data = residuals.data
    y = (
        data.columns_of_y[residuals.rows]
        if data.outputs is not None
        else data.y[residuals.rows, None]
    )
    target = (y == np.arange(data.n_classes)).astype(float) if data.classes else y
    return np.asarray(target - target.mean(axis=0) if centred else target)


def _floor(residuals: Residuals, scores: Array, implied: float) -> float:
    error = float(standard_error(scores[:, None], residuals.clusters)[0])
    return floor_factor(len(scores) * error**2, implied)


def _of_squared_loss(other: Array, base: Array) -> tuple[Array, Array]:
    """Return by how much each prediction moves, and the variance that gives its gain.

    Of two moves with these losses the smaller counts.
    """
    move = np.abs(np.sqrt(other) - np.sqrt(base))
    return move, 4 * move**2 * base.mean()


def _of_log_loss(other: Array, base: Array) -> tuple[Array, Array]:
    p, q = (np.clip(np.exp(-loss), 1e-9, 1 - 1e-9) for loss in (other, base))
    return np.abs(q - p), p * (1 - p) * np.log(q * (1 - p) / (p * (1 - q))) ** 2
