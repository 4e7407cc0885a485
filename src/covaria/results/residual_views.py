"""What is left of one feature and of y, as pages and pictures show it; and effects by fold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covaria.errors import short
from covaria.results.result import Result

Array = NDArray[np.float64]
GIVEN = "given the other features"

MOST_POINTS = 400
# All panels together draw at most about this many points, which keeps the page small.
POINTS_IN_ALL = 50_000
FEWEST_POINTS = 80
BINS = 8


@dataclass(frozen=True)
class ResidualPair:
    """What is left of one feature and of y, given the other features, for every tested row."""

    x: Array
    y: Array
    x_label: str
    y_label: str

    def thinned(self, most: int) -> NDArray[np.intp]:
        """Return evenly spaced row numbers, at most this many."""
        return thinned(len(self.x), most)


def residual_pair(result: Result, j: int) -> ResidualPair | None:
    """Return a feature's residuals, or nothing where they were not fitted.

    Of a feature of several columns it is the combination that goes best with y; of several
    classes the one that goes best with the feature.
    """
    x_all, y_all = (result.residuals.get(name) for name in ("x_given_rest", "y_given_rest"))
    columns = result.about.columns[j]
    if x_all is None or y_all is None or not columns:
        return None
    x, y = x_all[:, columns], y_all[:, j].reshape(len(y_all), -1)
    k = int(np.argmax(_strength(x, y)))
    name, target = short(result.features[j], 40), short(str(result.about.target), 40)
    if y.shape[1] > 1:
        names = result.about.targets or [f"class {one}" for one in result.about.classes[1:]]
        target = short(names[k], 36)
    if len(columns) == 1:
        return ResidualPair(x[:, 0], y[:, k], f"{name} {GIVEN}", f"{target} {GIVEN}")
    weights = np.linalg.lstsq(x - x.mean(axis=0), y[:, k] - y[:, k].mean(), rcond=None)[0]
    label = f"combination of the {len(columns)} columns of {name}, {GIVEN}"
    return ResidualPair(np.asarray(x @ weights), y[:, k], label, f"{target} {GIVEN}")


def _strength(x: Array, y: Array) -> Array:
    """Return how much each class's residuals go with those of the feature."""
    products = x.T @ y
    spread = np.sqrt((y**2).sum(axis=0))
    return np.asarray((products**2).sum(axis=0) / np.where(spread > 0, spread, 1.0) ** 2)


def points_each(n_features: int) -> int:
    """Return how many points a panel may draw.

    >>> points_each(10), points_each(500)
    (400, 100)
    """
    return int(np.clip(POINTS_IN_ALL // max(1, n_features), FEWEST_POINTS, MOST_POINTS))


def thinned(n_rows: int, most: int) -> NDArray[np.intp]:
    """Return evenly spaced row numbers, at most this many."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, most)).round().astype(np.intp))


@dataclass(frozen=True)
class Curve:
    """The mean of y's residuals in bins of the feature's, with its standard error."""

    at: Array
    mean: Array
    error: Array


def binned(left: ResidualPair, bins: int = BINS) -> Curve | None:
    """Return the mean of y's residuals along the feature's, in bins of as many rows each."""
    if np.ptp(left.x) == 0 or len(left.x) < 4 * bins:
        return None
    order = np.argsort(left.x, kind="stable")
    parts = np.array_split(order, bins)
    at, mean = (np.array([values[part].mean() for part in parts]) for values in (left.x, left.y))
    error = np.array([left.y[part].std() / np.sqrt(len(part)) for part in parts])
    keep = np.r_[True, np.diff(at) > 0]  # a column of few values puts bins on one spot
    return Curve(at[keep], mean[keep], error[keep]) if keep.sum() > 1 else None


def effects_by_fold(result: Result) -> dict[str, Array]:
    """Return {method: (folds, features)}: the effect in each fold, where folds are known."""
    fold = result.residuals.get("fold")
    if fold is None or len(fold) != len(result.rows) or result.about.folds < 2:
        return {}
    members = [fold == k for k in range(int(result.about.folds))]
    if result.about.repeats > 1 or not all(part.any() for part in members):
        return {}
    units = _units(result)
    return {
        name: np.array([scores[part].mean(axis=0) for part in members]) / units[name]
        for name, scores in result.scores.items()
    }


def _units(result: Result) -> dict[str, Array]:
    """Return what turns each method's estimates into effects, 1 where the effect is zero."""
    units = {}
    for name in result.scores:
        own = result.table[result.table["method"] == name]
        estimate, effect = (own[column].to_numpy(float) for column in ("estimate", "effect"))
        known = np.isfinite(estimate) & np.isfinite(effect) & (effect != 0) & (estimate != 0)
        units[name] = np.divide(estimate, effect, out=np.ones_like(effect), where=known)
    return units


def folds_of(by_fold: dict[str, Array], j: int) -> dict[str, list[float]]:
    """Return a feature's effects in each fold, by method, where they are numbers and not all 0."""
    return {
        name: values[:, j].tolist()
        for name, values in by_fold.items()
        if np.isfinite(values[:, j]).all() and values[:, j].any()
    }
