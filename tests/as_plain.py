"""What tests of engines share: a comparison with the plain engine."""

import numpy as np

from covaria.nuisance import fit as fitting
from covaria.nuisance.engines import plain


def by_task(plan, outcomes):
    """Return an outcome for each task in order, where one may have answered several."""
    return list(fitting.by_task(plan, outcomes).values())


def assert_as_plain(engine, plan, tolerance=1e-8):
    """Check every array of every outcome, relative to its largest number."""
    found, expected = by_task(plan, engine.run(plan)), plain.run(plan)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.failure == theirs.failure == ""
        for name in ("prediction", "dropped", "permuted"):
            a, b = getattr(ours, name), getattr(theirs, name)
            assert (a is None) == (b is None)
            if a is not None:
                assert a.shape == b.shape
                assert np.abs(a - b).max() <= tolerance * max(1, np.abs(b).max())
