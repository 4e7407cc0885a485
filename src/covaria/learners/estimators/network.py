"""Neural networks: ReLU layers, trained by Adam in minibatches, stopped early.

Randomness is shared between models on purpose. The order of the rows depends on the seed and
their number, the starting weights of an input column on the seed and that column's own id, so
a model without one column starts and is fed like the model with it. What then differs between
the two is the column, not the luck of the draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.random import Generator

from covaria.learners.estimators import Array
from covaria.learners.estimators.single_index import center_and_scale

if TYPE_CHECKING:
    from torch import Tensor

MIN_DELTA, PATIENCE = 1e-3, 3
BATCHES, INPUT, LAYER, BIAS = range(4)


def draws(seed: int, kind: int, number: int) -> Generator:
    """Return the random generator of one kind of draw and the number it belongs to."""
    return np.random.default_rng([seed, kind, number])


@contextmanager
def torch_on_one_thread() -> Iterator[None]:
    """Return a scope in which torch adds in one fixed order, whatever the number of cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def starting_weights(
    columns: Sequence[int], hidden: Sequence[int], n_outputs: int, seed: int
) -> list[Array]:
    """Return weights and biases layer by layer, uniform and scaled as torch's Linear has them."""
    inputs = [draws(seed, INPUT, c).uniform(-1, 1, hidden[0]) for c in columns]
    widths = [len(columns), *hidden, n_outputs]
    parameters = []
    for layer, (n_in, n_out) in enumerate(pairwise(widths)):
        drawn = draws(seed, LAYER, layer).uniform(-1, 1, (n_out, n_in))
        weight = drawn if layer else np.column_stack(inputs)
        bias = draws(seed, BIAS, layer).uniform(-1, 1, n_out)
        parameters += [weight / np.sqrt(n_in), bias / np.sqrt(n_in)]
    return parameters


def forward(parameters: Sequence[Tensor], X: Tensor) -> list[Tensor]:
    """Return the signals from layer to layer: the inputs first, the outputs last."""
    import torch

    signals = [X]
    for weight, bias in zip(parameters[:-2:2], parameters[1:-2:2], strict=True):
        signals.append(torch.addmm(bias, signals[-1], weight.T).relu_())
    return [*signals, torch.addmm(parameters[-1], signals[-1], parameters[-2].T)]


def loss_and_slope(outputs: Tensor, Y: Tensor, weights: Tensor, classes: bool) -> list[Tensor]:
    """Return the mean squared error or cross-entropy, and its derivative by the outputs."""
    share = weights / len(Y)
    if classes:
        logs = outputs.log_softmax(dim=1)
        return [-(share * Y * logs).sum(), share * (logs.exp() - Y)]
    miss = outputs - Y
    return [(share * miss**2).sum(), 2 * share * miss]


def backward(
    parameters: Sequence[Tensor], signals: Sequence[Tensor], slope: Tensor, out: Sequence[Tensor]
) -> None:
    """Write the derivatives of the loss by all parameters into `out`.

    The chain rule by hand: at this size torch's own bookkeeping costs more than the sums.
    """
    import torch

    for layer in reversed(range(len(parameters) // 2)):
        torch.mm(slope.T, signals[layer], out=out[2 * layer])
        torch.sum(slope, 0, out=out[2 * layer + 1])
        if layer:
            slope = (slope @ parameters[2 * layer]) * (signals[layer] > 0)


@dataclass
class Adam:
    """Adam (Kingma and Ba, 2015) on one flat vector, step for step torch.optim.Adam.

    Torch's own takes seconds to import its compiler, which nothing here needs.
    """

    mean: Tensor
    square: Tensor
    lr: float
    weight_decay: float
    steps: int = 0

    def move(self, flat: Tensor, gradient: Tensor) -> None:
        """Move the parameters one step against the gradient."""
        self.steps += 1
        if self.weight_decay:
            gradient.add_(flat, alpha=self.weight_decay)
        self.mean.lerp_(gradient, 0.1)
        self.square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        spread = (self.square.sqrt() / np.sqrt(1 - 0.999**self.steps)).add_(1e-8)
        flat.addcdiv_(self.mean, spread, value=-self.lr / (1 - 0.9**self.steps))


def settled(losses: Sequence[float]) -> bool:
    """Return whether the last epochs, `PATIENCE` of them, brought nothing better."""
    best, waited = np.inf, 0
    for loss in losses:
        best, waited = (loss, 0) if loss < best - MIN_DELTA else (best, waited + 1)
    return waited >= PATIENCE


def views(flat: Tensor, like: Sequence[Array]) -> list[Tensor]:
    """Return the pieces of a flat vector, shaped `like` the parameters."""
    ends = np.cumsum([0, *(p.size for p in like)]).tolist()
    return [flat[a:b].view(p.shape) for (a, b), p in zip(pairwise(ends), like, strict=True)]


class NeuralNetwork:
    """A network of ReLU layers on standardised columns; a softmax on top for classes.

    Training stops when the epoch's own loss stops falling by `MIN_DELTA`. Parameters and
    standardisation stay at hand (`parameters`, `center`, `scale`, `y_center`, `y_scale`).
    """

    center: Array
    scale: Array
    y_center: Array
    y_scale: Array

    def __init__(
        self,
        *,
        hidden: tuple[int, ...] = (50,),
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        batch: int = 256,
        epochs: int = 200,
        n_classes: int = 0,
        seed: int = 0,
        columns: tuple[int, ...] | None = None,
    ) -> None:
        self.hidden = hidden
        self.lr = lr
        self.weight_decay = weight_decay
        self.batch = batch
        self.epochs = epochs
        self.n_classes = n_classes
        self.seed = seed
        self.columns = columns

    def fit(self, X: Array, y: Array, weights: Array | None = None) -> Self:
        """Return the model with its network trained."""
        weights = np.ones(len(y)) if weights is None else weights
        shares = weights / weights.sum()
        self.center, self.scale = center_and_scale(np.ascontiguousarray(X), shares)
        Y = np.eye(self.n_classes)[y.astype(int)] if self.n_classes else y[:, None]
        self.y_center, self.y_scale = center_and_scale(Y, shares)
        Z = self._standardised(X)
        goal = Y if self.n_classes else (Y - self.y_center) / self.y_scale
        self._parameters = self._train(Z, goal, len(y) * shares) if X.shape[1] else []
        return self

    def predict(self, X: Array) -> Array:
        """Return means, or a row of probabilities per row of X."""
        if not self._parameters:
            answers = np.tile(self.y_center, (len(X), 1))
        elif self.n_classes:
            answers = self._outputs(X).softmax(dim=1).numpy()
        else:
            answers = self.y_center + self.y_scale * self._outputs(X).numpy()
        return answers if self.n_classes else answers[:, 0]

    def parameters(self) -> list[Array]:
        """Return copies of weights and biases, layer by layer from the inputs."""
        return [p.copy() for p in self._parameters]

    def _outputs(self, X: Array) -> Tensor:
        import torch

        with torch_on_one_thread():
            tensors = [torch.from_numpy(p) for p in self._parameters]
            return forward(tensors, torch.from_numpy(self._standardised(X)))[-1]

    def _standardised(self, X: Array) -> Array:
        return np.ascontiguousarray((X - self.center) / self.scale)

    def _start(self, Z: Array, n_outputs: int, weights: Array) -> list[Array]:
        columns = range(Z.shape[1]) if self.columns is None else self.columns
        start = starting_weights(columns, self.hidden, n_outputs, self.seed)
        # A column that did not vary has taught us nothing, so it gets no say in predictions.
        start[0] *= weights @ Z**2 > 0.5 * len(Z)
        return start

    def _train(self, Z: Array, Y: Array, weights: Array) -> list[Array]:
        import torch

        start = self._start(Z, Y.shape[1], weights)
        flat = torch.from_numpy(np.concatenate([p.ravel() for p in start]))
        adam = Adam(torch.zeros_like(flat), torch.zeros_like(flat), self.lr, self.weight_decay)
        rows = [torch.from_numpy(a) for a in (Z, Y, weights[:, None])]
        order = draws(self.seed, BATCHES, len(Z))
        losses: list[float] = []
        with torch_on_one_thread(), torch.no_grad():
            while len(losses) < self.epochs and not settled(losses):
                shuffled = torch.from_numpy(order.permutation(len(Z)))
                losses.append(self._epoch([r[shuffled] for r in rows], flat, start, adam))
                if not np.isfinite(losses[-1]) or not flat.isfinite().all():
                    raise ValueError("the network's loss became infinite; lower lr")
        return [piece.numpy().copy() for piece in views(flat, start)]

    def _epoch(
        self, rows: Sequence[Tensor], flat: Tensor, like: Sequence[Array], adam: Adam
    ) -> float:
        gradient = flat.new_zeros(len(flat))
        parameters, slopes = views(flat, like), views(gradient, like)
        total = flat.new_zeros(())
        for first in range(0, len(rows[0]), self.batch):
            X, Y, weights = (r[first : first + self.batch] for r in rows)
            signals = forward(parameters, X)
            loss, slope = loss_and_slope(signals[-1], Y, weights, self.n_classes > 0)
            backward(parameters, signals, slope, slopes)
            adam.move(flat, gradient)
            total += loss * len(X)
        return float(total) / len(rows[0])
