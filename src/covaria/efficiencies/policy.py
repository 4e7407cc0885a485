"""When the comparison of two tests is rough, or GCM cannot see an effect."""

from __future__ import annotations

from dataclasses import dataclass

from covaria.options.policy import Policy, threshold

TAILS = (
    "tests/efficiencies/test_advice.py: a straight line in a normal feature has a quarter there, "
    "e^{x/3} a half and x³ nearly all, and intervals of those miss too often"
)


@dataclass(frozen=True)
class EfficiencyPolicy(Policy):
    """Heavy tails of scores, and effects out of GCM's sight.

    heavy      share of the squared scores in the outermost rows, above which ratios are rough
    top_rows   share of the rows that are the outermost
    blind      squared correlation of an effect with x_j, below which GCM does not see it
    """

    heavy: float = threshold(1 / 3, TAILS)
    top_rows: float = threshold(0.01, TAILS)
    blind: float = threshold(0.1, "formula: GCM then needs ten times the rows of the best test")


POLICY = EfficiencyPolicy()
