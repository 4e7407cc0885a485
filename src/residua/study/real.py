"""The paper's real tables again: its errors beside ours, and which features come back.

`run` selects, refits and measures (`residua.refit`) with the paper's learners; `table` puts the
paper's numbers beside what came out, `claims` says which of its conclusions came out too.
`verdicts` asks the same of every feature by a cross-fitted test on all rows, corrected for their
number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from residua import datasets
from residua.assess import assess
from residua.engines import Progress
from residua.errors import InputError
from residua.learners import Boosting, Learner
from residua.refit import EVERYTHING, Refit, refit
from residua.study.published import LEARNERS, METHODS, Published, published

if TYPE_CHECKING:
    import pandas as pd

MODES = ("paper", "ours")
# Beside the paper's learners: trees that see interactions, which all six tables have.
OUR_LEARNERS: dict[str, Learner] = {"deep GBM": Boosting(trees=300, splits=5)}
# What `assess` does unless told otherwise: the learner, and the method that gives its verdict.
DEFAULT = ("auto", "gcm+pcm")
# The bar for a network: its error within this share of the published one.
NETWORK_SHARE = 0.10
# Beyond this many of the paper's standard errors two numbers are called different.
MOST_ERRORS = 2.0


def run(
    name: str,
    *,
    mode: str = "paper",
    learners: Sequence[str] | Mapping[str, Any] = LEARNERS,
    methods: Sequence[str] = METHODS,
    seeds: int = 20,
    seed: int = 0,
    grouped: bool = False,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Refit:
    """Return the errors and frequencies of one of the paper's tables, in its mode or in ours.

    `learners` are some of lm, GBM and NN, or a mapping of names to learners of your own. `grouped`
    takes the columns that code one category as one feature.
    """
    if mode not in MODES:
        raise InputError(f"mode={mode!r} is not known. Use 'paper' or 'ours'.")
    known = published(name)
    chosen = _learners(known, learners)
    X, y = datasets.load(known.dataset)
    clusters = None if mode == "paper" else datasets.clusters(known.dataset, X)
    return refit(
        X, y, clusters=clusters, learners=chosen, methods=list(methods), seeds=seeds, seed=seed,
        paper=mode == "paper", task="regression", n_jobs=n_jobs, progress=progress,
        groups=datasets.groups(known.dataset) if grouped else None,
    )  # fmt: skip


def _learners(known: Published, given: Sequence[str] | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    unknown = [name for name in given if name not in known.learners]
    if unknown:
        raise InputError(f"There is no learner '{unknown[0]}' in the paper. Use lm, GBM or NN.")
    return {name: known.learners[name] for name in given}


def instead(name: str, *, seeds: int = 20, seed: int = 0) -> pd.DataFrame:
    """Return what other settings give where the stated one does not give the published error."""
    import pandas as pd

    known = published(name)
    tables = []
    for other in known.instead:
        found = run(name, learners={other.learner: other.setting}, seeds=seeds, seed=seed)
        rows = beside(known, found)
        tables.append(rows.assign(setting=str(other.setting), note=other.why))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def raw_networks(name: str, *, epochs: int, seeds: int = 1, seed: int = 0) -> pd.DataFrame:
    """Return what the paper's network gives on standardised columns but the target as it is.

    Ours standardises the target too and stops when it has learned; this one trains for a fixed
    number of epochs, by scikit-learn's MLPRegressor.
    """
    known = published(name)
    X, y = datasets.load(known.dataset)
    learner = _mlp(known, epochs)
    found = refit(
        (X - X.mean()) / X.std(), y, learners={"NN": learner}, methods=list(METHODS), seeds=seeds,
        seed=seed, paper=True, task="regression",
    )  # fmt: skip
    setting = f"target not standardised, {epochs} epochs"
    everything = found.table.loc[found.table["method"] == EVERYTHING, "error"].iloc[0]
    return beside(known, found).assign(setting=setting, all_features=everything)


def epochs(name: str, marks: Sequence[int] = (10, 20, 50, 100, 200)) -> pd.DataFrame:
    """Return the error of the paper's network on all features after so many epochs.

    A row for each choice of what is standardised; five folds, one draw, MLPRegressor.
    """
    import pandas as pd

    known = published(name)
    X, y = datasets.load(known.dataset)
    rows = []
    for label, (columns, target) in STANDARDISED.items():
        errors = _epoch_errors(known, X.to_numpy(), y.to_numpy(), marks, columns, target)
        named = {f"epochs_{mark}": error for mark, error in errors.items()}
        rows.append({"data": known.dataset, "learner": "NN", "standardised": label, **named})
    return pd.DataFrame(rows)


# What is standardised: columns, target.
STANDARDISED = {
    "columns, target": (True, True),
    "columns": (True, False),
    "nothing": (False, False),
}


def _epoch_errors(
    known: Published, X: Any, y: Any, marks: Sequence[int], columns: bool, target: bool
) -> dict[int, float]:
    """Return the mean error over five folds after each number of epochs in `marks`."""
    import numpy as np
    from sklearn.model_selection import KFold

    errors: dict[int, list[float]] = {mark: [] for mark in marks}
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        center, scale = (X[train].mean(0), X[train].std(0)) if columns else (0.0, 1.0)
        mean, sd = (y[train].mean(), y[train].std()) if target else (0.0, 1.0)
        inputs, goal = (X[train] - center) / scale, (y[train] - mean) / sd
        model, rng = _mlp(known, max(marks)), np.random.default_rng(0)
        for epoch in range(1, max(marks) + 1):
            order = rng.permutation(len(inputs))
            model.partial_fit(inputs[order], goal[order])
            if epoch in errors:
                predicted = mean + sd * model.predict((X[test] - center) / scale)
                errors[epoch].append(float(np.mean((y[test] - predicted) ** 2)))
    return {mark: float(np.mean(found)) for mark, found in errors.items()}


def _mlp(known: Published, epochs: int) -> Any:
    """Return scikit-learn's network with the paper's settings, trained for so many epochs.

    Its penalty is halved and spread over a batch: alpha = weight decay × batch / 2.
    """
    from sklearn.neural_network import MLPRegressor

    net = known.network
    return MLPRegressor(
        hidden_layer_sizes=net.hidden, learning_rate_init=net.lr, batch_size=net.batch,
        alpha=net.weight_decay * net.batch / 2, max_iter=epochs, n_iter_no_change=epochs,
        random_state=0,
    )  # fmt: skip


def table(name: str, found: Refit) -> pd.DataFrame:
    """Return the paper's errors beside ours, with the verdict and what there is to say."""
    known = published(name)
    rows = beside(known, found)
    lines: list[dict[str, Any]] = rows.to_dict("records")  # type: ignore[assignment]
    notes = [_note(known, line) for line in lines]
    return rows.assign(setting=[found.about["learners"][n] for n in rows["learner"]], note=notes)


def beside(known: Published, found: Refit) -> pd.DataFrame:
    """Return a row per learner and method: the paper's error, ours, and how far apart they are."""
    import pandas as pd

    rows = []
    lines: list[dict[str, Any]] = found.table.to_dict("records")  # type: ignore[assignment]
    for line in lines:
        learner, method, ours = line["learner"], line["method"], line["error"]
        if method == EVERYTHING or learner not in known.errors:
            continue
        theirs, error = known.error(learner, method)
        rows.append(
            {
                "table": known.table,
                "data": known.dataset,
                "learner": learner,
                "method": method,
                "paper": theirs,
                "paper_se": error,
                "ours": ours,
                "ours_se": line["std_error"],
                **{name: line[name] for name in ("spread", "low", "high", "seeds")},
                "in_paper_se": (ours - theirs) / error,
                "ratio": ours / theirs,
                "verdict": _verdict(known, learner, ours, theirs, error),
            }
        )
    return pd.DataFrame(rows)


def _verdict(known: Published, learner: str, ours: float, theirs: float, error: float) -> str:
    if not known.is_same_data:
        return "other data"
    if abs(ours - theirs) <= MOST_ERRORS * error:
        return "agrees"
    if learner == "NN" and abs(ours / theirs - 1) <= NETWORK_SHARE:
        return "within 10%"
    return "differs"


def _note(known: Published, row: Mapping[str, Any]) -> str:
    """Return why a published error did not come out, where that is known."""
    if not known.is_same_data:
        return known.remarks[0]
    if row["verdict"] != "differs":
        return ""
    for other in known.instead:
        if other.learner == row["learner"]:
            return f"The stated setting cannot give it: {other.why} ({other.setting})."
    if row["learner"] == "NN":
        return NETWORK_NOTE
    return ""


NETWORK_NOTE = (
    "The paper states neither the epochs nor whether columns are standardised; see the page on "
    "networks for what each choice gives."
)


def claims(name: str, found: Refit) -> pd.DataFrame:
    """Return the paper's conclusions, feature by feature, with how often each was selected.

    It is stable where it was selected on at least 4 of 5 parts in most draws of the folds.
    """
    import pandas as pd

    known = published(name)
    rows = []
    for claim in known.claims:
        rates = found.frequencies
        own = rates[
            rates["learner"].isin(claim.learners)
            & rates["method"].isin(claim.methods)
            & rates["feature"].isin(claim.features)
        ]
        rows.append(
            own[["learner", "method", "feature", "frequency"]].assign(
                data=known.dataset, claim=claim.text, stable=own["stable"] > 0.5
            )
        )
    return pd.concat(rows, ignore_index=True)


def orderings(name: str, found: Refit) -> pd.DataFrame:
    """Return in how many draws GCM's features predict better than LOCO's, and come back surer.

    `gap` is LOCO's error less GCM's, with its sd over draws. A feature is wavering in a draw when
    it is selected on some of the parts, but neither on all nor on none.
    """
    import pandas as pd

    known = published(name)
    rows = []
    for learner, own in found.errors.groupby("learner", sort=False):
        means = own.pivot_table(index="seed", columns="method", values="error", aggfunc="mean")
        gap: Any = means["loco"] - means["gcm"]
        rates = found.frequencies[found.frequencies["learner"] == learner]
        waver: dict[Any, float] = rates.groupby("method")["wavering"].sum().to_dict()
        chosen: dict[Any, float] = own.groupby("method")["selected"].mean().to_dict()
        rows.append(
            {
                "data": known.dataset,
                "learner": learner,
                "gcm_better": float((gap > 0).mean()),
                "same": float((gap == 0).mean()),
                "gap": float(gap.mean()),
                "gap_sd": float(gap.std(ddof=1)) if len(gap) > 1 else 0.0,
                "all_features": float(means[EVERYTHING].mean()),
                "gcm_selects": chosen["gcm"],
                "loco_selects": chosen["loco"],
                "gcm_wavering": waver["gcm"],
                "loco_wavering": waver["loco"],
            }
        )
    return pd.DataFrame(rows)


def all_verdicts(name: str, *, seed: int = 0) -> pd.DataFrame:
    """Return the tests on all rows with the paper's learners, ours, and the library's default.

    Where columns code a category, all again with the category as one feature: `grouped`.
    """
    import pandas as pd

    known = published(name)
    learner, method = DEFAULT
    tables = []
    for grouped in (False, True) if datasets.groups(known.dataset) else (False,):
        for learners, methods in (
            (known.learners | OUR_LEARNERS, METHODS),
            ({learner: learner}, (*METHODS, method)),
        ):
            found = verdicts(name, learners=learners, methods=methods, seed=seed, grouped=grouped)
            tables.append(found.assign(grouped=grouped))
    return pd.concat(tables, ignore_index=True)


def verdicts(
    name: str,
    *,
    learners: Sequence[str] | Mapping[str, Any] = LEARNERS,
    methods: Sequence[str] = METHODS,
    repeats: int = 3,
    seed: int = 0,
    grouped: bool = False,
) -> pd.DataFrame:
    """Return every feature's cross-fitted test on all rows, corrected for the number of features.

    `r2` is the share of the target that the learner explains out of fold: of two learners that
    disagree the one with the larger share is the one to believe. `warned` says that the library
    warns of the regressions behind a test. `units` counts the rows, or the clusters of rows that
    depend on each other.
    """
    import pandas as pd

    known = published(name)
    chosen = _learners(known, learners)
    X, y = datasets.load(known.dataset)
    clusters = datasets.clusters(known.dataset, X)
    units = len(X) if clusters is None else len(set(clusters.tolist()))
    tables = []
    for label, learner in chosen.items():
        result = assess(
            X, y, learner=learner, methods=list(methods), repeats=repeats, seed=seed,
            task="regression", clusters=clusters,
            groups=datasets.groups(known.dataset) if grouped else None,
        )  # fmt: skip
        full = result.quality.loc[result.quality["regression"] == "y given all", "r2"]
        warned = result.quality.loc[result.quality["alarm"] != "", "feature"]
        kept = ["method", "feature", "estimate", "statistic", "p_value", "p_adjusted", "selected"]
        tables.append(
            result.table[kept].assign(
                data=known.dataset,
                learner=label,
                setting=str(result.about["learner_text"]),
                r2=float(full.iloc[0]) if len(full) else float("nan"),
                units=units,
                warned=result.table["feature"].isin(warned),
            )
        )
    found = pd.concat(tables, ignore_index=True)
    first = ["data", "learner", "setting", "r2", "units"]
    return found[[*first, *(c for c in found.columns if c not in first)]]
