"""Gradient boosting as R's gbm does it, in plain numpy.

Friedman (2001), *Greedy function approximation*; Friedman (2002), *Stochastic gradient
boosting*; Ridgeway's R package `gbm`. Without bagging the answers are gbm's to rounding.
What is gbm's own and differs from other boosters:

- a tree has `splits` splits, made best first (`interaction.depth`), whatever its depth;
- `min_node` counts the rows of the bag, not their weights;
- a row goes left when `x < threshold`, and a threshold lies midway between two values.

Each round adds to the scores F a tree grown on z = y - m(F) by least squares, whose leaves
hold the Newton step Σwz / Σwh times `shrinkage`:

    numbers         m(F) = F                    h = 1            starts at the mean of y
    two classes     m(F) = 1/(1 + exp(-F))      h = m(1 - m)     starts at the log-odds
    K classes       m(F) = softmax(F_1 … F_K)   h = m(1 - m)     starts at the log shares

With K classes a round has one tree for each class, all from the same m(F) and the same bag.
There gbm starts at 0 and draws a bag a class; that is the only place where we part, beside
a tree that finds no split, which adds nothing here and the mean of its bag in gbm.

With more than `BINNED_ABOVE` rows to learn from, the values of a column are first put into at
most `MOST_BINS` bins of about as many rows each, and a tree splits between bins only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from covaria.learners.estimators import Array

Flags = NDArray[np.bool_]
Index = NDArray[np.intp]

# A gain below this share of n·max(y²) is rounding, and must not make a column look used.
ROUNDING = 1e-28
# A side that weighs less than this share of its node is rounding too.
FEATHER = 1e-10
# A leaf whose rows are all certain has no curvature left to divide by.
FLAT = 1e-100
# Newton steps explode where the model is sure and wrong; gbm lets them run to infinity.
LARGEST_STEP = 100.0
# The log-odds of a class that every row has, or none, stay finite.
SMALLEST_SHARE = 1e-6
# As many random numbers are drawn at once.
DRAWN = 2**17
# With more rows than this to learn from, columns are binned; the number of a bin fits in a byte.
BINNED_ABOVE = 100_000
MOST_BINS = 255


class GradientBoosting:
    """Boosted trees for a number or a class, with the defaults of R's `gbm()`.

    trees, splits, shrinkage, bag and min_node are gbm's n.trees, interaction.depth,
    shrinkage, bag.fraction and n.minobsinnode; n_classes is 0 for a number. After a fit,
    `used_` says of each column whether any split used it.
    """

    used_: Flags

    def __init__(
        self,
        *,
        trees: int = 100,
        splits: int = 1,
        shrinkage: float = 0.1,
        bag: float = 0.5,
        min_node: int = 10,
        n_classes: int = 0,
        seed: int = 0,
    ) -> None:
        self.trees = trees
        self.splits = splits
        self.shrinkage = shrinkage
        self.bag = bag
        self.min_node = max(1, min_node)
        self.n_classes = n_classes
        self.seed = seed

    def fit(self, X: Array, y: Array, weights: Array | None = None) -> Self:
        """Return the model, fitted to `y`: numbers, or class codes from 0."""
        table = BinnedTable(X, weights) if is_binned(len(X)) else Table(X, weights)
        targets = score_targets(y, self.n_classes)
        self._noise = ROUNDING * len(X) * (1 if self.n_classes else np.abs(y).max()) ** 2
        self.start_ = start(targets, table.weights, self.n_classes)
        self.rounds_: list[list[Tree]] = []
        scores = np.repeat(self.start_, len(X), axis=1)
        for seen in bags(self.seed, len(X), self.trees, self.bag):
            self.rounds_.append(self._round(table, targets, scores, seen))
        self.used_ = columns_used(self.rounds_, X.shape[1])
        return self

    def predict(self, X: Array) -> Array:
        """Return the mean of each row, or its probability of each class."""
        columns = np.ascontiguousarray(X.T)
        scores = np.repeat(self.start_, len(X), axis=1)
        for trees in self.rounds_:
            for score, tree in zip(scores, trees, strict=True):
                score += tree.leaves[leaf_of_rows(tree.cuts, columns)]
        answer = mean(scores, self.n_classes)
        if self.n_classes == 2:
            return np.stack([1 - answer[0], answer[0]], axis=1)
        return answer.T if self.n_classes else answer.ravel()

    def _round(self, table: Table, targets: Array, scores: Array, seen: Flags) -> list[Tree]:
        """Return one tree for each row of `scores`, which move by them."""
        expected = mean(scores, self.n_classes)
        trees = []
        for score, target, m in zip(scores, targets, expected, strict=True):
            z = target - m
            cuts = self._grow(table, z, seen)
            leaf = leaf_of_rows(cuts, table.columns)
            leaves = self._leaves(table, leaf, z, m, seen) if cuts else np.zeros(1)
            score += leaves[leaf]
            trees.append(Tree(cuts, leaves))
        return trees

    def _grow(self, table: Table, z: Array, seen: Flags) -> list[Cut]:
        """Return the cuts of a tree, each time in the node that gains most."""
        nodes = [table.root(seen)]
        found = [table.best_split(nodes[0], z, self.min_node)]
        cuts: list[Cut] = []
        while True:
            node = max(range(len(found)), key=lambda i: found[i].gain)
            if found[node].gain <= self._noise:
                return cuts
            cuts.append(Cut(node, found[node].column, found[node].threshold))
            if len(cuts) == self.splits:
                return cuts
            nodes[node], right = table.halves(nodes[node], found[node])
            found[node] = table.best_split(nodes[node], z, self.min_node)
            nodes.append(right)
            found.append(table.best_split(right, z, self.min_node))

    def _leaves(self, table: Table, leaf: Index, z: Array, m: Array, seen: Flags) -> Array:
        """Return the shrunken Newton step of each leaf, from the rows of the bag."""
        h = m * (1 - m) if self.n_classes else np.ones_like(m)
        slope = np.bincount(leaf[seen], table.weigh(z)[seen])
        bend = np.bincount(leaf[seen], table.weigh(h)[seen])
        step = np.divide(slope, bend, out=np.zeros_like(slope), where=bend > FLAT)
        return self.shrinkage * (step.clip(-LARGEST_STEP, LARGEST_STEP) if self.n_classes else step)


def bags(seed: int, n_rows: int, trees: int, bag: float) -> Iterator[Flags]:
    """Yield for each tree which rows it sees.

    The columns have no say in it: models of other columns with the same seed and rows see
    the same bags, so what differs between them is due to the columns alone.
    """
    for some in blocks_of_bags(seed, n_rows, trees, bag):
        yield from some


def blocks_of_bags(seed: int, n_rows: int, trees: int, bag: float) -> Iterator[Flags]:
    """Yield the same bags, a row for each, as many at a time as are drawn at once."""
    rng, size, at_once = np.random.default_rng(seed), int(bag * n_rows), max(1, DRAWN // n_rows)
    for first in range(0, trees, at_once):
        count = min(at_once, trees - first)
        if bag < 1:
            yield smallest(rng.random((count, n_rows)), size)
        else:
            yield np.ones((count, n_rows), dtype=bool)


def smallest(numbers: Array, size: int) -> Flags:
    """Return of each number whether it is among the `size` smallest of its row."""
    ordered = numbers.copy()
    for row in ordered:
        row.partition(size)
    among = numbers < ordered[:, size : size + 1]
    # Equal numbers at the border would leave too few.
    for row in np.flatnonzero(among.sum(axis=1) < size):
        among[row, np.argsort(numbers[row], kind="stable")[:size]] = True
    return among


class Cut(NamedTuple):
    """A split that was made: its left side keeps the node's number, the right is new."""

    node: int
    column: int
    threshold: float


class Tree(NamedTuple):
    """The cuts in the order they were made, and what each leaf adds to the score."""

    cuts: list[Cut]
    leaves: Array


class Split(NamedTuple):
    """Where a node could be cut in two, and by how much that lowers its squared error."""

    gain: float
    column: int = 0
    threshold: float = 0.0


class Node(NamedTuple):
    """The rows of a node, once as they come and once for each column in its order."""

    rows: Index
    order: Index


class Table:
    """The training rows: every column sorted once, weights that are 1 on average."""

    def __init__(self, X: Array, weights: Array | None) -> None:
        self.columns = np.ascontiguousarray(X.T)
        self.weights = None if weights is None else weights / weights.mean()
        self._arrange()

    def _arrange(self) -> None:
        """Sort every column."""
        self.order = np.argsort(self.columns, axis=1, kind="stable")
        ordered = np.take_along_axis(self.columns, self.order, axis=1)
        self.tied = bool((ordered[:, 1:] == ordered[:, :-1]).any())

    def root(self, seen: Flags) -> Node:
        """Return the node that holds all rows of a bag."""
        return among(Node(np.arange(len(seen)), self.order), seen)

    def halves(self, node: Node, split: Split) -> tuple[Node, Node]:
        """Return the left and the right part of a split node."""
        left = self.columns[split.column] < split.threshold
        return among(node, left), among(node, ~left)

    def weigh(self, values: Array) -> Array:
        """Return the values times their weights."""
        return values if self.weights is None else values * self.weights

    def weight(self, rows: Index) -> float:
        """Return what these rows weigh together."""
        return float(len(rows) if self.weights is None else self.weights[rows].sum())

    def best_split(self, node: Node, z: Array, min_node: int) -> Split:
        """Return the first of the splits that gain most, over all columns and places.

        With z centred in the node, the sum S and the weight L on the left and the weight R on
        the right, a split gains S²(L + R)/(LR).
        """
        total = self.weight(node.rows)
        if len(node.rows) < 2 * min_node or len(self.columns) == 0 or total <= 0:
            return Split(0.0)
        centre = self.weigh(z)[node.rows].sum() / total
        return self._best(node, self.weigh(z - centre), total, min_node)

    def _best(self, node: Node, centred: Array, total: float, min_node: int) -> Split:
        n_rows = len(node.rows)
        left = centred.take(node.order[:, : n_rows - min_node]).cumsum(axis=1)
        gains = left[:, min_node - 1 :] ** 2 * self._factors(node, total, min_node)
        if self.tied:
            gains[~steps(self, node, min_node)] = 0.0
        column, place = divmod(int(gains.argmax()), gains.shape[1])
        last = node.order[column, place + min_node - 1 : place + min_node + 1]
        threshold = float(midway(*self.columns[column, last]))
        return Split(float(gains[column, place]), column, threshold)

    def _factors(self, node: Node, total: float, min_node: int) -> Array:
        """Return (L + R)/(LR) at each place where a node may be split."""
        n_rows = len(node.rows)
        if self.weights is None:
            return split_factors(np.arange(min_node, n_rows - min_node + 1.0), total)
        left = self.weights.take(node.order[:, : n_rows - min_node]).cumsum(axis=1)
        return split_factors(left[:, min_node - 1 :], total)


class BinnedTable(Table):
    """The training rows: every column put into bins once, weights that are 1 on average."""

    def _arrange(self) -> None:
        """Put every column into bins."""
        self.edges = [bin_edges(column) for column in self.columns]
        self.bins = [bins(*pair) for pair in zip(self.columns, self.edges, strict=True)]
        self.n_bins = 1 + max((len(edges) for edges in self.edges), default=0)

    def root(self, seen: Flags) -> Node:
        """Return the node that holds all rows of a bag."""
        return Node(np.flatnonzero(seen), np.empty((0, 0), dtype=np.intp))

    def halves(self, node: Node, split: Split) -> tuple[Node, Node]:
        """Return the left and the right part of a split node."""
        left = self.columns[split.column][node.rows] < split.threshold
        return node._replace(rows=node.rows[left]), node._replace(rows=node.rows[~left])

    def _best(self, node: Node, centred: Array, total: float, min_node: int) -> Split:
        n_left = self._on_the_left(node, None)
        left = n_left if self.weights is None else self._on_the_left(node, self.weights)
        gains = self._on_the_left(node, centred) ** 2 * split_factors(left, total)
        gains[(n_left < min_node) | (n_left > len(node.rows) - min_node)] = 0.0
        if not gains.any():
            return Split(0.0)
        column, place = divmod(int(gains.argmax()), gains.shape[1])
        return Split(float(gains[column, place]), column, float(self.edges[column][place]))

    def _on_the_left(self, node: Node, values: Array | None) -> Array:
        """Return the sum of a node's values, or its rows, up to each bin but the last."""
        values = None if values is None else values[node.rows]
        sums = [np.bincount(b[node.rows], values, self.n_bins) for b in self.bins]
        return np.cumsum(sums, axis=1, dtype=float)[:, :-1]


def among(node: Node, chosen: Flags) -> Node:
    """Return the part of a node that is among the chosen rows."""
    rows = node.rows[chosen[node.rows]]
    everywhere = node.order.ravel()
    # Twice as fast as a boolean index, and half of all the time goes here.
    kept = everywhere.take(np.flatnonzero(chosen.take(everywhere)))
    return Node(rows, kept.reshape(len(node.order), len(rows)))


def split_factors(left: Array, total: float) -> Array:
    """Return (L + R)/(LR) for each L, or 0 where a side weighs next to nothing."""
    right = total - left
    heavy = np.minimum(left, right) > FEATHER * total
    return np.divide(total, left * right, out=np.zeros(left.shape), where=heavy)


def steps(table: Table, node: Node, min_node: int) -> Flags:
    """Return at which of the allowed places a column goes from one value to another."""
    end = len(node.rows) - min_node + 1
    values = np.take_along_axis(table.columns, node.order[:, min_node - 1 : end], axis=1)
    return values[:, 1:] > values[:, :-1]


def midway(below: Array | float, above: Array | float) -> Array:
    """Return the middle of two numbers, above the first even if they are neighbours."""
    middle = 0.5 * below + 0.5 * above
    return np.asarray(np.where(middle > below, middle, above))


def is_binned(n_rows: int) -> bool:
    """Return whether a model that learns from so many rows sees bins only."""
    return n_rows > BINNED_ABOVE


def bin_edges(column: Array) -> Array:
    """Return the thresholds between a column's bins.

    Few values have a bin each. Of many, the bins begin at equal steps through the sorted
    rows, or where the next value does. Other columns have no say in it, so a model that
    does without some of them has the same bins.
    """
    ordered = np.sort(column)
    starts = 1 + np.flatnonzero(ordered[1:] > ordered[:-1])
    if len(starts) >= MOST_BINS:
        steps = np.arange(1, MOST_BINS) * len(column) // MOST_BINS
        found = np.searchsorted(starts, steps)
        starts = np.unique(starts[found[found < len(starts)]])
    return midway(ordered[starts - 1], ordered[starts])


def bins(column: Array, edges: Array) -> NDArray[np.uint8]:
    """Return the bin of each value: how many thresholds it does not lie below."""
    return np.searchsorted(edges, column, side="right").astype(np.uint8)


def leaf_of_rows(cuts: list[Cut], columns: Array) -> Index:
    """Return the number of the leaf that each row falls into."""
    leaf = np.zeros(columns.shape[1], dtype=np.intp)
    for new, cut in enumerate(cuts, start=1):
        goes_right = ~(columns[cut.column] < cut.threshold)
        leaf[goes_right & (leaf == cut.node)] = new
    return leaf


def score_targets(y: Array, n_classes: int) -> Array:
    """Return what each score has to reach: y itself, or a 0/1 row for each class."""
    if n_classes in (0, 2):
        return y[np.newaxis].astype(float)
    return np.equal(np.arange(n_classes)[:, np.newaxis], y).astype(float)


def start(targets: Array, weights: Array | None, n_classes: int) -> Array:
    """Return the score of a model that knows no column."""
    share = np.average(targets, axis=1, weights=weights, keepdims=True)
    if n_classes == 0:
        return share
    share = share.clip(SMALLEST_SHARE, 1 - SMALLEST_SHARE)
    return np.log(share / (1 - share)) if n_classes == 2 else np.log(share)


def mean(scores: Array, n_classes: int) -> Array:
    """Return m(F): what the scores expect of the targets."""
    if n_classes == 0:
        return scores
    if n_classes == 2:
        return np.exp(-np.logaddexp(0.0, -scores))
    raised: Array = np.exp(scores - scores.max(axis=0))
    total: Array = raised.sum(axis=0)
    return raised / total


def columns_used(rounds: list[list[Tree]], n_columns: int) -> Flags:
    """Return of each column whether any tree splits on it."""
    used = np.zeros(n_columns, dtype=bool)
    used[[cut.column for trees in rounds for tree in trees for cut in tree.cuts]] = True
    return used
