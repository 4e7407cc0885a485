"""The story of model (e): who selects the surrogate, on the page and in the README."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from covaria.paper import surrogate
from covaria.paper.kept import KEPT, path_of, stamps
from covaria.paper.run import Run

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def shares():
    return surrogate.shares(Run(ROOT, results=ROOT / "results"))


@pytest.mark.parametrize(
    ("part", "study", "mode", "method"),
    [("GCM, the paper's mode", "surrogate", "paper", "gcm"),
     (surrogate.DEFAULT_PART, "surrogate", "default", "gcm+pcm")],
)  # fmt: skip
def test_shares_are_counts_of_x2_in_the_stored_rows(shares, part, study, mode, method):
    path = path_of(ROOT / "results", study, mode)
    rows = pd.read_csv(path, comment="#", dtype=dict.fromkeys(KEPT, str))
    rows = rows[(rows["method"] == method) & (rows["learner"].str.contains("boosting|auto"))]
    has = rows["chosen"].fillna("").str.split().map(lambda chosen: "2" in chosen)
    by_hand = has.groupby(rows["rho"]).mean()
    own = shares[(shares["part"] == part) & shares["label"].str.contains("boosting|auto")]
    assert own["share"].tolist() == pytest.approx(by_hand.tolist())
    assert int(own["runs"].sum()) == len(rows)


def test_the_readme_tells_the_numbers_of_the_page(shares):
    """Digits in the README are those of the stored results."""
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    gcm = shares[(shares["part"] == "GCM, the paper's mode") & (shares["label"] == "boosting")]
    told = [f"{share:.2f}".removeprefix("0") for share in gcm["share"].to_numpy()[-3:]]
    assert f"selects x2 in {told[0]}, {told[1]} and {told[2]} of 50 runs" in text
    own = shares[shares["part"] == surrogate.DEFAULT_PART]
    chosen, runs = round(float(np.dot(own["share"], own["runs"]))), int(own["runs"].sum())
    assert f"covaria's default selects it in {chosen} of {runs} runs" in text
    assert re.search(rf"\({own['runs'].min()} runs at each", text)


def test_the_default_of_the_story_is_stamped_with_its_commit():
    found = stamps(path_of(ROOT / "results", "surrogate", "default"))
    assert all(stamp.commit and stamp.cpu_seconds for stamp in found)
