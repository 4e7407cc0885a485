"""Which features really matter, for any model, with a p-value you can defend.

>>> import residua
>>> X, y = residua.draw("additive", n_rows=300, seed=0)
>>> result = residua.assess(X, y, learner="linear", methods=["gcm", "loco"], seed=0)
>>> "x7" in result.selected["gcm"]
True
"""

from residua import learners
from residua.assess import assess
from residua.data import Dataset
from residua.efficiency import relative_efficiency, relative_variability
from residua.errors import InputError, MissingExtra
from residua.methods import METHODS
from residua.report import write_report
from residua.residuals import Residuals, fit_residuals
from residua.result import Result
from residua.study.scenarios import draw, scenario

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "Dataset",
    "InputError",
    "MissingExtra",
    "Residuals",
    "Result",
    "assess",
    "draw",
    "fit_residuals",
    "learners",
    "relative_efficiency",
    "relative_variability",
    "scenario",
    "write_report",
]
