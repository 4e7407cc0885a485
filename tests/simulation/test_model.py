"""A Model is checked at the door, draws what it says, and holds the paper's scenarios."""

import numpy as np
import pytest

from covaria.errors import InputError
from covaria.simulation.model import Model, Term
from covaria.simulation.scenarios import SCENARIOS, scenario


def test_the_same_seed_draws_the_same_table_and_another_seed_another():
    model = Model([1.0, 2.0], noise=0.5)
    first, again, other = (model.draw(50, seed=s) for s in (0, 0, 1))
    assert first[0].equals(again[0])
    assert first[1].equals(again[1])
    assert not first[0].equals(other[0])


def test_features_have_the_covariance_that_was_given():
    covariance = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]])
    X = Model([1, 1, 1], covariance=covariance).features(np.random.default_rng(0), 400_000)
    np.testing.assert_allclose(np.cov(X.T), covariance, atol=0.015)


def test_all_ways_to_write_a_function_give_the_same_values():
    X = np.random.default_rng(0).normal(size=(10, 3))
    wanted = np.sin(X[:, 0]) + 2 * X[:, 2]
    written = [
        Model([np.sin, np.zeros_like, lambda x: 2 * x]),
        Model({"x1": np.sin, 2: lambda x: 2 * x}, n_features=3),
        Model([Term(np.sin, ["x1"]), Term(lambda u: u, [2], weights=[2.0])], n_features=3),
        Model(lambda X: np.sin(X[:, 0]) + 2 * X[:, 2], n_features=3),
        Model([Term(lambda Z: np.sin(Z[:, 1]) + 2 * Z[:, 0], [2, 0])], n_features=3),
    ]
    for model in written:
        np.testing.assert_allclose(model.mean(X), wanted)
    assert written[1].support == ["x1", "x3"]


def test_an_index_is_the_link_of_the_weighted_sum():
    X = np.random.default_rng(0).normal(size=(10, 2))
    model = Model([1.0, -2.0], link=np.tanh)
    np.testing.assert_allclose(model.mean(X), np.tanh(X @ [1.0, -2.0]))


def test_a_feature_of_weight_zero_does_not_matter():
    assert Model([1.0, 0.0, 3.0]).active == (0, 2)


def test_a_model_cannot_be_changed():
    model = Model([1.0, 2.0], covariance=np.eye(2))
    with pytest.raises(AttributeError):
        model.noise = 2.0
    with pytest.raises(ValueError, match="read-only"):
        model.covariance[0, 0] = 5.0


def test_heavy_tails_have_variance_one():
    X = Model([1.0], df=8.0).features(np.random.default_rng(0), 400_000)
    assert np.var(X) == pytest.approx(1.0, abs=0.02)


BAD = {
    "not symmetric": {"function": [1, 1], "covariance": [[1, 0.5], [0.2, 1]]},
    "not positive definite": {"function": [1, 1], "covariance": [[1, 1], [1, 1]]},
    "not positive def": {"function": [1, 1], "covariance": [[1, 2], [2, 1]]},
    "has shape": {"function": [1, 1], "covariance": [[1, 0, 0], [0, 1, 0]]},
    "not finite. Replace": {"function": [1], "covariance": [[np.nan]]},
    "not a matrix": {"function": [1], "covariance": "abc", "n_features": 1},
    "noise=0": {"function": [1], "noise": 0},
    "noise=-1": {"function": [1], "noise": -1},
    "noise=nan": {"function": [1], "noise": float("nan")},
    "noise='a'": {"function": [1], "noise": "a"},
    "df=2": {"function": [1], "df": 2},
    "one law": {"function": [1], "df": 5, "covariance": [[1.0]]},
    "goes with sampler": {"function": [1], "conditional": "independent"},
    "3 coefficients for 2": {"function": [1, 2, 3], "n_features": 2},
    "flat list": {"function": [1, np.inf]},
    "mixes numbers and curves": {"function": [1, np.sin]},
    "neither numbers nor curves": {"function": ["a", "b"]},
    "link= needs": {"function": [np.sin], "link": np.tanh},
    "number of features is not known": {"function": np.sin},
    "n_features=-3": {"function": [1], "n_features": -3},
    "no feature 'x9'": {"function": {"x9": np.sin}, "n_features": 2},
    "Feature 7": {"function": {7: np.sin}, "n_features": 2},
    "each once": {"function": [Term(lambda Z: Z[:, 0], [0, 0])], "n_features": 2},
    "2 weights for 1": {"function": [Term(np.sin, [0], weights=[1, 2])], "n_features": 2},
    "fails on 3 rows": {"function": lambda X: X[:, 9], "n_features": 2},
    "gave shape": {"function": lambda X: X, "n_features": 2},
    "not finite where": {"function": lambda X: X[:, 0] / 0.0 * np.inf, "n_features": 1},
    "sampler gave": {"function": [1], "sampler": lambda rng, n: rng.normal(size=(n, 4))},
}  # fmt: skip


@pytest.mark.parametrize("message", BAD)
def test_what_is_wrong_is_said_in_one_sentence(message):
    with pytest.raises(InputError) as caught:
        Model(**BAD[message])
    assert message in str(caught.value)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_is_a_model_with_the_paper_s_support(name):
    model = scenario(name)
    wanted = {"surrogate": [0, 2, 3, 4], "heavy_tails": range(5)}.get(name, range(8))
    assert isinstance(model, Model)
    assert model.active == tuple(wanted)
    assert model.draw(10)[0].shape == (10, 20)


def test_copies_repeat_the_block_and_its_correlated_pair():
    model = scenario("linear", copies=5, n_features=500)
    assert model.active == tuple(range(40))
    assert np.flatnonzero(np.triu(model.covariance, 1).any(axis=1)).tolist() == [2, 10, 18, 26, 34]


def test_at_correlation_one_the_surrogate_repeats_the_feature():
    X, _ = scenario("surrogate", rho=-1.0).draw(20)
    assert (X["x2"] == -X["x1"]).all()


# The sums of the tables that version 0.1.0 drew with seed 3, before scenarios were Models.
DRAWN = {
    "a": ("linear", {}, -85.2255242902546, -32.460571514385144),
    "b2": ("additive", {"copies": 2, "n_features": 30}, 58.540968668841586, 1545.5879145709357),
    "c": ("interaction", {}, 18.984092804663128, 232.2335653020915),
    "dg": ("single_index", {"link": "gaussian"}, 1.1745052905900337, 14.863201642459225),
    "e9": ("surrogate", {"rho": 0.9}, 143.094356533977, 44.7386945718625),
    "f3": ("heavy_tails", {"df": 3}, -43.54347950772993, 193.92495359961936),
}


@pytest.mark.parametrize("key", DRAWN)
def test_scenarios_draw_the_numbers_they_always_drew(key):
    name, settings, features, target = DRAWN[key]
    X, y = scenario(name, **settings).draw(200, seed=3)
    assert X.to_numpy().sum() == pytest.approx(features, rel=1e-12)
    assert y.sum() == pytest.approx(target, rel=1e-12)
