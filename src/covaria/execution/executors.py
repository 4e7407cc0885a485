"""Where tasks run: in this process, in processes beside it, or on a cluster.

All three are one `Executor`: it is handed a function and items, and yields what came of each as
soon as it is there. Plans, stability, studies: whoever has tasks asks it, and nobody else knows
where they run. What a dying process took along is tried again by itself, and is `Died` if its
process dies then too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")

# What comes of an item that was tried: its place and its value; in the end, whom a death befell.
Attempt = Generator[tuple[int, R], None, list[int]]
# A process takes seconds to start again; items of a kind that die in so many tries get no more.
MOST_IN_A_ROW = 3
DIED = "its process died"


@dataclass(frozen=True)
class Died:
    """No value: the process of an item died, or of too many before it."""

    tried: bool = True


class Unsendable(Exception):
    """A task cannot be sent to other processes."""


class Executor(Protocol):
    """What runs tasks.

    `apart` says that nothing runs in this process: a learner may bring down its own. Those who hand
    out tasks note in `pace` how long they take, and in `worked` the seconds that they did without.
    """

    name: str
    n_workers: int
    apart: bool
    pace: dict[str, float]
    worked: float

    def share(self, value: object) -> None:
        """Send a value once, not with every item that holds it."""
        ...

    def is_awake(self, *, wanted: bool) -> bool:
        """Return whether workers are there or on their way; where they are wanted, call them."""
        ...

    def attempt(
        self, function: Callable[[T], R], items: Sequence[T], queue: list[int], *, alone: bool
    ) -> Attempt[R]:
        """Yield place and value of items in the queue, out of which it takes them.

        It may stop where a process dies, and returns what was under way then. Items that are to be
        `alone` run one at a time.
        """
        ...

    def close(self) -> None:
        """Forget what was shared."""
        ...


@dataclass
class Serial:
    """Everything here, one after the other."""

    name: str = "serial"
    n_workers: int = 1
    apart: bool = False
    pace: dict[str, float] = field(default_factory=dict)
    worked: float = 0.0

    def share(self, value: object) -> None:
        """Do nothing: it is here."""

    def is_awake(self, *, wanted: bool) -> bool:
        """Return that nobody is."""
        return False

    def attempt(
        self, function: Callable[[T], R], items: Sequence[T], queue: list[int], *, alone: bool
    ) -> Attempt[R]:
        """Yield place and value of every item."""
        while queue:
            place = queue.pop(0)
            yield place, function(items[place])
        return []

    def close(self) -> None:
        """Do nothing."""


def _alike(item: object) -> Hashable:
    return 0


def each(
    executor: Executor,
    function: Callable[[T], R],
    items: Sequence[T],
    *,
    kind: Callable[[T], Hashable] = _alike,
    most_deaths: int = MOST_IN_A_ROW,
) -> Iterator[tuple[int, R | Died]]:
    """Yield the place and the value of every item, in any order.

    Of a kind of which this many die in a row, by themselves, no more are tried; with 0 a death
    ends it all.
    """
    left, suspects = list(range(len(items))), list[int]()
    deaths: dict[Hashable, int] = {}
    while left or suspects:
        alone = bool(suspects)
        found = executor.attempt(function, items, suspects if alone else left, alone=alone)
        died = yield from _noted(found, lambda place: deaths.pop(kind(items[place]), None))
        if not most_deaths:
            yield from ((place, Died()) for place in died)
            yield from ((left.pop(0), Died(tried=False)) for _ in range(len(left) if died else 0))
        elif not alone:
            suspects = died
        else:
            for place in died:
                yield place, Died()
                deaths[kind(items[place])] = deaths.get(kind(items[place]), 0) + 1
            for waiting in (left, suspects):
                hopeless = {p for p in waiting if deaths.get(kind(items[p]), 0) >= most_deaths}
                waiting[:] = [p for p in waiting if p not in hopeless]
                yield from ((place, Died(tried=False)) for place in sorted(hopeless))


def _noted(found: Attempt[R], note: Callable[[int], object]) -> Attempt[R]:
    """Yield what is found, after a note of it."""
    while True:
        try:
            place, value = next(found)
        except StopIteration as end:
            return list(end.value)
        note(place)
        yield place, value


def in_order(found: Iterable[tuple[int, R]]) -> Iterator[R]:
    """Yield values in the order of their places."""
    waiting: dict[int, R] = {}
    at = 0
    for place, value in found:
        waiting[place] = value
        while at in waiting:
            yield waiting.pop(at)
            at += 1
