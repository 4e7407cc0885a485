"""Which test to trust: efficiency from scores and from theory, and how many rows a test needs."""

from residua.efficiency.advice import efficiency
from residua.efficiency.empirical import relative_efficiency, relative_variability
from residua.efficiency.planning import plan, power_at

__all__ = [
    "efficiency",
    "plan",
    "power_at",
    "relative_efficiency",
    "relative_variability",
]
