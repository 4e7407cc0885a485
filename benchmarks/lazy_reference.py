"""Lazy-VI as its reference code does it, feature by feature, to time ours against.

The reference takes the slopes of the full network row by row by automatic differentiation,
writes them out (rows × parameters, single precision), and for each of 10 penalties and 5 folds
fits scikit-learn's Ridge to them anew and runs the network it leads to on the fold left out.
One more Ridge on all rows gives the step. This file does the same work in our own words; it
corrects nothing (Ridge's intercept is fitted and not used, as there).

    python benchmarks/lazy_reference.py     the ratios at p = 20 and p = 500

Ours is timed with all that Lazy-VI does after the full network is there: the penalty chosen once
by leave-one-out, the step of every feature, the full network's own step, and all predictions.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

import covaria
from covaria.learners.estimators.network import NeuralNetwork
from covaria.nuisance.engines.lazy import lazy_predictions

Array = NDArray[Any]
PENALTIES = np.logspace(0, 2, 10)
N_FOLDS = 5
N_ROWS, N_TRAIN, EPOCHS = 1000, 670, 50


def as_torch(model: NeuralNetwork) -> Any:
    """Return a network of ours as a torch module in single precision."""
    import torch

    layers: list[Any] = []
    parameters = [torch.tensor(p, dtype=torch.float32) for p in model.parameters()]
    for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight.data, linear.bias.data = weight, bias
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def slopes_by_row(network: Any, X: Any) -> Array:
    """Return the derivatives of each row's output by all parameters."""
    import torch

    parameters = tuple(network.parameters())
    rows = []
    for row in X:
        slopes = torch.autograd.grad(network(row), parameters, create_graph=True)
        rows.append(torch.cat([slope.reshape(-1) for slope in slopes]).detach().numpy())
    return np.array(rows)


def stepped(network: Any, slopes: Array, X: Any, y: Any, penalty: float) -> Any:
    """Return the network after the step of one ridge regression."""
    import torch

    left = (y - network(X)).detach().numpy()
    step = torch.tensor(Ridge(alpha=penalty).fit(slopes, left).coef_.reshape(-1))
    moved = copy.deepcopy(network)
    start = 0
    for parameter in moved.parameters():
        end = start + parameter.numel()
        parameter.data = parameter.data + step[start:end].reshape(parameter.shape)
        start = end
    return moved


def refitted(network: Any, X: Any, y: Any) -> Any:
    """Return the network that stands for a retraining on `X`, in which a feature is held."""
    slopes = slopes_by_row(network, X)
    losses = []
    for penalty in PENALTIES:
        folds = KFold(N_FOLDS, shuffle=True, random_state=0).split(slopes)
        errors = []
        for train, test in folds:
            moved = stepped(network, slopes[train], X[train], y[train], penalty)
            errors.append(((moved(X[test]) - y[test]) ** 2).mean().item())
        losses.append(np.mean(errors))
    return stepped(network, slopes, X, y, float(PENALTIES[int(np.argmin(losses))]))


def held_predictions(network: Any, train: Array, y: Array, test: Array, column: int) -> Array:
    """Return predictions for the test rows without a column, all rows standardised."""
    import torch

    train, test = (X.astype(np.float32) for X in (train, test))
    test[:, column] = train[:, column] = train[:, column].mean()
    goal = torch.tensor(y, dtype=torch.float32)[:, None]
    moved = refitted(network, torch.tensor(train), goal)
    return np.asarray(moved(torch.tensor(test)).detach().numpy()[:, 0])


# --- the comparison -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A full network and the rows it learned from and is tested on."""

    model: NeuralNetwork
    train: Array
    y: Array
    test: Array

    @classmethod
    def draw(cls, n_features: int) -> Case:
        """Return model (b) with p features, two thirds of it learned from."""
        copies = 5 if n_features >= 500 else 1
        X, y = covaria.draw("additive", n_rows=N_ROWS, seed=0, n_features=n_features, copies=copies)
        train, test, y = X.to_numpy()[:N_TRAIN], X.to_numpy()[N_TRAIN:], y.to_numpy()[:N_TRAIN]
        return cls(NeuralNetwork(epochs=EPOCHS).fit(train, y), train, y, test)

    def ours(self) -> Array:
        """Return our predictions without each feature."""
        owned = [*((j,) for j in range(self.train.shape[1])), ()]
        return lazy_predictions(self.model, self.train, self.y, self.test, owned)

    def theirs(self, column: int) -> Array:
        """Return the reference's predictions without one feature."""
        model = self.model
        train, test = ((X - model.center) / model.scale for X in (self.train, self.test))
        goal = (self.y - model.y_center) / model.y_scale
        outputs = held_predictions(as_torch(model), train, goal, test, column)
        return np.asarray(model.y_center + model.y_scale * outputs)


def cpu(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the CPU seconds of one call."""
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def seconds_a_feature(n_features: int, rounds: int) -> tuple[float, float]:
    """Return the CPU seconds a feature of ours and of the reference, called in turns."""
    import torch

    torch.set_num_threads(1)
    case = Case.draw(n_features)
    case.ours()
    times = [(cpu(case.ours) / n_features, cpu(case.theirs, k)) for k in range(rounds)]
    ours, theirs = np.median(times, axis=0).tolist()
    return ours, theirs


def main() -> None:
    print("| p | ours, ms a feature | reference, ms a feature | speed-up over the reference |")
    print("|---|---|---|---|")
    for n_features, rounds in ((20, 5), (500, 2)):
        ours, theirs = seconds_a_feature(n_features, rounds)
        print(f"| {n_features} | {1e3 * ours:.1f} | {1e3 * theirs:,.0f} | {theirs / ours:,.0f}× |")


if __name__ == "__main__":
    main()
