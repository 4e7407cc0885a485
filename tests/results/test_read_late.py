"""Tables of a result are made when they are read, and say what they said."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import covaria
from covaria.results.result import Result
from covaria.tables.tidy import Tidy, stacked


@pytest.fixture
def result():
    X, y = covaria.draw("additive", n_rows=200, seed=0)
    return covaria.assess(X, y, learner="linear", splits="none")


def are_unmade(result):
    return [name for name, part in vars(result).items() if isinstance(part, Tidy)]


def test_no_frame_is_made_before_it_is_read(result):
    assert are_unmade(result) == ["table", "quality", "cost", "groups"]
    assert isinstance(result.table, pd.DataFrame)
    assert are_unmade(result) == ["quality", "cost", "groups"]


def test_a_table_is_made_once_so_that_what_people_add_to_it_stays(result):
    result.table["rank"] = 1
    assert "rank" in result.table


def test_copies_and_pickles_have_the_same_tables(result):
    for other in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert other == result
    assert result.but(findings=()).table.equals(result.table)


def test_a_result_can_be_made_of_frames(result):
    parts = {"table": result.table, "quality": result.quality}
    made = Result(**parts, scores=result.scores, rows=result.rows, about=result.about)
    assert made.table is result.table
    assert made.selected == result.selected
    assert list(made.cost) == ["stage", "purpose", "learner", "models", "seconds"]
    assert len(made.groups) == 0


def test_assess_on_arrays_needs_no_pandas_until_a_table_is_read():
    script = (
        "import sys, numpy as np, covaria\n"
        "x = np.random.default_rng(0).normal(size=(60, 3))\n"
        "covaria.assess(x, x[:, 0], learner='linear', splits='none', progress=False)\n"
        "print('pandas' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_tables_below_each_other_have_nan_where_one_lacks_a_column():
    one = Tidy({"method": ["gcm"], "p": np.array([0.5]), "error": np.array([2.0])})
    two = Tidy({"method": ["loco", "loco"], "p": np.array([0.1, 0.2])})
    frames = pd.concat([one.frame(), two.frame()], ignore_index=True)
    pd.testing.assert_frame_equal(stacked([one, two]).frame(), frames)


def test_a_table_without_rows_has_its_columns():
    assert list(Tidy({"a": [], "b": []}).frame()) == ["a", "b"]
