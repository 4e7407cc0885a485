"""One round of boosting for many models at once, on columns that are put into bins.

The other way to grow the trees of `boosting_kernels`, for tables of many rows. Eight models go
through the rows as they come and add their z to the bins of every column, in the order of the
plain estimator. So gains are exact at once: there is nothing to sort, to bound or to look at twice.
In a binned table a value is the number of its bin, and a threshold lies between two numbers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from covaria.nuisance.engines.boosting_lanes import DOUBLE_LANES, load, store
from covaria.nuisance.engines.boosting_parts import (
    Array,
    Count,
    Forks,
    Index,
    Mask,
    Models,
    Place,
    Rules,
    Trees,
    cut_best,
    fork,
    inner,
    keep,
    kernel,
    move,
    open_node,
    pairwise_sum,
    part,
    remember,
    rows_of,
    settle,
    some_models,
    some_trees,
    split_factor,
    subtract,
    take,
    weigh,
)

Bins = NDArray[np.uint8]

LANES = DOUBLE_LANES
# As many rows are put into the bins of one column before the next column has its turn.
TILE = 1024


class Table(NamedTuple):
    """The rows of a fold, training rows first."""

    columns: Bins  # (columns, all rows)
    n_bins: Count  # (columns)
    weights: Array  # (training rows)


class Bag(NamedTuple):
    """The rows one tree sees, and what is in the bins of each column."""

    rows: Index
    weights: Array
    counts: Array  # (columns, bins): rows
    loads: Array  # (columns, bins): weights
    stack: Array  # (3, 64): room for a sum
    weighted: bool


class Work(NamedTuple):
    """Room for a block of models, kept from round to round."""

    z: Array  # (lanes, rows of a bag)
    node: Place  # (lanes, rows of a bag): where a row of the bag is
    leaf: Place  # (all rows): where any row is
    tile: Array  # (rows of a tile, lanes): centred, weighted z
    sums: Array  # (columns, bins, lanes): the same in bins
    own_sums: Array  # (bins, 1): the same of one node
    own_counts: Array  # (bins)
    own_loads: Array  # (bins)
    place: Index  # (rows of a bag)
    terms: Array  # (rows of a bag)
    child: Array  # (rows of a bag)
    loads: Array  # (rows of a bag)
    slopes: Array  # (leaves)
    curves: Array  # (leaves)
    n_rows: Count  # (lanes, nodes): rows of a node, 0 if it cannot be cut
    weight: Array  # (lanes, nodes)
    centre: Array
    gain: Array
    column: Count
    threshold: Array


def make_work(n_all: int, n_bag: int, n_columns: int, splits: int, n_bins: int) -> Work:
    """Return room for a block of models."""
    place = np.uint8 if splits < 256 else np.uint32
    floats = [np.zeros((LANES, splits + 1)) for _ in range(4)]
    counts = [np.zeros((LANES, splits + 1), dtype=np.int64) for _ in range(2)]
    return Work(
        z=np.zeros((LANES, n_bag)),
        node=np.zeros((LANES, n_bag), dtype=place),
        leaf=np.zeros(n_all, dtype=place),
        tile=np.zeros((TILE, LANES)),
        sums=np.zeros((n_columns, n_bins, LANES)),
        own_sums=np.zeros((n_bins, 1)),
        own_counts=np.zeros(n_bins),
        own_loads=np.zeros(n_bins),
        place=np.zeros(n_bag + 1, dtype=np.uint32),
        terms=np.zeros(n_bag),
        child=np.zeros(n_bag),
        loads=np.zeros(n_bag),
        slopes=np.zeros(splits + 1),
        curves=np.zeros(splits + 1),
        n_rows=counts[0],
        weight=floats[0],
        centre=floats[1],
        gain=floats[2],
        column=counts[1],
        threshold=floats[3],
    )


def make_bag(n_columns: int, n_rows: int, n_bins: int, *, weighted: bool) -> Bag:
    """Return an empty bag."""
    return Bag(
        rows=np.zeros(n_rows, dtype=np.uint32),
        weights=np.ones(n_rows),
        counts=np.zeros((n_columns, n_bins)),
        loads=np.zeros((n_columns, n_bins)),
        stack=np.zeros((3, 64)),
        weighted=weighted,
    )


# --- bags ---------------------------------------------------------------------------------------


@part
def fill_bag(table: Table, seen: Mask, bag: Bag) -> None:
    """Write the rows that are seen into a bag, and count them in the bins of each column."""
    a = 0
    for row in range(seen.size):
        if seen[row]:
            bag.rows[a] = row
            if bag.weighted:
                bag.weights[a] = table.weights[row]
            a += 1
    for k in range(table.columns.shape[0]):
        _count(table.columns[k], bag.rows, bag.counts[k])
        bag.loads[k] = bag.counts[k]
        if bag.weighted:
            _add_weights(table.columns[k], bag.rows, bag.weights, bag.loads[k])


@part
def _count(x: Bins, rows: Index, counts: Array) -> None:
    counts[:] = 0.0
    for a in range(rows.size):
        counts[x[rows[a]]] += 1.0


@part
def _add_weights(x: Bins, rows: Index, weights: Array, loads: Array) -> None:
    loads[:] = 0.0
    for a in range(rows.size):
        loads[x[rows[a]]] += weights[a]


# --- gains --------------------------------------------------------------------------------------


@inner
def _add_roots(table: Table, bag: Bag, work: Work, n_models: int) -> None:
    """Put the centred, weighted z of all models into the bins of all columns."""
    n = bag.rows.size
    work.sums[:] = 0.0
    for begin in range(0, n, TILE):
        size = min(TILE, n - begin)
        for m in range(n_models):
            _fill_tile(work.z[m], bag.weights, work.centre[m, 0], begin, size, m, work.tile)
        for k in range(table.columns.shape[0]):
            _add_tile(table.columns[k], bag.rows, begin, size, work.tile, work.sums[k])


@part
def _fill_tile(
    z: Array, weights: Array, centre: float, begin: int, size: int, m: int, tile: Array
) -> None:
    for a in range(size):
        tile[a, m] = (z[begin + a] - centre) * weights[begin + a]


@part
def _add_tile(x: Bins, rows: Index, begin: int, size: int, tile: Array, sums: Array) -> None:
    for a in range(size):
        at = x[rows[begin + a]]
        store(sums, at, 0, load(sums, at, 0) + load(tile, a, 0))


@inner
def _look_at_roots(
    table: Table, bag: Bag, models: Models, rules: Rules, work: Work, m: int
) -> None:
    """Write the best cut of a root, the first of those that gain most."""
    for k in range(table.columns.shape[0]):
        if work.n_rows[m, 0] > 0 and not models.low[m] <= k < models.high[m]:
            _compare(table, rules, work, m, 0, k, work.sums[k], m, bag.counts[k], bag.loads[k])


@inner
def _look_at_child(
    table: Table, bag: Bag, models: Models, rules: Rules, work: Work, m: int, node: int
) -> None:
    """Write the centre and the best cut of a node that is not a root."""
    n = rows_of(work.node[m], node, work.place)
    z, loads, weight = work.child, work.loads, float(n)
    take(work.z[m], work.place, z, n)
    take(bag.weights, work.place, loads, n)
    weigh(z, loads, work.terms, n)
    if bag.weighted:
        weight = pairwise_sum(loads, n, bag.stack)
    centre = open_node(rules, work, m, node, n, weight, pairwise_sum(work.terms, n, bag.stack))
    if work.n_rows[m, node] > 0:
        for c in range(n):
            z[c] = (z[c] - centre) * loads[c]
            work.place[c] = bag.rows[work.place[c]]
        for k in range(table.columns.shape[0]):
            if not models.low[m] <= k < models.high[m]:
                sums, counts, weights = work.own_sums, work.own_counts, work.own_loads
                _add_child(table.columns[k], work.place, z, loads, n, sums, counts, weights)
                _compare(table, rules, work, m, node, k, sums, 0, counts, weights)


@part
def _add_child(
    x: Bins,
    rows: Index,
    z: Array,
    weights: Array,
    n: int,
    sums: Array,
    counts: Array,
    loads: Array,
) -> None:
    """Put the rows of a node into the bins of a column."""
    sums[:] = 0.0
    counts[:] = 0.0
    loads[:] = 0.0
    for c in range(n):
        at = x[rows[c]]
        sums[at, 0] += z[c]
        counts[at] += 1.0
        loads[at] += weights[c]


@inner
def _compare(
    table: Table,
    rules: Rules,
    work: Work,
    m: int,
    node: int,
    k: int,
    sums: Array,
    lane: int,
    counts: Array,
    loads: Array,
) -> None:
    """Write the best cut of a column over that of a node, if it gains more."""
    n, total = work.n_rows[m, node], work.weight[m, node]
    s, left, n_left = 0.0, 0.0, 0.0
    for at in range(table.n_bins[k] - 1):
        s += sums[at, lane]
        left += loads[at]
        n_left += counts[at]
        if rules.min_node <= n_left <= n - rules.min_node:
            gain = s * s * split_factor(left, total)
            if gain > work.gain[m, node]:
                work.gain[m, node] = gain
                work.column[m, node] = k
                work.threshold[m, node] = at + 0.5


# --- trees --------------------------------------------------------------------------------------


@kernel
def advance(
    table: Table,
    bags: Mask,
    bag: Bag,
    models: Models,
    rules: Rules,
    work: Work,
    trees: Trees,
    scores: Array,
    forks: Forks,
    history: Trees,
    done: int,
) -> None:
    """Let every model grow a tree on each of the bags, and fork off new ones on the way.

    The history, if there is room for any, gets the trees of the full model from round `done` on.
    """
    height = forks.scores.shape[0]
    for t in range(bags.shape[0]):
        fill_bag(table, bags[t], bag)
        count = forks.used[0]
        if height > 0:
            remember(models, scores, forks)
        # A part that is called in one place only is compiled only once.
        for is_new in range(2):
            first, last = (count, forks.used[0]) if is_new else (0, count)
            for start in range(first, last, LANES):
                end = min(start + LANES, last)
                some, grown = some_models(models, start, end), some_trees(trees, start, end)
                _grow_block(table, bag, some, rules, work, grown)
                settle(table.columns, bag, some, rules, work, grown)
                move(table.columns, work, grown, scores[start:end])
            for m in range(0 if is_new else height):
                keep(trees, m, history, (done + t) * height + m)
                fork(models, trees, scores, forks, m)


@part
def _grow_block(
    table: Table, bag: Bag, models: Models, rules: Rules, work: Work, trees: Trees
) -> None:
    """Write the cuts of a block of trees, each time in the node that gains most."""
    n, n_models = bag.rows.size, trees.cuts.size
    trees.cuts[:] = 0
    weight = pairwise_sum(bag.weights, n, bag.stack) if bag.weighted else float(n)
    for m in range(n_models):
        subtract(models.targets[models.source[m]], models.expected[m], bag.rows, work.z[m])
        work.node[m] = 0
        weigh(work.z[m], bag.weights, work.terms, n)
        open_node(rules, work, m, 0, n, weight, pairwise_sum(work.terms, n, bag.stack))
    _add_roots(table, bag, work, n_models)
    for m in range(n_models):
        _look_at_roots(table, bag, models, rules, work, m)
    for cut in range(rules.splits):
        if not cut_best(table.columns, bag, models, rules, work, trees, cut):
            return
        for m in range(n_models if cut + 1 < rules.splits else 0):
            for side in range(2 if trees.cuts[m] == cut + 1 else 0):
                node = cut + 1 if side else trees.node[m, cut]
                _look_at_child(table, bag, models, rules, work, m, node)
