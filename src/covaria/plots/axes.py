"""Axes to draw on: pyplot's where someone looks, of figures without a window elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# An array of axes, (rows, columns).
Panels = NDArray[Any]


def new_axes(width: float = 7.0, height: float = 4.0) -> Axes:
    """Return axes of a new figure."""
    axes: Axes = new_panels(1, 1, (width, height))[0, 0]
    return axes


def new_panels(rows: int, columns: int, size: tuple[float, float], **shared: Any) -> Panels:
    """Return an array of axes on a new figure, of pyplot at a prompt or in a notebook.

    Elsewhere it has no window and is not kept open.
    """
    if is_interactive():
        from matplotlib import pyplot

        _, found = pyplot.subplots(
            rows, columns, squeeze=False, figsize=size, layout="constrained", **shared
        )
        return np.asarray(found)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from covaria.plots.picture import Picture

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    own: Any = {"axes_class": Picture}
    panels: Panels = figure.subplots(rows, columns, squeeze=False, subplot_kw=own, **shared)
    return panels


def is_interactive() -> bool:
    """Return whether someone sits at a prompt or a notebook, where pyplot shows its figures."""
    return hasattr(sys, "ps1")
