"""What stands beside the claims: other readings of open settings, and where numbers are from."""

import numpy as np
import pandas as pd
import pytest

from covaria.paper import permuting
from covaria.paper.evidence import Evidence
from covaria.paper.kept import Results, Stamp, write_table
from covaria.paper.provenance import provenance
from covaria.paper.registry import Verdict
from covaria.paper.studies import OPEN, STUDIES
from covaria.randomness import stream


def test_a_gain_that_no_shuffled_target_reaches_has_the_smallest_p_value():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 3)), columns=["x1", "x2", "x3"])
    y = 3 * X["x1"].to_numpy() + rng.normal(size=80)
    p = permuting.p_values(X, y, "linear", seed=1, shuffles=9)
    assert p[0] == pytest.approx(0.1)
    assert set(np.round(10 * p)) <= set(range(1, 11))


def test_p_values_of_features_without_effect_are_uniform():
    found = []
    for k in range(12):
        rng = stream(k, "null")
        X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["x1", "x2", "x3"])
        found += permuting.p_values(X, rng.normal(size=40), "linear", k, shuffles=9).tolist()
    # Ten equal chances: mean .55, sd .287.
    assert np.mean(found) == pytest.approx(0.55, abs=4 * 0.287 / np.sqrt(len(found) / 3))


def runs():
    rows = [
        {"scenario": "linear", "setting": "", "learner": "boosting", "options": "", "repeat": at,
         "method": method, "tp": 2, "fp": 1, "tn": 11, "fn": 6, "accuracy": 0.65, "recall": 0.25,
         "specificity": 11 / 12, "f1": 4 / 11, "fdr": 1 / 3, "failed": 0, "seconds": 1.0,
         "chosen": "1 2 9", "p_values": "1"}
        for at in range(2) for method in ("gcm", "permutation")
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_another_reading_changes_the_permutation_method_alone():
    other = pd.DataFrame(
        {"scenario": "linear", "repeat": [0], "tp": 8, "fp": 0, "tn": 12, "fn": 0,
         "chosen": "1 2 3 4 5 6 7 8", "p_values": "0"}
    )  # fmt: skip
    usual, refits = permuting.readings(Results(runs()), other).values()
    assert set(usual.runs["repeat"]) == {0}
    by_method = refits.runs.set_index("method")
    assert by_method.loc["permutation", ["tp", "recall", "fdr"]].tolist() == [8, 1, 0]
    assert by_method.loc["gcm", "recall"] == 0.25


def test_where_both_are_as_good_as_can_be_the_value_is_passed_over():
    parts = []
    for rho, gcm, loco in ((0.0, 1.0, 1.0), (0.3, 0.9, 0.5)):
        own = runs().assign(rho=rho, setting=str(rho))
        own["recall"] = [gcm if m == "gcm" else loco for m in own["method"]]
        parts.append(own.replace({"method": {"permutation": "loco"}}))
    evidence = Evidence("fig5", Results(pd.concat(parts)))
    evidence.everywhere("recall", "gcm", "loco", "rho", [0.0, 0.3])
    (claim,) = evidence.claims
    assert claim.verdict is Verdict.HELD
    assert claim.numbers == "1.00 vs 1.00, .900 vs .500; least clear at ρ = 0.3: .400 ± .00"


def test_every_open_setting_has_a_simulation_that_varies_it():
    for settings in OPEN.values():
        for setting in settings:
            grid = STUDIES[setting.study].grid("paper")
            if setting.by == "learner":
                assert len(grid["learner"]) > 1
            else:
                assert all(len(one[setting.by]) >= 1 for one in grid["scenario"])


def test_every_stored_table_is_listed_with_what_made_it(tmp_path):
    stamp = Stamp("covaria paper fig2", 3, {"covaria": "1", "torch": "2"}, "abc", 4, 1234.5)
    write_table(tmp_path, "fig2", pd.DataFrame({"runs": [1]}), stamp)
    (tmp_path / "other.csv").write_text("a\n1\n")
    assert "| fig2.csv | `covaria paper fig2` | 3 | abc | 4 | 1,234 | A |" in provenance(tmp_path)
    assert "- A: covaria 1, torch 2" in provenance(tmp_path)
    assert "other.csv" not in provenance(tmp_path)
    assert provenance(tmp_path / "nowhere") == ""
