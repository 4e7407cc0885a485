"""A result in a notebook: the answer, the verdicts with a forest plot beside them, the notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import isfinite
from typing import TYPE_CHECKING, Any

from covaria.errors import plural, short

if TYPE_CHECKING:
    import pandas as pd

# More rows than these are counted, not shown.
MOST_ROWS = 60
WIDTH, HEIGHT, EDGE = 180, 16, 6
# Numbers stay on one line; a narrow page scrolls.
LOOK = "font-size:.9em;white-space:nowrap;border-spacing:.7em .15em;border-collapse:separate"
SELECTED, OTHER = "#0b6e4f", "#8a8a8a"
Line = Mapping[str, Any]


class Text(str):
    """Text that a prompt shows as it is printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def page(
    headline: str,
    verdicts: pd.DataFrame,
    effects: Sequence[Line],
    alerts: Sequence[str],
    alternative: str,
) -> str:
    """Return HTML; `effects` are the rows of the test whose intervals are drawn."""
    drawn = {line["feature"]: line for line in effects}
    scale = _scale(effects, alternative)
    # The verdict beside its picture, where a narrow page shows it.
    in_order = sorted(verdicts.columns[1:], key=lambda name: name != "verdict")
    shown = verdicts.head(MOST_ROWS)[[*verdicts.columns[:1], *in_order]]
    names = [str(name) for name in shown.columns]
    head = "".join(map(_header, [*names[:1], "", *names[1:]]))
    body = "".join(
        f"<tr>{_cell(row[0])}<td>{_interval(drawn.get(row[0]), scale, alternative)}</td>"
        f"{''.join(map(_cell, row[1:]))}</tr>"
        for row in shown.itertuples(index=False, name=None)
    )
    more = len(verdicts) - len(shown)
    rest = f"<p>… and {plural(more, 'more feature')} in result.table.</p>" if more > 0 else ""
    notes = "".join(f"<li>{escape(alert)}</li>" for alert in alerts)
    return (
        f"<p><b>{escape(headline)}</b></p><div style='overflow-x:auto'>"
        f"<table style='{LOOK}'><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>{rest}<ul>{notes}</ul>"
    )


def _header(name: str) -> str:
    return f"<th style='text-align:left'>{escape(short(name))}</th>"


def _cell(value: object) -> str:
    return f"<td style='text-align:left'>{escape(short(str(value)))}</td>"


def _ends(line: Line, alternative: str) -> tuple[float, float, float]:
    """Return effect, low and high; of a one-sided test the far end is the effect itself."""
    effect, low, high = (float(line[k]) for k in ("effect", "effect_low", "effect_high"))
    low = effect if alternative == "less" or not isfinite(low) else low
    high = effect if alternative == "greater" or not isfinite(high) else high
    return effect, low, high


def _is_drawn(line: Line | None) -> bool:
    if line is None or line["status"] != "ok":
        return False
    return line["effect"] is not None and isfinite(float(line["effect"]))


def _scale(effects: Sequence[Line], alternative: str) -> float:
    """Return the largest effect or end of an interval, for which there is room to both sides."""
    ends = (abs(end) for line in effects if _is_drawn(line) for end in _ends(line, alternative))
    return max(ends, default=0.0) or 1.0


def _interval(line: Line | None, scale: float, alternative: str) -> str:
    """Return one row of the forest plot as SVG, with what it shows as its title."""
    if line is None or not _is_drawn(line):
        return ""

    def x(value: float) -> float:
        share = max(-1.0, min(1.0, value / scale))
        return round(WIDTH / 2 + share * (WIDTH / 2 - EDGE), 1)

    effect, low, high = _ends(line, alternative)
    colour = SELECTED if line["selected"] else OTHER
    middle = HEIGHT / 2
    title = escape(f"{effect:.3g} [{low:.3g}, {high:.3g}]")
    return (
        f'<svg role="img" width="{WIDTH}" height="{HEIGHT}"><title>{title}</title>'
        f'<line x1="{WIDTH / 2}" x2="{WIDTH / 2}" y1="0" y2="{HEIGHT}" stroke="#bbb"/>'
        f'<line x1="{x(low)}" x2="{x(high)}" y1="{middle}" y2="{middle}" stroke="{colour}" '
        f'stroke-width="2"/><circle cx="{x(effect)}" cy="{middle}" r="4" fill="{colour}"/></svg>'
    )
