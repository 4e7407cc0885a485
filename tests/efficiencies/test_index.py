"""Theorem 5 with the slope of an unknown link, estimated as the paper's remark says."""

import numpy as np
import pytest

import covaria
from covaria import InputError, Model, assess

BETA = [1.0, 0.5, 0.0]


@pytest.fixture(scope="module")
def drawn():
    return Model(np.array(BETA), link=np.tanh, noise=0.5).draw(1500, seed=1)


@pytest.fixture(scope="module")
def result(drawn):
    return assess(*drawn, learner="single_index", methods=["gcm", "loco", "pcm"], progress=False)


@pytest.fixture(scope="module")
def table(result, drawn):
    return covaria.efficiency(result, *drawn).set_index(["feature", "method", "rival"])


def test_the_slope_and_the_efficiency_are_those_of_the_first_order_expansion(table):
    theory = covaria.theory.single_index(np.tanh, BETA, noise=0.5, version="random")
    expected = theory.set_index("feature")["are_gcm_loco"]
    u = np.random.default_rng(0).standard_normal(100_000)
    for name, beta, other in (("x1", 1.0, 0.5), ("x2", 0.5, 1.0)):
        own = table.loc[(name, "gcm", "loco")]
        assert own["are_index"] == pytest.approx(expected[name], rel=0.15)
        # tanh' where the other feature puts the index
        assert own["slope"] == pytest.approx(beta * np.mean(1 - np.tanh(other * u) ** 2), rel=0.1)


def test_it_is_not_defined_for_a_useless_feature_nor_for_other_pairs(table):
    assert np.isnan(table.loc[("x3", "gcm", "loco"), "are_index"])
    assert table.xs("pcm", level="rival")[["slope", "are_index"]].isna().all(axis=None)


def test_without_the_table_nothing_changes(result, table):
    plain = covaria.efficiency(result).set_index(["feature", "method", "rival"])
    assert "are_index" not in plain
    assert (plain["are"].fillna(-1) == table["are"].fillna(-1)).all()


def test_another_learner_has_no_index(drawn):
    linear = assess(*drawn, learner="linear", methods=["gcm", "loco"], progress=False)
    assert covaria.efficiency(linear, *drawn)["are_index"].isna().all()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda X, y: (X.iloc[:9], y), "X has shape"),
        (lambda X, y: (X.rename(columns={"x1": "a"}), y), "the table that was assessed"),
        (lambda X, y: (X.assign(x1="a"), y), "the table that was assessed"),
        (lambda X, y: (X, y[:5]), "y has shape"),
        (lambda X, y: (X, None), "y has shape|must be the numbers"),
    ],
)
def test_another_table_is_one_sentence(result, drawn, change, says):
    with pytest.raises(InputError, match=says):
        covaria.efficiency(result, *change(*drawn))
