"""What to know before trusting a table of tests, as findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from covaria.diagnostics.quality import NOT_A_MEAN, POORLY, TAKEN
from covaria.errors import listed, plural, short
from covaria.execution.compiling import numba_notes
from covaria.inference.tests import normal_quantile
from covaria.learners import Auto, Learner, Prefit
from covaria.methods import Method, method_of
from covaria.nuisance.fit import COMPILED
from covaria.results.findings import POLICY, Finding, note, of_each
from covaria.results.options import Options
from covaria.results.status import Outcome, Status, has_failed
from covaria.tables.dataset import Dataset
from covaria.tables.suspicions import suspicions
from covaria.tables.tidy import Tidy

Array = NDArray[np.float64]
# Of the rows that a finding rests on so many are named.
NAMED_ROWS = 5


def silent_methods(table: Tidy) -> dict[str, str]:
    """Return the methods that failed for every feature that varies, with the first reason."""
    found: dict[str, str] = {}
    if not _has_failed(table):  # as most have not, and groups take their time
        return found
    for method in dict.fromkeys(table["method"]):
        own = table.where([name == method for name in table["method"]])
        every = [Status.of(cell) for cell in own["status"]]
        varying = [status for status in every if status.outcome is not Outcome.CONSTANT]
        if varying and all(status.is_failed for status in varying):
            found[method] = varying[0].reason
    return found


def findings_of(
    data: Dataset, learner: Learner, table: Tidy, quality: Tidy, options: Options
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
    yield from against_gcm(table)


def _without_effect(data: Dataset, options: Options) -> Iterable[Finding]:
    """Yield which features have no coefficient: those of several columns."""
    wide = [feature.name for feature in data.features if len(feature.tested) > 1]
    if options.effect and wide:
        yield note(
            f"{listed(wide)} {'has' if len(wide) == 1 else 'have'} several columns, as text and "
            "groups do, and so no single coefficient."
        )


def _used(table: Tidy, learner: Prefit) -> Iterable[Finding]:
    """Yield what dropout and permutation tell of a model of which nothing else is known."""
    known = {name: method_of(name) for name in dict.fromkeys(table["method"])}
    names = [name for name, m in known.items() if isinstance(m, Method) and m.of_one_model]
    if names and learner.n_train is None:
        yield note(
            f"{' and '.join(names).capitalize()} tell what this model uses: among correlated "
            "features also useless ones. Whether a feature matters pcm and cpi tell, or "
            "Prefit(…, n_train=…) with the rows the model learned from.",
            "prefit",
        )


def _suspicious(data: Dataset, quality: Tidy) -> Iterable[Finding]:
    """Yield what looks odd in the table, and whether all features tell the target too well."""
    found = suspicions(data)
    for one in found:
        yield from of_each(one.kind, one.features, one.text, one.values or None)
    full = _r2_of_all(quality)
    if full and full[0] >= POLICY.too_good and all(one.kind != "possible_leak" for one in found):
        yield note(
            f"The features predict '{short(data.target)}' almost fully (R² {full[0]:.3f}): one of "
            "them may be made from it, or known only after it. Drop what is.",
            "possible_leak",
            full[0],
        )


def _undecided(table: Tidy) -> Iterable[Finding]:
    """Yield which features look as if they mattered, and why that is not said of them."""
    names = list(
        dict.fromkeys(
            feature
            for feature, verdict in zip(table["feature"], table["verdict"], strict=True)
            if verdict == "cannot tell"
        )
    )
    yield from of_each(
        "cannot_tell",
        names,
        f"Cannot tell whether {listed(names)} matter{'s' if len(names) == 1 else ''}: what both "
        "regressions may have missed in common would explain it. More rows help.",
    )


def unstable(decided: Tidy, learner: Learner, options: Options) -> Iterable[Finding]:
    """Yield which features are so near the line that other folds may decide otherwise."""
    drawn = isinstance(options.splits, (int, float)) and isinstance(learner, Auto)
    if options.top is not None or not drawn:
        return
    known = decided.where(~np.isnan(decided["p_value"]))
    z, line = (normal_quantile(np.asarray(p) / 2) for p in (known["p_adjusted"], options.alpha))
    near = known.where(np.abs(z - line) < POLICY.near / np.sqrt(options.repeats))["feature"]
    yield from of_each(
        "unstable",
        near,
        f"{listed(near)} {'is' if len(near) == 1 else 'are'} so near the line that another seed "
        f"may decide otherwise. repeats={5 * options.repeats} would steady it.",
    )


def _has_failed(table: Tidy) -> bool:
    return any(map(has_failed, table["status"]))


def _failed(table: Tidy) -> Iterable[Finding]:
    """Yield which fits failed, and why."""
    if not _has_failed(table):
        return
    silent = silent_methods(table)
    for method, reason in silent.items():
        yield note(
            f"{method} has no answer, as every feature's fits failed: {short(reason, 150)}.",
            "no_answer",
        )
    cells = zip(table["method"], table["feature"], table["status"], strict=True)
    failed = {name: why for m, name, why in cells if m not in silent and has_failed(why)}
    if failed:
        why = short(Status.of(next(iter(failed.values()))).reason, 150)
        yield from of_each(
            "failed_fits", list(failed), f"Some fits failed ({listed(list(failed))}): {why}."
        )


def _of_kind(quality: Tidy, kind: str) -> Tidy:
    """Return the regressions of which there is a finding of a kind."""
    return quality.where([one == kind for one in quality["kind"]])


def _r2_of_all(quality: Tidy) -> list[float]:
    """Return how much of y all features explain, or nothing where that was not fitted."""
    cells = zip(quality["regression"], quality["r2"], strict=True)
    return [r2 for regression, r2 in cells if regression == "y given all"]


def _determined(names: list[str], *, together: bool = False) -> str:
    """Return the sentence on features that the others determine, tested together or not."""
    so = "of each alone little can be said" if together else "little can be said, so group them"
    return f"The others determine {listed(names)} almost fully: {so}."


def told_of_sets(findings: Sequence[Finding], groups: Tidy) -> tuple[Finding, ...]:
    """Return findings that do not ask to group features that were tested together."""
    inside = {name for members in groups["features"] if len(members) > 1 for name in members}
    names = [one.feature for one in findings if one.kind == TAKEN]
    parts = {flag: [name for name in names if (name in inside) is flag] for flag in (True, False)}
    said = {name: _determined(part, together=flag) for flag, part in parts.items() for name in part}
    return tuple(
        replace(one, text=said[one.feature]) if one.kind == TAKEN else one for one in findings
    )


def _of_regressions(quality: Tidy, target: str, learner: Learner) -> Iterable[Finding]:
    """Yield what the regressions' quality says of the tests."""
    full = _r2_of_all(quality)
    if full and full[0] <= 0:
        yield note(
            f"The learner predicts '{short(target)}' no better than its mean does "
            f"(R² {full[0]:.2f}): the tests have little power.",
            "little_power",
            full[0],
        )
    taken = _of_kind(quality, TAKEN)
    names = taken["feature"]
    yield from of_each(TAKEN, names, _determined(names), taken["r2"])
    poor = _of_kind(quality, POORLY)
    better = "Use" if learner.name == "auto" else "Use learner='auto',"
    names = poor["feature"]
    yield from of_each(
        POORLY,
        names,
        f"The regressions of {listed(names)} are poor: their p-values may be too small. "
        f"{better} more rows, or a learner that fits these better.",
        poor["bias"],
    )


def resting_on_few(
    table: Tidy, scores: Mapping[str, Array], rows: NDArray[np.intp]
) -> Iterable[Finding]:
    """Yield which findings few rows carry, and the rows, the weightiest first."""
    chosen = table.where(table["selected"])
    told: set[str] = set()
    place = {name: at for at, name in enumerate(dict.fromkeys(table["feature"]))}
    for method, feature in zip(chosen["method"], chosen["feature"], strict=True):
        if method not in scores or feature in told:
            continue
        squares = scores[method][:, place[feature]] ** 2
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


def _off(quality: Tidy, target: str) -> Iterable[Finding]:
    """Yield of what the learner does not predict the mean, and what that does to the tests."""
    rows = _of_kind(quality, NOT_A_MEAN)
    if not len(rows):
        return
    cells = list(zip(rows["regression"], rows["feature"], strict=True))
    of_x, of_y = ([name for of, name in cells if of.startswith(kind)] for kind in "xy")
    names = [*([target] if of_y else []), *of_x]
    furthest = max(map(abs, rows["mean_shift"]))
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


def _answers(table: Tidy) -> dict[str, dict[str, bool]]:
    """Return for each method the features that it could test, and whether it selected them."""
    found: dict[str, dict[str, bool]] = {}
    columns = (table[name] for name in ("method", "feature", "selected", "status"))
    for method, feature, selected, status in zip(*columns, strict=True):
        own = found.setdefault(method, {})
        if status == "ok":
            own[feature] = bool(selected)
    return found


def against_gcm(table: Tidy) -> Iterable[Finding]:
    """Yield what to make of a feature that LOCO finds and GCM does not; PCM tells, where it ran.

    LOCO also gains where a feature only spares the learner the work of getting the same from the
    rest: its two models need not be equally good, as a product of residuals allows for.
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
