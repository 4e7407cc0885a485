"""Our kernel machine is kernlab's, and stands what a table can throw at it."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.kernel_ridge import KernelRidge

from covaria.errors import InputError
from covaria.learners.estimators import kernel
from covaria.learners.estimators.kernel import KernelMachine, sigest

FIXTURES = Path(__file__).parents[2] / "fixtures"
FEATURES = ["x1", "x2", "x3", "x4"]
KINDS = ["svr", "ridge"]


def from_r(name):
    # numpy reads back every last digit; pandas did not always.
    path = FIXTURES / f"r_{name}.csv"
    rows = np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")
    return pd.DataFrame(np.atleast_1d(rows))


@pytest.fixture(scope="module")
def data():
    return from_r("data")


@pytest.fixture
def table(data):
    return data[FEATURES].to_numpy(), data["y"].to_numpy()


@pytest.mark.parametrize(
    ("column", "C", "tol", "apart"),
    [
        ("C1_solved", 1.0, 1e-10, 1e-8),
        ("C01_solved", 0.1, 1e-10, 1e-8),
        ("C01_default", 0.1, 1e-3, 1e-8),
        # Noise of 1e-16 in the data moves ksvm's own answer by as much: it stops early.
        ("C1_default", 1.0, 1e-3, 3e-3),
    ],
)
def test_y_given_all_is_what_ksvm_says(table, column, C, tol, apart):
    model = KernelMachine(C=C, sigma=0.25, tol=tol).fit(*table)
    new = from_r("new")[FEATURES].to_numpy()
    assert_allclose(model.predict(table[0]), from_r("ksvm_fitted")[column], rtol=0, atol=apart)
    assert_allclose(model.predict(new), from_r("ksvm_new")[column], rtol=0, atol=apart)


def test_sigma_is_near_what_kernlab_draws(table):
    sigma = KernelMachine().fit(*table).sigma_
    theirs = from_r("sigest").iloc[0]
    assert theirs["smallest"] < sigma < theirs["largest"]
    assert sigma == pytest.approx(theirs["sigma"], rel=0.15)


def test_sigma_from_evenly_spaced_rows_is_near_that_from_all():
    X = np.random.default_rng(0).normal(size=(5000, 3))
    assert sigest(X) == pytest.approx(sigest(X[:2000]), rel=0.05)


@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_is_scikit_learns(table, weighted):
    X, y = table
    weights = np.ones(len(y))
    if weighted:
        weights = np.random.default_rng(0).exponential(size=len(y))
        weights /= weights.mean()
    model = KernelMachine(kind="ridge", C=2.0, sigma=0.3).fit(X, y, weights)
    scaled, centre = model.scale_.apply(X), np.average(y, weights=weights)
    theirs = KernelRidge(alpha=0.5, kernel="rbf", gamma=0.3)
    theirs.fit(scaled, y - centre, sample_weight=weights)
    assert_allclose(model.predict(X), centre + theirs.predict(scaled), atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_units_of_x_and_y_do_not_matter(table, kind):
    X, y = table
    one = KernelMachine(kind=kind, tol=1e-8).fit(X, y).predict(X)
    # Powers of two, so that nothing is rounded.
    two = KernelMachine(kind=kind, tol=1e-8).fit(X * 1024 + 8, y * 4).predict(X * 1024 + 8)
    assert_allclose(two, 4 * one, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", ["y", "two", "three"])
def test_rows_without_weight_might_as_well_not_be_there(data, kind, target):
    X, y = data[FEATURES].to_numpy(), data[target].to_numpy()
    weights = np.where(np.arange(len(y)) % 3 == 0, 0.0, 5.0)
    n_classes = {"y": 0, "two": 2, "three": 3}[target]
    one = KernelMachine(kind=kind, n_classes=n_classes).fit(X, y, weights)
    two = KernelMachine(kind=kind, n_classes=n_classes).fit(X[weights > 0], y[weights > 0])
    assert_allclose(one.predict(X), two.predict(X), atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_pull_the_answer_to_their_rows(table, kind):
    X, y = table
    heavy = np.where(np.arange(len(y)) < 50, 20.0, 1.0)
    one, two = (KernelMachine(kind=kind).fit(X, y, w).predict(X) for w in (None, heavy))
    assert np.mean((two - y)[:50] ** 2) < np.mean((one - y)[:50] ** 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("target", "n_classes"), [("two", 2), ("three", 3)])
def test_classes_get_probabilities_that_beat_guessing(data, kind, target, n_classes):
    X, y = data[FEATURES].to_numpy(), data[target].to_numpy()
    answer = KernelMachine(kind=kind, n_classes=n_classes).fit(X, y).predict(X)
    assert answer.shape == (len(y), n_classes)
    assert_allclose(answer.sum(axis=1), 1)
    assert answer.min() > 0
    assert (answer.argmax(axis=1) == y).mean() > 0.6


@pytest.mark.parametrize("kind", KINDS)
def test_no_columns_give_the_weighted_mean_or_the_class_shares(kind):
    nothing, weights = np.empty((4, 0)), np.array([1.0, 1.0, 1.0, 5.0])
    number = KernelMachine(kind=kind).fit(nothing, np.array([0.0, 0.0, 0.0, 8.0]), weights)
    classes = KernelMachine(kind=kind, n_classes=3)
    classes.fit(nothing, np.array([0.0, 0.0, 1.0, 2.0]), weights)
    assert_allclose(number.predict(nothing), 5.0)
    assert_allclose(classes.predict(nothing[:1]), [[0.25, 0.125, 0.625]])


@pytest.mark.parametrize("kind", KINDS)
def test_constant_columns_say_nothing(table, kind):
    X, y = table
    constant = np.full((len(y), 1), 0.1)
    one = KernelMachine(kind=kind, tol=1e-8).fit(X, y).predict(X)
    wide = np.hstack([X, constant])
    two = KernelMachine(kind=kind, tol=1e-8).fit(wide, y).predict(wide)
    assert_allclose(one, two, atol=1e-6)
    alone = KernelMachine(kind=kind).fit(constant, y).predict(constant)
    assert np.ptp(alone) == 0
    assert np.isfinite(alone).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 / 3])
def test_a_constant_y_is_predicted(table, kind, value):
    X = table[0]
    assert_allclose(KernelMachine(kind=kind).fit(X, np.full(len(X), value)).predict(X), value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_rows", [1, 2, 3])
@pytest.mark.parametrize("n_classes", [0, 2])
def test_a_handful_of_rows_does_no_harm(table, kind, n_rows, n_classes):
    X, y = table[0][:n_rows], np.arange(n_rows) % 2.0
    answer = KernelMachine(kind=kind, n_classes=n_classes).fit(X, y).predict(X)
    assert np.isfinite(answer).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("counts", [(60, 1), (60, 2), (60, 40, 1), (60, 2, 2), (2, 2), (60, 0, 1)])
def test_a_class_with_hardly_any_rows_does_no_harm(kind, counts):
    y = np.repeat(np.arange(len(counts)), counts).astype(float)
    X = np.random.default_rng(0).normal(size=(len(y), 2)) + y[:, np.newaxis]
    answer = KernelMachine(kind=kind, n_classes=len(counts)).fit(X, y).predict(X)
    assert answer.shape == (len(y), len(counts))
    assert_allclose(answer.sum(axis=1), 1)


@pytest.mark.parametrize("kind", KINDS)
def test_only_one_class_is_certain_or_nearly(table, kind):
    X = table[0]
    answer = KernelMachine(kind=kind, n_classes=2).fit(X, np.ones(len(X))).predict(X)
    assert_allclose(answer, [[0, 1]] * len(X), atol=2e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_classes", [0, 2])
def test_a_model_survives_the_trip_to_another_process(data, kind, n_classes):
    X, y = data[FEATURES].to_numpy(), data["two"].to_numpy()
    model = KernelMachine(kind=kind, n_classes=n_classes).fit(X, y)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_ridge_answers_many_rows_as_it_answers_few(monkeypatch, table):
    X, y = table
    model = KernelMachine(kind="ridge").fit(X, y)
    whole = model.predict(X)
    monkeypatch.setattr(kernel, "BLOCK_BYTES", 1000.0)
    assert_allclose(model.predict(X), whole, rtol=1e-12, atol=1e-12)


def test_ridge_says_when_there_are_too_many_rows(monkeypatch, table):
    monkeypatch.setattr(kernel, "MOST_ROWS_FOR_RIDGE", 50)
    X, y = table
    few = (np.arange(len(y)) < 50) * 1.0
    KernelMachine(kind="svr").fit(X, y)
    KernelMachine(kind="ridge").fit(X, y, few)  # rows without weight take no room
    with pytest.raises(InputError, match=r"at most 50 rows.*Use kind='svr' or fewer rows"):
        KernelMachine(kind="ridge").fit(X, y)


@pytest.mark.parametrize("columns", [[1], [0, 2], [0, 1, 2]])
def test_the_mean_over_other_values_is_that_of_the_predictions(columns):
    rng = np.random.default_rng(8)
    X, values = rng.normal(size=(60, 3)), rng.normal(size=(25, len(columns)))
    y = np.sin(X[:, 0] * X[:, 1]) + 5
    model = KernelMachine(kind="ridge", C=10.0, sigma=0.2).fit(X, y)
    expected = np.zeros(60)
    for value in values:
        altered = X.copy()
        altered[:, columns] = value
        expected += model.predict(altered) / len(values)
    np.testing.assert_allclose(model.averaged(X, columns, values), expected, rtol=1e-10)
    assert KernelMachine().fit(X, y).averaged is None
