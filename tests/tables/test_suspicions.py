"""Leaks, names of rows, codes and near copies are found before fitting and said with their cure."""

import numpy as np
import pandas as pd
import pytest

import covaria
from covaria.tables.dataset import Dataset
from covaria.tables.files import as_categories
from covaria.tables.suspicions import POLICY, _pairs_alike, suspicions

N = 300
RNG = np.random.default_rng(0)
Y = RNG.normal(size=N)


def kinds(columns, y=Y):
    return {one.kind: one for one in suspicions(Dataset.from_table(columns, y))}


def noise(seed=1):
    return np.random.default_rng(seed).normal(size=N)


def test_a_clean_table_raises_no_suspicion():
    X, y = covaria.draw("additive", n_rows=N, seed=0)
    assert kinds(X, y) == {}
    rooms = np.random.default_rng(1).integers(1, 7, N)
    assert kinds({"rooms": rooms, "year": 1900 + rooms[::-1], "kind": ["a", "b", "c"] * 100}) == {}


def test_a_correlation_of_95_per_cent_is_a_possible_leak():
    found = kinds({"copy": -2 * Y + 0.3 * noise(), "half": Y + noise(2)})["possible_leak"]
    assert found.features == ("copy",)
    assert found.values[0] == pytest.approx(abs(np.corrcoef(Y, -2 * Y + 0.3 * noise())[0, 1]))
    assert "--drop" in found.text


def test_a_category_can_leak_as_well():
    y = np.repeat([0.0, 5.0, 9.0], 100) + 0.1 * noise()
    assert "possible_leak" in kinds({"level": ["a"] * 100 + ["b"] * 100 + ["c"] * 100}, y)
    classes = np.where(Y > 0, "yes", "no")
    assert "possible_leak" in kinds({"won": np.where(Y > 0, 10.0, 3.0), "x": noise()}, classes)


def test_names_of_rows_are_found():
    shuffled = np.random.default_rng(2).permutation(N)
    found = kinds({"row": shuffled, "patient_id": 100_000 + 7 * shuffled, "x": noise()})
    assert found["identifier"].features == ("row", "patient_id")


def test_codes_are_found_by_their_name_or_their_gaps():
    code = np.random.default_rng(3).choice([101, 205, 317, 940], N)
    named = np.random.default_rng(4).integers(1, 5, N)
    found = kinds({"unit": code, "zip_code": named, "rooms": named + 1})
    assert found["codes"].features == ("unit", "zip_code")
    assert "category" in found["codes"].text
    assert "codes" not in kinds({"unit": pd.Series(code).astype("category")})


def test_the_same_in_other_units_is_found():
    x = noise()
    assert kinds({"cm": x, "inch": x / 2.54 + 3})["near_copies"].features == ("cm", "inch")
    assert "near_copies" not in kinds({"a": x, "b": x})  # those are said to be equal


def test_suspicions_are_findings_of_the_result():
    X = {"copy": Y + 0.1 * noise(), "x": noise(2)}
    result = covaria.assess(X, Y, learner="linear", methods="gcm")
    found = [one for one in result.findings if one.kind == "possible_leak"]
    assert [one.feature for one in found] == ["copy"]
    assert found[0].text in str(result)
    quiet = covaria.assess(X, Y, learner="linear", methods="gcm", check=False)
    assert not [one for one in quiet.findings if one.kind == "possible_leak"]
    pd.testing.assert_frame_equal(quiet.table, result.table)


def test_features_that_tell_the_target_together_may_leak():
    a, b = noise(), noise(2)
    result = covaria.assess({"a": a, "b": b}, a + b, learner="linear", methods="loco")
    assert any(one.kind == "possible_leak" and one.value > 0.99 for one in result.findings)


def test_codes_become_categories_on_the_command_line():
    frame = as_categories(pd.DataFrame({"unit": [101, 205, None], "x": [1, 2, 3]}), "unit")
    assert str(frame["unit"].dtype) == "category"
    with pytest.raises(covaria.InputError, match="no column 'unti'"):
        as_categories(frame, "unti")


def test_pairs_are_those_of_all_correlations_whatever_the_columns():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 40))
    x[:, 7] = -3 * x[:, 2]
    x[:, 9] = x[:, 4] + 1e-4 * rng.normal(size=500)
    # Sums over parts of the rows say nothing of columns that swing from row to row.
    swings = np.tile([1.0, -1.0], 250)[:, None] * (1 + 0.1 * rng.normal(size=(500, 40)))
    for columns in (x, swings, np.hstack([swings, swings[:, :3]]), x[:12]):
        unit = columns - columns.mean(axis=0)
        unit /= np.sqrt((unit**2).sum(axis=0))
        near = np.argwhere(np.triu(np.abs(unit.T @ unit), 1) >= POLICY.same)
        assert _pairs_alike(unit) == [tuple(pair) for pair in near.tolist()]
    assert len(_pairs_alike(unit)) >= 1


def test_a_leak_among_many_columns_has_the_correlation_that_it_has_alone():
    X = {f"n{k}": noise(k + 2) for k in range(30)} | {"copy": Y + 0.1 * noise()}
    alone = kinds({"copy": X["copy"], "x": noise(2)})["possible_leak"]
    assert kinds(X)["possible_leak"] == alone


def test_whole_numbers_are_seen_behind_gaps():
    codes = np.tile([100.0, 107.0, 220.0], 100)
    codes[:25] = np.nan
    assert kinds({"kind": codes, "x": noise()})["codes"].features == ("kind",)
