"""Where the paper and the numbers part: each erratum with a value anyone can compute again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from covaria.efficiencies import formulas, theorems
from covaria.efficiencies.moments import moments
from covaria.errors import InputError
from covaria.simulation.model import Curve, Model, Term

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Erratum:
    """One statement of the paper: what it says, what is so, and how to see it."""

    number: int
    claim: str
    paper: float
    truth: Callable[[], float]
    shown_by: str


def errata(number: int | None = None) -> pd.DataFrame:
    """Return the paper's errata, all or one: number, claim, paper's value, true value, code.

    `shown_by` is Python, after `import numpy as np, covaria` and
    `from covaria import Model, scenario, theory`, that gives the true value.

    >>> found = errata(7)
    >>> found["paper"].round(2).tolist(), found["truth"].round(3).tolist()
    ([1.0, 1.0, 0.0], [0.786, 0.896, 0.202])
    """
    import pandas as pd

    known = sorted({erratum.number for erratum in ERRATA})
    if number is not None and number not in known:
        raise InputError(f"There is no erratum {number}. They run from {known[0]} to {known[-1]}.")
    chosen = [e for e in ERRATA if number in (None, e.number)]
    rows = [(e.number, e.claim, e.paper, e.truth(), e.shown_by) for e in chosen]
    return pd.DataFrame(rows, columns=["number", "claim", "paper", "truth", "shown_by"])


def _row(model: Model, feature: int = 0) -> formulas.Row:
    return formulas.row(moments(model, feature), model.noise)


def _pair(noise: float = 1.0, rho: float = 0.0, beta: float = 1.0) -> Model:
    return Model([beta, 0.0], noise=noise, covariance=np.array([[1, rho], [rho, 1]]))


def _sigmoid_index(column: str, feature: int) -> float:
    """Return what the theory says of model (d)."""
    from scipy.special import expit

    beta = [6, 5, 4, 3, 2, 1, 0.5, 0.1]
    covariance = np.eye(8)
    covariance[0, 1] = covariance[1, 0] = 0.5
    model = Model(beta, link=expit, noise=0.1, covariance=covariance)
    return _row(model, feature)[column]


def _shortfall(curve: Curve) -> float:
    found = theorems.dropout_variance(curve, noise=0.1)
    return 1 - found["paper"] / found["exact"]


def _shared_interaction() -> Model:
    """Return the part of model (c) that x1 and x2 are in; the rest is independent of it."""
    return Model(
        [
            Term(lambda x: 2 * np.sin(x), [0]),
            Term(lambda x: np.log(np.abs(x) + 1), [1]),
            Term(lambda Z: 3 * Z[:, 0] * Z[:, 1], [0, 1]),
        ],
        noise=0.1,
        n_features=2,
    )


def _heavy(df: float, curve: Curve, growth: float) -> formulas.Row:
    return _row(Model([Term(curve, [0], growth=growth)], df=df, n_features=1))


def _agreement() -> float:
    """Return how often A_ratio > 1 and ARE > 1 agree over 60 curves and noises."""
    curves: tuple[Curve, ...] = (
        np.sin,
        np.exp,
        np.tanh,
        lambda x: x**3,
        lambda x: x + x**2,
        lambda x: np.cos(x + 1),
    )
    noises = np.geomspace(0.01, 100, 10)
    found = [(m, s) for m in map(theorems.curve_moments, curves) for s in noises]
    rows = [formulas.row(m, float(s)) for m, s in found]
    return float(np.mean([(r["A_ratio"] > 1) == (r["are_gcm_loco"] > 1) for r in rows]))


_D = "scenario('single_index')"
ERRATA: tuple[Erratum, ...] = (
    Erratum(
        1, "Theorem 2's estimator, full loss less reduced loss, estimates LOCO's psi (x5 of (a)): "
        "it has the other sign", -2.25, lambda: _row(Model([1.5], noise=0.1))["psi_loco"],
        "theory.table(scenario('linear')).psi_loco[4]",
    ),
    Erratum(
        2, "For Y = X² + noise, Cov(X², Y) = 0", 0.0,
        lambda: _row(Model([lambda x: x**2]))["psi_loco"],
        "theory.table(Model([lambda x: x**2])).psi_loco[0]",
    ),
    Erratum(
        3, "Example 1 with variance 4 and Cov(X1, X2) = .5: Var(X1 given X2) = (1 − .5²)·4", 3.0,
        lambda: _row(Model([1.0, 0.0], covariance=np.array([[4, 0.5], [0.5, 4]])))["E_Xt2"],
        "theory.table(Model([1.0, 0.0], covariance=[[4, .5], [.5, 4]])).E_Xt2[0]",
    ),
    Erratum(
        4, "Theorem 3's relative variability of GCM at β = −1, σ = 1", -math.sqrt(3),
        lambda: _row(_pair(beta=-1.0))["rv_gcm"],
        "theory.table(Model([-1.0, 0.0])).rv_gcm[0]",
    ),
    Erratum(
        4, "Theorem 3: e(GCM, LOCO) > 1 for all j, so for a null feature too", 1.0,
        lambda: _row(_pair(), 1)["are_gcm_loco"],
        "theory.table(Model([1.0, 0.0])).are_gcm_loco[1]",
    ),
    Erratum(
        5, "Theorem 2's limit has a positive variance at the null", 1.0,
        lambda: _row(_pair(), 1)["var_loco"],
        "theory.table(Model([1.0, 0.0])).var_loco[1]",
    ),
    Erratum(
        6, "Theorem 5: e(GCM, LOCO) > 1 as the index grows; at βτ = 2", 1.0,
        lambda: theorems.saturated_index(2.0), "theory.saturated_index(2.0)",
    ),
    Erratum(
        6, "Theorem 5: what is neglected is o(1) of what is kept; at βτ = 2", 0.0,
        lambda: theorems.saturated_remainder(2.0), "theory.saturated_remainder(2.0)",
    ),
    Erratum(
        6, "Theorem 5 in noise, weak feature (x8 of (d)): e = 4, as for a constant η′", 4.0,
        lambda: _sigmoid_index("are_all_noise", 7),
        f"theory.table({_D}, features=['x8']).are_all_noise[0]",
    ),
    Erratum(
        6, "Theorem 5's e(GCM, LOCO) for x1 of (d), η′ = η′(0)",
        float(theorems.linear(beta=6 * 0.25, noise=0.1, spread=0.75)),
        lambda: _sigmoid_index("are_gcm_loco", 0),
        f"theory.table({_D}, features=['x1']).are_gcm_loco[0]",
    ),
    Erratum(
        7, "Example S1: GCM is the more efficient for sin; e(GCM, LOCO) at σ = .1 is above", 1.0,
        lambda: theorems.additive(np.sin, noise=0.1), "theory.additive(np.sin, noise=.1)",
    ),
    Erratum(
        7, "Example S1: (A) holds for sin; its ratio at σ = .1 is above", 1.0,
        lambda: theorems.assumption_a(np.sin, noise=0.1), "theory.assumption_a(np.sin, noise=.1)",
    ),
    Erratum(
        7, "Example S1: (A) holds for sin for every σ above", 0.0,
        lambda: theorems.noise_threshold(np.sin), "theory.noise_threshold(np.sin)",
    ),
    *(
        Erratum(
            8, f"Dropout's variance for {name}: share that the missing 4bE[a³] makes", 0.0,
            lambda curve=curve: _shortfall(curve),  # type: ignore[misc]
            f"1 - theory.dropout_variance({code}, noise=.1)['paper']"
            f" / theory.dropout_variance({code}, noise=.1)['exact']",
        )
        for name, code, curve in (
            ("2x²", "lambda x: 2 * x**2", lambda x: 2 * x**2),
            ("e^{x/3}", "lambda x: np.exp(x / 3)", lambda x: np.exp(x / 3)),
            ("max(0, x)", "lambda x: np.maximum(0, x)", lambda x: np.maximum(0, x)),
        )
    ),
    Erratum(
        9, "Theorem 7: Var(dropout) / Var(LOCO) ≥ 1; linear, ±1 features", 1.0,
        lambda: _ratio(1), "(lambda t: t.var_drop[1] / t.var_loco[1])(theory.theorem_7())",
    ),
    Erratum(
        9, "Theorem 7: Var(dropout) / Var(LOCO) ≥ 1; x⁴ − 3.1x²", 1.0,
        lambda: _ratio(2), "(lambda t: t.var_drop[2] / t.var_loco[2])(theory.theorem_7())",
    ),
    Erratum(
        10, "LOCO is more efficient than dropout; e(LOCO, dropout) for x1 of (e), ρ = .9", 1.0,
        lambda: _row(_pair(rho=0.9))["are_loco_drop"],
        "theory.table(scenario('surrogate', rho=.9), features=['x1']).are_loco_drop[0]",
    ),
    Erratum(
        10, "Dropout estimates LOCO's psi without bias; its mean for 2x², where LOCO's is 8", 8.0,
        lambda: _row(Model([lambda x: 2 * x**2]))["psi_drop"],
        "theory.table(Model([lambda x: 2 * x**2])).psi_drop[0]",
    ),
    Erratum(
        11, "(A) is only sufficient for e > 1; how often the two agree over 60 settings", math.nan,
        _agreement,
        "np.mean([(theory.assumption_a(f, noise=s) > 1) == (theory.additive(f, noise=s) > 1) "
        "for f in (np.sin, np.exp, np.tanh) for s in (.01, .1, 1, 10)])",
    ),
    Erratum(
        12, "Example 2, p = 3: Stirling's value of E[f⁴]Corr²",
        theorems.odd_power(3)["left_printed"],
        lambda: theorems.odd_power(3)["left"], "theory.odd_power(3)['left']",
    ),
    Erratum(
        12, "Example 2, p = 5: (A) holds for all σ; it fails above this σ / sd(f)", math.inf,
        lambda: theorems.odd_power(5)["fails_above"], "theory.odd_power(5)['fails_above']",
    ),
    Erratum(
        12, "Example 2, p = 7: e(GCM, LOCO) > 1 as σ → ∞", 1.0,
        lambda: theorems.odd_power(7)["are_all_noise"], "theory.odd_power(7)['are_all_noise']",
    ),
    Erratum(
        13, "The factor 4 is GCM's: e(GCM, √LOCO) at β = .01, σ = .1; √LOCO halves the RV", 3.94,
        lambda: theorems.linear(beta=0.01, noise=0.1) / 4,
        "theory.linear(beta=.01, noise=.1) / 4",
    ),
    Erratum(
        14, "e(GCM, LOCO) for sin in (b) at the stated σ = .1; at a learner's σ² = 8", 0.786,
        lambda: theorems.additive(np.sin, noise=math.sqrt(8)),
        "theory.additive(np.sin, noise=8**.5)",
    ),
    Erratum(
        15, "In (c) no method can find x2: LOCO's z-score at n = 1000 (oracle)", 1.96,
        lambda: math.sqrt(1000) / _row(_shared_interaction(), 1)["rv_loco"],
        "1000**.5 / theory.table(scenario('interaction'), features=['x2']).rv_loco[0]",
    ),
    Erratum(
        16, "Model (f), df = 3: Theorem 3's relative variability of GCM for the linear feature",
        math.sqrt(3), lambda: _heavy(3, lambda x: x, 1)["rv_gcm"],
        "theory.table(scenario('heavy_tails', df=3), features=['x1']).rv_gcm[0]",
    ),
    Erratum(
        16, "Model (f), df = 10: LOCO's variance for .6x³, while GCM's is finite", 1339.632,
        lambda: _heavy(10, lambda x: 0.6 * x**3, 3)["var_loco"],
        "theory.table(scenario('heavy_tails', df=10), features=['x5']).var_loco[0]",
    ),
    Erratum(
        17, "(A) is printed without E[f²] > 0; its ratio for a null feature", 1.0,
        lambda: _row(_pair(), 1)["A_ratio"], "theory.table(Model([1.0, 0.0])).A_ratio[1]",
    ),
)  # fmt: skip


def _ratio(case: int) -> float:
    table = theorems.theorem_7()
    return float(table["var_drop"][case] / table["var_loco"][case])
