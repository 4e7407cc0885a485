"""At the true regressions every method's scores have the moments the theory says.

`fixtures/oracle_scores.csv` holds exact population values (analytic moments and quadrature) of
the paper's models (a), (b), (c) and (f).
"""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from covaria.methods import METHODS as ALL_METHODS
from covaria.nuisance.residuals import Residuals
from covaria.simulation.scenarios import CURVES, scenario
from covaria.tables.dataset import Dataset
from covaria.tables.layout import Feature

CHUNK = 50_000
COLUMNS = {
    "gcm": ("psi_gcm", "var_gcm"),
    "loco": ("psi_loco", "var_loco"),
    "dropout": ("psi_drop", "var_drop"),
    "permutation": ("psi_perm", "var_perm_naive"),
}
METHODS = {name: ALL_METHODS[name] for name in COLUMNS}
HEAVY_TAILS = ["nu=3", "nu=5", "nu=10", "nu=15", "nu=30", "nu=inf"]


def oracle(model, param=""):
    path = Path(__file__).parent / "fixtures" / "oracle_scores.csv"
    with path.open(encoding="utf-8") as file:
        rows = [r for r in csv.DictReader(file) if r["model"] == model and param in r["param"]]
    names = [name for pair in COLUMNS.values() for name in pair]
    return {
        int(row["feature"]) - 1: {name: float(row[name] or "nan") for name in names} for row in rows
    }


def normal_mean(curve):
    return quad(lambda x: curve(np.array(x)) * norm.pdf(x), -12, 12, points=[0], limit=500)[0]


def linear_effect(X, j):
    beta = np.array([0.01, 0.1, 1, 1, 1.5, 2, 3, 4])
    return (beta[j] * linear_left(X, j)) if j < 8 else np.zeros(len(X))


def linear_left(X, j):
    other = {2: 3, 3: 2}.get(j)
    return X[:, j] - (0.5 * X[:, other] if other else 0.0)


MEANS = [normal_mean(curve) for curve in CURVES]
LOG_MEAN = normal_mean(lambda x: np.log(np.abs(x) + 1))


def additive_effect(X, j):
    return CURVES[j](X[:, j]) - MEANS[j] if j < 8 else np.zeros(len(X))


def interaction_effect(X, j):
    x1, x2, x3, x4, x5, x6, x7, x8 = X[:, :8].T
    damped = np.exp(-0.5)
    effects = [
        lambda: 2 * np.sin(x1) + 3 * x1 * x2,
        lambda: np.log(np.abs(x2) + 1) - LOG_MEAN + 3 * x1 * x2,
        lambda: np.cos(x3 + x4) - damped * np.cos(x4),
        lambda: np.cos(x3 + x4) - damped * np.cos(x3),
        lambda: x5**3,
        *[lambda: x6 * x7 * x8] * 3,
    ]
    return effects[j]() if j < 8 else np.zeros(len(X))


def heavy_effect(X, j):
    x = X[:, j]
    curves = [
        lambda: x,
        lambda: 1.5 * np.sin(x),
        lambda: 2.0 * (x > 0) - 1,
        lambda: np.tanh(x),
        lambda: 0.6 * x**3,
    ]
    return curves[j]() if j < 5 else np.zeros(len(X))


def as_it_is(X, j):
    return X[:, j]


def oracle_residuals(model, effect, left, features, seed):
    """Return what the true regressions leave over for one chunk of draws."""
    rng = np.random.default_rng(seed)
    X = model.features(rng, CHUNK)
    noise = model.noise * rng.standard_normal(CHUNK)
    mean = model.mean(X)
    order = rng.permutation(CHUNK)
    shape = (CHUNK, len(features))
    arrays = {name: np.empty(shape) for name in ("x_given_rest", "y_given_rest")}
    arrays |= {name: np.empty(shape) for name in ("loss_dropped", "loss_permuted")}
    for at, j in enumerate(features):
        arrays["x_given_rest"][:, at] = left(X, j)
        arrays["y_given_rest"][:, at] = noise + effect(X, j)
        for name, values in (("loss_dropped", 0.0), ("loss_permuted", X[order, j])):
            altered = X.copy()
            altered[:, j] = values
            arrays[name][:, at] = (mean + noise - model.mean(altered)) ** 2
    arrays["loss_given_rest"] = arrays["y_given_rest"] ** 2
    arrays["loss_given_all"] = noise**2
    named = tuple(Feature(f"x{j + 1}", "number", (at,)) for at, j in enumerate(features))
    data = Dataset(X[:, features], mean + noise, named)
    return Residuals(data, np.arange(CHUNK), arrays)


def moments(model, effect, left, features, n_draws):
    """Return, per method, the mean, the central moments 2 to 4 and the draws behind them."""
    sums = dict.fromkeys(METHODS, 0.0)
    shift = {}
    for chunk in range(n_draws // CHUNK):
        residuals = oracle_residuals(model, effect, left, features, seed=chunk)
        for name, method in METHODS.items():
            scores = method.score(residuals, np.random.default_rng(0))
            shift.setdefault(name, scores.mean(axis=0))
            centred = scores - shift[name]
            sums[name] += np.array([(centred**k).sum(axis=0) for k in (1, 2, 3, 4)])
    return {name: central(sums[name] / n_draws, shift[name]) for name in METHODS}


def central(raw, shift):
    m1, m2, m3, m4 = raw
    variance = m2 - m1**2
    third = m3 - 3 * m1 * m2 + 2 * m1**3
    fourth = m4 - 4 * m1 * m3 + 6 * m1**2 * m2 - 3 * m1**4
    return shift + m1, variance, third, fourth


CASES = {
    "a": (scenario("a"), linear_effect, linear_left, ""),
    "b": (scenario("b"), additive_effect, as_it_is, ""),
    "c": (scenario("c"), interaction_effect, as_it_is, ""),
    **{
        nu: (scenario("f", df=float(nu[3:])), heavy_effect, as_it_is, nu)
        for nu in HEAVY_TAILS
    },
}  # fmt: skip


def has_enough_moments(case, name, j):
    """Return whether the sample variance itself has a variance: t-distributed x may lack it."""
    if not case.startswith("nu") or case == "nu=inf":
        return True
    return j not in (0, 4) and (name != "gcm" or float(case[3:]) > 5)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.slow) if case in HEAVY_TAILS[1:5] else case
        for case in CASES
    ],
)
@pytest.mark.parametrize("n_draws", [200_000, pytest.param(2_000_000, marks=pytest.mark.slow)])
def test_scores_at_the_truth_have_the_moments_of_the_theory(case, n_draws):
    model, effect, left, param = CASES[case]
    truth = oracle(case if len(case) == 1 else "f", param + "," if param else "")
    features = list(truth)
    found = moments(model, effect, left, features, n_draws)
    # Each permuted value serves two rows: of few draws the naive errors are a little small.
    most = 4 if n_draws > 1_000_000 else 5
    compared = 0
    for name, (psi, var) in COLUMNS.items():
        for at, j in enumerate(features):
            expected, spread = truth[j][psi], truth[j][var]
            if not np.isfinite(expected) or np.isinf(spread) or np.isinf(truth[j]["var_loco"]):
                continue
            mean, variance, third, fourth = (moment[at] for moment in found[name])
            label = f"{case}, x{j + 1}, {name}"
            assert abs(mean - expected) <= most * np.sqrt(variance / n_draws) + 1e-12, label
            compared += 1
            if not np.isfinite(spread) or not has_enough_moments(case, name, j):
                continue
            error = np.sqrt((fourth - variance**2) / n_draws)
            assert abs(variance - spread) <= most * error + 1e-12, label
            if expected:
                ratio = np.sqrt(variance) / abs(mean)
                slope = (fourth / variance**2 - 1) / 4 - third / (variance * mean) + ratio**2
                error = ratio * np.sqrt(slope / n_draws)
                assert abs(ratio - np.sqrt(spread) / abs(expected)) <= most * error, label
    assert compared >= 4 * (len(features) - 4)
