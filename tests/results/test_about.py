"""How a result was made is a record, read by attribute or by name."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from covaria import InputError, Result, assess
from covaria.results.about import About

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture(scope="module")
def about(small_data):
    return assess(*small_data, learner="linear", methods="gcm,loco").about


def test_a_name_and_an_attribute_say_the_same(about):
    assert isinstance(about, About)
    assert all(about[name] == getattr(about, name) for name in about)
    assert dict(about) == about
    assert {**about}["seconds"] is about.seconds
    assert "command" not in about
    assert about.get("command", "none") == "none"
    with pytest.raises(KeyError):
        about["nothing of the kind"]


def test_a_file_has_what_it_had_in_the_order_it_had():
    stored = json.loads((FIXTURES / "results_of_0_1.json").read_text())
    again = json.loads(Result.from_dict(stored).to_json())
    assert json.dumps(again["about"]) == json.dumps(stored["about"])


def test_what_another_version_says_is_kept(about):
    told = About.of({**about, "weather": "fair"})
    assert told["weather"] == "fair"
    assert list(told) == [*about, "weather"]


def test_a_dict_becomes_the_record(small_data):
    result = assess(*small_data, learner="linear", methods="gcm")
    changed = replace(result, about={**result.about, "command": "covaria assess a.csv"})
    assert changed.about.command == changed.about["command"] == "covaria assess a.csv"
    assert list(changed.about)[-1] == "command"


def test_a_file_that_does_not_say_how_it_was_made_is_refused():
    stored = json.loads((FIXTURES / "results_of_0_1.json").read_text())
    del stored["about"]["alpha"]
    with pytest.raises(InputError, match="does not say its alpha"):
        Result.from_dict(stored)
