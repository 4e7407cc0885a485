"""A result whose every text is hostile, and a browser to look at its page with."""

import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from covaria import assess
from covaria.results.findings import note
from hostile_strings import HOSTILE


@pytest.fixture(scope="session")
def hostile_table():
    """Return a table whose columns, levels and target have hostile names."""
    rng = np.random.default_rng(0)
    numbers = {name: rng.normal(size=240) for name in HOSTILE[:56]}
    frame = pd.DataFrame(numbers)
    frame[HOSTILE[56]] = np.array(HOSTILE)[rng.integers(0, 60, 240)]  # every string is a level
    frame[HOSTILE[58]] = rng.normal(size=240)
    frame[HOSTILE[59]] = rng.normal(size=240)
    frame[HOSTILE[57]] = 2 * frame[HOSTILE[0]] + rng.normal(size=240)
    return frame


@pytest.fixture(scope="session")
def hostile_result(hostile_table):
    """Return a result in which features, groups, learner, errors and alerts are hostile."""
    groups = {"<b>group</b>" + HOSTILE[0]: [HOSTILE[1], HOSTILE[2]]}
    result = assess(
        hostile_table, HOSTILE[57], learner="linear", methods=["gcm", "loco", "lasso"],
        groups=groups,
    )  # fmt: skip
    table = result.table.copy()
    for at, text in enumerate(HOSTILE[:20]):
        table.loc[at, "status"] = f"failed: {text}"
    about = {
        **result.about,
        "source": HOSTILE[4],
        "command": f"covaria assess '{HOSTILE[7]}'",
        "learner_text": HOSTILE[16],
        "classes": list(HOSTILE),
        "splits": HOSTILE[2],
        "engine": HOSTILE[3],
    }
    quality = result.quality.assign(learner=HOSTILE[10], warning=HOSTILE[18])
    return replace(
        result,
        table=table,
        about=about,
        quality=quality,
        findings=(*result.findings, *map(note, HOSTILE)),
    )


@pytest.fixture(scope="session")
def browser():
    """Return Debian's chromium, or skip with the reason there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium: apt-get install chromium")
    with playwright.sync_playwright() as started:
        # A container's root has no user namespace to make a sandbox of.
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
