"""Features that explain each other are tested together, and then in ever smaller sets."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes

import covaria
from covaria.assessment import prepare
from covaria.errors import InputError
from covaria.results.grouping import (
    Node,
    as_one,
    as_table,
    clusters_of,
    seen_by_lines,
    visited_down,
)
from covaria.tables.dataset import Dataset


def blocks(n_rows, seed, *, effect=0.0, rho=0.95):
    """Return eight features in two blocks of four that move together, and a target of x0 alone."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n_rows, 2))
    X = np.sqrt(rho) * np.repeat(shared, 4, axis=1) + np.sqrt(1 - rho) * rng.normal(
        size=(n_rows, 8)
    )
    return X, effect * X[:, 0] + rng.normal(size=n_rows)


def found(X, y, **options):
    options = {"learner": "linear", "methods": "gcm", "check": False} | options
    return covaria.assess(X, y, groups="auto", **options)


@pytest.fixture(scope="module")
def diabetes():
    frame = load_diabetes(as_frame=True, scaled=False).frame
    single = covaria.assess(frame, "target", learner="linear", alpha=1e-6)
    return single, covaria.assess(frame, "target", learner="linear", groups="auto", alpha=1e-6)


def test_blood_values_matter_together_though_none_does_alone(diabetes):
    single, result = diabetes
    assert not set(single.selected["gcm+pcm"]) & {"s1", "s2", "s3", "s4", "s5"}
    sets = {", ".join(row.features): row for row in result.groups.itertuples()}
    assert sets["s1, s2, s3, s4, s5"].p_adjusted < 1e-12
    smallest = [row for row in sets.values() if row.smallest]
    assert [row.verdict for row in smallest] == ["matters"]
    names = ", ".join(f"'{name}'" for name in smallest[0].features)
    assert str(result).startswith(f"{names} together matter (p = ")
    assert "which of them cannot be told. " in result.headline


def test_single_tests_are_what_they_were(diabetes):
    single, result = diabetes
    pd.testing.assert_frame_equal(single.table, result.table)


def test_the_usual_answer_names_the_set_at_little_cost(diabetes):
    single, result = diabetes
    assert [row.features for row in single.groups.itertuples()] == [["s1", "s2", "s3", "s4", "s5"]]
    asked = result.groups.iloc[0]
    assert single.groups["p_adjusted"][0] < 1e-12
    assert asked["features"] == single.groups["features"][0]
    assert single.headline.startswith("'s1', 's2', 's3', 's4', 's5' together matter (p = ")
    told = [one.text for one in single.findings if one.kind == "determined"]
    assert told
    assert not any("group them" in text for text in told)  # they were
    models = single.cost.groupby("purpose")["models"].sum()
    assert 0 < models["sets of features"] < models.sum() / 4


def test_nothing_is_asked_of_sets_with_a_feature_that_matters_or_where_nobody_reads_it():
    X, y = blocks(150, 3, effect=0.5)
    y = y + 3 * X[:, 0] + 3 * X[:, 4]
    asked = {"learner": "linear", "methods": "gcm"}
    assert len(covaria.assess(X, y, **asked).groups) == 0
    rng = np.random.default_rng(0)
    for more in ({"check": False}, {"methods": "loco"}, {"splits": "none"}, {"top": 2}):
        usual = covaria.assess(X, rng.normal(size=150), **(asked | more))
        assert len(usual.groups) == 0


def test_sets_of_the_usual_answer_have_the_p_value_of_a_group():
    X, y = blocks(150, 3, effect=0.5)
    result = covaria.assess(X, y, learner="linear", methods="gcm", alpha=1e-9)
    for row in result.groups.itertuples():
        one = covaria.assess(X, y, groups={"set": row.features}, learner="linear", methods="gcm")
        p = one.table.set_index("feature")["p_value"]["set"]
        np.testing.assert_allclose(row.p_value, p, rtol=1e-9)
    assert len(result.groups) == 1  # y has no use for the other block


def test_a_set_has_the_p_value_of_a_group_of_its_columns():
    X, y = blocks(150, 3, effect=0.5)
    result = found(X, y)
    for row in result.groups.itertuples():
        if row.size > 1:
            by_hand = covaria.assess(
                X, y, groups={"set": row.features}, learner="linear", methods="gcm", check=False
            ).table.set_index("feature")
            assert row.p_value == pytest.approx(by_hand.loc["set", "p_value"], rel=1e-9)


def test_sets_are_adjusted_for_their_share_of_the_features_and_those_above():
    tree = Node((0, 1, 2), (Node((0,)), Node((1, 2), (Node((1,)), Node((2,))))))
    p = {(0, 1, 2): 0.001, (0,): 0.2, (1, 2): 0.0001, (1,): 0.004, (2,): 0.5}
    tested = {one.node.members: one.p_adjusted for one in visited_down([tree], p.get, 6, 0.05)}
    assert tested == {
        (0, 1, 2): pytest.approx(0.002),
        (0,): 1.0,
        (1, 2): pytest.approx(0.002),  # not below the set above it
        (1,): pytest.approx(0.024),
        (2,): 1.0,
    }


def test_nothing_below_a_set_without_evidence_is_visited():
    tree = Node((0, 1), (Node((0,)), Node((1,))))
    visited = []
    visited_down([tree], lambda members: visited.append(members) or 0.5, 2, 0.05)
    assert visited == [(0, 1)]


def test_the_smallest_sets_that_matter_are_marked():
    tree = Node((0, 1), (Node((0,)), Node((1,))))
    tested = visited_down([tree], {(0, 1): 1e-9, (0,): 1e-6, (1,): 0.5}.get, 2, 0.05)
    table = as_table(tested, ["a", "b"], 0.05).frame()
    assert table["features"].tolist() == [["a", "b"], ["a"], ["b"]]
    assert table["smallest"].tolist() == [False, True, False]


def test_blocks_are_found_from_the_features_alone():
    X, y = blocks(200, 1)
    for target in (y, np.random.default_rng(9).normal(size=200)):
        roots = [row.features for row in found(X, target).groups.itertuples() if not row.within]
        assert roots == [[f"x{j}" for j in part] for part in ((0, 1, 2, 3), (4, 5, 6, 7))]


def test_features_unlike_each_other_have_no_sets():
    rng = np.random.default_rng(0)
    result = found(rng.normal(size=(200, 5)), rng.normal(size=200))
    assert len(result.groups) == 0
    assert result.headline.startswith("0 of 5")
    assert clusters_of(np.zeros((1, 1)), [0]) == []


def test_a_set_owns_the_columns_of_its_members_and_no_other_is_tested():
    data = Dataset.from_table(
        {"a": np.arange(30.0) ** 2, "k": list("xyz") * 10, "b": np.sin(np.arange(30.0))},
        np.cos(np.arange(30.0)),
    )
    one, at = as_one(data, (0, 1)), 0
    own = data.features[0].columns + data.features[1].columns
    assert sorted(one.features[at].columns) == sorted(own)
    assert [feature.columns for feature in one.features[1:]] == [(), ()]
    assert list(one.without(at)) == list(data.features[2].columns)


def test_sets_are_stored_and_repeated():
    X, y = blocks(150, 3, effect=0.5)
    result = found(X, y)
    again = covaria.Result.from_dict(json.loads(json.dumps(result.to_dict())))
    assert again == result
    assert again.headline == result.headline
    repeated = covaria.assess(X, y, **result.settings)
    pd.testing.assert_frame_equal(repeated.groups, result.groups)
    assert result.cost["models"].sum() == result.about.models


def test_groups_auto_is_refused_where_it_has_no_meaning():
    X, y = blocks(60, 1)
    with pytest.raises(InputError, match="needs a test"):
        covaria.assess(X, y, groups="auto", methods="lasso")
    with pytest.raises(InputError, match="is for assess"):
        covaria.stability(X, y, groups="auto", learner="linear")
    with pytest.raises(InputError, match="groups must name each group"):
        covaria.Selector(feature_groups="auto").fit(X, y)
    with pytest.raises(InputError, match="groups must name each group"):
        covaria.assess(X, y, groups="atuo")


def false_sets(result, signal=()):
    """Return whether a set without a feature that matters is found."""
    sets = [
        row.features
        for row in result.groups.itertuples()
        if row.verdict == "matters" and not set(row.features) & set(signal)
    ]
    return bool(sets)


@pytest.mark.parametrize(("effect", "signal"), [(0.0, ()), (0.6, ("x0",))])
def test_the_chance_of_any_false_set_is_kept(effect, signal):
    runs = 20
    false = sum(
        false_sets(found(*blocks(150, 100 + seed, effect=effect)), signal) for seed in range(runs)
    )
    assert false <= 5  # of 20 at level .05: more in 1 of 3,000 such tests


def test_a_set_is_found_where_its_members_are_not():
    power, alone = 0, 0
    for seed in range(10):
        result = found(*blocks(150, seed, effect=0.4))
        power += result.groups["verdict"].iloc[0] == "matters"
        alone += "x0" in result.selected["gcm"]
    assert power >= 9
    assert alone <= 5


def test_least_squares_tells_which_sets_are_worth_a_test():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(300, 2))
    X = np.repeat(common, 2, axis=1) + 0.05 * rng.normal(size=(300, 4))
    y = common[:, 0] + rng.normal(size=300)
    for target in (y, np.digitize(y, [-0.5, 0.5]).astype(str)):
        sees = seen_by_lines(prepare(X, target).encoded)
        assert (sees(Node((0, 1))), sees(Node((2, 3)))) == (True, False)
    wide = prepare(rng.normal(size=(30, 40)), rng.normal(size=30)).encoded
    assert seen_by_lines(wide)(Node((0, 1)))  # no rows are left to tell


def test_units_have_no_say_in_which_sets_are_asked_of():
    X, y = blocks(200, 0, effect=1.0)
    X[:, 7] *= 1e12
    assert seen_by_lines(prepare(X, y).encoded)(Node((0, 1, 2, 3)))


def test_every_target_has_a_say_in_which_sets_are_asked_of():
    X, y = blocks(200, 0, effect=1.0)
    other = np.random.default_rng(1).normal(size=200)
    for targets in (np.column_stack([y, other]), np.column_stack([other, y])):
        sees = seen_by_lines(prepare(X, targets).encoded)
        assert sees(Node((0, 1, 2, 3)))
        assert not sees(Node((4, 5, 6, 7)))
