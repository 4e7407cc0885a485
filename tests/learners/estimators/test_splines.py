"""Additive splines: R's degrees of freedom, backfitting's fixed point, and rough data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BSpline

from covaria.learners.estimators import splines
from covaria.learners.estimators.splines import (
    AdditiveSplines,
    Gcv,
    Term,
    design,
    gram,
    penalties,
    roughness,
    search,
)


def curves(X):
    return np.column_stack([2 * X[:, 0] ** 2, 2 * np.cos(4 * X[:, 1]), np.sin(X[:, 2]), X[:, 3]])


@pytest.fixture(scope="module")
def additive():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5))
    return X, curves(X).sum(axis=1) + 0.1 * rng.normal(size=1000)


def r_squared(y, fitted):
    return 1 - np.var(y - fitted) / np.var(y)


def smoother_matrix(x, weights=None, **options):
    """Return the matrix of a one-column fit, found by fitting each unit vector."""
    fits = [AdditiveSplines(**options).fit(x[:, None], e, weights) for e in np.eye(len(x))]
    return np.column_stack([model.predict(x[:, None]) for model in fits])


@pytest.mark.parametrize("df", [1.5, 4, 7])
def test_each_terms_own_smoother_has_trace_df_plus_one(df):
    x = np.random.default_rng(1).standard_t(3, size=60)
    assert np.trace(smoother_matrix(x, df=df)) == pytest.approx(df + 1, abs=1e-6)


def test_weighted_smoothers_have_trace_df_plus_one_too():
    rng = np.random.default_rng(2)
    x, weights = rng.normal(size=60), rng.uniform(0, 3, 60)
    assert np.trace(smoother_matrix(x, weights)) == pytest.approx(5, abs=1e-6)


def test_the_joint_solve_is_where_backfitting_converges_to():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 3))
    X[:, 1] += 0.7 * X[:, 0]
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + rng.normal(size=80)
    weights = rng.uniform(0.5, 2, 80)
    smoothers = [smoother_matrix(x, weights) for x in X.T]
    mean = np.average(y, weights=weights)
    parts = np.zeros((3, 80))
    for _ in range(300):
        for j, smoother in enumerate(smoothers):
            part = smoother @ (y - mean - parts.sum(axis=0) + parts[j])
            parts[j] = part - np.average(part, weights=weights)
    joint = AdditiveSplines().fit(X, y, weights).predict(X)
    assert np.abs(joint - mean - parts.sum(axis=0)).max() < 1e-6


def test_the_roughness_is_the_integral_of_the_squared_second_derivative():
    knots = np.array([0, 0, 0, 0, 0.2, 0.5, 0.6, 1, 1, 1, 1])
    b = np.random.default_rng(4).normal(size=7)
    fine = np.linspace(0, 1, 200001)
    integral = np.trapezoid(BSpline(knots, b, 3)(fine, 2) ** 2, fine)
    assert b @ roughness(knots, 3) @ b == pytest.approx(integral, rel=1e-6)


def test_a_term_is_orthonormal_on_its_training_rows():
    rng = np.random.default_rng(5)
    x, weights = rng.normal(size=200), rng.dirichlet(np.ones(200))
    Z = Term.through(x, weights).design(x)
    assert Z.shape == (200, 11)
    assert np.abs(weights @ Z).max() < 1e-10
    assert np.abs(gram(Z, weights) - np.eye(11)).max() < 1e-8


def test_curves_go_on_as_straight_lines_outside_the_training_range():
    x = np.linspace(-1, 1, 200)
    model = AdditiveSplines(df=12).fit(x[:, None], x**3)
    beyond = model.predict(np.array([[1.0], [2.0], [3.0], [4.0]]))
    assert np.diff(beyond, n=2) == pytest.approx(0, abs=1e-8)
    assert np.diff(beyond)[0] == pytest.approx(3, abs=1e-4)


def test_the_slope_is_the_derivative_of_the_design():
    x = np.random.default_rng(6).normal(size=100)
    term = Term.through(x, np.full(100, 0.01))
    at = np.linspace(-4, 4, 41)
    by_difference = (term.design(at + 1e-6) - term.design(at - 1e-6)) / 2e-6
    assert np.abs(term.slope(at) - by_difference).max() < 1e-4


def test_four_degrees_of_freedom_cannot_follow_a_fast_wave_but_gcv_can(additive):
    X, y = additive
    wave = curves(X)[:, 1]
    at = np.zeros_like(X)
    at[:, 1] = X[:, 1]
    stiff, free = (
        r_squared(wave, AdditiveSplines(df=df).fit(X, y).predict(at)) for df in (4, "gcv")
    )
    assert stiff < 0.5
    assert free > 0.95


def test_gcv_smooths_each_term_by_its_own_measure(additive):
    X, y = additive
    model = AdditiveSplines(df="gcv").fit(X, y)
    new = np.random.default_rng(7).normal(size=(500, 5)).clip(-2, 2)
    assert r_squared(curves(new).sum(axis=1), model.predict(new)) > 0.97
    smoothing = model._smoothing(design(model.terms, X), y, np.full(1000, 1e-3))
    pairs = zip(smoothing, model.terms, strict=True)
    used = [1 + np.sum(1 / (1 + s * t.penalty[1:])) for s, t in pairs]
    assert used[1] > 8
    assert used[3] < 3


def score_of(X, y):
    """Return the score as a function of log smoothings, and the design behind it."""
    weights = np.full(len(y), 1 / len(y))
    terms = [Term.smoothest(x, weights) for x in X.T]
    M = design(terms, X)
    caught = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splines, "search", lambda terms, moments: caught.append(moments))
        splines.choose_smoothing(terms, M, y, weights)
    return Gcv.of(terms, caught[0]), terms, M


def test_the_score_is_generalised_cross_validation(additive):
    X, y = additive[0][:200], additive[1][:200]
    score, terms, M = score_of(X, y)
    at = np.linspace(-3, 3, 5) - np.log(score.penalty[:, 1])
    hat = M @ np.linalg.solve(M.T @ M / 200 + np.diag(penalties(terms, np.exp(at))), M.T) / 200
    left = y - hat @ y
    expected = np.log(np.mean(left**2)) - 2 * np.log(200 - np.trace(hat))
    assert score.surface(at).score == pytest.approx(expected, abs=1e-7)


def test_slope_and_curvature_are_those_of_the_score_in_degrees_of_freedom(additive):
    X, y = additive
    X = np.column_stack([X, X[:, 0].round()])  # one curve has fewer bends than the others
    score = score_of(X, y)[0]
    at = np.linspace(-3, 3, 6) - np.log(score.penalty[:, 1])
    here, width = score.surface(at), 1e-4
    for j, step in enumerate(width * np.eye(6)):
        there = []
        for df in (here.df + step, here.df - step):
            moved = score.log_smoothing(df, score.log_smoothing(df, at))
            there.append(score.surface(moved))
        up, down = there
        assert here.slope[j] == pytest.approx((up.score - down.score) / 2 / width, abs=1e-7)
        assert here.curvature[j] == pytest.approx((up.slope - down.slope) / 2 / width, abs=1e-7)


def test_the_search_ends_at_a_minimum(additive):
    X, y = additive
    score, terms, _ = score_of(X, y)
    found = np.log(search(terms, score.moments))
    bent = np.isfinite(found)
    part = score.only(bent)
    here = part.surface(found[bent])
    at_an_end = found[bent] <= part.loosest
    assert np.abs(here.slope[~at_an_end]).max() < 1e-8
    assert (here.slope[at_an_end] < 0).all()
    assert np.linalg.eigvalsh(here.curvature[np.ix_(~at_an_end, ~at_an_end)])[0] > 0


def test_curves_leave_half_of_the_rows_free():
    rng = np.random.default_rng(19)
    X, y = rng.normal(size=(60, 12)), rng.normal(size=60)
    M = design(AdditiveSplines(df="gcv").fit(X, y).terms, X)
    model = AdditiveSplines(df="gcv").fit(X, y)
    penalty = penalties(model.terms, model._smoothing(M, y, np.full(60, 1 / 60)))
    M = M[:, np.isfinite(penalty)]
    A = M.T @ M / 60 + np.diag(penalty[np.isfinite(penalty)])
    assert np.trace(np.linalg.solve(A, M.T @ M / 60)) < 30


def test_too_many_lines_leave_no_room_for_curves():
    rng = np.random.default_rng(20)
    X = rng.normal(size=(40, 25))
    y = X[:, 0] ** 2 + X[:, 1]
    straight = np.column_stack([np.ones(40), X])
    fitted = AdditiveSplines(df="gcv").fit(X, y).predict(X)
    assert fitted == pytest.approx(straight @ np.linalg.lstsq(straight, y)[0], abs=1e-5)


@pytest.mark.parametrize("df", [4, "gcv"])
def test_probabilities_follow_the_log_odds(df):
    rng = np.random.default_rng(8)
    X = rng.uniform(-2, 2, size=(1500, 2))
    chance = 1 / (1 + np.exp(-2 * np.sin(2 * X[:, 0]) - X[:, 1]))
    y = (rng.uniform(size=1500) < chance).astype(float)
    fitted = AdditiveSplines(df=df, n_classes=2).fit(X, y).predict(X)
    assert fitted.sum(axis=1) == pytest.approx(1)
    assert np.sqrt(np.mean((fitted[:, 1] - chance) ** 2)) < 0.06


def test_the_logistic_fit_leaves_no_mean_residual():
    rng = np.random.default_rng(9)
    X, weights = rng.normal(size=(300, 3)), rng.uniform(0, 2, 300)
    y = (X[:, 0] ** 2 + rng.normal(size=300) > 1).astype(float)
    fitted = AdditiveSplines(n_classes=2).fit(X, y, weights).predict(X)[:, 1]
    assert np.average(y - fitted, weights=weights) == pytest.approx(0, abs=1e-6)


def test_three_classes_are_told_apart():
    x = np.random.default_rng(10).uniform(-2, 2, 400)
    y = np.digitize(x, [-0.7, 0.7]).astype(float)
    fitted = AdditiveSplines(n_classes=3).fit(x[:, None], y).predict(x[:, None])
    assert fitted.shape == (400, 3)
    assert fitted.sum(axis=1) == pytest.approx(1)
    assert np.mean(fitted.argmax(axis=1) == y) > 0.95


@pytest.mark.parametrize("df", [4, "gcv"])
def test_a_copied_column_changes_nothing(df):
    rng = np.random.default_rng(11)
    X = rng.normal(size=(200, 2))
    y = np.tanh(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=200)
    twice = np.column_stack([X, X[:, 1], 3 - 2 * X[:, 1]])
    once = AdditiveSplines(df=df).fit(X, y).predict(X)
    # A copy lets its curve bend twice as freely at fixed df, but no more than that.
    assert (
        np.sqrt(np.mean((AdditiveSplines(df=df).fit(twice, y).predict(twice) - once) ** 2)) < 0.05
    )


@pytest.mark.parametrize("df", [4, "gcv"])
def test_a_constant_column_is_ignored_even_when_it_changes_later(df):
    rng = np.random.default_rng(12)
    x, y = rng.normal(size=(100, 1)), rng.normal(size=100)
    wide = np.column_stack([x, np.full(100, 0.1)])
    later = np.column_stack([x, rng.normal(size=100)])
    model = AdditiveSplines(df=df).fit(wide, y)
    assert model.predict(later) == pytest.approx(AdditiveSplines(df=df).fit(x, y).predict(x))


def test_a_column_of_three_values_enters_as_a_line():
    rng = np.random.default_rng(13)
    x = rng.integers(0, 3, 100).astype(float)
    y = x**2 + rng.normal(size=100)
    fitted = AdditiveSplines().fit(x[:, None], y).predict(x[:, None])
    assert fitted == pytest.approx(np.polyval(np.polyfit(x, y, 1), x), abs=1e-6)


@pytest.mark.parametrize("df", [4, "gcv"])
@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("n_rows", [1, 2, 4, 9, 25])
def test_a_handful_of_rows_still_gives_numbers(n_rows, n_classes, df):
    rng = np.random.default_rng(14)
    X = rng.normal(size=(n_rows, 6))
    y = np.arange(n_rows) % n_classes * 1.0 if n_classes else rng.normal(size=n_rows)
    fitted = AdditiveSplines(df=df, n_classes=n_classes).fit(X, y).predict(3 * X)
    assert np.isfinite(fitted).all()
    assert np.abs(fitted).max() < 1000


@pytest.mark.parametrize("df", [4, "gcv"])
def test_without_columns_the_answer_is_the_mean_or_the_shares(df):
    nothing, y, weights = np.empty((4, 0)), np.array([0.0, 1, 1, 2]), np.array([3.0, 1, 1, 1])
    assert AdditiveSplines(df=df).fit(nothing, y).predict(nothing) == pytest.approx([1] * 4)
    shares = AdditiveSplines(df=df, n_classes=3).fit(nothing, y, weights).predict(nothing)[0]
    assert shares == pytest.approx([3 / 6, 2 / 6, 1 / 6], abs=1e-5)


@pytest.mark.parametrize("n_classes", [0, 2])
def test_rows_of_weight_zero_are_as_if_absent(n_classes):
    rng = np.random.default_rng(15)
    X, y = rng.normal(size=(120, 2)), rng.integers(0, 2, 120).astype(float)
    weights = np.repeat([1.0, 0.0], 60)
    X[60:] *= 100
    absent = AdditiveSplines(n_classes=n_classes).fit(X[:60], y[:60])
    given = AdditiveSplines(n_classes=n_classes).fit(X, y, weights)
    assert given.predict(X) == pytest.approx(absent.predict(X))


def test_separable_classes_and_absent_classes_stay_finite():
    x = np.linspace(-1, 1, 50)[:, None]
    y = (x[:, 0] > 0).astype(float)
    for n_classes, target in ((2, y), (3, y), (2, np.ones(50))):
        fitted = AdditiveSplines(n_classes=n_classes).fit(x, target).predict(5 * x)
        assert np.isfinite(np.log(fitted)).all()


@pytest.mark.parametrize("df", [4, "gcv"])
def test_a_constant_target_is_answered_by_that_constant(df):
    X = np.random.default_rng(16).normal(size=(50, 2))
    assert AdditiveSplines(df=df).fit(X, np.full(50, 7.0)).predict(X) == pytest.approx([7] * 50)


def test_wild_tails_do_not_explode():
    rng = np.random.default_rng(17)
    X = rng.standard_cauchy((500, 4))
    y = np.tanh(X[:, 0]) + 0.1 * rng.normal(size=500)
    fitted = (
        AdditiveSplines(df="gcv").fit(X, y).predict(rng.standard_cauchy((500, 4)).clip(-99, 99))
    )
    assert np.abs(fitted).max() < 10


@pytest.mark.parametrize("df", [1, 4, "gcv"])
def test_columns_over_many_orders_of_magnitude_are_fitted(df):
    rng = np.random.default_rng(18)
    X, y = np.exp(10 * rng.normal(size=(300, 3))), rng.normal(size=300)
    assert np.abs(AdditiveSplines(df=df).fit(X, y).predict(X)).max() < 10
