"""The documentation: its examples run, its links lead somewhere, and the site builds in silence."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]


@pytest.fixture(scope="module")
def gallery():
    spec = importlib.util.spec_from_file_location("gallery", ROOT / "tools" / "gallery.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_says_something_and_is_a_question(path, gallery, tmp_path):
    assert gallery.run(path, tmp_path).strip()
    page = path.read_text(encoding="utf-8")
    assert page.startswith('"""')
    assert page.splitlines()[0].endswith("?")
    drawn = re.findall(r'"(\w+\.svg)"', page)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(drawn)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_to_a_file_leads_to_one(path):
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        built = target.startswith("gallery/")
        assert built or "://" in target or (path.parent / target).exists(), target


def test_every_method_has_a_page():
    from covaria import METHODS

    written = {page.stem for page in (ROOT / "docs" / "methods").glob("*.md")}
    missing = set(METHODS) - written - {"gcm+pcm"}
    assert missing == set()


def test_the_reference_has_every_public_name():
    from dataclasses import fields

    import covaria
    from covaria import learners, plots
    from covaria.errors import NothingFitted
    from covaria.results.findings import KINDS

    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    words = set(re.findall(r"[\w.+]+", page))
    assert {f"covaria.{name}" for name in covaria.__all__} <= words
    properties = {name for name, value in vars(covaria.Result).items() if type(value) is property}
    shown = {field.name for field in fields(covaria.Result)} | properties
    shown |= set(covaria.METHODS) | set(KINDS) | set(plots.__all__)
    for name, kind in learners.LEARNERS.items():
        shown |= {name, kind.__name__}
    assert shown | {"Estimator", f"covaria.errors.{NothingFitted.__name__}"} <= words


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("sphinx", reason="pip install 'covaria[docs]'")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "docs", tmp_path / "html"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    built = {page.stem for page in (tmp_path / "html").glob("**/*.html")}
    assert {"index", "start", "choose", "api", "benchmarks", "errata", "gcm"} <= built


@pytest.mark.parametrize("page", ["choose.md"])
def test_the_python_on_a_page_runs(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})
