"""Random tables, odd options and damaged files: an answer or one sentence, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from covaria.errors import InputError

ROOT = Path(__file__).resolve().parent.parent
CHUNK = 50


@pytest.fixture(scope="module")
def fuzz():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import fuzz
    finally:
        sys.path.pop(0)
    return fuzz


def broken(tried):
    return [f"{at} {kind}: {found.broken}" for at, kind, found in tried if found.broken]


@pytest.mark.parametrize("chunk", range(10))
def test_every_table_has_an_answer_or_a_sentence(fuzz, chunk):
    cases = range(CHUNK * chunk, CHUNK * (chunk + 1))
    assert broken(fuzz.tables(1, cases, dear=0.01)) == []


@pytest.mark.parametrize("chunk", range(4))
def test_every_damaged_file_has_an_answer_or_a_sentence(fuzz, chunk):
    assert broken(fuzz.files(1, range(25 * chunk, 25 * (chunk + 1)))) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_a_thousand_tables_of_a_seed_have_an_answer_or_a_sentence(fuzz, seed):
    assert broken(fuzz.tables(seed, range(1000), dear=0.03)) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 104))
def test_five_hundred_damaged_files_of_a_seed_have_an_answer_or_a_sentence(fuzz, seed):
    assert broken(fuzz.files(seed, range(500))) == []


# --- the law would notice -----------------------------------------------------------------------


def test_the_files_are_good_before_they_are_damaged(fuzz, tmp_path):
    files = fuzz.fuzz_files
    originals = files.Originals(tmp_path)
    for kind, raw in originals.raw.items():
        path = tmp_path / f"bad.{files.ENDINGS[kind.split(',')[0]]}"
        path.write_bytes(raw)
        words = files.command(kind, path, originals, np.random.default_rng(0))
        found = files.verdict(files.Mutant(kind, path, words))
        assert found == files.Verdict("exit 0"), kind


def test_cases_are_the_same_again_and_of_many_kinds(fuzz):
    once, again = ([fuzz.fuzz_tables.case(5, at) for at in range(60)] for _ in range(2))
    assert [case.kind for case in once] == [case.kind for case in again]
    assert [repr(case.notes) for case in once] == [repr(case.notes) for case in again]
    assert len({case.kind for case in once}) >= 10


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda: np.zeros(2)[5], "IndexError in outside covaria"),
        (lambda: np.float64(1) / np.float64(0), "RuntimeWarning in outside covaria"),
        (lambda: (_ for _ in ()).throw(AssertionError("gcm has no number")), "gcm has no number"),
        (lambda: (_ for _ in ()).throw(InputError("no end")), "not one sentence"),
    ],
)
def test_what_breaks_the_law_is_named_by_its_class(fuzz, act, said):
    assert fuzz.fuzz_tables.judged(act, refusals=(InputError,)).broken == said


def test_a_case_without_end_is_stopped(fuzz, monkeypatch):
    import fuzz_law

    monkeypatch.setattr(fuzz_law, "MOST_SECONDS", 0.2)

    def forever():
        while True:
            pass

    assert fuzz_law.judged(forever).broken == "too long"


@pytest.mark.parametrize(
    ("code", "out", "err", "said"),
    [
        (1, "", "covaria: no.", "exit 1"),
        (2, "", "covaria: a.\ncovaria: b.\n", "2 sentences"),
        (2, "", "", "0 sentences"),
        (0, "a\x1b[31m", "", "raw control characters"),
        (2, "", "Traceback (most recent call last)", "a traceback"),
    ],
)
def test_what_a_command_may_not_say_is_noticed(fuzz, code, out, err, said):
    with pytest.raises(AssertionError, match=said):
        fuzz.fuzz_files._check(code, out, err)


def test_the_counts_are_stored_and_the_page_written_from_them(fuzz, tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz, "STORE", tmp_path / "reliability.csv")
    monkeypatch.setattr(fuzz, "PAGE", tmp_path / "reliability.md")
    fuzz.PAGE.write_text(f"# Head\n\n{fuzz.BEGIN}\n{fuzz.END}\nTail\n", encoding="utf-8")
    words = ["fuzz.py", "--tables", "6", "--files", "0", "--seeds", "1,2"]
    for _ in range(2):
        monkeypatch.setattr(sys, "argv", words)
        fuzz.main()
    page = fuzz.PAGE.read_text(encoding="utf-8")
    assert page.startswith("# Head\n")
    assert page.endswith("Tail\n")
    assert "6 cases" in page
    assert "Seeds 1, 2" in page
    lines = fuzz.STORE.read_text(encoding="utf-8").splitlines()
    assert lines[0] == ",".join(fuzz.FIELDS)
    assert sum(int(line.split(",")[-2]) for line in lines[1:]) == 6


def test_a_run_that_was_stopped_goes_on_and_what_was_mended_is_counted(fuzz, tmp_path, monkeypatch):
    tried, mended = [], []

    def cases(seed, wanted):
        for at in wanted:
            tried.append((seed, at))
            broken = "" if mended or at != 3 else "it broke"
            yield at, "lists", fuzz.Verdict("broken" if broken else "answer", broken)

    monkeypatch.setattr(fuzz, "STORE", tmp_path / "reliability.csv")
    monkeypatch.setattr(fuzz, "PARTS", {"tables": cases})
    fuzz.measure({"tables": 4}, [8], np.inf)
    assert "1 of them break" in fuzz.page()
    mended.append(True)
    fuzz.measure({"tables": 20}, [8, 9], np.inf)
    assert tried[4:] == [(8, 3), *((8, at) for at in range(4, 10)), *((9, at) for at in range(10))]
    assert "20 cases: 0 of them break the law, 1 did before they were mended" in fuzz.page()
    assert "| `it broke` | 1 | 8:3 |" in fuzz.page()
    fuzz.measure({"tables": 40}, [8, 9], -1.0)
    assert len(tried) == 21
