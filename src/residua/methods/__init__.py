"""The tests, one file each, and the one line each has in METHODS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from residua.errors import InputError, did_you_mean
from residua.methods.dropout import dropout
from residua.methods.gcm import correlation_scale, degrees_of_freedom, gcm, product_scale
from residua.methods.loco import VALIDITIES, loco, split_loco, zipper_loco
from residua.methods.permutation import permutation
from residua.residuals import Residuals

Array = NDArray[np.float64]
Whole = NDArray[np.intp]
Score = Callable[[Residuals, Generator], Array]


def loss_scale(residuals: Residuals) -> Array:
    """Return the loss of predicting the mean, for each feature: what gains are shares of."""
    return np.full(residuals.data.n_features, residuals.mean_loss)


@dataclass(frozen=True)
class Method:
    """A test: its scores, the regressions they need, and how they are read.

    `scale` tells rounding from signal; the estimate over `unit` is the effect people can
    read: a correlation for GCM, a share of Var(Y) for a gain.
    """

    name: str
    score: Score
    needs: tuple[str, ...]
    about: str
    effect: str = "share of Var(Y) explained"
    two_sided: bool = False
    scale: Callable[[Residuals], Array] = loss_scale
    unit: Callable[[Residuals], Array] = loss_scale
    degrees: Callable[[Residuals], Whole] | None = None
    factor: float = 1.0
    zero: str = "unused"

    @property
    def alternative(self) -> str:
        return "two-sided" if self.two_sided else "greater"


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "gcm",
            gcm,
            needs=("x_given_rest", "y_given_rest"),
            about="covariance of what is left of the feature and of y, given the rest",
            effect="partial correlation",
            two_sided=True,
            scale=product_scale,
            unit=correlation_scale,
            degrees=degrees_of_freedom,
            zero="redundant",
        ),
        Method(
            "loco",
            loco,
            needs=("y_given_all", "y_given_rest"),
            about="loss gained by refitting without the feature",
        ),
        Method(
            "dropout",
            dropout,
            needs=("y_given_all", "y_dropped"),
            about="loss gained by setting the feature to its mean, without a refit",
        ),
        Method(
            "permutation",
            permutation,
            needs=("y_given_all", "y_permuted"),
            about="loss gained by shuffling the feature, without a refit",
        ),
    )
}
DEFAULT_METHODS = ("gcm", "loco")


def get_methods(names: str | Sequence[str], *, validity: str = "conservative") -> list[Method]:
    """Return the methods of these names, LOCO in the version asked for."""
    if isinstance(names, str):
        names = DEFAULT_METHODS if names == "default" else [n.strip() for n in names.split(",")]
    if not isinstance(names, Iterable) or not names:
        raise InputError(f"methods={names!r} names no test. Choose from {', '.join(METHODS)}.")
    chosen = list(dict.fromkeys(str(name) for name in names))
    for name in chosen:
        if name not in METHODS:
            raise InputError(f"There is no method '{name}'.{did_you_mean(name, METHODS)}")
    return [_valid_loco(validity) if name == "loco" else METHODS[name] for name in chosen]


def _valid_loco(validity: str) -> Method:
    """Return LOCO with the null distribution the user chose."""
    if validity not in VALIDITIES:
        raise InputError(f"validity={validity!r} is not known.{did_you_mean(validity, VALIDITIES)}")
    plain = METHODS["loco"]
    if validity == "zipper":
        return replace(plain, score=zipper_loco)
    if validity == "split":
        return replace(plain, score=split_loco)
    if validity == "signed_root":
        return replace(plain, factor=2.0, two_sided=True)
    return plain
