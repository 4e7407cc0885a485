"""From a simulation's results to verdicts on what the paper says.

A claim is decided where it is met, or missed, by two Monte-Carlo standard errors, and undecided
between; a difference is that of methods on the same rows. Rules with limits state them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from covaria.paper.kept import KEPT, Results
from covaria.paper.registry import Claim, Verdict, decided
from covaria.paper.studies import SHOWN
from covaria.studies import metrics

if TYPE_CHECKING:
    import pandas as pd

WORDS = {"f1": "F1", "fdr": "FDR"}
# Parameters, and their values, as people write them.
PARAMETERS = {"rho": "ρ", "df": "ν"}
LAZY = {"lazy(stepped=False)": "lazy"}


def number(value: float) -> str:
    """Return a number as the page shows it.

    >>> number(0.7812), number(-0.05), number(12.345), number(1.0)
    ('.781', '-.050', '12.3', '1.00')
    """
    if not np.isfinite(value):
        return "—"
    if abs(value) >= 10:
        return f"{value:.3g}"
    digits = 2 if value in (0, 1) else 3
    text = f"{value:.{digits}f}" if abs(value) >= 0.0005 or value == 0 else f"{value:.1g}"
    return text.replace("0.", ".", 1) if abs(value) < 0.9995 and "e" not in text else text


def seconds(value: float) -> str:
    """Return a time with two digits.

    >>> seconds(0.01234), seconds(1.0), seconds(123.4)
    ('0.012 s', '1.0 s', '123 s')
    """
    if not np.isfinite(value):
        return "—"
    return f"{value:#.2g}".rstrip(".") + " s" if abs(value) < 100 else f"{value:.0f} s"


class Evidence:
    """The results of one simulation, asked for verdicts; claims are gathered in `claims`.

    `says` opens a sentence of the paper, and the claims that follow take it apart. A claim has the
    same id in every mode: one that has no rows to be judged by is left out, and keeps its number.
    With `praised` it is about that method alone, as the default stands in the place of GCM.
    """

    def __init__(self, figure: str, found: Results, praised: str = "") -> None:
        self.figure = figure
        counted = found.runs.drop(columns=list(KEPT), errors="ignore")
        self.runs, self.features = _named_alike(counted), _named_alike(found.features)
        self.claims: list[Claim] = []
        self._praised = praised
        self._section, self._quote, self._count = "", "", 0
        self.learner = ""  # of which alone the next claims speak

    def _shown(self, method: str) -> str:
        """Return a method's name beside its number: GCM's place may be the default's."""
        return "the default" if method == self._praised else SHOWN[method]

    def says(self, section: str, quote: str) -> None:
        """Open a sentence of the paper, with its section."""
        self._section, self._quote = section, quote

    def add(
        self, text: str, numbers: str, verdict: Verdict, methods: Iterable[str] = ("gcm",), *,
        of_time: bool = False,
    ) -> None:  # fmt: skip
        """Add a claim about methods with its verdict."""
        self._count += 1
        if self._praised and self._praised not in methods:
            return
        self.claims.append(
            Claim(self.figure, text, numbers, verdict, f"{self.figure}-{self._count}", self._quote,
                  self._section, tuple(methods), self.learner, of_time)
        )  # fmt: skip

    def pass_over(self) -> None:
        """Leave out a claim that has no rows to be judged by."""
        self._count += 1

    def mean(self, metric: str, method: str, **where: object) -> float:
        """Return a metric's average over runs."""
        runs = _part(self.runs, where)
        return float(runs.loc[runs["method"] == method, metric].mean())

    def error(self, metric: str, method: str, **where: object) -> float:
        """Return the Monte-Carlo standard error of a metric's average."""
        runs = _part(self.runs, where)
        return _error(runs.loc[runs["method"] == method, metric].to_numpy())

    def gap(self, metric: str, ours: str, rival: str, **where: object) -> tuple[float, float]:
        """Return the paired difference of two methods over all runs, and its standard error."""
        runs = _part(self.runs, where)
        keys = ["scenario", "setting", "learner", "repeat"]
        few = runs[[*keys, "method", metric]]
        a, b = (few[few["method"] == m].set_index(keys)[metric] for m in (ours, rival))
        differences = (a - b).dropna().to_numpy()
        if not len(differences):
            return float("nan"), float("inf")
        return float(differences.mean()), _error(differences)

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
        more = "more" if sign > 0 else "less"
        says = f"takes {more} time" if metric == "seconds" else f"has {word} {_named(metric)}"
        for rival in [rivals] if isinstance(rivals, str) else rivals:
            gap, error = self.gap(metric, ours, rival, **where)
            if not np.isfinite(gap):
                self.pass_over()
                continue
            shown = seconds if metric == "seconds" else number
            a, b = (shown(self.mean(metric, m, **where)) for m in (ours, rival))
            self.add(
                f"{SHOWN[ours]} {says} than {SHOWN[rival]} {place}",
                f"{a} vs {b}, paired difference {shown(gap)} ± {shown(error)}",
                _of_engine(metric, decided(sign * gap, error)), (ours, rival),
                of_time=metric == "seconds",
            )  # fmt: skip

    def everywhere(
        self, metric: str, ours: str, rival: str, over: str, values: Sequence[object], *,
        sign: float = 1.0, named: str = "", **where: object,
    ) -> None:  # fmt: skip
        """Claim that a method's metric is higher (or lower) at every value of a parameter."""
        word, name = "higher" if sign > 0 else "lower", PARAMETERS[over]
        gaps = {v: self.gap(metric, ours, rival, **where, **{over: v}) for v in values}
        if not all(np.isfinite(gap) for gap, _ in gaps.values()):
            self.pass_over()
            return
        means = {v: [self.mean(metric, m, **where, **{over: v}) for m in (ours, rival)]
                 for v in values}  # fmt: skip
        # Where both are as good as can be, neither can be better.
        best = 1.0 if sign > 0 else 0.0
        told = {v: gap for v, gap in gaps.items() if means[v] != [best, best]}
        pairs = ", ".join(f"{number(a)} vs {number(b)}" for a, b in means.values())
        self.add(
            f"{SHOWN[ours]} has {word} {_named(metric)} than {SHOWN[rival]} at every {name}{named}",
            pairs + _least_clear(told, sign, name),
            _all(decided(sign * gap, error) for gap, error in told.values()), (ours, rival),
        )  # fmt: skip

    def trend(
        self, metric: str, method: str, over: str, values: Sequence[object], named: str,
        **where: object,
    ) -> None:  # fmt: skip
        """Claim that a metric rises along a parameter: its slope over the values' ranks."""
        runs = _part(self.runs, where)
        own = runs[runs["method"] == method]
        places = {value: float(at) for at, value in enumerate(values)}
        rank = own[over].map(places).to_numpy(dtype=np.float64)
        if len(own) < 3 or np.ptp(rank) == 0:
            self.pass_over()
            return
        slope, error = _slope(np.asarray(rank), own[metric].to_numpy(dtype=np.float64))
        along = [number(self.mean(metric, method, **where, **{over: v})) for v in values]
        self.add(
            f"{SHOWN[method]}'s {_named(metric)} rises gradually with {PARAMETERS[over]}{named} "
            "(trend over the ranks)",
            f"{', '.join(along)}; slope {number(slope)} ± {number(error)}", decided(slope, error),
            (method,),
        )  # fmt: skip

    def no_worse(
        self, metric: str, ours: str, rival: str, place: str, by: float, **where: object
    ) -> None:
        """Claim that a method's metric is not lower than the rival's by more than `by`."""
        gap, error = self.gap(metric, ours, rival, **where)
        if not np.isfinite(gap):
            self.pass_over()
            return
        a, b = (number(self.mean(metric, m, **where)) for m in (ours, rival))
        self.add(
            f"{SHOWN[ours]} has as good {_named(metric)} as {SHOWN[rival]} {place} "
            f"(at most {number(by)} lower)",
            f"{a} vs {b}, paired difference {number(gap)} ± {number(error)}",
            decided(gap + by, error, strict=False), (ours, rival),
        )  # fmt: skip

    def similar(
        self, metrics: str | Sequence[str], methods: Sequence[str], place: str, within: float,
        **where: object,
    ) -> None:  # fmt: skip
        """Claim that metrics are much the same for these methods, each a claim."""
        for metric in [metrics] if isinstance(metrics, str) else metrics:
            found = {m: self.mean(metric, m, **where) for m in methods}
            if not all(np.isfinite(value) for value in found.values()):
                self.pass_over()
                continue
            most, least = max(found, key=found.__getitem__), min(found, key=found.__getitem__)
            spread, error = self.gap(metric, most, least, **where)
            self.add(
                f"{_listed(methods)} have similar {_named(metric)} {place} "
                f"(within {number(within)})",
                ", ".join(f"{self._shown(m)} {number(v)}" for m, v in found.items())
                + f"; {self._shown(most)} less {self._shown(least)}: {number(spread)} ± "
                f"{number(error)}",
                decided(within - spread, error, strict=False), methods,
            )  # fmt: skip

    def at_least(
        self, metric: str, methods: Sequence[str], place: str, limit: float, **where: object
    ) -> None:
        """Claim of each method that its metric is at least a limit."""
        self._limit(metric, methods, f"high {_named(metric)} {place} (at least", limit, 1.0, where)

    def at_most(
        self, metric: str, methods: Sequence[str], place: str, limit: float, **where: object
    ) -> None:
        """Claim of each method that its metric is at most a limit."""
        self._limit(metric, methods, f"low {_named(metric)} {place} (at most", limit, -1.0, where)

    def _limit(
        self, metric: str, methods: Sequence[str], words: str, limit: float, sign: float,
        where: dict[str, object],
    ) -> None:  # fmt: skip
        for method in methods:
            value, error = self.mean(metric, method, **where), self.error(metric, method, **where)
            if not np.isfinite(value):
                self.pass_over()
                continue
            self.add(
                f"{SHOWN[method]} has {words} {number(limit)})",
                f"{number(value)} ± {number(error)}",
                decided(sign * (value - limit), error, strict=False), (method,),
            )  # fmt: skip

    def best(self, metric: str, method: str, place: str, **where: object) -> None:
        """Claim that no method's metric is higher."""
        runs = _part(self.runs, where)
        found = runs.groupby("method", sort=False)[metric].mean()
        if method not in found:
            self.pass_over()
            return
        rival = str(found.drop(method).idxmax())
        gap, error = self.gap(metric, method, rival, **where)
        self.add(
            f"{SHOWN[method]} has the highest {_named(metric)} {place}",
            f"{number(found[method])}; next {self._shown(rival)} {number(found[rival])}, paired "
            f"difference {number(gap)} ± {number(error)}",
            decided(gap, error), (method,),
        )  # fmt: skip

    def share(self, feature: str, method: str, **where: object) -> float:
        """Return how often a method selects a feature."""
        return self._share(feature, method, where)[0]

    def _share(self, feature: str, method: str, where: dict[str, object]) -> tuple[float, float]:
        """Return how often a method selects a feature, and the standard error of that."""
        part = _part(self.features, where)
        own = part[(part["method"] == method) & (part["feature"] == feature)]
        if own.empty:
            return float("nan"), float("inf")
        share = float(np.average(own["selected"], weights=own["runs"]))
        return share, float(np.sqrt(share * (1 - share) / own["runs"].sum()))

    def finds(
        self, methods: Sequence[str], features: Sequence[str], place: str, limit: float,
        **where: object,
    ) -> None:  # fmt: skip
        """Claim of each method that it selects each of the features at least this often."""
        words = f"finds {_span(features)} {place} (each in at least"
        self._chosen(methods, features, words, limit, 1.0, where)

    def misses(
        self, methods: Sequence[str], features: Sequence[str], place: str, limit: float,
        **where: object,
    ) -> None:  # fmt: skip
        """Claim of each method that it selects each of the features at most this often."""
        words = f"does not find {_span(features)} {place} (each in at most"
        self._chosen(methods, features, words, limit, -1.0, where)

    def _chosen(
        self, methods: Sequence[str], features: Sequence[str], words: str, limit: float,
        sign: float, where: dict[str, object],
    ) -> None:  # fmt: skip
        for method in methods:
            found = [self._share(feature, method, where) for feature in features]
            if not all(np.isfinite(share) for share, _ in found):
                self.pass_over()
                continue
            verdicts = [decided(sign * (s - limit), e, strict=False) for s, e in found]
            self.add(
                f"{SHOWN[method]} {words} {number(limit)} of the runs)",
                ", ".join(number(share) for share, _ in found), _all(verdicts), (method,),
            )  # fmt: skip

    def finds_at_every(
        self, method: str, feature: str, over: str, values: Sequence[object], limit: float,
        named: str, **where: object,
    ) -> None:  # fmt: skip
        """Claim that a method selects a feature this often at every value of a parameter."""
        found = [self._share(feature, method, where | {over: value}) for value in values]
        if not all(np.isfinite(share) for share, _ in found):
            self.pass_over()
            return
        self.add(
            f"{SHOWN[method]} finds {feature} at every {PARAMETERS[over]}{named} (each in at least "
            f"{number(limit)} of the runs)",
            ", ".join(number(share) for share, _ in found),
            _all(decided(share - limit, error, strict=False) for share, error in found), (method,),
        )  # fmt: skip

    def oftener(
        self, features: Sequence[str], ours: str, rival: str, place: str, **where: object
    ) -> None:
        """Claim that a method selects each of the features at least as often as a rival."""
        pairs = [(self._share(f, ours, where), self._share(f, rival, where)) for f in features]
        if not all(np.isfinite(a) and np.isfinite(b) for (a, _), (b, _) in pairs):
            self.pass_over()
            return
        verdicts = [decided(a - b, float(np.hypot(e, d)), strict=False) for (a, e), (b, d) in pairs]
        self.add(
            f"{SHOWN[ours]} finds {_span(features)} {place} at least as often as {SHOWN[rival]}",
            ", ".join(f"{number(a)} vs {number(b)}" for (a, _), (b, _) in pairs), _all(verdicts),
            (ours, rival),
        )  # fmt: skip

    def steadier(
        self, ours: str, rival: str, over: str, values: Sequence[object], named: str,
        **where: object,
    ) -> None:  # fmt: skip
        """Claim that a method's F1 varies less over a parameter than a rival's (range of means)."""
        spread = {}
        for method in (ours, rival):
            means = [self.mean("f1", method, **where, **{over: v}) for v in values]
            errors = [self.error("f1", method, **where, **{over: v}) for v in values]
            high, low = int(np.argmax(means)), int(np.argmin(means))
            spread[method] = (means[high] - means[low], np.hypot(errors[high], errors[low]))
        (a, e), (b, d) = spread[ours], spread[rival]
        if not (np.isfinite(a) and np.isfinite(b)):
            self.pass_over()
            return
        self.add(
            f"{SHOWN[ours]}'s F1 is more stable over {PARAMETERS[over]} than {SHOWN[rival]}'s"
            f"{named} (range of its means)",
            f"{number(a)} ± {number(float(e))} vs {number(b)} ± {number(float(d))}",
            decided(b - a, float(np.hypot(e, d))), (ours, rival),
        )  # fmt: skip

    def alarms(
        self, method: str, place: str, limit: float, *, above: bool, **where: object
    ) -> None:
        """Claim that a method selects more (or no more) than a share of the useless features."""
        value = 1 - self.mean("specificity", method, **where)
        if not np.isfinite(value):
            self.pass_over()
            return
        words = "loses control of false alarms" if above else "keeps false alarms"
        more = "above" if above else "at most"
        sign = 1.0 if above else -1.0
        error = self.error("specificity", method, **where)
        self.add(
            f"{SHOWN[method]} {words} {place} ({more} {number(limit)} of the nulls)",
            f"{number(value)} ± {number(error)}",
            decided(sign * (value - limit), error, strict=above), (method,),
        )  # fmt: skip

    def time_ratio(
        self, ours: str, rival: str, place: str, low: float, high: float, **where: object
    ) -> None:
        """Claim that a method takes a share of the rival's time, between two limits."""
        a, b = (self.mean("seconds", m, **where) for m in (ours, rival))
        if not np.isfinite(a / b):
            self.pass_over()
            return
        within = Verdict.HELD if low <= a / b <= high else Verdict.OTHER
        self.add(
            f"{SHOWN[ours]} takes about half the time of {SHOWN[rival]} {place} "
            f"({number(low)} to {number(high)})",
            f"{seconds(a)} vs {seconds(b)}, ratio {number(a / b)}", within, (ours, rival),
            of_time=True,
        )  # fmt: skip


def _least_clear(gaps: Mapping[object, tuple[float, float]], sign: float, name: str) -> str:
    """Return the value of a parameter that decides, with the difference there."""
    if not gaps:
        return ""
    value = min(gaps, key=lambda v: sign * gaps[v][0] / max(gaps[v][1], 1e-12))
    gap, error = gaps[value]
    at = "∞" if value == np.inf else f"{value:g}"
    return f"; least clear at {name} = {at}: {number(gap)} ± {number(error)}"


def _all(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on a claim all of whose parts have to hold."""
    found = list(verdicts)
    for verdict in (Verdict.NOT_HELD, Verdict.UNDECIDED):
        if verdict in found:
            return verdict
    return Verdict.HELD


def _of_engine(metric: str, verdict: Verdict) -> Verdict:
    """Return a verdict on times, which are of our programs and not of R's."""
    return Verdict.OTHER if metric == "seconds" and verdict is Verdict.NOT_HELD else verdict


def _error(values: NDArray[np.float64]) -> float:
    """Return the standard error of a mean; one run says nothing of it."""
    if len(values) < 2:
        return float("inf")
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def _slope(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Return the least-squares slope of y on x, and its standard error."""
    x = x - x.mean()
    slope = float(x @ y / (x @ x))
    left = y - y.mean() - slope * x
    return slope, float(np.sqrt(left @ left / (len(y) - 2) / (x @ x)))


def _named_alike(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with one name for Lazy-VI, and the first word of each learner."""
    if "learner" not in table:
        return table
    words = {name: str(name).split("(")[0] for name in table["learner"].unique()}
    return table.assign(
        method=table["method"].replace(LAZY), word=table["learner"].map(words)
    )  # fmt: skip


def _part(table: pd.DataFrame, where: dict[str, object]) -> pd.DataFrame:
    """Return the rows whose columns have these values; a learner goes by its first word."""
    for name, value in where.items():
        table = table[table["word" if name == "learner" else name] == value]
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
