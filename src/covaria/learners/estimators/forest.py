"""A forest of deep trees, each grown on a bootstrap sample."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from covaria.execution.compiling import compiled_or_plain
from covaria.learners.estimators import Array

Whole = NDArray[np.intp]
# Numbers are learned in multiples of this share of their spread: their sums are then exact, and
# rounding does not decide between splits that are equally good.
GRID = 2.0**-20


class ForestModel:
    """The mean of trees that may split on any column; class shares for classes."""

    def __init__(
        self, *, trees: int = 100, min_node: int = 5, n_classes: int = 0, seed: int = 0
    ) -> None:
        self.trees, self.min_node = trees, min_node
        self.n_classes, self.seed = n_classes, seed

    def fit(self, X: Array, y: Array, weights: Array | None = None) -> Self:
        """Return the model, fitted to `y`: numbers, or class codes from 0."""
        if self.n_classes:
            return self._fit_classes(X, y, weights)
        self.mean_, self.unit_ = y.mean(), (y.std() or 1.0) * GRID
        y = np.round((y - self.mean_) / self.unit_)
        n_rows, rng = len(y), np.random.default_rng(self.seed)
        drawn = rng.integers(n_rows, size=(self.trees, n_rows))
        counts = np.array([np.bincount(some, minlength=n_rows) for some in drawn], dtype=float)
        if weights is not None:
            counts *= weights
        order = np.argsort(X, axis=0, kind="stable").T
        self.nodes_ = _grow_trees(np.ascontiguousarray(X.T), order.copy(), y, counts, self.min_node)
        return self

    def _fit_classes(self, X: Array, y: Array, weights: Array | None) -> Self:
        from sklearn.ensemble import RandomForestClassifier

        # Its trees keep columns in single precision: without centring, units would matter.
        self.centre_ = X.mean(axis=0)
        spread = X.std(axis=0)
        self.scale_ = np.where(spread > 0, spread, 1.0)
        self.forest_ = RandomForestClassifier(
            n_estimators=self.trees,
            min_samples_leaf=self.min_node,
            max_features=None,
            random_state=self.seed % 2**32,
        ).fit((X - self.centre_) / self.scale_, y, sample_weight=weights)
        return self

    def predict(self, X: Array) -> Array:
        """Return means, or class probabilities."""
        if not self.n_classes:
            found = _mean_of_leaves(np.ascontiguousarray(X.T), *self.nodes_)
            return np.asarray(self.mean_ + self.unit_ * found)
        chances = np.zeros((len(X), self.n_classes))
        found = self.forest_.predict_proba((X - self.centre_) / self.scale_)
        chances[:, self.forest_.classes_.astype(int)] = found
        return chances


@compiled_or_plain
def _grow_trees(
    columns: Array, order: Whole, y: Array, counts: Array, min_node: int
) -> tuple[Whole, Array, Whole, Array]:
    """Return the trees' nodes: column (−1 in a leaf), edge, left child (right is next), mean.

    `order` has the rows by each column; a node's rows stay side by side in it, still sorted.
    """
    n_columns, n_rows = columns.shape
    most = 2 * (n_rows // min_node) + 1
    split_on = np.full((len(counts), most), -1)
    edges = np.zeros((len(counts), most))
    children = np.zeros((len(counts), most), dtype=np.intp)
    means = np.zeros((len(counts), most))
    rows, aside = np.empty((n_columns, n_rows), dtype=np.intp), np.empty(n_rows, dtype=np.intp)
    is_left = np.zeros(n_rows, dtype=np.bool_)
    first, last = np.zeros(most, dtype=np.intp), np.zeros(most, dtype=np.intp)
    for tree in range(len(counts)):
        weight = counts[tree]
        for j in range(n_columns):
            n_drawn = 0
            for row in order[j]:
                if weight[row] > 0:
                    rows[j, n_drawn] = row
                    n_drawn += 1
        first[0], last[0], used, node = 0, n_drawn, 1, 0
        while node < used:
            start, stop = first[node], last[node]
            total = size = 0.0
            for row in rows[0, start:stop]:
                total += weight[row] * y[row]
                size += weight[row]
            means[tree, node] = total / size if size > 0 else 0.0
            # A gain counts if it is more than rounding.
            best, on, at = total * total / size * (1 + 1e-12) + 1e-6, -1, 0
            for j in range(n_columns):
                below = light = 0.0
                for k in range(start, stop - min_node):
                    row = rows[j, k]
                    below += weight[row] * y[row]
                    light += weight[row]
                    if k - start + 1 >= min_node and columns[j, row] < columns[j, rows[j, k + 1]]:
                        above = total - below
                        gain = below * below / light + above * above / (size - light)
                        if gain > best:
                            best, on, at = gain, j, k
            if on >= 0:
                low, high = columns[on, rows[on, at]], columns[on, rows[on, at + 1]]
                middle = low + (high - low) / 2
                edges[tree, node] = middle if middle < high else low
                split_on[tree, node], children[tree, node] = on, used
                for k in range(start, stop):
                    is_left[rows[on, k]] = k <= at
                for j in range(n_columns):
                    n_left = n_right = 0
                    for k in range(start, stop):
                        row = rows[j, k]
                        if is_left[row]:
                            rows[j, start + n_left] = row
                            n_left += 1
                        else:
                            aside[n_right] = row
                            n_right += 1
                    rows[j, start + n_left : stop] = aside[:n_right]
                first[used], last[used] = start, at + 1
                first[used + 1], last[used + 1] = at + 1, stop
                used += 2
            node += 1
    return split_on, edges, children, means


@compiled_or_plain
def _mean_of_leaves(
    columns: Array, split_on: Whole, edges: Array, children: Whole, means: Array
) -> Array:
    """Return for each row the mean over trees of the leaf it falls into."""
    found = np.zeros(columns.shape[1])
    for tree in range(len(split_on)):
        for row in range(len(found)):
            node = 0
            while split_on[tree, node] >= 0:
                goes_right = columns[split_on[tree, node], row] > edges[tree, node]
                node = children[tree, node] + (1 if goes_right else 0)
            found[row] += means[tree, node]
    return found / len(split_on)
