"""Axes to draw on: of figures without a window, which a notebook shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# An array of axes, (rows, columns).
Panels = NDArray[Any]


def new_axes(width: float = 7.0, height: float = 4.0) -> Axes:
    """Return axes of a new figure, without a window."""
    axes: Axes = new_panels(1, 1, (width, height))[0, 0]
    return axes


def new_panels(rows: int, columns: int, size: tuple[float, float], **shared: Any) -> Panels:
    """Return an array of axes on a new figure, without a window; a notebook shows any of them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from covaria.plots.picture import Picture

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    own: Any = {"axes_class": Picture}
    panels: Panels = figure.subplots(rows, columns, squeeze=False, subplot_kw=own, **shared)
    return panels
