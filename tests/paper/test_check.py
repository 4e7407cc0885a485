"""The stored results give the page as it is, and their digits again when a task is rerun."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from covaria.errors import InputError
from covaria.paper import kept, studies
from covaria.paper.check import Stored, again, check, of_their_day, stored_tasks
from covaria.paper.kept import write_results
from covaria.paper.run import Run
from covaria.paper.whole import make_all, whole_page, write_pictures

ROOT = Path(__file__).parents[2]
TINY = studies.Simulation(
    "fig3", ({"name": "linear", "n_rows": 60},), ({"name": "linear"},), studies.SIX, 2, 1
)


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """Return a folder with the results of one small simulation."""
    monkeypatch.setattr("covaria.paper.check.STUDIES", {"boosting": TINY})
    monkeypatch.setitem(studies.STUDIES, "boosting", TINY)
    kept._grid.cache_clear()
    results = tmp_path / "results"
    write_results(results, "boosting", "paper", Run(tmp_path / "run").of("boosting"))
    yield results
    kept._grid.cache_clear()


def test_a_task_that_is_run_again_has_its_digits(stored):
    tasks = stored_tasks(stored)
    assert tasks == [Stored("boosting", "paper", 0, 0), Stored("boosting", "paper", 0, 1)]
    assert again(stored, tasks[1]) == ""


def test_a_changed_digit_is_found(stored):
    path = stored / "boosting-paper.csv"
    text = path.read_text()
    first = next(csv.DictReader(text.splitlines()[1:]))["p_values"].split()[0]
    path.write_text(text.replace(first, "0.4321", 1))
    assert "gcm: p_values is" in again(stored, Stored("boosting", "paper", 0, 0))


def test_the_check_passes_for_the_page_of_the_results_and_fails_for_another(stored, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("another", encoding="utf-8")
    wrong = check(stored, page, share=1.0)
    assert not wrong.passed
    assert "not what the stored results give" in wrong.lines[0]
    page.write_text(whole_page(*make_all(stored)), encoding="utf-8")
    right = check(stored, page, share=1.0)
    assert right.passed, right.lines
    assert right.lines[1].startswith("2 of 2 tasks drawn from 2 run again")
    assert right.lines[1].endswith("2 with the stored digits.")
    with pytest.raises(InputError, match="There is no folder"):
        check(tmp_path / "nowhere", page)


@pytest.fixture(scope="module")
def committed():
    return make_all(ROOT / "results")


def test_the_committed_page_and_its_pictures_are_those_of_the_committed_results(
    tmp_path, committed
):
    run, made = committed
    assert (ROOT / "docs" / "reproduction.md").read_text("utf-8") == whole_page(run, made)
    few = {
        mode: {k: v for k, v in of.items() if k in ("fig2", "fig4")} for mode, of in made.items()
    }
    for path in write_pictures(replace(run), few, tmp_path):
        kept = ROOT / "docs" / "reproduction" / path.name
        assert kept.read_bytes() == path.read_bytes()


def test_no_claim_is_made_twice_and_each_has_its_sentence(committed):
    _, made = committed
    for of in made.values():
        claims = [claim for one in of.values() for claim in one.claims]
        assert len({claim.id for claim in claims}) == len(claims)
        assert len({(claim.figure, claim.text) for claim in claims}) == len(claims)
        assert all(claim.quote and claim.section for claim in claims)


@pytest.mark.skipif(not kept.commit(), reason="not in a repository")
def test_a_task_of_another_day_is_checked_by_the_source_of_its_commit(tmp_path):
    """The source of a commit runs a task; what it does not give is told, and so is no commit."""
    task = Stored("canonical", "paper", 0, 0)
    path = kept.path_of(tmp_path, "canonical", "paper")
    lines = kept.path_of(ROOT / "results", "canonical", "paper").read_text("utf-8").splitlines()
    stamp = replace(kept.Stamp.read(lines[0]), commit=kept.commit())
    for commit, digits, found in (
        (stamp.commit, "0.02153", {task: stamp.commit}), (stamp.commit, "0.02154", {}),
        ("0" * 12, "0.02153", {}),
    ):  # fmt: skip
        rows = [line.replace("0.02153", digits) for line in lines[1:6]]
        path.write_text("\n".join([replace(stamp, commit=commit).line, *rows, ""]))
        assert of_their_day(tmp_path, [task]) == found
