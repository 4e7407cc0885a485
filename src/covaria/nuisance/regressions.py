"""Every regression of a plan, fitted once: `fit_residuals` step by step."""

from __future__ import annotations

from dataclasses import replace

from covaria.errors import InputError
from covaria.execution.cost import Ledger
from covaria.learners import Auto
from covaria.nuisance import conditional
from covaria.nuisance.engines import plain
from covaria.nuisance.fit import engine_for, run_plan
from covaria.nuisance.functions import has_own_functions, squares, suggested, with_functions
from covaria.nuisance.halves import PRODUCT
from covaria.nuisance.learning_curves import with_learning_curves
from covaria.nuisance.model_noise import with_noise_of_lines
from covaria.nuisance.outcomes import gather, is_sound
from covaria.nuisance.plan import OF_FULL_MODEL, Plan
from covaria.nuisance.residuals import Residuals
from covaria.nuisance.second_opinion import with_second_opinion
from covaria.nuisance.selected import without_selected
from covaria.nuisance.targets import with_targets
from covaria.options.familiar import knows_its_options


@knows_its_options
def fit_residuals(plan: Plan) -> Residuals:
    """Return the residuals of every regression of the plan, each fitted once."""
    if not isinstance(plan, Plan):
        raise InputError("fit_residuals takes a plan, such as covaria.prepare(X, y).plan(0).")
    ledger = plan.ledger or Ledger()
    with ledger.stage("choose learners"):
        plan = _with_learners(plan)
    with ledger.stage("fit"):
        residuals = with_noise_of_lines(plan, _fitted(plan))
        if plan.has_own_candidates and plan.data.X.shape[1] > plan.data.n_rows:
            residuals = without_selected(plan, residuals)
        residuals = with_learning_curves(plan, _with_more(plan, residuals))
        return with_second_opinion(plan, residuals).within_levels()


def _with_learners(plan: Plan) -> Plan:
    """Return the plan with the learner of each of its regressions, where there is a choice."""
    needs = plan.needs if plan.full is None else plan.needs - OF_FULL_MODEL
    if not (isinstance(plan.learner, Auto) and plan.choices is None and needs):
        return plan
    from covaria.nuisance.auto import choose_learners

    if has_own_functions(plan):
        plan, needs = replace(plan, needs=plan.needs | PRODUCT), needs | PRODUCT
    needs = needs if plan.of_y is None else needs & {"x_given_rest"}
    # Whatever gains are measured by, learners are chosen for the mean.
    plain_loss = plan.data.with_loss(None)
    asked = replace(plan, needs=needs, full=None, of_y=None, data=plain_loss)
    return replace(plan, choices=choose_learners(asked))


def _fitted(plan: Plan) -> Residuals:
    """Return what the plan's regressions leave over, by the learners chosen."""
    engine = engine_for(plan)
    residuals = gather(plan, run_plan(plan))
    if (engine is not plain or plan.choices) and not is_sound(residuals):
        engine = plain  # it says which fit failed
        residuals = gather(plan, run_plan(plan, plainly=True))
    name = engine.__name__.rsplit(".", 1)[-1]
    return replace(residuals, engine=name, choices=plan.choices)


def _with_more(plan: Plan, residuals: Residuals) -> Residuals:
    """Return the residuals with what the plan needs beside those of its columns."""
    if conditional.NEED in plan.needs:
        residuals = conditional.with_conditional(plan, residuals)
    if "x_masked" in plan.needs:
        from covaria.nuisance.masked import with_masked

        residuals = with_masked(plan, residuals)
    if "f_given_rest" in plan.needs:
        if has_own_functions(plan):
            residuals = with_functions(plan, residuals)
        else:
            residuals = with_targets(plan, residuals, "f_given_rest", suggested)
    if "square_given_rest" in plan.needs:
        residuals = with_targets(plan, residuals, "square_given_rest", squares)
    return residuals
