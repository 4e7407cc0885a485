"""When a table is pointed out, and which levels of a category have a column of their own."""

from __future__ import annotations

from dataclasses import dataclass

from covaria.options.policy import Policy, threshold

CLUSTERED = "docs/calibration.md: error rates by the number and the sizes of clusters"
LEVELS = "docs/calibration.md: error rates of texts and of a confounder of many levels"


@dataclass(frozen=True)
class TablePolicy(Policy):
    """Levels, clusters and copies of rows.

    rare, rarest      rows of a level, below which it is pooled; `rarest` where none has `rare`
    most_alone        share of rows with a level of their own, above which levels name rows
    largest_cluster   share of the rows, above which one cluster decides alone
    few_clusters      below which even Student's t is rough: clusters differ in size
    oversampled       share of repeated rows in one class, `more_often` times that of others
    more_often        how many times as often as in the class that comes next
    few_rows          below which the normal limit of a mean of products is a hope, not a fact
    """

    rare: int = threshold(10, LEVELS)
    rarest: int = threshold(5, LEVELS)
    most_alone: float = threshold(0.5, "convention: most rows have no other that tells of them")
    largest_cluster: float = threshold(0.25, CLUSTERED)
    few_clusters: int = threshold(10, CLUSTERED)
    oversampled: float = threshold(0.5, "convention: most rows of a class are repeated")
    more_often: float = threshold(3.0, "judgement, not measured: chance alone makes no such gap")
    few_rows: int = threshold(100, "convention: the usual rule for a normal limit of products")


POLICY = TablePolicy()
