"""Features that explain each other, tested together and then in ever smaller sets.

Meinshausen, "Hierarchical testing of variable importance", Biometrika 95 (2008). A set S of the m
features is rejected where p(S)·m/|S| is at most the level and every set above it was rejected. Of
the largest true nulls that could be rejected first no two share a feature, so that their shares of
the level add up to it at most: the chance of any false rejection in the whole tree is kept. The
tree is made from the features alone, which is what lets it be looked at before y is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from covaria.errors import listed
from covaria.options.policy import Policy, threshold
from covaria.tables.dataset import Dataset
from covaria.tables.layout import SMALLEST, Feature, Levels
from covaria.tables.tidy import Tidy

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

# So many regressions are always worth their time; and in wider tables nobody looks for sets.
LEAST_WORTH, MOST_COLUMNS = 12, 500
COLUMNS = ("features", "size", "p_value", "p_adjusted", "verdict", "smallest", "within")
MATTERS, NOTHING_FOUND = "matters", "no evidence"


@dataclass(frozen=True)
class GroupingPolicy(Policy):
    """Which features are tested as one, with groups="auto".

    alike   the average similarity of their columns, from which on they are
    seen    without groups, sets are asked of where least squares has p-values below this
    """

    alike: float = threshold(0.5, "convention: half; docs/groups.md has the error rates with it")
    seen: float = threshold(0.01, "cost: a test of every set would double that of the default")


POLICY = GroupingPolicy()


@dataclass(frozen=True)
class Node:
    """A set of features, by their numbers, and the two sets that it is made of."""

    members: tuple[int, ...]
    children: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Visited:
    """A set that was visited, its p-value before and after adjustment, and the set above it."""

    node: Node
    p_value: float
    p_adjusted: float
    above: Node | None


def similarity(data: Dataset, left: Array | None, rows: NDArray[np.intp]) -> Array:
    """Return how alike features are: the largest correlation of their columns, plain or partial.

    What is left of two features given all others moves together where they stand in for each other,
    though each may look unlike any one of the others: by straight lines, and as the models left it.
    """
    own = [list(feature.tested) for feature in data.features]
    alike = np.maximum(np.abs(_correlations(data.X[rows])), _partial(data.X[rows]))
    if left is not None:
        alike = np.maximum(alike, np.abs(_correlations(left)))
    found = np.zeros((len(own), len(own)))
    for j, columns in enumerate(own):
        for k in range(j) if columns else ():
            if own[k]:
                found[j, k] = found[k, j] = alike[np.ix_(columns, own[k])].max()
    return found


def _correlations(columns: Array) -> Array:
    centred = columns - columns.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    scaled = np.divide(centred, length, out=np.zeros_like(centred), where=length > 0)
    return np.asarray(scaled.T @ scaled)


def _partial(columns: Array) -> Array:
    """Return absolute partial correlations, of a covariance that is shrunk (Ledoit and Wolf)."""
    from sklearn.covariance import ledoit_wolf

    spread = columns.std(axis=0)
    scaled = (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    precision = np.linalg.pinv(ledoit_wolf(scaled, assume_centered=True)[0], hermitian=True)
    size = np.sqrt(np.abs(np.diag(precision)))
    return np.asarray(np.abs(precision) / np.outer(size, size))


def clusters_of(alike: Array, testable: Sequence[int]) -> list[Node]:
    """Return the sets of two or more similar features, each as the tree of its parts.

    >>> alike = np.array([[0, 0.9, 0.1], [0.9, 0, 0.2], [0.1, 0.2, 0]])
    >>> [node.members for node in clusters_of(alike, [0, 1, 2])]
    [(0, 1)]
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    if len(testable) < 2:
        return []
    unlike = 1 - np.clip(alike[np.ix_(testable, testable)], 0, 1)
    np.fill_diagonal(unlike, 0)
    nodes = [Node((j,)) for j in testable]
    roots = set(range(len(nodes)))
    for a, b, distance, _ in linkage(squareform(unlike, checks=False), method="average"):
        one, other = nodes[int(a)], nodes[int(b)]
        nodes.append(Node(tuple(sorted(one.members + other.members)), (one, other)))
        if distance <= 1 - POLICY.alike:
            roots = (roots - {int(a), int(b)}) | {len(nodes) - 1}
    found = [nodes[at] for at in roots if nodes[at].children]
    return sorted(found, key=lambda node: node.members)


def visited_down(
    roots: Sequence[Node], p_of: Callable[[tuple[int, ...]], float], n_features: int, alpha: float
) -> list[Visited]:
    """Return the sets that were visited: from each root down as far as they are rejected."""
    found: list[Visited] = []
    waiting: list[tuple[Node, Node | None, float]] = [(root, None, 0.0) for root in roots]
    while waiting:
        node, above, least = waiting.pop(0)
        p = p_of(node.members)
        adjusted = max(least, min(1.0, p * n_features / len(node.members)))
        found.append(Visited(node, p, adjusted, above))
        if adjusted <= alpha:
            waiting += [(child, node, adjusted) for child in node.children]
    return found


def worth_asking(roots: Iterable[Node], selected: Collection[int], n_features: int) -> list[Node]:
    """Return the sets of which no feature is known to matter, the smallest first.

    Their regressions are at most a quarter of those of the single features, but for the first set
    of few features.

    >>> roots = [Node((0, 1)), Node((2, 3, 4)), Node((5, 6))]
    >>> [node.members for node in worth_asking(roots, {5}, 7)]
    [(0, 1), (2, 3, 4)]
    """
    silent = [root for root in roots if not set(root.members) & set(selected)]
    found, left = [], max(LEAST_WORTH, n_features // 2)
    for root in sorted(silent, key=lambda root: len(root.members)):
        left -= 1 + len(root.members)
        if left >= 0:
            found.append(root)
    return sorted(found, key=lambda node: node.members)


def seen_by_lines(data: Dataset) -> Callable[[Node], bool]:
    """Return whether least squares of y on all columns has a use for a set of features.

    A Wald test, in sample: not one of ours, but it tells for the price of one fit where one of ours
    is worth its time.
    """
    from scipy.stats import chi2

    X = data.X - data.X.mean(axis=0)
    X = X / np.maximum(np.sqrt(np.mean(X**2, axis=0)), SMALLEST)  # units have no say
    y = data.y if data.outputs is None else data.outputs
    y = y if data.n_classes <= 2 else np.eye(data.n_classes)[data.y.astype(np.intp)]
    targets = max(1, data.n_classes - 1) if data.outputs is None else data.outputs.shape[1]
    inverse, free = np.linalg.pinv(X.T @ X, hermitian=True), data.n_rows - data.X.shape[1] - 1
    slopes = inverse @ (X.T @ (y - y.mean(axis=0)))
    left = float(np.square(y - y.mean(axis=0) - X @ slopes).sum())

    def sees(node: Node) -> bool:
        own = sorted(column for j in node.members for column in data.features[j].tested)
        part = np.linalg.pinv(inverse[np.ix_(own, own)], hermitian=True)
        explained = float((slopes[own] * (part @ slopes[own])).sum())
        sure = chi2.isf(POLICY.seen, len(own) * targets)
        return bool(free <= 0 or explained * free >= sure * left)

    return sees


def as_table(tested: Sequence[Visited], names: Sequence[str], alpha: float) -> Tidy:
    """Return a row for each set that was visited, the largest first.

    `smallest` marks those that matter and of whose parts none is known to; `within` is the set
    above.
    """
    matter = [one for one in tested if one.p_adjusted <= alpha]
    parents = {one.above.members for one in matter if one.above is not None}
    rows = [
        (
            [names[j] for j in one.node.members],
            len(one.node.members),
            one.p_value,
            one.p_adjusted,
            MATTERS if one.p_adjusted <= alpha else NOTHING_FOUND,
            one.p_adjusted <= alpha and one.node.members not in parents,
            [] if one.above is None else [names[j] for j in one.above.members],
        )
        for one in tested
    ]
    return Tidy({name: [row[at] for row in rows] for at, name in enumerate(COLUMNS)})


def no_groups() -> Tidy:
    """Return the table of a run that looked for none."""
    return as_table([], [], 0.0)


def as_one(data: Dataset, members: Sequence[int]) -> Dataset:
    """Return the table in which some features are one, with the name of the first of them."""
    own = [data.features[j] for j in members]
    at = min(members)
    tested = [column for feature in own for column in feature.tested]
    beside = [c for feature in own for c in feature.columns if c not in feature.tested]
    together = Feature(data.names[at], "group", (*tested, *beside), len(beside))
    features = [
        together if j == at else Feature(feature.name, "constant", ())
        for j, feature in enumerate(data.features)
    ]
    levels = tuple(
        Levels(at if one.feature in members else one.feature, one.code) for one in data.levels
    )
    frame = data.frame
    if frame is not None:
        owned = tuple(c for feature in own for c in frame.owned[feature.name])
        frame = frame.owning({**frame.owned, together.name: owned})
    return replace(data, features=tuple(features), levels=levels, frame=frame)


def sentences(
    groups: pd.DataFrame, selected: Sequence[str], p: Callable[[float], str]
) -> Iterator[str]:
    """Yield what is known of sets of which no part is known to matter."""
    lines: list[Mapping[str, object]] = groups.to_dict(orient="records")  # type: ignore[assignment]
    for line in lines:
        members = [str(name) for name in line["features"]]  # type: ignore[attr-defined]
        if not line["smallest"] or len(members) < 2:
            continue
        alone = [name for name in members if name in selected]
        which = (
            f"of them {listed(alone)} by itself" if len(alone) == 1
            else f"of them {listed(alone)} by themselves" if alone
            else "which of them cannot be told"
        )  # fmt: skip
        value = p(float(line["p_adjusted"]))  # type: ignore[arg-type]
        sign = "" if value.startswith("<") else "= "
        yield f"{listed(members, 8)} together matter (p {sign}{value}); {which}."
