"""Where the real files are, if they are here."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data():
    """Return the folder with the real files, or skip with the reason."""
    named = os.environ.get("RESIDUA_DATA", "")
    if not named or not Path(named).is_dir():
        pytest.skip("RESIDUA_DATA does not name a folder with the real tables")
    return Path(named)
