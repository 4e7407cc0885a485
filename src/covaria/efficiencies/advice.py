"""Which test to trust for each feature, from the scores of one Result.

The advice looks at the same rows as the tests. To act on it and keep the level, use the omnibus
p-value beside it, which pays for looking at both tests; never the smaller of the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from covaria.efficiencies.empirical import (
    UNDEFINED,
    Assumption,
    Estimate,
    FeatureResiduals,
    assumption_a,
    debiased_efficiency,
    interval,
    is_heavy,
    log_variability_influence,
    signal,
)
from covaria.efficiencies.index import UNKNOWN, FirstOrder, first_order
from covaria.efficiencies.policy import POLICY
from covaria.errors import InputError
from covaria.inference.tests import quantile
from covaria.methods import method_of
from covaria.options.checks import confidence_level, shown, whole
from covaria.randomness import stream
from covaria.results.result import Result

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

MOST_DRAWS = 1_000_000
GCM_LOCO = ["gcm", "loco"]
NO_ASSUMPTION = Assumption(UNDEFINED, np.nan, np.nan, np.nan)


def efficiency(
    result: Result,
    X: object = None,
    y: object = None,
    *,
    confidence: float = 0.95,
    bootstrap: int = 0,
    seed: int = 0,
) -> pd.DataFrame:
    """Return, for every feature and pair of tests, which needs fewer rows, and by how much.

    Parameters
    ----------
    result
        What `assess` found, with two or more tests.
    X
        The table that was assessed with learner `single_index`: GCM and LOCO are also compared by
        the slope of its link (`slope`, `are_index`).
    y
        Its target.
    confidence
        That of the intervals.
    bootstrap
        0 takes the delta method; a number of draws resamples rows, without a refit.
    seed
        Of the bootstrap.

    Returns
    -------
    A table with a row per feature and pair: `are` rows of the rival do what one row of the method
    does (`low`, `high`); `assumption_a`, above 1 where GCM beats LOCO, with its interval and its
    limits for little and much noise; `sigma`, the learner's error out of fold; `flag`, heavy tails;
    `omnibus_p`; and the advice in words. An efficiency that is not defined is NaN. With X and y
    also `slope`, the mean of η′β_j, and `are_index`, the efficiency by Theorem 5 with that η′.

    Examples
    --------
    >>> import covaria
    >>> X, y = covaria.draw("linear", n_rows=500, seed=0, noise=1.0)
    >>> table = covaria.efficiency(covaria.assess(X, y, learner="linear", methods="gcm,loco"))
    >>> table[["feature", "method", "rival"]].iloc[0].tolist()
    ['x1', 'gcm', 'loco']
    """
    import pandas as pd

    if not isinstance(result, Result):
        raise InputError(f"result={shown(result)} must be what covaria.assess returned.")
    tests = list(result.scores)
    if len(tests) < 2:
        raise InputError("An efficiency compares two tests; assess with methods=['gcm', 'loco'].")
    bootstrap = whole("bootstrap", bootstrap, 0, MOST_DRAWS, "a number of draws, 0 for none")
    confidence, seed = confidence_level(confidence), whole("seed", seed, 0)
    lines = {(line["method"], line["feature"]): line for line in result.lines}
    rows = []
    for j, feature in enumerate(result.features):
        left = _residuals(result, j)
        assumption = NO_ASSUMPTION if left is None else assumption_a(left, confidence=confidence)
        for pair in combinations(tests, 2):
            both = [lines[method, feature] for method in pair]
            scores = [result.scores[method][:, j] for method in pair]
            estimate = _compared(result, pair, both, scores)
            low, high = estimate, estimate
            if 0 < estimate < np.inf:
                influence = _influence(result, pair, scores, left)
                rng = stream(seed, "bootstrap", *pair, feature) if bootstrap else None
                low, high = interval(
                    estimate, influence, confidence=confidence, draws=bootstrap, rng=rng
                )
            rows.append(_row(result, pair, both, scores, Estimate(estimate, low, high), assumption))
    table = pd.DataFrame(rows)
    return table if X is None and y is None else _with_index(table, first_order(result, X, y))


def _with_index(table: pd.DataFrame, found: Mapping[str, FirstOrder]) -> pd.DataFrame:
    """Return the table with what a single index says of GCM and LOCO, NaN of other pairs."""
    named = zip(table["feature"], table["method"], table["rival"], table["are"], strict=True)
    known = [
        found.get(feature, UNKNOWN) if pair == GCM_LOCO and are == are else UNKNOWN
        for feature, *pair, are in named
    ]
    at = list(table.columns).index("sigma")
    table.insert(at, "slope", [one.slope for one in known])
    table.insert(at + 1, "are_index", [one.efficiency for one in known])
    return table


def _residuals(result: Result, j: int) -> FeatureResiduals | None:
    """Return what a feature's models left, where it owns one column and y is a number.

    Of another loss than squared error, or of several targets, gains are no function of these.
    """
    columns, about = result.about.columns[j], result.about
    needed = ("x_given_rest", "y_given_rest", "y_given_all")
    known = all(name in result.residuals for name in needed)
    is_usual = about.task == "regression" and not about.loss and not about.targets
    if len(columns) != 1 or not known or not is_usual:
        return None
    x, rest, full = (result.residuals[name] for name in needed)
    return FeatureResiduals(x[:, columns[0]], rest[:, j], full)


def _influence(
    result: Result, pair: tuple[str, str], scores: list[Array], left: FeatureResiduals | None
) -> Array:
    """Return what each row adds to the logarithm of an efficiency."""
    if left is not None and pair == ("gcm", "loco") and not result.about.weighted:
        return left.log_efficiency_influence()
    ours, rival = scores
    return log_variability_influence(rival) - log_variability_influence(ours)


def _is_two_sided(result: Result, method: str) -> bool:
    return bool(result.about.methods[method] == "two-sided")


def _compared(
    result: Result, pair: tuple[str, str], both: list[dict[str, object]], scores: list[Array]
) -> float:
    """Return the relative efficiency of the first of a pair, NaN where neither sees anything."""
    if all(line["status"] != "ok" for line in both):
        return np.nan
    signals = [
        signal(one, two_sided=_is_two_sided(result, method))
        for one, method in zip(scores, pair, strict=True)
    ]
    if max(signals) < quantile(0.975) ** 2 - 1:
        return np.nan  # neither importance can be told from zero
    return debiased_efficiency(*signals)


def _row(
    result: Result,
    pair: tuple[str, str],
    both: list[dict[str, Any]],
    scores: list[Array],
    estimate: Estimate,
    assumption: Assumption,
) -> dict[str, Any]:
    heavy = any(is_heavy(one) for one in scores)
    p_values = [line["p_value"] for line in both]
    error = result.residuals.get("y_given_all")
    is_gcm_loco = pair == ("gcm", "loco")
    shown = assumption if is_gcm_loco else NO_ASSUMPTION
    return {
        "feature": both[0]["feature"],
        "method": pair[0],
        "rival": pair[1],
        "are": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "assumption_a": shown.ratio.value,
        "assumption_a_low": shown.ratio.low,
        "assumption_a_high": shown.ratio.high,
        "limit_quiet": shown.quiet,
        "limit_noisy": shown.noisy,
        "sigma": np.nan if error is None else float(np.sqrt(np.mean(error**2))),
        "flag": "heavy tails" if heavy and np.isfinite(estimate.value) else "",
        "omnibus_p": min(1.0, 2 * min(p_values)),
        "advice": _in_words(pair, both, estimate, assumption, heavy),
    }


def _label(name: str) -> str:
    method = method_of(name)
    return method.label or name if method else name


def _in_words(
    pair: tuple[str, str],
    both: list[dict[str, object]],
    estimate: Estimate,
    assumption: Assumption,
    heavy: bool,
) -> str:
    """Return the advice for one feature and pair of tests."""
    ours, rival = (_label(name) for name in pair)
    if np.isnan(estimate.value):
        return "Neither test sees this feature: their efficiency is not defined."
    blind = pair[0] == "gcm" and assumption.correlation < POLICY.blind and estimate.high < 1
    if blind or (pair[0] == "gcm" and estimate.value == 0):
        return f"GCM is blind here: the effect looks even or joint. Trust {rival}."
    rough = " Heavy tails: take the figure as rough." if heavy else ""
    if estimate.value == np.inf:
        return f"Only {ours} sees this feature." + rough
    if estimate.value == 0:
        return f"Only {rival} sees this feature." + rough
    if estimate.low <= 1 <= estimate.high:
        return f"{ours} and {rival} need about the same rows." + rough
    if estimate.value > 1:
        return f"Trust {ours}: {rival} needs {estimate.value:.1f}× the rows." + rough
    return f"Trust {rival}: {ours} needs {1 / estimate.value:.1f}× the rows." + rough
