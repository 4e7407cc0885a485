"""Time our engines against the plain loop of the best library, and against R where it is installed.

Every ratio comes from one run on one machine: ours and theirs take turns, one thread each, CPU
seconds, the median of the rounds. A loop over all features is timed on a few fits and multiplied
by the number of fits: 3p + 1 for GCM and LOCO together, p + 1 for LOCO alone. The loop beside the
whole call shares what it can: 2p + 1 fits, five times as many with five folds.
Compilation is excluded: kernels come from numba's cache after the first call.

    python benchmarks/run.py            everything, to benchmarks/results.md
    python benchmarks/run.py growth     one table, into its place there
    python benchmarks/run.py linear     what has "linear" in its name, into its rows there

Rivals run in an environment of their own, .venv-rivals, which `make bench` sets up: one of them
wants an older scipy. A row is left out where R or the rival is missing.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import platform
import re
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression

import covaria
from covaria.assessment import prepare
from covaria.nuisance.fit import engine_for
from covaria.nuisance.regressions import fit_residuals

warnings.filterwarnings("ignore")
HERE = Path(__file__).parent
RIVALS = HERE.parent / ".venv-rivals" / "bin" / "python"
ROUNDS = 5
N_ROWS = 1000
# The first column of a table that is measured; those before it tell its rows apart.
MEASURED = re.compile(r"\bms\b|seconds|, s\b|MB")


def cpu(function: Callable[[], Any]) -> float:
    """Return the CPU seconds of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def take_turns(*functions: Callable[[], Any], rounds: int = ROUNDS) -> list[float]:
    """Return the median CPU seconds of each function, called in turns; short ones more often."""
    first = sum(cpu(function) for function in functions)
    rounds = max(rounds, min(201, int(1 / max(first, 1e-3))))
    times = [[cpu(function) for function in functions] for _ in range(rounds)]
    return np.median(times, axis=0).tolist()


def additive(p: int, n_rows: int = N_ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Return model (b) with p features."""
    copies = 5 if p >= 500 else 1
    X, y = covaria.draw("additive", n_rows=n_rows, seed=0, n_features=p, copies=copies)
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
        "learner", "engine", "p", "ours, ms", "the loop of", "speed-up", "ours in single fits",
        "speed-up over R",
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
        ("splines(df='gcv')", 20, "", None, BAM),
        ("splines(df='gcv')", 100, "", None, BAM),
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
        "p", "epochs", "ours, ms a network", "torch loop, ms a network", "speed-up over the loop",
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
        "learner", "p", "ours, ms", "permutation_importance of", "speed-up",
    )  # fmt: skip
    for learner, p, library, estimator in (
        ("boosting", 20, "LightGBM", lightgbm(1)),
        ("boosting", 500, "LightGBM", lightgbm(1)),
        ("kernel", 20, "SVR", scaled_svr()),
        ("kernel", 500, "SVR", scaled_svr()),
        ("linear", 500, "LinearRegression", LinearRegression()),
    ):
        if only not in learner:
            continue
        X, y = additive(p)
        plan = prepare(X, y, learner=learner, methods="dropout,permutation", splits=0.5).plan(0)
        train, test = plan.folds[0]
        fitted = estimator.fit(X[train], y[train])
        # Theirs takes minutes for a kernel of 500 features: one shuffle, once, times five.
        slow = learner == "kernel" and p == 500
        shuffles, rounds = (1, 1) if slow else (5, 1 + ROUNDS)
        mine, theirs = [], []
        for round_ in range(1 + ROUNDS):
            outcome = next(iter(engine_for(plan).run(plan)))
            mine.append(outcome.seconds_dropped + outcome.seconds_permuted)
            if round_ >= rounds:
                continue
            start = time.perf_counter()
            permutation_importance(fitted, X[test], y[test], n_repeats=shuffles, random_state=0)
            theirs.append(5 / shuffles * (time.perf_counter() - start))
        ours_s, theirs_s = np.median(mine[1:]), np.median(theirs[-ROUNDS:])
        table.add(learner, p, f"{1e3 * ours_s:,.1f}", library, times(theirs_s / ours_s))
    return table


def rivals(only: str) -> Table:
    """Return the time of other libraries over ours, each with the same learner."""
    table = Table(
        "Rivals on the same table, n = 1000, p = 20",
        "rival", "with", "their test of all features, s", "ours, ms", "speed-up",
    )  # fmt: skip
    if only not in "rivals" or not RIVALS.exists():
        return table
    X, y = additive(20)
    for name, ours_is in (
        ("hidimstat LOCO, linear", ("linear", "loco")),
        ("hidimstat LOCO, stumps", ("boosting", "loco")),
        ("dowhy GCM, linear", ("linear", "gcm")),
        ("dowhy GCM, stumps", ("boosting", "gcm")),
        ("vimpy VIM, linear", ("linear", "loco")),
        ("pygam GCM + LOCO, fixed smoothing", ("splines", "gcm,loco")),
        ("pygam GCM + LOCO, grid search", ("splines(df='gcv')", "gcm,loco")),
    ):
        theirs = rival_seconds(name, X, y)
        if theirs is None:
            continue
        # hidimstat and vimpy fit on one half and test on the other; so do we beside them.
        halves = {"splits": 0.5} if name.startswith(("hidimstat", "vimpy")) else {}
        mine = take_turns(ours(X, y, *ours_is, **halves))[0]
        rival, learner = name.split(", ", 1)
        table.add(rival, learner, f"{theirs:,.2f}", f"{1e3 * mine:,.1f}", times(theirs / mine))
    return table


def rival_seconds(name: str, X: Any, y: Any) -> float | None:
    """Return the CPU seconds a rival takes for all features, or None where it is missing."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        np.savez(path, X=X, y=y)
        command = [str(RIVALS), str(HERE / "rivals.py"), name, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{name}: {done.stderr.strip().splitlines()[-1:]}", flush=True)
        return None
    return float(done.stdout.split()[-1])


def lazy(only: str) -> Table:
    """Return Lazy-VI, its penalty chosen once, against the algorithm of the published code."""
    table = Table(
        "Lazy-VI after the fit, 670 training rows, width 50",
        "p", "ours, ms a feature", "reference, ms a feature", "speed-up over the reference",
    )  # fmt: skip
    if only not in "lazy":
        return table
    from lazy_reference import seconds_a_feature

    for p, features in ((20, 5), (500, 2)):
        mine, theirs = seconds_a_feature(p, features)
        table.add(p, f"{1e3 * mine:.1f}", f"{1e3 * theirs:,.0f}", times(theirs / mine))
    return table


def correlated(kind: str, p: int, n_rows: int = N_ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Return correlated columns, by neighbours, a factor or curves of it, and a target of a few."""
    rng = np.random.default_rng(1)
    if kind == "neighbours":
        spread = 0.5 ** np.abs(np.subtract.outer(range(p), range(p)))
        X = rng.multivariate_normal(np.zeros(p), spread, size=n_rows)
    else:
        X = 0.7 * rng.normal(size=(n_rows, 1)) + 0.7 * rng.normal(size=(n_rows, p))
        if kind == "curves":
            X[:, 5:] += np.sin(2 * X[:, :1])
    return X, X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3] + rng.normal(size=n_rows)


def default(only: str) -> Table:
    """Return what covaria.assess(X, y) costs, whole, in fits of LightGBM's own default."""
    table = Table(
        "covaria.assess(X, y), all defaults, n = 1000",
        "columns", "p", "covaria, s", "LightGBM fits", "two classes, LightGBM fits",
        "HistGradientBoosting + permutation_importance(n_repeats=30), s",
    )  # fmt: skip
    if only not in "default":
        return table
    from lightgbm import LGBMRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.inspection import permutation_importance

    def permuted(X: Any, y: Any) -> None:
        model = HistGradientBoostingRegressor().fit(X, y)
        permutation_importance(model, X, y, n_repeats=30)

    for kind in ("neighbours", "factor", "curves"):
        for p in (20, 60, 200) if kind == "neighbours" else (20, 60):
            X, y = correlated(kind, p)
            own, classes, one, theirs = take_turns(
                lambda X=X, y=y: covaria.assess(X, y),
                lambda X=X, y=y: covaria.assess(X, (y > 0).astype(int)),
                lambda X=X, y=y: LGBMRegressor(verbose=-1, n_jobs=1).fit(X, y),
                lambda X=X, y=y: permuted(X, y),
                rounds=3 if p == 20 else 1,
            )
            table.add(
                kind, p, f"{own:.1f}", f"{own / one:.0f}", f"{classes / one:.0f}", f"{theirs:.1f}"
            )
    return table


def as_called(only: str) -> Table:
    """Return the whole call with its checks and findings, in sample, against the shared loop."""
    table = Table(
        "covaria.assess as called, n = 1000, linear",
        "splits", "p", "covaria, ms", "2p + 1 LinearRegression fits, ms", "speed-up",
    )  # fmt: skip
    if only not in "as_called":
        return table
    for splits, p in (("none", 20), ("none", 100), ("none", 500), (5, 20)):
        X, y = additive(p)
        call = partial(covaria.assess, X, y, learner="linear", splits=splits, progress=False)
        call()
        mine, one = take_turns(call, one_fit(LinearRegression(), X, y), rounds=9)
        loop = (2 * p + 1) * one * (1 if splits == "none" else 5)
        table.add(splits, p, f"{1e3 * mine:,.1f}", f"{1e3 * loop:,.0f}", times(loop / mine))
    return table


def outcomes(engine: Any, plan: Any) -> list[Any]:
    return list(engine.run(plan))


def small_and_plain(only: str) -> Table:
    """Return fast engines against the plain one at n = 50, p = 3, and plain against a bare loop."""
    from sklearn.base import clone
    from sklearn.neighbors import KNeighborsRegressor

    from covaria.nuisance.engines import plain

    table = Table(
        "Small tables and other estimators", "case", "ours, ms", "theirs, ms", "theirs over ours"
    )
    if only not in "small plain":
        return table
    X, y = additive(20)
    for learner in ("linear", "splines", "boosting", "kernel", "network(epochs=20)"):
        plan = prepare(X[:50, :3], y[:50], learner=learner, splits="none").plan(0)
        engine = engine_for(plan)
        mine, theirs = take_turns(
            partial(outcomes, engine, plan), partial(outcomes, plain, plan), rounds=15
        )
        case = f"n = 50, p = 3, {learner}: engine, plain engine"
        table.add(case, f"{1e3 * mine:.2f}", f"{1e3 * theirs:.2f}", f"{theirs / mine:.2f}")
    estimator = KNeighborsRegressor()

    def bare_loop() -> None:
        """Fit each of GCM's and LOCO's models once, as we do."""
        clone(estimator).fit(X, y).predict(X)
        for j in range(X.shape[1]):
            Z = np.delete(X, j, axis=1)
            for target in (y, X[:, j]):
                clone(estimator).fit(Z, target).predict(Z)

    mine, theirs = take_turns(ours(X, y, estimator, "gcm,loco"), bare_loop, rounds=9)
    case = "n = 1000, p = 20, nearest neighbours: plain engine, bare loop"
    table.add(case, f"{1e3 * mine:.1f}", f"{1e3 * theirs:.1f}", f"{theirs / mine:.2f}")
    return table


def end_to_end(only: str) -> Table:
    """Return what a user waits for: five folds, four tests, p = 500, from the shell."""
    table = Table(
        "covaria assess, n = 1000, p = 500, stumps, 5 folds, four tests, wall seconds",
        "who", "seconds", "speed-up",
    )  # fmt: skip
    if only not in "end to end":
        return table
    X, y = covaria.draw("additive", n_rows=N_ROWS, seed=0, n_features=500, copies=5)
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        X.assign(y=y).to_csv(path, index=False)
        command = [
            sys.executable, "-m", "covaria", "assess", str(path), "--target", "y", "--quiet",
            "--learner", "boosting", "--methods", "gcm,loco,dropout,permutation",
        ]  # fmt: skip
        seconds = {}
        for jobs in (1, 2):
            many = {"OMP_NUM_THREADS": str(jobs), "NUMBA_NUM_THREADS": str(jobs)}
            start = time.perf_counter()
            subprocess.run([*command, "--jobs", str(jobs)], check=True, capture_output=True,
                           env={**os.environ, **many})  # fmt: skip
            seconds[jobs] = time.perf_counter() - start
    rows, columns = X.to_numpy()[: 4 * N_ROWS // 5], y.to_numpy()[: 4 * N_ROWS // 5]
    fit = take_turns(one_fit(lightgbm(1), rows, columns), rounds=3)[0]
    r_fit = r_seconds(500, GBM.format(splits=1), fits=1)
    table.add("covaria, 1 process", f"{seconds[1]:.1f}", "–")
    table.add("covaria, 2 processes", f"{seconds[2]:.1f}", "–")
    fits = 5 * (2 * 500 + 1)  # GCM and LOCO alone, sharing their models as we do
    for who, one in (("a LightGBM loop, models shared", fit), ("R gbm, models shared", r_fit)):
        if one is not None:
            table.add(who, f"{fits * one:,.0f}", times(fits * one / seconds[1]))
    return table


MEMORY = """
import resource, numpy as np, covaria
from covaria.assessment import prepare
rng = np.random.default_rng(0)
covaria.assess(rng.normal(size=(60, 3)), rng.normal(size=60), learner={learner!r}, splits=2)
X = rng.normal(size=({n}, {p})); y = 2 * X[:, 0] + np.sin(X[:, 1]) + rng.normal(size={n})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
covaria.assess(X, y, learner={learner!r}, splits={splits!r})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, before / 1024)
"""


def memory(only: str) -> Table:
    """Return the peak memory of GCM + LOCO, each in a process of its own."""
    table = Table(
        "Peak memory, GCM + LOCO", "learner", "n", "p", "splits", "process, MB", "added, MB"
    )
    if only not in "memory":
        return table
    for learner, n, p, splits in (
        ("linear", 1000, 500, "none"),
        ("splines", 1000, 500, "none"),
        ("boosting", 1000, 500, "none"),
        ("kernel", 1000, 500, "none"),
        ("linear", 1_000_000, 20, 5),
        ("boosting(trees=20)", 1_000_000, 20, 5),
    ):
        script = MEMORY.format(learner=learner, n=n, p=p, splits=splits)
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        peak, before = map(float, done.stdout.split())
        table.add(learner, f"{n:,}", p, splits, f"{peak:,.0f}", f"{peak - before:,.0f}")
    return table


def growth(only: str) -> Table:
    """Return how the time grows with p and n, as fitted exponents."""
    table = Table(
        "Growth of GCM + LOCO",
        "learner", "in", "sizes", "seconds", "speed-up over the loop", "exponent",
        "exponent of the loop",
    )  # fmt: skip
    if only not in "growth":
        return table
    for learner, what, sizes in (
        ("boosting", "p", (20, 50, 100, 200, 500, 1000)),
        ("boosting", "n", (500, 1000, 2000, 5000, 10_000, 30_000, 100_000)),
        ("linear", "p", (20, 50, 100, 200, 500)),
        ("linear", "n", (500, 1000, 2000, 5000, 10_000, 30_000, 100_000)),
    ):
        mine, theirs = [], []
        for size in sizes:
            X, y = additive(size) if what == "p" else additive(20, size)
            estimator = lightgbm(1) if learner == "boosting" else LinearRegression()
            own, one = take_turns(
                ours(X, y, learner, "gcm,loco"), one_fit(estimator, X, y), rounds=3
            )
            mine.append(own)
            theirs.append((3 * X.shape[1] + 1) * one)
        slopes = [np.polyfit(np.log(sizes), np.log(seconds), 1)[0] for seconds in (mine, theirs)]
        table.add(
            learner, what, ", ".join(map(str, sizes)), ", ".join(f"{s:.3g}" for s in mine),
            ", ".join(f"{t / m:.0f}" for m, t in zip(mine, theirs, strict=True)),
            *(f"{slope:.2f}" for slope in slopes),
        )  # fmt: skip
    return table


def main() -> None:
    parts = {
        part.__name__: part
        for part in (
            default, as_called, engines, networks, lazy, without_refit, rivals, small_and_plain,
            end_to_end, memory, growth,
        )
    }  # fmt: skip
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, part in parts.items():
        if only in parts and name != only:
            continue
        table = part("" if only in parts else only)
        if len(table.lines) > 4:
            write(table)


def write(table: Table) -> None:
    """Put a table into the page of results; rows measured anew take the place of the old."""
    path = HERE / "results.md"
    cores = os.cpu_count()
    head = f"# Benchmarks\n\n{(__doc__ or '').strip()}\n\n{platform.machine()}, {cores} cores."
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    found = {part.split("\n", 1)[0]: part.strip() for part in old.split("\n## ")[1:]}
    title = table.lines[0].removeprefix("## ")
    header = table.lines[2].split("|")
    measured = next(k for k, name in enumerate(header) if MEASURED.search(name))
    lines = [*found.get(title, "").splitlines()[4:], *table.lines[4:]]
    rows = {"|".join(line.split("|")[:measured]): line for line in lines}
    found[title] = "\n".join([title, *table.lines[1:4], *rows.values()])
    # What everybody runs comes first.
    order = sorted(found.values(), key=lambda part: not part.startswith("covaria.assess(X, y)"))
    page = "\n\n## ".join([head, *order])
    path.write_text(page + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
