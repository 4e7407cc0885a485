"""Pictures to files, the same bytes for the same picture."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from residua.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which people with any colour vision can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
KINDS = (".svg", ".png", ".pdf")


def new_axes(width: float = 7.0, height: float = 4.0) -> Axes:
    """Return axes of a new figure, without a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def save(axes: Axes, path: str | Path) -> Path:
    """Return the path of the picture that was written: SVG, PNG or PDF by its ending."""
    import matplotlib

    path = Path(path)
    if path.suffix.lower() not in KINDS:
        raise InputError(f"{path} must end in {', '.join(KINDS)}.")
    figure = axes.get_figure(root=True)
    assert figure is not None
    dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower(), {})
    settings: Any = {"svg.hashsalt": "residua", "svg.fonttype": "none"}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # An SVG holds names as text and shows any script; a PNG has boxes for letters it lacks.
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(path, dpi=150, metadata=dated)
    return path
