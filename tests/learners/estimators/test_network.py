"""The network: shared luck, torch's own steps, and the same bytes everywhere."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from covaria.learners.estimators.network import (
    BATCHES,
    NeuralNetwork,
    draws,
    settled,
    starting_weights,
)

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def sine():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(500, 3))
    return X, 5 + 3 * np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=500)


def test_a_column_starts_alike_whichever_columns_stand_beside_it():
    full = starting_weights((0, 1, 2, 3), (50,), 1, seed=7)
    without = starting_weights((0, 1, 3), (50,), 1, seed=7)
    assert full[0][:, [0, 1, 3]] * np.sqrt(4) == pytest.approx(without[0] * np.sqrt(3))
    assert full[1] * np.sqrt(4) == pytest.approx(without[1] * np.sqrt(3))
    assert all(np.array_equal(a, b) for a, b in zip(full[2:], without[2:], strict=True))


def test_later_layers_start_alike_too():
    full = starting_weights((0, 1, 2), (32, 16), 1, seed=7)
    without = starting_weights((0, 2), (32, 16), 1, seed=7)
    assert all(np.array_equal(a, b) for a, b in zip(full[2:], without[2:], strict=True))


def test_another_seed_starts_elsewhere():
    one, other = (starting_weights((0, 1), (5,), 1, seed=seed) for seed in (0, 1))
    assert not any(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_weights_start_as_wide_as_torch_would_have_them():
    weight = starting_weights(tuple(range(25)), (400,), 1, seed=0)[0]
    assert weight.shape == (400, 25)
    assert np.abs(weight).max() == pytest.approx(1 / 5, rel=0.01)
    assert weight.std() == pytest.approx(1 / 5 / np.sqrt(3), rel=0.02)


@pytest.mark.parametrize("n_classes", [0, 3])
def test_training_takes_the_steps_of_torchs_own_adam(sine, n_classes):
    X, y = sine
    y = np.digitize(y, [4, 6]).astype(float) if n_classes else y
    weights = np.random.default_rng(1).uniform(0, 2, 500)
    options = {"hidden": (7, 5), "batch": 64, "weight_decay": 0.01, "columns": (3, 1, 4)}
    model = NeuralNetwork(**options, epochs=3, n_classes=n_classes).fit(X, y, weights)
    ours, theirs = model.parameters(), by_torch(X, y, weights, model, n_classes)
    assert max(np.abs(a - b).max() for a, b in zip(ours, theirs, strict=True)) < 1e-12


def by_torch(X, y, weights, model, n_classes):
    """Return the parameters that autograd and torch.optim.Adam arrive at."""
    parameters = starting_weights((3, 1, 4), (7, 5), n_classes or 1, seed=0)
    tensors = [torch.tensor(p, requires_grad=True) for p in parameters]
    adam = torch.optim.Adam(tensors, lr=1e-3, weight_decay=0.01)
    Z, w = torch.tensor((X - model.center) / model.scale), torch.tensor(weights / weights.mean())
    goal = torch.tensor(y if n_classes else (y - model.y_center) / model.y_scale)
    order = draws(0, BATCHES, 500)
    for _ in range(3):
        for rows in torch.tensor(order.permutation(500)).split(64):
            signal = Z[rows]
            for weight, bias in zip(tensors[:-2:2], tensors[1:-2:2], strict=True):
                signal = torch.relu(torch.nn.functional.linear(signal, weight, bias))
            out = torch.nn.functional.linear(signal, *tensors[-2:])
            losses = (out[:, 0] - goal[rows]) ** 2
            if n_classes:
                losses = torch.nn.CrossEntropyLoss(reduction="none")(out, goal[rows].long())
            adam.zero_grad()
            (w[rows] * losses).mean().backward()
            adam.step()
    return [t.detach().numpy() for t in tensors]


def test_a_sine_is_learned(sine):
    X, y = sine
    new = np.random.default_rng(2).uniform(-2, 2, size=(300, 3))
    fitted = NeuralNetwork(lr=1e-2, batch=64).fit(X, y).predict(new)
    assert np.mean((fitted - 5 - 3 * np.sin(2 * new[:, 0])) ** 2) < 0.1 * np.var(y)


def test_classes_are_learned(sine):
    X, _ = sine
    y = X.argmax(axis=1).astype(float)
    fitted = NeuralNetwork(lr=1e-2, batch=64, n_classes=3).fit(X, y).predict(X)
    assert fitted.sum(axis=1) == pytest.approx(1)
    assert np.mean(fitted.argmax(axis=1) == y) > 0.95


def test_units_do_not_matter(sine):
    X, y = sine
    once = NeuralNetwork(epochs=5).fit(X, y).predict(X)
    again = NeuralNetwork(epochs=5).fit(100 * X - 3, 10 * y + 1).predict(100 * X - 3)
    assert again == pytest.approx(10 * once + 1)


def test_the_same_seed_gives_the_same_bytes_whatever_the_threads(sine):
    X, y = sine
    before = torch.get_num_threads()
    answers = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        answers.append(NeuralNetwork(epochs=5).fit(X, y).predict(X).tobytes())
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    assert answers[0] == answers[1]


def test_the_global_seed_is_neither_used_nor_moved(sine):
    X, y = sine
    torch.manual_seed(0)
    one = NeuralNetwork(epochs=2).fit(X, y).predict(X)
    state = torch.get_rng_state()
    torch.manual_seed(1)
    two = NeuralNetwork(epochs=2).fit(X, y).predict(X)
    assert np.array_equal(one, two)
    torch.manual_seed(0)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_layout_of_the_table_does_not_matter(sine):
    X, y = sine
    by_row, by_column = (
        NeuralNetwork(epochs=3).fit(table, y).predict(table) for table in (X, np.asfortranarray(X))
    )
    assert np.array_equal(by_row, by_column)


def test_training_stops_when_the_loss_does():
    assert not settled([1.0, 0.9, 0.8999, 0.8998])
    assert settled([1.0, 0.9, 0.8999, 0.8998, 0.8997])
    assert not settled([1.0, 0.9, 0.8996, 0.8992, 0.8988])


def test_rows_of_weight_zero_have_no_say(sine):
    X, y = sine
    weights = np.repeat([1.0, 0.0], 250)
    other_X, other_y = X.copy(), y.copy()
    other_X[250:], other_y[250:] = 0, 99
    one = NeuralNetwork(epochs=3).fit(X, y, weights).predict(X)
    two = NeuralNetwork(epochs=3).fit(other_X, other_y, weights).predict(X)
    assert one == pytest.approx(two)


def test_a_constant_column_is_ignored_even_when_it_changes_later(sine):
    X, y = sine
    wide, later = (np.column_stack([X, c]) for c in (np.full(500, 0.1), np.arange(500)))
    model = NeuralNetwork(epochs=3).fit(wide, y)
    assert np.array_equal(model.predict(wide), model.predict(later))


def test_without_columns_the_answer_is_the_mean_or_the_shares():
    nothing, y = np.empty((4, 0)), np.array([0.0, 1, 1, 2])
    assert NeuralNetwork().fit(nothing, y).predict(nothing) == pytest.approx([1] * 4)
    shares = NeuralNetwork(n_classes=3).fit(nothing, y, np.array([3.0, 1, 1, 1])).predict(nothing)
    assert shares[0] == pytest.approx([1 / 2, 1 / 3, 1 / 6])


def test_a_single_row_and_a_constant_target_are_answered():
    X = np.random.default_rng(3).normal(size=(20, 2))
    assert np.isfinite(NeuralNetwork(epochs=2).fit(X[:1], np.ones(1)).predict(X)).all()
    constant = NeuralNetwork(lr=1e-2).fit(X, np.full(20, 7.0)).predict(X)
    assert constant == pytest.approx([7] * 20, abs=0.5)


def test_an_infinite_loss_is_reported_with_its_cure(sine):
    with pytest.raises(ValueError, match="lower lr"):
        NeuralNetwork(lr=1e300).fit(*sine)


def test_parameters_are_copies(sine):
    X, y = sine
    model = NeuralNetwork(hidden=(4,), epochs=1).fit(X, y)
    before = model.predict(X)
    assert [p.shape for p in model.parameters()] == [(4, 3), (4,), (1, 4), (1,)]
    model.parameters()[0][:] = 0
    assert np.array_equal(model.predict(X), before)


def test_importing_the_module_leaves_torch_alone():
    code = "import sys, covaria.learners.estimators.network; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
