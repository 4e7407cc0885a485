"""The single-index model: the direction is found, whatever the shape of the link."""

from __future__ import annotations

import numpy as np
import pytest

from covaria.learners.estimators.single_index import (
    Index,
    SingleIndexModel,
    starting_directions,
    unit,
)
from covaria.learners.estimators.splines import AdditiveSplines
from cpu_time import least_seconds

BETA = np.array([6, 5, 4, 3, 2, 1, 0.5, 0.1])
LINKS = {
    "sigmoid": lambda u: 1 / (1 + np.exp(-u)),
    "bell": lambda u: np.exp(-(u**2)),
    "wide bell": lambda u: np.exp(-((u / 9) ** 2)),
    "line": lambda u: u,
}


def draw(link, n_rows=1000, n_columns=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    return X, LINKS[link](X[:, :8] @ BETA) + 0.1 * rng.normal(size=n_rows)


def closeness(direction):
    return abs(direction[:8] @ BETA) / np.linalg.norm(BETA) / np.linalg.norm(direction)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_direction_is_found_under_every_link(link, seed):
    model = SingleIndexModel().fit(*draw(link, seed=seed))
    assert closeness(model.theta / model.scale) > 0.99


@pytest.mark.parametrize("link", ["sigmoid", "wide bell"])
def test_the_link_is_found_on_new_rows(link):
    model = SingleIndexModel().fit(*draw(link))
    new, _ = draw(link, seed=9)
    truth = LINKS[link](new @ BETA)
    assert np.mean((model.predict(new) - truth) ** 2) < 0.02 * np.var(truth)


def test_least_squares_alone_would_miss_an_even_link():
    X, y = draw("bell")
    Z, weights = (X - X.mean(axis=0)) / X.std(axis=0), np.full(1000, 1e-3)
    by_slope, by_bend, _ = starting_directions(Z, y, weights)
    assert closeness(by_slope) < 0.7
    assert closeness(by_bend) > 0.7


def test_theta_has_length_one_and_a_positive_largest_coordinate():
    X, y = draw("sigmoid")
    theta = SingleIndexModel().fit(X, -y).theta
    assert np.linalg.norm(theta) == pytest.approx(1)
    assert theta[np.argmax(np.abs(theta))] > 0
    assert unit(np.zeros(3)).tolist() == [1, 0, 0]


def test_no_small_turn_of_theta_fits_better():
    X, y = draw("sigmoid", n_rows=400)
    model = SingleIndexModel().fit(X, y)
    Z, weights = (X - model.center) / model.scale, np.full(400, 1 / 400)
    best = model.indices[0].link.score
    for turn in np.random.default_rng(0).normal(scale=0.02, size=(50, 8)):
        turned = Index.along(unit(model.theta + turn), Z, y, weights, size=13)
        assert turned.link.score > best - 1e-4


def test_units_do_not_matter():
    X, y = draw("sigmoid", n_rows=300)
    units = np.array([1, 10, 0.1, 3, 1000, 1, 1, 2])
    once = SingleIndexModel().fit(X, y).predict(X)
    again = SingleIndexModel().fit(X * units + 5, y).predict(X * units + 5)
    assert again == pytest.approx(once, abs=1e-5)


def test_fitting_twice_gives_the_same_bytes():
    X, y = draw("bell", n_rows=300)
    once, again = (SingleIndexModel().fit(X, y).predict(X) for _ in range(2))
    assert once.tobytes() == again.tobytes()


def test_twenty_columns_take_a_moment():
    X, y = draw("sigmoid", n_columns=20)
    assert least_seconds(lambda: SingleIndexModel().fit(X, y)) < 3


def test_one_column_is_a_spline():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(500, 1))
    y = np.sin(1.5 * x[:, 0]) + 0.1 * rng.normal(size=500)
    spline = AdditiveSplines(df="gcv").fit(x, y).predict(x)
    assert np.std(SingleIndexModel(knots=12).fit(x, y).predict(x) - spline) < 0.02


def test_the_link_goes_on_as_a_line():
    X, y = draw("sigmoid")
    model = SingleIndexModel().fit(X, y)
    far = model.predict(np.outer([100, 200, 300], model.theta))
    assert np.diff(far, n=2) == pytest.approx(0, abs=1e-6)


def test_two_classes_get_clipped_chances():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(800, 3))
    chance = 1 / (1 + np.exp(-2 * X[:, 0] + X[:, 1]))
    y = (rng.uniform(size=800) < chance).astype(float)
    fitted = SingleIndexModel(n_classes=2).fit(X, y).predict(10 * X)
    assert fitted.min() == pytest.approx(1e-3)
    assert fitted.sum(axis=1) == pytest.approx(1)
    within = SingleIndexModel(n_classes=2).fit(X, y).predict(X)[:, 1]
    assert np.sqrt(np.mean((within - chance) ** 2)) < 0.06


def test_three_classes_each_have_their_own_direction():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 3))
    y = X.argmax(axis=1).astype(float)
    model = SingleIndexModel(n_classes=3).fit(X, y)
    fitted = model.predict(X)
    assert len(model.indices) == 3
    assert fitted.sum(axis=1) == pytest.approx(1)
    assert np.mean(fitted.argmax(axis=1) == y) > 0.9


def test_without_columns_the_answer_is_the_mean_or_the_shares():
    nothing, y = np.empty((4, 0)), np.array([0.0, 1, 1, 2])
    assert SingleIndexModel().fit(nothing, y).predict(nothing) == pytest.approx([1] * 4)
    shares = SingleIndexModel(n_classes=3).fit(nothing, y).predict(nothing)[0]
    assert shares == pytest.approx([0.25, 0.5, 0.25])


def test_constant_and_copied_columns_do_no_harm():
    X, y = draw("sigmoid", n_rows=400)
    wide = np.column_stack([X, np.full(400, 0.1), X[:, 0], -2 * X[:, 1]])
    model = SingleIndexModel().fit(wide, y)
    assert abs(model.theta[8]) < 1e-8
    assert model.predict(wide) == pytest.approx(SingleIndexModel().fit(X, y).predict(X), abs=0.02)


def test_rows_of_weight_zero_are_as_if_absent():
    X, y = draw("sigmoid", n_rows=400)
    weights = np.repeat([2.0, 0.0], 200)
    given, absent = SingleIndexModel().fit(X, y, weights), SingleIndexModel().fit(X[:200], y[:200])
    assert given.predict(X) == pytest.approx(absent.predict(X))


@pytest.mark.parametrize("n_rows", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("n_columns", [1, 2, 12])
@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_a_handful_of_rows_still_gives_numbers(n_rows, n_columns, n_classes):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n_rows, n_columns))
    y = np.arange(n_rows) % n_classes * 1.0 if n_classes else rng.normal(size=n_rows)
    fitted = SingleIndexModel(n_classes=n_classes).fit(X, y).predict(3 * X)
    assert np.isfinite(fitted).all()
    assert np.abs(fitted).max() < 1000


def test_a_constant_target_is_answered_by_that_constant():
    X, _ = draw("line", n_rows=50)
    assert SingleIndexModel().fit(X, np.full(50, 7.0)).predict(X) == pytest.approx([7] * 50)
