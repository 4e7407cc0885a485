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


def test_pre_commit_does_what_make_lint_does():
    recipe = text_of("Makefile").partition("\nlint: .venv/dev\n")[2].partition("\n\n")[0]
    steps = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe.splitlines()]
    entries = re.findall(r"^ +entry: (.+)$", text_of(".pre-commit-config.yaml"), flags=re.M)
    assert entries == steps


def test_the_workflow_tries_three_systems_and_every_python_that_is_promised():
    workflow = text_of(".github/workflows/tests.yml")
    for system in ("ubuntu", "macos", "windows"):
        assert f"{system}-latest" in workflow
    for minor in tool("matrix").MINORS:
        assert f'"3.{minor}"' in workflow


def test_the_docs_lead_to_their_newest_version(tmp_path):
    for name in ("latest", "v1.2.0", "v1.10.0", "not a version"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").touch()
    versions = tool("versions")
    assert versions.versions(tmp_path) == ["latest", "v1.10.0", "v1.2.0"]
    versions.write(tmp_path)
    assert "url=v1.10.0/" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_a_proof_that_gives_no_figure_or_leaves_by_one_does_not_hold(monkeypatch):
    prove = tool("prove")
    said = {
        "good": "echo 7 passed in 1s",
        "none": "echo hello",
        "bad": "echo 7 passed in 1s; false",
    }
    parts = {name: prove.Part("", text, text, prove.tests) for name, text in said.items()}
    monkeypatch.setattr(prove, "PARTS", parts)
    held = {name: prove.proved(name, large=False)["held"] for name in said}
    assert held == {"good": "yes", "none": "no", "bad": "no"}


def a_copy(folder):
    """Return a folder with the files that say the version."""
    for name in tool("bump").changes("1.0.0", ""):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text_of(name), encoding="utf-8")
    return folder


def test_one_command_gives_every_place_the_next_version(tmp_path):
    tool("bump").bump(a_copy(tmp_path), "1.0.0", "2026-12-01")
    said = {name: (tmp_path / name).read_text("utf-8") for name in tool("bump").changes("", "")}
    assert tool("stamp").version(tmp_path) == "1.0.0"
    assert '\nversion: 1.0.0\ndate-released: "2026-12-01"\n' in said["CITATION.cff"]
    assert '\n  version: "1.0.0"\n' in said["conda/recipe.yaml"]
    assert "\n## Unreleased\n\n## 1.0.0 (2026-12-01)\n" in said["CHANGELOG.md"]
    project = tomllib.loads(said["pyproject.toml"])["project"]
    assert "Development Status :: 5 - Production/Stable" in project["classifiers"]
    old = {name: text_of(name).replace(covaria.__version__, "1.0.0") for name in said}
    assert said["conda/recipe.yaml"] == old["conda/recipe.yaml"]  # and nothing else


def test_a_version_goes_everywhere_or_nowhere(tmp_path):
    a_copy(tmp_path)
    (tmp_path / "CITATION.cff").write_text("version: 0\n", encoding="utf-8")  # without a date
    with pytest.raises(SystemExit, match="stands 0 times"):
        tool("bump").bump(tmp_path, "1.0.0", "2026-12-01")
    assert tool("stamp").version(tmp_path) == covaria.__version__


def test_a_package_calls_itself_beta_until_it_is_one():
    stage = "4 - Beta" if covaria.__version__.startswith("0.") else "5 - Production/Stable"
    assert f"Development Status :: {stage}" in PROJECT["classifiers"]


def test_every_line_that_a_scan_passes_over_names_the_rule_and_says_why():
    for path in (ROOT / "src").glob("**/*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if "nosec" in line:
                assert re.search(r"# nosec B\d{3} # \w+ \w+", line), line


def test_links_of_the_site_that_lead_nowhere_are_named(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "index.html").write_text('<p id="here"><a href="../b.html#there">', "utf-8")
    (tmp_path / "b.html").write_text(
        '<a href="a/#here"><a href="a/#gone"><img src="no.png"><a href="#top"><a name="there">'
        '<a href="https://example.org/x"><a href="../outside.html">',
        "utf-8",
    )
    lost, count, away = tool("links").broken(tmp_path)
    assert lost == [f"b.html: {to}" for to in ("a/#gone", "no.png", "#top", "../outside.html")]
    assert (count, away) == (6, {"https://example.org/x"})


def test_a_load_that_grows_or_slows_down_is_told_from_one_that_is_flat():
    def held(sizes, seconds):
        pace = tool("load").Pace()
        pace.sizes, pace.seconds = sizes, seconds
        return pace.held("steps")

    assert held([100.0] * 50, [1.0] * 50)
    assert not held([100.0 + k for k in range(50)], [1.0] * 50)
    assert not held([100.0] * 50, [1.0] * 30 + [2.0] * 20)


def test_what_a_scan_said_is_counted_and_silence_is_no_pass():
    issues = tool("prove")._issues
    end = "Total potential issues skipped due to specifically being disabled (e.g., #nosec BXXX): 7"
    assert issues(f">> Issue: a\n>> Issue: b\n{end}").startswith("2 issues")
    assert issues(end).startswith("0 issues of medium or high severity; 7 read")
    assert issues("command not found") == ""


def test_the_page_of_dependencies_has_every_package_and_every_extra():
    weigh, page = tool("weigh"), text_of("docs/dependencies.md")
    names = [re.split(r"[^\w-]", line)[0] for line in PROJECT["dependencies"]]
    assert list(weigh.WHAT) == names
    extras = PROJECT["optional-dependencies"]
    users = {extra for extra in extras if extra not in ("all", "docs", "dev")}
    assert {extra for extra, _ in weigh.EXTRAS.values()} == users
    for name, (extra, _) in weigh.EXTRAS.items():
        assert re.split(r"[^\w-]", extras[extra][0])[0] == name
        assert re.search(rf"^\| `\[{extra}\]` {name} \| .* \| \d+ \|", page, flags=re.M)
    for name in names:
        assert re.search(rf"^\| {name} \| .* \| \d+ \|", page, flags=re.M)
