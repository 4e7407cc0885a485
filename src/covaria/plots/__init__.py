"""Pictures: a Result, a stability run or a tidy table in, matplotlib Axes out."""

from covaria.plots.efficiency import efficiencies, power_curves, theory_bars
from covaria.plots.rates import selection_rates
from covaria.plots.results import cost, forest, p_values, quality, residuals, stability
from covaria.plots.saving import save
from covaria.plots.study import metric_panels, p_value_panels, ratio_bars, sweep_panels

__all__ = [
    "cost",
    "efficiencies",
    "forest",
    "metric_panels",
    "p_value_panels",
    "p_values",
    "power_curves",
    "quality",
    "ratio_bars",
    "residuals",
    "save",
    "selection_rates",
    "stability",
    "sweep_panels",
    "theory_bars",
]
