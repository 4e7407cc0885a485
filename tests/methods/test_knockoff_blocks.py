"""Copies of more columns than rows: they go with other columns as the features do."""

import numpy as np
import pytest

from covaria import assess
from covaria.methods.knockoff_blocks import blocks_of, factors_of, fit_blocks
from covaria.methods.knockoff_sampling import CONSTRUCTIONS, fit_sampler

N_ROWS, N_COLUMNS = 100, 600


def in_blocks(rng, share=0.7, n_columns=N_COLUMNS):
    shared = np.repeat(rng.normal(size=(N_ROWS, n_columns // 10)), 10, axis=1)
    own = rng.normal(size=(N_ROWS, n_columns))
    return np.sqrt(share) * shared + np.sqrt(1 - share) * own


def standard(X):
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)


def within(a, b):
    """Return the mean correlation of columns of a with other columns of b in the same block."""
    r = standard(a).T @ standard(b) / (len(a) - 1)
    same = np.kron(np.eye(a.shape[1] // 10), np.ones((10, 10))) - np.eye(a.shape[1])
    return float(r[same > 0].mean())


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_copies_go_with_their_neighbours_as_features_do(construction):
    rng = np.random.default_rng(0)
    X = in_blocks(rng)
    copies = fit_blocks(X, construction).draw(X, rng)
    assert within(copies, copies) == pytest.approx(within(X, X), abs=0.02)
    assert within(X, copies) == pytest.approx(within(X, X), abs=0.02)
    np.testing.assert_allclose(copies.mean(axis=0), X.mean(axis=0), atol=0.5)
    assert copies.std(axis=0).mean() == pytest.approx(X.std(axis=0).mean(), rel=0.03)


def test_one_covariance_of_all_columns_loses_the_neighbours():
    rng = np.random.default_rng(0)
    X = in_blocks(rng)
    sampler = fit_sampler(X, "equicorrelated")
    assert sampler.shrinkage > 0.5
    assert within(X, sampler.draw(X, rng)) < within(X, X) - 0.1


def test_a_copy_has_the_factors_of_its_row():
    rng = np.random.default_rng(1)
    loads = rng.normal(size=(2, N_COLUMNS))
    common = rng.normal(size=(N_ROWS, 2)) @ loads
    X = common + rng.normal(size=(N_ROWS, N_COLUMNS))
    sampler = fit_blocks(X, "mvr")
    assert sampler.loads.shape == (N_COLUMNS, 2)
    left = standard(sampler.draw(X, rng)) - standard(X)
    # What differs between a column and its copy is noise of its own: no direction stands out.
    assert factors_of(standard(left)).shape[1] == 0


def test_blocks_are_found_and_independent_columns_have_none():
    rng = np.random.default_rng(2)
    found = blocks_of(standard(in_blocks(rng)))
    assert [block.tolist() for block in found] == np.arange(N_COLUMNS).reshape(-1, 10).tolist()
    assert len(blocks_of(standard(rng.normal(size=(N_ROWS, 200))))) >= 199


def test_the_order_of_columns_changes_no_answer():
    rng = np.random.default_rng(3)
    X = in_blocks(rng, n_columns=120)
    y = X[:, ::10].sum(axis=1) + rng.normal(size=N_ROWS)
    names = [f"g{j:03}" for j in range(120)]
    order = rng.permutation(120)
    import pandas as pd

    frame = pd.DataFrame(X, columns=names)
    tables = [
        assess(one, y, methods="knockoffs(construction='mvr')").table.set_index("feature")
        for one in (frame, frame.iloc[:, order])
    ]
    np.testing.assert_array_equal(
        tables[0]["statistic"], tables[1].loc[tables[0].index, "statistic"]
    )


def test_such_copies_are_said_to_be_approximate():
    rng = np.random.default_rng(4)
    X = in_blocks(rng)
    y = X[:, ::10].sum(axis=1) + rng.normal(size=N_ROWS)
    told = " ".join(assess(X, y, methods="knockoffs").alerts)
    assert "100 rows do not show the covariance of 600 columns" in told
    assert "within 60 blocks of them (the largest of 10)" in told
    assert "approximate" in told


def test_a_constant_and_copies_of_a_column_are_no_trouble():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 40))
    X[:, 1], X[:, 2] = X[:, 0], 1.0
    y = X[:, 0] + rng.normal(size=30)
    table = assess(X, y, methods="knockoffs").table
    assert np.isfinite(table["statistic"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.5, 0.7])
def test_the_false_discovery_rate_is_near_its_bound(share):
    """Of 100 tables .2 is exceeded by chance by three standard errors of about .02."""
    false = []
    for seed in range(100):
        rng = np.random.default_rng([6, seed])
        X = in_blocks(rng, share)
        useful = rng.choice(N_COLUMNS, 15, replace=False)
        y = X[:, useful] @ rng.choice([-1.0, 1.0], 15) + rng.normal(size=N_ROWS)
        chosen = assess(X, y, methods="knockoffs(construction='mvr')").selected
        names = next(iter(chosen.values()))
        false.append(len(set(names) - {f"x{j}" for j in useful}) / max(1, len(names)))
    assert np.mean(false) <= 0.26
