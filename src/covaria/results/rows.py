"""The tidy rows of one method: from its tests to estimate, interval, verdict and robustness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from covaria.inference.corrections import adjust, strongest
from covaria.inference.tests import Tests, agreeing, either_p, freedom_of, interval, normal_quantile
from covaria.inference.tests import correlation as correlation_of
from covaria.methods import Combination, Method, SelectionMethod
from covaria.methods.choice import Choice
from covaria.methods.plm import partially_linear
from covaria.nuisance.attenuation import MEASURES
from covaria.nuisance.residuals import Residuals
from covaria.results.options import Options, alternative_of
from covaria.results.status import Outcome, Status
from covaria.tables.dataset import Dataset
from covaria.tables.tidy import Tidy

Array = NDArray[np.float64]
# A correlation below this is rounding.
ROUNDING = 1e-12
# Of every table of tests.
COLUMNS = (
    "method", "feature", "estimate", "std_error", "low", "high", "statistic", "p_value",
    "p_adjusted", "selected", "status", "df", "effect", "effect_low", "effect_high", "verdict",
    "robustness",
)  # fmt: skip


def rows_of_test(
    method: Method,
    fitted: Sequence[Residuals],
    scores: Sequence[Array],
    tests: Tests,
    options: Options,
) -> Tidy:
    """Return the tidy rows of one method."""
    data = fitted[0].data
    status = _statuses(method, fitted, tests)
    ok = np.array([s == "ok" for s in status])
    p_value = np.where(ok, tests.p_value, 1.0)
    adjusted = adjust(p_value, options.correction)
    unit = np.median([method.unit(residuals) for residuals in fitted], axis=0)
    degrees = np.ones(data.n_features, int) if method.degrees is None else method.degrees(fitted[0])
    effect_low, effect_high = _effect_interval(method, fitted, scores, tests, unit, options)

    selected = ok & _selected(p_value, adjusted, tests.statistic, options)
    effect = tests.estimate / unit

    def where_ok(values: Array) -> Array:
        return np.where(ok, values, 0.0)

    return Tidy(
        {
            "method": [method.name] * data.n_features,
            "feature": data.names,
            "estimate": where_ok(tests.estimate),
            "std_error": where_ok(tests.std_error),
            "low": where_ok(tests.low),
            "high": where_ok(tests.high),
            "statistic": where_ok(tests.statistic),
            "p_value": p_value,
            "p_adjusted": adjusted,
            "selected": selected,
            "status": status,
            "df": np.where(ok, degrees, 0),
            "effect": where_ok(effect),
            "effect_low": where_ok(effect_low),
            "effect_high": where_ok(effect_high),
            "verdict": verdicts(selected),
            "robustness": _robustness(
                np.where(effect < 0, -effect_high, effect_low)
                / _per_correlation(method, fitted[0], unit),
                selected,
            ),
        }
    )


def with_effect(rows: Tidy, fitted: Sequence[Residuals], options: Options) -> Tidy:
    """Return GCM's rows with the effect that was asked for, its error and its interval."""
    if options.effect is None:
        return rows
    found = np.array([partially_linear(residuals) for residuals in fitted])
    theta = found[:, 0].mean(axis=0)
    error = np.sqrt(np.mean(found[:, 1] ** 2 + (found[:, 0] - theta) ** 2, axis=0))
    freedom = freedom_of(fitted[0].clusters)
    low, high = interval(theta, error, "two-sided", options.confidence, freedom)
    taken = _taken(1, theta, fitted)
    low, high = low - taken * (theta < 0), high + taken * (theta > 0)
    if options.alternative in (None, "two-sided"):
        p_value = rows["p_value"]
        low, high = agreeing(low, high, theta, p_value, "two-sided", options.confidence)
    columns = {"effect": theta, "effect_low": low, "effect_high": high, "effect_error": error}
    ok = are_ok(rows)
    return rows.but(**{name: np.where(ok, own, np.nan) for name, own in columns.items()})


def verdicts(selected: NDArray[np.bool_]) -> list[str]:
    """Return the verdict on each feature in words."""
    return ["matters" if one else "no evidence" for one in selected.tolist()]


def _robustness(nearest: Array, selected: NDArray[np.bool_]) -> Array:
    """Return what both regressions would have to miss in common to explain a finding away.

    A common part of r of the variance of both residuals shifts their correlation by r: so it is the
    end of the correlation's interval that is nearest to 0; of a gain, the least share it explains.
    """
    return np.where(selected, np.clip(np.nan_to_num(nearest), 0.0, 1.0), 0.0)


def _per_correlation(method: Method, residuals: Residuals, unit: Array) -> Array:
    """Return what an effect is divided by to read as a correlation of residuals: 1 if it is one."""
    if method.factors is None or method.two_sided:
        return np.ones_like(unit)
    found = np.ones_like(unit)
    for j, feature in enumerate(residuals.data.features):
        if feature.columns and not residuals.failure(method.needs, j):
            x, y = method.factors(residuals, j)
            size = np.sqrt((x**2).sum(axis=1).mean() * (y**2).sum(axis=1).mean())
            found[j] = size / unit[j] if size > 0 else 1.0
    return found


def _effect_interval(
    method: Method,
    fitted: Sequence[Residuals],
    scores: Sequence[Array],
    tests: Tests,
    unit: Array,
    options: Options,
) -> tuple[Array, Array]:
    """Return the ends of each effect's interval; of a correlation, from Fisher's scale."""
    low, high = tests.low / unit, tests.high / unit
    if method.fisher is None or options.paper:
        return low, high
    found = [method.fisher(residuals, s) for residuals, s in zip(fitted, scores, strict=True)]
    z, errors = (np.array([one[part] for one in found]) for part in (0, 1))
    centre = z.mean(axis=0)
    error = np.sqrt(np.mean(errors**2 + (z - centre) ** 2, axis=0))
    alternative = alternative_of(method, options)
    widest = np.full_like(centre, np.inf)
    ends = interval(
        centre,
        error,
        alternative,
        options.confidence,
        freedom_of(fitted[0].clusters),
        (-widest, widest),
    )
    ends = _less_attenuated(ends, centre, fitted)
    known = np.isfinite(centre) & ~tests.is_zero
    effect = tests.estimate / unit
    least, most = (np.where(known, np.tanh(end), 0.0) for end in ends)
    ends = agreeing(least, most, effect, tests.p_value, alternative, options.confidence)
    # That of several columns is a length, which is no more than 1 either.
    low, high = (
        np.where(known, end, np.clip(given, -1.0, 1.0))
        for end, given in zip(ends, (low, high), strict=True)
    )
    return low, high


def _less_attenuated(
    ends: tuple[Array, Array], centre: Array, fitted: Sequence[Residuals]
) -> tuple[Array, Array]:
    """Return an interval of Fisher's z that reaches as far as it would with less error in models.

    Only the end away from zero moves (`nuisance/attenuation.py`), and none of an estimate that is
    zero but for rounding.
    """
    r = np.tanh(centre)
    whole = np.clip(np.abs(r) + _taken(0, r, fitted), 0.0, 1 - 1e-12)
    further = np.maximum(np.arctanh(whole) - np.abs(centre), 0.0)
    return ends[0] - further * (r < -ROUNDING), ends[1] + further * (r > ROUNDING)


def _taken(measure: int, effect: Array, fitted: Sequence[Residuals]) -> Array:
    """Return what errors took off each effect: 0 of correlations, 1 of coefficients."""
    nothing = np.zeros((len(MEASURES), len(effect)))
    every = [nothing if one.attenuation is None else one.attenuation for one in fitted]
    return np.asarray(np.mean(every, axis=0)[measure])


def _selected(
    p_value: Array, adjusted: Array, statistic: Array, options: Options
) -> NDArray[np.bool_]:
    if options.top is not None:
        return strongest(p_value, statistic, options.top)
    return np.asarray(adjusted < options.alpha)


def rows_of_choice(
    method: SelectionMethod, data: Dataset, choice: Choice, options: Options
) -> Tidy:
    """Return the tidy rows of a selection without a test; what only a test has stays empty."""
    selected = choice.selected
    if options.top is not None:
        empty = np.full(data.n_features, np.nan)
        selected = strongest(empty, choice.statistic, options.top)
    return _bare_rows(
        method.name,
        data,
        estimate=choice.statistic,
        statistic=choice.statistic,
        selected=selected,
        status=["ok" if feature.columns else "constant" for feature in data.features],
        effect=choice.statistic,
    )


def correlation_of_parts(
    method: Combination,
    fitted: Sequence[Residuals],
    scores: Mapping[str, Array],
    parts: Sequence[Tidy],
    options: Options,
) -> Array:
    """Return how the two statistics go together; NaN where they are not one normal each."""
    two_sided, one_sided = (scores[name] for name in method.parts)
    found = np.full(two_sided.shape[1], np.nan)
    if len(fitted) > 1 or options.alternative:
        return found
    usable = np.logical_and.reduce([are_ok(part) & (part["df"] <= 1) for part in parts])
    for j in np.flatnonzero(usable):
        found[j] = correlation_of(two_sided[:, j], one_sided[:, j], fitted[0].clusters)
    return found


def rows_of_both(
    method: Combination,
    data: Dataset,
    parts: Sequence[Tidy],
    correlation: Array,
    options: Options,
) -> Tidy:
    """Return the tidy rows of a combination: p-values, and a statistic of the same level."""
    two_sided, one_sided = (part["p_value"] for part in parts)
    p_value = np.minimum(1.0, 2 * np.minimum(two_sided, one_sided))
    known = np.isfinite(correlation)
    p_value[known] = either_p(two_sided[known], one_sided[known], correlation[known])
    statistic = normal_quantile(p_value / 2)
    adjusted = adjust(p_value, options.correction)
    statuses = list(zip(*(part["status"] for part in parts), strict=True))
    status = ["ok" if "ok" in own else own[0] for own in statuses]
    ok = np.array([s == "ok" for s in status])
    selected = ok & _selected(p_value, adjusted, statistic, options)
    return _bare_rows(
        method.name,
        data,
        statistic=np.where(ok, statistic, 0.0),
        p_value=p_value,
        p_adjusted=adjusted,
        selected=selected,
        status=status,
        verdict=verdicts(selected),
        robustness=_robustness(np.max([part["robustness"] for part in parts], axis=0), selected),
    )


def _bare_rows(name: str, data: Dataset, **given: object) -> Tidy:
    """Return tidy rows in which all that is not given is empty."""
    count = data.n_features
    columns: dict[str, object] = dict.fromkeys(COLUMNS, np.full(count, np.nan))
    columns |= {"method": [name] * count, "feature": data.names, "df": np.zeros(count, np.intp)}
    columns |= {"verdict": [""] * count}  # of a test alone
    return Tidy(columns | given)


def are_ok(rows: Tidy) -> NDArray[np.bool_]:
    """Return which tests have an answer."""
    return np.array([status == "ok" for status in rows["status"]], dtype=bool)


def _statuses(method: Method, fitted: Sequence[Residuals], tests: Tests) -> list[str]:
    """Return what came of the test of each feature."""
    has_failed = any(residuals.failures for residuals in fitted)
    found = []
    for j, (feature, is_zero) in enumerate(
        zip(fitted[0].data.features, tests.is_zero.tolist(), strict=True)
    ):
        reason = _reason(method, fitted, j) if has_failed and feature.columns else ""
        if reason:
            found.append(str(Status(Outcome.FAILED, reason)))
        else:
            found.append("constant" if not feature.columns else method.zero if is_zero else "ok")
    return found


def _reason(method: Method, fitted: Sequence[Residuals], j: int) -> str:
    """Return why a feature has no score, or nothing."""
    reasons = (residuals.failure(method.needs, j) for residuals in fitted)
    return next((reason for reason in reasons if reason), "")
