"""What a run says it cost is what it cost."""

import time

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import covaria

X, y = covaria.draw("additive", n_rows=300, seed=1)
X = X.iloc[:, :6]


class Counting(LinearRegression):
    """Least squares that counts its fits."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Counting.fits += 1
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("methods", ["gcm", "loco", "gcm,loco,dropout", "default", "basis_gcm"])
def test_every_fit_of_an_estimator_is_counted(methods, repeats):
    Counting.fits = 0
    result = covaria.assess(X, y, learner=Counting(), methods=methods, repeats=repeats, check=False)
    assert result.cost["models"].sum() == Counting.fits == result.about["models"]


def test_candidates_are_counted_too():
    Counting.fits = 0
    auto = covaria.learners.Auto(candidates=(covaria.learners.get_learner(Counting()),))
    result = covaria.assess(X, y, learner=auto, methods="default", check=False)
    assert result.cost["models"].sum() == Counting.fits
    assert {"candidates", "nuisance regressions", "functions of features", "extrapolation"} <= set(
        result.cost["purpose"]
    )


def test_a_table_of_one_feature_fits_nothing_without_columns():
    Counting.fits = 0
    result = covaria.assess(X[["x0"]] if "x0" in X else X.iloc[:, :1], y, learner=Counting(),
                            methods="gcm,loco", check=False)  # fmt: skip
    assert result.cost["models"].sum() == Counting.fits == 5


WAYS = [
    {"learner": "linear"},
    {"learner": "boosting"},
    {"learner": "auto"},
    {"learner": "linear", "margin": 0.01, "effect": "plm"},
    {"learner": "linear", "groups": "auto", "repeats": 2},
    {"learner": "linear", "methods": ["gcm", "knockoffs", "lasso", "cpi"]},
    {"learner": "linear", "event": y > 0},
    {"learner": "linear", "paper": True},
]


@pytest.mark.parametrize("options", WAYS, ids=lambda way: " ".join(way))
def test_seconds_add_up_to_the_clock(options):
    target = np.abs(y) + 0.1 if "event" in options else y
    covaria.assess(X, target, **options)  # compiles
    shares = []
    for _ in range(5):  # another's turn at the processor may fall between two stages
        start = time.perf_counter()
        result = covaria.assess(X, target, **options)
        shares.append(result.cost["seconds"].sum() / (time.perf_counter() - start))
    assert 0.95 <= np.median(shares) <= 1.001


def test_the_cost_survives_a_trip_to_disk(tmp_path):
    result = covaria.assess(X, y, learner="linear")
    result.to_json(tmp_path / "r.json")
    stored = covaria.Result.from_json(tmp_path / "r.json").cost
    assert list(stored.columns) == ["stage", "purpose", "learner", "models", "seconds"]
    assert stored.to_dict() == result.cost.to_dict()


def test_the_result_says_what_was_fitted():
    result = covaria.assess(X, y, learner="linear", methods="gcm", check=False)
    assert "60 models fitted: 60 nuisance regressions." in str(result)


def test_stability_and_refit_run_no_diagnostics(monkeypatch):
    from covaria.assessment import pipeline

    def never(*_):
        raise AssertionError("nobody sees this")

    monkeypatch.setattr(pipeline, "check_residuals", never)
    covaria.stability(X, y, method="gcm", learner="linear")
    covaria.refit(X, y, methods="gcm", learners="linear")
    covaria.Selector(learner="linear").fit(X, y)
