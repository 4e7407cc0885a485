"""The real tables, where they are here: the paper's rows and columns, and what they hold."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter
from typer.testing import CliRunner

import covaria
from covaria import datasets
from covaria.cli.app import app
from covaria.datasets.cleaning import cleaned, only_columns
from covaria.datasets.entries import ENTRIES
from covaria.errors import InputError

SIZES = {
    "airbnb_quebec": (1906, 11),
    "social_media": (4999, 8),
    "wine_red": (1599, 11),
    "boston": (506, 13),
    "crab_age": (3893, 9),
    "gas_turbine_2013": (7152, 9),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_table_has_the_papers_rows_and_columns_and_no_gap(name, real_data):
    X, y = datasets.load(name, download=False)
    entry = datasets.entry(name)
    assert X.shape == SIZES[name] == (entry.n_rows, entry.n_columns)
    assert y.name == entry.target
    assert np.isfinite(X.to_numpy()).all()
    assert np.isfinite(y.to_numpy()).all()
    assert y.index.equals(X.index)
    assert entry.n_rows == entry.paper_rows or "not the paper's file" in entry.note
    for columns in datasets.groups(name).values():
        assert set(columns) <= set(X.columns)
        assert set(np.unique(X[columns])) == {0.0, 1.0}


def test_least_squares_on_boston_has_the_residual_error_that_r_prints(real_data):
    X, y = datasets.load("boston", download=False)
    design = np.column_stack([np.ones(len(X)), X])
    left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert np.sqrt((left**2).sum() / 492) == pytest.approx(4.745, abs=5e-4)  # summary(lm(medv ~ .))


def test_wine_is_an_alias(real_data):
    assert datasets.load("wine")[0].equals(datasets.load("wine_red")[0])


def test_only_the_columns_used_are_kept_of_the_listings_byte_for_byte(real_data):
    entry = datasets.entry("airbnb_quebec")
    raw = (real_data / entry.file).read_bytes()
    assert only_columns(raw, entry.columns) == raw


def test_cleaning_codes_text_and_drops_incomplete_rows():
    raw = (
        b"latitude,longitude,room_type,price,minimum_nights,reviews_per_month\n"
        b'1,2,Entire home/apt,"$1,185.00",1,1\n1,2,Private room,,1,1\n1,2,Hotel room,$10.00,1,\n'
        b"1,2,Private room,$1.00,1,3\n"
    )
    X, y = cleaned(ENTRIES["airbnb_quebec"], raw)
    assert y.tolist() == pytest.approx([np.log(1185), 0.0])
    assert X["room_type_Private room"].tolist() == [0.0, 1.0]
    X, y = cleaned(
        ENTRIES["social_media"],
        b"age,addiction_level,productivity_score\n1,High,5\n2,,6\n3,Low,7\n",
    )
    assert X["addiction_level"].tolist() == [2.0, 0.0]
    X, _ = cleaned(ENTRIES["crab_age"], b"Sex,Length,Age\nF,1,2\nI,1,2\nM,1,3\n")
    assert X.to_dict("list") == {"Length": [1] * 3, "Sex_I": [0, 1, 0], "Sex_M": [0, 0, 1]}


def test_a_file_with_other_columns_is_one_sentence():
    with pytest.raises(InputError, match=r"boston.csv does not have the columns of boston"):
        cleaned(ENTRIES["boston"], b"a,b\n1,2\n")


def test_the_command_lists_origin_licence_and_size(monkeypatch, tmp_path):
    cli = CliRunner()
    monkeypatch.setenv("COVARIA_CACHE", str(tmp_path))
    monkeypatch.delenv("COVARIA_DATA", raising=False)
    shown = cli.invoke(app, ["datasets"])
    assert shown.exit_code == 0
    assert "CC BY 4.0" in shown.stdout
    assert "Harrison and Rubinfeld" in shown.stdout
    rows = json.loads(cli.invoke(app, ["datasets", "--json"]).stdout)
    assert [row["name"] for row in rows] == list(ENTRIES)
    assert not any(row["present"] for row in rows)
    assert all(len(row["sha256"]) == 64 and row["url"].startswith("https://") for row in rows)


def test_copies_of_a_row_and_weeks_of_hours_share_a_cluster():
    X = pd.DataFrame(np.random.default_rng(2).normal(size=(120, 3)))
    assert datasets.clusters("crab_age", X) is None
    weeks = datasets.clusters("gas_turbine", pd.concat([X, X, X]))
    assert np.bincount(weeks).tolist() == [168, 168, 24]
    again = pd.concat([X, X.iloc[[5, 7]]], ignore_index=True)
    found = datasets.clusters("wine_red", again)
    assert found[-2:].tolist() == [found[5], found[7]]
    assert len(set(found)) == 120


def test_the_real_tables_have_these_many_clusters(real_data):
    counts = {}
    for name in SIZES:
        X, _ = datasets.load(name)
        for kind in (datasets.clusters, datasets.alike):
            found = kind(name, X)
            if found is not None:
                counts[name, kind.__name__] = len(set(found)), np.bincount(found).max()
    assert counts == {
        ("wine_red", "clusters"): (1359, 4),
        ("gas_turbine_2013", "clusters"): (43, 168),
        ("boston", "alike"): (78, 132),
    }


def hours(rng, autocorrelation):
    """Return 43 weeks of hours, each like the one before."""
    shocks = rng.normal(size=43 * 168) * np.sqrt(1 - autocorrelation**2)
    return lfilter([1.0], [1.0, -autocorrelation], shocks)


@pytest.mark.slow
@pytest.mark.parametrize("autocorrelation", [0.9, 0.97])
def test_weeks_as_clusters_keep_gcm_near_its_level_and_hours_as_rows_do_not(autocorrelation):
    """Of 300 true nulls .06 and .08 are rejected with weeks, .56 and .75 with hours as rows.

    Neighbouring weeks touch, so a little above .05 is expected: the band ends at .12.
    """
    rejected = {"weeks": 0, "hours": 0}
    for seed in range(300):
        rng = np.random.default_rng(seed)
        z, other, x, y = (hours(rng, autocorrelation) for _ in range(4))
        X = pd.DataFrame({"x": z + x, "z": z, "other": other})
        weeks = datasets.clusters("gas_turbine_2013", X)
        for name, clusters in (("weeks", weeks), ("hours", None)):
            found = covaria.assess(
                X, z + other + y, learner="linear", methods="gcm", clusters=clusters, seed=seed,
                check=False,
            )  # fmt: skip
            rejected[name] += int(found.table.set_index("feature").loc["x", "p_value"] < 0.05)
    print(rejected)
    assert rejected["weeks"] / 300 < 0.12
    assert rejected["hours"] / 300 > 0.4
