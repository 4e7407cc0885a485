"""Surfaces: the pairs that matter are found, and every short cut gives what the long way gives."""

import numpy as np
import pytest

from covaria.learners.estimators.kernel import KernelMachine
from covaria.learners.estimators.splines import AdditiveSplines
from covaria.learners.estimators.surfaces import (
    COARSE_PENALTY,
    Curves,
    Pair,
    SurfacesModel,
    Table,
    _design,
    _search,
)


def table(seed, n_rows=400):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6))
    truth = np.sin(1.5 * (X[:, 1] + X[:, 3])) + np.abs(X[:, 4])
    return X, truth, truth + 0.5 * rng.normal(size=n_rows)


def test_the_columns_that_matter_are_found_together_and_alone():
    X, _, y = table(0)
    pairs = [set(pair) for pair in SurfacesModel().fit(X, y).pairs_]
    assert {1, 3} in pairs
    assert any(4 in pair for pair in pairs)


def test_surfaces_err_less_than_curves_and_kernels_where_two_columns_go_together():
    (X, _, y), (new, truth, _) = table(1), table(2)
    rivals = [AdditiveSplines(df="gcv"), KernelMachine(kind="ridge", C=10.0, sigma=0.1)]
    ours, *theirs = (
        np.mean((model.fit(X, y).predict(new) - truth) ** 2) for model in (SurfacesModel(), *rivals)
    )
    assert ours < 0.5 * min(theirs)


def test_noise_has_no_surface():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(400, 8)), rng.normal(size=400)
    assert SurfacesModel().fit(X, y).predict(X).var() < 0.1


def test_the_coarse_surface_that_is_best_is_best_by_least_squares():
    X, _, y = table(4, n_rows=150)
    prepared = Table(X)
    left = (y - y.mean())[:, None] / np.sqrt(len(y))
    scores = []
    for a, b in prepared.pairs:
        curves = [one.first(5) for one in prepared.curves]
        second = curves[a].first(0) if b is None else curves[b]
        M = _design([curves[a], second], Pair(0, 1)) / np.sqrt(len(y))
        penalty = COARSE_PENALTY * (curves[a].rough[:, None] + second.rough).ravel() + 1e-6
        inverse = np.linalg.inv(M.T @ M + np.diag(penalty))
        b_right = M.T @ left[:, 0]
        error = np.sum(left**2) - b_right @ inverse @ b_right
        freedom = 1 + np.trace(inverse @ M.T @ M)
        scores.append(error / (1 - freedom / len(y)) ** 2 * (0.98 if b is None else 1))
    everything = np.ones(len(scores), dtype=bool)
    assert prepared.best(left, everything) == np.argmin(scores)
    everything[np.argmin(scores)] = False
    assert prepared.best(left, everything) == np.argsort(scores)[1]


def test_three_columns_that_act_together_are_seen_together():
    (X, y), (new, truth) = ((X, np.median(X[:, :3], axis=1)) for X in (table(12)[0], table(13)[0]))
    noise = 0.3 * np.random.default_rng(14).normal(size=len(y))
    model = SurfacesModel().fit(X, y + noise)
    assert set(model.together_.columns) >= {0, 1, 2}
    error = np.mean((model.predict(new) - truth) ** 2)
    model.together_ = None
    assert error < 0.7 * np.mean((model.predict(new) - truth) ** 2)


@pytest.mark.parametrize("columns", [[1], [1, 3], [4], [0], [3, 4]])
@pytest.mark.parametrize("three", [False, True])
def test_the_mean_over_other_values_is_that_of_predictions(columns, three):
    X, _, y = table(5)
    if three:
        y = y + 2 * np.median(X[:, [1, 3, 4]], axis=1)
    model = SurfacesModel().fit(X, y)
    assert bool(model.together_) == three
    values = X[:7, columns]
    altered = X[50:60].copy()
    long = []
    for row in values:
        altered[:, columns] = row
        long.append(model.predict(altered))
    found = model.averaged(X[50:60], columns, values)
    assert found == pytest.approx(np.mean(long, axis=0))


def test_a_column_that_was_not_tried_may_go():
    X, _, y = table(6)
    whole = SurfacesModel().fit(X, y)
    unused = np.flatnonzero(~whole.used_)
    assert len(unused)
    without = np.delete(X, unused[0], axis=1)
    assert SurfacesModel().fit(without, y).predict(without) == pytest.approx(whole.predict(X))


def test_surfaces_added_one_by_one_are_fitted_together():
    X, _, y = table(15)
    targets = (y - y.mean())[:, None] / np.sqrt(len(y))
    found, _ = _search(Table(X), range(6), targets)
    assert len(found.surfaces) > 1
    M = np.hstack([one.design for one in found.surfaces])
    penalty = np.concatenate([one.penalty for one in found.surfaces])
    inverse = np.linalg.inv(M.T @ M + np.diag(penalty))
    left = targets - M @ inverse @ M.T @ targets
    assert found.left == pytest.approx(left, abs=1e-7)
    freedom = 1 + np.trace(inverse @ M.T @ M)
    assert found.score == pytest.approx(np.sum(left**2) / (1 - freedom / len(y)) ** 2)


@pytest.mark.parametrize("without", range(6))
def test_a_search_that_takes_another_ones_steps_ends_where_it_would_alone(without):
    X, _, y = table(16)
    shared, rest = Table(X), tuple(np.delete(np.arange(6), without).tolist())
    SurfacesModel(table=shared, columns=range(6)).fit(X, y)
    part = X[:, list(rest)]
    models = [SurfacesModel(table=one, columns=rest).fit(part, y) for one in (shared, Table(X))]
    assert np.array_equal(models[0].predict(part), models[1].predict(part))


def test_units_and_a_column_that_does_not_vary_change_nothing():
    X, _, y = table(7)
    plain = SurfacesModel().fit(X, y).predict(X)
    other = np.column_stack([X * 1e3 - 5, np.ones(len(X))])
    found = SurfacesModel().fit(other, 10 * y + 3).predict(other)
    assert found == pytest.approx(10 * plain + 3, abs=1e-6)


def test_rows_without_weight_say_nothing():
    X, _, y = table(8)
    weights = np.random.default_rng(9).integers(0, 3, len(y)).astype(float)
    kept = weights > 0
    y_wild = np.where(kept, y, 1e6)
    found = SurfacesModel().fit(X, y_wild, weights).predict(X)
    assert found == pytest.approx(SurfacesModel().fit(X[kept], y[kept], weights[kept]).predict(X))


def test_classes_get_chances():
    X, truth, _ = table(10)
    codes = np.digitize(truth, [0.0, 1.2])
    chances = SurfacesModel(n_classes=3).fit(X, codes).predict(X)
    assert chances.sum(axis=1) == pytest.approx(np.ones(len(X)))
    assert (chances > 0).all()
    assert np.mean(chances.argmax(axis=1) == codes) > 0.8


@pytest.mark.parametrize("n_rows", [4, 12, 30])
def test_few_rows_and_columns_of_two_values_will_do(n_rows):
    rng = np.random.default_rng(n_rows)
    X = np.column_stack(
        [rng.integers(0, 2, (n_rows, 2)), rng.normal(size=n_rows), np.zeros(n_rows)]
    )
    found = SurfacesModel().fit(X, X[:, 0] * X[:, 2]).predict(X)
    assert np.isfinite(found).all()


def test_curves_of_one_column_start_with_a_constant_and_a_line():
    x = np.random.default_rng(11).normal(size=50)
    prepared = Table(x[:, None])
    curves = Curves.of(prepared.terms[0], x)
    assert curves.values[:, 0] == pytest.approx(np.ones(50))
    assert abs(np.corrcoef(curves.values[:, 1], x)[0, 1]) == pytest.approx(1)
    assert curves.rough[:3] == pytest.approx([0, 0, 1])


@pytest.mark.parametrize("n_columns", [1, 2])
def test_where_no_column_varies_the_answer_is_the_mean(n_columns):
    y = np.arange(30.0)
    model = SurfacesModel().fit(np.ones((30, n_columns)), y)
    np.testing.assert_allclose(model.predict(np.zeros((4, n_columns))), y.mean())
