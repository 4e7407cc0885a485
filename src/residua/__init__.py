"""Which features really matter, for any model, with a p-value you can defend.

>>> import residua
>>> X, y = residua.draw("additive", n_rows=300, seed=0)
>>> result = residua.assess(X, y, learner="linear", methods=["gcm", "loco"], seed=0)
>>> "x7" in result.selected["gcm"]
True
"""

from typing import TYPE_CHECKING, Any

from residua import interrupts as interrupts  # the first of all imports
from residua import learners
from residua.assess import assess
from residua.data import Dataset
from residua.efficiency import (
    efficiency,
    plan,
    power_at,
    relative_efficiency,
    relative_variability,
)
from residua.errors import InputError, MissingExtra
from residua.methods import METHODS
from residua.model import Model, Term
from residua.refit import Refit, refit
from residua.report import write_report
from residua.residuals import Residuals, fit_residuals
from residua.result import Result
from residua.stability import Stability, stability
from residua.study.scenarios import draw, scenario

if TYPE_CHECKING:
    from residua import datasets
    from residua.efficiency import theory
    from residua.selector import Selector, StabilitySelector
    from residua.study.runner import run_study

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "Dataset",
    "InputError",
    "MissingExtra",
    "Model",
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
    "learners",
    "plan",
    "power_at",
    "refit",
    "relative_efficiency",
    "relative_variability",
    "run_study",
    "scenario",
    "stability",
    "theory",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Return what takes a while to import when it is first asked for."""
    if name == "datasets":
        from importlib import import_module

        return import_module("residua.datasets")
    if name == "theory":
        from residua.efficiency import theory

        return theory
    if name in ("Selector", "StabilitySelector"):
        from residua import selector

        return getattr(selector, name)
    if name == "run_study":
        from residua.study.runner import run_study

        return run_study
    raise AttributeError(f"module 'residua' has no attribute {name!r}")
