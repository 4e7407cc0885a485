"""GCM with weights, and with a square: options for effects that plain GCM averages away.

Scheidegger, Hörrmann and Bühlmann, "The weighted generalised covariance measure", JMLR 23 (2022).
The product of the residuals is multiplied by a function of the other features, so that an effect
which is positive here and negative there no longer cancels. The functions are 1, the sign of each
other column around its median, and the sign of each pair's product; the statistic is the largest of
their standardised means, and its p-value comes from Gaussian multipliers. It can see interactions
of the sign type. It is still blind to even effects, and no more powerful than GCM where there is
no interaction.

`basis_gcm` tests x_j and its square together, by a χ² with two degrees of freedom: it sees even
effects and is, on few rows, slightly liberal (docs/validity.md has its level).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.inference.tests import SMALLEST_P, Tests, normal_p, quantile, standard_error
from covaria.methods.gcm import combined, factors, of_products
from covaria.nuisance.residuals import Residuals
from covaria.tables.arrays import of_all_classes

Array = NDArray[np.float64]
Whole = NDArray[np.intp]

MULTIPLIERS = 999
# Signs of pairs are taken of no more columns than this: those that y leaves most to.
MOST_PAIRED = 20


def weighted_gcm(residuals: Residuals, rng: Generator) -> Array:
    """Return the products of the residuals times the weight that shows most."""
    scores = np.zeros(residuals.y_given_rest.shape[:2])
    for j, feature in enumerate(residuals.data.features):
        if feature.columns:
            products = _weighted_products(residuals, j)
            scores[:, j] = products[:, int(np.argmax(np.abs(_ratios(products))))]
    return scores


def weighted_test(residuals: Residuals, scores: Array, rng: Generator, confidence: float) -> Tests:
    """Return the test of the largest standardised mean, by Gaussian multipliers."""
    n_rows, n_features = scores.shape
    clusters = residuals.clusters
    unit = np.arange(n_rows) if clusters is None else clusters
    draws = rng.normal(size=(MULTIPLIERS, int(unit.max()) + 1))
    statistic, p_value = np.zeros(n_features), np.ones(n_features)
    for j, feature in enumerate(residuals.data.features):
        if not feature.columns:
            continue
        products = _summed(_weighted_products(residuals, j), unit)
        ratios = _ratios(products)
        largest = float(np.abs(ratios).max(initial=0.0))
        if largest <= 0:
            continue
        centred = products - products.mean(axis=0)
        alive = np.abs(ratios) > 0
        sd = np.sqrt(np.square(centred[:, alive]).sum(axis=0))
        simulated = np.abs(draws @ (centred[:, alive] / sd)).max(axis=1)
        statistic[j] = largest
        # Beyond the draws the sum of all tails is an upper bound.
        bound = alive.sum() * normal_p(np.array([largest]), "two-sided")[0]
        counted = (1 + (simulated >= largest).sum()) / (MULTIPLIERS + 1)
        p_value[j] = max(min(counted, bound), SMALLEST_P)
    estimate, error = scores.mean(axis=0), standard_error(scores, clusters)
    reach = quantile(0.5 + confidence / 2) * error
    return Tests(
        estimate, error, statistic, p_value, estimate - reach, estimate + reach, statistic == 0
    )


def _weighted_products(residuals: Residuals, j: int) -> Array:
    """Return every product of the residuals times every weight, (rows, products × weights)."""
    x, y = residuals.feature(j)
    products = residuals.weighted((x[:, :, None] * _classes(y)[:, None, :]).reshape(len(x), -1))
    weights = _signs(residuals, j)
    return np.asarray((products[:, :, None] * weights[:, None, :]).reshape(len(products), -1))


def _classes(y: Array) -> Array:
    """Return what is left of y, of three or more classes for each: the largest product counts."""
    return y if y.shape[1] == 1 else of_all_classes(y)


def _signs(residuals: Residuals, j: int) -> Array:
    """Return the weights of each row: 1, signs of the other columns, and signs of pairs."""
    rest = residuals.data.without(j)
    Z = residuals.data.X[residuals.rows][:, rest]
    signs = np.where(np.median(Z, axis=0) < Z, 1.0, -1.0)
    few = signs[:, :MOST_PAIRED]
    if signs.shape[1] > MOST_PAIRED:
        shared = np.square(Z.T @ _classes(residuals.feature(j)[1])).sum(axis=1)
        few = signs[:, np.argsort(-shared, kind="stable")[:MOST_PAIRED]]
    pairs = [few[:, a] * few[:, b] for a, b in combinations(range(few.shape[1]), 2)]
    return np.column_stack([np.ones(len(Z)), signs, *pairs])


def _summed(products: Array, unit: Whole) -> Array:
    """Return the sums of rows that belong together."""
    if len(unit) == int(unit.max()) + 1:
        return products
    sums = np.zeros((int(unit.max()) + 1, products.shape[1]))
    np.add.at(sums, unit, products)
    return sums


def _ratios(products: Array) -> Array:
    """Return √n mean / sd of each column, 0 where it does not vary."""
    sd = products.std(axis=0)
    alive = sd > 1e-12 * max(float(sd.max(initial=0.0)), 1e-300)
    root = np.sqrt(len(products))
    means = products.mean(axis=0)
    return np.asarray(root * np.divide(means, sd, out=np.zeros_like(sd), where=alive))


# --- with a square ------------------------------------------------------------------------------


def basis_gcm(residuals: Residuals, rng: Generator) -> Array:
    """Return the combination of the products of x_j and x_j² whose squared statistic is the χ²."""
    scores = np.zeros(residuals.y_given_rest.shape[:2])
    for j, feature in enumerate(residuals.data.features):
        if feature.columns:
            scores[:, j] = combined(residuals, _with_square(residuals, j))[0]
    return scores


def basis_degrees(residuals: Residuals) -> Whole:
    """Return the degrees of freedom of each feature: the rank of its products."""
    return np.array(
        [
            combined(residuals, _with_square(residuals, j))[1] if feature.columns else 0
            for j, feature in enumerate(residuals.data.features)
        ],
        dtype=np.intp,
    )


def _with_square(residuals: Residuals, j: int) -> Array:
    products = of_products(residuals, j)
    if len(residuals.data.features[j].tested) != 1:
        return products
    square = residuals.square_given_rest[:, j]
    y = residuals.y_given_rest[:, j].reshape(len(square), -1)
    return np.hstack([products, residuals.weighted(square[:, None] * y)])


def basis_factors(residuals: Residuals, j: int) -> tuple[Array, Array]:
    """Return what the products of a feature and its square are made of."""
    x, y = factors(residuals, j)
    if len(residuals.data.features[j].tested) != 1:
        return x, y
    square = residuals.square_given_rest[:, [j]]
    weights = residuals.weights
    return np.hstack([x, square if weights is None else weights[:, None] * square]), y
