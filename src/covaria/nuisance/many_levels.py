"""Categories of many levels: residuals that go with them are taken less their means by level."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from covaria.tables.arrays import Rows
from covaria.tables.dataset import Dataset
from covaria.tables.encoding import goes_with, widening, within
from covaria.tables.layout import Feature

Array = NDArray[np.float64]
# Where what is left of y and of a feature stands in the arrays.
Parts = list[tuple[str, int | list[int]]]


def less_means(
    data: Dataset, rows: Rows, arrays: Mapping[str, Array]
) -> tuple[dict[str, Array], Array, dict[int, Rows]]:
    """Return residuals less their means within the levels that one of them goes with.

    Beside them comes what that costs each feature's product, and the levels of each feature for
    which they were those of one category.
    """
    found = {name: array.copy() for name, array in arrays.items()}
    widen, within_one = np.ones(data.n_features), {}
    for j, feature in enumerate(data.features):
        parts = [(name, at) for name, at in _of_feature(j, feature) if name in found]
        codes = _codes(data, rows, j, found, parts) if feature.columns else []
        if not codes:
            continue
        for name, at in parts:
            values = found[name][:, at]
            flat = within(values.reshape(len(values), -1), codes)
            found[name][:, at] = flat.reshape(values.shape)
        widen[j] = widening(codes)
        if len(codes) == 1:
            within_one[j] = codes[0]
    return found, widen, within_one


def _codes(
    data: Dataset, rows: Rows, j: int, arrays: Mapping[str, Array], parts: Parts
) -> list[Rows]:
    """Return the levels of other features that y or a feature goes with."""
    others = [levels.code[rows] for levels in data.levels if levels.feature != j]
    if len(others) > 1:
        raw = _before_regressions(data, rows, data.features[j])
        return [code for code in others if goes_with(raw, code)]
    return [code for code in others if _goes_with(arrays, parts, code)]


def _before_regressions(data: Dataset, rows: Rows, feature: Feature) -> Array:
    """Return y and a feature's columns as they are in the table.

    Means by level of one category hold those of another that its rows share, in the regressions of
    x_j and y alike, and leave less than chance would: residuals do not tell which matter.
    """
    return np.column_stack([data.y[rows], data.X[rows][:, list(feature.tested)]])


def _of_feature(j: int, feature: Feature) -> Parts:
    """Return where what is left of y and of a feature stands."""
    of_x: Parts = [
        ("f_given_rest", j),
        ("square_given_rest", j),
        ("x_given_rest", list(feature.tested)),
    ]
    return [("y_given_rest", j), *of_x]


def _goes_with(arrays: Mapping[str, Array], parts: Parts, code: Rows) -> bool:
    """Return whether what is left of y or of a feature goes with the levels."""
    return any(goes_with(arrays[name][:, at].reshape(len(code), -1), code) for name, at in parts)
