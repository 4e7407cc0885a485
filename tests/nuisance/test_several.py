"""Several targets: one test of each feature for all of them."""

import numpy as np
import pandas as pd
import pytest

from covaria import InputError, assess

rng = np.random.default_rng(9)
X = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
Y = pd.DataFrame({"u": X["a"] + rng.normal(size=200), "v": 5 * (X["b"] + rng.normal(size=200))})


def test_each_feature_is_tested_for_all_targets_at_once():
    table = assess(X, Y, learner="linear", methods="default").table
    found = table[table["method"] == "gcm"].set_index("feature")
    assert found["df"].tolist() == [2, 2, 2]
    assert found["selected"].tolist() == [True, True, False]
    assert table["method"].unique().tolist() == ["gcm", "loco"]


def test_gcm_is_the_chi_square_of_the_products_with_each_target():
    both = assess(X, Y, learner="linear", methods="gcm")
    ones = [assess(X, Y[name], learner="linear", methods="gcm") for name in Y]
    products = np.column_stack([one.scores["gcm"][:, 2] for one in ones])
    mean, sigma = products.mean(axis=0), np.cov(products.T, bias=True) / len(products)
    chi2 = mean @ np.linalg.solve(sigma, mean)
    assert both.table["statistic"][2] == pytest.approx(chi2, rel=0.02)


def test_losses_add_up_in_units_of_each_targets_variance():
    both = assess(X, Y, learner="linear", methods="loco")
    ones = [assess(X, Y[name], learner="linear", methods="loco").table["effect"] for name in Y]
    assert np.allclose(both.table["effect"], np.mean(ones, axis=0))


@pytest.mark.parametrize("learner", ["linear", "auto"])
def test_names_arrays_and_frames_of_targets_are_alike_and_units_do_not_matter(learner):
    frame = X.join(Y)
    by_name = assess(frame, ["u", "v"], learner=learner)
    assert by_name.about.targets == ["u", "v"]
    assert by_name.about.target == "u and v"
    by_array = assess(X, Y.to_numpy() * [1.0, 0.25], learner=learner)
    assert np.allclose(by_name.table["p_value"], by_array.table["p_value"])


@pytest.mark.parametrize("learner", ["linear", "splines"])
def test_pcm_is_that_of_the_target_that_says_most_counted_once_for_each(learner):
    even = Y.assign(u=X["a"] ** 2 + rng.normal(size=200))
    both = assess(X, even, learner=learner, methods="gcm,pcm,gcm+pcm").table
    ones = [assess(X, even[name], learner=learner, methods="pcm").table["p_value"] for name in even]
    wanted = 2 * np.min(ones, axis=0)
    own = both[both["method"] == "pcm"]["p_value"].to_numpy()
    found = wanted < 0.45
    assert found.any()
    np.testing.assert_allclose(own[found], wanted[found], rtol=1e-6)
    assert (own[~found] > 0.45).all()
    assert (both[both["method"] == "gcm+pcm"]["p_value"].to_numpy() <= 2 * own + 1e-12).all()


def test_clusters_count_in_pcm_of_several_targets():
    clusters = np.repeat(range(40), 5)
    asked = {"learner": "linear", "methods": "pcm", "clusters": clusters}
    both = assess(X, Y, **asked).table["p_value"]
    ones = [assess(X, Y[name], **asked).table["p_value"] for name in Y]
    np.testing.assert_allclose(both[:2], 2 * np.min(ones, axis=0)[:2], rtol=1e-6)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"task": "classification"}, "2 targets: they are numbers"),
        ({"effect": "plm"}, "effect is of one target"),
        ({"loss": "absolute"}, "loss is of one target"),
        ({"methods": "gcm,lasso"}, "lasso is of one target"),
    ],
)
def test_what_is_of_one_target_alone_is_one_sentence(asked, said):
    with pytest.raises(InputError, match=said):
        assess(X, Y, **{"learner": "linear", **asked})


def test_a_target_of_text_and_one_that_is_not_there_are_refused():
    with pytest.raises(InputError, match="holds text"):
        assess(X, Y.assign(w=["a", "b"] * 100), learner="linear")
    with pytest.raises(InputError, match="There is no column 'w'"):
        assess(X.join(Y), ["u", "w"], learner="linear")
