"""How well methods choose: counts against the truth, their averages, and guessing beside them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError, did_you_mean, is_whole
from covaria.randomness import stream
from covaria.results.status import has_failed

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
METRICS = ("accuracy", "recall", "specificity", "f1", "fdr")
# What tells a cell of a study from the others.
CELL = ("scenario", "setting", "learner", "options")
GUESS, SIMULATED = "guess", "guess (simulated)"


def rates(tp: Array, fp: Array, tn: Array, fn: Array) -> dict[str, Array]:
    """Return accuracy, recall, specificity, F1 and FDR of counts.

    A share of nothing is: recall and specificity 1, F1 and FDR 0.

    >>> found = rates(*(np.array([float(n)]) for n in (6, 2, 10, 2)))
    >>> [round(float(found[name][0]), 3) for name in METRICS]
    [0.8, 0.75, 0.833, 0.75, 0.25]
    """
    return {
        "accuracy": (tp + tn) / np.maximum(1, tp + fp + tn + fn),
        "recall": np.where(tp + fn > 0, tp / np.maximum(1, tp + fn), 1.0),
        "specificity": np.where(tn + fp > 0, tn / np.maximum(1, tn + fp), 1.0),
        "f1": 2 * tp / np.maximum(1, 2 * tp + fp + fn),
        "fdr": fp / np.maximum(1, tp + fp),
    }


def runs(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row per run and method: what it chose against what matters, and its seconds.

    Tables whose truth is not known have no such row.
    """
    import pandas as pd

    known = table[table["active"].notna()]
    extra = _varied(table)
    keys = [*CELL[:2], *extra, *CELL[2:], "repeat", "method"]
    active = known["active"].astype(bool).to_numpy()
    chosen = known["selected"].astype(bool).to_numpy()
    counted = known[keys].assign(
        tp=active & chosen, fp=~active & chosen, tn=~active & ~chosen, fn=active & ~chosen,
        seconds=known["seconds"], failed=known["status"].map(has_failed),
    )  # fmt: skip
    grouped = counted.groupby(keys, sort=False, dropna=False)
    found = grouped[["tp", "fp", "tn", "fn"]].sum().astype(int)
    numbers = [found[name].to_numpy(dtype=float) for name in ("tp", "fp", "tn", "fn")]
    found = found.assign(**rates(*numbers), failed=grouped["failed"].sum().astype(int))
    found["seconds"] = grouped["seconds"].first()
    return pd.DataFrame(found.reset_index())


def _varied(table: pd.DataFrame) -> list[str]:
    """Return the scenario parameters that have a column of their own."""
    names = list(table.columns)
    return names[2 : names.index("learner")]


def features(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row per method and feature: p-values on average, their sd, how often selected."""
    import pandas as pd

    keys = [*CELL[:2], *_varied(table), *CELL[2:], "method", "feature", "active"]
    grouped = table.groupby(keys, sort=False, dropna=False)
    found = pd.DataFrame(
        {
            "runs": grouped.size(),
            "p_mean": grouped["p_value"].mean(),
            "p_sd": grouped["p_value"].std(ddof=1),
            "selected": grouped["selected"].mean(),
            "estimate_mean": grouped["estimate"].mean(),
        }
    )
    found["p_se"] = found["p_sd"] / np.sqrt(found["runs"])
    return found.reset_index()


def summary(table: pd.DataFrame, *, draws: int = 10_000, seed: int = 0) -> pd.DataFrame:
    """Return mean, sd and Monte-Carlo standard error of every metric, and what guessing gives.

    `table` is that of `runs`. Guessing chooses every feature by a fair coin: "guess" is exact,
    "guess (simulated)" the average of `draws` runs.
    """
    import pandas as pd

    keys = [c for c in table.columns[: list(table.columns).index("tp")] if c != "repeat"]
    values = [*METRICS, "seconds"]
    long = table.melt([*keys, "repeat"], values, "metric", "value")
    grouped = long.groupby([*keys, "metric"], sort=False, dropna=False)["value"]
    found = grouped.agg(runs="size", mean="mean", sd=lambda v: v.std(ddof=1)).reset_index()
    cells = table.assign(p=table[["tp", "fp", "tn", "fn"]].sum(axis=1), s=table["tp"] + table["fn"])
    cells = cells[[*keys[:-1], "p", "s"]].drop_duplicates()
    guesses = [
        {**dict(zip(keys[:-1], row[:-2], strict=True)), "method": name, "metric": metric,
         "runs": n, "mean": mean, "sd": sd}
        for row in cells.itertuples(index=False, name=None)
        for name, n, guess in (
            (GUESS, 0, random_guess(int(row[-2]), int(row[-1]))),
            (SIMULATED, draws, simulated_guess(int(row[-2]), int(row[-1]), draws, seed)),
        )
        for metric, (mean, sd) in guess.items()
    ]  # fmt: skip
    found = pd.concat([found, pd.DataFrame(guesses, columns=found.columns)], ignore_index=True)
    found["se"] = np.where(
        found["runs"] > 0, found["sd"] / np.sqrt(np.maximum(1, found["runs"])), 0
    )
    return found


def paired(table: pd.DataFrame, method: str, rival: str) -> pd.DataFrame:
    """Return, per cell and metric, the mean of method minus rival over runs on the same rows."""
    import pandas as pd

    known = list(table["method"].drop_duplicates())
    for name in (method, rival):
        if name not in known:
            raise InputError(f"The study has no method '{name}'.{did_you_mean(name, known)}")
    keys = [c for c in table.columns[: list(table.columns).index("tp")] if c != "method"]
    values = [*METRICS, "seconds"]
    ours, theirs = (table[table["method"] == m].set_index(keys)[values] for m in (method, rival))
    both = ours.index.intersection(theirs.index)
    gaps = (ours.loc[both] - theirs.loc[both]).reset_index()
    cell = [c for c in keys if c != "repeat"]
    long = gaps.melt([*cell, "repeat"], values, "metric", "difference")
    grouped = long.groupby([*cell, "metric"], sort=False, dropna=False)["difference"]
    found = grouped.agg(runs="size", mean="mean", sd=lambda v: v.std(ddof=1)).reset_index()
    found["se"] = found["sd"] / np.sqrt(found["runs"])
    return pd.DataFrame(found.assign(method=method, rival=rival))


@lru_cache(maxsize=64)
def random_guess(n_features: int, n_active: int) -> dict[str, tuple[float, float]]:
    """Return the exact mean and sd of every metric when each feature is chosen by a fair coin.

    >>> {name: round(mean, 4) for name, (mean, _) in random_guess(20, 8).items()}
    {'accuracy': 0.5, 'recall': 0.5, 'specificity': 0.5, 'f1': 0.4387, 'fdr': 0.6}
    """
    from scipy.stats import binom

    _check_counts(n_features, n_active)
    tp = np.arange(n_active + 1.0)[:, None]
    fp = np.arange(n_features - n_active + 1.0)[None, :]
    weight = binom.pmf(tp, n_active, 0.5) * binom.pmf(fp, n_features - n_active, 0.5)
    found = rates(tp, fp, n_features - n_active - fp, n_active - tp)
    result = {}
    for name in METRICS:
        value = np.broadcast_to(found[name], weight.shape)
        mean = float((weight * value).sum())
        result[name] = (mean, float(np.sqrt((weight * (value - mean) ** 2).sum())))
    return result


def simulated_guess(
    n_features: int, n_active: int, draws: int = 10_000, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """Return the mean and sd of every metric over simulated guesses, as the paper's dashed line."""
    _check_counts(n_features, n_active)
    rng = stream(seed, "guess", n_features, n_active)
    tp = rng.binomial(n_active, 0.5, draws).astype(float)
    fp = rng.binomial(n_features - n_active, 0.5, draws).astype(float)
    found = rates(tp, fp, n_features - n_active - fp, n_active - tp)
    return {name: (float(v.mean()), float(v.std(ddof=1))) for name, v in found.items()}


def _check_counts(n_features: int, n_active: int) -> None:
    if not (is_whole(n_features) and is_whole(n_active) and 0 <= n_active <= n_features):
        raise InputError(f"{n_active!r} of {n_features!r} features cannot matter.")
