"""The picture of the house is drawn from the imports there are."""

import importlib.util
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parent.parent / "tools"


@pytest.fixture(scope="module")
def tools():
    """Return the modules that check and draw the layers."""
    sys.path.insert(0, str(TOOLS))
    yield {name: importlib.import_module(name) for name in ("check_layers", "architecture")}
    sys.path.remove(str(TOOLS))


def test_the_page_and_its_picture_are_those_of_the_code(tools):
    for name, text in tools["architecture"].made().items():
        stored = (TOOLS.parent / "docs" / name).read_text(encoding="utf-8")
        assert stored == text, f"run python tools/architecture.py: docs/{name} is old"


def test_an_import_that_points_up_is_named(tools, tmp_path, monkeypatch):
    layers = tools["check_layers"]
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "gcm.py").write_text("from covaria.assessment import assess\n")
    (tmp_path / "assessment.py").write_text("import importlib\n")
    monkeypatch.setattr(layers, "PACKAGE", tmp_path)
    assert layers.main() == 1


def test_two_modules_of_a_package_that_need_each_other_are_named(tools, tmp_path, monkeypatch):
    layers = tools["check_layers"]
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "a.py").write_text("from covaria.methods import b\n")
    (tmp_path / "methods" / "b.py").write_text(
        "import importlib\nimportlib.import_module('covaria.methods.a')\n"
    )
    monkeypatch.setattr(layers, "PACKAGE", tmp_path)
    assert layers.main() == 1
    (tmp_path / "methods" / "b.py").write_text("")
    assert layers.main() == 0
