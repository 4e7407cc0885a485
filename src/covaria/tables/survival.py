"""Times until an event, some of them censored, as weighted numbers that any learner can predict.

Of a row with time T and event Δ (1, or 0 where it was censored at T) let E = Λ₀(T) be the hazard it
has lived through, from a baseline hazard Λ₀ that all rows share. The target is Δ/E with weight E.
Its weighted regression on columns Z is r(Z) = E[Δ | Z] / E[E | Z], the hazard ratio; what that
leaves, times the weight, is the martingale residual Δ − E r(Z) (Barlow and Prentice 1988; Therneau,
Grambsch and Fleming 1990). The feature's regression has the same weights.

Where censoring does not depend on x_j given the others, residuals have mean 0 given (x_j, others)
without an effect, whatever Λ₀ is. Where it does, they have under proportional hazards, for the true
Λ₀; with E[E (x_j − m(Z)) | Z] = 0 for the weighted regression m of x_j, errors in r and in m count
by their product alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError, plural
from covaria.tables.arrays import Index
from covaria.tables.losses import LEAST_MEAN, Array, Loss

# Fewer events than this cannot be cross-fitted.
LEAST_EVENTS = 10


@dataclass(frozen=True, eq=False)
class PartialLikelihood(Loss):
    """Cox's partial likelihood of hazard ratios, in each row the part that this row has.

    With Λ the baseline hazard that the ratios r of the rows at risk imply (Breslow), and S their
    sum at time T, a row's part is r Λ(T) − Δ − Δ log(r/S): their mean is the negative log partial
    likelihood over n, and each is 0 or more. It is over E, as the rows have weight E.
    """

    name: ClassVar[str] = "partial likelihood"
    label: ClassVar[str] = "partial likelihood"
    weighs_y: ClassVar[bool] = True
    time: Array
    event: Array
    own_weights: Array | None
    exposure: Array

    @classmethod
    def of_times(cls, time: Array, event: Array, weights: Array | None) -> PartialLikelihood:
        """Return the loss with the hazard that all rows share (Nelson and Aalen)."""
        exposure = cumulative_hazard(time, event, np.ones(len(time)), weights)[0]
        return cls(time, event, weights, exposure)

    def at_rows(self, what: str, rows: Index) -> PartialLikelihood:
        """Return the loss of some rows, or raise where they have too few events."""
        time, event = checked_times(what, self.time[rows], self.event[rows])
        weights = None if self.own_weights is None else self.own_weights[rows]
        return PartialLikelihood.of_times(time, event, weights)

    def given(self, ratios: Array) -> PartialLikelihood:
        """Return the loss with the baseline hazard that goes with these hazard ratios (Breslow)."""
        ratios = np.maximum(ratios, LEAST_MEAN)
        found = cumulative_hazard(self.time, self.event, ratios, self.own_weights)[0]
        return replace(self, exposure=found)

    @property
    def target(self) -> Array:
        """Return what is predicted, Δ/E."""
        lived = self.exposure > 0
        return np.divide(self.event, self.exposure, out=np.zeros_like(self.event), where=lived)

    @property
    def weights(self) -> Array:
        """Return the weight of each row, of mean one."""
        found = self.exposure if self.own_weights is None else self.exposure * self.own_weights
        return np.asarray(found / found.mean())

    def of_rows(self, y: Array, prediction: Array, rows: Index) -> Array:
        """Return the losses of rows, which are at risk among themselves."""
        time, event, exposure = (part[rows] for part in (self.time, self.event, self.exposure))
        own = np.ones(len(time)) if self.own_weights is None else self.own_weights[rows]
        ratios = np.maximum(prediction, LEAST_MEAN)
        hazard, at_risk = cumulative_hazard(time, event, ratios, own)
        share = np.where(event > 0, own * ratios / at_risk, 1.0)
        found = np.maximum(0.0, ratios * hazard - event - event * np.log(share))
        return np.divide(found, exposure, out=np.zeros_like(found), where=exposure > 0)


def cumulative_hazard(
    time: Array, event: Array, ratios: Array, weights: Array | None
) -> tuple[Array, Array]:
    """Return the baseline hazard up to each row's time, and the sum of ratios then at risk.

    Rows whose time is the same are at risk together (Breslow 1974).
    """
    w = np.ones(len(time)) if weights is None else weights
    distinct, at = np.unique(time, return_inverse=True)
    leaving = np.bincount(at, w * ratios, len(distinct))
    at_risk = np.cumsum(leaving[::-1])[::-1]
    events = np.bincount(at, w * event, len(distinct))
    steps = np.divide(events, at_risk, out=np.zeros_like(events), where=at_risk > 0)
    return np.asarray(np.cumsum(steps)[at], dtype=float), np.asarray(at_risk[at], dtype=float)


def checked_times(what: str, time: Array, event: NDArray[np.generic]) -> tuple[Array, Array]:
    """Return times and events as numbers, or raise what is wrong with them."""
    if (time < 0).any():
        row = int(np.flatnonzero(time < 0)[0]) + 1
        raise InputError(f"{what} is a time and is below 0 in row {row}. Count from the start.")
    try:
        found = np.asarray(event, dtype=float)
        is_flag = bool(np.isin(found, (0.0, 1.0)).all())
    except (TypeError, ValueError):
        is_flag = False
    if not is_flag:
        raise InputError(
            "event must be 1 (or True) where the event was seen and 0 where the row was censored, "
            "without gaps."
        )
    if found.sum() < LEAST_EVENTS:
        raise InputError(
            f"event has {plural(int(found.sum()), 'event')}; at least {LEAST_EVENTS} are needed "
            "to test."
        )
    return time, found
