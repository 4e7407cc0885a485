"""How good each regression is, what it left undone, and when to warn of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from covaria.diagnostics.centring import centring
from covaria.diagnostics.residual_checks import LIKENESS, ResidualCheck
from covaria.errors import short
from covaria.learners import Learner
from covaria.nuisance.residuals import Residuals
from covaria.options.policy import Policy, threshold
from covaria.tables.arrays import column_blocks
from covaria.tables.tidy import Tidy

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
COLUMNS = [
    "regression", "feature", "learner", "r2",
    "residual_r2", "residual_r2_p", "bias", "learning_curve_gap", "fold_ratio", "outlier_share",
    "mean_shift", "kind", "warning",
]  # fmt: skip
# What is not known of a regression, or not said.
EMPTY: dict[str, Any] = dict.fromkeys(COLUMNS, np.nan) | {"kind": "", "warning": ""}
SET_BY = "docs/validity.md#are-the-warnings-right: cells that fail warn, cells that hold seldom do"


@dataclass(frozen=True)
class QualityPolicy(Policy):
    """When a nuisance regression is warned of.

    poor, sure         share of its residuals that the other features still explain, and its p-value
    shifted, suspect   shift of GCM in standard errors, and the p-values on both sides
    gap                share of the residual variance that more rows would remove
    ratio              typical residual of the worst fold over that of the best
    outliers           share of the residual variance of rows `far` times the typical residual off
    outermost          share of a feature's values at either end that may be that far off
    in_common          standard errors that PCM is off by if both its regressions miss the same
    fewest             rows of a fold, or values of a column, that tell of these
    determined         R² from the other features, above which little is left to test
    """

    poor: float = threshold(0.03, SET_BY)
    sure: float = threshold(0.01, SET_BY)
    shifted: float = threshold(0.75, SET_BY)
    suspect: float = threshold(0.1, SET_BY)
    gap: float = threshold(0.3, SET_BY)
    ratio: float = threshold(3.0, SET_BY)
    outliers: float = threshold(0.15, SET_BY)
    far: float = threshold(10.0, "formula: 6.7 standard deviations of normal residuals")
    outermost: float = threshold(0.01, "convention: a hundredth at either end")
    in_common: float = threshold(2.5, SET_BY)
    fewest: int = threshold(20, "judgement, not measured: medians of fewer rows are noise")
    determined: float = threshold(0.98, "formula: standard errors 7 times as wide, 1/√(1 − R²)")


POLICY = QualityPolicy()
# The kinds of warnings, as findings have them.
POORLY, TAKEN, NOT_A_MEAN = "poor_regression", "determined", "not_a_mean"


class QualityColumns(Tidy):
    """The table of regressions' quality, until somebody reads it."""

    def frame(self) -> pd.DataFrame:
        """Return the table as a DataFrame that knows the names its columns had."""
        from covaria.diagnostics.table import Quality

        return Quality(super().frame())


def quality_table(
    fitted: Sequence[Residuals], learner: Learner, left: ResidualCheck | None
) -> QualityColumns:
    """Return a row for every regression: who fitted it, how well, and what to beware of."""
    rows = []
    centred, spreads, served = centring(fitted[0]), _spreads(fitted[0]), str(learner)
    names = {name: j for j, name in enumerate(fitted[0].data.names)}
    for (regression, feature), r2 in _explained(fitted).items():
        j, of_x = names.get(feature, -1), regression == "x given rest"
        row = {**EMPTY, "regression": regression, "feature": feature, "r2": r2}
        row["learner"] = _learner_of(fitted[0], regression, j, served)
        if left is not None and j >= 0:
            row["residual_r2"] = float((left.x if of_x else left.y)[j])
            row["residual_r2_p"] = float((left.x_p if of_x else left.y_p)[j])
            row["bias"] = float(left.bias[j])
        if of_x:
            row["learning_curve_gap"] = learning_curve_gap(fitted[0], j)
            row["fold_ratio"], row["outlier_share"] = spreads[j]
            row["kind"], row["warning"] = _warning(row, fitted[0], left, j)
        mean = centred.get((regression.replace(" ", "_"), j)) if centred else None
        if mean is not None:
            row["mean_shift"] = mean.off
            if mean.is_off:
                row["kind"], row["warning"] = NOT_A_MEAN, _off_warning(row, fitted[0].data.target)
        rows.append(row)
    return QualityColumns({name: [row[name] for row in rows] for name in COLUMNS})


def learning_curve_gap(residuals: Residuals, j: int, *, of_y: bool = False) -> float:
    """Return the share of what is left of a feature, or of y without it, that more rows would take.

    It comes from models that learned from half the rows; NaN where there are none.
    """
    curves = residuals.learning_curves
    return np.nan if curves is None else float(curves[j, int(of_y)])


def missed_in_common(residuals: Residuals, left: ResidualCheck, j: int) -> float:
    """Return how far PCM could be off, in standard errors: what both its regressions leave undone.

    With shares s and t of both residuals still to be learned, their product is off by √(st) of
    their spread, if they miss the same.
    """
    if left.f is None or left.f_p is None or not left.f_p[j] < POLICY.sure:
        return 0.0
    of_y = max(float(left.y[j]), np.nan_to_num(learning_curve_gap(residuals, j, of_y=True)))
    return float(np.sqrt(len(residuals.rows) * left.f[j] * of_y))


def fold_ratio(residuals: Residuals, j: int) -> float:
    """Return how many times as far off a feature's regression is in the worst fold as in the best.

    Medians are compared, of columns that take many values: a few rows far off do not count.
    """
    return float(_fold_ratios(residuals, *_widest_columns(residuals, [j]))[0])


def outlier_share(residuals: Residuals, j: int) -> float:
    """Return the share of what is left of a feature that comes from ordinary values far off.

    Where a value is ordinary the regression is to blame: it was asked where it had seen nothing.
    """
    return float(_outlier_shares(residuals, *_widest_columns(residuals, [j]))[0])


def _spreads(residuals: Residuals) -> list[list[float]]:
    """Return the fold ratio and the outlier share of every feature, NaN where there is none."""
    found = np.full((residuals.data.n_features, 2), np.nan)
    if "x_given_rest" not in residuals.arrays:
        return found.tolist()
    known = [j for j, feature in enumerate(residuals.data.features) if feature.tested]
    for some in column_blocks(len(residuals.rows), len(known)):
        columns = _widest_columns(residuals, known[some])
        found[known[some], 0] = _fold_ratios(residuals, *columns)
        found[known[some], 1] = _outlier_shares(residuals, *columns)
    return found.tolist()


def _fold_ratios(residuals: Residuals, left: Array, values: Array, few: Mask) -> Array:
    """Return for each column how many times as far off the worst fold is as the best."""
    folds = [residuals.fold == k for k in range(residuals.n_folds)]
    large = [own for own in folds if own.sum() >= POLICY.fewest]
    if len(large) < 2:
        return np.full(len(few), np.nan)
    weights = residuals.weights
    typical = np.array(
        [_quantiles(left[own], None if weights is None else weights[own], 0.5) for own in large]
    )
    most, least = typical.max(axis=0), typical.min(axis=0)
    return np.where(few, np.nan, most / np.maximum.reduce([least, 1e-12 * most, 0 * most + 1e-300]))


def _outlier_shares(residuals: Residuals, left: Array, values: Array, few: Mask) -> Array:
    """Return for each column the share of squares of ordinary values that are far off."""
    weights = residuals.weights
    is_far = left > POLICY.far * _quantiles(left, weights, 0.5)
    some = np.flatnonzero(is_far.any(axis=0) & ~few)
    found = np.where(few | ~left.any(axis=0), np.nan, 0.0)
    if not len(some):
        return found
    values, is_far, left = values[:, some], is_far[:, some], left[:, some]
    low, high = (
        _quantiles(values, weights, level) for level in (POLICY.outermost, 1 - POLICY.outermost)
    )
    is_far &= (values >= low) & (values <= high)
    counted = _ones_or(weights, len(left))
    for at, place in enumerate(some.tolist()):
        squares, far = np.square(left[:, at]), is_far[:, at]
        if (total := float(counted @ squares)) > 0:
            found[place] = float(counted[far] @ squares[far]) / total
    return found


def _ones_or(weights: Array | None, n_rows: int) -> Array:
    return np.ones(n_rows) if weights is None else weights


def _quantiles(columns: Array, weights: Array | None, level: float) -> Array:
    """Return a quantile of each column by weights: where these are all alike, the usual one."""
    if weights is None or np.ptp(weights) == 0:
        return np.asarray(np.quantile(columns, level, axis=0))
    return np.array([_quantile(column, weights, level) for column in columns.T])


def _quantile(values: Array, weights: Array, level: float) -> float:
    """Return a quantile by weights."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, level * reached[-1])])


def _take_few(values: Array) -> Mask:
    """Return which columns take few values; the first rows tell of most that they take many."""
    few = np.ones(values.shape[1], dtype=bool)
    for most in (3 * POLICY.fewest, 1000):
        ordered = np.sort(values[:most, few], axis=0)
        few[few] = 1 + (ordered[1:] != ordered[:-1]).sum(axis=0) < POLICY.fewest
    return few


def _widest_columns(residuals: Residuals, features: Sequence[int]) -> tuple[Array, Array, Mask]:
    """Return how far off each row is, and its value, of each feature's column that is off most.

    And of which of them rows take few values.
    """
    data, columns = residuals.data, [_widest_column(residuals, j) for j in features]
    left = np.abs(residuals.left_of(columns))
    values = np.asfortranarray(data.X[:, columns][residuals.rows])
    return left, values, _take_few(values)


def _widest_column(residuals: Residuals, j: int) -> int:
    tested = residuals.data.features[j].tested
    if len(tested) == 1:
        return tested[0]
    x = residuals.columns_of(j)
    weights = _ones_or(residuals.weights, len(x))
    return tested[int(np.argmax(weights @ (x - np.average(x, axis=0, weights=weights)) ** 2))]


def _warning(
    row: dict[str, Any], residuals: Residuals, left: ResidualCheck | None, j: int
) -> tuple[str, str]:
    """Return what to beware of in a feature's tests, as a kind and a sentence, or nothing."""
    name, r2 = f"'{short(row['feature'])}'", row["r2"]
    if r2 > POLICY.determined:
        told = f"{name} is {100 * r2:.1f}% determined by the others: little can be said of it."
        return TAKEN, told
    if (
        row["learning_curve_gap"] >= POLICY.gap
        or row["fold_ratio"] >= POLICY.ratio
        or row["outlier_share"] >= POLICY.outliers
    ):
        return POORLY, f"The regression of {name} wants more rows: its p-values may be too small."
    if left is None:
        return "", ""
    is_poor = left.x[j] >= POLICY.poor and left.x_p[j] < POLICY.sure
    on_both_sides = max(left.x_p[j], left.y_p[j]) < POLICY.suspect
    is_seen = on_both_sides or left.bias_p[j] < LIKENESS.sure
    is_shifted = abs(left.bias[j]) >= POLICY.shifted and is_seen
    if is_poor or is_shifted:
        return POORLY, (
            f"The regression of {name} on the other features is poor: its p-values may be too "
            "small."
        )
    if missed_in_common(residuals, left, j) >= POLICY.in_common:
        return POORLY, (
            f"The regressions of PCM's function of {name} and of y are poor: its p-values may be "
            "too small."
        )
    return "", ""


def _off_warning(row: dict[str, Any], target: str) -> str:
    """Return that a learner misses the mean, and of what."""
    name = row["feature"] if row["regression"] == "x given rest" else target
    return (
        f"The learner does not predict the mean of '{short(name)}': it is off by "
        f"{abs(row['mean_shift']):.2f} standard deviations of its residuals."
    )


def _learner_of(residuals: Residuals, regression: str, j: int, named: str) -> str:
    """Return the learner that served most folds of a regression, or the one that was named."""
    chosen = residuals.learners.get((regression.replace(" ", "_"), j))
    return Counter(chosen).most_common(1)[0][0] if chosen else named


def _explained(fitted: Sequence[Residuals]) -> dict[tuple[str, str], float]:
    """Return how much each regression explains, by the median of the repeats."""
    found: dict[tuple[str, str], list[float]] = {}
    for residuals in fitted:
        for key, value in _explained_once(residuals):
            found.setdefault(key, []).append(value)
    return {
        key: float(np.median(all_)) if len(all_) > 1 else all_[0] for key, all_ in found.items()
    }


def _explained_once(residuals: Residuals) -> Iterable[tuple[tuple[str, str], float]]:
    data, arrays, failures = residuals.data, residuals.arrays, residuals.failures

    def share(loss: Array, of: float) -> float:
        return float(1 - np.average(loss, weights=residuals.weights) / of)

    if "loss_given_all" in arrays and ("y_given_all", -1) not in failures:
        yield ("y given all", ""), share(arrays["loss_given_all"], residuals.mean_loss)
    of_y, of_x = _losses_of_y(residuals), _losses_of_columns(residuals)
    for j, feature in enumerate(data.features):
        if not feature.columns:
            continue
        if of_y and ("y_given_rest", j) not in failures:
            yield ("y given rest", feature.name), 1 - of_y[j] / residuals.mean_loss
        if of_x and ("x_given_rest", j) not in failures:
            columns = list(feature.tested)
            if len(columns) == 1:
                yield ("x given rest", feature.name), 1 - of_x[columns[0]]
                continue
            loss = (arrays["x_given_rest"][:, columns] ** 2 / data.variance[columns]).mean(axis=1)
            yield ("x given rest", feature.name), share(loss, 1.0)


def _losses_of_y(residuals: Residuals) -> list[float]:
    """Return the mean loss of y without each feature, or nothing where that was not fitted."""
    losses = residuals.arrays.get("loss_given_rest")
    return [] if losses is None else _means(losses, residuals.weights).tolist()


def _losses_of_columns(residuals: Residuals) -> list[float]:
    """Return the share of each column's variance that is left, or nothing without regressions."""
    left, variance = residuals.arrays.get("x_given_rest"), residuals.data.variance
    if left is None:
        return []
    blocks = column_blocks(*left.shape)
    means = [_means(left[:, some] ** 2 / variance[some], residuals.weights) for some in blocks]
    return [mean for own in means for mean in own.tolist()]


def _means(columns: Array, weights: Array | None) -> Array:
    """Return the mean of each column, added up as if it were alone."""
    return np.asarray(np.average(np.asfortranarray(columns), axis=0, weights=weights))
