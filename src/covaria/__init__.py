"""Which features really matter, for any model, with a p-value you can defend.

>>> import covaria
>>> X, y = covaria.draw("additive", n_rows=300, seed=0)
>>> result = covaria.assess(X, y, learner="linear", methods=["gcm", "loco"], seed=0)
>>> "x7" in result.selected["gcm"]
True
"""

import sys
from typing import TYPE_CHECKING, Any

from covaria.execution import interrupts as interrupts  # isort: skip  # the first of all

from covaria import assessment, learners
from covaria.assessment import assess, prepare
from covaria.efficiencies import (
    efficiency,
    plan,
    power_at,
    relative_efficiency,
    relative_variability,
)
from covaria.errors import InputError, MissingExtra
from covaria.learners import Prefit
from covaria.methods import METHODS
from covaria.nuisance.regressions import fit_residuals
from covaria.nuisance.residuals import Residuals
from covaria.report import write_report
from covaria.results.drawing import drawn_by
from covaria.results.equivalence import negligible
from covaria.results.pairs import interactions
from covaria.results.result import Result
from covaria.selection.refit import Refit, refit
from covaria.selection.stability import Stability, stability
from covaria.simulation.model import Model, Term
from covaria.simulation.scenarios import draw, scenario
from covaria.tables.dataset import Dataset

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from covaria import datasets
    from covaria.assessment.question import Independence, independence_test
    from covaria.efficiencies import theory
    from covaria.selection.selectors import Selector, StabilitySelector
    from covaria.studies.runner import run_study

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
# Where the adapters for causal searches were before they moved beside `assess`.
sys.modules["covaria.independence"] = assessment


def __getattr__(name: str) -> Any:
    """Return what takes a while to import when it is first asked for."""
    if name == "datasets":
        from importlib import import_module

        return import_module("covaria.datasets")
    if name == "theory":
        from covaria.efficiencies import theory

        return theory
    if name in ("Selector", "StabilitySelector"):
        from covaria.selection import selectors as selector

        return getattr(selector, name)
    if name in ("Independence", "independence_test"):
        from covaria.assessment import question

        return getattr(question, name)
    if name == "run_study":
        from covaria.studies.runner import run_study

        return run_study
    raise AttributeError(f"module 'covaria' has no attribute {name!r}")
