"""The engine of predictions that were made elsewhere: nothing is fitted."""

from __future__ import annotations

from covaria.nuisance.plan import Outcome, Plan


def supports(plan: Plan) -> bool:
    """Return whether there are predictions."""
    return plan.given is not None


def run(plan: Plan) -> list[Outcome]:
    """Return the outcome of every task, in the order of the plan."""
    assert plan.given is not None
    outcomes = []
    for task in plan.tasks:
        name = plan.data.names[task.feature] if task.feature >= 0 else ""
        prediction = plan.given.predicted(task.need, name)[plan.folds[task.fold][1]]
        outcomes.append(Outcome(prediction, models=0))
    if plan.progress:
        plan.progress(len(outcomes), len(outcomes))
    return outcomes
