"""The formulas of the theory, against sums over every value of small discrete laws."""

import math

import numpy as np
import pytest

from covaria.efficiencies import formulas
from covaria.efficiencies.moments import Moments

INF, NAN = math.inf, math.nan


class Law:
    """Some values of (x, f, dropped, swapped), each as likely, and the moments they have."""

    def __init__(self, seed=0, n_values=7, odd=1.0):
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=n_values)
        self.x -= self.x.mean()
        self.f = odd * self.x + rng.normal(size=n_values)
        self.f -= self.f.mean()
        self.dropped, self.swapped = rng.normal(size=(2, n_values))

    @property
    def moments(self):
        def mean(values):
            return float(values.mean())

        x, f = self.x, self.f
        return Moments(
            spread=mean(x**2), cross=mean(x * f), second=mean(f**2),
            mixed=mean(x**2 * f**2), fourth=mean(f**4),
            drop_second=mean(self.dropped**2), drop_fourth=mean(self.dropped**4),
            swap_second=mean(self.swapped**2), swap_fourth=mean(self.swapped**4),
            swap_shared=0.25, error=0.125,
        )  # fmt: skip

    def scores(self, noise):
        """Return every method's score at the truth, of every value and noise of either sign."""
        e = np.repeat([-noise, noise], len(self.x))
        x, f, dropped, swapped = (
            np.tile(v, 2) for v in (self.x, self.f, self.dropped, self.swapped)
        )
        return {
            "gcm": x * (f + e),
            "loco": (f + e) ** 2 - e**2,
            "drop": (dropped + e) ** 2 - e**2,
            "perm": (swapped + e) ** 2 - e**2,
            "pcm": f * (f + e),
        }


LAWS = [Law(seed, odd=odd) for seed, odd in enumerate([1.0, -2.0, 0.3, 0.0])]


@pytest.mark.parametrize("noise", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("law", LAWS)
def test_importance_and_variance_are_those_of_the_scores(law, noise):
    found = formulas.importance(law.moments, noise)
    for name, scores in law.scores(noise).items():
        assert found[f"psi_{name}"] == pytest.approx(scores.mean(), abs=1e-12)
        variance = found["var_perm_naive" if name == "perm" else f"var_{name}"]
        assert variance == pytest.approx(scores.var())
    # Rows that lend each other their values are counted once more, and once more.
    assert found["var_perm_exact"] == pytest.approx(found["var_perm_naive"] + 2 * 0.25)


def test_permuting_a_linear_effect_has_its_known_variance():
    # d = x − x' of two normals: E d² = 2, E d⁴ = 12, and E[d² given x] = x² + 1 has variance 2.
    m = Moments(spread=1.0, swap_second=2.0, swap_fourth=12.0, swap_shared=2.0)
    found = formulas.importance(m, 0.5)
    assert found["var_perm_naive"] == pytest.approx(8 + 4 * 0.25 * 2)
    assert found["var_perm_exact"] == pytest.approx(8 + 4 * 0.25 * 2 + 4)


def test_a_mean_that_is_infinite_has_no_variance_and_others_may_have_an_infinite_one():
    m = Moments(1.0, cross=0.5, second=INF, mixed=INF, fourth=INF, drop_second=1.0, drop_fourth=INF)
    found = formulas.importance(m, 1.0)
    assert found["var_gcm"] == found["var_drop"] == INF
    assert math.isnan(found["var_loco"])
    assert math.isnan(found["var_pcm"])
    assert math.isnan(formulas.importance(Moments(1.0, cross=INF, mixed=INF), 1.0)["var_gcm"])


def test_relative_variability_is_sd_over_size():
    assert formulas.relative_variability(-2.0, 9.0) == 1.5
    assert formulas.relative_variability(0.0, 9.0) == INF
    assert formulas.relative_variability(1.0, INF) == INF
    assert math.isnan(formulas.relative_variability(INF, NAN))
    assert math.isnan(formulas.relative_variability(INF, 1.0))


def test_relative_efficiency_is_the_squared_ratio_or_what_its_limits_are():
    assert formulas.relative_efficiency(2.0, 3.0) == 2.25
    assert formulas.relative_efficiency(2.0, INF) == INF
    assert formulas.relative_efficiency(INF, 2.0) == 0.0
    for ours, rival in ((INF, INF), (NAN, 1.0), (1.0, NAN), (NAN, INF)):
        assert math.isnan(formulas.relative_efficiency(ours, rival))


@pytest.mark.parametrize("law", LAWS)
def test_efficiencies_are_ratios_of_rows_needed(law):
    found = formulas.efficiencies(formulas.importance(law.moments, 0.7))
    # Of each method as many rows are needed for the same power as sd² over mean².
    rows = {name: s.var() / s.mean() ** 2 for name, s in law.scores(0.7).items()}
    for name in ("gcm", "loco", "drop", "pcm"):
        assert found[f"rv_{name}"] ** 2 == pytest.approx(rows[name])
    pairs = ("gcm loco", "gcm drop", "loco drop", "pcm loco", "pcm gcm")
    for a, b in map(str.split, pairs):
        assert found[f"are_{a}_{b}"] == pytest.approx(rows[b] / rows[a])
    assert found["rv_perm_naive"] ** 2 == pytest.approx(rows["perm"])
    more = 0.5 / law.scores(0.7)["perm"].mean() ** 2
    assert found["rv_perm_exact"] ** 2 == pytest.approx(rows["perm"] + more)
    assert len(found) == 11


@pytest.mark.parametrize("variance", [INF, NAN])
def test_without_a_finite_variance_pcm_has_no_efficiency(variance):
    row = formulas.importance(LAWS[0].moments, 1.0) | {"var_pcm": variance}
    found = formulas.efficiencies(row)
    assert found["rv_pcm"] == INF
    assert math.isnan(found["are_pcm_loco"])
    assert math.isnan(found["are_pcm_gcm"])
    assert math.isfinite(found["are_gcm_loco"])


@pytest.mark.parametrize("law", LAWS)
def test_the_squared_correlation_is_pearsons(law):
    expected = np.corrcoef(law.x, law.f)[0, 1] ** 2
    assert formulas.squared_correlation(law.moments) == pytest.approx(expected)


@pytest.mark.parametrize("m", [
    Moments(1.0), Moments(1.0, cross=1.0, second=INF), Moments(1.0, cross=INF, second=1.0),
])  # fmt: skip
def test_nothing_or_too_much_has_no_correlation(m):
    assert math.isnan(formulas.squared_correlation(m))


@pytest.mark.parametrize("noise", [0.0, 0.4, 3.0])
@pytest.mark.parametrize("law", LAWS)
def test_assumption_a_says_whether_gcm_needs_fewer_rows_than_loco(law, noise):
    m = law.moments
    found = formulas.assumption_a(m, noise)
    are = formulas.efficiencies(formulas.importance(m, noise))["are_gcm_loco"]
    assert (found["A_ratio"] > 1) == (are > 1)
    assert found["A_lhs"] == found["corr2_Xt_ft"] == formulas.squared_correlation(m)
    assert found["A_ratio"] == pytest.approx(found["A_lhs"] / found["A_rhs"])
    # Both sides, with the second moments in place of the variances.
    scores = law.scores(noise)
    squares = {name: (scores[name] ** 2).mean() / scores[name].mean() ** 2 for name in scores}
    assert found["A_ratio"] == pytest.approx(squares["loco"] / squares["gcm"])


@pytest.mark.parametrize("law", LAWS[:3])
def test_limits_are_the_efficiencies_of_very_little_and_very_much_noise(law):
    found = formulas.limits(law.moments)
    for noise, name in ((1e-5, "are_no_noise"), (1e5, "are_all_noise")):
        row = formulas.efficiencies(formulas.importance(law.moments, noise))
        assert found[name] == pytest.approx(row["are_gcm_loco"], rel=1e-6)


# x is 1 or −1 and f is x: both scores are constant but for the noise.
SIGNS = Moments(1.0, cross=1.0, second=1.0, mixed=1.0, fourth=1.0)


def test_where_scores_do_not_vary_without_noise_there_is_no_limit_and_no_threshold():
    assert math.isnan(formulas.limits(SIGNS)["are_no_noise"])
    assert formulas.limits(SIGNS)["are_all_noise"] == 4.0
    assert math.isnan(formulas.noise_threshold(SIGNS))


@pytest.mark.parametrize("gone", ["second", "mixed", "fourth", "cross"])
def test_sides_and_limits_that_are_infinite_are_not_numbers(gone):
    known = {"spread": 1.0, "cross": 0.8, "second": 1.0, "mixed": 2.0, "fourth": 3.0}
    m = Moments(**known | {gone: INF})
    found = formulas.assumption_a(m, 1.0) | formulas.limits(m)
    assert math.isnan(found["A_ratio"])
    assert math.isnan(found["are_no_noise"])
    assert math.isnan(found["A_rhs"]) == (gone != "cross")
    nothing = Moments(1.0)
    found = formulas.assumption_a(nothing, 1.0) | formulas.limits(nothing)
    assert all(math.isnan(value) for value in found.values())


@pytest.mark.parametrize("mixed", [3.0, 6.0])
def test_at_the_threshold_both_tests_need_the_same_rows(mixed):
    # Corr² = 0.605 > 1/4: below the threshold LOCO needs fewer rows, above it GCM.
    m = Moments(2.0, cross=1.1, second=1.0, mixed=mixed, fourth=2.0)
    at = formulas.noise_threshold(m)
    for noise, above in ((at, None), (0.9 * at, False), (1.1 * at, True)):
        are = formulas.efficiencies(formulas.importance(m, noise))["are_gcm_loco"]
        assert are == pytest.approx(1.0) if above is None else (are > 1) == above


@pytest.mark.parametrize("m", [
    Moments(1.0, cross=0.8, second=1.0, mixed=1.0, fourth=3.0),  # GCM always
    Moments(1.0, cross=0.3, second=1.0, mixed=1.0, fourth=3.0),  # LOCO always
    Moments(1.0, cross=0.5, second=1.0, mixed=1.0, fourth=3.0),  # Corr² is 1/4
])  # fmt: skip
def test_where_one_test_needs_fewer_rows_at_any_noise_there_is_no_threshold(m):
    assert math.isnan(formulas.noise_threshold(m))


def test_a_row_holds_all_of_it():
    m = LAWS[0].moments
    found, importance = formulas.row(m, 0.7), formulas.importance(m, 0.7)
    parts = (importance, formulas.efficiencies(importance), formulas.assumption_a(m, 0.7))
    for part in (*parts, formulas.limits(m)):
        assert part.items() <= found.items()
    assert found["sigma2"] == pytest.approx(0.49)
    assert (found["E_Xt2"], found["error"]) == (m.spread, 0.125)
    # Cauchy and Schwarz: E[xf]² ≤ E[x²] E[f²].
    assert found["gcm_lower_bound_on_loco"] == pytest.approx(m.cross**2 / m.spread)
    assert found["gcm_lower_bound_on_loco"] <= found["psi_loco"]
