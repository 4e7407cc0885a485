"""Sentences that are true of every method."""

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import covaria
from covaria import METHODS, Result, assess
from covaria.methods import Method

ALL = [name for name, method in METHODS.items() if isinstance(method, Method)]
LEARNERS = ["linear", "boosting(trees=30)", "auto"]
NETWORK = "network(epochs=20, batch=32, lr=0.01)"


def learner_for(name, learner):
    """Return the learner, or the one that a method is for."""
    return NETWORK if METHODS[name].learners else learner


def methods_for(learner):
    """Return the methods that a learner can serve."""
    return [name for name in ALL if learner == NETWORK or not METHODS[name].learners]


@pytest.fixture(autouse=True)
def torch_where_needed(request):
    """Skip what needs a network where there is no torch."""
    if NETWORK in learners_of(request):
        pytest.importorskip("torch")


def learners_of(request):
    asked = getattr(getattr(request.node, "callspec", None), "params", {})
    return [asked.get("learner"), learner_for(asked["name"], None) if "name" in asked else None]


def without_adjustment(result):
    """Return the table by feature; the adjusted p depends on how many features there are."""
    return result.table.sort_values(["method", "feature"]).reset_index(drop=True)


def frame(X):
    return pd.DataFrame(X, columns=["d", "b", "a", "c"])


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", ALL)
def test_more_jobs_give_the_same_bytes(name, learner, small_data):
    learner = learner_for(name, learner)
    one, two = (assess(*small_data, learner=learner, methods=[name], n_jobs=n) for n in (1, 2))
    assert one.table.to_csv() == two.table.to_csv()
    assert all(np.array_equal(one.scores[m], two.scores[m]) for m in one.scores)


@pytest.mark.parametrize("name", ALL)
def test_the_same_seed_gives_the_same_table_and_another_seed_another(name, small_data):
    options = {"learner": learner_for(name, "boosting"), "methods": [name]}
    first, again = (assess(*small_data, seed=3, **options) for _ in range(2))
    other = assess(*small_data, seed=4, **options)
    assert_frame_equal(first.table, again.table, check_exact=True)
    assert not first.table["estimate"].equals(other.table["estimate"])


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", ALL)
def test_one_more_method_changes_no_other_number(name, learner, small_data):
    learner = learner_for(name, learner)
    alone = assess(*small_data, learner=learner, methods=[name])
    among = assess(*small_data, learner=learner, methods=methods_for(learner)).only(name)
    assert_frame_equal(alone.table, among.table, check_exact=True)


@pytest.mark.parametrize("learner", [*LEARNERS, "splines", "kernel", "single_index", NETWORK])
def test_a_permuted_column_order_changes_no_number(learner, small_data):
    X, y = frame(small_data[0]), small_data[1]
    options = {"learner": learner, "methods": methods_for(learner)}
    straight, permuted = assess(X, y, **options), assess(X[["c", "a", "d", "b"]], y, **options)
    assert_frame_equal(without_adjustment(straight), without_adjustment(permuted), check_exact=True)


@pytest.mark.parametrize("learner", ["linear", "splines", "kernel", "boosting(trees=20)"])
def test_renamed_columns_move_no_p_value_where_nothing_ties_and_nothing_is_drawn(
    learner, small_data
):
    X, y = frame(small_data[0]), small_data[1]
    renamed = X.set_axis(["d", "b", "a", "c"], axis=1)
    once, again = (assess(table, y, learner=learner, methods="gcm") for table in (X, renamed))
    moved = again.table.set_index("feature").loc[renamed.columns, "p_value"]
    assert np.allclose(once.table.set_index("feature").loc[X.columns, "p_value"], moved, rtol=1e-9)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", ALL)
def test_ten_times_y_leaves_every_p_value_where_it_was(name, learner, small_data):
    (X, y), learner = small_data, learner_for(name, learner)
    plain, scaled = (assess(X, k * y, learner=learner, methods=[name]) for k in (1, 10))
    assert np.allclose(plain.table["p_value"], scaled.table["p_value"], rtol=1e-6)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", ALL)
def test_shifting_and_scaling_a_feature_leaves_every_p_value_where_it_was(
    name, learner, small_data
):
    X, y = small_data
    moved = X * [100, 1, 1, 0.01] + [5, 0, -3, 0]
    learner = learner_for(name, learner)
    plain, other = (assess(table, y, learner=learner, methods=[name]) for table in (X, moved))
    assert np.allclose(plain.table["p_value"], other.table["p_value"], rtol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_the_table_comes_from_the_scores(name, small_data):
    result = assess(*small_data, learner=learner_for(name, "linear"), methods=[name])
    scores, table = result.scores[name], result.only(name).table
    assert np.allclose(table["estimate"], scores.mean(axis=0))
    assert np.allclose(table["std_error"], scores.std(axis=0) / np.sqrt(len(scores)))
    if name in ("weighted_gcm", "basis_gcm"):
        return  # the largest of many statistics, and a χ²
    assert np.allclose(table["statistic"], table["estimate"] / table["std_error"])
    below = table["estimate"] - table["low"]
    if METHODS[name].two_sided:
        assert np.allclose(below, 1.959963984540054 * table["std_error"])
        assert np.allclose(table["high"] - table["estimate"], below)
    else:  # one end, and a bound for the other
        # PCM's function has its size from the training rows, whose noise is in the estimate too.
        reach = np.sqrt(2) if name == "pcm" else 1.0
        reached = np.isclose(below, reach * 1.6448536269514722 * table["std_error"])
        assert (reached | (table["p_value"] < 0.05)).all()
        assert (table["high"] >= table["estimate"]).all()


@pytest.mark.parametrize("name", ALL)
def test_a_result_read_back_is_the_result_that_was_written(name, small_data, tmp_path):
    result = assess(*small_data, learner=learner_for(name, "linear"), methods=[name])
    result.to_json(tmp_path / "result.json")
    back = Result.from_json(tmp_path / "result.json")
    assert back == result
    assert_frame_equal(back.table, result.table, check_exact=True)
    assert np.array_equal(back.scores[name], result.scores[name])
    assert str(back) == str(result)


@pytest.mark.parametrize("name", ALL)
def test_useful_features_are_found_and_useless_ones_are_not(name):
    X, y = covaria.draw("linear", n_rows=500, seed=3)
    options = {"learner": learner_for(name, "linear"), "correction": "bonferroni"}
    chosen = assess(X, y, methods=[name], **options).selected[name]
    assert {"x5", "x6", "x7", "x8"} <= set(chosen)
    assert not set(chosen) - set(covaria.scenario("linear").support)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("learner", ["linear", "auto"])
def test_classes_are_tested_too(name, n_classes, learner, small_data):
    X, y = small_data
    labels = np.array(["low", "mid", "top"])[np.digitize(y, [0, 1][: n_classes - 1])]
    if METHODS[name].learners:
        pytest.skip("it is for targets of numbers")
    result = assess(X, labels, learner=learner, methods=[name])
    assert result.about["task"] == "classification"
    assert "x0" in result.selected[name]
    assert result.table["p_value"].between(0, 1, inclusive="right").all()


@pytest.mark.parametrize("name", ALL)
def test_unit_weights_change_nothing_and_a_doubled_row_counts_twice_in_the_estimate(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + rng.normal(size=200)
    options = {"learner": "linear", "methods": [name], "splits": "none"}
    if METHODS[name].learners or METHODS[name].held_out:
        pytest.skip("not in sample, and a network's batches depend on the rows")
    if name == "weighted_gcm":
        pytest.skip("its signs are around the medians of rows, whatever they weigh")
    plain = assess(X, y, **options)
    ones = assess(X, y, sample_weight=np.full(200, 3.0), **options)
    assert np.allclose(plain.table["p_value"], ones.table["p_value"])
    if name == "permutation":
        return  # its shuffles differ once rows are repeated
    weight = rng.integers(1, 4, size=200)
    repeated = assess(np.repeat(X, weight, axis=0), np.repeat(y, weight), **options)
    weighted = assess(X, y, sample_weight=weight, **options)
    assert np.allclose(weighted.table["estimate"], repeated.table["estimate"])


@pytest.mark.parametrize("name", ALL)
def test_clusters_of_copies_have_the_standard_error_of_the_originals(name):
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, size=(600, 3))
    y = X[:, 0] + rng.normal(size=600)
    options = {"learner": "linear", "methods": [name], "splits": "none"}
    if name == "permutation":
        pytest.skip("copies are shuffled apart")
    if METHODS[name].learners or METHODS[name].held_out:
        pytest.skip("not in sample, and a network's batches depend on the rows")
    single = assess(X, y, **options)
    copies = assess(
        np.tile(X, (3, 1)), np.tile(y, 3), clusters=np.tile(np.arange(600), 3), **options
    )
    # Clusters pay for the mean they take: G / (G − 1).
    assert np.allclose(single.table["std_error"] * np.sqrt(600 / 599), copies.table["std_error"])


@pytest.mark.parametrize("name", ALL)
def test_repeats_combine_to_twice_the_median_p(name, small_data):
    options = {"learner": learner_for(name, "linear"), "methods": [name]}
    result = assess(*small_data, repeats=3, **options)
    assert result.about["repeats"] == 3
    assert result.table["p_value"].between(0, 1, inclusive="right").all()
    assert "x0" in result.selected[name]
    assert result.scores[name].shape == (120, 4)


@pytest.mark.parametrize("name", ALL)
def test_a_feature_the_learner_never_uses_has_p_one(name):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), np.r_[np.ones(4), np.zeros(196)]])
    y = 3 * X[:, 0] + 0.1 * rng.normal(size=200)
    if METHODS[name].learners:
        pytest.skip("a network uses every column")
    # No node of 10 rows can split on x1.
    row = assess(X, y, methods=[name], learner="boosting").table.iloc[1]
    assert row["status"] in ("unused", "redundant", "ok")
    if "gcm" not in name:
        assert (row["status"], row["p_value"], row["estimate"]) == ("unused", 1.0, 0.0)
