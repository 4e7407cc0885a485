"""How many rows a test needs, from a pilot Result or a Model; and its power at so many rows.

With relative variability RV a test of level α reaches power 1 − β at (z_α + z_β)² RV² tested rows,
z_α two-sided for GCM. A refitted model costs LOCO a little: its expected gain is short of the true
one by the error of one coefficient, σ²/n, where σ² is the noise and n the training rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from covaria.efficiencies.empirical import interval, log_variability_influence, signal
from covaria.errors import InputError, did_you_mean, is_whole, text_of
from covaria.inference.tests import quantile
from covaria.options.checks import between_0_and_1, confidence_level, plain, plain_all, shown
from covaria.options.naming import split_names
from covaria.results.result import Result
from covaria.simulation.model import Model

if TYPE_CHECKING:
    import pandas as pd

# The relative variability of each method in the table of `theory`. That of permutation is the
# one its test uses; the spread of its statistic is a little larger.
IN_THEORY = {
    "gcm": "rv_gcm",
    "loco": "rv_loco",
    "dropout": "rv_drop",
    "permutation": "rv_perm_naive",
    "pcm": "rv_pcm",
}
CORRECTIONS = ("none", "bonferroni", "bh")
MOST_ROWS = 10**15


@dataclass(frozen=True)
class Planned:
    """What one test says of one feature: variance over squared mean a row, and what a refit costs.

    `low` and `high` bound the variability; `cost` is the loss of one estimated coefficient, σ² in
    units of the mean; `tested` is the share of all rows that are tested, `trained` the share that
    a model learns from. `spread` is the sd of the statistic, which skewed scores make less than 1:
    where their mean comes out large, so does their sd.
    """

    feature: str
    method: str
    two_sided: bool
    variability: float
    low: float
    high: float
    cost: float = 0.0
    tested: float = 1.0
    trained: float = 1.0
    spread: float = 1.0


def plan(
    source: Result | Model,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    correction: str = "none",
    methods: Sequence[str] = ("gcm", "loco"),
    splits: float | int = 5,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Return the rows each test needs to find each feature.

    Parameters
    ----------
    source
        A pilot `Result`, whose own tests and splits are planned for; or a `Model`.
    power
        The chance to find a feature that matters as much as it does in the source.
    alpha
        The level of the tests.
    correction
        "none"; "bonferroni": alpha over the number of features; "bh": alpha times the share of
        features that can be found, the level BH comes to when it finds them.
    methods
        The tests to plan for where the source is a `Model`.
    splits
        Their splits there: a number of folds, or the share of rows held out.
    confidence
        Of the interval of rows, from a pilot.

    Returns
    -------
    A table: method, feature, rows, low, high, power, level. A feature that the source cannot tell
    from a useless one needs infinitely many rows.

    Examples
    --------
    >>> import covaria
    >>> model = covaria.scenario("linear", noise=1.0)
    >>> table = covaria.plan(model, power=0.8)
    >>> table.set_index(["method", "feature"]).loc[("gcm", "x5"), "rows"].item()
    20.0
    """
    import pandas as pd

    power, alpha = between_0_and_1("power", power), between_0_and_1("alpha", alpha)
    confidence = confidence_level(confidence)
    tests = _tests(source, methods, splits, confidence)
    levels = (_level(tests, test.method, alpha, correction) for test in tests)
    rows = [_needed(test, power, level) for test, level in zip(tests, levels, strict=True)]
    return pd.DataFrame(rows)


def _needed(test: Planned, power: float, level: float) -> dict[str, str | float]:
    """Return a row of the plan: the rows that one test needs, with their interval."""
    rows, low, high = (
        rows_for(test, variability, power=power, level=level)
        for variability in (test.variability, test.low, test.high)
    )
    of = {"method": test.method, "feature": test.feature}
    return {**of, "rows": rows, "low": low, "high": high, "power": power, "level": level}


def power_at(
    source: Result | Model,
    n_rows: int | Sequence[int],
    *,
    alpha: float = 0.05,
    correction: str = "none",
    methods: Sequence[str] = ("gcm", "loco"),
    splits: float | int = 5,
) -> pd.DataFrame:
    """Return the power of each test for each feature at these numbers of rows.

    >>> import covaria
    >>> model = covaria.scenario("linear", noise=1.0)
    >>> table = covaria.power_at(model, 100).set_index(["method", "feature"])
    >>> round(table.loc[("gcm", "x2"), "power"].item(), 2)
    0.17
    """
    import pandas as pd

    alpha, given = between_0_and_1("alpha", alpha), plain_all(n_rows)
    is_one = not isinstance(given, Iterable) or isinstance(given, (str, bytes))
    sizes = [plain(size) for size in cast(Iterable[int], [given] if is_one else given)]
    if not sizes or not all(is_whole(size) and 0 < size <= MOST_ROWS for size in sizes):
        raise InputError(f"n_rows={shown(n_rows)} must be a number of rows, or several.")
    tests = _tests(source, methods, splits, 0.95)
    return pd.DataFrame(
        [
            {
                "method": test.method,
                "feature": test.feature,
                "n_rows": size,
                "power": power_of(
                    test,
                    test.variability,
                    size,
                    level=_level(tests, test.method, alpha, correction),
                ),
            }
            for test in tests
            for size in sizes
        ]
    )


def power_of(test: Planned, variability: float, n_rows: float, *, level: float) -> float:
    """Return the chance that the test finds its feature in so many rows, at least its level.

    A gain that few rows cannot pay for, or a narrow spread, would put it below; but a test of a
    useless feature still rejects at its level.
    """
    from scipy.stats import norm

    if not np.isfinite(variability):
        return level
    critical = quantile(1 - level / 2 if test.two_sided else 1 - level)
    short = 1 - test.cost / (test.trained * n_rows)
    shift = np.sqrt(test.tested * n_rows / variability) * short
    other = norm.sf((shift + critical) / test.spread) if test.two_sided else 0.0
    return max(level, float(norm.sf((critical - shift) / test.spread) + other))


def rows_for(test: Planned, variability: float, *, power: float, level: float) -> float:
    """Return the rows at which the test has this power; infinite where it has no signal."""
    if not np.isfinite(variability):
        return np.inf
    low, high = 1.0, 2.0
    while power_of(test, variability, high, level=level) < power:
        low, high = high, 2 * high
        if high > 1e15:
            return np.inf
    while high - low > 0.5:
        middle = (low + high) / 2
        enough = power_of(test, variability, middle, level=level) >= power
        low, high = (low, middle) if enough else (middle, high)
    return float(np.ceil(high))


def _level(tests: Sequence[Planned], method: str, alpha: float, correction: str) -> float:
    """Return the level that one test is held to."""
    correction = plain(correction)
    if not isinstance(correction, str) or correction not in CORRECTIONS:
        raise InputError(
            f"correction={shown(correction)} cannot be planned for."
            f"{did_you_mean(text_of(correction), CORRECTIONS)}"
        )
    own = [test for test in tests if test.method == method]
    if correction == "none":
        return alpha
    findable = sum(np.isfinite(test.variability) for test in own)
    share = 1 if correction == "bonferroni" else max(1, findable)
    return alpha * share / len(own)


def _tests(
    source: object, methods: Sequence[str], splits: float | int, confidence: float
) -> list[Planned]:
    if isinstance(source, Result):
        return _of_pilot(source, confidence)
    if isinstance(source, Model):
        return _of_model(source, methods, splits)
    raise InputError(
        f"Plan from a Result of assess or from a Model, not from a {type(source).__name__}."
    )


def _of_pilot(result: Result, confidence: float) -> list[Planned]:
    """Return what each test of a pilot says of each feature."""
    if not result.scores:
        raise InputError("This result holds no test to plan for; assess with methods=['gcm'].")
    tested = result.about.n_tested / result.about.n_rows
    tests = []
    for method, scores in result.scores.items():
        two_sided = bool(result.about.methods[method] == "two-sided")
        for j, feature in enumerate(result.features):
            own = scores[:, j]
            strength = signal(own, two_sided=two_sided)
            bounds, spread = (np.inf, np.inf, np.inf), 1.0
            if strength > 0:
                variability, influence = len(own) / strength, log_variability_influence(own)
                spread = float(influence.std() / (2 * np.sqrt(variability)))
                bounds = (
                    variability,
                    *interval(variability, influence, confidence=confidence),
                )
            tests.append(Planned(feature, method, two_sided, *bounds, tested=tested, spread=spread))
    return tests


def _of_model(model: Model, methods: Sequence[str], splits: float | int) -> list[Planned]:
    """Return what each test says of each feature of a model, at its true regressions."""
    from covaria.efficiencies import theory

    methods = plain_all(methods)
    if isinstance(methods, str):
        methods = split_names(methods)
    if not isinstance(methods, Sequence) or not methods:
        known = ", ".join(IN_THEORY)
        raise InputError(f"methods={shown(methods)} names no test to plan for. There are {known}.")
    for method in map(text_of, methods):
        if method not in IN_THEORY:
            raise InputError(
                f"There is no theory of '{method}' to plan with.{did_you_mean(method, IN_THEORY)}"
            )
    tested, trained = _shares(splits)
    tests = []
    for line in theory.table(model).to_dict(orient="records"):
        for method in methods:
            variability = float(line[IN_THEORY[method]]) ** 2
            gain = float(line["psi_loco"])
            cost = model.noise**2 / gain if method == "loco" and gain > 0 else 0.0
            tests.append(
                Planned(
                    str(line["feature"]), method, method == "gcm",
                    variability, variability, variability,
                    cost=cost, tested=tested, trained=trained,
                )
            )  # fmt: skip
    return sorted(tests, key=lambda test: list(methods).index(test.method))


def _shares(splits: float | int) -> tuple[float, float]:
    """Return which share of the rows is tested, and which share a model learns from."""
    splits = plain(splits)
    if is_whole(splits) and 2 <= splits <= MOST_ROWS:
        return 1.0, 1 - 1 / splits
    if isinstance(splits, float) and 0 < splits < 1:
        return splits, 1 - splits
    raise InputError(f"splits={shown(splits)} must be a number of folds or the share held out.")
