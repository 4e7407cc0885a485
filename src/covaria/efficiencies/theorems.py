"""The paper's theorems and examples, each as one short function.

Features are normal here unless said otherwise; `noise` is a standard deviation and `spread` the
variance of what the other features do not explain of x_j.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from covaria.efficiencies import formulas, quadrature
from covaria.efficiencies.moments import Moments, moments
from covaria.errors import InputError, did_you_mean
from covaria.simulation.model import Curve, Model

if TYPE_CHECKING:
    import pandas as pd

VERSIONS = ("exact", "random", "constant")


def linear(*, beta: float, noise: float, spread: float = 1.0, kappa: float | None = None) -> float:
    """Return e(GCM, LOCO) of Theorem 3; kappa = Var(x²) is that of a normal where not given.

    >>> round(linear(beta=1.0, noise=1.0, spread=0.75), 12)
    2.2
    """
    _check_positive(noise=noise, spread=spread)
    kappa = 2 * spread**2 if kappa is None else kappa
    if kappa < 0:
        raise InputError(f"kappa={kappa} is a variance. It cannot be negative.")
    if beta == 0:
        return math.nan
    return (beta**2 * kappa + 4 * noise**2 * spread) / (beta**2 * kappa + noise**2 * spread)


def additive(curve: Curve, *, noise: float, spread: float = 1.0, explained: float = 0.0) -> float:
    """Return e(GCM, LOCO) of Theorem 4 for one curve; `explained` is the variance of E[x_j | rest].

    >>> round(additive(np.sin, noise=0.1), 3)
    0.786
    """
    found = curve_moments(curve, spread=spread, explained=explained)
    return formulas.row(found, _noise(noise))["are_gcm_loco"]


def assumption_a(
    curve: Curve, *, noise: float, spread: float = 1.0, explained: float = 0.0
) -> float:
    """Return the ratio of the two sides of Assumption (A); above 1, GCM needs fewer rows.

    >>> round(assumption_a(np.sin, noise=0.1), 3)
    0.896
    """
    found = curve_moments(curve, spread=spread, explained=explained)
    return formulas.assumption_a(found, _noise(noise))["A_ratio"]


def noise_threshold(curve: Curve, *, spread: float = 1.0, explained: float = 0.0) -> float:
    """Return the noise at which Assumption (A) changes sides; NaN where it never does.

    >>> round(noise_threshold(np.sin), 3)
    0.202
    """
    return formulas.noise_threshold(curve_moments(curve, spread=spread, explained=explained))


def curve_moments(curve: Curve, *, spread: float = 1.0, explained: float = 0.0) -> Moments:
    """Return the moments of one additive curve of a normal feature."""
    _check_positive(spread=spread)
    if explained < 0:
        raise InputError(f"explained={explained} is a variance. It cannot be negative.")
    covariance = np.array([[spread + explained, explained], [explained, explained]])
    if explained == 0:
        covariance = np.array([[spread]])
    return moments(Model({0: curve}, covariance=covariance), 0)


def single_index(
    link: Curve,
    beta: ArrayLike,
    *,
    noise: float,
    covariance: ArrayLike | None = None,
    version: str = "exact",
    slope: float | None = None,
) -> pd.DataFrame:
    """Return the theory's table for y = link(X beta) + noise, in one of three versions.

    Parameters
    ----------
    version: "exact" by quadrature; "random", the first-order expansion with link' random, as it
        is; "constant", Theorem 5 as printed, with link' one number.
    slope: that number; link'(0) where not given.

    >>> table = single_index(np.tanh, [1.0, 0.5], noise=1.0)
    >>> table["are_gcm_loco"].round(3).tolist()
    [2.769, 2.886]
    """
    import pandas as pd

    if version not in VERSIONS:
        raise InputError(f"There is no version '{version}'.{did_you_mean(version, VERSIONS)}")
    given = None if covariance is None else np.asarray(covariance, dtype=float)
    model = Model(np.asarray(beta, dtype=float), link=link, noise=noise, covariance=given)
    rows = []
    for j, name in enumerate(model.names):
        found = moments(model, j) if version == "exact" else _first_order(model, j, version, slope)
        rows.append({"feature": name} | formulas.row(found, noise))
    table = pd.DataFrame(rows)
    # The expansion says nothing of dropout and permutation.
    return table if version == "exact" else table[[c for c in EXPANDED if c in table]]


EXPANDED = (
    *("feature", "sigma2", "E_Xt2", "psi_gcm", "var_gcm", "rv_gcm", "psi_loco", "var_loco"),
    *("rv_loco", "psi_pcm", "var_pcm", "rv_pcm", "are_gcm_loco", "are_pcm_loco", "are_pcm_gcm"),
    *("corr2_Xt_ft", "A_ratio", "are_no_noise", "are_all_noise", "gcm_lower_bound_on_loco"),
)


def _first_order(model: Model, j: int, version: str, slope: float | None) -> Moments:
    """Return the moments of f ≈ link'(m) β x, m the index as the other features explain it."""
    covariance = np.eye(model.n_features) if model.covariance is None else model.covariance
    spread = 1 / float(np.linalg.inv(covariance)[j, j])
    beta = np.array(model.terms[0].weights)
    variance = float(beta @ covariance @ beta)
    rest = max(variance - spread * beta[j] ** 2, 0.0)
    if not beta[j]:
        return Moments(spread)
    link = quadrature.Piecewise.of(model.terms[0].function, math.sqrt(variance))
    if version == "random":
        one, two, four = quadrature.slope_moments(link, math.sqrt(rest), (1, 2, 4))
    else:
        slope = quadrature.slope_at_zero(link) if slope is None else slope
        one, two, four = slope, slope**2, slope**4
    b2 = float(beta[j]) ** 2
    return Moments(
        spread,
        cross=float(beta[j]) * spread * one,
        second=b2 * spread * two,
        mixed=b2 * 3 * spread**2 * two,
        fourth=b2**2 * 3 * spread**2 * four,
    )


def saturated_index(beta: float, *, spread: float = 1.0) -> float:
    """Return the limit of e(GCM, LOCO) in Theorem 5's own regime: a sigmoid, its index → ∞.

    There the curve is −exp(−βx) and the noise outweighs it, so e = 4 Corr² = 4t²/(exp(t²) − 1)
    with t = β√spread.

    >>> [round(saturated_index(t), 3) for t in (0.5, 1, 2, 3)]
    [3.521, 2.328, 0.299, 0.004]
    """
    t2 = beta**2 * spread
    return 4.0 if t2 == 0 else 4 * t2 / math.expm1(t2)


def saturated_remainder(beta: float, *, spread: float = 1.0) -> float:
    """Return the size of what Theorem 5 neglects over what it keeps, in the same regime.

    >>> [round(saturated_remainder(t), 2) for t in (0.5, 1, 2)]
    [0.51, 1.67, 26.98]
    """
    t2 = beta**2 * spread
    square = math.exp(2 * t2) + 1 + t2 - 2 * (1 + t2) * math.exp(t2 / 2)
    return math.sqrt(square / t2)


def dropout_variance(curve: Curve, *, noise: float, spread: float = 1.0) -> dict[str, float]:
    """Return dropout's variance as the paper has it and as it is, with the term 4b E[a³].

    >>> found = dropout_variance(lambda x: 2 * x**2, noise=0.1)
    >>> {name: round(value, 2) for name, value in found.items()}
    {'paper': 1024.48, 'exact': 1536.48}
    """
    found = curve_moments(curve, spread=spread)
    exact = formulas.importance(found, _noise(noise))["var_drop"]
    # With b = E f − f(0): E d² = E a² + b² and E d⁴ = E a⁴ + 4b E a³ + 6b² E a² + b⁴.
    b2 = found.drop_second - found.second
    cubic = found.drop_fourth - found.fourth - 6 * b2 * found.second - b2**2
    return {"paper": exact - cubic, "exact": exact}


def binary_pair(*, rho: float, beta: float, noise: float) -> dict[str, float]:
    """Return the variances of LOCO and dropout for y = βx_j + noise, x_j = ±1, one ±1 neighbour.

    Theorem 7 says that LOCO's is the smaller. Given the neighbour x_j has mean ±rho, so x² varies;
    without it x² = 1 does not.

    >>> found = binary_pair(rho=0.5, beta=1.0, noise=0.1)
    >>> {name: round(value, 3) for name, value in found.items()}
    {'var_loco': 0.78, 'var_drop': 0.04}
    """
    left = 1 - rho**2
    return {
        "var_loco": 4 * beta**4 * rho**2 * left + 4 * noise**2 * beta**2 * left,
        "var_drop": 4 * noise**2 * beta**2,
    }


def theorem_7(*, noise: float = 0.1) -> pd.DataFrame:
    """Return cases of Theorem 7, Var(LOCO) ≤ Var(dropout): where it holds and where it does not."""
    import pandas as pd

    quartic = formulas.importance(curve_moments(lambda x: x**4 - 3.1 * x**2), noise)
    normal = formulas.importance(curve_moments(lambda x: x, spread=0.75, explained=0.25), noise)
    cases = {
        "linear, normal features of correlation .5": normal,
        "linear, ±1 features of correlation .5": binary_pair(rho=0.5, beta=1.0, noise=noise),
        "x⁴ − 3.1x², independent normal features": quartic,
    }
    rows = [
        {"case": case, "var_loco": v["var_loco"], "var_drop": v["var_drop"]}
        for case, v in cases.items()
    ]
    table = pd.DataFrame(rows)
    return table.assign(holds=table["var_loco"] <= table["var_drop"])


def odd_power(power: int) -> dict[str, float]:
    """Return the figures of Example 2 for f = x^power, odd: exact, as printed, and mended.

    The two sides of (A) are left + left_noise σ² and right + right_noise σ².

    >>> found = odd_power(3)
    >>> found["left"], round(found["left_mended"])
    (6237.0, 6454)
    """
    if power < 1 or power % 2 == 0:
        raise InputError(f"power={power} must be an odd number above 0.")
    even = _even_moment
    p = power
    stirling = p**p * (p + 1) ** (p + 1) / math.exp(2 * p + 1)
    correlation = even(p + 1) ** 2 / even(2 * p)
    left, right = even(4 * p) * correlation, even(2 * p + 2) * even(2 * p)
    left_noise, right_noise = 4 * even(p + 1) ** 2, even(2 * p)
    fails = left_noise < right_noise
    limit = (
        math.sqrt((left - right) / (right_noise - left_noise) / even(2 * p)) if fails else math.inf
    )
    return {
        "left": left,
        "left_printed": 2.0 ** (5 * p + 1) * stirling,
        "left_mended": 2.0 ** (3 * p + 1) * stirling,
        "left_noise": left_noise,
        "right": right,
        "right_noise": right_noise,
        "fails_above": limit,  # σ over the sd of f
        "are_all_noise": 4 * correlation,
    }


def _even_moment(order: int) -> float:
    """Return E z^order of a standard normal, for an even order."""
    return float(math.prod(range(1, order, 2)))


def _noise(noise: float) -> float:
    _check_positive(noise=noise)
    return noise


def _check_positive(**given: float) -> None:
    for name, value in given.items():
        if not (isinstance(value, int | float | np.floating | np.integer) and 0 < value < math.inf):
            raise InputError(f"{name}={value!r} must be a number above 0.")
