"""Compiled parts of the kernel engine: distances without a feature, and support vectors.

Fan, Chen & Lin (2005), *Working set selection using second order information*: the rule of
libsvm, on β = α − α* (n variables in place of 2n). From β = 0 it takes libsvm's own steps.
Nothing here is compiled with relaxed arithmetic, so the same rows give the same bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from covaria.execution.compiling import compiled

Array = NDArray[np.float64]
Floats = NDArray[Any]  # float32, or float64 where it must be precise
Rows = NDArray[np.intp]

# Where a feature makes up all but this share of a distance, little is left but rounding.
CANCELLED = 1e-6
# The cost of moving a row that is at its bound.
BARRED = 1e18
# libsvm's curvature of two equal rows, halved as all curvatures here.
FLATTEST = 5e-13
MOST_STEPS_PER_ROW = 1000
# About as many values tell where a quantile of all of them lies.
SAMPLE = 8192


class Columns(NamedTuple):
    """The columns that are taken away and those that stay."""

    gone: Rows
    kept: Rows


@compiled
def pairs_without(pairs: Array, rows: Array, columns: Columns, rest: Floats) -> int:
    """Set `rest` to the squared distances of pairs without some columns; return how many are 0.

    A column lies in a row of `rows`, and pairs are in the order of scipy's pdist.
    """
    n_rows, at, n_zero = rows.shape[1], 0, 0
    gaps = np.empty(n_rows)
    for i in range(n_rows - 1):
        end = at + n_rows - 1 - i
        part = rest[at:end]
        n_zero += _take_away(pairs[at:end], rows, i, rows, i + 1, columns, gaps[: end - at], part)
        at = end
    return n_zero


@compiled
def across_without(
    across: Array, here: Array, there: Array, columns: Columns, rest: Floats
) -> None:
    """Set `rest` to the squared distances from rows here to rows there without some columns."""
    gaps = np.empty(across.shape[1])
    for i in range(len(across)):
        _take_away(across[i], here, i, there, 0, columns, gaps, rest[i])


@compiled
def across_only(here: Array, there: Array, columns: Rows, distances: Floats) -> None:
    """Set the squared distances from rows here to rows there in some columns."""
    gaps = np.empty(there.shape[1])
    for i in range(here.shape[1]):
        _set_gaps(here, i, there, 0, columns, gaps)
        distances[i] = gaps


@compiled
def _set_gaps(here: Array, row: int, there: Array, start: int, columns: Rows, gaps: Array) -> None:
    """Set the squared distances of one row from those after `start` in some columns."""
    gaps[:] = 0.0
    for c in columns:
        value, others = here[c, row], there[c][start:]
        for k in range(len(gaps)):
            gap = value - others[k]
            gaps[k] += gap * gap


@compiled
def _take_away(
    whole: Array,
    here: Array,
    row: int,
    there: Array,
    start: int,
    columns: Columns,
    gaps: Array,
    rest: Floats,
) -> int:
    """Set what is left of one row's distances, and return how many are 0."""
    _set_gaps(here, row, there, start, columns.gone, gaps)
    n_cancelled = 0
    for k in range(len(whole)):
        left = whole[k] - gaps[k]
        rest[k] = left
        n_cancelled += left <= CANCELLED * whole[k]
    if n_cancelled == 0:
        return 0
    n_zero = 0
    for k in range(len(whole)):
        if whole[k] - gaps[k] <= CANCELLED * whole[k]:
            exact = _distance(here, row, there, start + k, columns.kept)
            rest[k] = exact
            n_zero += exact == 0
    return n_zero


@compiled
def _distance(here: Array, row: int, there: Array, other: int, columns: Rows) -> float:
    distance = 0.0
    for c in columns:
        gap = here[c, row] - there[c, other]
        distance += gap * gap
    return distance


@compiled
def fill_square(pairs: Floats, square: Floats) -> None:
    """Set a symmetric matrix with ones on its diagonal from its pairs, tile by tile."""
    n, tile = len(square), 32
    for top in range(0, n, tile):
        rows = min(top + tile, n)
        for i in range(top, rows):
            at = i * n - i * (i + 1) // 2
            square[i, i] = 1.0
            square[i, i + 1 :] = pairs[at : at + n - 1 - i]
        for left in range(top, n, tile):
            for k in range(left, min(left + tile, n)):
                for i in range(top, min(rows, k)):
                    square[k, i] = square[i, k]


# --- quantiles ----------------------------------------------------------------------------------


def positive_quantiles(values: Floats, n_zero: int, shares: tuple[float, ...]) -> list[float]:
    """Return numpy's quantiles of the values above 0, which are all but `n_zero`.

    A sample brackets each; one pass counts what is below and gathers what is between.
    """
    sample = np.sort(values[:: max(1, len(values) // SAMPLE)])
    return [_interpolated(values, sample, n_zero, share) for share in shares]


def _interpolated(values: Floats, sample: Floats, n_zero: int, share: float) -> float:
    place = share * (len(values) - n_zero - 1)
    rank = n_zero + int(place)
    below, run = _bracketed(values, sample, rank)
    low, high = float(run[rank - below]), float(run[min(rank - below + 1, len(run) - 1)])
    return low + (place - int(place)) * (high - low)


def _bracketed(values: Floats, sample: Floats, rank: int) -> tuple[int, Floats]:
    """Return a sorted run of values around a rank, and how many lie below it."""
    if len(sample) == len(values):
        return 0, sample
    share = rank / len(values)
    # Five standard errors: values are sorted in vain about once in a million.
    margin = 5 * np.sqrt(share * (1 - share) * len(sample)) + 1
    low, high = (int(share * len(sample) + side * margin) for side in (-1, 1))
    if low >= 0 and high < len(sample):
        run = np.empty(len(values) // 8 + 1, values.dtype)
        below, length = _gather(values, sample[low], sample[high], run)
        if 0 <= rank - below < length - 1:
            return below, np.sort(run[:length])
    return 0, np.sort(values)


@compiled
def _gather(values: Floats, low: float, high: float, run: Floats) -> tuple[int, int]:
    """Return how many values lie below and how many between, which go to `run`; −1 if too many."""
    below, length = 0, 0
    for value in values:
        run[length] = value
        below += value < low
        length += (value >= low) & (value <= high)
        if length == len(run):
            return below, -1
    return below, length


# --- support vectors ----------------------------------------------------------------------------


class Support(NamedTuple):
    """A support vector regression: its dual variables, its offset and its answers in sample."""

    beta: Array
    offset: float
    fitted: Array


def support_vectors(
    kernel: Floats,
    target: Array,
    bounds: Array,
    *,
    epsilon: float,
    tol: float,
    precise: bool = False,
) -> Support | None:
    """Return the ε-insensitive regression with |β| ≤ bounds; None where it did not converge.

    `precise` keeps the gradient in float64, else it is float32 as the kernel is.
    """
    kind: Any = np.float64 if precise else np.float32
    beta, slope = np.zeros(len(target)), (-np.ascontiguousarray(target)).astype(kind)
    wide = min(epsilon, float(np.finfo(kind).max))  # no residual is as large
    limits = kind(wide), kind(tol), MOST_STEPS_PER_ROW * len(target)
    rise, fall, converged = _descend(kernel, bounds, *limits, beta, slope)
    if not converged:
        return None
    free = (beta != 0) & (np.abs(beta) < bounds)
    middle = (rise - fall) / 2
    offset = float(np.mean(-slope[free] - epsilon * np.sign(beta[free])) if free.any() else middle)
    return Support(beta, offset, slope + target + offset)


@compiled
def _descend(
    kernel: Floats,
    bounds: Array,
    epsilon: float,
    tol: float,
    most_steps: int,
    beta: Array,
    slope: Floats,
) -> tuple[float, float, bool]:
    """Move β and its slope Kβ − y to the optimum; return the best rise, the best fall, success."""
    n = len(beta)
    # What it costs to raise and to lower the β of a row, and what is won.
    up, down = np.empty_like(slope), np.empty_like(slope)
    rises, falls, gains = np.empty_like(slope), np.empty_like(slope), np.empty_like(slope)
    lanes = np.empty((n + 7) // 8, slope.dtype)
    few = np.empty((len(lanes) + 7) // 8, slope.dtype)
    for k in range(n):
        _set_costs(k, beta, bounds, epsilon, up, down)
    _step(slope, kernel[0], kernel[0], slope.dtype.type(0), up, down, rises, falls)
    fall = _largest(falls, lanes, few)
    rise = _largest(rises, lanes, few)
    for _ in range(most_steps):
        if rise + fall < tol:
            return rise, fall, True
        i = _where(rises, lanes, rise)
        _set_gains(falls, kernel[i], rise, gains)
        j = _where(gains, lanes, _largest(gains, lanes, few))
        curvature = max(1.0 - kernel[i, j], FLATTEST)
        move = _moved(i, j, (rise + falls[j]) / (2.0 * curvature), beta, bounds)
        _set_costs(i, beta, bounds, epsilon, up, down)
        _set_costs(j, beta, bounds, epsilon, up, down)
        _step(slope, kernel[i], kernel[j], slope.dtype.type(move), up, down, rises, falls)
        fall = _largest(falls, lanes, few)
        rise = _largest(rises, lanes, few)
    return rise, fall, False


@compiled
def _set_costs(
    k: int, beta: Array, bounds: Array, epsilon: float, up: Floats, down: Floats
) -> None:
    """Set what the tube charges for moving one β: ε away from 0, −ε towards it."""
    up[k] = BARRED if beta[k] >= bounds[k] else epsilon if beta[k] >= 0 else -epsilon
    down[k] = BARRED if beta[k] <= -bounds[k] else epsilon if beta[k] <= 0 else -epsilon


@compiled
def _step(
    slope: Floats,
    raised: Floats,
    lowered: Floats,
    move: float,
    up: Floats,
    down: Floats,
    rises: Floats,
    falls: Floats,
) -> None:
    """Update the slope for one β raised and one lowered, and what each row would win next."""
    for k in range(len(slope)):
        now = slope[k] + move * (raised[k] - lowered[k])
        slope[k] = now
        rises[k] = -now - up[k]
        falls[k] = now - down[k]


@compiled
def _set_gains(falls: Floats, row: Floats, rise: float, gains: Floats) -> None:
    """Set how far the objective falls when a given β is raised and each other one lowered."""
    zero, one, flattest = gains.dtype.type(0), gains.dtype.type(1), gains.dtype.type(FLATTEST)
    for k in range(len(gains)):
        win = max(rise + falls[k], zero)
        gains[k] = win * win / max(one - row[k], flattest)


@compiled
def _moved(i: int, j: int, wanted: float, beta: Array, bounds: Array) -> Any:
    """Raise β_i and lower β_j as far as wanted, to 0 or to a bound; return how far."""
    end_i = bounds[i] if beta[i] >= 0 else 0.0
    end_j = -bounds[j] if beta[j] <= 0 else 0.0
    move = min(wanted, end_i - beta[i], beta[j] - end_j)
    # Landing on the end itself, not a rounding away, is what lets the search stop.
    new_i = end_i if move == end_i - beta[i] else beta[i] + move
    new_j = end_j if move == beta[j] - end_j else beta[j] - move
    beta[i], beta[j] = new_i, new_j
    return move


@compiled
def _largest(values: Floats, lanes: Floats, few: Floats) -> Any:
    """Return the largest value; `lanes` keeps the largest of every eighth.

    Compilers turn this into SIMD, which they do not for a plain maximum: three times as fast.
    """
    _fold(values, lanes)
    _fold(lanes, few)
    largest = few[0]
    for k in range(1, len(few)):
        largest = max(largest, few[k])
    return largest


@compiled
def _fold(values: Floats, lanes: Floats) -> None:
    """Lay eight parts of the values over each other and keep the largest; parts may overlap."""
    q = len(lanes)
    last = len(values) - q
    a, b, c = values[:q], values[min(q, last) :], values[min(2 * q, last) :]
    d, e, f = values[min(3 * q, last) :], values[min(4 * q, last) :], values[min(5 * q, last) :]
    g, h = values[min(6 * q, last) :], values[last:]
    for k in range(q):
        left = max(max(a[k], b[k]), max(c[k], d[k]))
        right = max(max(e[k], f[k]), max(g[k], h[k]))
        lanes[k] = max(left, right)


@compiled
def _where(values: Floats, lanes: Floats, largest: float) -> int:
    """Return a place of the largest value, found by its lane."""
    lane, last = 0, len(values) - len(lanes)
    while lanes[lane] != largest:
        lane += 1
    start = 0
    while values[min(start, last) + lane] != largest:
        start += len(lanes)
    return min(start, last) + lane
