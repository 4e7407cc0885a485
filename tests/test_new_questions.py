"""What a newcomer tried with the new questions, and what was wrong then."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import covaria
from covaria import InputError, Prefit, assess, independence_test


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(7)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("afe"))
    return X, pd.Series(X["a"] + X["f"] + rng.normal(size=200))


def test_classes_that_a_prefit_model_does_not_know_are_refused(table):
    X, y = table
    names = np.where(y > 0, "hi", "lo")
    model = LogisticRegression().fit(X[:100], names[:100])
    known = assess(X[100:], names[100:], learner=Prefit(model, nuisance="linear"), methods="pcm")
    assert known.table["p_value"].min() < 0.01
    with pytest.raises(InputError, match="knows the classes 'hi'"):
        assess(X[100:], (y[100:] > 0).astype(int), learner=Prefit(model, nuisance="linear"))
    other = LogisticRegression().fit(X[:100], (y[:100] > 0).to_numpy())
    as_bool = assess(
        X[100:], (y[100:] > 0).astype(int), learner=Prefit(other, nuisance="linear"), methods="pcm"
    )
    assert as_bool.table["p_value"].tolist() == pytest.approx(known.table["p_value"].tolist())


def test_a_class_that_does_not_occur_among_the_tested_rows_is_left_out(table):
    X, y = table
    three = np.digitize(y, [-1, 1]).astype(str)
    model = LogisticRegression().fit(X[:100], three[:100])
    some = np.arange(100, 200)[three[100:] != "2"]
    result = assess(X.iloc[some], three[some], learner=Prefit(model, nuisance="linear"))
    assert np.isfinite(result.table["p_value"]).all()


def test_predictions_go_by_row_labels_and_are_of_every_row(table):
    X, y = table
    rest = pd.Series(X["f"] + X["e"] * 0, index=X.index)
    own = pd.Series(np.zeros(200), index=X.index)
    made = {"y|rest": {"a": rest}, "x|rest": {"a": own}}
    moved = {"y|rest": {"a": rest.sample(frac=1, random_state=0)}, "x|rest": {"a": own}}
    in_order, put_in_order = (assess(X, y, predictions=one).table for one in (made, moved))
    assert put_in_order.equals(in_order)
    with pytest.raises(InputError, match="would test a part"):
        assess(X, y, predictions=made, splits=0.3)


def test_copies_have_no_pairs(table):
    X, y = table
    X = X.assign(a2=1.8 * X["a"] + 32)
    result = assess(X, X["a"] ** 2 + y, learner="linear", methods="gcm", check=False)
    found = covaria.interactions(result)
    assert set(found["feature"]) | set(found["other"]) == {"f", "e"}


def test_independence_says_what_is_meant_and_which(table):
    X, y = table
    with pytest.raises(InputError, match="use seed="):
        independence_test(X["a"], y, given=X["f"], random_state=1)
    found = independence_test(X.assign(y=y), "a", ["y", "e"], given=["f"], learner="linear")
    assert found.headline.startswith("One of")


def test_draws_of_a_feature_do_not_depend_on_which_others_are_tested(table):
    X, y = table
    options = {"learner": "boosting(trees=20)", "methods": "gcm", "shared_randomness": False}
    full, alone = (
        assess(X, y, features=names, check=False, **options).table.set_index("feature")["p_value"]
        for names in (None, ["e"])
    )
    assert alone["e"] == full["e"]
