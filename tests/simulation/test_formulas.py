"""Formulas and settings from others: the value they say, or one sentence, and soon."""

import resource
import subprocess
import sys

import numpy as np
import pytest

from covaria.errors import InputError
from covaria.simulation.formulas import formula
from covaria.studies.grid import read_grid

BASE = {
    "repeats": 1,
    "splits": 2,
    "learner": [{"name": "linear"}],
    "methods": ["gcm"],
}


def drawn(text):
    model = formula(y=text, n_features=4)
    X, _ = model.draw(100, seed=1)
    x = X.to_numpy()
    before = x.copy()
    value = model.mean(x)
    np.testing.assert_array_equal(x, before)  # nobody wrote over a feature
    return value, x.T


def test_max_and_min_take_as_many_values_as_are_given_and_overwrite_none():
    value, x = drawn("max(x1, x2, x3) + 2 * min(x4, 0, x1, x2)")
    expected = x[:3].max(axis=0) + 2 * np.minimum(x[[3, 0, 1]].min(axis=0), 0)
    np.testing.assert_array_equal(value, expected)


def test_truths_are_numbers_within_a_formula():
    value, x = drawn("2 * ((x1 > 0) + (x2 > 0)) + 3 * (0 < x3 < 1)")
    inside = (x[2] > 0) & (x[2] < 1)
    expected = 2.0 * ((x[0] > 0).astype(int) + (x[1] > 0)) + 3 * inside
    np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sin(x1, x2)", "sin in the formula .* takes one value, not 2"),
        ("exp()", "takes one value, not 0"),
        ("max(x1)", "takes two values or more, not 1"),
        ("x1 + 1/0", "divides by 0"),
        ("x1 / 0", "not finite"),
        ("x1 * 9**9**9", "not finite"),
        ("x1 + 9**9**9", "divides by 0 or has a number without end"),
        ("x1 * (-8)**(1/3)", "not finite"),
        ("9" * 6000 + " * x1", "cannot be read"),
        ("x" + "9" * 5000, "features are too many"),
        ("x100000000", "features are too many"),
        ("x01", "is not a feature"),
        ("x\u0661", "is not a feature"),  # an Arabic one
        ("(x1 + x2)(x3)", "Put a [*] between factors"),
        ("sin(" * 90 + "x1" + ")" * 90, "nested too deeply"),
        ("x1 * " * 1500 + "x1", "nested too deeply"),
        ("-" * 3000 + "x1", "cannot be read|nested too deeply"),
        ("x1 + " * 5000 + "x1", "longer than 10,000 letters"),
        ("x1\x1b[31m", "cannot be read"),
    ],
)  # fmt: skip
def test_a_formula_without_a_value_is_one_sentence(text, said):
    with pytest.raises(InputError, match=said) as raised:
        formula(y=text)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 300


def test_a_long_sum_is_a_formula():
    model = formula(y=" + ".join(f"{j} * x{j}" for j in range(1, 301)))
    assert len(model.support) == 300


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"nois": 2}, "has no setting 'nois'. Did you mean 'noise'"),
        ({"noise": "much"}, "noise='much' must be a number above 0"),
        ({"noise": 10**400}, "too many digits"),
        ({"n_features": "3"}, "n_features='3' must be a whole number"),
        ({"n_features": 2.5}, "n_features=2.5 must be a whole number"),
        ({"n_features": 10**6}, "features are too many"),
        ({"n_features": 50_000, "correlation": [["x1", "x2", 0.5]]}, "too many to correlate"),
        ({"df": "x"}, "df='x' must be above 2"),
        ({"df": 10**400}, "too many digits"),
        ({"correlation": 5}, "correlation has 5"),
        ({"correlation": [["x1", "x2", {}]]}, "Write pairs as"),
        ({"correlation": "x1"}, "Write pairs as"),
        ({"n_rows": 10**12}, "more than 500,000,000 values"),
        ({"n_rows": 10**6, "n_features": 10**5}, "more than 500,000,000 values"),
        ({"noise": [1.0] * 1000, "df": [3.0] * 1000}, "1,000,000 cells, 100,000 at most"),
    ],
)
def test_a_mistyped_setting_of_a_formula_is_one_sentence(settings, said):
    scenario = {"name": "m", "y": "x1 + x2", "n_rows": 50, **settings}
    with pytest.raises(InputError, match=said):
        read_grid({**BASE, "scenario": [scenario]})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"repeats": 10**9}, "is too many. Use 1,000,000 or fewer"),
        ({"repeats": 10**6, "scenario": [{"name": "e", "rho": [0, 0.1, 0.2, 0.3, 0.4, 0.5]}]},
         "more than 5,000,000 tasks"),
        ({"scenario": [{"name": "e", "n_features": 10**5}]}, "is too many: 5,000 at most"),
        ({"scenario": [{"name": "d", "link": {}}]}, "must be a text"),
        ({"learner": [{"name": "linear", "scenarios": 5}]}, "a list of names"),
        ({"learner": [{"name": "linear", "scenarios": [{}]}]}, "a list of names"),
        ({"learner": [{"name": "network", "hidden": "x"}]}, "at least one layer"),
        ({"learner": [{"name": "boosting", "trees": [1] * 999, "splits": [1] * 999}]},
         "998,001 combinations"),
        ({"alpha": 10**400}, "too many digits"),
        ({"methods": "g" * 10**6}, "There is no method"),
    ],
)  # fmt: skip
def test_a_mistyped_setting_of_a_study_is_one_sentence(change, said):
    scenario = [{"name": "m", "y": "x1 + x2", "n_rows": 50}]
    with pytest.raises(InputError, match=said) as raised:
        read_grid({**BASE, "scenario": scenario, **change})
    assert len(str(raised.value)) < 3000


def test_a_file_that_is_too_long_or_too_deep_is_one_sentence(tmp_path):
    for text, said in {
        "x = " + "[" * 100_000: "is not a study file in TOML",
        "x = " + "9" * 10_000: "is not a study file in TOML",
        "# " + "x" * 10_000_001: "has more than 10,000,000 bytes",
    }.items():
        (tmp_path / "study.toml").write_text(text)
        with pytest.raises(InputError, match=said):
            read_grid(tmp_path / "study.toml")
    with pytest.raises(InputError, match="is not a file"):
        read_grid(tmp_path)


def test_a_number_without_end_takes_neither_time_nor_memory():
    text = "from covaria.simulation.formulas import formula; formula(y='9**9**9**9 * x1')"
    limits = {resource.RLIMIT_CPU: 20, resource.RLIMIT_AS: 4 * 2**30}
    done = subprocess.run(
        [sys.executable, "-c", text],
        preexec_fn=lambda: [resource.setrlimit(k, (v, v)) for k, v in limits.items()],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert "InputError: A function is not finite" in done.stderr
