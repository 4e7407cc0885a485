"""What the theorems say of a model: importance, variance and efficiency at the true regressions.

`table` holds for any regression function, with x_j − E[x_j | rest] and f − E[f | rest] in the
place of the paper's residuals. The theorems and examples have a function each; `errata` lists
where the paper and the numbers part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from covaria.efficiencies import formulas
from covaria.efficiencies.errata import errata
from covaria.efficiencies.moments import Moments, moments
from covaria.efficiencies.slope import eta_prime
from covaria.efficiencies.theorems import (
    additive,
    assumption_a,
    binary_pair,
    dropout_variance,
    linear,
    noise_threshold,
    odd_power,
    saturated_index,
    saturated_remainder,
    single_index,
    theorem_7,
)
from covaria.errors import InputError, did_you_mean, text_of
from covaria.options.checks import plain_all, shown, whole
from covaria.simulation.model import Model

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Moments",
    "additive",
    "assumption_a",
    "binary_pair",
    "dropout_variance",
    "errata",
    "eta_prime",
    "linear",
    "moments",
    "noise_threshold",
    "odd_power",
    "saturated_index",
    "saturated_remainder",
    "single_index",
    "table",
    "theorem_7",
]


MOST_DRAWS = 10**8


def table(
    model: Model, *, features: Sequence[str] | None = None, draws: int = 10_000, seed: int = 0
) -> pd.DataFrame:
    """Return one row per feature: psi, var and rv of each method, are_a_b, (A) and its limits.

    Parameters
    ----------
    features: names; all of the model's where not given.
    draws: rows simulated where a feature's integrals have too many dimensions for quadrature;
        the column `error` says how far off, relatively, the moments may be.

    var_* are per row: divide by n. rv is infinite where psi is zero, an are is 0 where its first
    method is blind, and NaN where both are or the feature is null.

    >>> found = table(Model([1.0, 0.0], noise=1.0))
    >>> found[["feature", "psi_gcm", "rv_gcm", "are_gcm_loco"]].round(3).values.tolist()
    [['x1', 1.0, 1.732, 2.0], ['x2', 0.0, inf, nan]]
    """
    import pandas as pd

    if not isinstance(model, Model):
        raise InputError("theory.table takes a Model. Use covaria.scenario(…) or covaria.Model(…).")
    what = "a whole number of at least 100"
    draws, seed = whole("draws", draws, 100, MOST_DRAWS, what), whole("seed", seed, 0)
    rows = []
    for name in model.names if features is None else _named(features):
        if name not in model.names:
            raise InputError(f"There is no feature '{name}'.{did_you_mean(name, model.names)}")
        at = model.names.index(name)
        found = moments(model, at, draws=draws, seed=seed)
        rows.append(
            {"feature": name, "active": at in model.active} | formulas.row(found, model.noise)
        )
    return pd.DataFrame(rows)


def _named(features: object) -> list[str]:
    features = plain_all(features)
    features = [features] if isinstance(features, str) else features
    if not isinstance(features, Sequence) or not features:
        raise InputError(f"features={shown(features)} names none. Give a list, such as ['x1'].")
    return [text_of(name) for name in features]
