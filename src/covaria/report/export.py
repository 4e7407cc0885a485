"""The facts of a page as JSON and CSV, to be carried inside it."""

from __future__ import annotations

import base64
import csv
import io
import json

from covaria.errors import visible
from covaria.report.facts import Facts
from covaria.tables.files import safe_cell

# Enough to tell any two figures apart that a page shows; the files of --out have all digits.
DIGITS = 8


COLUMNS = (
    "feature", "verdict", "method", "estimate", "std_error", "low", "high", "statistic", "p_value",
    "p_adjusted", "selected", "status", "df", "effect", "effect_low", "effect_high",
)  # fmt: skip


def as_json(facts: Facts) -> str:
    """Return the facts as one JSON document in ASCII, so that any text survives.

    Tables are columns rather than rows: the same facts in half the letters.
    """
    lines = table(facts)
    document = {
        **{name: value for name, value in facts.items() if name != "verdicts"},
        "table": {name: [line[name] for line in lines] for name in COLUMNS},
        "quality": {
            name: [row[name] for row in facts["quality"]] for name in (facts["quality"] or [{}])[0]
        },
    }
    return json.dumps(_rounded(document), allow_nan=False, separators=(",", ":"))


def table(facts: Facts) -> list[dict[str, object]]:
    """Return a line for every feature and method, the clearest feature first."""
    return [
        {**test, "feature": row["feature"], "verdict": row["verdict"]}
        for row in facts["verdicts"]
        for test in row["tests"]
    ]


def as_csv(facts: Facts) -> str:
    """Return the table as CSV in which no cell of text is a formula to a spreadsheet."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for line in table(facts):
        writer.writerow([_cell(line[name]) for name in COLUMNS])
    return text.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, str):
        return safe_cell(visible(value))
    return "" if value is None else _rounded(value)


def _rounded(value: object) -> object:
    """Return the value with its floats rounded, and keys as text."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {str(key): _rounded(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(inner) for inner in value]
    return value


def data_link(text: str, kind: str) -> str:
    """Return an address that holds the text itself."""
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"
