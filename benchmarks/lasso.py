"""The cross-validated lasso beside scikit-learn's, in seconds of one thread.

    python benchmarks/lasso.py [--rows 1000] [--columns 500]

Ours follows glmnet: 100 lambdas down to 1e-4 of the largest, exact to 1e-9; scikit-learn's
defaults are 100 down to 1e-3, to a gap of 1e-4.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import time
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LassoCV

from covaria.methods.lasso import cross_validate


def table(n_rows: int, n_columns: int, correlation: float) -> tuple[np.ndarray, np.ndarray]:
    """Return columns of which each goes with the one before, and a target of the first ten."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    for j in range(1, n_columns):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    return X, X[:, :10] @ np.linspace(0.2, 1, 10) + rng.normal(size=n_rows)


def seconds(function: Callable[[], object], times: int = 5) -> float:
    """Return the median time of the processor, the first call left out."""
    taken = []
    for _ in range(times + 1):
        began = time.process_time()
        function()
        taken.append(time.process_time() - began)
    return float(np.median(taken[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=500)
    asked = parser.parse_args()
    for correlation in (0.0, 0.8):
        X, y = table(asked.rows, asked.columns, correlation)
        ours = seconds(lambda X=X, y=y: cross_validate(X, y, np.random.default_rng(0)))
        theirs = seconds(lambda X=X, y=y: LassoCV(cv=10).fit(X, y))
        as_deep = seconds(lambda X=X, y=y: LassoCV(cv=10, eps=1e-4).fit(X, y))
        print(
            f"correlation {correlation}: covaria {ours:.2f} s, LassoCV {theirs:.2f} s, "
            f"LassoCV as deep as glmnet {as_deep:.2f} s"
        )


if __name__ == "__main__":
    main()
