"""Relative variability and efficiency, from the scores and residuals a Result holds; no refit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.efficiencies.policy import POLICY
from covaria.errors import InputError
from covaria.inference.tests import quantile
from covaria.options.checks import shown

Array = NDArray[np.float64]

BOOTSTRAP_CHUNK = 2_000_000
# On the scale of a logarithm; wider would overflow and say no more.
WIDEST = 300.0


def relative_variability(scores: Array) -> Array:
    """Return sd over |mean| of each feature's scores; infinite where the mean is zero.

    >>> relative_variability(np.array([[1.0, 0.0], [3.0, 0.0]])).tolist()
    [0.5, inf]
    """
    scores = _numbers(scores)
    sd, mean = scores.std(axis=0), np.abs(scores.mean(axis=0))
    ratio = np.full(mean.shape, np.inf)
    np.divide(sd, mean, out=ratio, where=mean > 0)
    return ratio


def relative_efficiency(scores: Array, rival: Array) -> Array:
    """Return how many rows the rival needs for each row of ours."""
    if _numbers(scores).shape[1:] != _numbers(rival).shape[1:]:
        raise InputError("scores and rival must have the same features, a column for each.")
    ours, theirs = relative_variability(scores), relative_variability(rival)
    ratio = np.full(ours.shape, np.nan)
    np.divide(theirs, ours, out=ratio, where=np.isfinite(ours) | np.isfinite(theirs))
    return np.asarray(ratio**2)


def _numbers(scores: object) -> Array:
    """Return scores as an array, or raise where they are none."""
    try:
        array = np.asarray(scores, dtype=float)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.ndim == 0 or not array.shape[0] or not np.isfinite(array).all():
        raise InputError(
            f"scores={shown(scores)} must be an array of numbers, a row for each row of the table."
        )
    return array


@dataclass(frozen=True)
class Estimate:
    """A number with its interval; NaN where it is not defined."""

    value: float
    low: float
    high: float


UNDEFINED = Estimate(np.nan, np.nan, np.nan)


def signal(scores: Array, *, two_sided: bool) -> float:
    """Return the squared z-score of one feature less what chance alone gives it, at least 0.

    A gain below zero is no signal: only GCM has a sign.
    """
    sd, mean = scores.std(), scores.mean()
    if sd == 0 or (mean < 0 and not two_sided):
        return 0.0
    return float(max(len(scores) * (mean / sd) ** 2 - 1, 0.0))


def debiased_efficiency(ours: float, rival: float) -> float:
    """Return the ratio of two signals: how many rows the rival needs for one of ours."""
    if ours == rival == 0:
        return np.nan
    return np.inf if rival == 0 else ours / rival


def log_variability_influence(scores: Array) -> Array:
    """Return what each row adds to the estimate of log(variance / mean²)."""
    mean, variance = scores.mean(), scores.var()
    centred = scores - mean
    return np.asarray((centred**2 - variance) / variance - 2 * centred / mean)


def interval(
    value: float,
    influence: Array,
    *,
    confidence: float,
    draws: int = 0,
    rng: Generator | None = None,
) -> tuple[float, float]:
    """Return the interval of a ratio from what each row adds to its logarithm.

    Without draws by the delta method; with them by resampled rows, which may lean to one side.
    """
    if rng is None:
        spread = influence.std() / np.sqrt(len(influence))
        reach = min(quantile(0.5 + confidence / 2) * spread, WIDEST)
        return float(value * np.exp(-reach)), float(value * np.exp(reach))
    tail = (1 - confidence) / 2
    moved = _resampled_means(influence, draws, rng)
    low, high = np.clip(np.quantile(moved, [tail, 1 - tail]), -WIDEST, WIDEST)
    return float(value * np.exp(-high)), float(value * np.exp(-low))


def _resampled_means(influence: Array, draws: int, rng: Generator) -> Array:
    """Return the means of resampled rows less the mean of all."""
    n_rows = len(influence)
    each = max(1, BOOTSTRAP_CHUNK // n_rows)
    centred = (influence - influence.mean()) / n_rows
    even = np.full(n_rows, 1 / n_rows)
    moved = [
        rng.multinomial(n_rows, even, size=min(each, draws - start)) @ centred
        for start in range(0, draws, each)
    ]
    return np.concatenate(moved)


@dataclass(frozen=True)
class FeatureResiduals:
    """What one feature's models left: of x_j, of y without it, and of y with all features.

    The means of GCM's and LOCO's scores do not feel small errors of the fitted regressions, but
    their variances and the moments in Assumption (A) do. The influence of each row therefore has
    a part for the regressions that it helped to fit; conditional moments in it are taken as
    constant.
    """

    x: Array
    rest: Array
    noise: Array

    @property
    def effect(self) -> Array:
        """Return what x_j adds to the prediction: f − E[f given the other features]."""
        return np.asarray(self.rest - self.noise)

    def log_efficiency_influence(self) -> Array:
        """Return what each row adds to the estimate of log e(GCM, LOCO)."""
        x, rest, noise, effect = self.x, self.rest, self.noise, self.effect
        products, gains = x * rest, rest**2 - noise**2
        by_gains = 8 * np.mean(noise**2) * effect * noise - 4 * np.mean(effect**3) * rest
        by_products = -2 * np.mean(x * rest**2) * x - 2 * np.mean(x**2 * rest) * rest
        loco = log_variability_influence(gains) + by_gains / gains.var()
        gcm = log_variability_influence(products) + by_products / products.var()
        return np.asarray(loco - gcm)


def is_heavy(scores: Array, share: float = POLICY.heavy) -> bool:
    """Return whether a hundredth of the rows makes more than a share of the scores' squares."""
    squares = np.sort(scores**2)[::-1]
    total = squares.sum()
    top = squares[: max(1, int(POLICY.top_rows * len(squares)))].sum()
    return bool(total > 0 and top > share * total)


@dataclass(frozen=True)
class Assumption:
    """Assumption (A) of one feature: its ratio r, above 1 just where GCM beats LOCO.

    `correlation` is the squared correlation of what is left of x_j and its effect; `quiet` and
    `noisy` are the limits of the relative efficiency as the noise vanishes and as it grows.
    """

    ratio: Estimate
    correlation: float
    quiet: float
    noisy: float


def assumption_a(left: FeatureResiduals, *, confidence: float = 0.95) -> Assumption:
    """Return Assumption (A) of a feature, with the noise that the learner leaves out of fold."""
    x, noise, effect = left.x, left.noise, left.effect
    parts = np.array([x * effect, x**2, effect**2, effect**4, (x * effect) ** 2, noise**2])
    xf, xx, ff, f4, xxff, ss = parts.mean(axis=1)
    if not (xx > 0 and ff > 0 and xf != 0):
        return Assumption(UNDEFINED, np.nan, np.nan, np.nan)
    above, below = f4 + 4 * ss * ff, xxff * ff / xx + ss * ff
    squared = xf**2 / (xx * ff)
    ratio = squared * above / below
    slope = np.array(
        [
            2 / xf,
            -1 / xx + xxff * ff / xx**2 / below,
            -1 / ff + 4 * ss / above - (xxff / xx + ss) / below,
            1 / above,
            -ff / xx / below,
            4 * ff / above - ff / below,
        ]
    )
    by_fits = np.array(
        [
            x * noise,
            np.zeros_like(x),
            2 * effect * noise,
            4 * effect**3 * noise - 4 * np.mean(effect**3) * left.rest,
            2 * x**2 * effect * noise
            - 2 * np.mean(x**2 * effect) * left.rest
            - 2 * np.mean(x * effect**2) * x,
            np.zeros_like(x),
        ]
    )
    low, high = interval(float(ratio), slope @ (parts + by_fits), confidence=confidence)
    estimate = Estimate(float(ratio), low, high)
    spread = xxff * ff / xx - squared * ff**2  # none for a balanced flag
    quiet = squared * (f4 - ff**2) / spread if spread else np.nan
    return Assumption(estimate, float(squared), float(quiet), float(4 * squared))
