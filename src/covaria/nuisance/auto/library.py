"""Our own candidates: cheap ones first, dear ones only where they can matter.

mean, linear           for every regression
ridge, sparse          for tables of many columns beside their rows
stumps                 as many trees as pay, read off one run
splines(df='gcv')      for y, and where something can be learned at all; with many waves for
                       tables of few columns, where the most stumps did best
quadratic              for tables of few columns
pursuit                where rows are twice as many as columns: functions of sums of many columns,
                       even ones too
trees of 4 splits      likewise as many as pay
kernel ridge           for y and where something can be learned

Beyond the first two rows a candidate runs in one fold, and in the others only where it leads there.
Without a feature that the others predict, y may need another learner than with it: a
line through x_j = sin z will do for y, until x_j is left out. There those who serve y and x_j
compete once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

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
)
from covaria.nuisance.auto.contest import (
    POLICY,
    REST,
    Contest,
    Y,
    leader_of,
)

# Learners that are lines, or less.
STRAIGHT = frozenset({"mean", "linear", "ridge", "sparse"})
Rule = Callable[[int, dict[Learner, float]], bool]
Trees = tuple[tuple[int, ...], float]

# So many trees at so large a step: at twice the step half as many learn about as much.
STUMPS, MORE_STUMPS = ((25, 50, 100), 0.1), ((100, 200), 0.2)
DEEP, MORE_DEEP = ((25, 50), 0.2), ((100, 200), 0.2)
DEEP_SPLITS = 4
# Curves that bend where that is more than chance, and curves of many waves.
CURVES = Splines(df="gcv", to_enter=4)
WAVES = Splines(df="gcv", curves=40)


def hold_library(contest: Contest) -> None:
    """Let our own candidates run, the dear ones only where they can matter."""
    data, keys = contest.plan.data, contest.keys
    of_numbers = [key for key in keys if key != Y or not data.classes]
    n_columns, n_rows = data.X.shape[1], max(len(train) for train, _ in contest.folds)
    grown = keys if n_columns <= POLICY.most_columns_a_row * n_rows else [k for k in keys if k == Y]
    contest.enter([Mean()], keys)
    contest.enter([Linear()], keys)
    if 4 * n_columns > n_rows:
        for ridge in (10.0, 100.0, 1000.0):
            contest.enter([Ridge(ridge=ridge)], [key for key in keys if key not in of_numbers])
        contest.enter([RidgePath()], of_numbers)
        contest.race([Sparse()], [key for key in of_numbers if key in grown])
    _grow(contest, grown, 1, STUMPS, MORE_STUMPS)
    if n_columns <= POLICY.most_waves:
        contest.race([WAVES], _where(contest, keys, _is_wild))
        contest.race([Quadratic()], of_numbers)
    learned = _where(contest, grown, _is_learned)
    if n_columns > POLICY.most_curves:
        contest.race([Splines()], learned)
    else:
        contest.race([CURVES], [key for key in learned if key in of_numbers])
        contest.race([Splines()], [key for key in learned if key not in of_numbers])
    if POLICY.fewest_summed < n_columns < n_rows / 2:
        contest.race([Pursuit()], of_numbers)
    _grow(contest, grown, DEEP_SPLITS, DEEP, MORE_DEEP)
    if n_rows <= POLICY.most_kernel_rows:
        unit = 1 / max(1, n_columns - 1)
        wide, narrow = (Kernel(kind="ridge", C=10.0, sigma=width * unit) for width in (0.1, 0.5))
        asked = [key for key in of_numbers if key == Y or n_columns <= POLICY.most_waves]
        contest.race([wide], _where(contest, asked, _is_curved))
        contest.race([narrow], [key for key in asked if contest.best(key) == wide])


def hold_rest(contest: Contest) -> None:
    """Let those who serve y, and a feature, fit y without it, where the others predict it.

    Only where y's model has a use for it: else it is the same without it.
    """
    asked: dict[Learner, list[int]] = {}
    for key in contest.needed(contest.told()):
        rivals = {contest.best(Y), contest.best(key)}
        if contest.plan.data.classes:
            rivals &= set(contest.errors(Y))  # others are not made for classes
        for learner in sorted(rivals, key=str):
            asked.setdefault(learner, []).append(REST - key)
    for learner, keys in asked.items():
        contest.enter([learner], keys)


def _grow(contest: Contest, keys: Sequence[int], splits: int, few: Trees, more: Trees) -> None:
    """Let trees run, and more of them where the most so far did best."""
    path = _path(splits, few)
    contest.race(path, keys)
    wanting = _where(contest, keys, _wants_more(path))
    contest.race(_path(splits, more), wanting)


def _path(splits: int, trees: Trees) -> list[Boosting]:
    counts, step = trees
    return [Boosting(trees=count, splits=splits, shrinkage=step) for count in counts]


def _wants_more(path: Sequence[Boosting]) -> Rule:
    """Return a rule: does the longest of some runs of trees err least of them?"""

    def rule(key: int, errors: dict[Learner, float]) -> bool:
        own = [errors[learner] for learner in path if learner in errors]
        return path[-1] in errors and errors[path[-1]] <= min(own)

    return rule


def _where(contest: Contest, keys: Iterable[int], rule: Rule) -> list[int]:
    """Return the regressions whose errors say so."""
    return [key for key in keys if rule(key, contest.errors(key))]


def _is_wild(key: int, errors: dict[Learner, float]) -> bool:
    """Return whether many stumps err less than few: a curve with many waves takes many."""
    stumps = {k: e for k, e in errors.items() if isinstance(k, Boosting) and k.splits == 1}
    return bool(stumps) and min(stumps, key=stumps.__getitem__) in _path(1, MORE_STUMPS)


def _is_curved(key: int, errors: dict[Learner, float]) -> bool:
    """Return whether y is asked for, or something beats the mean and lines."""
    best = leader_of(errors)
    return key == Y or best is None or best.name not in STRAIGHT


def _is_learned(key: int, errors: dict[Learner, float]) -> bool:
    """Return whether y is asked for, or something beats the mean."""
    mean = errors.get(Mean())
    return key == Y or mean is None or min(errors.values()) < (1 - POLICY.learned) * mean
