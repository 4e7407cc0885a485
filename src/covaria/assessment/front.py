"""The front door: `assess` has every option, and `prepare` checks what it was given."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, cast

from covaria.assessment.asked import (
    in_order_of,
    is_default,
    learners_of,
    read_methods,
    table_of,
    without_fits,
)
from covaria.assessment.pipeline import Job
from covaria.assessment.refusals import check
from covaria.errors import InputError
from covaria.execution.progress import watched
from covaria.learners import get_learner
from covaria.nuisance.given import Given
from covaria.nuisance.memory import Memory
from covaria.nuisance.plan import Progress
from covaria.options.checks import jobs, plain, plain_all, reporter, truth
from covaria.options.familiar import knows_its_options
from covaria.results.options import Options
from covaria.results.result import Result
from covaria.tables.dataset import Dataset, named_features
from covaria.tables.losses import read_loss

# For runs whose diagnostics nobody would see: on parts of the rows, in pipelines and studies.
WITHOUT_CHECKS: dict[str, Any] = {"check": False}
# What is no part of `Result.settings`: the table, and what changes no answer.
NOT_SETTINGS = ("X", "y", "n_jobs", "progress")


@knows_its_options
def assess(
    X: object,
    y: object = None,
    *,
    learner: object = "auto",
    methods: str | Sequence[str] = "default",
    splits: object = 5,
    paper: bool = False,
    groups: Mapping[str, Sequence[str]] | str | None = None,
    features: Sequence[str] | None = None,
    sample_weight: object = None,
    clusters: object = None,
    event: object = None,
    task: str = "auto",
    loss: object = None,
    missing_target: str = "refuse",
    rows: int | None = None,
    alternative: str | None = None,
    validity: str = "conservative",
    correction: str = "bh",
    alpha: float = 0.05,
    top: int | None = None,
    confidence: float = 0.95,
    repeats: int = 1,
    permutations: int = 5,
    check: bool = True,
    extrapolate: str | bool = "auto",
    effect: str | None = None,
    margin: float | None = None,
    predictions: Mapping[str, object] | None = None,
    shared_randomness: bool | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Progress | bool | None = None,
) -> Result:
    """Return which features help predict y given the other features, with p-values.

    Parameters
    ----------
    X
        The features, and columns that others name: any dataframe or array, or the path of a CSV.
        Or the path of a Parquet or Arrow file or folder, a pyarrow dataset, a lazy frame of polars
        or a DuckDB relation, of which as many rows are drawn as memory allows. Or a formula, with
        its table as y, "price ~ rooms + C(kind) | city": what stands behind | is given, not tested.
    y
        The target: an array, or the name of its column in X. A list of names, or a table of
        numbers, is several targets: each feature is tested for all of them at once.
    learner
        "auto" chooses the best of several for y and for each feature, by cross-validation. Or a
        name (`covaria.learners.LEARNERS`), a learner value such as `Boosting(trees=200)`, or any
        scikit-learn estimator or pipeline. One that names columns (ColumnTransformer) gets them
        as they are, text and gaps included.
    methods
        Names from `covaria.METHODS`. "default" is GCM, PCM and their verdict, "gcm+pcm"; in sample
        it is GCM and LOCO. Settings go with the name: "knockoffs(fdr=0.1)", "lasso(rule='min')".
    splits
        5 cross-fits in five folds; 0.33 holds out a third; "none" tests in sample; or a
        scikit-learn splitter, or a list of (train, test) row numbers, which share no row.
    paper
        The paper's mode: in sample, two-sided, raw p < .05, one permutation, new random draws for
        every model.
    groups
        {"place": ["lat", "lon"]}: several columns tested as one feature. "auto" tests features that
        explain each other together as well, and their parts as far as the data allow:
        `result.groups`, with the family-wise error kept over all sets. Without it GCM alone looks
        at few of them, of which no feature is found to matter.
    features
        ["price", "rooms"]: test these alone, each given all others; groups by their names. They
        get the numbers of a run that tests all, but for the correction, which counts the tested.
    sample_weight
        How much each row counts: an array, or the name of a column of X.
    clusters
        Which rows belong together: an array, or the name of a column of X. Rows of a cluster stay
        in one fold and may depend on each other. Without it copies of a row are a cluster;
        range(len(y)) counts every row by itself.
    event
        An array or the name of a column: 1 where the event was seen and 0 where the row was
        censored. y is the time then; GCM and PCM take martingale residuals, and gains are those of
        the partial likelihood.
    task
        "auto": text, booleans and two-valued targets are classes, other numbers are numbers.
        "ordinal": numbers, or an ordered category, count by their mean rank.
    loss
        What the gains of LOCO, dropout, permutation and CPI are measured by: "poisson" (counts),
        "gamma" (positive numbers), "absolute", "pinball(0.9)", the name of a scikit-learn scorer,
        a scorer, or a function of (y, prediction) that returns a number a row. None: squared error,
        for classes log-loss. With a loss LOCO is among the default methods. With "pinball(0.9)" all
        tests are of that quantile of y.
    missing_target
        "drop" leaves out rows without a target, with a note; "refuse" names them.
    rows
        Test a random sample of so many rows of a table that has its target in it.
    alternative
        None: GCM two-sided, gains "greater"; or "two-sided", "greater", "less" for all.
    validity
        How LOCO meets its degenerate null: "conservative", "zipper", "split" or "signed_root".
    correction
        How p-values are adjusted for the number of features: "bh", "by", "holm", "bonferroni",
        "storey" or "none".
    alpha
        The level: a feature is selected where its adjusted p-value is below it.
    top
        Select this many features, the strongest by their statistic, whatever their p-value.
    confidence
        How often intervals hold the truth.
    repeats
        Cross-fits with new folds, of which a test takes the mean of its statistics.
    permutations
        Shuffles averaged by the permutation test.
    check
        Whether to look for what regressions left undone, which makes p-values too small.
    extrapolate
        Whether a finding has to stand against learning curves (models that learned from half the
        rows) and a second learner, extrapolated to endless rows: where y follows what the others
        tell of x_j, both regressions shrink it alike. "auto" does so with learner="auto".
    effect
        "plm": the effects of GCM are the coefficients θ in y = θ x_j + g(others), in units of y per
        unit of x_j, with their standard errors in `effect_error`; None: partial correlations.
    margin
        0.01: the verdict on features that no test finds, and that provably explain less than 1% of
        Var(Y), is "negligible" (`covaria.negligible` has the bounds); None: nothing is said of it.
    predictions
        {"y|rest": {"price": array}, "x|rest": {"price": array}, "y|all": array}: out-of-fold
        predictions of every row that were made elsewhere, in the place of a learner. What they name
        is tested, by gcm, and by loco with "y|all".
    shared_randomness
        Whether models of a fold share their random draws (bags of rows, starting weights), so that
        only columns tell them apart. False draws anew for every model, as R's gbm and the paper
        do: slower, and gains have more noise. None shares them, but for the paper's mode.
    seed
        Same seed, same numbers.
    n_jobs
        How many processes share the work, -1 for all cores; the numbers are those of one.
    progress
        A function of (done, total). Without one a terminal or a notebook shows a bar; False shows
        none.

    Examples
    --------
    >>> import covaria
    >>> X, y = covaria.draw("linear", n_rows=300, seed=1)
    >>> result = covaria.assess(X, y, learner="linear", methods=["gcm"])
    >>> {"x5", "x6", "x7", "x8"} <= set(result.selected["gcm"])
    True
    """
    settings = {name: value for name, value in locals().items() if name != "progress"}
    progress = reporter(progress)
    job = replace(prepare(**settings), memory=Memory())
    with watched(progress) as reported:
        return job.run(reported)


@cache
def _parameters() -> dict[str, object]:
    parameters = inspect.signature(assess).parameters.values()
    return {p.name: p.default for p in parameters if p.name not in NOT_SETTINGS}


def defaults() -> dict[str, object]:
    """Return the settings of `assess` that can change an answer, with their defaults."""
    return dict(_parameters())


def prepare(
    X: object,
    y: object = None,
    *,
    learner: object = "auto",
    methods: str | Sequence[str] = "default",
    paper: bool = False,
    groups: Mapping[str, Sequence[str]] | str | None = None,
    features: Sequence[str] | None = None,
    sample_weight: object = None,
    clusters: object = None,
    event: object = None,
    task: str = "auto",
    loss: object = None,
    missing_target: str = "refuse",
    rows: int | None = None,
    predictions: Mapping[str, object] | None = None,
    n_jobs: int = 1,
    **choices: Any,
) -> Job:
    """Return a run with everything checked, or raise a sentence that says what to mend."""
    start, asked = time.perf_counter(), {n: v for n, v in locals().items() if n in _parameters()}
    asked |= {"features": plain_all(features), **choices}
    settings = {name: plain(value) for name, value in (defaults() | asked).items()}
    chosen_learner, paper, n_jobs = get_learner(learner), truth("paper", paper), jobs(n_jobs)
    wants = (chosen_learner.wants_frame(of_feature=of_feature) for of_feature in (False, True))
    rule = read_loss(loss)
    if event is not None and rule is not None:
        raise InputError("With event gains are those of the partial likelihood. Leave out loss.")
    finds_groups = isinstance(groups, str) and groups == "auto"
    named = None if finds_groups else cast("Mapping[str, Sequence[str]] | None", groups)
    beside = {"sample_weight": sample_weight, "clusters": clusters, "event": event}
    table = table_of(
        X, y, named, features, beside,
        rows=rows, seed=choices.get("seed", 0), splits=choices.get("splits"),
        predictions=predictions,
    )  # fmt: skip
    data = Dataset.from_table(
        table.X, table.y, groups=table.groups, **beside, task=task,
        copies=not paper,  # it counted them
        keep_frame=any(wants),
        missing_target=missing_target,
    )  # fmt: skip
    data = data if rule is None else data.with_loss(rule)
    data = replace(data, notes=(*table.notes, *data.notes))
    options = Options(**choices).as_in_the_paper() if paper else Options(**choices)
    chosen = read_methods(methods, chosen_learner, data, options, has_loss=rule is not None)
    names = table.features
    names = None if names is None else named_features(names, data, table.groups)
    chosen_learner, of_y = learners_of(chosen_learner, rule if predictions is None else None)
    job = Job(data, chosen_learner, chosen, options, n_jobs, asked=names, finds_groups=finds_groups,
              of_y=of_y, formula=table.formula)  # fmt: skip
    if predictions is not None:
        given = Given.of(in_order_of(table.X, predictions), data)
        job = without_fits(job, given, of_default=is_default(methods))
    check(job)
    return replace(job, seconds=time.perf_counter() - start, settings=settings)
