"""The theory against exact tables, closed forms, other quadratures and brute simulation."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit, ndtr
from scipy.stats import norm

from covaria.efficiencies import theory
from covaria.errors import InputError
from covaria.simulation.model import Model, Term
from covaria.simulation.scenarios import scenario

FIXTURE = Path(__file__).parents[1] / "fixtures" / "oracle_are.csv"


def oracle():
    with FIXTURE.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    cases = {}
    for row in rows:
        cases.setdefault((row.pop("model"), row.pop("param")), {})[f"x{row.pop('feature')}"] = row
    return cases


ORACLE = oracle()


def same(found, wanted):
    """Return whether a number is the oracle's: exactly where it is 0, infinite or undefined."""
    if np.isfinite(wanted) and wanted != 0:
        return abs(found - wanted) <= 1e-8 * abs(wanted)
    return found == wanted or (np.isnan(found) and np.isnan(wanted))


@pytest.mark.parametrize("case", [(*key, x) for key, rows in ORACLE.items() for x in rows])
def test_the_table_holds_every_number_of_the_oracle(case):
    letter, df, feature = case
    model = scenario(letter, df=float(df)) if df else scenario(letter)
    row = theory.table(model, features=[feature]).loc[0]
    compared = 0
    for column, text in ORACLE[letter, df][feature].items():
        number = float(text or "nan")
        # The oracle leaves out permutation where features interact; we have a number.
        if "perm" in column and np.isnan(number):
            continue
        assert same(row[column], number), column
        compared += 1
    assert compared >= 20


def test_all_features_are_there_in_order_with_which_are_active():
    table = theory.table(scenario("additive"))
    assert table["feature"].tolist() == [f"x{j}" for j in range(1, 21)]
    assert table["active"].tolist() == [True] * 8 + [False] * 12


# ---------------------------------------------------------------- theorems and examples


def test_theorem_3_is_example_1_for_normal_features():
    assert theory.linear(beta=1.0, noise=1.0, spread=0.75) == pytest.approx(2.2)
    assert theory.linear(beta=2.0, noise=1.0, kappa=0.0) == 4.0
    assert np.isnan(theory.linear(beta=0.0, noise=1.0))


def test_theorem_3_agrees_with_the_table_of_a_correlated_linear_model():
    model = Model([1.0, -0.4], noise=0.7, covariance=[[1, 0.5], [0.5, 1]])
    wanted = [theory.linear(beta=b, noise=0.7, spread=0.75) for b in (1.0, -0.4)]
    np.testing.assert_allclose(theory.table(model)["are_gcm_loco"], wanted, rtol=1e-10)


def test_theorem_4_agrees_with_the_table_of_a_correlated_additive_model():
    covariance = np.array([[1.0, 0.6], [0.6, 1.0]])
    model = Model([np.exp, np.sin], noise=0.5, covariance=covariance)
    found = theory.additive(np.exp, noise=0.5, spread=0.64, explained=0.36)
    assert found == pytest.approx(theory.table(model)["are_gcm_loco"][0], rel=1e-9)


def test_exponential_curves_have_their_closed_moments():
    m = theory.moments(Model([lambda x: np.exp(x / 3), np.sin], covariance=[[2, 0.8], [0.8, 1]]), 0)
    t, s = 1 / 3, 2 - 0.64
    explained = np.exp(2 * t**2 * 0.64)  # E exp(2t·E[x1 | x2])
    assert m.second == pytest.approx(
        explained * (np.exp(2 * t**2 * s) - np.exp(t**2 * s)), rel=1e-11
    )
    assert m.cross == pytest.approx(t * s * np.exp(t**2 * 2 / 2), rel=1e-11)


def test_sine_needs_noise_above_a_fifth_for_assumption_a():
    threshold = theory.noise_threshold(np.sin)
    assert threshold == pytest.approx(0.202, abs=5e-4)
    assert theory.assumption_a(np.sin, noise=threshold) == pytest.approx(1.0)
    assert theory.additive(np.sin, noise=0.99 * threshold) < 1
    assert theory.additive(np.sin, noise=1.01 * threshold) > 1


@pytest.mark.parametrize(("power", "ratio"), [(5, 58.6), (7, 37.3)])
def test_odd_powers_break_assumption_a_in_loud_noise(power, ratio):
    found = theory.odd_power(power)
    assert found["fails_above"] == pytest.approx(ratio, abs=0.05)
    threshold = theory.noise_threshold(lambda x: x**power)
    sd = np.sqrt(theory.moments(Model([lambda x: x**power]), 0).second)
    assert threshold / sd == pytest.approx(found["fails_above"], rel=1e-9)
    limit = theory.table(Model([lambda x: x**power]))["are_all_noise"][0]
    assert limit == pytest.approx(found["are_all_noise"], rel=1e-9)


def test_the_two_limits_are_what_the_table_tends_to():
    for curve in (np.sin, lambda x: x**3, lambda x: np.maximum(x, 0)):
        limits = theory.table(Model([curve])).loc[0]
        assert theory.additive(curve, noise=1e-6) == pytest.approx(limits["are_no_noise"], rel=1e-5)
        assert theory.additive(curve, noise=1e5) == pytest.approx(limits["are_all_noise"], rel=1e-5)


def test_theorem_7_fails_for_the_binary_pair_and_for_a_quartic():
    table = theory.theorem_7()
    assert table["holds"].tolist() == [True, False, False]
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0], 1_000_000)
    z = np.where(rng.random(x.size) < 0.75, x, -x)
    noise = 0.1 * rng.standard_normal(x.size)
    left = x - 0.5 * z
    assert np.var((left + noise) ** 2 - noise**2) == pytest.approx(table["var_loco"][1], rel=0.01)
    assert np.var((x + noise) ** 2 - noise**2) == pytest.approx(table["var_drop"][1], rel=0.01)


def test_the_saturated_sigmoid_tends_to_the_closed_limit():
    from_far = Model([2.0], link=lambda u: -expit(-u - 60), noise=1.0)
    found = theory.table(from_far)["are_gcm_loco"][0]
    assert found == pytest.approx(theory.saturated_index(2.0), rel=1e-6)


def random_model(rng):
    """Return a model of two correlated features: a random mix of curves, one of them joint."""
    scale = rng.uniform(0.2, 3, 4)
    sign = rng.choice([-1, 1], 4)
    shift = rng.normal(size=4)
    curves = [
        lambda x: sign[0] * np.sin(scale[0] * x + shift[0]),
        lambda x: sign[1] * np.tanh(scale[1] * x),
        lambda x: 0.1 * sign[2] * x**3,
        lambda x: sign[3] * np.exp(-((scale[3] * x - shift[3]) ** 2)),
        lambda x: shift[1] * x,
    ]
    kept = rng.choice(5, rng.integers(1, 4), replace=False)
    rho = rng.uniform(-0.9, 0.9) if rng.random() < 0.1 else 0.0
    return Model(
        [Term(curves[k], [0]) for k in kept],
        noise=float(np.exp(rng.normal(0, 2))),
        covariance=[[1, rho], [rho, 1]],
    )


@pytest.mark.parametrize("n_models", [50, pytest.param(1000, marks=pytest.mark.slow)])
def test_assumption_a_holds_exactly_where_gcm_needs_fewer_rows_on_random_models(n_models):
    rng = np.random.default_rng(5)
    rows = [theory.table(random_model(rng), features=["x1"]) for _ in range(n_models)]
    table = pd.concat(rows)
    above, efficient = table["A_ratio"] > 1, table["are_gcm_loco"] > 1
    assert (above == efficient).all()
    assert 0.1 < efficient.mean() < 0.9
    assert (table["are_pcm_loco"] >= 1 - 1e-12).all()
    assert (table["gcm_lower_bound_on_loco"] <= table["psi_loco"] * (1 + 1e-9)).all()


# ---------------------------------------------------------------- single index

LINKS = {
    "sigmoid": expit,
    "steep": lambda u: np.tanh(30 * u),
    "bump": lambda u: np.exp(-(u**2)),
    "exponential": lambda u: np.exp(u / 4),
    "cubic": lambda u: u**3 - u,
    "wave": lambda u: np.cos(3 * u),
    "hinge": lambda u: np.maximum(u - 0.3, 0),
    "step": lambda u: 1.0 * (u > 0.2),
    "probit": ndtr,
    "skew": lambda u: np.log1p(np.exp(2 * u)),
}
BETAS = {
    "sigmoid": [6, 5, 4, 3, 2, 1, 0.5, 0.1],
    "exponential": [0.5, 0.4, -0.9],
    "step": [1.0, 0.3, 0.01],
    "probit": [3.0, 8.0],
}


def setting(name):
    beta = np.array(BETAS.get(name, [1.0, -2.0, 0.05]))
    rng = np.random.default_rng(len(name))
    root = rng.normal(size=(len(beta), len(beta))) + 2 * np.eye(len(beta))
    covariance = root @ root.T
    sd = np.sqrt(np.diag(covariance))
    return LINKS[name], beta, covariance / np.outer(sd, sd)


def other_quadrature(link, beta, covariance, j, step=0.02, reach=9.0):
    """Return E xf, E f², E x²f², E f⁴ by the trapezoid rule in the plane of (rest, x)."""
    spread = 1 / np.linalg.inv(covariance)[j, j]
    rest = np.sqrt(beta @ covariance @ beta - spread * beta[j] ** 2)
    z = np.arange(-reach, reach + step / 2, step)
    w = step * norm.pdf(z)
    f = link(rest * z[:, None] + beta[j] * np.sqrt(spread) * z[None, :])
    f = f - (f @ w)[:, None]
    wanted = (z * f, f**2, z**2 * f**2, f**4)
    return np.array([w @ each @ w for each in wanted]) * [spread**0.5, 1, spread, 1]


@pytest.mark.parametrize(
    "name", ["sigmoid", "bump", "exponential", "cubic", "wave", "probit", "skew"]
)
def test_a_smooth_index_agrees_with_another_quadrature(name):
    link, beta, covariance = setting(name)
    for j in (0, len(beta) - 1):
        m = theory.moments(Model(beta, link=link, covariance=covariance), j)
        wanted = other_quadrature(link, beta, covariance, j)
        found = np.array([m.cross, m.second, m.mixed, m.fourth])
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("weight", [1.0, 0.05, 1e-4])
def test_a_hinged_and_a_stepped_index_agree_with_closed_conditional_moments(weight):
    beta = np.array([weight, 2.0])
    model = {name: Model(beta, link=LINKS[name]) for name in ("hinge", "step")}

    def hinge(q):  # Var(max(u, 0)), u normal with mean d and sd weight
        d = 2 * q - 0.3
        a = d / weight
        mean = weight * norm.pdf(a) + d * ndtr(a)
        return (d**2 + weight**2) * ndtr(a) + d * weight * norm.pdf(a) - mean**2

    def step(q):
        share = ndtr((2 * q - 0.2) / weight)
        return share * (1 - share)

    for name, given, kink in (("hinge", hinge, 0.15), ("step", step, 0.1)):
        cuts = [kink + s * weight for s in (-4, -2, 0, 2, 4)]
        wanted, _ = quad(lambda q, g=given: g(q) * norm.pdf(q), -12, 12, points=cuts,
                         limit=900, epsabs=1e-16, epsrel=1e-12)  # fmt: skip
        assert theory.moments(model[name], 0).second == pytest.approx(wanted, rel=2e-8)


def monte_carlo(name, j, draws, seed):
    """Return means and standard errors of the scores of GCM, LOCO, dropout and permutation."""
    link, beta, covariance = setting(name)
    rng = np.random.default_rng(seed)
    spread = 1 / np.linalg.inv(covariance)[j, j]
    precision = np.linalg.inv(covariance)
    sums = np.zeros((2, 6))
    root = np.linalg.cholesky(covariance)
    for _ in range(draws // 50_000):
        X = rng.standard_normal((50_000, len(beta))) @ root.T
        left = X @ precision[j] / precision[j, j]
        index = X @ beta
        rest = index - beta[j] * left
        f = link(index) - given_rest(link, rest, beta[j] * np.sqrt(spread))
        dropped = link(index) - link(index - beta[j] * X[:, j])
        lent = rng.permutation(X[:, j])
        swapped = link(index) - link(index + beta[j] * (lent - X[:, j]))
        wanted = np.stack([left * f, f**2, left**2 * f**2, f**4, dropped**2, swapped**2])
        sums += [wanted.sum(axis=1), (wanted**2).sum(axis=1)]
    mean = sums[0] / draws
    return mean, np.sqrt((sums[1] / draws - mean**2) / draws)


def given_rest(link, rest, width):
    """Return E[link(rest + width z)] at each row, from a fine table: 10⁷ draws are quick so."""
    if link is LINKS["hinge"]:
        a = (rest - 0.3) / abs(width)
        return abs(width) * norm.pdf(a) + (rest - 0.3) * ndtr(a)
    if link is LINKS["step"]:
        return ndtr((rest - 0.2) / abs(width))
    z = np.linspace(-8, 8, 641)
    w = norm.pdf(z) / norm.pdf(z).sum()
    knots = np.linspace(rest.min(), rest.max(), 3000)
    table = link(knots[:, None] + width * z[None, :]) @ w
    return np.interp(rest, knots, table)


def agree_with_monte_carlo(name, draws):
    link, beta, covariance = setting(name)
    model = Model(beta, link=link, covariance=covariance)
    for j in (0, len(beta) - 1):
        m = theory.moments(model, j)
        found = np.array([m.cross, m.second, m.mixed, m.fourth, m.drop_second, m.swap_second])
        mean, error = monte_carlo(name, j, draws, seed=j)
        # 5 standard errors: some 120 comparisons in all.
        assert (np.abs(found - mean) <= 5 * error + 2e-6 * np.abs(mean)).all(), (name, j)


@pytest.mark.parametrize("name", ["sigmoid", "steep", "hinge", "step", "skew"])
def test_the_exact_index_agrees_with_simulation(name):
    agree_with_monte_carlo(name, 200_000)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", LINKS)
def test_the_exact_index_agrees_with_ten_million_draws(name):
    agree_with_monte_carlo(name, 10_000_000)


def test_three_versions_of_the_index_agree_where_the_link_is_straight():
    for version in ("exact", "random", "constant"):
        table = theory.single_index(lambda u: 2 * u, [1.0, 0.5], noise=1.0, version=version)
        wanted = [theory.linear(beta=b, noise=1.0) for b in (2.0, 1.0)]
        np.testing.assert_allclose(table["are_gcm_loco"], wanted, rtol=1e-9)


def test_a_weak_feature_of_an_index_has_the_limit_of_the_random_version():
    exact, random = (
        theory.single_index(expit, [3.0, 1e-3], noise=1.0, version=v) for v in ("exact", "random")
    )
    assert exact["are_gcm_loco"][1] == pytest.approx(random["are_gcm_loco"][1], rel=1e-4)
    slope = [quad(lambda q, k=k: (expit(3 * q) * expit(-3 * q)) ** k * norm.pdf(q), -12, 12)[0]
             for k in (1, 2)]  # fmt: skip
    assert random["are_all_noise"][1] == pytest.approx(4 * slope[0] ** 2 / slope[1], rel=1e-8)


# ---------------------------------------------------------------- other functions and laws


def test_a_whole_function_gives_what_its_terms_give():
    parts = Model([np.sin, np.zeros_like], noise=0.3, covariance=[[1, 0.4], [0.4, 1]])
    whole = Model(lambda X: np.sin(X[:, 0]), noise=0.3, covariance=[[1, 0.4], [0.4, 1]])
    columns = ["psi_gcm", "var_gcm", "psi_loco", "var_loco", "psi_drop", "var_drop", "psi_perm",
               "var_perm_naive", "var_perm_exact"]  # fmt: skip
    one, two = (theory.table(m, features=["x1"])[columns] for m in (parts, whole))
    np.testing.assert_allclose(one, two, rtol=1e-9)


def test_many_dimensions_are_simulated_and_the_error_is_stated():
    def product(X):
        return X.prod(axis=1) + X[:, 0]

    row = theory.table(Model(product, n_features=6), features=["x1"], draws=500).loc[0]
    assert 1e-4 < row["error"] < 1
    assert row["psi_gcm"] == pytest.approx(1.0, abs=0.4)
    exact = theory.table(Model(product, n_features=3, noise=1.0), features=["x1"]).loc[0]
    assert exact["error"] < 1e-10
    assert exact["psi_loco"] == pytest.approx(2.0, rel=1e-9)
    assert exact["var_loco"] == pytest.approx(3 * (9 + 6 + 1) - 4 + 4 * 2, rel=1e-9)


@pytest.mark.slow
def test_the_error_is_stated_where_a_kink_lies_across_two_features():
    model = Model([Term(lambda Z: np.maximum(Z[:, 0], Z[:, 1]), [0, 1])], n_features=2)
    found = theory.moments(model, 0)

    def given(c):  # Var(max(x, c))
        mean = c * ndtr(c) + norm.pdf(c)
        return c**2 * ndtr(c) + ndtr(-c) + c * norm.pdf(c) - mean**2

    wanted, _ = quad(lambda c: given(c) * norm.pdf(c), -12, 12, epsabs=1e-14)
    assert abs(found.second / wanted - 1) <= found.error < 1e-5


def test_a_sampler_with_independent_features_is_simulated():
    model = Model(
        lambda X: X[:, 0] * X[:, 1],
        noise=0.5,
        n_features=2,
        sampler=lambda rng, n: rng.uniform(-1, 1, (n, 2)),
        conditional="independent",
    )
    row = theory.table(model, features=["x1"]).loc[0]
    assert row["psi_loco"] == pytest.approx(1 / 9, rel=5 * row["error"])
    assert row["psi_perm"] == pytest.approx(2 / 9, rel=5 * row["error"])
    assert row["E_Xt2"] == pytest.approx(1 / 3, rel=5 * row["error"])


def test_a_sampler_with_a_conditional_law_is_simulated():
    """The ±1 pair of the counterexample to Theorem 7."""

    def sampler(rng, n):
        x = rng.choice([-1.0, 1.0], n)
        return np.column_stack([x, np.where(rng.random(n) < 0.75, x, -x)])

    def conditional(rng, X, j):
        return np.where(rng.random(len(X)) < 0.75, X[:, 1 - j], -X[:, 1 - j])

    model = Model([1.0, 0.0], noise=0.1, sampler=sampler, conditional=conditional)
    row = theory.table(model, features=["x1"]).loc[0]
    wanted = theory.binary_pair(rho=0.5, beta=1.0, noise=0.1)
    assert row["var_loco"] == pytest.approx(wanted["var_loco"], rel=0.06)
    assert row["var_drop"] == pytest.approx(wanted["var_drop"], rel=0.06)


def test_permutation_of_an_interaction_agrees_with_simulation():
    covariance = np.array([[1.0, 0.6], [0.6, 1.0]])
    model = Model([Term(lambda Z: Z[:, 0] * Z[:, 1] + Z[:, 0], [0, 1])], covariance=covariance)
    row = theory.table(model, features=["x1"]).loc[0]
    rng = np.random.default_rng(0)
    means, naive = [], []
    for _ in range(4000):
        X = model.features(rng, 400)
        lent = X.copy()
        lent[:, 0] = rng.permutation(X[:, 0])
        noise = rng.standard_normal(400)
        scores = (model.mean(X) + noise - model.mean(lent)) ** 2 - noise**2
        means.append(scores.mean())
        naive.append(scores.var())
    assert np.mean(means) == pytest.approx(row["psi_perm"], rel=0.01)
    assert np.mean(naive) == pytest.approx(row["var_perm_naive"], rel=0.05)
    assert 400 * np.var(means) == pytest.approx(row["var_perm_exact"], rel=0.08)


@pytest.mark.parametrize("df", [2.5, 4.2, 7.0])
def test_heavy_tailed_moments_agree_with_closed_forms(df):
    model = Model(
        [Term(lambda x: x, [0], growth=1), Term(np.sin, [1], growth=0)], df=df, n_features=2
    )
    table = theory.table(model)
    assert table["psi_loco"][0] == pytest.approx(1.0, rel=1e-9)
    fourth = 3 * (df - 2) / (df - 4) if df > 4 else np.inf
    assert table["var_gcm"][0] == pytest.approx(fourth - 1 + 1, rel=1e-8)
    # E sin² = (1 − characteristic function at 2) / 2, with Bessel's K.
    from scipy.special import gamma, kv

    a = 2 * np.sqrt(df - 2)
    at_two = kv(df / 2, a) * a ** (df / 2) / (gamma(df / 2) * 2 ** (df / 2 - 1))
    assert table["psi_loco"][1] == pytest.approx((1 - at_two) / 2, rel=1e-9)


def test_which_moments_exist_is_known_from_growth_not_from_numbers():
    cubic = [Term(lambda x: x**3, [0], growth=3)]
    exists = {
        df: theory.table(Model(cubic, df=df, n_features=1)).loc[0] for df in (3, 5, 6.5, 8.5, 12.5)
    }
    finite = {df: [c for c in ("psi_gcm", "psi_loco", "var_gcm", "var_loco") if np.isfinite(r[c])]
              for df, r in exists.items()}  # fmt: skip
    assert finite == {
        3: [],
        5: ["psi_gcm"],
        6.5: ["psi_gcm", "psi_loco"],
        8.5: ["psi_gcm", "psi_loco", "var_gcm"],
        12.5: ["psi_gcm", "psi_loco", "var_gcm", "var_loco"],
    }


BAD = {
    "takes a Model": lambda: theory.table("additive"),
    "no feature 'x99'": lambda: theory.table(scenario("a"), features=["x99"]),
    "draws=3": lambda: theory.table(scenario("a"), draws=3),
    "noise=-1": lambda: theory.additive(np.sin, noise=-1),
    "spread=0": lambda: theory.linear(beta=1.0, noise=1.0, spread=0),
    "kappa=-1": lambda: theory.linear(beta=1.0, noise=1.0, kappa=-1),
    "explained=-1": lambda: theory.additive(np.sin, noise=1.0, explained=-1),
    "no version 'exakt'": lambda: theory.single_index(np.sin, [1], noise=1.0, version="exakt"),
    "power=4": lambda: theory.odd_power(4),
    "no erratum 99": lambda: theory.errata(99),
    "needs conditional=": lambda: theory.table(scenario("surrogate", rho=1.0)),
    "How fast": lambda: theory.table(Model([np.sin], df=5)),
    "interacts under heavy tails": lambda: theory.table(
        Model([Term(lambda Z: Z[:, 0] * Z[:, 1], [0, 1], growth=1)], df=5, n_features=2)
    ),
    "overflow": lambda: theory.table(Model([100.0], link=np.exp)),
    "two equal columns": lambda: theory.eta_prime([1, 2], [1, 2, 3]),
    "needs 20 different": lambda: theory.eta_prime(np.arange(9), np.arange(9)),
    "not finite. Drop": lambda: theory.eta_prime([np.nan] * 50, np.arange(50)),
}


@pytest.mark.parametrize("message", BAD)
def test_what_is_wrong_is_said_in_one_sentence(message):
    with pytest.raises(InputError) as caught:
        BAD[message]()
    assert message in str(caught.value)


# ---------------------------------------------------------------- the link's slope


@pytest.mark.parametrize(("sd", "bound"), [(1, 0.10), (3, 0.15), (11, 0.20)])
def test_the_slope_of_a_sigmoid_is_found_however_far_the_index_reaches(sd, bound):
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(3):
        index = sd * rng.standard_normal(1000)
        slope = expit(index) * expit(-index)
        found = theory.eta_prime(index, expit(index) + 0.1 * rng.standard_normal(1000))
        errors.append(np.sqrt(np.mean((found - slope) ** 2) / np.mean(slope**2)))
    assert np.mean(errors) < bound


def test_the_slope_follows_a_falling_link_ties_and_the_order_of_rows():
    rng = np.random.default_rng(0)
    index = np.round(rng.standard_normal(600), 1)
    y = -2 * index + 0.05 * rng.standard_normal(600)
    found = theory.eta_prime(index, y, at=[-1.0, 0.0, 1.0])
    np.testing.assert_allclose(found, -2, atol=0.2)
    order = rng.permutation(600)
    again = theory.eta_prime(index[order], y[order], at=[-1.0, 0.0, 1.0])
    np.testing.assert_allclose(found, again, atol=0.05)


# ---------------------------------------------------------------- errata


def test_every_erratum_is_what_its_code_gives():
    table = theory.errata()
    names = {"np": np, "theory": theory, "scenario": scenario, "Model": Model}
    for row in table.itertuples():
        found = float(eval(row.shown_by, names))
        assert found == pytest.approx(row.truth, rel=1e-9, nan_ok=True), row.claim
    assert table["number"].unique().tolist() == list(range(1, 18))
    assert not np.isclose(table["paper"], table["truth"]).any()
