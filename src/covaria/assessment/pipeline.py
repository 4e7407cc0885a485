"""One run, from the request to its Result: plan, fit, test, diagnose, conclude."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from covaria.assessment.asked import methods_of
from covaria.assessment.refusals import check
from covaria.assessment.request import Request
from covaria.assessment.sets import Sets, may_ask
from covaria.diagnostics.residual_checks import check_residuals
from covaria.errors import InputError
from covaria.execution.cost import Ledger
from covaria.execution.executors import Executor
from covaria.execution.processes import Processes
from covaria.execution.progress import watched
from covaria.execution.threads import one_thread
from covaria.learners import Auto, Estimator
from covaria.nuisance.plan import Plan, Progress
from covaria.nuisance.regressions import fit_residuals
from covaria.nuisance.residuals import Residuals
from covaria.nuisance.several import fit_all
from covaria.nuisance.splits import make_splits
from covaria.options.checks import reporter
from covaria.results.cautions import told_of_sets
from covaria.results.choices import Chosen, select_without_test
from covaria.results.conclusion import conclude
from covaria.results.equivalence import with_negligible
from covaria.results.result import Result
from covaria.tables.dataset import named_features
from covaria.tables.tidy import Tidy

# The baseline hazard is that of hazard ratios of as many folds' models, taken as often.
BASELINE_FOLDS, BASELINE_ROUNDS = 5, 2


@dataclass(frozen=True)
class Job(Request):
    """A run that has been checked and can start."""

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
                left = check_residuals(plan, fitted[0]) if checked else None
            with ledger.stage("test and conclude"):
                result = conclude(fitted, self.learner, self.methods, self.options, chosen, left)
                if self.options.margin is not None:
                    result = with_negligible(result, self.options.margin)
            if self.finds_groups or may_ask(self):
                with ledger.stage("test groups"):
                    sets = Sets(self, plan, fitted[0], result)
                    groups = sets.tested_down() if self.finds_groups else sets.asked_once()
                    findings = told_of_sets(result.findings, groups)
                    result = result.but(groups=groups, findings=findings)
        about = replace(result.about, models=ledger.models, formula=self.formula)
        again = None
        if self.memory is not None and not self.memory.is_full:
            again = _Again(replace(self, chosen=chosen), ledger)
        cost = Tidy(ledger.columns())
        return result.but(about=about, cost=cost, settings=self.settings, again=again)

    def _chosen(self, ledger: Ledger) -> dict[str, Chosen]:
        """Return what is selected without a test, now or in the run that is extended."""
        new = [method for method in self.methods if method.name not in self.chosen]
        fresh = select_without_test(new, self.data, self.options.seed, self.names)
        for name, one in fresh.items():
            ledger.charge(name, "", 0, one.seconds)
        return {**self.chosen, **fresh}

    def extended(self, methods: Sequence[str], features: Sequence[str]) -> Job:
        """Return the job with more methods or features, or raise where it has them already."""
        names = [method.name for method in self.methods]
        more = methods_of([*names, *methods], self.options) if methods else self.methods
        asked = self._asked_too(features)
        if len(more) == len(names) and asked == self.asked:
            raise InputError("extend names nothing that the result has not. Name other methods.")
        settings = {**self.settings, "methods": [method.name for method in more]}
        if asked != self.asked:
            settings["features"] = None if asked is None else list(asked)
        # Without a test all features are looked at, and the tested ones told of.
        chosen = self.chosen if asked == self.asked else {}
        job = replace(self, methods=more, asked=asked, settings=settings, chosen=chosen)
        check(job)
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
