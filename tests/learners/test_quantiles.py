"""Tests of a quantile: who predicts it, and what its residuals are."""

import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor

from covaria import InputError, assess
from covaria.learners import Estimator
from covaria.tables.losses import read_loss

rng = np.random.default_rng(6)
X = rng.normal(size=(200, 3))
Y = X[:, 0] + np.exp(0.5 * X[:, 1]) * rng.normal(size=200)
FOLDS = [(np.arange(100), np.arange(100, 200)), (np.arange(100, 200), np.arange(100))]


def test_the_residual_of_a_quantile_is_the_slope_of_its_loss():
    loss = read_loss("pinball(0.9)")
    step, at = 1e-6, np.full(200, 0.3)
    slope = -(loss.rows(Y, at + step) - loss.rows(Y, at)) / step
    assert np.allclose(loss.left(Y, at), slope)
    assert loss.left(Y, np.full(200, loss.constant(Y, None))).mean() == pytest.approx(0, abs=1e-9)


def test_gcm_of_a_quantile_by_hand():
    result = assess(X, Y, learner="linear", loss="pinball(0.8)", methods="gcm,loco", splits=FOLDS)
    train, test = FOLDS[0]
    model = QuantileRegressor(quantile=0.8, alpha=0.0).fit(X[train, 1:], Y[train])
    above = Y[test] > model.predict(X[test, 1:])
    assert np.allclose(result.residuals["y_given_rest"][100:, 0], np.where(above, 0.8, -0.2))
    assert result.selected["gcm"][0] == "x0"


def test_an_estimator_predicts_the_quantile_and_auto_serves_the_features():
    own = QuantileRegressor(quantile=0.8, alpha=0.0)
    result = assess(X, Y, learner=own, loss="pinball(0.8)", methods="gcm")
    assert result.about.learner_text == "Auto()"
    named = assess(X, Y, learner=Estimator(own, x=own), loss="pinball(0.8)", methods="gcm")
    assert "QuantileRegressor" in named.about.learner_text


def test_spread_that_depends_on_a_feature_is_found_at_a_high_quantile_alone():
    high, mean = (
        assess(X, Y, learner="linear", loss=loss, methods="gcm").selected["gcm"]
        for loss in ("pinball(0.9)", None)
    )
    assert "x1" in high
    assert "x1" not in mean


@pytest.mark.parametrize(
    ("learner", "loss", "said"),
    [
        ("kernel", "pinball(0.9)", "needs quantiles"),
        ("linear", "pinball", "cannot be read"),
        ("linear", "pinball(2)", "between 0 and 1"),
        (QuantileRegressor(quantile=0.5), "pinball(0.9)", "predicts the quantile 0.5"),
    ],
)
def test_what_cannot_be_is_one_sentence(learner, loss, said):
    with pytest.raises(InputError, match=said):
        assess(X, Y, learner=learner, loss=loss)


def test_a_target_of_few_values_has_no_quantiles():
    with pytest.raises(InputError, match="task='ordinal'"):
        assess(X, np.round(Y), learner="linear", loss="pinball(0.9)")
