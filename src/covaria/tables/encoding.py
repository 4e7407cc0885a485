"""Categories of many levels, so that tests can adjust for every one of them.

A category has a 0/1 column for each of its most common levels; a shop, a postcode or a patient has
thousands. A level's effect on y cannot be learned from its two or three rows, however its mean is
shrunk, and what both regressions leave of it would pass for an effect of the feature: with 60
levels in 1,000 rows target encoding, out of fold and shrunk, still rejects .3 to .6 of nulls, and
with 300 levels all of them. So nothing is learned of it: where a residual still goes with the
levels, both are taken less their means within the levels, as in a regression with fixed effects.

What stands in for the levels in the models of others are the means of the other columns, a column
for each that goes with the levels. A linear model of these has the slopes of one with a column for
every level (Mundlak, "On the pooling of time series and cross section data", Econometrica 46,
1978). They have nothing of y in them, so no row hears of its own y.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from covaria.options.policy import Policy, threshold
from covaria.tables.arrays import Rows
from covaria.tables.dataset import Dataset
from covaria.tables.layout import Feature, Levels

Array = NDArray[np.float64]

# More means than these, those that levels tell most of, would outnumber the table.
MOST_ENCODED = 30
OVERLOOKED = (
    "formula: the bias of what is overlooked on both sides is below 1.8 √(levels / rows) errors"
)


@dataclass(frozen=True)
class EncodingPolicy(Policy):
    """Which columns go with the levels of a category.

    unlikely   those that chance would make do so less often than this
    """

    unlikely: float = threshold(0.1, OVERLOOKED)


POLICY = EncodingPolicy()
# Sweeps over the levels of several categories.
SWEEPS = 20


@dataclass(frozen=True)
class Means:
    """The levels of some rows: the level of each row, from 0, and the rows of each level."""

    code: Rows
    count: Array

    @classmethod
    def of(cls, code: Rows) -> Means:
        """Return the levels of rows, numbered anew from 0."""
        _, code = np.unique(code, return_inverse=True)
        return cls(code, np.bincount(code).astype(float))

    def means(self, values: Array) -> Array:
        """Return for each row the means of its level."""
        sums = np.zeros((len(self.count), values.shape[1]))
        np.add.at(sums, self.code, values)
        return np.asarray((sums / self.count[:, None])[self.code])

    def chances(self, values: Array) -> Array:
        """Return how likely levels without a say differ as much: the F test of each column."""
        from scipy.stats import f

        between, within = len(self.count) - 1, len(self.code) - len(self.count)
        if between < 1 or within < 1:
            return np.ones(values.shape[1])
        centred = values - values.mean(axis=0)
        means = self.means(centred)
        explained, left = (means**2).sum(axis=0), ((centred - means) ** 2).sum(axis=0)
        ratio = np.divide(explained, left, out=np.full_like(left, np.inf), where=left > 0)
        ratio[explained <= 0] = 0.0
        return np.asarray(f.sf(ratio * within / between, between, within))


def encoded(data: Dataset) -> Dataset:
    """Return the table with means by level beside every category of many levels."""
    added: dict[int, list[Array]] = {}
    for levels in data.levels:
        added.setdefault(levels.feature, []).extend(_means_by_level(data, levels))
    return _with_columns(data, added) if any(added.values()) else data


def _means_by_level(data: Dataset, levels: Levels) -> list[Array]:
    """Return the means of the columns of other features that go with the levels."""
    others = data.without(levels.feature)
    values, means = data.X[:, others], Means.of(levels.code)
    chances = means.chances(values)
    likeliest = np.argsort(chances, kind="stable")[:MOST_ENCODED]
    kept = np.sort(likeliest[chances[likeliest] < POLICY.unlikely])
    return list(means.means(values[:, kept]).T)


def _with_columns(data: Dataset, added: dict[int, list[Array]]) -> Dataset:
    """Return the table with more columns beside those that a feature owns."""
    blocks: list[Array] = []
    features: list[Feature] = list(data.features)
    holes: list[NDArray[np.bool_]] = []
    width = 0
    for j in sorted(range(data.n_features), key=lambda j: data.features[j].columns or (-1,)):
        own, more = list(data.features[j].columns), added.get(j, [])
        if not own:
            continue
        blocks += [data.X[:, own], *(column[:, None] for column in more)]
        size = len(own) + len(more)
        features[j] = replace(
            features[j], columns=tuple(range(width, width + size)), n_encoded=len(more)
        )
        if data.holes is not None:
            none = np.zeros((data.n_rows, len(more)), dtype=bool)
            holes += [data.holes[:, own], none]
        width += size
    return replace(
        data,
        X=np.ascontiguousarray(np.hstack(blocks)),
        features=tuple(features),
        holes=np.hstack(holes) if holes else None,
    )


# --- within levels ------------------------------------------------------------------------------


def goes_with(values: Array, code: Rows) -> bool:
    """Return whether some column differs between levels by more than chance would make it."""
    return bool((Means.of(code).chances(values) < POLICY.unlikely).any())


def within(values: Array, codes: list[Rows]) -> Array:
    """Return columns less their means within the levels of every category."""
    every = [Means.of(code) for code in codes]
    for _ in range(SWEEPS if len(every) > 1 else 1):
        for one in every:
            values = values - one.means(values)
    return values


def widening(codes: list[Rows]) -> float:
    """Return by how much the sd of products within levels falls short of that of their sum.

    A row keeps 1 − h of the variance of both its residuals, h the share of its level that it is,
    so that its product keeps (1 − h)²; but the sum of the products keeps Σ(1 − h).
    """
    kept = np.ones(len(codes[0]))
    for code in codes:
        means = Means.of(code)
        kept *= 1 - 1 / means.count[means.code]
    return float(np.sqrt(kept.sum() / (kept**2).sum())) if kept.any() else 1.0
