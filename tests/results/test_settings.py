"""What was asked for is kept, and asks for the same again."""

import json
from functools import cache

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import covaria
from covaria.assessment import defaults
from covaria.learners import Auto, Boosting, Estimator, Linear, SingleIndex
from covaria.report.words import snippet
from covaria.results.settings import Unstored

rng = np.random.default_rng(0)
X, y = covaria.draw("linear", n_rows=120, seed=0)
y = y - y.min()  # which may be a time
X = X.iloc[:, :4]
FOLDS = [(np.arange(60), np.arange(60, 120)), (np.arange(60, 120), np.arange(60))]
GIVEN = {name: np.zeros(120) for name in ("x1", "x2")}  # as if the others told nothing
FOREST = RandomForestRegressor(n_estimators=5, random_state=0)
ASKED = {
    "defaults": {"learner": "linear"},
    "learner text": {"learner": "boosting(trees=20)"},
    "learner value": {"learner": Boosting(trees=20)},
    "learner of two words": {"learner": SingleIndex(), "check": False},
    "own candidates": {"learner": Auto(candidates=(Linear(), Boosting(trees=10)))},
    "estimator": {"learner": FOREST},
    "pipeline": {"learner": make_pipeline(StandardScaler(), FOREST)},
    "estimators": {"learner": Estimator(FOREST, x=FOREST)},
    "methods": {"methods": ["gcm", "loco", "knockoffs(fdr=0.3)"]},
    "folds": {"splits": 3},
    "share": {"splits": 0.4},
    "in sample": {"splits": "none", "methods": "gcm"},
    "splitter": {"splits": KFold(3, shuffle=True, random_state=1)},
    "row numbers": {"splits": FOLDS},
    "paper": {"paper": True, "methods": "gcm,loco"},
    "groups": {"groups": {"both": ["x1", "x2"]}},
    "weights": {"sample_weight": rng.integers(1, 4, 120)},
    "clusters": {"clusters": rng.integers(0, 30, 120)},
    "every row": {"clusters": range(120)},
    "text clusters": {"clusters": rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 120)},
    "alternative": {"alternative": "greater"},
    "validity": {"methods": "loco", "validity": "zipper"},
    "correction": {"correction": "holm", "alpha": 0.1, "confidence": 0.9},
    "top": {"top": 2},
    "repeats": {"repeats": 2},
    "permutations": {"methods": "permutation", "permutations": 3},
    "unchecked": {"check": False, "seed": 7},
    "task": {"task": "regression"},
    "loss": {"loss": "absolute"},
    "scorer": {"loss": "neg_mean_absolute_error", "methods": "loco"},
    "quantile": {"loss": "pinball(0.8)", "methods": "gcm"},
    "event": {"event": (rng.random(120) < 0.7) * 1},
    "features": {"features": ["x1", "x3"]},
    "found groups": {"groups": "auto"},
    "rows left out": {"missing_target": "drop"},
    "extrapolated": {"extrapolate": True},
    "coefficients": {"effect": "plm", "margin": 0.05},
    "own draws": {"learner": "boosting(trees=20)", "shared_randomness": False},
    "predictions": {"predictions": {"y|rest": GIVEN, "x|rest": GIVEN}},
    "own loss": {"loss": lambda y, p: abs(y - p), "methods": "loco"},
}  # fmt: skip


def run(**asked):
    learner = {} if "predictions" in asked else {"learner": "linear"}
    return (
        covaria.assess(X, y, **learner, **asked)
        if "learner" not in asked
        else (covaria.assess(X, y, **asked))
    )


def test_every_option_is_among_them():
    # A sample of rows is drawn from a table with its target in it; see the test of it below.
    assert {name for asked in ASKED.values() for name in asked} | {"rows"} == set(defaults())


@cache
def of_kind(name):
    """Return the result of one kind of options; several tests ask for it."""
    return run(**ASKED[name])


def numbers(result):
    """Return all of a result but the time it took."""
    stored = json.loads(result.to_json())
    del stored["about"]["seconds"]
    stored.pop("checksum", None)
    return stored


@pytest.mark.parametrize("name", ASKED)
def test_the_settings_and_the_snippet_repeat_the_result(name):
    result = of_kind(name)
    again = covaria.assess(X, y, **result.settings)
    assert numbers(again) == numbers(result)
    names = {"covaria": covaria, "X": X, "y": y, **ASKED[name]}
    lines = snippet(result).splitlines()
    exec("\n".join(lines[:-1]), names)
    assert numbers(eval(lines[-1], names)) == numbers(result)


@pytest.mark.parametrize("name", ASKED)
def test_settings_survive_a_trip_to_disk(name, tmp_path):
    result = of_kind(name)
    result.to_json(tmp_path / "result.json")
    read = covaria.Result.from_json(tmp_path / "result.json")
    assert read == result
    if any(isinstance(value, Unstored) for value in read.settings.values()):
        return  # objects of other libraries are kept as words
    assert numbers(covaria.assess(X, y, **read.settings)) == numbers(result)


def test_what_a_file_cannot_keep_is_one_sentence_when_asked_for_again(tmp_path):
    result = run(learner=RandomForestRegressor(n_estimators=5, random_state=0))
    result.to_json(tmp_path / "result.json")
    read = covaria.Result.from_json(tmp_path / "result.json")
    with pytest.raises(covaria.InputError, match="RandomForestRegressor"):
        covaria.assess(X, y, **read.settings)


def test_a_snippet_says_what_differs_from_the_defaults_and_the_seed():
    assert snippet(run()) == "covaria.assess(X, y, learner='linear', seed=0)"


def test_a_sample_a_formula_and_a_prefit_model_are_repeated_too():
    frame = X.assign(y=y)
    sampled = covaria.assess(frame, "y", learner="linear", rows=80, seed=3)
    assert numbers(covaria.assess(frame, "y", **sampled.settings)) == numbers(sampled)
    again = eval(snippet(sampled), {"covaria": covaria, "X": frame, "y": "y"})
    assert numbers(again) == numbers(sampled)

    by_formula = covaria.assess("y ~ x1 + x2 | x3", frame, learner="linear")
    again = eval(snippet(by_formula), {"covaria": covaria, "frame": frame})
    assert numbers(again) == numbers(by_formula)

    model = FOREST.fit(X, y)
    prefit = covaria.assess(X, y, learner=covaria.Prefit(model))
    names = {"covaria": covaria, "X": X, "y": y, "model": model}
    *imports, call = snippet(prefit).splitlines()
    exec("\n".join(imports), names)
    assert numbers(eval(call, names)) == numbers(prefit)
