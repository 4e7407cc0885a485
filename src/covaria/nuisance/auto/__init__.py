"""Which learner serves each regression: the one that errs least inside the training rows.

The choice is made for y and for each feature apart, and anew in every fold, from models that have
not seen the fold's test rows. In a cross-fit of four folds or more a model that leaves out two
neighbouring folds tells both of them something: its errors on the one are of use to the other. So
two such models a fold give errors on two folds of its training rows, at the price of one.
"""

from covaria.learners import Auto
from covaria.nuisance.auto.contest import Contest
from covaria.nuisance.auto.inner import inner_folds
from covaria.nuisance.auto.library import hold_library, hold_rest
from covaria.nuisance.plan import Choices, Plan


def choose(plan: Plan) -> Choices:
    """Return the learners that serve each regression of the plan."""
    learner = plan.learner
    assert isinstance(learner, Auto)
    contest = Contest(plan, inner_folds(plan))
    if learner.candidates:
        for candidate in learner.candidates:
            contest.enter([candidate], contest.everything())
    else:
        hold_library(contest)
    hold_rest(contest)
    return contest.stacked() if learner.stack else contest.choices()
