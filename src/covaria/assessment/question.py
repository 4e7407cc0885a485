"""Is x independent of y given others? Two regressions, one p-value.

The test is `assess` on the columns of x and given, of which x alone is tested: nothing here has a
statistic of its own. With y of several columns each is tested, and the smallest p-value is counted
as often as there are columns (Bonferroni): x is independent of all of them at once only if it is of
each, and the bound holds however they depend on each other.

PCM looks for what x tells of the mean of y, and sees y = x² where y tells nothing of the mean of x.
With `symmetric` both ways are asked, and the smaller p-value is counted twice.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite
from typing import Any, cast

from covaria.assessment.asked import check_sampled
from covaria.assessment.columns import Columns, of_arrays, of_formula, of_frame
from covaria.assessment.front import assess
from covaria.errors import InputError, did_you_mean, listed, plural, short
from covaria.learners import Prefit, get_learner
from covaria.options.checks import between_0_and_1, truth
from covaria.options.familiar import unknown_option
from covaria.results.findings import Finding, texts
from covaria.results.result import Line, Result, describe_effect, describe_p
from covaria.tables.files import opened
from covaria.tables.formulas import is_formula
from covaria.tables.sampling import at_hand

# Of `assess`, what the question itself settles.
SETTLED = ("X", "y", "features", "groups", "correction", "top", "alpha", "task", "predictions",
           "rows")  # fmt: skip
# What may be a column of the same table, by its name.
BESIDE = ("sample_weight", "clusters", "event")
MATTERS, CANNOT_TELL, NO_EVIDENCE, NEGLIGIBLE = (
    "matters", "cannot tell", "no evidence", "negligible",
)  # fmt: skip


@dataclass(frozen=True)
class Independence:
    """What `independence_test` found.

    statistic    of the method that decides; p_value is that of its null: x independent of y
    effect       how much, in the unit that `effect_kind` names, with its interval: where the
                 `alternative` has one side, a bound and the most that can be
    robustness   the share of both residuals' variance that both regressions would have to have
                 missed in common to explain the finding away; 0 where there is none
    verdict      "matters", "cannot tell" or "no evidence"; with margin= also "negligible"
    findings     what to know before trusting it; `warnings` put the verdict in doubt
    results      the `Result` behind it, one for each column of y
    """

    x: tuple[str, ...]
    y: tuple[str, ...]
    given: tuple[str, ...]
    method: str
    statistic: float
    p_value: float
    effect: float
    interval: tuple[float, float]
    effect_kind: str
    robustness: float
    verdict: str
    findings: tuple[Finding, ...]
    n_rows: int
    alpha: float
    results: tuple[Result, ...] = field(repr=False, compare=False)
    alternative: str = "two-sided"

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Return the findings that put the verdict in doubt."""
        return tuple(finding for finding in self.findings if finding.is_warning)

    @property
    def headline(self) -> str:
        """Return the answer in one sentence."""
        x, y = listed(list(self.x)), listed(list(self.y))
        given = f" given {listed(list(self.given))}" if self.given else ""
        said = f"{y if len(self.y) == 1 else f'One of {y} or more'} depends on {x}{given}."
        if self.verdict == MATTERS:
            return said
        if self.verdict == NEGLIGIBLE:
            which = f"{y} does not depend" if len(self.y) == 1 else f"None of {y} depends"
            return f"{which} on {x}{given} by as much as {self._margin} of its variance."
        unsure = "Cannot tell whether" if self.verdict == CANNOT_TELL else "No evidence that"
        return f"{unsure} {said}"

    def __str__(self) -> str:
        line = {"status": "ok", "effect": self.effect, **self._ends}
        effect = describe_effect(line, self.alternative)
        numbers = [
            f"p = {describe_p(self.p_value)}",
            f"statistic {self.statistic:.3g}",
            f"{self.effect_kind} {effect}",
            f"robustness {self.robustness:.2g}",
            plural(self.n_rows, "row"),
        ]
        lines = [self.headline, f"{self.method}: {', '.join(numbers)}."]
        return "\n".join([*lines, *(f"! {text}" for text in texts(self.findings))])

    __repr__ = __str__

    @property
    def _margin(self) -> str:
        """Return the share of Var(y) that margin= named."""
        return f"{100 * float(cast(float, self.results[0].settings['margin'])):g}%"

    @property
    def _ends(self) -> dict[str, float]:
        return {"effect_low": self.interval[0], "effect_high": self.interval[1]}

    def to_dict(self) -> dict[str, object]:
        """Return everything but the results as values that json can hold."""
        names = ("method", "statistic", "p_value", "effect", "effect_kind", "robustness",
                 "verdict", "n_rows", "alpha", "alternative")  # fmt: skip
        columns = {role: list(getattr(self, role)) for role in ("x", "y", "given")}
        return {
            **columns,
            **{name: getattr(self, name) for name in names},
            "interval": [end if isfinite(end) else None for end in self.interval],
            "findings": [finding.to_dict() for finding in self.findings],
        }


def independence_test(
    x: object,
    y: object,
    target: object = None,
    /,
    *,
    given: object = None,
    task: str = "auto",
    alpha: float = 0.05,
    rows: int | None = None,
    symmetric: bool = False,
    **options: Any,
) -> Independence:
    """Return whether x is independent of y given other columns, with a p-value.

    Parameters
    ----------
    x
        An array, Series or frame of any width: numbers, or text and categories as classes. Or a
        frame, or the path of a file, followed by two names: `independence_test(frame, "x", "y",
        given=["a", "b"])`. Or a formula, followed by a frame: "y ~ x | a + b".
    y
        What x may depend on, of any kind and width as well; after a frame the name of x.
    target
        After a frame the name of y; otherwise nothing.
    given
        What both may depend on: the columns to condition on, or after a frame their names.
        Without it, plain independence.
    task
        Whether y is numbers or classes; "auto" sees.
    alpha
        The level of the verdict.
    rows
        After a frame or a path: test a random sample of so many rows.
    symmetric
        Whether to ask also what y tells of x: where neither is the outcome. The smaller p-value
        counts twice then. GCM alone is the same both ways.
    options
        Of `assess`: learner, methods, splits, sample_weight, clusters, confidence, repeats, seed, …
        The default regresses with "auto" and combines GCM and PCM.

    x of several columns is tested as one. With y of several columns the smallest p-value is counted
    as often as there are columns.

    Examples
    --------
    >>> import numpy as np
    >>> from covaria import independence_test
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=400)
    >>> x, y = z + rng.normal(size=400), z + rng.normal(size=400)
    >>> independence_test(x, y, learner="linear").verdict
    'matters'
    >>> independence_test(x, y, given=z, learner="linear").verdict
    'no evidence'
    """
    check_question(options)
    columns, said = _columns(x, y, target, given, rows, options)
    level, asked = between_0_and_1("alpha", alpha), _rows(columns, options)
    ways = [(columns, task)]
    if truth("symmetric", symmetric):
        _check_symmetric(asked)
        ways.append((replace(columns, x=columns.y, y=columns.x), "auto"))
    tests = [
        _Test(_assessed(one, name, {**asked, "task": kind, "alpha": level / n_tests}), n_tests)
        for one, kind in ways
        for n_tests in [len(ways) * len(one.y)]
        for name in one.y
    ]
    return _concluded(columns, tests, level, said)


@dataclass(frozen=True)
class _Test:
    """The test of one column of y, and how often its p-value counts."""

    result: Result
    count: int

    @cached_property
    def row(self) -> Line:
        """Return the row of the combination, or of the first test; where there is none, refuse."""
        rows = self.result.table.to_dict(orient="records")
        tests = [row for row in rows if isfinite(float(row["p_value"]))]
        if not tests:
            method = self.result.methods[-1]
            raise InputError(f"{method} has no p-value. Use a test, such as methods='gcm'.")
        row = next((row for row in tests if row["method"] == self.result.verdict), tests[0])
        return {str(name): value for name, value in row.items()}

    @property
    def p_value(self) -> float:
        return min(1.0, self.count * float(self.row["p_value"]))


def _check_symmetric(options: Mapping[str, object]) -> None:
    """Raise where something is of y alone, so that x cannot take its place."""
    for name in ("event", "loss", "effect", "margin", "missing_target"):
        if options.get(name) is not None:
            raise InputError(
                f"symmetric asks what y tells of x as well, and {name} is of y alone. Leave out "
                "one of the two."
            )
    if isinstance(get_learner(options.get("learner", "auto")), Prefit):
        raise InputError("A prefit model predicts y, not x. Leave out symmetric.")


def _columns(
    x: object, y: object, target: object, given: object, rows: int | None, options: dict[str, Any]
) -> tuple[Columns, list[str]]:
    """Return which columns were asked of, and what was done to read them."""
    if is_formula(x) and target is None:
        if given is not None:
            raise InputError("A formula says what is given: put it behind |, and leave out given.")
        table, said = _read(y, rows, options)
        beside = [options.get(name) for name in BESIDE]
        return of_formula(str(x), table, beside), said
    if target is not None:
        table, said = _read(x, rows, options)
        return of_frame(table, y, target, given), said
    check_sampled(x=x if rows is not None else None)
    return of_arrays(x, y, given), []


def _read(table: object, rows: int | None, options: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return a table, or a sample of one that is larger than memory, and what was done for it."""
    table, notes = opened(table)
    found, said = at_hand(table, rows, options.get("seed", 0))
    if said:
        check_sampled(**{name: options.get(name) for name in BESIDE})
    return found, [*notes, *said]


def check_question(options: Mapping[str, object]) -> None:
    """Raise a sentence where a test of one question has no such option."""
    known = [name for name in inspect.signature(assess).parameters if name not in SETTLED]
    for name in options:
        if name not in known:
            raise unknown_option(name, known, where="independence_test")


def _rows(columns: Columns, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with weights, clusters and events as values, where they were named."""
    found = dict(options)
    for name in BESIDE:
        column = found.get(name)
        if isinstance(column, str):
            if column not in columns.table:
                hint = did_you_mean(column, columns.table.columns)
                raise InputError(f"There is no column '{short(column)}' of {name}.{hint}")
            found[name] = columns.table[column]
    return found


def _assessed(columns: Columns, target: str, options: Mapping[str, Any]) -> Result:
    """Return the test of x for one column of y."""
    label, groups = columns.x[0], None
    if len(columns.x) > 1:
        label = "x"
        while label in columns.given:
            label += "_"
        groups = {label: columns.x}
    table = columns.table[[*columns.x, *columns.given]]
    return assess(table, columns.table[target], features=[label], groups=groups, **options)


def _concluded(
    columns: Columns, tests: Sequence[_Test], alpha: float, said: Sequence[str]
) -> Independence:
    """Return the answer of the test that says most."""
    best = min(tests, key=lambda test: (test.p_value, float(test.row["p_value"])))
    row, result = best.row, best.result
    effect = _with_effect(result)
    return Independence(
        x=columns.x,
        y=columns.y,
        given=columns.given,
        method=str(row["method"]),
        statistic=float(row["statistic"]),
        p_value=best.p_value,
        effect=float(effect["effect"]),
        interval=(float(effect["effect_low"]), float(effect["effect_high"])),
        effect_kind=str(result.about.effects[str(effect["method"])]),
        robustness=float(row["robustness"]),
        verdict=_verdict(best, tests),
        findings=(
            *(Finding("note", "", None, text) for text in said),
            *(
                finding
                for one in tests
                for finding in one.result.findings
                if finding.kind != "some_features"
            ),
        ),
        n_rows=result.about.n_rows,
        alpha=alpha,
        results=tuple(test.result for test in tests),
        alternative=str(result.about.methods.get(str(effect["method"]), "two-sided")),
    )


def _verdict(best: _Test, tests: Sequence[_Test]) -> str:
    """Return the verdict of the test that says most; what is negligible is so for each."""
    verdicts = {str(test.row["verdict"]) for test in tests}
    said = str(best.row["verdict"])
    return NO_EVIDENCE if said == NEGLIGIBLE and len(verdicts) > 1 else said


def _with_effect(result: Result) -> Line:
    """Return the row of the first method that has an effect."""
    rows = result.table.to_dict(orient="records")
    found = next((row for row in rows if isfinite(float(row["effect"]))), rows[0])
    return {str(name): value for name, value in found.items()}
