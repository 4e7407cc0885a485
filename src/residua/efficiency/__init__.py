"""Which test to trust: efficiency from scores and from theory."""

from residua.efficiency.empirical import relative_efficiency, relative_variability

__all__ = ["relative_efficiency", "relative_variability"]
