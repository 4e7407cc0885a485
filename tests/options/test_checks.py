"""Options at the door: NumPy's values are as good as Python's, and odd ones get one sentence."""

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import covaria
from covaria import InputError, learners
from covaria.errors import did_you_mean
from covaria.options.checks import plain
from covaria.studies.grid import read_grid

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(60, 3)), columns=list("abc"))
Y = X["a"] + RNG.normal(size=60)
MODEL = covaria.scenario("linear")
STUDY = {"repeats": 1, "scenario": "linear", "learner": "linear", "methods": "gcm"}


def assess(**options):
    return covaria.assess(X, Y, **{"learner": "linear", "methods": "gcm", **options})


def stability(**options):
    return covaria.stability(X, Y, **{"learner": "linear", **options})


def refit(**options):
    return covaria.refit(X, Y, **{"learners": "linear", "methods": "gcm", **options})


def select(**options):
    return covaria.Selector(**{"learner": "linear", **options}).fit(X, Y).result_


def select_stable(**options):
    return covaria.StabilitySelector(**{"learner": "linear", **options}).fit(X, Y).result_


def study(**options):
    return read_grid({**STUDY, **options})


def efficiency(**options):
    return covaria.efficiency(assess(methods="gcm,loco"), **options)


def plan(**options):
    return covaria.plan(MODEL, **options)


def power_at(n_rows=100, **options):
    return covaria.power_at(MODEL, n_rows, **options)


def theory(**options):
    return covaria.theory.table(MODEL, **{"features": ["x1"], **options})


def draw(**options):
    return covaria.draw("linear", **options)


def as_text(found):
    """Return what was found as text, by json where it is for saving."""
    if isinstance(found, covaria.Stability):
        found = {"about": found.about, "table": found.table.to_dict()}
    if hasattr(found, "to_dict") and not isinstance(found, pd.DataFrame):
        found = found.to_dict()
        found["about"].pop("seconds", None)
    if isinstance(found, dict):
        return json.dumps(found, allow_nan=False)
    return repr([part.to_dict() for part in found] if isinstance(found, tuple) else found)


GIVEN = [
    (assess, {"top": np.int64(2), "seed": np.uint64(3), "repeats": np.int8(2)}),
    (assess, {"alpha": np.float32(0.5), "confidence": np.float16(0.5), "splits": np.int64(4)}),
    (assess, {"splits": np.float32(0.5), "check": np.bool_(False), "permutations": np.array(2)}),
    (assess, {"paper": np.bool_(True), "n_jobs": np.int64(1), "alpha": np.longdouble(0.25)}),
    (assess, {"methods": np.array(["gcm", "loco"]), "correction": np.str_("holm")}),
    (assess, {"task": np.str_("regression"), "alternative": np.str_("greater")}),
    (assess, {"groups": {np.str_("g"): np.array(["a", "b"])}, "splits": np.str_("none")}),
    (stability, {"folds": np.int64(3), "threshold": np.float32(0.75), "seed": np.int64(2)}),
    (stability, {"scheme": np.str_("half_samples"), "pairs": np.int64(2), "top": np.int64(1)}),
    (refit, {"seeds": np.int64(2), "seed": np.int64(2), "alpha": np.float32(0.5)}),
    (refit, {"learners": np.array(["linear", "mean"]), "folds": np.int64(3)}),
    (select, {"top": np.int64(2), "alpha": np.float32(0.5), "random_state": np.int64(3)}),
    (select, {"method": np.str_("gcm"), "random_state": np.array(3)}),
    (select_stable, {"top": np.int64(2), "folds": np.int64(3), "threshold": np.float64(0.75)}),
    (study, {"repeats": np.int64(2), "alpha": np.float32(0.5), "splits": np.array([2, 4])}),
    (study, {"learner": [{"name": "ridge", "ridge": np.array([1.0, 2.0])}]}),
    (study, {"scenario": [{"name": np.str_("linear"), "n_rows": np.int64(50)}]}),
    (efficiency, {"confidence": np.float32(0.5), "bootstrap": np.int64(10), "seed": np.int64(3)}),
    (plan, {"power": np.float32(0.5), "alpha": np.float16(0.25), "splits": np.int64(4)}),
    (plan, {"methods": np.array(["gcm"]), "confidence": np.float32(0.5)}),
    (power_at, {"n_rows": np.int64(50), "splits": np.float32(0.5)}),
    (power_at, {"n_rows": np.array([50, 60]), "alpha": np.float32(0.5)}),
    (theory, {"draws": np.int64(200), "seed": np.int64(1), "features": np.array(["x2"])}),
    (draw, {"n_rows": np.int64(20), "seed": np.int64(1), "noise": np.float32(0.5)}),
    (draw, {"n_features": np.int64(9), "copies": np.int8(1)}),
]


def in_python(value):
    """Return NumPy's values as Python's, in another way than `plain` does."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {str(key): in_python(inside) for key, inside in value.items()}
    if isinstance(value, list):
        return [in_python(inside) for inside in value]
    found = value.item() if isinstance(value, np.generic) else value
    return float(found) if isinstance(found, np.longdouble) else found


@pytest.mark.parametrize(("call", "options"), GIVEN)
def test_numpys_values_are_as_good_as_pythons(call, options):
    assert as_text(call(**options)) == as_text(call(**in_python(options)))


@pytest.mark.parametrize(
    "learner",
    [
        learners.Ridge(ridge=np.float32(2)),
        learners.Linear(ridge=np.int64(2)),
        learners.Boosting(trees=np.int64(5), shrinkage=np.float32(0.5), splits=np.int8(1)),
        learners.Forest(trees=np.int64(3), min_node=np.int64(4)),
        learners.Kernel(C=np.float32(2), kind=np.str_("ridge"), sigma=np.float16(0.5)),
        learners.Splines(df=np.int64(3)),
        learners.Splines(df=np.array([3, 3, 2])),
        learners.Network(hidden=np.int64(4), epochs=np.int64(2)),
        learners.Network(hidden=np.array([4, 3]), lr=np.float32(0.5)),
        learners.Auto(candidates=np.array(["linear", "mean"]), stack=np.bool_(True)),
    ],
    ids=lambda learner: learner.name,
)
def test_a_learners_settings_are_plain(learner):
    assert "np." not in repr(learner)
    assert learners.from_settings(json.loads(json.dumps(learner.settings()))) == learner


@pytest.mark.parametrize("value", [Fraction(1, 4), np.float64(0.25), np.array(0.25), 0.25])
def test_a_number_of_another_kind_is_a_number(value):
    assert type(plain(value)) is float
    assert plain(value) == 0.25


# --- odd values ---------------------------------------------------------------------------------

ODD = {
    "NA": pd.NA,
    "NaT": pd.NaT,
    "an array": np.array([1.5, 2]),
    "an object": object(),
    "complex": 1j,
    "bytes": b"x",
    "a word": "x",
    "half a character": "\ud800",
    "NaN": np.nan,
    "infinity": np.inf,
    "too many digits": 10**5000,
    "a function": len,
    "a class": int,
    "a decimal": Decimal("0.5"),
    "a frame": pd.DataFrame(),
    "a time": np.datetime64("2020"),
}
REFUSES = {
    assess: "learner methods splits paper groups task alternative validity correction alpha top "
    "confidence repeats permutations check seed n_jobs",
    stability: "method learner folds threshold scheme pairs seed n_jobs splits",
    refit: "learners methods folds threshold seeds seed",
    select: "method learner correction random_state options feature_groups",
    study: "repeats seed scenario learner methods alpha splits",
    plan: "power alpha correction confidence methods splits",
    power_at: "n_rows",
    theory: "draws seed features",
    draw: "n_rows seed noise copies n_features",
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    ("call", "name"), [(call, name) for call, names in REFUSES.items() for name in names.split()]
)
def test_an_odd_value_gets_one_sentence(call, name, odd):
    with pytest.raises(InputError) as caught:
        call(**{name: ODD[odd]})
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 400


@pytest.mark.parametrize("progress", [3, "x", True, [print]])
def test_progress_must_be_a_function(progress, tmp_path):
    for call in (assess, stability, refit):
        with pytest.raises(InputError, match=r"progress=.* must be a function"):
            call(progress=progress)
    with pytest.raises(InputError, match=r"progress=.* must be a function"):
        covaria.run_study(STUDY, store=tmp_path / "s.sqlite", progress=progress)


@pytest.mark.parametrize("call", [assess, efficiency, plan])
def test_a_confidence_next_to_1_is_refused(call):
    with pytest.raises(InputError, match="is next to 1"):
        call(confidence=1 - 1e-16)
    call(confidence=1 - 1e-15)


@pytest.mark.parametrize("name", ["repeats", "permutations", "n_jobs"])
def test_a_billion_of_anything_is_refused(name):
    with pytest.raises(InputError, match=name):
        assess(**{name: 10**9})


def test_a_study_of_more_folds_than_rows_is_refused_before_it_runs():
    with pytest.raises(InputError, match="splits = 1000000000 is too many for n_rows = 1000"):
        study(splits=10**9)


def test_no_sentence_ends_in_an_empty_list():
    assert did_you_mean("x", []) == " There are none."
    with pytest.raises(InputError, match=r"no column 'z'\. There are none."):
        covaria.assess({"y": Y}, "y", clusters="z")
