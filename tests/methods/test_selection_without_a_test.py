"""Lasso and knockoffs choose features without a test; through the front door."""

import json

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import covaria
from covaria import InputError, Result, assess, write_report
from covaria.methods import METHODS, SelectionMethod, get_methods

SELECTIONS = [name for name, method in METHODS.items() if isinstance(method, SelectionMethod)]


@pytest.fixture(scope="module")
def linear_data():
    return covaria.draw("linear", n_rows=400, seed=2)


@pytest.fixture(scope="module")
def both(linear_data):
    return assess(*linear_data, learner="linear", methods=["gcm", *SELECTIONS])


def test_they_have_a_statistic_and_no_p_value(both):
    rows = both.table[both.table["method"].isin(SELECTIONS)]
    assert len(rows) == 20 * len(SELECTIONS)
    assert rows[["p_value", "p_adjusted", "std_error", "low", "high"]].isna().all(axis=None)
    assert rows[["estimate", "statistic", "effect"]].notna().all(axis=None)
    assert set(both.scores) == {"gcm"}
    assert both.methods == ["gcm", *SELECTIONS]


@pytest.mark.parametrize("name", SELECTIONS)
def test_they_choose_what_matters(name, both):
    assert {f"x{j}" for j in range(3, 9)} <= set(both.selected[name])


@pytest.mark.parametrize("name", SELECTIONS)
def test_one_more_method_changes_nothing_and_the_same_seed_gives_the_same(name, linear_data, both):
    alone = assess(*linear_data, methods=[name])
    assert_frame_equal(alone.table, both.only(name).table, check_exact=True)
    assert alone.about["models"] == 0  # no regression is fitted that nobody needs


def test_a_result_with_empty_cells_comes_back_from_disk_as_it_was(both, tmp_path):
    for result in (both, both.only("lasso")):
        result.to_json(tmp_path / "result.json")
        back = Result.from_json(tmp_path / "result.json")
        assert back == result
        assert_frame_equal(back.table, result.table, check_exact=True)
        assert str(back) == str(result)


def test_the_report_says_chosen_where_there_is_no_p_value(both, tmp_path):
    page = write_report(both, tmp_path / "out.html").read_text()
    assert "chosen" in page
    assert "nan" not in page.lower().split("<style>")[0]
    json.dumps(covaria.report.summarize(both), allow_nan=False)


def test_settings_go_with_the_name(linear_data):
    result = assess(*linear_data, methods="lasso, lasso(rule='min'), knockoffs(fdr=0.1, offset=0)")
    assert result.methods == ["lasso", "lasso(rule='min')", "knockoffs(fdr=0.1, offset=0)"]
    assert set(result.selected["lasso"]) <= set(result.selected["lasso(rule='min')"])


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ("lasso(rule='2se')", "rule"),
        ("lasso(rulle='min')", "Did you mean 'rule'"),
        ("knockoffs(fdr=2)", "fdr"),
        ("knockoffs(construction='sdq')", "sdp"),
        ("lasoo", "Did you mean 'lasso'"),
        ("lasso(min)", "cannot be read"),
        ("gcm(alpha=3)", "no settings"),
    ],
)
def test_settings_that_make_no_sense_get_one_sentence(methods, words, linear_data):
    with pytest.raises(InputError) as error:
        assess(*linear_data, methods=methods)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", list(METHODS))
def test_a_text_column_of_four_levels_is_one_feature(name):
    rng = np.random.default_rng(0)
    kind = rng.choice(["flat", "house", "room", "boat"], 300)
    frame = pd.DataFrame({f"x{j}": rng.normal(size=300) for j in range(5)} | {"type": kind})
    y = 2.0 * (kind == "house") + frame["x0"] + 0.5 * rng.normal(size=300)
    learner = METHODS[name].learners[0] if getattr(METHODS[name], "learners", ()) else "linear"
    result = assess(frame, y, learner=learner, methods=[name]).only(name)
    table = result.table.set_index("feature")
    assert table.index.tolist() == ["x0", "x1", "x2", "x3", "x4", "type"]
    assert table.loc["type", "status"] == "ok"
    if name != "knockoffs":  # of six features two are too few for knockoffs at .2
        assert table.loc["type", "selected"]


def test_three_classes_are_refused_before_anything_is_fitted():
    X, y = np.random.default_rng(0).normal(size=(90, 3)), np.repeat(["a", "b", "c"], 30)
    for name in SELECTIONS:
        with pytest.raises(InputError, match="class"):
            assess(X, y, methods=[name])


@pytest.mark.parametrize("name", ["gcm", "loco", *SELECTIONS])
def test_top_takes_the_strongest(name, linear_data):
    result = assess(*linear_data, learner="linear", methods=[name], top=3)
    assert len(result.selected[name]) == 3
    table = result.table.sort_values("statistic", key=np.abs, ascending=False)
    assert set(result.selected[name]) == set(table["feature"].head(3))
    with pytest.raises(InputError, match="top"):
        assess(*linear_data, learner="linear", methods=[name], top=0)


def test_names_are_split_at_commas_outside_brackets():
    names = [m.name for m in get_methods("gcm,knockoffs(fdr=0.1, repeats=3),lasso")]
    assert names == ["gcm", "knockoffs(fdr=0.1, repeats=3)", "lasso"]


def test_selection_methods_were_called_choosers_for_one_version():
    import covaria.methods

    with pytest.warns(DeprecationWarning, match="SelectionMethod"):
        assert covaria.methods.Chooser is SelectionMethod
    with pytest.raises(AttributeError, match="Choosing"):
        _ = covaria.methods.Choosing
