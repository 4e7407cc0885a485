"""What is to be fitted: tasks, their data and folds, and what comes of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError
from covaria.execution.cost import Ledger
from covaria.execution.executors import Executor
from covaria.learners import Auto, Learner, Prefit
from covaria.nuisance.given import Given
from covaria.nuisance.splits import Fold
from covaria.randomness import seed_of, stream
from covaria.tables.arrays import Rows
from covaria.tables.dataset import Dataset
from covaria.tables.frames import Frame

Array = NDArray[np.float64]
Progress = Callable[[int, int], None]
# Over as many values of a feature its partial dependence is averaged.
N_REFERENCES = 25
# A choice of learners predicts features no further outside their range than this share of it.
REACH = 0.1
# What takes a model of y on all columns.
OF_FULL_MODEL = {"y_given_all", "y_dropped", "y_permuted", "y_lazy", "y_direction"}
LAZY_CHOICES = ("loo", "cv", "each")


class Task(NamedTuple):
    """One thing to fit in one fold: y on all columns, or y or a feature on the other features."""

    need: str
    fold: int
    feature: int = -1


@dataclass(frozen=True)
class Outcome:
    """What came of a task: predictions for the fold's test rows, or why there are none.

    `unused` names the features that a full model never used, where leaving one out is known to
    give the same model again. One outcome may answer `count` tasks in a row that share fold and
    need; its predictions then have a row per feature, or per column of the features. Instead of
    predictions it may give what they have `left`. `dropped` and `permuted` are losses, a column per
    feature; `lazy` has what lazily refitted networks leave of y, with one column more, of the full
    network after a step of its own.
    `direction`, a column per feature too, is the prediction less its mean over other values of the
    feature (`Plan.references`), or differs from that by a constant. `learner` says which one
    served, where each regression chose its own. `models` counts what was fitted for it, where that
    is not a model for each target.
    """

    prediction: Array | None = None
    dropped: Array | None = None
    permuted: Array | None = None
    seconds: float = 0.0
    seconds_dropped: float = 0.0
    seconds_permuted: float = 0.0
    failure: str = ""
    unused: frozenset[int] = frozenset()
    count: int = 1
    left: Array | None = None
    lazy: Array | None = None
    seconds_lazy: float = 0.0
    direction: Array | None = None
    learner: str = ""
    models: int | None = None


@dataclass(frozen=True)
class Lazy:
    """How Lazy-VI chooses its penalty, what predicts, and with what that is compared.

    `choose` is "loo", leave-one-out, once, for the feature whose absence costs the network most;
    "cv", the same by 5 folds; "each", leave-one-out for every feature; or the penalty itself.
    `linearised` predicts by the linear form, not by the network at the end of the step. `stepped`
    compares with the full network after a step of its own, not with it as it is (the paper).
    """

    choose: str | float = "loo"
    linearised: bool = False
    stepped: bool = True

    def __post_init__(self) -> None:
        is_number = isinstance(self.choose, Real) and not isinstance(self.choose, bool)
        if self.choose not in LAZY_CHOICES and not (is_number and 0 < float(self.choose) < np.inf):
            raise InputError(
                f"lazy(choose={self.choose!r}) must be 'loo', 'cv', 'each' or a number above 0."
            )
        for name in ("linearised", "stepped"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"lazy({name}={getattr(self, name)!r}) must be True or False.")


# Learners with the weights of their predictions, which add up to 1.
Blend = tuple[tuple[Learner, float], ...]


@dataclass(frozen=True)
class Choices:
    """The learners that serve each fold's regressions: of y, of the features, of other targets.

    `y_rest` has those of y without a feature, where they are others. That of `instead` of a
    feature is never the mean, which would take nothing off the target. `kept` has what models
    predicted that were fitted already when learners were compared.
    """

    y: Sequence[Blend]
    x: Sequence[Mapping[int, Blend]]
    instead: Sequence[Mapping[int, Blend]]
    y_rest: Sequence[Mapping[int, Blend]]
    kept: Mapping[tuple[Task, Learner], Array] = field(default_factory=dict, repr=False)


class Shelf(dict[object, tuple[Any, ...]]):
    """What engines keep of a fold for the next plan on the same rows; no process sends it on."""

    def __reduce__(self) -> tuple[type[Shelf], tuple[()]]:
        return Shelf, ()


# What is kept of a task: its outcome, or predictions along a path of learners.
Kept = Outcome | list[Array]


Pair = tuple[Array, Array]


class Remembers(Protocol):
    """What was found in a run before, by one learner and task (`nuisance/memory.py`)."""

    is_full: bool

    def known(self, plan: Plan, counts: tuple[int, ...] = ()) -> dict[Task, Kept]:
        """Return what is known of a plan's tasks."""
        ...

    def keep(
        self,
        plan: Plan,
        found: Mapping[Task, Kept] | Sequence[Outcome],
        counts: tuple[int, ...] = (),
    ) -> None:
        """Keep what came of tasks."""
        ...

    def once(self, name: str, given: Sequence[Array], make: Callable[[], Pair]) -> Pair:
        """Return two arrays that some others make, made once for the same others."""
        ...


@dataclass(frozen=True)
class Plan:
    """All that is to be fitted: the data, the folds, the learner and what the methods need.

    `targets`, (rows, features), are predicted from the other features in the place of the features'
    own columns. Of the tasks that the needs ask for, `only` these are done. `choices` has learners
    that serve in the place of the one named; `full` is a model of y on all columns that was fitted
    elsewhere, `of_y` a learner of all models of y, `given` are predictions that were made
    elsewhere. Whether to `extrapolate` findings at level `alpha` (`nuisance/second_opinion.py`).
    `own_seed` is that of a task whose model draws by itself. What is fitted is charged
    to the `ledger`, under the plan's `purpose`. The `executor` says where; without one it is here.
    The `shelf` is of all plans made from this one. What a `memory` has of a run before is not
    fitted again.
    """

    data: Dataset
    learner: Learner
    folds: list[Fold]
    needs: frozenset[str]
    seed: int = 0
    repeat: int = 0
    permutations: int = 5
    lazy: Lazy = Lazy()
    progress: Progress | None = field(default=None, compare=False)
    targets: Array | None = None
    only: frozenset[Task] | None = None
    choices: Choices | None = None
    full: Prefit | None = None
    of_y: Learner | None = None
    extrapolate: bool = False
    alpha: float = 0.05
    shared_randomness: bool = True
    own_seed: int | None = None
    purpose: str = "nuisance regressions"
    ledger: Ledger | None = field(default=None, compare=False, repr=False)
    shelf: Shelf = field(default_factory=lambda: Shelf(), compare=False, repr=False)
    executor: Executor | None = field(default=None, compare=False, repr=False)
    given: Given | None = field(default=None, compare=False, repr=False)
    memory: Remembers | None = field(default=None, compare=False, repr=False)

    @cached_property
    def tasks(self) -> list[Task]:
        """Return the tasks in their fixed order: fold by fold, the full model first."""
        testable = [j for j, f in enumerate(self.data.features) if f.columns]
        tasks = []
        for fold in range(len(self.folds)):
            if self.needs & OF_FULL_MODEL:
                tasks.append(Task("y_given_all", fold))
            for need in ("y_given_rest", "x_given_rest"):
                if need in self.needs:
                    tasks += [Task(need, fold, j) for j in testable]
        return tasks if self.only is None else [task for task in tasks if task in self.only]

    @cached_property
    def inputs(self) -> Array:
        """Return the columns as the learner takes them: with gaps, or with gaps filled."""
        return self.data.inputs(gaps=self.learner.takes_gaps)

    def frame(self, *, of_feature: bool = False) -> Frame | None:
        """Return the table's own columns where models of y, or of features, take those."""
        if not self.learner.wants_frame(of_feature=of_feature):
            return None
        if self.data.frame is None:
            raise InputError(
                f"{self.learner} asks for the table's own columns, which were not kept. Use "
                "Dataset.from_table(…, keep_frame=True)."
            )
        return self.data.frame

    @property
    def x_targets(self) -> Array:
        """Return what is predicted from the others: the columns, or targets in their place."""
        return self.data.X if self.targets is None else self.targets

    def targets_of(self, feature: int) -> tuple[int, ...]:
        """Return the columns of `x_targets` that are predicted without a feature."""
        return self.data.features[feature].tested if self.targets is None else (feature,)

    def models(self, task: Task) -> int:
        """Return how many models a task fits: a feature of d columns takes d, no columns none."""
        if task.feature >= 0 and self.data.owns_all(task.feature):
            return 0
        return len(self.targets_of(task.feature)) if task.need == "x_given_rest" else 1

    def has(self, need: str) -> NDArray[np.bool_]:
        """Return which regressions of a kind the plan has, (folds, features)."""
        found = np.zeros((len(self.folds), self.data.n_features), dtype=bool)
        for task in self.tasks:
            if task.need == need:
                found[task.fold, task.feature] = True
        return found

    @property
    def has_own_candidates(self) -> bool:
        """Return whether learners are chosen among ours, for y as for the features."""
        is_auto = isinstance(self.learner, Auto) and not self.learner.candidates
        return is_auto and self.of_y is None

    def within_reach(self, task: Task, prediction: Array) -> Array:
        """Return a prediction of numbers kept near the values that were learned from."""
        train = self.folds[task.fold][0]
        if task.need == "x_given_rest":
            seen = self.x_targets[:, list(self.targets_of(task.feature))][train]
        elif self.data.classes:
            return prediction
        else:
            seen = self.data.y[train]
        low, high = seen.min(axis=0), seen.max(axis=0)
        return np.clip(prediction, low - REACH * (high - low), high + REACH * (high - low))

    def blend(self, task: Task) -> Blend:
        """Return the learners of a task and the weights of their predictions."""
        if self.of_y is not None and task.need != "x_given_rest":
            return ((self.of_y, 1.0),)
        if self.choices is None:
            return ((self.learner, 1.0),)
        if task.need == "y_given_rest":
            usual = self.choices.y[task.fold]
            return self.choices.y_rest[task.fold].get(task.feature, usual)
        if task.need != "x_given_rest":
            return self.choices.y[task.fold]
        chosen = self.choices.x if self.targets is None else self.choices.instead
        return chosen[task.fold][task.feature]

    @property
    def held(self) -> list[tuple[int, ...]]:
        """Return the columns Lazy-VI holds at their mean: each feature's in turn, then none."""
        return [*(feature.columns for feature in self.data.features), ()]

    @property
    def not_held(self) -> list[tuple[int, ...]]:
        """Return the columns of features that are not tested."""
        return [feature.columns for feature in self.data.others]

    def references(self, fold: int) -> Array:
        """Return other values of the columns: quantiles, or rows where a feature owns several."""
        train = self.folds[fold][0]
        weights = None if self.data.weights is None else self.data.weights[train]
        values = self.data.X[train[_spaced(len(train), weights)]]
        for feature in self.data.features:
            if len(feature.columns) == 1:
                own = self.data.X[train, feature.columns[0]]
                order = np.argsort(own, kind="stable")
                at = _spaced(len(own), None if weights is None else weights[order])
                values[:, feature.columns[0]] = own[order][at]
        return values

    def reference_rows(self, fold: int, feature: int) -> Rows:
        """Return the training rows in which a feature has those other values."""
        train = self.folds[fold][0]
        at = (np.arange(N_REFERENCES) * len(train) + len(train) // 2) // N_REFERENCES
        columns = self.data.features[feature].columns
        if len(columns) != 1:
            return train[at]
        return train[np.argsort(self.data.X[train, columns[0]], kind="stable")[at]]

    def learner_seed(self, fold: int) -> int:
        """Return the seed that all models of a fold share, so that only the columns differ."""
        return self._learner_seeds[fold] if self.own_seed is None else self.own_seed

    def task_seed(self, task: Task) -> int:
        """Return the seed of a task's own model: its fold's, where those share their draws."""
        if self.shared_randomness:
            return self.learner_seed(task.fold)
        name = self.data.features[task.feature].name if task.feature >= 0 else ""
        return seed_of(self.seed, "learner", self.repeat, task.fold, task.need, name)

    @cached_property
    def _learner_seeds(self) -> list[int]:
        return [seed_of(self.seed, "learner", self.repeat, fold) for fold in range(len(self.folds))]

    def shuffles(self, fold: int) -> list[Rows]:
        """Return the orders in which a fold's test rows are permuted, the same for all features."""
        rng = stream(self.seed, "permutation", self.repeat, fold)
        n_rows = len(self.folds[fold][1])
        return [rng.permutation(n_rows).astype(np.intp) for _ in range(self.permutations)]


def _spaced(n_rows: int, weights: Array | None) -> Rows:
    """Return places in a row that are evenly spaced, by weights where there are any."""
    if weights is None:
        return np.asarray((np.arange(N_REFERENCES) * n_rows + n_rows // 2) // N_REFERENCES)
    reached = np.cumsum(weights)
    middles = (np.arange(N_REFERENCES) + 0.5) / N_REFERENCES * reached[-1]
    # Where a middle is the end of one row's weight but for rounding, the next row has it.
    at: Rows = np.searchsorted(reached, middles * (1 + 1e-12), side="right")
    return at
