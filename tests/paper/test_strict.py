"""The paper's mode draws new bags for every model: what that gives is what R's gbm gives."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from covaria.paper.run import read_results
from covaria.studies.metrics import METRICS, rates

ROOT = Path(__file__).parents[2]
COUNTS = ["tp", "fp", "tn", "fn"]
OVER = {"surrogate": "rho", "heavy_tails": "df"}
# Two of 48 differences this large, in Monte-Carlo errors, come about once in a hundred times.
MOST = 3.5


@pytest.fixture(scope="module")
def in_r():
    table = pd.read_csv(ROOT / "tests" / "fixtures" / "r_gbm_paper.csv")
    found = rates(*(table[name].to_numpy(dtype=float) for name in COUNTS))
    return table.assign(**{name: found[name] for name in METRICS})


def ours(model):
    runs = read_results(ROOT / "results", model, "paper").runs
    return runs[runs["learner"].str.startswith("boosting")]


def gaps(in_r, model, metric):
    """Return ours less R's, in standard errors of that, for every value and method."""
    found = []
    theirs = in_r[in_r["model"] == model]
    for (value, method), part in theirs.groupby(["value", "method"]):
        mine = ours(model)
        mine = mine[(mine[OVER[model]] == value) & (mine["method"] == method)][metric]
        error = np.sqrt(part[metric].var(ddof=1) / len(part) + mine.var(ddof=1) / len(mine))
        found.append((mine.mean() - part[metric].mean()) / max(error, 1e-9))
    return np.array(found)


@pytest.mark.parametrize("model", ["surrogate", "heavy_tails"])
@pytest.mark.parametrize("metric", ["f1", "fdr"])
def test_f1_and_fdr_are_those_of_r_within_monte_carlo_error(in_r, model, metric):
    found = gaps(in_r, model, metric)
    assert len(found) == 12
    assert np.abs(found).max() < MOST
    assert np.sqrt(np.mean(found**2)) < 1.6  # 1 on average, were they the same


def test_the_surrogate_is_selected_as_often_as_in_r(in_r):
    theirs = in_r[(in_r["model"] == "surrogate") & (in_r["method"] == "gcm")]
    runs = ours("surrogate")
    runs = runs[runs["method"] == "gcm"]
    mine = runs.assign(x2=[int("2" in str(c).split()) for c in runs["chosen"]])
    a, b = (t.groupby(v)["x2"].mean() for t, v in ((theirs, "value"), (mine, "rho")))
    n = theirs.groupby("value").size().min()
    assert np.abs(a.to_numpy() - b.to_numpy()).max() < 4 * np.sqrt(0.25 / n + 0.25 / 50)
    assert b.iloc[-1] > 0.9
