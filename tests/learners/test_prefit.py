"""Prefit: a model that people already have is tested as it is, on rows that it has not seen."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import covaria
from covaria.errors import InputError, NothingFitted

QUICK = {"seed": 0, "check": False}


def halves(n_rows=300, seed=0):
    """Return two tables whose columns are not in the order of their names: z and a matter."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((2 * n_rows, 3)), columns=["z", "b", "a"])
    X["b"] += 0.7 * X["z"]
    y = X["z"] + 2 * X["a"] + rng.standard_normal(2 * n_rows)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


class Counted:
    """A linear model that counts how often it is asked, and cannot be fitted."""

    def __init__(self, X, y):
        self.inner, self.asked = LinearRegression().fit(X, y), 0

    def predict(self, X):
        self.asked += 1
        return self.inner.predict(X)


def p_values(result, method):
    table = result.table[result.table["method"] == method]
    return table.set_index("feature")["p_value"]


@pytest.fixture(scope="module")
def parts():
    return halves()


def test_the_default_tells_what_matters_and_fits_no_model_of_all_columns(parts):
    X, y, others, target = parts
    model = Counted(X, y)
    learner = covaria.Prefit(model, nuisance="linear")
    assert covaria.assess(others, target, learner=learner, **QUICK).methods == ["pcm", "cpi"]
    names = ["pcm", "cpi", "permutation", "dropout"]
    result = covaria.assess(others, target, learner=learner, methods=names, **QUICK)
    for method in names:
        assert p_values(result, method)[["z", "a"]].max() < 1e-6, method
    for method in ("pcm", "cpi"):
        assert p_values(result, method)["b"] > 0.01
    assert model.asked > 0
    assert set(result.cost.loc[result.cost["models"] > 0, "learner"]) == {"linear"}


def test_dropout_and_permutation_are_those_of_the_model_by_hand(parts):
    X, y, others, target = parts
    model = LinearRegression().fit(X, y)
    result = covaria.assess(
        others, target, learner=covaria.Prefit(model), methods=["dropout"], splits=3, **QUICK
    )
    loss = (target.to_numpy() - model.predict(others)) ** 2
    fold = result.residuals["fold"]
    dropped = others.to_numpy(copy=True)
    for k in range(3):
        dropped[fold == k, 0] = others["z"].to_numpy()[fold != k].mean()
    without = (target.to_numpy() - model.predict(pd.DataFrame(dropped, columns=X.columns))) ** 2
    place = result.features.index("z")
    assert np.allclose(result.scores["dropout"][:, place], without - loss)


@pytest.mark.parametrize("form", ["frame", "array"])
def test_columns_come_as_the_model_knows_them_whatever_their_names_say(parts, form):
    X, y, others, target = parts
    if form == "array":
        X, others = X.to_numpy(), others.to_numpy()

    class Checked(Counted):
        def predict(self, X):
            assert type(X) is type(others)
            return super().predict(X)

    result = covaria.assess(
        others, target, learner=covaria.Prefit(Checked(X, y), nuisance="linear"),
        methods=["permutation"], **QUICK,
    )  # fmt: skip
    effect = result.table["effect"].to_numpy()
    names = ("x2", "x1") if form == "array" else ("a", "b")
    strong, weak = (result.features.index(name) for name in names)
    assert effect[strong] > 10 * abs(effect[weak])


def test_any_way_to_predict_will_do(parts):
    X, y, others, target = parts
    linear = LinearRegression().fit(X, y)
    answers = []
    for model in (linear, linear.predict, lambda table: linear.predict(table)[:, None]):
        learner = covaria.Prefit(model, nuisance="linear")
        answers.append(covaria.assess(others, target, learner=learner, methods=["pcm"], **QUICK))
    assert answers[0].table.equals(answers[1].table)
    assert answers[0].table.equals(answers[2].table)


def test_a_torch_module_gets_tensors(parts):
    torch = pytest.importorskip("torch")
    X, y, others, target = parts
    linear = LinearRegression().fit(X.to_numpy(), y)
    module = torch.nn.Linear(3, 1)
    with torch.no_grad():
        module.weight[:] = torch.as_tensor(linear.coef_)
        module.bias[:] = float(linear.intercept_)
    found = covaria.assess(
        others.to_numpy(), target, learner=covaria.Prefit(module, nuisance="linear"),
        methods=["dropout"], **QUICK,
    )  # fmt: skip
    expected = covaria.assess(
        others.to_numpy(), target, learner=covaria.Prefit(linear, nuisance="linear"),
        methods=["dropout"], **QUICK,
    )  # fmt: skip
    assert np.allclose(found.table["estimate"], expected.table["estimate"], rtol=1e-4)


@pytest.mark.parametrize("module", ["lightgbm", "xgboost", "catboost"])
def test_boosters_of_others_are_taken(parts, module):
    X, y, others, target = parts
    library = pytest.importorskip(module)
    kind = {"lightgbm": "LGBMRegressor", "xgboost": "XGBRegressor", "catboost": "CatBoostRegressor"}
    options = {"lightgbm": {"verbosity": -1}, "catboost": {"verbose": 0}}.get(module, {})
    model = getattr(library, kind[module])(n_estimators=30, **options).fit(X, y)
    learner = covaria.Prefit(model, nuisance="linear")
    result = covaria.assess(others, target, learner=learner, methods=["pcm"], **QUICK)
    assert p_values(result, "pcm")[["z", "a"]].max() < 1e-4


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 1], [3, 1, 2], ["low", "mid", "high"]])
def test_classes_are_matched_by_name(parts, labels):
    X, y, others, target = parts
    cuts = np.quantile(y, np.arange(1, len(labels)) / len(labels))
    y, target = (np.array(labels)[np.digitize(v, cuts)] for v in (y, target))
    model = LogisticRegression().fit(X, y)
    result = covaria.assess(
        others, target, learner=covaria.Prefit(model, nuisance="linear"), task="classification",
        methods=["permutation", "pcm"], **QUICK,
    )  # fmt: skip
    order = [str(one) for one in model.classes_]
    column = [order.index(str(one)) for one in target]
    loss = -np.log(model.predict_proba(others)[np.arange(len(others)), column])
    quality = result.quality.set_index("regression").loc["y given all", "r2"]
    shares = np.array([np.mean(target == one) for one in labels])
    assert quality == pytest.approx(1 + loss.mean() / (shares @ np.log(shares)), abs=0.01)
    assert p_values(result, "pcm")["a"] < 1e-4


def test_text_and_gaps_go_to_a_pipeline_as_they_are():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {"town": rng.choice(["A", "B", "C"], 600), "kind": rng.choice(["u", "v"], 600)}
    )
    y = 2.0 * (X["town"] == "B") + rng.standard_normal(600)
    model = make_pipeline(OneHotEncoder(), LinearRegression()).fit(X[:300], y[:300])
    result = covaria.assess(
        X[300:], y[300:], learner=covaria.Prefit(model, nuisance="linear"), **QUICK
    )
    for method in ("pcm", "cpi"):
        assert p_values(result, method)["town"] < 1e-6
    assert p_values(result, "cpi")["kind"] > 0.01


def test_what_cannot_be_said_of_a_prefit_model_is_said_in_a_sentence(parts):
    X, y, others, target = parts
    learner = covaria.Prefit(LinearRegression().fit(X, y))
    for method in ("loco", "lazy"):
        with pytest.raises(
            InputError, match=f"{method} compares .* a prefit model is not refitted"
        ):
            covaria.assess(others, target, learner=learner, methods=[method])
    with pytest.raises(InputError, match="not fitted yet"):
        covaria.assess(others, target, learner=covaria.Prefit(LinearRegression()))
    with pytest.raises(InputError, match="needs a model with predict"):
        covaria.assess(others, target, learner=covaria.Prefit(3))
    classes, margins = RandomForestClassifier(5).fit(X, y > 0), RidgeClassifier().fit(X, y > 0)
    with pytest.raises(InputError, match="the target is a number"):
        covaria.assess(others, target, learner=covaria.Prefit(classes))
    with pytest.raises(InputError, match="gives no probabilities"):
        covaria.assess(others, target > 0, learner=covaria.Prefit(margins))
    with pytest.raises(InputError, match="nuisance"):
        covaria.Prefit(classes, nuisance=learner)
    wide = others.assign(more=1.5 * others["a"] + target)
    with pytest.raises(NothingFitted, match="No feature could be tested"):
        covaria.assess(wide, target, learner=learner, methods=["permutation"])


def test_a_finding_warns_of_training_rows(parts):
    X, y, others, target = parts
    learner = covaria.Prefit(LinearRegression().fit(X, y), nuisance="linear")
    result = covaria.assess(others, target, learner=learner, methods=["dropout"])
    assert [finding.kind for finding in result.warnings] == ["prefit", "prefit"]
    assert "n_train" in result.warnings[1].text
    refitted = covaria.assess(others, target, learner=LinearRegression().fit(X, y), methods=["gcm"])
    assert any("was fitted already" in text for text in refitted.alerts)


def test_it_prints_stores_and_repeats(parts, tmp_path):
    X, y, others, target = parts
    learner = covaria.Prefit(LinearRegression().fit(X, y), nuisance="linear")
    result = covaria.assess(others, target, learner=learner, n_jobs=1)
    result.to_json(tmp_path / "result.json")
    assert covaria.Result.from_json(tmp_path / "result.json").table.equals(result.table)
    again = covaria.assess(others, target, **result.settings, n_jobs=2)
    assert again.table.equals(result.table)
    assert "Prefit(LinearRegression()" in result.about.learner_text


def test_told_of_its_rows_dropout_is_corrected_for_collinearity(parts):
    X, y, others, target = parts
    model = LinearRegression().fit(X, y)
    plain, told = (
        covaria.assess(
            others,
            target,
            learner=covaria.Prefit(model, "linear", n_train=n_train),
            methods=["permutation"],
            **QUICK,
        )
        for n_train in (None, 50)
    )
    assert (told.table["estimate"] < plain.table["estimate"]).all()
    with pytest.raises(InputError, match="n_train=0 must be"):
        covaria.Prefit(model, n_train=0)


def test_pcm_of_a_given_model_needs_no_room_for_functions_that_folds_share(parts):
    X, y, others, target = parts
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(X, y)
    result = covaria.assess(
        others, target, learner=covaria.Prefit(model, nuisance="linear"), methods=["pcm"], **QUICK
    )
    left = result.residuals
    products = left["f_given_rest"] * left["y_given_rest"]
    assert np.allclose(result.scores["pcm"], products)


def test_useless_features_are_seldom_found():
    """Of 15 runs and two useless features at level .1 at most 9 tests reject (p < .001)."""
    rejected = dict.fromkeys(["pcm", "cpi"], 0)
    for seed in range(15):
        rng = np.random.default_rng([seed, 2])
        X = rng.standard_normal((400, 3))
        X[:, 1] += X[:, 0]
        X[:, 2] -= X[:, 1]
        y = X[:, 0] + rng.standard_normal(400)
        model = LinearRegression().fit(X[:200], y[:200])
        result = covaria.assess(
            X[200:], y[200:], learner=covaria.Prefit(model, nuisance="linear"),
            methods=list(rejected), check=False, seed=seed,
        )  # fmt: skip
        for method in rejected:
            rejected[method] += int((p_values(result, method)[["x1", "x2"]] < 0.1).sum())
    assert max(rejected.values()) <= 9
