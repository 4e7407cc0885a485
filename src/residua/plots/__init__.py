"""Pictures: a Result, a stability run or a tidy table in, matplotlib Axes out."""

from residua.plots.efficiency import efficiencies, power_curves, theory_bars
from residua.plots.results import cost, forest, p_values, quality, residuals, stability
from residua.plots.saving import save

__all__ = [
    "cost",
    "efficiencies",
    "forest",
    "p_values",
    "power_curves",
    "quality",
    "residuals",
    "save",
    "stability",
    "theory_bars",
]
