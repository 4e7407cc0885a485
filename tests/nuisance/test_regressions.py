"""The plain engine fits each model once, and fits what one would fit by hand."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from covaria import InputError, assess
from covaria.assessment import prepare
from covaria.learners import Auto
from covaria.methods.gcm import gcm
from covaria.nuisance.engines import plain
from covaria.nuisance.fit import by_task, run_plan
from covaria.nuisance.regressions import fit_residuals

ALL = ["gcm", "loco", "dropout", "permutation"]


@pytest.mark.parametrize(
    "learner",
    [
        LinearRegression(),
        RandomForestRegressor(10, random_state=0),
        make_pipeline(StandardScaler(), LinearRegression()),
    ],
)
@pytest.mark.parametrize("splits", [3, 0.4, "none"])
def test_residuals_are_those_of_refits_by_hand(learner, splits, small_data):
    X, y = small_data
    job = prepare(X, y, learner=learner, methods=["gcm", "loco"], splits=splits)
    plan = job.plan(0)
    residuals = fit_residuals(plan)
    for train, test in plan.folds:
        at = np.searchsorted(residuals.rows, test)
        fit = learner.fit(X[train], y[train])
        assert np.allclose(residuals.y_given_all[at], y[test] - fit.predict(X[test]), atol=1e-9)
        for j in range(4):
            rest = [k for k in range(4) if k != j]
            for target, found in ((y, residuals.y_given_rest), (X[:, j], residuals.x_given_rest)):
                predicted = learner.fit(X[train][:, rest], target[train]).predict(X[test][:, rest])
                assert np.allclose(found[at, j], target[test] - predicted, atol=1e-9)


def test_dropout_and_permutation_reuse_the_full_model(small_data):
    X, y = small_data
    plan = prepare(X, y, learner="linear", methods=["dropout", "permutation"], splits=0.5).plan(0)
    residuals = fit_residuals(plan)
    ((train, test),) = plan.folds
    model = LinearRegression().fit(X[train], y[train])
    orders = plan.shuffles(0)
    for j in range(4):
        dropped = X[test].copy()
        dropped[:, j] = X[train, j].mean()
        assert np.allclose(residuals.loss_dropped[:, j], (y[test] - model.predict(dropped)) ** 2)
        losses = []
        for order in orders:
            shuffled = X[test].copy()
            shuffled[:, j] = X[test][order, j]
            losses.append((y[test] - model.predict(shuffled)) ** 2)
        assert np.allclose(residuals.loss_permuted[:, j], np.mean(losses, axis=0))


class Counting(RegressorMixin, BaseEstimator):
    """A mean that counts how often any of its copies was fitted."""

    fits = 0

    def fit(self, X, y):
        Counting.fits += 1
        self.mean_ = np.mean(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


def test_all_four_methods_take_2p_plus_1_models_a_fold(small_data):
    Counting.fits = 0
    result = assess(*small_data, learner=Counting(), methods=ALL, splits=5, check=False)
    assert Counting.fits == 5 * (2 * 4 + 1) == result.about["models"]
    assert result.about["fits"] == {"gcm": 40, "loco": 25, "dropout": 5, "permutation": 5}
    assert all(seconds > 0 for seconds in result.about["seconds"].values())


def test_full_and_reduced_booster_share_their_bags(small_data):
    X, y = small_data
    X = np.column_stack([X, np.r_[np.ones(3), np.zeros(117)]])  # too rare to be split on
    result = assess(X, y, learner="boosting", methods=["loco"])
    assert result.table["status"].tolist()[-1] == "unused"


@pytest.mark.parametrize("library", ["lightgbm", "scikit-learn"])
def test_a_seeded_booster_is_not_refitted_without_what_it_never_used(library, small_data):
    rng = np.random.default_rng(0)
    X = np.column_stack([small_data[0], rng.integers(0, 2, size=(120, 3)) * 1e-3])
    if library == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        booster = lightgbm.LGBMRegressor(
            n_estimators=5, num_leaves=2, subsample=0.5, subsample_freq=1
        )
    else:
        booster = GradientBoostingRegressor(n_estimators=5, max_depth=1, subsample=0.5)
    plan = prepare(X, small_data[1], learner=booster, methods="loco", splits=2).plan(0)
    skipped = plain.run(plan)
    refitted = [plain.fit_task(plan, task) for task in plan.tasks]
    unused = [outcome.unused for outcome in skipped if outcome.unused]
    assert unused
    for task, ours, theirs in zip(plan.tasks, skipped, refitted, strict=True):
        assert np.allclose(ours.prediction, theirs.prediction, rtol=0, atol=1e-12), task
        assert (ours.seconds == 0) == (task.feature in skipped[0 if task.fold == 0 else 8].unused)


def test_any_splitter_serves(small_data):
    X, y = small_data
    by_hand = list(KFold(4).split(X))
    options = {"learner": "linear", "methods": ["gcm"]}
    splitter, given = (assess(X, y, splits=s, **options) for s in (KFold(4), by_hand))
    assert splitter.table.equals(given.table)
    clusters = np.repeat(np.arange(30), 4)
    grouped = assess(X, y, splits=GroupKFold(3), clusters=clusters, **options)
    assert grouped.about["clusters"] == 30
    assert grouped.about["folds"] == 3


def test_rows_of_a_cluster_stay_in_one_fold(small_data):
    clusters = np.arange(120) % 20
    plan = prepare(*small_data, learner="linear", clusters=clusters, splits=4).plan(0)
    for train, test in plan.folds:
        assert not set(clusters[train]) & set(clusters[test])


def test_a_hold_out_tests_its_rows_only(small_data):
    result = assess(*small_data, learner="linear", splits=0.25)
    assert len(result.rows) == 30
    assert result.scores["gcm"].shape == (30, 4)


def test_missing_values_reach_learners_that_take_them_and_are_filled_for_others(small_data):
    from sklearn.ensemble import HistGradientBoostingRegressor

    X, y = small_data[0].copy(), small_data[1]
    X[:15, 2] = np.nan
    seen = []

    class Spy(HistGradientBoostingRegressor):
        def fit(self, X, y, sample_weight=None):
            seen.append(np.isnan(X).any())
            return super().fit(X, y, sample_weight)

    assess(X, y, learner=Spy(max_iter=5), methods=["loco"], splits=2)
    assert any(seen)
    result = assess(X, y, learner="linear")
    assert result.table.set_index(["method", "feature"]).loc[("gcm", "x2"), "df"] == 2


@pytest.mark.parametrize("options", [{"learner": "linear"}, {"splits": 0.5}, {"splits": "none"}])
def test_without_a_choice_or_rows_that_folds_share_scores_are_the_products(options, small_data):
    job = prepare(*small_data, **({"learner": Auto(candidates=["linear"])} | options))
    residuals = fit_residuals(job.plan(0))
    assert residuals.model_noise is None
    products = residuals.x_given_rest * residuals.y_given_rest
    assert np.array_equal(gcm(residuals, np.random.default_rng(0)), products)


def test_models_draw_anew_where_randomness_is_not_shared():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(120, 3))
    y = X[:, 0] + rng.normal(size=120)
    options = {"learner": "boosting(trees=20)", "methods": ["gcm", "loco"], "check": False}
    shared, anew, again = (
        assess(X, y, shared_randomness=own, **options).table for own in (True, False, False)
    )
    assert anew.equals(again)
    assert not anew["statistic"].equals(shared["statistic"])
    exact = [assess(X, y, learner="linear", shared_randomness=own).table for own in (True, False)]
    assert exact[0].equals(exact[1])
    with pytest.raises(InputError, match="shared_randomness"):
        assess(X, y, shared_randomness="no")
    usual, paper, shared = (
        assess(X, y, paper=paper, shared_randomness=own, **options).table
        for paper, own in ((False, None), (True, None), (True, True))
    )
    assert usual.equals(assess(X, y, shared_randomness=True, **options).table)
    assert paper.equals(assess(X, y, paper=True, shared_randomness=False, **options).table)
    assert not paper["statistic"].equals(shared["statistic"])


@pytest.mark.parametrize("learner", ["boosting(trees=20)", "network(hidden=[4], epochs=5)"])
def test_models_that_draw_anew_are_those_of_the_plain_engine(learner):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 3))
    y = X[:, 0] + rng.normal(size=120)
    job = prepare(X, y, learner=learner, methods=["gcm", "loco", "dropout"], paper=True)
    fast, slow = (by_task(job.plan(0), run_plan(job.plan(0), plainly=p)) for p in (False, True))
    assert list(fast) == list(slow)
    for task, outcome in fast.items():
        assert outcome.prediction == pytest.approx(slow[task].prediction, abs=1e-9)
        assert outcome.unused == slow[task].unused == frozenset()
