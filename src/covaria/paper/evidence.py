"""From a simulation's results to verdicts on what the paper says.

A difference holds where its paired mean is in the claimed direction by two Monte-Carlo standard
errors; the other rules say their limits in the claim itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from covaria.paper.registry import Claim
from covaria.paper.run import Results
from covaria.paper.studies import SHOWN
from covaria.studies import metrics

if TYPE_CHECKING:
    import pandas as pd

ERRORS = 2.0
WORDS = {"f1": "F1", "fdr": "FDR"}
LAZY = {"lazy(stepped=False)": "lazy"}


def number(value: float) -> str:
    """Return a number as the page shows it.

    >>> number(0.7812), number(-0.05), number(12.345), number(1.0)
    ('.78', '-.05', '12.3', '1.00')
    """
    if not np.isfinite(value):
        return "—"
    if abs(value) >= 10:
        return f"{value:.3g}"
    text = f"{value:.2f}" if abs(value) >= 0.005 or value == 0 else f"{value:.1g}"
    return text.replace("0.", ".", 1) if abs(value) < 0.995 and "e" not in text else text


def seconds(value: float) -> str:
    """Return a time with two digits.

    >>> seconds(0.01234), seconds(123.4)
    ('0.012 s', '123 s')
    """
    if not np.isfinite(value):
        return "—"
    return f"{value:.2g} s" if abs(value) < 100 else f"{value:.0f} s"


class Evidence:
    """The results of one simulation, asked for verdicts; claims are gathered in `claims`."""

    def __init__(self, figure: str, found: Results) -> None:
        self.figure = figure
        self.runs = found.runs.replace({"method": LAZY})
        self.features = found.features.replace({"method": LAZY})
        self.claims: list[Claim] = []

    def add(self, text: str, numbers: str, held: object) -> None:
        """Add a claim with its verdict."""
        self.claims.append(Claim(self.figure, text, numbers, bool(held)))

    def mean(self, metric: str, method: str, **where: object) -> float:
        """Return a metric's average over runs."""
        runs = _part(self.runs, where)
        return float(runs.loc[runs["method"] == method, metric].mean())

    def gap(self, metric: str, ours: str, rival: str, **where: object) -> tuple[float, float]:
        """Return the paired difference of two methods over all runs, and its standard error."""
        runs = _part(self.runs, where)
        keys = ["scenario", "setting", "learner", "repeat"]
        a, b = (runs[runs["method"] == m].set_index(keys)[metric] for m in (ours, rival))
        differences = (a - b).dropna().to_numpy()
        if len(differences) < 2:
            return float(differences.mean()), float("inf")  # one run says nothing of its error
        error = differences.std(ddof=1) / np.sqrt(len(differences))
        return float(differences.mean()), float(error)

    def higher(
        self, metric: str, ours: str, rivals: str | Sequence[str], place: str, **where: object
    ) -> None:
        """Claim that a method's metric is higher than that of each rival."""
        self._compare(metric, ours, rivals, place, 1.0, "higher", where)

    def lower(
        self, metric: str, ours: str, rivals: str | Sequence[str], place: str, **where: object
    ) -> None:
        """Claim that a method's metric is lower than that of each rival."""
        self._compare(metric, ours, rivals, place, -1.0, "lower", where)

    def _compare(
        self, metric: str, ours: str, rivals: str | Sequence[str], place: str, sign: float,
        word: str, where: dict[str, object],
    ) -> None:  # fmt: skip
        for rival in [rivals] if isinstance(rivals, str) else rivals:
            gap, error = self.gap(metric, ours, rival, **where)
            shown = seconds if metric == "seconds" else number
            a, b = (shown(self.mean(metric, m, **where)) for m in (ours, rival))
            more = "more" if sign > 0 else "less"
            says = f"takes {more} time" if metric == "seconds" else f"has {word} {_named(metric)}"
            self.add(
                f"{SHOWN[ours]} {says} than {SHOWN[rival]} {place}",
                f"{a} vs {b}, paired difference {shown(gap)} ± {shown(error)}",
                sign * gap > ERRORS * error and sign * gap > 0,
            )

    def no_worse(
        self, metric: str, ours: str, rival: str, place: str, by: float, **where: object
    ) -> None:
        """Claim that a method's metric is not lower than the rival's by more than `by`."""
        gap, error = self.gap(metric, ours, rival, **where)
        a, b = (number(self.mean(metric, m, **where)) for m in (ours, rival))
        self.add(
            f"{SHOWN[ours]} has as good {_named(metric)} as {SHOWN[rival]} {place} "
            f"(at most {number(by)} lower)",
            f"{a} vs {b}, paired difference {number(gap)} ± {number(error)}", gap >= -by,
        )  # fmt: skip

    def similar(
        self, metric: str, methods: Sequence[str], place: str, within: float, **where: object
    ) -> None:
        """Claim that a metric is much the same for these methods."""
        found = {m: self.mean(metric, m, **where) for m in methods}
        spread = max(found.values()) - min(found.values())
        self.add(
            f"{_listed(methods)} have similar {_named(metric)} {place} (within {number(within)})",
            ", ".join(f"{SHOWN[m]} {number(v)}" for m, v in found.items()), spread <= within,
        )  # fmt: skip

    def at_least(
        self, metric: str, methods: Sequence[str], place: str, limit: float, **where: object
    ) -> None:
        """Claim of each method that its metric is at least a limit."""
        for method in methods:
            value = self.mean(metric, method, **where)
            self.add(
                f"{SHOWN[method]} has high {_named(metric)} {place} (at least {number(limit)})",
                number(value), value >= limit,
            )  # fmt: skip

    def at_most(
        self, metric: str, methods: Sequence[str], place: str, limit: float, **where: object
    ) -> None:
        """Claim of each method that its metric is at most a limit."""
        for method in methods:
            value = self.mean(metric, method, **where)
            self.add(
                f"{SHOWN[method]} has low {_named(metric)} {place} (at most {number(limit)})",
                number(value), value <= limit,
            )  # fmt: skip

    def best(self, metric: str, method: str, place: str, **where: object) -> None:
        """Claim that no method's metric is higher."""
        runs = _part(self.runs, where)
        found = runs.groupby("method", sort=False)[metric].mean()
        rival = str(found.drop(method).idxmax())
        gap, error = self.gap(metric, method, rival, **where)
        self.add(
            f"{SHOWN[method]} has the highest {_named(metric)} {place}",
            f"{number(found[method])}; next {SHOWN[rival]} {number(found[rival])}, paired "
            f"difference {number(gap)} ± {number(error)}",
            gap > ERRORS * error and gap > 0,
        )

    def share(self, feature: str, method: str, **where: object) -> float:
        """Return how often a method selects a feature."""
        part = _part(self.features, where)
        own = part[(part["method"] == method) & (part["feature"] == feature)]
        return float(own["selected"].mean())

    def finds(
        self,
        methods: Sequence[str],
        features: Sequence[str],
        place: str,
        limit: float,
        **where: object,
    ) -> None:
        """Claim of each method that it selects each of the features at least this often."""
        for method, found in self._shares(methods, features, where):
            self.add(
                f"{SHOWN[method]} finds {_span(features)} {place} (each in at least "
                f"{number(limit)} of the runs)",
                ", ".join(map(number, found)), min(found) >= limit,
            )  # fmt: skip

    def misses(
        self,
        methods: Sequence[str],
        features: Sequence[str],
        place: str,
        limit: float,
        **where: object,
    ) -> None:
        """Claim of each method that it selects each of the features at most this often."""
        for method, found in self._shares(methods, features, where):
            self.add(
                f"{SHOWN[method]} does not find {_span(features)} {place} (each in at most "
                f"{number(limit)} of the runs)",
                ", ".join(map(number, found)), max(found) <= limit,
            )  # fmt: skip

    def _shares(
        self, methods: Sequence[str], features: Sequence[str], where: dict[str, object]
    ) -> Iterator[tuple[str, list[float]]]:
        """Yield each method with how often it selects each of the features."""
        for method in methods:
            yield method, [self.share(feature, method, **where) for feature in features]

    def false_alarms(self, method: str, **where: object) -> float:
        """Return how often a method selects a feature that does not matter."""
        runs = _part(self.runs, where)
        own = runs[runs["method"] == method]
        return float(1 - own["specificity"].mean())

    def time_ratio(
        self, ours: str, rival: str, place: str, low: float, high: float, **where: object
    ) -> None:
        """Claim that a method takes a share of the rival's time, between two limits."""
        a, b = (self.mean("seconds", m, **where) for m in (ours, rival))
        self.add(
            f"{SHOWN[ours]} takes about half the time of {SHOWN[rival]} {place} "
            f"({number(low)} to {number(high)})",
            f"{seconds(a)} vs {seconds(b)}, ratio {number(a / b)}", low <= a / b <= high,
        )  # fmt: skip


def _part(table: pd.DataFrame, where: dict[str, object]) -> pd.DataFrame:
    """Return the rows whose columns have these values; a learner goes by its first word."""
    for name, value in where.items():
        column = table[name].str.split("(").str[0] if name == "learner" else table[name]
        table = table[column == value]
    return table


def _named(metric: str) -> str:
    return WORDS.get(metric, metric)


def _listed(methods: Sequence[str]) -> str:
    names = [SHOWN[m] for m in methods]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _span(features: Sequence[str]) -> str:
    return features[0] if len(features) == 1 else f"{features[0]} to {features[-1]}"


def summary_of(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the summary with names for people."""
    found = metrics.summary(runs)
    return found.assign(method=[SHOWN.get(str(m), str(m)) for m in found["method"]])
