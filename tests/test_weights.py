"""Whole weights are repeated rows: every number that rows can repeat is the same."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from covaria import assess
from covaria.assessment import prepare
from covaria.diagnostics.residual_checks import check_residuals
from covaria.nuisance.model_noise import worth_of_rows
from covaria.nuisance.regressions import fit_residuals

N = 200
# What copies, which are clusters, have otherwise: G/(G − 1), and Student's t.
PAID = {"std_error": np.sqrt(N / (N - 1)), "statistic": np.sqrt((N - 1) / N)}


def assert_same(by_weight, by_row, rtol):
    """Check that both tables hold the same numbers, but for what clusters pay."""
    # The χ² of several columns becomes that of Hotelling's F, and a combination has only its p.
    usual = (by_weight["df"] == 1).to_numpy()
    for name in ("estimate", "std_error", "statistic", "effect"):
        a, b = (one[name].to_numpy()[usual] for one in (by_weight, by_row))
        assert_allclose(a * PAID.get(name, 1.0), b, rtol=rtol, atol=1e-10, err_msg=name)
    p = np.array([one["p_value"].to_numpy() for one in (by_weight, by_row)])
    near = usual & (p.min(axis=0) > 0.01)  # further out the tails of Student's t are another matter
    assert_allclose(p[0, near], p[1, near], rtol=0.1)


def table(classes=False):
    rng = np.random.default_rng(7)
    X = pd.DataFrame(rng.normal(size=(N, 4)), columns=["a", "b", "c", "d"])
    y = X["a"] + X["b"] ** 2 / 2 + rng.normal(size=N)
    return X, (np.where(y > 0.5, "yes", "no") if classes else y), rng.integers(1, 4, N)


def repeated(X, y, times, folds):
    """Return the rows as often as their weight says, and the folds that hold them."""
    rows = np.repeat(np.arange(N), times)
    parts = [
        tuple(np.flatnonzero(np.isin(rows, part)) for part in (train, test))
        for train, test in folds
    ]
    return X.iloc[rows].reset_index(drop=True), np.asarray(y)[rows], rows, parts


def folds(count=4):
    part = np.random.default_rng(1).permutation(N) % count
    return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(count)]


def both_ways(X, y, times, **options):
    """Return the result by weights and that of repeated rows, whose copies are found."""
    again, y_again, _, parts = repeated(X, y, times, folds())
    by_weight = assess(X, y, sample_weight=times, splits=folds(), **options)
    by_row = assess(again, y_again, splits=parts, **options)
    assert by_row.about["clusters"] == N
    return by_weight, by_row


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("learner", ["linear", "splines", "boosting(trees=30, bag=1, min_node=1)"])
def test_weights_say_what_repeated_rows_say(learner, classes):
    methods = ["gcm", "loco", "dropout"]
    if learner == "linear":
        methods += ["pcm", "gcm+pcm", "basis_gcm"]
    found = both_ways(*table(classes), learner=learner, methods=methods, check=False)
    # Likelihoods are climbed until a step is small.
    assert_same(found[0].table, found[1].table, 1e-4 if classes else 1e-9)
    assert_allclose(found[0].quality["r2"], found[1].quality["r2"], atol=1e-6)


def test_weights_say_what_repeated_rows_say_of_groups_and_classes():
    X, _, times = table()
    y = np.digitize(X["a"] + np.random.default_rng(2).normal(size=N), [-0.5, 0.5]).astype(str)
    groups = {"g": ["a", "b"]}
    found = both_ways(X, y, times, learner="linear", methods=["gcm"], groups=groups, check=False)
    assert_same(found[0].table, found[1].table, 1e-5)


def test_what_a_regression_explains_is_weighted_throughout():
    rng = np.random.default_rng(0)
    heavy = np.arange(2000) < 500
    # Where it counts, x is pure noise; where it hardly does, the other column tells it.
    z = rng.normal(size=2000)
    x = np.where(heavy, rng.normal(size=2000), 5 * z)
    X = pd.DataFrame({"x": x, "z": z})
    weights = np.where(heavy, 1.0, 1e-9)
    result = assess(
        X, rng.normal(size=2000), sample_weight=weights, learner="linear", methods="gcm"
    )
    r2 = result.quality.set_index(["regression", "feature"])["r2"]
    assert r2["x given rest", "x"] == pytest.approx(0, abs=0.02)
    assert r2["x given rest", "z"] == pytest.approx(0, abs=0.02)


def test_what_is_left_undone_is_looked_for_by_weights():
    rng = np.random.default_rng(0)
    n_rows = 1000
    z = rng.normal(size=n_rows)
    counts = np.arange(n_rows) < n_rows // 2
    bent = np.where(counts, 0.0, z**2 - 1)  # nothing is undone in the rows that count
    X = pd.DataFrame({"x": bent + rng.normal(size=n_rows), "z": z})
    y = bent + rng.normal(size=n_rows)

    def found(weights):
        result = assess(X, y, sample_weight=weights, learner="linear", methods="gcm")
        return result.quality.set_index(["regression", "feature"]).loc[("x given rest", "x")]

    plain, weighted = found(None), found(np.where(counts, 1.0, 1e-6))
    assert plain["residual_r2_p"] < 1e-6
    assert plain["warning"]
    assert weighted["residual_r2_p"] > 0.01
    assert not weighted["warning"]


def test_what_is_left_undone_is_no_surer_for_rows_entered_twice():
    X, y, _ = table()
    folded = folds(5)
    again, y_again, _, parts = repeated(X, y, np.full(N, 2), folded)
    once, twice = (
        check_residuals(job.plan(0), fit_residuals(job.plan(0)))
        for job in (
            prepare(X, y, learner="linear", methods="gcm", splits=folded),
            prepare(again, y_again, learner="linear", methods="gcm", splits=parts),
        )
    )
    # Trees of the doubled table may be smaller; what is found is of the same order.
    assert np.all(np.abs(np.log10(twice.y_p) - np.log10(once.y_p)) < 3)
    assert np.all(np.abs(twice.bias - once.bias) < 1.0)


@pytest.mark.parametrize("times", [np.full(N, 3), np.arange(N) % 3 + 1])
def test_copies_and_weights_are_worth_the_same_rows(times):
    X, y, _ = table()
    again, y_again, _, parts = repeated(X, y, times, folds())
    by_weight = prepare(X, y, learner="linear", methods="dropout", sample_weight=times)
    by_row = prepare(again, y_again, learner="linear", methods="dropout", splits=parts)
    rows = [
        worth_of_rows(residuals.data) * residuals.data.n_rows
        for residuals in (fit_residuals(job.plan(0)) for job in (by_weight, by_row))
    ]
    assert rows[0] == pytest.approx(times.sum() ** 2 / (times**2).sum())
    assert rows[0] == pytest.approx(rows[1])
