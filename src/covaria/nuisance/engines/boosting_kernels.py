"""One round of boosting for many models at once: the compiled half of the boosting engine.

All models of a fold share the rows, the sorted columns and the bags; what differs is the target
and the columns a model may not use. So sixteen models walk down a sorted column side by side.

A split is found in two steps. A walk in whole numbers of 16 bits gives for every column a
*bound*, a number that the root of its best gain cannot exceed. Then the *exact* gain, in float64
and added up in the order of the plain estimator, is computed only for columns whose bound reaches
the best exact gain so far: hardly more than one. So the trees are those of the plain estimator to
the last bit, while most of the work is done sixteen at a time.

Whole numbers add up without error, so all that a walk can miss is what the numbers lost when they
were rounded. The sums of small bags have room in 16 bits, those of large bags in 32.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covaria.learners.estimators.boosting import FEATHER
from covaria.nuisance.engines.boosting_lanes import (
    DOUBLE_LANES,
    LANES,
    as_floats,
    item,
    lane,
    larger,
    load,
    load_from,
    passed,
    put,
    root,
    scaled,
    smaller,
    spread,
    store,
    unless,
    weight_of,
    where,
)
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
    loose_part,
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

Single = NDArray[np.float32]
Word = NDArray[np.int16]

# The relative error of one float32 operation, and a margin for a handful of them.
UNIT = 2.0**-24
MARGIN = 1 + 16 * UNIT
# How far a walk goes on before gains are bounded, relative to the way to the nearer end.
STRIDE = 0.25
# The largest whole number of 16 bits, and the largest bag whose sums are kept in them.
LARGEST_WORD = 32767
NARROW = 1024
# Numbers that add up to less than this are all zero.
NOTHING = 1e-290


class Table(NamedTuple):
    """The rows of a fold, training rows first, and the training rows in each column's order."""

    columns: Array  # (columns, all rows)
    order: Index  # (columns, training rows)
    tied: Mask  # (columns): are any values equal?
    weights: Array  # (training rows)


class Bag(NamedTuple):
    """The rows one tree sees; within a bag a row is known by its place in `rows`.

    A cut at a place is worth sqrt((L + R)/(LR)), and nothing where no cut may be. Columns whose
    places are all worth the same share row 0 of `worth`, any other has a row of its own.
    """

    rows: Index
    weights: Array
    light: Single  # the weights once more
    order: Index  # (columns, rows + 1): the last is of no meaning
    last: Word  # (columns, rows): -1 at the last of equal values, else 0; none without ties
    factor: Array  # (rows): (L + R)/(LR) if all rows weigh the same
    at: Count  # (columns): the row of `worth`
    worth: Single  # (1 or more, rows)
    words: Word  # the same as shares of the largest; none if sums need 32 bits
    limits: Array  # (2): the largest worth, and the largest of worth times rows to the nearer end
    stops: Count  # where the walk down a column stops to bound its gains
    seat: Index  # (training rows): twice the place of a row in the bag, plus one if it is there
    stack: Array  # (3, 64): room for a sum
    weighted: bool


class Work(NamedTuple):
    """Room for a block of models, kept from round to round.

    A child is a node that a cut has just made; the left one comes first, then the right one.
    """

    z: Array  # (lanes, rows of a bag)
    node: Place  # (lanes, rows of a bag): where a row of the bag is
    leaf: Place  # (all rows): where any row is
    whole: Word  # (rows of a bag): centred z of one lane, rounded
    root: Word  # (rows of a bag, lanes): the same of all lanes
    ends: Word  # (1, lanes): what they add up to
    pair: Word  # (rows of a bag, 2 lanes): the same of two children, 0 outside of them
    limits: Single  # (8, lanes): weight, least L·R, blur of L·R and of S, each of two children
    bounds: Single  # (columns, 2 lanes)
    turned: Single  # (2 lanes, columns): the same the other way round
    place: Index  # (rows of a bag)
    terms: Array  # (rows of a bag)
    loads: Array  # (rows of a bag)
    child: Array  # (rows of a bag)
    slopes: Array  # (leaves)
    curves: Array  # (leaves)
    n_rows: Count  # (lanes, nodes): rows of a node, 0 if it cannot be cut
    weight: Array  # (lanes, nodes)
    centre: Array
    scale: Array  # how many units of a bound make one of z
    unseen: Array  # by how much the root of a gain may exceed its bound
    gain: Array
    column: Count
    threshold: Array


def make_work(n_all: int, n_bag: int, n_columns: int, splits: int) -> Work:
    """Return room for a block of models."""
    place = np.uint8 if splits < 256 else np.uint32
    floats = [np.zeros((LANES, splits + 1)) for _ in range(6)]
    counts = [np.zeros((LANES, splits + 1), dtype=np.int64) for _ in range(2)]
    return Work(
        z=np.zeros((LANES, n_bag)),
        node=np.zeros((LANES, n_bag), dtype=place),
        leaf=np.zeros(n_all, dtype=place),
        whole=np.zeros(n_bag, dtype=np.int16),
        root=np.zeros((n_bag, LANES), dtype=np.int16),
        ends=np.zeros((1, LANES), dtype=np.int16),
        pair=np.zeros((n_bag if splits > 1 else 0, 2 * LANES), dtype=np.int16),
        limits=np.zeros((8, LANES), dtype=np.float32),
        bounds=np.zeros((n_columns, 2 * LANES), dtype=np.float32),
        turned=np.zeros((2 * LANES, n_columns), dtype=np.float32),
        place=np.zeros(n_bag + 1, dtype=np.uint32),
        terms=np.zeros(n_bag + 1),
        loads=np.zeros(n_bag + 1),
        child=np.zeros(n_bag + 1),
        slopes=np.zeros(splits + 1),
        curves=np.zeros(splits + 1),
        n_rows=counts[0],
        weight=floats[0],
        centre=floats[1],
        scale=floats[2],
        unseen=floats[3],
        gain=floats[4],
        column=counts[1],
        threshold=floats[5],
    )


def make_bag(table: Table, n_rows: int, *, weighted: bool, min_node: int) -> Bag:
    """Return an empty bag for n_rows of the table's rows."""
    n_columns, tied, narrow = len(table.order), bool(table.tied.any()), n_rows <= NARROW
    at = np.arange(n_columns) if weighted else np.where(table.tied, np.cumsum(table.tied), 0)
    n_kinds = int(at.max(initial=0)) + 1
    left = np.arange(1.0, n_rows + 1)
    allowed = (left >= min_node) & (left <= n_rows - min_node)
    factor = np.divide(n_rows, left * (n_rows - left), out=np.zeros(n_rows), where=allowed)
    bag = Bag(
        rows=np.zeros(n_rows, dtype=np.uint32),
        weights=np.ones(n_rows),
        light=np.ones(n_rows, dtype=np.float32),
        order=np.zeros((n_columns, n_rows + 1), dtype=np.uint32),
        last=np.zeros((n_columns if tied else 0, n_rows), dtype=np.int16),
        factor=factor,
        at=at.astype(np.int64),
        worth=np.zeros((n_kinds, n_rows), dtype=np.float32),
        words=np.zeros((n_kinds if narrow else 0, n_rows), dtype=np.int16),
        limits=np.zeros(2),
        stops=_stops(n_rows, min_node),
        seat=np.zeros(table.order.shape[1], dtype=np.uint32),
        stack=np.zeros((3, 64)),
        weighted=weighted,
    )
    bag.worth[0] = np.sqrt(factor)
    bag.limits[0] = bag.worth[0].max(initial=0.0)
    bag.limits[1] = (np.minimum(left, n_rows - left) * bag.worth[0]).max(initial=0.0)
    if narrow and bag.limits[0] > 0:
        shares = np.ceil(LARGEST_WORD / bag.limits[0] * bag.worth[0])
        bag.words[0] = np.minimum(shares, LARGEST_WORD)
    return bag


def _stops(n_rows: int, min_node: int) -> Count:
    """Return where a walk down n_rows stops: more often near its ends, where L·R changes fast.

    The first stop is before the first place of a cut, the last stop after the last. Steps are
    powers of two, so that many in a row have the same length: machines foresee that.
    """
    stops, end = [min(min_node - 1, n_rows)], n_rows - min_node
    while stops[-1] < end:
        step = max(4, int(STRIDE * min(stops[-1], n_rows - stops[-1])))
        stops.append(min(stops[-1] + (1 << step.bit_length() - 1), end))
    return np.array(stops, dtype=np.int64)


# --- bags ---------------------------------------------------------------------------------------


@part
def fill_bag(table: Table, seen: Mask, min_node: int, bag: Bag) -> None:
    """Write the rows that are seen into a bag, and each column's order among them."""
    c = 0
    for row in range(seen.size):
        # One look-up instead of two.
        bag.seat[row] = 2 * c + seen[row]
        if seen[row]:
            bag.rows[c] = row
            c += 1
    for k in range(bag.order.shape[0]):
        _fill_order(table.order[k], bag.seat, bag.order[k])
        if table.tied[k]:
            _mark_last(table.columns[k], bag.rows, bag.order[k], bag.last[k])
    if bag.weighted:
        for a in range(bag.rows.size):
            bag.weights[a] = table.weights[bag.rows[a]]
            bag.light[a] = bag.weights[a]
        _fill_worth(table.tied, bag, min_node)
    elif bag.at.max() > 0:
        _copy_worth(table.tied, bag)


@part
def _fill_order(order: Index, seat: Index, out: Index) -> None:
    """Write the places of the rows that have one; the last that have none go one beyond."""
    c = 0
    for q in range(order.size):
        found = item(seat, order[q])
        put(out, c, found >> 1)
        c += int(found & 1)


@part
def _mark_last(x: Array, rows: Index, order: Index, last: Word) -> None:
    """Mark the last of equal values."""
    here = x[rows[order[0]]]
    for q in range(last.size - 1):
        after = x[rows[order[q + 1]]]
        last[q] = -1 if after > here else 0
        here = after


@part
def _copy_worth(tied: Mask, bag: Bag) -> None:
    """Write what the places of tied columns are worth if all rows weigh the same."""
    for k in range(tied.size):
        for q in range(bag.rows.size if tied[k] else 0):
            if bag.words.shape[0] > 0:
                bag.words[bag.at[k], q] = bag.words[0, q] & bag.last[k, q]
            else:
                bag.worth[bag.at[k], q] = -bag.worth[0, q] * bag.last[k, q]


@part
def _fill_worth(tied: Mask, bag: Bag, min_node: int) -> None:
    """Write what the places of all columns are worth if rows weigh differently."""
    n, most, farthest = bag.rows.size, 0.0, 0.0
    total = pairwise_sum(bag.weights, n, bag.stack)
    for k in range(bag.order.shape[0]):
        left = 0.0
        for q in range(n):
            left += bag.weights[bag.order[k, q]]
            worth = 0.0
            if min_node <= q + 1 <= n - min_node and not (tied[k] and bag.last[k, q] == 0):
                worth = np.sqrt(split_factor(left, total))
            bag.worth[k, q] = worth
            most = max(most, worth)
            farthest = max(farthest, worth * min(q + 1, n - q - 1))
    bag.limits[0], bag.limits[1] = most, farthest
    share = LARGEST_WORD / most if most > 0 else 0.0
    for k in range(bag.words.shape[0]):
        for q in range(n):
            bag.words[k, q] = np.int16(min(np.ceil(share * bag.worth[k, q]), LARGEST_WORD))


# --- bounds: sixteen models walk down every column ----------------------------------------------


@part
def _scale(narrow: float, z: Array, weights: Array, centre: float, n: int) -> float:
    """Return what centred, weighted numbers are multiplied by before they are rounded.

    In narrow sums they may add up to `narrow`, each taken without its sign; in wide ones every
    number may be as large as a word.
    """
    if narrow > 0:
        most, size = narrow - 2 * n, _total_size(z, weights, centre, n)
    else:
        most = LARGEST_WORD * min(1.0, 2.0 * LARGEST_WORD / n)
        size = _largest_size(z, weights, centre, n)
    return most / size if size > NOTHING else 0.0


@loose_part
def _total_size(z: Array, weights: Array, centre: float, n: int) -> float:
    """Return the sum of the sizes of centred, weighted numbers."""
    total = 0.0
    for c in range(n):
        total += abs((z[c] - centre) * weights[c])
    return total


@part
def _largest_size(z: Array, weights: Array, centre: float, n: int) -> float:
    """Return the largest of the sizes of centred, weighted numbers."""
    largest = 0.0
    for c in range(n):
        value = abs((z[c] - centre) * weights[c])
        largest = value if value > largest else largest
    return largest


@loose_part
def _round(
    z: Array, weights: Array, centre: float, scale: float, least: float, out: Word, n: int
) -> tuple[float, float]:
    """Write whole numbers no smaller than `least`; return what they lost, and their sum."""
    lost, total = 0.0, 0.0
    for c in range(n):
        value = (z[c] - centre) * weights[c] * scale
        size = min(max(least, np.floor(abs(value) + 0.5)), float(LARGEST_WORD))
        whole = size if value >= 0 else -size
        out[c] = np.int16(np.int32(whole))
        lost += abs(value - whole)
        total += whole
    return lost, total


@part
def _lost(lost: float, total: float) -> float:
    """Return how much some of the rounded numbers can have lost together.

    Centred numbers add up to 0, so their sum is what all of them lost. Those that lost in one
    direction lost half of it, and half of what all lost in either.
    """
    return 0.5 * (lost + abs(total)) + 0.1


@part
def _bound_roots(bag: Bag, work: Work) -> None:
    """Write a bound of each column and lane among all rows of the bag."""
    zero = np.int16(0)
    if bag.words.shape[0] > 0:
        unit = bag.limits[0] * 2.0**16 / LARGEST_WORD
        _walk_roots(bag, work, bag.words, spread(zero), unit)
    else:
        _walk_roots(bag, work, bag.worth, spread(np.int32(0)), 1.0)


@inner
def _walk_roots(bag: Bag, work: Work, worth: NDArray[np.generic], none: Any, unit: float) -> None:
    """Walk down two columns at a time, that may share what a place is worth.

    `none` is nothing of the kind that sums are, and `unit` what a bound has to be multiplied by.
    """
    end, words = bag.order.shape[0] - 1, work.root
    for k in range(0, end + 1, 2):
        j = min(k + 1, end)
        order, other = bag.order[k], bag.order[j]
        at, its_at = bag.at[k], bag.at[j]
        s, t = none, none
        top = scaled(none, worth.dtype.type(0))
        low, its_top, its_low = top, top, top
        for q in range(bag.rows.size):
            s, t = s + load(words, order[q], 0), t + load(words, other[q], 0)
            g, h = scaled(s, worth[at, q]), scaled(t, worth[its_at, q])
            top, its_top = larger(g, top), larger(h, its_top)
            low, its_low = smaller(g, low), smaller(h, its_low)
        store(work.bounds, j, 0, _farthest(t, its_top, its_low, work, unit))
        store(work.bounds, k, 0, _farthest(s, top, low, work, unit))


@inner
def _farthest(s: object, top: object, low: object, work: Work, unit: float) -> object:
    """Return how far from 0 lanes have been, in units; they may have been rounded down by one.

    Sums that have no room stop short, and do not come out where they should.
    """
    size = larger(as_floats(top), spread(np.float32(0)) - as_floats(low))
    size = (size + spread(np.float32(1))) * spread(np.float32(unit))
    return unless(s, load(work.ends, 0, 0), size, np.float32(np.inf))


@part
def _bound_children(bag: Bag, tied: Mask, work: Work) -> None:
    """Write a bound of each column and lane, for two children of each lane."""
    if bag.words.shape[0] > 0 and not bag.weighted:
        _walk_children(bag, tied, work, spread(np.int16(0)), spread(np.int16(0)))
    else:
        _walk_children(bag, tied, work, spread(np.int32(0)), spread(np.float32(0)))


@inner
def _walk_children(bag: Bag, tied: Mask, work: Work, none: Any, empty: Any) -> None:
    """Walk down the columns, and stop here and there to bound the gains since the last stop.

    From one stop to the next the farthest S is kept. L·R is smallest at one of two stops,
    since it is concave in L, and no cut may have less of it than the limit. `none` is nothing
    of the kind that S is, `empty` of the kind that L is.
    """
    zero, pair = spread(np.float32(0)), work.pair
    for k in range(bag.order.shape[0]):
        order = bag.order[k]
        s_a, s_b, l_a, l_b = none, none, empty, empty
        product_a, product_b, best_a, best_b = zero, zero, zero, zero
        begin = 0
        for stop in bag.stops:
            top_a, top_b, low_a, low_b = none, none, none, none
            for q in range(begin, stop):
                i = item(order, q)
                a, b = load(pair, i, 0), load(pair, i, LANES)
                s_a, s_b = s_a + a, s_b + b
                l_a = passed(l_a, a, item(bag.light, i))
                l_b = passed(l_b, b, item(bag.light, i))
                here_a, here_b = s_a, s_b
                if tied[k]:
                    is_last = spread(bag.last[k, q])
                    here_a, here_b = where(is_last, s_a), where(is_last, s_b)
                top_a, top_b = larger(here_a, top_a), larger(here_b, top_b)
                low_a, low_b = smaller(here_a, low_a), smaller(here_b, low_b)
            begin = stop
            before_a, before_b = product_a, product_b
            product_a, product_b = _product(l_a, stop, work, 0), _product(l_b, stop, work, 1)
            size_a, size_b = larger(top_a, none - low_a), larger(top_b, none - low_b)
            best_a = larger(_most(size_a, before_a, product_a, work, 0), best_a)
            best_b = larger(_most(size_b, before_b, product_b, work, 1), best_b)
            if stop == bag.stops[0]:
                best_a, best_b = zero, zero  # no cut may be there
        store(work.bounds, k, 0, root(best_a * load(work.limits, 0, 0)))
        store(work.bounds, k, LANES, root(best_b * load(work.limits, 1, 0)))


@inner
def _product(left: object, stop: int, work: Work, side: int) -> object:
    """Return L·R of a child."""
    weight = weight_of(left, np.float32(stop))
    return weight * (load(work.limits, side, 0) - weight)


@inner
def _most(size: object, before: object, after: object, work: Work, side: int) -> object:
    """Return what S²/(LR) of a child cannot exceed between two stops."""
    least, blur = load(work.limits, 2 + side, 0), load(work.limits, 4 + side, 0)
    far = as_floats(size) + load(work.limits, 6 + side, 0)
    return far * far / larger(smaller(before, after) - blur, least)


@part
def _turn(bounds: Single, turned: Single) -> None:
    """Write the bounds lane by lane, since each lane looks at its own."""
    for k in range(bounds.shape[0]):
        for m in range(2 * LANES):
            turned[m, k] = bounds[k, m]


# --- exact gains: only of columns whose bound is high enough ------------------------------------


@inner
def _look(
    table: Table, bag: Bag, models: Models, rules: Rules, work: Work, trees: Trees, cut: int
) -> None:
    """Write the best cuts of the newest nodes: the roots, or the children of the last cuts."""
    is_last = cut + 1 == rules.splits
    for m in range(trees.cuts.size):
        for side in range(min(cut, 1) + 1 if trees.cuts[m] == cut else 0):
            node = cut if side or cut == 0 else trees.node[m, cut - 1]
            if work.n_rows[m, node] > 0 and work.scale[m, node] > 0:
                # Before the last cut, only a node that gains more than all others matters.
                others = _highest(work.gain, m, cut + 1) if is_last else 0.0
                goal = max(others, models.noise[m])
                _look_at(table, bag, models, rules, work, m, node, side, goal)


@inner
def _look_at(
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
    bounds, lane, n_columns = work.turned, side * LANES + m, work.turned.shape[1]
    bounds[lane, models.low[m] : models.high[m]] = -1
    k, at, chosen, best = _largest(bounds, lane), 0, n_columns, -1.0
    least = _least(work.scale[m, node], work.unseen[m, node], goal)
    if bounds[lane, k] < least:
        return
    while k < n_columns:
        gain = _exact(table, bag, rules, work, m, node, k)
        bounds[lane, k] = -1
        if gain > best or (gain == best and k < chosen):
            best, chosen = gain, k
            work.gain[m, node] = gain
            work.column[m, node] = k
            work.threshold[m, node] = work.terms[0]
            least = _least(work.scale[m, node], work.unseen[m, node], max(best, goal))
        while at < n_columns and bounds[lane, at] < least:
            at += 1
        k = at


@part
def _highest(values: Array, row: int, n: int) -> float:
    """Return the largest of the first values of a row."""
    most = values[row, 0]
    for i in range(1, n):
        most = max(most, values[row, i])
    return float(most)


@part
def _largest(values: Single, row: int) -> int:
    """Return where the largest value of a row is."""
    at = 0
    for k in range(1, values.shape[1]):
        if values[row, k] > values[row, at]:
            at = k
    return at


@part
def _least(scale: float, unseen: float, gain: float) -> np.float32:
    """Return the least bound of a column that may have this gain."""
    least = (np.sqrt(gain) * scale - unseen) / MARGIN
    return np.float32(max(0.0, least) * (1 - UNIT))


@inner
def _exact(table: Table, bag: Bag, rules: Rules, work: Work, m: int, node: int, k: int) -> float:
    """Return the gain of the best cut of a node at a column; `terms` gets the threshold."""
    place, n, factor = bag.order[k], bag.rows.size, bag.factor
    is_whole = work.n_rows[m, node] == n
    if not is_whole:
        place = work.place
        n = _placed(bag.order[k], work.node[m], node, place)
    last = n - rules.min_node
    if bag.weighted:
        factor = work.loads
        _add_weighted(
            work.z[m], bag.weights, place, work.centre[m, node], work.weight[m, node],
            rules.min_node, work.terms, factor, last,
        )  # fmt: skip
    else:
        _add(work.z[m], place, work.centre[m, node], work.terms, last)
        if not is_whole:
            factor = work.loads
            _factors(factor, n, rules.min_node)
    x = table.columns[k]
    if table.tied[k]:
        _leave_out_ties(x, bag.rows, place, factor, work.loads, last)
        factor = work.loads
    at = _best(work.terms, factor, last)
    if at < 0:
        return 0.0
    gain = work.terms[at] * work.terms[at] * factor[at]
    work.terms[0] = _midway(x[bag.rows[place[at]]], x[bag.rows[place[at + 1]]])
    return float(gain)


@part
def _add(z: Array, place: Index, centre: float, out: Array, last: int) -> None:
    """Write the sum of the centred z up to each place."""
    s = 0.0
    for c in range(last):
        s += z[place[c]] - centre
        out[c] = s


@part
def _add_weighted(
    z: Array,
    weights: Array,
    place: Index,
    centre: float,
    total: float,
    min_node: int,
    out: Array,
    factor: Array,
    last: int,
) -> None:
    """Write the sum of the centred, weighted z up to each place, and (L + R)/(LR) there."""
    s, left = 0.0, 0.0
    for c in range(last):
        own = weights[place[c]]
        s += (z[place[c]] - centre) * own
        left += own
        out[c] = s
        factor[c] = split_factor(left, total) if c + 1 >= min_node else 0.0


@part
def _factors(out: Array, n: int, min_node: int) -> None:
    """Write n/(L(n - L)) at each place of a node whose rows all weigh the same."""
    for c in range(n - min_node):
        left = c + 1.0
        out[c] = n / (left * (n - left))
    out[: min_node - 1] = 0.0


@part
def _leave_out_ties(
    x: Array, rows: Index, place: Index, factor: Array, out: Array, last: int
) -> None:
    """Write the factors once more, 0 where the next value is the same."""
    here = x[rows[place[0]]]
    for c in range(last):
        after = x[rows[place[c + 1]]]
        out[c] = factor[c] if after > here else 0.0
        here = after


@part
def _best(sums: Array, factor: Array, last: int) -> int:
    """Return the first place of the largest gain, -1 if there is none."""
    whole = last - last % DOUBLE_LANES
    tops = spread(0.0)
    for c in range(0, whole, DOUBLE_LANES):
        s = load_from(sums, c)
        tops = larger(s * s * load_from(factor, c), tops)
    most = 0.0
    for i in range(DOUBLE_LANES):
        most = max(most, lane(tops, i))
    for c in range(whole, last):
        most = max(most, sums[c] * sums[c] * factor[c])
    if not most > 0:
        return -1
    for c in range(last):
        if sums[c] * sums[c] * factor[c] == most:
            return c
    return -1


@part
def _placed(order: Index, node_of: Place, node: int, place: Index) -> int:
    """Return how many rows a node has, and write them in a column's order."""
    n = 0
    for q in range(node_of.size):
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
    trees.cuts[:] = 0
    _plant(bag, models, rules, work, trees.cuts.size)
    _bound_roots(bag, work)
    for cut in range(rules.splits):
        _turn(work.bounds, work.turned)
        _look(table, bag, models, rules, work, trees, cut)
        if (
            not cut_best(table.columns, bag, models, rules, work, trees, cut)
            or cut + 1 == rules.splits
        ):
            return
        _open_children(bag, rules, work, trees, cut)
        _bound_children(bag, table.tied, work)


@inner
def _plant(bag: Bag, models: Models, rules: Rules, work: Work, n_models: int) -> None:
    """Write the models' z among the rows of the bag, and once more rounded for the walk."""
    n = bag.rows.size
    # A sum that leaves a word at one end has no way left to leave it at the other and come back.
    narrow = 4.0 * LARGEST_WORD if bag.words.shape[0] > 0 else 0.0
    weight = pairwise_sum(bag.weights, n, bag.stack) if bag.weighted else float(n)
    for m in range(n_models):
        subtract(models.targets[models.source[m]], models.expected[m], bag.rows, work.z[m])
        work.node[m] = 0
        values = work.z[m]
        if bag.weighted:
            weigh(work.z[m], bag.weights, work.terms, n)
            values = work.terms
        centre = open_node(rules, work, m, 0, n, weight, pairwise_sum(values, n, bag.stack))
        scale = _scale(narrow, work.z[m], bag.weights, centre, n)
        lost, total = _round(work.z[m], bag.weights, centre, scale, 0.0, work.whole, n)
        _put_lane(work.whole, work.root, m)
        work.ends[0, m] = np.int16(np.int32(total))
        work.scale[m, 0] = scale
        work.unseen[m, 0] = _lost(lost, total) * bag.limits[0]
        if lost <= 0.5 * n:
            # Rows from either end up to a cut lose at most half a unit each.
            near = 0.5 * bag.limits[1] + (abs(total) + 0.1) * bag.limits[0]
            work.unseen[m, 0] = min(near, work.unseen[m, 0])


@part
def _put_lane(whole: Word, out: Word, m: int) -> None:
    for a in range(whole.size):
        out[a, m] = whole[a]


@inner
def _open_children(bag: Bag, rules: Rules, work: Work, trees: Trees, cut: int) -> None:
    """Write the z of all new nodes, rounded for the walk, and the limits of their gains."""
    # Lanes without children must be harmless to the walk.
    work.pair[:] = 0
    work.limits[:] = 0.0
    work.limits[2:4] = 1.0
    for m in range(trees.cuts.size):
        for side in range(2 if trees.cuts[m] == cut + 1 else 0):
            node = cut + 1 if side else trees.node[m, cut]
            _open_child(bag, rules, work, m, node, side)


@inner
def _open_child(bag: Bag, rules: Rules, work: Work, m: int, node: int, side: int) -> None:
    n = rows_of(work.node[m], node, work.place)
    z, loads, lightest = work.child, work.loads, 1.0
    take(work.z[m], work.place, z, n)
    take(bag.weights, work.place, loads, n)
    weight = float(n)
    if bag.weighted and n > 0:
        weight, lightest = pairwise_sum(loads, n, bag.stack), loads[:n].min()
    weigh(z, loads, work.terms, n)
    centre = open_node(rules, work, m, node, n, weight, pairwise_sum(work.terms, n, bag.stack))
    if work.n_rows[m, node] == 0:
        return
    # No sum of centred numbers exceeds half of what they add up to without their signs.
    narrow = 2.0 * LARGEST_WORD if bag.words.shape[0] > 0 else 0.0
    scale = _scale(narrow, z, loads, centre, n)
    lost, total = _round(z, loads, centre, scale, 1.0, work.whole, n)
    lane = side * LANES + m
    for c in range(n):
        work.pair[work.place[c], lane] = work.whole[c]
    work.scale[m, node] = scale
    work.unseen[m, node] = 0.0
    work.limits[6 + side, m] = _lost(lost, total)
    _limit(rules, work, m, node, side, lightest, bag.weighted)


@inner
def _limit(
    rules: Rules, work: Work, m: int, node: int, side: int, lightest: float, weighted: bool
) -> None:
    """Write the weight of a child, the least L·R of a cut, and how far a computed L·R is off."""
    n, weight = work.n_rows[m, node], work.weight[m, node]
    side_weight = max(FEATHER * weight, rules.min_node * lightest)
    work.limits[side, m] = weight
    work.limits[2 + side, m] = side_weight * (weight - side_weight) * (1 - 4 * UNIT)
    work.limits[4 + side, m] = 4 * UNIT * n * weight**2 if weighted else 0.0
