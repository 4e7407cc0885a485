"""No function has the name of a module beside it: importing the one would hide the other."""

import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import covaria

ROOT = Path(covaria.__file__).parent


def test_no_function_hides_a_module():
    hidden = []
    for folder in {path.parent for path in ROOT.rglob("__init__.py")}:
        name = ".".join(("covaria", *folder.relative_to(ROOT).parts))
        package = importlib.import_module(name)
        for module in pkgutil.iter_modules([str(folder)]):
            if not isinstance(getattr(package, module.name, package), ModuleType):
                hidden.append(f"{name}.{module.name}")
    assert hidden == []
