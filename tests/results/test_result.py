"""A Result is a value: frozen, printable, the same after a trip to disk."""

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest

from covaria import InputError, Result, assess
from covaria.execution.compiling import MISSING
from covaria.report import render, summarize


@pytest.fixture(scope="module")
def result(small_data):
    return assess(*small_data, learner="linear", methods=["gcm", "loco"])


def test_the_table_has_the_promised_columns(result):
    promised = (
        "method feature estimate std_error low high statistic p_value p_adjusted selected status"
    )
    assert result.table.columns[:11].tolist() == promised.split()
    assert result.table["method"].tolist() == ["gcm"] * 4 + ["loco"] * 4


def test_it_is_frozen_and_a_narrower_view_is_a_new_result(result):
    with pytest.raises(FrozenInstanceError):
        result.table = None
    narrow = result.only("loco")
    assert narrow.methods == ["loco"]
    assert result.methods == ["gcm", "loco"]
    with pytest.raises(InputError, match="gcm, loco"):
        result.only("pcm")


def test_it_prints_in_a_terminal_and_in_a_notebook(result):
    assert "2 of 4 features matter for 'y'" in str(result)
    assert "<table" in result._repr_html_()
    hostile = assess(
        pd.DataFrame({"<b>x</b>": np.arange(50.0) % 7, "b": np.arange(50.0) % 5}),
        np.arange(50.0) % 7,
        learner="linear",
    )
    assert "<b>x" not in hostile._repr_html_()


def test_gains_are_shares_of_the_variance_and_gcm_a_correlation(result, small_data):
    table = result.table.set_index(["method", "feature"])
    y = small_data[1]
    loco = table.loc[("loco", "x0")]
    assert loco["effect"] == pytest.approx(loco["estimate"] / y.var())
    assert table.loc["gcm"]["effect"].abs().max() <= 1


def test_a_file_that_holds_no_result_is_refused(tmp_path):
    path = tmp_path / "x.json"
    for text in ("", "[]", "{}", '{"format": 99}'):
        path.write_text(text)
        with pytest.raises(InputError):
            Result.from_json(path)


def test_parquet_holds_the_table(result, tmp_path):
    pytest.importorskip("pyarrow")
    result.to_parquet(tmp_path / "t.parquet")
    back = pd.read_parquet(tmp_path / "t.parquet")
    assert np.array_equal(back["p_value"], result.table["p_value"])


def test_the_same_result_gives_the_same_page_and_a_name_cannot_inject(result):
    facts = summarize(result)
    assert render(facts) == render(json.loads(json.dumps(facts)))
    facts["verdicts"][0]["feature"] = "<script>alert(1)</script>"
    page = render(facts)
    assert page.count("<script") == 1  # the page's own
    assert 'http-equiv="Content-Security-Policy"' in page


def test_quality_says_how_well_each_regression_predicts(result):
    full = result.quality.set_index("regression").loc["y given all", "r2"]
    assert 0.5 < full < 1
    assert (result.quality["regression"] == "x given rest").sum() == 4


@pytest.mark.parametrize(("learner", "said"), [("boosting", True), ("linear", False)])
def test_a_missing_numba_is_said_where_it_costs_time(small_data, monkeypatch, learner, said):
    monkeypatch.setattr("covaria.execution.compiling._missing", lambda: MISSING)
    alerts = assess(*small_data, learner=learner, methods="gcm").alerts
    assert any("pip install numba" in alert for alert in alerts) is said
