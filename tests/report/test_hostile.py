"""No name, level, target, file, title, learner or error can run, link, move or calculate."""

import csv
import io
import json
import re
import sys
from html.parser import HTMLParser

import pandas as pd
import pytest

from covaria import Result, assess
from covaria.cli import app as cli
from covaria.cli import console
from covaria.errors import short, visible
from covaria.report import page_of, summarize
from covaria.report.export import as_csv, as_json
from covaria.tables.files import FORMULA, safe_cell, write_csv
from hostile_strings import HOSTILE

OURS = {"#", "data:text/csv", "data:application/json", "data:,"}


class Page(HTMLParser):
    """Every tag and address of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.addresses, self.handlers = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("href", "src", "action", "data", "xlink:href"):
                self.addresses.append(value)
            if name.startswith("on") or name == "style":
                self.handlers.append(name)


@pytest.mark.parametrize("title", [None, *HOSTILE[:8], HOSTILE[-1]])
def test_a_page_of_hostile_strings_has_only_our_tags_and_links(title, hostile_result):
    text = page_of(hostile_result, title=title)
    page = Page(text)
    assert page.tags.count("script") == page.tags.count("style") == 1
    foreign = {"img", "iframe", "object", "embed", "math", "template", "base", "b>"}
    assert not foreign & set(page.tags)
    assert page.handlers == []
    strange = [a for a in page.addresses if not a.startswith(tuple(OURS))]
    assert strange == []


def test_a_page_holds_no_letter_that_turns_or_hides_others(hostile_result):
    text = page_of(hostile_result, title="\u202ebackwards")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]", text)
    assert "\\u202egnp.exe" in text


def test_a_lone_half_of_a_letter_can_be_written(hostile_result, tmp_path):
    from covaria import write_report

    write_report(hostile_result, tmp_path / "x.html", title="half \ud83d of one")
    assert "half \\ud83d of one" in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_no_cell_of_a_csv_is_a_formula(hostile_result, tmp_path):
    write_csv(hostile_result.table, tmp_path / "t.csv")
    texts = [as_csv(summarize(hostile_result)), (tmp_path / "t.csv").read_text(encoding="utf-8")]
    for text in texts:
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert len(rows) == len(hostile_result.table)
        words = [row[name] for row in rows for name in ("feature", "method", "status")]
        assert not [word for word in words if word.startswith(FORMULA)]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_cell_keeps_its_text(text):
    safe = safe_cell(text)
    kept = text.replace("\r", "\n")
    assert safe in (kept, f"'{kept}")
    assert not safe.lstrip(" ").startswith(FORMULA)


def test_json_gives_every_string_back(hostile_result, tmp_path):
    facts = json.loads(as_json(summarize(hostile_result)))
    assert set(HOSTILE) <= set(facts["alerts"])
    hostile_result.to_json(tmp_path / "r.json")
    assert Result.from_json(tmp_path / "r.json") == hostile_result


@pytest.mark.parametrize("text", HOSTILE)
def test_a_terminal_shows_what_is_there_and_obeys_nothing(text):
    for shown in (short(text), visible(text)):
        assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    if text.isprintable():
        assert visible(text) == text


def test_the_verdict_prints_hostile_names_on_one_line_each(hostile_result):
    printed = console.verdict(hostile_result)
    lines = printed.splitlines()
    assert "\x1b" not in printed
    assert sum("\\x1b[31mred" in line for line in lines) == 1
    assert all(len(line) < 400 for line in lines)


def test_a_hostile_file_goes_through_the_command(hostile_table, tmp_path, monkeypatch, capsys):
    path = tmp_path / "=cmd() <script>alert(1)<.csv"
    frame = hostile_table.rename(columns={"a\rb": "carriage"})
    frame.to_csv(path, index=False, quoting=csv.QUOTE_NONNUMERIC)
    words = [
        "assess",
        path,
        "--target",
        HOSTILE[57],
        "--learner",
        "linear",
        "--out",
        tmp_path / "o",
    ]
    monkeypatch.setattr(sys, "argv", ["covaria", *map(str, words)])
    with pytest.raises(SystemExit) as leaving:
        cli.main()
    said = capsys.readouterr()
    assert leaving.value.code in (None, 0), said.err
    assert "\x1b" not in said.out + said.err
    assert (
        Page((tmp_path / "o" / "report.html").read_text(encoding="utf-8")).tags.count("script") == 1
    )
    written = pd.read_csv(tmp_path / "o" / "results.csv")
    assert not written["feature"].str.startswith(FORMULA).any()


def test_hostile_classes_have_a_page():
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.array(HOSTILE[:4])[(X[:, 0] > 0).astype(int) + 2 * (rng.random(200) > 0.5)]
    text = page_of(assess(X, y, learner="linear"))
    assert Page(text).tags.count("script") == 1
