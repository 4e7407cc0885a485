"""From residuals to a Result: scores, tests, corrections, alerts."""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from covaria.diagnostics.quality import NOT_A_MEAN, POORLY, TAKEN, quality_table
from covaria.diagnostics.residual_checks import Leftover
from covaria.errors import InputError, NothingFitted, listed, plural, short
from covaria.execution.compiling import numba_notes
from covaria.inference.corrections import adjust, strongest
from covaria.inference.tests import (
    ALTERNATIVES,
    Tests,
    agreeing,
    combine_repeats,
    either_p,
    freedom_of,
    interval,
    mean_test,
    normal_quantile,
)
from covaria.inference.tests import correlation as correlation_of
from covaria.learners import Auto, Learner, Prefit
from covaria.methods import AnyMethod, Chooser, Combination, Method, deciding
from covaria.methods.choice import Choice
from covaria.methods.few_rows import steadied
from covaria.methods.plm import partially_linear
from covaria.nuisance.fit import COMPILED
from covaria.nuisance.residuals import Residuals
from covaria.nuisance.splits import describe, known_splits
from covaria.options.checks import (
    between_0_and_1,
    confidence_level,
    one_of,
    plain,
    shown,
    truth,
    whole,
)
from covaria.randomness import stream
from covaria.results.about import About
from covaria.results.findings import POLICY, Finding, note, of_each
from covaria.results.result import Result
from covaria.results.status import Outcome, Status, has_failed
from covaria.tables.dataset import Dataset
from covaria.tables.suspicions import suspicions

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

# Of the rows that a finding rests on so many are named.
NAMED_ROWS = 5

# More would fill the memory before anything is fitted.
MOST_REPEATS, MOST_PERMUTATIONS = 10_000, 1_000_000

# What `effect` may be, and what GCM's effect then is.
EFFECTS = {"plm": "coefficient in y = θ x + g(others)"}
# Of the arrays of residuals those that results keep.
KEPT = ("y_given_all", "y_given_rest", "x_given_rest", "f_given_rest")
# Of every table of tests.
COLUMNS = (
    "method", "feature", "estimate", "std_error", "low", "high", "statistic", "p_value",
    "p_adjusted", "selected", "status", "df", "effect", "effect_low", "effect_high", "verdict",
    "robustness",
)  # fmt: skip


@dataclass(frozen=True)
class Options:
    """How the rows are split and how scores are turned into verdicts."""

    splits: object = 5
    alternative: str | None = None
    validity: str = "conservative"
    correction: str = "bh"
    alpha: float = 0.05
    confidence: float = 0.95
    repeats: int = 1
    permutations: int = 5
    seed: int = 0
    paper: bool = False
    top: int | None = None
    check: bool = True
    extrapolate: str | bool = "auto"
    effect: str | None = None
    margin: float | None = None
    shared_randomness: bool | None = None

    def __post_init__(self) -> None:
        alternative = plain(self.alternative)
        if not (alternative is None or isinstance(alternative, str)) or (
            alternative not in (None, *ALTERNATIVES)
        ):
            raise InputError(
                f"alternative={shown(alternative)} is not known. Use {', '.join(ALTERNATIVES)}."
            )
        what = "a whole number of features, 1 or more"
        checked = {
            "splits": known_splits(self.splits),
            "alternative": alternative,
            "validity": plain(self.validity),
            "correction": plain(self.correction),
            "alpha": between_0_and_1("alpha", self.alpha),
            "confidence": confidence_level(self.confidence),
            "repeats": whole("repeats", self.repeats, 1, MOST_REPEATS),
            "permutations": whole("permutations", self.permutations, 1, MOST_PERMUTATIONS),
            "seed": whole("seed", self.seed, 0),
            "paper": truth("paper", self.paper),
            "top": None if self.top is None else whole("top", self.top, 1, what=what),
            "check": truth("check", self.check),
            "extrapolate": _extrapolate(self.extrapolate),
            "shared_randomness": _draws(self.shared_randomness),
            "margin": None if self.margin is None else between_0_and_1("margin", self.margin),
            "effect": None if self.effect is None else one_of("effect", self.effect, EFFECTS),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        adjust(np.ones(1), self.correction)

    @property
    def in_sample(self) -> bool:
        return isinstance(self.splits, str)

    @property
    def shares_draws(self) -> bool:
        """Return whether models of a fold share their random draws; the paper's do not."""
        return not self.paper if self.shared_randomness is None else self.shared_randomness

    def as_in_the_paper(self) -> Options:
        """Return the paper's mode: in sample, two-sided, raw p < .05, one permutation."""
        return replace(
            self,
            splits="none",
            alternative="two-sided",
            correction="none",
            alpha=0.05,
            permutations=1,
            repeats=1,
            paper=True,
        )


def _draws(given: object) -> bool | None:
    """Return True, False or None, or raise."""
    return None if given is None else truth("shared_randomness", given)


def _extrapolate(given: object) -> str | bool:
    """Return True, False or "auto", or raise."""
    value = plain(given)
    if isinstance(value, bool) or (isinstance(value, str) and value == "auto"):
        return value
    raise InputError(f"extrapolate={shown(given)} must be True, False or 'auto'.")


@dataclass(frozen=True)
class Chosen:
    """What a chooser chose, and how long it took."""

    choice: Choice
    seconds: float


def select_without_test(
    methods: Sequence[AnyMethod], data: Dataset, seed: int, names: Collection[str]
) -> dict[str, Chosen]:
    """Return what each chooser among the methods chose of all features, and says of some."""
    chosen, some = {}, [j for j, name in enumerate(data.names) if name in names]
    for method in methods:
        if isinstance(method, Chooser):
            start = time.perf_counter()
            rng = stream(seed, type(method.settings).__name__)  # whatever its settings
            choice = method.settings.choose(data, rng)
            chosen[method.name] = Chosen(choice.only(some), time.perf_counter() - start)
    return chosen


def conclude(
    fitted: Sequence[Residuals],
    learner: Learner,
    methods: Sequence[AnyMethod],
    options: Options,
    chosen: Mapping[str, Chosen],
    left: Leftover | None = None,
) -> Result:
    """Return the result of one or more cross-fits of the same table."""
    table, scores = _tested_by_all(fitted, methods, options, chosen)
    if any(residuals.halves for residuals in fitted):
        plain_fits = [replace(residuals, halves=()) for residuals in fitted]
        as_seen, _ = _tested_by_all(plain_fits, methods, options, chosen)
        table["verdict"] = _doubted(table, as_seen)
        for low, high in (("low", "high"), ("effect_low", "effect_high")):
            # What both regressions may miss works either way.
            table[low] = np.minimum(table[low], as_seen[low])
            table[high] = np.maximum(table[high], as_seen[high])
    quality = quality_table(fitted, learner, left)
    result = Result(
        table=table,
        scores=scores,
        rows=_row_numbers(fitted),
        about=About.of(_about(fitted, learner, methods, options, chosen)),
        quality=quality,
        findings=(
            *_findings(fitted[0].data, learner, table, quality, options),
            *_unstable(table[table["method"] == deciding(methods)], learner, options),
            *_resting_on_few(table, scores, _row_numbers(fitted)),
            *(
                note(f"{name}: {one.choice.note}")
                for name, one in chosen.items()
                if one.choice.note
            ),
        ),
        residuals=_kept(fitted[0]),
    )
    _check_fitted(result, learner, [m.name for m in methods if isinstance(m, Method)])
    return result


def _kept(residuals: Residuals) -> dict[str, Array]:
    """Return what a result keeps of a cross-fit, a row for each tested row."""
    kept = {name: array for name, array in residuals.arrays.items() if name in KEPT}
    kept |= {"fold": residuals.fold.astype(float)}
    of_rows = {"weight": residuals.weights, "cluster": residuals.clusters}
    return kept | {n: array.astype(float) for n, array in of_rows.items() if array is not None}


def _tested_by_all(
    fitted: Sequence[Residuals],
    methods: Sequence[AnyMethod],
    options: Options,
    chosen: Mapping[str, Chosen],
) -> tuple[pd.DataFrame, dict[str, Array]]:
    """Return the rows of every method, and the scores of tests."""
    import pandas as pd

    scores: dict[str, Array] = {}
    tables: list[pd.DataFrame] = []
    for method in methods:
        if isinstance(method, Chooser):
            tables.append(_chosen_rows(method, fitted[0].data, chosen[method.name].choice, options))
            continue
        if isinstance(method, Combination):
            parts = [t for p in method.parts for t in tables if t["method"].iloc[0] == p]
            correlation = _correlation(method, fitted, scores, parts, options)
            tables.append(_combined_rows(method, fitted[0].data, parts, correlation, options))
            continue
        per_repeat = [score(method, residuals, options, r) for r, residuals in enumerate(fitted)]
        tests = [_test(method, fitted[r], s, options, r) for r, s in enumerate(per_repeat)]
        degrees = None if method.degrees is None else method.degrees(fitted[0])
        alternative = _alternative(method, options)
        combined = combine_repeats(
            tests,
            alternative,
            options.confidence,
            degrees,
            method.bounds(fitted[0]),
            _reach(method, fitted[0]),
        )
        rows = _rows(method, fitted, per_repeat, combined, options)
        tables.append(rows if method.name != "gcm" else _with_effect(rows, fitted, options))
        scores[method.name] = _mean_over_repeats(fitted, per_repeat)
    return pd.concat(tables, ignore_index=True), scores


def _doubted(table: pd.DataFrame, as_seen: pd.DataFrame) -> list[str]:
    """Return the verdicts: *cannot tell* where what is seen may be what both regressions miss."""
    triples = zip(table["verdict"], table["selected"], as_seen["selected"], strict=True)
    return [
        "cannot tell" if verdict and seen and not selected else verdict
        for verdict, selected, seen in triples
    ]


def _check_fitted(result: Result, learner: Learner, tests: Sequence[str]) -> None:
    """Raise where no test of any feature has an answer: none would look like no effect."""
    silent = _silent(result.table)
    if tests and all(name in silent for name in tests):
        raise NothingFitted(
            f"No feature could be tested with {short(str(learner), 60)}: "
            f"{short(silent[tests[0]], 150).rstrip('.')}. Mend the learner, or use another.",
            result,
        )


def _silent(table: pd.DataFrame) -> dict[str, str]:
    """Return the methods that failed for every feature that varies, with the first reason."""
    found: dict[str, str] = {}
    if not _has_failed(table):  # as most have not, and groups take their time
        return found
    for method, rows in table.groupby("method", sort=False):
        every = [Status.of(cell) for cell in rows["status"].tolist()]
        varying = [status for status in every if status.outcome is not Outcome.CONSTANT]
        if varying and all(status.is_failed for status in varying):
            found[str(method)] = varying[0].reason
    return found


def score(method: Method, residuals: Residuals, options: Options, repeat: int) -> Array:
    """Return a method's scores: what each row says of each feature."""
    scores = method.score(residuals, stream(options.seed, method.name, repeat))
    if options.paper:
        return scores
    return steadied(
        method,
        residuals,
        scores,
        _alternative(method, options),
        lambda: stream(options.seed, method.name, "permuted", repeat),
    )


def _test(
    method: Method, residuals: Residuals, scores: Array, options: Options, repeat: int
) -> Tests:
    if method.test is not None:
        rng = stream(options.seed, method.name, "test", repeat)
        return method.test(residuals, scores, rng, options.confidence)
    degrees = None if method.degrees is None else method.degrees(residuals)
    return mean_test(
        scores,
        scale=method.scale(residuals),
        degrees=degrees,
        alternative=_alternative(method, options),
        factor=method.factor,
        confidence=options.confidence,
        clusters=residuals.clusters,
        bounds=method.bounds(residuals),
        reach=_reach(method, residuals),
    )


def _reach(method: Method, residuals: Residuals) -> float:
    return 1.0 if method.reach is None else method.reach(residuals)


def _tested(fitted: Sequence[Residuals]) -> NDArray[np.intp]:
    return np.unique(np.concatenate([residuals.rows for residuals in fitted]))


def _row_numbers(fitted: Sequence[Residuals]) -> NDArray[np.intp]:
    """Return which rows of the table were tested, counting those that were left out."""
    rows, kept = _tested(fitted), fitted[0].data.kept
    return rows if kept is None else kept[rows]


def _mean_over_repeats(fitted: Sequence[Residuals], per_repeat: list[Array]) -> Array:
    """Return each row's score, on average over the repeats that tested it."""
    if len(per_repeat) == 1:
        return per_repeat[0]
    rows = _tested(fitted)
    total = np.zeros((len(rows), per_repeat[0].shape[1]))
    times = np.zeros((len(rows), 1))
    for residuals, scores in zip(fitted, per_repeat, strict=True):
        at = np.searchsorted(rows, residuals.rows)
        total[at] += scores
        times[at] += 1
    return np.asarray(total / times)


def _rows(
    method: Method,
    fitted: Sequence[Residuals],
    scores: Sequence[Array],
    tests: Tests,
    options: Options,
) -> pd.DataFrame:
    """Return the tidy rows of one method."""
    import pandas as pd

    data = fitted[0].data
    status = [_status(method, fitted, tests, j) for j in range(data.n_features)]
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

    return pd.DataFrame(
        {
            "method": method.name,
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


def _with_effect(rows: pd.DataFrame, fitted: Sequence[Residuals], options: Options) -> pd.DataFrame:
    """Return GCM's rows with the effect that was asked for, its error and its interval."""
    if options.effect is None:
        return rows
    found = np.array([partially_linear(residuals) for residuals in fitted])
    theta = found[:, 0].mean(axis=0)
    error = np.sqrt(np.mean(found[:, 1] ** 2 + (found[:, 0] - theta) ** 2, axis=0))
    freedom = freedom_of(fitted[0].clusters)
    low, high = interval(theta, error, "two-sided", options.confidence, freedom)
    columns = {"effect": theta, "effect_low": low, "effect_high": high, "effect_error": error}
    ok = rows["status"].to_numpy() == "ok"
    return rows.assign(**{name: np.where(ok, own, np.nan) for name, own in columns.items()})


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
    alternative = _alternative(method, options)
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
    low, high = (np.where(known, end, given) for end, given in zip(ends, (low, high), strict=True))
    return low, high


def _less_attenuated(
    ends: tuple[Array, Array], centre: Array, fitted: Sequence[Residuals]
) -> tuple[Array, Array]:
    """Return an interval of Fisher's z that reaches as far as it would with less error in models.

    Only the end away from zero moves: `nuisance/attenuation.py`.
    """
    taken = [
        np.zeros_like(centre) if one.attenuation is None else one.attenuation for one in fitted
    ]
    r = np.tanh(centre)
    whole = np.clip(np.abs(r) + np.mean(taken, axis=0), 0.0, 1 - 1e-12)
    further = np.maximum(np.arctanh(whole) - np.abs(centre), 0.0)
    return ends[0] - further * (r < 0), ends[1] + further * (r > 0)


def _selected(
    p_value: Array, adjusted: Array, statistic: Array, options: Options
) -> NDArray[np.bool_]:
    if options.top is not None:
        return strongest(p_value, statistic, options.top)
    return np.asarray(adjusted < options.alpha)


def _chosen_rows(method: Chooser, data: Dataset, choice: Choice, options: Options) -> pd.DataFrame:
    """Return the tidy rows of a chooser; what only a test has stays empty."""
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


def _correlation(
    method: Combination,
    fitted: Sequence[Residuals],
    scores: Mapping[str, Array],
    parts: list[pd.DataFrame],
    options: Options,
) -> Array:
    """Return how the two statistics go together; NaN where they are not one normal each."""
    two_sided, one_sided = (scores[name] for name in method.parts)
    found = np.full(two_sided.shape[1], np.nan)
    if len(fitted) > 1 or options.alternative:
        return found
    usable = np.logical_and.reduce([(p["status"] == "ok") & (p["df"] <= 1) for p in parts])
    for j in np.flatnonzero(usable):
        found[j] = correlation_of(two_sided[:, j], one_sided[:, j], fitted[0].clusters)
    return found


def _combined_rows(
    method: Combination,
    data: Dataset,
    parts: list[pd.DataFrame],
    correlation: Array,
    options: Options,
) -> pd.DataFrame:
    """Return the tidy rows of a combination: p-values, and a statistic of the same level."""
    two_sided, one_sided = (part["p_value"].to_numpy(float) for part in parts)
    p_value = np.minimum(1.0, 2 * np.minimum(two_sided, one_sided))
    known = np.isfinite(correlation)
    p_value[known] = either_p(two_sided[known], one_sided[known], correlation[known])
    statistic = normal_quantile(p_value / 2)
    adjusted = adjust(p_value, options.correction)
    statuses = list(zip(*(part["status"].tolist() for part in parts), strict=True))
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
        robustness=_robustness(
            np.max([part["robustness"].to_numpy(float) for part in parts], axis=0), selected
        ),
    )


def _bare_rows(name: str, data: Dataset, **given: object) -> pd.DataFrame:
    """Return tidy rows in which all that is not given is empty."""
    import pandas as pd

    columns: dict[str, object] = dict.fromkeys(COLUMNS, np.full(data.n_features, np.nan))
    columns |= {"method": name, "feature": data.names, "df": np.zeros(data.n_features, np.intp)}
    columns |= {"verdict": ""}  # of a test alone
    return pd.DataFrame(columns | given)


def _status(method: Method, fitted: Sequence[Residuals], tests: Tests, j: int) -> str:
    if not fitted[0].data.features[j].columns:
        return "constant"
    for residuals in fitted:
        reason = residuals.failure(method.needs, j)
        if reason:
            return str(Status(Outcome.FAILED, reason))
    return method.zero if tests.is_zero[j] else "ok"


def _about(
    fitted: Sequence[Residuals],
    learner: Learner,
    methods: Sequence[AnyMethod],
    options: Options,
    chosen: Mapping[str, Chosen],
) -> dict[str, object]:
    """Return what is needed to repeat the run, and what it cost."""
    data = fitted[0].data
    fits = {need: sum(r.fits[need] for r in fitted) for need in fitted[0].fits}
    seconds = {need: sum(r.seconds[need] for r in fitted) for need in fitted[0].seconds}
    return {
        "target": data.target,
        "task": data.task,
        "classes": list(data.classes),
        "n_rows": data.n_rows,
        "n_tested": len(_tested(fitted)),
        "n_features": data.n_features,
        "n_columns": int(data.X.shape[1]),
        "columns": [list(feature.tested) for feature in data.features],
        "groups": {f.name: len(f.columns) for f in data.features if f.kind == "group"},
        "weighted": data.weights is not None,
        "clusters": 0 if data.clusters is None else int(data.clusters.max()) + 1,
        "fingerprint": fingerprint(data),
        "learner": learner.settings(),
        "learner_text": str(learner),
        "engine": fitted[0].engine,
        "methods": {m.name: _alternative(m, options) for m in methods},
        "effects": {m.name: _effect_of(m, options, data) for m in methods},
        "splits": describe(options.splits),
        "folds": fitted[0].n_folds,
        "paper": options.paper,
        "validity": options.validity,
        "correction": options.correction,
        "alpha": options.alpha,
        "top": options.top,
        "confidence": options.confidence,
        "repeats": options.repeats,
        "permutations": options.permutations,
        "seed": int(options.seed),
        "models": sum(fits.values()),
        "fits": {m.name: sum(fits[need] for need in m.needs) for m in methods},
        "seconds": {
            m.name: chosen[m.name].seconds
            if m.name in chosen
            else sum(seconds[need] for need in m.needs)
            for m in methods
        },
        "versions": dict(_versions()),
        "variance": data.target_variance,
        "n_others": len(data.others),
        "targets": list(data.targets),
        "loss": "" if data.rule is None else data.rule.words,
    }


def _effect_of(method: AnyMethod, options: Options, data: Dataset) -> str:
    if data.rule is not None and isinstance(method, Method) and method.losses is not None:
        return f"share of the {data.rule.words} explained"
    return EFFECTS[options.effect] if options.effect and method.name == "gcm" else method.effect


def _alternative(method: AnyMethod, options: Options) -> str:
    if isinstance(method, Method):
        return options.alternative or method.alternative
    return method.alternative


def fingerprint(data: Dataset) -> str:
    """Return a short digest of the numbers that were tested."""
    every = (*data.features, *data.others)
    tested = sorted(column for feature in every for column in feature.tested)
    X = data.X if len(tested) == data.X.shape[1] else data.X[:, tested]
    digest = hashlib.blake2b(np.ascontiguousarray(X).data, digest_size=8)
    digest.update(np.ascontiguousarray(data.y if data.outputs is None else data.outputs).data)
    return digest.hexdigest()


@cache
def _versions() -> dict[str, str]:
    """Return the versions that the numbers depend on."""
    from importlib.metadata import PackageNotFoundError, version

    import covaria

    found = {"python": platform.python_version(), "covaria": covaria.__version__}
    for name in ("numpy", "scipy", "pandas", "scikit-learn", "torch"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _findings(
    data: Dataset, learner: Learner, table: pd.DataFrame, quality: pd.DataFrame, options: Options
) -> Iterable[Finding]:
    """Yield what to know before trusting the table."""
    yield from _off(quality, data.target)
    if data.others:
        yield note(
            f"{plural(data.n_features, 'feature')} of {data.n_features + len(data.others):,} "
            f"{'was' if data.n_features == 1 else 'were'} tested, given all others: the "
            "correction counts no more.",
            "some_features",
            data.n_features,
        )
    yield from (note(text) for text in (*data.notes, *learner.notes))
    yield from _without_effect(data, options)
    if options.check:
        yield from _suspicious(data, quality)
    if options.paper:
        yield note(
            "Paper mode: residuals in sample, two-sided, unadjusted. With flexible learners "
            "dropout and permutation then reject up to 96% of nulls: to reproduce, not to decide.",
            "paper_mode",
        )
    elif options.in_sample:
        yield note(
            "In-sample residuals flatter flexible learners: LOCO then rejects too often.",
            "in_sample",
        )
    if isinstance(learner, Prefit):
        yield note(
            "The model was not refitted: the answer holds for rows that it has not learned from. "
            "If these are among its training rows, its p-values mean nothing.",
            "prefit",
        )
        yield from _used(table, learner)
    if learner.name in COMPILED:
        yield from (note(text, "slow") for text in numba_notes())
    yield from _failed(table)
    yield from _of_regressions(quality, data.target, learner)
    yield from _undecided(table)
    yield from _against_gcm(table)


def _without_effect(data: Dataset, options: Options) -> Iterable[Finding]:
    """Yield which features have no coefficient: those of several columns."""
    wide = [feature.name for feature in data.features if len(feature.tested) > 1]
    if options.effect and wide:
        yield note(
            f"{listed(wide)} {'has' if len(wide) == 1 else 'have'} several columns, as text and "
            "groups do, and so no single coefficient."
        )


def _used(table: pd.DataFrame, learner: Prefit) -> Iterable[Finding]:
    """Yield what dropout and permutation tell of a model of which nothing else is known."""
    names = [m for m in dict.fromkeys(table["method"]) if m in ("dropout", "permutation")]
    if names and learner.n_train is None:
        yield note(
            f"{' and '.join(names).capitalize()} tell what this model uses: among correlated "
            "features also useless ones. Whether a feature matters pcm and cpi tell, or "
            "Prefit(…, n_train=…) with the rows the model learned from.",
            "prefit",
        )


def _suspicious(data: Dataset, quality: pd.DataFrame) -> Iterable[Finding]:
    """Yield what looks odd in the table, and whether all features tell the target too well."""
    found = suspicions(data)
    for one in found:
        yield from of_each(one.kind, one.features, one.text, one.values or None)
    full = quality.loc[quality["regression"] == "y given all", "r2"].tolist()
    if full and full[0] >= POLICY.too_good and all(one.kind != "possible_leak" for one in found):
        yield note(
            f"The features predict '{short(data.target)}' almost fully (R² {full[0]:.3f}): one of "
            "them may be made from it, or known only after it. Drop what is.",
            "possible_leak",
            full[0],
        )


def _undecided(table: pd.DataFrame) -> Iterable[Finding]:
    """Yield which features look as if they mattered, and why that is not said of them."""
    names = list(dict.fromkeys(table.loc[table["verdict"] == "cannot tell", "feature"]))
    yield from of_each(
        "cannot_tell",
        names,
        f"Cannot tell whether {listed(names)} matter{'s' if len(names) == 1 else ''}: what both "
        "regressions may have missed in common would explain it. More rows help.",
    )


def _unstable(decided: pd.DataFrame, learner: Learner, options: Options) -> Iterable[Finding]:
    """Yield which features are so near the line that other folds may decide otherwise."""
    from scipy.stats import norm

    drawn = isinstance(options.splits, (int, float)) and isinstance(learner, Auto)
    if options.top is not None or not drawn:
        return
    known = decided[decided["p_value"].notna()]
    z, line = (norm.isf(np.asarray(p) / 2) for p in (known["p_adjusted"], options.alpha))
    near = known["feature"][np.abs(z - line) < POLICY.near / np.sqrt(options.repeats)].tolist()
    yield from of_each(
        "unstable",
        near,
        f"{listed(near)} {'is' if len(near) == 1 else 'are'} so near the line that another seed "
        f"may decide otherwise. repeats={5 * options.repeats} would steady it.",
    )


def _has_failed(table: pd.DataFrame) -> bool:
    return any(map(has_failed, table["status"].tolist()))


def _failed(table: pd.DataFrame) -> Iterable[Finding]:
    """Yield which fits failed, and why."""
    if not _has_failed(table):
        return
    silent = _silent(table)
    for method, reason in silent.items():
        yield note(
            f"{method} has no answer, as every feature's fits failed: {short(reason, 150)}.",
            "no_answer",
        )
    rows = table[~table["method"].isin(list(silent)) & table["status"].map(has_failed)]
    failed = dict(zip(rows["feature"].tolist(), rows["status"].tolist(), strict=True))
    if failed:
        why = short(Status.of(next(iter(failed.values()))).reason, 150)
        yield from of_each(
            "failed_fits", list(failed), f"Some fits failed ({listed(list(failed))}): {why}."
        )


def _of_regressions(quality: pd.DataFrame, target: str, learner: Learner) -> Iterable[Finding]:
    """Yield what the regressions' quality says of the tests."""
    full = quality.loc[quality["regression"] == "y given all", "r2"].tolist()
    if full and full[0] <= 0:
        yield note(
            f"The learner predicts '{short(target)}' no better than its mean does "
            f"(R² {full[0]:.2f}): the tests have little power.",
            "little_power",
            full[0],
        )
    taken = quality[quality["kind"] == TAKEN]
    names = taken["feature"].tolist()
    yield from of_each(
        TAKEN,
        names,
        f"The others determine {listed(names)} almost fully: little can be said, so group them.",
        taken["r2"].tolist(),
    )
    poor = quality[quality["kind"] == POORLY]
    better = "Use" if learner.name == "auto" else "Use learner='auto',"
    names = poor["feature"].tolist()
    yield from of_each(
        POORLY,
        names,
        f"The regressions of {listed(names)} are poor: their p-values may be too small. "
        f"{better} more rows, or a learner that fits these better.",
        poor["bias"].tolist(),
    )


def _resting_on_few(
    table: pd.DataFrame, scores: Mapping[str, Array], rows: NDArray[np.intp]
) -> Iterable[Finding]:
    """Yield which findings few rows carry, and the rows, the weightiest first."""
    chosen = table[table["selected"].to_numpy(bool)]
    told: set[str] = set()
    features = table["feature"].drop_duplicates().tolist()
    for method, feature in zip(chosen["method"].tolist(), chosen["feature"].tolist(), strict=True):
        if method not in scores or feature in told:
            continue
        squares = scores[method][:, features.index(feature)] ** 2
        squares = squares / max(float(squares.max()), 1e-300)
        count = float(squares.sum()) ** 2 / max(float((squares**2).sum()), 1e-300)
        if count < POLICY.few_rows:
            told.add(feature)
            heaviest = rows[np.argsort(-squares, kind="stable")[:NAMED_ROWS]]
            named = ", ".join(str(row + 1) for row in heaviest.tolist())
            yield Finding(
                "few_rows",
                feature,
                count,
                f"What {method} finds of '{short(feature)}' rests on about {count:.0f} rows (such "
                f"as {named}): look at them.",
            )


def _off(quality: pd.DataFrame, target: str) -> Iterable[Finding]:
    """Yield of what the learner does not predict the mean, and what that does to the tests."""
    rows = quality[quality["kind"] == NOT_A_MEAN]
    if not len(rows):
        return
    of_x, of_y = (rows.loc[rows["regression"].str.startswith(kind), "feature"] for kind in "xy")
    names = [*([target] if len(of_y) else []), *of_x]
    furthest = float(rows["mean_shift"].abs().max())
    yield note(
        f"The learner does not predict the mean of {listed(names)}: what it leaves averages up to "
        f"{furthest:.2f} standard deviations, not 0. Use one with squared error or "
        "log-loss, without quantiles or class weights.",
        NOT_A_MEAN,
        furthest,
    )
    twice = [feature for feature in of_x if feature in set(of_y)]
    yield from of_each(
        NOT_A_MEAN,
        twice,
        f"Both regressions miss the mean for {listed(twice)}: products of what they leave then "
        "average no 0 for useless features either, so these p-values mean nothing.",
    )


def _answers(table: pd.DataFrame) -> dict[str, dict[str, bool]]:
    """Return for each method the features that it could test, and whether it selected them."""
    found: dict[str, dict[str, bool]] = {}
    columns = (table[name].tolist() for name in ("method", "feature", "selected", "status"))
    for method, feature, selected, status in zip(*columns, strict=True):
        own = found.setdefault(method, {})
        if status == "ok":
            own[feature] = bool(selected)
    return found


def _against_gcm(table: pd.DataFrame) -> Iterable[Finding]:
    """Yield what to make of a feature that LOCO finds and GCM does not; PCM tells, where it ran.

    LOCO also gains where a feature only spares the learner the work of getting the same from the
    rest: its two models need not be equally good, as a product of leftovers allows for.
    """
    answers = _answers(table)
    loco, gcm, pcm = (answers.get(name, {}) for name in ("loco", "gcm", "pcm"))
    unseen = [feature for feature in loco if loco[feature] and gcm.get(feature) is False]
    even = "the effect may be even (such as x²) or joint"
    untold = [f for f in unseen if f not in pcm]
    agreed = [f for f in unseen if pcm.get(f) is True]
    alone = [f for f in unseen if pcm.get(f) is False]
    yield from of_each(
        "not_seen_by_gcm",
        untold,
        f"LOCO finds {listed(untold)} and GCM does not: {even}, or the target is only "
        "easier to learn with it. PCM tells: add it to the methods.",
    )
    yield from of_each(
        "not_seen_by_gcm", agreed, f"LOCO and PCM find {listed(agreed)} and GCM does not: {even}."
    )
    yield from of_each(
        "not_seen_by_gcm",
        alone,
        f"Only LOCO finds {listed(alone)}, neither GCM nor PCM: the target may only be easier "
        "to learn with it. Do not count on it.",
    )
