"""From moments to importance, variance, relative variability and efficiency, per method.

Variances are per row: divide by n. `psi` is the importance, `rv` sd over |psi|, and
are_a_b = (rv_b / rv_a)², the rows that b needs for each row of a.
"""

from __future__ import annotations

import math

from covaria.efficiencies.moments import Moments

# The columns of a table of the theory, in order.
Row = dict[str, float]


def importance(m: Moments, noise: float) -> Row:
    """Return psi and variance of every method at the true regressions.

    A mean that is infinite has no variance (NaN); a mean that exists may have an infinite one.
    """
    s2 = noise**2
    return {
        "psi_gcm": m.cross,
        "var_gcm": _if_finite(m.cross, m.mixed - m.cross**2 + s2 * m.spread),
        "psi_loco": m.second,
        "var_loco": _gain_variance(m.second, m.fourth, 4 * s2),
        "psi_drop": m.drop_second,
        "var_drop": _gain_variance(m.drop_second, m.drop_fourth, 4 * s2),
        "psi_perm": m.swap_second,
        "var_perm_naive": _gain_variance(m.swap_second, m.swap_fourth, 4 * s2),
        "var_perm_exact": _gain_variance(m.swap_second, m.swap_fourth + 2 * m.swap_shared, 4 * s2),
        "psi_pcm": m.second,
        "var_pcm": _gain_variance(m.second, m.fourth, s2),
    }


def _gain_variance(second: float, fourth: float, noise: float) -> float:
    """Return Var(d²) + noise · E d², the variance of a gain whose signal part is d²."""
    return _if_finite(second, fourth - second**2 + noise * second)


def _if_finite(mean: float, variance: float) -> float:
    return variance if math.isfinite(mean) else math.nan


def relative_variability(psi: float, variance: float) -> float:
    """Return sd over |psi|: infinite where psi is zero, NaN where psi is infinite."""
    if psi == 0:
        return math.inf
    return math.sqrt(variance) / abs(psi) if math.isfinite(psi) else math.nan


def relative_efficiency(ours: float, rival: float) -> float:
    """Return (rival / ours)² of two relative variabilities; NaN where both are infinite."""
    if math.isnan(ours) or math.isnan(rival) or (math.isinf(ours) and math.isinf(rival)):
        return math.nan
    return math.inf if math.isinf(rival) else (rival / ours) ** 2


def efficiencies(row: Row) -> Row:
    """Return every relative variability and relative efficiency of a row of importances."""
    rv = {
        name: relative_variability(row[f"psi_{name}"], row[f"var_{name}"])
        for name in ("gcm", "loco", "drop", "pcm")
    }
    # Without a finite variance PCM has no efficiency to speak of, whatever the rival's.
    if not math.isfinite(rv["pcm"]):
        rv["pcm"] = math.inf
    ratios = {
        f"are_{a}_{b}": relative_efficiency(rv[a], rv[b])
        for a, b in (("gcm", "loco"), ("gcm", "drop"), ("loco", "drop"))
    }
    for rival in ("loco", "gcm"):
        known = math.isfinite(rv["pcm"])
        ratios[f"are_pcm_{rival}"] = (
            relative_efficiency(rv["pcm"], rv[rival]) if known else math.nan
        )
    swapped = {
        f"rv_perm_{kind}": relative_variability(row["psi_perm"], row[f"var_perm_{kind}"])
        for kind in ("naive", "exact")
    }
    return {f"rv_{name}": value for name, value in rv.items()} | swapped | ratios


def squared_correlation(m: Moments) -> float:
    """Return Corr²(x, f), both with mean zero; NaN where f is zero or has no variance."""
    if m.second == 0 or not (math.isfinite(m.second) and math.isfinite(m.cross)):
        return math.nan
    return m.cross**2 / (m.spread * m.second)


def assumption_a(m: Moments, noise: float) -> Row:
    """Return both sides of Assumption (A) and their ratio; above 1 means e(GCM, LOCO) above 1."""
    left = squared_correlation(m)
    right = math.nan
    if m.second > 0 and all(map(math.isfinite, (m.second, m.mixed, m.fourth))):
        above = m.mixed * m.second / m.spread + noise**2 * m.second
        right = above / (m.fourth + 4 * noise**2 * m.second)
    return {"corr2_Xt_ft": left, "A_lhs": left, "A_rhs": right, "A_ratio": left / right}


def limits(m: Moments) -> Row:
    """Return e(GCM, LOCO) as the noise goes to zero and to infinity."""
    correlation = squared_correlation(m)
    quiet = math.nan
    if m.second > 0 and all(map(math.isfinite, (m.cross, m.mixed, m.fourth))):
        above = correlation * (m.fourth - m.second**2)
        below = (m.mixed - m.cross**2) * m.second / m.spread
        quiet = above / below if below > 0 else math.nan
    return {"are_no_noise": quiet, "are_all_noise": 4 * correlation}


def noise_threshold(m: Moments) -> float:
    """Return the noise at which Assumption (A) changes sides; NaN where it never does.

    Above it (A) holds where Corr² > 1/4, below it where Corr² < 1/4.
    """
    correlation = squared_correlation(m)
    above = m.mixed * m.second / m.spread - correlation * m.fourth
    below = m.second * (4 * correlation - 1)
    return math.sqrt(above / below) if below and above / below > 0 else math.nan


def row(m: Moments, noise: float) -> Row:
    """Return everything the theory says of one feature."""
    found = importance(m, noise)
    return (
        {"sigma2": noise**2, "E_Xt2": m.spread}
        | found
        | efficiencies(found)
        | assumption_a(m, noise)
        | limits(m)
        | {"gcm_lower_bound_on_loco": m.cross**2 / m.spread, "error": m.error}
    )
