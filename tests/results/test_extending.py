"""A result extended by methods or features: the numbers of one run, and only new models fitted."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import covaria
from covaria import InputError, Result
from covaria.nuisance.memory import Memory
from covaria.nuisance.plan import Outcome

N_ROWS = 150
NUMBERS = ["estimate", "std_error", "low", "high", "statistic", "p_value", "p_adjusted"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N_ROWS, 3)), columns=["rooms", "age", "lat"])
    X["size"] = X["rooms"] + rng.normal(size=N_ROWS)
    X["kind"] = rng.choice(["flat", "house", "hut"], N_ROWS)
    return X, (X["rooms"] + X["age"] ** 2 + rng.normal(size=N_ROWS)).rename("price")


def assert_alike(one, other):
    for name in ("method", "feature", "status", "selected"):
        assert one.table[name].tolist() == other.table[name].tolist()
    np.testing.assert_allclose(one.table[NUMBERS], other.table[NUMBERS], rtol=1e-9, atol=1e-9)


def models(result):
    return int(result.cost["models"].sum())


@pytest.mark.parametrize("learner", ["linear", "boosting(trees=10)", "auto"])
@pytest.mark.parametrize("more", [["loco"], ["pcm", "gcm+pcm"], ["basis_gcm"]])
def test_more_methods_have_the_numbers_and_the_models_of_one_run(table, learner, more):
    first = covaria.assess(*table, learner=learner, methods=["gcm"])
    both = first.extend(methods=more)
    whole = covaria.assess(*table, learner=learner, methods=["gcm", *more])
    assert_alike(both, whole)
    assert models(both) - models(first) < models(whole) / 2
    if learner != "auto":  # whose smoothing is looked for again
        assert models(both) == models(whole)


def test_what_models_have_to_be_asked_again_is_one_a_fold(table):
    first = covaria.assess(*table, learner="boosting(trees=10)", methods=["loco"])
    both = first.extend(methods=["dropout", "permutation"])
    assert_alike(both, covaria.assess(*table, learner="boosting(trees=10)",
                                      methods=["loco", "dropout", "permutation"]))  # fmt: skip
    assert models(both) - models(first) == 5


@pytest.mark.parametrize("learner", ["splines", "auto"])
def test_more_features_have_the_numbers_of_one_run(table, learner):
    asked = {"learner": learner, "methods": ["gcm", "loco", "knockoffs"]}
    first = covaria.assess(*table, features=["age"], **asked)
    both = first.extend(features="rooms,kind")
    assert_alike(both, covaria.assess(*table, features=["rooms", "age", "kind"], **asked))
    assert both.settings["features"] == ["rooms", "age", "kind"]


@pytest.mark.parametrize("asked", [{"repeats": 2}, {"splits": 0.4}, {"n_jobs": 2}])
def test_repeats_parts_and_processes_are_extended_alike(table, asked):
    first = covaria.assess(*table, learner="linear", methods=["gcm"], **asked)
    whole = covaria.assess(*table, learner="linear", methods=["gcm", "loco"], **asked)
    assert_alike(first.extend(methods="loco"), whole)


def test_a_result_is_extended_again_and_again(table):
    result = covaria.assess(*table, learner="linear", methods=["gcm"])
    result = result.extend(methods="loco").extend(methods="lasso")
    assert result.methods == ["gcm", "loco", "lasso"]
    assert result.settings["methods"] == ["gcm", "loco", "lasso"]


def test_nothing_is_fitted_where_all_is_known(table):
    first = covaria.assess(*table, learner="splines", methods=["gcm"])
    assert models(first.extend(methods="weighted_gcm")) >= models(first)
    assert models(first.extend(methods="lasso")) == models(first)


def test_the_table_is_checked_and_charged_once(table):
    result = covaria.assess(*table, learner="linear", methods=["gcm"])
    spent = [one.cost.loc[one.cost["purpose"] == "checking the table", "seconds"].tolist()
             for one in (result, result.extend(methods="loco"))]  # fmt: skip
    assert spent[0] == spent[1]


def test_what_is_named_twice_or_unknown_is_refused(table):
    result = covaria.assess(*table, learner="linear", methods=["gcm"], features=["age"])
    with pytest.raises(InputError, match="names nothing that the result has not"):
        result.extend(methods=["gcm"])
    with pytest.raises(InputError, match="names nothing"):
        result.extend()
    with pytest.raises(InputError, match="rooms"):
        result.extend(features=["room"])
    with pytest.raises(InputError, match="rooms"):
        covaria.assess(*table, learner="linear", methods=["gcm"]).extend(features=["room"])
    with pytest.raises(InputError, match="lazy needs learner='network'"):
        result.extend(methods=["lazy"])


def test_a_result_from_a_file_or_another_process_says_that_it_cannot(table, tmp_path):
    result = covaria.assess(*table, learner="linear", methods=["gcm"])
    result.to_json(tmp_path / "r.json")
    for other in (
        Result.from_json(tmp_path / "r.json"),
        pickle.loads(pickle.dumps(result)),
        copy.deepcopy(result),
    ):
        assert other == result
        with pytest.raises(InputError, match=r"Call covaria\.assess"):
            other.extend(methods=["loco"])


def test_a_result_too_large_to_keep_says_so(table, monkeypatch):
    monkeypatch.setattr("covaria.nuisance.memory.MOST_BYTES", 1000)
    monkeypatch.setattr(Memory.__init__, "__defaults__", (1000, *Memory.__init__.__defaults__[1:]))
    result = covaria.assess(*table, learner="linear", methods=["gcm"])
    with pytest.raises(InputError, match="too large to keep"):
        result.extend(methods=["loco"])


def test_a_full_memory_forgets_all_it_had(table):
    from covaria.assessment import prepare

    plan = prepare(*table, learner="linear", methods=["gcm"]).plan(0)
    memory, found = Memory(most_bytes=100), {plan.tasks[0]: Outcome(np.zeros(10))}
    memory.keep(plan, found)
    assert memory.known(plan).keys() == found.keys()
    memory.keep(plan, {plan.tasks[1]: Outcome(np.zeros(10))})
    assert memory.is_full
    assert not memory.known(plan)


def test_what_is_kept_unsorted_is_found_when_it_is_asked_for():
    from covaria.assessment import prepare
    from covaria.nuisance.fit import by_task, run_plan

    table = covaria.draw("linear", n_rows=N_ROWS, seed=0)
    plan = prepare(*table, learner="linear", methods=["gcm", "loco"]).plan(0)
    outcomes = list(run_plan(plan))
    memory, of_all = Memory(), by_task(plan, outcomes)
    memory.keep(plan, outcomes)
    assert memory.unsorted
    left = [one.left for one in outcomes if one.left is not None]
    left[0][:] = 0.0  # what the caller does with its arrays is its own affair
    other = replace(plan, seed=1)
    assert not memory.known(other)
    known = memory.known(plan)
    assert not memory.unsorted
    assert known.keys() == of_all.keys()
    for task, outcome in of_all.items():
        np.testing.assert_array_equal(known[task].prediction, outcome.prediction)
