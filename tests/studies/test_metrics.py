"""Metrics against counts by hand, and guessing against the exact numbers."""

import numpy as np
import pandas as pd
import pytest

from covaria.errors import InputError
from covaria.studies import metrics


def a_table(chosen):
    """Return the long table of runs: {(method, repeat): features chosen}, x1 and x2 matter."""
    rows = [
        {
            "scenario": "s", "setting": "n_rows=10", "learner": "linear", "options": "splits=5",
            "repeat": repeat, "method": method, "feature": f"x{j}", "active": j <= 2,
            "estimate": 1.0, "p_value": 0.01 * j + 0.1 * repeat, "selected": j in features,
            "status": "ok", "seconds": 2.0 + repeat,
        }
        for (method, repeat), features in chosen.items()
        for j in range(1, 6)
    ]  # fmt: skip
    return pd.DataFrame(rows)


CHOSEN = {
    ("gcm", 0): {1, 2}, ("gcm", 1): {1, 3}, ("gcm", 2): set(),
    ("loco", 0): {1}, ("loco", 1): {3, 4, 5}, ("loco", 2): {1, 2, 3, 4, 5},
}  # fmt: skip


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (("gcm", 0), (2, 0, 3, 0, 1.0, 1.0, 1.0, 1.0, 0.0)),
        (("gcm", 1), (1, 1, 2, 1, 0.6, 0.5, 2 / 3, 0.5, 0.5)),
        (("gcm", 2), (0, 0, 3, 2, 0.6, 0.0, 1.0, 0.0, 0.0)),
        (("loco", 0), (1, 0, 3, 1, 0.8, 0.5, 1.0, 2 / 3, 0.0)),
        (("loco", 1), (0, 3, 0, 2, 0.0, 0.0, 0.0, 0.0, 1.0)),
        (("loco", 2), (2, 3, 0, 0, 0.4, 1.0, 0.0, 4 / 7, 0.6)),
    ],
)
def test_the_metrics_of_a_run_are_those_counted_by_hand(run, expected):
    found = metrics.runs(a_table(CHOSEN)).set_index(["method", "repeat"]).loc[run]
    names = ["tp", "fp", "tn", "fn", *metrics.METRICS]
    assert found[names].astype(float).tolist() == pytest.approx(expected)
    assert found["seconds"] == 2.0 + run[1]


def test_the_summary_is_mean_sd_and_error_over_runs():
    found = metrics.summary(metrics.runs(a_table(CHOSEN)))
    row = found[(found["method"] == "loco") & (found["metric"] == "accuracy")].iloc[0]
    values = [0.8, 0.0, 0.4]
    assert row["mean"] == pytest.approx(np.mean(values))
    assert row["sd"] == pytest.approx(np.std(values, ddof=1))
    assert row["se"] == pytest.approx(np.std(values, ddof=1) / np.sqrt(3))
    guess = found[(found["method"] == "guess") & (found["metric"] == "f1")].iloc[0]
    assert guess["mean"] == metrics.random_guess(5, 2)["f1"][0]


def test_paired_differences_pair_runs_on_the_same_rows():
    found = metrics.paired(metrics.runs(a_table(CHOSEN)), "gcm", "loco").set_index("metric")
    differences = [1 - 0.8, 0.6 - 0.0, 0.6 - 0.4]
    assert found.loc["accuracy", "mean"] == pytest.approx(np.mean(differences))
    assert found.loc["accuracy", "se"] == pytest.approx(np.std(differences, ddof=1) / np.sqrt(3))
    assert found.loc["seconds", "mean"] == 0
    with pytest.raises(InputError, match="no method 'lasso'"):
        metrics.paired(metrics.runs(a_table(CHOSEN)), "gcm", "lasso")


def test_p_values_have_a_mean_and_sd_per_feature():
    found = metrics.features(a_table(CHOSEN)).set_index(["method", "feature"])
    assert found.loc[("gcm", "x2"), "p_mean"] == pytest.approx(0.12)
    assert found.loc[("gcm", "x2"), "p_sd"] == pytest.approx(0.1)
    assert found.loc[("gcm", "x3"), "selected"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("n_features", "n_active", "f1", "fdr"),
    [(20, 8, 0.4387, 0.6), (20, 4, 0.2826, 0.8), (20, 5, 0.3294, 0.75), (500, 40, 0.1379, 0.92)],
)
def test_guessing_has_the_exact_numbers_of_the_specification(n_features, n_active, f1, fdr):
    found = metrics.random_guess(n_features, n_active)
    assert found["f1"][0] == pytest.approx(f1, abs=5e-5)
    assert found["fdr"][0] == pytest.approx(fdr, abs=5e-5)
    for name in ("accuracy", "recall", "specificity"):
        assert found[name][0] == pytest.approx(0.5, abs=1e-12)
    simulated = metrics.simulated_guess(n_features, n_active, draws=20_000)
    for name, (mean, sd) in found.items():
        assert simulated[name][0] == pytest.approx(mean, abs=4.5 * sd / np.sqrt(20_000))
        assert simulated[name][1] == pytest.approx(sd, rel=0.05)


def test_guessing_is_what_every_choice_of_a_small_table_averages_to():
    everything = [
        {j + 1 for j in range(5) if number >> j & 1} for number in range(2**5)
    ]  # fmt: skip
    table = metrics.runs(a_table({("m", k): chosen for k, chosen in enumerate(everything)}))
    for name, (mean, sd) in metrics.random_guess(5, 2).items():
        assert table[name].mean() == pytest.approx(mean)
        assert table[name].std(ddof=0) == pytest.approx(sd)
