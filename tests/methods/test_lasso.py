"""The lasso: R's glmnet, the conditions of a minimum, and refits by hand are its oracles."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from covaria import InputError, draw
from covaria.methods import lasso, lasso_solver
from covaria.methods.lasso import Lasso, cross_validate, lasso_path
from covaria.tables.dataset import Dataset

FIXTURES = Path(__file__).parents[1] / "fixtures"
CASES = pd.read_csv(FIXTURES / "r_glmnet_cases.csv").set_index("case")
GIVEN = 0.5 * 0.8 ** np.arange(25)


def rng(seed=0):
    return np.random.default_rng(seed)


@cache
def r_case(name):
    """Return a case of glmnet's, what it answered, and what we answer."""
    case = CASES.loc[name]
    table = pd.read_csv(FIXTURES / f"r_glmnet_data_{case['data']}.csv")
    answers = pd.read_csv(FIXTURES / f"r_glmnet_path_{name}.csv")
    features = [column for column in table if column.startswith("x")]
    found = cross_validate(
        table[features].to_numpy(),
        table["y" if case["family"] == "gaussian" else "two"].to_numpy(),
        rng(),
        fold_of=table[case["folds"]].to_numpy(),
        weights=table["weight"].to_numpy() if case["weighted"] else None,
        lambdas=GIVEN if case["given"] else None,
        family=case["family"],
    )
    return case, answers, answers[features].to_numpy(), found


@pytest.mark.parametrize("name", CASES.index)
def test_the_path_is_glmnets(name):
    case, answers, coefs, found = r_case(name)
    assert len(found.path.lambdas) == case["n_lambdas"]
    assert np.allclose(found.path.lambdas, answers["lambda"], rtol=1e-10, atol=0)
    assert np.allclose(found.path.coefs, coefs, rtol=0, atol=1e-7)
    assert np.array_equal(found.path.coefs != 0, coefs != 0)
    # x2 of one table is at 1000, so that the intercept has its error a thousandfold.
    assert np.allclose(found.path.intercepts, answers["intercept"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", CASES.index)
def test_cross_validation_is_glmnets(name):
    case, answers, _, found = r_case(name)
    assert np.allclose(found.error, answers["cvm"], rtol=1e-6, atol=0)
    assert np.allclose(found.spread, answers["cvsd"], rtol=1e-6, atol=0)
    assert found.lambda_min == pytest.approx(case["lambda_min"], rel=1e-10)
    assert found.lambda_1se == pytest.approx(case["lambda_1se"], rel=1e-10)


@pytest.mark.parametrize("name", CASES.index)
def test_glmnet_at_its_own_tolerance_chooses_the_same_lambdas(name):
    case, _, _, found = r_case(name)
    assert found.lambda_min == pytest.approx(case["quick_lambda_min"], rel=1e-10)
    assert found.lambda_1se == pytest.approx(case["quick_lambda_1se"], rel=1e-10)
    # It stops short of the minimum among correlated columns, and so may end a lambda sooner.
    assert abs(len(found.path.lambdas) - case["quick_n_lambdas"]) <= 1


def test_the_rule_says_which_coefficients():
    _, _, coefs, found = r_case("tall")
    at_1se = found.path.lambdas == found.lambda_1se
    assert np.array_equal(found.coef(), found.coef("1se"))
    assert np.allclose(found.coef("1se"), coefs[at_1se][0], atol=1e-7)
    assert np.count_nonzero(found.coef("min")) > np.count_nonzero(found.coef("1se"))


def distance_from_minimum(X, y, path, weights=None, family="gaussian"):
    """Return the largest violation of the conditions that define the minimum."""
    w = np.ones(len(y)) if weights is None else weights
    w = w / w.sum()
    mean = w @ X
    sd = np.sqrt(w @ (X - mean) ** 2)
    kept = sd > 1e-9
    link = X @ path.coefs.T + path.intercepts
    left = y[:, None] - (link if family == "gaussian" else 1 / (1 + np.exp(-link)))
    slope = ((X - mean)[:, kept] / sd[kept]).T @ (w[:, None] * left)
    coefs = path.coefs.T[kept]
    off = np.where(
        coefs != 0, abs(slope - path.lambdas * np.sign(coefs)), abs(slope) - path.lambdas
    )
    return max(off.max(), abs(w @ left).max())


def hard_table(kind, n_rows=60):
    """Return features that give solvers trouble."""
    r = rng(3)
    X = r.normal(size=(n_rows, 12))
    if kind == "correlated":
        X = r.normal(size=(n_rows, 1)) + 0.01 * X
    if kind == "repeated":
        X[:, 6:] = X[:, :6]
    if kind == "levels":
        X = np.eye(12)[r.integers(12, size=n_rows)]
    if kind == "ties":
        X = r.integers(2, size=(n_rows, 12)).astype(float)
    if kind == "wide":
        X = r.normal(size=(n_rows, 90))
    if kind == "skewed":
        X = np.exp(4 * X)
    return X


KINDS = ("plain", "correlated", "repeated", "levels", "ties", "wide", "skewed")


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_is_a_minimum(kind, family):
    X = hard_table(kind)
    y = X[:, 0] / X[:, 0].std() + rng(4).normal(size=len(X))
    y = y if family == "gaussian" else (y > np.median(y)).astype(float)
    weights = rng(5).integers(3, size=len(X)).astype(float)
    for given in (None, weights):
        path = lasso_path(X, y, weights=given, family=family)
        assert distance_from_minimum(X, y, path, given, family) < 1e-8


@pytest.mark.parametrize("kind", ["plain", "correlated", "repeated", "wide"])
def test_a_path_that_goes_wrong_is_mended(kind, monkeypatch):
    X = hard_table(kind)
    y = X[:, 0] + rng(4).normal(size=len(X))
    right = lasso_path(X, y)

    def nonsense(self, last):
        coefs = rng().normal(size=(2, len(self.pull)))
        return np.array([2 * last, last]), coefs

    monkeypatch.setattr(lasso_solver, "has_numba", lambda: False)
    for solver in (lasso_solver._ByGram, lasso_solver._ByRows):
        monkeypatch.setattr(solver, "_bends", nonsense)
    mended = lasso_path(X, y)
    assert distance_from_minimum(X, y, mended) < 1e-8
    assert np.allclose(mended.lambdas, right.lambdas, rtol=1e-12)
    fitted = [X @ path.coefs.T + path.intercepts for path in (mended, right)]
    assert np.allclose(*fitted, atol=1e-6)


@pytest.fixture
def compiled(monkeypatch):
    """Follow paths of any width by machine code, and count how often that went to the end."""
    lasso_homotopy = pytest.importorskip("covaria.methods.lasso_homotopy", reason="numba")
    follow, ends = lasso_homotopy.follow, []

    def counted(gram, pull, lambdas, rule):
        coefs, reached = follow(gram, pull, lambdas, rule)
        ends.append(reached)
        return coefs, reached

    monkeypatch.setattr(lasso_solver, "COMPILED_FROM", 0)
    monkeypatch.setattr(lasso_homotopy, "follow", counted)
    return ends


@pytest.mark.parametrize("name", [name for name in CASES.index if not name.startswith("classes")])
def test_by_machine_code_the_path_and_its_errors_are_glmnets(name, compiled):
    case, answers, coefs, found = r_case.__wrapped__(name)
    assert np.allclose(found.path.lambdas, answers["lambda"], rtol=1e-10, atol=0)
    assert np.allclose(found.path.coefs, coefs, rtol=0, atol=1e-7)
    assert np.array_equal(found.path.coefs != 0, coefs != 0)
    assert np.allclose(found.error, answers["cvm"], rtol=1e-6, atol=0)
    assert found.lambda_min == pytest.approx(case["lambda_min"], rel=1e-10)
    assert len(compiled) > 0 or case["data"] == "wide"


@pytest.mark.parametrize("kind", KINDS)
def test_by_machine_code_every_answer_is_a_minimum(kind, compiled):
    X = hard_table(kind)
    y = X[:, 0] / X[:, 0].std() + rng(4).normal(size=len(X))
    assert distance_from_minimum(X, y, lasso_path(X, y)) < 1e-8
    least = lasso_path(X, y, lambdas=[0.3, 0.1, 0.0])
    assert kind == "wide" or distance_from_minimum(X, y, least) < 1e-8


def test_machine_code_bends_where_scikit_learn_does():
    X = rng(1).normal(size=(400, 130))
    X[:, 1:] += 0.9 * X[:, :-1]
    y = X[:, :5].sum(axis=1) + 3 * rng(2).normal(size=400)
    compiled = lasso_path(X, y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lasso_solver, "has_numba", lambda: False)
        plain = lasso_path(X, y)
    assert np.array_equal(compiled.lambdas, plain.lambdas)
    assert np.array_equal(compiled.coefs != 0, plain.coefs != 0)
    assert np.allclose(compiled.coefs, plain.coefs, rtol=0, atol=1e-12)


def test_orthogonal_columns_are_shrunk_one_by_one():
    Q = np.linalg.qr(np.column_stack([np.ones(50), rng().normal(size=(50, 5))]))[0]
    X = Q[:, 1:] * np.sqrt(50)
    y = X @ [3, -2, 1, 0.5, 0] + 7
    alone = X.T @ (y - y.mean()) / 50
    path = lasso_path(X, y)
    shrunk = np.sign(alone) * np.maximum(abs(alone) - path.lambdas[:, None], 0)
    assert np.allclose(path.coefs, shrunk, atol=1e-12)


def test_lambda_zero_is_least_squares():
    X, y = hard_table("plain"), rng(4).normal(size=60)
    path = lasso_path(X, y, lambdas=[0.0, 0.1])
    exact = np.linalg.lstsq(np.column_stack([np.ones(60), X]), y, rcond=None)[0]
    assert np.allclose(path.coefs[-1], exact[1:], atol=1e-9)
    assert path.intercepts[-1] == pytest.approx(exact[0])


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_a_weight_of_two_is_a_row_twice(family):
    X = hard_table("plain")
    y = (X[:, 0] + rng(4).normal(size=60)).round(3)
    y = y if family == "gaussian" else (y > 0).astype(float)
    times = rng(5).integers(4, size=60)
    lambdas = [0.2, 0.05, 0.01]
    weighted = lasso_path(X, y, weights=times.astype(float), lambdas=lambdas, family=family)
    repeated = lasso_path(X.repeat(times, 0), y.repeat(times), lambdas=lambdas, family=family)
    assert np.allclose(weighted.coefs, repeated.coefs, atol=1e-8)
    assert np.allclose(weighted.intercepts, repeated.intercepts, atol=1e-8)


@pytest.mark.parametrize(("of_x", "of_y"), [(1.0, 1e40), (1e-30, 1.0), (1e40, 1e-40)])
def test_units_change_coefficients_only_by_their_ratio(of_x, of_y):
    X, y = hard_table("plain"), rng(4).normal(size=60)
    one, other = lasso_path(X, y), lasso_path(of_x * X, of_y * y)
    assert np.allclose(other.lambdas / of_y, one.lambdas, rtol=1e-9)
    assert np.allclose(other.coefs * (of_x / of_y), one.coefs, atol=1e-9)
    found = cross_validate(of_x * X, of_y * y, rng())
    assert np.isfinite(found.error).all()


def test_held_out_errors_are_those_of_refits():
    X = hard_table("plain")
    y = X[:, 0] + rng(4).normal(size=60)
    fold_of = np.arange(60) % 5
    lambdas = np.array([0.4, 0.1, 0.02])
    found = cross_validate(X, y, rng(), fold_of=fold_of, lambdas=lambdas)
    errors = np.zeros((5, 3))
    for fold in range(5):
        train, test = fold_of != fold, fold_of == fold
        path = lasso_path(X[train], y[train], lambdas=lambdas)
        prediction = X[test] @ path.coefs.T + path.intercepts
        errors[fold] = ((y[test, None] - prediction) ** 2).mean(axis=0)
    assert np.allclose(found.error, errors.mean(axis=0))
    assert np.allclose(found.spread, errors.std(axis=0) / np.sqrt(4))


def test_folds_are_even_over_classes_and_unused_rows():
    strata = np.repeat([0.0, 1.0, 2.0], [50, 20, 30])
    fold_of = lasso._dealt(strata, 10, rng())
    counts = pd.crosstab(strata, fold_of).to_numpy()
    assert (counts == [[5], [2], [3]]).all()
    assert not np.array_equal(fold_of, lasso._dealt(strata, 10, rng(1)))


def test_fewer_rows_than_folds_leave_out_one_each():
    X, y = rng().normal(size=(6, 2)), np.arange(6.0)
    found = cross_validate(X, y, rng(), folds=10)
    one_each = cross_validate(X, y, rng(), fold_of=np.arange(6))
    assert np.allclose(found.error, one_each.error)


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_a_fold_without_variation_is_no_trouble(family):
    X = np.column_stack([np.arange(12.0), np.r_[1, np.zeros(11)], np.ones(12)])
    y = np.r_[np.arange(1.0, 4.0) if family == "gaussian" else [1.0, 1, 1], np.zeros(9)]
    found = cross_validate(X, y, rng(), fold_of=np.arange(12) // 3, family=family)
    assert np.isfinite(found.error).all()
    assert np.isfinite(found.spread).all()
    assert (found.path.coefs[:, 2] == 0).all()


def test_features_without_any_correlation_get_zero():
    X = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]] * 5)
    y = X[:, 0] * X[:, 1]
    choice = Lasso().choose(Dataset.from_table(X, y, task="regression"), rng())
    assert not choice.statistic.any()
    assert not choice.selected.any()
    assert choice.note == "No feature lowers the cross-validated error enough to be chosen."


def test_separated_classes_give_finite_coefficients():
    X = np.column_stack([np.linspace(-1, 1, 40), rng().normal(size=40)])
    y = (X[:, 0] > 0).astype(float)
    found = cross_validate(X, y, rng(), family="binomial")
    assert np.isfinite(found.path.coefs).all()
    assert found.coef()[0] > 0


def mixed_table(n_rows=200):
    """Return a number, a category, a group of two and a constant, and what they explain."""
    r = rng(8)
    place = r.choice(["north", "south", "west"], size=n_rows)
    frame = pd.DataFrame(
        {
            "zinc": 100 + 5 * r.normal(size=n_rows),
            "place": place,
            "lat": r.normal(size=n_rows),
            "lon": r.normal(size=n_rows),
            "none": 1.0,
            "noise": r.normal(size=n_rows),
        }
    )
    signal = -0.4 * frame["zinc"] + 3 * (place == "west") + 2 * frame["lat"]
    return frame, signal + r.normal(size=n_rows)


def test_a_feature_of_several_columns_is_one_choice():
    frame, y = mixed_table()
    data = Dataset.from_table(frame, y, groups={"where": ["lat", "lon"]})
    choice = Lasso().choose(data, rng())
    assert dict(zip(data.names, choice.selected, strict=True)) == {
        "zinc": True,
        "place": True,
        "where": True,
        "none": False,
        "noise": False,
    }
    coefs = cross_validate(data.X, data.y, rng()).coef() * data.X.std(axis=0)
    for feature, statistic in zip(data.features, choice.statistic, strict=True):
        own = coefs[list(feature.columns)]
        expected = own[0] if len(own) == 1 else np.sqrt((own**2).sum())
        assert statistic == pytest.approx(expected, abs=1e-12)
    assert choice.statistic[0] < 0


def test_two_classes_weights_and_clusters_are_used():
    frame, y = mixed_table()
    above = np.where(y > np.median(y), "yes", "no")
    weights = rng(1).integers(3, size=len(frame))
    clusters = np.arange(len(frame)) // 20
    data = Dataset.from_table(frame, above, sample_weight=weights, clusters=clusters)
    fold_of = Lasso(folds=5)._fold_of(data, rng())
    assert pd.Series(fold_of).groupby(clusters).nunique().max() == 1
    assert np.bincount(fold_of).tolist() == [40] * 5
    choice = Lasso(folds=5).choose(data, rng())
    r = rng()
    found = cross_validate(
        data.X,
        data.y,
        r,
        fold_of=Lasso(folds=5)._fold_of(data, r),
        weights=data.weights,
        family="binomial",
    )
    assert choice.selected[0]
    zinc = data.X[:, data.features[0].columns[0]]
    mean = np.average(zinc, weights=weights)
    sd = np.sqrt(np.average((zinc - mean) ** 2, weights=weights))
    at = data.features[0].columns[0]
    assert choice.statistic[0] == pytest.approx(found.coef()[at] * sd)


def test_a_table_of_constants_has_nothing_to_choose():
    data = Dataset.from_table({"a": [1.0] * 12, "b": ["x"] * 12}, np.arange(12.0))
    choice = Lasso().choose(data, rng())
    assert choice.statistic.tolist() == [0.0, 0.0]
    assert choice.selected.tolist() == [False, False]


def test_three_classes_get_a_sentence():
    data = Dataset.from_table(rng().normal(size=(30, 2)), list("abc") * 10)
    with pytest.raises(InputError, match="takes numbers or two classes; the target 'y' has 3"):
        Lasso().choose(data, rng())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"family": "poison"}, "family='poison' is not known"),
        ({"folds": 2}, "folds=2 must be a whole number of 3 or more"),
        ({"folds": 3.5}, "folds=3.5 must be"),
        ({"fold_of": np.zeros(20)}, "There are 1 folds?; 3 or more"),
        ({"fold_of": np.zeros(3)}, "fold_of must name the fold of each of the 20 rows"),
        ({"lambdas": [-1.0]}, "lambdas must be"),
        ({"lambdas": []}, "lambdas must be"),
        ({"weights": -np.ones(20)}, "weights must be"),
        ({"weights": np.zeros(20)}, "weights are all 0"),
        ({"y": np.ones(20)}, "y is the same in every row"),
        ({"y": np.arange(19.0)}, "y must have a value for each"),
        ({"y": np.full(20, np.nan)}, "must be finite"),
        ({"family": "binomial"}, "y has 20 values; family='binomial' needs two"),
        (
            {"weights": np.r_[1.0, 1, np.zeros(18)], "fold_of": np.arange(20) // 5},
            "One fold holds all rows of weight",
        ),
    ],
)
def test_bad_input_gets_a_sentence(change, message):
    given = {"X": rng().normal(size=(20, 2)), "y": np.arange(20.0)} | change
    with pytest.raises(InputError, match=message):
        cross_validate(given.pop("X"), given.pop("y"), rng(), **given)


@pytest.mark.parametrize("settings", [{"rule": "2se"}, {"folds": 1}, {"folds": True}])
def test_settings_are_checked_when_they_are_made(settings):
    with pytest.raises(InputError):
        Lasso(**settings)


def test_a_path_has_as_many_lambdas_as_asked_or_fewer():
    X, y = hard_table("plain"), rng(4).normal(size=60)
    assert len(lasso_path(X, y, n_lambdas=7).lambdas) == 7
    with pytest.raises(InputError, match="n_lambdas=0"):
        lasso_path(X, y, n_lambdas=0)
    with pytest.raises(InputError, match="2 rows; the lasso needs 3"):
        lasso_path(X[:2], y[:2])


def accuracy_and_fdr(name, rule, n_draws):
    """Return the mean share of right decisions, and of false ones among the chosen."""
    right, false = [], []
    for seed in range(n_draws):
        X, y = draw(name, n_rows=1000, seed=seed)
        chosen = Lasso(rule=rule).choose(Dataset.from_table(X, y), rng(seed)).selected
        useful = np.arange(20) < 8
        right.append((chosen == useful).mean())
        false.append((chosen & ~useful).sum() / max(chosen.sum(), 1))
    return np.mean(right), np.mean(false)


@pytest.mark.parametrize("rule", ["1se", "min"])
def test_in_model_a_only_the_slope_of_a_hundredth_is_missed(rule):
    assert accuracy_and_fdr("linear", rule, 3) == pytest.approx((0.95, 0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rule", "accuracy", "fdr"),
    [
        ("additive", "1se", 0.795, 0.0),
        ("additive", "min", 0.685, 0.41),
        ("single_index", "1se", 0.90, 0.02),
        ("single_index", "min", 0.68, 0.41),
    ],
)
def test_in_models_b_and_d_r_made_the_same_choices(name, rule, accuracy, fdr):
    found = accuracy_and_fdr(name, rule, 20)
    assert found == pytest.approx((accuracy, fdr), abs=0.05)
