"""Pictures: a tidy table in, matplotlib Axes out; nothing is computed here."""

from residua.plots.efficiency import efficiencies, power_curves, theory_bars
from residua.plots.saving import save

__all__ = ["efficiencies", "power_curves", "save", "theory_bars"]
