"""What a run was asked for: kept as given, stored as far as it can be, printed as Python."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from covaria import learners
from covaria.learners import LEARNERS, Learner, Prefit, from_settings
from covaria.results.packing import pack, unpack

# How a value that json has no form for is kept.
LEARNER, ARRAY, WORDS, IMPORTS = "learner", "array", "words", "imports"


@dataclass(frozen=True)
class Unstored:
    """What stood for a setting that a file cannot keep, such as an object of another library."""

    words: str
    imports: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return self.words


def to_stored(value: object) -> object:
    """Return a setting as json can hold it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Learner) and value.name in LEARNERS and not isinstance(value, Prefit):
        return {LEARNER: value.settings()}
    if isinstance(value, Mapping):
        return {"mapping": [[to_stored(key), to_stored(one)] for key, one in value.items()]}
    if isinstance(value, (list, tuple)):
        return [to_stored(one) for one in value]
    array = _as_array(value)
    if array is not None and array.dtype.kind in "biuf":
        return {ARRAY: pack(array)}
    if array is not None:
        return [str(one) for one in array.tolist()]
    return {WORDS: _written("", value), IMPORTS: _imports(value)}


def from_stored(stored: object) -> object:
    """Return the setting that `to_stored` described."""
    if isinstance(stored, list):
        return [from_stored(one) for one in stored]
    if not isinstance(stored, Mapping):
        return stored
    if LEARNER in stored:
        return from_settings(stored[LEARNER])
    if ARRAY in stored:
        return unpack(stored[ARRAY])
    if "mapping" in stored:
        return {from_stored(key): from_stored(one) for key, one in stored["mapping"]}
    return Unstored(str(stored[WORDS]), tuple(map(str, stored.get(IMPORTS, ()))))


def _as_array(value: object) -> NDArray[np.generic] | None:
    """Return a column of values as an array, None for anything else."""
    if isinstance(value, range) or hasattr(value, "__array__"):
        array = np.asarray(value)
        is_table = array.ndim == 2 and array.dtype.kind in "biuf"
        return array if array.ndim == 1 or is_table else None
    return None


def as_python(
    settings: Mapping[str, object], usual: Mapping[str, object], formula: str = ""
) -> str:
    """Return Python that asks for the same again; long arrays go by the name of their setting.

    A prefit model goes by the name of `model`, the table of a formula by that of `frame`.
    """
    given = {
        name: value
        for name, value in settings.items()
        if name == "seed" or name not in usual or not _is(value, usual[name])
    }
    written = {name: _written(name, value) for name, value in given.items()}
    lines = sorted({line for value in given.values() for line in _imports(value)})
    table = [repr(formula), "frame"] if formula else ["X", "y"]
    call = ", ".join([*table, *(f"{name}={text}" for name, text in written.items())])
    return "\n".join([*lines, f"covaria.assess({call})"])


def _is(value: object, usual: object) -> bool:
    return type(value) is type(usual) and value == usual


def _written(name: str, value: object) -> str:
    """Return a setting as Python, or its name where it is a column of values or rows of folds."""
    is_rows = isinstance(value, (list, tuple)) and not all(isinstance(v, str) for v in value)
    if isinstance(value, Mapping) and name == "predictions":
        return name
    if callable(value) and not isinstance(value, (type, Learner)) and name == "loss":
        return name
    if _as_array(value) is not None or is_rows:
        return name
    if isinstance(value, Prefit):  # no text holds what it has learned
        value = replace(value, given=Unstored("model"))
    return " ".join(repr(value).split())


def _imports(value: object) -> list[str]:
    """Return what has to be imported before a value's own text can be run."""
    found = []
    if isinstance(value, Unstored):
        return list(value.imports)
    if isinstance(value, Learner):
        own = [kind for kind in vars(learners) if f"{kind}(" in repr(value) and kind[0].isupper()]
        found += [f"from covaria.learners import {kind}" for kind in own]
        value = [value.y, value.x] if isinstance(value, learners.Estimator) else []
    for one in value if isinstance(value, list) else [value]:
        found += _imports_of(one)
    return found


def _imports_of(value: object) -> list[str]:
    """Return the imports of an object of another library and of all that it is made of."""
    kind = type(value)
    if kind.__module__.split(".")[0] in ("builtins", "numpy", "pandas", "polars"):
        return []
    parts = value.get_params(deep=True).values() if hasattr(value, "get_params") else ()
    own = [f"from {_home(kind)} import {kind.__name__}"]
    return own + [
        line for part in parts if hasattr(part, "get_params") for line in _imports_of(part)
    ]


def _home(kind: type) -> str:
    """Return the shortest module that a class can be imported from."""
    module = kind.__module__
    public = ".".join(part for part in module.split(".") if not part.startswith("_"))
    found = inspect.getmodule(kind)
    return public if public != module and found is not None else module
