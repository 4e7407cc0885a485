"""The learner "auto": who serves which regression."""

from dataclasses import replace

import numpy as np
import pytest

from covaria import InputError, assess
from covaria.assessment import prepare
from covaria.learners import (
    Auto,
    Boosting,
    Linear,
    Mean,
    Splines,
    Surfaces,
    from_settings,
    get_learner,
)
from covaria.nuisance.auto import choose_learners
from covaria.nuisance.auto.contest import Contest, Y, leader_of
from covaria.nuisance.auto.library import STRAIGHT, hold_library
from covaria.nuisance.auto.rows import contest_folds
from covaria.nuisance.fit import by_task, run_plan

FEW = Auto(candidates=("mean", "linear", "boosting(trees=30)"))


def a_table(n_rows=200, seed=0):
    """Return a table in which x1 follows x0 by a line, x3 follows x2 by a jump, and x4 none."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5))
    X[:, 1] += 2 * X[:, 0]
    X[:, 3] = 0.3 * X[:, 3] + np.where(X[:, 2] > 0, 2.0, -2.0)
    return X, 3 * X[:, 0] + rng.normal(size=n_rows)


def a_plan(learner=FEW, splits=5, table=None, **options):
    X, y = table or a_table()
    return prepare(X, y, learner=learner, methods=["gcm"], splits=splits, **options).plan(0)


def test_every_regression_gets_the_learner_that_suits_it():
    choices = choose_learners(a_plan())
    assert set(choices.y) == {((Linear(), 1.0),)}
    for fold in choices.x:
        assert fold[1] == ((Linear(), 1.0),)
        assert fold[3] == ((Boosting(trees=30), 1.0),)
    assert sum(fold[4] == ((Mean(), 1.0),) for fold in choices.x) >= 3


def test_other_targets_are_never_left_to_the_mean():
    choices = choose_learners(a_plan())
    assert all(((Mean(), 1.0),) not in fold.values() for fold in choices.instead)


@pytest.mark.parametrize("splits", [5, 4, 3, 2])
def test_candidates_are_compared_on_the_folds_of_the_fit_itself(splits):
    plan = a_plan(splits=splits)
    assert contest_folds(plan) is plan.folds


@pytest.mark.parametrize("splits", [0.3, "none"])
def test_without_a_cross_fit_candidates_are_compared_inside_the_training_rows(splits):
    plan = a_plan(splits=splits)
    for train, test in contest_folds(plan):
        assert not np.isin(test, train).any()
        assert np.isin(np.concatenate([train, test]), plan.folds[0][0]).all()
        if splits != "none":
            assert not np.isin(np.concatenate([train, test]), plan.folds[0][1]).any()


def test_the_errors_of_a_folds_own_test_rows_have_no_say_in_who_serves_y_there():
    contest = Contest.of(a_plan())
    for candidate in FEW.candidates:
        contest.enter([candidate], contest.keys)
    before = list(contest.choices().y)
    contest.losses[Y][Linear()][2] = 1e9
    after = contest.choices().y
    assert after[2] == before[2]
    assert after[0] != before[0]


def test_clusters_stay_together_inside_the_training_rows():
    clusters = np.repeat(np.arange(50), 4)
    plan = a_plan(splits=0.3, clusters=clusters)
    for train, test in contest_folds(plan):
        assert not np.isin(clusters[test], clusters[train]).any()


def test_the_errors_are_those_of_the_models():
    plan = a_plan()
    contest = Contest.of(plan)
    contest.enter([Linear()], contest.keys)
    own = replace(plan, learner=Linear(), choices=None)
    found = by_task(own, run_plan(own))
    errors = []
    for fold, (_, test) in enumerate(plan.folds):
        task = next(t for t in own.tasks if t.fold == fold and t.feature == 3 and t.need[0] == "x")
        target = plan.data.X[test, 3]
        errors.append((target - own.within_reach(task, found[task].prediction)[:, 0]) ** 2)
    expected = np.concatenate(errors).mean() / plan.data.X[:, 3].var()
    assert contest.errors(3)[Linear()] == pytest.approx(expected)


def test_a_path_of_trees_is_entered_as_each_of_its_models():
    plan = a_plan()
    path, alone = (Contest.of(plan) for _ in range(2))
    counts = [Boosting(trees=count) for count in (10, 30)]
    path.enter(counts, path.keys)
    for learner in counts:
        alone.enter([learner], alone.keys)
    for key in (Y, 0, 3):
        for learner, error in path.errors(key).items():
            assert error == pytest.approx(alone.errors(key)[learner])


def test_two_serve_where_together_they_err_less():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X[:, 0] = X[:, 1] + 2 * (X[:, 1] > 0) + rng.normal(size=300)
    contest = Contest.of(a_plan(table=(X, rng.normal(size=300))))
    for candidate in (Linear(), Boosting(trees=10)):
        contest.enter([candidate], contest.keys)
    errors, (first, second) = contest.errors(0), contest.blend(0)
    assert {first[0], second[0]} == {Linear(), Boosting(trees=10)}
    together = [contest._of_two(0, fold, first[0], second[0]) for fold in range(5)]
    assert np.mean(together) < 0.99 * min(errors.values())


def test_what_was_fitted_to_compare_learners_is_not_fitted_again():
    plan = a_plan()
    choices = choose_learners(plan)
    models = run_plan(replace(plan, choices=choices))
    again = run_plan(replace(plan, choices=replace(choices, kept={})))
    for kept, fitted in zip(models, again, strict=True):
        np.testing.assert_array_equal(kept.prediction, fitted.prediction)
    assert any(task.need == "x_given_rest" for task, _ in choices.kept)


def test_a_stack_errs_no_more_than_its_best_member_where_it_was_chosen():
    plan = a_plan(replace(FEW, stack=True))
    choices = choose_learners(plan)
    for blends in (*choices.y, *choices.x[0].values()):
        assert sum(weight for _, weight in blends) == pytest.approx(1)
        assert all(0 < weight <= 1 for _, weight in blends)
    assert dict(choices.x[0][3])[Boosting(trees=30)] > 0.8
    result = assess(*a_table(), learner=replace(FEW, stack=True), methods=["gcm"])
    assert "x0" in result.selected["gcm"]


def test_a_learner_that_fails_is_not_chosen():
    class Broken:
        def fit(self, X, y):
            raise RuntimeError("never")

        def predict(self, X):
            return X[:, 0]

    learner = Auto(candidates=(Broken(), "linear"))
    result = assess(*a_table(), learner=learner, methods=["gcm"])
    assert set(result.table["status"]) == {"ok"}
    assert set(result.quality["learner"]) == {"Linear(ridge=0.0)"}


def test_the_library_sees_lines_waves_jumps_and_products():
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, size=(300, 3))
    noise = 0.1 * rng.normal(size=(300, 3))
    made = [np.sin(6 * np.pi * z[:, 0]), np.sign(z[:, 1]), 2 * z[:, 0] * z[:, 1]]
    X = np.column_stack([z, np.transpose(made) + noise])
    quality = assess(X, z[:, 2] + rng.normal(size=300), methods=["gcm"]).quality
    r2 = quality[quality["regression"] == "x given rest"].set_index("feature")["r2"]
    assert r2["x3"] > 0.9
    assert r2["x4"] > 0.9
    assert r2["x5"] > 0.8


def test_the_default_is_auto_and_says_who_served():
    result = assess(*a_table(100), methods=["gcm"])
    assert result.about["learner"] == {"name": "auto", "candidates": [], "stack": False}
    served = result.quality.set_index(["regression", "feature"])["learner"]
    usual = ("linear", "splines", "quadratic", "surfaces")
    assert get_learner(served["x given rest", "x1"]).name in usual


def test_classes_and_groups_choose_too():
    X, y = a_table()
    result = assess(
        X, (y > 0).astype(int), groups={"pair": ["x2", "x3"]}, learner=FEW, methods=["gcm", "loco"]
    )
    assert "x0" in result.selected["gcm"]
    assert set(result.table["status"]) <= {"ok", "unused"}


def test_one_job_or_two_give_the_same_table():
    tables = [assess(*a_table(120), learner=FEW, n_jobs=jobs).table for jobs in (1, 2)]
    assert tables[0].equals(tables[1])


def test_settings_describe_auto_and_bring_it_back():
    learner = Auto(candidates=["linear", "splines(df='gcv')"], stack=True)
    assert learner.candidates == (Linear(), Splines(df="gcv"))
    assert from_settings(learner.settings()) == learner
    assert get_learner("auto(candidates=['linear', 'boosting(trees=5)'])").candidates[1].trees == 5


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"candidates": "linear"}, "list of learners"),
        ({"candidates": ("auto",)}, "cannot hold 'auto' itself"),
        ({"candidates": ("liner",)}, "Did you mean 'linear'"),
        ({"stack": 1}, "must be True or False"),
    ],
)
def test_bad_settings_get_one_sentence(given, words):
    with pytest.raises(InputError, match=words):
        Auto(**given)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [(120, 4), (60, 20)])
def test_units_change_no_p_value_and_no_choice(shape, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape)
    X[:, 1] += np.sin(2 * X[:, 0])
    y = X[:, 0] + X[:, 2] ** 2 + rng.normal(size=len(X))
    units, shifts = 10 ** rng.uniform(-3, 3, X.shape[1]), rng.normal(size=X.shape[1])
    plain = assess(X, y, seed=seed)
    moved = assess((X + shifts) * units, 37 * y - 11, seed=seed)
    assert plain.quality["learner"].tolist() == moved.quality["learner"].tolist()
    assert np.allclose(plain.table["p_value"], moved.table["p_value"], atol=1e-6)


def followers(curve, n_rows=400, seed=0, noise=0.1):
    """Return a table in which x0 and y follow a function of the rest, x0 more closely."""
    rng = np.random.default_rng(seed)
    Z = rng.uniform(-1, 1, size=(n_rows, 3))
    x = curve(Z) + noise * rng.normal(size=n_rows)
    return np.column_stack([x, Z]), curve(Z) + rng.normal(size=n_rows)


def test_y_may_need_another_learner_without_a_feature_than_with_it():
    """A line through x0 serves y, and without x0 nothing but waves will do."""
    table = followers(lambda Z: 2 * np.sin(2 * np.pi * Z[:, 0]))
    choices = choose_learners(a_plan("auto", table=table))
    for y, rest in zip(choices.y, choices.y_rest, strict=True):
        assert 0 in rest
        assert 2 not in rest  # of which the others tell nothing
        assert isinstance(rest[0][0][0], Splines | Surfaces)
        assert not isinstance(y[0][0], Splines) or y != rest[0]
    X, y = table
    quality = assess(X, y, methods=["gcm"]).quality.set_index(["regression", "feature"])
    assert quality["r2"]["y given rest", "x0"] > 0.5


def test_one_more_method_changes_no_choice():
    table = followers(lambda Z: 2 * np.sin(2 * np.pi * Z[:, 0]), n_rows=150)
    alone = assess(*table, methods=["loco"])
    among = assess(*table, methods=["gcm", "loco", "pcm"]).only("loco")
    assert alone.table.equals(among.table)


@pytest.mark.parametrize(
    "curve",
    [lambda Z: 2 * np.sin(2 * (Z[:, 0] + Z[:, 1])), lambda Z: 3 * np.sign(Z[:, 0] * Z[:, 1])],
)
def test_an_interaction_is_learned(curve):
    contest = Contest.of(a_plan("auto", table=followers(curve, noise=0.5)))
    hold_library(contest)
    errors = contest.errors(0)
    assert errors[contest.best(0)] < 0.5 * errors[Mean()]


@pytest.mark.parametrize("odd", ["one rare level", "one gap in a constant", "two rare levels"])
def test_a_column_that_varies_in_no_training_part_has_an_answer(odd):
    level = np.where(np.arange(60) == 3, "b", "a").astype(object)
    tables = {
        "one rare level": {"c": level},
        "one gap in a constant": {"c": np.where(np.arange(60) == 5, np.nan, 1.0)},
        "two rare levels": {"c": level, "d": level[::-1]},
    }
    y = np.random.default_rng(0).normal(size=60)
    found = assess(tables[odd], y, methods=["gcm"])
    assert found.table["p_value"].between(0, 1).all()


def smooth_table(n_rows=240, n_columns=6):
    """Return columns with a common cause, and a curve of the first; the others say nothing more."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n_rows, n_columns)) + rng.normal(size=(n_rows, 1))
    return X, 3 * np.sin(X[:, 0]) + 0.3 * rng.normal(size=n_rows)


def test_y_keeps_its_smoothing_without_a_feature_that_its_model_has_no_use_for():
    X, y = smooth_table()
    contest = Contest.of(a_plan(Auto(candidates=("splines(df='gcv')",)), table=(X, y)))
    contest.enter([Splines(df="gcv")], contest.keys)
    found = contest.needed(range(6))
    assert 0 in found
    assert len(found) < 6
    for (task, learner), found in contest.predictions.items():
        if task.need == "y_given_rest":  # they are those of the fit itself
            plan = replace(contest.plan, learner=learner, choices=None, only=frozenset({task}))
            fitted = by_task(plan, run_plan(plan))[task].prediction
            np.testing.assert_allclose(found, plan.within_reach(task, fitted), atol=1e-9)


def test_a_kernel_is_not_tried_where_lines_lead():
    X, y = smooth_table()
    contest = Contest.of(a_plan("auto", table=(X, y)))
    hold_library(contest)
    asked = {(task.feature, learner.name) for task, learner in contest.predictions}
    assert (-1, "kernel") in asked
    led = set()
    for feature in range(6):
        others = {k: e for k, e in contest.errors(feature).items() if k.name != "kernel"}
        is_straight = leader_of(others).name in STRAIGHT
        assert ((feature, "kernel") in asked) == (not is_straight)
        led.add(is_straight)
    assert True in led


def test_two_that_serve_y_together_have_losses_without_a_feature():
    X, y = a_table()
    both = Auto(candidates=("linear", "splines"), stack=True)
    result = assess(X, y, learner=both, methods=["dropout", "permutation"], check=False).table
    of_useless = result[result["feature"] == "x4"]
    assert (of_useless["estimate"].abs() < 0.5).all()
    assert (result.loc[result["feature"] == "x0", "estimate"] > 1).all()


def test_a_feature_asked_for_alone_has_the_numbers_of_the_whole_run():
    X, y = followers(lambda Z: 2 * np.sin(2 * np.pi * Z[:, 0]))
    full = assess(X, y, check=False).table.set_index(["method", "feature"])
    for name in ("x0", "x1"):
        alone = assess(X, y, features=[name], check=False).table.set_index(["method", "feature"])
        own = full.loc[alone.index, "p_value"]
        np.testing.assert_allclose(alone["p_value"], own, rtol=1e-9)
