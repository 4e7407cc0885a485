"""Kernel machines as R's kernlab::ksvm sets them up: support vectors, or ridge.

Karatzoglou, Smola, Hornik & Zeileis (2004), *kernlab*. Columns and y are standardised on the
training rows, the kernel is exp(-sigma·|x - x'|²), and sigma comes from `sigest` when it is
not given. kernlab draws pairs of rows for that; we take all of them, so nothing is random.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError
from covaria.learners.estimators import Array, as_chances, as_targets

# From standardised rows to one column for a number, or one for each class.
Answer = Callable[[Array], Array]
Fold = tuple[NDArray[np.intp], NDArray[np.intp]]

# Above this many rows `sigest` looks at evenly spaced ones: pairs grow with the square.
MOST_ROWS_FOR_SIGEST = 2000
# Ridge holds a number for each pair of rows: 3.2 GB.
MOST_ROWS_FOR_RIDGE = 20_000
# Kernels of new rows are made so many bytes at a time.
BLOCK_BYTES = 3e7
# Platt's sigmoid is fitted to out-of-fold scores, in kernlab's number of folds.
PLATT_FOLDS = 3


class KernelMachine:
    """A Gaussian-kernel machine for a number or a class, with the defaults of `ksvm()`.

    C is the cost of an error and epsilon the half width of the tube in sds of y. kind is
    "svr" for support vectors or "ridge" for kernel ridge with penalty 1/C. n_classes is 0
    for a number; probabilities come from Platt's sigmoid, or from ridge on the class
    indicators. Weights are relative: C stays the cost of an average row. At ksvm's tol the
    solver stops so early that the last bit of the data moves the answers by about tol.
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        sigma: float | None = None,
        kind: Literal["svr", "ridge"] = "svr",
        n_classes: int = 0,
        tol: float = 1e-3,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.sigma = sigma
        self.kind = kind
        self.n_classes = n_classes
        self.tol = tol

    def fit(self, X: Array, y: Array, weights: Array | None = None) -> Self:
        """Return the model, fitted to `y`: numbers, or class codes from 0."""
        weights = np.ones(len(X)) if weights is None else weights
        # libsvm stumbles over rows without weight, and they have nothing to say.
        kept = weights > 0
        check_size(self.kind, int(kept.sum()))
        X, y, weights = X[kept], y[kept], weights[kept] / weights[kept].mean()
        self.scale_ = Scale.of(X, weights)
        scaled = self.scale_.apply(X)
        self.sigma_ = sigest(scaled) if self.sigma is None else self.sigma
        self.answer_ = self._answer(scaled, y, weights)
        return self

    def predict(self, X: Array) -> Array:
        """Return the mean of each row, or its probability of each class."""
        answer = self.answer_(self.scale_.apply(X))
        return answer if self.n_classes else answer[:, 0]

    @property
    def averaged(self) -> Callable[[Array, list[int], Array], Array] | None:
        """Return a short cut to the mean over other values of some columns, or None."""
        is_ridge = getattr(self.answer_, "func", None) is ridge_means
        return self._averaged if is_ridge and not self.n_classes else None

    def _averaged(self, X: Array, columns: list[int], values: Array) -> Array:
        """Return the mean of each row, on average over these values of some columns.

        A kernel is a product over columns, so that of the others is taken once for all values.
        """
        from scipy.spatial.distance import cdist

        answer: Any = self.answer_
        rows, coefficients, centre, sigma = answer.args
        others = [c for c in range(X.shape[1]) if c not in columns]
        scaled = self.scale_.apply(X)[:, others]
        unit = Scale(self.scale_.centre[columns], self.scale_.spread[columns])
        near = np.exp(-sigma * cdist(unit.apply(values), rows[:, columns], "sqeuclidean"))
        weighted = near.mean(axis=0)[:, np.newaxis] * coefficients
        if not others:
            return np.full(len(X), float(centre[0] + weighted.sum()))
        return ridge_means(rows[:, others], weighted, centre, sigma, scaled)[:, 0]

    def _answer(self, X: Array, y: Array, weights: Array) -> Answer:
        """Return the fitted function of standardised rows."""
        targets = as_targets(y, self.n_classes)
        # Platt's sigmoid needs two classes, and one of them in every fold.
        too_few = self.kind == "svr" and self.n_classes > 0 and not can_be_told_apart(y)
        if X.shape[1] == 0 or too_few:
            return partial(same_for_all, np.average(targets, axis=0, weights=weights))
        if self.kind == "ridge":
            ridge = kernel_ridge(X, targets, weights, sigma=self.sigma_, alpha=1 / self.C)
            return partial(as_probabilities, ridge) if self.n_classes else ridge
        if self.n_classes:
            return self._classifier(X, y, weights)
        return self._regression(X, targets, weights)

    def _regression(self, X: Array, targets: Array, weights: Array) -> Answer:
        """Return a support vector regression of the standardised target."""
        from sklearn.svm import SVR

        unit = Scale.of(targets, weights)
        machine = SVR(gamma=self.sigma_, C=self.C, epsilon=self.epsilon, tol=self.tol)
        machine.fit(X, unit.apply(targets)[:, 0], sample_weight=weights)
        return partial(means, machine, unit)

    def _classifier(self, X: Array, y: Array, weights: Array) -> Answer:
        """Return support vector classes with Platt's probabilities."""
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.svm import SVC

        machine = SVC(gamma=self.sigma_, C=self.C, tol=self.tol)
        platt = CalibratedClassifierCV(machine, method="sigmoid", cv=folds(y), ensemble=False)
        platt.fit(X, y.astype(int), sample_weight=weights)
        return partial(class_probabilities, platt, self.n_classes)


def check_size(kind: str, n_rows: int) -> None:
    """Raise where ridge has too many rows for the memory."""
    if kind == "ridge" and n_rows > MOST_ROWS_FOR_RIDGE:
        raise InputError(
            f"Kernel ridge takes at most {MOST_ROWS_FOR_RIDGE:,} rows to learn from, as it holds "
            f"every pair of them; these are {n_rows:,}. Use kind='svr' or fewer rows."
        )


class Scale(NamedTuple):
    """The centre and spread of each column."""

    centre: Array
    spread: Array

    @classmethod
    def of(cls, X: Array, weights: Array) -> Self:
        """Return the weighted mean and sd (n - 1) of each column; a sd of 0 counts as 1."""
        centre = np.average(X, axis=0, weights=weights)
        spread = np.sqrt(weights @ (X - centre) ** 2 / max(1, len(X) - 1))
        # The sd of a constant column is rounding, which would blow it up into noise.
        constant = spread <= 1e-12 * np.abs(centre)
        return cls(centre, np.where(constant, 1.0, spread))

    def apply(self, X: Array) -> Array:
        """Return the standardised columns."""
        return (X - self.centre) / self.spread


def sigest(X: Array) -> float:
    """Return kernlab's sigma for standardised rows: the mean of 1/q.9 and 1/q.1 of |x - x'|².

    Equal rows say nothing of distance and are left out, as kernlab does.
    """
    from scipy.spatial.distance import pdist

    n_looked_at = min(len(X), MOST_ROWS_FOR_SIGEST)
    distances = pdist(X[np.linspace(0, len(X) - 1, n_looked_at).astype(int)], "sqeuclidean")
    distances = distances[distances > 0]
    return float(np.mean(1 / np.quantile(distances, [0.9, 0.1]))) if len(distances) else 1.0


def gaussian_kernel(X: Array, rows: Array, sigma: float) -> Array:
    """Return exp(-sigma·|x - x'|²) for every row of X and of `rows`."""
    from scipy.spatial.distance import cdist

    kernel: Array = cdist(X, rows, "sqeuclidean")
    kernel *= -sigma
    return np.exp(kernel, out=kernel)


def kernel_ridge(X: Array, targets: Array, weights: Array, *, sigma: float, alpha: float) -> Answer:
    """Return the function with least Σw(y - f)² + alpha·|f|² around the mean of y.

    It is the same for y in any unit, so y is only centred. With s = √w its coefficients are
    s(sKs + alpha·I)⁻¹s·y.
    """
    from scipy.linalg import solve

    centre = np.average(targets, axis=0, weights=weights)
    root = np.sqrt(weights)[:, np.newaxis]
    # In place, as the kernel is all the memory there may be.
    penalised = gaussian_kernel(X, X, sigma)
    penalised *= root
    penalised *= root.T
    penalised.flat[:: len(X) + 1] += alpha
    solved = solve(penalised.T, root * (targets - centre), assume_a="pos", overwrite_a=True)
    coefficients = root * solved
    return partial(ridge_means, X, coefficients, centre, sigma)


def ridge_means(rows: Array, coefficients: Array, centre: Array, sigma: float, X: Array) -> Array:
    """Return the answers of a fitted ridge."""
    n_blocks = max(1, int(8 * len(X) * len(rows) / BLOCK_BYTES))
    blocks = np.array_split(X, n_blocks)
    return centre + np.vstack([gaussian_kernel(x, rows, sigma) @ coefficients for x in blocks])


def as_probabilities(answer: Answer, X: Array) -> Array:
    """Return the answers of a ridge on class indicators as probabilities."""
    return as_chances(answer(X))


class Regressor(Protocol):
    """A fitted regression of scikit-learn."""

    def predict(self, X: Array) -> Array:
        """Return the mean of every row."""
        ...


class Classifier(Protocol):
    """A fitted classifier of scikit-learn."""

    classes_: NDArray[np.intp]

    def predict_proba(self, X: Array) -> Array:
        """Return the probability of every class it saw."""
        ...


def means(machine: Regressor, unit: Scale, X: Array) -> Array:
    """Return the answers of a fitted regression in the unit of y."""
    scaled: Array = machine.predict(X)[:, np.newaxis]
    return unit.centre + unit.spread * scaled


def class_probabilities(machine: Classifier, n_classes: int, X: Array) -> Array:
    """Return the probability of every class, 0 for those the machine never saw."""
    probabilities = np.zeros((len(X), n_classes))
    probabilities[:, machine.classes_] = machine.predict_proba(X)
    return probabilities


def same_for_all(value: Array, X: Array) -> Array:
    """Return the same answer for every row."""
    return np.tile(value, (len(X), 1))


def can_be_told_apart(y: Array) -> bool:
    """Return whether there are two classes, and a row of some class for every fold."""
    counts = np.bincount(y.astype(int))
    return bool((counts > 0).sum() > 1 and counts.max() >= PLATT_FOLDS)


def folds(y: Array) -> list[Fold]:
    """Return training and test rows of folds that share out every class in turn.

    Rows of a class too small to be in each fold stay in all training parts: a machine that
    never saw the class could not score it.
    """
    counts = np.bincount(y.astype(int))
    turn = np.empty(len(y), dtype=int)
    for code, count in enumerate(counts):
        turn[y == code] = np.arange(count) % PLATT_FOLDS
    rare = counts[y.astype(int)] < PLATT_FOLDS
    return [
        (np.flatnonzero((turn != k) | rare), np.flatnonzero(turn == k)) for k in range(PLATT_FOLDS)
    ]
