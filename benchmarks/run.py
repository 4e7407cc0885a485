"""Time our engines against the plain loop of the best library, and against R where it is installed.

Every ratio comes from one run on one machine: ours and theirs take turns, one thread each, CPU
seconds, the median of the rounds. A loop over all features is timed on a few fits and multiplied
by the number of fits: 3p + 1 for GCM and LOCO together, p + 1 for LOCO alone.
Compilation is excluded: kernels come from numba's cache after the first call.

    python benchmarks/run.py            everything, to benchmarks/results.md
    python benchmarks/run.py linear     only what has "linear" in its name
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import platform
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression

import residua
from residua.assess import prepare
from residua.residuals import engine_for, fit_residuals

warnings.filterwarnings("ignore")
HERE = Path(__file__).parent
ROUNDS = 5
N_ROWS = 1000


def cpu(function: Callable[[], Any]) -> float:
    """Return the CPU seconds of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def take_turns(*functions: Callable[[], Any], rounds: int = ROUNDS) -> list[float]:
    """Return the median CPU seconds of each function, called in turns."""
    for function in functions:
        function()
    times = [[cpu(function) for function in functions] for _ in range(rounds)]
    return np.median(times, axis=0).tolist()


def additive(p: int, n_rows: int = N_ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Return model (b) with p features."""
    copies = 5 if p >= 500 else 1
    X, y = residua.draw("additive", n_rows=n_rows, seed=0, n_features=p, copies=copies)
    return X.to_numpy(), y.to_numpy()


def ours(X: Any, y: Any, learner: str, methods: str, **options: Any) -> Callable[[], Any]:
    """Return a call that fits everything the methods need, in sample, and scores it."""
    job = prepare(X, y, learner=learner, methods=methods, **{"splits": "none", **options})

    def run() -> None:
        residuals = fit_residuals(job.plan(0))
        for method in job.methods:
            method.score(residuals, np.random.default_rng(0))

    return run


def engine_name(learner: str) -> str:
    X, y = additive(20)
    plan = prepare(X, y, learner=learner, splits="none").plan(0)
    return engine_for(plan).__name__.rsplit(".", 1)[-1]


def one_fit(estimator: Any, X: Any, y: Any) -> Callable[[], Any]:
    """Return a call that fits the estimator without one feature and predicts in sample."""
    from sklearn.base import clone

    Z = np.delete(X, 0, axis=1)
    return lambda: clone(estimator).fit(Z, y).predict(Z)


def lightgbm(splits: int) -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(
        n_estimators=100, learning_rate=0.1, num_leaves=splits + 1, min_child_samples=10,
        subsample=0.5, subsample_freq=1, n_jobs=1, verbosity=-1,
        deterministic=True, force_col_wise=True,
    )  # fmt: skip


def scaled_svr() -> Any:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    return TransformedTargetRegressor(
        make_pipeline(StandardScaler(), SVR()), transformer=StandardScaler()
    )


def r_seconds(p: int, call: str, fits: int = 2) -> float | None:
    """Return the seconds of one fit in R, or None where R or the package is missing."""
    if shutil.which("Rscript") is None:
        return None
    script = f"""
    suppressMessages({{library(gbm); library(mgcv)}}); set.seed(1); n <- {N_ROWS}; p <- {p}
    X <- matrix(rnorm(n * p), n); y <- 2*X[,1]^2 + 2*cos(4*X[,2]) + sin(X[,3]) + exp(X[,4]/3) +
      3*X[,5] + X[,6]^3 + 5*X[,7] + pmax(0, X[,8]) + .1*rnorm(n)
    d <- data.frame(y = y, X[,-1]); f <- function() {{ {call} }}
    invisible(f()); cat(median(replicate({fits}, system.time(invisible(f()))[["user.self"]])))
    """
    done = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else None


GBM = """m <- gbm(y ~ ., data = d, distribution = "gaussian", n.trees = 100,
           interaction.depth = {splits}); predict(m, d, n.trees = 100)"""
BAM = """predict(bam(as.formula(paste("y ~", paste0("s(", names(d)[-1], ")", collapse = "+"))),
           data = d, discrete = TRUE))"""


class Table:
    """Rows of a markdown table, printed as they come."""

    def __init__(self, title: str, *columns: str) -> None:
        self.lines = [
            f"## {title}",
            "",
            "| " + " | ".join(columns) + " |",
            "|" + "---|" * len(columns),
        ]
        print("\n".join(["", *self.lines]), flush=True)

    def add(self, *cells: object) -> None:
        line = "| " + " | ".join(str(cell) for cell in cells) + " |"
        self.lines.append(line)
        print(line, flush=True)


def times(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f}×" if value < 10 else f"{value:,.0f}×"


def engines(only: str) -> Table:
    """Return our time against the loop of the best library and against one of its fits."""
    table = Table(
        "GCM + LOCO over all features, n = 1000, in sample",
        "learner", "engine", "p", "ours, ms", "the loop of", "is slower by", "ours in single fits",
        "R slower by",
    )  # fmt: skip
    cases = [
        ("linear", 20, "LinearRegression", LinearRegression(), None),
        ("linear", 500, "LinearRegression", LinearRegression(), None),
        ("boosting", 20, "LightGBM", lightgbm(1), GBM.format(splits=1)),
        ("boosting", 500, "LightGBM", lightgbm(1), GBM.format(splits=1)),
        ("boosting(splits=4)", 20, "LightGBM", lightgbm(4), GBM.format(splits=4)),
        ("boosting(splits=4)", 500, "LightGBM", lightgbm(4), GBM.format(splits=4)),
        ("kernel", 20, "SVR", scaled_svr(), None),
        ("kernel", 500, "SVR", scaled_svr(), None),
        ("splines", 20, "", None, BAM),
        ("splines", 100, "", None, BAM),
    ]
    for learner, p, library, estimator, r_call in cases:
        if only not in learner:
            continue
        X, y = additive(p)
        for methods, n_fits in (("gcm,loco", 3 * p + 1), ("loco", p + 1)):
            if methods == "loco" and not learner.startswith("boosting"):
                continue
            rounds = 3 if p == 500 and ("4" in learner or learner == "kernel") else ROUNDS
            own = ours(X, y, learner, methods)
            mine, *theirs = take_turns(
                own, *([one_fit(estimator, X, y)] if estimator is not None else []), rounds=rounds
            )
            r = r_seconds(p, r_call, fits=1 if p >= 100 else 3) if r_call else None
            table.add(
                f"{learner}{', LOCO alone' if methods == 'loco' else ''}",
                engine_name(learner), p, f"{1e3 * mine:,.1f}", library,
                times(n_fits * theirs[0] / mine if theirs else None),
                f"{mine / theirs[0]:.2f}" if theirs else "–",
                times(n_fits * r / mine if r is not None else None),
            )  # fmt: skip
    return table


def torch_loop(X: Any, y: Any, epochs: int, batch: int) -> Callable[[], Any]:
    """Return a call that trains one ordinary torch network."""
    import torch

    def run() -> None:
        torch.set_num_threads(1)
        torch.manual_seed(0)
        A, b = torch.tensor(np.delete(X, 0, 1)), torch.tensor(y)[:, None]
        net = torch.nn.Sequential(
            torch.nn.Linear(A.shape[1], 50), torch.nn.ReLU(), torch.nn.Linear(50, 1)
        ).double()
        adam = torch.optim.Adam(net.parameters(), lr=1e-3)
        for _ in range(epochs):
            for rows in torch.randperm(len(A)).split(batch):
                adam.zero_grad()
                torch.nn.functional.mse_loss(net(A[rows]), b[rows]).backward()
                adam.step()

    return run


def networks(only: str) -> Table:
    """Return our networks against a torch loop of the same width, batch and epochs."""
    table = Table(
        "Networks, width 50, batch 32, GCM + LOCO, n = 1000",
        "p", "epochs", "ours, ms a network", "torch loop, ms a network", "the loop is slower by",
    )  # fmt: skip
    if only not in "network":
        return table
    for p, epochs in ((20, 20), (500, 5)):
        X, y = additive(p)
        y = (y - y.mean()) / y.std()
        own = ours(X, y, f"network(batch=32, epochs={epochs})", "gcm,loco")
        mine, theirs = take_turns(own, torch_loop(X, y, epochs, 32), rounds=1 if p == 500 else 3)
        table.add(
            p, epochs, f"{1e3 * mine / (2 * p + 1):.1f}", f"{1e3 * theirs:.1f}",
            times((3 * p + 1) * theirs / mine),
        )  # fmt: skip
    return table


def without_refit(only: str) -> Table:
    """Return dropout and permutation, after the fit, against permutation_importance."""
    from sklearn.inspection import permutation_importance

    table = Table(
        "Dropout + permutation (5 shuffles) of 500 held-out rows, after the fit",
        "learner", "p", "ours, ms", "permutation_importance of", "is slower by",
    )  # fmt: skip
    for learner, p, library, estimator in (
        ("boosting", 20, "LightGBM", lightgbm(1)),
        ("boosting", 500, "LightGBM", lightgbm(1)),
        ("kernel", 20, "SVR", scaled_svr()),
        ("linear", 500, "LinearRegression", LinearRegression()),
    ):
        if only not in learner:
            continue
        X, y = additive(p)
        plan = prepare(X, y, learner=learner, methods="dropout,permutation", splits=0.5).plan(0)
        train, test = plan.folds[0]
        fitted = estimator.fit(X[train], y[train])
        mine, theirs = [], []
        for _ in range(1 + ROUNDS):
            outcome = engine_for(plan).run(plan)[0]
            mine.append(outcome.seconds_dropped + outcome.seconds_permuted)
            start = time.perf_counter()
            permutation_importance(fitted, X[test], y[test], n_repeats=5, random_state=0)
            theirs.append(time.perf_counter() - start)
        ours_s, theirs_s = np.median(mine[1:]), np.median(theirs[1:])
        table.add(learner, p, f"{1e3 * ours_s:,.1f}", library, times(theirs_s / ours_s))
    return table


def growth(only: str) -> Table:
    """Return how the time grows with p and n, as fitted exponents."""
    table = Table(
        "Growth of GCM + LOCO, boosted stumps",
        "in", "sizes", "seconds", "exponent", "exponent of the loop",
    )  # fmt: skip
    if only not in "growth":
        return table
    for what, sizes, naive in (
        ("p", (20, 50, 100, 200), 2),
        ("n", (500, 1000, 2000, 4000, 8000), 1),
    ):
        seconds = []
        for size in sizes:
            X, y = additive(size) if what == "p" else additive(20, size)
            seconds.append(take_turns(ours(X, y, "boosting", "gcm,loco"), rounds=3)[0])
        slope = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        shown = ", ".join(f"{s:.3f}" for s in seconds)
        table.add(what, ", ".join(map(str, sizes)), shown, f"{slope:.2f}", naive)
    return table


def main() -> None:
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    tables = [part(only) for part in (engines, networks, without_refit, growth)]
    if only:
        return
    cores = os.cpu_count()
    head = f"# Benchmarks\n\n{(__doc__ or '').strip()}\n\n{platform.machine()}, {cores} cores.\n\n"
    page = head + "\n\n".join("\n".join(table.lines) for table in tables) + "\n"
    (HERE / "results.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
