"""Predictions that were made elsewhere: the tests are those of their residuals, and fit nothing."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict

import covaria
from covaria import InputError, Result
from covaria.report.words import snippet

FOLDS = KFold(5, shuffle=True, random_state=0)
N_ROWS = 200


def drawn(seed=0, effect=0.5):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(N_ROWS, 3)), columns=["a", "b", "c"])
    X["b"] += X["a"]
    return X, (X["a"] + effect * X["b"] + rng.normal(size=N_ROWS)).rename("y")


def out_of_fold(X, y):
    """Return what least squares predicts of rows that it has not seen."""
    found, Z = np.empty(len(y)), np.column_stack([np.ones(len(y)), X])
    for train, test in FOLDS.split(Z):
        found[test] = Z[test] @ np.linalg.lstsq(Z[train], np.asarray(y)[train], rcond=None)[0]
    return found


def made(X, y, *names):
    """Return predictions by least squares, out of fold."""
    rest = {name: X.drop(columns=name) for name in names}
    return {
        "y|all": out_of_fold(X, y),
        "y|rest": {name: out_of_fold(rest[name], y) for name in names},
        "x|rest": {name: out_of_fold(rest[name], X[name]) for name in names},
    }


def test_the_numbers_are_those_of_a_run_that_fits_the_same_models():
    X, y = drawn()
    given = covaria.assess(X, y, predictions=made(X, y, "a", "b"))
    fitted = covaria.assess(
        X, y, learner="linear", methods="gcm,loco", splits=FOLDS, features=["a", "b"]
    )
    columns = ["method", "feature", "estimate", "std_error", "statistic", "p_value", "effect"]
    pd.testing.assert_frame_equal(given.table[columns], fitted.table[columns], rtol=1e-8)


def test_gcm_is_the_mean_product_of_the_residuals_and_nothing_is_fitted():
    X, y = drawn()
    predictions = made(X, y, "b")
    del predictions["y|all"]
    result = covaria.assess(X, y, predictions=predictions, check=False)
    product = (y - predictions["y|rest"]["b"]) * (X["b"] - predictions["x|rest"]["b"])
    assert (result.methods, result.features) == (["gcm"], ["b"])
    assert result.table["estimate"].iloc[0] == pytest.approx(product.mean())
    assert result.about.models == 0
    assert "no model saw the rows that it predicts" in str(result)


def test_diagnostics_look_at_the_residuals_all_the_same():
    X, y = drawn()
    nothing = {"y|rest": {"b": np.full(N_ROWS, y.mean())}}
    nothing["x|rest"] = {"b": np.full(N_ROWS, X["b"].mean())}
    result = covaria.assess(X, y, predictions=nothing)
    assert [finding.kind for finding in result.warnings] == ["poor_regression"]


def test_of_classes_they_are_chances():
    X, y = drawn()
    kinds = np.where(y > 0, "up", "down")
    model, rest = LogisticRegression(), X[["a", "c"]]
    chances = cross_val_predict(model, rest, kinds, cv=FOLDS, method="predict_proba")
    of_x = out_of_fold(rest, X["b"])
    results = [
        covaria.assess(X, kinds, predictions={"y|rest": {"b": some}, "x|rest": {"b": of_x}})
        for some in (chances, chances[:, 1])
    ]
    pd.testing.assert_frame_equal(results[0].table, results[1].table)
    product = ((kinds == "up") - chances[:, 1]) * (X["b"] - of_x)
    assert results[0].table["estimate"].iloc[0] == pytest.approx(product.mean())


def test_settings_files_and_the_snippet_carry_them(tmp_path):
    X, y = drawn()
    result = covaria.assess(X, y, predictions=made(X, y, "b"), features=["b"])
    result.to_json(tmp_path / "r.json")
    read = Result.from_json(tmp_path / "r.json")
    for settings in (result.settings, read.settings):
        pd.testing.assert_frame_equal(covaria.assess(X, y, **settings).table, result.table)
    assert "predictions=predictions" in snippet(result)


def test_the_page_shows_what_there_is(tmp_path):
    X, y = drawn()
    result = covaria.assess(X, y, predictions=made(X, y, "b", "c"))
    covaria.write_report(result, tmp_path / "page.html")
    assert "predictions made elsewhere" in (tmp_path / "page.html").read_text("utf-8")


def test_weights_and_clusters_count_as_ever():
    X, y = drawn()
    asked = {"sample_weight": np.linspace(1, 2, N_ROWS), "clusters": np.arange(N_ROWS) // 4}
    result = covaria.assess(X, y, predictions=made(X, y, "b"), **asked)
    assert result.about.weighted
    assert result.about.clusters == 50


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({"y|rest": {"bb": []}}, {}, "['bb'] is of no feature. Did you mean 'b'"),
        ({"y": {}}, {}, "predictions of 'y' are not known. There are 'y|rest'"),
        ({"x|rest": {"b": np.ones(3)}}, {}, "has 3 values, but the table has 200 rows."),
        ({"x|rest": {"b": np.full(N_ROWS, np.nan)}}, {}, "has gaps or infinite values."),
        ({"x|rest": {"b": ["no"] * N_ROWS}}, {}, "must be numbers, one a row."),
        ({"x|rest": {"kind": np.ones(N_ROWS)}}, {}, "of a feature of numbers without gaps"),
        ({"y|rest": np.ones(N_ROWS)}, {}, "must be such as {'price': array}"),
        ({"y|rest": {"b": np.ones((N_ROWS, 2))}}, {}, "must be one column"),
        ({"x|rest": {}}, {}, ""),
        ({}, {"learner": "linear"}, "predictions take the place of a learner."),
        ({}, {"methods": "pcm"}, "pcm cannot be had from these predictions: gcm takes"),
        ({}, {"methods": "lasso"}, "lasso cannot be had from these predictions"),
        ({}, {"features": ["c"]}, "predictions has not all of 'c'"),
        ({}, {"repeats": 2}, "repeats draws new folds"),
        (None, {}, "predictions must be such as"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(change, options, said):
    X, y = drawn()
    X["kind"] = np.where(X["c"] > 0, "x", "y")
    predictions = made(X[["a", "b", "c"]], y, "b")
    predictions = 3 if change is None else predictions | change
    if not said:  # loco is left
        assert covaria.assess(X, y, predictions=predictions).methods == ["loco"]
        return
    with pytest.raises(InputError) as error:
        covaria.assess(X, y, predictions=predictions, **options)
    assert said in str(error.value)


def test_frames_of_predictions_are_taken_column_by_column():
    X, y = drawn()
    predictions = made(X, y, "b")
    frames = {
        key: pd.DataFrame(part, index=X.index)[::-1] if isinstance(part, dict) else part
        for key, part in predictions.items()
    }
    plain, framed = (covaria.assess(X, y, predictions=one) for one in (predictions, frames))
    assert plain.table.equals(framed.table)


def test_parts_of_the_rows_have_none():
    X, y = drawn()
    with pytest.raises(InputError, match="There is no option 'predictions'"):
        covaria.stability(X, y, predictions=made(X, y, "b"))


def test_the_level_is_held_with_predictions_of_others():
    rejected = 0
    for seed in range(100):
        X, y = drawn(seed, effect=0.0)
        predictions = made(X, y, "b")
        result = covaria.assess(X, y, predictions=predictions, methods="gcm", check=False)
        rejected += bool(result.table["selected"].iloc[0])
    # More than 13 of 100 tests of level .05 are rejected less than once in a thousand times.
    assert rejected <= 13
