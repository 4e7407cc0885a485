"""What tests of engines share: a comparison with the plain engine."""

from dataclasses import replace

import numpy as np

from residua.engines import plain


def by_task(plan, outcomes):
    """Return an outcome for each task, where one may have answered several."""
    single = []
    for outcome in outcomes:
        tasks = plan.tasks[len(single) : len(single) + outcome.count]
        if outcome.count == 1 and outcome.left is None:
            single.append(outcome)
            continue
        data, test, need = plan.data, plan.folds[tasks[0].fold][1], tasks[0].need
        owned = [list(plan.targets_of(task.feature)) for task in tasks]
        prediction = outcome.prediction
        if outcome.left is not None:
            target = data.y[test] if need[0] == "y" else data.X[np.ix_(test, np.hstack(owned))].T
            prediction = target - outcome.left
        parts = np.split(prediction, np.cumsum([len(c) for c in owned])[:-1])
        rows = prediction if need[0] == "y" else [part.T for part in parts]
        single += [replace(outcome, prediction=row, left=None, count=1) for row in rows]
    return single


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
