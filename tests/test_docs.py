"""The documentation: its examples run, its links lead somewhere, and the site builds in silence."""

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from covaria.learners import LEARNERS

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
PAGES = [page for page in PAGES if not {"_build", "gallery"} & set(page.parts)]
# Written when the site is built.
BUILT = "gallery/"


def name_of(path):
    return str(path.relative_to(ROOT))


def python_of(path):
    return re.findall(r"^```python\n(.*?)^```", path.read_text("utf-8"), flags=re.DOTALL | re.M)


def value_of(statement, names, page):
    """Return what a statement of a page evaluates to, None where it is no expression."""
    if isinstance(statement, ast.Expr):
        return eval(compile(ast.Expression(statement.value), page, "eval"), names)
    return exec(compile(ast.Module([statement], []), page, "exec"), names)


def said_beside(statement, block):
    """Return the list, dictionary or number that the comment beside a statement says it gives."""
    line = block.splitlines()[statement.end_lineno - 1]
    comment = line.partition("  # ")[2]
    for text in (comment, comment.rpartition(": ")[0]):
        try:
            return ast.literal_eval(text)
        except (SyntaxError, ValueError):
            continue
    return None


def prose_of(path):
    return re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors_of(path):
    """Return the anchors of a page's headings, as GitHub and myst make them, and myst's labels."""
    labels = set(re.findall(r"^\((\S+)\)=$", path.read_text(encoding="utf-8"), flags=re.M))
    found = re.findall(r"^#{1,6} +(.*)$", prose_of(path), flags=re.M)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in found)
    kept = (re.sub(r"[^\w\- ]", "", heading.strip().lower()) for heading in plain)
    return labels | {heading.replace(" ", "-") for heading in kept}


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def gallery():
    return tool("gallery")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_says_something_and_is_a_question(path, gallery, tmp_path):
    assert gallery.run(path, tmp_path).strip()
    page = path.read_text(encoding="utf-8")
    assert page.startswith('"""')
    assert page.splitlines()[0].endswith("?")
    drawn = re.findall(r'"(\w+\.svg)"', page)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(drawn)


@pytest.mark.parametrize("path", [p for p in PAGES if python_of(p)], ids=name_of)
def test_the_python_of_a_page_runs_from_top_to_bottom(path, tmp_path, monkeypatch, request):
    code = "".join(python_of(path))
    if "datasets.load" in code:
        request.getfixturevalue("real_data")
    if "Network" in code:
        pytest.importorskip("torch", reason="pip install 'covaria[nn]'")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": path.stem}
    with mock.patch.dict(LEARNERS):  # what a page registers is gone after it
        for block in python_of(path):
            for statement in ast.parse(block).body:
                value = value_of(statement, names, name_of(path))
                said = said_beside(statement, block)
                assert said is None or value == said, ast.unparse(statement)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_link_of_a_page_leads_to_a_file_and_a_heading_in_it(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(path)):
        if "://" in target or target.startswith((BUILT, "../" + BUILT)):
            continue
        file, _, anchor = target.partition("#")
        page = path.parent / file if file else path
        assert page.exists(), target
        assert not anchor or page.suffix != ".md" or anchor in anchors_of(page), target


def formulas_of(path):
    text = re.sub(r"`[^`\n]*`", "", prose_of(path))
    found = re.findall(r"\$\$(.+?)\$\$|\$([^$]+)\$", text, flags=re.DOTALL)
    return [shown or within for shown, within in found]


@pytest.mark.parametrize("path", [p for p in PAGES if formulas_of(p)], ids=name_of)
def test_every_formula_of_a_page_becomes_mathml(path):
    pytest.importorskip("docutils", reason="covaria[docs]")
    mathml = tool("formulas").mathml
    for formula in formulas_of(path):
        made = mathml(formula.strip())
        assert made.endswith("</math>"), formula
        assert not re.search(r"<munderover>(?:(?!</?munderover>).)*[ˆˉ˜]", made, re.DOTALL), formula


def test_an_index_stands_beside_a_hatted_letter_and_not_below():
    pytest.importorskip("docutils", reason="covaria[docs]")
    plain = re.sub(r"\s+", "", tool("formulas").mathml(r"\hat\xi_i"))
    assert (
        '<msub><moveraccent="true"><mi>ξ</mi><mostretchy="false">ˆ</mo></mover><mi>i</mi></msub>'
        in plain
    )
    assert "<munderover>" in tool("formulas").mathml(r"\sum_{i=1}^n")


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "methods").glob("*.md")), ids=name_of)
def test_a_page_of_a_method_has_its_question_formula_code_assumptions_and_references(path):
    parts = ["The question", "How it works", "Formula", "Code", "What it assumes", "When it fails"]
    headings = re.findall(r"^## (.*)$", prose_of(path), flags=re.M)
    assert [heading for heading in headings if heading in parts] == parts
    assert headings[-1] == "References"
    assert "$$" in path.read_text(encoding="utf-8")
    assert python_of(path)
    entries = re.split(r"^\* ", prose_of(path).rpartition("## References")[2], flags=re.M)[1:]
    assert entries
    for entry in entries:
        assert "https://doi.org/" in entry, entry


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
    members = vars(covaria.Result).items()
    properties = {name for name, value in members if type(value) is property and name[0] != "_"}
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


def documented(thing):
    """Return the names that stand as entries below "Parameters" in a docstring."""
    told = inspect.getdoc(thing) or ""
    found = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", told, flags=re.DOTALL | re.M)
    return re.findall(r"^(\S.*)$", found[1], flags=re.M) if found else []


def with_parameters():
    import covaria

    named = [(name, getattr(covaria, name)) for name in covaria.__all__]
    named += [("datasets.load", covaria.datasets.load)]
    return [(name, thing) for name, thing in named if documented(thing)]


@pytest.mark.parametrize(
    "thing", [pytest.param(thing, id=name) for name, thing in with_parameters()]
)
def test_the_reference_has_the_parameters_one_by_one(thing):
    expected = [p for p in inspect.signature(thing).parameters if p != "self"]
    entries = [entry for entry in documented(thing) if entry[0].islower() or entry == "X"]
    # Sentences may follow the entries; an entry is one word.
    entries = [entry for entry in entries if " " not in entry or "," in entry.split(" ")[0]]
    assert sorted(entries) == sorted(expected)


def test_tests_that_pages_name_exist():
    written = {path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("**/*.py")}
    known = set(re.findall(r"def (test_\w+)", "\n".join(written.values())))
    known |= {path.stem for path in written}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for path in re.findall(r"`(tests/[\w/]+\.py)", text):
            assert (ROOT / path).exists(), f"{page.name} names {path}"
        named = set(re.findall(r"`(test_\w+)`", text))
        assert named <= known, f"{page.name}: {sorted(named - known)}"
