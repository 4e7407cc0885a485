"""Which test to trust: efficiency from scores and from theory, and how many rows a test needs."""

from covaria.efficiencies.advice import efficiency
from covaria.efficiencies.empirical import relative_efficiency, relative_variability
from covaria.efficiencies.planning import plan, power_at

__all__ = [
    "efficiency",
    "plan",
    "power_at",
    "relative_efficiency",
    "relative_variability",
]
