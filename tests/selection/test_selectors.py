"""The scikit-learn face: its checks for every method, and what people do with a selector."""

import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import covaria
from covaria import METHODS, InputError, assess
from covaria.methods import SelectionMethod
from covaria.selection.selectors import Selector, StabilitySelector
from covaria.selection.stability import Stability, stability

# The checks are about the face: a level at which some columns are kept, and quick settings.
COMMON = {"learner": "linear", "correction": "none", "alpha": 0.9}
NETWORK = {"learner": "network(hidden=4, epochs=2)", "task": "regression"}
QUICK = {
    "lazy": NETWORK,
    "lazy_gcm": NETWORK,
    "lasso": {"top": 2, "task": "regression"},
    "knockoffs": {"method": "knockoffs(statistic='boosting')", "top": 2},
}
SELECTORS = [
    Selector(**{"method": name, "splits": 2, **COMMON, **QUICK.get(name, {})}) for name in METHODS
]
ON_FOLDS = StabilitySelector(splits="none", folds=2, **COMMON)
ON_HALVES = StabilitySelector(splits="none", scheme="half_samples", pairs=1, **COMMON)
# Rows of weight 0 and rows taken away leave the same information, yet other folds are drawn for
# them, and of the 15 rows of these checks fewer are left than any test can do with.
WEIGHTS_ARE_NOT_REPEATS = "folds are drawn anew, and too few rows are left to test"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS_ARE_NOT_REPEATS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS_ARE_NOT_REPEATS,
}


@pytest.mark.filterwarnings("ignore:.*selected no features")
@parametrize_with_checks(
    [*SELECTORS, ON_FOLDS],
    expected_failed_checks=lambda estimator: EXPECTED,
    xfail_strict=True,
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*selected no features")
@parametrize_with_checks(
    [ON_HALVES], expected_failed_checks=lambda estimator: EXPECTED, xfail_strict=True
)
def test_scikit_learns_checks_pass_on_half_samples(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def rooms():
    """Return 300 rooms: what kind, how large, how old (not always known), two numbers of noise."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["flat", "house", "loft", "room"], size=300)
    size = rng.normal(50, 10, size=300)
    age = np.where(rng.random(300) < 0.3, np.nan, rng.exponential(20, size=300))
    X = pd.DataFrame({"noise": rng.normal(size=300), "type": kind, "size": size, "age": age})
    X["more"] = rng.normal(size=300)
    worth = pd.Series(kind).map({"flat": 0.0, "house": 2.0, "loft": 1.0, "room": -2.0})
    price = worth + (size - 50) / 5 - np.where(np.isnan(age), 0, age) / 20
    return X, price.to_numpy() + rng.normal(size=300)


@pytest.fixture(scope="module")
def fitted(rooms):
    return Selector("gcm", learner="linear").fit(*rooms)


# What is found


@pytest.mark.parametrize("name", [name for name in METHODS if "lazy" not in name])
def test_text_with_four_levels_is_one_feature_for_every_method(name, rooms):
    # Of five features knockoff+ can choose none: fewer than 1/fdr are there to be found.
    method = "knockoffs(offset=0, fdr=0.4)" if name == "knockoffs" else name
    selector = Selector(method, learner="linear").fit(*rooms)
    assert len(selector.get_support()) == 5
    assert selector.get_support()[1]
    assert selector.result_.features == ["noise", "type", "size", "age", "more"]
    own = selector.result_.only(method).table
    assert selector.get_support().tolist() == own["selected"].tolist()
    assert selector.scores_.shape == (5,)
    is_test = not isinstance(METHODS[name], SelectionMethod)
    assert (selector.pvalues_ is not None and selector.pvalues_.shape == (5,)) == is_test


def test_a_selector_says_what_assess_says(rooms, fitted):
    result = assess(*rooms, learner="linear", methods=["gcm"])
    assert fitted.result_.table.equals(result.table)
    assert fitted.pvalues_.tolist() == result.table["p_value"].tolist()
    assert fitted.scores_.tolist() == result.table["statistic"].tolist()
    assert fitted.get_feature_names_out().tolist() == ["type", "size", "age"]
    assert fitted.get_support(indices=True).tolist() == [1, 2, 3]
    assert fitted.feature_names_in_.tolist() == list(rooms[0].columns)
    assert fitted.n_features_in_ == 5


def test_by_default_the_verdict_of_assess_decides_in_sample_gcm(rooms):
    verdict = assess(*rooms, learner="linear").only("gcm+pcm").table
    selector = Selector(learner="linear").fit(*rooms)
    assert selector.pvalues_.tolist() == verdict["p_value"].tolist()
    assert Selector(learner="linear", splits="none").fit(*rooms).result_.methods == ["gcm"]
    stable = StabilitySelector(learner="linear", folds=2).fit(*rooms)
    assert stable.get_support().tolist() == stable.result_.table["selected"].tolist()[-5:]


def test_a_group_of_columns_is_kept_or_dropped_as_one(rooms):
    X, y = rooms
    groups = {"building": ["type", "more"], "rest": ["age", "noise"]}
    selector = Selector("gcm", learner="linear", feature_groups=groups).fit(X, y)
    assert selector.result_.features == ["rest", "building", "size"]
    p = selector.result_.table["p_value"].tolist()
    assert selector.pvalues_.tolist() == [p[0], p[1], p[2], p[0], p[1]]
    assert selector.get_support().all()
    stable = StabilitySelector(learner="linear", splits="none", feature_groups=groups).fit(X, y)
    assert stable.scores_[1] == stable.scores_[4] == 1.0


def test_columns_without_proper_names_are_counted_off(rooms):
    X, y = rooms
    names = {"noise": " ", "type": "", "size": "a", "age": "b", "more": "c"}
    selector = Selector(learner="linear").fit(X.rename(columns=names), y)
    assert selector.get_support().tolist() == [False, True, True, True, False]
    numbered = Selector(learner="linear").fit(X.set_axis(range(5), axis=1), y)
    assert numbered.get_feature_names_out().tolist() == ["x1", "x2", "x3"]


def test_top_correction_and_other_options_reach_assess(rooms):
    assert Selector(learner="linear", top=2).fit(*rooms).get_support().sum() == 2
    strict = Selector("loco", learner="linear", correction="holm", options={"validity": "zipper"})
    about = strict.fit(*rooms).result_.about
    assert (about["correction"], about["validity"]) == ("holm", "zipper")
    assert Selector("knockoffs(fdr=0.3)").fit(*rooms).result_.methods == ["knockoffs(fdr=0.3)"]


def test_random_state_is_a_seed_a_generator_or_nothing(rooms):
    X, y = rooms
    assert Selector(learner="linear", random_state=3).fit(X, y).result_.about["seed"] == 3
    for make in (np.random.default_rng, np.random.RandomState):
        states = [make(5), make(5), make(6)]
        seeds = [
            Selector(learner="linear", random_state=state).fit(X, y).result_.about["seed"]
            for state in states
        ]
        assert seeds[0] == seeds[1] != seeds[2]
    drawn = Selector(learner="linear", random_state=None)
    assert len({drawn.fit(X, y).result_.about["seed"] for _ in range(2)}) == 2


def test_stability_keeps_what_comes_back(rooms):
    selector = StabilitySelector(learner="linear", splits="none").fit(*rooms)
    assert isinstance(selector.result_, Stability)
    assert selector.get_feature_names_out().tolist() == ["type", "size", "age"]
    assert selector.scores_.tolist() == selector.result_.table["frequency"].tolist()
    assert (selector.scores_ >= 0.8).tolist() == selector.get_support().tolist()


# What comes out


def test_text_and_gaps_pass_through_pandas_unchanged(rooms, fitted):
    X, _ = rooms
    X = X.astype({"type": "category"}).set_index(pd.Index(range(1000, 1300)))
    for selector in (fitted, clone(fitted).set_output(transform="pandas").fit(*rooms)):
        pd.testing.assert_frame_equal(selector.transform(X), X[["type", "size", "age"]])


def test_text_and_gaps_pass_through_polars_unchanged(rooms):
    X, y = pl.from_pandas(rooms[0], nan_to_null=True), rooms[1]
    for selector in (Selector(learner="linear"), Selector(learner="linear", splits=2)):
        chosen = selector.set_output(transform="polars").fit(X, y).transform(X)
        assert isinstance(chosen, pl.DataFrame)
        assert chosen.equals(X[["type", "size", "age"]])
        assert chosen["age"].null_count() > 50


def test_set_output_turns_one_kind_of_table_into_the_other(rooms, fitted):
    X, _ = rooms
    polars = clone(fitted).set_output(transform="polars").fit(*rooms).transform(X)
    assert isinstance(polars, pl.DataFrame)
    assert polars.columns == ["type", "size", "age"]
    assert polars["type"].to_list() == X["type"].tolist()
    selector = clone(fitted).set_output(transform="pandas").fit(*rooms)
    pandas = selector.transform(pl.from_pandas(X))
    assert isinstance(pandas, pd.DataFrame)
    assert pandas["size"].tolist() == X["size"].tolist()
    array = Selector(learner="linear").set_output(transform="pandas")
    assert array.fit_transform(X[["size"]].to_numpy(), rooms[1]).columns.tolist() == ["x0"]


def test_object_arrays_and_sparse_matrices_keep_their_kind(rooms, fitted):
    X, y = rooms
    array = X.to_numpy(dtype=object)
    chosen = Selector(learner="linear").fit(array, y).transform(array)
    assert chosen.dtype == object
    assert chosen[:, 0].tolist() == X["type"].tolist()
    assert np.isnan(chosen[:, 2].astype(float)).sum() == X["age"].isna().sum()
    sparse = csr_array(np.nan_to_num(X[["noise", "size"]].to_numpy()))
    selector = Selector(learner="linear").fit(sparse, y)
    chosen = selector.transform(sparse)
    assert chosen.shape == (300, 1)
    back = selector.inverse_transform(chosen)
    assert back.shape == (300, 2)
    assert (back.toarray()[:, 1] == sparse.toarray()[:, 1]).all()
    assert not back.toarray()[:, 0].any()


def test_inverse_transform_puts_columns_back_and_zeros_between(rooms, fitted):
    X, _ = rooms
    back = fitted.inverse_transform(fitted.transform(X))
    assert back.columns.tolist() == X.columns.tolist()
    pd.testing.assert_frame_equal(back[["type", "size", "age"]], X[["type", "size", "age"]])
    assert (back[["noise", "more"]] == 0).all(axis=None)
    polars = pl.from_pandas(X)
    again = fitted.inverse_transform(fitted.transform(polars))
    assert again.columns == polars.columns
    assert again["more"].sum() == 0
    array = fitted.inverse_transform(fitted.transform(X).to_numpy())
    assert array[:, 1].tolist() == X["type"].tolist()
    with pytest.raises(InputError, match="X has 2 columns, but 3 were selected"):
        fitted.inverse_transform(array[:, :2])


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, np.asarray])
def test_nothing_selected_leaves_no_columns_and_warns(kind):
    rng = np.random.default_rng(1)
    X = kind(rng.normal(size=(60, 2)))
    selector = Selector(learner="linear", alpha=1e-6).fit(X, rng.normal(size=60))
    with pytest.warns(UserWarning, match="selected no features"):
        chosen = selector.transform(X)
    assert chosen.shape[1] == 0
    assert len(chosen) == (0 if kind is pl.DataFrame else 60)  # polars has no rows without columns


# Among scikit-learn's own


def test_it_works_in_a_pipeline_and_a_column_transformer(rooms):
    X, y = rooms
    encode = ColumnTransformer(
        [("text", OneHotEncoder(), make_column_selector(dtype_include=["object", "string"]))],
        remainder="drop",
    )
    pipeline = make_pipeline(Selector(learner="linear"), encode, LinearRegression())
    assert 0.1 < cross_val_score(pipeline, X, y, cv=3).mean() < 0.4  # the kind of room alone
    split = ColumnTransformer(
        [("keep", Selector(learner="linear"), ["noise", "size", "type"]), ("drop", "drop", ["age"])]
    ).set_output(transform="pandas")
    chosen = split.fit_transform(X, y)
    assert chosen.columns.tolist() == ["keep__size", "keep__type"]


def test_grid_search_goes_over_alpha_method_and_the_learners_own_settings(small_data):
    pipeline = make_pipeline(StandardScaler(), Selector(learner=Ridge(), splits=2), Ridge())
    grid = {
        "selector__method": ["gcm", "loco"],
        "selector__alpha": [0.05, 0.5],
        "selector__learner__alpha": [1.0],
    }
    search = GridSearchCV(pipeline, grid, cv=2).fit(*small_data)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_estimator_["selector"].get_support()[:2].all()


@pytest.mark.parametrize(
    "selector",
    [Selector(learner=covaria.learners.Linear(ridge=0.1), feature_groups={"g": ["x0", "x1"]})],
)
def test_clones_and_pickles_find_the_same(selector, small_data):
    first = selector.fit(*small_data)
    again = pickle.loads(pickle.dumps(first))
    other = clone(first).fit(*small_data)
    for one in (again, other):
        assert one.get_support().tolist() == first.get_support().tolist()
        assert one.pvalues_.tolist() == first.pvalues_.tolist()
    assert not hasattr(clone(first), "support_")


def test_weights_and_clusters_are_routed_to_it(small_data):
    X, y = small_data
    weights, clusters = np.linspace(1, 2, 120), np.repeat(np.arange(30), 4)
    with sklearn.config_context(enable_metadata_routing=True):
        selector = Selector(learner="linear", splits=3)
        selector.set_fit_request(sample_weight=True, groups=True)
        model = LinearRegression().set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        found = cross_validate(
            make_pipeline(selector, model),
            X,
            y,
            cv=GroupKFold(3),
            params={"sample_weight": weights, "groups": clusters},
            return_estimator=True,
        )
    for pipeline in found["estimator"]:
        about = pipeline["selector"].result_.about
        assert about["weighted"]
        assert about["clusters"] == 20


def test_weights_and_clusters_change_what_is_found_as_they_do_in_assess(small_data):
    X, y = small_data
    weights, clusters = np.linspace(1, 2, 120), np.repeat(np.arange(30), 4)
    selector = Selector("gcm", learner="linear").fit(X, y, sample_weight=weights, groups=clusters)
    result = assess(X, y, learner="linear", methods="gcm", sample_weight=weights, clusters=clusters)
    assert selector.pvalues_.tolist() == result.table["p_value"].tolist()
    stable = StabilitySelector(learner="linear", splits="none")
    assert stable.fit(X, y, groups=clusters).get_support()[0]


# What is refused


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"method": "gcm,loco"}, "method='gcm,loco' must be one name"),
        ({"method": None}, "method=None must be one name"),
        ({"method": "gcn"}, "no method 'gcn'"),
        ({"alpha": 2}, "alpha=2 must lie between 0 and 1"),
        ({"feature_groups": {"g": ["x9"]}}, "Group 'g' names 'x9', not a column"),
        ({"options": {"validty": "zipper"}}, "no option 'validty'. Did you mean 'validity'?"),
        ({"random_state": -1}, "seed=-1 must be a whole number, 0 or more"),
    ],
)
def test_settings_that_cannot_be_are_refused_at_fit(settings, sentence, small_data):
    selector = Selector(**{"learner": "linear", **settings})
    with pytest.raises(InputError) as error:
        selector.fit(*small_data)
    assert sentence in str(error.value)


def test_a_name_where_values_belong_is_refused(rooms):
    X, y = rooms
    with pytest.raises(InputError, match="y must have a value for every row, not be 'size'"):
        Selector(learner="linear").fit(X, "size")
    with pytest.raises(InputError, match="groups must have a value for every row"):
        Selector(learner="linear").fit(X, y, groups={"place": ["size"]})


def test_other_columns_than_in_fit_are_refused(rooms, fitted):
    X, _ = rooms
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.transform(X.rename(columns={"size": "height"}))
    with pytest.raises(ValueError, match="missing:\n- more"):
        fitted.transform(X.drop(columns="more"))


class NotTwo(LinearRegression):
    """Least squares that will not do with two columns."""

    def fit(self, X, y):
        if X.shape[1] == 2:
            raise RuntimeError("two are too few")
        return super().fit(X, y)


def test_fits_that_fail_are_told(small_data):
    from sklearn.neighbors import KNeighborsRegressor

    with pytest.raises(InputError, match="No feature could be tested with Estimator"):
        Selector(learner=KNeighborsRegressor(n_neighbors=500)).fit(*small_data)
    selector = Selector(learner=NotTwo(), feature_groups={"pair": ["x0", "x1"]})
    with pytest.warns(UserWarning, match="Some fits failed"):
        selector.fit(*small_data)
    assert not selector.get_support()[:2].any()


def test_covaria_is_imported_without_scikit_learn():
    import subprocess
    import sys

    code = "import covaria, sys; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture
def plain_table():
    rng = np.random.default_rng(8)
    X = pd.DataFrame(rng.normal(size=(80, 4)), columns=list("abcd"))
    return X, X["b"] * 2 + rng.normal(size=80)


def test_weights_that_are_all_zero_and_unknown_options_are_told(plain_table):
    with pytest.raises(InputError, match="sample_weight is zero in every row"):
        Selector(learner="linear").fit(*plain_table, sample_weight=np.zeros(80))
    with pytest.raises(InputError, match="no option 'validty'"):
        Selector(learner="linear", options={"validty": "zipper"}).fit(*plain_table)


def test_columns_that_are_not_asked_for_have_no_score(plain_table):
    selector = Selector("gcm", learner="linear", features=["b", "d"]).fit(*plain_table)
    assert selector.support_[[0, 1, 2]].tolist() == [False, True, False]
    assert np.isnan(selector.scores_).tolist() == [True, False, True, False]
    table = selector.result_.table.set_index("feature")
    assert selector.scores_[1] == table.loc["b", "statistic"]
    assert selector.scores_[3] == table.loc["d", "statistic"]


def test_in_sample_the_default_is_gcm_alone_and_else_the_verdict_of_both(plain_table):
    inside = StabilitySelector(learner="linear", paper=True, folds=2).fit(*plain_table)
    assert set(inside.result_.table["method"]) == {"gcm"}
    none = Selector(learner="linear", splits="none").fit(*plain_table)
    assert none.result_.methods == ["gcm"]
    both = StabilitySelector(learner="linear", folds=2).fit(*plain_table)
    last = both.result_.table[both.result_.table["method"] == "gcm+pcm"]
    assert both.scores_.tolist() == last["frequency"].tolist()


def test_defaults_are_those_of_assess_and_of_stability():
    def defaults(function):
        return {name: one.default for name, one in inspect.signature(function).parameters.items()}

    names = {"method": "methods", "random_state": "seed", "feature_groups": "groups"}
    for selector, function in ((Selector, assess), (StabilitySelector, stability)):
        known = {**defaults(assess), **defaults(function), "options": None}
        for name, value in defaults(selector).items():
            if name not in ("self", "n_jobs"):
                assert value == known[names.get(name, name)], name
        assert selector().get_params()["n_jobs"] == 1


def test_seeds_are_drawn_from_all_whole_numbers_of_31_bits(plain_table):
    for seed in range(3):
        drawn = [
            (np.random.default_rng(seed), np.random.default_rng(seed).integers(2**31, size=2)),
            (np.random.RandomState(seed), np.random.RandomState(seed).randint(2**31 - 1, size=2)),
        ]
        for state, expected in drawn:
            selector = Selector("gcm", learner="linear", random_state=state).fit(*plain_table)
            assert selector.result_.about["seed"] in expected
    with pytest.raises(InputError, match="random_state='x' must be a whole number, a generator"):
        Selector(learner="linear", random_state="x").fit(*plain_table)


def test_options_and_groups_of_columns_are_mappings(plain_table):
    with pytest.raises(InputError, match=r"options=.* must be such as \{'validity'"):
        Selector(learner="linear", options=["validity"]).fit(*plain_table)
    for selector in (Selector, StabilitySelector):
        with pytest.raises(InputError, match="groups must name each group"):
            selector(learner="linear", feature_groups=["a", "b"]).fit(*plain_table)


def test_a_method_asked_for_by_name_is_never_replaced(plain_table):
    paper = {"learner": "linear", "options": {"paper": True}}
    assert Selector(**paper).fit(*plain_table).result_.methods == ["gcm"]
    assert Selector("loco", **paper).fit(*plain_table).result_.methods == ["loco"]
    inside = Selector("loco", learner="linear", splits="none").fit(*plain_table)
    assert inside.result_.methods == ["loco"]
    parts = StabilitySelector("loco", learner="linear", paper=True, folds=2).fit(*plain_table)
    assert set(parts.result_.table["method"]) == {"loco"}
    assert isinstance(clone(parts).set_params(method="gcm").fit(*plain_table), StabilitySelector)


def test_features_that_are_not_asked_for_are_never_stable(plain_table):
    asked = {"learner": "linear", "folds": 2, "feature_groups": {"ends": ["a", "d"]}}
    selector = StabilitySelector("gcm", features=["b", "ends"], **asked).fit(*plain_table)
    share = selector.result_.table.set_index("feature")["frequency"]
    expected = [share["ends"], share["b"], 0.0, share["ends"]]
    assert selector.scores_.tolist() == expected
    assert selector.support_.tolist() == [one >= 0.8 for one in expected]
    assert selector.support_[1]
    assert not selector.support_[2]


def test_a_column_without_a_name_is_asked_for_by_its_place(plain_table):
    X, y = plain_table
    X = X.rename(columns={"b": "", "d": " "})
    selector = Selector("gcm", learner="linear", features=["a", "(column 2)"]).fit(X, y)
    assert np.isnan(selector.scores_).tolist() == [False, False, True, True]
    assert selector.support_.tolist() == [False, True, False, False]


def test_tables_of_arrow_are_columns_with_names(plain_table):
    pa = pytest.importorskip("pyarrow")
    X, y = plain_table
    groups = {"pair": ["a", "c"]}
    of = {"method": "gcm", "learner": "linear", "feature_groups": groups, "alpha": 1e-6}
    arrow = Selector(**of).fit(pa.Table.from_pandas(X), y.to_numpy())
    assert arrow.scores_.tolist() == Selector(**of).fit(X, y).scores_.tolist()
    assert arrow.transform(pa.Table.from_pandas(X)).column_names == ["b"]


def test_rows_without_weight_do_not_count(plain_table):
    X, y = plain_table
    weights = np.r_[np.zeros(20), np.ones(60)]
    told = Selector("gcm", learner="linear").fit(X, y, sample_weight=weights)
    assert told.support_[1]
    asked = {"learner": "linear", "methods": "gcm", "sample_weight": weights}
    assert told.scores_.tolist() == assess(X, y, **asked).table["statistic"].tolist()


class OnlySmall(LinearRegression):
    """Least squares that will not do with large numbers as the target."""

    def fit(self, X, y):
        if np.std(y) > 100:
            raise RuntimeError("too large")
        return super().fit(X, y)


def test_three_failures_are_named_where_the_selector_is_fitted(plain_table):
    X, y = plain_table
    large = {name: 1000 * X[name] for name in "abc"}
    X = X.assign(**large, e=1000 * X["d"] ** 2, f=1000 * X["d"] ** 3)
    with pytest.warns(UserWarning, match="Some fits failed") as told:
        selector = Selector("gcm", learner=OnlySmall()).fit(X, y)
    assert "'gcm: a', 'gcm: b', 'gcm: c' and 2 more" in str(told[0].message)
    assert told[0].filename == __file__
    assert not selector.support_[[0, 1, 2, 4, 5]].any()
    assert selector.pvalues_ is not None


def test_no_columns_left_is_told_where_the_table_is_transformed(plain_table):
    X, y = plain_table
    selector = Selector("gcm", learner="linear", alpha=1e-200).fit(X, y)
    with pytest.warns(UserWarning, match="selected no features") as told:
        empty = selector.transform(X[:7]).to_numpy()
    assert told[0].filename == __file__
    back = selector.inverse_transform(empty)
    assert back.shape == (7, 4)
    assert not back.any()


def test_arrays_may_have_gaps_and_few_rows_once_it_is_fitted(plain_table):
    X, y = plain_table[0].to_numpy().copy(), plain_table[1].to_numpy()
    X[::7, 1] = np.nan
    selector = Selector("gcm", learner="linear", alpha=0.01).fit(X, y)
    assert selector.support_.tolist() == [False, True, False, False]
    np.testing.assert_array_equal(selector.transform(X[:1]), X[:1, [1]])
    back = selector.inverse_transform(selector.transform(X))
    np.testing.assert_array_equal(back[:, 1], X[:, 1])
    assert selector.inverse_transform(np.empty((0, 1))).shape == (0, 4)
    with pytest.raises(ValueError, match="0 sample"):
        selector.transform(X[:0])
    with pytest.raises(ValueError, match="minimum of"):
        Selector(learner="linear").fit(X[:9], y[:9])


def test_a_frame_made_of_an_array_goes_back_under_counted_names(plain_table):
    X, y = plain_table[0].to_numpy(), plain_table[1]
    selector = Selector("gcm", learner="linear").fit(X, y)
    kept = np.flatnonzero(selector.support_)
    frame = pd.DataFrame(X[:, kept], columns=[f"x{j}" for j in kept])
    back = selector.inverse_transform(frame)
    assert back.columns.tolist() == ["x0", "x1", "x2", "x3"]
    assert back["x1"].tolist() == X[:, 1].tolist()
    with pytest.raises(InputError, match=f"X has 4 columns, but {len(kept)} w"):
        selector.inverse_transform(plain_table[0])


@pytest.mark.parametrize("kind", [Selector, StabilitySelector])
def test_before_it_is_fitted_it_says_so_and_what_it_takes(kind, plain_table):
    selector = kind(learner="linear")
    for ask in (
        lambda: selector.transform(plain_table[0]),
        lambda: selector.inverse_transform(plain_table[0]),
        lambda: selector.get_support(),
    ):
        with pytest.raises(NotFittedError):
            ask()
    tags = get_tags(selector)
    assert tags.target_tags.required
    takes = tags.input_tags
    assert takes.allow_nan
    assert takes.string
    assert takes.categorical
    assert takes.sparse


@pytest.mark.parametrize("kind", [Selector, StabilitySelector])
def test_by_default_what_only_pcm_finds_is_kept_too(kind):
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    y = X["b"] ** 2 + 0.3 * rng.normal(size=300)  # even, so that GCM is blind to it
    kept = [
        kind(method, learner="splines").fit(X, y).get_support().tolist()
        for method in ("gcm", "default")
    ]
    assert kept == [[False, False, False], [False, True, False]]
