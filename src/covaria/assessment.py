"""The front door: a table in, a Result out."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, cast

from covaria.diagnostics.residual_checks import leftover
from covaria.errors import InputError, NothingFitted, short
from covaria.execution.cost import Ledger
from covaria.execution.executors import Executor
from covaria.execution.processes import Processes
from covaria.execution.progress import watched
from covaria.execution.threads import one_thread
from covaria.learners import Auto, Estimator, Learner, Prefit, get_learner
from covaria.methods import (
    NOT_PREFIT,
    PREFIT_METHODS,
    AnyMethod,
    Chooser,
    Combination,
    Method,
    deciding,
    get_methods,
)
from covaria.nuisance.extrapolation import PRODUCT
from covaria.nuisance.given import Elsewhere, Given
from covaria.nuisance.memory import Memory
from covaria.nuisance.plan import Choices, Lazy, Plan, Progress
from covaria.nuisance.residuals import Residuals, fit_residuals
from covaria.nuisance.several import fit_all
from covaria.nuisance.splits import can_be_redrawn, make_splits
from covaria.options.checks import jobs, plain, plain_all, reporter, truth
from covaria.options.familiar import knows_its_options
from covaria.results.conclusion import Chosen, Options, conclude, select_without_test
from covaria.results.equivalence import with_negligible
from covaria.results.grouping import (
    MOST_COLUMNS,
    Node,
    as_one,
    as_table,
    clusters_of,
    no_groups,
    seen_by_lines,
    similarity,
    visited_down,
    worth_asking,
)
from covaria.results.result import Result
from covaria.tables.dataset import Dataset, named_features, named_groups
from covaria.tables.encoding import encoded
from covaria.tables.formulas import Formula, is_formula, read_formula
from covaria.tables.losses import Loss, Pinball, read_loss
from covaria.tables.reading import aligned
from covaria.tables.sampling import at_hand

if TYPE_CHECKING:
    import pandas as pd

# The baseline hazard is that of hazard ratios of as many folds' models, taken as often.
BASELINE_FOLDS, BASELINE_ROUNDS = 5, 2
# For runs whose diagnostics nobody would see: on parts of the rows, in pipelines and studies.
WITHOUT_CHECKS: dict[str, Any] = {"check": False}
# What tests several targets at once. Sums of PCM's products over targets rejected .12 of nulls.
SEVERAL_METHODS = ("gcm", "loco")
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
        The features, and columns that others name: any dataframe or array. Or the path of a
        Parquet or Arrow file or folder, a pyarrow dataset, a lazy frame of polars or a DuckDB
        relation, of which as many rows are drawn as memory allows. Or a formula, with its table as
        y, "price ~ rooms + C(kind) | city": what stands behind | is given, not tested.
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
        Whether a finding has to stand after what both regressions may still miss is taken off it,
        as far as learning curves allow (models that learned from half the rows): where y follows
        what the others tell of x_j, both shrink it alike. "auto" does so with learner="auto".
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


@dataclass(frozen=True)
class Job:
    """A run that has been checked and can start."""

    data: Dataset
    learner: Learner
    methods: Sequence[AnyMethod]
    options: Options
    n_jobs: int = 1
    seconds: float = field(default=0.0, compare=False)  # that it took to check
    settings: Mapping[str, object] = field(default_factory=dict, compare=False)  # as asked for
    asked: tuple[str, ...] | None = None  # the features to test, None for all
    given: Given | None = None  # predictions made elsewhere
    finds_groups: bool = False  # groups="auto"
    of_y: Learner | None = None  # where y has a learner of its own
    formula: str = ""  # that the table was asked for by
    has_baseline: bool = False  # of times until an event
    memory: Memory | None = field(default=None, compare=False, repr=False)
    chosen: Mapping[str, Chosen] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def encoded(self) -> Dataset:
        """Return the table that models see, the same for all repeats."""
        data = self.data if self.options.paper else encoded(self.data)
        return data if self.asked is None else data.testing(self.asked)

    @property
    def names(self) -> list[str]:
        """Return the features that are tested."""
        return self.data.names if self.asked is None else list(self.asked)

    def plan(
        self,
        repeat: int,
        progress: Progress | None = None,
        ledger: Ledger | None = None,
        executor: Executor | None = None,
    ) -> Plan:
        """Return what one cross-fit has to fit: each model once, for all methods."""
        given = self.learner if isinstance(self.learner, Prefit) else None
        return Plan(
            data=self.encoded,
            learner=self.learner if given is None else given.nuisance,
            full=given,
            of_y=self.of_y,
            folds=make_splits(self.data, self.options.splits, self.options.seed, repeat),
            needs=frozenset(need for method in self.methods for need in method.needs),
            seed=self.options.seed,
            repeat=repeat,
            permutations=self.options.permutations,
            lazy=next((m.settings for m in self.methods if isinstance(m.settings, Lazy)), Lazy()),
            progress=_continued(progress, repeat, self.options.repeats),
            ledger=ledger,
            executor=executor,
            shared_randomness=self.options.shares_draws,
            extrapolate=self.options.extrapolate in (True, "auto") and not self.options.in_sample,
            given=self.given,
            memory=self.memory,
        )

    def run(
        self,
        progress: Progress | None = None,
        executor: Executor | None = None,
        spent: Ledger | None = None,
    ) -> Result:
        """Return the result, with what every stage cost; an executor fits in other places.

        What a run before has `spent` is part of the cost.
        """
        if executor is None and self.n_jobs != 1:
            with closing(self.processes()) as beside:
                return self.run(progress, beside, spent)
        ledger = Ledger() if spent is None else Ledger(dict(spent.rows))
        with ledger.stage("prepare"):
            ledger.charge("checking the table", "", 0, self.seconds if spent is None else 0.0)
        if self.data.is_survival and not self.has_baseline:
            return self._with_baseline(ledger, executor)._run(ledger, progress, executor)
        return self._run(ledger, progress, executor)

    def _with_baseline(self, ledger: Ledger, executor: Executor | None) -> Job:
        """Return the job with the baseline hazard that goes with its learner's hazard ratios."""
        job, needs = self, frozenset({"y_given_all"})
        for _ in range(BASELINE_ROUNDS):
            folds = make_splits(job.data, BASELINE_FOLDS, self.options.seed, 0)
            plan = replace(job.plan(0, None, ledger, executor), folds=folds, needs=needs,
                           memory=None, purpose="baseline hazard")  # fmt: skip
            left = fit_residuals(plan)
            if not left.failures:
                ratios = job.data.y - left.y_given_all
                job = replace(job, data=job.data.with_ratios(ratios))
        return replace(job, has_baseline=True)

    def _run(self, ledger: Ledger, progress: Progress | None, executor: Executor | None) -> Result:
        with ledger.stage("plan"):
            repeats = range(self.options.repeats)
            plans = [self.plan(repeat, progress, ledger, executor) for repeat in repeats]
        fitted = [fit_all(plan) for plan in plans]
        return self._finish(plans[0], fitted)

    def processes(self) -> Processes:
        """Return this process and others beside it; only others where a learner is not ours."""
        candidates = self.learner.candidates if isinstance(self.learner, Auto) else ()
        foreign = any(isinstance(one, Estimator) for one in (self.learner, *candidates))
        return Processes(self.n_jobs, apart=foreign)

    def _finish(self, plan: Plan, fitted: Sequence[Residuals]) -> Result:
        """Return the result of what the models of each repeat left over, the plan's first."""
        ledger = plan.ledger or Ledger()
        with one_thread():  # the same bits on any number of cores
            with ledger.stage("select without a test"):
                chosen = self._chosen(ledger)
            with ledger.stage("diagnose"):
                checked = self.options.check and not self.options.in_sample
                left = leftover(plan, fitted[0]) if checked else None
            with ledger.stage("test and conclude"):
                result = conclude(fitted, self.learner, self.methods, self.options, chosen, left)
            if self.options.margin is not None:
                result = with_negligible(result, self.options.margin)
            if self.finds_groups:
                with ledger.stage("test groups"):
                    result = replace(result, groups=self._groups(plan, fitted[0], result))
            elif self._may_ask_of_sets:
                with ledger.stage("test groups"):
                    result = replace(result, groups=self._asked_of_sets(plan, fitted[0], result))
        about = replace(result.about, models=ledger.models, formula=self.formula)
        again = None
        if self.memory is not None and not self.memory.is_full:
            again = _Again(replace(self, chosen=chosen), ledger)
        return replace(
            result, about=about, cost=ledger.table(), settings=self.settings, again=again
        )

    def _chosen(self, ledger: Ledger) -> dict[str, Chosen]:
        """Return what each chooser chose, now or in the run that is extended."""
        new = [method for method in self.methods if method.name not in self.chosen]
        fresh = select_without_test(new, self.data, self.options.seed, self.names)
        for name, one in fresh.items():
            ledger.charge(name, "", 0, one.seconds)
        return {**self.chosen, **fresh}

    def extended(self, methods: Sequence[str], features: Sequence[str]) -> Job:
        """Return the job with more methods or features, or raise where it has them already."""
        names = [method.name for method in self.methods]
        more = _methods_of([*names, *methods], self.options) if methods else self.methods
        asked = self._asked_too(features)
        if len(more) == len(names) and asked == self.asked:
            raise InputError("extend names nothing that the result has not. Name other methods.")
        settings = {**self.settings, "methods": [method.name for method in more]}
        if asked != self.asked:
            settings["features"] = None if asked is None else list(asked)
        # Choosers look at all features, and say of the tested ones.
        chosen = self.chosen if asked == self.asked else {}
        job = replace(self, methods=more, asked=asked, settings=settings, chosen=chosen)
        _check(job)
        return job

    def _asked_too(self, features: Sequence[str]) -> tuple[str, ...] | None:
        """Return the features to test where some more are named."""
        if self.given is not None:
            raise InputError("predictions=… cannot be extended. Call assess with all of them.")
        if not features:
            return self.asked
        new = named_features(features, self.data, self.settings.get("groups"))
        if self.asked is None:
            return None
        return tuple(name for name in self.data.names if name in {*self.asked, *new})

    def _groups(self, plan: Plan, residuals: Residuals, result: Result) -> pd.DataFrame:
        """Return the sets of features that explain each other, tested from the largest down."""
        data, alpha = residuals.data, self.options.alpha
        tests = result.table[result.table["method"] == deciding(self.methods)]
        single = dict(zip(tests["feature"].tolist(), tests["p_value"].tolist(), strict=True))
        testable = [j for j, f in enumerate(data.features) if f.tested and f.name in single]
        left = residuals.arrays.get("x_given_rest")
        roots = clusters_of(similarity(data, left, residuals.rows), testable)

        def p_of(members: tuple[int, ...]) -> float:
            first = data.names[members[0]]
            return single[first] if len(members) == 1 else self._p_of_set(plan, members)

        tested = visited_down(roots, p_of, len(testable), alpha)
        return as_table(tested, data.names, alpha)

    @property
    def _may_ask_of_sets(self) -> bool:
        """Return whether a look at sets of features belongs to the answer, and is cheap."""
        options, names = self.options, {method.name for method in self.methods}
        is_usual = options.check and not options.in_sample and options.top is None
        fits = self.given is None and not isinstance(self.learner, Prefit)
        return bool(
            is_usual and fits and "gcm" in names and self.data.X.shape[1] <= MOST_COLUMNS
        )  # fmt: skip

    def _asked_of_sets(self, plan: Plan, residuals: Residuals, result: Result) -> pd.DataFrame:
        """Return what GCM says of sets that explain each other and have no feature that matters.

        Learners are those of the single features, so that few models are fitted.
        """
        data, alpha = residuals.data, self.options.alpha
        decided = result.table[result.table["method"] == deciding(self.methods)]
        mattering = set(decided.loc[decided["selected"], "feature"])
        known = {j for j, name in enumerate(data.names) if name in mattering}
        testable = [j for j, feature in enumerate(data.features) if feature.tested]
        if len(testable) < 2:
            return no_groups()
        left = residuals.arrays.get("x_given_rest")
        roots = clusters_of(similarity(data, left, residuals.rows), testable)
        if not roots:
            return no_groups()
        asked = worth_asking(filter(seen_by_lines(data), roots), known, len(testable))
        roots = [Node(root.members) for root in asked]  # their parts are not asked of
        tested = visited_down(
            roots, lambda members: self._quick_p(plan, residuals, members), len(testable), alpha
        )
        return as_table(tested, data.names, alpha)

    def _quick_p(self, plan: Plan, residuals: Residuals, members: tuple[int, ...]) -> float:
        """Return GCM's p-value of features as one, by the learners of the first of them."""
        first, choices = members[0], residuals.choices
        if choices is not None:
            chosen = [{first: fold[first]} for fold in choices.x]
            choices = Choices(choices.y, chosen, chosen, [{} for _ in chosen])
        one = replace(
            plan, data=as_one(plan.data, members), needs=PRODUCT, choices=choices, progress=None,
            purpose="sets of features",
        )  # fmt: skip
        options = replace(self.options, check=False, repeats=1)
        try:
            found = conclude([fit_all(one)], self.learner, get_methods("gcm"), options, {})
        except NothingFitted:
            return 1.0
        p = found.table.loc[found.table["feature"] == one.data.names[first], "p_value"].iloc[0]
        return float(p) if p == p else 1.0

    def _p_of_set(self, plan: Plan, members: tuple[int, ...]) -> float:
        """Return the p-value of features tested as one, with the folds of the run."""
        data = as_one(plan.data, members)
        decides = deciding(self.methods)
        methods = [m for m in self.methods if isinstance(m, (Method, Combination))]
        needed = frozenset(need for method in methods for need in method.needs)
        plans = [
            replace(self.plan(repeat, None, plan.ledger), data=data, needs=needed,
                    purpose="sets of features")
            for repeat in range(self.options.repeats)
        ]  # fmt: skip
        options = replace(self.options, check=False, top=None)
        try:
            fitted = [fit_all(one) for one in plans]
            found = conclude(fitted, self.learner, methods, options, {})
        except NothingFitted:
            return 1.0
        table = found.table[found.table["method"] == decides].set_index("feature")
        return float(table["p_value"].to_numpy()[table.index == data.names[min(members)]][0])


@dataclass(frozen=True)
class _Again:
    """What a result needs to be extended; it is of this process, and no file nor other has it."""

    job: Job
    ledger: Ledger

    def __call__(self, methods: Sequence[str], features: Sequence[str]) -> Result:
        job = self.job.extended(methods, features)
        with watched(reporter(None)) as reported:
            return job.run(reported, spent=self.ledger)

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


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
    start = time.perf_counter()
    asked = {"learner": learner, "methods": methods, "paper": paper, "groups": groups,
             "features": plain_all(features), "sample_weight": sample_weight,
             "clusters": clusters, "event": event, "task": task, "loss": loss,
             "missing_target": missing_target, "rows": rows,
             "predictions": predictions}  # fmt: skip
    settings = {name: plain(value) for name, value in (defaults() | asked | choices).items()}
    chosen_learner, paper, n_jobs = get_learner(learner), truth("paper", paper), jobs(n_jobs)
    wants = (chosen_learner.wants_frame(of_feature=of_feature) for of_feature in (False, True))
    finds_groups = isinstance(groups, str) and groups == "auto"
    named = None if finds_groups else cast("Mapping[str, Sequence[str]] | None", groups)
    rule = read_loss(loss)
    if event is not None and rule is not None:
        raise InputError("With event gains are those of the partial likelihood. Leave out loss.")
    formula, X, y = (X, y, None) if is_formula(X) else (None, X, y)
    X, said = at_hand(X, rows, choices.get("seed", 0))
    if formula is not None:
        asked_for = read_formula(str(formula), X, (sample_weight, clusters, event))
        X, y, named, features = _by_formula(asked_for, named, features)
    if said:
        splits = choices.get("splits")
        _check_sampled(
            y=y, sample_weight=sample_weight, clusters=clusters, event=event,
            predictions=predictions, splits=None if can_be_redrawn(splits) else splits,
        )  # fmt: skip
    data = Dataset.from_table(
        X, y, groups=named, sample_weight=sample_weight, clusters=clusters,
        event=event, task=task,
        copies=not paper,  # it counted them
        keep_frame=any(wants),
        missing_target=missing_target,
    )  # fmt: skip
    data = data if rule is None else data.with_loss(rule)
    data = replace(data, notes=(*said, *data.notes))
    options = Options(**choices)
    if paper:
        options = options.as_in_the_paper()
    chosen = _read_methods(methods, chosen_learner, data, options, has_loss=rule is not None)
    names = None if features is None else named_features(features, data, named)
    chosen_learner, of_y = _learners(chosen_learner, rule if predictions is None else None)
    job = Job(data, chosen_learner, chosen, options, n_jobs, asked=names, finds_groups=finds_groups,
              of_y=of_y, formula="" if formula is None else str(formula))  # fmt: skip
    if predictions is not None:
        given = Given.of(_in_order_of(X, predictions), data)
        job = _without_fits(job, given, is_default=_is_default(methods))
    _check(job)
    return replace(job, seconds=time.perf_counter() - start, settings=settings)


def _read_methods(
    methods: str | Sequence[str],
    learner: Learner,
    data: Dataset,
    options: Options,
    *,
    has_loss: bool,
) -> list[AnyMethod]:
    """Return the methods asked for, or those that suit the learner and the targets."""
    if isinstance(learner, Prefit) and _is_default(methods):
        methods = PREFIT_METHODS
    if data.outputs is not None and _is_default(methods):
        methods = SEVERAL_METHODS
    return _methods_of(methods, options, has_loss=has_loss)


def _methods_of(
    methods: str | Sequence[str], options: Options, *, has_loss: bool = False
) -> list[AnyMethod]:
    """Return methods by their names, in the version that the options ask for."""
    return get_methods(
        methods,
        validity=options.validity,
        paper=options.paper,
        in_sample=options.in_sample,
        has_loss=has_loss,
    )


def _learners(learner: Learner, rule: Loss | None) -> tuple[Learner, Learner | None]:
    """Return the learner, and that of y where a quantile of it is asked for."""
    if not isinstance(rule, Pinball):
        return learner, None
    from covaria.learners.quantiles import of_quantile

    return of_quantile(learner, rule.q)


def _by_formula(
    formula: Formula, groups: Mapping[str, Sequence[str]] | None, features: Sequence[str] | None
) -> tuple[object, str, Mapping[str, Sequence[str]] | None, Sequence[str] | None]:
    """Return table, target, groups and features as a formula and the options say together."""
    if features is not None:
        raise InputError(
            "A formula says what is tested: put what is not behind |, and leave out features."
        )
    together = {**(groups or {}), **formula.groups}
    tested = formula.features
    for name, members in named_groups(groups).items():
        if tested is not None and set(members) <= set(tested):
            tested = [name, *(one for one in tested if one not in members)]
    return formula.table, formula.target, together or None, tested


def _check_sampled(**beside: object) -> None:
    """Raise where something beside a table has all of its rows, and the table some."""
    for name, value in beside.items():
        if value is not None and not isinstance(value, str) and not _are_names(name, value):
            raise InputError(
                f"A sample of the table's rows is drawn, and {name} lies beside it. Put it into "
                "the table and give the name of its column."
            )


def _are_names(what: str, value: object) -> bool:
    """Return whether several targets are named, as columns of the table."""
    is_list = what == "y" and isinstance(value, (list, tuple))
    return is_list and all(isinstance(one, str) for one in cast("Sequence[object]", value))


def _is_default(methods: object) -> bool:
    return isinstance(methods, str) and methods == "default"


def _in_order_of(X: object, predictions: Mapping[str, object]) -> object:
    """Return predictions in the order of X's row labels, where both have some."""

    def ordered(what: str, values: object) -> object:
        if isinstance(values, Mapping):
            return {name: ordered(f"{what}['{name}']", one) for name, one in values.items()}
        return aligned(what, values, X)[0]

    return ordered("predictions", predictions) if isinstance(predictions, Mapping) else predictions


def _without_fits(job: Job, given: Given, *, is_default: bool) -> Job:
    """Return the job with predictions in the place of a learner, or raise what is missing."""
    if job.learner != get_learner("auto"):
        raise InputError("predictions take the place of a learner. Leave out learner.")
    if isinstance(job.options.splits, float):
        raise InputError(
            f"predictions are of every row, and splits={job.options.splits:g} would test a part of "
            "them. Leave out splits."
        )
    if job.options.repeats > 1:
        raise InputError("repeats draws new folds, and predictions have theirs. Use repeats=1.")
    methods = list(job.methods)
    if is_default:
        every = get_methods(["gcm", "loco"], validity=job.options.validity)
        methods = [method for method in every if given.needs.issuperset(method.needs)]
    for method in methods or get_methods("gcm"):
        if not given.needs.issuperset(method.needs) or isinstance(method, Chooser):
            raise InputError(
                f"{method.name} cannot be had from these predictions: gcm takes 'y|rest' and "
                "'x|rest', loco 'y|rest' and 'y|all', and others take a learner."
            )
    needs = frozenset(need for method in methods for need in method.needs)
    known = given.features(needs)
    for name in job.asked or ():
        if name not in known:
            raise InputError(f"predictions has not all of '{short(name)}' that the tests take.")
    asked = job.asked or tuple(name for name in job.names if name in known)
    if not asked:
        raise InputError("predictions has no feature with both 'y|rest' and 'x|rest'.")
    return replace(job, learner=Elsewhere(), methods=methods, asked=asked, given=given)


def _continued(progress: Progress | None, repeat: int, repeats: int) -> Progress | None:
    """Return the progress function for one repeat of several."""
    if progress is None:
        return None
    return lambda done, total: progress(repeat * total + done, repeats * total)


def _check_methods(job: Job) -> None:
    """Raise a sentence where a method is not for this learner, target or split."""
    held_out = [m.name for m in job.methods if isinstance(m, Method) and m.held_out]
    if held_out and job.options.in_sample:
        raise InputError(
            f"{held_out[0]} tests a function that it first learns, so it needs held-out rows. "
            "Use splits=5, or gcm and loco in sample."
        )
    refitted = [m.name for m in job.methods if m.name.split("(")[0] in NOT_PREFIT]
    if refitted and isinstance(job.learner, Prefit):
        raise InputError(
            f"{refitted[0]} compares with a model that was refitted without the feature, and a "
            f"prefit model is not refitted. Use pcm, cpi, permutation or dropout, or give the "
            "estimator itself as the learner."
        )
    limited = [m for m in job.methods if isinstance(m, Method) and m.learners]
    for method in limited:
        if job.learner.name not in method.learners:
            raise InputError(
                f"{method.name} needs learner='{method.learners[0]}': it linearises a network. "
                f"Use {'gcm' if method.two_sided else 'loco'} with other learners."
            )
        if job.data.rule is not None:
            raise InputError(
                f"{method.name} has squared error alone. Leave out loss, or use loco or dropout."
            )
        if job.data.classes:
            raise InputError(
                f"{method.name} is for a target of numbers. For classes use loco or dropout."
            )
    with_settings = [m.settings for m in limited if m.settings is not None]
    if len(with_settings) > 1 or len({_of_step(m.settings) for m in limited}) > 1:
        raise InputError("Ask for lazy once: all its settings share one run of the network.")


def _of_step(settings: Lazy | None) -> Lazy:
    """Return the settings of the step itself, whatever it is compared with."""
    return replace(settings or Lazy(), stepped=True)


def _check_several(job: Job) -> None:
    """Raise a sentence where something is of one target alone."""
    lonely = {
        "effect": job.options.effect, "loss": job.data.rule, "predictions": job.given,
        "a prefit model": isinstance(job.learner, Prefit),
        **{m.name: isinstance(m, (Chooser, Combination)) or bool(m.learners) or m.name == "pcm"
           for m in job.methods},
    }  # fmt: skip
    for what, is_asked in lonely.items():
        if is_asked:
            raise InputError(f"{what} is of one target, and there are several. Leave out {what}.")


def _check(job: Job) -> None:
    """Raise a sentence where what was asked for cannot be had."""
    data, learner, options = job.data, job.learner, job.options
    learner.check(n_classes=data.n_classes, weighted=data.weights is not None)
    _check_methods(job)
    if data.is_survival and (isinstance(learner, Prefit) or job.given is not None):
        raise InputError(
            "With event models of hazard ratios are fitted here: give a learner, not a prefit "
            "model or predictions."
        )
    if data.outputs is not None:
        _check_several(job)
    if options.margin is not None and (data.is_survival or data.outputs is not None):
        raise InputError("margin is a share of Var(Y) of one target of numbers or classes.")
    if options.margin is not None and options.in_sample:
        raise InputError("margin needs held-out rows, as in sample no bound holds. Use splits=5.")
    if data.is_survival and options.effect:
        raise InputError(f"effect='{options.effect}' is of a target of numbers, not of times.")
    tests = [method for method in job.methods if isinstance(method, Method)]
    flattered = [method.name.split("(")[0] for method in tests if method.of_one_model]
    if flattered and options.in_sample and not options.paper and not learner.is_linear:
        raise InputError(
            f"In sample, {' and '.join(flattered)} with a flexible learner reject nearly every "
            "null. Use splits=5, or paper=True to repeat the paper."
        )
    if options.validity == "signed_root" and not (options.in_sample and learner.is_linear):
        raise InputError("validity='signed_root' is for learner='linear' with splits='none'.")
    if options.effect and not any(method.name == "gcm" for method in tests):
        raise InputError(f"effect='{options.effect}' is one of GCM's: add gcm to the methods.")
    if options.effect and data.n_classes > 2:
        raise InputError(
            f"effect='{options.effect}' needs a target of numbers or of two classes, not of "
            f"{data.n_classes}."
        )
    if data.kept is not None and not can_be_redrawn(options.splits):
        raise InputError(
            "splits as lists of row numbers do not go with missing_target='drop', which leaves "
            "rows out. Drop them first, or use a number of folds."
        )
    if job.finds_groups and not deciding(job.methods):
        raise InputError("groups='auto' tests sets of features, so it needs a test such as gcm.")
    if options.repeats > 1 and not isinstance(options.splits, (int, float)):
        raise InputError("repeats needs splits that can be redrawn: a number of folds or a share.")
