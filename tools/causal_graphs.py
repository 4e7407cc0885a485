"""PC with our test beside Fisher z, KCI and RCIT on random graphs: the table of docs/questions.md.

Eight nodes in a random order, each edge there with probability .36 (ten edges on average); a node
is the sum over its parents of a line, sine, tanh, square or absolute value, each of variance 1 and
with a random sign, and normal noise of standard deviation .6; 300 rows, columns shuffled. PC of
causal-learn (stable, level .05) is run with every test on the same rows.

`python tools/causal_graphs.py STORE.csv [--graphs 10] [--tests covaria,kci]` runs what the store
has not and prints the table. It needs causal-learn, which is no part of `make test`.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Graph = NDArray[np.int_]  # [i, j] is 1 where i → j; both where the direction is open
N_NODES, N_ROWS, DENSITY, NOISE, LEVEL = 8, 300, 0.36, 0.6, 0.05
SHAPES: list[Callable[[Array], Array]] = [
    lambda x: x,
    lambda x: np.sin(2 * x),
    lambda x: np.tanh(2 * x),
    np.square,
    np.abs,
]
# By what they are called in the store: options of our test, or a name of causal-learn's.
TESTS: dict[str, Mapping[str, object] | str] = {
    "fisherz": "fisherz",
    "rcit": "rcit",
    "kci": "kci",
    "covaria": {"learner": "splines(df='gcv')"},
    "covaria gcm": {"learner": "splines(df='gcv')", "methods": "gcm"},
    "covaria auto": {"learner": "auto"},
}


@dataclass(frozen=True)
class Run:
    """One search: how far its graph is from the truth, and what it took."""

    graph: int
    test: str
    edges: int
    skeleton: int  # pairs of nodes that are wrongly joined or apart
    shd: int  # pairs of nodes whose edge differs in any way from that of the true CPDAG
    questions: int
    cpu_seconds: float


def random_graph(rng: np.random.Generator) -> Graph:
    """Return a graph in which every arrow points to a later node."""
    return np.triu(rng.random((N_NODES, N_NODES)) < DENSITY, 1).astype(np.int_)


def draw(graph: Graph, rng: np.random.Generator, n_rows: int = N_ROWS) -> Array:
    """Return rows of a graph whose nodes are in order, each column standardised."""
    X = np.zeros((n_rows, len(graph)))
    for j in range(len(graph)):
        X[:, j] = NOISE * rng.normal(size=n_rows)
        for i in np.flatnonzero(graph[:, j]):
            shape = SHAPES[rng.integers(len(SHAPES))]
            X[:, j] += rng.choice([-1, 1]) * _standard(shape(X[:, i]))
        X[:, j] = _standard(X[:, j])
    return X


def _standard(x: Array) -> Array:
    found: Array = (x - x.mean()) / x.std()
    return found


def scenario(number: int) -> tuple[Graph, Array]:
    """Return the graph of a number and its rows, nodes in a random order."""
    rng = np.random.default_rng([25, number])
    graph = random_graph(rng)
    X, order = draw(graph, rng), rng.permutation(N_NODES)
    return graph[np.ix_(order, order)], X[:, order]


def cpdag(graph: Graph) -> Graph:
    """Return the class of graphs that no test tells from this one: Meek's rules on its colliders.

    >>> chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    >>> cpdag(chain).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> collider = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    >>> bool((cpdag(collider) == collider).all())
    True
    """
    joined = (graph + graph.T) > 0
    found = joined.astype(np.int_)
    nodes = range(len(graph))
    for k in nodes:
        for i in np.flatnonzero(graph[:, k]):
            if any(graph[j, k] and j != i and not joined[i, j] for j in nodes):
                found[k, i] = 0
    while _meek(found, joined):
        pass
    return found


def _meek(found: Graph, joined: NDArray[np.bool_]) -> bool:
    """Direct one edge that must not make a new collider or a cycle; return whether there was one.

    Rules 1 to 3; the fourth is needed only beside knowledge from elsewhere.
    """
    directed = (found == 1) & (found.T == 0)
    for i, j in np.argwhere((found == 1) & (found.T == 1)):
        new_collider = (directed[:, i] & ~joined[:, j]).any()
        cycle = (directed[i] & directed[:, j]).any()
        beside = np.flatnonzero((found[i] == 1) & (found[:, i] == 1) & directed[:, j])
        two = any(not joined[k, m] for k in beside for m in beside if k < m)
        if new_collider or cycle or two:
            found[j, i] = 0
            return True
    return False


def distance(found: Graph, true: Graph) -> tuple[int, int]:
    """Return how many pairs are wrongly joined or apart, and how many differ in any way.

    >>> distance(np.array([[0, 1], [0, 0]]), np.array([[0, 1], [1, 0]]))
    (0, 1)
    """
    joined = ((found + found.T) > 0) != ((true + true.T) > 0)
    differs = (found != true) | (found.T != true.T)
    return int(np.triu(joined).sum()), int(np.triu(differs).sum())


def search(X: Array, test: str) -> tuple[Graph, int, float]:
    """Return the graph that PC finds, how many questions it asked, and the seconds of one core."""
    from causallearn.search.ConstraintBased.PC import pc

    from covaria.assessment.adapters import causal_learn

    how = TESTS[test]
    name = how if isinstance(how, str) else causal_learn(test, **how)
    np.random.seed(0)  # RCIT draws from it
    start = time.process_time()
    ended = pc(X, LEVEL, name, show_progress=False)
    seconds, found = time.process_time() - start, ended.G.graph
    # An arrow i → j has -1 at (i, j) and 1 at (j, i), an open edge -1 at both.
    graph = ((found == -1) & (np.isin(found.T, (1, -1)))).astype(np.int_)
    about_itself = 3  # of the cache: hashes of data and parameters, the name of the test
    return graph, len(ended.test.pvalue_cache) - about_itself, seconds


def run(number: int, test: str) -> Run:
    """Return how one search went."""
    graph, X = scenario(number)
    found, questions, seconds = search(X, test)
    wrong, differ = distance(found, cpdag(graph))
    return Run(number, test, int(graph.sum()), wrong, differ, questions, round(seconds, 2))


def stored(path: Path) -> list[Run]:
    """Return the runs of a store."""
    if not path.exists():
        return []
    with path.open() as file:
        kinds = {"test": str, "cpu_seconds": float}
        return [
            Run(**{name: kinds.get(name, int)(value) for name, value in row.items()})
            for row in csv.DictReader(file)
        ]


def store(path: Path, one: Run) -> None:
    """Add a run to a store."""
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(asdict(one)))
        if is_new:
            writer.writeheader()
        writer.writerow(asdict(one))


def table(runs: list[Run]) -> str:
    """Return the means of each test, with their errors, as Markdown."""
    lines = ["| test | graphs | wrong edges | SHD | questions | seconds a graph |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for test in TESTS:
        some = [one for one in runs if one.test == test]
        if some:
            cells = [_mean([getattr(one, name) for one in some])
                     for name in ("skeleton", "shd", "questions", "cpu_seconds")]  # fmt: skip
            lines.append(f"| {test} | {len(some)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(values: list[float]) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.3g} ± {error:.2g}"


def main() -> None:
    """Run what the store has not, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--graphs", type=int, default=10)
    parser.add_argument("--tests", default=",".join(TESTS))
    asked = parser.parse_args()
    known = {(one.graph, one.test) for one in stored(asked.path)}
    for test in asked.tests.split(","):
        for number in range(asked.graphs):
            if (number, test) not in known:
                store(asked.path, run(number, test))
    print(table(stored(asked.path)))


if __name__ == "__main__":
    main()
