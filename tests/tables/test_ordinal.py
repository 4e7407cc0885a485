"""Ordered classes count by their mean rank."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata

from covaria import InputError, assess
from covaria.tables.dataset import Dataset

rng = np.random.default_rng(8)
X = rng.normal(size=(150, 3))
GRADE = np.digitize(X[:, 0] + rng.normal(size=150), [-1, 0, 1])
WORDS = np.array(["poor", "fair", "good", "best"])[GRADE]
ORDERED = pd.Categorical(WORDS, ["poor", "fair", "good", "best"], ordered=True)


def test_ordered_classes_are_their_mean_ranks():
    data = Dataset.from_table(X, GRADE, task="ordinal")
    assert np.allclose(data.y, (rankdata(GRADE) - 0.5) / 150)
    assert data.classes == ()


@pytest.mark.parametrize("of", [lambda y: y, pd.Series])
def test_an_ordered_category_is_as_good_as_numbers(of):
    by_words, by_numbers = (
        assess(X, y, task="ordinal", learner="linear") for y in (of(ORDERED), GRADE**3)
    )
    pd.testing.assert_frame_equal(by_words.table, by_numbers.table)
    assert by_words.selected["gcm"] == ["x0"]


def test_a_category_that_nobody_has_changes_nothing():
    more = pd.Categorical(WORDS, ["awful", "poor", "fair", "good", "best"], ordered=True)
    left, right = (Dataset.from_table(X, y, task="ordinal").y for y in (more, ORDERED))
    assert (left == right).all()


def test_text_without_an_order_is_refused():
    with pytest.raises(InputError, match="ordered=True"):
        assess(X, WORDS, task="ordinal")
