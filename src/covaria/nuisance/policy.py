"""When functions of a feature, and halves of the training rows, have a say."""

from __future__ import annotations

from dataclasses import dataclass

from covaria.options.policy import Policy, threshold


@dataclass(frozen=True)
class NuisancePolicy(Policy):
    """Which curves are more than noise, and how few rows tell nothing.

    rough         share of Var(Y), from which a curve that stumps suggest is more than their noise
    fewest_half   training rows of a half, below which it tells nothing
    still_missed  a regression may miss so many times what halving its rows added, and no less than
                  so many times the noise of its models: halving may show nothing by chance
    least_noise   share of noise in the predictions of least squares, below which it is left out
    as_good       standard errors, by which least squares may err more than the learner that was
                  chosen and still say how large a correlation is
    far_off       share of what is left that halving the rows added, from which a line beside such a
                  curve is no proof that there is nothing to bend
    """

    rough: float = threshold(0.003, "docs/auto.md: power and nulls of PCM with it")
    fewest_half: int = threshold(40, "judgement, not measured: errors of fewer rows are noise")
    still_missed: float = threshold(
        1.5, "formula: 1/(2^γ − 1), errors falling like rows^−γ with γ = .74; docs/auto.md"
    )
    least_noise: float = threshold(0.05, "formula: below it at most .062 of nulls are rejected")
    as_good: float = threshold(2.0, "docs/calibration.md: intervals of GCM with auto")
    far_off: float = threshold(
        0.1, "docs/auto.md: five of six false findings beside a line on airbnb had .14 and more"
    )


POLICY = NuisancePolicy()
