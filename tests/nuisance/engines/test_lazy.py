"""Lazy-VI: the linearised refit is the ridge regression it claims to be, sooner."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

import covaria
from covaria.errors import InputError
from covaria.learners.estimators.network import NeuralNetwork
from covaria.nuisance.engines import lazy
from covaria.nuisance.engines.lazy import (
    ALPHAS,
    Full,
    Refit,
    _holds,
    best_alpha,
    chosen_alpha,
    lazy_predictions,
    left_out_losses,
)
from covaria.nuisance.plan import Lazy
from cpu_time import least_seconds

torch = pytest.importorskip("torch")

SINGLES = [(0,), (1,), (2,), (3,), (4,)]
GROUPS = [(0, 3), (1,), (2, 4)]
HIDDEN = {"one layer": (9,), "two layers": (7, 5), "three layers": (6, 5, 4)}


def tables(n_train=60, n_test=25, n_columns=5, seed=0):
    """Return training rows, their target and test rows; columns 0 and 1 go together."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_train + n_test, n_columns)) * [3, 1, 2, 1, 5][:n_columns]
    X[:, 1] += X[:, 0] / 3
    y = 40 + 7 * X[:, 0] + 3 * X[:, 1] ** 2 + rng.normal(size=len(X))
    return X[:n_train], y[:n_train], X[n_train:]


def network(train, y, hidden=(9,), weights=None, epochs=30):
    return NeuralNetwork(hidden=hidden, batch=32, epochs=epochs, lr=1e-2).fit(train, y, weights)


def with_parameters(layers, flat, X):
    """Return a torch network's outputs, its parameters given as one flat vector."""
    start = 0
    for at, (n_out, n_in) in enumerate(layers):
        weight = flat[start : start + n_out * n_in].view(n_out, n_in)
        bias = flat[start + n_out * n_in : start + n_out * (n_in + 1)]
        start += n_out * (n_in + 1)
        X = X @ weight.T + bias
        X = X.relu() if at < len(layers) - 1 else X
    return X[:, 0]


class BruteForce:
    """A feature's refit by torch's own gradients and scikit-learn's own ridge regression."""

    def __init__(self, model, train, y, test, columns, weights=None):
        self.model, parameters = model, model.parameters()
        self.layers = [p.shape for p in parameters[::2]]
        self.flat = torch.from_numpy(np.concatenate([p.ravel() for p in parameters]))
        means = np.average(train, axis=0, weights=weights)
        held, self.test = (self.rows(X, columns, means) for X in (train, test))
        self.weights = np.ones(len(y)) if weights is None else weights / weights.mean()
        self.G, outputs = self.gradients(held), self.outputs(self.flat, held)
        self.left = (y - model.y_center) / model.y_scale - outputs

    def rows(self, X, columns, means):
        X, columns = X.copy(), list(columns)
        X[:, columns] = means[columns]
        return torch.from_numpy((X - self.model.center) / self.model.scale)

    def outputs(self, flat, rows):
        return with_parameters(self.layers, flat, rows).numpy()

    def gradients(self, rows):
        def of_one(flat, row):
            return with_parameters(self.layers, flat, row[None])[0]

        return torch.func.vmap(torch.func.grad(of_one), (None, 0))(self.flat, rows).numpy()

    def step(self, alpha, rows=slice(None)):
        ridge = Ridge(alpha=alpha, fit_intercept=False, solver="cholesky")
        G, left, weights = self.G[rows], self.left[rows], self.weights[rows]
        return ridge.fit(G, left, sample_weight=weights).coef_

    def primal_step(self, alpha):
        weighted = self.G * self.weights[:, None]
        penalty = alpha * np.eye(self.G.shape[1])
        return np.linalg.solve(weighted.T @ self.G + penalty, weighted.T @ self.left)

    def predictions(self, step, linearised=False):
        if linearised:
            outputs = self.outputs(self.flat, self.test) + self.gradients(self.test) @ step
        else:
            outputs = self.outputs(self.flat + torch.from_numpy(step), self.test)
        return self.model.y_center + self.model.y_scale * outputs


def refit_of(model, train, y, columns, weights=None):
    return Refit.of(Full.of(model, train, y, weights), list(columns))


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weights"])
@pytest.mark.parametrize("owned", [SINGLES, GROUPS], ids=["singles", "groups"])
@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN)
@pytest.mark.parametrize("linearised", [False, True], ids=["network", "linearised"])
def test_predictions_are_those_of_a_ridge_regression_on_torchs_gradients(
    hidden, owned, weighted, linearised
):
    train, y, test = tables()
    weights = np.random.default_rng(1).integers(0, 4, len(y)).astype(float) if weighted else None
    model = network(train, y, hidden, weights)
    ours = lazy_predictions(
        model, train, y, test, owned, weights=weights, settings=Lazy(300.0, linearised)
    )
    for j, columns in enumerate(owned):
        slow = BruteForce(model, train, y, test, columns, weights)
        assert ours[:, j] == pytest.approx(slow.predictions(slow.step(300.0), linearised), abs=1e-8)
        theirs = slow.predictions(slow.primal_step(300.0), linearised)
        assert ours[:, j] == pytest.approx(theirs, abs=1e-8)


# Few rows have the kernel in double precision, small networks G itself, here in blocks.
@pytest.mark.parametrize(
    ("n_train", "hidden"), [(60, (50,)), (18, (50,)), (60, (3,)), (60, (3, 2))], ids=str
)
def test_the_step_is_that_of_scikit_learns_ridge_without_intercept(n_train, hidden, monkeypatch):
    monkeypatch.setattr(lazy, "BLOCK", 300)
    train, y, test = tables(n_train)
    model = network(train, y, hidden)
    refit, slow = refit_of(model, train, y, (1,)), BruteForce(model, train, y, test, (1,))
    assert refit.full.few_parameters == (hidden != (50,))
    assert refit.full.sheets.kernel.dtype == (np.float64 if n_train == 18 else np.float32)
    for alpha in (1.0, 37.0):
        step = refit.step(refit.coefficients(alpha))
        flat = np.concatenate([np.r_[weight.ravel(), bias] for weight, bias in step])
        assert flat == pytest.approx(slow.step(alpha), abs=1e-8)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weights"])
@pytest.mark.parametrize(
    ("n_rows", "hidden"),
    [(30, (12,)), (30, (3,)), (80, (2,))],
    ids=["dual", "primal", "many rows"],
)
def test_leaving_rows_out_by_formula_is_leaving_them_out(n_rows, hidden, weighted):
    train, y, test = tables(n_rows)
    weights = np.random.default_rng(2).integers(1, 4, len(y)).astype(float) if weighted else None
    model = network(train, y, hidden, weights)
    slow = BruteForce(model, train, y, test, (0,), weights)
    refit = refit_of(model, train, y, (0,), weights)
    folds = [np.arange(k, n_rows, 5) for k in range(5)]
    for ours, left_out in ((None, np.arange(n_rows)[:, None]), (folds, folds)):
        losses = left_out_losses(refit, ALPHAS[::5], ours)
        refitted = [refitted_loss(slow, alpha, left_out) for alpha in ALPHAS[::5]]
        assert losses == pytest.approx(refitted, rel=1e-8)


def refitted_loss(slow, alpha, folds):
    """Return the squared error on each fold of rows of a regression on the other rows."""
    loss = 0.0
    for rows in folds:
        step = slow.step(alpha, np.setdiff1d(np.arange(len(slow.G)), rows))
        loss += slow.weights[rows] @ (slow.left[rows] - slow.G[rows] @ step) ** 2
    return loss


def test_the_penalty_is_chosen_once_for_the_feature_that_matters_most():
    train, y, test = tables()
    model = network(train, y)
    costliest = max(SINGLES, key=lambda c: (BruteForce(model, train, y, test, c).left ** 2).sum())
    alpha = best_alpha(refit_of(model, train, y, costliest))
    chosen = lazy_predictions(model, train, y, test, SINGLES)
    assert alpha == chosen_alpha(model, train, y, SINGLES)
    assert (chosen == lazy_predictions(model, train, y, test, SINGLES, settings=Lazy(alpha))).all()


def test_each_feature_may_have_a_penalty_of_its_own():
    train, y, test = tables()
    model = network(train, y)
    each = lazy_predictions(model, train, y, test, SINGLES, settings=Lazy("each"))
    for j, columns in enumerate(SINGLES):
        alpha = best_alpha(refit_of(model, train, y, columns))
        alone = lazy_predictions(model, train, y, test, [columns], settings=Lazy(alpha))
        assert (each[:, [j]] == alone).all()
    with pytest.raises(InputError, match="No α serves all"):
        chosen_alpha(model, train, y, SINGLES, choose="each")


def test_cross_validation_chooses_from_the_grid():
    train, y, test = tables()
    model = network(train, y)
    by_folds = lazy_predictions(model, train, y, test, SINGLES, settings=Lazy("cv"))
    from_grid = [lazy_predictions(model, train, y, test, SINGLES, settings=Lazy(a)) for a in ALPHAS]
    assert any((by_folds == answers).all() for answers in from_grid)


def test_a_step_that_goes_astray_gives_way_to_its_linear_form():
    train, y, test = tables(n_train=200)
    model = network(train, y, hidden=(50,))
    refit = refit_of(model, train, y, (0,))
    astray = [(weight * 1e200, bias) for weight, bias in refit.full.layers]
    assert _holds(refit, refit.full.layers, promised=float(refit.left @ refit.left))
    with np.errstate(all="ignore"):
        assert not _holds(refit, astray, promised=0.0)
    # So small a penalty makes for a step far beyond where the network is linear.
    far, straight = (
        lazy_predictions(model, train, y, test, [(0,)], settings=Lazy(1e-3, linearised))
        for linearised in (False, True)
    )
    assert (far == straight).all()


def test_single_precision_chooses_the_same_penalty():
    for seed in range(3):
        train, y, _ = tables(n_train=200, seed=seed)
        refit = refit_of(network(train, y, hidden=(50,)), train, y, (0,))
        fine, coarse = (left_out_losses(refit, ALPHAS, kind=k) for k in (np.float64, np.float32))
        assert coarse == pytest.approx(fine, rel=1e-3)
        assert best_alpha(refit) == ALPHAS[np.argmin(fine)]


@pytest.mark.parametrize(("factor", "alpha"), [(1e4, 1.0), (1e25, 1e48)], ids=["coarse", "over"])
def test_where_single_precision_does_not_do_double_does(factor, alpha):
    train, y, test = tables()
    model = network(train, y, hidden=(50,))
    # ReLU lets a factor through: this network answers as before, its slopes are far apart.
    weight, bias, top, top_bias = model.parameters()
    model._parameters = [factor * weight, factor * bias, top / factor, top_bias]
    refit, slow = refit_of(model, train, y, (0,)), BruteForce(model, train, y, test, (0,))
    assert refit.spectrum(np.float32)[0].dtype == np.float64
    with np.errstate(all="ignore"):
        assert refit._refined(alpha) is None
        ours = refit.coefficients(alpha)
    expected = np.linalg.solve(slow.G @ slow.G.T + alpha * np.eye(60), slow.left)
    assert ours == pytest.approx(expected, rel=1e-4, abs=1e-6 * np.abs(expected).max())


def test_slopes_too_large_for_any_precision_are_told():
    train, y, test = tables()
    model = network(train, y, hidden=(50,))
    model._parameters[2] = model._parameters[2] * 1e200
    with pytest.raises(np.linalg.LinAlgError, match="too large to linearise"):
        lazy_predictions(model, train, y, test, SINGLES)


def test_a_small_penalty_never_gives_gaps():
    train, y, test = tables(n_train=40)
    for hidden in HIDDEN.values():
        model = network(train, y, hidden)
        answers = lazy_predictions(model, train, y, test, SINGLES, settings=Lazy(1e-6))
        assert np.isfinite(answers).all()


def test_a_heavy_penalty_leaves_dropout():
    train, y, test = tables()
    model = network(train, y)
    dropped = test.copy()
    dropped[:, 2] = train[:, 2].mean()
    lazy = lazy_predictions(model, train, y, test, [(2,)], settings=Lazy(1e14))[:, 0]
    assert lazy == pytest.approx(model.predict(dropped), abs=1e-8)


def test_the_full_network_can_take_a_step_of_its_own():
    train, y, test = tables()
    model = network(train, y)
    slow = BruteForce(model, train, y, test, ())
    ours = lazy_predictions(model, train, y, test, [()], settings=Lazy(300.0))[:, 0]
    assert ours == pytest.approx(slow.predictions(slow.step(300.0)), abs=1e-8)


def test_a_feature_without_columns_changes_no_other():
    train, y, test = tables()
    model = network(train, y)
    answers = lazy_predictions(model, train, y, test, [(), (1,)])
    assert (answers[:, [1]] == lazy_predictions(model, train, y, test, [(1,)])).all()
    alpha = chosen_alpha(model, train, y, [(1,)])
    own = lazy_predictions(model, train, y, test, [()], settings=Lazy(alpha))
    assert (answers[:, [0]] == own).all()
    assert lazy_predictions(model, train, y, test, [()]).shape == (len(test), 1)


def test_without_any_columns_the_mean_is_predicted():
    _, y, _ = tables()
    nothing = np.empty((len(y), 0))
    model = NeuralNetwork().fit(nothing, y)
    answers = lazy_predictions(model, nothing, y, nothing[:4], [(), ()])
    assert answers == pytest.approx(np.full((4, 2), y.mean()))


def test_the_only_feature_leaves_a_constant():
    train, y, test = (a[:, :1] if a.ndim == 2 else a for a in tables())
    answers = lazy_predictions(network(train, y), train, y, test, [(0,)])
    assert np.ptp(answers) < 1e-10


def test_columns_that_do_not_vary_and_twins_do_no_harm():
    train, y, test = tables()
    train[:, 3], test[:, 3] = 2.0, 2.0
    train[:, 4], test[:, 4] = train[:, 0], test[:, 0]
    model = network(train, y)
    answers = lazy_predictions(model, train, y, test, SINGLES, settings=Lazy(1.0))
    assert np.isfinite(answers).all()


def test_classes_are_refused():
    train, y, test = tables()
    model = NeuralNetwork(n_classes=2, epochs=1).fit(train, (y > np.median(y)).astype(float))
    with pytest.raises(InputError, match="lazy is for a target of numbers"):
        lazy_predictions(model, train, y, test, SINGLES)


@pytest.mark.parametrize("choose", ["gcv", 0.0, -1.0, float("nan"), float("inf")])
def test_a_penalty_that_makes_no_sense_is_refused(choose):
    train, y, test = tables()
    model = network(train, y, epochs=1)
    with pytest.raises(InputError, match="must be 'loo', 'cv', 'each' or a number"):
        lazy_predictions(model, train, y, test, SINGLES, settings=Lazy(choose))


def test_all_features_take_less_than_half_of_as_many_explicit_regressions():
    X, y = covaria.draw("additive", n_rows=1000, seed=0)
    train, test, y = X.to_numpy()[:670], X.to_numpy()[670:], y.to_numpy()[:670]
    model = NeuralNetwork(epochs=20).fit(train, y)
    owned = [(j,) for j in range(20)]
    ours = least_seconds(lambda: lazy_predictions(model, train, y, test, owned))
    slow = BruteForce(model, train, y, test, (0,))
    with threadpool_limits(1):
        explicit = 20 * least_seconds(lambda: slow.primal_step(10.0))
    assert ours < explicit / 2
