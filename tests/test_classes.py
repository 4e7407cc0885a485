"""Classes are names: calling them otherwise changes no number."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import covaria
from covaria import assess
from covaria.assessment import prepare
from covaria.methods.pcm import pcm
from covaria.nuisance.regressions import fit_residuals
from covaria.tables.arrays import of_all_classes

N = 180
METHODS = ["gcm", "pcm", "gcm+pcm", "loco", "weighted_gcm", "basis_gcm", "dropout", "permutation"]
NAMES = (["a", "b", "c"], ["c", "a", "b"])


def table(n_columns=4):
    """Return features and a class of 0, 1, 2: the second comes with the square of c1."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, n_columns))).add_prefix("c")
    X["c1"] += X["c0"]
    lean = np.column_stack([X["c0"], X["c1"] ** 2 - 1, -X["c2"]])
    return X, np.argmax(lean + rng.gumbel(size=lean.shape), axis=1)


def each_naming(X, codes, **options):
    return [assess(X, np.array(names)[codes], **options) for names in NAMES]


@pytest.mark.parametrize("splits", [5, 0.4])
@pytest.mark.parametrize("learner", ["linear", "boosting", "splines", "auto", "auto(stack=True)"])
def test_renaming_classes_changes_no_p_value(learner, splits):
    first, *others = each_naming(*table(), learner=learner, methods=METHODS, splits=splits)
    for other in others:
        assert_allclose(other.table["p_value"], first.table["p_value"], atol=1e-8)
        assert_allclose(other.quality["residual_r2_p"], first.quality["residual_r2_p"], atol=1e-8)


def test_renaming_classes_changes_no_pairs_of_signs_either():
    first, *others = each_naming(*table(23), learner="linear", methods=["weighted_gcm"])
    for other in others:
        assert_allclose(other.table["p_value"], first.table["p_value"], atol=1e-8)


@pytest.mark.parametrize("scheme", ["folds", "half_samples"])
def test_renaming_classes_changes_no_stability(scheme):
    X, codes = table()
    found = [
        covaria.stability(X, np.array(names)[codes], learner="linear", scheme=scheme, pairs=3)
        for names in NAMES
    ]
    for other in found[1:]:
        assert other.table["times"].tolist() == found[0].table["times"].tolist()


def test_what_is_left_of_all_classes_adds_up_to_nothing():
    left = np.random.default_rng(0).normal(size=(5, 2, 3))
    every = of_all_classes(left)
    assert every.shape == (5, 2, 4)
    assert_allclose(every.sum(axis=-1), 0, atol=1e-12)
    assert_allclose(every[..., 1:], left)


def test_pcm_of_classes_sums_the_products_of_them_all():
    X, codes = table()
    job = prepare(X, codes.astype(str), learner="linear")
    residuals = fit_residuals(job.plan(0))
    assert residuals.f_given_rest.shape == (N, 4, 3)
    scores = pcm(residuals, np.random.default_rng(0))
    by_hand = (residuals.f_given_rest * of_all_classes(residuals.y_given_rest)).sum(axis=2)
    assert_allclose(scores.mean(axis=0), by_hand.mean(axis=0))
    # Least squares leaves of the first class's function what it leaves of the others', negative.
    assert_allclose(residuals.f_given_rest.sum(axis=2), 0, atol=1e-7)
