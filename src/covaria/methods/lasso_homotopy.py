"""The lasso's path of a Gram matrix, from bend to bend, as machine code.

Osborne, Presnell and Turlach, "A new approach to variable selection in least squares problems",
IMA Journal of Numerical Analysis 20 (2000). Between two bends coefficients b and slopes
c = pull − G b are straight lines in λ: with the signs s of the active columns A

    db/dλ = −G_AA⁻¹ s,    dc/dλ = G_·A G_AA⁻¹ s,    c_A = λ s.

The Gram matrix is kept swept on its active columns (Goodnight, "A tutorial on the SWEEP operator",
American Statistician 33, 1979): a column that comes or goes is a change of rank one. Changes
wait until there are enough of them for one product of matrices, and only the one row that a bend
needs is brought up to date. Then directions and coefficients are computed anew as well, so that
rounding does not pile up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from covaria.execution.compiling import compiled

Array = NDArray[np.float64]

# How many changes wait for each other.
WAITING = 96
# A column of which the active ones leave less than this repeats them: another way is taken.
LEAST_PIVOT = 1e-8
PARALLEL = 1e-12
# How far the direction may be off before the swept matrix is given up.
MOST_OFF = 1e-8
MOST_BENDS = 20
NONE = -1


@compiled
def follow(gram: Array, pull: Array, lambdas: Array, rule: Array) -> tuple[Any, Any]:
    """Return coefficients for decreasing lambdas, a row each, and how many rows are good.

    `rule` ends the path early: the least share that another lambda must add to what is explained,
    the share that is enough, and the fewest lambdas; it is looked at one lambda late.
    """
    p = len(pull)
    found = np.zeros((len(lambdas), p))
    swept, waiting, pivots = gram.copy(), np.empty((WAITING, p)), np.empty(WAITING)
    sign, coef, slope, way = np.zeros(p), np.zeros(p), pull.copy(), np.zeros(p)
    at, lam, n_waiting, before, is_over = 0, np.abs(pull).max(), 0, 0.0, False
    while at < len(lambdas) and lambdas[at] >= lam:
        at += 1
    bend = int(np.argmax(np.abs(pull)))
    for _ in range(MOST_BENDS * p):
        row = swept[bend].copy()
        if n_waiting:
            share = waiting[:n_waiting, bend] / pivots[:n_waiting]
            row -= np.dot(share, waiting[:n_waiting])
        if not turned(row, bend, sign, slope, coef, way):
            return found, at
        swept[bend, bend] += 2.0 if sign[bend] == 0.0 else -2.0
        pivots[n_waiting] = row[bend]
        row[bend] += 1.0 if sign[bend] == 0.0 else -1.0
        waiting[n_waiting] = row
        n_waiting += 1
        if n_waiting == WAITING:
            scaled = waiting / pivots.reshape(-1, 1)
            swept -= np.dot(scaled.T, waiting)
            n_waiting = 0
            if not renewed(gram, pull, swept, lam, sign, coef, slope, way):
                return found, at
        step, bend = next_bend(lam, sign, coef, slope, way)
        while at < len(lambdas) and lambdas[at] >= lam - step:
            found[at] = coef + np.where(sign != 0.0, (lam - lambdas[at]) * way, 0.0)
            explained = (found[at] * (pull + lambdas[at] * sign)).sum()
            at += 1
            if is_over:
                return found, at
            gain = explained - before
            is_over = at >= rule[2] and (gain < rule[0] * explained or explained > rule[1])
            before = explained
        if at == len(lambdas) or bend == NONE:
            return found, at
        lam -= step
        moved(step, lam, sign, coef, slope, way)
    return found, at


@compiled
def turned(row: Array, bend: int, sign: Array, slope: Array, coef: Array, way: Array) -> bool:
    """Let a column in, or out if it is in; return whether that could be done."""
    pivot = row[bend]
    comes = sign[bend] == 0.0
    if comes:
        new = np.sign(slope[bend])
        change = (new - way[bend]) / pivot
        if pivot < LEAST_PIVOT or change * new <= 0.0:
            return False
        after = change
    else:
        new = 0.0
        change = way[bend] / pivot
        after = sign[bend] + change
        coef[bend] = 0.0
    way += np.where(sign != 0.0, -change, change) * row
    way[bend], sign[bend] = after, new
    return True


@compiled
def renewed(
    gram: Array, pull: Array, swept: Array, lam: float, sign: Array, coef: Array, slope: Array,
    way: Array,
) -> bool:  # fmt: skip
    """Compute coefficients and directions anew; return whether the swept matrix is still good."""
    active = np.flatnonzero(sign)
    inverse = np.empty((len(active), len(active)))
    rows = np.empty((len(active), len(pull)))
    for i in range(len(active)):
        rows[i] = gram[active[i]]
        inverse[i] = -swept[active[i]][active]
    signs = sign[active]
    here = coef[active]
    here += np.dot(inverse, (pull - np.dot(here, rows))[active] - lam * signs)
    slope[:] = pull - np.dot(here, rows)
    slope[active] = lam * signs
    coef[active] = here
    ahead = np.dot(inverse, signs)
    ahead += np.dot(inverse, signs - np.dot(ahead, rows)[active])
    way[:] = np.dot(ahead, rows)
    off = np.abs(way[active] - signs).max()
    way[active] = ahead
    return bool(off < MOST_OFF)


@compiled
def next_bend(lam: float, sign: Array, coef: Array, slope: Array, way: Array) -> tuple[float, int]:
    """Return how far lambda may fall before a column comes or goes, and which one."""
    step, bend = lam, NONE
    for i in range(len(sign)):
        reach = step
        if sign[i] != 0.0:
            if coef[i] * way[i] < 0.0:
                reach = -coef[i] / way[i]
        else:
            if 1.0 - way[i] > PARALLEL:
                reach = min(reach, (lam - slope[i]) / (1.0 - way[i]))
            if 1.0 + way[i] > PARALLEL:
                reach = min(reach, (lam + slope[i]) / (1.0 + way[i]))
        if reach < step:
            step, bend = max(reach, 0.0), i
    return step, bend


@compiled
def moved(step: float, lam: float, sign: Array, coef: Array, slope: Array, way: Array) -> None:
    """Go to the next bend."""
    for i in range(len(sign)):
        if sign[i] != 0.0:
            coef[i] += step * way[i]
            slope[i] = lam * sign[i]
        else:
            slope[i] -= step * way[i]
