"""Mirror nulls: how often a useless feature is found where y follows E[x_j | the others].

    python tools/mirror_nulls.py --tables airbnb,social_media --rows 500 --runs 20

On a real table a forest, or boosting, learns x_j from the other columns on *other rows*; y is what
it predicts plus noise. Given the others, x_j then says nothing of y, but both nuisance regressions
have the same function to learn. Needs the tables (COVARIA_DATA), or takes scikit-learn's
(diabetes, wine, breast_cancer).
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

import covaria
from covaria.assessment import prepare

TESTS = ("gcm", "pcm", "gcm+pcm")
# Features that take fewer values are not mirrored; a forest learns from so many other rows at most,
# and at least.
FEWEST_VALUES, MOST_ROWS, FEWEST_ROWS = 20, 1500, 200
MODELS = {
    "forest": lambda seed: RandomForestRegressor(100, min_samples_leaf=5, random_state=seed),
    "boosting": lambda seed: GradientBoostingRegressor(max_depth=3, random_state=seed),
}


def draw(
    X: pd.DataFrame, n_rows: int, seed: int, r2: float = 0.5, by: str = "forest"
) -> tuple[pd.DataFrame, NDArray[np.float64], str]:
    """Return rows of the table, a target made so that one feature is useless, and its name."""
    rng = np.random.default_rng(seed)
    many = [name for name in X if X[name].nunique() > FEWEST_VALUES]
    feature = many[seed % len(many)]
    order = rng.permutation(len(X))
    tested, learned = order[:n_rows], order[n_rows : n_rows + MOST_ROWS]
    others = X.drop(columns=feature)
    model = MODELS[by](seed).fit(others.iloc[learned], X[feature].iloc[learned])
    signal = model.predict(others.iloc[tested])
    y = signal / signal.std() + rng.normal(size=n_rows) * np.sqrt((1 - r2) / r2)
    return X.iloc[tested].reset_index(drop=True), y, feature


def p_values(
    X: pd.DataFrame, y: NDArray[np.float64], feature: str, seed: int, extrapolate: bool
) -> dict[str, float]:
    """Return the p-values of one feature: the others are columns that no feature owns."""
    job = prepare(X, y, seed=seed, check=False, extrapolate=extrapolate, clusters=range(len(y)))
    alone = [f if f.name == feature else replace(f, columns=()) for f in job.data.features]
    table = replace(job, data=replace(job.data, features=tuple(alone))).run().table
    table = table[table["feature"] == feature]
    return dict(zip(table["method"], table["p_value"], strict=True))


def table_of(name: str) -> pd.DataFrame:
    """Return the columns of numbers of a table of ours, or of scikit-learn's."""
    own = getattr(datasets, f"load_{name}", None)
    X = own(as_frame=True).data if own else covaria.datasets.load(name)[0]
    return X.select_dtypes("number").dropna(axis=1)


def main() -> None:
    """Print the share of mirror nulls that each test rejects at .05, with its Monte-Carlo error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default="airbnb,social_media,wine_red,boston")
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--by", choices=sorted(MODELS), default="forest")
    parser.add_argument("--r2", type=float, default=0.5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="without extrapolation too")
    given = parser.parse_args()
    seeds = range(given.first_seed, given.first_seed + given.runs)
    for name in given.tables.split(","):
        X = table_of(name)
        n_rows = min(given.rows, len(X) - FEWEST_ROWS)
        for extrapolate in (False, True) if given.plain else (True,):
            runs = []
            for seed in seeds:
                drawn = draw(X, n_rows, seed, given.r2, given.by)
                runs.append(p_values(*drawn, seed, extrapolate))
            rates = {test: np.mean([run[test] < 0.05 for run in runs]) for test in TESTS}
            shown = ", ".join(
                f"{test} {rate:.2f} ± {np.sqrt(rate * (1 - rate) / len(runs)):.2f}"
                for test, rate in rates.items()
            )
            what = "extrapolated" if extrapolate else "plain"
            made = f"{given.by}, R² {given.r2:g}"
            print(f"{name}, {n_rows} rows, {made}, {len(runs)} runs, {what}: {shown}", flush=True)


if __name__ == "__main__":
    main()
