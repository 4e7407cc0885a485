"""What models predicted, kept beside a result so that it can be extended without fitting again.

Models themselves are not kept: what has to ask one for more than its predictions (dropout and
permutation ask that of y on all columns) fits it once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from covaria.nuisance.plan import OF_FULL_MODEL, Array, Kept, Outcome, Pair, Plan, Task
from covaria.tables.arrays import Rows

# A result keeps at most so much beside its table and scores.
MOST_BYTES = 256 * 2**20
Key = tuple[object, ...]


@dataclass
class Memory:
    """Outcomes by learner, training rows, tested rows, target and seed; all of one table.

    Once they would take more than `most_bytes`, nothing is kept.
    """

    most_bytes: int = MOST_BYTES
    n_bytes: int = 0
    is_full: bool = False
    outcomes: dict[Key, Kept] = field(default_factory=dict, repr=False)
    pairs: dict[Key, Pair] = field(default_factory=dict, repr=False)
    _marks: dict[int, tuple[Rows, bytes]] = field(default_factory=dict, repr=False)

    def known(self, plan: Plan, counts: tuple[int, ...] = ()) -> dict[Task, Kept]:
        """Return what is known of a plan's tasks, by one learner."""
        if not self.outcomes:
            return {}
        keys = {task: self._key(plan, task, counts) for task in plan.tasks}
        return {task: self.outcomes[key] for task, key in keys.items() if key in self.outcomes}

    def keep(self, plan: Plan, found: Mapping[Task, Kept], counts: tuple[int, ...] = ()) -> None:
        """Keep what came of tasks, as long as there is room; failures are tried again."""
        for task, kept in found.items():
            if self.is_full or (isinstance(kept, Outcome) and kept.failure):
                continue
            self.n_bytes += sum(array.nbytes for array in _arrays(kept))
            self.outcomes[self._key(plan, task, counts)] = kept
            if self.n_bytes > self.most_bytes:
                self.is_full = True
                self.outcomes.clear()
                self._marks.clear()

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
