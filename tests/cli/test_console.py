"""The command line as a person meets it: colours, widths, Tab, and a file of settings."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from covaria.cli import app as cli
from covaria.cli import console
from covaria.results.result import cell_width, plain_table
from hostile_strings import HOSTILE

COVARIA = [sys.executable, "-m", "covaria"]
COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?3[0-7]m|\x1b\[38;5")


def rows():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(80, 4)), columns=["area", "lat", "lon", "价格"])
    return frame.assign(price=2 * frame["area"] + rng.normal(size=80))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder to work in, with a table."""
    rows().to_csv(tmp_path / "homes.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COVARIA_CONFIG", raising=False)
    return tmp_path


@pytest.fixture
def covaria(monkeypatch, capsys):
    """Return a function that runs a command and returns its exit code, output and errors."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["covaria", *map(str, words)])
        monkeypatch.setattr(cli, "_CONFIGURED", [])
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            cli.main()
        said = capsys.readouterr()
        return leaving.value.code or 0, said.out, said.err

    return run


QUICK = ["assess", "homes.csv", "--target", "price", "--learner", "linear"]


def on_a_terminal(folder, *words, **environment):
    """Return what a command shows on a terminal of 120 columns."""
    main, child = pty.openpty()
    settings = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", **environment}
    settings.pop("NO_COLOR", None) if "NO_COLOR" not in environment else None
    running = subprocess.Popen(
        [*COVARIA, *words], cwd=folder, stdin=child, stdout=child, stderr=child, env=settings
    )
    os.close(child)
    shown = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(main)
    assert running.wait(timeout=200) == 0
    return shown.decode()


# --- terminals ----------------------------------------------------------------------------------


def test_a_terminal_has_colours_a_bar_and_the_time_left(folder):
    shown = on_a_terminal(folder, *QUICK)
    assert COLOUR.search(shown)
    assert re.search(r"fitting .*\d+/\d+.*about .*left", shown)
    assert "价格" in shown


def test_a_pipe_has_plain_lines(covaria, folder):
    _, out, err = covaria(*QUICK)
    assert "\x1b" not in out + err


def test_a_narrow_quiet_terminal_without_colours_leaves_effects_out(folder):
    shown = on_a_terminal(folder, *QUICK, "--quiet", COLUMNS="75", NO_COLOR="1")
    assert not COLOUR.search(shown)
    assert "fitting" not in shown
    assert "adj. p" in shown
    assert "effect [95%]" not in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    table = plain.split("\r\n\r\n")[0].splitlines()
    assert max(map(cell_width, table)) <= 75


def test_hostile_names_stay_on_their_line_of_a_rich_table(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "300")
    frame = pd.DataFrame({"feature": HOSTILE, "p": [f"p{k}" for k in range(60)]})
    console.print_table(frame)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert "\x1b" not in shown
    ends = [line.split()[-1] for line in shown.splitlines() if line.strip()]
    assert ends[2:] == [f"p{k}" for k in range(60)]
    assert "[bold red]x[/bold red]" in shown


def test_wide_letters_keep_columns_in_line():
    lines = plain_table(pd.DataFrame({"name": ["价格", "price"], "p": ["a", "b"]})).splitlines()
    before = [line[: line.rindex(end)] for line, end in zip(lines[1:], "ab", strict=True)]
    assert [cell_width(text) for text in before] == [7, 7]


# --- every command ------------------------------------------------------------------------------

COMMANDS = {
    "assess": QUICK,
    "demo": ["demo", "--learner", "linear"],
    "methods": ["methods"],
    "learners": ["learners"],
    "doctor": ["doctor"],
    "efficiency": ["efficiency", *QUICK[1:]],
    "plan": ["plan", *QUICK[1:]],
    "theory": ["theory", "linear"],
    "report": ["report", "out/results.json", "page.html"],
    "plot": ["plot", "out/results.json", "forest.svg"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_json_is_one_document_for_every_command(command, covaria, folder):
    if command in ("report", "plot"):
        covaria(*QUICK, "--out", "out", "--quiet")
    code, out, _ = covaria(*COMMANDS[command], "--json")
    assert code == 0
    assert json.loads(out)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_shows_its_options(command, covaria):
    code, out, _ = covaria(command, "--help")
    assert code == 0
    assert "--json" in out


@pytest.mark.parametrize("command", ["assess", "efficiency", "plan", "theory", "report", "plot"])
def test_help_shows_an_example(command, covaria):
    assert f"covaria {command} " in covaria(command, "--help")[1].split("Example")[1]


def test_a_misspelt_command_or_option_gets_a_hint(covaria):
    assert "Did you mean 'assess'" in covaria("asess")[2]
    assert "--quiet" in covaria("demo", "--qiet")[2]


# --- stored results -----------------------------------------------------------------------------


def test_a_stored_result_gives_the_same_page_again(covaria, folder):
    covaria(*QUICK, "--out", "out")
    code, out, _ = covaria("report", "out/results.json", "again.html")
    assert code == 0
    assert "again.html" in out
    assert (folder / "again.html").read_bytes() == (folder / "out" / "report.html").read_bytes()
    covaria("report", "out/results.json", "titled.html", "--title", "<b>My</b> homes")
    assert "&lt;b&gt;My&lt;/b&gt; homes" in (folder / "titled.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["report", "nowhere.json"], "There is no file"),
        (["report", "homes.csv"], "does not hold a covaria result"),
        (["plot", "out/results.json", "x.svg", "--kind", "forrest"], "Did you mean 'forest'"),
        (["plot", "out/results.json", "x.svg", "--kind", "residuals"], "--feature"),
        (["plot", "out/results.json", "x.bmp"], "must end in"),
    ],
)
def test_what_cannot_be_shown_leaves_with_2(words, said, covaria, folder):
    covaria(*QUICK, "--out", "out", "--quiet")
    code, _, err = covaria(*words)
    assert code == cli.BAD_INPUT
    assert said in err


@pytest.mark.parametrize(
    "kind", ["forest", "p_values", "residuals", "quality", "cost", "efficiencies"]
)
def test_every_picture_can_be_drawn_from_the_shell(kind, covaria, folder):
    covaria(*QUICK, "--out", "out", "--quiet")
    code, _, err = covaria("plot", "out/results.json", "x.svg", "--kind", kind, "--feature", "area")
    assert (code, err) == (0, "")
    assert (folder / "x.svg").read_text(encoding="utf-8").startswith("<?xml")


# --- settings in a file -------------------------------------------------------------------------

SETTINGS = """
learner = "linear"
seed = 7
[assess]
target = "price"
methods = ["gcm", "loco"]
splits = 4
quiet = false
[groups]
place = ["lat", "lon"]
"""


def test_settings_come_from_a_file_and_the_line_wins(covaria, folder):
    (folder / "covaria.toml").write_text(SETTINGS)
    _, out, _ = covaria("assess", "homes.csv", "--json")
    about = json.loads(out)["about"]
    assert (about["seed"], about["splits"], about["learner_text"][:6]) == (
        7,
        "4-fold cross-fit",
        "Linear",
    )
    assert {row["feature"] for row in json.loads(out)["table"]} == {"area", "place", "价格"}
    _, out, _ = covaria("assess", "homes.csv", "--json", "--seed", "1")
    assert json.loads(out)["about"]["seed"] == 1


def test_the_repeat_line_holds_what_the_file_said(covaria, folder):
    (folder / "covaria.toml").write_text(SETTINGS)
    _, out, _ = covaria("assess", "homes.csv", "--out", "a", "--seed=1")
    line = next(line for line in out.splitlines() if line.startswith("Repeat"))
    words = shlex.split(line.removeprefix("Repeat"))[1:]
    assert words.count("--seed=1") + words.count("--seed") == 1
    (folder / "groups.toml").write_text('place = ["lat", "lon"]')
    (folder / "covaria.toml").unlink()
    words = ["groups.toml" if word == "covaria.toml" else word for word in words]
    first = (folder / "a" / "results.csv").read_bytes()
    covaria(*words)
    assert (folder / "a" / "results.csv").read_bytes() == first


def test_a_file_of_settings_can_be_named(covaria, folder, monkeypatch):
    (folder / "mine.toml").write_text('learner = "linear"\ntarget = "price"')
    assert covaria("--config", "mine.toml", "assess", "homes.csv")[0] == 0
    monkeypatch.setenv("COVARIA_CONFIG", "mine.toml")
    assert covaria("assess", "homes.csv")[0] == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('lerner = "linear"', "Did you mean 'learner'"),
        ("[asses]\nseed = 1", "Did you mean 'assess'"),
        ("[assess]\nsede = 1", "has no option 'sede'. Did you mean 'seed'"),
        ("seed = ", "is not TOML"),
        ("seed = [3, 4]", "covaria.toml: seed = [3, 4] must be a whole number."),
        ("[assess]\ntop = 1.5", "covaria.toml [assess]: top = 1.5 must be a whole number."),
        ("[study.run]\njobs = nan", "[study] [run]: jobs = nan must be a whole number."),
        ('alpha = "a"', "alpha = 'a' must be a number."),
        ("alpha = 2020-01-01", "must be a number."),
        ("seed = true", "seed = true must be a whole number."),
        ("report = false", "report = false must be a text."),
        ('quiet = "maybe"', "quiet = 'maybe' must be true or false."),
        ("quiet = 1", "quiet = 1 must be true or false."),
    ],
)
def test_a_mistake_in_the_file_is_told_in_a_sentence(text, said, covaria, folder):
    (folder / "covaria.toml").write_text(text)
    code, out, err = covaria("methods")
    assert (code, out) == (cli.BAD_INPUT, "")
    assert err.startswith("covaria: covaria.toml")
    assert said in err
    assert err.count("\n") == 1


def test_a_missing_file_of_settings_is_told(covaria, folder):
    code, _, err = covaria("--config", "nowhere.toml", "methods")
    assert code == cli.BAD_INPUT
    assert "nowhere.toml cannot be opened" in err


@pytest.mark.parametrize(
    "text",
    [
        'out = "/tmp/elsewhere"',
        '[assess]\nreport = "../page.html"',
        '[assess]\nout = "linked/deeper"',
        '[study.run]\nstore = "../study.sqlite"',
        '[report]\npage = "/tmp/page.html"',
        'dask = "tcp://10.0.0.1:8786"',
    ],
)
def test_a_file_that_just_lies_there_writes_nothing_elsewhere(text, covaria, folder, tmp_path):
    (folder / "linked").symlink_to(tmp_path.parent)
    (folder / "covaria.toml").write_text(text)
    code, out, err = covaria("methods")
    assert (code, out) == (cli.BAD_INPUT, "")
    assert "name it: covaria --config covaria.toml" in err
    assert err.count("\n") == 1
    assert covaria("--config", "covaria.toml", "methods")[0] == 0


def test_a_file_that_just_lies_there_may_write_into_its_folder(covaria, folder):
    text = SETTINGS.replace("[assess]", '[assess]\nout = "deep/results"')
    (folder / "covaria.toml").write_text(text)
    assert covaria("assess", "homes.csv")[0] == 0
    assert (folder / "deep" / "results" / "results.csv").is_file()


@pytest.mark.parametrize(
    "text",
    [
        "[study]\nrun = 3",
        f"seed = {'9' * 5000}",
        f"seed = {'[' * 5000}",
        'out = "a\\u0000b"',
    ],
    ids=["no section", "digits", "brackets", "NUL"],
)
def test_a_hostile_file_of_settings_is_told_in_a_sentence(text, covaria, folder):
    (folder / "covaria.toml").write_text(text)
    code, _, err = covaria("methods")
    assert code == cli.BAD_INPUT
    assert err.count("\n") == 1


# --- pipes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/dev/fd/0"])
def test_a_table_may_come_down_a_pipe(name, covaria, folder):
    more = ["--target", "price", "--learner", "linear", "--json"]
    table = (folder / "homes.csv").read_bytes()
    piped = subprocess.run(
        [*COVARIA, "assess", name, *more], input=table, cwd=folder, capture_output=True
    )
    assert piped.returncode == 0, piped.stderr
    _, out, _ = covaria("assess", "homes.csv", *more)
    assert json.loads(piped.stdout)["table"] == json.loads(out)["table"]


@pytest.mark.parametrize(
    ("name", "sent", "said"),
    [
        ("-", b"", "- is empty"),
        ("/dev/stdin", b"PAR1 and more", "holds Parquet"),
        ("/dev/zero", b"", "is no file"),
    ],
)
def test_a_pipe_without_a_table_is_told(name, sent, said, folder):
    words = [*COVARIA, "assess", name, "--target", "price"]
    done = subprocess.run(words, input=sent, cwd=folder, capture_output=True)
    assert done.returncode == cli.BAD_INPUT
    assert said in done.stderr.decode()


# --- Tab ----------------------------------------------------------------------------------------


def offered(folder, *words):
    """Return what bash offers for the last word."""
    settings = {
        **os.environ,
        "_COVARIA_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["covaria", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(COVARIA, cwd=folder, env=settings, capture_output=True, text=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "some"),
    [
        (["as"], ["assess"]),
        (["assess", "--le"], ["--learner"]),
        (["assess", "homes.csv", "--target", "l"], ["lat", "lon"]),
        (["assess", "homes.csv", "--learner", "bo"], ["boosting"]),
        (["assess", "homes.csv", "--methods", "gcm,lo"], ["gcm,loco"]),
        (["assess", "homes.csv", "--correction", "ho"], ["holm"]),
    ],
)
def test_tab_offers_names(words, some, folder):
    assert offered(folder, *words) == some


def test_the_completion_script_can_be_shown(covaria, monkeypatch):
    # Else typer asks which shell it was started from, which depends on who runs the tests.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    _, out, _ = covaria("--show-completion", "bash")
    assert "_COVARIA_COMPLETE=complete_bash" in out


@pytest.fixture
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".bashrc").write_text("alias é=ls\n", encoding="utf-8")
    return tmp_path


def test_completion_is_added_to_the_settings_of_the_shell(covaria, home):
    code, _, err = covaria("--install-completion", "bash")
    assert (code, err) == (0, "")
    said = (home / ".bashrc").read_text(encoding="utf-8")
    assert said.startswith("alias é=ls\n")
    assert ".bash_completions/covaria.sh" in said
    assert (home / ".bash_completions" / "covaria.sh").is_file()


def test_a_full_disk_leaves_the_settings_of_the_shell_alone(covaria, home, monkeypatch):
    def full(path, raw):
        with path.open("wb") as file:
            file.write(raw[:3])
        raise OSError(28, "No space left on device", str(path))

    before = (home / ".bashrc").read_bytes()
    monkeypatch.setattr(Path, "write_bytes", full)
    monkeypatch.setattr(Path, "write_text", lambda path, text: full(path, text.encode()))
    code, _, err = covaria("--install-completion", "bash")
    assert code == cli.CANNOT_WRITE
    assert f"{home / '.bashrc'}: No space left on device" in err
    assert (home / ".bashrc").read_bytes() == before


def test_settings_of_the_shell_that_are_no_text_stay_as_they_are(covaria, home):
    (home / ".bashrc").write_bytes(b"alias \xe9=ls\n")
    code, _, err = covaria("--install-completion", "bash")
    assert code == cli.BAD_INPUT
    assert "--show-completion" in err
    assert err.count("\n") == 1
    assert (home / ".bashrc").read_bytes() == b"alias \xe9=ls\n"


def test_a_home_that_cannot_be_written_is_told_in_a_sentence(covaria, home, monkeypatch):
    monkeypatch.setenv("HOME", str(home / ".bashrc" / "home"))
    code, _, err = covaria("--install-completion", "bash")
    assert code == cli.CANNOT_WRITE
    assert err.count("\n") == 1
