"""Files with some bytes changed, through the commands: an exit code that is documented, one
sentence on the error stream, no traceback and no bytes that move a cursor.

`Originals(folder)` writes a good file of every kind; `mutant(originals, seed, at)` changes one of
them and says with which command to read it; `verdict` runs that in this process.
"""

from __future__ import annotations

import io
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from fuzz_law import TooLong, Verdict, judged
from fuzz_tables import HOSTILE, pick
from numpy.random import Generator

import covaria
from covaria.cli import app as cli
from covaria.execution.executors import Serial
from covaria.studies import runner

ROOT = Path(__file__).resolve().parent.parent
# docs/cli.md: done, bad input, some fits failed, an extra is missing, cannot write.
CODES = (cli.DONE, cli.BAD_INPUT, cli.SOME_FAILED, cli.MISSING_EXTRA, cli.CANNOT_WRITE)
TOKENS = (
    b"\x00", b"\xff", b"\xfe\xff", b"\x1b[31m", b"\x1b]0;x\x07", b"nan", b"inf", b"-1", b"1e999",
    b"9" * 40, b'"', b"'", b",", b"\n", b"\r", b"\t", b"{", b"}", b"[", b"]", b"=", b"#", b"null",
    b"true", b"\\u0000", b"\\ud800", b"\xe2\x80\xae", b"\xed\xa0\x80", b"=1+1", b"x" * 5000, b"--",
    b"<script>alert(1)</script>",
)  # fmt: skip
STUDY = """repeats = 2
seed = 1
splits = 2
[[scenario]]
name = "linear"
n_rows = 30
[[learner]]
name = "linear"
[methods]
names = ["gcm", "loco"]
"""
SETTINGS = """learner = "linear"
seed = 3
[assess]
splits = 2
methods = ["gcm", "loco"]
alpha = 0.1
"""
GROUPS = 'place = ["a", "b"]\n'


class Originals:
    """A good file of every kind, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(30, 3)).round(3), columns=["a", "b", "c"])
        frame["kind"] = ["x", "y", "z"] * 10
        frame["day"] = pd.date_range("2020-01-01", periods=30).astype(str)
        frame["y"] = (frame["a"] + rng.normal(size=30)).round(3)
        self.table = folder / "good.csv"
        frame.to_csv(self.table, index=False)
        frame.to_parquet(folder / "good.parquet")
        result = covaria.assess(frame, "y", learner="linear", methods="gcm,loco,lasso", splits=2)
        result.to_json(folder / "good.json")
        (folder / "study.toml").write_text(STUDY, encoding="utf-8")
        covaria.run_study(folder / "study.toml", store=folder / "good.sqlite")
        self.raw = {
            "CSV": self.table.read_bytes(),
            "Parquet": (folder / "good.parquet").read_bytes(),
            "TOML, settings": SETTINGS.encode(),
            "TOML, groups": GROUPS.encode(),
            "TOML, study": STUDY.encode(),
            "JSON, results": (folder / "good.json").read_bytes(),
            "SQLite, study": (folder / "good.sqlite").read_bytes(),
        }
        old = ROOT / "tests" / "fixtures" / "study_of_0_1.db"  # without checksums
        self.old_store = old.read_bytes() if old.exists() else self.raw["SQLite, study"]


ENDINGS = {"CSV": "csv", "Parquet": "parquet", "TOML": "toml", "JSON": "json", "SQLite": "sqlite"}
SHARES = {"CSV": 4, "Parquet": 3, "TOML, settings": 2, "TOML, groups": 1, "TOML, study": 2,
          "JSON, results": 4, "SQLite, study": 3}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A file, and the command that reads it."""

    kind: str
    path: Path
    words: tuple[str, ...]


def mutant(originals: Originals, seed: int, at: int) -> Mutant:
    """Return one changed file, written where the command finds it."""
    rng = np.random.default_rng([seed, at])
    shares = np.array([*SHARES.values()], dtype=float)
    kind = str(rng.choice([*SHARES], p=shares / shares.sum()))
    path = originals.folder / f"bad.{ENDINGS[kind.split(',')[0]]}"
    for old in originals.folder.glob("bad*"):
        old.unlink()
    raw = originals.raw[kind]
    by_value = rng.random() < 0.6
    if kind.startswith("SQLite"):
        raw = pick(rng, [raw, originals.old_store])
    if kind.startswith("JSON") and by_value:
        document = other_values(json.loads(raw), rng)
        document.pop("checksum", None)  # as a forger would, and as files of covaria 0.1 have none
        path.write_text(json.dumps(document), encoding="utf-8")
    elif kind.startswith("SQLite") and by_value:
        path.write_bytes(raw)
        other_cells(path, rng)
    elif kind.startswith("TOML") and by_value:
        path.write_text(other_settings(raw.decode(), rng), encoding="utf-8")
    else:
        path.write_bytes(other_bytes(raw, rng))
    return Mutant(kind, path, command(kind, path, originals, rng))


def command(kind: str, path: Path, originals: Originals, rng: Generator) -> tuple[str, ...]:
    """Return the words that read a file of this kind."""
    quick = ("--target", "y", "--learner", "linear", "--methods", "gcm,loco", "--splits", "2")
    page, picture = str(originals.folder / "page.html"), str(originals.folder / "picture.svg")
    store = str(originals.folder / "bad_new.sqlite")
    choices: dict[str, list[tuple[str, ...]]] = {
        "CSV": [("assess", str(path), *quick), ("assess", str(path), *quick, "--report", page)],
        "Parquet": [("assess", str(path), *quick), ("assess", str(path), *quick, "--json")],
        "TOML, settings": [("--config", str(path), "assess", str(originals.table), "-t", "y")],
        "TOML, groups": [("assess", str(originals.table), *quick, "--groups", str(path))],
        "TOML, study": [("study", "run", str(path), "--store", store, "--quiet")],
        "JSON, results": [
            ("report", str(path), page), ("plot", str(path), picture),
            ("plot", str(path), picture, "--kind", "quality"),
            ("plot", str(path), picture, "--kind", "residuals", "--feature", "a"),
            ("plot", str(path), picture, "--kind", "efficiencies"),
        ],
        "SQLite, study": [
            ("study", "status", "--store", str(path)), ("study", "export", "--store", str(path)),
            ("study", "export", "--store", str(path), "--what", "summary"),
            ("study", "export", "--store", str(path), "--report", page),
            ("study", "merge", str(path), "--store", store),
            ("study", "resume", "--store", str(path), "--quiet"),
        ],
    }  # fmt: skip
    return tuple(pick(rng, choices[kind]))


# --- changes ------------------------------------------------------------------------------------


def other_bytes(raw: bytes, rng: Generator) -> bytes:
    """Return the bytes with one change, or a few."""
    changed = bytearray(raw)
    for _ in range(min(8, int(rng.geometric(0.5)))):
        at = int(rng.integers(len(changed) + 1))
        to = min(len(changed), at + int(rng.integers(1, 30)))
        draw = rng.random()
        if draw < 0.25 and at < len(changed):
            changed[at] ^= 1 << int(rng.integers(8))
        elif draw < 0.4 and at < len(changed):
            changed[at] = int(rng.integers(256))
        elif draw < 0.55:
            del changed[at:to]
        elif draw < 0.65:
            changed[at:at] = changed[at:to]
        elif draw < 0.95:
            changed[at:at] = pick(rng, TOKENS)
        else:
            del changed[at:]
    return bytes(changed)


VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 10**30, 1e308, -0.5, 2.5, "", "x", "1", [], {}, [None], ["a"], {"a": 1},
    [[]], "=1+1", *HOSTILE[5:10],
)  # fmt: skip


def other_values(value: Any, rng: Generator) -> Any:
    """Return a document with up to three of its values, or their names, changed or gone."""
    for _ in range(int(rng.integers(1, 4))):
        places = list(_places(value))
        inside, key = pick(rng, places)
        draw = rng.random()
        if draw < 0.2:
            del inside[key]
        elif draw < 0.3 and isinstance(inside, dict):
            inside[pick(rng, HOSTILE)] = inside.pop(key)
        elif draw < 0.4 and isinstance(inside, list):
            inside.append(inside[key])
        else:
            inside[key] = pick(rng, VALUES)
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where every value of a document stands; of long lists the first few."""
    keys = list(value) if isinstance(value, dict) else range(min(len(value), 4))
    for key in keys:
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from _places(value[key])


LITERALS = (
    "0", "-1", "1", "3", "2.5", "1e999", "nan", "inf", "true", "[]", "{}", '""', '"x"', "99999",
    r'"\u001b[31m"', '["gcm", "x"]', '["a", "c"]', "2020-01-01", '"linear"', '"none"', "[[1]]",
    "{a = 1}", '"kind"', "[3, 4]", "'''\n'''", "0x7fffffffffffffff",
)  # fmt: skip


def other_settings(text: str, rng: Generator) -> str:
    """Return settings with one or two of their values, or names, changed."""
    lines = text.splitlines()
    for _ in range(int(rng.integers(1, 3))):
        at = pick(rng, [k for k, line in enumerate(lines) if "=" in line] or [0])
        lines = lines or ["x = 1"]
        name, _, value = lines[at].partition("=")
        draw = rng.random()
        if draw < 0.7:
            lines[at] = f"{name}= {pick(rng, LITERALS)}"
        elif draw < 0.8:
            lines[at] = f"{pick(rng, ['seed', 'x', 'names', 'out', 'n_rows'])} ={value}"
        elif draw < 0.9:
            lines.insert(at, f"[{pick(rng, ['assess', 'groups', 'study', 'x', '[learner]'])}]")
        else:
            del lines[at]
    return "\n".join(lines)


def other_cells(path: Path, rng: Generator) -> None:
    """Change a cell of a database, or take away a row or a table."""
    connection = sqlite3.connect(path, isolation_level=None)
    tables = [
        row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
    ]
    for _ in range(int(rng.integers(1, 4))):
        table = pick(rng, tables)
        names = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        name = pick(rng, names or ["rowid"])
        draw = rng.random()
        value = pick(rng, [v for v in VALUES if not isinstance(v, (list, dict)) and v != 10**30])
        value = value if not isinstance(value, str) else value.encode("utf-8", "replace").decode()
        some = "" if draw < 0.2 else f" WHERE (rowid + {int(rng.integers(3))}) % 3 = 0"
        try:
            if draw < 0.7:
                connection.execute(f'UPDATE "{table}" SET "{name}" = ?{some}', (value,))
            elif draw < 0.85:
                connection.execute(f'DELETE FROM "{table}"{some}')
            elif draw < 0.93:
                connection.execute(f'DROP TABLE "{table}"')
            else:
                connection.execute(f'ALTER TABLE "{table}" DROP COLUMN "{name}"')
        except sqlite3.Error:  # a constraint forbids it
            continue
    connection.close()


# --- the law ------------------------------------------------------------------------------------


def verdict(given: Mutant) -> Verdict:
    """Return what the command made of a changed file; the outcome is its exit code."""
    return judged(lambda: _run(given), most_seconds=10.0 if _may_be_long(given) else None)


def _may_be_long(given: Mutant) -> bool:
    """Return whether the file says how much there is to do."""
    return given.words[:2] in (("study", "run"), ("study", "resume"))


@contextmanager
def in_this_process() -> Iterator[None]:
    """Run a study's tasks here: to start processes takes longer than to read a file."""
    with mock.patch.object(runner, "_executor", return_value=nullcontext(Serial())):
        yield


def _run(given: Mutant) -> str:
    out, err = io.StringIO(), io.StringIO()
    words = ["covaria", *given.words]
    code: Any = 0
    with mock.patch.object(sys, "argv", words), redirect_stdout(out), redirect_stderr(err):
        try:
            with in_this_process():
                cli.main()
        except SystemExit as leaving:
            code = leaving.code or 0
        except TooLong:
            if not _may_be_long(given):
                raise
            return "still at work"
    _check(code, out.getvalue(), err.getvalue())
    return f"exit {code}"


def _check(code: Any, out: str, err: str) -> None:
    assert code in CODES, f"exit {code}"
    assert "Traceback" not in out + err, "a traceback"
    for text in (out, err):
        flat = text.replace("\n", "").replace("\t", "")
        assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in flat), "raw control characters"
    lines = [line for line in err.splitlines() if line.strip()]
    if code not in (cli.DONE, cli.SOME_FAILED):
        told = [line for line in lines if not line.startswith(("!", "Usage:", "Try "))]
        assert len(told) == 1, f"{len(told)} sentences instead of one"
        assert told[0].startswith(("covaria: ", "Error: ")), "no sentence"
