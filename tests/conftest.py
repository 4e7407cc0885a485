"""Data that many tests share."""

import os
from pathlib import Path

import numpy as np
import pytest

collect_ignore_glob = ["fixtures/*"]  # the scripts that made them need what tests do not


@pytest.fixture(scope="session")
def small_data():
    """Return 120 rows of 4 features, two of which matter."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(120, 4))
    return X, 2 * X[:, 0] - X[:, 1] + rng.normal(size=120)


@pytest.fixture(scope="session")
def real_data():
    """Return the folder with the real tables, or skip with the reason."""
    named = os.environ.get("COVARIA_DATA", "")
    if not named or not Path(named).is_dir():
        pytest.skip("COVARIA_DATA does not name a folder with the real tables")
    return Path(named)
