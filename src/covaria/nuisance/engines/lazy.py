"""Lazy-VI: all reduced networks from one full network, each a ridge regression away.

Near its parameters θ a network is linear in them, and the slopes at θ are the features of a
ridge regression. With feature j at its mean in every row, X^(j), the step

    Δθ_j = argmin Σ_i w_i (y_i − f_θ(X_i^(j)) − G_i ω)² + α‖ω‖²,    G_i = ∇_θ f_θ(X_i^(j)),

stands for a retraining without the feature. α is scikit-learn's, the paper's λ is α/n, and there
is no intercept beside θ, which has the output's bias in it. G is n × M, M in the thousands, and
is not written out: a row's slope by a layer's weight is the outer product of two short vectors,
so the layers' inner products multiply to the kernel

    G Gᵀ = Σ_layers (slopes slopesᵀ) ∘ (signals signalsᵀ + 1).

One Cholesky factorisation of it a feature gives c = (G Gᵀ + α)⁻¹ r, and Δθ_j = Gᵀ c is one
product a layer. The factor is in single precision and its answer is refined in double. All of
it happens in the network's standardised units, where a held column is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, eigh, get_blas_funcs

from covaria.errors import InputError
from covaria.execution.threads import one_thread
from covaria.learners.estimators.network import NeuralNetwork
from covaria.nuisance.plan import Array, Lazy
from covaria.tables.arrays import Rows

# A layer's weight, (out, in), and bias, (out,); a network is a list of them.
Layer = tuple[Array, Array]
Layers = list[Layer]
Owned = Sequence[tuple[int, ...]]
Coordinates = Callable[[slice | NDArray[np.intp]], Array]

ALPHAS = np.logspace(0, 3, 16)
N_FOLDS = 5
# The share of the training loss a step is to save, of what its linear form says it saves.
ENOUGH = 0.5
# What a solution may leave of the right-hand side, and how slowly it may get there.
EXACT, SLOW = 1e-11, 0.1
# Up to this many columns a row, refining costs less than single precision saves.
CHEAP = 0.25
# Single precision knows eigenvalues to a millionth of the largest; so far that is little beside α.
COARSE = 1e5
# Numbers in one block of G, where it is written out.
BLOCK = 2**23


def lazy_predictions(
    model: NeuralNetwork,
    train: Array,
    y: Array,
    test: Array,
    owned: Owned,
    *,
    weights: Array | None = None,
    settings: Lazy | None = None,
    others: Owned = (),
) -> Array:
    """Return predictions for the test rows without each feature in turn, (n_test, n_features).

    Parameters
    ----------
    model : the full network, fitted to `train`, `y` and `weights`.
    train, y, test : the rows it learned from, their target, and the rows to predict.
    owned : the columns of each feature. One without columns, (), stands for the full network
        after a step of its own: where training stopped early every step also goes on training,
        and this is the fair rival of the steps that do so without a feature.
    weights : of the training rows.
    settings : how the penalty is chosen and what predicts.
    others : the columns of features that are not left out, but have a say in the penalty.
    """
    _check(model)
    if not model.parameters():
        return np.tile(model.predict(test)[:, None], len(owned))
    full, Z = Full.of(model, train, y, weights), _standardised(model, test)
    outputs = lazy_outputs(full, Z, owned, settings or Lazy(), others)
    return np.asarray(model.y_center + model.y_scale * outputs)


def lazy_outputs(full: Full, Z: Array, owned: Owned, settings: Lazy, others: Owned = ()) -> Array:
    """Return the outputs at standardised rows without each feature in turn."""
    with one_thread(), np.errstate(all="ignore"):  # one thread: the same bits everywhere
        alpha = _alpha_for_all(full, [*owned, *others], settings.choose)
        return np.column_stack(
            [_stepped(full, list(columns), Z, alpha, settings.linearised) for columns in owned]
        )


def chosen_alpha(
    model: NeuralNetwork,
    train: Array,
    y: Array,
    owned: Owned,
    *,
    weights: Array | None = None,
    choose: str = "loo",
) -> float:
    """Return the α that `lazy_predictions` uses for all features, by "loo" or "cv"."""
    _check(model)
    with one_thread(), np.errstate(all="ignore"):
        alpha = _alpha_for_all(Full.of(model, train, y, weights), owned, choose)
    if alpha is None:
        raise InputError("No α serves all features. Use 'loo' or 'cv', and features with columns.")
    return alpha


def _check(model: NeuralNetwork) -> None:
    if model.n_classes:
        raise InputError("lazy is for a target of numbers. For classes use loco or dropout.")


# --- a network and its slopes -------------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """Standardised rows with some columns at their mean, zero; kept as the rows they were."""

    Z: Array
    columns: list[int]

    def times(self, weight: Array, before: Array | None = None) -> Array:
        """Return rows · weightᵀ; `before` is that product with no column held, if known."""
        before = self.Z @ weight.T if before is None else before
        return np.asarray(before - self.Z[:, self.columns] @ weight[:, self.columns].T)

    def gathered(self, slopes: Array) -> Array:
        """Return slopesᵀ · rows."""
        product = slopes.T @ self.Z
        product[:, self.columns] = 0.0
        return np.asarray(product)

    def some(self, rows: slice | NDArray[np.intp]) -> Array:
        """Return some of the rows as they are now."""
        held: Array = self.Z[rows].copy()
        held[:, self.columns] = 0.0
        return held


def _standardised(model: NeuralNetwork, X: Array) -> Array:
    return np.ascontiguousarray((X - model.center) / model.scale)


def _signals(layers: Layers, sums: Array) -> list[Array]:
    """Return what each hidden layer sends up and the outputs, given the first layer's sums."""
    signals = []
    for weight, bias in layers[1:]:
        signals.append(np.maximum(sums, 0))
        sums = signals[-1] @ weight.T + bias
    return [*signals, sums]


def _slopes(layers: Layers, signals: list[Array], top: Array) -> list[Array]:
    """Return `top` times the slope of each row's output by the sums of each layer."""
    slopes = [top]
    for (weight, _), signal in zip(layers[:0:-1], signals[-2::-1], strict=True):
        slopes.append((slopes[-1] @ weight) * (signal > 0))
    return slopes[::-1]


def _outputs(layers: Layers, rows: Held) -> Array:
    """Return the network's outputs."""
    weight, bias = layers[0]
    return _signals(layers, rows.times(weight) + bias)[-1][:, 0]


def _linear_outputs(layers: Layers, step: Layers, rows: Held) -> Array:
    """Return the outputs and how they change along a step, to first order."""
    (weight, bias), (by_weight, by_bias) = layers[0], step[0]
    sums, change = rows.times(weight) + bias, rows.times(by_weight) + by_bias
    for (weight, bias), (by_weight, by_bias) in zip(layers[1:], step[1:], strict=True):
        signal, change = np.maximum(sums, 0), change * (sums > 0)
        change = change @ weight.T + signal @ by_weight.T + by_bias
        sums = signal @ weight.T + bias
    return np.asarray((sums + change)[:, 0])


# --- what the regressions of all features share -------------------------------------------------


@dataclass(frozen=True)
class Sheets:
    """The inputs' inner products plus one for the bias, and two arrays to write in.

    Of each only the lower triangle counts. Fresh arrays cost more than what is put in them, so
    the regressions of all features use the same.
    """

    gram: NDArray[np.floating]
    kernel: NDArray[np.floating]
    other: NDArray[np.floating]

    @classmethod
    def of(cls, Z: Array, kind: type[np.floating]) -> Sheets:
        """Return sheets for these rows in one precision."""
        shape = (len(Z), len(Z))
        gram, kernel, other = (np.zeros(shape, kind, order="F") for _ in range(3))
        gram += 1
        _add_products(Z, gram)
        return cls(gram, kernel, other)


def _add_products(
    rows: Array, onto: NDArray[np.floating], *, scale: float = 1.0, keep: float = 1.0
) -> None:
    """Make the lower triangle of `onto` keep · onto + scale · rows rowsᵀ."""
    (syrk,) = get_blas_funcs(("syrk",), (onto,))
    rows = np.ascontiguousarray(rows, dtype=onto.dtype)
    syrk(scale, rows.T, trans=1, lower=1, beta=keep, c=onto, overwrite_c=1)


@dataclass(frozen=True)
class Full:
    """The full network and what the regressions of all features share.

    `roots` are the square roots of the weights: a row and its slopes times its root make a
    weighted regression a plain one.
    """

    layers: Layers
    Z: Array
    goal: Array
    roots: Array

    @classmethod
    def of(cls, model: NeuralNetwork, train: Array, y: Array, weights: Array | None) -> Full:
        """Return the network beside its training rows, all standardised."""
        weights = np.ones(len(y)) if weights is None else weights
        parameters = model.parameters()
        return cls(
            layers=list(zip(parameters[::2], parameters[1::2], strict=True)),
            Z=_standardised(model, train),
            goal=(y - model.y_center) / model.y_scale,
            roots=np.sqrt(weights / weights.mean())[:, None],
        )

    @cached_property
    def products(self) -> Array:
        """Return the first layer's sums before the bias."""
        return np.asarray(self.Z @ self.layers[0][0].T)

    @cached_property
    def sheets(self) -> Sheets:
        """Return the sheets of all features, in single precision where refining is cheap."""
        n_rows, n_columns = self.Z.shape
        return Sheets.of(self.Z, np.float32 if n_columns < CHEAP * n_rows else np.float64)

    @property
    def n_parameters(self) -> int:
        return sum(weight.size + bias.size for weight, bias in self.layers)

    @property
    def few_parameters(self) -> bool:
        return self.n_parameters < len(self.Z)

    def blocks(self) -> Iterator[slice]:
        """Return the rows, so many at a time that their part of G is a modest array."""
        size = max(1, BLOCK // self.n_parameters)
        return (slice(first, first + size) for first in range(0, len(self.Z), size))

    def left(self, outputs: Array) -> Array:
        """Return what outputs leave of the goal, each row times its root."""
        return np.asarray(self.roots[:, 0] * (self.goal - outputs))


# --- the ridge regression of one feature --------------------------------------------------------


@dataclass(frozen=True)
class Refit:
    """The ridge regression that stands for a retraining without a feature.

    `signals` run from the first hidden layer up, `slopes` from the first layer's sums up.
    """

    full: Full
    rows: Held
    signals: list[Array]
    slopes: list[Array]
    left: Array

    @classmethod
    def of(cls, full: Full, columns: list[int]) -> Refit:
        """Return the regression with a feature's columns held at their mean."""
        rows = Held(full.Z, columns)
        weight, bias = full.layers[0]
        *signals, outputs = _signals(full.layers, rows.times(weight, full.products) + bias)
        slopes = _slopes(full.layers, [*signals, outputs], full.roots)
        return cls(full, rows, signals, slopes, full.left(outputs[:, 0]))

    def kernel(self, sheets: Sheets) -> NDArray[np.floating]:
        """Return the lower triangle of G Gᵀ, on a sheet that the next kernel overwrites."""
        K, other = sheets.kernel, sheets.other
        np.copyto(other, sheets.gram)
        if self.rows.columns:
            _add_products(self.rows.Z[:, self.rows.columns], other, scale=-1.0)
        _add_products(self.slopes[0], K, keep=0.0)
        K *= other
        for slope, signal in zip(self.slopes[1:-1], self.signals[:-1], strict=True):
            other.fill(1.0)
            _add_products(signal, other)
            products = np.zeros_like(K)
            _add_products(slope, products)
            K += products * other
        # The output's slopes are one column, so its outer products are those of scaled rows.
        _add_products(self.slopes[-1] * np.column_stack([self.signals[-1], np.ones(len(K))]), K)
        return K

    def gradients(self, rows: slice | NDArray[np.intp]) -> Array:
        """Return some rows of G itself, for networks small beside the rows."""
        blocks = []
        signals = [self.rows.some(rows), *(signal[rows] for signal in self.signals)]
        for slope, signal in zip(self.slopes, signals, strict=True):
            by_weight = slope[rows, :, None] * signal[:, None, :]
            blocks += [by_weight.reshape(len(signal), -1), slope[rows]]
        return np.hstack(blocks)

    def primal(self) -> Array:
        """Return Gᵀ G."""
        total = np.zeros((self.full.n_parameters,) * 2, order="F")
        for rows in self.full.blocks():
            G = self.gradients(rows)
            total += G.T @ G
        return total

    def step(self, coefficients: Array) -> Layers:
        """Return Gᵀ c, layer by layer; of the right coefficients that is Δθ."""
        slopes = [coefficients[:, None] * slope for slope in self.slopes]
        by_weight = [s.T @ signal for s, signal in zip(slopes[1:], self.signals, strict=True)]
        weights = [self.rows.gathered(slopes[0]), *by_weight]
        return [(weight, s.sum(axis=0)) for weight, s in zip(weights, slopes, strict=True)]

    def along(self, step: Layers) -> Array:
        """Return G ω for a step ω: how much it adds to each row's output, to first order."""
        (weight, bias), *upper = step
        total = np.einsum("ij,ij->i", self.slopes[0], self.rows.times(weight) + bias)
        for slope, signal, (weight, bias) in zip(self.slopes[1:], self.signals, upper, strict=True):
            total += np.einsum("ij,ij->i", slope, signal @ weight.T + bias)
        return np.asarray(total)

    def coefficients(self, alpha: float) -> Array:
        """Return c = (G Gᵀ + α)⁻¹ r."""
        if self.full.few_parameters:
            flat = _factorised(self.primal(), alpha)(_flat(self.step(self.left)))
            fitted = np.concatenate([self.gradients(rows) @ flat for rows in self.full.blocks()])
            # What the regression leaves over is αc, by whichever way it was solved.
            return np.asarray((self.left - fitted) / alpha)
        sheets = self.full.sheets
        if sheets.kernel.dtype == np.float32:
            refined = self._refined(alpha)
            if refined is not None:
                return refined
            sheets = Sheets.of(self.full.Z, np.float64)
        return _factorised(self.kernel(sheets), alpha)(self.left)

    def _refined(self, alpha: float) -> Array | None:
        """Return c by a factor in single precision, or None where that is too coarse.

        What c leaves of the equation is found in double precision and solved for again; each
        round leaves the same small share of it.
        """
        size = float(np.linalg.norm(self.left))
        if size == 0:
            return np.zeros_like(self.left)
        try:
            solve = _factorised(self.kernel(self.full.sheets), alpha)
        except LinAlgError:
            return None
        missing, share, c = self.left / size, 1.0, np.zeros_like(self.left)
        while True:
            c += share * solve(missing)
            left_over = self.left / size - alpha * c - self.along(self.step(c))
            now = float(np.linalg.norm(left_over))
            if now <= EXACT:
                return size * c
            if not now <= SLOW * share:
                return None
            missing, rate, share = left_over / now, now / share, now
            if rate * share <= EXACT:
                return size * (c + share * solve(missing))

    def spectrum(self, kind: type[np.floating]) -> tuple[Array, Coordinates]:
        """Return the eigenvalues of G Gᵀ that may not be zero, and what gives G's coordinates.

        The coordinates of some rows, (rows, values), have the inner products of G's rows; those
        of all rows are orthogonal. In single precision they serve a choice between penalties.
        """
        if self.full.few_parameters:
            values, vectors = eigh(self.primal(), driver="evd", check_finite=False)
            return np.maximum(values, 0), lambda rows: self.gradients(rows) @ vectors
        kernel = self.kernel(Sheets.of(self.full.Z, kind))
        if not np.isfinite(kernel).all():
            return self._in_double(kind)
        values, vectors = eigh(kernel, driver="evd", overwrite_a=True, check_finite=False)
        if kind is np.float32 and values[-1] > COARSE * ALPHAS[0]:
            return self._in_double(kind)
        values = np.maximum(values, 0)
        vectors *= np.sqrt(values)
        return values, lambda rows: vectors[rows]

    def _in_double(self, kind: type[np.floating]) -> tuple[Array, Coordinates]:
        """Return the spectrum where single precision does not do; raise where none does."""
        if kind is np.float64:
            raise LinAlgError("the network's slopes are too large to linearise it")
        return self.spectrum(np.float64)


def _flat(step: Layers) -> Array:
    """Return a step as one vector."""
    return np.concatenate([part.ravel() for layer in step for part in layer])


def _factorised(matrix: NDArray[np.floating], alpha: float) -> Callable[[Array], Array]:
    """Return what solves (matrix + α) c = right; the lower triangle is overwritten."""
    matrix.flat[:: len(matrix) + 1] += alpha
    factor, _ = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    (trsv,) = get_blas_funcs(("trsv",), (factor,))

    def solve(right: Array) -> Array:
        # Four times as quick as `cho_solve`, which is made for many columns.
        half = trsv(factor, right.astype(factor.dtype), lower=1, overwrite_x=1)
        return np.asarray(trsv(factor, half, lower=1, trans=1, overwrite_x=1), float)

    return solve


# --- the penalty --------------------------------------------------------------------------------


def _alpha_for_all(full: Full, owned: Owned, choose: str | float) -> float | None:
    """Return the one α for all features; None where each is to have its own.

    It is found where it matters most: for the feature whose absence costs the network most.
    """
    if not isinstance(choose, str):
        return float(choose)
    features = [list(columns) for columns in owned if columns]
    if choose == "each" or not features:
        return None
    costliest = max(features, key=lambda columns: _loss_without(full, columns))
    n_rows = len(full.Z)
    folds = [np.arange(k, n_rows, N_FOLDS) for k in range(N_FOLDS)] if choose == "cv" else None
    return best_alpha(Refit.of(full, columns=costliest), folds)


def _loss_without(full: Full, columns: list[int]) -> float:
    weight, bias = full.layers[0]
    sums = Held(full.Z, columns).times(weight, full.products) + bias
    return float((full.left(_signals(full.layers, sums)[-1][:, 0]) ** 2).sum())


def best_alpha(refit: Refit, folds: Iterable[Rows] | None = None) -> float:
    """Return the α of least error on rows left out, one at a time or fold by fold."""
    return float(ALPHAS[int(np.argmin(left_out_losses(refit, ALPHAS, folds, np.float32)))])


def left_out_losses(
    refit: Refit,
    alphas: Array,
    folds: Iterable[Rows] | None = None,
    kind: type[np.floating] = np.float64,
) -> Array:
    """Return for each α the squared error on rows left out, exactly and without refitting.

    With e what the fit leaves over and H its hat matrix, a fit without the rows F leaves
    (I − H_FF)⁻¹ e_F there. One spectrum serves all α.
    """
    values, coordinates = refit.spectrum(kind)
    blocks, left = list(refit.full.blocks()), refit.left.astype(values.dtype)
    right = np.sum([coordinates(rows).T @ left[rows] for rows in blocks], axis=0)
    scales = 1 / (values[:, None] + alphas.astype(values.dtype))
    losses = np.zeros(len(alphas))
    for rows in blocks if folds is None else folds:
        x = coordinates(rows)
        errors = left[rows, None] - x @ (right[:, None] * scales)
        if folds is None:
            left_out = errors / (1 - x**2 @ scales)
        else:
            left_out = np.column_stack([*map(partial(_left_out, x), errors.T, scales.T)])
        losses += (left_out**2).sum(axis=0)
    return losses


def _left_out(x: Array, errors: Array, scales: Array) -> Array:
    """Return (I − x scales xᵀ)⁻¹ errors, by the smaller of two matrices."""
    if len(errors) <= len(scales):
        return np.asarray(np.linalg.solve(np.eye(len(errors)) - (x * scales) @ x.T, errors))
    return np.asarray(errors + x @ np.linalg.solve(np.diag(1 / scales) - x.T @ x, x.T @ errors))


# --- the step -----------------------------------------------------------------------------------


def _stepped(
    full: Full, columns: list[int], Z: Array, alpha: float | None, linearised: bool
) -> Array:
    """Return the outputs at standardised rows of the network refitted with columns held."""
    rows = Held(Z, columns)
    refit = Refit.of(full, columns)
    alpha = best_alpha(refit) if alpha is None else alpha
    coefficients = refit.coefficients(alpha)
    step = refit.step(coefficients)
    if not linearised:
        moved = [(w + dw, b + db) for (w, b), (dw, db) in zip(full.layers, step, strict=True)]
        promised = alpha**2 * float(coefficients @ coefficients)
        if _holds(refit, moved, promised):
            return _outputs(moved, rows)
    return _linear_outputs(full.layers, step, rows)


def _holds(refit: Refit, moved: Layers, promised: float) -> bool:
    """Return whether the moved network fits its rows about as well as its linear form does.

    A long step leaves the region where a network is nearly linear, and may end anywhere.
    """
    before = float(refit.left @ refit.left)
    after = refit.full.left(_outputs(moved, refit.rows))
    return bool(before - after @ after >= ENOUGH * (before - promised))
