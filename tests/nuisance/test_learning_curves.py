"""Halves of the training rows say how noisy the models of auto are."""

from dataclasses import replace

import numpy as np
import pytest

from covaria.assessment import prepare
from covaria.learners import Auto
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
