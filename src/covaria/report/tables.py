"""Tidy tables as one page: a study, a refit, or whatever has a heading and rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from covaria.errors import plural, visible
from covaria.report.export import data_link
from covaria.report.facts import Bar, Cell, Line, Picture, TablesFacts
from covaria.results.result import lines_of
from covaria.tables.files import safe_cell

if TYPE_CHECKING:
    import pandas as pd

# More rows are slow to scroll; the CSV inside the page holds up to MOST_SAVED.
MOST_SHOWN = 400
MOST_SAVED = 5000
MOST_DRAWN = 40


class StudyLike(Protocol):
    """What a study has for its page."""

    @property
    def table(self) -> pd.DataFrame: ...
    @property
    def summary(self) -> pd.DataFrame: ...
    @property
    def features(self) -> pd.DataFrame: ...
    @property
    def failures(self) -> Iterable[Iterable[object]]: ...
    @property
    def about(self) -> Mapping[str, object]: ...


class RefitLike(Protocol):
    """What a refit has for its page."""

    @property
    def table(self) -> pd.DataFrame: ...
    @property
    def frequencies(self) -> pd.DataFrame: ...
    @property
    def alerts(self) -> Iterable[str]: ...
    @property
    def about(self) -> Mapping[str, object]: ...


def tables_facts(
    title: str,
    answer: str,
    tables: Mapping[str, pd.DataFrame],
    *,
    pictures: Iterable[Picture] = (),
    alerts: Iterable[str] = (),
    about: Mapping[str, object] | None = None,
) -> TablesFacts:
    """Return the facts of a page of tables."""
    return {
        "title": title,
        "answer": answer,
        "alerts": list(alerts),
        "pictures": [picture for picture in pictures if picture["lines"]],
        "tables": [_table(heading, frame) for heading, frame in tables.items()],
        "about": dict(about or {}),
    }


def _table(heading: str, frame: pd.DataFrame) -> dict[str, object]:
    rows = lines_of(frame.head(MOST_SAVED))
    names = [str(name) for name in frame.columns]
    shown = [list(row.values()) for row in rows[:MOST_SHOWN]]
    return {
        "heading": heading,
        "columns": [{"name": n, "is_number": _is_number(shown, k)} for k, n in enumerate(names)],
        "rows": shown,
        "left_out": max(0, len(frame) - MOST_SHOWN),
        "csv": data_link(_csv(names, rows), "text/csv;charset=utf-8"),
    }


def _is_number(rows: list[list[Cell]], k: int) -> bool:
    return any(isinstance(row[k], (int, float)) and not isinstance(row[k], bool) for row in rows)


def _csv(names: list[str], rows: list[Line]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([safe_cell(visible(name)) for name in names])
    for row in rows:
        writer.writerow([_plain(value) for value in row.values()])
    return text.getvalue()


def _plain(value: Cell) -> object:
    return safe_cell(visible(value)) if isinstance(value, str) else "" if value is None else value


def picture(heading: str, frame: pd.DataFrame, *, mean: str, error: str) -> Picture:
    """Return the means of a tidy table with two standard errors; other text columns name them."""
    lines = []
    for row in lines_of(frame.head(MOST_DRAWN)):
        at, spread = row[mean], row[error] or 0.0
        if at is None:
            continue
        label = ", ".join(str(value) for value in row.values() if isinstance(value, str) and value)
        text = f"{at:.3g} ± {2 * spread:.2g}"
        low, high = at - 2 * spread, at + 2 * spread
        bar = Bar(label=label, effect_text=text, selected=True, at=at, low=low, high=high)
        lines.append(bar)
    return {"heading": heading, "lines": lines}


def study_facts(study: StudyLike, *, title: str | None = None) -> TablesFacts:
    """Return the facts of a study: how well each method chooses, and feature by feature."""
    keys = [c for c in ("scenario", "setting", "learner", "options", "repeat") if c in study.table]
    runs = len(study.table[keys].drop_duplicates())
    methods = ", ".join(str(m) for m in study.table["method"].drop_duplicates())
    return tables_facts(
        title or "How well the methods choose",
        f"{plural(runs, 'run')} of {methods}. The tables give each method's rates on average "
        "with their Monte-Carlo error, and how often it selects each feature.",
        {"How well each method chooses": study.summary, "Feature by feature": study.features},
        pictures=_rates(study.summary),
        alerts=["; ".join(map(str, failure)) for failure in study.failures],
        about=study.about,
    )


def _rates(summary: pd.DataFrame) -> list[Picture]:
    """Return pictures of what matters most in a study: F1 and false discoveries."""
    if not {"metric", "mean", "se"} <= set(summary.columns):
        return []
    named = {"f1": "F1: how well what matters is chosen", "fdr": "Share of false among the chosen"}
    own = {name: summary[summary["metric"] == name].drop(columns="metric") for name in named}
    return [picture(words, own[name], mean="mean", error="se") for name, words in named.items()]


def refit_facts(found: RefitLike, *, title: str | None = None) -> TablesFacts:
    """Return the facts of a refit: errors on rows left out, and how often features are chosen."""
    return tables_facts(
        title or f"What is stable for {found.about.get('target', 'the target')}",
        str(found).splitlines()[0],
        {"Error on the rows left out": found.table, "How often selected": found.frequencies},
        pictures=_errors(found.table),
        alerts=found.alerts,
        about=found.about,
    )


def _errors(table: pd.DataFrame) -> list[Picture]:
    if not {"error", "std_error"} <= set(table.columns):
        return []
    heading = "Error on the rows left out"
    return [picture(heading, table, mean="error", error="std_error")]
