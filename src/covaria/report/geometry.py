"""Where things lie in a picture: percent of a width, and points in a box."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, isfinite, log10

import numpy as np
from numpy.typing import NDArray

from covaria.report.facts import Bar
from covaria.results.residual_views import ResidualPair, binned, thinned
from covaria.results.result import describe_p

Array = NDArray[np.float64]
Tick = dict[str, float | str]
# A picture's box, in its own units.
WIDTH, HEIGHT, MARGIN = 320, 220, 14
STRIP = 160
SMALLEST_P = 1e-16


class Scale:
    """Numbers to percent of a width, with round numbers as ticks."""

    def __init__(self, values: list[float], *, edge: float = 3.0, include: float = 0.0) -> None:
        known = [value for value in values if isfinite(value)]
        self.low, self.high = min([include, *known]), max([include, *known])
        if self.high == self.low:
            self.low, self.high = self.low - 1.0, self.high + 1.0
        self.edge = edge

    def at(self, value: float) -> float:
        """Return where a value lies; what is outside lies at the edge."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.edge + (100 - 2 * self.edge) * share, 2)

    @property
    def ticks(self) -> list[Tick]:
        return [{"at": self.at(v), "label": f"{v:.6g}"} for v in round_numbers(self.low, self.high)]


def placed(lines: Sequence[Bar]) -> dict[str, object]:
    """Return lines with `at`, `low` and `high` as places, beside the axis they share.

    A line without ends has no bar; with one end it reaches to the edge.
    """
    ends = [end for line in lines for end in (line["at"], line["low"], line["high"])]
    scale = Scale([end for end in ends if end is not None])
    drawn = []
    for line in lines:
        low = scale.low if line["low"] is None else line["low"]
        high = scale.high if line["high"] is None else line["high"]
        has_bar = line["low"] is not None or line["high"] is not None
        bar = [scale.at(low), scale.at(high)] if has_bar else None
        drawn.append({**line, "at": scale.at(line["at"]), "bar": bar})
    return {"lines": drawn, "zero": scale.at(0.0), "ticks": scale.ticks}


def round_numbers(low: float, high: float, most: int = 4) -> list[float]:
    """Return a few round numbers between two ends.

    >>> round_numbers(-0.13, 0.34)
    [-0.1, 0.0, 0.1, 0.2, 0.3]
    """
    rough = (high - low) / most
    power = 10.0 ** floor(log10(rough))
    step = min((power * m for m in (1, 2, 5, 10)), key=lambda s: abs(s - rough))
    return [round(k * step, 12) + 0.0 for k in range(ceil(low / step), floor(high / step) + 1)]


def p_place(p: float, smallest: float) -> float:
    """Return where a p-value lies between 1 and the smallest shown, on the scale of logarithms."""
    share = log10(max(p, smallest)) / log10(smallest)
    return round(2 + 95 * share, 2)


def p_ticks(smallest: float) -> list[Tick]:
    """Return a few p-values to write below the axis."""
    powers = floor(-log10(smallest))
    step = max(1, ceil(powers / 4))
    shown = [10.0**-k for k in range(0, powers + 1, step)]
    return [{"at": p_place(p, smallest), "label": describe_p(p)} for p in shown]


def scatter(left: ResidualPair, most: int) -> dict[str, str | int]:
    """Return points as one SVG path, the binned mean as another, and where the zeros lie."""
    curve = binned(left)
    kept = thinned(len(left.x), most)
    x, y = left.x[kept], left.y[kept]
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return {}
    box_x, box_y = _box(x), _box(y)

    def across(value: Array | float) -> Array:
        return np.rint(MARGIN + (WIDTH - 2 * MARGIN) * (value - box_x[0]) / (box_x[1] - box_x[0]))

    def down(value: Array | float) -> Array:
        part = (np.clip(value, *box_y) - box_y[0]) / (box_y[1] - box_y[0])
        return np.rint(HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * part)

    dots = zip(across(np.clip(x, *box_x)).astype(int), down(y).astype(int), strict=True)
    drawn: dict[str, str | int] = {
        "points": "".join(f"M{a} {b}h0" for a, b in dict.fromkeys(dots)),
        "n_points": len(kept),
        "zero_x": int(across(np.clip(0.0, *box_x))),
        "zero_y": int(down(0.0)),
        "curve": "",
        "bars": "",
    }
    if curve is not None:
        at, mean = across(np.clip(curve.at, *box_x)).astype(int), down(curve.mean).astype(int)
        low, high = (down(curve.mean + s * 1.96 * curve.error).astype(int) for s in (-1, 1))
        drawn["curve"] = "M" + "L".join(f"{a} {b}" for a, b in zip(at, mean, strict=True))
        drawn["bars"] = "".join(f"M{a} {b}V{c}" for a, b, c in zip(at, low, high, strict=True))
    return drawn


def _box(values: Array) -> tuple[float, float]:
    """Return the ends of an axis; one value far from all others does not squeeze them."""
    low, high = np.quantile(values, [0.01, 0.99])
    reach = 0.35 * (high - low)
    return max(float(values.min()), low - reach), min(float(values.max()), high + reach)


def strip(effects: list[float], effect: float) -> dict[str, str | int]:
    """Return where the folds' effects lie as dots, the effect of all as a bar, and zero."""
    scale = Scale([*effects, effect])

    def place(value: float) -> int:
        return round(scale.at(value) * STRIP / 100)

    return {
        "dots": "".join(f"M{place(value)} 8h0" for value in effects),
        "mean": place(effect),
        "zero": place(0.0),
        "agree": sum(value * effect > 0 for value in effects),
        "n": len(effects),
    }
