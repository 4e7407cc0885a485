"""Few rows behind a test: rare flags, gaps and texts with lopsided targets."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import hypergeom

from covaria import assess
from covaria.assessment import prepare
from covaria.inference import resampling
from covaria.inference.resampling import (
    POLICY,
    Shuffles,
    form_factor,
    is_far_from_normal,
    product_factor,
)
from covaria.methods.few_rows import _far_from_normal
from covaria.nuisance.regressions import fit_residuals

N_ROWS = 1000


def folds(rng, n_rows=N_ROWS, count=5):
    return rng.permutation(n_rows) % count


def out_of_fold(values, fold):
    """Return values less the mean of the other folds: residuals of a model without features."""
    left = np.empty(len(values))
    for k in np.unique(fold):
        left[fold == k] = values[fold == k] - values[fold != k].mean()
    return left


def flag(rng, ones, n_rows=N_ROWS):
    values = np.zeros(n_rows)
    values[rng.choice(n_rows, ones, replace=False)] = 1
    return values


def p_value(x, y, fold, alternative="two-sided", seed=0):
    """Return GCM's p-value of residuals, as `assess` comes to it."""
    from scipy.stats import norm

    scores = x * y
    factor = 1.0
    if is_far_from_normal(x[:, None], y[:, None]):
        shuffles = Shuffles(fold, lambda: np.random.default_rng(seed))
        factor = product_factor(x[:, None], y[:, None], scores, shuffles, alternative)
    ratio = scores.mean() / (factor * scores.std() / np.sqrt(len(scores)))
    return 2 * norm.sf(abs(ratio)) if alternative == "two-sided" else norm.sf(ratio)


@pytest.mark.parametrize("n_runs", [60, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("ones", [3, 5, 20, 100])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_a_rare_flag_that_says_nothing_is_not_found_with_a_lopsided_target(ones, share, n_runs):
    # The normal limit rejects up to 94% of them.
    rng, rejected = np.random.default_rng([ones, int(100 * share)]), 0
    for seed in range(n_runs):
        fold = folds(rng)
        x, y = out_of_fold(flag(rng, ones), fold), out_of_fold(rng.random(N_ROWS) < share, fold)
        rejected += p_value(x, y, fold, seed=seed) < 0.05
    assert rejected / n_runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_runs)


def test_permuting_a_flag_against_classes_is_fishers_exact_test():
    rng = np.random.default_rng(0)
    y = flag(rng, 100)
    for hits in (0, 1, 2, 3):
        x = np.zeros(N_ROWS)
        x[rng.choice(np.flatnonzero(y == 1), hits, replace=False)] = 1
        x[rng.choice(np.flatnonzero(y == 0), 5 - hits, replace=False)] = 1
        exact = hypergeom(N_ROWS, 100, 5)
        expected = min(1.0, 2 * min(exact.cdf(hits), exact.sf(hits - 1)))
        found = p_value(x - x.mean(), y - y.mean(), np.zeros(N_ROWS, dtype=np.intp))
        error = 2 * np.sqrt(expected * 2 / POLICY.draws[1]) + 0.05 * expected
        # Where nothing is found the p-value is that of a cautious variance.
        assert found == pytest.approx(expected, abs=3 * error) or min(found, expected) > 0.3


def test_strong_evidence_of_a_rare_flag_is_found():
    rng = np.random.default_rng(1)
    fold, x = folds(rng), flag(rng, 8)
    y = np.where(x == 1, 1.0, rng.random(N_ROWS) < 0.1)
    p = p_value(out_of_fold(x, fold), out_of_fold(y, fold), fold)
    assert p < 0.001  # the normal limit says .005


def test_where_the_normal_limit_is_close_nothing_is_permuted():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 500, 1))
    assert not is_far_from_normal(x, y)
    halves = np.where(rng.random((500, 1)) < 0.5, 0.5, -0.5)
    assert not is_far_from_normal(halves, y)
    assert not is_far_from_normal(x, rng.exponential(size=(500, 1)) - 1)
    assert is_far_from_normal(flag(rng, 5)[:, None] - 0.005, flag(rng, 100)[:, None] - 0.1)


def test_more_rows_than_are_drawn_for_give_the_same_p_value(monkeypatch):
    rng = np.random.default_rng(3)
    n_rows = POLICY.most_rows
    fold, x = folds(rng, n_rows), flag(rng, 30, n_rows)
    y = np.where(x == 1, rng.random(n_rows) < 0.25, rng.random(n_rows) < 0.1)
    x, y = out_of_fold(x, fold), out_of_fold(y, fold)
    whole = p_value(x, y, fold)
    monkeypatch.setattr("covaria.inference.resampling.POLICY", type(POLICY)(most_rows=500))
    assert p_value(x, y, fold) == pytest.approx(whole, rel=0.35)


def test_one_sided_p_values_are_permuted_in_their_own_tail():
    rng = np.random.default_rng(4)
    fold, x = folds(rng), flag(rng, 10)
    y = np.where(x == 1, rng.random(N_ROWS) < 0.6, rng.random(N_ROWS) < 0.1)
    x, y = out_of_fold(x, fold), out_of_fold(y, fold)
    assert p_value(x, y, fold, "greater") < 0.01
    assert p_value(x, -y, fold, "greater") > 0.5


def test_a_form_of_many_rare_levels_holds_its_level():
    rng, rejected, n_runs = np.random.default_rng(5), 0, 50
    from scipy.stats import chi2

    for seed in range(n_runs):
        fold, level = folds(rng), rng.integers(100, size=N_ROWS)
        x = np.column_stack([out_of_fold((level == k).astype(float), fold) for k in range(19)])
        y = out_of_fold(rng.random(N_ROWS) < 0.1, fold)
        products = x * y[:, None]
        inverse = np.linalg.pinv(np.cov(products.T, ddof=0) / N_ROWS)
        scores = products @ (inverse @ products.mean(axis=0))
        shuffles = Shuffles(fold, lambda seed=seed: np.random.default_rng(seed))
        factor = form_factor(x, y[:, None], scores, 19, shuffles)
        error = factor * scores.std() / np.sqrt(N_ROWS)
        rejected += chi2.sf((scores.mean() / error) ** 2, 19) < 0.05
    assert rejected / n_runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_runs)


def test_a_form_of_too_many_rows_to_permute_is_a_chi_squared(monkeypatch):
    rng = np.random.default_rng(9)
    x, y = rng.normal(size=(N_ROWS, 3)), rng.normal(size=(N_ROWS, 1))
    shuffles = Shuffles(folds(rng), lambda: np.random.default_rng(0))
    permuted = resampling._form_p(x, y, shuffles)
    monkeypatch.setattr("covaria.inference.resampling.POLICY", type(POLICY)(most_drawn=1000))
    assert resampling._form_p(x, y, shuffles) == pytest.approx(permuted, abs=0.06)


def table(rng, x, n_rows=N_ROWS):
    return pd.DataFrame(rng.normal(size=(n_rows, 2)), columns=["a", "b"]).assign(x=x)


@pytest.mark.parametrize("kind", ["flag", "gaps", "text"])
def test_assess_does_not_find_noise_that_few_rows_carry(kind):
    methods = ["gcm", "pcm", "gcm+pcm", "loco", "dropout", "permutation"]
    found = dict.fromkeys(methods, 0)
    for seed in range(8):
        rng = np.random.default_rng([seed, *kind.encode()])
        x = {
            "flag": flag(rng, 5),
            "gaps": np.where(flag(rng, 8) == 1, np.nan, rng.normal(size=N_ROWS)),
            "text": np.array([f"level {k}" for k in rng.integers(200, size=N_ROWS)]),
        }[kind]
        y = (rng.random(N_ROWS) < 0.05).astype(int)
        result = assess(table(rng, x), y, learner="linear", methods=methods, seed=seed, check=False)
        rows = result.table[result.table["feature"] == "x"]
        for method, p in zip(rows["method"], rows["p_value"], strict=True):
            found[method] += p < 0.05
    # Four or more of eight would come of a level of .05 once in 2,700 times.
    assert max(found.values()) <= 3, found
    assert sum(found.values()) <= 8, found


def test_a_flag_that_goes_with_rare_counts_is_not_found_for_that():
    # Both are ten times as common where z is 1: permuted over all rows, noughts look unusual.
    found = 0
    for seed in range(20):
        rng = np.random.default_rng([seed, 31])
        z = (rng.random(800) < 0.3) * 1.0
        x = (rng.random(800) < np.where(z > 0, 0.04, 0.004)) * 1.0
        y = rng.poisson(np.where(z > 0, 0.15, 0.01)).astype(float)
        options = {"learner": "linear", "methods": "gcm", "seed": seed, "check": False}
        result = assess(pd.DataFrame({"z": z, "x": x}), y, **options)
        found += result.table["p_value"].iloc[1] < 0.05
    assert found <= 5  # six of twenty would come of .05 once in 3,000 times


def test_a_finding_that_few_rows_carry_names_them():
    rng = np.random.default_rng(6)
    x = flag(rng, 6)
    y = np.where(x == 1, 30.0, 0.0) + rng.normal(size=N_ROWS)
    result = assess(table(rng, x), y, learner="linear", methods="gcm", correction="none")
    assert "x" in result.selected["gcm"]
    told = [alert for alert in result.alerts if "rests on about" in alert]
    assert len(told) == 1
    assert any(f"{row + 1}" in told[0] for row in np.flatnonzero(x).tolist())


def test_the_scores_still_make_the_table_where_residuals_were_permuted():
    rng = np.random.default_rng(7)
    y = (rng.random(N_ROWS) < 0.1).astype(int)
    result = assess(table(rng, flag(rng, 20)), y, learner="linear", methods=["gcm", "loco"])
    for method in ("gcm", "loco"):
        rows, scores = result.only(method).table, result.scores[method]
        assert np.allclose(rows["estimate"], scores.mean(axis=0))
        assert np.allclose(rows["std_error"], scores.std(axis=0) / np.sqrt(N_ROWS))
        assert np.allclose(rows["statistic"], rows["estimate"] / rows["std_error"])


def test_whether_residuals_are_permuted_does_not_hang_on_the_names_of_classes():
    # The first class is the one that GCM has no column of its own for.
    rng = np.random.default_rng(4)
    y = np.where(np.arange(300) < 9, "rare", rng.choice(["m", "n"], size=300))
    X = pd.DataFrame(rng.normal(size=(300, 2)), columns=["x", "a"])

    def p_of(name):
        options = {"learner": "linear", "methods": "gcm", "check": False, "features": ["x"]}
        return assess(X, np.where(y == "rare", name, y), **options).table["p_value"][0]

    assert p_of("a") == pytest.approx(p_of("z"), abs=1e-9)


@pytest.mark.parametrize("share", [0.15, 0.5, 0.85])
@pytest.mark.parametrize("seed", [1, 5, 7])
def test_a_permuted_p_value_does_not_hang_on_the_names_of_two_classes(share, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc")).assign(x=flag(rng, 8, 200))
    likely = rng.random(200) + 0.3 * (X["a"] > 0) + (2 * share - 1) * X["x"]
    y = likely >= np.sort(likely)[round((1 - share) * 200)]
    assert y.mean() == share
    options = {"learner": "boosting(trees=20, splits=1)", "methods": "gcm", "features": ["x"]}
    p, renamed = (
        assess(X, np.where(y, *names), **options).table["p_value"][0]
        for names in (("yes", "no"), ("healthy", "ill"))
    )
    assert renamed == pytest.approx(p, abs=1e-9)


@pytest.mark.parametrize("methods", ["gcm", "pcm"])
def test_features_looked_at_together_are_those_looked_at_one_by_one(methods):
    rng = np.random.default_rng(3)
    X = pd.DataFrame({f"x{j}": rng.normal(size=300) for j in range(4)})
    X["flag"], X["heavy"] = flag(rng, 4, 300), np.exp(2 * rng.normal(size=300))
    X["town"], X["constant"] = rng.choice(list("abc"), 300), 1.0
    job = prepare(X, X["x0"] + flag(rng, 9, 300), learner="linear", methods=methods)
    residuals, (method,) = fit_residuals(job.plan(0)), job.methods
    together = list(_far_from_normal(method, residuals))
    alone = list(_far_from_normal(replace(method, pairs=None), residuals))
    assert together == alone
    assert {"flag", "heavy"} <= {X.columns[j] for j in together}
    assert X.columns.get_loc("constant") not in together
