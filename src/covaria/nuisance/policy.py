"""When functions of a feature, halves of the training rows, and second learners have a say."""

from __future__ import annotations

from dataclasses import dataclass

from covaria.options.policy import Policy, threshold


@dataclass(frozen=True)
class NuisancePolicy(Policy):
    """Which curves are more than noise, and how few rows tell nothing.

    rough         share of Var(Y), from which a curve that stumps suggest is more than their noise
    fewest_half   training rows of a half, below which it tells nothing
    nearly        standard errors short of significant, from which a second learner is asked
    endless       so many times what halves of the rows change is what endless rows would change
    matched       as many times larger than those of the chosen learners may the residuals of a
                  second learner be, in the geometric mean of both regressions
    still_missed  both regressions may miss a part whose correlation is so many times √(gh), g and h
                  being what halving the rows adds to their errors
    as_good       standard errors, by which least squares may err more than the learner that was
                  chosen and still say how large a correlation is
    least_noise   share of noise in the predictions of least squares, below which it is left out
    """

    rough: float = threshold(0.003, "docs/auto.md: power and nulls of PCM with it")
    fewest_half: int = threshold(40, "judgement, not measured: errors of fewer rows are noise")
    nearly: float = threshold(0.2, "cost: beyond it no finding is left that could be doubted")
    endless: float = threshold(
        1.5,
        "formula: 1/(2^γ − 1), products of errors falling like rows^−γ with γ = .74; docs/auto.md",
    )
    matched: float = threshold(1.1, "docs/auto.md: mirror nulls, effects beside curves")
    still_missed: float = threshold(0.75, "docs/auto.md: mirror nulls, effects beside curves")
    least_noise: float = threshold(0.05, "formula: below it at most .062 of nulls are rejected")
    as_good: float = threshold(2.0, "docs/calibration.md: intervals of GCM with auto")


POLICY = NuisancePolicy()
