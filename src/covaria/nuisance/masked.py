"""All features from the others by one network, in which no output sees the feature it predicts.

A network has an output for each column that is predicted. Output k is taken with the columns of
its own feature at their mean, which is zero in standardised units:

    f_k(z) = v_k · h(W z − W_own z_own + b),

so it is a function of the other features alone, whatever the weights. A row needs W z once and for
each output one short sum more: one network for all features costs what one network for y does.
Its hidden layers are shared by all outputs. What that leaves undone, the step of `engines.lazy`
does, a ridge regression on the slopes of output k with its own feature held.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from covaria.execution.threads import one_thread
from covaria.learners import Network
from covaria.learners.estimators.network import (
    BATCHES,
    Adam,
    draws,
    settled,
    starting_weights,
    torch_on_one_thread,
    views,
)
from covaria.learners.estimators.single_index import center_and_scale
from covaria.nuisance.engines import plain
from covaria.nuisance.engines.lazy import Full, Layers, lazy_outputs
from covaria.nuisance.plan import Array, Lazy, Plan
from covaria.nuisance.residuals import Residuals
from covaria.tables.arrays import Rows

if TYPE_CHECKING:
    from torch import Tensor

NEED = "x_masked"
Failures = dict[tuple[str, int], str]
# The columns that are predicted, each with those of its own feature.
Targets = Sequence[tuple[int, tuple[int, ...]]]


def with_masked(plan: Plan, residuals: Residuals) -> Residuals:
    """Return the residuals with those of all features by one network a fold."""
    begin = time.perf_counter()
    left, failures, models = left_of_features(plan, residuals.rows)
    seconds = time.perf_counter() - begin
    if plan.ledger:
        plan.ledger.charge(plan.purpose, plan.learner.name, models, seconds)
    return replace(
        residuals,
        arrays={**residuals.arrays, NEED: left},
        failures={**residuals.failures, **failures},
        fits={**residuals.fits, NEED: models},
        seconds={**residuals.seconds, NEED: seconds},
    )


def left_of_features(plan: Plan, rows: Rows) -> tuple[Array, Failures, int]:
    """Return what the others leave of each column in the tested `rows`; and models fitted."""
    left, failures = np.zeros((len(rows), plan.data.X.shape[1])), Failures()
    # In the order of the columns, which is the same for any order of the table.
    targets = sorted((c, f.columns) for f in plan.data.features for c in f.tested)
    for fold, (_, test) in enumerate(plan.folds if targets else ()):
        columns = np.array([column for column, _ in targets])
        at = np.ix_(np.searchsorted(rows, test), columns)
        try:
            left[at] = _left_in_fold(plan, fold, targets)
        except Exception as error:  # only what a network does can fail here
            failures[NEED, -1] = f"fold {fold + 1}: {plain.reason(error)}"
            break
    return left, failures, len(plan.folds) if targets else 0


def _left_in_fold(plan: Plan, fold: int, targets: Targets) -> Array:
    """Return what is left of the targets in a fold's test rows, in their own units."""
    data, (train, test) = plan.data, plan.folds[fold]
    assert isinstance(plan.learner, Network)  # no other learner gets here
    weights = np.ones(len(train)) if data.weights is None else data.weights[train]
    center, scale = center_and_scale(data.X[train], weights / weights.sum())
    Z, tested = ((data.X[rows] - center) / scale for rows in (train, test))
    model = Masked(plan.learner, Z, weights / weights.mean(), targets, plan.learner_seed(fold))
    columns = [column for column, _ in targets]
    left = scale[columns] * (tested[:, columns] - masked_outputs(model, tested))
    if not np.isfinite(left).all():
        raise ValueError("the network predicted values that are not finite; lower lr")
    return np.asarray(left)


@dataclass(frozen=True)
class Masked:
    """Standardised training rows with their weights, of mean one, and what is predicted in them."""

    learner: Network
    Z: Array
    weights: Array
    targets: Targets
    seed: int

    @property
    def goal(self) -> Array:
        """Return the columns that are predicted."""
        return self.Z[:, [column for column, _ in self.targets]]

    @property
    def own(self) -> Array:
        """Return for each output a row with 1 at the columns it does not see."""
        own = np.zeros((len(self.targets), self.Z.shape[1]))
        for k, (_, columns) in enumerate(self.targets):
            own[k, list(columns)] = 1.0
        return own

    def start(self) -> list[Array]:
        """Return the parameters before the first step; columns that do not vary have no say."""
        columns = range(self.Z.shape[1])
        start = starting_weights(columns, self.learner.hidden, len(self.targets), self.seed)
        start[0] *= self.weights @ self.Z**2 > 0.5 * len(self.Z)
        return start

    def trained(self) -> Layers:
        """Return weights and biases, layer by layer, by Adam as every network here is trained."""
        import torch

        start, learner = self.start(), self.learner
        flat = torch.from_numpy(np.concatenate([p.ravel() for p in start]))
        remembered = torch.zeros_like(flat), torch.zeros_like(flat)
        adam = Adam(*remembered, learner.lr, learner.weight_decay)
        order, losses = draws(self.seed, BATCHES, len(self.Z)), list[float]()
        with torch_on_one_thread():
            while len(losses) < learner.epochs and not settled(losses):
                losses.append(self._epoch(order.permutation(len(self.Z)), flat, start, adam))
                if not np.isfinite(losses[-1]):
                    raise ValueError("the network's loss became infinite; lower lr")
        pieces = [piece.numpy().copy() for piece in views(flat, start)]
        return list(zip(pieces[::2], pieces[1::2], strict=True))

    def _epoch(self, order: Rows, flat: Tensor, like: Sequence[Array], adam: Adam) -> float:
        """Return the mean loss over one pass through the rows, a step after each batch."""
        import torch

        own, total, size = torch.from_numpy(self.own), 0.0, self.learner.batch
        rows = [torch.from_numpy(a[order]) for a in (self.Z, self.goal, self.weights[:, None])]
        for first in range(0, len(order), size):
            Z, goal, weights = (r[first : first + size] for r in rows)
            leaf = flat.detach().requires_grad_()
            loss = (weights * (_outputs(views(leaf, like), Z, own) - goal) ** 2).mean()
            adam.move(flat, torch.autograd.grad(loss, leaf)[0])
            total += len(Z) * float(loss.detach())
        return total / len(order)


def _outputs(parameters: Sequence[Tensor], Z: Tensor, own: Tensor) -> Tensor:
    """Return the outputs, (rows, targets), each with its own feature at the mean."""
    weight, bias, *upper = parameters
    sums = (Z @ weight.T + bias)[:, None, :] - _own_part(Z, weight, own)
    for weight, bias in zip(upper[:-2:2], upper[1:-2:2], strict=True):
        sums = sums.relu() @ weight.T + bias
    return (sums.relu() * upper[-2]).sum(dim=2) + upper[-1]


def _own_part(Z: Tensor, weight: Tensor, own: Tensor) -> Tensor:
    """Return what the columns that each output does not see add to the first layer's sums."""
    parts = Z[:, :, None] * weight.T
    first, is_one = own.argmax(dim=1), bool((own.sum(dim=1) == 1).all())
    return parts[:, first] if is_one else own @ parts


def masked_outputs(masked: Masked, Z: Array) -> Array:
    """Return what the network predicts at standardised rows after its steps, (rows, targets)."""
    *lower, (weight, bias) = masked.trained()
    roots = np.sqrt(masked.weights)[:, None]
    found = np.empty((len(Z), len(masked.targets)))
    with one_thread(), np.errstate(all="ignore"):
        for k, (column, own) in enumerate(masked.targets):
            layers = [*lower, (weight[[k]], bias[[k]])]
            full = Full(layers, masked.Z, masked.Z[:, column], roots)
            found[:, k] = lazy_outputs(full, Z, [own], Lazy())[:, 0]
    return found
