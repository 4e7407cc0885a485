"""Our own candidates: cheap ones first, dear ones only where they can matter.

mean, linear, stumps   for every regression; as many trees as pay, read off one run
ridge, sparse          for tables of many columns beside their rows
splines(df='gcv')      for y, and where something can be learned at all; with many waves for
                       tables of few columns, where the most stumps did best
quadratic              for tables of few columns
pursuit                for all, for as long as it leads, where rows are twice as many as columns:
                       functions of sums of many columns, even ones too
trees of 4 splits      for as long as they beat what came before, one inner model after the other
kernel ridge           likewise, for y and where something can be learned
surfaces               likewise for y, and for features of which the rest tells more than a plane
                       does; for tables of not too many columns and rows
forest                 for features, where trees of 4 splits or kernels did best

Without a feature that the rest tells of, y may need another learner than with it: a line through
x_j = sin z will do for y, until x_j is left out. There those who serve y and x_j compete once more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covaria.learners import (
    Boosting,
    Kernel,
    Learner,
    Linear,
    Mean,
    Pursuit,
    Quadratic,
    Ridge,
    RidgePath,
    Sparse,
    Splines,
    Surfaces,
)
from covaria.nuisance.auto.contest import (
    FOREST,
    POLICY,
    REST,
    Askers,
    Contest,
    Rule,
    Y,
    is_told,
    leader_of,
)

STUMPS, MORE_STUMPS = (25, 50, 100), (200, 400, 800)
DEEP, MORE_DEEP = (25, 50, 100), (200, 400)
DEEP_SPLITS = 4
# Curves of many waves have so many.
WAVES = 40


def hold_library(contest: Contest) -> None:
    """Let our own candidates run, the dear ones only where they can matter."""
    data, everywhere = contest.plan.data, contest.everything()
    of_numbers = {key: everywhere[key] for key in everywhere if key != Y or not data.classes}
    n_columns, n_rows = data.X.shape[1], max(len(train) for train, _ in contest.inner.folds)
    contest.enter([Mean()], everywhere)
    contest.enter([Linear()], everywhere)
    if 4 * n_columns > n_rows:
        of_classes = {key: everywhere[key] for key in everywhere if key not in of_numbers}
        for ridge in (10.0, 100.0, 1000.0):
            contest.enter([Ridge(ridge=ridge)], of_classes)
        contest.enter([RidgePath()], of_numbers)
        contest.enter([Sparse()], of_numbers)
    _grow(contest, 1, STUMPS, MORE_STUMPS, everywhere)
    learned = _where(contest, everywhere, _is_learned)
    of_features = {key: folds for key, folds in learned.items() if key != Y}
    if n_columns <= POLICY.most_waves:
        wild = _where(contest, everywhere, _is_wild)
        contest.enter([Splines(df="gcv", curves=WAVES)], wild)
        _race(contest, [Quadratic()], of_numbers)
    if n_columns > POLICY.most_curves:
        contest.enter([Splines()], learned)
    elif data.classes:
        contest.enter([Splines()], {key: learned[key] for key in learned if key == Y})
        contest.enter([Splines(df="gcv")], of_features)
    else:
        contest.enter([Splines(df="gcv")], learned)
    if POLICY.fewest_summed < n_columns < n_rows / 2:
        _race(contest, [Pursuit()], of_numbers)
    _race(contest, [Boosting(trees=count, splits=DEEP_SPLITS) for count in DEEP], everywhere)
    longer = [Boosting(trees=count, splits=DEEP_SPLITS) for count in MORE_DEEP]
    _race(contest, longer, _where(contest, everywhere, _wants_more(DEEP_SPLITS, DEEP[-1])))
    if n_rows <= POLICY.most_kernel_rows:
        learned = _where(contest, of_features if data.classes else everywhere, _is_learned)
        for width in (0.1, 0.5):
            ridge_machine = Kernel(kind="ridge", C=10.0, sigma=width / max(1, n_columns - 1))
            _race(contest, [ridge_machine], learned)
    if n_columns <= POLICY.most_paired and data.n_rows <= POLICY.most_rows:
        contest.enter([Surfaces()], _where(contest, everywhere, _wants_surfaces))
        _race(contest, [Surfaces()], {key: everywhere[key] for key in everywhere if key == Y})
    if n_rows <= POLICY.most_forest_rows:
        contest.enter([FOREST], _where(contest, contest.everything(), _wants_forest))


def hold_rest(contest: Contest) -> None:
    """Let those who serve y, and a feature, fit y without it, where the rest tells of it.

    Surfaces take part where they did for the feature, as they may serve better by shrinking less.
    """
    asked: dict[Learner, Askers] = {}
    for outer in range(contest.inner.n_outer):
        for key in contest.told(outer):
            rivals = {contest.best(Y, outer), contest.best(key, outer)}
            if contest.plan.data.classes:
                rivals &= set(contest.errors(Y, outer))  # others are not made for classes
            if Surfaces() in contest.errors(key, outer):
                rivals.add(Surfaces())
            for learner in sorted(rivals, key=str):
                asked.setdefault(learner, {}).setdefault(REST - key, set()).add(outer)
    for learner, askers in asked.items():
        contest.enter([learner], askers)


def _grow(
    contest: Contest,
    splits: int,
    counts: Sequence[int],
    more: Sequence[int],
    askers: Askers,
) -> None:
    """Let trees run, and more of them where the most so far did best."""
    contest.enter([Boosting(trees=count, splits=splits) for count in counts], askers)
    askers = _where(contest, askers, _wants_more(splits, counts[-1]))
    contest.enter([Boosting(trees=count, splits=splits) for count in more], askers)


def _wants_more(splits: int, trees: int) -> Rule:
    """Return a rule: do so many trees err least, of all with as many splits?"""

    def rule(key: int, errors: dict[Learner, float]) -> bool:
        own = {k: e for k, e in errors.items() if isinstance(k, Boosting) and k.splits == splits}
        most = Boosting(trees=trees, splits=splits)
        return most in own and own[most] <= min(own.values())

    return rule


def _where(contest: Contest, askers: Askers, rule: Rule) -> Askers:
    """Return the outer folds whose own errors say so."""
    return {
        key: {outer for outer in outers if rule(key, contest.errors(key, outer))}
        for key, outers in askers.items()
    }


def _wants_forest(key: int, errors: dict[Learner, float]) -> bool:
    """Return whether a feature, of which the rest tells, is served best by deep trees or kernels.

    They shrink an interaction that jumps, and y's alike: a test would see what both miss. A
    forest shrinks less.
    """
    leader = leader_of(errors)
    is_deep = isinstance(leader, Boosting) and leader.splits > 1
    return key >= 0 and is_told(key, errors) and (is_deep or isinstance(leader, Kernel))


def _wants_surfaces(key: int, errors: dict[Learner, float]) -> bool:
    """Return whether a feature, of which the rest tells, is more than a plane.

    Where columns abound, others err a little less than a plane only by passing over most of them.
    """
    least = min(errors.values(), default=0.0)
    is_bent = errors.get(Linear(), np.inf) > (1 + POLICY.lenient) * least
    return key >= 0 and is_bent and is_told(key, errors)


def _is_wild(key: int, errors: dict[Learner, float]) -> bool:
    """Return whether many stumps err less than few: a curve with many waves takes many."""
    stumps = {k: e for k, e in errors.items() if isinstance(k, Boosting) and k.splits == 1}
    return bool(stumps) and min(stumps, key=stumps.__getitem__).trees >= MORE_STUMPS[0]


def _is_learned(key: int, errors: dict[Learner, float]) -> bool:
    """Return whether y is asked for, or something beats the mean."""
    mean = errors.get(Mean())
    return key == Y or mean is None or min(errors.values()) < (1 - POLICY.learned) * mean


def _far_apart(count: int) -> list[int]:
    """Return every other number, then the rest: neighbours tell the same outer fold."""
    return [*range(0, count, 2), *range(1, count, 2)]


def _race(contest: Contest, path: Sequence[Learner], askers: Askers) -> None:
    """Let candidates run in one inner fold after the other for as long as they lead.

    An outer fold asks for the next inner fold only by the errors it may look at itself.
    """
    running = {(key, outer) for key, outers in askers.items() for outer in outers}
    contest.admit(path, askers)
    for i in _far_apart(len(contest.inner.folds)):
        looking = {outer for outer, _ in contest.inner.looks[i]}
        asked = {(key, outer) for key, outer in running if outer in looking}
        contest.run(path, {key: [i] for key in sorted({key for key, _ in asked})})
        for key, outer in asked:
            errors = contest.errors(key, outer, [i])
            rivals = [error for learner, error in errors.items() if learner not in path]
            own = [error for learner, error in errors.items() if learner in path]
            if not own or (rivals and min(own) >= min(rivals)):
                running.discard((key, outer))
    contest.dismiss(path, askers, running)
