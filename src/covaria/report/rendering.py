"""Facts to one HTML page: offline, escaped, with its style, script and figures inside."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, cast

from covaria.errors import InputError, short, visible
from covaria.options.checks import file, text
from covaria.report import geometry
from covaria.report.export import as_csv, as_json, data_link
from covaria.report.facts import Bar, Cell, Facts, Line, StabilityFacts, TablesFacts
from covaria.report.summaries import stability_facts, summarize, summarize_stability
from covaria.report.tables import RefitLike, StudyLike, refit_facts, study_facts
from covaria.results.residual_views import effects_by_fold, folds_of, points_each, residual_pair
from covaria.results.result import Result, describe_p
from covaria.tables.writing import write_text

if TYPE_CHECKING:
    from markupsafe import Markup

    from covaria.selection.stability import Stability

# Pictures of all features hold this many, the clearest; the table holds them all.
MOST_DRAWN = 40
LONGEST_NAME = 80
LONGEST_SENTENCE = 600


def write_report(
    result: object,
    path: str | Path,
    *,
    stability: Stability | None = None,
    title: str | None = None,
) -> Path:
    """Return the path of the page that was written.

    Parameters
    ----------
    result
        What `assess`, `stability` or `run_study` found.
    path
        The file to write; the same result gives the same bytes.
    stability
        A stability run of the same table, shown beside the result.
    title
        Instead of "What matters for …".
    """
    path = file("path", path)
    write_text(path, page_of(result, stability=stability, title=title))
    return path


def page_of(result: object, *, stability: Stability | None = None, title: str | None = None) -> str:
    """Return the page of a result, a stability run, a study or a refit."""
    title = None if title is None else text("title", title)
    if isinstance(result, Result):
        return render(summarize(result, title=title), result, stability=stability)
    if hasattr(result, "expected_false"):
        facts = summarize_stability(cast("Stability", result), title=title)
        return _page("stability.html", facts=facts, stable=_with_places(facts))
    if hasattr(result, "summary") and hasattr(result, "failures"):
        return _tables_page(study_facts(cast(StudyLike, result), title=title))
    if hasattr(result, "frequencies") and hasattr(result, "alerts"):
        return _tables_page(refit_facts(cast(RefitLike, result), title=title))
    raise InputError(
        "write_report takes what covaria.assess, covaria.stability or covaria.run_study found."
    )


def render(
    facts: Facts, result: Result | None = None, *, stability: Stability | None = None
) -> str:
    """Return the page of a result's facts; with the result itself, a panel for every feature too.

    The same facts give the same bytes.
    """
    return _page(
        "report.html",
        facts=facts,
        forests=[
            _forest(facts, k) for k, method in enumerate(facts["methods"]) if method["has_effect"]
        ],
        p_plot=_p_plot(facts),
        cost=_cost(facts),
        quality=_quality(facts),
        panels=[] if result is None else _panels(result, facts),
        stable=None if stability is None else _with_places(stability_facts(stability)),
        downloads={
            "json": data_link(as_json(facts), "application/json"),
            "csv": data_link(as_csv(facts), "text/csv;charset=utf-8"),
        },
        drawn=MOST_DRAWN,
    )


def _page(template: str, **values: object) -> str:
    """Return a page with a policy that lets only its own style and script in."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("covaria.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "name": _name, "said": _said, "whole": visible, "number": _number, "cell": _cell
    }  # fmt: skip
    environment.globals |= {"mark": _mark, "p": describe_p}
    folder = Path(__file__).parent / "templates"
    style, script = (
        (folder / name).read_text(encoding="utf-8").strip() for name in ("page.css", "page.js")
    )
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    page = environment.get_template(template)
    return page.render(style=style, script=script, policy=policy, **values) + "\n"


def write_tables(path: str | Path, facts: TablesFacts) -> Path:
    """Return the path of a page of tables that was written; `tables_facts` makes its facts."""
    path = file("path", path)
    write_text(path, _tables_page(facts))
    return path


def _tables_page(facts: TablesFacts) -> str:
    pictures = [
        {"heading": picture["heading"], **geometry.placed(picture["lines"])}
        for picture in facts["pictures"]
    ]
    return _page("tables.html", facts=facts, pictures=pictures)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _name(text: object) -> str:
    return short(str(text), LONGEST_NAME)


def _said(text: object) -> str:
    return short(str(text), LONGEST_SENTENCE)


def _number(value: float | None, digits: int = 3) -> str:
    return "—" if value is None else f"{value:.{digits}g}"


def _cell(value: object) -> str:
    """Return a value of any table for people."""
    if value is None or value == "":
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3g}" if isinstance(value, float) else short(str(value), 200)


# A shape for every test, so that nobody needs to tell colours apart.
MARKS = (
    '<circle class="fill" cx="7" cy="7" r="4"/>',
    '<path d="M3 3L11 11M11 3L3 11"/>',
    '<path class="fill" d="M7 2.5L12 11H2Z"/>',
    '<rect x="3" y="3" width="8" height="8"/>',
    '<path class="fill" d="M7 2L12 7L7 12L2 7Z"/>',
    '<path d="M7 2V12M2 7H12"/>',
    '<path class="fill" d="M2 3H12L7 12Z"/>',
    '<circle cx="7" cy="7" r="4"/>',
)


def _mark(k: int) -> Markup:
    """Return the shape of a test as markup that is ours alone."""
    from markupsafe import Markup

    return Markup(MARKS[k % len(MARKS)])  # nosec B704 # one of the eight above


def _forest(facts: Facts, k: int) -> dict[str, object]:
    """Return where each effect and its interval lie, for one method."""
    lines, side = [], facts["methods"][k]["alternative"]
    for row in facts["verdicts"][:MOST_DRAWN]:
        test = row["tests"][k]
        if test["status"] == "ok" and test["effect"] is not None:
            # The far end of a one-sided test is a bound, no estimate: its bar is open.
            low = None if side == "less" else test["effect_low"]
            high = None if side == "greater" else test["effect_high"]
            text, selected = test["effect_text"], test["selected"]
            bar = Bar(label=row["feature"], effect_text=text, selected=selected,
                      at=test["effect"], low=low, high=high)  # fmt: skip
            lines.append(bar)
    return {"method": facts["methods"][k], **geometry.placed(lines)}


def _p_plot(facts: Facts) -> dict[str, object]:
    """Return where the p-values of every test lie, feature by feature, and the threshold."""
    tests = [k for k, method in enumerate(facts["methods"]) if method["tests"]]
    shown = facts["verdicts"][:MOST_DRAWN]
    found = [row["tests"][k]["p_adjusted"] for row in shown for k in tests]
    least = min([p for p in found if p is not None], default=1.0)
    smallest = max(min(least, facts["about"]["alpha"] / 10) / 2, geometry.SMALLEST_P)
    lines = []
    for row in shown:
        marks = [
            {"k": k, "at": geometry.p_place(p, smallest),
             "text": row["tests"][k]["p_text"], "method": facts["methods"][k]["name"]}
            for k in tests
            if (p := row["tests"][k]["p_adjusted"]) is not None
        ]  # fmt: skip
        lines.append({"feature": row["feature"], "marks": marks})
    return {
        "lines": lines if tests else [],
        "methods": [{"k": k, "name": facts["methods"][k]["name"]} for k in tests],
        "threshold": geometry.p_place(facts["about"]["alpha"], smallest),
        "ticks": geometry.p_ticks(smallest),
    }


def _cost(facts: Facts) -> list[dict[str, object]]:
    most = max([method["seconds"] for method in facts["methods"]], default=0.0) or 1.0
    return [{**m, "width": round(100 * m["seconds"] / most, 1)} for m in facts["methods"]]


def _quality(facts: Facts) -> dict[str, object]:
    """Return the regressions to look at first: of y on all, and those with a warning."""
    rows = facts["quality"]
    columns = list(rows[0]) if rows else []
    first = [row for row in rows if not row.get("feature") or row.get("warning")]
    return {"columns": columns, "rows": first[:MOST_DRAWN], "left_out": len(first) - MOST_DRAWN}


def _panels(result: Result, facts: Facts) -> list[dict[str, object]]:
    """Return what is drawn of every feature, the clearest first."""
    by_fold = effects_by_fold(result)
    most = points_each(len(result.features))
    place = {feature: j for j, feature in enumerate(result.features)}
    regressions: dict[str, list[Line]] = {}
    for line in facts["quality"]:
        regressions.setdefault(str(line.get("feature") or ""), []).append(line)
    panels: list[dict[str, object]] = []
    for row in facts["verdicts"]:
        j = place[row["feature"]]
        left, folds = residual_pair(result, j), folds_of(by_fold, j)
        tests = [
            {**test, "strip": geometry.strip(folds[test["method"]], test["effect"])}
            if test["method"] in folds and test["status"] == "ok" and test["effect"] is not None
            else {**test, "strip": None}
            for test in row["tests"]
        ]
        panels.append(
            {
                **row,
                "tests": tests,
                "has_folds": any(test["strip"] for test in tests),
                "scatter": geometry.scatter(left, most) if left is not None else {},
                "left": left,
                "explains": [
                    _explains(one, facts["about"]["learner_text"])
                    for one in [*regressions.get("", []), *regressions.get(row["feature"], [])]
                ],
                "n_rows": len(result.rows),
            }
        )
    return panels


REGRESSIONS = {
    "y given all": "target, from all features",
    "y given rest": "target, without this feature",
    "x given rest": "this feature, from the others",
}


def _explains(row: Line, learner: str) -> dict[str, Cell]:
    """Return one regression in words, its R², and what else is known of it."""
    known = ("regression", "feature", "r2")
    rest = {n: v for n, v in row.items() if n not in known and v not in (None, "", learner)}
    name, r2 = str(row.get("regression", "")), row.get("r2")
    share = r2 if isinstance(r2, (int, float)) else 0.0
    return {
        "what": REGRESSIONS.get(name, name),
        "r2": r2,
        "width": round(100 * min(1.0, max(0.0, share)), 1),
        "more": "; ".join(
            _shorter(_cell(value))
            if name == "learner"
            else f"{name.replace('_', ' ')} {_cell(value)}"
            for name, value in rest.items()
        ),
    }


def _shorter(text: str) -> str:
    """Return a learner with its settings to four digits.

    >>> _shorter("Kernel(C=10.0, sigma=0.011111111111111112)")
    'Kernel(C=10.0, sigma=0.01111)'
    """
    return re.sub(r"\d+\.\d{5,}", lambda found: f"{float(found[0]):.4g}", text)


def _with_places(facts: StabilityFacts) -> dict[str, object]:
    """Return a stability run with where its bars end."""
    rows = [
        {**row, "by": [{**one, "width": round(100 * one["frequency"], 1)} for one in row["by"]]}
        for row in facts["rows"]
    ]
    return {**facts, "rows": rows, "line": round(100 * facts["threshold"], 1)}
