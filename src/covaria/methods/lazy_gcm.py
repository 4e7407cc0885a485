"""Lazy-GCM: the generalised covariance measure by two networks a fold instead of 2p.

Shah and Peters, "The hardness of conditional independence testing and the generalised covariance
measure", Annals of Statistics 48 (2020), with residuals of

    ε_i = y_i − f_{θ+Δθ_j}(X_i^(j)),   one network of y, and Lazy-VI's step without x_j (Gao,
                                       Stevens, Raskutti and Willett, ICML 2022),
    ξ_i = x_ij − g_j(X_i^(j)),         one network of all features, whose output j does not see
                                       x_j, and a step of its own (`nuisance/masked.py`),
    R_i = ξ_i ε_i,                     T = √n · mean(R) / sd(R), as GCM's.

Both predictions are functions of the other features alone, so that what GCM asks holds here too:
the product of the two regressions' errors is to vanish sooner than n^(-1/2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.methods.gcm import gcm
from covaria.nuisance.residuals import Residuals

Array = NDArray[np.float64]
P = ParamSpec("P")
T = TypeVar("T")


def lazy_gcm(residuals: Residuals, rng: Generator) -> Array:
    """Return GCM's scores of the two networks: the product of their residuals of x_j and of y."""
    return gcm(residuals.of_lazy_networks, rng)


def of_lazy_networks(
    function: Callable[Concatenate[Residuals, P], T],
) -> Callable[Concatenate[Residuals, P], T]:
    """Return what a function of GCM's residuals says of the two networks'."""

    def of_networks(residuals: Residuals, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return function(residuals.of_lazy_networks, *args, **kwargs)

    return of_networks
