"""Predictions that were made elsewhere, in the place of fits: checked once, at the door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError, did_you_mean, plural, short, text_of
from covaria.learners import Learner
from covaria.tables.dataset import Dataset

Array = NDArray[np.float64]
# Which regression a key of `predictions` stands for.
NEEDS = {"y|rest": "y_given_rest", "x|rest": "x_given_rest", "y|all": "y_given_all"}
# How far probabilities may be from adding up to 1.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Elsewhere(Learner):
    """Who made the predictions is not known."""

    name: ClassVar[str] = "predictions"
    about: ClassVar[str] = "predictions that were made elsewhere"

    @property
    def notes(self) -> tuple[str, ...]:
        return (
            "The predictions were made elsewhere: the tests are valid only if no model saw the "
            "rows that it predicts.",
        )

    def __str__(self) -> str:
        return "predictions made elsewhere"


@dataclass(frozen=True, eq=False)
class Given:
    """Predictions of all rows: of y on all columns, and of y and x without each feature."""

    full: Array | None
    y: Mapping[str, Array]
    x: Mapping[str, Array]

    @classmethod
    def of(cls, given: object, data: Dataset) -> Given:
        """Return the predictions, or raise a sentence that says which are wrong."""
        if not isinstance(given, Mapping) or not given:
            raise InputError(
                "predictions must be such as {'y|rest': {'price': array}, 'x|rest': {'price': "
                "array}}, of every row."
            )
        for key in given:
            if key not in NEEDS:
                hint = did_you_mean(key, NEEDS)
                raise InputError(f"predictions of '{short(text_of(key))}' are not known.{hint}")
        rest = {key: _by_feature(key, given.get(key, {}), data) for key in ("y|rest", "x|rest")}
        full = given.get("y|all")
        return cls(
            None if full is None else _of_y("predictions['y|all']", full, data),
            {name: _of_y(_where("y|rest", name), v, data) for name, v in rest["y|rest"].items()},
            {name: _of_x(name, values, data) for name, values in rest["x|rest"].items()},
        )

    @property
    def needs(self) -> frozenset[str]:
        """Return the regressions that there are predictions of."""
        parts = {"y_given_rest": self.y, "x_given_rest": self.x, "y_given_all": self.full}
        return frozenset(need for need, part in parts.items() if part is not None and len(part))

    def features(self, needs: frozenset[str]) -> list[str]:
        """Return the features that have all predictions that such tests need."""
        parts = {"y_given_rest": self.y, "x_given_rest": self.x}
        asked = [parts[need] for need in parts if need in needs]
        return [name for name in {**self.y, **self.x} if all(name in part for part in asked)]

    def predicted(self, need: str, feature: str) -> Array:
        """Return the predictions of one regression."""
        if need == "y_given_all":
            assert self.full is not None
            return self.full
        return self.y[feature] if need == "y_given_rest" else self.x[feature]


def _where(key: str, name: str) -> str:
    return f"predictions['{key}']['{short(name)}']"


def _by_feature(key: str, given: object, data: Dataset) -> dict[str, object]:
    """Return predictions by the names of features."""
    if not isinstance(given, Mapping):
        raise InputError(f"predictions['{key}'] must be such as {{'price': array}}.")
    found = {text_of(name): values for name, values in given.items()}
    for name in found:
        if name not in data.names:
            hint = did_you_mean(name, data.names)
            raise InputError(f"{_where(key, name)} is of no feature.{hint}")
    return found


def _numbers(what: str, values: object, n_rows: int) -> Array:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be numbers, one a row.") from None
    if array.ndim == 0 or len(array) != n_rows:
        count = plural(array.shape[0] if array.ndim else 1, "value")
        raise InputError(f"{what} has {count}, but the table has {n_rows:,} rows. Give one a row.")
    if not np.isfinite(array).all():
        raise InputError(f"{what} has gaps or infinite values. Give a prediction of every row.")
    return array


def _of_y(what: str, values: object, data: Dataset) -> Array:
    """Return predictions of numbers, (rows), or of classes, (rows, classes)."""
    array = _numbers(what, values, data.n_rows)
    if not data.classes:
        if array.ndim > 1 and array.shape[1:] != (1,):
            raise InputError(f"{what} must be one column: the target is numbers.")
        return array.reshape(-1)
    if data.n_classes == 2 and array.size == data.n_rows:
        array = np.column_stack([1 - array.reshape(-1), array.reshape(-1)])
    if array.shape != (data.n_rows, data.n_classes):
        names = ", ".join(f"'{short(one)}'" for one in data.classes)
        raise InputError(f"{what} must have a column of chances for each class: {names}.")
    if array.min() < 0 or np.abs(array.sum(axis=1) - 1).max() > ROUNDING:
        raise InputError(f"{what} must be chances from 0 to 1 that add up to 1.")
    return array


def _of_x(name: str, values: object, data: Dataset) -> Array:
    """Return predictions of a feature of one column, (rows, 1)."""
    what, feature = _where("x|rest", name), data.features[data.names.index(name)]
    array = _numbers(what, values, data.n_rows)
    if len(feature.tested) != 1 or feature.kind != "number" or array.size != data.n_rows:
        raise InputError(
            f"{what} must be one column, of a feature of numbers without gaps. Make 0 and 1 of "
            "classes, and drop or fill gaps first."
        )
    return array.reshape(-1, 1)
