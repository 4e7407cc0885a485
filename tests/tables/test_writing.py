"""A file is there whole, or as it was before; what cannot be written is said before any fit."""

from __future__ import annotations

import os
import re
import stat
import sys
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

import covaria
from covaria import plots
from covaria.assessment import Job
from covaria.cli import app as cli
from covaria.report import write_report
from covaria.tables.files import write_csv
from covaria.tables.writing import make_room, whole, write_bytes, write_text

SOURCE = Path(covaria.__file__).parent
# What writes a file anew; to print a table as CSV is something else, and so is to add a line.
WRITERS = re.compile(
    r"""open\([^)]*["'][wx]b?["'] | \.write_(text|bytes)\( | \.to_csv\((?!index)
    | savefig\((?!target) | write_parquet\((?!beside) | to_parquet\((?!self|beside)""",
    re.VERBOSE,
)


@pytest.fixture(scope="module")
def result():
    x = [0.1, 0.9, 0.3, 0.5, 0.7, 0.2, 0.8, 0.4] * 3
    frame = pd.DataFrame({"x": x, "z": [(7 * at) % 11 for at in range(24)]})
    return covaria.assess(frame, x, learner="linear", splits=2, methods="gcm")


@pytest.fixture
def full_disk(monkeypatch):
    """Let every file take three bytes and no more."""

    def write_bytes(self, raw):
        with open(self, "wb") as file:
            file.write(raw[:3])
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", write_bytes)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_text_and_bytes_come_back(tmp_path):
    write_text(tmp_path / "a.txt", "é\n\udc80")
    assert (tmp_path / "a.txt").read_bytes() == b"\xc3\xa9\n\\udc80"
    write_bytes(tmp_path / "a.txt", b"\x00\x01")
    assert (tmp_path / "a.txt").read_bytes() == b"\x00\x01"
    assert names(tmp_path) == ["a.txt"]


def test_a_full_disk_leaves_the_old_file_and_nothing_beside_it(tmp_path, full_disk):
    old = tmp_path / "a.txt"
    old.write_text("before")
    with pytest.raises(OSError, match="No space left") as caught:
        write_text(old, "after")
    assert caught.value.filename == str(old)
    assert old.read_text() == "before"
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("write", ["to_json", "write_report", "write_csv"])
def test_every_writer_keeps_the_old_file_when_the_disk_is_full(write, result, tmp_path, full_disk):
    old = tmp_path / "old"
    old.write_text("before")
    writers = {
        "to_json": lambda: result.to_json(old),
        "write_report": lambda: write_report(result, old),
        "write_csv": lambda: write_csv(result.table, old),
    }
    with pytest.raises(OSError, match="No space left"):
        writers[write]()
    assert old.read_text() == "before"
    assert names(tmp_path) == ["old"]


def test_a_picture_that_fails_half_way_leaves_the_old_one(result, tmp_path, monkeypatch):
    old = tmp_path / "forest.png"
    old.write_text("before")
    axes = plots.forest(result)

    def half(path, **_):
        Path(path).write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(axes.get_figure(), "savefig", half)
    with pytest.raises(OSError, match="No space left"):
        plots.save(axes, old)
    assert old.read_text() == "before"
    assert names(tmp_path) == ["forest.png"]


def test_an_interrupt_half_way_leaves_nothing(tmp_path):
    def begin():
        with whole(tmp_path / "new") as beside:
            beside.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begin()
    assert names(tmp_path) == []


def test_a_link_stays_a_link_and_a_mode_stays(tmp_path):
    (tmp_path / "real").write_text("before")
    (tmp_path / "real").chmod(0o600)
    (tmp_path / "link").symlink_to("real")
    write_text(tmp_path / "link", "after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "after"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o600


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(pipe, "through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert names(tmp_path) == ["pipe"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_an_error_of_what_is_written_to_directly_names_it(tmp_path, full_disk):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(OSError, match="No space left") as caught:
            write_text(pipe, "too much")
    finally:
        os.close(reader)
    assert caught.value.filename == str(pipe)
    assert pipe.is_fifo()


def test_a_file_that_may_not_be_written_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "kept").write_text("before")
    monkeypatch.setattr(os, "access", lambda *_: False)
    for write in (lambda path: write_text(path, "after"), make_room):
        with pytest.raises(PermissionError, match="kept"):
            write(tmp_path / "kept")
    assert (tmp_path / "kept").read_text() == "before"


def test_room_is_made_and_leaves_nothing(tmp_path):
    make_room(tmp_path / "a" / "b" / "file", None)
    assert names(tmp_path / "a" / "b") == []


def test_only_one_function_writes_files():
    found = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if WRITERS.search(line) and "beside" not in line
    ]
    assert found == []


# --- the commands say so before they fit -----------------------------------------------------


def commands(folder):
    table = folder / "table.csv"
    lines = ["x,z,y", *(f"{k % 7},{k % 5},{k % 3}" for k in range(40))]
    table.write_text("\n".join(lines))
    quick = [str(table), "--target", "y", "--learner", "linear"]
    place = folder / "locked"
    return {
        "assess --out": ["assess", *quick, "--out", place],
        "assess --report": ["assess", *quick, "--report", place / "page.html"],
        "demo --out": ["demo", "--out", place],
        "stability --out": ["stability", str(table), "-t", "y", "--out", place],
        "stability --report": ["stability", str(table), "-t", "y", "--report", place / "p.html"],
        "efficiency --plot": ["efficiency", *quick, "--plot", place / "a.svg"],
        "plan --plot": ["plan", *quick, "--plot", place / "a.svg"],
        "paper": ["paper", "fig3", "--fast", "--out", place],
    }


COMMANDS = [
    "assess --out", "assess --report", "demo --out", "stability --out", "stability --report",
    "efficiency --plot", "plan --plot", "paper",
]  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_that_cannot_be_written_is_said_before_any_fit(
    name, tmp_path, monkeypatch, capsys
):
    """Root may write anywhere, so the folder is locked by hand."""

    def fit(*_, **__):
        pytest.fail("a model was fitted")

    monkeypatch.setattr(Job, "run", fit)
    monkeypatch.setattr(import_module("covaria.selection.refit"), "refit", fit)
    monkeypatch.setattr(import_module("covaria.selection.stability"), "stability", fit)
    monkeypatch.setattr(import_module("covaria.paper.run"), "run_in_store", fit)
    (tmp_path / "locked").mkdir()
    touch = Path.touch

    def locked(self, *arguments, **options):
        if self.parent.name == "locked":
            raise PermissionError(13, "Permission denied", str(self))
        touch(self, *arguments, **options)

    monkeypatch.setattr(Path, "touch", locked)
    words = [str(word) for word in commands(tmp_path)[name]]
    monkeypatch.setattr(sys, "argv", ["covaria", *words])
    with pytest.raises(SystemExit) as leaving:
        cli.main()
    said = capsys.readouterr().err
    assert leaving.value.code == cli.CANNOT_WRITE
    assert said.count("\n") == 1
    assert re.search(r"locked/\S+: Permission denied. Choose another place.", said), said
