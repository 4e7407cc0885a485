"""Which features really matter, for any model, with a p-value you can defend.

>>> import covaria
>>> X, y = covaria.draw("additive", n_rows=300, seed=0)
>>> result = covaria.assess(X, y, learner="linear", methods=["gcm", "loco"], seed=0)
>>> "x7" in result.selected["gcm"]
True
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from covaria.execution import interrupts as interrupts  # isort: skip  # the first of all

from covaria.errors import InputError, MissingExtra
from covaria.results.drawing import drawn_by

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from covaria import datasets, learners
    from covaria.assessment import assess, prepare
    from covaria.assessment.question import Independence, independence_test
    from covaria.efficiencies import (
        efficiency,
        plan,
        power_at,
        relative_efficiency,
        relative_variability,
        theory,
    )
    from covaria.learners import Prefit
    from covaria.methods import METHODS
    from covaria.nuisance.regressions import fit_residuals
    from covaria.nuisance.residuals import Residuals
    from covaria.report import write_report
    from covaria.results.equivalence import negligible
    from covaria.results.pairs import interactions
    from covaria.results.result import Result
    from covaria.selection.refit import Refit, refit
    from covaria.selection.selectors import Selector, StabilitySelector
    from covaria.selection.stability import Stability, stability
    from covaria.simulation.model import Model, Term
    from covaria.simulation.scenarios import draw, scenario
    from covaria.studies.runner import run_study
    from covaria.tables.dataset import Dataset

__version__ = "0.9.0"

__all__ = [
    "METHODS",
    "Dataset",
    "Independence",
    "InputError",
    "MissingExtra",
    "Model",
    "Prefit",
    "Refit",
    "Residuals",
    "Result",
    "Selector",
    "Stability",
    "StabilitySelector",
    "Term",
    "assess",
    "datasets",
    "draw",
    "efficiency",
    "fit_residuals",
    "independence_test",
    "interactions",
    "learners",
    "negligible",
    "plan",
    "power_at",
    "prepare",
    "refit",
    "relative_efficiency",
    "relative_variability",
    "run_study",
    "scenario",
    "stability",
    "theory",
    "write_report",
]


def _draw(result: object, kind: str, options: dict[str, object]) -> "Axes":
    from covaria import plots

    return plots.draw(result, kind, options)


drawn_by(_draw)
# What is imported when it is first asked for, by the module that has it.
LATER = {
    "assess": "assessment",
    "prepare": "assessment",
    "Independence": "assessment.question",
    "independence_test": "assessment.question",
    "efficiency": "efficiencies",
    "plan": "efficiencies",
    "power_at": "efficiencies",
    "relative_efficiency": "efficiencies",
    "relative_variability": "efficiencies",
    "Prefit": "learners",
    "METHODS": "methods",
    "fit_residuals": "nuisance.regressions",
    "Residuals": "nuisance.residuals",
    "write_report": "report",
    "negligible": "results.equivalence",
    "interactions": "results.pairs",
    "Result": "results.result",
    "Refit": "selection.refit",
    "refit": "selection.refit",
    "Selector": "selection.selectors",
    "StabilitySelector": "selection.selectors",
    "Stability": "selection.stability",
    "stability": "selection.stability",
    "Model": "simulation.model",
    "Term": "simulation.model",
    "draw": "simulation.scenarios",
    "scenario": "simulation.scenarios",
    "run_study": "studies.runner",
    "Dataset": "tables.dataset",
}
PACKAGES = (
    "assessment", "datasets", "diagnostics", "efficiencies", "inference", "learners", "methods",
    "nuisance", "options", "randomness", "report", "selection", "simulation", "tables",
)  # fmt: skip
MODULES = {"theory": "efficiencies.theory", **{name: name for name in PACKAGES}}


def __getattr__(name: str) -> Any:
    """Return what takes a while to import when it is first asked for."""
    if name in MODULES:
        found = import_module(f"covaria.{MODULES[name]}")
    elif name in LATER:
        found = getattr(import_module(f"covaria.{LATER[name]}"), name)
    else:
        raise AttributeError(f"module 'covaria' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *LATER, *MODULES})


def _moved(name: str) -> Any:
    if name != "adapters":
        raise AttributeError(f"module 'covaria.independence' has no attribute {name!r}")
    return import_module("covaria.assessment.adapters")


# Where the adapters for causal searches were before they moved beside `assess`.
sys.modules["covaria.independence"] = ModuleType("covaria.independence")
sys.modules["covaria.independence"].__dict__.update(
    __path__=[f"{__path__[0]}/assessment"], __getattr__=_moved
)
