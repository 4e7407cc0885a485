"""Does a learner predict means? Then its residuals average 0, out of fold.

A quantile, an absolute error or class weights aim at something else. In the regression of y alone
that is harmless to GCM: with c the mean of the residuals of y, its product averages c E[ξ] = 0 as
long as the residuals ξ of x_j average 0. Where both are off, by c and d standard deviations, the
statistic is shifted by c d √n: that both are off by chance is as unlikely as the product of two
p-values, so that pairs are seen before either is sure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from covaria.inference.tests import normal_p, standard_error
from covaria.nuisance.residuals import Residuals
from covaria.options.policy import Policy, threshold

Array = NDArray[np.float64]
# Residuals that vary by less than this share of their target vary by rounding alone.
ROUNDING = 1e-8
MEASURED = (
    "docs/auto.md: of 20,000 means of ordinary learners none was both this far off and sure, and "
    "quantiles .25 and .75 are off by .5 to .7"
)


@dataclass(frozen=True)
class CentringPolicy(Policy):
    """When a mean of residuals is called off.

    level     the chance of one false warning among all regressions of a run
    far       in standard deviations of the residuals
    shift     or less, where two regressions as far off would shift GCM by this many standard errors
    together  the shift from which on two means count that are unlikely as a pair
    """

    level: float = threshold(0.001, "convention: one run of a thousand")
    far: float = threshold(0.1, MEASURED)
    shift: float = threshold(0.5, MEASURED)
    together: float = threshold(0.3, "formula: a normal test of 5% shifted by as much rejects 6%")


POLICY = CentringPolicy()


@dataclass(frozen=True)
class Centring:
    """The mean of what a regression leaves over, in its standard deviations; is it off?

    `chance` is how likely a learner of means is as far off.
    """

    off: float = np.nan
    is_off: bool = False
    chance: float = 1.0


def centring(residuals: Residuals) -> dict[tuple[str, int], Centring]:
    """Return for each regression, by need and feature, whether its residuals average 0.

    In sample they do whatever the learner aims at, so nothing is returned there.
    """
    if not residuals.n_train:
        return {}
    found = dict(_means(residuals))
    count = sum(len(off) for off, _ in found.values())
    judged = {key: _judged(off, ratio, count) for key, (off, ratio) in found.items()}
    return _with_pairs(judged, len(residuals.rows), residuals.n_folds)


def _with_pairs(
    judged: dict[tuple[str, int], Centring], n_rows: int, n_folds: int
) -> dict[tuple[str, int], Centring]:
    """Return the verdicts, with pairs for x_j and y that are off together.

    Of rows held out once both means err alike where x_j matters; in a cross-fit they hardly err.
    """
    features = [j for need, j in judged if need == "x_given_rest" and n_folds > 1]
    found = dict(judged)
    for j in features:
        keys = ("x_given_rest", j), ("y_given_rest", j)
        pair = [judged.get(key, Centring()) for key in keys]
        shift = abs(pair[0].off * pair[1].off) * np.sqrt(n_rows)
        is_unlikely = max(one.chance for one in pair) < np.sqrt(POLICY.level / len(features))
        if shift > POLICY.together and is_unlikely:
            found |= {key: replace(one, is_off=True) for key, one in zip(keys, pair, strict=True)}
    return found


def _judged(off: Array, ratio: Array, count: int) -> Centring:
    """Return the verdict on a regression by the column that is off most surely."""
    if not len(off):
        return Centring()
    at = int(np.argmax(np.abs(ratio)))
    size, chance = abs(off[at]), float(normal_p(ratio[[at]], "two-sided")[0])
    is_far = size > POLICY.far or size * abs(ratio[at]) > POLICY.shift
    is_off = bool(count * chance < POLICY.level and is_far)
    return Centring(float(off[at]), is_off, min(1.0, len(off) * chance))


def _means(residuals: Residuals) -> Iterator[tuple[tuple[str, int], tuple[Array, Array]]]:
    """Yield each regression's mean residuals, over their sd and over their standard errors."""
    data, drift, y = residuals.data, _drift(residuals), residuals.data.columns_of_y
    of_y = drift @ y, y.std(axis=0)
    for need, j, left in _left(residuals):
        own = of_y
        if need == "x_given_rest":
            x = data.X[:, list(data.features[j].columns)]
            own = drift @ x, x.std(axis=0)
        yield (need, j), _centred(residuals, left, *own)


def _left(residuals: Residuals) -> Iterator[tuple[str, int, Array]]:
    """Yield what is left of each regression that could be fitted, (rows, columns)."""
    data, arrays, n_rows = residuals.data, residuals.arrays, len(residuals.rows)
    if "y_given_all" in arrays and ("y_given_all", -1) not in residuals.failures:
        yield "y_given_all", -1, arrays["y_given_all"].reshape(n_rows, -1)
    for need in ("y_given_rest", "x_given_rest"):
        for j, feature in enumerate(data.features if need in arrays else ()):
            if feature.columns and (need, j) not in residuals.failures:
                at = list(feature.columns) if need == "x_given_rest" else j
                yield need, j, arrays[need][:, at].reshape(n_rows, -1)


def _centred(residuals: Residuals, left: Array, drift: Array, scale: Array) -> tuple[Array, Array]:
    """Return the means of residuals that no drift explains, over their sd and standard errors."""
    scores = residuals.weighted(left)
    mean = _lesser(scores.mean(axis=0), drift)
    spread, error = scores.std(axis=0), standard_error(scores, residuals.clusters)
    # The mean of the training rows errs too.
    error = error * np.sqrt(1 + len(left) / residuals.n_folds / residuals.n_train)
    alive = spread > ROUNDING * scale
    off, ratio = (
        np.divide(mean, size, out=np.zeros_like(mean), where=alive) for size in (spread, error)
    )
    return off, ratio


def _lesser(mean: Array, drift: Array) -> Array:
    """Return the mean, or what is left of it if the learner missed all the drift of the target.

    Where tested rows differ from those learned from, as later ones do from earlier ones, a learner
    of means may follow all of the drift, or none. What lies between the two is no fault of its.
    """
    other = mean - drift
    smaller = np.where(np.abs(mean) < np.abs(other), mean, other)
    return np.asarray(np.where(mean * other > 0, smaller, 0.0))


def _drift(residuals: Residuals) -> Array:
    """Return weights of rows: the mean of the tested less that of the rows learned from."""
    data, drift = residuals.data, np.zeros(residuals.data.n_rows)
    weights = np.ones(data.n_rows) if data.weights is None else data.weights
    tested = sum(weights[test].sum() for _, test in residuals.folds)
    for train, test in residuals.folds:
        share = weights[test].sum() / tested
        drift[test] += weights[test] / tested
        drift[train] -= share * weights[train] / weights[train].sum()
    return drift
