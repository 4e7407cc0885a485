"""The paper's theorems, examples and remarks, each judged by exact moments or by simulation.

What is false in the paper is computed in `covaria.efficiencies.errata`; what holds is checked here.
Theorems 1, 2 and 6 are limits: their picture is the spread of √n (estimate - truth) over its limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from covaria import plots
from covaria.assessment import WITHOUT_CHECKS, assess
from covaria.efficiencies import theorems, theory
from covaria.paper.captions import CAPTIONS
from covaria.paper.registry import ABOUT, Claim, Figure, Made, Verdict, add, decided
from covaria.randomness import seed_of, stream
from covaria.simulation.model import Model
from covaria.simulation.scenarios import CURVES, scenario

if TYPE_CHECKING:
    import pandas as pd

    from covaria.paper.run import Run

Array = NDArray[np.float64]
NAME = "theory"
SIZES = (50, 100, 200, 400, 800, 1600, 3200)
LAZY_SIZES = (50, 200, 800)
DRAWS, FAST_DRAWS = 2000, 200
BETA, NOISE = 0.5, 1.0
# A spread within this of its limit has arrived there.
NEAR = 0.05


# --- √n ------------------------------------------------------------------------------------


def scores(X: Array, y: Array, feature: int) -> tuple[Array, Array]:
    """Return GCM's and LOCO's scores of a feature, least squares in sample."""
    inner = np.column_stack([np.ones(len(y)), X])
    inverse = np.linalg.inv(inner.T @ inner)
    beta = inverse @ (inner.T @ y)
    left, at = y - inner @ beta, feature + 1
    x = inner @ inverse[:, at] / inverse[at, at]
    return x * (left + beta[at] * x), 2 * left * beta[at] * x + (beta[at] * x) ** 2


def spreads(draws: int, seed: int = 0) -> pd.DataFrame:
    """Return the sd of √n (estimate - psi) over that of its limit, by size, method and feature.

    y = .5 x1 + noise, with a null feature x2 that has a correlation of .5 with x1. LOCO's limit
    has no spread at the null: there it stands over that of x1.
    """
    import pandas as pd

    rows = []
    for n_rows in SIZES:
        found = np.array(
            [_estimates(stream(seed, "root n", n_rows, k), n_rows) for k in range(draws)]
        )
        for at, (method, feature, limit) in enumerate(_limits()):
            sd = float(np.sqrt(n_rows) * found[:, at].std(ddof=1))
            rows.append({"n_rows": n_rows, "method": method, "feature": feature, "draws": draws,
                         "ratio": sd / limit, "se": sd / limit / np.sqrt(2 * draws)})  # fmt: skip
    return pd.DataFrame(rows)


def _drawn(rng: np.random.Generator, n_rows: int) -> tuple[Array, Array]:
    """Return rows of the model in which x1 matters and x2 does not."""
    X = rng.standard_normal((n_rows, 2))
    X[:, 1] = 0.5 * X[:, 0] + np.sqrt(0.75) * X[:, 1]
    return X, BETA * X[:, 0] + NOISE * rng.standard_normal(n_rows)


def _estimates(rng: np.random.Generator, n_rows: int) -> list[float]:
    X, y = _drawn(rng, n_rows)
    return [float(one.mean()) for feature in (0, 1) for one in scores(X, y, feature)]


def lazy_spreads(draws: int, seed: int = 0, sizes: Sequence[int] = LAZY_SIZES) -> pd.DataFrame:
    """Return the same of Lazy-VI: a network on as many rows as are tested, its steps beside it."""
    import pandas as pd

    limit, rows = _limits()[1][2], []
    for n_rows in sizes:
        found = np.array([_lazy_estimates(seed_of(seed, "lazy root n", n_rows, k), n_rows)
                          for k in range(draws)])  # fmt: skip
        for at, feature in enumerate(("x1", "x2")):
            sd = float(np.sqrt(n_rows) * found[:, at].std(ddof=1))
            rows.append({"n_rows": n_rows, "method": "Lazy-VI", "feature": feature, "draws": draws,
                         "ratio": sd / limit, "se": sd / limit / np.sqrt(2 * draws)})  # fmt: skip
    return pd.DataFrame(rows)


def _lazy_estimates(seed: int, n_rows: int) -> list[float]:
    X, y = _drawn(stream(seed, "rows"), 2 * n_rows)
    found = assess(
        X, y, learner="network", methods=["lazy(stepped=False)"], splits=0.5, seed=seed,
        alternative="two-sided", shared_randomness=False, progress=False, **WITHOUT_CHECKS,
    )  # fmt: skip
    return [float(value) for value in found.table["estimate"]]


def _limits() -> list[tuple[str, str, float]]:
    """Return the limits that Theorems 1 and 2 give, by the variances of Theorem 3."""
    kept = 0.75  # the variance of a feature given the other
    gcm = BETA**2 * 2 * kept**2 + NOISE**2 * kept
    loco = BETA**4 * 2 * kept**2 + 4 * NOISE**2 * BETA**2 * kept
    null = NOISE**2 * kept
    return [("GCM", "x1", gcm**0.5), ("LOCO", "x1", loco**0.5),
            ("GCM", "x2", null**0.5), ("LOCO", "x2", loco**0.5)]  # fmt: skip


# Section, sentence, criterion, numbers and verdict.
Said = tuple[str, str, str, str, Verdict]


# --- verdicts -------------------------------------------------------------------------------


def claims(table: pd.DataFrame) -> list[Claim]:
    """Return the verdicts on all theorems, examples and remarks."""
    parts: tuple[Callable[[], Said], ...] = (
        partial(_limit, table, "GCM", "1", "2.2"), partial(_limit, table, "LOCO", "2", "2.3"),
        partial(_degenerate, table), _limitation, _theorem_3, _example_1, _theorem_4, _no_more,
        _example_2, _theorem_5, _example_3, _example_s1, _theorem_7, _theorem_7_normal, _dropout,
        _unbiased, _interactions, partial(_limit, table, "Lazy-VI", "6", "4.2"),
    )  # fmt: skip
    return [
        Claim(NAME, text, numbers, verdict, f"{NAME}-{at}", quote, section)
        for at, (section, quote, text, numbers, verdict) in enumerate((p() for p in parts), start=1)
    ]


def _limit(table: pd.DataFrame, method: str, number: str, section: str) -> Said:
    own = table[(table["method"] == method) & (table["feature"] == "x1")]
    last, learner = own.iloc[-1], "networks" if method == "Lazy-VI" else "least squares"
    return (
        section, f"Theorem {number}: √n[ψ̂ − ψ] → N(0, σ²)",
        f"The sd of √n(ψ̂ − ψ) of {method} comes to its limit for a feature that matters "
        f"({learner}, within {NEAR:g} at n = {last['n_rows']:,})",
        "; ".join(f"n = {row.n_rows:,}: {row.ratio:.3f}" for row in own.iloc[[0, -1]].itertuples())
        + f" ± {last['se']:.3f}",
        decided(NEAR - abs(last["ratio"] - 1), last["se"]),
    )  # fmt: skip


def _degenerate(table: pd.DataFrame) -> Said:
    own = table[(table["method"] == "LOCO") & (table["feature"] == "x2")].iloc[-1]
    return (
        "2.3", "we can test the hypotheses H0: ψ = 0 versus Ha: ψ ≠ 0",
        "Theorem 2 gives LOCO a normal limit with a spread under the null, as a test needs",
        f"sd of √n ψ̂ at the null, over that of a feature that matters: {own['ratio']:.4f} ± "
        f"{own['se']:.4f} at n = {SIZES[-1]:,}, and 0 in the limit",
        decided(own["ratio"] - NEAR, own["se"]),
    )  # fmt: skip


def _limitation() -> Said:
    found = theory.table(_curve(lambda x: x**2))
    return (
        "2.2", "It follows that Cov(X², Y) = 0 and the GCM statistic satisfies ψ = 0",
        "For y = x² + noise, Cov(x², y) = 0",
        f"Cov(x², y) = Var(x²) = {found['psi_loco'].iloc[0]:g}; it is Cov(x, y) that is "
        f"{abs(found['psi_gcm'].iloc[0]):g}",
        decided(1e-9 - float(found["psi_loco"].iloc[0])),
    )  # fmt: skip


def _curve(curve: Callable[[Array], Array]) -> Model:
    return Model([curve])


def _theorem_3() -> Said:
    found = {(b, s): theorems.linear(beta=b, noise=s) for b in (0.01, 0.1, 1, 4) for s in (0.1, 1)}
    null = theorems.linear(beta=0.0, noise=1.0)
    return (
        "3.1", "Theorem 3: For all j ∈ [p] … and thus e(GCM, LOCO) > 1",
        "e(GCM, LOCO) is above 1 for every β other than 0",
        f"{min(found.values()):.4f} to {max(found.values()):.4f} over β = .01 to 4, σ = .1 and 1; "
        f"at β = 0 it is {null:g}: not defined, so not for all j",
        decided(min(found.values()) - 1),
    )  # fmt: skip


def _example_1() -> Said:
    kept, beta, noise = 1 - 0.5**2, 1.0, 1.0
    printed = (4 * noise**2 / beta**2 + 2 * kept) / (noise**2 / beta**2 + 2 * kept)
    exact = theorems.linear(beta=beta, noise=noise, spread=kept)
    return (
        "3.1", "Example 1: e = (4σ²/β² + 2(1−ρ²)σ²) / (σ²/β² + 2(1−ρ²)σ²) > 1",
        "Example 1's formula is Theorem 3 with ρ read as a correlation (ρ = .5, variances 1)",
        f"{printed:.6f} and {exact:.6f}", decided(1e-9 - abs(printed - exact)),
    )  # fmt: skip


def _theorem_4() -> Said:
    agree = [
        (theorems.assumption_a(curve, noise=s) > 1) == (theorems.additive(curve, noise=s) > 1)
        for curve in CURVES[2:] for s in (0.01, 0.1, 1.0, 10.0)
    ]  # fmt: skip
    return (
        "3.2", "Theorem 4: Therefore under Assumption (A), e(GCM, LOCO) > 1",
        "e(GCM, LOCO) > 1 wherever (A) holds ((b)'s curves at four noises), and only there",
        f"the two agree in {sum(agree)} of {len(agree)} cases",
        decided(sum(agree) - len(agree), strict=False),
    )  # fmt: skip


def _no_more() -> Said:
    ratio = theorems.assumption_a(CURVES[0], noise=0.1)
    return (
        "3.2", "Assumption (A) fails for the example where … f is an even function",
        "(A)'s ratio is 0 for x1 of (b), 2x²", f"{abs(ratio):.3g}", decided(1e-9 - abs(ratio)),
    )  # fmt: skip


def _example_2() -> Said:
    found = {power: theorems.odd_power(power) for power in (3, 5, 7)}
    limits = ", ".join(f"{v['are_all_noise']:.3f} (p = {k})" for k, v in found.items())
    return (
        "3.2", "Example 2: Thus, (3.1) > (3.2), and e > 1 up to the Sterling approximation",
        "(A) holds for odd powers at every noise",
        f"e as the noise grows: {limits}; (A) fails above σ/sd(f) = "
        f"{found[5]['fails_above']:.1f} at p = 5. Printed 2^(5p+1) should be 2^(3p+1)",
        decided(min(v["are_all_noise"] for v in found.values()) - 1),
    )  # fmt: skip


def _theorem_5() -> Said:
    found = {b: theorems.saturated_index(b) for b in (0.5, 1.0, 2.0, 3.0)}
    shown = ", ".join(f"{v:.3f} (βτ = {b:g})" for b, v in found.items())
    return (
        "3.3", "Theorem 5: For any ε′ > 0, δ > 0, with probability at least 1−δ, e > 1−ε′",
        "e(GCM, LOCO) is not below 1 as the index grows, for the sigmoid", f"in the limit {shown}",
        decided(min(found.values()) - 1),
    )  # fmt: skip


def _example_3() -> Said:
    table = theory.table(scenario("single_index"), features=["x1"])
    exact = float(table["are_gcm_loco"].iloc[0])
    return (
        "3.3", "Example 3: there exists a sufficiently large η′, such that we have e > 1−ε′",
        "e(GCM, LOCO) is above 1 for x1 of (d), a sigmoid, whose η′ is at most 1/4",
        f"exact {exact:.4f}", decided(exact - 1),
    )  # fmt: skip


def _example_s1() -> Said:
    ratio, from_ = theorems.assumption_a(np.sin, noise=0.1), theorems.noise_threshold(np.sin)
    return (
        "S1", "Example S1: GCM estimator is more efficient than LOCO estimator up to the Taylor "
        "approximation of the sine function",
        "(A) holds for sin at the paper's σ = .1",
        f"its ratio is {ratio:.4f}; it is above 1 from σ = {from_:.3f} on", decided(ratio - 1),
    )  # fmt: skip


def _theorem_7() -> Said:
    table = theorems.theorem_7()
    shown = "; ".join(
        f"{r.case}: {r.var_loco:.4g} and {r.var_drop:.4g}" for r in table.itertuples()
    )
    return (
        "4.2", "Theorem 7: lim Var(LOCO) = lim Var(lazy) ≤ lim Var(dropout)",
        "Var(LOCO) ≤ Var(dropout) in linear and additive models", shown,
        decided(float(table["holds"].mean()) - 1, strict=False),
    )  # fmt: skip


def _theorem_7_normal() -> Said:
    table = theory.table(scenario("surrogate", rho=0.9), features=["x1"])
    value = float(table["are_loco_drop"].iloc[0])
    return (
        "4.2", "we can extend the asymptotic relative efficiency comparison to those methods",
        "By the paper's own criterion LOCO is the more efficient of the two (x1 of (e), ρ = .9)",
        f"e(LOCO, dropout) = {value:.4f}", decided(value - 1),
    )  # fmt: skip


def _dropout() -> Said:
    found = {name: theorems.dropout_variance(curve, noise=0.1)
             for name, curve in (("2x²", CURVES[0]), ("e^(x/3)", CURVES[3]))}  # fmt: skip
    short = {name: 1 - v["paper"] / v["exact"] for name, v in found.items()}
    return (
        "S2.2", "Var(ψ(dr)) = Var(f̂²) + 4σ²E(f̂²) + 4(E f − f(μ))²(Var f + σ²)",
        "Dropout's variance in additive models is as printed",
        ", ".join(f"{name}: {100 * v:.0f}% too small" for name, v in short.items())
        + ": the term with the third moment is missing",
        decided(1e-9 - max(short.values())),
    )  # fmt: skip


def _unbiased() -> Said:
    table = theory.table(_curve(lambda x: 2 * x**2))
    drop, loco = float(table["psi_drop"].iloc[0]), float(table["psi_loco"].iloc[0])
    return (
        "4.2", "LOCO, dropout and Lazy-VI are asymptotically unbiased estimators used to estimate "
        "the ability of X_j in predicting Y",
        "Dropout estimates what LOCO does (2x², a normal feature)", f"{drop:g} against {loco:g}",
        decided(1e-9 - abs(drop - loco)),
    )  # fmt: skip


def _interactions() -> Said:
    table = theory.table(scenario("interaction"), features=[f"x{j}" for j in range(1, 9)])
    z = (1000**0.5 / table["rv_loco"]).tolist()
    return (
        "5.1", "model (c) examines the necessity of assuming the absence of joint effects in the "
        "application of all variable selection approaches",
        "No approach can see the features of (c): LOCO's z-score at n = 1,000 with the true "
        "functions is below 1.96",
        ", ".join(f"{value:.1f}" for value in z) + ": it is the additive learner that cannot",
        decided(1.96 - min(z)),
    )  # fmt: skip


# --- the figure -----------------------------------------------------------------------------


def theory_figure(run: Run) -> Made:
    """Return the picture of Theorems 1, 2 and 6, and the verdicts on all of them."""
    import pandas as pd

    draws = run.repeats or (FAST_DRAWS if run.fast else DRAWS)
    table = run.table(
        NAME, lambda: pd.concat([spreads(draws, run.seed), lazy_spreads(draws, run.seed)]), draws
    )
    return Made(table, claims(table), lambda: plots.limits(table), int(table["draws"].max()))


add(Figure(NAME, ABOUT[NAME], theory_figure, modes=False, caption=CAPTIONS[NAME]))
