"""Thresholds that decide a verdict, a warning or a learner, each with where it comes from.

A formula, a publication, the measurement that set it, or the plain word that it is a convention or
a judgement that nothing measured. Engineering limits (block sizes, digits) stay beside their code.
"""

from __future__ import annotations

from dataclasses import field, fields, is_dataclass
from typing import TypeVar

T = TypeVar("T")


def threshold(value: T, evidence: str) -> T:
    """Return a field with its default and the evidence for it."""
    found: T = field(default=value, metadata={"evidence": evidence})
    return found


class Policy:
    """Thresholds of one decision; those who are one are frozen dataclasses of `threshold`s."""

    @classmethod
    def evidence(cls) -> dict[str, str]:
        """Return where each threshold comes from."""
        if not is_dataclass(cls):
            return {}
        return {one.name: str(one.metadata.get("evidence", "")) for one in fields(cls)}
