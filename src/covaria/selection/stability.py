"""Stability: select again on parts of the rows, and keep the features that come back.

Two schemes. "folds": the training rows of each of K folds; with K = 5 and a threshold of .8 this is
the paper's rule of 4 out of 5. "half_samples": B random splits of the rows into two halves, each
half used (complementary pairs), for which theorems bound the expected number of false selections
(`stability_bounds`).

Meinshausen and Bühlmann, JRSSB 72 (2010); Shah and Samworth, JRSSB 75 (2013).
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from covaria.assessment import WITHOUT_CHECKS, Job, assess, prepare
from covaria.errors import InputError, NothingFitted, listed, plural, short
from covaria.execution.cost import Ledger, added
from covaria.execution.executors import Died, Unsendable, each, in_order
from covaria.execution.processes import Processes
from covaria.execution.progress import watched
from covaria.execution.threads import one_thread
from covaria.nuisance.plan import Progress
from covaria.nuisance.splits import Fold, by_appearance, can_be_redrawn, make_splits
from covaria.options.checks import one_of, plain, reporter, shown, whole
from covaria.options.familiar import unknown_option
from covaria.randomness import seed_of, stream
from covaria.results.result import plain_table
from covaria.results.status import has_failed
from covaria.selection.bounds import (
    ROUNDING,
    folds_level,
    r_concave_bound,
    unimodal_bound,
    worst_case_bound,
)
from covaria.tables.arrays import Rows
from covaria.tables.beside import MIN_CLUSTERS, MIN_ROWS
from covaria.tables.dataset import Dataset
from covaria.tables.layout import Feature, is_constant

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

SCHEMES = ("folds", "half_samples")
MOST_PAIRS = 100_000
# A half of the smallest table that `assess` takes.
LEAST_ROWS = MIN_ROWS // 2
# An adjusted p-value of these is never below the raw one, so a null passes at most at alpha.
NEVER_BELOW_RAW = ("none", "bh", "by", "holm", "bonferroni")


def stability(
    X: object,
    y: object = None,
    *,
    learner: object = "auto",
    methods: str | Sequence[str] = "default",
    method: str | Sequence[str] | None = None,
    folds: int = 5,
    threshold: float = 0.8,
    scheme: str = "folds",
    pairs: int = 50,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Stability:
    """Return how often each feature is selected on parts of the rows, and which are stable.

    Parameters
    ----------
    X
        The features, as for `assess`.
    y
        The target, as for `assess`.
    learner
        As for `assess`.
    methods
        As for `assess`; several methods share their models.
    method
        Another name for `methods`.
    folds
        Select on the training rows of each of so many folds.
    threshold
        A feature is stable when it is selected on at least this share of the parts.
    scheme
        "folds"; or "half_samples", which selects on both halves of random splits, for which the
        expected number of false selections is bounded.
    pairs
        How many random splits "half_samples" draws.
    seed
        Same seed, same numbers.
    n_jobs
        How many processes share out the parts; the numbers are those of one.
    progress
        A function of (done, total); False shows no bar.
    options
        Any other option of `assess`: splits, correction, alpha, groups, paper, …

    Examples
    --------
    >>> import covaria
    >>> X, y = covaria.draw("linear", n_rows=300, seed=1)
    >>> found = covaria.stability(X, y, method="gcm", learner="linear")
    >>> {"x5", "x6", "x7", "x8"} <= set(found.selected["gcm"])
    True
    """
    rule, progress = Rule(scheme, folds, pairs, threshold), reporter(progress)
    check_options(options)
    check_splits(plain(options.get("splits", 5)))
    given = WITHOUT_CHECKS | options
    methods = methods if method is None else method
    job = prepare(X, y, learner=learner, methods=methods, seed=seed, n_jobs=n_jobs, **given)
    with watched(progress) as reported:
        return stability_of(job, rule, reported)


def stability_of(job: Job, rule: Rule, progress: Progress | None) -> Stability:
    """Return how often each feature of a checked run is selected on parts of its rows."""
    if job.finds_groups:
        raise InputError("groups='auto' is for assess. Name the groups, or leave them out.")
    start, runs = time.perf_counter(), []
    samples = rule.samples(job.data, job.options.seed)
    for run in _runs(job, samples, rule.scheme):
        runs.append(run)
        if progress:
            progress(len(runs), len(samples))
    if all(run.nothing for run in runs):
        raise InputError(f"On a part of {plural(len(samples[0][0]), 'row')}: {runs[0].nothing}")
    found = _concluded(job, rule, samples, runs)
    took = job.seconds + time.perf_counter() - start
    return replace(found, cost=_cost(job, runs, took))


@dataclass(frozen=True)
class Rule:
    """Which parts of the rows are used, and how often a feature must be selected."""

    scheme: str = "folds"
    folds: int = 5
    pairs: int = 50
    threshold: float = 0.8

    def __post_init__(self) -> None:
        threshold = plain(self.threshold)
        if not isinstance(threshold, (int, float)) or not 0.5 < threshold <= 1:
            raise InputError(
                f"threshold={shown(threshold)} must be a share above 0.5 and at most 1, such as "
                "0.8."
            )
        checked = {
            "scheme": one_of("scheme", self.scheme, SCHEMES),
            "folds": whole("folds", self.folds, 2),
            "pairs": whole("pairs", self.pairs, 1, MOST_PAIRS),
            "threshold": threshold,
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def count(self) -> int:
        """Return how many parts there are."""
        return int(self.folds) if self.scheme == "folds" else 2 * int(self.pairs)

    @property
    def needed(self) -> int:
        """Return in how many of them a stable feature is selected.

        >>> Rule().needed, Rule("half_samples", threshold=0.6).needed
        (4, 60)
        """
        return ceil(float(self.threshold) * self.count - ROUNDING)

    def samples(self, data: Dataset, seed: int) -> list[Fold]:
        """Return (rows to select on, rows left out) of every part."""
        if self.scheme == "folds":
            samples = _folds(data, self.folds, seed)
        else:
            samples = [part for at in range(self.pairs) for part in _halves(data, seed, at)]
        fewest = min(len(rows) for rows, _ in samples)
        if fewest < LEAST_ROWS:
            part = "fold's training part" if self.scheme == "folds" else "half"
            raise InputError(
                f"A {part} has {plural(fewest, 'row')}; at least {LEAST_ROWS} are needed to test. "
                f"Give more than the {data.n_rows} rows there are."
            )
        return samples


def _folds(data: Dataset, count: int, seed: int) -> list[Fold]:
    units = data.n_rows if data.clusters is None else int(data.clusters.max()) + 1
    if count > units // 2:
        unit = plural(units, "row" if data.clusters is None else "cluster")
        raise InputError(f"folds={shown(count)} is too many for {unit}. Use {units // 2} or fewer.")
    return make_splits(data, count, seed_of(seed, "stability", "folds"))


def _halves(data: Dataset, seed: int, pair: int) -> list[Fold]:
    """Return two halves of the rows, each beside the other.

    Clusters stay whole, and classes are shared out evenly. Of an odd number one is left out.
    """
    rng = stream(seed, "stability", "half_samples", pair)
    unit = np.arange(data.n_rows) if data.clusters is None else data.clusters
    count = int(unit.max()) + 1
    if data.clusters is not None and count < 2 * MIN_CLUSTERS:
        raise InputError(
            f"clusters has {plural(count, 'cluster')}; halves need {2 * MIN_CLUSTERS}. Use "
            "scheme='folds'."
        )
    order = rng.permutation(count)[: count - count % 2]
    if data.classes and data.clusters is None:
        order = order[np.argsort(by_appearance(data.y)[order], kind="stable")]
    halves = [np.flatnonzero(np.isin(unit, order[at::2])).astype(np.intp) for at in (0, 1)]
    return [(halves[0], halves[1]), (halves[1], halves[0])]


def check_options(
    options: Mapping[str, object], own: Sequence[str] = ("methods", "learner")
) -> None:
    """Raise a sentence where `assess` has no such option, but for those in `own`."""
    named = ("X", "y", "methods", "learner", "predictions")  # the last are of the whole table
    known = [*own, *(name for name in inspect.signature(assess).parameters if name not in named)]
    for name in options:
        if name not in known:
            raise unknown_option(name, known)


def check_splits(splits: object) -> None:
    """Raise a sentence where splits hold for the whole table only."""
    if splits is not None and not can_be_redrawn(splits):
        raise InputError(
            "splits as lists of row numbers fit the whole table only. Use a number of folds, a "
            "share, 'none' or a scikit-learn splitter."
        )


@dataclass(frozen=True)
class _Run:
    """What was selected on one part of the rows, for each method."""

    selected: dict[str, Flags]
    sided: dict[str, str]
    cost: pd.DataFrame
    failures: tuple[str, ...] = ()
    nothing: str = ""  # why no fit succeeded


def _runs(job: Job, samples: Sequence[Fold], scheme: str) -> Iterator[_Run]:
    """Yield the run on every part, in order, in as many processes as the job asks for."""
    seeds = [seed_of(job.options.seed, "stability", scheme, at) for at in range(len(samples))]
    tasks = [(job, rows, seed) for (rows, _), seed in zip(samples, seeds, strict=True)]
    if job.n_jobs == 1:
        with one_thread():  # the same bits as in a worker, which has one thread
            yield from map(_run, tasks)
        return
    with closing(Processes(job.n_jobs, apart=True)) as executor:
        executor.share(job)
        try:
            for run in in_order(each(executor, _run, tasks, most_deaths=0)):
                if isinstance(run, Died):
                    raise Unsendable("a process that runs it died")
                yield run
        except Unsendable as error:
            reason = short(str(error), 150).rstrip(".")
            raise InputError(
                f"{job.learner} cannot be run in other processes ({reason}). Use n_jobs=1."
            ) from error


def _run(task: tuple[Job, Rows, int]) -> _Run:
    """Return what is selected on some rows."""
    job, rows, seed = task
    try:
        part = replace(
            job, data=part_of(job.data, rows), options=replace(job.options, seed=seed), n_jobs=1,
            seconds=0.0,
        )  # fmt: skip
        result, nothing = part.run(), ""
    except NothingFitted as error:
        result, nothing = error.result, str(error)
    except InputError as error:
        raise InputError(f"On a part of {plural(len(rows), 'row')}: {error}") from None
    table, n_features = result.table, len(job.names)
    selected = table["selected"].to_numpy(dtype=bool).reshape(-1, n_features)
    p_values = table["p_value"].to_numpy(dtype=float).reshape(-1, n_features)
    tested = [
        name for name, p in zip(result.methods, p_values, strict=True) if not np.isnan(p).any()
    ]
    some_failed = any(map(has_failed, table["status"].tolist()))
    return _Run(
        selected=dict(zip(result.methods, selected, strict=True)),
        sided={name: str(result.about.methods[name]) for name in tested},
        cost=result.cost,
        failures=tuple(result.failures) if some_failed else (),
        nothing=nothing,
    )


def part_of(data: Dataset, rows: Rows) -> Dataset:
    """Return some rows of a table; a column that does not vary among them is left out."""
    X = data.X[rows]
    kept = [at for at in range(X.shape[1]) if not is_constant(X[:, at])]
    place = {column: at for at, column in enumerate(kept)}
    features = []
    for feature in data.features:
        columns = tuple(place[column] for column in feature.columns if column in place)
        features.append(Feature(feature.name, feature.kind if columns else "constant", columns))
    holes = None if data.holes is None else data.holes[rows][:, kept]
    y, classes = _target(data, rows)
    part = replace(
        data,
        X=np.ascontiguousarray(X[:, kept]),
        y=y,
        features=tuple(features),
        classes=classes,
        holes=holes if holes is not None and holes.any() else None,
        weights=_weights(data, rows),
        clusters=_clusters(data, rows),
        frame=None if data.frame is None else data.frame.at_rows(rows),
        levels=tuple(replace(one, code=one.code[rows]) for one in data.levels),
        kept=None if data.kept is None else data.kept[rows],
    )
    return part.with_targets_of(data, rows)


def _target(data: Dataset, rows: Rows) -> tuple[Array, tuple[str, ...]]:
    """Return y of some rows, and the classes that are left among them."""
    y = data.y[rows]
    if is_constant(y):
        raise InputError(
            f"The target '{short(data.target)}' is the same in every row. Merge rare classes, or "
            "use larger parts."
        )
    if not data.classes:
        return y, ()
    present, codes = np.unique(y, return_inverse=True)
    return codes.astype(float), tuple(data.classes[int(code)] for code in present)


def _weights(data: Dataset, rows: Rows) -> Array | None:
    if data.weights is None:
        return None
    weights = data.weights[rows]
    if np.count_nonzero(weights) < LEAST_ROWS:
        raise InputError(
            f"sample_weight is above 0 in fewer than {LEAST_ROWS} rows. Use larger parts."
        )
    return np.asarray(weights / weights.mean())


def _clusters(data: Dataset, rows: Rows) -> Rows | None:
    if data.clusters is None:
        return None
    return np.unique(data.clusters[rows], return_inverse=True)[1].astype(np.intp)


@dataclass(frozen=True, eq=False)
class Stability:
    """What `stability` found.

    table           method, feature, times and frequency of selection, selected
    expected_false  {method: {"worst_case": …, "unimodal": …}}: bounds on, or the expectation of,
                    the number of useless features selected; only those that apply
    chosen          {method: (parts, features)}: what was selected on each part of the rows
    samples         (rows selected on, rows left out) of each part
    about           rule, learner, level and seed
    alerts          sentences to read before trusting the table
    notes           those of them that are about the rows and the fits
    cost            models fitted and seconds on all parts together, as `Result.cost` has them
    """

    table: pd.DataFrame
    expected_false: Mapping[str, Mapping[str, float]]
    chosen: Mapping[str, Flags]
    samples: Sequence[Fold]
    about: Mapping[str, Any]
    alerts: tuple[str, ...] = field(default=())
    notes: tuple[str, ...] = field(default=())
    cost: pd.DataFrame = field(default_factory=lambda: Ledger().table(), repr=False)

    @property
    def methods(self) -> list[str]:
        return list(self.chosen)

    @cached_property
    def features(self) -> list[str]:
        return [str(f) for f in self.table["feature"].drop_duplicates()]

    @property
    def selected(self) -> dict[str, list[str]]:
        """Return the stable features of each method, in the order of the table."""
        kept = self.table[self.table["selected"]]
        return {m: kept.loc[kept["method"] == m, "feature"].tolist() for m in self.methods}

    @property
    def q(self) -> dict[str, float]:
        """Return how many features each method selects at a time, on average."""
        return {m: float(flags.sum(axis=1).mean()) for m, flags in self.chosen.items()}

    def to_dict(self) -> dict[str, object]:
        """Return everything but the row numbers as values that json can hold."""
        return {
            "about": dict(self.about),
            "alerts": list(self.alerts),
            "table": self.table.to_dict(orient="list"),
            "q": self.q,
            "expected_false": {m: dict(bounds) for m, bounds in self.expected_false.items()},
            "chosen": {m: flags.astype(int).tolist() for m, flags in self.chosen.items()},
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stability) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    @property
    def headline(self) -> str:
        """Return the answer in one sentence."""
        about = self.about
        counts = [f"{len(names)} by {method}" for method, names in self.selected.items()]
        return (
            f"Of {plural(about['n_features'], 'feature')}, stable for '{short(about['target'])}': "
            f"{', '.join(counts)} ({about['needed']} or more of {about['count']} "
            f"{about['parts']})."
        )

    def __str__(self) -> str:
        import pandas as pd

        lines = []
        for name, rows in self.table.groupby("feature", sort=False):
            times = {
                str(r.method): f"{r.times}/{self.about['count']}{' *' if r.selected else ''}"
                for r in rows.itertuples()
            }
            lines.append({"feature": name, **times})
        shown = plain_table(pd.DataFrame(lines))
        return "\n".join([self.headline, "", shown, *(f"! {alert}" for alert in self.alerts)])

    __repr__ = __str__


def _concluded(job: Job, rule: Rule, samples: Sequence[Fold], runs: Sequence[_Run]) -> Stability:
    """Return how often each feature was selected, and what that is worth."""
    import pandas as pd

    names, notes = job.names, tuple(_notes(job, runs))
    chosen = {m: np.array([run.selected[m] for run in runs]) for m in runs[0].selected}
    tables, expected, rates = [], {}, []
    for method, flags in chosen.items():
        times = flags.sum(axis=0)
        frequency = times / rule.count
        columns = {"method": method, "feature": names, "times": times}
        tables.append(
            pd.DataFrame({**columns, "frequency": frequency, "selected": times >= rule.needed})
        )
        q = float(flags.sum(axis=1).mean())
        expected[method] = _expected_false(rule, q, len(names), _level(job, runs, method))
        rates.append(_in_words(rule, method, expected[method], q))
    return Stability(
        table=pd.concat(tables, ignore_index=True),
        expected_false=expected,
        chosen=chosen,
        samples=tuple(samples),
        about=_about(job, rule, samples),
        alerts=(*notes, *rates),
        notes=notes,
    )


def _cost(job: Job, runs: Sequence[_Run], took: float) -> pd.DataFrame:
    """Return what all parts cost, and checking the table, which is done once."""
    ledger = Ledger()
    with ledger.stage("prepare"):
        ledger.charge("checking the table", "", 0, job.seconds)
    return added([ledger.table(), *(run.cost for run in runs)], "stability", took)


@dataclass(frozen=True)
class _Level:
    """The probability at most at which one part selects a useless feature, by its test."""

    alpha: float
    two_sided: bool


def _level(job: Job, runs: Sequence[_Run], method: str) -> _Level | None:
    """Return the level of a method's tests, None where features are not selected by a test."""
    options = job.options
    sided = {run.sided.get(method) for run in runs}
    by_rank = getattr(options, "top", None) is not None
    if None in sided or by_rank or options.correction not in NEVER_BELOW_RAW:
        return None
    return _Level(float(options.alpha), sided == {"two-sided"})


def _expected_false(rule: Rule, q: float, p: int, level: _Level | None) -> dict[str, float]:
    """Return what is known of the number of false selections, by name; only what applies."""
    found: dict[str, float | None] = {}
    if rule.scheme == "folds":
        if level is not None:
            found["level"] = p * folds_level(rule.folds, rule.needed, level.alpha, level.two_sided)
    else:
        share = rule.needed / rule.count
        found["worst_case"] = worst_case_bound(q, p, share)
        found["unimodal"] = unimodal_bound(q, p, share, rule.pairs)
        found["r_concave"] = r_concave_bound(q, p, share, rule.pairs)
        if level is not None:
            found["level"] = worst_case_bound(level.alpha * p, p, share)
    return {name: min(float(p), value) for name, value in found.items() if value is not None}


def _about(job: Job, rule: Rule, samples: Sequence[Fold]) -> dict[str, object]:
    """Return what is needed to repeat the run."""
    options = job.options
    return {
        "target": job.data.target,
        "task": job.data.task,
        "n_rows": job.data.n_rows,
        "n_features": len(job.names),
        "rows_per_part": min(len(rows) for rows, _ in samples),
        "learner": job.learner.settings(),
        "learner_text": str(job.learner),
        "scheme": rule.scheme,
        "parts": "training parts" if rule.scheme == "folds" else "half-samples",
        "count": rule.count,
        "needed": rule.needed,
        "threshold": float(rule.threshold),
        "paper": options.paper,
        "correction": options.correction,
        "alpha": float(options.alpha),
        "seed": int(options.seed),
    }


def _notes(job: Job, runs: Sequence[_Run]) -> Iterator[str]:
    """Yield what to know of the table and its fits."""
    yield from job.data.notes
    failed = sorted({failure for run in runs for failure in run.failures})
    if failed:
        yield f"Some fits failed ({listed(failed)}): those features count as not selected there."


# The r-concave bound is not among them: z-tests exceed it a little at low thresholds.
WORDS = {
    "worst_case": "at worst",
    "unimodal": "if the share of agreeing pairs is unimodal",
    "level": "if every test holds its level",
}


def _in_words(rule: Rule, method: str, bounds: Mapping[str, float], q: float) -> str:
    """Return how many false selections to expect, as one sentence."""
    noun = "feature" if q == 1 else "features"
    said = f"{method} selects {q:.3g} {noun} at a time"
    if rule.scheme == "folds" and "level" not in bounds:
        return f"{said}; nothing bounds how many stable ones are false: scheme='half_samples' does."
    if rule.scheme == "folds":
        return (
            f"{said}; no theorem bounds the false ones with folds, but where every test holds its "
            f"level {bounds['level']:.2g} are expected if no feature matters."
        )
    parts = [f"{bounds[name]:.2g} {words}" for name, words in WORDS.items() if name in bounds]
    return f"{said}; of the stable ones at most this many are false: {', '.join(parts)}."
