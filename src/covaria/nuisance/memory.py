"""What models predicted, kept beside a result so that it can be extended without fitting again.

Models themselves are not kept: what has to ask one for more than its predictions (dropout and
permutation ask that of y on all columns) fits it once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from covaria.learners import Learner
from covaria.nuisance.fit import NOT_SENT, by_task
from covaria.nuisance.plan import OF_FULL_MODEL, Array, Kept, Outcome, Pair, Plan, Shelf, Task
from covaria.tables.arrays import Rows

# A result keeps at most so much beside its table and scores.
MOST_BYTES = 256 * 2**20
Key = tuple[object, ...]
Found = Sequence[Outcome]


@dataclass(frozen=True)
class Kind:
    """What outcomes have in common of which some may serve others: learner, trees, needs, rows."""

    sort: tuple[Learner, tuple[int, ...], bool]
    places: frozenset[tuple[str, bytes, bytes]]

    def meets(self, other: Kind) -> bool:
        """Return whether an outcome of one may serve a task of the other."""
        return self.sort == other.sort and not self.places.isdisjoint(other.places)


@dataclass
class Memory:
    """Outcomes by learner, training rows, tested rows, target and seed; all of one table.

    Once they would take more than `most_bytes`, nothing is kept. What is kept `unsorted` gets its
    keys when somebody asks for something of its kind, which mostly nobody does.
    """

    most_bytes: int = MOST_BYTES
    n_bytes: int = 0
    is_full: bool = False
    outcomes: dict[Key, Kept] = field(default_factory=dict, repr=False)
    unsorted: list[tuple[Kind, Plan, Found]] = field(default_factory=list, repr=False)
    _places: dict[object, set[tuple[str, bytes, bytes]]] = field(default_factory=dict, repr=False)
    pairs: dict[Key, Pair] = field(default_factory=dict, repr=False)
    _marks: dict[int, tuple[Rows, bytes]] = field(default_factory=dict, repr=False)

    def known(self, plan: Plan, counts: tuple[int, ...] = ()) -> dict[Task, Kept]:
        """Return what is known of a plan's tasks, by one learner."""
        if not self.outcomes and not self.unsorted:
            return {}
        kind = self._kind(plan, counts)
        self._sort(kind)
        if kind.places.isdisjoint(self._places.get(kind.sort, ())):
            return {}
        keys = {task: self._key(plan, task, counts) for task in plan.tasks}
        return {task: self.outcomes[key] for task, key in keys.items() if key in self.outcomes}

    def keep(
        self,
        plan: Plan,
        found: Mapping[Task, Kept] | Sequence[Outcome],
        counts: tuple[int, ...] = (),
    ) -> None:
        """Keep what came of tasks, as long as there is room; failures are tried again.

        Outcomes as an engine gave them, in the order of the plan, are told apart later.
        """
        if self.is_full or not found:
            return
        values = found.values() if isinstance(found, Mapping) else found
        self.n_bytes += sum(array.nbytes for kept in values for array in _arrays(kept))
        if self.n_bytes > self.most_bytes:
            self.is_full = True
            for part in (self.outcomes, self.unsorted, self._places, self._marks):
                part.clear()
            return
        kind = self._kind(plan, counts)
        if isinstance(found, Mapping):
            self._put(plan, found, counts, kind)
        elif plan.targets is not None:  # which would be kept as well
            self._put(plan, by_task(plan, found), counts, kind)
        else:
            bare = replace(plan, shelf=Shelf(), **NOT_SENT)
            own = [one if one.left is None else replace(one, left=one.left.copy()) for one in found]
            self.unsorted.append((kind, bare, own))

    def _sort(self, kind: Kind) -> None:
        """Give keys to what was kept of a kind."""
        asked = [one for one in self.unsorted if one[0].meets(kind)]
        self.unsorted = [one for one in self.unsorted if not one[0].meets(kind)]
        for own, plan, found in asked:
            self._put(plan, by_task(plan, found), own.sort[1], own)

    def _put(
        self, plan: Plan, found: Mapping[Task, Kept], counts: tuple[int, ...], kind: Kind
    ) -> None:
        self._places.setdefault(kind.sort, set()).update(kind.places)
        for task, kept in found.items():
            if not (isinstance(kept, Outcome) and kept.failure):
                self.outcomes[self._key(plan, task, counts)] = kept

    def _kind(self, plan: Plan, counts: tuple[int, ...]) -> Kind:
        places = set()
        for need, fold in {(task.need, task.fold) for task in plan.tasks}:
            train, test = plan.folds[fold]
            places.add((need, self._mark(train), self._mark(test)))
        return Kind((plan.learner, counts, plan.targets is not None), frozenset(places))

    def once(self, name: str, given: Sequence[Array], make: Callable[[], Pair]) -> Pair:
        """Return two arrays that some others make, made once for the same others."""
        key = (name, *(_digest(array) for array in given))
        if key not in self.pairs:
            made = make()
            self.n_bytes += sum(array.nbytes for array in made)
            if self.is_full or self.n_bytes > self.most_bytes:
                return made
            self.pairs[key] = made
        return self.pairs[key]

    def _key(self, plan: Plan, task: Task, counts: tuple[int, ...]) -> Key:
        """Return all that the outcome of a task depends on."""
        train, test = (self._mark(rows) for rows in plan.folds[task.fold])
        seed = (plan.task_seed(task), plan.repeat)
        return (plan.learner, task.need, train, test, seed, counts, *self._about(plan, task))

    def _about(self, plan: Plan, task: Task) -> Key:
        """Return what is asked of a model, of whose features, and the target if it is no column."""
        if task.feature < 0:
            asked = plan.needs & OF_FULL_MODEL - {"y_given_all"}
            names = tuple(plan.data.names) if asked else ()
            return asked, names, plan.permutations, plan.lazy
        feature = plan.data.features[task.feature]
        if plan.targets is None or task.need != "x_given_rest":
            return feature.name, feature.columns
        target = np.ascontiguousarray(plan.targets[:, task.feature])
        return feature.name, feature.columns, _digest(target)

    def _mark(self, rows: Rows) -> bytes:
        """Return what tells rows from others; rows that are kept cannot lose their place."""
        if id(rows) not in self._marks:
            self._marks[id(rows)] = (rows, _digest(rows))
        return self._marks[id(rows)][1]


def _digest(values: NDArray[np.generic]) -> bytes:
    return blake2b(np.ascontiguousarray(values).tobytes(), digest_size=16).digest()


def _arrays(kept: Kept) -> Iterable[NDArray[np.generic]]:
    if isinstance(kept, list):
        return kept
    values = (kept.prediction, kept.dropped, kept.permuted, kept.left, kept.lazy, kept.direction)
    return [value for value in values if value is not None]
