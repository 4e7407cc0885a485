"""Which learner serves each regression: the one with the least error in cross-validation.

Candidates are fitted on the folds of the cross-fit itself, so that the winner's predictions are
there already. The learner of a feature is chosen by errors of that feature alone, and that of y
without a feature by errors of y: given the other features, neither choice tells a test anything of
how the two go together, whichever rows have a say. The model of y on all columns suggests PCM's
functions and LOCO's gains: there each fold's own test rows have no say.
"""

from covaria.learners import Auto
from covaria.nuisance.auto.contest import Contest
from covaria.nuisance.auto.library import hold_library, hold_rest
from covaria.nuisance.plan import Choices, Plan


def choose_learners(plan: Plan) -> Choices:
    """Return the learners that serve each regression of the plan."""
    learner = plan.learner
    assert isinstance(learner, Auto)
    contest = Contest.of(plan)
    if learner.candidates:
        for candidate in learner.candidates:
            contest.enter([candidate], contest.keys)
    else:
        hold_library(contest)
    hold_rest(contest)
    return contest.choices()
