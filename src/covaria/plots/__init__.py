"""Pictures: a Result, a stability run or a tidy table in, matplotlib Axes out."""

from typing import TYPE_CHECKING

from covaria.errors import InputError, did_you_mean
from covaria.plots.efficiency import efficiencies, power_curves, theory_bars
from covaria.plots.rates import selection_rates
from covaria.plots.results import cost, forest, p_values, quality, residuals, stability
from covaria.plots.saving import save
from covaria.plots.study import (
    limits,
    metric_panels,
    p_value_panels,
    ratio_bars,
    shares_over,
    sweep_panels,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

__all__ = [
    "cost",
    "efficiencies",
    "forest",
    "limits",
    "metric_panels",
    "p_value_panels",
    "p_values",
    "power_curves",
    "quality",
    "ratio_bars",
    "residuals",
    "save",
    "selection_rates",
    "shares_over",
    "stability",
    "sweep_panels",
    "theory_bars",
]

# Pictures that need a result and nothing else, or what is given by name.
OF_RESULTS: "dict[str, Callable[..., Axes]]" = {
    "forest": forest, "p_values": p_values, "quality": quality, "residuals": residuals,
    "cost": cost,
}  # fmt: skip


def draw(result: object, kind: str, options: dict[str, object]) -> "Axes":
    """Return the axes of one of the pictures of a result, by its name."""
    if kind not in OF_RESULTS:
        raise InputError(f"There is no picture '{kind}'.{did_you_mean(kind, OF_RESULTS)}")
    return OF_RESULTS[kind](result, **options)
