"""One round of boosting for many models at once: the compiled half of the boosting engine.

All models of a fold share the rows, the sorted columns and the bags; what differs is the target
and the columns a model may not use. So sixteen models walk down a sorted column side by side.

A split is found in two steps. A walk in float32 gives for every column a *bound*, a number that
its best gain cannot exceed. Then the *exact* gain, in float64 and added up in the order of the
plain estimator, is computed only for columns whose bound reaches the best exact gain so far:
hardly more than one. So the trees are those of the plain estimator to the last bit, while most
of the work is done sixteen at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from residua.engines.boosting_lanes import LANES, larger, load, size, smaller, spread, store
from residua.estimators.boosting import FEATHER, FLAT

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Index = NDArray[np.uint32]
Count = NDArray[np.int64]
F = TypeVar("F", bound=Callable[..., object])

# The relative error of one float32 operation, and a margin for a handful of them.
UNIT = 2.0**-24
MARGIN = 1 + 16 * UNIT
# How far a walk goes on before gains are bounded, relative to the way to the nearer end.
STRIDE = 0.18


class Table(NamedTuple):
    """The rows of a fold, training rows first, and the training rows in each column's order."""

    columns: Array  # (columns, all rows)
    order: Index  # (columns, training rows)
    tied: NDArray[np.bool_]  # (columns): are any values equal?
    weights: Array  # (training rows)


class Bag(NamedTuple):
    """The rows one tree sees; within a bag a row is known by its place in `rows`."""

    rows: Index
    weights: Array
    order: Index  # (columns, rows)
    factor: Single  # (L + R)/(LR) at each place, 0 where no cut may be; one row if all are equal
    last: Single  # (columns, rows): 1 at the last of equal values, else 0; none without ties
    stops: Count  # where the walk down a column stops to bound its gains
    peak: Array  # (1): the largest factor
    weighted: bool


class Models(NamedTuple):
    """What each model has to learn, and the columns from `low` to `high` that it may not use."""

    targets: Array  # (models, training rows)
    expected: Array  # (models, all rows)
    bend: Array  # (models or 1, training rows): the weighted second derivative
    low: Count
    high: Count
    noise: Array  # a gain up to this is rounding
    scale: Array  # brings z to where float32 neither overflows nor vanishes


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
    largest_step: float


class Work(NamedTuple):
    """Room for a block of models, kept from round to round."""

    z: Array  # (lanes, rows of a bag)
    node: Index  # (lanes, rows of a bag): where a row of the bag is
    leaf: Array  # (all rows): where any row is; numbers as wide as x are compared faster
    root: Single  # (rows of a bag, lanes): centred z
    pair: Single  # (rows of a bag, 4 lanes): centred z of two children, then their weights
    limits: Single  # (6, lanes): weight, least L·R and blur of L·R, each of two children
    bounds: Single  # (columns, 2 lanes)
    turned: Single  # (2 lanes, columns): the same the other way round
    place: Index  # (rows of a bag)
    terms: Array  # (rows of a bag)
    loads: Array  # (rows of a bag)
    n_rows: Count  # (lanes, nodes): rows of a node, 0 if it cannot be cut
    weight: Array  # (lanes, nodes)
    centre: Array
    unseen: Array  # by how much sqrt(gain) may exceed sqrt(bound)
    gain: Array
    column: Count
    threshold: Array


def make_trees(room: int, splits: int) -> Trees:
    """Return room for trees."""
    return Trees(
        cuts=np.zeros(room, dtype=np.int64),
        node=np.zeros((room, splits), dtype=np.int64),
        column=np.zeros((room, splits), dtype=np.int64),
        threshold=np.zeros((room, splits)),
        leaves=np.zeros((room, splits + 1)),
    )


def no_forks(count: int) -> Forks:
    """Return what says that there are `count` models and that none of them forks."""
    none, nothing = np.zeros(0, dtype=np.int64), np.zeros((0, 0))
    return Forks(np.array([count]), none, none, none, none, nothing, nothing, nothing)


def make_work(n_all: int, n_bag: int, n_columns: int, splits: int) -> Work:
    """Return room for a block of models."""
    floats = [np.zeros((LANES, splits + 1)) for _ in range(5)]
    counts = [np.zeros((LANES, splits + 1), dtype=np.int64) for _ in range(2)]
    return Work(
        z=np.zeros((LANES, n_bag)),
        node=np.zeros((LANES, n_bag), dtype=np.uint32),
        leaf=np.zeros(n_all),
        root=np.zeros((n_bag, LANES), dtype=np.float32),
        pair=np.zeros((n_bag if splits > 1 else 0, 4 * LANES), dtype=np.float32),
        limits=np.zeros((6, LANES), dtype=np.float32),
        bounds=np.zeros((n_columns, 2 * LANES), dtype=np.float32),
        turned=np.zeros((2 * LANES, n_columns), dtype=np.float32),
        place=np.zeros(n_bag + 1, dtype=np.uint32),
        terms=np.zeros(n_bag + 1),
        loads=np.zeros(n_bag + 1),
        n_rows=counts[0],
        weight=floats[0],
        centre=floats[1],
        unseen=floats[2],
        gain=floats[3],
        column=counts[1],
        threshold=floats[4],
    )


def make_bag(table: Table, n_rows: int, *, weighted: bool, min_node: int) -> Bag:
    """Return an empty bag for n_rows of the table's rows."""
    n_columns, tied = len(table.columns), bool(table.tied.any())
    return Bag(
        rows=np.zeros(n_rows, dtype=np.uint32),
        weights=np.zeros(n_rows),
        order=np.zeros((n_columns, n_rows), dtype=np.uint32),
        factor=np.zeros((n_columns if tied or weighted else 1, n_rows), dtype=np.float32),
        last=np.zeros((n_columns if tied else 0, n_rows), dtype=np.float32),
        stops=_stops(n_rows, min_node),
        peak=np.zeros(1),
        weighted=weighted,
    )


def _stops(n_rows: int, min_node: int) -> Count:
    """Return where a walk down n_rows stops: more often near its ends, where L·R changes fast."""
    stops = [min(min_node, n_rows)]
    while stops[-1] < n_rows:
        here = stops[-1]
        stops.append(here + max(1, int(STRIDE * min(here, n_rows - here))))
    return np.array(stops, dtype=np.int64)


COMPILED: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
FOR_KERNELS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def kernel(function: F) -> F:
    """Return the function compiled, kept on disk, and free to run beside Python."""
    return cast(F, numba.njit(cache=True, **COMPILED)(function))


def part(function: F) -> F:
    """Return the function compiled for kernels only, which takes half as long."""
    return cast(F, numba.njit(**COMPILED, **FOR_KERNELS)(function))


# --- bags ---------------------------------------------------------------------------------------


@part
def fill_bag(table: Table, seen: NDArray[np.bool_], min_node: int, bag: Bag) -> None:
    """Write the rows that are seen into a bag, and each column's order among them."""
    # Twice its place in the bag, plus one if the row is there: one look-up instead of two.
    at = np.zeros(seen.size, dtype=np.uint32)
    c = 0
    for row in range(seen.size):
        at[row] = 2 * c + seen[row]
        if seen[row]:
            bag.rows[c] = row
            bag.weights[c] = table.weights[row]
            c += 1
    for k in range(table.columns.shape[0]):
        _fill_order(table.order[k], at, bag.order[k])
        if bag.last.shape[0] > 0:
            _mark_last(table.columns[k], bag, k)
    total = pairwise_sum(bag.weights, bag.rows.size)
    for k in range(bag.factor.shape[0]):
        _fill_factor(bag, k, total, min_node)
    bag.peak[0] = bag.factor.max() if bag.factor.size else 0.0


@part
def _fill_order(order: Index, at: Index, out: Index) -> None:
    c, q = 0, 0
    while c < out.size:
        found = np.int64(at[order[q]])
        out[c] = found >> 1
        c += int(found & 1)
        q += 1


@part
def _mark_last(x: Array, bag: Bag, k: int) -> None:
    n = bag.rows.size
    for q in range(n - 1):
        here, after = bag.rows[bag.order[k, q]], bag.rows[bag.order[k, q + 1]]
        bag.last[k, q] = 1.0 if x[after] > x[here] else 0.0


@part
def _fill_factor(bag: Bag, k: int, total: float, min_node: int) -> None:
    n = bag.rows.size
    left = 0.0
    for q in range(n):
        left += bag.weights[bag.order[k, q]]
        factor = 0.0
        if min_node <= q + 1 <= n - min_node:
            factor = split_factor(left, total)
            if bag.last.shape[0] > 0:
                factor *= bag.last[k, q]
        bag.factor[k, q] = factor


@part
def split_factor(left: float, total: float) -> float:
    """Return (L + R)/(LR), or 0 where a side weighs next to nothing."""
    right = total - left
    if min(left, right) > FEATHER * total:
        return total / (left * right)
    return 0.0


@kernel
def pairwise_sum(values: Array, n: int) -> float:
    """Return the sum of the first n values, added up in the order in which numpy adds them.

    numpy halves a long array until a part has at most 128 values, and adds the sums of the
    halves. Parts wait on a stack; a part of length 0 stands for "add the last two sums".
    """
    if n <= 128:
        return _short_sum(values, 0, n)
    starts, lengths = np.empty(64, dtype=np.int64), np.empty(64, dtype=np.int64)
    sums = np.empty(64)
    waiting, done = 1, 0
    starts[0], lengths[0] = 0, n
    while waiting > 0:
        waiting -= 1
        start, length = starts[waiting], lengths[waiting]
        if length == 0:
            done -= 1
            sums[done - 1] += sums[done]
        elif length <= 128:
            sums[done] = _short_sum(values, start, length)
            done += 1
        else:
            half = length // 2
            half -= half % 8
            lengths[waiting] = 0
            starts[waiting + 1], lengths[waiting + 1] = start + half, length - half
            starts[waiting + 2], lengths[waiting + 2] = start, half
            waiting += 3
    return float(sums[0])


@part
def _short_sum(values: Array, start: int, n: int) -> float:
    """Return the sum of n values, eight side by side."""
    total = 0.0
    whole = start + n - n % 8
    if n >= 8:
        a, b, c, d = values[start], values[start + 1], values[start + 2], values[start + 3]
        e, f, g, h = values[start + 4], values[start + 5], values[start + 6], values[start + 7]
        for i in range(start + 8, whole, 8):
            a += values[i]
            b += values[i + 1]
            c += values[i + 2]
            d += values[i + 3]
            e += values[i + 4]
            f += values[i + 5]
            g += values[i + 6]
            h += values[i + 7]
        total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(whole, start + n):
        total += values[i]
    return total


# --- bounds: sixteen models walk down every column ----------------------------------------------


@part
def _bound_roots(bag: Bag, root: Single, bounds: Single) -> None:
    """Write the largest gain of each column and lane among all rows of the bag.

    Two columns at a time, so that one can be added up while the other waits for its sum.
    """
    zero, end = spread(np.float32(0)), bag.order.shape[0] - 1
    for k in range(0, end + 1, 2):
        j = min(k + 1, end)
        order, other = bag.order[k], bag.order[j]
        s, best, t, its_best = zero, zero, zero, zero
        if bag.factor.shape[0] == 1:
            for q in range(order.size):
                factor = spread(bag.factor[0, q])
                s, t = s + load(root, order[q], 0), t + load(root, other[q], 0)
                best, its_best = larger(s * s * factor, best), larger(t * t * factor, its_best)
        else:
            for q in range(order.size):
                factor, its_factor = spread(bag.factor[k, q]), spread(bag.factor[j, q])
                s, t = s + load(root, order[q], 0), t + load(root, other[q], 0)
                best, its_best = larger(s * s * factor, best), larger(t * t * its_factor, its_best)
        store(bounds, j, 0, its_best)
        store(bounds, k, 0, best)


@part
def _bound_children(bag: Bag, tied: NDArray[np.bool_], work: Work) -> None:
    """Write a bound on the gain of each column and lane, for two children of each lane.

    From one stop to the next the largest |S| is kept. L·R is smallest at one of two stops,
    since it is concave in L, and no cut may have less of it than the limit.
    """
    zero = spread(np.float32(0))
    limits, pair = work.limits, work.pair
    weight_a, weight_b = load(limits, 0, 0), load(limits, 1, 0)
    least_a, least_b = load(limits, 2, 0), load(limits, 3, 0)
    blur_a, blur_b = load(limits, 4, 0), load(limits, 5, 0)
    for k in range(bag.order.shape[0]):
        order = bag.order[k]
        s_a, s_b, l_a, l_b = zero, zero, zero, zero
        product_a, product_b, best_a, best_b = zero, zero, zero, zero
        begin = 0
        for stop in bag.stops:
            top_a, top_b = zero, zero
            if tied[k]:
                for q in range(begin, stop):
                    i = order[q]
                    s_a, s_b = s_a + load(pair, i, 0), s_b + load(pair, i, LANES)
                    l_a, l_b = l_a + load(pair, i, 2 * LANES), l_b + load(pair, i, 3 * LANES)
                    here = spread(bag.last[k, q])
                    top_a, top_b = larger(size(s_a) * here, top_a), larger(size(s_b) * here, top_b)
            else:
                for q in range(begin, stop):
                    i = order[q]
                    s_a, s_b = s_a + load(pair, i, 0), s_b + load(pair, i, LANES)
                    l_a, l_b = l_a + load(pair, i, 2 * LANES), l_b + load(pair, i, 3 * LANES)
                    top_a, top_b = larger(size(s_a), top_a), larger(size(s_b), top_b)
            begin = stop
            before_a, before_b = product_a, product_b
            product_a, product_b = l_a * (weight_a - l_a), l_b * (weight_b - l_b)
            least = larger(smaller(before_a, product_a) - blur_a, least_a)
            best_a = larger(top_a * top_a / least, best_a)
            least = larger(smaller(before_b, product_b) - blur_b, least_b)
            best_b = larger(top_b * top_b / least, best_b)
        store(work.bounds, k, 0, best_a * weight_a)
        store(work.bounds, k, LANES, best_b * weight_b)


@part
def _turn(bounds: Single, turned: Single) -> None:
    """Write the bounds lane by lane, since each lane looks at its own."""
    for k in range(bounds.shape[0]):
        for m in range(2 * LANES):
            turned[m, k] = bounds[k, m]


# --- exact gains: only of columns whose bound is high enough ------------------------------------


@part
def _look(
    table: Table,
    bag: Bag,
    models: Models,
    rules: Rules,
    work: Work,
    m: int,
    node: int,
    side: int,
    goal: float,
) -> None:
    """Write the best cut of a node, the first of those that gain most, if it reaches the goal."""
    if work.n_rows[m, node] == 0:
        return
    bounds, scale = work.turned[side * LANES + m], models.scale[m]
    bounds[models.low[m] : models.high[m]] = -1
    first = _largest(bounds)
    if bounds[first] < _least(work, scale, m, node, goal):
        return
    best, chosen = _exact(table, bag, rules, work, m, node, first), first
    threshold = work.terms[0]
    bounds[first] = -1
    least = _least(work, scale, m, node, max(best, goal))
    for k in range(bounds.size):
        if bounds[k] >= least:
            gain = _exact(table, bag, rules, work, m, node, k)
            if gain > best or (gain == best and k < chosen):
                best, chosen, threshold = gain, k, work.terms[0]
                least = _least(work, scale, m, node, max(best, goal))
    work.gain[m, node] = best
    work.column[m, node] = chosen
    work.threshold[m, node] = threshold


@part
def _largest(values: Single) -> int:
    """Return where the largest value is."""
    at, most = 0, values[0]
    for k in range(1, values.size):
        if values[k] > most:
            at, most = k, values[k]
    return at


@part
def _least(work: Work, scale: float, m: int, node: int, gain: float) -> np.float32:
    """Return the least bound of a column that may have this gain."""
    least = max(0.0, (np.sqrt(gain) * scale - work.unseen[m, node]) / MARGIN)
    return np.float32(least * least * (1 - UNIT))


@part
def _exact(table: Table, bag: Bag, rules: Rules, work: Work, m: int, node: int, k: int) -> float:
    """Return the gain of the best cut of a node at a column; `terms` gets the threshold."""
    place = work.place
    n = bag.rows.size
    if work.n_rows[m, node] == n:
        place = bag.order[k]
    else:
        n = _placed(bag.order[k], work.node[m], node, place)
    x, tied, z, least = table.columns[k], table.tied[k], work.z[m], rules.min_node
    centre, weight = work.centre[m, node], work.weight[m, node]
    best, left, s = 0.0, 0.0, 0.0
    for c in range(n - least):
        a = place[c]
        s += (z[a] - centre) * bag.weights[a]
        left += bag.weights[a]
        gain = s * s * split_factor(left, weight)
        if c + 1 < least or (tied and x[bag.rows[place[c + 1]]] <= x[bag.rows[a]]):
            gain = 0.0
        work.loads[c] = gain
        best = gain if gain > best else best
    if best > 0:
        c = 0
        while work.loads[c] < best:
            c += 1
        work.terms[0] = _midway(x[bag.rows[place[c]]], x[bag.rows[place[c + 1]]])
    return best


@part
def _placed(order: Index, node_of: Index, node: int, place: Index) -> int:
    """Return how many rows a node has, and write them in a column's order."""
    n = 0
    for q in range(order.size):
        place[n] = order[q]
        n += node_of[order[q]] == node
    return n


@part
def _midway(below: float, above: float) -> float:
    middle = 0.5 * below + 0.5 * above
    return middle if middle > below else above


# --- trees --------------------------------------------------------------------------------------


@kernel
def advance(
    table: Table,
    bags: NDArray[np.bool_],
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
        fill_bag(table, bags[t], rules.min_node, bag)
        count = forks.used[0]
        if height > 0:
            _remember(models, scores, forks)
        # A part that is called in one place only is compiled only once.
        for is_new in range(2):
            first, last = (count, forks.used[0]) if is_new else (0, count)
            _grow(table, bag, models, rules, work, trees, scores, first, last)
            for m in range(0 if is_new else height):
                _keep(trees, m, history, (done + t) * height + m)
                _fork(models, trees, scores, forks, m)


@part
def _remember(models: Models, scores: Array, forks: Forks) -> None:
    """Write down what the full model was before this round."""
    for i in range(forks.scores.shape[0]):
        _copy(scores[i], forks.scores[i])
        _copy(models.expected[i], forks.expected[i])
        if models.bend.shape[0] > 1:
            _copy(models.bend[i], forks.bend[i])


@part
def _copy(values: Array, out: Array) -> None:
    for i in range(out.size):
        out[i] = values[i]


@part
def _keep(trees: Trees, m: int, history: Trees, at: int) -> None:
    """Copy a tree into the history, if one is kept."""
    if history.cuts.size > 0:
        history.cuts[at] = trees.cuts[m]
        for cut in range(trees.cuts[m]):
            history.node[at, cut] = trees.node[m, cut]
            history.column[at, cut] = trees.column[m, cut]
            history.threshold[at, cut] = trees.threshold[m, cut]
        _copy(trees.leaves[m], history.leaves[at])


@part
def _fork(models: Models, trees: Trees, scores: Array, forks: Forks, m: int) -> None:
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
    _copy(models.targets[i], models.targets[at])
    _copy(forks.expected[i], models.expected[at])
    _copy(forks.scores[i], scores[at])
    if models.bend.shape[0] > 1:
        _copy(forks.bend[i], models.bend[at])
    models.low[at], models.high[at] = forks.low[feature], forks.high[feature]
    models.noise[at], models.scale[at] = models.noise[i], models.scale[i]


@part
def _grow(
    table: Table,
    bag: Bag,
    models: Models,
    rules: Rules,
    work: Work,
    trees: Trees,
    scores: Array,
    first: int,
    last: int,
) -> None:
    """Grow a tree for the models from `first` to `last` and add it to their scores."""
    for start in range(first, last, LANES):
        end = min(start + LANES, last)
        some, grown = _some_models(models, start, end), _some_trees(trees, start, end)
        _grow_block(table, bag, some, rules, work, grown)
        for m in range(end - start):
            _settle(bag, some, rules, work, grown, m)
            _move(table, work, grown, m, scores[start + m])


@part
def _some_trees(trees: Trees, start: int, end: int) -> Trees:
    return Trees(
        cuts=trees.cuts[start:end],
        node=trees.node[start:end],
        column=trees.column[start:end],
        threshold=trees.threshold[start:end],
        leaves=trees.leaves[start:end],
    )


@part
def _some_models(models: Models, start: int, end: int) -> Models:
    return Models(
        models.targets[start:end],
        models.expected[start:end],
        models.bend[start:end] if models.bend.shape[0] > 1 else models.bend,
        models.low[start:end],
        models.high[start:end],
        models.noise[start:end],
        models.scale[start:end],
    )


@part
def _grow_block(
    table: Table, bag: Bag, models: Models, rules: Rules, work: Work, trees: Trees
) -> None:
    """Write the cuts of a block of trees, each time in the node that gains most."""
    n = trees.cuts.size
    work.root[:] = 0.0
    for m in range(n):
        trees.cuts[m] = 0
        _plant(bag, models, rules, work, m)
    _bound_roots(bag, work.root, work.bounds)
    for cut in range(rules.splits):
        last = cut + 1 == rules.splits
        # The nodes that are new: the root at first, then the two children of the last cut.
        _turn(work.bounds, work.turned)
        for m in range(n):
            for side in range(min(cut, 1) + 1 if trees.cuts[m] == cut else 0):
                node = cut if side or cut == 0 else trees.node[m, cut - 1]
                # Before the last cut, only a node that gains more than all others matters.
                goal = work.gain[m, : cut + 1].max() if last else 0.0
                _look(table, bag, models, rules, work, m, node, side, goal)
        pending = False
        if not last:
            _clear_pairs(work)
        for m in range(n):
            is_cut = _cut_best(table, bag, models, work, trees, m, cut)
            for side in range(2 if is_cut and not last else 0):
                node = cut + 1 if side else trees.node[m, cut]
                _open_child(bag, models, rules, work, m, node, side)
                pending = True
        if not pending:
            return
        _bound_children(bag, table.tied, work)


@part
def _clear_pairs(work: Work) -> None:
    """Make lanes that will have no children harmless to the walk."""
    work.pair[:] = 0.0
    for m in range(LANES):
        for side in range(2):
            work.limits[side, m] = 0.0
            work.limits[2 + side, m] = 1.0
            work.limits[4 + side, m] = 0.0


@part
def _plant(bag: Bag, models: Models, rules: Rules, work: Work, m: int) -> None:
    """Write a model's z among the rows of the bag, and once more centred for the walk."""
    n, targets, expected = bag.rows.size, models.targets[m], models.expected[m]
    z = work.z[m]
    for a in range(n):
        row = bag.rows[a]
        z[a] = targets[row] - expected[row]
        work.terms[a] = z[a] * bag.weights[a]
    work.node[m] = 0
    weight = pairwise_sum(bag.weights, n) if bag.weighted else float(n)
    _open(rules, work, m, 0, n, weight)
    centre, scale = work.centre[m, 0], models.scale[m]
    total = 0.0
    for a in range(n):
        value = (z[a] - centre) * bag.weights[a] * scale
        work.root[a, m] = value
        total += abs(value)
    work.unseen[m, 0] = _unseen(total, n, bag.peak[0])


@part
def _open(rules: Rules, work: Work, m: int, node: int, n: int, weight: float) -> None:
    """Write the size and centre of a new node, whose weighted z are in `terms`.

    A node without room for two sides, or without weight, counts as empty: it is never cut.
    """
    can_be_cut = n >= 2 * rules.min_node and weight > 0
    work.gain[m, node] = 0.0
    work.weight[m, node] = weight
    work.n_rows[m, node] = n if can_be_cut else 0
    work.centre[m, node] = pairwise_sum(work.terms, n) / weight if can_be_cut else 0.0


@part
def _unseen(total: float, n: int, peak: float) -> float:
    """Return by how much rounding in float32 can hide a part of sqrt(gain) = |S|·sqrt(factor).

    A sum of n centred numbers is never larger than half of the total of their sizes, and each
    addition is off by at most a unit of what it adds up to.
    """
    return float(UNIT * (0.5 * n + 4) * total * np.sqrt(peak))


@part
def _open_child(
    bag: Bag, models: Models, rules: Rules, work: Work, m: int, node: int, side: int
) -> None:
    """Write a child's centred z and weights for the walk, and the limits of its gains."""
    n, node_of, z = 0, work.node[m], work.z[m]
    for a in range(bag.rows.size):
        work.place[n] = a
        n += node_of[a] == node
    for c in range(n):
        a = work.place[c]
        work.terms[c] = z[a] * bag.weights[a]
        work.loads[c] = bag.weights[a]
    weight = pairwise_sum(work.loads, n) if bag.weighted else float(n)
    _open(rules, work, m, node, n, weight)
    if work.n_rows[m, node] == 0:
        return
    centre, scale = work.centre[m, node], models.scale[m]
    at, lightest, total = side * LANES + m, weight, 0.0
    for c in range(n):
        a = work.place[c]
        value = (z[a] - centre) * bag.weights[a] * scale
        work.pair[a, at] = value
        work.pair[a, 2 * LANES + at] = bag.weights[a]
        total += abs(value)
        lightest = min(lightest, bag.weights[a])
    peak = _limit(rules, work, m, node, side, lightest, bag.weighted)
    work.unseen[m, node] = _unseen(total, n, peak)


@part
def _limit(
    rules: Rules, work: Work, m: int, node: int, side: int, lightest: float, weighted: bool
) -> float:
    """Return the largest factor of a child; write its weight, least L·R and how far L·R is off."""
    n, weight = work.n_rows[m, node], work.weight[m, node]
    side_weight = max(FEATHER * weight, rules.min_node * lightest)
    least = side_weight * (weight - side_weight) * (1 - 4 * UNIT)
    work.limits[side, m] = weight
    work.limits[2 + side, m] = least
    work.limits[4 + side, m] = 4 * UNIT * n * weight**2 if weighted else 0.0
    return float(weight / least)


@part
def _cut_best(
    table: Table, bag: Bag, models: Models, work: Work, trees: Trees, m: int, cut: int
) -> bool:
    """Return whether a node gains, and cut in two the one that gains most."""
    if trees.cuts[m] < cut:
        return False
    node = 0
    for other in range(1, cut + 1):
        if work.gain[m, other] > work.gain[m, node]:
            node = other
    if work.gain[m, node] <= models.noise[m]:
        return False
    column, threshold = work.column[m, node], work.threshold[m, node]
    trees.cuts[m] = cut + 1
    trees.node[m, cut] = node
    trees.column[m, cut] = column
    trees.threshold[m, cut] = threshold
    x, node_of = table.columns[column], work.node[m]
    for a in range(node_of.size):
        goes_right = (node_of[a] == node) & (x[bag.rows[a]] >= threshold)
        node_of[a] = cut + 1 if goes_right else node_of[a]
    return True


@part
def _settle(bag: Bag, models: Models, rules: Rules, work: Work, trees: Trees, m: int) -> None:
    """Give the leaves of a tree their shrunken Newton steps."""
    leaves = trees.leaves[m]
    leaves[:] = 0.0
    if trees.cuts[m] == 0:
        return
    for first in range(0, trees.cuts[m] + 1, 2):
        left, right = _steps(bag, models, work, m, first)
        leaves[first] = rules.shrinkage * min(max(left, -rules.largest_step), rules.largest_step)
        if first < trees.cuts[m]:
            right = min(max(right, -rules.largest_step), rules.largest_step)
            leaves[first + 1] = rules.shrinkage * right


@part
def _steps(bag: Bag, models: Models, work: Work, m: int, leaf: int) -> tuple[float, float]:
    """Return the Newton steps of a leaf and of the next; sums in registers are soonest."""
    z, node_of = work.z[m], work.node[m]
    bend = models.bend[m if models.bend.shape[0] > 1 else 0]
    slope, curve, next_slope, next_curve = 0.0, 0.0, 0.0, 0.0
    for a in range(node_of.size):
        value, bent = z[a] * bag.weights[a], bend[bag.rows[a]]
        slope += value if node_of[a] == leaf else 0.0
        curve += bent if node_of[a] == leaf else 0.0
        next_slope += value if node_of[a] == leaf + 1 else 0.0
        next_curve += bent if node_of[a] == leaf + 1 else 0.0
    step = slope / curve if curve > FLAT else 0.0
    next_step = next_slope / next_curve if next_curve > FLAT else 0.0
    return step, next_step


@part
def _move(table: Table, work: Work, trees: Trees, m: int, scores: Array) -> None:
    """Add to each row's score the leaf it falls into."""
    cuts, leaf, leaves = trees.cuts[m], work.leaf, trees.leaves[m]
    if cuts == 1:
        x, threshold = table.columns[trees.column[m, 0]], trees.threshold[m, 0]
        left, right = leaves[0], leaves[1]
        for row in range(scores.size):
            scores[row] += left if x[row] < threshold else right
    elif cuts > 1:
        leaf[:] = 0
        for cut in range(cuts):
            x, threshold = table.columns[trees.column[m, cut]], trees.threshold[m, cut]
            node, new = trees.node[m, cut], float(cut + 1)
            for row in range(scores.size):
                leaf[row] = new if (leaf[row] == node) & (x[row] >= threshold) else leaf[row]
        for row in range(scores.size):
            scores[row] += leaves[int(leaf[row])]


# --- other values: what the full model says of altered rows -------------------------------------


@kernel
def differences(
    table: Table,
    history: Trees,
    height: int,
    owner: Count,
    slot: Count,
    first: int,
    other: Array,
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
                _add_difference(table, history, owner, tree, feature, first, other, pick, out)
    return answer


@part
def _used_before(history: Trees, owner: Count, tree: int, cut: int, feature: int) -> bool:
    found = False
    for earlier in range(cut):
        found |= owner[history.column[tree, earlier]] == feature
    return found


@part
def _add_difference(
    table: Table,
    history: Trees,
    owner: Count,
    tree: int,
    feature: int,
    first: int,
    other: Array,
    pick: Count,
    out: Array,
) -> None:
    """Add by how much one tree changes its mind."""
    for i in range(pick.size):
        was, now = 0, 0
        for cut in range(history.cuts[tree]):
            k, threshold = history.column[tree, cut], history.threshold[tree, cut]
            x = table.columns[k, first + i]
            if was == history.node[tree, cut] and x >= threshold:
                was = cut + 1
            if owner[k] == feature:
                x = other[k, pick[i]]
            if now == history.node[tree, cut] and x >= threshold:
                now = cut + 1
        out[i] += history.leaves[tree, now] - history.leaves[tree, was]
