"""Facts to one HTML page: offline, escaped, with its style and figure inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from residua.report.summarize import summarize
from residua.result import Result


def write_report(result: Result, path: str | Path) -> Path:
    """Return the path of the page that was written."""
    path = Path(path)
    path.write_text(render(summarize(result)), encoding="utf-8")
    return path


def render(facts: dict[str, Any]) -> str:
    """Return the page; the same facts give the same bytes."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("residua.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("report.html")
    return page.render(facts=facts, forests=[_forest(facts, m) for m in facts["methods"]])


def _forest(facts: dict[str, Any], method: dict[str, Any]) -> dict[str, Any]:
    """Return where each effect and its interval lie between 0 and 100, for one method."""
    lines = [
        {"feature": verdict["feature"], **test}
        for verdict in facts["verdicts"]
        for test in verdict["tests"]
        if test["method"] == method["name"] and test["status"] == "ok" and method["tests"]
    ]
    ends = [0.0, *(line["effect_low"] for line in lines), *(line["effect_high"] for line in lines)]
    low, high = min(ends), max(ends)
    width = (high - low) or 1.0

    def place(value: float) -> float:
        return float(round(2 + 96 * (value - low) / width, 3))

    for line in lines:
        line["at"] = {end: place(line[f"effect{end}"]) for end in ("", "_low", "_high")}
    about = {"method": method["name"], "effect": method["effect"]}
    return {**about, "lines": lines, "zero": place(0.0), "low": low, "high": high}
