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


@pytest.fixture
def house(tools, tmp_path, monkeypatch):
    """Return a way to build a package of modules in given layers, and to ask what is wrong."""

    def wrong(layers, modules, capsys):
        for name, text in modules.items():
            path = tmp_path / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        monkeypatch.setattr(tools["check_layers"], "PACKAGE", tmp_path)
        monkeypatch.setattr(tools["check_layers"], "layers", lambda: layers)
        exit_code = tools["check_layers"].main()
        said = capsys.readouterr().out
        assert exit_code == int("doors in" not in said)
        return said if exit_code else ""

    return wrong


ASKS = "from covaria.assessment import assess\n"
MODULES = {"methods/gcm": "", "assessment": "", "__init__": ASKS, "__main__": ASKS}


def test_an_import_that_points_up_is_named(house, capsys):
    layers = [["assessment"], ["methods"]]
    assert house(layers, MODULES, capsys) == ""
    said = house(layers, MODULES | {"methods/gcm": ASKS}, capsys)
    assert "gcm.py:1: 'methods' may not import 'assessment'" in said


def test_inside_a_row_imports_go_from_left_to_right_only(house, capsys):
    modules = MODULES | {"methods/gcm": ASKS}
    assert house([["methods", "assessment"]], modules, capsys) == ""
    assert "'methods' may not import" in house([["assessment", "methods"]], modules, capsys)


def test_the_rows_name_every_door_there_is_and_no_other(house, capsys):
    assert "add 'assessment' to the layers" in house([["methods"]], MODULES, capsys)
    said = house([["assessment"], ["methods", "tables"]], MODULES, capsys)
    assert said == "pyproject.toml: there is no 'tables'\n"


def test_two_modules_of_a_package_that_need_each_other_are_named(house, capsys):
    by_name = "import importlib\nimportlib.import_module('covaria.methods.a')\n"
    modules = {"methods/a": "from covaria.methods import b\n", "methods/b": by_name}
    assert "methods.a needs itself" in house([["methods"]], modules, capsys)
    assert house([["methods"]], modules | {"methods/b": ""}, capsys) == ""


def test_the_tree_is_the_designs_with_one_door_more(tools):
    rows = tools["check_layers"].layers()
    assert len(rows) <= 10
    assert sum(map(len, rows)) == 21  # of the design, and `execution`
