"""What methods without a p-value choose."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from covaria.methods import AnyMethod, SelectionMethod
from covaria.methods.choice import Choice
from covaria.randomness import stream
from covaria.tables.dataset import Dataset


@dataclass(frozen=True)
class Chosen:
    """What was selected without a test, and how long it took."""

    choice: Choice
    seconds: float


def select_without_test(
    methods: Sequence[AnyMethod], data: Dataset, seed: int, names: Collection[str]
) -> dict[str, Chosen]:
    """Return what the methods without a test select of all features, and say of some."""
    chosen, some = {}, [j for j, name in enumerate(data.names) if name in names]
    for method in methods:
        if isinstance(method, SelectionMethod):
            start = time.perf_counter()
            rng = stream(seed, type(method.settings).__name__)  # whatever its settings
            choice = method.settings.choose(data, rng)
            chosen[method.name] = Chosen(choice.only(some), time.perf_counter() - start)
    return chosen
