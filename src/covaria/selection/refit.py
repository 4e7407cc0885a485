"""Select on a part of the rows, refit on what was selected, and measure on the rows left out.

For each of K folds: features are selected on the K − 1 training folds, the learner is fitted
anew on those rows with the selected features only, and its loss is the mean over the fold that
was left out. An error is the mean over the K folds, with the standard error sd/√K (ddof 1). With
paper=True this is how the tables of the paper were made; otherwise each selection is cross-fitted
within its training rows and corrected for the number of features.

Folds are a lottery, so it is played `seeds` times and the spread over the draws is shown.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from covaria.assessment import WITHOUT_CHECKS, Job, prepare
from covaria.errors import InputError, short, text_of
from covaria.execution.cost import Ledger, added
from covaria.execution.progress import watched
from covaria.learners import Learner, Prefit, get_learner
from covaria.nuisance.plan import Plan, Progress
from covaria.nuisance.regressions import fit_residuals
from covaria.nuisance.splits import Fold
from covaria.options.checks import plain, plain_all, reporter, whole
from covaria.options.naming import split_names
from covaria.randomness import seed_of
from covaria.results.result import lines_of, plain_table
from covaria.selection.stability import (
    Rule,
    Stability,
    check_options,
    check_splits,
    stability_of,
)
from covaria.tables.arrays import Rows
from covaria.tables.dataset import Dataset
from covaria.tables.layout import Feature, is_constant

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
# The learner on every feature: what selection is to be measured against.
EVERYTHING = "all features"
# A feature is stable if it is so in more than this share of the draws.
MOST_DRAWS = 0.5
MOST_SEEDS = 10_000
FRAMES = ("table", "frequencies", "draws", "errors")


def refit(
    X: object,
    y: object = None,
    *,
    learner: object = "auto",
    methods: str | Sequence[str] = "default",
    learners: object = None,
    folds: int = 5,
    threshold: float = 0.8,
    seeds: int = 1,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Refit:
    """Return the error of each learner on the features that each method selects, and which last.

    Parameters
    ----------
    X
        The features, as for `assess`.
    y
        The target, as for `assess`.
    learner
        As for `assess`; it selects features, and is refitted on them.
    methods
        As for `assess`.
    learners
        Several in the place of one, to be compared: names or learner values;
        "linear,boosting(trees=200)" as one text is several. A mapping gives each a name of your
        own.
    folds
        Select on the training part of each of so many folds, measure on the rows left out.
    threshold
        A feature is stable when it is selected on at least this share of the training parts.
    seeds
        How many ways to draw the folds.
    seed
        The first of them.
    n_jobs
        How many processes share the work; the numbers are those of one.
    progress
        A function of (done, total); False shows no bar.
    options
        Any other option of `assess`: paper, correction, alpha, groups, task, …

    Examples
    --------
    >>> import covaria
    >>> X, y = covaria.draw("linear", n_rows=300, seed=1)
    >>> found = refit(X, y, learners="linear", methods="gcm", paper=True)
    >>> found.table[["learner", "method"]].to_numpy().tolist()
    [['linear', 'gcm'], ['linear', 'all features']]
    """
    what = "a whole number of fold draws, 1 or more"
    seeds, seed = whole("seeds", seeds, 1, MOST_SEEDS, what), whole("seed", seed, 0)
    # Says what is wrong before anything is run.
    rule, progress = Rule(folds=folds, threshold=threshold), reporter(progress)
    check_options(options, own=("learner", "learners", "methods"))
    check_splits(plain(options.get("splits", 5)))
    runs: list[_Run] = []
    start = time.perf_counter()
    named = name_learners([learner] if learners is None else learners)
    if any(isinstance(one, Prefit) for one in named.values()):
        raise InputError(
            "refit fits learners on what was selected, and a prefit model is not fitted again. "
            "Give the estimator itself."
        )
    total = len(named) * seeds * rule.count
    with watched(progress) as heard:
        for name, one in named.items():
            given = WITHOUT_CHECKS | options
            job = prepare(X, y, learner=one, methods=methods, seed=seed, n_jobs=n_jobs, **given)
            _check_comparable(job)
            for at in range(seed, seed + seeds):
                # The same table for every draw of the folds: a sample of rows goes by the seed.
                one_draw = replace(job, options=replace(job.options, seed=at),
                                   seconds=job.seconds if at == seed else 0.0)  # fmt: skip
                found = stability_of(one_draw, rule, _after(heard, len(runs) * rule.count, total))
                ledger = Ledger()
                with ledger.stage("refit"):
                    errors = _errors(job, found, at, ledger)
                cost = added([found.cost, ledger.table()])
                runs.append(_Run(name, at, found, errors, _loss(job.data), cost))
    return _concluded(runs, start)


def _loss(data: Dataset) -> str:
    """Return what errors are measured by."""
    if data.rule is not None:
        return data.rule.words
    return "log-loss" if data.classes else "mean squared error"


def _check_comparable(job: Job) -> None:
    """Raise where features are left untested, or there is more than one error to measure."""
    if job.data.outputs is not None:
        raise InputError("refit measures the error of one target. Call it for each of them.")
    if job.asked is not None:
        raise InputError(
            "refit compares learners on what is selected of all features, so neither features nor "
            "the | of a formula is for it. Use stability, or leave out the columns that no learner "
            "shall see."
        )


def name_learners(given: object) -> dict[str, Learner]:
    """Return the learners by name; two of one kind go by their settings.

    >>> list(name_learners("linear, boosting, boosting(splits=4)"))[:2]
    ['linear', 'boosting']
    """
    given = plain_all(given) if isinstance(given, np.ndarray) else given
    if isinstance(given, str):
        given = split_names(given)
    elif not isinstance(given, (Mapping, Sequence)):
        given = [given]
    if not given:
        raise InputError("learners names none. Give one or more, such as 'linear,boosting'.")
    if isinstance(given, Mapping):
        return {text_of(name): get_learner(value) for name, value in given.items()}
    named: dict[str, Learner] = {}
    for one in given:
        learner = get_learner(one)
        named[learner.name if learner.name not in named else str(learner)] = learner
    return named


def _after(progress: Progress | None, done: int, total: int) -> Progress | None:
    if progress is None:
        return None
    return lambda at, _: progress(done + at, total)


@dataclass(frozen=True)
class _Run:
    """One learner on one draw of the folds."""

    learner: str
    seed: int
    stability: Stability
    errors: Mapping[str, list[float]]
    loss: str
    cost: pd.DataFrame


def _errors(job: Job, found: Stability, seed: int, ledger: Ledger) -> dict[str, list[float]]:
    """Return the error of the refitted learner on each left-out part, for each method."""
    chosen = {**found.chosen, EVERYTHING: np.ones_like(next(iter(found.chosen.values())))}
    errors: dict[str, list[float]] = {method: [] for method in chosen}
    for at, fold in enumerate(found.samples):
        known: dict[bytes, float] = {}  # methods that agree share the fit
        for method, flags in chosen.items():
            key = flags[at].tobytes()
            if key not in known:
                known[key] = held_out_error(
                    job.data, job.of_y or job.learner, flags[at], fold,
                    seed_of(seed, "refit", at), ledger,
                )  # fmt: skip
            errors[method].append(known[key])
    return errors


def held_out_error(
    data: Dataset, learner: Learner, selected: Flags, fold: Fold, seed: int,
    ledger: Ledger | None = None,
) -> float:  # fmt: skip
    """Return the mean loss on a fold's test rows of the learner fitted on the selected features.

    Where nothing is selected, or nothing that varies, the mean is predicted.
    """
    train, test = fold
    kept = with_features(data, selected, train)
    if kept.X.shape[1] == 0:
        losses = data.loss(data.mean_prediction(train, len(test)), test)
    else:
        plan = Plan(kept, learner, [fold], frozenset({"y_given_all"}), seed, ledger=ledger,
                    purpose="refits on what was selected")  # fmt: skip
        left = fit_residuals(plan)
        if left.failures:
            reason = next(iter(left.failures.values()))
            raise InputError(f"{learner} could not be refitted ({reason}). Use another learner.")
        # Residuals come in the order of the table, as `rows` says.
        losses, test = left.loss_given_all[:, 0], left.rows
    weights = None if data.weights is None else data.weights[test]
    return float(np.average(losses, weights=weights))


def with_features(data: Dataset, selected: Flags, train: Rows) -> Dataset:
    """Return the table with some features only, without columns that do not vary in training."""
    chosen = [f for f, is_selected in zip(data.features, selected, strict=True) if is_selected]
    owned = sorted(c for f in chosen for c in f.columns if not is_constant(data.X[train, c]))
    place = {column: new for new, column in enumerate(owned)}
    columns = [tuple(place[c] for c in f.columns if c in place) for f in chosen]
    features = [Feature(f.name, f.kind, c) for f, c in zip(chosen, columns, strict=True) if c]
    at = np.array(owned, dtype=np.intp)
    holes = None if data.holes is None else data.holes[:, at]
    return replace(
        data,
        X=np.ascontiguousarray(data.X[:, at]),
        features=tuple(features),
        holes=holes,
        frame=None if data.frame is None else data.frame.only([f.name for f in chosen]),
    )


@dataclass(frozen=True, eq=False)
class Refit:
    """What `refit` found.

    table        learner, method, error (the mean over draws of the folds), std_error (over the
                 folds of one draw, the mean over draws), spread (sd of the error over draws),
                 low and high (the smallest and largest draw), selected (features at a time),
                 seeds (draws)
    errors       learner, method, seed, fold, error, selected: everything behind the table
    draws        learner, method, seed, error, std_error, selected, unstable (how many features were
                 selected on some parts, but not on all): a row for each draw of the folds
    frequencies  learner, method, feature, frequency, stable (the share of draws in which the
                 feature was selected on at least `threshold` of the parts), unstable (the share in
                 which it was selected on some parts, but not on all)
    about        rows, features, learners, mode, folds, seeds
    cost         models fitted and seconds of all that was run, as `Result.cost` has them
    """

    table: pd.DataFrame
    errors: pd.DataFrame
    draws: pd.DataFrame
    frequencies: pd.DataFrame
    about: Mapping[str, Any]
    alerts: tuple[str, ...] = field(default=())
    cost: pd.DataFrame = field(default_factory=lambda: Ledger().table(), repr=False)

    @property
    def stable(self) -> dict[str, dict[str, list[str]]]:
        """Return {learner: {method: features stable in most draws}}."""
        found: dict[str, dict[str, list[str]]] = {}
        for (learner, method), own in self.frequencies.groupby(["learner", "method"], sort=False):
            kept = own.loc[own["stable"] > MOST_DRAWS, "feature"]
            found.setdefault(str(learner), {})[str(method)] = kept.tolist()
        return found

    def to_dict(self) -> dict[str, object]:
        """Return everything as values that json can hold."""
        return {
            "about": dict(self.about),
            "alerts": list(self.alerts),
            "stable": self.stable,
            **{name: lines_of(getattr(self, name)) for name in FRAMES},
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Refit:
        """Return what `to_dict` described."""
        import pandas as pd

        from covaria.selection.refit_table import RefitTable

        frames = {name: RefitTable.of(pd.DataFrame(stored[name])) for name in FRAMES}
        return cls(**frames, about=stored["about"], alerts=tuple(stored["alerts"]))

    def __str__(self) -> str:
        import pandas as pd

        about = self.about
        head = (
            f"Error on the rows left out ({about['loss']}, {about['folds']} folds, "
            f"{about['seeds']} draw{'s' if about['seeds'] > 1 else ''} of them; {about['mode']}):"
        )
        rows = []
        for learner, own in self.table.groupby("learner", sort=False):
            shown = {r.method: f"{r.error:.4g} ± {r.std_error:.2g}" for r in own.itertuples()}
            rows.append({"learner": learner, **shown})
        lines = [head, "", plain_table(pd.DataFrame(rows))]
        for learner, own in self.frequencies.groupby("learner", sort=False):
            marks = own["stable"].gt(MOST_DRAWS).map({True: " *", False: ""})
            wide = own.assign(shown=own["frequency"].map("{:.2f}".format) + marks).pivot_table(
                index="feature", columns="method", values="shown", aggfunc="first", sort=False
            )
            often = f"at least {about['threshold']:g}{', mostly' if about['seeds'] > 1 else ''}"
            lines += ["", f"How often {learner} selects (* {often}):", ""]
            lines.append(plain_table(wide.reset_index()))
        return "\n".join([*lines, *(f"! {alert}" for alert in self.alerts)])

    __repr__ = __str__


def joined(parts: Sequence[Refit]) -> Refit:
    """Return draws that were made one by one, as `refit` returns those it makes at once."""
    import pandas as pd

    errors, draws, every = (
        pd.concat([getattr(part, name) for part in parts], ignore_index=True)
        for name in ("errors", "draws", "frequencies")
    )
    seeds = sorted({int(part.about["seed"]) for part in parts})
    learners = {name: text for part in parts for name, text in part.about["learners"].items()}
    return Refit(
        table=_summary(draws),
        errors=errors,
        draws=draws,
        frequencies=_mean_frequencies(every),
        about={
            **parts[0].about,
            "learners": learners,
            "seeds": len(seeds),
            "seed": seeds[0],
        },
        alerts=tuple(dict.fromkeys(alert for part in parts for alert in part.alerts)),
        cost=added(part.cost for part in parts),
    )


def _concluded(runs: Sequence[_Run], start: float) -> Refit:
    import pandas as pd

    errors = pd.DataFrame([line for run in runs for line in _error_lines(run)])
    draws = _draws(errors, runs)
    first = runs[0].stability.about
    seeds = sorted({run.seed for run in runs})
    alerts = dict.fromkeys(note for run in runs for note in run.stability.notes)
    table, frequencies = _summary(draws), _frequencies(runs)
    return Refit(
        table=table,
        errors=errors,
        draws=draws,
        frequencies=frequencies,
        about={
            "target": first["target"],
            "n_rows": first["n_rows"],
            "n_features": first["n_features"],
            "loss": runs[0].loss,
            "learners": {run.learner: run.stability.about["learner_text"] for run in runs},
            "mode": "the paper's mode" if first["paper"] else "cross-fitted",
            "paper": first["paper"],
            "correction": first["correction"],
            "alpha": first["alpha"],
            "folds": first["count"],
            "threshold": first["threshold"],
            "seeds": len(seeds),
            "seed": seeds[0],
        },
        alerts=tuple(short(alert, 400) for alert in alerts),
        cost=added((run.cost for run in runs), "refit", time.perf_counter() - start),
    )


def _error_lines(run: _Run) -> list[dict[str, object]]:
    lines = []
    for method, errors in run.errors.items():
        flags = run.stability.chosen.get(method)
        for fold, error in enumerate(errors):
            count = run.stability.about["n_features"] if flags is None else int(flags[fold].sum())
            where = {"learner": run.learner, "method": method, "seed": run.seed, "fold": fold + 1}
            lines.append({**where, "error": error, "selected": count})
    return lines


def _draws(errors: pd.DataFrame, runs: Sequence[_Run]) -> pd.DataFrame:
    """Return each draw of the folds: its error, standard error and count of unstable features."""
    from covaria.selection.refit_table import RefitTable

    unstable = {
        (run.learner, method, run.seed): int((flags.any(axis=0) & ~flags.all(axis=0)).sum())
        for run in runs
        for method, flags in run.stability.chosen.items()
    }
    grouped = errors.groupby(["learner", "method", "seed"], sort=False)
    found = grouped.agg(
        error=("error", "mean"), std_error=("error", "sem"), selected=("selected", "mean")
    ).reset_index()
    keys = zip(found["learner"], found["method"], found["seed"], strict=True)
    return RefitTable(found.assign(unstable=[unstable.get(key, 0) for key in keys]))


def _summary(draws: pd.DataFrame) -> pd.DataFrame:
    """Return an error per learner and method with its standard error and its spread over draws."""
    found = draws.groupby(["learner", "method"], sort=False).agg(
        error=("error", "mean"),
        std_error=("std_error", "mean"),
        spread=("error", "std"),
        low=("error", "min"),
        high=("error", "max"),
        selected=("selected", "mean"),
        seeds=("seed", "size"),
    )
    return found.fillna({"spread": 0.0}).reset_index()


def _frequencies(runs: Sequence[_Run]) -> pd.DataFrame:
    import pandas as pd

    tables = [run.stability.table.assign(learner=run.learner) for run in runs]
    every = pd.concat(tables, ignore_index=True)
    every["unstable"] = (every["frequency"] > 0) & (every["frequency"] < 1)
    return _mean_frequencies(every.rename(columns={"selected": "stable"}))


def _mean_frequencies(every: pd.DataFrame) -> pd.DataFrame:
    from covaria.selection.refit_table import RefitTable

    grouped = every.groupby(["learner", "method", "feature"], sort=False)
    found = grouped.agg(
        frequency=("frequency", "mean"), stable=("stable", "mean"), unstable=("unstable", "mean")
    )
    return RefitTable(found.reset_index())
