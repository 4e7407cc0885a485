"""What a release says of itself is said once, and said the same everywhere."""

import datetime as dt
import re
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import covaria

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def tool(name):
    spec = spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def newest_version():
    """Return the number and the date of the newest version of the CHANGELOG."""
    return re.findall(r"^## (\d\S*) \((\d{4}-\d\d-\d\d)\)$", text_of("CHANGELOG.md"), flags=re.M)[0]


def test_the_version_has_one_place():
    assert PROJECT["dynamic"] == ["version"]
    assert tool("stamp").version() == covaria.__version__


def test_the_changelog_has_dated_versions_and_the_newest_is_ours():
    number, date = newest_version()
    assert number == covaria.__version__
    assert dt.date.fromisoformat(date) >= dt.date(2026, 11, 15)


def test_the_citation_is_of_the_newest_version():
    number, date = newest_version()
    assert f"\nversion: {number}\n" in text_of("CITATION.cff")
    assert f'\ndate-released: "{date}"\n' in text_of("CITATION.cff")


def test_the_conda_recipe_asks_for_what_the_wheel_asks_for():
    recipe = text_of("conda/recipe.yaml")
    assert f'version: "{covaria.__version__}"' in recipe
    run = recipe.partition("  run:\n")[2].partition("\ntests:")[0]
    asked = re.findall(r"^ +- (\S+) (>=[\d.]+)$", run, flags=re.M)
    assert [f"{name.removesuffix('-base')}{bound}" for name, bound in asked] == PROJECT[
        "dependencies"
    ]


def test_every_python_that_is_promised_is_tested():
    promised = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert {f"3.{minor}" for minor in tool("matrix").MINORS} == set(promised)
    assert PROJECT["requires-python"] == f">={min(promised)}"


def test_a_stamp_writes_urls_and_links_that_stand_alone(tmp_path):
    for name in ("pyproject.toml", "README.md", "src/covaria/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text_of(name), encoding="utf-8")
    tool("stamp").stamp(tmp_path, "https://example.org/o/covaria/")
    found = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert found["urls"]["Issues"] == "https://example.org/o/covaria/issues"
    assert {k: v for k, v in found.items() if k != "urls"} == PROJECT
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)\s]+)\)", readme)
    assert links
    assert all("://" in link or link.startswith("#") for link in links)
    files = [
        link.split(f"/v{covaria.__version__}/")[1].split("#")[0] for link in links if "/o/" in link
    ]
    assert files
    assert all((ROOT / file).exists() for file in files)


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "CITATION.cff"])
def test_pages_for_people_have_no_gap_left_to_fill_in(name):
    assert not re.search(r"TODO|FIXME|<[a-z -]+>|\[insert|example\.com", text_of(name))
