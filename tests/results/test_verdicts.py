"""A verdict in words, and how much would have to be missed to explain it away."""

import numpy as np
import pytest

import covaria


@pytest.fixture(scope="module")
def result():
    X, y = covaria.draw("additive", n_rows=400, seed=0)
    names = ["gcm", "pcm", "gcm+pcm", "loco", "lasso"]
    return covaria.assess(X, y, learner="linear", methods=names)


def rows(result, method):
    return result.table[result.table["method"] == method].reset_index(drop=True)


@pytest.mark.parametrize("method", ["gcm", "pcm", "gcm+pcm", "loco"])
def test_what_is_selected_matters_and_nothing_else_does(result, method):
    table = rows(result, method)
    assert ((table["verdict"] == "matters") == table["selected"]).all()
    assert set(table["verdict"]) == {"matters", "no evidence"}
    assert table["robustness"].between(0, 1).all()
    assert (table.loc[~table["selected"], "robustness"] == 0).all()


def test_selection_without_a_test_has_no_verdict(result):
    assert (rows(result, "lasso")["verdict"] == "").all()


def test_robustness_of_gcm_is_the_end_of_the_interval_nearest_to_zero(result):
    table = rows(result, "gcm")
    nearest = np.where(table["effect"] > 0, table["effect_low"], -table["effect_high"])
    chosen = table["selected"]
    assert np.allclose(table.loc[chosen, "robustness"], nearest[chosen])


def test_of_two_tests_the_more_robust_counts(result):
    both, gcm, pcm = (rows(result, name) for name in ("gcm+pcm", "gcm", "pcm"))
    expected = np.where(both["selected"], np.maximum(gcm["robustness"], pcm["robustness"]), 0)
    assert np.allclose(both["robustness"], expected)


def test_a_part_missed_in_common_of_that_size_explains_the_finding_away():
    # Of both residuals a share r is the same: their correlation is r, and so is what is robust.
    rng = np.random.default_rng(0)
    common, r = rng.normal(size=20_000), 0.2
    x, y = (np.sqrt(r) * common + np.sqrt(1 - r) * rng.normal(size=20_000) for _ in range(2))
    found = rows(covaria.assess(np.column_stack([x, common * 0 + rng.normal(size=20_000)]), y,
                                learner="linear", methods=["gcm"], check=False), "gcm")  # fmt: skip
    assert found["robustness"][0] == pytest.approx(r, abs=0.03)
