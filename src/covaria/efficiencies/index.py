"""Theorem 5 on data: y = η(x'β) + noise, with η′ as the paper's remark estimates it.

What x_j adds is η′(m) β_j x̃_j to first order, x̃_j its residual and m = x'β − β_j x̃_j what the
other features say of the index. β is that of a fitted single index, η′ that of `eta_prime`. The
expansion is good for weak features: `are` beside it assumes no such form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covaria.efficiencies import formulas
from covaria.efficiencies.moments import Moments
from covaria.efficiencies.slope import eta_prime
from covaria.errors import InputError
from covaria.options.checks import shown
from covaria.results.result import Result

Array = NDArray[np.float64]
LEARNER = "single_index"


@dataclass(frozen=True)
class FirstOrder:
    """The mean of η′(m) β_j, what y gains for a unit of x_j, and the efficiency by Theorem 5."""

    slope: float
    efficiency: float


UNKNOWN = FirstOrder(np.nan, np.nan)


def first_order(result: Result, X: object, y: object) -> dict[str, FirstOrder]:
    """Return what a single index says of each feature, nothing where no such model was fitted."""
    error = result.residuals.get("y_given_all")
    left = result.residuals.get("x_given_rest")
    if result.about.learner.get("name") != LEARNER or error is None or left is None:
        return {}
    columns, target = _table(result, X), _target(result, y)
    beta = _direction(columns, target)
    index, noise = columns @ beta, float(np.sqrt(np.mean(error**2)))
    found = {}
    for j, feature in enumerate(result.features):
        if beta[j]:
            effect = beta[j] * left[:, j]
            slopes = eta_prime(index, target, at=index - effect)
            found[feature] = _compared(left[:, j], slopes * effect, slopes * beta[j], noise)
    return found


def _compared(x: Array, effect: Array, slopes: Array, noise: float) -> FirstOrder:
    """Return Theorem 5 for residuals of x_j and its effect to first order."""
    moments = Moments(
        float(np.mean(x**2)), cross=float(np.mean(x * effect)), second=float(np.mean(effect**2)),
        mixed=float(np.mean((x * effect) ** 2)), fourth=float(np.mean(effect**4)),
    )  # fmt: skip
    return FirstOrder(float(np.mean(slopes)), formulas.row(moments, noise)["are_gcm_loco"])


def _direction(columns: Array, y: Array) -> Array:
    """Return the weights of the fitted index, in the units of the columns."""
    from covaria.learners.estimators.single_index import SingleIndexModel

    model = SingleIndexModel().fit(columns, y)
    return np.asarray(model.theta / model.scale)


def _table(result: Result, X: object) -> Array:
    """Return the tested rows of the columns that were assessed, or raise a sentence."""
    names = getattr(X, "columns", None)
    try:
        own = X[result.features] if names is not None else X  # type: ignore[index]
        table = np.asarray(own, dtype=float)
    except (TypeError, ValueError, KeyError) as error:
        raise InputError(
            "X must be the table that was assessed, all of its features numbers, to compare tests "
            "by its single index. Leave X and y out to compare them without it."
        ) from error
    if table.shape != (result.about.n_rows, len(result.features)):
        raise InputError(
            f"X has shape {table.shape}, and {result.about.n_rows:,} rows of "
            f"{len(result.features)} features were assessed. Give the same table."
        )
    return np.asarray(table[result.rows])


def _target(result: Result, y: object) -> Array:
    try:
        target = np.asarray(y, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"y={shown(y)} must be the numbers that were assessed.") from error
    if target.shape != (result.about.n_rows,):
        raise InputError(f"y has shape {target.shape}. Give the {result.about.n_rows:,} numbers.")
    return np.asarray(target[result.rows])
