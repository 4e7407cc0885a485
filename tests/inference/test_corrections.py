"""From p-values to chosen features."""

import csv
from pathlib import Path

import numpy as np
import pytest

from covaria.errors import InputError
from covaria.inference.corrections import CORRECTIONS, adjust, strongest

FIXTURES = Path(__file__).parents[1] / "fixtures"


def test_adjusted_p_values_equal_those_of_r():
    with (FIXTURES / "r_p_adjust.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    p = np.array([float(row["p_value"]) for row in rows])
    for ours, theirs in {
        "bh": "BH",
        "by": "BY",
        "holm": "holm",
        "bonferroni": "bonferroni",
    }.items():
        assert np.allclose(adjust(p, ours), [float(row[theirs]) for row in rows], rtol=1e-12)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_adjusting_never_lowers_a_p_value_nor_changes_their_order(correction):
    p = np.random.default_rng(0).uniform(size=50)
    adjusted = adjust(p, correction)
    assert (adjusted >= p - 1e-15).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()


def test_storey_is_bh_times_the_share_of_useless_features():
    p = np.array([0.001, 0.01, 0.02, 0.3, 0.6, 0.9, 0.04, 0.03])
    share = (1 + 2) / (0.5 * 8)
    assert adjust(p, "storey") == pytest.approx(np.minimum(1, share * adjust(p, "bh")))
    assert adjust(np.full(4, 0.9), "storey") == pytest.approx(0.9)  # never beyond BH


def test_storey_counts_the_p_values_above_one_half():
    p = np.array([0.001, 0.01, 0.5, 0.5, 0.2, 0.1, 0.3, 0.4])
    assert adjust(p, "storey") == pytest.approx(1 / (0.5 * 8) * adjust(p, "bh"))


def test_holm_rejects_what_stepping_down_by_hand_rejects():
    p = np.array([0.03, 0.001, 0.012, 0.012, 0.6])
    adjusted = adjust(p, "holm")
    for level in (0.004, 0.01, 0.037, 0.05, 0.061, 0.2, 0.7):
        rejected = np.zeros(5, dtype=bool)
        for left, at in zip(range(5, 0, -1), np.argsort(p), strict=True):
            if p[at] * left > level:
                break
            rejected[at] = True
        assert ((adjusted <= level) == rejected).all()


def test_no_correction_leaves_p_values_as_they_are_and_no_adjusted_one_is_above_one():
    p = np.array([0.2, 0.9, 0.6])
    assert adjust(p, "none").tolist() == p.tolist()
    assert adjust(p, "bonferroni") == pytest.approx([0.6, 1.0, 1.0])


@pytest.mark.parametrize("correction", ["bhh", "", None, ["bh"], 5])
def test_a_correction_that_is_not_there_is_refused_with_those_that_are(correction):
    with pytest.raises(InputError, match="is not known"):
        adjust(np.array([0.1]), correction)
    with pytest.raises(InputError, match="Did you mean 'holm'"):
        adjust(np.array([0.1]), "hollm")


def test_the_strongest_are_those_of_the_smallest_p_values_then_of_the_largest_statistics():
    p = np.array([0.2, 1e-300, 1e-300, 0.1, np.nan])
    z = np.array([1.0, -40.0, 38.0, 1.6, 99.0])
    for count, chosen in {0: [], 1: [1], 2: [1, 2], 3: [1, 2, 3], 4: [0, 1, 2, 3]}.items():
        assert np.flatnonzero(strongest(p, z, count)).tolist() == chosen


def test_without_p_values_the_strongest_are_those_of_the_largest_statistics_but_zero():
    z, none = np.array([0.5, 0.0, -2.0, 1.0, -1.0]), np.full(5, np.nan)
    assert strongest(none, z, 2).tolist() == [False, False, True, True, False]
    assert strongest(none, z, 5).tolist() == [True, False, True, True, True]
    known = np.array([0.9, 1.0, np.nan, 1.0, 0.99])
    assert strongest(known, z, 2).tolist() == [True, False, False, False, True]
