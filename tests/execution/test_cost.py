"""What a run says it cost is what it cost."""

import importlib
import pkgutil
import time
from collections import Counter

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import covaria
from covaria.learners import Auto, Estimator, estimators
from covaria.nuisance import fit, second_opinion
from covaria.nuisance.engines import boosting, plain

X, y = covaria.draw("additive", n_rows=300, seed=1)
X = X.iloc[:, :6]


class Counting(LinearRegression):
    """Least squares that counts its fits."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Counting.fits += 1
        return super().fit(X, y, sample_weight)


class CountingClasses(LogisticRegression):
    """The same of classes, in the same count."""

    def fit(self, X, y, sample_weight=None):
        Counting.fits += 1
        return super().fit(X, y, sample_weight)


def own_of(cost):
    """Return the models that are not those of diagnostics and second opinions, trees of ours."""
    of_ours = cost["purpose"].isin(["residual diagnostics", "second opinion"])
    return cost.loc[~of_ours, "models"].sum()


TWO = Auto(candidates=(Estimator(Counting()), Estimator(Counting(copy_X=False))))
OF_CLASSES = Estimator(CountingClasses(), x=Counting())
METHODS = ["gcm", "loco", "gcm,loco,dropout", "default", "basis_gcm", "cpi", "pcm,permutation"]
WAYS_TO_RUN = {
    **{methods: {"learner": Counting(), "methods": methods} for methods in METHODS},
    "repeats": {"learner": Counting(), "methods": "default", "repeats": 2},
    "a hold-out": {"learner": Counting(), "splits": 0.5},
    "groups": {"learner": Counting(), "groups": {"both": ["x5", "x6"]}},
    "a margin": {"learner": Counting(), "margin": 0.01, "effect": "plm"},
    "sets of features": {"learner": Counting(), "groups": "auto", "methods": "gcm"},
    "two targets": {"learner": Counting(), "y": np.column_stack([y, y**2]), "methods": "gcm,loco"},
    "two classes": {"learner": OF_CLASSES, "y": y > 0},
    "three classes": {"learner": OF_CLASSES, "y": np.digitize(y, [-1, 1]), "task": "classification",
                      "methods": "gcm,loco"},
    "selection without a test": {"learner": Counting(), "methods": ["gcm", "knockoffs", "lasso"]},
    "auto": {"learner": TWO},
    "auto, repeats": {"learner": TWO, "repeats": 2},
    "auto, groups": {"learner": TWO, "groups": {"both": ["x5", "x6"]}},
    "auto, a hold-out": {"learner": TWO, "splits": 0.5},
    "auto, three classes": {"learner": Auto(candidates=(OF_CLASSES,)), "task": "classification",
                            "y": np.digitize(y, [-1, 1])},
}  # fmt: skip


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("way", WAYS_TO_RUN)
def test_every_fit_of_an_estimator_is_counted(way, check):
    Counting.fits = 0
    options = {"y": y} | WAYS_TO_RUN[way]
    result = covaria.assess(X, check=check, **options)
    assert own_of(result.cost) == Counting.fits > 0
    assert result.about.models == result.cost["models"].sum()
    is_checked = check and "gcm" in str(result.methods)
    assert ("residual diagnostics" in set(result.cost["purpose"])) == is_checked


@pytest.fixture
def counted(monkeypatch):
    """Count the fits of our own models, where no engine takes a short cut."""
    fits, depth = Counter(), [0]

    def counting(model):
        of_model = model.fit

        def count(self, *args, **options):
            depth[0] += 1
            try:
                return of_model(self, *args, **options)
            finally:
                depth[0] -= 1
                fits[model.__name__] += not depth[0]  # a model may fit others within

        monkeypatch.setattr(model, "fit", count)

    for module in pkgutil.iter_modules(estimators.__path__):
        for one in vars(importlib.import_module(f"{estimators.__name__}.{module.name}")).values():
            if (
                isinstance(one, type)
                and "fit" in vars(one)
                and one.__module__.endswith(module.name)
            ):
                counting(one)
    along = boosting.along

    def grown(plan, counts):  # candidates of one learner and several numbers of trees grow once
        found = along(plan, counts)
        fits["grown"] += len(found)
        return found

    monkeypatch.setattr(boosting, "along", grown)
    forest = second_opinion.forest_predictions

    def grown_beside(*given):
        fits["beside"] += 1
        return forest(*given)

    monkeypatch.setattr(second_opinion, "forest_predictions", grown_beside)
    monkeypatch.setattr(fit, "engine_for", lambda plan: plain)
    return fits


@pytest.mark.parametrize("learner", ["linear", "boosting(trees=10)", "auto"])
def test_every_fit_of_a_model_of_ours_is_counted_with_its_diagnostics(learner, counted):
    few = X.iloc[:120, :3]
    result = covaria.assess(few, y[:120], learner=learner)
    cost = result.cost
    by_hand = cost["purpose"].eq("residual diagnostics") & cost["learner"].ne("boosting")
    assert cost.loc[~by_hand, "models"].sum() == sum(counted.values()) > 0


def test_engines_say_they_fitted_what_the_plain_one_fits(counted, monkeypatch):
    few = X.iloc[:120, :3]
    plainly = covaria.assess(few, y[:120]).cost
    monkeypatch.undo()
    usual = covaria.assess(few, y[:120]).cost
    assert usual.drop(columns="seconds").equals(plainly.drop(columns="seconds"))


def test_kernels_and_curves_of_diagnostics_are_counted():
    cost = covaria.assess(X, y, learner="linear", methods="gcm").cost
    own = cost[cost["purpose"] == "residual diagnostics"].set_index("learner")["models"]
    of_both = 5 * 2 * 6  # folds, x_j and y, features
    assert own.to_dict() == {"boosting": of_both, "kernel": of_both, "splines": of_both}


def test_candidates_have_a_row_of_their_own():
    cost = covaria.assess(X, y, learner=TWO, methods="default", check=False).cost
    assert {
        "candidates",
        "nuisance regressions",
        "functions of features",
        "learning curves",
    } <= set(cost["purpose"])


@pytest.mark.parametrize("learner", [Counting(), TWO], ids=["one", "auto"])
@pytest.mark.parametrize("scheme", ["folds", "half_samples"])
def test_stability_counts_the_fits_on_all_parts(learner, scheme):
    Counting.fits = 0
    found = covaria.stability(X, y, learner=learner, scheme=scheme, pairs=2)
    assert own_of(found.cost) == Counting.fits > 0


def test_parts_shared_out_among_processes_cost_as_many_models():
    costs = (covaria.stability(X, y, method="gcm", learner="linear", n_jobs=n).cost for n in (1, 2))
    here, beside = (cost[cost["models"] > 0].reset_index(drop=True) for cost in costs)
    assert here.drop(columns="seconds").equals(beside.drop(columns="seconds"))


def test_refit_counts_selections_and_refits():
    Counting.fits = 0
    found = covaria.refit(X, y, learner=Counting(), methods="gcm,loco", seeds=2)
    assert found.cost["models"].sum() == Counting.fits
    refits = found.cost.loc[found.cost["purpose"] == "refits on what was selected", "models"].sum()
    # All features, and what one or the other selected, on each of five parts of two draws.
    assert 10 < refits <= 30


@pytest.mark.parametrize("door", ["stability", "refit"])
def test_seconds_of_all_parts_add_up_to_the_clock(door):
    run = {"stability": covaria.stability, "refit": covaria.refit}[door]
    run(X, y, methods="gcm", learner="boosting")  # compiles
    shares = []
    for _ in range(5):
        start = time.perf_counter()
        cost = run(X, y, methods="gcm", learner="boosting").cost
        shares.append(cost["seconds"].sum() / (time.perf_counter() - start))
    assert 0.95 <= np.median(shares) <= 1.001


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
        clock = time.perf_counter() - start
        # Of a run of ten milliseconds half of one passes before there is anything to charge it to.
        shares.append(result.cost["seconds"].sum() / max(clock - 0.001, 0.95 * clock))
    assert 0.95 <= np.median(shares) <= 1.06


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
