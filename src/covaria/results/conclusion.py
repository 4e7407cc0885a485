"""From residuals to a Result: scores, tests, corrections, findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from covaria.diagnostics.quality import quality_table
from covaria.diagnostics.residual_checks import ResidualCheck
from covaria.errors import NothingFitted, short
from covaria.inference.tests import Tests, combine_repeats, mean_test
from covaria.learners import Learner
from covaria.methods import AnyMethod, Combination, Method, SelectionMethod, deciding
from covaria.methods.few_rows import steadied
from covaria.nuisance.residuals import Residuals
from covaria.randomness import stream
from covaria.results.about import About
from covaria.results.cautions import findings_of, resting_on_few, silent_methods, unstable
from covaria.results.choices import Chosen
from covaria.results.findings import note
from covaria.results.options import Options, alternative_of
from covaria.results.provenance import about_run, row_numbers, tested_rows
from covaria.results.result import Result
from covaria.results.rows import (
    correlation_of_parts,
    rows_of_both,
    rows_of_choice,
    rows_of_test,
    with_effect,
)
from covaria.tables.tidy import Tidy, stacked

Array = NDArray[np.float64]
# Of the arrays of residuals those that results keep.
KEPT = ("y_given_all", "y_given_rest", "x_given_rest", "f_given_rest")


def conclude(
    fitted: Sequence[Residuals],
    learner: Learner,
    methods: Sequence[AnyMethod],
    options: Options,
    chosen: Mapping[str, Chosen],
    left: ResidualCheck | None = None,
) -> Result:
    """Return the result of one or more cross-fits of the same table."""
    table, scores = _tested_by_all(fitted, methods, options, chosen)
    if any(residuals.second for residuals in fitted):
        plain_fits = [replace(residuals, second=(), asked=()) for residuals in fitted]
        as_seen, _ = _tested_by_all(plain_fits, methods, options, chosen)
        # The second learner may be the one that errs.
        ends = {low: np.minimum(table[low], as_seen[low]) for low in ("low", "effect_low")}
        ends |= {high: np.maximum(table[high], as_seen[high]) for high in ("high", "effect_high")}
        table = table.but(verdict=_doubted(table, as_seen), **ends)
    quality, rows = quality_table(fitted, learner, left), row_numbers(fitted)
    decided = table.where([name == deciding(methods) for name in table["method"]])
    result = Result(
        table=table,
        scores=scores,
        rows=rows,
        about=About.of(about_run(fitted, learner, methods, options, chosen)),
        quality=quality,
        findings=(
            *findings_of(fitted[0].data, learner, table, quality, options),
            *unstable(decided, learner, options),
            *resting_on_few(table, scores, rows),
            *(
                note(f"{name}: {one.choice.note}")
                for name, one in chosen.items()
                if one.choice.note
            ),
        ),
        residuals=_kept(fitted[0]),
    )
    _check_fitted(table, result, learner, [m.name for m in methods if isinstance(m, Method)])
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
) -> tuple[Tidy, dict[str, Array]]:
    """Return the rows of every method, and the scores of tests."""
    scores: dict[str, Array] = {}
    tables: dict[str, Tidy] = {}
    for method in methods:
        if isinstance(method, SelectionMethod):
            choice = chosen[method.name].choice
            tables[method.name] = rows_of_choice(method, fitted[0].data, choice, options)
            continue
        if isinstance(method, Combination):
            parts = [tables[part] for part in method.parts]
            correlation = correlation_of_parts(method, fitted, scores, parts, options)
            both = rows_of_both(method, fitted[0].data, parts, correlation, options)
            tables[method.name] = both
            continue
        per_repeat = [score(method, residuals, options, r) for r, residuals in enumerate(fitted)]
        tests = [_test(method, fitted[r], s, options, r) for r, s in enumerate(per_repeat)]
        combined = tests[0] if len(tests) == 1 else _combined(method, fitted[0], tests, options)
        rows = rows_of_test(method, fitted, per_repeat, combined, options)
        if method.coefficient:
            rows = with_effect(rows, fitted, options)
        tables[method.name] = rows
        scores[method.name] = _mean_over_repeats(fitted, per_repeat)
    return stacked(list(tables.values())), scores


def _doubted(table: Tidy, as_seen: Tidy) -> list[str]:
    """Return the verdicts: *cannot tell* where what is seen may be what both regressions miss."""
    triples = zip(table["verdict"], table["selected"], as_seen["selected"], strict=True)
    return [
        "cannot tell" if verdict and seen and not selected else verdict
        for verdict, selected, seen in triples
    ]


def _check_fitted(table: Tidy, result: Result, learner: Learner, tests: Sequence[str]) -> None:
    """Raise where no test of any feature has an answer: none would look like no effect."""
    silent = silent_methods(table)
    if tests and all(name in silent for name in tests):
        raise NothingFitted(
            f"No feature could be tested with {short(str(learner), 60)}: "
            f"{short(silent[tests[0]], 150).rstrip('.')}. Mend the learner, or use another.",
            result,
        )


def score(method: Method, residuals: Residuals, options: Options, repeat: int) -> Array:
    """Return a method's scores: what each row says of each feature."""
    scores = method.score(residuals, stream(options.seed, method.name, repeat))
    if options.paper:
        return scores
    return steadied(
        method,
        residuals,
        scores,
        alternative_of(method, options),
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
        alternative=alternative_of(method, options),
        factor=method.factor,
        confidence=options.confidence,
        clusters=residuals.clusters,
        bounds=method.bounds(residuals),
        reach=_reach(method, residuals),
    )


def _combined(method: Method, residuals: Residuals, tests: list[Tests], options: Options) -> Tests:
    """Return one test of several cross-fits."""
    return combine_repeats(
        tests,
        alternative_of(method, options),
        options.confidence,
        None if method.degrees is None else method.degrees(residuals),
        method.bounds(residuals),
        _reach(method, residuals),
    )


def _reach(method: Method, residuals: Residuals) -> float:
    return 1.0 if method.reach is None else method.reach(residuals)


def _mean_over_repeats(fitted: Sequence[Residuals], per_repeat: list[Array]) -> Array:
    """Return each row's score, on average over the repeats that tested it."""
    if len(per_repeat) == 1:
        return per_repeat[0]
    rows = tested_rows(fitted)
    total = np.zeros((len(rows), per_repeat[0].shape[1]))
    times = np.zeros((len(rows), 1))
    for residuals, scores in zip(fitted, per_repeat, strict=True):
        at = np.searchsorted(rows, residuals.rows)
        total[at] += scores
        times[at] += 1
    return np.asarray(total / times)
