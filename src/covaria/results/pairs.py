"""Which features act together: a test for every pair, from residuals that are there already.

With ξ_j and ξ_k what the other features leave of two features and ε what is left of y, the product
ξ_j ξ_k goes with ε where the effect of one depends on the other:

    p = ξ_j ξ_k,  e = (ε_j + ε_k)/2,  each less its regression on 1, ξ_j, ξ_k
    score of a row: p · e

If y is a sum a(all but x_j) + b(all but x_k) + noise, the mean score is 0 where E[ξ_j ξ_k | all but
x_j] and E[ξ_j ξ_k | all but x_k] are constants, whatever a, b and the models of y are: where the
two features are independent given the others, or all are jointly normal. Squares are not taken off
as well: those of ξ_j do depend on the others, and would let effects of one feature in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError, did_you_mean, short, text_of
from covaria.inference.corrections import adjust
from covaria.inference.tests import (
    freedom_of,
    normal_quantile,
    quantile,
    standard_error,
    student_p,
)
from covaria.nuisance.residuals import Residuals
from covaria.nuisance.splits import describe
from covaria.options.checks import whole
from covaria.results.result import Result

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Whole = NDArray[np.intp]

# More pairs than this take minutes: name the features.
MOST_PAIRS = 200_000
# Residuals below this share of the largest are rounding.
ROUNDING = 1e-12
# What an interaction must be found with, for its share to be called detectable.
POWER = 0.8


@dataclass(frozen=True)
class _Left:
    """What is left of features of one column each, and of y without each of them."""

    names: list[str]
    x: Array
    y: Array
    weights: Array
    clusters: Whole | None
    variance: float


def interactions(
    result: Result | Residuals,
    top: int = 20,
    *,
    features: Sequence[str] | None = None,
    correction: str | None = None,
) -> pd.DataFrame:
    """Return the pairs of features that act together, the clearest first; nothing is fitted.

    All pairs of features of one column are tested, or of those in `features`; `top` of them are
    returned. `share` is what their product explains of Var(Y), `correlation` its sign and strength,
    `p_adjusted` is adjusted for all pairs tested, and `selected` says whether it is below the
    result's alpha. `detectable` is the share that the pair's product must explain to be found with
    a chance of 80% among as many: smaller interactions are missed.

    >>> import covaria
    >>> X, y = covaria.draw("interaction", n_rows=1000, seed=0)
    >>> result = covaria.assess(X, y, learner="linear", methods=["gcm"], check=False)
    >>> covaria.interactions(result, top=1).columns[:3].tolist()
    ['feature', 'other', 'share']
    """
    top = whole("top", top, 1)
    left = _only(_left_of(result), features)
    pairs = list(combinations(range(len(left.names)), 2))
    if len(pairs) > MOST_PAIRS:
        raise InputError(
            f"{len(left.names):,} features have {len(pairs):,} pairs, more than {MOST_PAIRS:,}. "
            "Name those of interest: interactions(result, features=[…])."
        )
    kept = result.about.correction if isinstance(result, Result) else "bh"
    alpha = result.about.alpha if isinstance(result, Result) else 0.05
    table = _tested(left, pairs, alpha)
    table["p_adjusted"] = adjust(table["p_value"].to_numpy(float), correction or kept)
    table["selected"] = table["p_adjusted"] < alpha
    order = ["feature", "other", "share", "correlation", "statistic", "p_value", "p_adjusted"]
    table = table[[*order, "selected", "detectable"]].sort_values("p_value", kind="stable")
    return table.head(top).reset_index(drop=True)


def _left_of(result: object) -> _Left:
    """Return the residuals of a run, or raise a sentence."""
    if isinstance(result, Result):
        left, names, columns = result.residuals, result.features, result.about.columns
        in_sample = result.about.splits == describe("none")
        weights, kept = left.get("weight"), left.get("cluster")
        clusters = None if kept is None else kept.astype(np.intp)
        variance = result.about.variance
        rows = result.table[result.table["method"] == "gcm"]
        fine = set(rows.loc[rows["status"] == "ok", "feature"]) if len(rows) else set(names)
    elif isinstance(result, Residuals):
        left, names = result.arrays, result.data.names
        columns = [list(feature.tested) for feature in result.data.features]
        in_sample, fine = result.n_train == 0, set(names)
        weights, clusters, variance = result.weights, result.clusters, result.data.target_variance
    else:
        raise InputError("interactions takes a result: what covaria.assess returned.")
    if not {"x_given_rest", "y_given_rest"} <= set(left):
        raise InputError(
            "Pairs are tested by what is left of the features and of y. Use assess with gcm among "
            "its methods."
        )
    if in_sample:
        raise InputError("Pairs are tested on rows that models have not seen. Use splits=5.")
    if left["y_given_rest"].ndim > 2:
        raise InputError("Pairs are tested for a target of numbers or of two classes.")
    x, y = left["x_given_rest"], left["y_given_rest"]
    single = [
        j
        for j, own in enumerate(columns)
        if len(own) == 1 and x[:, own[0]].any() and names[j] in fine
    ]
    return _Left(
        [names[j] for j in single],
        x[:, [columns[j][0] for j in single]],
        y[:, single],
        np.ones(len(x)) if weights is None else weights,
        clusters,
        variance or float(np.mean(y**2)),
    )


def _only(left: _Left, features: Sequence[str] | None) -> _Left:
    """Return what is left of some features, or raise where there is no pair of them."""
    wanted = left.names if features is None else [text_of(name) for name in features]
    for name in wanted:
        if name not in left.names:
            raise InputError(
                f"There is no feature '{short(name)}' of one column that varies given the others."
                f"{did_you_mean(name, left.names)}"
            )
    at = [left.names.index(name) for name in dict.fromkeys(wanted)]
    if len(at) < 2:
        raise InputError(
            "A pair needs two features of one column each: numbers without gaps, or flags."
        )
    return _Left(
        [left.names[j] for j in at], left.x[:, at], left.y[:, at], left.weights, left.clusters,
        left.variance,
    )  # fmt: skip


def _tested(left: _Left, pairs: list[tuple[int, int]], alpha: float) -> pd.DataFrame:
    """Return the test of every pair."""
    import pandas as pd

    found = np.array([_pair(left, j, k) for j, k in pairs])
    root, error, r = found.T
    freedom = freedom_of(left.clusters)
    statistic = np.divide(root, error, out=np.zeros_like(root), where=error > 0)
    p_value = np.where(error > 0, student_p(statistic, "two-sided", freedom), 1.0)
    least = float(normal_quantile(np.array([alpha / (2 * len(pairs))]))[0])
    return pd.DataFrame(
        {
            "feature": [left.names[j] for j, _ in pairs],
            "other": [left.names[k] for _, k in pairs],
            "share": root**2,
            "correlation": r,
            "statistic": statistic,
            "p_value": p_value,
            "detectable": np.minimum(1.0, ((least + quantile(POWER)) * error) ** 2),
        }
    )


def _pair(left: _Left, j: int, k: int) -> tuple[float, float, float]:
    """Return the root of the share that a pair's product explains, its error, and a correlation."""
    x, z = (_scaled(left.x[:, at], left.weights) for at in (j, k))
    alone = np.column_stack([np.ones_like(x), x, z])
    both = np.column_stack([x * z, (left.y[:, j] + left.y[:, k]) / 2])
    product, y = _less(alone, both, left.weights).T
    size, of_y = (float(np.mean(left.weights * part**2)) for part in (product, y))
    if size <= ROUNDING or of_y <= 0:
        return 0.0, 0.0, 0.0
    scores = left.weights * product * y / np.sqrt(size * left.variance)
    error = float(standard_error(scores[:, None], left.clusters)[0])
    root = float(scores.mean())
    return root, error, root * float(np.sqrt(left.variance / of_y))


def _scaled(values: Array, weights: Array) -> Array:
    return np.asarray(values / np.sqrt(np.mean(weights * values**2)))


def _less(basis: Array, values: Array, weights: Array) -> Array:
    """Return what a regression on a basis leaves of values."""
    root = np.sqrt(weights)[:, None]
    return np.asarray(values - basis @ np.linalg.lstsq(root * basis, root * values, rcond=None)[0])
