"""Estimators that name columns get the table's own columns, less the feature left out."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
)
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import covaria
from covaria.assessment import prepare
from covaria.errors import InputError
from covaria.learners import Auto, Estimator
from covaria.learners.estimators.columns import NothingLeft, named, tell_what_is_left, wants_frames
from covaria.nuisance.regressions import fit_residuals
from covaria.tables.dataset import Dataset
from covaria.tables.frames import _usual

TEXT, NUMBERS = ["sex", "port"], ["age", "fare", "kin"]

# Enough for whether an estimator is fed what it asks for.
QUICK = {"methods": ["gcm"], "splits": 2, "check": False}


def passengers(n_rows=240, seed=0):
    """Return a table like Titanic's: text, categories and numbers with gaps, and who survived."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["male", "female"], n_rows)
    port = rng.choice(["S", "C", "Q"], n_rows, p=[0.6, 0.3, 0.1]).astype(object)
    fare = rng.gamma(2, 15, n_rows) + 20 * (port == "C")
    age = rng.normal(30, 10, n_rows)
    lift = 1.5 * (sex == "female") + 0.03 * (fare - 30) - 0.04 * (age - 30)
    age[rng.random(n_rows) < 0.15] = np.nan
    port[rng.random(n_rows) < 0.05] = None
    X = pd.DataFrame(
        {
            "sex": sex,
            "age": age,
            "port": pd.Categorical(port),
            "fare": fare,
            "kin": rng.poisson(1, n_rows),
        },
        index=rng.permutation(n_rows),
    )
    return X, np.where(lift + rng.logistic(size=n_rows) > 0.7, "yes", "no"), lift


def prepared_columns():
    return ColumnTransformer(
        [
            ("text", OneHotEncoder(handle_unknown="ignore"), TEXT),
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS),
        ]
    )


def pipeline(model=None):
    model = LogisticRegression() if model is None else model
    return make_pipeline(prepared_columns(), model)


def lacking(feature):
    """Return the pipeline that a person writes without a feature."""
    kept = ([c for c in columns if c != feature] for columns in (TEXT, NUMBERS))
    parts = [
        OneHotEncoder(handle_unknown="ignore"),
        make_pipeline(SimpleImputer(), StandardScaler()),
    ]
    return ColumnTransformer(
        [(str(k), part, own) for k, (part, own) in enumerate(zip(parts, kept, strict=True))]
    )


def statuses(result):
    return set(result.table["status"])


# --- the same as by hand ------------------------------------------------------------------------


@pytest.mark.parametrize("feature", ["fare", "kin"])
def test_gcm_with_a_pipeline_is_the_loop_that_a_person_would_write(feature):
    X, y, _ = passengers()
    job = prepare(X, y, learner=pipeline(), **QUICK)
    rest, is_yes = X.drop(columns=feature), (y == "yes").astype(int)
    products = np.zeros(len(X))
    for train, test in job.plan(0).folds:
        of_y = make_pipeline(lacking(feature), LogisticRegression())
        of_x = make_pipeline(lacking(feature), LinearRegression())
        of_y.fit(rest.iloc[train], is_yes[train])
        of_x.fit(rest.iloc[train], X[feature].iloc[train])
        left_of_y = is_yes[test] - of_y.predict_proba(rest.iloc[test])[:, 1]
        products[test] = left_of_y * (X[feature].iloc[test] - of_x.predict(rest.iloc[test]))
    row = job.run().table.set_index("feature").loc[feature]
    assert row["estimate"] == pytest.approx(products.mean(), rel=1e-9)
    expected = products.mean() / (products.std() / np.sqrt(len(X)))
    assert row["statistic"] == pytest.approx(expected, rel=1e-9)


def test_loco_with_a_pipeline_is_the_loss_by_hand_without_a_column_of_text():
    X, y, _ = passengers()
    job = prepare(X, y, learner=pipeline(), methods=["loco"])
    is_yes, gains = (y == "yes").astype(int), np.zeros(len(X))
    for train, test in job.plan(0).folds:
        losses = []
        for made, seen in ((pipeline(), X), (None, X.drop(columns="sex"))):
            model = made or make_pipeline(lacking("sex"), LogisticRegression())
            chance = model.fit(seen.iloc[train], is_yes[train]).predict_proba(seen.iloc[test])
            losses.append(-np.log(chance[np.arange(len(test)), is_yes[test]]))
        gains[test] = losses[1] - losses[0]
    row = job.run().table.set_index("feature").loc["sex"]
    assert row["estimate"] == pytest.approx(gains.mean(), rel=1e-9)


@pytest.mark.parametrize(
    "model",
    [LogisticRegression(), RandomForestClassifier(20, min_samples_leaf=5)],
    ids=["logistic", "forest"],
)
def test_a_pipeline_finds_what_decides_who_survived(model):
    X, y, _ = passengers(400)
    result = covaria.assess(X, y, learner=pipeline(model), correction="none", check=False)
    assert statuses(result) == {"ok"}
    p = result.table[result.table["method"] == "gcm+pcm"].set_index("feature")["p_value"]
    assert p["sex"] < 1e-4
    assert p["kin"] > 0.01


# --- any table, any estimator -------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_pandas():
    X, _, lift = passengers()
    return covaria.assess(X, lift, learner=pipeline(Ridge()), **QUICK).table


@pytest.mark.parametrize("library", ["polars", "pyarrow", "lazy"])
def test_other_dataframes_give_the_same_numbers(library, by_pandas):
    polars = pytest.importorskip("polars")
    X, _, lift = passengers()
    X = polars.from_pandas(X.reset_index(drop=True))
    X = {"polars": lambda: X, "pyarrow": X.to_arrow, "lazy": X.lazy}[library]()
    table = covaria.assess(X, lift, learner=pipeline(Ridge()), **QUICK).table
    np.testing.assert_allclose(table["statistic"], by_pandas["statistic"], rtol=1e-9)


def test_two_processes_give_the_same_numbers(by_pandas):
    X, _, lift = passengers()
    table = covaria.assess(X, lift, learner=pipeline(Ridge()), **QUICK, n_jobs=2).table
    np.testing.assert_array_equal(table["statistic"], by_pandas["statistic"])


def test_a_column_transformer_of_an_array_goes_by_places():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    scaled = make_column_transformer((StandardScaler(), [0, 2]), remainder="passthrough")
    found = covaria.assess(X, X[:, 1], learner=make_pipeline(scaled, Ridge()), **QUICK)
    plain = covaria.assess(X, X[:, 1], learner=Ridge(), **QUICK)
    assert statuses(found) == {"ok"}
    assert found.selected == plain.selected


WAYS = {
    "names": ["age", "fare", "kin"],
    "places": [1, 3, 4],
    "mask": [False, True, False, True, True],
    "array of a mask": np.array([False, True, False, True, True]),
    "index": pd.Index(["age", "fare", "kin"]),
    "selector": make_column_selector(dtype_include="number"),
    "function": lambda X: ["age", "fare", "kin"],
}


@pytest.mark.parametrize("way", WAYS)
def test_however_columns_are_chosen_the_numbers_are_the_same(way, by_pandas):
    X, _, lift = passengers()
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer(
        [("text", OneHotEncoder(handle_unknown="ignore"), TEXT), ("numbers", numbers, WAYS[way])]
    )
    learner = make_pipeline(columns, Ridge())
    table = covaria.assess(X, lift, learner=learner, **QUICK).table
    np.testing.assert_allclose(table["statistic"], by_pandas["statistic"], rtol=1e-9)


@pytest.mark.parametrize(
    "learner",
    [
        GridSearchCV(pipeline(Ridge()), {"ridge__alpha": [0.1, 1.0]}, cv=2),
        StackingRegressor([("a", pipeline(Ridge())), ("b", pipeline(LinearRegression()))], cv=2),
        make_pipeline(FeatureUnion([("u", prepared_columns())]), Ridge()),
        make_pipeline("passthrough", prepared_columns(), Ridge()),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_column_transformers_inside_other_estimators_work(learner):
    X, _, lift = passengers(120)
    before = repr(learner)
    result = covaria.assess(X, lift, learner=learner, **QUICK)
    assert statuses(result) == {"ok"}
    assert repr(learner) == before


def test_calibrated_pipelines_work_beside_one_for_the_features():
    X, y, _ = passengers(120)
    learner = Estimator(CalibratedClassifierCV(pipeline(), cv=2), x=pipeline(Ridge()))
    result = covaria.assess(X, y, learner=learner, **QUICK)
    assert statuses(result) == {"ok"}


def test_an_estimator_for_the_features_that_wants_numbers_gets_numbers():
    X, y, _ = passengers(120)
    learner = Estimator(pipeline(), x=Ridge())
    assert statuses(covaria.assess(X, y, learner=learner, **QUICK)) == {"ok"}


def test_a_choice_of_learners_may_hold_a_pipeline():
    X, _, lift = passengers(120)
    learner = Auto(candidates=[pipeline(Ridge()), "linear"])
    assert statuses(covaria.assess(X, lift, learner=learner, **QUICK)) == {"ok"}


def test_boosting_that_names_its_categories_gets_them():
    X, _, lift = passengers()
    learner = HistGradientBoostingRegressor(
        max_iter=10, categorical_features=["sex", "port"], monotonic_cst={"fare": 1}
    )
    assert wants_frames(learner)
    result = covaria.assess(X, lift, learner=learner, methods=["gcm", "loco"], splits=2)
    assert statuses(result) <= {"ok", "unused"}


def test_lightgbm_that_names_its_categories_gets_them():
    lightgbm = pytest.importorskip("lightgbm")
    X, _, lift = passengers()
    X = X.astype({"sex": "category"})
    learner = lightgbm.LGBMRegressor(n_estimators=5, categorical_feature=["sex", "port"])
    assert wants_frames(learner)
    result = covaria.assess(X, lift, learner=learner, methods=["gcm", "loco"], splits=2)
    assert statuses(result) <= {"ok", "unused"}


# --- what a fit is given ------------------------------------------------------------------------


class Witness(RegressorMixin, BaseEstimator):
    """Write down what each fit is given."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y):
        Witness.seen.append(X)
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X):
        Witness.seen.append(X)
        return np.full(len(X), self.mean_)


@pytest.fixture
def seen():
    Witness.seen = []
    return Witness.seen


def test_a_fit_is_given_the_users_own_columns_less_the_feature(seen):
    X, _, lift = passengers(60)
    data = X.assign(lift=lift, w=1.0)
    learner = Estimator(Witness(), frames=True)
    groups = {"who": ["sex", "age"]}
    covaria.assess(data, "lift", learner=learner, methods=["gcm"], groups=groups, splits=2)
    assert all(isinstance(frame, pd.DataFrame) for frame in seen)
    widths = {tuple(frame.columns) for frame in seen}
    assert ("port", "fare", "kin", "w") in widths  # without the group
    assert ("sex", "age", "fare", "kin", "w") in widths
    assert not any("lift" in names for names in widths)
    for frame in seen:
        pd.testing.assert_series_equal(frame.dtypes, X.assign(w=1.0).dtypes[list(frame.columns)])


def test_frames_can_be_refused_and_asked_for():
    assert not Estimator(pipeline(), frames=False).wants_frame()
    assert Estimator(Ridge(), frames=True).wants_frame(of_feature=True)
    assert "frames=True" in repr(Estimator(Ridge(), frames=True))
    with pytest.raises(covaria.InputError, match="frames='yes'"):
        Estimator(Ridge(), frames="yes")


def test_frames_are_kept_only_for_those_who_want_them():
    X, _, lift = passengers(60)
    assert prepare(X, lift, learner=Ridge(), **QUICK).data.frame is None
    kept = prepare(X, lift, learner=pipeline(Ridge()), **QUICK).data
    assert kept.frame is not None
    assert "frame" not in repr(kept)
    again = pickle.loads(pickle.dumps(kept))
    pd.testing.assert_frame_equal(again.frame.table, X.reset_index(drop=True))


def test_the_fingerprint_does_not_hang_on_the_frame():
    X, _, lift = passengers(60)
    results = [
        covaria.assess(X, lift, learner=learner, **QUICK)
        for learner in (pipeline(Ridge()), Ridge())
    ]
    assert results[0].about["fingerprint"] == results[1].about["fingerprint"]


# --- other values -------------------------------------------------------------------------------


def test_dropout_holds_numbers_at_their_mean_and_text_at_its_most_common():
    X, _, lift = passengers()
    job = prepare(X, lift, learner=pipeline(Ridge()), methods=["dropout"])
    losses = {"age": np.zeros(len(X)), "sex": np.zeros(len(X))}
    for train, test in job.plan(0).folds:
        model = pipeline(Ridge()).fit(X.iloc[train], lift[train])
        usual = {"age": X["age"].iloc[train].mean(), "sex": X["sex"].iloc[train].mode()[0]}
        for name, value in usual.items():
            held = model.predict(X.iloc[test].assign(**{name: value}))
            losses[name][test] = (lift[test] - held) ** 2
    found = fit_residuals(job.plan(0))
    for name in losses:
        at = found.data.names.index(name)
        np.testing.assert_allclose(found.loss_dropped[:, at], losses[name])


def test_permutation_moves_a_features_own_columns_together():
    X, _, lift = passengers()
    groups = {"who": ["sex", "age"]}
    job = prepare(
        X, lift, learner=pipeline(Ridge()), methods=["permutation"], groups=groups, permutations=2
    )
    plan, losses = job.plan(0), np.zeros(len(X))
    for fold, (train, test) in enumerate(plan.folds):
        model = pipeline(Ridge()).fit(X.iloc[train], lift[train])
        for order in plan.shuffles(fold):
            moved = X.iloc[test].copy()
            for name in ("sex", "age"):
                moved[name] = X[name].iloc[test[order]].to_numpy()
            losses[test] += (lift[test] - model.predict(moved)) ** 2 / 2
    found = fit_residuals(plan)
    np.testing.assert_allclose(found.loss_permuted[:, found.data.names.index("who")], losses)


def test_pcm_of_a_frame_of_numbers_is_that_of_the_numbers():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    y = X["a"] ** 2 + rng.normal(size=200)
    options = {"methods": ["pcm", "dropout", "permutation"]}
    model = RandomForestRegressor(10, random_state=0)
    framed = covaria.assess(X, y, learner=Estimator(model, frames=True), **options).table
    plain = covaria.assess(X, y, learner=Estimator(model), **options).table
    np.testing.assert_allclose(framed["statistic"], plain["statistic"], rtol=1e-9)


def test_pcm_of_text_is_that_of_its_indicator():
    X, _, lift = passengers()
    y = lift + np.random.default_rng(0).normal(size=len(X))
    X = X[["sex", "fare", "kin"]]
    columns = make_column_transformer(
        (OneHotEncoder(drop=["female"]), ["sex"]), remainder="passthrough"
    )
    coded = X.assign(sex=(X["sex"] == "male").astype(float))
    framed = covaria.assess(X, y, learner=make_pipeline(columns, LinearRegression()))
    plain = covaria.assess(coded, y, learner=LinearRegression())
    np.testing.assert_allclose(
        framed.table["p_value"], plain.table["p_value"], rtol=1e-6, atol=1e-12
    )


@pytest.mark.parametrize(
    ("values", "usual"),
    [
        ([1.0, 2.0, np.nan], 1.5),
        (pd.array([1, 4, None], dtype="Int64"), 2.5),
        ([True, True, False], True),
        (["b", "a", "b"], "b"),
        (pd.Categorical(["b", "a", "b"]), "b"),
        (pd.to_datetime(["2020-01-01", "2020-01-03", None]), pd.Timestamp("2020-01-02")),
    ],
    ids=["gaps", "nullable", "bool", "text", "category", "date"],
)
def test_the_usual_value_is_the_mean_or_the_most_common(values, usual):
    assert _usual(pd.Series(values), None).tolist() == [usual]


def test_the_usual_value_counts_weights():
    assert _usual(pd.Series(["a", "a", "b"]), np.array([1.0, 1.0, 3.0])).tolist() == ["b"]
    assert _usual(pd.Series([1.0, 5.0]), np.array([3.0, 1.0])).tolist() == [2.0]


# --- columns that are gone ----------------------------------------------------------------------


def told(transformer, gone, names=("sex", "age", "port", "fare", "kin")):
    """Return a transformer that was told of columns that are gone."""
    transformer = clone(transformer)
    tell_what_is_left(transformer, names, [name for name in names if name not in gone])
    return transformer


def test_a_transformer_loses_the_column_and_keeps_its_own_kind_of_choice():
    made = ColumnTransformer(
        [("a", "passthrough", ["age", "fare"]), ("b", CountVectorizer(), "sex"), ("c", "drop", [2])]
    )
    chosen = {name: columns for name, _, columns in told(made, {"age"}).transformers}
    assert chosen == {"a": ["fare"], "b": "sex", "c": ["port"]}
    chosen = {name: columns for name, _, columns in told(made, {"sex"}).transformers}
    assert chosen == {"a": ["age", "fare"], "b": [], "c": ["port"]}


def test_places_inside_a_transformer_are_those_among_its_own_columns():
    inner = ColumnTransformer([("i", "passthrough", [1])])
    outer = told(ColumnTransformer([("o", inner, ["age", "fare", "kin"])]), {"age"})
    assert outer.transformers[0][1].transformers[0][2] == ["fare"]


def test_slices_are_places_or_names():
    names = ["a", "b", "c", "d"]
    assert named(slice(1, 3), names) == ["b", "c"]
    assert named(slice("b", "c"), names) == ["b", "c"]
    assert named(-1, names) == ["d"]


def test_where_no_column_is_left_to_look_at_the_mean_is_predicted():
    X, _, lift = passengers()
    only = ColumnTransformer([("n", SimpleImputer(), ["age"])])
    with pytest.raises(NothingLeft):
        told(only, {"age"})
    result = covaria.assess(X, lift, learner=make_pipeline(only, Ridge()), methods=["loco"])
    rows = result.table.set_index("feature")["status"]
    assert rows["age"] == "ok"
    assert rows["sex"] == "unused"


def test_stability_and_refit_keep_the_frame():
    X, _, lift = passengers(200)
    found = covaria.stability(X, lift, learner=pipeline(Ridge()), method="gcm", folds=2, splits=2)
    assert found.table.set_index("feature").loc["sex", "selected"]
    from covaria.selection.refit import refit

    again = refit(X, lift, learners=pipeline(Ridge()), methods="gcm", folds=2, splits=2)
    assert again.table["error"].notna().all()


def test_a_selector_takes_a_pipeline_too():
    X, _, lift = passengers(200)
    selector = covaria.Selector(learner=pipeline(Ridge())).fit(X, lift)
    assert {"sex", "fare"} <= set(selector.get_feature_names_out())


def test_a_table_without_its_frame_says_how_to_keep_it():
    from covaria.nuisance.plan import Plan

    X, _, lift = passengers(60)
    data = Dataset.from_table(X, lift)
    with pytest.raises(covaria.InputError, match="keep_frame=True"):
        Plan(data, Estimator(pipeline(Ridge())), [], frozenset()).frame()


def test_a_dict_a_list_of_rows_and_masked_numbers_become_frames_too():
    X, _, lift = passengers(60)
    X = X.drop(columns="port")
    columns = make_column_transformer(
        (OneHotEncoder(), ["sex"]), (SimpleImputer(), ["age", "fare", "kin"])
    )
    learner = make_pipeline(columns, Ridge())
    ways = [X, X.to_dict(orient="list"), X.to_dict(orient="records")]
    found = [covaria.assess(w, lift, learner=learner, **QUICK).table for w in ways]
    for table in found[1:]:
        np.testing.assert_allclose(table["statistic"], found[0]["statistic"], rtol=1e-9)
    masked = np.ma.masked_invalid(X[["age", "fare"]].to_numpy())
    learner = make_pipeline(make_column_transformer((SimpleImputer(), [0, 1])), Ridge())
    assert statuses(covaria.assess(masked, lift, learner=learner, **QUICK)) == {"ok"}


def test_pipelines_without_names_still_get_numbers():
    steps = Pipeline([("f", FunctionTransformer()), ("m", Ridge())])
    assert not wants_frames(steps)
    assert not wants_frames(HistGradientBoostingRegressor())


# --- fitted already -----------------------------------------------------------------------------


def test_a_fitted_estimator_is_fitted_anew_and_that_is_said():
    X, y, _ = passengers(100)
    fitted = pipeline().fit(X, y)
    result = covaria.assess(X, y, learner=fitted, **QUICK)
    fresh = covaria.assess(X, y, learner=pipeline(), **QUICK)
    np.testing.assert_array_equal(result.table["p_value"], fresh.table["p_value"])
    said = "Pipeline was fitted already. Tests leave rows and features out, so it is fitted anew"
    assert any(alert.startswith(said) for alert in result.alerts)
    assert not any("fitted already" in alert for alert in fresh.alerts)


def test_a_frozen_estimator_is_refused_also_inside_others():
    from sklearn.frozen import FrozenEstimator

    X, y, lift = passengers(100)
    frozen = FrozenEstimator(pipeline(Ridge()).fit(X, lift))
    with pytest.raises(covaria.InputError, match="has a FrozenEstimator and cannot be refitted"):
        covaria.assess(X, lift, learner=frozen)
    calibrated = CalibratedClassifierCV(FrozenEstimator(pipeline().fit(X, y)))
    with pytest.raises(covaria.InputError, match=r"CalibratedClassifierCV has a Frozen.*unfrozen"):
        covaria.assess(X, y, learner=Estimator(calibrated, x=Ridge()))
    stacked = StackingRegressor([("a", pipeline(Ridge()).fit(X, lift))], cv="prefit")
    with pytest.raises(covaria.InputError, match="cv='prefit' and cannot be refitted"):
        covaria.assess(X, lift, learner=stacked)


# --- nothing could be fitted --------------------------------------------------------------------


def test_where_no_fit_succeeds_there_is_no_answer_but_an_error_with_the_reason():
    X, y, _ = passengers(100)
    wrong = make_pipeline(make_column_transformer((StandardScaler(), TEXT)), LogisticRegression())
    with pytest.raises(covaria.InputError, match="No feature could be tested") as error:
        covaria.assess(X, y, learner=wrong)
    assert "ValueError: could not convert string" in str(error.value)
    with pytest.raises(covaria.InputError, match="On a part of 50 rows: No feature could"):
        covaria.stability(X, y, learner=wrong, method="gcm", folds=2, splits=2)


def test_a_method_whose_fits_all_fail_beside_others_is_named():
    class TooManyForMe:
        def fit(self, X, y):
            if X.shape[1] == 3:
                raise RuntimeError("three is a crowd")
            return self

        def predict(self, X):
            return X[:, 0]

    X = np.random.default_rng(0).normal(size=(60, 3))
    result = covaria.assess(X, X[:, 0], learner=TooManyForMe(), methods=["gcm", "loco"])
    said = "loco has no answer, as every feature's fits failed: fold 1: RuntimeError: three"
    assert any(said in alert for alert in result.alerts)
    assert not any("Some fits failed" in alert for alert in result.alerts)


def test_a_lazy_table_that_cannot_be_computed_is_one_sentence():
    polars = pytest.importorskip("polars")
    lazy = polars.LazyFrame({"a": ["1", "x", "3"], "b": [1.0, 2.0, 3.0]})
    lazy = lazy.with_columns(polars.col("a").cast(polars.Float64))
    with pytest.raises(InputError, match="computed when it is read, and that failed") as caught:
        covaria.assess(lazy, [1.0, 2.0, 3.0])
    assert "\n" not in str(caught.value)
