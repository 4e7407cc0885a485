"""Time one rival on one table; run by .venv-rivals, called from run.py.

    python rivals.py "hidimstat LOCO, linear" table.npz

prints the CPU seconds of its test of all features, on one thread, the median of three runs.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import sys
import time
import warnings
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression

warnings.filterwarnings("ignore")


def stumps() -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(
        n_estimators=100, learning_rate=0.1, num_leaves=2, min_child_samples=10,
        subsample=0.5, subsample_freq=1, n_jobs=1, verbosity=-1, random_state=0,
    )  # fmt: skip


def hidimstat_loco(estimator: Any, X: Any, y: Any) -> None:
    """Fit the full and all reduced models on one half, and test on the other."""
    from hidimstat import LOCO

    half = len(y) // 2
    estimator.fit(X[:half], y[:half])
    test = LOCO(estimator)
    test.fit(X[:half], y[:half])
    test.importance(X[half:], y[half:])


def dowhy_gcm(model: Any, X: Any, y: Any) -> None:
    """Test each feature against y given the others."""
    from dowhy.gcm.independence_test.generalised_cov_measure import generalised_cov_based
    from dowhy.gcm.ml.regression import SklearnRegressionModel

    def fresh() -> Any:
        return SklearnRegressionModel(model())

    for j in range(X.shape[1]):
        generalised_cov_based(
            X[:, [j]], y[:, None], np.delete(X, j, axis=1),
            prediction_model_X=fresh, prediction_model_Y=fresh,
        )  # fmt: skip


def vimpy_vim(estimator: Any, X: Any, y: Any) -> None:
    """Return the importance of each feature, full and reduced model on separate halves."""
    import vimpy

    for j in range(X.shape[1]):
        test = vimpy.vim(y=y, x=X, s=j, pred_func=estimator, measure_type="r_squared")
        test.get_point_est().get_influence_function().get_se().get_ci().hypothesis_test()


def pygam_loop(search: bool, X: Any, y: Any) -> None:
    """Fit y on all, and y and each feature on the rest."""
    from pygam import LinearGAM, s

    def residual(Z: Any, target: Any) -> Any:
        terms = reduce(add, [s(k, n_splines=10) for k in range(Z.shape[1])])
        gam = LinearGAM(terms)
        gam = gam.gridsearch(Z, target, progress=False) if search else gam.fit(Z, target)
        return target - gam.predict(Z)

    residual(X, y)
    features = range(1) if search else range(X.shape[1])  # a search takes minutes: one of p
    for j in features:
        Z = np.delete(X, j, axis=1)
        residual(Z, y), residual(Z, X[:, j])


RIVALS = {
    "hidimstat LOCO, linear": lambda X, y: hidimstat_loco(LinearRegression(), X, y),
    "hidimstat LOCO, stumps": lambda X, y: hidimstat_loco(stumps(), X, y),
    "dowhy GCM, linear": lambda X, y: dowhy_gcm(LinearRegression, X, y),
    "dowhy GCM, stumps": lambda X, y: dowhy_gcm(stumps, X, y),
    "vimpy VIM, linear": lambda X, y: vimpy_vim(LinearRegression(), X, y),
    "pygam GCM + LOCO, fixed smoothing": lambda X, y: pygam_loop(False, X, y),
    "pygam GCM + LOCO, grid search": lambda X, y: pygam_loop(True, X, y),
}


def main() -> None:
    name, path = sys.argv[1:]
    with np.load(path) as table:
        X, y = table["X"], table["y"]
    rounds = 1 if name.startswith("pygam") else 3
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        RIVALS[name](X, y)
        seconds.append(time.process_time() - start)
    whole = np.median(seconds)
    if name.endswith("grid search"):  # of 1 + 2p fits three were made
        whole *= (1 + 2 * X.shape[1]) / 3
    print(whole)


if __name__ == "__main__":
    main()
