"""Let rivals with their defaults test the first feature of many tables; run by .venv-rivals.

    python validity_rivals.py tables.npz

prints a line for each rival and table: its name, the number of the table, the p-value.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

warnings.filterwarnings("ignore")


def hidimstat_loco(X: Any, y: Any) -> float:
    """Return LOCO's p-value with a random forest, half of the rows to learn from."""
    from hidimstat import LOCO
    from sklearn.ensemble import RandomForestRegressor

    half = len(y) // 2
    forest = RandomForestRegressor(random_state=0).fit(X[:half], y[:half])
    test = LOCO(forest, features_groups={"x": [0], "rest": list(range(1, X.shape[1]))})
    test.fit(X[:half], y[:half])
    test.importance(X[half:], y[half:])
    return float(np.atleast_1d(test.pvalues_)[0])


def dowhy_gcm(X: Any, y: Any) -> float:
    """Return GCM's p-value with random forests, which are what comets takes by default."""
    from dowhy.gcm.independence_test.generalised_cov_measure import generalised_cov_based
    from dowhy.gcm.ml import create_random_forest_regressor as forest

    return float(
        generalised_cov_based(
            X[:, [0]], y[:, None], X[:, 1:], prediction_model_X=forest, prediction_model_Y=forest
        )
    )


RIVALS = {"hidimstat LOCO, forests": hidimstat_loco, "dowhy GCM, forests": dowhy_gcm}


def main() -> None:
    """Print the p-values."""
    tables = np.load(sys.argv[1])
    for name, test in RIVALS.items():
        for run, (X, y) in enumerate(zip(tables["X"], tables["y"], strict=True)):
            print(f"{name}\t{run}\t{test(X, y):.6g}", flush=True)


if __name__ == "__main__":
    main()
