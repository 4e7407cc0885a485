"""One network of all features, in which no output sees the feature it predicts."""

import numpy as np
import pytest

from covaria.learners import Network
from covaria.nuisance.masked import Masked, masked_outputs

pytest.importorskip("torch")

QUICK = Network(epochs=5, batch=32, lr=0.01)
PAIR = [(0, (0, 2)), (1, (1,)), (2, (0, 2)), (3, (3,))]
SINGLES = [(k, (k,)) for k in range(4)]


def neighbours(n_rows, n_features=4, correlation=0.8, seed=0):
    """Return features that are correlated with the next one, standardised."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_rows, n_features))
    for j in range(1, n_features):
        Z[:, j] = correlation * Z[:, j - 1] + np.sqrt(1 - correlation**2) * Z[:, j]
    return (Z - Z.mean(axis=0)) / Z.std(axis=0)


def network(Z, targets, learner=QUICK):
    return Masked(learner, Z, np.ones(len(Z)), targets, 1)


@pytest.mark.parametrize("targets", [SINGLES, PAIR], ids=["singles", "a pair"])
def test_no_output_sees_its_own_feature_and_every_output_sees_the_others(targets):
    model, rows = network(neighbours(80), targets), neighbours(30, seed=1)
    before = masked_outputs(model, rows)
    for k, (_, own) in enumerate(targets):
        other = rows.copy()
        other[:, list(own)] = 7.0
        change = np.abs(masked_outputs(model, other) - before).max(axis=0)
        assert change[k] < 1e-12
        assert all(change[i] > 0.01 for i, (_, columns) in enumerate(targets) if columns != own)


@pytest.mark.parametrize("targets", [SINGLES, PAIR], ids=["singles", "a pair"])
@pytest.mark.parametrize("hidden", [(7,), (7, 5)])
def test_outputs_are_those_of_a_network_whose_own_columns_are_zero(targets, hidden):
    import torch

    from covaria.nuisance.masked import _outputs

    model = network(neighbours(20), targets, Network(hidden=hidden))
    parameters = model.start()
    found = _outputs(*([torch.from_numpy(p) for p in some] for some in [parameters]),
                     torch.from_numpy(model.Z), torch.from_numpy(model.own)).numpy()  # fmt: skip
    for k, (_, own) in enumerate(targets):
        signal = model.Z.copy()
        signal[:, list(own)] = 0.0
        for layer in range(0, len(parameters), 2):
            sums = signal @ parameters[layer].T + parameters[layer + 1]
            signal = np.maximum(sums, 0)
        assert found[:, k] == pytest.approx(sums[:, k], abs=1e-12)


def test_it_predicts_features_about_as_well_as_least_squares_does():
    Z, new = neighbours(300, 6), neighbours(2000, 6, seed=1)
    model = network(Z, [(k, (k,)) for k in range(6)], Network(epochs=60))
    ours = ((new - masked_outputs(model, new)) ** 2).mean(axis=0)
    for k in range(6):
        rest = [c for c in range(6) if c != k]
        slopes = np.linalg.lstsq(Z[:, rest], Z[:, k], rcond=None)[0]
        best = ((new[:, k] - new[:, rest] @ slopes) ** 2).mean()
        assert ours[k] < 1.15 * best + 0.02


def test_a_column_that_does_not_vary_has_no_say():
    Z = neighbours(60)
    Z[:, 1] = 0.0
    rows, other = neighbours(20, seed=1), neighbours(20, seed=1)
    other[:, 1] += 5.0
    model = network(Z, [(0, (0,))])
    assert masked_outputs(model, rows) == pytest.approx(masked_outputs(model, other), abs=1e-12)
