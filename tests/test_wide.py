"""Nulls in tables of many columns: what x_j and y have in common is learned, or warned of."""

from dataclasses import replace

import numpy as np
import pytest

from residua.assess import prepare

LINKS = {"square": np.square, "kink": np.abs, "wave": np.cos, "sine": np.sin}


def even_index(n_rows, n_columns, link, rng):
    """Return a table in which x0 and y follow one function of the same sum of 20 others."""
    Z = rng.normal(size=(n_rows, n_columns - 1))
    used = Z[:, :20]
    m = used.sum(axis=1) / np.sqrt(used.shape[1])
    x, y = (link(m + 0.5 * rng.normal(size=n_rows)) for _ in range(2))
    return np.column_stack([x, Z]), y


def of_one(X, y, seed, methods=("gcm",), check=False):
    """Return the p-values of x0 alone, and whether it comes with a warning: others would take long.

    The others are columns that no feature owns.
    """
    job = prepare(X, y, methods=methods, seed=seed, check=check)
    features = tuple(f if f.name == "x0" else replace(f, columns=()) for f in job.data.features)
    result = replace(job, data=replace(job.data, features=features)).run()
    table = result.table[result.table["feature"] == "x0"]
    quality = result.quality[result.quality["regression"] == "x given rest"]
    return dict(zip(table["method"], table["p_value"], strict=True)), any(quality["alarm"] != "")


def rejected(draw, n_runs, **options):
    """Return the share of runs in which each method rejects at .05."""
    runs = [of_one(*draw(np.random.default_rng(run)), run, **options)[0] for run in range(n_runs)]
    return {name: np.mean([run[name] < 0.05 for run in runs]) for name in runs[0]}


@pytest.mark.parametrize("n_columns", [13, 21])
def test_one_column_more_takes_no_capability_away(n_columns):
    rates = rejected(lambda rng: even_index(400, n_columns, np.square, rng), 6)
    assert rates["gcm"] <= 0.34  # 1 without sums of columns


@pytest.mark.slow
@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("n_columns", [13, 21, 30])
def test_functions_of_a_sum_of_twenty_columns_do_not_pass_for_effects(link, n_columns):
    def draw(rng):
        return even_index(500, n_columns, LINKS[link], rng)

    rates = rejected(draw, 100, methods="default")
    # At a rate of .07, more than this has a chance of 1%.
    assert max(rates.values()) <= 0.13
