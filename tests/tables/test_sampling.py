"""Tables larger than memory: every row has the same chance, and the answer says what was read."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

import covaria
from covaria import InputError
from covaria.cli import app as cli
from covaria.tables import sampling
from covaria.tables.sampling import at_hand, drawn, free_memory, kind_of

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
N_ROWS = 3000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    found = pd.DataFrame(rng.normal(size=(N_ROWS, 3)), columns=["a", "b", "c"])
    found["kind"] = rng.choice(["flat", "hut"], N_ROWS)
    found["number"] = np.arange(N_ROWS)
    return found.assign(y=found["a"] + rng.normal(size=N_ROWS))


@pytest.fixture(scope="module")
def parquet(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "homes.parquet"
    frame.to_parquet(path, row_group_size=700)
    return path


def of_duckdb(frame):
    duckdb = pytest.importorskip("duckdb")
    duckdb.sql("SET TimeZone = 'UTC'")
    return duckdb.from_arrow(pa.Table.from_pandas(frame))


def of_polars(frame):
    return pytest.importorskip("polars").from_pandas(frame).lazy()


def of_dataset(frame):
    import pyarrow.dataset

    return pyarrow.dataset.dataset(pa.Table.from_pandas(frame))


def test_a_sample_has_its_size_and_no_row_twice():
    some = drawn(200_000, 1000, seed=3)
    assert len(set(some.tolist())) == 1000
    assert 0 <= some[0] < some[-1] < 200_000
    assert (drawn(200_000, 1000, seed=3) == some).all()
    assert (drawn(200_000, 1000, seed=4) != some).any()


def test_every_row_has_the_same_chance():
    small, sampling.BATCH = sampling.BATCH, 7
    try:
        counts = np.bincount(
            np.concatenate([drawn(30, 6, seed) for seed in range(3000)]), minlength=30
        )
    finally:
        sampling.BATCH = small
    expected = 3000 * 6 / 30  # binomial, so within 4.5 standard errors for 30 rows
    assert (np.abs(counts - expected) < 4.5 * np.sqrt(expected * (1 - 0.2))).all()


@pytest.mark.parametrize("made", [of_dataset, of_polars, of_duckdb])
def test_lazy_tables_are_sampled_alike(frame, parquet, made):
    from_file, said = at_hand(parquet, rows=100, seed=1)
    some, also = at_hand(made(frame), rows=100, seed=1)
    some = some.to_pandas() if hasattr(some, "to_pandas") else some
    assert some["number"].tolist() == from_file["number"].tolist()
    assert said == also
    assert said[0].startswith("The table has 3,000 rows; a random sample of 100 was read.")


@pytest.mark.parametrize("made", [of_dataset, of_polars, of_duckdb])
def test_what_fits_is_taken_whole_with_the_numbers_of_the_frame(frame, parquet, made):
    asked = {"learner": "linear", "methods": "gcm"}
    whole = covaria.assess(frame, "y", **asked)
    for source in (made(frame), parquet, str(parquet)):
        found = covaria.assess(source, "y", **asked)
        np.testing.assert_array_equal(found.table["p_value"], whole.table["p_value"])
        assert not any("sample" in alert for alert in found.alerts)


def test_what_memory_does_not_hold_is_sampled_and_said(parquet, monkeypatch):
    # Six columns, one of text: 7 × 100 bytes a row, of which half may be taken.
    monkeypatch.setattr(sampling, "free_memory", lambda: 2 * 700 * 500)
    result = covaria.assess(parquet, "y", learner="linear", methods="gcm")
    assert result.about.n_rows == 500
    assert "a random sample of 500 was read, as many as memory allows" in result.alerts[0]
    assert "a" in result.selected["gcm"]


def test_rows_are_a_setting_that_repeats_the_run(parquet):
    result = covaria.assess(parquet, "y", rows=300, seed=2, learner="linear", methods="gcm")
    again = covaria.assess(parquet, "y", **result.settings)
    assert result.settings["rows"] == 300
    assert result.table.equals(again.table)


def test_a_folder_of_files_is_one_table(frame, tmp_path):
    for part in range(3):
        frame[part::3].to_parquet(tmp_path / f"part{part}.parquet")
    found, said = at_hand(tmp_path, rows=60)
    assert (len(found), len(said)) == (60, 1)
    assert len(at_hand(tmp_path)[0]) == N_ROWS


def test_arrow_files_are_read(frame, tmp_path):
    frame.to_feather(tmp_path / "homes.feather")
    assert at_hand(tmp_path / "homes.feather")[0].equals(frame)
    assert kind_of(tmp_path) == "arrow"


def test_rows_draw_from_a_dataframe_too(frame):
    of_arrow = pa.Table.from_pandas(frame)
    for table in (frame, of_arrow, pytest.importorskip("polars").from_pandas(frame)):
        result = covaria.assess(table, "y", rows=400, learner="linear", methods="gcm")
        assert result.about.n_rows == 400


def test_what_lies_beside_a_sampled_table_is_refused(frame, parquet):
    with pytest.raises(InputError, match="y lies beside it"):
        covaria.assess(parquet, frame["y"], rows=100)
    with pytest.raises(InputError, match="clusters lies beside it"):
        covaria.assess(parquet, "y", clusters=np.arange(N_ROWS), rows=100)
    with pytest.raises(InputError, match="splits lies beside it"):
        covaria.assess(parquet, "y", splits=[(range(50), range(50, 100))], rows=100)
    with pytest.raises(InputError, match="rows draws from a table with named columns"):
        covaria.assess(frame[["a", "b"]].to_numpy(), frame["y"], rows=100)


@pytest.mark.parametrize("targets", [["y", "c"], ("y", "c")])
def test_several_targets_are_columns_of_a_sampled_table(parquet, targets):
    found = covaria.assess(parquet, targets, rows=100, learner="linear", methods="gcm")
    assert (found.about.n_rows, found.features) == (100, ["a", "b", "kind", "number"])


@pytest.mark.parametrize("rows", [0, 1, 2.5, "many", True])
def test_odd_numbers_of_rows_are_refused(frame, rows):
    with pytest.raises(InputError, match="rows="):
        covaria.assess(frame, "y", rows=rows)


def test_a_million_rows_may_be_written_as_1e6(frame):
    found = covaria.assess(frame, "y", rows=4e2, learner="linear", methods="gcm")
    assert found.about.n_rows == 400


@pytest.mark.parametrize("path", ["homes.csv", "no_such.parquet", "", "homes", "~/no_such.csv"])
def test_paths_that_are_no_table_are_one_sentence(path):
    with pytest.raises(InputError, match=r"is no table|cannot be read|There is no file"):
        covaria.assess(path, "y")


def test_the_path_of_a_csv_is_a_table_too(frame, tmp_path):
    path = tmp_path / "homes.csv"
    frame.to_csv(path, index=False, sep=";")
    asked = {"learner": "linear", "methods": "gcm"}
    found, plain = (covaria.assess(table, "y", **asked) for table in (path, frame))
    np.testing.assert_allclose(found.table["p_value"], plain.table["p_value"])
    assert any("separated by ';'" in text for text in found.alerts)
    beside = covaria.assess(str(path), frame["y"].to_numpy(), **asked)  # all rows were read
    assert beside.about.n_rows == N_ROWS
    assert covaria.assess(path, "y", rows=300, **asked).about.n_rows == 300


def test_free_memory_is_that_of_the_machine_or_of_its_limit(tmp_path, monkeypatch):
    for name, text in {
        "MEMORY": "MemAvailable: 2000 kB",
        "LIMIT": "900000",
        "TAKEN": "400000",
    }.items():
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(sampling, name, tmp_path / name)
    assert free_memory() == 500_000
    (tmp_path / "LIMIT").write_text("max")
    assert free_memory() == 2000 * 1024
    monkeypatch.setattr(sampling, "MEMORY", tmp_path / "nothing")
    assert free_memory() == np.inf


@pytest.fixture
def pool():
    """Return a pool that counts what Arrow holds."""
    usual = pa.default_memory_pool()
    counting = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counting)
    yield counting
    pa.set_memory_pool(usual)


def test_memory_stays_flat_while_a_file_is_read(tmp_path, pool):
    """Forty row groups of 1.3 MB are read, and at no time is as much as half of them held."""
    names = [f"x{j}" for j in range(8)]
    path = tmp_path / "long.parquet"
    with pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in names])) as file:
        for part in range(40):
            numbers = np.random.default_rng(part).normal(size=(8, 20_000))
            file.write_table(pa.table(dict(zip(names, numbers, strict=True))))
    before = pool.max_memory()
    found, _ = at_hand(path, rows=1000)
    assert len(found) == 1000
    assert pool.max_memory() - before < 20 * 1.3e6


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_command_draws_rows(frame, tmp_path, ending, monkeypatch, capsys):
    path = tmp_path / f"homes.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    line = ["covaria", "assess", str(path), "-t", "y", "-l", "linear", "-m", "gcm", "--rows", "200"]
    monkeypatch.setattr(sys, "argv", line)
    with pytest.raises(SystemExit) as leaving:
        cli.main()
    said = capsys.readouterr().out
    assert leaving.value.code in (0, None)
    assert "a random sample of 200 was read" in said
    assert "200 rows" in said


@pytest.mark.parametrize("command", ["stability", "refit"])
def test_commands_on_parts_draw_rows_by_their_seed(frame, parquet, monkeypatch, capsys, command):
    asked = ["--target", "y", "--learner", "linear", "--methods", "gcm", "--json"]
    line = ["covaria", command, str(parquet), *asked, "--rows", "400", "--seed", "3"]
    monkeypatch.setattr(sys, "argv", line)
    with pytest.raises(SystemExit):
        cli.main()
    found = json.loads(capsys.readouterr().out)
    again = getattr(covaria, command)(
        at_hand(frame, 400, seed=3)[0], "y", learner="linear", methods="gcm", seed=3
    )
    assert found["about"]["n_rows"] == 400
    assert found == json.loads(json.dumps(again.to_dict()))


@pytest.mark.parametrize("command", ["efficiency", "plan", "independence"])
def test_commands_about_tests_draw_rows_by_their_seed(frame, parquet, monkeypatch, capsys, command):
    names = ["--x", "a", "--y", "y", "--given", "b"] if command == "independence" else ["-t", "y"]
    asked = [*names, "-l", "linear", "-m", "gcm,loco", "--rows", "400", "--seed", "3"]
    monkeypatch.setattr(sys, "argv", ["covaria", command, str(parquet), *asked, "--json"])
    with pytest.raises(SystemExit) as leaving:
        cli.main()
    assert leaving.value.code in (0, None)
    out, told = capsys.readouterr()
    some = at_hand(frame, 400, seed=3)[0]
    options = {"learner": "linear", "methods": "gcm,loco", "seed": 3}
    if command == "independence":
        again = covaria.independence_test(some, "a", "y", given=["b"], **options)
        assert json.loads(out)["p_value"] == again.p_value
        assert "a random sample of 400" in told
    else:
        again = getattr(covaria, command)(covaria.assess(some, "y", **options))
        assert [row["feature"] for row in json.loads(out)] == again["feature"].tolist()


def test_one_question_of_a_file_is_asked_of_a_sample(frame, parquet, tmp_path):
    asked = {"given": ["b"], "learner": "linear", "methods": "gcm", "seed": 3}
    found = covaria.independence_test(str(parquet), "a", "y", rows=400, **asked)
    some = at_hand(frame, 400, seed=3)[0]
    assert found.p_value == covaria.independence_test(some, "a", "y", **asked).p_value
    assert "a random sample of 400" in str(found)
    frame.to_csv(tmp_path / "homes.csv", index=False)
    whole = covaria.independence_test(tmp_path / "homes.csv", "a", "y", **asked)
    assert whole.n_rows == N_ROWS
    with pytest.raises(InputError, match="x lies beside it"):
        covaria.independence_test(frame["a"], frame["y"], rows=400)
    with pytest.raises(InputError, match="clusters lies beside it"):
        covaria.independence_test(
            parquet, "a", "y", rows=400, clusters=np.arange(N_ROWS), learner="linear"
        )


def test_a_lazy_table_without_columns_is_one_sentence():
    polars = pytest.importorskip("polars")
    with pytest.raises(InputError, match="No features are left"):
        covaria.assess(polars.DataFrame().lazy(), "y")
