"""Pictures: a tidy table in, matplotlib Axes out; nothing is computed here."""

from residua.plots.efficiency import efficiencies, power_curves, theory_bars
from residua.plots.saving import save
from residua.plots.stability import selection_rates

__all__ = ["efficiencies", "power_curves", "save", "selection_rates", "theory_bars"]
