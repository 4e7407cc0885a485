"""Result: the tidy table, the scores behind it, and how it was made; frozen."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError, MissingExtra, plural, short
from covaria.execution.cost import Ledger
from covaria.options.checks import file
from covaria.options.naming import split_names
from covaria.results.about import About
from covaria.results.drawing import draw_result
from covaria.results.findings import Finding, note, texts
from covaria.results.grouping import no_groups, sentences
from covaria.results.latex import latex_table
from covaria.results.packing import check_room, pack, unpack
from covaria.results.settings import from_stored, to_stored
from covaria.results.status import Outcome, Status, has_failed
from covaria.tables.texts import checksum
from covaria.tables.tidy import Tidy
from covaria.tables.writing import whole, write_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Array = NDArray[np.float64]
FORMAT = 1
# A row of a tidy table, by the names of its columns.
Line = dict[str, Any]
# Where the seconds of each row of the cost stand among those of the methods.
STAGES = "stages"
# What a file holds, and its checksum; files of residua 0.1 have none.
PARTS = (
    "format", "about", "alerts", "findings", "table", "quality", "rows", "scores", "residuals",
    "cost", "settings", "groups",
)  # fmt: skip
# What the verdict of a feature says that top=… took; smaller shares of an interval are shown as 0.
CHOSEN, ROUNDING = "among the top", 1e-12
TEXTS = ("method", "feature", "status")
NUMBERS = ("estimate", "std_error", "low", "high", "statistic", "p_value", "p_adjusted", "effect")


def _no_cost() -> Tidy:
    """Return the table of costs of a run that kept none."""
    return Tidy(Ledger().columns())


class Table:
    """A table of a result, which is made a DataFrame when it is first read."""

    def __init__(self, default: Callable[[], Tidy] | None = None) -> None:
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, result: Result | None, owner: type) -> pd.DataFrame:
        if result is None:  # dataclasses ask for the default of the field
            if self.default is None:
                raise AttributeError(self.name)
            return self.default()  # type: ignore[return-value]
        table = vars(result)[self.name]
        if isinstance(table, Tidy):
            table = vars(result)[self.name] = table.frame()
        return table  # type: ignore[no-any-return]

    def __set__(self, result: Result, table: pd.DataFrame | Tidy) -> None:
        vars(result)[self.name] = table


class Again(Protocol):
    """What can run a result's job once more, with more methods or features."""

    def __call__(self, methods: Sequence[str], features: Sequence[str]) -> Result:
        """Return the larger result."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """What `assess` found.

    table    method, feature, estimate, std_error, low, high, statistic, p_value, p_adjusted,
             selected, status; then df, effect, effect_low, effect_high, verdict ("matters" or "no
             evidence") and robustness, the share of both residuals' variance that the two nuisance
             regressions would have to have missed in common to explain a finding away
    scores   {method: (rows, features)}; the mean is the estimate, sd/√n its standard error
    rows     which rows of the table were tested, in the order of the scores
    about    learner, splits, seed, versions, fits and seconds per method, and more
    quality  how well each regression predicts out of fold
    findings  what to know before trusting the table: kind, feature, value, text; `alerts` are
             their sentences, `warnings` those that put a verdict in doubt
    residuals  what the models of the first cross-fit left: y_given_all (rows), y_given_rest (rows,
             features), x_given_rest (rows, columns; `about["columns"]` says whose), f_given_rest
             (PCM's functions), fold (rows), and weight and cluster (rows) where there are any
    cost     stage, purpose, learner, models, seconds: what was fitted for what; it adds up to the
             run
    settings  what was asked for; assess(X, y, **settings) repeats it
    groups   with groups="auto" a row for each set of features that explain each other: features,
             size, p_value, p_adjusted, verdict, smallest, within
    """

    table: Table = Table()
    scores: Mapping[str, Array]
    rows: NDArray[np.intp]
    about: About
    quality: Table = Table()
    findings: tuple[Finding, ...] = field(default=())
    residuals: Mapping[str, Array] = field(default_factory=dict)
    cost: Table = Table(_no_cost)
    settings: Mapping[str, object] = field(default_factory=dict)
    groups: Table = Table(no_groups)
    again: Again | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "about", About.of(self.about))

    @property
    def methods(self) -> list[str]:
        return [str(m) for m in self.table["method"].drop_duplicates()]

    @property
    def features(self) -> list[str]:
        return [str(f) for f in self.table["feature"].drop_duplicates()]

    @property
    def selected(self) -> dict[str, list[str]]:
        """Return the features each method selected, in the order of the table."""
        chosen = self.table[self.table["selected"]]
        return {m: chosen.loc[chosen["method"] == m, "feature"].tolist() for m in self.methods}

    @property
    def verdict(self) -> str:
        """Return the method that decides where several are combined, else nothing."""
        return next((method for method in self.methods if is_combination(method)), "")

    @property
    def alerts(self) -> tuple[str, ...]:
        """Return the sentences to read before trusting the table."""
        return texts(self.findings)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Return the findings that put a verdict in doubt."""
        return tuple(finding for finding in self.findings if finding.is_warning)

    @property
    def failures(self) -> dict[str, str]:
        """Return why fits failed, by "method: feature"."""
        failed = self.table[self.table["status"].map(has_failed)]
        keys = failed["method"].astype(str) + ": " + failed["feature"].astype(str)
        return dict(zip(keys, failed["status"], strict=True))

    def but(self, **parts: Any) -> Result:
        """Return the result with other parts; tables that nobody has read are not made."""
        return Result(**{**vars(self), **parts})

    def only(self, *methods: str) -> Result:
        """Return the part of the result that belongs to `methods`."""
        for method in methods:
            if method not in self.methods:
                raise InputError(f"This result has no '{method}', only {', '.join(self.methods)}.")
        kept = self.table[self.table["method"].isin(methods)].reset_index(drop=True)
        scores = {m: self.scores[m] for m in methods if m in self.scores}
        return replace(self, table=kept, scores=scores)

    def extend(
        self, *, methods: str | Sequence[str] = (), features: str | Sequence[str] = ()
    ) -> Result:
        """Return the result with more methods or features; what it has is not fitted again.

        The numbers are those of `assess` with all of them. Models are not kept, but what they
        predicted: dropout, permutation and cpi fit that of y on all columns once more. A result
        that was read from a file or sent to another process cannot be extended, nor one of so large
        a table that its predictions take more than 256 MB.
        """
        if self.again is None:
            raise InputError(
                "This result has only what it shows: it was read from a file, sent from another "
                "process, or its predictions were too large to keep. Call covaria.assess(X, y, "
                "**{**result.settings, 'methods': [...]})."
            )
        return self.again(_names(methods), _names(features))

    @property
    def verdicts(self) -> pd.DataFrame:
        """Return one row per feature, the clearest first: what each method says, and a verdict."""
        import pandas as pd

        rows = [_verdict(tests, self.about.methods, self.about.top) for tests in _tests_of(self)]
        return pd.DataFrame(rows)

    def __str__(self) -> str:
        lines = [self.headline, "", plain_table(self.verdicts)]
        return "\n".join([*lines, *(f"! {alert}" for alert in self.alerts), self.costs])

    __repr__ = __str__

    @property
    def headline(self) -> str:
        """Return the answer in one sentence."""
        decides = self.table["method"] == self.verdict if self.verdict else True
        chosen = self.table.loc[self.table["selected"] & decides, "feature"].nunique()
        about = self.about
        correction = {"none": "unadjusted"}.get(about.correction, about.correction.upper())
        singles = (
            f"{chosen} of {len(self.features)} features matter for '{short(about.target)}' "
            f"({', '.join(self.methods)}; {correction}, level {about.alpha:g})."
        )
        if about.top is not None:
            singles = (
                f"The {about.top} strongest of {len(self.features)} features for "
                f"'{short(about.target)}' were chosen ({', '.join(self.methods)}), whatever their "
                "p-values."
            )
        names = self.table.loc[self.table["selected"] & decides, "feature"].tolist()
        return " ".join([*sentences(self.groups, names, describe_p), singles])

    @property
    def costs(self) -> str:
        """Return how many models were fitted, and for what, in one sentence."""
        counts = self.cost.groupby("purpose", sort=False)["models"].sum()
        parts = [f"{count:,} {purpose}" for purpose, count in counts.items() if count]
        total = plural(int(counts.sum()), "model")
        return f"{total} fitted: {', '.join(parts)}." if parts else f"{total} fitted."

    def _repr_html_(self) -> str:
        from covaria.results.notebook import page

        drawn = next(iter(self.scores), "")
        effects = self.table[self.table["method"] == drawn].to_dict(orient="records")
        side = self.about.methods.get(drawn, "")
        lines = cast(list[Line], effects)
        return page(self.headline, self.verdicts, lines, self.alerts, side)

    def summary(self) -> str:
        """Return the answer, the verdicts, what to know before trusting them, how they came."""
        from covaria.results.notebook import Text

        about = self.about
        made = (
            f"Learner {short(about.learner_text)}; {about.splits}; seed {about.seed}; "
            f"{plural(about.n_tested, 'row')} tested."
        )
        doubts = [f"!! {text}" for text in texts(self.warnings)]
        notes = [f"! {alert}" for alert in self.alerts if f"!! {alert}" not in doubts]
        table = plain_table(self.verdicts)
        return Text("\n".join([self.headline, "", table, "", *doubts, *notes, made, self.costs]))

    def plot(self, kind: str = "forest", **options: object) -> Axes:
        """Return the axes of a picture: forest, p_values, quality, residuals or cost.

        Options are those of the function of that name in `covaria.plots`.
        """
        return draw_result(self, kind, options)

    def to_latex(self, *, caption: str = "", label: str = "") -> str:
        """Return the verdicts as a LaTeX table (booktabs), every name escaped."""
        return latex_table(self.verdicts, caption or self.headline, label)

    def to_dict(self) -> dict[str, object]:
        """Return everything as values that json can hold; arrays as compressed text."""
        return {
            "format": FORMAT,
            "about": {**self.about, "seconds": self._seconds},
            "findings": [finding.to_dict() for finding in self.findings],
            "table": {name: cells(column) for name, column in self.table.items()},
            "quality": {name: cells(column) for name, column in self.quality.items()},
            "rows": pack(self.rows.astype(np.int64)),
            "scores": {name: pack(array) for name, array in self.scores.items()},
            "residuals": {name: pack(array) for name, array in self.residuals.items()},
            "cost": {n: cells(self.cost[n]) for n in self.cost if n != "seconds"},
            "settings": {name: to_stored(value) for name, value in self.settings.items()},
            **self._stored_groups,
        }

    @property
    def _stored_groups(self) -> dict[str, object]:
        """Return the sets of features, where they were looked for."""
        sets = {str(name): cells(column) for name, column in self.groups.items()}
        return {"groups": sets} if len(self.groups) else {}

    @property
    def _seconds(self) -> dict[str, object]:
        """Return all times, which differ from run to run: a file has them in one place."""
        stages = {STAGES: cells(self.cost["seconds"])} if len(self.cost) else {}
        return {**self.about.seconds, **stages}

    @property
    def lines(self) -> list[Line]:
        """Return the rows of the table as values that json can hold."""
        return lines_of(self.table)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the result as JSON text, and write it where a path is given."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)
        mark = checksum(json.loads(text))
        text = text.replace("{", f'{{\n "checksum": "{mark}",', 1)
        if path is not None:
            write_text(file("path", path), text + "\n")
        return text

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Result:
        """Return the result that `to_dict` described."""
        if not isinstance(stored, Mapping) or stored.get("format") != FORMAT:
            raise InputError("This is not a result that this version of covaria wrote.")
        try:
            return cls(**_read(stored))
        except (*DAMAGED, zlib.error) as error:
            reason = short(str(error) or type(error).__name__, 150)
            raise InputError(f"This is not a result of covaria, or damaged ({reason}).") from error

    @classmethod
    def from_json(cls, path: str | Path) -> Result:
        """Return the result stored in a file, or raise where it is not as it was written."""
        path = file("path", path)
        try:
            stored = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number)
            if not stored.keys() <= {*PARTS, "checksum"}:
                raise KeyError
        except DAMAGED:
            raise InputError(f"{path} does not hold a covaria result.") from None
        if "checksum" in stored and stored.pop("checksum") != checksum(stored):
            raise InputError(
                f"{path} is not as it was written: its checksum does not fit. Make it again."
            )
        try:
            return cls.from_dict(stored)
        except InputError as error:
            raise InputError(f"{path} does not hold a covaria result: {error}") from error

    def to_parquet(self, path: str | Path) -> None:
        """Write the table as Parquet."""
        with whole(path) as beside:
            try:
                self.table.to_parquet(beside, index=False)
            except ImportError:
                try:
                    import polars
                except ImportError:
                    raise MissingExtra("Parquet", "polars") from None
                polars.DataFrame(self.table.to_dict(orient="list")).write_parquet(beside)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]


def _names(given: str | Sequence[str]) -> list[str]:
    """Return names that were given as one text or as several."""
    return split_names(given) if isinstance(given, str) else [str(name) for name in given]


def _findings(stored: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Return the findings of a stored result; the first results had sentences only."""
    if "findings" not in stored:
        found = [note(text) for text in stored["alerts"]]
    else:
        found = [Finding(**finding) for finding in stored["findings"]]
    if not all(isinstance(finding.text, str) for finding in found):
        raise InputError("a finding has no sentence")
    return tuple(found)


def _quality(stored: Mapping[str, Any]) -> pd.DataFrame:
    """Return the table of regressions' quality, its columns under today's names."""
    from covaria.diagnostics.table import Quality

    return Quality.of(_frame(stored))


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, float) and not isfinite(value))


def cells(column: Any) -> list[object]:
    """Return a column's values, with None where json has no number for a cell."""
    values: list[object] = column.tolist()
    return [None if _is_empty(value) else value for value in values]


def lines_of(frame: pd.DataFrame) -> list[Line]:
    """Return the rows of any tidy table as values that json can hold."""
    columns = {str(name): cells(column) for name, column in frame.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def is_combination(method: str) -> bool:
    """Return whether a method's name says that it combines others: "gcm+pcm"."""
    return "+" in method.split("(")[0]


# What reading something else than was written can end with.
DAMAGED = (
    ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError,
    MemoryError,
)  # fmt: skip


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def _read(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a result, checked as far as the numbers themselves can tell."""
    arrays = {part: dict(stored[part]) for part in ("scores", "residuals")}
    check_room([stored["rows"], *arrays["scores"].values(), *arrays["residuals"].values()])
    rows = unpack(stored["rows"])
    scores, residuals = ({n: unpack(a) for n, a in part.items()} for part in arrays.values())
    table = _frame(stored["table"])
    _check_table(table)
    for array in scores.values():
        if rows.ndim != 1 or array.shape != (len(rows), table["feature"].nunique()):
            raise InputError("its scores do not fit its table")
    about = stored["about"]
    if not isinstance(about, Mapping):
        raise InputError("it does not say how it was made")
    seconds = dict(about["seconds"])
    stages = seconds.pop(STAGES, [])
    return {
        "table": table,
        "scores": scores,
        "rows": rows.astype(np.intp),
        "about": About.of({**about, "seconds": seconds}),
        "quality": _quality(stored["quality"]),
        "findings": _findings(stored),
        "residuals": residuals,
        "cost": _frame({**stored["cost"], "seconds": stages})
        if stages and "cost" in stored
        else _no_cost(),
        "settings": {name: from_stored(s) for name, s in stored.get("settings", {}).items()},
        "groups": _frame(stored["groups"]) if "groups" in stored else no_groups(),
    }


def _frame(columns: Mapping[str, list[object]]) -> pd.DataFrame:
    """Return a table with columns of empty cells as numbers again."""
    import pandas as pd

    if not all(isinstance(cells, list) for cells in columns.values()):
        raise InputError("a column of its table is none")
    table = pd.DataFrame(dict(columns))
    empty = [name for name in table.columns if table[name].isna().all()]
    return table.astype(dict.fromkeys(empty, float))


def _check_table(table: pd.DataFrame) -> None:
    for name in TEXTS:
        if not all(isinstance(value, str) for value in table[name]):
            raise InputError(f"its column {name} is not text")
    if not all(isinstance(value, bool | np.bool_) for value in table["selected"]):
        raise InputError("its column selected is not yes or no")
    for name in NUMBERS:
        values = table[name].dropna().to_numpy()
        if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
            raise InputError(f"its column {name} is not numbers")
    if table.duplicated(["method", "feature"]).any():
        raise InputError("it has a test twice")


def bare_table(result: Result) -> Tidy:
    """Return the table of a result as columns; no DataFrame is made for that."""
    table = vars(result)["table"]
    return table if isinstance(table, Tidy) else Tidy({n: c.tolist() for n, c in table.items()})


def describe_effect(line: Mapping[str, Any], alternative: str = "two-sided") -> str:
    """Return an effect with its interval, or with its bound if the test has one side, or a dash."""
    if line["status"] != "ok" or _is_empty(line["effect"]):
        return "—"
    effect, low, high = line["effect"], line["effect_low"], line["effect_high"]
    if _is_empty(low):
        return f"{effect:.3g}"
    effect = 0.0 if abs(effect) < ROUNDING * abs(high - low) else effect
    if alternative == "greater":
        return f"{effect:.3g} (≥ {low:.3g})"
    if alternative == "less":
        return f"{effect:.3g} (≤ {high:.3g})"
    return f"{effect:.3g} [{low:.3g}, {high:.3g}]"


def describe_p(p: float | None) -> str:
    """Return a p-value as people write it.

    >>> describe_p(0.0314), describe_p(2e-9), describe_p(1e-40), describe_p(1.0)
    ('.031', '2e-09', '<1e-16', '1')
    """
    if p is None or isnan(p):
        return "—"
    if p < 1e-16:
        return "<1e-16"
    if p < 0.001:
        return f"{p:.0e}"
    return "1" if p > 0.9995 else f"{p:.3f}".lstrip("0")


def mattering(result: Result) -> list[str]:
    """Return the features of which the verdict is that they matter, the clearest first."""
    return [tests[0]["feature"] for tests in _tests_of(result) if _matters(tests)]


def _tests_of(result: Result) -> list[list[Line]]:
    """Return the tests of each feature, the clearest feature first."""
    by_feature: dict[str, list[Line]] = {name: [] for name in result.features}
    for line in cast(list[Line], result.table.to_dict(orient="records")):
        by_feature[line["feature"]].append(line)
    return sorted(by_feature.values(), key=_clearest)


def _clearest(tests: list[Line]) -> tuple[float, float]:
    """Return what puts the clearest feature first: its smallest p, else its largest statistic."""
    p_values = [test["p_value"] for test in tests if not isnan(test["p_value"])]
    return min(p_values, default=0.0), -max(abs(test["statistic"]) for test in tests)


def _verdict(tests: list[Line], sides: Mapping[str, str], top: int | None) -> dict[str, object]:
    """Return what the tests say of one feature, in a row for people."""
    row: dict[str, object] = {"feature": tests[0]["feature"]}
    for test in tests:
        if not isnan(test["estimate"]):
            row[test["method"]] = describe_effect(test, sides.get(test["method"], ""))
        if not isnan(test["p_value"]):
            row[f"{test['method']} p"] = describe_p(test["p_adjusted"])
    return {**row, "verdict": _in_words(tests, top)}


def _selecting(tests: list[Line]) -> list[str]:
    return [test["method"] for test in tests if test["selected"]]


def _combining(tests: list[Line]) -> list[str]:
    return [test["method"] for test in tests if is_combination(test["method"])]


def _matters(tests: list[Line]) -> bool:
    """Return whether the combinations select a feature, or where there is none any method."""
    chosen, combined = _selecting(tests), _combining(tests)
    return set(combined) <= set(chosen) if combined else bool(chosen)


def _in_words(tests: list[Line], top: int | None) -> str:
    """Return the verdict of all tests on one feature."""
    chosen, combined = _selecting(tests), _combining(tests)
    only = f" ({', '.join(chosen)} only)"
    if _matters(tests):
        matters = "matters" if top is None else f"{CHOSEN} {top}"  # whatever its p-value
        return matters if combined or len(chosen) == len(tests) else matters + only
    every = {test.get("verdict") for test in tests}
    if "cannot tell" in every:
        return "cannot tell"
    if chosen:
        return "unclear" + only
    return "negligible" if "negligible" in every else _without_verdict(tests)


def _without_verdict(tests: list[Line]) -> str:
    """Return why there is no verdict, or that there is no evidence."""
    every = [Status.of(str(test["status"])) for test in tests]
    if all(status.is_failed for status in every):
        return short(str(every[0]), 60)
    for outcome in (Outcome.CONSTANT, Outcome.UNUSED, Outcome.REDUNDANT):
        if all(status.is_failed or status.outcome is outcome for status in every):
            return str(outcome)
    return "no evidence"


def plain_table(frame: pd.DataFrame, widest: int = 40) -> str:
    """Return the frame as lines of aligned text, names shown as they are."""
    cells = [[short(str(value), widest) for value in row] for row in frame.itertuples(index=False)]
    rows = [[short(str(name), 60) for name in frame.columns], *cells]
    widths = [max(cell_width(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ("  ".join(_padded(v, w) for v, w in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cell_width(text))


def cell_width(text: str) -> int:
    """Return how many columns of a terminal a text takes: two for a wide letter.

    >>> cell_width("price"), cell_width("价格")
    (5, 4)
    """
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
