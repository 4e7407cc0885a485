"""What predictions cost: each loss is the one scikit-learn has, row by row."""

import numpy as np
import pytest
from sklearn import metrics

from covaria import InputError, assess
from covaria.tables.losses import read_loss

rng = np.random.default_rng(3)
Y = rng.poisson(2.0, size=60) * 1.0
MEAN = rng.uniform(0.5, 4.0, size=60)
X = rng.normal(size=(120, 3))
NORMAL = X[:, 0] + rng.normal(size=120)
COUNTS = rng.poisson(np.exp(0.6 * X[:, 0])) * 1.0
PER_ROW = "returns one number a row, 0 or more"


def bound(given, y):
    return read_loss(given).of("The target 'y'", y, None, 0)


@pytest.mark.parametrize(
    ("name", "y", "metric"),
    [
        ("poisson", Y, metrics.mean_poisson_deviance),
        ("gamma", Y + 1, metrics.mean_gamma_deviance),
        ("absolute", Y, metrics.mean_absolute_error),
        ("neg_mean_absolute_error", Y, metrics.mean_absolute_error),
        ("neg_mean_squared_log_error", Y, metrics.mean_squared_log_error),
        (metrics.make_scorer(metrics.mean_pinball_loss, greater_is_better=False, alpha=0.9), Y,
         lambda y, p: metrics.mean_pinball_loss(y, p, alpha=0.9)),
        (metrics.mean_poisson_deviance, Y, metrics.mean_poisson_deviance),
    ],
)  # fmt: skip
def test_the_mean_of_the_rows_losses_is_the_metric_of_scikit_learn(name, y, metric):
    rows = bound(name, y).rows(y, MEAN)
    assert rows.shape == y.shape
    assert rows.mean() == pytest.approx(metric(y, MEAN), rel=1e-12)


def test_a_deviance_is_zero_where_the_prediction_is_right():
    assert np.allclose(bound("poisson", Y).rows(Y + 1, Y + 1), 0)
    assert np.allclose(bound("gamma", Y + 1).rows(Y + 1, Y + 1), 0)


def test_a_mean_below_zero_is_lifted_to_a_hundredth_of_the_mean_of_y():
    loss = bound("poisson", Y)
    assert np.allclose(loss.rows(Y, np.full(60, -3.0)), loss.rows(Y, np.full(60, Y.mean() / 100)))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("possion", "Did you mean 'poisson'"),
        ("poisson(3)", "cannot be read"),
        ("r2", "no mean over rows"),
        (3, PER_ROW),
        (lambda y: y, PER_ROW),
        (lambda y, p: -np.abs(y - p), "negative"),
        (lambda y, p: np.abs(y - p)[:5], PER_ROW),
        ("gamma", "row 1: loss='gamma' is for numbers above 0"),
        ("neg_log_loss", "is for a target of classes"),
    ],
)
def test_a_loss_that_cannot_be_is_one_sentence(given, said):
    y = np.where(np.arange(len(COUNTS)) == 0, 0.0, COUNTS)
    with pytest.raises(InputError, match=said):
        assess(X, y, learner="linear", loss=given)


def test_a_loss_of_numbers_is_not_for_classes():
    with pytest.raises(InputError, match=r"target of numbers, and the target 'y' has classes"):
        assess(X, COUNTS > 1, learner="linear", loss="poisson")
    for scorer in ("neg_mean_absolute_error", "roc_auc"):
        with pytest.raises(InputError, match="no mean over rows of what chances of classes cost"):
            assess(X, COUNTS > 1, learner="linear", loss=scorer)


CHANCES = rng.dirichlet(np.ones(3), size=60)
CODES = rng.integers(0, 3, size=60) * 1.0


@pytest.mark.parametrize(
    ("scorer", "metric"),
    [
        ("neg_brier_score", metrics.brier_score_loss),
        (metrics.make_scorer(metrics.brier_score_loss), metrics.brier_score_loss),
        ("accuracy", lambda y, p: 1 - metrics.accuracy_score(y, p.argmax(axis=1))),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_mean_of_the_rows_losses_of_classes_is_the_scorer_of_scikit_learn(
    scorer, metric, n_classes
):
    y, chances = np.minimum(CODES, n_classes - 1), CHANCES
    if n_classes == 2:
        chances = np.column_stack([CHANCES[:, 0], CHANCES[:, 1:].sum(axis=1)])
    rows = read_loss(scorer).of("The target 'y'", y, None, n_classes).rows(y, chances)
    theirs = chances[:, 1] if n_classes == 2 and metric is metrics.brier_score_loss else chances
    assert rows.mean() == pytest.approx(metric(y, theirs), rel=1e-12)


def test_the_scorer_of_the_log_loss_is_what_classes_have_anyway():
    usual, named = (
        assess(X, NORMAL > 0, learner="linear", methods="gcm,loco", loss=loss, check=False)
        for loss in (None, "neg_log_loss")
    )
    assert usual.table.equals(named.table)


GAINS = "loco,dropout,permutation,cpi"


@pytest.mark.parametrize("learner", ["linear", "boosting(trees=20)", "splines", "kernel"])
def test_squared_error_given_as_a_function_is_squared_error(learner):
    usual, own = (
        assess(X, NORMAL, learner=learner, methods=f"gcm,{GAINS}", loss=loss, check=False)
        for loss in (None, lambda y, p: (y - p) ** 2)
    )
    # Of a loss that is not known, few rows do not widen the spread.
    assert np.allclose(usual.table["estimate"], own.table["estimate"], atol=1e-7)


def test_log_loss_given_as_a_function_is_log_loss():
    def log_loss(y, chances):
        return -np.log(chances[np.arange(len(y)), y.astype(int)])

    usual, own = (
        assess(X, NORMAL > 0, learner="linear", methods="gcm,loco", loss=loss, check=False)
        for loss in (None, log_loss)
    )
    assert np.allclose(usual.table["estimate"], own.table["estimate"])


def test_a_loss_leaves_residuals_as_they_are_and_adds_loco_to_the_default():
    usual = assess(X, COUNTS, learner="linear")
    counts = assess(X, COUNTS, learner="linear", loss="poisson")
    assert list(counts.scores) == [*usual.scores, "loco"]
    assert all((usual.scores[name] == counts.scores[name]).all() for name in usual.scores)
    assert counts.about.effects["loco"] == "share of the Poisson deviance explained"


def test_locos_gain_is_the_difference_of_two_models_deviances():
    result = assess(X, COUNTS, learner="linear", methods="gcm,loco", loss="poisson")
    left = result.residuals
    deviance = bound("poisson", COUNTS)
    full = deviance.rows(COUNTS, COUNTS - left["y_given_all"])
    reduced = deviance.rows(COUNTS, COUNTS - left["y_given_rest"][:, 0])
    assert np.allclose(result.scores["loco"][:, 0], reduced - full)


def test_lazy_has_squared_error_alone():
    with pytest.raises(InputError, match="squared error alone"):
        assess(X, COUNTS, learner="network", methods="lazy", loss="poisson")
