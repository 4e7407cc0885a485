"""Simulation studies: the paper's models, and what the tests make of them."""

from typing import TYPE_CHECKING, Any

from residua.study.scenarios import add_scenario, draw, scenario

if TYPE_CHECKING:
    from residua.study.on_dask import assess_on_dask
    from residua.study.results import Study
    from residua.study.runner import merge_stores, read_study, resume_study, run_study

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

        return getattr(import_module(f"residua.study.{_HOME[name]}"), name)
    raise AttributeError(f"module 'residua.study' has no attribute {name!r}")
