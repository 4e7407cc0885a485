"""Findings: what to know before trusting a table, as records with a sentence each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import NamedTuple

from covaria.options.policy import Policy, threshold


class Kind(NamedTuple):
    """What a kind of finding is about, and whether it puts verdicts in doubt."""

    about: str
    is_warning: bool = False


KINDS = {
    "note": Kind("something to know of the table, the learner or the run"),
    "paper_mode": Kind("p-values as the paper has them, to reproduce and not to decide", True),
    "in_sample": Kind("residuals of the rows that were learned from", True),
    "prefit": Kind("a model that was fitted elsewhere: valid on rows it has not seen", True),
    "some_features": Kind("not all features were tested"),
    "slow": Kind("a part that would make the run faster is missing"),
    "no_answer": Kind("every fit of a method failed", True),
    "failed_fits": Kind("some fits failed"),
    "little_power": Kind("the target is predicted no better than by its mean"),
    "determined": Kind("the other features determine one almost fully"),
    "poor_regression": Kind("a nuisance regression leaves something undone", True),
    "cannot_tell": Kind("what both regressions miss in common may explain a finding"),
    "unstable": Kind("a p-value so near the line that another seed may decide otherwise"),
    "not_a_mean": Kind("the learner does not predict the mean", True),
    "not_seen_by_gcm": Kind("another test finds a feature that GCM does not"),
    "few_rows": Kind("a result rests on few rows", True),
    "few_tested": Kind("few rows were tested"),
    "collinear": Kind("features explain each other"),
    "heavy_tails": Kind("a hundredth of the rows makes most of the spread"),
    "untestable": Kind("no test can say anything of a feature"),
    "possible_leak": Kind("a feature, or all of them, tell the target almost fully"),
    "identifier": Kind("a feature looks like the names of rows"),
    "codes": Kind("whole numbers may be codes of categories"),
    "near_copies": Kind("two features say the same in other units"),
}


@dataclass(frozen=True)
class FindingPolicy(Policy):
    """When a result is said to rest on little, or to be too good.

    few_rows   effective rows, (Σs²)²/Σs⁴ of the scores, below which a finding rests on few
    too_good   R² of y given all features, from which on they may hold the target
    near       standard deviations between an adjusted p-value and the level, as normal statistics,
               below which another seed may decide otherwise; less with repeats
    """

    few_rows: int = threshold(15, "judgement: so few can be named and looked at one by one")
    too_good: float = threshold(0.99, "convention: noise of less than a tenth of the spread of y")
    near: float = threshold(0.5, "docs/auto.md: six tables, 500 rows, 4 seeds: 2% of others flip")


POLICY = FindingPolicy()


@dataclass(frozen=True)
class Finding:
    """Something to know before trusting a table.

    kind     one of `KINDS`
    feature  the feature it is about, or ""
    value    the number it rests on, or None
    text     the sentence people read; several features may share one
    """

    kind: str
    feature: str
    value: float | None
    text: str

    @property
    def is_warning(self) -> bool:
        """Return whether it puts a verdict in doubt."""
        return KINDS[self.kind].is_warning if self.kind in KINDS else False

    def to_dict(self) -> dict[str, object]:
        """Return the record as values that json can hold."""
        return asdict(self)


# What is about reading and cleaning a table, not about what its tests say.
OF_THE_TABLE = frozenset({"note", "slow", "some_features", "identifier", "codes", "near_copies"})


# What says itself that a verdict might have been another.
OF_VERDICTS = frozenset({"cannot_tell", "unstable"})


def ranked(findings: Iterable[Finding], matter: Collection[str]) -> list[Finding]:
    """Return findings in the order to read them: verdicts in doubt first, cleaning last.

    A warning of a feature that was not found (`matter` are the others) takes nothing away from
    what was, and comes after.
    """

    def place(one: Finding) -> int:
        if one.is_warning and (not one.feature or one.feature in matter):
            return 0
        if one.kind in OF_VERDICTS:
            return 1
        return 2 if one.is_warning else 4 if one.kind in OF_THE_TABLE else 3

    return sorted(findings, key=place)


def note(text: str, kind: str = "note", value: float | None = None) -> Finding:
    """Return a finding that is about no feature of its own."""
    return Finding(kind, "", value, text)


def of_each(
    kind: str, features: Sequence[str], text: str, values: Sequence[float] | None = None
) -> Iterable[Finding]:
    """Yield one finding a feature, all with the same sentence."""
    for at, feature in enumerate(features):
        value = None if values is None else float(values[at])
        yield Finding(kind, feature, value if value is None or isfinite(value) else None, text)


def texts(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return the sentences, each once, in their order."""
    return tuple(dict.fromkeys(finding.text for finding in findings))
