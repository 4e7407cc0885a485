"""Learners are values; each family fits what it says."""

import pickle

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from covaria import InputError, assess
from covaria.learners import LEARNERS, Boosting, Estimator, Kernel, Linear, Network, get_learner
from covaria.learners.estimators.linear import LinearModel
from covaria.learners.estimators.wrapped import prepared, sibling

NAMES = [*LEARNERS]


@pytest.mark.parametrize("name", NAMES)
def test_a_learner_prints_as_the_call_that_makes_it_and_survives_a_pickle(name):
    learner = get_learner(name)
    assert eval(repr(learner), {kind.__name__: kind for kind in LEARNERS.values()}) == learner
    assert pickle.loads(pickle.dumps(learner)) == learner
    assert hash(learner) == hash(get_learner(name))
    assert get_learner(learner) is learner


def test_settings_can_be_written_behind_the_name():
    assert get_learner("boosting(trees=200, splits=4)") == Boosting(trees=200, splits=4)
    assert get_learner("network(hidden=(32, 16))") == Network(hidden=(32, 16))


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("bosting", "boosting"),
        ("boosting(tres=2)", "trees"),
        ("boosting(2)", "trees=200"),
        ("boosting(__import__('os'))", "cannot be read"),
        (LinearRegression, "neither"),
        (3, "neither"),
    ],
)
def test_a_learner_that_is_not_one_gets_a_hint(given, hint):
    with pytest.raises(InputError, match=hint):
        get_learner(given)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Boosting(trees=0),
        lambda: Boosting(bag=2),
        lambda: Linear(ridge=-1),
        lambda: Kernel(kind="poly"),
        lambda: Kernel(sigma=0.0),
        lambda: Network(hidden=()),
    ],
)
def test_settings_out_of_range_are_refused(make):
    with pytest.raises(InputError):
        make()


@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_least_squares_and_ridge_are_scikit_learns(ridge):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4)) * [1, 10, 0.1, 1]
    y = X @ [1, 2, 3, 4] + rng.normal(size=80)
    w = rng.uniform(0.5, 2, 80)
    theirs = Ridge(alpha=ridge).fit(X, y, w) if ridge else LinearRegression().fit(X, y, w)
    ours = LinearModel(ridge=ridge).fit(X, y, w)
    assert np.allclose(ours.predict(X), theirs.predict(X), atol=1e-9)


def test_separated_classes_still_have_finite_log_odds():
    X = np.linspace(-1, 1, 40)[:, None]
    model = LinearModel(n_classes=2).fit(X, (X[:, 0] > 0).astype(float))
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("network", "mean")])
@pytest.mark.parametrize("target", ["numbers", "classes"])
def test_every_family_finds_the_useful_feature(name, target):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 3))
    y = 2 * X[:, 0] + 0.5 * rng.normal(size=150)
    y = y if target == "numbers" else np.where(y > 0, "yes", "no")
    result = assess(X, y, learner=name, methods="gcm,loco,dropout,permutation", splits=3)
    assert all("x0" in chosen for chosen in result.selected.values())
    assert not result.failures


def test_networks_find_the_useful_feature_too():
    pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 3))
    y = 2 * X[:, 0] + 0.5 * rng.normal(size=150)
    learner = Network(hidden=(10,), lr=0.02, epochs=60)
    for target in (y, np.where(y > 0, "yes", "no")):
        result = assess(X, target, learner=learner, methods="gcm,loco,dropout", splits=2)
        assert all("x0" in chosen for chosen in result.selected.values())


def test_a_classifier_serves_y_and_its_regressor_the_features():
    forest = sibling(RandomForestClassifier(7, max_depth=2, criterion="entropy"))
    assert isinstance(forest, RandomForestRegressor)
    assert (forest.n_estimators, forest.max_depth) == (7, 2)
    assert isinstance(sibling(GradientBoostingRegressor()), GradientBoostingClassifier)
    pipeline = sibling(make_pipeline(StandardScaler(), LogisticRegression()))
    assert isinstance(pipeline[-1], LinearRegression)


@pytest.mark.parametrize(
    "learner",
    [
        RandomForestClassifier(20, min_samples_leaf=5),
        RandomForestRegressor(20, min_samples_leaf=5),
        make_pipeline(StandardScaler(), LogisticRegression()),
        Estimator(CalibratedClassifierCV(LinearSVC(), cv=3), x=LinearRegression()),
        Ridge(),
    ],
)
def test_any_estimator_tests_classes(learner):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=200) > 0, "yes", "no")
    result = assess(X, y, learner=learner, methods="gcm,loco", splits=3)
    assert "x0" in result.selected["gcm"]
    assert not result.failures


def test_estimators_are_seeded_kept_to_one_thread_and_never_changed():
    forest = RandomForestRegressor(5, n_jobs=4)
    model = prepared(make_pipeline(StandardScaler(), forest), seed=12)
    assert (model[-1].n_jobs, model[-1].random_state) == (1, 12)
    assert (forest.n_jobs, forest.random_state) == (4, None)


def test_an_unseeded_estimator_gives_the_same_numbers_twice(small_data):
    one, two = (assess(*small_data, learner=RandomForestRegressor(5), splits=2) for _ in range(2))
    assert one.table.equals(two.table)


def test_a_classifier_for_numbers_and_one_without_probabilities_are_refused(small_data):
    with pytest.raises(InputError, match="regressor"):
        assess(*small_data, learner=LogisticRegression())
    y = np.where(small_data[1] > 0, "yes", "no")
    with pytest.raises(InputError, match="CalibratedClassifierCV"):
        assess(small_data[0], y, learner=Estimator(LinearSVC(), x=Ridge()))


def test_lightgbm_serves_and_stays_silent(small_data, capfd):
    lightgbm = pytest.importorskip("lightgbm")
    result = assess(*small_data, learner=lightgbm.LGBMRegressor(n_estimators=20), splits=2)
    assert "x0" in result.selected["gcm"]
    assert capfd.readouterr().out == ""
