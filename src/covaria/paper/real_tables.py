"""The paper's real tables again: its errors beside ours, and which features come back.

`run` selects, refits and measures (`covaria.refit`) with the paper's learners. `errors`,
`frequencies` and `orderings` are what is kept of it; `table` puts the paper's numbers beside the
errors, and `claims` says which of its conclusions came out too. `verdicts` asks the same of every
feature by a cross-fitted test on all rows, corrected for their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from covaria import datasets
from covaria.assessment import assess
from covaria.errors import InputError
from covaria.learners import Boosting, Learner
from covaria.nuisance.plan import Progress
from covaria.paper.published import LEARNERS, METHODS, Published, published
from covaria.selection.refit import EVERYTHING, MOST_DRAWS, Refit, joined, refit
from covaria.studies.draws import Draws
from covaria.studies.grid import digest
from covaria.studies.runner import versions

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray
    from sklearn.neural_network import MLPRegressor

Row = dict[str, Any]  # of a table, by the names of its columns
Rows = list[Row]

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
    learners: Sequence[str] | Mapping[str, object] = LEARNERS,
    methods: Sequence[str] = METHODS,
    seeds: int = 20,
    seed: int = 0,
    grouped: bool = False,
    n_jobs: int = 1,
    progress: Progress | None = None,
    kept: Path | None = None,
) -> Refit:
    """Return the errors and frequencies of one of the paper's tables, in its mode or in ours.

    `learners` are some of lm, GBM and NN, or a mapping of names to learners of your own. `grouped`
    takes the columns that code one category as one feature. `kept` is a file to which every draw
    is added as soon as it is made; those it holds are not made again.
    """
    if mode not in MODES:
        raise InputError(f"mode={mode!r} is not known. Use 'paper' or 'ours'.")
    known = published(name)
    chosen = _learners(known, learners)
    X, y = datasets.load(known.dataset)
    clusters = None if mode == "paper" else datasets.clusters(known.dataset, X)
    settings: dict[str, Any] = {
        "clusters": clusters, "methods": list(methods), "paper": mode == "paper",
        "task": "regression", "groups": datasets.groups(known.dataset) if grouped else None,
    }  # fmt: skip
    if kept is None:
        return refit(
            X, y, learners=chosen, seeds=seeds, seed=seed, n_jobs=n_jobs, progress=progress,
            **settings,
        )  # fmt: skip
    draws = Draws(kept, {"data": digest(X, y), "mode": mode, "methods": list(methods),
                         "grouped": grouped, "versions": versions()})  # fmt: skip
    parts = []
    for label, learner in chosen.items():
        for at in range(seed, seed + seeds):
            key = {"learner": label, "setting": str(learner), "seed": at}
            if (found := draws.get(key)) is None:
                found = refit(X, y, learners={label: learner}, seed=at, n_jobs=n_jobs, **settings)
                draws.add(key, found)
            parts.append(found)
            if progress:
                progress(len(parts), len(chosen) * seeds)
    return joined(parts)


def _learners(known: Published, given: Sequence[str] | Mapping[str, object]) -> dict[str, object]:
    if isinstance(given, Mapping):
        return dict(given)
    unknown = [name for name in given if name not in known.learners]
    if unknown:
        raise InputError(f"There is no learner '{unknown[0]}' in the paper. Use lm, GBM or NN.")
    return {name: known.learners[name] for name in given}


def instead(name: str, *, seeds: int = 20, seed: int = 0) -> pd.DataFrame:
    """Return the errors of other settings where the stated one does not give the published one."""
    import pandas as pd

    tables = [
        errors(name, run(name, learners={"GBM": setting}, seeds=seeds, seed=seed))
        for setting in published(name).instead
    ]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def raw_networks(name: str, *, epochs: int, seeds: int = 1, seed: int = 0) -> pd.DataFrame:
    """Return the errors of the paper's network on standardised columns but the target as it is.

    Ours standardises the target too and stops when it has learned; this one trains for a fixed
    number of epochs, by scikit-learn's MLPRegressor.
    """
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    known = published(name)
    X, y = datasets.load(known.dataset)
    learner = make_pipeline(StandardScaler(), _mlp(known, epochs))
    found = refit(
        X, y, learners={"NN": learner}, methods=list(METHODS), seeds=seeds, seed=seed, paper=True,
        task="regression",
    )  # fmt: skip
    return errors(name, found).assign(setting=f"target not standardised, {epochs} epochs")


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
    known: Published,
    X: NDArray[np.float64],
    y: NDArray[np.float64],
    marks: Sequence[int],
    columns: bool,
    target: bool,
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


def _mlp(known: Published, epochs: int) -> MLPRegressor:
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


# --- what is kept of a run ----------------------------------------------------------------------


def errors(name: str, found: Refit) -> pd.DataFrame:
    """Return the errors of a run, with the data and the settings of its learners."""
    settings = found.table["learner"].map(found.about["learners"])
    return found.table.assign(data=published(name).dataset, setting=settings)


def frequencies(name: str, found: Refit) -> pd.DataFrame:
    """Return how often each feature was selected, with the data."""
    # Files of the paper keep the names that their columns have.
    kept = found.frequencies.rename(columns={"unstable": "wavering"})
    return kept.assign(data=published(name).dataset)


def orderings(name: str, found: Refit) -> pd.DataFrame:
    """Return in how many draws GCM's features predict better than LOCO's, and come back surer.

    `gap` is LOCO's error less GCM's, `steadier` how many more features are unstable with LOCO
    than with GCM, each with its sd over draws. A feature is unstable in a draw when it is selected
    on some of the parts, but neither on all nor on none.
    """
    import pandas as pd

    known = published(name)
    rows = []
    for learner, own in found.draws.groupby("learner", sort=False):
        by = own.drop(columns="learner").pivot(index="seed", columns="method")
        gap: Any = by["error", "loco"] - by["error", "gcm"]
        steadier: Any = by["unstable", "loco"] - by["unstable", "gcm"]
        rows.append(
            {
                "data": known.dataset,
                "learner": learner,
                "draws": len(by),
                "gcm_better": float((gap > 0).mean()),
                "same": float((gap == 0).mean()),
                **_over_draws("gap", gap),
                "all_features": float(by["error", EVERYTHING].mean()),
                "gcm_selects": float(by["selected", "gcm"].mean()),
                "loco_selects": float(by["selected", "loco"].mean()),
                "gcm_wavering": float(by["unstable", "gcm"].mean()),
                "loco_wavering": float(by["unstable", "loco"].mean()),
                **_over_draws("steadier", steadier),
            }
        )
    return pd.DataFrame(rows)


def _over_draws(name: str, values: pd.Series[float]) -> dict[str, float]:
    """Return the mean over draws, and the sd as `name`_sd."""
    sd = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return {name: float(values.mean()), f"{name}_sd": sd}


def as_rows(frame: pd.DataFrame) -> Rows:
    """Return a small table row by row."""
    rows: Rows = frame.to_dict("records")  # type: ignore[assignment]
    return rows


# --- what it says -------------------------------------------------------------------------------


def table(name: str, errors: pd.DataFrame, mode: str = "paper") -> pd.DataFrame:
    """Return the paper's errors beside ours, with the verdict and what there is to say.

    In our mode, another procedure than the paper's, they stand beside each other without one.
    """
    import pandas as pd

    known = published(name)
    rows = []
    for line in as_rows(errors):
        learner, method, ours = line["learner"], line["method"], line["error"]
        if method == EVERYTHING or learner not in known.errors:
            continue
        theirs, error = known.error(learner, method)
        verdict = _verdict(known, learner, ours, theirs, error)
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
                "verdict": verdict if mode == "paper" else "another procedure",
                "setting": line["setting"],
                "note": _note(known, learner, verdict) if mode == "paper" else "",
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


def _note(known: Published, learner: str, verdict: str) -> str:
    """Return why a published error did not come out, where that is known."""
    if verdict == "other data":
        return known.remarks[0]
    if verdict == "differs" and learner == "GBM" and known.cannot:
        return f"The stated setting cannot give it: {known.cannot}."
    return NETWORK_NOTE if verdict == "differs" and learner == "NN" else ""


NETWORK_NOTE = (
    "The paper states neither the epochs nor whether columns are standardised; docs/real_data.md "
    "has what each choice gives."
)


def claims(name: str, frequencies: pd.DataFrame) -> pd.DataFrame:
    """Return the paper's conclusions, feature by feature, with how often each was selected.

    It is stable where it was selected on at least 4 of 5 parts in most draws of the folds;
    `expected` says whether the paper has it so.
    """
    import pandas as pd

    known = published(name)
    rows = []
    for claim in known.claims:
        for methods, expected in ((claim.methods, True), (claim.not_by, False)):
            own = frequencies[
                frequencies["learner"].isin(claim.learners)
                & frequencies["method"].isin(methods)
                & frequencies["feature"].isin(claim.features)
            ]
            rows.append(
                own[["learner", "method", "feature", "frequency"]].assign(
                    data=known.dataset,
                    claim=claim.text,
                    expected=expected,
                    stable=own["stable"] > MOST_DRAWS,
                )
            )
    return pd.concat(rows, ignore_index=True)


def mean_and_error(row: Mapping[str, Any], name: str) -> tuple[float, float]:
    """Return a mean over draws in `orderings`, gap or steadier, and its standard error."""
    return row[name], row[f"{name}_sd"] / row["draws"] ** 0.5


def compared(row: Mapping[str, Any], name: str) -> str:
    """Return whether GCM is better than LOCO, worse or the same, by gap or steadier.

    It is the same within two standard errors of 0; of one draw, as in the paper, the sign counts.

    >>> [compared({"gap": 0.3, "gap_sd": sd, "draws": 20}, "gap") for sd in (0.4, 0.9)]
    ['better', 'same']
    >>> compared({"gap": -0.3, "gap_sd": 0.0, "draws": 1}, "gap")
    'worse'
    """
    mean, error = mean_and_error(row, name)
    if abs(mean) <= MOST_ERRORS * error:
        return "same"
    return "better" if mean > 0 else "worse"


def all_verdicts(name: str, *, seed: int = 0) -> pd.DataFrame:
    """Return the tests on all rows with the paper's learners, ours, and the library's default.

    Where columns code a category, all again with the category as one feature: `grouped`. Where
    other units than the usual could be taken (see `verdicts`), all again with these.
    """
    import pandas as pd

    known = published(name)
    X, _ = datasets.load(known.dataset)
    ways = [{"grouped": False, "other_units": False}]
    if datasets.groups(known.dataset):
        ways.append({"grouped": True, "other_units": False})
    if _has_other_units(known, X):
        ways.append({"grouped": False, "other_units": True})
    learner, method = DEFAULT
    tables = []
    for way in ways:
        for learners, methods in (
            (known.learners | OUR_LEARNERS, METHODS),
            ({learner: learner}, (*METHODS, method)),
        ):
            found = verdicts(name, learners=learners, methods=methods, seed=seed, **way)
            tables.append(found.assign(**way))
    return pd.concat(tables, ignore_index=True)


def verdicts(
    name: str,
    *,
    learners: Sequence[str] | Mapping[str, object] = LEARNERS,
    methods: Sequence[str] = METHODS,
    repeats: int = 3,
    seed: int = 0,
    grouped: bool = False,
    other_units: bool = False,
) -> pd.DataFrame:
    """Return every feature's cross-fitted test on all rows, corrected for the number of features.

    `r2` is the share of the target that the learner explains out of fold: of two learners that
    disagree the one with the larger share is the one to believe. `warned` says that the library
    warns of the regressions behind a test. `units` counts the rows, or the clusters of rows that
    depend on each other. `other_units` takes rows where clusters are usual, and where rows are the
    places they seem to come from.
    """
    import pandas as pd

    known = published(name)
    chosen = _learners(known, learners)
    X, y = datasets.load(known.dataset)
    clusters = _clusters(known, X, other=other_units)
    units = len(X) if clusters is None else len(set(clusters.tolist()))
    tables = []
    for label, learner in chosen.items():
        result = assess(
            X, y, learner=learner, methods=list(methods), repeats=repeats, seed=seed,
            task="regression", clusters=clusters,
            groups=datasets.groups(known.dataset) if grouped else None,
        )  # fmt: skip
        full = result.quality.loc[result.quality["regression"] == "y given all", "r2"]
        warned = result.quality.loc[result.quality["warning"] != "", "feature"]
        kept = ["method", "feature", "estimate", "statistic", "p_value", "p_adjusted", "selected"]
        tables.append(
            result.table[kept].assign(
                data=known.dataset,
                learner=label,
                setting=str(result.about.learner_text),
                r2=float(full.iloc[0]) if len(full) else float("nan"),
                units=units,
                warned=result.table["feature"].isin(warned),
            )
        )
    found = pd.concat(tables, ignore_index=True)
    first = ["data", "learner", "setting", "r2", "units"]
    return found[[*first, *(c for c in found.columns if c not in first)]]


def _clusters(known: Published, X: pd.DataFrame, *, other: bool) -> NDArray[np.integer] | None:
    usual = datasets.clusters(known.dataset, X)
    if not other:
        return usual
    return None if usual is not None else datasets.alike(known.dataset, X)


def _has_other_units(known: Published, X: pd.DataFrame) -> bool:
    is_usual, is_other = (_clusters(known, X, other=o) is not None for o in (False, True))
    return is_usual or is_other
