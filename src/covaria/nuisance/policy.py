"""When functions of a feature, and halves of the training rows, have a say."""

from __future__ import annotations

from dataclasses import dataclass

from covaria.options.policy import Policy, threshold


@dataclass(frozen=True)
class NuisancePolicy(Policy):
    """Which curves are more than noise, and how few rows tell nothing.

    rough         share of Var(Y), from which a curve that stumps suggest is more than their noise
    fewest_half   training rows of a half, below which it tells nothing
    as_noise      a regression may miss at least so many times the noise of its models: halving the
                  rows may show nothing by chance
    """

    rough: float = threshold(0.003, "docs/auto.md: power and nulls of PCM with it")
    fewest_half: int = threshold(40, "judgement, not measured: errors of fewer rows are noise")
    as_noise: float = threshold(1.5, "docs/auto.md: 238 mirror nulls, rejected .067 with 0, .050")


POLICY = NuisancePolicy()
