"""Times until an event: hazards, partial likelihood and martingale residuals, by hand."""

import numpy as np
import pandas as pd
import pytest

from covaria import InputError, assess
from covaria.tables.survival import PartialLikelihood, cumulative_hazard

rng = np.random.default_rng(5)
N = 150
X = rng.normal(size=(N, 3))
TIME = np.round(rng.exponential(np.exp(-X[:, 0])), 1)  # with ties
SEEN = (rng.random(N) < 0.7).astype(float)


def test_the_hazard_of_equal_rows_is_that_of_nelson_and_aalen():
    time, seen = np.array([1.0, 2, 2, 3, 4]), np.array([1.0, 1, 0, 0, 1])
    hazard, at_risk = cumulative_hazard(time, seen, np.ones(5), None)
    assert np.allclose(hazard, np.cumsum([1 / 5, 1 / 4, 0, 0, 1]))
    assert at_risk.tolist() == [5, 4, 4, 2, 1]


def test_what_rows_were_expected_to_see_adds_up_to_the_events():
    ratios = np.exp(X[:, 0])
    loss = PartialLikelihood.of_times(TIME, SEEN, None).given(ratios)
    assert (loss.exposure * ratios).sum() == pytest.approx(SEEN.sum())


def test_the_losses_are_the_parts_of_coxs_partial_likelihood():
    ratios = np.exp(0.5 * X[:, 1])
    loss = PartialLikelihood.of_times(TIME, SEEN, None)
    rows = loss.of_rows(loss.target, ratios, slice(None)) * loss.exposure
    by_hand = [np.log(ratios[TIME[i] <= TIME].sum() / ratios[i]) for i in np.flatnonzero(SEEN)]
    assert rows.sum() == pytest.approx(sum(by_hand))
    assert (rows >= 0).all()


def test_products_with_martingale_residuals_add_up_to_coxs_score():
    loss, x = PartialLikelihood.of_times(TIME, SEEN, None), X[:, 2]
    products = loss.exposure * x * (loss.target - 1)
    score = sum(x[i] - x[TIME[i] <= TIME].mean() for i in np.flatnonzero(SEEN))
    assert products.sum() == pytest.approx(score)


def test_gcm_multiplies_residuals_of_the_feature_with_martingale_residuals():
    result = assess(X, TIME, event=SEEN, learner="linear", methods="gcm")
    left = result.residuals
    w, xi, epsilon = left["weight"], left["x_given_rest"][:, 0], left["y_given_rest"][:, 0]
    assert result.table["estimate"][0] == pytest.approx(np.mean(w * xi * epsilon))
    assert abs(np.average(epsilon, weights=w)) < 0.1
    assert result.table["p_value"][0] < 1e-4


def test_a_unit_of_time_changes_no_number():
    days, years = (
        assess(X, scale * TIME, event=SEEN, learner="linear", methods="gcm,loco").table
        for scale in (365.0, 1.0)
    )
    pd.testing.assert_frame_equal(days, years)


def test_the_column_of_events_has_a_name_and_may_be_of_truth_values():
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(time=TIME, seen=SEEN == 1)
    by_name = assess(frame, "time", event="seen", learner="linear")
    assert by_name.features == ["a", "b", "c"]
    by_array = assess(X, TIME, event=SEEN, learner="linear")
    assert np.allclose(by_name.table["p_value"], by_array.table["p_value"])
    assert "time until an event, seen in" in by_name.findings[0].text


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"event": SEEN * 2}, "1 .or True. where the event was seen"),
        ({"event": ["yes"] * N}, "1 .or True. where the event was seen"),
        ({"event": np.arange(N) < 3}, "has 3 events; at least 10"),
        ({"event": SEEN, "loss": "poisson"}, "Leave out loss"),
        ({"event": SEEN, "effect": "plm"}, "not of times"),
        ({"event": SEEN, "predictions": {"y|all": TIME, "y|rest": {"x0": TIME}}}, "give a learner"),
    ],
)
def test_what_cannot_be_is_one_sentence(asked, said):
    with pytest.raises(InputError, match=said):
        assess(X, TIME, **asked)


def test_times_are_not_negative():
    with pytest.raises(InputError, match="below 0 in row 1"):
        assess(X, TIME - 0.5 - TIME[0], event=SEEN)
