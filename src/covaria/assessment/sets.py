"""Sets of features that explain each other, tested together with the folds of the run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from covaria.assessment.request import Request
from covaria.errors import NothingFitted
from covaria.learners import Prefit
from covaria.methods import Combination, Method, deciding, get_methods
from covaria.nuisance.halves import PRODUCT
from covaria.nuisance.plan import Choices, Plan
from covaria.nuisance.residuals import Residuals
from covaria.nuisance.several import fit_all
from covaria.results.conclusion import conclude
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
from covaria.results.result import Result, bare_table
from covaria.tables.tidy import Tidy


def may_ask(job: Request) -> bool:
    """Return whether a look at sets of features belongs to the answer, and is cheap."""
    options, names = job.options, {method.name for method in job.methods}
    is_usual = options.check and not options.in_sample and options.top is None
    fits = job.given is None and not isinstance(job.learner, Prefit)
    return bool(
        is_usual and fits and "gcm" in names and job.data.X.shape[1] <= MOST_COLUMNS
    )  # fmt: skip


@dataclass(frozen=True)
class Sets:
    """A run whose features are tested one by one, and are now to be tested in sets.

    plan and residuals are those of the first cross-fit.
    """

    job: Request
    plan: Plan
    residuals: Residuals
    result: Result

    def tested_down(self) -> Tidy:
        """Return the sets of features that explain each other, tested from the largest down."""
        data, alpha = self.residuals.data, self.job.options.alpha
        tests = _of_method(self.result, deciding(self.job.methods))
        single = dict(zip(tests["feature"], np.asarray(tests["p_value"]).tolist(), strict=True))
        testable = [j for j, f in enumerate(data.features) if f.tested and f.name in single]
        roots = self._roots(testable)

        def p_of(members: tuple[int, ...]) -> float:
            first = data.names[members[0]]
            return single[first] if len(members) == 1 else self._p_of_set(members)

        tested = visited_down(roots, p_of, len(testable), alpha)
        return as_table(tested, data.names, alpha)

    def asked_once(self) -> Tidy:
        """Return what GCM says of sets that explain each other and have no feature that matters.

        Learners are those of the single features, so that few models are fitted.
        """
        data, alpha = self.residuals.data, self.job.options.alpha
        decided = _of_method(self.result, deciding(self.job.methods))
        mattering = set(decided.where(decided["selected"])["feature"])
        known = {j for j, name in enumerate(data.names) if name in mattering}
        testable = [j for j, feature in enumerate(data.features) if feature.tested]
        if len(testable) < 2:
            return no_groups()
        roots = self._roots(testable)
        if not roots:
            return no_groups()
        asked = worth_asking(filter(seen_by_lines(data), roots), known, len(testable))
        roots = [Node(root.members) for root in asked]  # their parts are not asked of
        tested = visited_down(roots, self._quick_p, len(testable), alpha)
        return as_table(tested, data.names, alpha)

    def _roots(self, testable: list[int]) -> list[Node]:
        """Return the largest sets of features that explain each other, with their parts."""
        residuals = self.residuals
        left = residuals.arrays.get("x_given_rest")
        return clusters_of(similarity(residuals.data, left, residuals.rows), testable)

    def _quick_p(self, members: tuple[int, ...]) -> float:
        """Return GCM's p-value of features as one, by the learners of the first of them."""
        plan, first, choices = self.plan, members[0], self.residuals.choices
        if choices is not None:
            chosen = [{first: fold[first]} for fold in choices.x]
            choices = Choices(choices.y, chosen, chosen, [{} for _ in chosen])
        one = replace(
            plan, data=as_one(plan.data, members), needs=PRODUCT, choices=choices, progress=None,
            purpose="sets of features",
        )  # fmt: skip
        options = replace(self.job.options, check=False, repeats=1)
        try:
            found = conclude([fit_all(one)], self.job.learner, get_methods("gcm"), options, {})
        except NothingFitted:
            return 1.0
        p = _p_of(found, "gcm", one.data.names[first])
        return 1.0 if np.isnan(p) else p

    def _p_of_set(self, members: tuple[int, ...]) -> float:
        """Return the p-value of features tested as one, with the folds of the run."""
        data = as_one(self.plan.data, members)
        decides = deciding(self.job.methods)
        methods = [m for m in self.job.methods if isinstance(m, (Method, Combination))]
        needed = frozenset(need for method in methods for need in method.needs)
        plans = [
            replace(self.job.plan(repeat, None, self.plan.ledger, self.plan.executor), data=data,
                    needs=needed, purpose="sets of features")
            for repeat in range(self.job.options.repeats)
        ]  # fmt: skip
        options = replace(self.job.options, check=False, top=None)
        try:
            fitted = [fit_all(one) for one in plans]
            found = conclude(fitted, self.job.learner, methods, options, {})
        except NothingFitted:
            return 1.0
        return _p_of(found, decides, data.names[min(members)])


def _of_method(result: Result, method: str) -> Tidy:
    """Return the tests of one method."""
    table = bare_table(result)
    return table.where([name == method for name in table["method"]])


def _p_of(result: Result, method: str, feature: str) -> float:
    """Return a feature's p-value by one method."""
    tests = _of_method(result, method)
    return float(tests["p_value"][tests["feature"].index(feature)])
