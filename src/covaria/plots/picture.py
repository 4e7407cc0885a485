"""Axes that show themselves in a notebook."""

from __future__ import annotations

from matplotlib.axes import Axes

from covaria.plots.saving import as_png


class Picture(Axes):
    """Axes whose whole figure a notebook shows where they are the last line of a cell.

    Figures are made without pyplot, so that none is kept open; nothing else would show them.
    """

    def _repr_png_(self) -> bytes:
        return as_png(self)
