"""What came of one test of one feature: a word, and the reason where it failed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What can come of a test."""

    OK = "ok"
    CONSTANT = "constant"  # the feature does not vary
    UNUSED = "unused"  # the learner never used it
    REDUNDANT = "redundant"  # the others determine it exactly
    FAILED = "failed"


@dataclass(frozen=True)
class Status:
    """A cell of the column `status`: "ok", or "failed: why".

    >>> str(Status(Outcome.FAILED, "no memory"))
    'failed: no memory'
    >>> Status.of("failed: no memory").reason
    'no memory'
    """

    outcome: Outcome
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.outcome}: {self.reason}" if self.reason else str(self.outcome)

    @classmethod
    def of(cls, cell: str) -> Status:
        """Return the status that a cell says."""
        outcome, _, reason = cell.partition(": ")
        return cls(Outcome(outcome), reason)

    @property
    def is_failed(self) -> bool:
        """Return whether a fit failed."""
        return self.outcome is Outcome.FAILED


def has_failed(cell: str) -> bool:
    """Return whether a cell says that a fit failed."""
    return cell.partition(": ")[0] == Outcome.FAILED
