"""Every threshold of `auto`, with where it comes from."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TypeVar

VALIDITY = "docs/validity.md: nulls that are rejected without it"
T = TypeVar("T")
COST = "cost: beyond it the candidate would take longer than all others together"


def _set(value: T, evidence: str) -> T:
    """Return a field with its default and the evidence for it."""
    found: T = field(default=value, metadata={"evidence": evidence})
    return found


@dataclass(frozen=True)
class AutoPolicy:
    """How `auto` chooses among its candidates.

    worth              a later candidate has to have an error smaller by this share
    learned            a target can be predicted where the mean's error is larger by this share
    predictable        a feature is predictable from the others where it is larger by this share
    together           two learners serve on average where the error is smaller by this share
    most_rows          learners are compared on at most so many training rows
    most_curves        columns up to which splines choose their smoothing (GCV)
    most_waves         columns up to which curves of many waves, and all products, are tried
    fewest_summed      columns beyond which weighted sums of many are sought
    most_kernel_rows   rows of an inner fold up to which kernels are tried

    >>> AutoPolicy().worth, AutoPolicy.evidence()["worth"][:16]
    (0.002, 'docs/validity.md')
    """

    worth: float = _set(0.002, "docs/validity.md: power and nulls are alike from .001 to .01")
    learned: float = _set(0.02, COST)
    predictable: float = _set(0.2, VALIDITY)
    together: float = _set(0.01, "docs/auto.md: mirror nulls, and effects beside them")
    most_rows: int = _set(20_000, "cost and memory: choosing from more rows is no better")
    most_curves: int = _set(60, COST)
    most_waves: int = _set(12, COST)
    fewest_summed: int = _set(3, "surfaces are as good for fewer columns")
    most_kernel_rows: int = _set(1500, COST)

    @classmethod
    def evidence(cls) -> dict[str, str]:
        """Return where each threshold comes from."""
        return {one.name: str(one.metadata["evidence"]) for one in fields(cls)}
