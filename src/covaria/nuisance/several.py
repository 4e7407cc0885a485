"""Several targets at once: each regressed by itself, and what is left of them side by side.

Without an effect x_j is independent of all targets jointly, given the others, so the products of
its residual with those of every target have mean 0: GCM tests them by one χ², PCM takes the
target that says most, and gains add up the targets' losses, each in units of its own variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from covaria.nuisance.plan import Array, Plan, Shelf
from covaria.nuisance.regressions import fit_residuals
from covaria.nuisance.residuals import Residuals
from covaria.tables.dataset import Dataset

# What there is of each target; of losses the sum counts, and of the feature there is one.
OF_EACH = ("y_given_all", "y_given_rest", "f_given_rest")


def fit_all(plan: Plan) -> Residuals:
    """Return what every regression of the plan leaves over, of one target or of several."""
    outputs = plan.data.outputs
    if outputs is None:
        return fit_residuals(plan)
    plans = [replace(plan, data=plan.data.of_output(k), shelf=Shelf(), memory=None,
                     progress=None if k else plan.progress)
             for k in range(outputs.shape[1])]  # fmt: skip
    return merged([fit_residuals(one) for one in plans], plan.data)


def merged(parts: Sequence[Residuals], data: Dataset) -> Residuals:
    """Return the residuals of several targets as those of one, with one more axis."""
    first = parts[0]
    second = [one.second for one in parts]
    noise = [one.model_noise for one in parts if one.model_noise is not None]
    curves = [one.learning_curves for one in parts if one.learning_curves is not None]
    widening = [one.widening for one in parts if one.widening is not None]
    return replace(
        first,
        data=data,
        arrays=_arrays(parts),
        failures={key: why for one in parts for key, why in one.failures.items()},
        fits={need: sum(one.fits[need] for one in parts) for need in first.fits},
        seconds={need: sum(one.seconds[need] for one in parts) for need in first.seconds},
        model_noise=np.max(noise, axis=0) if noise else None,
        learning_curves=np.fmax.reduce(curves) if curves else None,
        widening=np.max(widening, axis=0) if widening else None,
        second=tuple(merged(own, data) for own in zip(*second, strict=True)) if all(second) else (),
        asked=tuple(sorted({j for one in parts for j in one.asked})) if all(second) else (),
        by_learners=None,
    )  # fmt: skip


def _arrays(parts: Sequence[Residuals]) -> dict[str, Array]:
    found = {}
    for name, array in parts[0].arrays.items():
        every = [one.arrays[name] for one in parts]
        if name in OF_EACH:
            found[name] = np.stack(every, axis=-1)
        else:
            found[name] = np.sum(every, axis=0) if name.startswith("loss") else array
    return found
