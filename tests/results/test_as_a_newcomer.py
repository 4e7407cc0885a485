"""What newcomers stumbled over: words, repeat code and files that say what is so."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import covaria
from covaria import InputError, Result
from covaria.cli import app as cli
from covaria.report import page_of, summarize
from covaria.report.words import snippet
from covaria.results.result import describe_effect


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, X[:, 0] + rng.normal(size=120)


def test_the_strongest_are_not_said_to_matter(table):
    result = covaria.assess(*table, learner="linear", methods="gcm", top=2)
    assert result.headline.startswith("The 2 strongest of 3 features for 'y' were chosen (gcm)")
    assert result.verdicts["verdict"].tolist().count("among the top 2") == 2
    assert "matter" not in summarize(result)["answer"]
    assert "2 of 3 features chosen (top=2" in summarize(result)["answer"]


def test_a_bound_is_shown_as_a_bound(table):
    X, y = table
    found = covaria.independence_test(X[:, 0], y, given=X[:, 1:], learner="linear", methods="pcm")
    assert f"(≥ {found.interval[0]:.3g})" in str(found)
    assert found.to_dict()["alternative"] == "greater"
    both = covaria.independence_test(X[:, 0], y, given=X[:, 1:], learner="linear", methods="gcm")
    assert f"[{both.interval[0]:.3g}, {both.interval[1]:.3g}]" in str(both)


def test_what_is_rounding_is_shown_as_nothing():
    line = {"status": "ok", "effect": -9.6e-18, "effect_low": -0.1, "effect_high": 0.1}
    assert describe_effect(line) == "0 [-0.1, 0.1]"
    tiny = {"status": "ok", "effect": 2e-18, "effect_low": 1e-18, "effect_high": 3e-18}
    assert describe_effect(tiny) == "2e-18 [1e-18, 3e-18]"


@pytest.mark.parametrize("learner", ["prefit", "estimator"])
def test_repeat_code_runs_also_from_a_file(table, tmp_path, learner):
    X, y = table
    model = LinearRegression()
    asked = {"learner": model, "methods": "gcm"}
    if learner == "prefit":
        asked = {"learner": covaria.Prefit(model.fit(X, y), nuisance="linear"), "methods": "pcm"}
    result = covaria.assess(X, y, **asked)
    result.to_json(tmp_path / "r.json")
    stored = Result.from_json(tmp_path / "r.json")
    assert snippet(stored) == snippet(result)
    *imports, call = snippet(stored).splitlines()
    names = {"X": X, "y": y, "model": model, "covaria": covaria}
    exec("\n".join(imports), names)
    assert eval(call, names).table.equals(result.table)
    page = page_of(result).partition('<pre id="command" tabindex="0">')[2].partition("</pre>")[0]
    assert page.splitlines()[-len(imports) - 1 : -1] == imports


def test_a_prefit_model_is_not_refitted(table):
    X, y = table
    with pytest.raises(InputError, match="is not fitted again"):
        covaria.refit(X, y, learner=covaria.Prefit(LinearRegression().fit(X, y)))


@pytest.mark.parametrize("command", ["stability", "refit"])
def test_commands_that_select_drop_rows_without_a_target(
    table, tmp_path, command, monkeypatch, capsys
):
    X, y = table
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        y=np.where(np.arange(120) < 5, np.nan, y)
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    line = ["covaria", command, str(tmp_path / "t.csv"), "-t", "y", "--learners", "linear",
            "--methods", "gcm", "--missing-target", "drop", "--json"]  # fmt: skip
    monkeypatch.setattr(sys, "argv", line)
    with pytest.raises(SystemExit) as leaving:
        cli.main()
    assert leaving.value.code in (0, None)
    assert json.loads(capsys.readouterr().out)
