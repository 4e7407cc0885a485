"""Every threshold of `auto`, with where it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from covaria.options.policy import Policy, threshold

VALIDITY = "docs/validity.md: nulls that are rejected without it"
COST = "cost: beyond it the candidate would take longer than all others together"


@dataclass(frozen=True)
class AutoPolicy(Policy):
    """How `auto` chooses among its candidates.

    worth              a later candidate has to have an error smaller by this share
    learned            a target can be predicted where the mean's error is larger by this share
    predictable        a feature is predictable from the others where it is larger by this share
    together           two learners serve on average where the error is smaller by this share
    most_rows          learners are compared on at most so many training rows
    most_curves        columns up to which splines choose their smoothing (GCV)
    most_waves         columns up to which curves of many waves, all products, and kernels for
                       features are tried
    most_columns_a_row columns for each training row up to which trees, curves and the lasso are
                       tried for features; beyond, for y alone
    fewest_summed      columns beyond which weighted sums of many are sought
    most_kernel_rows   rows of an inner fold up to which kernels are tried

    >>> AutoPolicy().worth, AutoPolicy.evidence()["worth"][:16]
    (0.002, 'docs/validity.md')
    """

    worth: float = threshold(0.002, "docs/validity.md: power and nulls are alike from .001 to .01")
    learned: float = threshold(0.02, COST)
    predictable: float = threshold(0.2, VALIDITY)
    together: float = threshold(0.01, "docs/auto.md: mirror nulls, and effects beside them")
    most_rows: int = threshold(20_000, "cost and memory: choosing from more rows is no better")
    most_curves: int = threshold(60, COST)
    most_waves: int = threshold(12, COST)
    most_columns_a_row: float = threshold(2.0, COST)
    fewest_summed: int = threshold(3, "surfaces are as good for fewer columns")
    most_kernel_rows: int = threshold(1500, COST)
