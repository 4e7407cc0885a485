"""What to know before trusting a result, beyond what the Result says itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covaria.efficiencies.empirical import is_heavy
from covaria.errors import listed, plural, short
from covaria.methods import METHODS, Method
from covaria.options.policy import Policy, threshold
from covaria.results.findings import Finding, note, of_each, ranked, texts
from covaria.results.result import Result
from covaria.tables.policy import POLICY as TABLES

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ReportPolicy(Policy):
    """What a report points out beside the findings of its result.

    explained   R² from the others, from which on neighbours are looked for
    together    correlation of two features' residuals, from which on they explain each other
    heavy       share of the squared scores in a hundredth of the rows that makes a mean rough
    """

    explained: float = threshold(0.9, "formula: a variance inflation of 10, 1/(1 − R²)")
    together: float = threshold(0.5, "judgement, not measured: half of the way to a copy")
    heavy: float = threshold(
        0.5, "judgement, not measured: a test is less easily hurt than a ratio"
    )


POLICY = ReportPolicy()


def all_findings(result: Result) -> list[Finding]:
    """Return the findings of the result, then those that its scores and residuals add."""
    looks = (_small, _collinear, _unseen, _heavy, _unused)
    return [*result.findings, *(finding for look in looks for finding in look(result))]


def all_alerts(result: Result) -> list[str]:
    """Return the sentences of all findings, those that put a verdict in doubt first."""
    matter = set(result.table.loc[result.table["selected"], "feature"])
    return list(texts(ranked(all_findings(result), matter)))


def _small(result: Result) -> Iterable[Finding]:
    n_rows = result.about.n_tested
    n_features = result.about.n_features + result.about.n_others
    if n_rows < TABLES.few_rows <= result.about.n_rows:  # of fewer the table's own note tells
        yield note(
            f"Only {plural(n_rows, 'row')} were tested: p-values are rough and power is low.",
            "few_tested",
            n_rows,
        )
    elif n_rows < 2 * n_features:
        yield note(
            f"{plural(n_rows, 'row')} for {plural(n_features, 'feature')}: the regressions have "
            "little to learn from, so effects can be missed.",
            "few_tested",
            n_rows,
        )


def _heavy(result: Result) -> Iterable[Finding]:
    """Yield which features' tests hang on a few rows."""
    heavy = [
        feature
        for j, feature in enumerate(result.features)
        if any(is_heavy(scores[:, j], POLICY.heavy) for scores in result.scores.values())
    ]
    matter = set(result.table.loc[result.table["selected"], "feature"])
    told = [feature for feature in heavy if feature in matter]
    yield from of_each(
        "heavy_tails",
        told,
        f"Heavy tails: a hundredth of the rows makes most of the spread of {listed(told)}, so "
        "take intervals and p-values as rough.",
    )


def _unseen(result: Result) -> Iterable[Finding]:
    """Yield what a gain test other than LOCO sees and GCM does not; of LOCO the result tells."""
    chosen, table = result.selected, result.table
    ran = table.loc[(table["method"] == "gcm") & (table["status"] == "ok"), "feature"]
    told = {*chosen.get("gcm", []), *chosen.get("loco", []), *(set(result.features) - set(ran))}
    one_sided = [name for name, m in METHODS.items() if isinstance(m, Method) and not m.two_sided]
    for method in one_sided:
        names = [feature for feature in chosen.get(method, []) if feature not in told]
        told.update(names)
        yield from of_each(
            "not_seen_by_gcm",
            names,
            f"{method} finds {listed(names)} and GCM does not: the effect may be even (such "
            "as x²) or joint.",
        )


def _unused(result: Result) -> Iterable[Finding]:
    table = result.table
    for status, words in {
        "unused": "The learner never used",
        "redundant": "The others determine exactly",
    }.items():
        names = table.loc[table["status"] == status, "feature"].drop_duplicates().tolist()
        yield from of_each(
            "untestable", names, f"{words} {listed(names)}: no test can say anything."
        )


def _collinear(result: Result) -> Iterable[Finding]:
    """Yield groups of features that explain each other and were not tested as one."""
    tested = [set(members) for members in result.groups["features"]]
    for group in collinear_groups(result):
        if any(set(group) <= members for members in tested):
            continue
        member = ", ".join(f'"{short(name)}"' for name in group[:5])
        more = ", …" if len(group) > 5 else ""
        yield from of_each(
            "collinear",
            group,
            f"{listed(group)} explain each other, so each seems useless given the others: test "
            f'them as one with groups={{"together": [{member}{more}]}}.',
        )


def collinear_groups(result: Result) -> list[list[str]]:
    """Return groups of features that the others explain and whose residuals move together."""
    left = result.residuals.get("x_given_rest")
    quality, columns = result.quality, result.about.columns
    if left is None or not {"regression", "feature", "r2"} <= set(quality.columns):
        return []
    rows = quality[(quality["regression"] == "x given rest") & (quality["r2"] > POLICY.explained)]
    explained = set(rows["feature"])
    own = [j for j, f in enumerate(result.features) if f in explained and len(columns[j]) == 1]
    if len(own) < 2:
        return []
    together = _correlations(left[:, [columns[j][0] for j in own]]) > POLICY.together
    return [[result.features[own[at]] for at in part] for part in _connected(together)]


def _correlations(left: Array) -> Array:
    """Return the absolute correlations of columns, 0 where one does not vary."""
    centred = left - left.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    scaled = np.divide(centred, length, out=np.zeros_like(centred), where=length > 0)
    return np.asarray(np.abs(scaled.T @ scaled))


def _connected(near: NDArray[np.bool_]) -> list[list[int]]:
    """Return the parts of two or more that hang together."""
    free, parts = set(range(len(near))), []
    while free:
        part, edge = set(), {min(free)}
        while edge:
            part |= edge
            edge = {k for at in edge for k in np.flatnonzero(near[at]).tolist()} - part
        free -= part
        parts.append(sorted(part))
    return [part for part in parts if len(part) > 1]
