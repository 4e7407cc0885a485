"""The page: what it says is what the result says, in one small file that asks for nothing."""

import base64
import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import covaria
from covaria import InputError, assess
from covaria.report import page_of, summarize
from covaria.report.alerts import all_alerts, collinear_groups
from covaria.report.geometry import Scale, p_place
from covaria.report.words import answer, methods_paragraph, references, snippet
from covaria.results.findings import Finding
from covaria.results.residual_views import (
    binned,
    effects_by_fold,
    points_each,
    residual_pair,
    thinned,
)


@pytest.fixture(scope="module")
def table():
    """Return 400 rows: `price` is set by `area`, by `age` evenly, and by a category."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(400, 4)), columns=["area", "age", "noise", "spare"])
    frame["town"] = np.array(["east", "north", "west"])[rng.integers(0, 3, 400)]
    frame["price"] = (
        2 * frame["area"] + frame["age"] ** 2 + (frame["town"] == "west") + rng.normal(size=400)
    )
    return frame


@pytest.fixture(scope="module")
def result(table):
    methods = ["gcm", "loco", "dropout", "permutation", "lasso"]
    return assess(table, "price", learner="splines", methods=methods, seed=0)


@pytest.fixture(scope="module")
def page(result):
    return page_of(result)


def inside(page, kind):
    found = re.search(rf'href="data:{kind}[^"]*base64,([^"]*)"', page)
    return base64.b64decode(found[1]).decode()


# --- what it says -------------------------------------------------------------------------------


def test_the_answer_is_two_sentences_with_the_names_that_matter(result):
    text = summarize(result)["answer"]
    assert len(re.findall(r"[.](?:\s|$)", text)) == 2
    assert "area" in text
    assert "400 rows" in text
    assert answer(result, []).startswith("0 of 5 features matter for price. Tested by")


def test_every_number_of_the_table_is_in_the_csv_of_the_page(result, page):
    rows = list(csv.DictReader(io.StringIO(inside(page, "text/csv"))))
    found = {(row["method"], row["feature"]): row for row in rows}
    assert len(found) == len(result.table)
    for line in result.lines:
        row = found[line["method"], line["feature"]]
        for name in ("estimate", "p_value", "effect_low"):
            expected = line[name]
            assert row[name] == "" if expected is None else float(row[name]) == pytest.approx(
                expected, rel=1e-7
            )  # fmt: skip


def test_the_json_of_the_page_holds_all_facts(result, page):
    document = json.loads(inside(page, "application/json"))
    assert {"answer", "alerts", "table", "quality", "efficiency", "paragraph"} <= set(document)
    assert len(document["table"]["p_value"]) == len(result.table)
    assert len(document["quality"]["r2"]) == len(result.quality)


def test_the_verdict_method_comes_first(result):
    empty = dict.fromkeys(("estimate", "effect", "effect_low", "effect_high"), np.nan)
    both = result.table[result.table["method"] == "gcm"].assign(method="gcm+pcm", **empty)
    named = ("methods", "effects", "fits", "seconds")
    about = {k: {**result.about[k], "gcm+pcm": result.about[k]["gcm"]} for k in named}
    combined = replace(
        result,
        table=pd.concat([result.table, both], ignore_index=True),
        about={**result.about, **about},
    )
    facts = summarize(combined)
    assert facts["methods"][0]["name"] == "gcm+pcm"
    assert all(row["tests"][0]["method"] == "gcm+pcm" for row in facts["verdicts"])
    assert "gcm+pcm" in page_of(combined)
    assert "gcm+pcm p" in combined.verdicts.columns
    assert "gcm+pcm" not in combined.verdicts.columns  # it has no effect of its own


def test_quality_may_have_any_columns(result):
    quality = result.quality.assign(residual_r2=0.25, warning="")
    quality.loc[quality.index[1], "warning"] = "the learner misses something"
    shown = page_of(replace(result, quality=quality))
    assert "the learner misses something" in shown
    assert "residual r2 0.25" in shown
    assert page_of(replace(result, quality=quality.iloc[:0]))


def test_a_stability_run_is_shown_beside_the_result_and_alone(table, result):
    found = covaria.stability(table, "price", method=["gcm", "loco"], learner="linear")
    beside = page_of(result, stability=found)
    alone = page_of(found)
    for shown in (beside, alone):
        assert "training parts; stable from 4 on" in shown
        assert re.search(r"<b>5/5</b>", shown)


def test_something_else_gets_a_sentence(tmp_path):
    with pytest.raises(InputError, match="write_report takes"):
        covaria.write_report({"a": 1}, tmp_path / "x.html")


def test_the_methods_paragraph_names_tests_and_references(result):
    text = methods_paragraph(result)
    assert "generalised covariance measure (two-sided)" in text
    assert "Benjamini–Hochberg" in text
    said = " ".join(references(result))
    assert all(name in said for name in ("Shah", "Lei", "Breiman", "Tibshirani", "Zheng"))
    assert "Candès" not in said


def test_the_snippet_repeats_the_result(table, result):
    call = snippet(result)
    names = {"covaria": covaria, "X": table, "y": "price"}
    again = eval(call, names)
    assert again.table.equals(result.table)
    held = assess(table, "price", learner="linear", methods=["gcm"], splits=0.33, seed=3)
    assert eval(snippet(held), names).table.equals(held.table)


# --- alerts -------------------------------------------------------------------------------------


def test_copies_of_a_feature_are_told_to_be_grouped():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    X["copy of a"] = X["a"] + 0.05 * rng.normal(size=300)
    result = assess(X, X["a"] + rng.normal(size=300), learner="linear")
    assert collinear_groups(result) == [["a", "copy of a"]]
    assert "'a', 'copy of a' together matter" in summarize(result)["answer"]
    assert not any("test them as one" in alert for alert in all_alerts(result))
    assert [row["features"] for row in summarize(result)["sets"]] == [["a", "copy of a"]]
    assert "Features tested together" in page_of(result)
    single = replace(result, groups=result.groups[:0])
    assert "Features tested together" not in page_of(single)
    assert any("test them as one" in alert for alert in all_alerts(single))


def test_heavy_tails_unused_features_and_few_rows_are_told():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(80, 3)), columns=["tail", "b", "c"])
    X.loc[0, "tail"] = 30.0
    result = assess(X, X["tail"] + rng.normal(size=80), learner="linear", alpha=0.5)
    told = " ".join(all_alerts(result))
    assert "only 80 rows" in told
    assert "Heavy tails: a hundredth of the rows makes most of the spread of 'tail'" in told
    unused = result.table.assign(status="unused")
    assert "never used 'tail', 'b', 'c'" in " ".join(all_alerts(replace(result, table=unused)))


def test_an_even_effect_that_only_a_gain_test_sees_is_told(table):
    result = assess(table, "price", learner="splines", methods=["gcm", "dropout"])
    assert "age" in result.selected["dropout"]
    assert "age" not in result.selected["gcm"]
    assert any("dropout finds 'age'" in alert for alert in all_alerts(result))
    both = assess(table, "price", learner="splines", methods=["gcm", "loco", "dropout"])
    told = [alert for alert in all_alerts(both) if "'age'" in alert and "GCM does not" in alert]
    assert len(told) == 1
    assert "PCM tells" in told[0]
    assert "even (such" in page_of(both)
    three = assess(table, "price", learner="splines", methods=["gcm", "loco", "pcm"])
    assert any("LOCO and PCM find 'age' and GCM does not" in alert for alert in three.alerts)


def test_a_learner_worse_than_the_mean_and_failed_fits_are_told():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc"))
    poor = assess(frame, rng.normal(size=120), learner="boosting(trees=300, splits=6)")
    assert "no better than its mean" in page_of(poor)
    table = poor.table.assign(status="failed: fold 1: it broke")
    assert "failed: fold 1: it broke" in page_of(replace(poor, table=table))


def test_more_features_than_rows_learn_little_is_told(result):
    about = {**result.about, "n_features": 300}
    assert any("little to learn" in alert for alert in all_alerts(replace(result, about=about)))


def test_a_plain_table_raises_no_alarm():
    X, y = covaria.draw("linear", n_rows=600, seed=0, noise=1.0)
    assert all_alerts(assess(X, y, learner="linear")) == []


# --- panels -------------------------------------------------------------------------------------


def test_residuals_of_a_feature_are_those_of_the_result(result):
    at = result.features.index("area")
    left = residual_pair(result, at)
    column = result.about["columns"][at][0]
    assert np.array_equal(left.x, result.residuals["x_given_rest"][:, column])
    assert np.array_equal(left.y, result.residuals["y_given_rest"][:, at])
    town = residual_pair(result, result.features.index("town"))
    assert "combination of the" in town.x_label


def test_the_binned_mean_shows_an_even_effect(result):
    curve = binned(residual_pair(result, result.features.index("age")))
    middle = curve.mean[3:5].mean()
    assert curve.mean[0] > middle + 1
    assert curve.mean[-1] > middle + 1


def test_effects_by_fold_average_to_the_effect(result):
    by_fold = effects_by_fold(result)
    sizes = np.bincount(result.residuals["fold"].astype(int))
    for name in ("gcm", "loco"):
        own = result.table[result.table["method"] == name]
        ours = np.average(by_fold[name], axis=0, weights=sizes)
        assert ours == pytest.approx(own["effect"].to_numpy(), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("splits", ["none", 0.4])
def test_without_folds_there_is_nothing_fold_by_fold(splits, table):
    result = assess(table, "price", learner="linear", methods=["gcm"], splits=splits)
    assert effects_by_fold(result) == {}
    assert "Fold by fold" not in page_of(result)


def test_many_classes_and_missing_residuals_have_a_page(table):
    classes = assess(table.drop(columns="price"), "town", learner="linear")
    assert "class " in residual_pair(classes, 0).y_label
    assert "<path" in page_of(classes)
    gains = assess(table, "price", learner="linear", methods=["loco"])
    assert residual_pair(gains, 0) is None
    assert "No residuals to draw" in page_of(gains)


def test_repeats_have_a_page(table):
    result = assess(table, "price", learner="linear", splits=0.4, repeats=3)
    assert "hold-out of 40% × 3" in page_of(result)


def test_thinned_rows_are_evenly_spaced():
    assert thinned(10, 100).tolist() == list(range(10))
    assert thinned(101, 11).tolist() == list(range(0, 101, 10))
    assert points_each(10) > points_each(500) >= 80


# --- geometry -----------------------------------------------------------------------------------


def test_a_scale_puts_ends_and_zero_where_they_belong():
    scale = Scale([2.0, -1.0])
    assert (scale.at(-1.0), scale.at(2.0)) == (3.0, 97.0)
    assert scale.at(0.0) == pytest.approx(3 + 94 / 3, abs=0.01)
    assert all(3 <= tick["at"] <= 97 for tick in scale.ticks)
    assert Scale([]).at(0.0) == 50.0


def test_a_smaller_p_lies_further_right():
    places = [p_place(p, 1e-16) for p in (1.0, 0.05, 1e-5, 1e-16, 1e-300)]
    assert places == sorted(places)
    assert places[-1] == places[-2] == 97.0


# --- one small file -----------------------------------------------------------------------------


def test_the_same_result_gives_the_same_bytes_after_a_trip_to_disk(result, page, tmp_path):
    result.to_json(tmp_path / "r.json")
    assert page_of(covaria.Result.from_json(tmp_path / "r.json")) == page


def test_the_policy_lets_nothing_in_but_the_page_itself(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src &#39;none&#39;")
    assert "unsafe" not in policy
    assert "http:" not in page.replace("http-equiv", "")
    assert " style=" not in page
    assert not re.search(r" on\w+=", page)


def many(n_features):
    """Return a result of seven methods, as large as that of a real run."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, n_features))
    names = [f"a feature named {k}" for k in range(n_features)]
    frame = pd.DataFrame(X, columns=names)
    result = assess(
        frame, X[:, 0] + rng.normal(size=400), learner="linear(ridge=1.0)", methods=["gcm", "loco"]
    )
    copies = ("dropout", "permutation", "lazy", "pcm", "weighted_gcm")
    tables = [result.table[result.table["method"] == "loco"].assign(method=m) for m in copies]
    scores = dict.fromkeys(copies, result.scores["loco"])
    about = {
        k: {**result.about[k], **dict.fromkeys(copies, result.about[k]["loco"])}
        for k in ("methods", "effects", "fits", "seconds")
    }
    return replace(
        result,
        table=pd.concat([result.table, *tables], ignore_index=True),
        scores={**result.scores, **scores},
        about={**result.about, **about},
    )


@pytest.mark.parametrize(
    ("n_features", "most"),
    [(50, 2_000_000), pytest.param(500, 5_000_000, marks=pytest.mark.slow)],
)
def test_the_page_of_seven_methods_stays_small(n_features, most):
    assert len(page_of(many(n_features)).encode()) < most


# --- pages of tables ----------------------------------------------------------------------------


def test_a_study_and_a_refit_have_a_page_of_sortable_tables(tmp_path):
    from types import SimpleNamespace

    lines = pd.DataFrame({"scenario": ["a", "a"], "repeat": [0, 1], "method": ["gcm", "<b>loco"]})
    rates = pd.DataFrame(
        {
            "method": ["gcm", "=loco"],
            "metric": "f1",
            "mean": [0.5, np.nan],
            "se": 0.1,
            "runs": [2, 2],
        }
    )
    study = SimpleNamespace(
        table=lines, summary=rates, features=rates, failures=[("a", "b", "c", 1, "<script>")],
        about={"seed": 0},
    )  # fmt: skip
    text = page_of(study)
    assert "2 runs of gcm, &lt;b&gt;loco." in text
    assert text.count('class="sortable"') == 2
    assert text.count("<script") == 1
    assert "'=loco,f1,,0.1,2" in inside(text, "text/csv")
    assert text.count("0.5 ± 0.2") == 1  # drawn, with two errors
    errors = pd.DataFrame({"learner": ["linear"], "error": [2.0], "std_error": [0.5]})
    refit = SimpleNamespace(
        table=errors, frequencies=rates, alerts=("mind",), about={"target": "y"}
    )
    assert "What is stable for y" in page_of(refit)
    assert "2 ± 1" in page_of(refit)


def test_long_tables_are_cut_and_say_so(tmp_path):
    frame = pd.DataFrame({"at": np.arange(6000)})
    facts = covaria.report.tables_facts("Long", "Very.", {"numbers": frame})
    path = covaria.report.write_tables(tmp_path / "long.html", facts)
    text = path.read_text(encoding="utf-8")
    assert "The first 400 rows; 5,600 more" in text
    assert len(inside(text, "text/csv").splitlines()) == 5001


def test_alerts_beyond_five_are_folded():
    result = assess(*covaria.draw("linear", n_rows=120, seed=0), learner="linear", methods="gcm")
    found = [Finding("codes", "", None, f"Look at {at}.") for at in range(7)]
    page = page_of(replace(result, findings=(*found, Finding("few_rows", "", 1.0, "!"))))
    first, _, folded = page.partition('<details class="more-alerts">')
    assert "Look at 3." in first
    assert "Look at 4." not in first.partition('id="alerts"')[2]
    assert first.index("<li>!</li>") < first.index("Look at 0.")
    assert "Look at 6." in folded
