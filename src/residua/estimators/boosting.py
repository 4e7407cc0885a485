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
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from residua.estimators import Array

Rows = NDArray[np.bool_]
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


class GradientBoosting:
    """Boosted trees for a number or a class, with the defaults of R's `gbm()`.

    trees, splits, shrinkage, bag and min_node are gbm's n.trees, interaction.depth,
    shrinkage, bag.fraction and n.minobsinnode; n_classes is 0 for a number. After a fit,
    `used_` says of each column whether any split used it.
    """

    used_: Rows

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
        table = Table(X, weights)
        targets = as_targets(y, self.n_classes)
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

    def _round(self, table: Table, targets: Array, scores: Array, seen: Rows) -> list[Tree]:
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

    def _grow(self, table: Table, z: Array, seen: Rows) -> list[Cut]:
        """Return the cuts of a tree, each time in the node that gains most."""
        nodes = [table.root(seen)]
        found = [best_split(table, nodes[0], z, self.min_node)]
        cuts: list[Cut] = []
        while True:
            node = max(range(len(found)), key=lambda i: found[i].gain)
            if found[node].gain <= self._noise:
                return cuts
            cuts.append(Cut(node, found[node].column, found[node].threshold))
            if len(cuts) == self.splits:
                return cuts
            nodes[node], right = halves(table, nodes[node], found[node])
            found[node] = best_split(table, nodes[node], z, self.min_node)
            nodes.append(right)
            found.append(best_split(table, right, z, self.min_node))

    def _leaves(self, table: Table, leaf: Index, z: Array, m: Array, seen: Rows) -> Array:
        """Return the shrunken Newton step of each leaf, from the rows of the bag."""
        h = m * (1 - m) if self.n_classes else np.ones_like(m)
        slope = np.bincount(leaf[seen], table.weigh(z)[seen])
        bend = np.bincount(leaf[seen], table.weigh(h)[seen])
        step = np.divide(slope, bend, out=np.zeros_like(slope), where=bend > FLAT)
        return self.shrinkage * (step.clip(-LARGEST_STEP, LARGEST_STEP) if self.n_classes else step)


def bags(seed: int, n_rows: int, trees: int, bag: float) -> Iterator[Rows]:
    """Yield for each tree which rows it sees.

    The columns have no say in it: models of other columns with the same seed and rows see
    the same bags, so what differs between them is due to the columns alone.
    """
    rng = np.random.default_rng(seed)
    for _ in range(trees):
        seen = np.ones(n_rows, dtype=bool)
        if bag < 1:
            seen[rng.permutation(n_rows)[int(bag * n_rows) :]] = False
        yield seen


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
        self.order = np.argsort(self.columns, axis=1, kind="stable")
        ordered = np.take_along_axis(self.columns, self.order, axis=1)
        self.tied = bool((ordered[:, 1:] == ordered[:, :-1]).any())
        self.weights = None if weights is None else weights / weights.mean()

    def root(self, seen: Rows) -> Node:
        """Return the node that holds all rows of a bag."""
        return among(Node(np.arange(len(seen)), self.order), seen)

    def weigh(self, values: Array) -> Array:
        """Return the values times their weights."""
        return values if self.weights is None else values * self.weights


def among(node: Node, chosen: Rows) -> Node:
    """Return the part of a node that is among the chosen rows."""
    rows = node.rows[chosen[node.rows]]
    everywhere = node.order.ravel()
    # Twice as fast as a boolean index, and half of all the time goes here.
    kept = everywhere.take(np.flatnonzero(chosen.take(everywhere)))
    return Node(rows, kept.reshape(len(node.order), len(rows)))


def halves(table: Table, node: Node, split: Split) -> tuple[Node, Node]:
    """Return the left and the right part of a split node."""
    left = table.columns[split.column] < split.threshold
    return among(node, left), among(node, ~left)


def best_split(table: Table, node: Node, z: Array, min_node: int) -> Split:
    """Return the first of the splits that gain most, over all columns and places at once.

    With z centred in the node, the sum S and the weight L on the left and the weight R on
    the right, a split gains S²(L + R)/(LR).
    """
    n_rows = len(node.rows)
    if n_rows < 2 * min_node or len(node.order) == 0:
        return Split(0.0)
    total, factor = split_factors(table, node, min_node)
    if total <= 0:
        return Split(0.0)
    centre = table.weigh(z)[node.rows].sum() / total
    left = table.weigh(z - centre).take(node.order[:, : n_rows - min_node]).cumsum(axis=1)
    gains = left[:, min_node - 1 :] ** 2 * factor
    if table.tied:
        gains[~steps(table, node, min_node)] = 0.0
    column, place = divmod(int(gains.argmax()), gains.shape[1])
    last = node.order[column, place + min_node - 1 : place + min_node + 1]
    return Split(float(gains[column, place]), column, midway(*table.columns[column, last]))


def split_factors(table: Table, node: Node, min_node: int) -> tuple[float, Array]:
    """Return the weight of a node, and (L + R)/(LR) at each place it may be split."""
    n_rows = len(node.rows)
    if table.weights is None:
        left = np.arange(min_node, n_rows - min_node + 1, dtype=float)
        return float(n_rows), n_rows / (left * (n_rows - left))
    total = float(table.weights[node.rows].sum())
    left = table.weights.take(node.order[:, : n_rows - min_node]).cumsum(axis=1)
    left = left[:, min_node - 1 :]
    right = total - left
    heavy = np.minimum(left, right) > FEATHER * total
    return total, np.divide(total, left * right, out=np.zeros_like(left), where=heavy)


def steps(table: Table, node: Node, min_node: int) -> Rows:
    """Return at which of the allowed places a column goes from one value to another."""
    end = len(node.rows) - min_node + 1
    values = np.take_along_axis(table.columns, node.order[:, min_node - 1 : end], axis=1)
    return values[:, 1:] > values[:, :-1]


def midway(below: float, above: float) -> float:
    """Return the middle of two numbers, above the first even if they are neighbours."""
    middle = 0.5 * below + 0.5 * above
    return float(middle if middle > below else above)


def leaf_of_rows(cuts: list[Cut], columns: Array) -> Index:
    """Return the number of the leaf that each row falls into."""
    leaf = np.zeros(columns.shape[1], dtype=np.intp)
    for new, cut in enumerate(cuts, start=1):
        goes_right = ~(columns[cut.column] < cut.threshold)
        leaf[goes_right & (leaf == cut.node)] = new
    return leaf


def as_targets(y: Array, n_classes: int) -> Array:
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


def columns_used(rounds: list[list[Tree]], n_columns: int) -> Rows:
    """Return of each column whether any tree splits on it."""
    used = np.zeros(n_columns, dtype=bool)
    used[[cut.column for trees in rounds for tree in trees for cut in tree.cuts]] = True
    return used
