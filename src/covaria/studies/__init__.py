"""Simulation studies: the paper's models, and what the tests make of them."""

from typing import TYPE_CHECKING, Any

from covaria.simulation.scenarios import add_scenario, draw, scenario

if TYPE_CHECKING:
    from covaria.studies.on_dask import assess_on_dask
    from covaria.studies.results import Study
    from covaria.studies.runner import merge_stores, read_study, resume_study, run_study

__all__ = [
    "Study",
    "add_scenario",
    "assess_on_dask",
    "draw",
    "merge_stores",
    "read_study",
    "resume_study",
    "run_study",
    "scenario",
]
_HOME = {
    "Study": "results",
    "assess_on_dask": "on_dask",
    "merge_stores": "runner",
    "read_study": "runner",
    "resume_study": "runner",
    "run_study": "runner",
}


def __getattr__(name: str) -> Any:
    """Return what takes a while to import when it is first asked for."""
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(f"covaria.studies.{_HOME[name]}"), name)
    raise AttributeError(f"module 'covaria.studies' has no attribute {name!r}")
