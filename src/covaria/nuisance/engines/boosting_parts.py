"""What both kinds of boosting kernels are made of: models, trees, and how scores move.

`boosting_kernels` grows trees on sorted columns, `boosting_bins` on binned ones. A part here takes
any table that has `columns`, and any bag that has `rows` and `weights`. numba's cache looks only
at the file of a kernel: touch those two after a change here or in `boosting_lanes`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from covaria.execution.compiling import OPTIONS, compiled
from covaria.learners.estimators.boosting import FEATHER, FLAT
from covaria.nuisance.engines.boosting_lanes import DOUBLE_LANES, in_lane, lane, load_from, spread

Array = NDArray[np.float64]
Index = NDArray[np.uint32]
Count = NDArray[np.int64]
Mask = NDArray[np.bool_]
Bits = NDArray[np.uint64]
Place = NDArray[np.unsignedinteger]
Columns = NDArray[np.generic]  # numbers, or the bins that they fall into
F = TypeVar("F", bound=Callable[..., object])
# Every second bit, every second pair of bits, and so on, to count bits by.
PAIRS, FOURS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
EIGHTS, ONES = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)

FOR_KERNELS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(function: F) -> F:
    """Return the function compiled, kept on disk, and free to run beside Python."""
    return compiled(function)


def part(function: F) -> F:
    """Return the function compiled for kernels only, which takes half as long."""
    return cast(F, numba.njit(**OPTIONS, **FOR_KERNELS)(function))


def inner(function: F) -> F:
    """Return a part that becomes a piece of whoever calls it: a call with many arrays is slow."""
    return cast(F, numba.njit(inline="always", **OPTIONS, **FOR_KERNELS)(function))


def loose_part(function: F) -> F:
    """Return a part whose sums may be added up in any order, several at a time."""
    return cast(F, numba.njit(fastmath=True, **OPTIONS, **FOR_KERNELS)(function))


class Models(NamedTuple):
    """What each model has to learn, and the columns from `low` to `high` that it may not use."""

    targets: Array  # (targets, training rows)
    source: Count  # (models): which target
    expected: Array  # (models, all rows)
    bend: Array  # (models or 1, training rows): the weighted second derivative
    low: Count
    high: Count
    noise: Array  # a gain up to this is rounding


class Trees(NamedTuple):
    """The tree that each model grew in a round: `cuts` says how many of its cuts are made."""

    cuts: Count
    node: Count  # (models, splits)
    column: Count
    threshold: Array
    leaves: Array  # (models, splits + 1)


class Forks(NamedTuple):
    """Models that part from the full model, in the first rows, where it first uses a feature.

    `at` has for each feature the first row of its fork, -1 as long as there is none, and -2 if
    none is wanted. What the full model was `before` a round is kept until the round is over.
    """

    used: Count  # (1): how many rows are in use
    owner: Count  # (columns): the feature of each column
    low: Count  # (features)
    high: Count
    at: Count
    scores: Array  # (rows of a model, all rows); no rows if nothing ever forks
    expected: Array
    bend: Array


class Rules(NamedTuple):
    """How trees are grown."""

    splits: int
    shrinkage: float
    min_node: int
    classes: bool
    largest_step: float


def make_trees(room: int, splits: int) -> Trees:
    """Return room for trees."""
    return Trees(
        cuts=np.zeros(room, dtype=np.int64),
        node=np.zeros((room, splits), dtype=np.int64),
        column=np.zeros((room, splits), dtype=np.int64),
        threshold=np.zeros((room, splits)),
        leaves=np.zeros((room, splits + 1)),
    )


# --- sums ---------------------------------------------------------------------------------------


@part
def split_factor(left: float, total: float) -> float:
    """Return (L + R)/(LR), or 0 where a side weighs next to nothing."""
    right = total - left
    if min(left, right) > FEATHER * total:
        return total / (left * right)
    return 0.0


@part
def pairwise_sum(values: Array, n: int, stack: Array) -> float:
    """Return the sum of the first n values, added up in the order in which numpy adds them.

    numpy halves a long array until a part has at most 128 values, and adds the sums of the
    halves. Parts wait on a stack; a part of length 0 stands for "add the last two sums".
    """
    if n <= 128:
        return _short_sum(values, 0, n)
    waiting, done = 1, 0
    stack[0, 0], stack[1, 0] = 0, n
    while waiting > 0:
        waiting -= 1
        start, length = int(stack[0, waiting]), int(stack[1, waiting])
        if length == 0:
            done -= 1
            stack[2, done - 1] += stack[2, done]
        elif length <= 128:
            stack[2, done] = _short_sum(values, start, length)
            done += 1
        else:
            half = length // 2
            half -= half % 8
            stack[1, waiting] = 0
            stack[0, waiting + 1], stack[1, waiting + 1] = start + half, length - half
            stack[0, waiting + 2], stack[1, waiting + 2] = start, half
            waiting += 3
    return float(stack[2, 0])


@part
def _short_sum(values: Array, start: int, n: int) -> float:
    """Return the sum of n values, eight side by side."""
    total = 0.0
    whole = start + n - n % DOUBLE_LANES
    if n >= DOUBLE_LANES:
        sums = load_from(values, start)
        for i in range(start + DOUBLE_LANES, whole, DOUBLE_LANES):
            sums = sums + load_from(values, i)
        left = (lane(sums, 0) + lane(sums, 1)) + (lane(sums, 2) + lane(sums, 3))
        total = left + ((lane(sums, 4) + lane(sums, 5)) + (lane(sums, 6) + lane(sums, 7)))
    for i in range(whole, start + n):
        total += values[i]
    return total


# --- rounds -------------------------------------------------------------------------------------


@part
def remember(models: Models, scores: Array, forks: Forks) -> None:
    """Write down what the full model was before this round."""
    for i in range(forks.scores.shape[0]):
        _copy(scores[i], forks.scores[i])
        if forks.bend.shape[0] > 0:
            _copy(models.expected[i], forks.expected[i])
            _copy(models.bend[i], forks.bend[i])


@part
def _copy(values: Array, out: Array) -> None:
    for i in range(out.size):
        out[i] = values[i]


@part
def keep(trees: Trees, m: int, history: Trees, at: int) -> None:
    """Copy a tree into the history, if one is kept."""
    if history.cuts.size > 0:
        history.cuts[at] = trees.cuts[m]
        for cut in range(trees.cuts[m]):
            history.node[at, cut] = trees.node[m, cut]
            history.column[at, cut] = trees.column[m, cut]
            history.threshold[at, cut] = trees.threshold[m, cut]
        _copy(trees.leaves[m], history.leaves[at])


@part
def fork(models: Models, trees: Trees, scores: Array, forks: Forks, m: int) -> None:
    """Part the models without the features that a tree of the full model is the first to use."""
    height = forks.scores.shape[0]
    for cut in range(trees.cuts[m]):
        feature = forks.owner[trees.column[m, cut]]
        if forks.at[feature] == -1:
            forks.at[feature] = forks.used[0]
            forks.used[0] += height
            for i in range(height):
                _part_from(models, scores, forks, feature, i)


@part
def _part_from(models: Models, scores: Array, forks: Forks, feature: int, i: int) -> None:
    """Make a copy of what row i of the full model was before this round, without a feature."""
    at = forks.at[feature] + i
    _copy(forks.scores[i], scores[at])
    if forks.bend.shape[0] > 0:
        _copy(forks.expected[i], models.expected[at])
        _copy(forks.bend[i], models.bend[at])
    models.low[at], models.high[at] = forks.low[feature], forks.high[feature]
    models.source[at], models.noise[at] = models.source[i], models.noise[i]


@part
def some_trees(trees: Trees, start: int, end: int) -> Trees:
    return Trees(
        cuts=trees.cuts[start:end],
        node=trees.node[start:end],
        column=trees.column[start:end],
        threshold=trees.threshold[start:end],
        leaves=trees.leaves[start:end],
    )


@part
def some_models(models: Models, start: int, end: int) -> Models:
    return Models(
        models.targets,
        models.source[start:end],
        models.expected[start:end],
        models.bend[start:end] if models.bend.shape[0] > 1 else models.bend,
        models.low[start:end],
        models.high[start:end],
        models.noise[start:end],
    )


# --- nodes --------------------------------------------------------------------------------------


@part
def subtract(target: Array, expected: Array, rows: Index, out: Array) -> None:
    for a in range(rows.size):
        out[a] = target[rows[a]] - expected[rows[a]]


@part
def weigh(z: Array, weights: Array, out: Array, n: int) -> None:
    for c in range(n):
        out[c] = z[c] * weights[c]


@inner
def open_node(
    rules: Rules, work: Any, m: int, node: int, n: int, weight: float, total: float
) -> float:
    """Write the size and centre of a new node, and return its centre.

    A node without room for two sides, or without weight, counts as empty: it is never cut.
    """
    can_be_cut = n >= 2 * rules.min_node and weight > 0
    work.gain[m, node] = 0.0
    work.weight[m, node] = weight
    work.n_rows[m, node] = n if can_be_cut else 0
    work.centre[m, node] = total / weight if can_be_cut else 0.0
    return float(work.centre[m, node])


@part
def rows_of(node_of: Place, node: int, out: Index) -> int:
    """Return how many rows a node has, and write them as they come."""
    n = 0
    for a in range(node_of.size):
        out[n] = a
        n += node_of[a] == node
    return n


@part
def take(values: Array, place: Index, out: Array, n: int) -> None:
    for c in range(n):
        out[c] = values[place[c]]


@inner
def cut_best(
    columns: Columns, bag: Any, models: Models, rules: Rules, work: Any, trees: Trees, cut: int
) -> bool:
    """Cut in two the node of each tree that gains most; return whether any gains."""
    any_gains = False
    for m in range(trees.cuts.size):
        node = 0
        for other in range(1, cut + 1):
            if work.gain[m, other] > work.gain[m, node]:
                node = other
        if trees.cuts[m] == cut and work.gain[m, node] > models.noise[m]:
            any_gains = True
            column, threshold = work.column[m, node], work.threshold[m, node]
            trees.cuts[m] = cut + 1
            trees.node[m, cut] = node
            trees.column[m, cut] = column
            trees.threshold[m, cut] = threshold
            if rules.splits > 1:
                x = columns[column]
                _part_rows(x, threshold, bag.rows, work.node[m], node, cut + 1)
    return any_gains


@part
def _part_rows(
    x: Array, threshold: float, rows: Index, node_of: Place, node: int, new: int
) -> None:
    """Give the rows of a node that go right the number of a new one."""
    own, right = node_of.dtype.type(node), node_of.dtype.type(new)
    for a in range(rows.size):
        goes_right = (node_of[a] == own) & (x[rows[a]] >= threshold)
        node_of[a] = right if goes_right else node_of[a]


# --- leaves -------------------------------------------------------------------------------------


@inner
def settle(
    columns: Columns, bag: Any, models: Models, rules: Rules, work: Any, trees: Trees
) -> None:
    """Give the leaves of the trees their shrunken Newton steps."""
    slopes, curves = work.slopes, work.curves
    trees.leaves[:] = 0.0
    for m in range(trees.cuts.size):
        n_leaves = trees.cuts[m] + 1
        bend = models.bend[m if models.bend.shape[0] > 1 else 0]
        slopes[0], curves[0] = 0.0, 0.0
        if n_leaves == 2 and not (rules.classes or bag.weighted):
            x, threshold = columns[trees.column[m, 0]], trees.threshold[m, 0]
            _add_up_two(x, threshold, bag.rows, work.z[m], slopes, curves)
        elif n_leaves >= 2:
            if rules.splits == 1:
                x, threshold = columns[trees.column[m, 0]], trees.threshold[m, 0]
                _part_rows(x, threshold, bag.rows, work.node[m], 0, 1)
            _add_up(bag.rows, bag.weights, work.z[m], work.node[m], bend, slopes, curves, n_leaves)
        for leaf in range(n_leaves):
            step = slopes[leaf] / curves[leaf] if curves[leaf] > FLAT else 0.0
            step = min(max(step, -rules.largest_step), rules.largest_step)
            trees.leaves[m, leaf] = rules.shrinkage * step


@part
def _add_up_two(
    x: Columns, threshold: float, rows: Index, z: Array, slopes: Array, curves: Array
) -> None:
    """Write the slopes of the two leaves of a tree with one cut, and how many rows they have."""
    left, right, n_right = 0.0, 0.0, 0
    for a in range(rows.size):
        goes_right = x[rows[a]] >= threshold
        left += 0.0 if goes_right else z[a]
        right += z[a] if goes_right else 0.0
        n_right += goes_right
    slopes[0], slopes[1] = left, right
    curves[0], curves[1] = rows.size - n_right, n_right


@part
def _add_up(
    rows: Index,
    weights: Array,
    z: Array,
    node_of: Place,
    bend: Array,
    slopes: Array,
    curves: Array,
    n_leaves: int,
) -> None:
    """Write the slope and curve of each leaf, eight leaves at a time."""
    for first in range(0, n_leaves, DOUBLE_LANES):
        slope, curve = spread(0.0), spread(0.0)
        for a in range(rows.size):
            place = np.int64(node_of[a]) - first
            slope = slope + in_lane(z[a] * weights[a], place)
            curve = curve + in_lane(bend[rows[a]], place)
        for leaf in range(min(DOUBLE_LANES, n_leaves - first)):
            slopes[first + leaf], curves[first + leaf] = lane(slope, leaf), lane(curve, leaf)


@inner
def move(columns: Columns, work: Any, trees: Trees, scores: Array) -> None:
    """Add to each row's scores the leaves it falls into."""
    for m in range(trees.cuts.size):
        if trees.cuts[m] == 1:
            x, threshold = columns[trees.column[m, 0]], trees.threshold[m, 0]
            _move_by_two(x, threshold, trees.leaves[m, 0], trees.leaves[m, 1], scores[m])
        elif trees.cuts[m] > 1:
            work.leaf[:] = 0
            for cut in range(trees.cuts[m]):
                x, threshold = columns[trees.column[m, cut]], trees.threshold[m, cut]
                _descend(x, threshold, trees.node[m, cut], cut + 1, work.leaf)
            _move_by(trees.leaves[m], work.leaf, scores[m])


@part
def _move_by_two(x: Array, threshold: float, left: float, right: float, scores: Array) -> None:
    for row in range(scores.size):
        scores[row] += left if x[row] < threshold else right


@part
def _descend(x: Array, threshold: float, node: int, new: int, leaf: Place) -> None:
    """Send the rows of a node that go right to a new one."""
    own, right = leaf.dtype.type(node), leaf.dtype.type(new)
    for row in range(leaf.size):
        goes_right = (leaf[row] == own) & (x[row] >= threshold)
        leaf[row] = right if goes_right else leaf[row]


@part
def _move_by(leaves: Array, leaf: Place, scores: Array) -> None:
    for row in range(scores.size):
        scores[row] += leaves[leaf[row]]


# --- other values: what the full model says of altered rows -------------------------------------


@kernel
def differences(
    columns: Columns,
    history: Trees,
    height: int,
    owner: Count,
    slot: Count,
    first: int,
    other: Columns,
    pick: Count,
) -> Array:
    """Return how the scores of test rows change when a feature's columns take other values.

    Test row i, which is row `first` + i of the table, takes them from place `pick[i]` of
    `other`. Features have a `slot` each in the answer, (slots, rows of a model, test rows), if
    the model uses them; and only the trees that use a feature are asked again.
    """
    answer = np.zeros((slot.max() + 1, height, pick.size))
    for tree in range(history.cuts.size):
        for cut in range(history.cuts[tree]):
            feature = owner[history.column[tree, cut]]
            if not _used_before(history, owner, tree, cut, feature):
                out = answer[slot[feature], tree % height]
                _add_difference(columns, history, owner, tree, feature, first, other, pick, out)
    return answer


@part
def _used_before(history: Trees, owner: Count, tree: int, cut: int, feature: int) -> bool:
    found = False
    for earlier in range(cut):
        found |= owner[history.column[tree, earlier]] == feature
    return found


@part
def _add_difference(
    columns: Columns,
    history: Trees,
    owner: Count,
    tree: int,
    feature: int,
    first: int,
    other: Columns,
    pick: Count,
    out: Array,
) -> None:
    """Add by how much one tree changes its mind."""
    for i in range(pick.size):
        was, now = 0, 0
        for cut in range(history.cuts[tree]):
            k, threshold = history.column[tree, cut], history.threshold[tree, cut]
            x = columns[k, first + i]
            if was == history.node[tree, cut] and x >= threshold:
                was = cut + 1
            if owner[k] == feature:
                x = other[k, pick[i]]
            if now == history.node[tree, cut] and x >= threshold:
                now = cut + 1
        out[i] += history.leaves[tree, now] - history.leaves[tree, was]


@kernel
def mean_differences(
    columns: Columns,
    history: Trees,
    owner: Count,
    slot: Count,
    first: int,
    others: Columns,
) -> Array:
    """Return the mean change of test rows' scores when a feature takes each of several values.

    One walk of a row serves all of them: a node keeps which of the values, at most 64, would be in
    it, as the bits of a word. The answer is (slots, test rows).
    """
    n_rows, n_values = columns.shape[1] - first, others.shape[1]
    answer = np.zeros((slot.max() + 1, n_rows))
    sides = np.zeros(history.column.shape[1], dtype=np.uint64)
    for tree in range(history.cuts.size):
        _take_sides(history, tree, others, sides)
        for cut in range(history.cuts[tree]):
            feature = owner[history.column[tree, cut]]
            if not _used_before(history, owner, tree, cut, feature):
                out = answer[slot[feature]]
                _add_mean(columns, history, owner, tree, feature, first, sides, n_values, out)
    return answer


@part
def _take_sides(history: Trees, tree: int, others: Columns, sides: Bits) -> None:
    """Write for each cut of a tree which of the other values would go right."""
    for cut in range(history.cuts[tree]):
        k, threshold = history.column[tree, cut], history.threshold[tree, cut]
        sides[cut] = 0
        for r in range(others.shape[1]):
            if others[k, r] >= threshold:
                sides[cut] |= np.uint64(1) << np.uint64(r)


@part
def _add_mean(
    columns: Columns,
    history: Trees,
    owner: Count,
    tree: int,
    feature: int,
    first: int,
    sides: Bits,
    n_values: int,
    out: Array,
) -> None:
    """Add by how much one tree changes its mind, on average over the other values."""
    n_cuts = history.cuts[tree]
    inside = np.empty(n_cuts + 1, dtype=np.uint64)
    everything = ~np.uint64(0) >> np.uint64(64 - n_values)
    for i in range(out.size):
        was = 0
        inside[:] = 0
        inside[0] = everything
        for cut in range(n_cuts):
            k, node = history.column[tree, cut], history.node[tree, cut]
            goes = columns[k, first + i] >= history.threshold[tree, cut]
            if was == node and goes:
                was = cut + 1
            side = sides[cut] if owner[k] == feature else (everything if goes else np.uint64(0))
            inside[cut + 1] = inside[node] & side
            inside[node] &= ~side
        total = 0.0
        for node in range(n_cuts + 1):
            if inside[node]:
                total += _count(inside[node]) * history.leaves[tree, node]
        out[i] += total / n_values - history.leaves[tree, was]


@part
def _count(word: np.uint64) -> int:
    """Return how many bits of a word are set."""
    word = word - ((word >> np.uint64(1)) & PAIRS)  # two bits hold how many of them were set
    word = (word & FOURS) + ((word >> np.uint64(2)) & FOURS)
    word = (word + (word >> np.uint64(4))) & EIGHTS
    return int((word * ONES) >> np.uint64(56))
