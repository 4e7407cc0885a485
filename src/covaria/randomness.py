"""One seed in at the front door, a named stream for every task behind it.

A stream depends on the seed and on its own name alone, so one more method, feature or core
leaves every other draw where it was.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.random import Generator, SeedSequence


def _sequence(seed: int, name: tuple[object, ...]) -> SeedSequence:
    digest = hashlib.blake2b(repr(name).encode(), digest_size=16).digest()
    return SeedSequence([seed, *np.frombuffer(digest, dtype=np.uint32).tolist()])


def stream(seed: int, *name: object) -> Generator:
    """Return the random generator that belongs to `name`.

    >>> float(stream(0, "folds").random()) == float(stream(0, "folds").random())
    True
    """
    return np.random.default_rng(_sequence(seed, name))


def seed_of(seed: int, *name: object) -> int:
    """Return an integer seed for a learner, the same whenever the name is the same."""
    return int(_sequence(seed, name).generate_state(1)[0] >> 1)
