"""Knockoffs of more columns than rows: common factors, and blocks of columns that go together.

Of 5,000 columns 200 rows do not show a covariance. Shrunk until it is one (Schäfer and Strimmer
2005, as R's knockoff does it), correlations of .7 within blocks are taken for .1: copies then go
less with useful features than the useless features beside these do, lose against them, and too much
of what is selected is false (docs/methods/knockoffs.md). What such rows do show are

  * factors that all columns share: principal components whose eigenvalue is far above what columns
    without correlation would have, (1 + √(p/n))² (Marchenko and Pastur 1967);
  * and, in what these leave, correlations too large for chance among all pairs.

So a copy has the factors of its row as they are (Fan, Lv, Sharifvaghefi and Uematsu, "IPAD: stable
interpretable forecasting with knockoffs inference", JASA 115, 2020), and of the rest a draw that
follows the correlations within blocks of columns, found by average linkage. Between blocks there
are none: weaker correlations than rows can show are missing in the copies, so the bound on the
false discovery rate is approximate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.errors import plural
from covaria.methods.knockoff_sampling import CONSTRUCTIONS, conditional, shrunken_correlation
from covaria.options.policy import Policy, threshold

Array = NDArray[np.float64]
Whole = NDArray[np.intp]


@dataclass(frozen=True)
class BlockPolicy(Policy):
    """What counts as a factor of all columns, and as a block of some.

    above_noise   eigenvalue of a factor, as a multiple of the largest without correlation
    chance        that the largest correlation of columns without any is taken for one
    """

    above_noise: float = threshold(
        2.0, "docs/methods/knockoffs.md: blocks of ten are no factors, five factors of 8% each are"
    )
    chance: float = threshold(0.05, "formula: Bonferroni over all pairs of columns")


POLICY = BlockPolicy()


@dataclass(frozen=True)
class Block:
    """Columns that go together: what of them is kept in a copy, and the root of what is drawn."""

    columns: Whole
    kept: Array
    root: Array


@dataclass(frozen=True)
class Blocks:
    """What a draw of knockoffs needs where rows are few: factors, and blocks of what they leave."""

    mean: Array
    scale: Array
    loads: Array  # (columns, factors), orthonormal
    blocks: Sequence[Block]

    def draw(self, X: Array, rng: Generator) -> Array:
        """Return knockoffs of the rows of X."""
        centred = (X - self.mean) / self.scale
        common = (centred @ self.loads) @ self.loads.T
        left, noise = centred - common, rng.standard_normal(X.shape)
        for block in self.blocks:
            at = block.columns
            common[:, at] += left[:, at] @ block.kept + noise[:, at] @ block.root.T
        return np.asarray(self.mean + self.scale * common)

    def note(self, n_rows: int) -> str:
        """Return what a reader should know of such copies."""
        sizes = [len(block.columns) for block in self.blocks]
        several, columns = [size for size in sizes if size > 1], plural(sum(sizes), "column")
        factors = self.loads.shape[1]
        shown = [f"{plural(factors, 'factor')} of all columns"] if factors else []
        if several:
            blocks = f"{plural(len(several), 'block')} of them (the largest of {max(several)})"
            shown.append(f"correlations within {blocks}")
        follow = " and ".join(shown) or "no correlations, as none stands out"
        return (
            f"{plural(n_rows, 'row')} do not show the covariance of {columns}: knockoffs follow "
            f"{follow}, and the bound on false discoveries is approximate."
        )


def fit_blocks(X: Array, construction: str) -> Blocks:
    """Return the sampler for features of which there are more than rows, none of them constant."""
    mean, scale = X.mean(axis=0), X.std(axis=0, ddof=1)
    centred = (X - mean) / scale
    loads = factors_of(centred)
    left = centred - (centred @ loads) @ loads.T
    spread = left.std(axis=0, ddof=1)
    spread[spread <= 0] = 1.0
    blocks = [_block(left, spread, columns, construction) for columns in blocks_of(left / spread)]
    return Blocks(mean, scale, loads, blocks)


def factors_of(Z: Array) -> Array:
    """Return the principal directions of standardised columns that all of them share.

    >>> rng = np.random.default_rng(0)
    >>> factors_of(rng.normal(size=(50, 200))).shape
    (200, 0)
    """
    n_rows, n_columns = Z.shape
    _, values, directions = np.linalg.svd(Z, full_matrices=False)
    edge = (1 + np.sqrt(n_columns / n_rows)) ** 2
    is_factor = values**2 / (n_rows - 1) > POLICY.above_noise * edge
    return np.asarray(directions[is_factor].T)


def blocks_of(Z: Array) -> list[Whole]:
    """Return columns in blocks whose correlations are on average larger than chance makes them.

    >>> rng = np.random.default_rng(0)
    >>> Z = np.repeat(rng.normal(size=(50, 20)), 3, axis=1) + 0.5 * rng.normal(size=(50, 60))
    >>> [block.tolist() for block in blocks_of((Z - Z.mean(axis=0)) / Z.std(axis=0))][:2]
    [[0, 1, 2], [3, 4, 5]]
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.stats import norm

    n_rows, n_columns = Z.shape
    if n_columns == 1:
        return [np.zeros(1, dtype=np.intp)]
    pairs = n_columns * (n_columns - 1) / 2
    least = min(float(norm.isf(POLICY.chance / (2 * pairs))) / np.sqrt(n_rows), 1.0)
    apart = 1 - np.abs(Z.T @ Z / (n_rows - 1))[np.triu_indices(n_columns, 1)]
    label = fcluster(linkage(np.maximum(apart, 0.0), "average"), 1 - least, "distance")
    order = np.argsort(label, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
    return sorted((np.sort(part) for part in parts), key=lambda part: int(part[0]))


def _block(left: Array, spread: Array, columns: Whole, construction: str) -> Block:
    """Return how the columns of a block are drawn, in their own units."""
    own = spread[columns]
    correlation, _ = shrunken_correlation(left[:, columns] / own)
    _, kept, root = conditional(correlation, CONSTRUCTIONS[construction](correlation))
    return Block(columns, kept / own[:, None] * own, root * own[:, None])
