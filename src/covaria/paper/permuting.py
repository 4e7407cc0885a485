"""The p-value of the permutation method, which the paper does not define: another reading.

Altmann, Toloşi, Sander and Lengauer, "Permutation importance: a corrected feature importance
measure", Bioinformatics 26 (2010): the gain of a feature is compared with the gains of models
refitted to shuffled targets, p = (1 + how many are as large) / (1 + shuffles).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from covaria.assessment import WITHOUT_CHECKS, assess
from covaria.paper.kept import COUNTS, Results
from covaria.paper.studies import STUDIES
from covaria.randomness import seed_of, stream
from covaria.studies import metrics
from covaria.studies.grid import read_grid
from covaria.studies.task import Work

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
STUDY, METHOD = "boosting", "permutation"
SHUFFLES, RUNS, LEVEL = 39, 10, 0.05
MEAN_GAIN, REFITS = "its mean gain (ours)", "refits to shuffled targets"


def runs(seed: int = 0, repeats: int = RUNS) -> pd.DataFrame:
    """Return a row per run of models (a) to (d), with boosting: what the other reading selects."""
    import pandas as pd

    grid = read_grid(STUDIES[STUDY].grid("paper", seed))
    rows = [
        _run(Work.of(grid, cell), repeat) for cell in range(len(grid.cells))
        for repeat in range(repeats)
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(runs=repeats)


def _run(work: Work, repeat: int) -> dict[str, object]:
    """Return what is selected on the rows that the study draws."""
    seed = seed_of(work.seed, "study", *work.cell.source, repeat)
    X, y, active = work.rows(seed)
    names = [str(name) for name in X.columns]
    p = p_values(X, np.asarray(y, dtype=float), work.cell.learner, seed)
    chosen, matters = p < LEVEL, np.array([name in (active or ()) for name in names])
    counts = (chosen & matters, chosen & ~matters, ~chosen & ~matters, ~chosen & matters)
    return {
        "scenario": work.cell.scenario, "repeat": repeat,
        **{name: int(one.sum()) for name, one in zip(COUNTS, counts, strict=True)},
        "chosen": " ".join(str(at + 1) for at in np.flatnonzero(chosen)),
        "p_values": " ".join(f"{value:.4g}" for value in p),
    }  # fmt: skip


def p_values(X: Any, y: Array, learner: str, seed: int, shuffles: int = SHUFFLES) -> Array:
    """Return the share of shuffled targets whose model gains as much from each feature."""
    own = _gains(X, y, learner, seed)
    rng = stream(seed, "shuffled targets")
    others = np.array([_gains(X, rng.permutation(y), learner, seed) for _ in range(shuffles)])
    return np.asarray((1 + (others >= own).sum(axis=0)) / (1 + shuffles))


def _gains(X: Any, y: Array, learner: str, seed: int) -> Array:
    found = assess(
        X, y, learner=learner, methods=[METHOD], paper=True, seed=seed, progress=False,
        **WITHOUT_CHECKS,
    )  # fmt: skip
    return found.table["estimate"].to_numpy(dtype=float)


def readings(usual: Results, other: pd.DataFrame) -> dict[str, Results]:
    """Return the study's runs on the same rows, by each reading."""
    first = usual.of(usual.runs[usual.runs["repeat"] <= other["repeat"].max()])
    return {MEAN_GAIN: first, REFITS: first.of(_exchanged(first.runs, other))}


def _exchanged(runs: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Return runs in which the permutation method selects by the other reading."""
    import pandas as pd

    changed = [*COUNTS, *metrics.METRICS, "chosen", "p_values"]
    rates = metrics.rates(*(other[name].to_numpy(dtype=float) for name in COUNTS))
    new = other.assign(**rates)[["scenario", "repeat", *changed]]
    mine = runs["method"] == METHOD
    own = runs[mine].drop(columns=changed).merge(new, on=["scenario", "repeat"])
    return pd.concat([runs[~mine], own[list(runs.columns)]], ignore_index=True)
