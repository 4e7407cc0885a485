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
product a layer. All of it happens in the network's standardised units.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh, svd
from threadpoolctl import threadpool_limits

from residua.data import Rows
from residua.engines import Array
from residua.errors import InputError
from residua.estimators.network import NeuralNetwork

# A layer's weight, (out, in), and bias, (out,); a network is a list of them.
Layer = tuple[Array, Array]
Layers = list[Layer]

ALPHAS = np.logspace(0, 3, 16)
CHOICES = ("loo", "cv", "each")
N_FOLDS = 5
# The share of the training loss a step is to save, of what its linear form says it saves.
ENOUGH = 0.5


def lazy_predictions(
    model: NeuralNetwork,
    train: Array,
    y: Array,
    test: Array,
    owned: Sequence[tuple[int, ...]],
    *,
    weights: Array | None = None,
    choose: str | float = "loo",
    linearised: bool = False,
) -> Array:
    """Return predictions for the test rows without each feature in turn, (n_test, n_features).

    Parameters
    ----------
    model : the full network, fitted to `train`, `y` and `weights`.
    train, y, test : the rows it learned from, their target, and the rows to predict.
    owned : the columns of each feature; one without columns gets the full network's answers.
    weights : of the training rows.
    choose : how α is found. "loo": leave-one-out error, once, for the feature whose absence costs
        the network most; "cv": the same by 5 folds; "each": leave-one-out for every feature; or α.
    linearised : predict by the linear form itself, not by the network at θ + Δθ.
    """
    _check(model, choose)
    if not model.parameters():
        return np.tile(model.predict(test)[:, None], len(owned))
    with threadpool_limits(1), np.errstate(all="ignore"):  # one thread: the same bits everywhere
        full, Z = Full.of(model, train, y, weights), _standardised(model, test)
        alpha = _alpha_for_all(full, owned, choose)
        outputs = [
            _stepped(full, list(columns), Z, alpha, linearised)
            if columns
            else _outputs(full.layers, full.held(Z, []))
            for columns in owned
        ]
        return np.asarray(model.y_center + model.y_scale * np.column_stack(outputs))


def chosen_alpha(
    model: NeuralNetwork,
    train: Array,
    y: Array,
    owned: Sequence[tuple[int, ...]],
    *,
    weights: Array | None = None,
    choose: str = "loo",
) -> float:
    """Return the α that `lazy_predictions` uses for all features, by "loo" or "cv"."""
    _check(model, choose)
    with threadpool_limits(1), np.errstate(all="ignore"):
        alpha = _alpha_for_all(Full.of(model, train, y, weights), owned, choose)
    if alpha is None:
        raise InputError("No α serves all features. Use 'loo' or 'cv', and features with columns.")
    return alpha


def stepped_predictions(
    model: NeuralNetwork,
    train: Array,
    y: Array,
    test: Array,
    alpha: float,
    *,
    weights: Array | None = None,
) -> Array:
    """Return predictions of the full network after a step of its own, no feature held.

    Where training stopped early every step also goes on training. This one does so with all
    features, and is the fair rival of the steps that do so without one.
    """
    _check(model, alpha)
    if not model.parameters():
        return model.predict(test)
    with threadpool_limits(1), np.errstate(all="ignore"):
        full, Z = Full.of(model, train, y, weights), _standardised(model, test)
        return np.asarray(model.y_center + model.y_scale * _stepped(full, [], Z, alpha, False))


def _check(model: NeuralNetwork, choose: str | float) -> None:
    if model.n_classes:
        raise InputError("Lazy-VI is for a target of numbers. For classes use LOCO or dropout.")
    known = choose in CHOICES if isinstance(choose, str) else 0 < choose < np.inf
    if not known:
        raise InputError(f"choose={choose!r} must be 'loo', 'cv', 'each' or a number above 0.")


# --- a network and its slopes -------------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """Standardised rows with some columns at given values, kept as the rows and the difference."""

    Z: Array
    columns: list[int]
    values: Array

    @cached_property
    def change(self) -> Array:
        return np.asarray(self.values - self.Z[:, self.columns])

    def times(self, weight: Array, before: Array | None = None) -> Array:
        """Return rows · weightᵀ; `before` is that product with no column held, if known."""
        before = self.Z @ weight.T if before is None else before
        return np.asarray(before + self.change @ weight[:, self.columns].T)

    def gathered(self, slopes: Array) -> Array:
        """Return slopesᵀ · rows."""
        product = slopes.T @ self.Z
        product[:, self.columns] = np.outer(slopes.sum(axis=0), self.values)
        return np.asarray(product)


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


# --- the ridge regression of one feature --------------------------------------------------------


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
    means: Array

    @classmethod
    def of(cls, model: NeuralNetwork, train: Array, y: Array, weights: Array | None) -> Full:
        """Return the network beside its training rows, all standardised."""
        weights = np.ones(len(y)) if weights is None else weights
        shares = weights / weights.sum()
        parameters = model.parameters()
        Z = _standardised(model, train)
        return cls(
            layers=list(zip(parameters[::2], parameters[1::2], strict=True)),
            Z=Z,
            goal=(y - model.y_center) / model.y_scale,
            roots=np.sqrt(len(y) * shares)[:, None],
            means=shares @ Z,
        )

    def held(self, Z: Array, columns: list[int]) -> Held:
        """Return rows with these columns at their training mean."""
        return Held(Z, columns, self.means[columns])

    @cached_property
    def products(self) -> Array:
        """Return the first layer's sums before the bias."""
        return np.asarray(self.Z @ self.layers[0][0].T)

    @cached_property
    def gram(self) -> Array:
        return np.asarray(self.Z @ self.Z.T)

    @cached_property
    def sheets(self) -> tuple[Array, Array]:
        """Return two n × n arrays to write in: fresh ones cost more than what is put in them."""
        return np.empty_like(self.gram), np.empty_like(self.gram)

    @property
    def few_parameters(self) -> bool:
        return sum(w.size + b.size for w, b in self.layers) < len(self.Z)

    def left(self, outputs: Array) -> Array:
        """Return what outputs leave of the goal, each row times its root."""
        return np.asarray(self.roots[:, 0] * (self.goal - outputs))


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
        rows = full.held(full.Z, columns)
        weight, bias = full.layers[0]
        *signals, outputs = _signals(full.layers, rows.times(weight, full.products) + bias)
        slopes = _slopes(full.layers, [*signals, outputs], full.roots)
        return cls(full, rows, signals, slopes, full.left(outputs[:, 0]))

    def kernel(self) -> Array:
        """Return G Gᵀ, on a sheet that the next kernel overwrites."""
        K, sheet = self.full.sheets
        np.matmul(self.slopes[0], self.slopes[0].T, out=K)
        K *= self._gram(sheet)
        for slope, signal in zip(self.slopes[1:-1], self.signals[:-1], strict=True):
            K += np.matmul(slope, slope.T) * (np.matmul(signal, signal.T, out=sheet) + 1)
        # The output's slopes are one column, so its outer products are those of scaled rows.
        top = self.slopes[-1] * np.column_stack([self.signals[-1], np.ones(len(K))])
        K += np.matmul(top, top.T, out=sheet)
        return K

    def _gram(self, sheet: Array) -> Array:
        """Return the inner products of the inputs, plus one for the bias."""
        own = self.rows.Z[:, self.rows.columns]
        np.matmul(own, own.T, out=sheet)
        np.subtract(self.full.gram, sheet, out=sheet)
        sheet += 1 + self.rows.values @ self.rows.values
        return sheet

    def gradients(self) -> Array:
        """Return G itself, (n, parameters): for networks small beside the rows."""
        held = self.rows.Z.copy()
        held[:, self.rows.columns] = self.rows.values
        blocks = []
        for slope, signal in zip(self.slopes, [held, *self.signals], strict=True):
            by_weight = slope[:, :, None] * signal[:, None, :]
            blocks += [by_weight.reshape(len(held), -1), slope]
        return np.hstack(blocks)

    def coefficients(self, alpha: float) -> Array:
        """Return c = (G Gᵀ + α)⁻¹ r."""
        if self.full.few_parameters:
            G = self.gradients()
            # What the regression leaves over is αc, by whichever way it was solved.
            return (self.left - G @ _solved(G.T @ G, alpha, G.T @ self.left)) / alpha
        return _solved(self.kernel(), alpha, self.left)

    def step(self, coefficients: Array) -> Layers:
        """Return Δθ = Gᵀ c, layer by layer."""
        slopes = [coefficients[:, None] * slope for slope in self.slopes]
        by_weight = [s.T @ signal for s, signal in zip(slopes[1:], self.signals, strict=True)]
        weights = [self.rows.gathered(slopes[0]), *by_weight]
        return [(weight, s.sum(axis=0)) for weight, s in zip(weights, slopes, strict=True)]

    def spectrum(self) -> tuple[Array, Array]:
        """Return the eigenvalues of G Gᵀ, those that may not be zero, and their vectors."""
        if self.full.few_parameters:
            vectors, roots, _ = svd(self.gradients(), full_matrices=False, check_finite=False)
            return roots**2, vectors
        values, vectors = eigh(self.kernel().T, driver="evd", overwrite_a=True, check_finite=False)
        return np.maximum(values, 0), vectors


def _solved(matrix: Array, alpha: float, right: Array) -> Array:
    """Return (matrix + α)⁻¹ right; the symmetric matrix is overwritten."""
    matrix.flat[:: len(matrix) + 1] += alpha
    factor = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(cho_solve(factor, right, check_finite=False))


# --- the penalty --------------------------------------------------------------------------------


def _alpha_for_all(
    full: Full, owned: Sequence[tuple[int, ...]], choose: str | float
) -> float | None:
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
    sums = full.held(full.Z, columns).times(weight, full.products) + bias
    return float((full.left(_signals(full.layers, sums)[-1][:, 0]) ** 2).sum())


def best_alpha(refit: Refit, folds: Iterable[Rows] | None = None) -> float:
    """Return the α of least error on rows left out, one at a time or fold by fold."""
    return float(ALPHAS[int(np.argmin(left_out_losses(refit, ALPHAS, folds)))])


def left_out_losses(refit: Refit, alphas: Array, folds: Iterable[Rows] | None = None) -> Array:
    """Return for each α the squared error on rows left out, exactly and without refitting.

    With e what the fit leaves over and H its hat matrix, a fit without the rows F leaves
    (I − H_FF)⁻¹ e_F there. One spectrum serves all α.
    """
    values, vectors = refit.spectrum()
    losses = []
    for alpha in alphas:
        shrinkage = values / (values + alpha)
        errors = refit.left - vectors @ (shrinkage * (vectors.T @ refit.left))
        if folds is None:
            left_out = errors / (1 - vectors**2 @ shrinkage)
        else:
            left_out = np.concatenate(
                [_left_out(errors[rows], vectors[rows], shrinkage) for rows in folds]
            )
        losses.append(float((left_out**2).sum()))
    return np.array(losses)


def _left_out(errors: Array, vectors: Array, shrinkage: Array) -> Array:
    hat = (vectors * shrinkage) @ vectors.T
    return np.asarray(np.linalg.solve(np.eye(len(errors)) - hat, errors))


# --- the step -----------------------------------------------------------------------------------


def _stepped(
    full: Full, columns: list[int], Z: Array, alpha: float | None, linearised: bool
) -> Array:
    """Return the outputs at standardised rows of the network refitted with columns held."""
    rows = full.held(Z, columns)
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
