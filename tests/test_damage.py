"""Files with a byte changed: what was written before, or one sentence; never other numbers."""

import base64
import json
import random
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest

import covaria
from covaria.errors import InputError, StoreError
from covaria.results.result import Result
from covaria.studies.runner import read_study, standing
from covaria.studies.store import readable
from covaria.tables.texts import checksum
from tiny_study import TINY, changed, exported

FIXTURES = Path(__file__).parent / "fixtures"
TRIALS = 150
PIECES = (b"0", b"9", b"-", b"e9", b"null", b"[", b"{}", b'"', b",", b"true", b"\xff")


def mutated(raw, rng):
    """Return bytes with one to five changes, most of them where there is something."""
    out = bytearray(raw)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        at = rng.randrange(len(out))
        while not out[at] and rng.random() < 0.95:
            at = rng.randrange(len(out))
        kind = rng.randrange(6)
        if kind == 0:
            out[at] = rng.randrange(256)
        elif kind == 1:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del out[at : at + rng.choice([1, 10, 300])]
        elif kind == 3:
            out[at:at] = rng.choice(PIECES)
        elif kind == 4:
            out[at : at + 2] = rng.choice(PIECES)
        else:
            other = rng.randrange(len(out))
            out[at : at + 8] = out[other : other + 8]
    return bytes(out)


def trials(path, read, raw, trials=TRIALS, seed=0):
    """Return how often mutants read as before, as one sentence, and otherwise."""
    path.write_bytes(raw)
    before, rng = read(path), random.Random(seed)
    counts = {"same": 0, "sentence": 0, "other": 0}
    for _ in range(trials):
        path.write_bytes(mutated(raw, rng))
        try:
            counts["same" if read(path) == before else "other"] += 1
        except (InputError, StoreError) as error:
            counts["sentence" if str(error).isprintable() else "other"] += 1
    return counts


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    X, y = covaria.draw("linear", n_rows=40, seed=0)
    settings = {"learner": "linear", "methods": "gcm,loco,lasso", "seed": 0}
    path = tmp_path_factory.mktemp("result") / "results.json"
    covaria.assess(X.iloc[:, :3], y, **settings).to_json(path)
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return a store in one file, with failed tasks too."""
    path = tmp_path_factory.mktemp("store") / "study.sqlite"
    tiny = {"name": "m", "y": "x1 + x2", "n_rows": 3}
    covaria.run_study({**TINY, "repeats": 2, "scenario": [*TINY["scenario"], tiny]}, store=path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return path


def all_of(path):
    """Return everything that commands show of a store."""
    with readable(path) as opened:
        kept = standing(opened), opened.failed_fits(), opened.shard, opened.identity
    found = read_study(path)
    return kept, exported(path), found.failures, found.summary.to_csv()


# --- results.json -------------------------------------------------------------------------------


def test_a_mutated_result_reads_as_before_or_is_one_sentence(result, tmp_path):
    counts = trials(tmp_path / "results.json", Result.from_json, result.read_bytes(), 300)
    assert counts["other"] == 0
    assert counts["sentence"] > 200


def test_a_changed_number_is_told_and_another_layout_is_not(result, tmp_path):
    path = tmp_path / "results.json"
    stored = json.loads(result.read_text())
    path.write_text(json.dumps(stored, sort_keys=True))
    assert Result.from_json(path) == Result.from_json(result)
    stored["table"]["p_value"][0] += 1e-9
    path.write_text(json.dumps(stored))
    with pytest.raises(InputError, match="its checksum does not fit"):
        Result.from_json(path)


def test_a_result_without_a_checksum_is_read_as_before(tmp_path):
    path = FIXTURES / "results_of_0_1.json"
    found = Result.from_json(path)
    assert found.table["p_value"].tolist() == json.loads(path.read_text())["table"]["p_value"]
    assert found.scores["gcm"].shape == (40, 3)
    # Numbers without a checksum may be others, but what cannot be a result is a sentence.
    counts = trials(tmp_path / "results.json", Result.from_json, path.read_bytes(), seed=1)
    assert counts["sentence"] > 100


@pytest.mark.parametrize("shape", [[10**9], [10**6, 10**6], [3, 10**8]])
def test_a_small_file_does_not_unpack_to_gigabytes(result, tmp_path, shape):
    packed = zlib.compress(bytes(10**6), 9)
    stored = json.loads(result.read_text())
    stored["scores"]["gcm"] |= {"shape": shape, "data": base64.b64encode(packed).decode()}
    del stored["checksum"]
    path = tmp_path / "bomb.json"
    path.write_text(json.dumps({**stored, "checksum": checksum(stored)}))
    with pytest.raises(InputError, match="unpack to"):
        Result.from_json(path)


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "[" * 100_000, "1e999", '{"format": 1}', '{"format": NaN}', "9" * 10_000,
     '{"format": 2}', '{"format": 1, "about": {}, "more": 1}'],
)  # fmt: skip
def test_what_is_no_result_is_one_sentence(tmp_path, text):
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(InputError, match="result"):
        Result.from_json(path)


# --- stores -------------------------------------------------------------------------------------


def test_a_mutated_store_reads_as_before_or_is_one_sentence(store, tmp_path):
    counts = trials(tmp_path / "study.sqlite", all_of, store.read_bytes(), seed=2)
    assert counts["other"] == 0
    assert counts["sentence"] > 100


def test_a_store_without_checksums_is_read_as_before(tmp_path):
    path = tmp_path / "study.sqlite"
    shutil.copy(FIXTURES / "study_of_0_1.db", path)
    kept, table, failures, _ = all_of(path)
    assert (kept[0].total, kept[0].done) == (4, 2)
    assert not failures
    assert len(table.splitlines()) == 1 + 2 * 2 * 3
    counts = trials(path, all_of, path.read_bytes(), seed=3)
    assert counts["sentence"] > 60


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE rows SET p_value = 0.01 WHERE place = 1", "checksum of repeat 0 of cell 0"),
        ("UPDATE tasks SET failure = 'x' WHERE cell = 1", "checksum of repeat 0 of cell 1"),
        ("DELETE FROM rows WHERE place = 2", "checksum of repeat"),
        ("DELETE FROM tasks WHERE cell = 2", "is damaged"),
        ("UPDATE cells SET learner = 'kernel'", "checksum of the study"),
        ("UPDATE study SET value = '[1, 2]' WHERE name = 'shard'", "checksum of the study"),
        ("UPDATE study SET value = '7' WHERE name = 'format'", "has format 7"),
        ("UPDATE study SET value = '1' WHERE name = 'format'", "has format 1"),
        ("UPDATE rows SET feature = X'41'", "is damaged"),
        ("DROP TABLE rows", "its tables are not those of a study"),
        ("CREATE TRIGGER t AFTER INSERT ON tasks BEGIN DELETE FROM rows; END", "its tables"),
        ("ALTER TABLE tasks DROP COLUMN checksum", "has format 2"),
    ],
)
def test_a_store_that_somebody_changed_is_told(store, tmp_path, statement, said):
    path = tmp_path / "study.sqlite"
    shutil.copy(store, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)
    with pytest.raises(InputError, match=said):
        read_study(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rows SET p_value = 'x' WHERE place = 1",
        "UPDATE tasks SET cell = 99 WHERE cell = 1",
        "UPDATE cells SET parameters = '[]'",
        "UPDATE cells SET scenario = NULL",
        "UPDATE study SET value = '[]' WHERE name = 'identity'",
        """UPDATE study SET value = '{"grid": {}}' WHERE name = 'identity'""",
        "UPDATE study SET value = '[5, 2]' WHERE name = 'shard'",
        "UPDATE study SET value = 'x' WHERE name = 'shard'",
        "UPDATE rows SET estimate = 9e999",
    ],
)
def test_a_store_whose_checksums_fit_but_not_its_content_is_one_sentence(
    store, tmp_path, statement
):
    path = tmp_path / "study.sqlite"
    shutil.copy(store, path)
    changed(path, statement)
    with pytest.raises(InputError, match="is damaged"):
        all_of(path)


def test_a_table_without_end_is_not_read(tmp_path):
    path = tmp_path / "study.sqlite"
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE VIEW study AS {endless} n AS name, n AS value FROM c")
    with pytest.raises(InputError, match="its tables are not those of a study"):
        read_study(path)


def test_new_starts_over_where_a_store_is_damaged(store, tmp_path):
    path = tmp_path / "study.sqlite"
    shutil.copy(store, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE rows SET p_value = 0.01 WHERE place = 1")
    study = {**TINY, "repeats": 1}
    with pytest.raises(InputError, match="is damaged"):
        covaria.run_study(study, store=path)
    assert len(covaria.run_study(study, store=path, new=True).table) == 160
