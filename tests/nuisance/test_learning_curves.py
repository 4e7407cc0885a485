"""Halves of the training rows say how noisy the models of auto are."""

from dataclasses import replace

import numpy as np
import pytest

from covaria.assessment import prepare
from covaria.learners import Auto, Boosting, Linear
from covaria.nuisance.learning_curves import _unlearned
from covaria.nuisance.plan import Choices
from covaria.nuisance.regressions import fit_residuals


def test_the_noise_in_least_squares_is_parameters_over_rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(250, 28))
    job = prepare(X, X[:, 0] + rng.normal(size=250), learner=Auto(candidates=["linear"]))
    noise = fit_residuals(replace(job.plan(0), alpha=0.5)).model_noise
    assert 14 < (noise > 0).sum() < 28  # those far from significant are left out
    assert noise[noise > 0].mean() == pytest.approx(28 / (200 - 28), abs=0.03)
    bare = prepare(X, X[:, 0] + rng.normal(size=250), learner=Auto(candidates=["mean"]))
    assert fit_residuals(bare.plan(0)).model_noise.mean() < 0.01


@pytest.mark.parametrize("n_clusters", [5, 50])
def test_few_clusters_are_no_obstacle_to_measuring_noise(n_clusters):
    rng = np.random.default_rng(4)
    X, clusters = rng.normal(size=(150, 3)), np.arange(150) % n_clusters
    job = prepare(
        X, X[:, 0] + rng.normal(size=150), learner=Auto(candidates=["linear"]),
        clusters=clusters, splits=2,
    )  # fmt: skip
    noise = fit_residuals(job.plan(0)).model_noise
    assert noise is None or np.isfinite(noise).all()


def test_what_may_still_be_learned_is_what_halving_adds_and_for_lines_what_goes_beyond_noise():
    plan = prepare(*line_and_wave(), check=False).plan(0)
    line, curve = (((one, 1.0),) for one in (Linear(), Boosting(trees=100)))
    choices = Choices([curve] * 5, [{0: line, 1: curve}] * 5, [{}] * 5, [{}] * 5)
    noise, curves = np.array([[0.05, 0.01], [0.02, 0.04]]), np.array([[0.06, 0.03], [0.01, 0.2]])
    found = _unlearned(replace(plan, choices=choices), noise, curves)
    assert found == pytest.approx(np.array([[0.01, 0.03], [0.02, 0.2]]))
    curves[0, 0] = 0.03  # less than the noise
    assert _unlearned(replace(plan, choices=choices), noise, curves)[0, 0] == 0


def line_and_wave():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    return X, X[:, 0] + np.sin(4 * X[:, 1]) + rng.normal(size=200)
