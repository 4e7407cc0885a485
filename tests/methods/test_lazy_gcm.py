"""Lazy-GCM: two networks a fold, and what GCM would say of 2p."""

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed

from covaria import assess
from covaria.assessment import prepare
from covaria.errors import InputError
from covaria.nuisance.engines import plain
from covaria.nuisance.engines.lazy import lazy_predictions
from covaria.nuisance.masked import left_of_features
from covaria.nuisance.plan import Task
from neighbours import neighbours

pytest.importorskip("torch")

NETWORK = "network(epochs=20, batch=32, lr=0.01)"


def table(n_rows=150, seed=0):
    """Return a table with a text column of four levels, and a target."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["a", "b", "c"])
    X["type"] = rng.choice(["p", "q", "r", "s"], n_rows)
    return X, 2 * X["a"] + X["b"] + 3 * (X["type"] == "p") + rng.normal(size=n_rows)


def p_values(seed, learner, correlation, n_rows=400, **options):
    X, y = neighbours(seed, correlation, n_rows)
    options = {"methods": ["lazy_gcm"], "check": False, **options}
    return assess(X, y, learner=learner, seed=seed, **options).table["p_value"].to_numpy()


def test_scores_are_products_of_the_residuals_of_the_two_networks():
    X, y = neighbours(0, 0.7, 150)
    options = {"learner": NETWORK, "methods": ["lazy_gcm"], "splits": 0.4}
    plan = prepare(X, y, **options).plan(0)
    data, (train, test) = plan.data, plan.folds[0]
    model = plain._fitted(plan, Task("y_given_all", 0), np.arange(6), data.y, 0)
    owned = [*([j] for j in range(6)), ()]
    answers = lazy_predictions(model, data.X[train], data.y[train], data.X[test], owned)
    of_y = (data.y[test, None] - answers)[np.argsort(test), :-1]
    of_x, failures, models = left_of_features(plan, np.sort(test))
    assert (failures, models) == ({}, 1)
    assert assess(X, y, **options).scores["lazy_gcm"] == pytest.approx(of_x * of_y, abs=1e-7)


def test_two_networks_are_fitted_a_fold():
    result = assess(*table(), learner=NETWORK, methods=["lazy_gcm", "gcm"], splits=3, check=False)
    # GCM has a network for each column of the text: of its four levels, three.
    assert result.about["fits"] == {"lazy_gcm": 3 * 2, "gcm": 3 * (4 + 6)}
    assert result.cost["models"].sum() == 3 * (2 + 4 + 6)
    assert result.about["seconds"]["lazy_gcm"] > 0


def test_lazy_vi_shares_its_network_of_y():
    result = assess(*table(), learner=NETWORK, methods="lazy, lazy_gcm", splits=2, check=False)
    alone = assess(*table(), learner=NETWORK, methods="lazy_gcm", splits=2, check=False)
    assert result.cost["models"].sum() == alone.cost["models"].sum() == 2 * 2
    assert (result.scores["lazy_gcm"] == alone.scores["lazy_gcm"]).all()


def test_a_text_column_is_one_feature():
    rows = assess(*table(), learner=NETWORK, methods=["lazy_gcm"]).table.set_index("feature")
    assert list(rows.index) == ["a", "b", "c", "type"]
    assert rows.loc["type", "df"] == 3
    assert rows.loc[["a", "b", "type"], "p_value"].max() < 0.01


def test_weights_gaps_clusters_and_constants_are_taken():
    X, y = table()
    X.loc[::7, "b"] = np.nan
    X["same"] = 1.0
    options = {
        "sample_weight": np.random.default_rng(0).integers(0, 3, len(X)),
        "clusters": np.arange(len(X)) // 3,
    }
    rows = assess(X, y, learner=NETWORK, methods=["lazy_gcm"], **options).table.set_index("feature")
    assert rows.loc["same", "status"] == "constant"
    assert rows.loc["a", "p_value"] < 0.01
    assert not rows.isna().any(axis=None)


def test_a_feature_alone_is_tested_against_means():
    X, y = neighbours(0, 0.0, 150)
    result = assess(X[:, :1], y, learner=NETWORK, methods=["lazy_gcm"], check=False)
    found = result.table["effect"][0]
    assert found == pytest.approx(np.corrcoef(X[:, 0], y)[0, 1], abs=0.03)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"learner": "linear"}, "lazy_gcm needs learner='network'.* Use gcm with other learners"),
        ({"splits": "none"}, "lazy_gcm .* needs held-out rows"),
        ({"methods": "lazy_gcm, lazy(choose=3.0)"}, "Ask for lazy once"),
        ({"methods": "lazy_gcm(choose=3.0)"}, "'lazy_gcm' has no settings of its own"),
        ({"learner": "network(epochs=3, lr=1e99)"}, "No feature could be tested with Network"),
    ],
)
def test_what_it_is_not_for_gets_a_sentence(options, sentence):
    with pytest.raises(InputError, match=sentence):
        assess(*table(60), **{"learner": NETWORK, "methods": "lazy_gcm", **options})


def test_classes_get_a_sentence():
    X, y = table(60)
    with pytest.raises(InputError, match=r"lazy_gcm is for a target of numbers"):
        assess(X, np.where(y > 0, "yes", "no"), learner=NETWORK, methods=["lazy_gcm"])


def test_useless_neighbours_are_rarely_called_useful():
    p = np.array([p_values(seed, "network(epochs=30)", 0.7, 150, splits=3) for seed in range(8)])
    # A true rate of .05 leaves more than 6 of 40 once in 300 times.
    assert (p[:, 1:] < 0.05).sum() <= 6
    assert (p[:, 0] < 0.05).all()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("correlation", [0.0, 0.7, 0.9])
@pytest.mark.parametrize("splits", [3, 5])
def test_the_level_over_1000_tests(correlation, splits):
    runs = Parallel(n_jobs=2)(
        delayed(p_values)(seed, "network", correlation, splits=splits) for seed in range(200)
    )
    p = np.array(runs)
    rate = (p[:, 1:] < 0.05).mean()
    print(splits, correlation, rate)
    # A true rate of .05 leaves .07 of 1,000 once in 400 times.
    assert rate <= 0.07
    assert (p[:, 0] < 0.05).all()
