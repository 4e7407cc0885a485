"""The commands and files of the documentation: each is run, or read, as it stands on its page."""

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer.main

import covaria
from covaria.cli import app as cli

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
PAGES = [page for page in PAGES if not {"_build", "gallery"} & set(page.parts)]
# Minutes or hours: it is only read whether the command has these options.
LONG = (["demo"], ["paper", "fig3"], ["paper", "all"], ["paper", "check"])
MODELS = """import covaria

def bent(power=2):
    return covaria.Model([lambda x: x**power, lambda x: 0 * x], noise=1.0)
"""


def blocks_of(path, language):
    found = re.findall(rf"^```{language}\n(.*?)^```", path.read_text("utf-8"), flags=re.S | re.M)
    return [block for block in found if block.strip()]


def commands_of(path):
    """Return the lines of a page that a shell would run, without their comments."""
    lines = [line for block in blocks_of(path, "bash") for line in block.splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def name_of(path):
    return str(path.relative_to(ROOT))


def homes(n_rows=60):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"rooms": rng.integers(1, 6, n_rows), "area": rng.normal(size=n_rows)})
    frame["garden"] = rng.normal(size=n_rows)
    frame["town"] = rng.choice(["a", "b"], n_rows)
    frame["price"] = frame["rooms"] + rng.normal(size=n_rows)
    return frame


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Be in a folder with the tables that pages speak of, and quick regressions."""
    monkeypatch.chdir(tmp_path)
    frame = homes()
    tables = {"homes": "price", "listings": "price", "pilot": "y", "patients": "pressure"}
    for name, target in {**tables, "wine": "quality"}.items():
        frame.rename(columns={"price": target}).to_csv(f"{name}.csv", index=False)
    (study,) = (b for b in blocks_of(ROOT / "docs" / "study.md", "toml") if "study.toml" in b)
    small = study.replace("repeats = 100", "repeats = 1").replace("n_rows = 1000", "n_rows = 60")
    assert small.count("= 1\n") == 1
    Path("study.toml").write_text(small.replace("[0, 0.5, 0.9]", "[0.5]"), encoding="utf-8")
    Path("covaria.toml").write_text('learner = "linear"\n', encoding="utf-8")
    return tmp_path


@pytest.fixture
def typed(monkeypatch, capsys):
    def run(words):
        monkeypatch.setattr(sys, "argv", ["covaria", *words])
        with pytest.raises(SystemExit) as leaving:
            cli.main()
        assert not leaving.value.code, (words, capsys.readouterr().err)

    return run


def accept(words):
    """Read a command's words without running it; what it does not know is an error."""
    app = typer.main.get_command(cli.app)
    while hasattr(app, "commands"):
        app, words = app.commands[words[0]], words[1:]
    app.make_context("covaria", list(words))


def run_command(words, typed):
    """Run a line of a page: a command of ours, or a target of make that is there."""
    if words[0] == "make":
        made = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.M)
        assert set(words[1:]) <= set(made)
    elif words[:2] != ["pip", "install"]:
        assert Path(words[0]).name == "covaria"
        if words[1:3] in LONG or words[1:2] in LONG:
            accept(words[1:])
        else:
            every = [sorted(map(str, Path().glob(w))) if "*" in w else [w] for w in words[1:]]
            flat = [word for part in every for word in part]
            if "--jobs" in flat:  # processes have tests of their own, and take seconds to start
                flat[flat.index("--jobs") + 1] = "1"
            typed(flat)


@pytest.mark.parametrize("path", [p for p in PAGES if blocks_of(p, "bash")], ids=name_of)
def test_the_commands_of_a_page_run_from_top_to_bottom(path, folder, typed):
    for words in commands_of(path):
        run_command(words, typed)


def test_an_option_that_is_not_there_would_be_seen(folder, typed):
    with pytest.raises(Exception, match="nowhere"):
        accept(["demo", "--nowhere"])
    with pytest.raises(AssertionError):
        run_command(["covaria", "assess", "homes.csv", "--target", "prize"], typed)
    with pytest.raises(AssertionError):
        run_command(["make", "coffee"], typed)


def test_no_block_of_a_page_has_no_language():
    for path in PAGES:
        fences = re.findall(r"^```(.*)$", path.read_text("utf-8"), flags=re.M)
        assert all(opening for opening in fences[::2]), name_of(path)


def test_the_settings_of_the_page_about_commands_are_read(folder, typed):
    (settings,) = blocks_of(ROOT / "docs" / "cli.md", "toml")
    Path("covaria.toml").write_text(settings.replace("200", "5"), encoding="utf-8")
    frame = homes().assign(lat=0.5, lon=np.arange(60.0) % 7)
    frame.to_csv("homes.csv", index=False)
    typed(["assess", "homes.csv", "--out", "out"])
    result = covaria.Result.from_json("out/results.json")
    assert result.methods == ["gcm", "loco"]
    assert "place" in result.features


def test_scenarios_of_ones_own_are_run_as_the_page_has_them(folder):
    (own,) = (b for b in blocks_of(ROOT / "docs" / "study.md", "toml") if "waves" in b)
    head = 'repeats = 1\nsplits = 2\nmethods = ["gcm"]\nlearner = ["linear"]\n'
    Path("models.py").write_text(MODELS, encoding="utf-8")
    small = re.sub(r'^(name = "(?:waves|bent)".*)$', r"\1\nn_rows = 60", own, flags=re.M)
    Path("own.toml").write_text(head + small, encoding="utf-8")
    study = covaria.run_study("own.toml", store="own.sqlite", code="models.py")
    assert set(study.table["scenario"]) == {"waves", "bent", "wine"}
