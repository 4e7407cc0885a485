"""The facts of a page: what `summarize` says and everything else on the page only reads."""

from __future__ import annotations

from typing import TypedDict

# A cell of a table, as json holds it, and a row of cells by the names of their columns.
Cell = str | float | bool | None
Line = dict[str, Cell]


class MethodFacts(TypedDict):
    """One method: what it measures and what it cost."""

    name: str
    tests: bool
    has_effect: bool
    effect: str
    alternative: str
    fits: int
    seconds: float


class TestFacts(TypedDict):
    """What one method says of one feature."""

    method: str
    estimate: float | None
    std_error: float | None
    low: float | None
    high: float | None
    statistic: float | None
    p_value: float | None
    p_adjusted: float | None
    status: str
    df: float | None
    effect: float | None
    effect_low: float | None
    effect_high: float | None
    selected: bool
    effect_text: str
    p_text: str


class VerdictFacts(TypedDict):
    """What all methods say of one feature."""

    feature: str
    verdict: str
    matters: bool
    tests: list[TestFacts]


class SetFacts(TypedDict):
    """What is known of features that were tested together."""

    features: list[str]
    p_value: float
    p_adjusted: float
    p_text: str
    verdict: str
    smallest: bool


class AboutFacts(TypedDict, total=False):
    """The parts of `Result.about` that the page itself reads; it shows the others as they are."""

    alpha: float
    learner_text: str


class Facts(TypedDict):
    """A result, in the order a reader wants it."""

    title: str
    headline: str
    answer: str
    selected: dict[str, list[str]]
    alerts: list[str]
    methods: list[MethodFacts]
    verdicts: list[VerdictFacts]
    sets: list[SetFacts]
    quality: list[Line]
    cost: list[Line]
    efficiency: dict[str, object]
    paragraph: str
    references: list[str]
    repeat: str
    about: AboutFacts


class Bar(TypedDict):
    """A point with its interval and what to write beside it."""

    label: str
    effect_text: str
    selected: bool
    at: float
    low: float | None
    high: float | None


class Picture(TypedDict):
    """Points with intervals below a heading."""

    heading: str
    lines: list[Bar]


class TablesFacts(TypedDict):
    """A page of tables."""

    title: str
    answer: str
    alerts: list[str]
    pictures: list[Picture]
    tables: list[dict[str, object]]
    about: dict[str, object]


class TimesFacts(TypedDict):
    """How often one method selected one feature."""

    method: str
    feature: str
    times: int
    frequency: float
    selected: bool


class StableFacts(TypedDict):
    """A feature with how often each method selected it."""

    feature: str
    by: list[TimesFacts]


class StabilityFacts(TypedDict):
    """How often features were selected."""

    methods: list[str]
    count: int
    parts: str
    needed: int
    threshold: float
    expected_false: dict[str, dict[str, float]]
    rows: list[StableFacts]


class StabilityPage(StabilityFacts):
    """A page of a stability run."""

    title: str
    answer: str
    alerts: list[str]
    about: dict[str, object]
