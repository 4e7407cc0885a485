"""The generalised covariance measure.

Shah and Peters, "The hardness of conditional independence testing and the generalised
covariance measure", Annals of Statistics 48 (2020). With out-of-fold residuals of the two nuisance
regressions,

    ξ_i = x_ij − Ê[x_j | others],   ε_i = y_i − Ê[y | others]
    s_i = ξ_i ε_i,                  T = √n · mean(s) / sd(s) ~ N(0, 1) if x_j and y are
                                    independent given the other features

`gcm` returns the scores s, a number for each row and feature; `inference.tests.mean_test` makes T
and its p-value of them, as of all scores that are averaged. With a learner that was named they are
the products. With `auto` their mean is moved towards 0 as far as a second learner does not confirm
it (`Residuals.doubt`), and they are spread about it by (1 + 2q)/(1 + q), q being the noise in the
models' predictions; least squares on few rows a column is spread in the same way.
`few_rows.steadied` then spreads them further where few rows carry the sum.
A feature of several columns, or a target of three or more classes, is tested by the quadratic form
of all products at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.inference.tests import covariance, standard_error, stretched
from covaria.nuisance.residuals import Residuals
from covaria.tables.arrays import as_slice, column_blocks, in_one_piece

Array = NDArray[np.float64]
Whole = NDArray[np.intp]

# Directions whose variance is below this share of the largest say the same as the others.
SAME_DIRECTION = 1e-9
# Columns whose spread is below this share of the largest are what rounding left of them.
ROUNDING = 1e-10


def gcm(residuals: Residuals, rng: Generator) -> Array:
    """Return GCM's scores: products of the residuals of x_j and of y, corrected for `auto`."""
    scores = _products(residuals)
    if residuals.second:  # the mean moves towards 0 as far as another learner does not confirm it
        scores -= residuals.doubt * scores.mean(axis=0)
    if residuals.model_noise is None:
        return wider(residuals, scores)
    # Folds share training rows, so the noise of row i in x and of row j in y meet twice: in the
    # product of row i and in that of row j. The sd over rows does not see that they are the same.
    noise = residuals.model_noise
    return wider(residuals, scores, (1 + 2 * noise) / (1 + noise))


def wider(residuals: Residuals, scores: Array, factor: Array | float = 1.0) -> Array:
    """Return scores further from their mean: by a factor, and for means taken off within levels."""
    if residuals.widening is not None:
        factor = factor * residuals.widening
    return stretched(scores, factor)


def _products(residuals: Residuals) -> Array:
    single, columns, several = residuals.by_width
    every = list(range(residuals.data.n_features))
    if single == columns == every and len(every) == residuals.data.X.shape[1]:
        return residuals.weighted(residuals.x_given_rest * residuals.y_given_rest)
    scores = np.zeros(residuals.y_given_rest.shape[:2], order="F")
    if single:
        own, at = (as_slice(np.array(index)) for index in (columns, single))
        scores[:, at] = residuals.weighted(
            residuals.x_given_rest[:, own] * residuals.y_given_rest[:, at]
        )
    for j in several:
        scores[:, j] = combined(residuals, of_products(residuals, j))[0]
        scores[:, j] *= _multiple_correlation(residuals, j)  # so that this is their mean
    return scores


def of_products(residuals: Residuals, j: int) -> Array:
    """Return x-residual times y-residual for every pair of their columns."""
    x, y = residuals.feature(j)
    return residuals.weighted((x[:, :, None] * y[:, None, :]).reshape(len(x), -1))


def combined(residuals: Residuals, products: Array) -> tuple[Array, int]:
    """Return the one combination of products whose squared statistic is the χ², and its df.

    With weights Σ⁻¹m on products of mean m and covariance Σ, mean² over variance is m'Σ⁻¹m.
    They are scaled so that the mean is 1, or all are 0.
    """
    inverse, rank = _inverse(residuals, products)
    scores = products @ (inverse @ products.mean(axis=0))
    mean = float(scores.mean())
    return (scores / mean if mean > 0 else np.zeros(len(products))), rank


def _inverse(residuals: Residuals, products: Array) -> tuple[Array, int]:
    """Return the inverse covariance of the products' means and its rank, after standardising."""
    sigma = covariance(products, residuals.clusters)
    sd = np.sqrt(np.diag(sigma))
    # A column the rest determine exactly leaves rounding only: it must not enter.
    alive = sd > ROUNDING * sd.max() if sd.max() > 0 else np.zeros(len(sd), dtype=bool)
    scale = np.where(alive, 1 / np.where(alive, sd, 1.0), 0.0)
    values, vectors = np.linalg.eigh(sigma * np.outer(scale, scale))
    kept = values > SAME_DIRECTION * max(values.max(initial=0.0), 1e-300)
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return inverse * np.outer(scale, scale), int(kept.sum())


def _multiple_correlation(residuals: Residuals, j: int) -> float:
    """Return the length of the whitened cross-covariance of the residuals, between 0 and 1."""
    x, y = (_alive(left, residuals.weights) for left in residuals.feature(j))
    w = np.ones(len(x)) if residuals.weights is None else residuals.weights
    cross = (w[:, None] * x).T @ y / len(x)
    x_inverse, y_inverse = (np.linalg.pinv((w[:, None] * v).T @ v / len(v)) for v in (x, y))
    squared = float(np.trace(x_inverse @ cross @ y_inverse @ cross.T))
    return float(np.sqrt(max(squared, 0.0) / min(x.shape[1], y.shape[1])))


def degrees_of_freedom(residuals: Residuals) -> Whole:
    """Return the degrees of freedom of each feature: the rank of its products."""
    degrees = np.array([min(1, len(f.tested)) for f in residuals.data.features], dtype=np.intp)
    for j in residuals.by_width[2]:
        degrees[j] = _inverse(residuals, of_products(residuals, j))[1]
    return degrees


def product_scale(residuals: Residuals) -> Array:
    """Return sd of the feature times sd of y: the size a product can have."""
    single, columns, _ = residuals.by_width
    scale = np.ones(residuals.data.n_features)
    scale[single] = np.sqrt(residuals.data.variance[columns] * residuals.spread)
    return scale


def correlation_scale(residuals: Residuals) -> Array:
    """Return what a feature's estimate is divided by to read as a correlation."""
    single = residuals.by_width[0]
    scale = np.ones(residuals.data.n_features)
    of_x, of_y = residuals.sizes
    size = of_x * of_y
    scale[single] = np.where(size > 0, size, 1.0)
    return scale


def fisher_scale(residuals: Residuals, scores: Array) -> tuple[Array, Array]:
    """Return Fisher's z of each partial correlation and its error; NaN for several columns.

    The error is that of a ratio: with ξ and ε of unit variance row i moves the correlation r by
    ξε − r (ξ² + ε²)/2. What widened the spread of the scores widens it as well.
    """
    single, columns, _ = residuals.by_width
    z, error = np.full((2, residuals.data.n_features), np.nan)
    scale = correlation_scale(residuals)
    of_x, of_y = (np.where(size > 0, size, 1.0) for size in residuals.sizes)
    for some in column_blocks(len(residuals.rows), len(single)):
        at = single[some]
        x = in_one_piece(residuals.x_given_rest, columns[some]) / of_x[some]
        y = in_one_piece(residuals.y_given_rest, at) / of_y[some]
        product, score = x * y, in_one_piece(scores, at)
        r = score.mean(axis=0) / scale[at]
        r = np.clip(r, -1 + 1e-12, 1 - 1e-12)
        influence = residuals.weighted(product - r / 2 * (x**2 + y**2))
        own, wider = residuals.weighted(product).std(axis=0), score.std(axis=0)
        unit = np.where(own > 0, scale[at] * own, 1.0)
        error[at] = standard_error(influence, residuals.clusters) / (1 - r**2) * wider / unit
        z[at] = np.arctanh(r)
    return z, error


def _unit(values: Array, weights: Array | None) -> Array:
    size = np.sqrt(np.average(values**2, axis=0, weights=weights))
    return np.asarray(values / np.where(size > 0, size, 1.0))


def _alive(values: Array, weights: Array | None) -> Array:
    """Return columns of one size, whatever their units; those that are rounding alone are 0."""
    size = np.sqrt(np.average(values**2, axis=0, weights=weights))
    return np.where(size > ROUNDING * size.max(), _unit(values, weights), 0.0)


def factors(residuals: Residuals, j: int) -> tuple[Array, Array]:
    """Return what the scores of a feature are products of, (rows, columns) each."""
    return weighed(residuals, *residuals.feature(j))


def pairs(residuals: Residuals, features: Sequence[int]) -> tuple[Array, Array] | None:
    """Return the factors of several features, a column each, where each has one product a row."""
    if not set(features) <= set(residuals.by_width[0]):
        return None
    x = residuals.left_of([residuals.data.features[j].tested[0] for j in features])
    return weighed(residuals, x, residuals.y_given_rest[:, list(features)])


def weighed(residuals: Residuals, x: Array, y: Array) -> tuple[Array, Array]:
    """Return the factors of products with the weights in one: in y where they are part of y."""
    if residuals.weights is None:
        return x, y
    w, rule = residuals.weights[:, None], residuals.data.rule
    return (x, w * y) if rule is not None and rule.weighs_y else (w * x, y)
