"""How often useless features are found, for every kind of target: the table of docs/targets.md.

Of five features that follow each other (correlation .6) the first acts on y, the second and third
are tested. `python tools/target_levels.py KIND LEARNER RUNS` prints a row of the table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import covaria

Array = NDArray[np.float64]
Drawn = dict[str, object]
N_ROWS, N_FEATURES, CORRELATION, LEVEL = 400, 5, 0.6, 0.05
USELESS = ["x1", "x2"]


def features(rng: np.random.Generator, n_rows: int = N_ROWS) -> Array:
    """Return columns of which each goes with the one before."""
    X = rng.normal(size=(n_rows, N_FEATURES))
    for j in range(1, N_FEATURES):
        X[:, j] = CORRELATION * X[:, j - 1] + np.sqrt(1 - CORRELATION**2) * X[:, j]
    return X


def poisson(X: Array, rng: np.random.Generator) -> Drawn:
    """Counts, of which most are small."""
    return {"y": rng.poisson(np.exp(0.5 * X[:, 0])) * 1.0, "loss": "poisson"}


def gamma(X: Array, rng: np.random.Generator) -> Drawn:
    """Positive numbers with a long tail."""
    return {"y": np.exp(0.5 * X[:, 0]) * rng.gamma(1.5, size=len(X)), "loss": "gamma"}


def absolute(X: Array, rng: np.random.Generator) -> Drawn:
    """Numbers with heavy tails, by their absolute error."""
    return {"y": X[:, 0] + rng.standard_t(3, size=len(X)), "loss": "absolute"}


def quantile(X: Array, rng: np.random.Generator) -> Drawn:
    """The 80% quantile, of numbers whose spread depends on the feature that acts."""
    return {"y": X[:, 0] + np.exp(0.3 * X[:, 0]) * rng.normal(size=len(X)), "loss": "pinball(0.8)"}


def ordinal(X: Array, rng: np.random.Generator) -> Drawn:
    """Four ordered classes."""
    grade = np.digitize(X[:, 0] + rng.logistic(size=len(X)), [-1.5, 0.0, 2.0])
    return {"y": grade, "task": "ordinal"}


def several(X: Array, rng: np.random.Generator) -> Drawn:
    """Two targets that share their noise."""
    noise = rng.normal(size=len(X))
    other = 0.7 * noise + rng.normal(size=len(X))
    return {"y": np.column_stack([X[:, 0] + noise, np.exp(0.5 * X[:, 0]) + other])}


def survival(X: Array, rng: np.random.Generator) -> Drawn:
    """Proportional hazards, censored whatever the features are."""
    return _censored(_times(X, rng), rng.exponential(1.5, size=len(X)))


def censored_by_feature(X: Array, rng: np.random.Generator) -> Drawn:
    """Proportional hazards; a useless feature decides how long rows are seen."""
    return _censored(_times(X, rng), rng.exponential(1.5 * np.exp(-1.0 * X[:, 1] + 0.5 * X[:, 0])))


def crossing_hazards(X: Array, rng: np.random.Generator) -> Drawn:
    """Hazards that are not proportional, censored by the feature that acts."""
    shape = np.where(X[:, 0] > 0, 2.0, 0.7)
    return _censored(rng.weibull(shape), rng.exponential(1.5 * np.exp(0.5 * X[:, 0])))


def crossing_and_censored_by_feature(X: Array, rng: np.random.Generator) -> Drawn:
    """Neither holds: hazards cross, and a useless feature decides how long rows are seen."""
    shape = np.where(X[:, 0] > 0, 2.0, 0.7)
    return _censored(rng.weibull(shape), rng.exponential(1.5 * np.exp(-1.0 * X[:, 1])))


def _times(X: Array, rng: np.random.Generator) -> Array:
    return rng.exponential(np.exp(-0.7 * X[:, 0]))


def _censored(time: Array, censored: Array) -> Drawn:
    return {"y": np.minimum(time, censored), "event": (time <= censored).astype(float)}


KINDS: dict[str, Callable[[Array, np.random.Generator], Drawn]] = {
    kind.__name__: kind
    for kind in (
        poisson,
        gamma,
        absolute,
        quantile,
        ordinal,
        several,
        survival,
        censored_by_feature,
        crossing_hazards,
        crossing_and_censored_by_feature,
    )
}


def p_values(kind: str, learner: str, seed: int, n_rows: int = N_ROWS) -> dict[str, list[float]]:
    """Return the p-values of the useless features in one draw, by method."""
    rng = np.random.default_rng([seed, 25])
    X = features(rng, n_rows)
    drawn = KINDS[kind](X, rng)
    table = covaria.assess(
        X, drawn.pop("y"), learner=learner, features=USELESS, seed=seed, check=False,
        methods="gcm,pcm,gcm+pcm,loco",
        **drawn,  # type: ignore[arg-type]
    ).table  # fmt: skip
    return {str(m): rows["p_value"].tolist() for m, rows in table.groupby("method", sort=False)}


def rates(
    kind: str, learner: str, runs: int, first: int = 0, n_rows: int = N_ROWS
) -> dict[str, float]:
    """Return the share of useless features found at .05, by method."""
    found = [p_values(kind, learner, seed, n_rows) for seed in range(first, first + runs)]
    return {m: float(np.mean([np.less(one[m], LEVEL) for one in found])) for m in found[0]}


def main() -> None:
    """Print a row of the table."""
    kind, learner, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    found = rates(kind, learner, runs)
    cells = " | ".join(f"{rate:.3f}" for rate in found.values())
    print(f"| {kind.replace('_', ' ')} | {learner} | {runs} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
