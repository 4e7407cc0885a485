"""Every figure of the paper by name, beside what the paper claims of it."""

from covaria.paper.registry import Claim, Figure, Made, add, figure, figures

__all__ = ["Claim", "Figure", "Made", "add", "figure", "figures"]
