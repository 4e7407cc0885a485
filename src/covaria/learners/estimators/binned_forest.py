"""A small forest on binned columns, for a quick second opinion on a regression.

Every column takes at most `BINS` values, quantiles of its own, so that a split is found by adding
up a node's rows by bin. Trees grow on bootstrap samples until a leaf would have too few rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covaria.execution.compiling import compiled_or_plain
from covaria.learners.estimators import Array

Bins = NDArray[np.uint8]
Whole = NDArray[np.intp]
BINS = 20


def binned(X: Array) -> Bins:
    """Return the bin of each value among the quantiles of its column, (columns, rows).

    >>> binned(np.array([[3.0], [1.0], [3.0], [2.0]])).tolist()
    [[2, 0, 2, 1]]
    """
    found = np.empty(X.shape[::-1], dtype=np.uint8)
    for j, column in enumerate(X.T):
        edges = np.unique(column)
        if len(edges) > BINS:
            edges = np.unique(np.quantile(column, np.linspace(0, 1, BINS + 1)[1:-1]))
            found[j] = np.searchsorted(edges, column, side="right")
        else:
            found[j] = np.searchsorted(edges, column)
    return found


@compiled_or_plain
def forest_predictions(
    bins: Bins, y: Array, weights: Array, train: Whole, test: Whole,
    min_node: float, drawn: Whole, seed: int,
) -> Array:  # fmt: skip
    """Return the mean over trees of the leaf that each test row falls into.

    `drawn` has a tree's bootstrap sample in each row, as places in `train`. A node looks at half
    of the columns, and a leaf has at least the weight `min_node`.
    """
    n_columns, n_train = len(bins), len(train)
    half = (n_columns + 1) // 2
    most = 2 * n_train + 1
    split_on, edge = np.empty(most, dtype=np.intp), np.empty(most, dtype=np.intp)
    child, mean = np.empty(most, dtype=np.intp), np.empty(most)
    first, last = np.empty(most, dtype=np.intp), np.empty(most, dtype=np.intp)
    rows, aside = np.empty(n_train, dtype=np.intp), np.empty(n_train, dtype=np.intp)
    counts, own_w, own_wy = np.empty(n_train), np.empty(n_train), np.empty(n_train)
    w, wy = np.zeros(len(y)), np.zeros(len(y))
    size, total = np.empty(BINS), np.empty(BINS)
    order = np.arange(n_columns)
    found = np.zeros(len(test))
    state = np.uint64(seed) | np.uint64(1)
    for tree in range(len(drawn)):
        counts[:] = 0
        for place in drawn[tree]:
            counts[place] += 1
        n_rows = 0
        for place in range(n_train):
            row = train[place]
            w[row] = counts[place] * weights[row]
            wy[row] = w[row] * y[row]
            if w[row] > 0:
                rows[n_rows] = row
                n_rows += 1
        first[0], last[0], used, node = 0, n_rows, 1, 0
        while node < used:
            start, stop = first[node], last[node]
            all_size = all_total = 0.0
            for k in range(start, stop):
                own_w[k], own_wy[k] = w[rows[k]], wy[rows[k]]
                all_size += own_w[k]
                all_total += own_wy[k]
            mean[node] = all_total / all_size if all_size > 0 else 0.0
            split_on[node] = -1
            # A gain counts if it is more than rounding.
            best = all_total * mean[node] * (1 + 1e-12) + 1e-9
            for at in range(half if all_size >= 2 * min_node else 0):
                state ^= state << np.uint64(13)  # xorshift (Marsaglia, 2003)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                other = at + np.intp(state % np.uint64(n_columns - at))
                order[at], order[other] = order[other], order[at]
                j = order[at]
                size[:], total[:] = 0, 0
                for k in range(start, stop):
                    b = bins[j, rows[k]]
                    size[b] += own_w[k]
                    total[b] += own_wy[k]
                light = below = 0.0
                for b in range(BINS - 1):
                    if size[b] == 0:
                        continue
                    light += size[b]
                    below += total[b]
                    heavy = all_size - light
                    if heavy < min_node:
                        break
                    if light >= min_node:
                        above = all_total - below
                        gain = (below * below * heavy + above * above * light) / (light * heavy)
                        if gain > best:
                            best, split_on[node], edge[node] = gain, j, b
            if split_on[node] >= 0:
                n_left = n_right = 0
                for k in range(start, stop):
                    row = rows[k]
                    if bins[split_on[node], row] <= edge[node]:
                        rows[start + n_left] = row
                        n_left += 1
                    else:
                        aside[n_right] = row
                        n_right += 1
                rows[start + n_left : stop] = aside[:n_right]
                child[node] = used
                first[used], last[used] = start, start + n_left
                first[used + 1], last[used + 1] = start + n_left, stop
                used += 2
            node += 1
        for k in range(len(test)):
            node = 0
            while split_on[node] >= 0:
                goes_right = bins[split_on[node], test[k]] > edge[node]
                node = child[node] + (1 if goes_right else 0)
            found[k] += mean[node]
    return found / len(drawn)
