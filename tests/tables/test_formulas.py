"""Formulas: the table that they ask for, and the numbers of the call that says the same."""

import numpy as np
import pandas as pd
import pytest

import covaria
from covaria import InputError
from covaria.report.words import snippet
from covaria.tables.formulas import is_formula, read_formula

pytest.importorskip("formulaic")
ASKED = {"learner": "linear", "methods": "gcm"}


@pytest.fixture(scope="module")
def homes():
    rng = np.random.default_rng(0)
    found = pd.DataFrame({"rooms": rng.integers(1, 7, 200), "area": rng.uniform(20, 200, 200)})
    found["kind"], found["zip"] = rng.integers(0, 3, 200), rng.normal(size=200)
    found["city"] = rng.choice(["Bern", "Genf"], 200)
    found["block"] = rng.integers(0, 20, 200)
    found["my col"] = rng.normal(size=200)
    return found.assign(price=np.exp(0.3 * found["rooms"] + rng.normal(size=200)))


def test_what_stands_behind_the_bar_is_given_and_not_tested(homes):
    found = covaria.assess("price ~ rooms + area | city", homes, **ASKED)
    plain = covaria.assess(
        homes[["price", "rooms", "area", "city"]], "price", features=["rooms", "area"], **ASKED
    )
    assert found.features == ["rooms", "area"]
    np.testing.assert_array_equal(found.table["p_value"], plain.table["p_value"])
    assert found.about.target == "price"


def test_codes_become_categories_and_expressions_are_computed(homes):
    found = covaria.assess("np.log(price) ~ C(kind) + log(area)", homes, **ASKED)
    same = homes.assign(**{"log(area)": np.log(homes["area"]), "y": np.log(homes["price"])})
    plain = covaria.assess(
        same[["kind", "log(area)", "y"]].astype({"kind": "category"}), "y", **ASKED
    )
    assert found.features == plain.features == ["kind", "log(area)"]
    np.testing.assert_allclose(found.table["p_value"], plain.table["p_value"])


def test_a_term_of_several_columns_is_one_feature(homes):
    found = covaria.assess("price ~ rooms + poly(area, 2)", homes, **ASKED)
    assert found.features == ["rooms", "poly(area, 2)"]


def test_a_dot_is_every_other_column(homes):
    found = read_formula("price ~ . | city", homes)
    assert found.features == ["rooms", "area", "kind", "zip", "block", "my col"]
    assert found.target == "price"


@pytest.mark.parametrize(
    ("text", "tested", "gone"),
    [
        ("price ~ rooms | .", ["rooms"], {"price"}),
        ("price ~ rooms + area | . - city", ["rooms", "area"], {"price", "city"}),
        ("price ~ log(area) | .", ["log(area)"], {"price", "area"}),
        ("price ~ {area / rooms} | .", ["area / rooms"], {"price", "area", "rooms"}),
        ("price ~ bs(`my col`, df=4) | .", ["bs(`my col`, df=4)"], {"price", "my col"}),
        ("price ~ C(kind) | .", ["kind"], {"price", "kind"}),
        ("log(price) ~ rooms | .", ["rooms"], {"price"}),
        ("price ~ rooms | C(kind) + .", ["rooms"], {"price"}),
    ],
)
def test_a_dot_behind_the_bar_is_every_column_that_no_term_is_made_of(homes, text, tested, gone):
    found = read_formula(text, homes)
    assert found.features == tested
    columns = [name for name in found.table if name != found.target]
    assert len(columns) == len(set(columns))
    behind = {name for name in homes if name not in gone and name not in tested}
    made = {one for name in tested for one in found.groups.get(name, [name])}
    assert set(columns) == behind | made


def test_a_dot_behind_the_bar_has_the_numbers_of_features(homes):
    found = covaria.assess("price ~ rooms | .", homes, **ASKED)
    plain = covaria.assess(homes, "price", features=["rooms"], **ASKED)
    np.testing.assert_allclose(found.table["p_value"], plain.table["p_value"])


def test_names_that_are_no_python_stand_in_backticks(homes):
    assert read_formula("price ~ `my col` + rooms", homes).groups == {}


def test_weights_and_clusters_are_columns_of_the_table(homes):
    found = covaria.assess("price ~ rooms + zip", homes, clusters="block", sample_weight="area",
                           **ASKED)  # fmt: skip
    assert found.features == ["rooms", "zip"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("price ~ room", "Did you mean 'rooms'"),
        ("price ~ rooms:area", "covaria.interactions"),
        ("price ~ rooms * area", "covaria.interactions"),
        ("~ rooms", "not of the form"),
        ("price + rooms ~ area", "not of the form"),
        ("price ~ 1", "names no feature"),
        ("price ~ city | city", "names no feature"),
        ("price ~ rooms | city | zip", "not of the form"),
        ("price ~ rooms +", "cannot be read as a formula"),
        ("Surv(price, area) ~ rooms", "left of ~, and the column .* as event="),
        ("price ~ log(roms)", "cannot be read as a formula"),
        ("poly(area, 2) ~ rooms", "the target, has 2 columns"),
    ],
)
def test_a_formula_that_cannot_be_had_is_one_sentence(homes, text, why):
    with pytest.raises(InputError, match=why):
        covaria.assess(text, homes)


def test_a_formula_takes_a_table_and_says_itself_what_is_tested(homes):
    with pytest.raises(InputError, match="Give a table after it"):
        covaria.assess("price ~ rooms")
    with pytest.raises(InputError, match="leave out features"):
        covaria.assess("price ~ rooms + area", homes, features=["rooms"])


def test_only_text_with_a_tilde_is_a_formula():
    assert [is_formula(x) for x in ("a ~ b", "a.csv", 3, None)] == [True, False, False, False]


def test_categories_and_groups_are_tested_beside_what_is_given(homes):
    found = covaria.assess("price ~ rooms + C(kind) | city", homes, **ASKED)
    assert found.features == ["rooms", "kind"]
    found = covaria.assess(
        "price ~ rooms + area + C(kind) | city", homes, groups={"size": ["rooms", "area"]}, **ASKED
    )
    assert sorted(found.features) == ["kind", "size"]


def test_a_dot_leaves_out_weights_and_clusters(homes):
    found = covaria.assess("price ~ . | city", homes, clusters="block", sample_weight="area",
                           **ASKED)  # fmt: skip
    assert found.features == ["rooms", "kind", "zip", "my col"]


def test_the_code_that_repeats_a_run_has_its_formula(homes):
    found = covaria.assess("price ~ rooms + area | city", homes, **ASKED).extend(methods=["loco"])
    code = snippet(found)
    assert code.startswith("covaria.assess('price ~ rooms + area | city', frame, ")
    again = eval(code, {"covaria": covaria, "frame": homes})
    pd.testing.assert_frame_equal(again.table, found.table)
