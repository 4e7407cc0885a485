"""Pictures: a tidy table in, matplotlib Axes out; nothing is computed here."""

from residua.plots.efficiency import efficiencies, power_curves, theory_bars
from residua.plots.saving import save
from residua.plots.stability import selection_rates
from residua.plots.study import metric_panels, p_value_panels, ratio_bars, sweep_panels

__all__ = [
    "efficiencies",
    "metric_panels",
    "p_value_panels",
    "power_curves",
    "ratio_bars",
    "save",
    "selection_rates",
    "sweep_panels",
    "theory_bars",
]
