"""The command line: one answer or one sentence, the right exit code, and files that repeat."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from covaria import learners
from covaria.assessment import Job
from covaria.cli import app as cli
from covaria.learners.estimators.linear import LinearModel
from covaria.results.result import Result

COVARIA = [sys.executable, "-m", "covaria"]


@pytest.fixture
def covaria(monkeypatch, capsys):
    """Return a function that runs a command and returns its exit code, output and errors."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["covaria", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            cli.main()
        output = capsys.readouterr()
        assert "Traceback" not in output.err
        return leaving.value.code or 0, output.out, output.err

    return run


def rows(n_rows=80):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["area", "lat", "lon"])
    frame["price"] = 2 * frame["area"] + rng.normal(size=n_rows)
    return frame


@pytest.fixture
def table(tmp_path):
    """Return the path of a small table in which `area` sets the `price`."""
    path = tmp_path / "homes for sale.csv"
    rows().to_csv(path, index=False)
    return path


@pytest.fixture
def quick(table):
    """Return the words of a command that takes a moment."""
    return ["assess", table, "--target", "price", "--learner", "linear"]


# --- answers ------------------------------------------------------------------------------------


def test_assess_writes_coefficients(covaria, table):
    words = ["--target", "price", "--learner", "linear", "--methods", "gcm", "--json"]
    code, output, _ = covaria("assess", table, *words, "--effect", "plm")
    area = next(line for line in json.loads(output)["table"] if line["feature"] == "area")
    assert code == cli.DONE
    assert abs(area["effect"] - 2) < 5 * area["effect_error"]
    code, _, errors = covaria("assess", table, *words, "--effect", "odd")
    assert code == 2
    assert "effect='odd' is not known" in errors


def test_assess_says_what_matters(covaria, quick):
    code, out, err = covaria(*quick)
    assert code == cli.DONE
    assert "1 of 3 features matter for 'price'" in out
    assert "area" in out
    assert err == ""


def test_parquet_gives_the_same_answer_as_csv(covaria, quick, tmp_path):
    path = tmp_path / "homes.parquet"
    rows().to_parquet(path)
    _, from_csv, _ = covaria(*quick, "--quiet")
    _, from_parquet, _ = covaria(*quick[:1], path, *quick[2:], "--quiet")
    assert from_parquet == from_csv


def test_parquet_read_by_polars_gives_the_same_answer(covaria, quick, tmp_path, monkeypatch):
    path = tmp_path / "homes.parquet"
    rows().to_parquet(path)
    _, from_csv, _ = covaria(*quick, "--quiet", "--drop", "lat")
    hide(monkeypatch, "pyarrow")
    assert covaria(*quick[:1], path, *quick[2:], "--quiet", "--drop", "lat")[1] == from_csv


def test_demo_runs_and_writes_its_page(covaria, tmp_path):
    code, out, _ = covaria("demo", "--learner", "linear", "--out", tmp_path / "demo")
    assert code == cli.DONE
    assert "features matter for 'progression'" in out
    assert (tmp_path / "demo" / "report.html").read_text(encoding="utf-8").startswith("<!doctype")


def test_quiet_prints_the_verdict_alone(covaria, quick):
    _, out, err = covaria(*quick, "--quiet")
    assert "Plan" not in out
    assert "Repeat" not in out
    assert out.rstrip().endswith("level 0.05).")
    assert err == ""


def test_json_is_one_document_and_nothing_else(covaria, quick):
    code, out, err = covaria(*quick, "--json")
    document = json.loads(out)
    assert code == cli.DONE
    assert document["selected"]["gcm"] == ["area"]
    assert len(document["table"]) == 9
    assert "Repeat" in err


@pytest.mark.parametrize("command", ["methods", "learners", "doctor"])
def test_a_listing_comes_as_text_and_as_json(command, covaria):
    _, text, _ = covaria(command)
    _, document, _ = covaria(command, "--json")
    assert all(str(next(iter(row.values()))) in text for row in json.loads(document))


def test_version_is_that_of_the_package(covaria):
    from covaria import __version__

    assert covaria("--version")[1].split() == ["covaria", __version__]


def test_out_holds_the_table_the_result_and_the_page(covaria, quick, tmp_path):
    covaria(*quick, "--out", tmp_path / "a" / "b")
    written = pd.read_csv(tmp_path / "a" / "b" / "results.csv")
    result = Result.from_json(tmp_path / "a" / "b" / "results.json")
    pd.testing.assert_frame_equal(written, result.table, check_dtype=False)
    assert (tmp_path / "a" / "b" / "report.html").exists()


def test_the_report_goes_where_it_is_told_to(covaria, quick, tmp_path):
    page = tmp_path / "new" / "price.html"
    _, out, _ = covaria(*quick, "--report", page)
    assert f"Report  {page}" in out
    assert "area" in page.read_text(encoding="utf-8")


def test_groups_come_from_a_file(covaria, quick, tmp_path):
    for text in ('place = ["lat", "lon"]', '[groups]\nplace = ["lat", "lon"]'):
        (tmp_path / "groups.toml").write_text(text)
        _, out, _ = covaria(*quick, "--groups", tmp_path / "groups.toml", "--json")
        assert {row["feature"] for row in json.loads(out)["table"]} == {"area", "place"}


def test_paper_mode_says_that_it_is_not_for_decisions(covaria, quick):
    code, out, _ = covaria(*quick, "--paper", "--methods", "gcm,loco,dropout,permutation")
    assert code == cli.DONE
    assert "! Paper mode" in out
    assert "unadjusted" in out


def test_weights_clusters_and_drop_take_columns_away(covaria, quick, table):
    rows().assign(w=1.0, town=np.arange(80) % 8).to_csv(table, index=False)
    columns = ["--weights", "w", "--clusters", "town", "--drop", "lat", "--splits", "3"]
    _, out, _ = covaria(*quick, *columns, "--json")
    assert {row["feature"] for row in json.loads(out)["table"]} == {"area", "lon"}


def test_remarks_on_the_file_and_the_columns_are_shown(covaria, quick, table):
    rows().assign(same=1, day="2024-01-31").to_csv(table, index=False, sep=";")
    _, out, _ = covaria(*quick)
    assert "! Columns are separated by ';'." in out
    assert "! Column 'same' is constant" in out


# --- names --------------------------------------------------------------------------------------

ODD = ["[/]", "[red]x[/red]", "<script>alert(1)</script>", "$\\frac$", "{{ 7*7 }}", "数量", "🎉"]


def test_text_of_a_file_is_read_as_what_it_is(covaria, quick, table):
    homes = rows()
    homes["price"] = [f"${1000 * value:,.2f}" for value in homes["price"]]
    homes["lat"] = ["unknown" if at % 9 == 0 else value for at, value in enumerate(homes["lat"])]
    homes.to_csv(table, index=False)
    code, out, _ = covaria(*quick)
    assert code == cli.DONE
    assert "target 'price' is a number" in out
    assert "'price' holds amounts in $" in out
    assert "'lat' has 'unknown' among its numbers" in out


def test_rows_without_a_target_are_dropped_where_that_is_asked_for(covaria, quick, table):
    homes = rows()
    homes.loc[:4, "price"] = None
    homes.to_csv(table, index=False)
    assert covaria(*quick)[0] == cli.BAD_INPUT
    code, out, _ = covaria(*quick, "--missing-target", "drop")
    assert code == cli.DONE
    assert "5 rows of 80 without a target left out" in out


def test_codes_and_leaks_are_said_before_fitting_with_the_option_that_cures_them(
    covaria, quick, table
):
    homes = rows().assign(zip_code=np.arange(80) % 4 + 1)
    homes.assign(paid=homes["price"] * 1.2 + 0.01).to_csv(table, index=False)
    _, out, _ = covaria(*quick)
    plan = out.index("Plan:")
    assert out.index("possible leak: 'paid'") < plan
    assert out.index("'zip_code' holds a few whole numbers") < plan
    _, out, _ = covaria(*quick, "--drop", "paid", "--categories", "zip_code")
    assert "1 category" in out
    assert "whole numbers" not in out


def test_groups_that_explain_each_other_are_found(covaria, quick, table):
    homes = rows()
    homes["size"] = homes["area"] + 0.02 * np.random.default_rng(0).normal(size=80)
    homes.to_csv(table, index=False)
    code, out, _ = covaria(*quick, "--groups", "auto", "--json")
    assert code == cli.DONE
    found = json.loads(out)
    assert found["headline"].startswith("'area', 'size' together matter (p = ")
    assert found["groups"][0]["features"] == ["area", "size"]


def odd_table(path, names):
    frame = rows()
    for at, name in enumerate(names):
        frame[name] = np.random.default_rng(at).normal(size=len(frame))
    frame.to_csv(path, index=False)


def test_odd_names_print_as_they_are(covaria, quick, table):
    odd_table(table, ODD)
    code, out, _ = covaria(*quick)
    assert code == cli.DONE
    assert all(name in out for name in ODD)


def test_no_name_can_move_the_cursor_or_run_a_script(covaria, quick, table, tmp_path):
    odd_table(table, ["a\x1b[31mb", "<script>alert(1)</script>"])
    _, out, _ = covaria(*quick, "--report", tmp_path / "page.html")
    assert "\x1b" not in out
    assert "<script>alert" not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_no_cell_of_the_table_is_a_formula(covaria, quick, table, tmp_path):
    names = ["=1+1", "+cmd|' /C calc'!A0", "-2", "@SUM(A1)"]
    odd_table(table, names)
    covaria(*quick, "--out", tmp_path / "out")
    with (tmp_path / "out" / "results.csv").open(newline="", encoding="utf-8") as file:
        features = {row["feature"] for row in csv.DictReader(file)}
    assert {f"'{name}" for name in names} <= features
    assert not any(name.startswith(("=", "+", "-", "@")) for name in features)


def test_a_target_with_an_odd_name_can_be_asked_for(covaria, quick, table):
    rows().rename(columns={"price": "[/] =x"}).to_csv(table, index=False)
    code, out, _ = covaria(*quick[:2], "--target", "[/] =x", "--learner", "linear")
    assert code == cli.DONE
    assert "features matter for '[/] =x'" in out


def test_a_terminal_without_the_letters_is_no_trouble(table):
    odd_table(table, ["数量"])
    words = ["assess", table, "--target", "price", "--learner", "linear"]
    done = subprocess.run(
        [*COVARIA, *words],
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == cli.DONE
    assert b"\\u6570\\u91cf" in done.stdout


# --- repeating ----------------------------------------------------------------------------------


def test_the_repeat_line_makes_the_same_table_byte_for_byte(covaria, quick, tmp_path):
    _, out, _ = covaria(*quick, "--out", tmp_path / "the out", "--seed", "7", "--splits", "0.4")
    line = next(line for line in out.splitlines() if line.startswith("Repeat"))
    first = (tmp_path / "the out" / "results.csv").read_bytes()
    (tmp_path / "the out" / "results.csv").unlink()
    command = shlex.split(line.removeprefix("Repeat"))
    assert command[0] == "covaria"
    subprocess.run([*COVARIA, *command[1:]], check=True, capture_output=True)
    assert (tmp_path / "the out" / "results.csv").read_bytes() == first


# --- exit codes ---------------------------------------------------------------------------------


def hide(monkeypatch, *hidden):
    """Make these packages look as if they were not installed."""
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name in hidden else find_spec(name, *rest),
    )


MISTAKES = {
    "an unknown target": (["--target", "prize"], "Did you mean 'price'?"),
    "an unknown learner": (["--learner", "liner"], "Did you mean 'linear'"),
    "an unknown setting": (["--learner", "linear(rigde=1)"], "Did you mean 'ridge'?"),
    "an unknown method": (["--methods", "gmc"], "Did you mean 'gcm'?"),
    "an unknown correction": (["--correction", "bhh"], "Did you mean 'bh'?"),
    "an unknown validity": (["--validity", "zipped"], "Did you mean 'zipper'?"),
    "an unknown task": (["--task", "regresion"], "Did you mean 'regression'?"),
    "splits in words": (["--splits", "many"], "--splits many"),
    "too many splits": (["--splits", "5000"], "Use 40 or fewer"),
    "splits below zero": (["--splits", "-3"], "splits=-3"),
    "an impossible level": (["--alpha", "7"], "alpha=7"),
    "a level that is no number": (["--alpha", "nan"], "alpha=nan"),
    "no repeats": (["--repeats", "0"], "repeats=0"),
    "no jobs": (["--jobs", "0"], "n_jobs"),
    "a negative seed": (["--seed", "-1"], "seed=-1"),
    "an unknown column to drop": (["--drop", "lot"], "Did you mean 'lon' or 'lat'?"),
    "weights that are negative": (["--weights", "lon"], "sample_weight must be"),
    "clusters under an unknown name": (["--clusters", "twon"], "no column 'twon'"),
    "a missing groups file": (["--groups", "nowhere.toml"], "nowhere.toml"),
    "dropout in sample": (
        ["--splits", "none", "--methods", "dropout", "--learner", "boosting"],
        "Use splits=5",
    ),
}


def assert_one_sentence(err, said):
    assert err.startswith("covaria: ")
    assert err.count("\n") == 1
    assert err.rstrip()[-1] in ".?"
    assert said in err


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_a_sentence_and_leaves_with_2(mistake, covaria, quick):
    words, said = MISTAKES[mistake]
    code, out, err = covaria(*quick, *words)
    assert code == cli.BAD_INPUT
    assert out == ""
    assert_one_sentence(err, said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('place = ["lat", "lno"]', "Did you mean 'lon'"),
        ("place = lat, lon", "is not TOML"),
        ('place = "lat"', "Group 'place' needs a list"),
        ("groups = 5", "groups must name each group"),
        ('a = ["lat"]\nb = ["lat"]', "'lat' is in two groups"),
    ],
)
def test_a_broken_groups_file_leaves_with_2(text, said, covaria, quick, tmp_path):
    (tmp_path / "groups.toml").write_text(text)
    code, _, err = covaria(*quick, "--groups", tmp_path / "groups.toml")
    assert code == cli.BAD_INPUT
    assert_one_sentence(err, said)


@pytest.mark.parametrize("name", ["nowhere.csv", ".", "homes.xlsx", "empty.csv", "bad.parquet"])
def test_a_table_that_cannot_be_read_leaves_with_2(name, covaria, tmp_path):
    (tmp_path / "homes.xlsx").write_bytes(b"PK")
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "bad.parquet").write_bytes(b"not a table")
    code, out, err = covaria("assess", tmp_path / name, "--target", "price")
    assert code == cli.BAD_INPUT
    assert out == ""
    assert_one_sentence(err, str(tmp_path))


@pytest.mark.parametrize(
    "words",
    [["asess"], ["assess"], ["assess", "t.csv"], ["demo", "--loud"], ["demo", "--jobs", "x"]],
)
def test_a_misspelt_command_leaves_with_2_and_points_to_help(words, covaria):
    code, _, err = covaria(*words)
    assert code == cli.BAD_INPUT
    assert "--help" in err


def test_a_column_that_cannot_be_tested_is_named(covaria, quick, table):
    rows().assign(odd=np.inf).to_csv(table, index=False)
    code, _, err = covaria(*quick)
    assert code == cli.BAD_INPUT
    assert_one_sentence(err, "'odd' has infinite values")


@dataclass(frozen=True)
class Fragile(learners.Learner):
    """Least squares that cannot do without the first column."""

    name: ClassVar[str] = "fragile"

    def model(self, fit):
        if 0 not in fit.columns:
            raise RuntimeError("I need the first column")
        return LinearModel(n_classes=fit.n_classes)


def test_fits_that_fail_leave_with_3_and_the_rest_of_the_answer(covaria, quick, monkeypatch):
    monkeypatch.setitem(learners.LEARNERS, "fragile", Fragile)
    code, out, _ = covaria(*quick, "--learner", "fragile", "--methods", "loco", "--json")
    assert code == cli.SOME_FAILED
    status = {row["feature"]: row["status"] for row in json.loads(out)["table"]}
    assert status["area"].endswith("RuntimeError: I need the first column")
    assert status["lat"] == status["lon"] == "ok"


def test_a_learner_that_is_not_installed_leaves_with_4(covaria, quick, monkeypatch):
    hide(monkeypatch, "torch")
    code, out, err = covaria(*quick, "--learner", "network")
    assert code == cli.MISSING_EXTRA
    assert out == ""
    assert_one_sentence(err, "pip install 'covaria[nn]'")


def test_a_reader_that_is_not_installed_leaves_with_4(covaria, tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    hide(monkeypatch, "pyarrow", "polars")
    code, _, err = covaria("assess", tmp_path / "t.parquet", "--target", "y")
    assert code == cli.MISSING_EXTRA
    assert_one_sentence(err, "pip install 'covaria[parquet]'")


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_a_place_that_cannot_be_written_leaves_with_5_before_any_fit(
    option, covaria, quick, table, monkeypatch
):
    monkeypatch.setattr(Job, "run", lambda *_: pytest.fail("a model was fitted"))
    code, out, err = covaria(*quick, option, table / "inside" / "a file")
    assert code == cli.CANNOT_WRITE
    assert out == ""
    assert_one_sentence(err, str(table))


def test_a_report_that_is_a_folder_leaves_with_5(covaria, quick, tmp_path):
    code, _, err = covaria(*quick, "--report", tmp_path)
    assert code == cli.CANNOT_WRITE
    assert_one_sentence(err, "is a folder")


def test_an_interrupt_leaves_with_130_and_no_files(table, tmp_path):
    words = ["--target", "price", "--learner", "boosting(trees=100000)", "--out", tmp_path / "out"]
    running = subprocess.Popen(
        [*COVARIA, "assess", table, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test run in the background would hand down its deaf ear for interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    next(line for line in running.stdout if line.startswith("Plan:"))
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=200)
    assert running.returncode == cli.INTERRUPTED, err
    assert_one_sentence(err, "Interrupted.")
    assert list((tmp_path / "out").iterdir()) == []


SWALLOWS = """
import sys, time
from covaria.cli import app as cli

cli.GRACE = 0.3

class Deaf:
    def __del__(self):  # what is raised here is swallowed, as in a compiler's callback
        print("ready", flush=True)
        time.sleep(60)

@cli.app.command()
def swallow():
    Deaf()
    time.sleep(60)

sys.argv = ["covaria", "swallow"]
cli.main()
"""


def test_an_interrupt_that_is_swallowed_ends_the_command_all_the_same():
    running = subprocess.Popen(
        [sys.executable, "-c", SWALLOWS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert running.stdout.readline() == "ready\n"
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=200)
    assert (running.returncode, err) == (cli.INTERRUPTED, f"covaria: {cli.STOPPED}\n")


def interrupted_when_ready(words, **options):
    """Return the exit code and the errors of a command that is interrupted once it says ready."""
    running = subprocess.Popen(
        [*COVARIA, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        **options,
    )
    next(line for line in running.stdout if line == "ready\n")
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=200)
    return running.returncode, err


WAITS = "import time; print('ready', flush=True); time.sleep(300)"


@pytest.mark.parametrize("module", ["numpy", "typer"])
def test_an_interrupt_while_parts_are_imported_leaves_with_130(tmp_path, module):
    (tmp_path / f"{module}.py").write_text(WAITS)
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    code, err = interrupted_when_ready(["--version"], env={**os.environ, "PYTHONPATH": path})
    assert (code, err) == (cli.INTERRUPTED, f"covaria: {cli.STOPPED}\n")


def test_an_interrupt_inside_of_executed_text_leaves_with_130(tmp_path):
    # Python itself would end by the signal, though the interrupt is caught.
    (tmp_path / "models.py").write_text(f"exec({WAITS!r})")
    (tmp_path / "study.toml").write_text(
        'learner = "linear"\n[[scenario]]\nname = "m"\nfile = "models.py"'
    )
    words = ["study", "run", "study.toml", "--code", "models.py"]
    code, err = interrupted_when_ready(words, cwd=tmp_path)
    assert code == cli.INTERRUPTED, err
    assert err.startswith("covaria: Interrupted. ")
    assert err.count("\n") == 1


def test_a_program_that_imports_covaria_keeps_its_own_interrupts():
    text = "import signal, covaria; assert signal.getsignal(2) is signal.default_int_handler"
    restore = "import signal; signal.signal(2, signal.default_int_handler); "
    subprocess.run([sys.executable, "-c", restore + text], check=True)


def test_a_reader_that_goes_away_is_no_trouble(table):
    words = ["assess", table, "--target", "price", "--learner", "linear"]
    running = subprocess.Popen(
        [*COVARIA, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    running.stdout.close()
    assert "Traceback" not in running.stderr.read()
    running.stderr.close()
    running.wait(timeout=200)


# --- speed --------------------------------------------------------------------------------------


def seconds(*command, runs=4):
    """Return the least processor time of several runs: waiting for others' work is not ours."""

    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    took = []
    for _ in range(runs):
        before = spent()
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        took.append(spent() - before)
    return min(took)


def test_help_and_import_are_quick():
    # numpy's share is not ours, and on a slower machine it grows as ours does.
    numpy = seconds("-c", "import numpy")
    assert seconds("-c", "import covaria") < max(0.3, 2.5 * numpy)
    assert seconds("-m", "covaria", "--help") < max(0.5, 3.5 * numpy)


def test_import_leaves_the_heavy_parts_for_later():
    heavy = ["pandas", "sklearn", "scipy", "numba", "torch", "matplotlib", "joblib", "narwhals"]
    code = f"import sys, covaria; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_first_run_of_an_engine_says_that_it_compiles(monkeypatch, tmp_path, small_data):
    from covaria.assessment import prepare
    from covaria.cli import console
    from covaria.nuisance import plan as engines

    plan = prepare(*small_data, learner="boosting").plan(0)
    monkeypatch.setattr(engines, "__file__", str(tmp_path / "__init__.py"))
    assert "compiled" in console.compile_note(plan)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "boosting_kernels.advance-1.py311.nbi").touch()
    assert console.compile_note(plan) == ""
    assert console.compile_note(prepare(*small_data, learner="linear").plan(0)) == ""


def test_the_time_left_counts_from_the_first_report(monkeypatch, capsys):
    from covaria.cli import console

    now = [0.0]
    monkeypatch.setattr("covaria.execution.progress.time.monotonic", lambda: now[0])
    with console.progress_bar(hidden=False) as advance:
        for now[0], done in ((20.0, 10), (40.0, 20), (41.0, 30)):  # the first report is late
            advance(done, 100)
    said = capsys.readouterr().err
    assert said == "fitting 10/100\nfitting 20/100, about 3 min left\n"


def test_a_loss_events_several_targets_and_a_margin_are_asked_for_by_name(covaria, tmp_path):
    frame = rows(120)
    frame["seen"] = (np.arange(120) % 3 > 0) * 1
    frame["price"] -= frame["price"].min()
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    asked = {
        ("--target", "price", "--drop", "seen", "--loss", "absolute"): {"gcm", "pcm", "loco"},
        ("--target", "price", "--drop", "seen", "--loss", "pinball(0.5)"): {"gcm", "pcm", "loco"},
        ("--target", "price", "--event", "seen"): {"gcm", "pcm"},
        ("--target", "price,lat", "--drop", "seen"): {"gcm", "loco"},
        ("--target", "seen", "--task", "ordinal", "--margin", "0.2"): {"gcm", "pcm"},
    }
    for words, methods in asked.items():
        code, out, err = covaria("assess", path, *words, "--learner", "linear", "--json")
        assert code == 0, err
        assert methods <= set(json.loads(out)["selected"])


def test_targets_between_commas_are_columns_each(covaria, tmp_path):
    path = tmp_path / "t.csv"
    rows().rename(columns={"price": "a,b"}).to_csv(path, index=False)
    code, out, _ = covaria("assess", path, "--target", "a,b", "-l", "linear", "--json")
    assert (code, json.loads(out)["about"]["target"]) == (0, "a,b")
    code, _, err = covaria("assess", path, "--target", "area,nowhere", "-l", "linear")
    assert code == 2
    assert "There is no column 'nowhere'" in err
