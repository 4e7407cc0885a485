"""Mutation scores: how many small errors, put into a module one at a time, its own tests find.

    python tools/mutate.py                      every module of TARGETS, 60 mutants each
    python tools/mutate.py tests --most 0   all mutants of one module
    python tools/mutate.py --file some.py --name pkg.some --tests tests/test_some.py

Nothing in src is touched: a mutant is a file in a temporary folder, which a finder hands out under
the module's name. Heavy imports happen once; then each mutant is tested in a fork of its own.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parent.parent
# Quick to start: without plugins that these tests do not need, and without looking for doctests.
OPTIONS = [
    *("-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "pytest_timeout"),
    *("-o", "addopts=--import-mode=importlib -m 'not slow'"),
]
HEAVY = ("numpy", "pandas", "scipy.stats", "scipy.optimize", "sklearn.model_selection", "numba")


@dataclass(frozen=True)
class Target:
    """A module and the quick tests that are its own."""

    name: str
    path: Path
    tests: tuple[str, ...]


def _target(name: str, *tests: str, but: str = "") -> Target:
    """Return a module and its tests, but for those whose names match: slow ones, of processes."""
    path = ROOT / "src" / "covaria" / (name.replace(".", "/") + ".py")
    left_out = ("-k", f"not ({but})") if but else ()
    return Target(f"covaria.{name}", path, (*(f"tests/{test}" for test in tests), *left_out))


TARGETS = {
    target.name.rsplit(".", 1)[-1]: target
    for target in (
        _target("inference.tests", "inference/test_tests.py"),
        _target("inference.corrections", "inference/test_corrections.py"),
        _target("methods.gcm", "methods/test_gcm_by_hand.py"),
        _target("methods.pcm", "methods/test_pcm_by_hand.py"),
        _target("methods.loco", "methods/test_loco_by_hand.py"),
        _target("nuisance.splits", "nuisance/test_splits.py"),
        _target("efficiencies.formulas", "efficiencies/test_formulas.py"),
        _target("inference.resampling", "inference/test_resampling.py"),
        _target("tables.encoding", "tables/test_encoding_by_hand.py"),
        _target("selection.bounds", "selection/test_bounds.py"),
        _target("selection.stability", "selection/test_stability.py", but="processes"),
        _target(
            "selection.selectors",
            "selection/test_selectors.py",
            but="scikit_learns or imported_without or lazy",
        ),
        _target("selection.refit", "selection/test_refit.py", but="command"),
    )
}

# Mutants that do what the module does, by the reason why: "module: function: before -> after".
SAME = {
    "an end of 0 becomes 0": (
        "tests: agreeing: low > 0 -> low >= 0",
        "tests: agreeing: high < 0 -> high <= 0",
    ),
    "a node more or less moves the quadrature by less than its error": (
        "tests: _nodes: np.polynomial.legendre.leggauss(64) -> np.polynomial.legendre.leggauss(65)",
        "tests: _nodes: np.polynomial.legendre.leggauss(64) -> np.polynomial.legendre.leggauss(63)",
    ),
    "the two ways to a non-centrality agree at 10,000": (
        "tests: _noncentrality: statistic > 10000.0 -> statistic >= 10000.0",
        "tests: _noncentrality: statistic > 10000.0 -> statistic > 10001.0",
        "tests: _noncentrality: statistic > 10000.0 -> statistic > 9999.0",
    ),
    "blocks of another size hold the same numbers": (
        "resampling: _all_rows: 2 ** 20 -> 3 ** 20",
        "resampling: _all_rows: 2 ** 20 -> 2 ** 21",
        "resampling: _all_rows: 2 ** 20 -> 2 ** 19",
    ),
    "the root lies well inside its bracket": (
        "tests: _noncentrality: np.sqrt(statistic) + 10 -> np.sqrt(statistic) + 11",
        "tests: _noncentrality: np.sqrt(statistic) + 10 -> np.sqrt(statistic) + 9",
    ),
    "the interval is then made to hold its estimate, 0": (
        "tests: _interval_of_length: return (0.0, 0.0) -> return (1.0, 0.0)",
        "tests: _interval_of_length: return (0.0, 0.0) -> return (0.0, -1.0)",
    ),
    "columns that are all features are all of them": (
        "gcm: _products: single == columns == every -> single != columns == every",
    ),
    "numpy reads any size below 0 as -1": (
        "gcm: of_products: (x[:, :, None] * y[:, None, :]).reshape(len(x), -1)"
        " -> (x[:, :, None] * y[:, None, :]).reshape(len(x), -2)",
        "pcm: factors: array[:, j].reshape(len(array), -1) -> array[:, j].reshape(len(array), -2)",
        "pcm: unexplained: squares.reshape(*squares.shape[:2], -1)"
        " -> squares.reshape(*squares.shape[:2], -2)",
    ),
    "the combination is then divided by its mean": (
        "gcm: combined: products.mean(axis=0) -> products.sum(axis=0)",
    ),
    "the unit of a standardised column cancels out": (
        "gcm: _inverse: 1 / np.where(alive, sd, 1.0) -> 2 / np.where(alive, sd, 1.0)",
    ),
    "what it would divide is not used, or 0": (
        "gcm: _inverse: np.where(alive, sd, 1.0) -> np.where(alive, sd, 2.0)",
        "gcm: fisher_scale: np.where(own > 0, scale[at] * own, 1.0)"
        " -> np.where(own > 0, scale[at] * own, 2.0)",
        "gcm: _unit: np.where(size > 0, size, 1.0) -> np.where(size > 0, size, 2.0)",
    ),
    "the largest eigenvalue of a correlation matrix is 1 or more, or nothing is left": (
        "gcm: _inverse: values.max(initial=0.0) -> values.max(initial=1.0)",
        "gcm: _inverse: values.max(initial=0.0) -> values.max(initial=-1.0)",
        "gcm: _inverse: max(values.max(initial=0.0), 1e-300) -> max(values.max(initial=0.0), 1.0)",
        "gcm: _inverse: max(values.max(initial=0.0), 1e-300) -> max(values.max(initial=0.0), -1.0)",
    ),
    "those of two columns or more are counted in the next lines": (
        "gcm: degrees_of_freedom: min(1, len(f.tested)) -> min(2, len(f.tested))",
    ),
    "there are no rows just where their part is 0": (
        "loco: _partly_paired: len(rows) == 0 or part == 0 -> len(rows) == 0 and part == 0",
        "loco: _partly_paired: len(rows) == 0 or part == 0 -> part == 0",
        "loco: _partly_paired: len(rows) == 0 or part == 0 -> len(rows) == 0",
        "loco: _partly_paired: len(rows) == 0 -> len(rows) == -1",
        "loco: _partly_paired: part == 0 -> part == -1",
    ),
    "anything but None will do": (
        "splits: _from_splitter: getattr(splitter, 'random_state', 0)"
        " -> getattr(splitter, 'random_state', 1)",
        "splits: _from_splitter: getattr(splitter, 'random_state', 0)"
        " -> getattr(splitter, 'random_state', -1)",
    ),
    "what is computed with NaN is NaN": (
        "formulas: relative_efficiency: math.isnan(ours) or math.isnan(rival)"
        " or (math.isinf(ours) and math.isinf(rival))"
        " -> math.isnan(ours) or (math.isinf(ours) and math.isinf(rival))",
        "formulas: limits: m.second > 0 and all(map(math.isfinite, (m.cross, m.mixed, m.fourth)))"
        " -> all(map(math.isfinite, (m.cross, m.mixed, m.fourth)))",
        "formulas: limits: m.second > 0 -> m.second >= 0",
        "formulas: limits: m.second > 0 -> m.second > -1",
    ),
    "means taken off once more are 0": (
        "encoding: module: SWEEPS = 20 -> SWEEPS = 21",
        "encoding: within: len(every) > 1 -> len(every) >= 1",
        "encoding: within: len(every) > 1 -> len(every) > 0",
        "encoding: within: SWEEPS if len(every) > 1 else 1 -> SWEEPS if len(every) > 1 else 2",
    ),
    "a p-value is never just the level": (
        "encoding: goes_with: Means.of(code).chances(values) < POLICY.unlikely"
        " -> Means.of(code).chances(values) <= POLICY.unlikely",
    ),
}
EQUIVALENT = {change: reason for reason, changes in SAME.items() for change in changes}


# --- mutants ------------------------------------------------------------------------------------


Put = Callable[[ast.AST], None]


@dataclass(frozen=True)
class Mutant:
    """A module with one change: another node in place of one."""

    where: str
    around: ast.AST | None
    tree: ast.Module
    node: ast.AST
    new: ast.AST
    put: Put

    @property
    def line(self) -> int:
        return int(getattr(self.node, "lineno", 0))

    @property
    def change(self) -> str:
        if self.around is None:
            return f"{self.where}: {_shown(self.node)} -> {_shown(self.new)}"
        before, after = map(ast.unparse, (self.around, self._changed(self.around)))
        return " ".join(f"{self.where}: {before} -> {after}".split())

    @property
    def source(self) -> str:
        return ast.unparse(self._changed(self.tree))

    def _changed(self, part: ast.AST) -> ast.AST:
        """Return a copy of a part of the module with the change in it."""
        self.put(self.new)
        try:
            return copy.deepcopy(part)
        finally:
            self.put(self.node)


# What says little without what it is in.
BARE = (ast.Constant, ast.UnaryOp, ast.Slice, ast.Tuple, ast.comprehension)
Variants = Callable[[Any], Iterator[ast.AST]]
# Where a type or a decorator stands, or what is only a name.
SKIPPED = {"annotation", "returns", "decorator_list", "type_params", "ctx", "op", "ops"}
COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "sf": "cdf",
    "cdf": "sf",
    "isf": "ppf",
    "ppf": "isf",
    "any": "all",
    "all": "any",
    "argmin": "argmax",
    "argmax": "argmin",
    "mean": "sum",
    "sum": "mean",
    "std": "var",
    "var": "std",
}
# Calls that change their first argument: without them it stays as it is.
NEGLECTED = {"sqrt", "abs", "sort", "argsort", "unique", "clip", "square"}


def mutants(source: str) -> list[Mutant]:
    """Return every mutant of a module."""
    tree = ast.parse(source)
    return [
        Mutant(where, around, tree, node, new, put)
        for where, around, node, put in _sites(tree, "module", ())
        for new in _variants(node)
    ]


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node.test if isinstance(node, ast.If | ast.IfExp) else node)
    text = f"if {text}" if isinstance(node, ast.If | ast.IfExp) else text
    return " ".join(text.split())


def _sites(
    node: ast.AST, where: str, above: tuple[ast.AST, ...]
) -> Iterator[tuple[str, ast.AST | None, ast.AST, Put]]:
    """Yield every node that may change, what it is in, and how to replace it."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        where = node.name
    above = (node, *above)
    for field, value in ast.iter_fields(node):
        if field in SKIPPED or isinstance(value, str):
            continue
        for at, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or _is_skipped(child):
                continue
            index = at if isinstance(value, list) else None
            yield where, _around(child, above), child, _putter(node, field, index)
            yield from _sites(child, where, above)


def _around(node: ast.AST, above: tuple[ast.AST, ...]) -> ast.AST | None:
    """Return what to show of a number or an end: the expression or assignment it is in."""
    if not isinstance(node, BARE):
        return None
    one = next((one for one in above if not isinstance(one, (*BARE, ast.keyword))), None)
    return one if isinstance(one, ast.expr | ast.Assign | ast.Return) else None


def _putter(parent: ast.AST, field: str, index: int | None) -> Put:
    def put(new: ast.AST) -> None:
        if index is None:
            setattr(parent, field, new)
        else:
            getattr(parent, field)[index] = new

    return put


def _is_skipped(node: ast.AST) -> bool:
    """Return whether a node is no code that runs: text, an import, or a type."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    is_type = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    return is_text or is_type or isinstance(node, ast.Import | ast.ImportFrom)


def _variants(node: ast.AST) -> Iterator[ast.AST]:
    variants = VARIANTS.get(type(node))
    return variants(node) if variants else iter(())


def _of_compare(node: ast.Compare) -> Iterator[ast.AST]:
    for at, op in enumerate(node.ops):
        for other in COMPARISONS[type(op)]:
            ops = [*node.ops[:at], other(), *node.ops[at + 1 :]]
            yield ast.Compare(node.left, ops, node.comparators)


def _of_operation(node: ast.BinOp) -> Iterator[ast.AST]:
    if type(node.op) in OPERATORS:
        yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)


def _of_unary(node: ast.UnaryOp) -> Iterator[ast.AST]:
    yield node.operand


def _of_constant(node: ast.Constant) -> Iterator[ast.AST]:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)
        yield ast.Constant(node.value - 1)


def _of_bool(node: ast.BoolOp) -> Iterator[ast.AST]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield ast.BoolOp(other, node.values)
    for at in range(len(node.values)):
        left = [*node.values[:at], *node.values[at + 1 :]]
        yield left[0] if len(left) == 1 else ast.BoolOp(node.op, left)


def _of_call(node: ast.Call) -> Iterator[ast.AST]:
    function = node.func
    name = getattr(function, "attr", getattr(function, "id", ""))
    if name in NAMES:
        other: ast.expr = ast.Name(NAMES[name])
        if isinstance(function, ast.Attribute):
            other = ast.Attribute(function.value, NAMES[name], function.ctx)
        yield ast.Call(other, node.args, node.keywords)
    if name in NEGLECTED and node.args:
        yield node.args[0]


def _of_condition(node: ast.If | ast.IfExp) -> Iterator[ast.AST]:
    kind: Any = type(node)
    yield kind(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)


def _of_return(node: ast.Return) -> Iterator[ast.AST]:
    if node.value is not None and ast.unparse(node.value) != "None":
        yield ast.Return(ast.Constant(None))


def _of_slice(node: ast.Slice) -> Iterator[ast.AST]:
    if node.lower is not None:
        yield ast.Slice(None, node.upper, node.step)
    if node.upper is not None:
        yield ast.Slice(node.lower, None, node.step)
        more = ast.BinOp(node.upper, ast.Add(), ast.Constant(1))
        yield ast.Slice(node.lower, more, node.step)
    if node.step is not None:
        yield ast.Slice(node.lower, node.upper, None)


def _of_update(node: ast.AugAssign) -> Iterator[ast.AST]:
    if type(node.op) in OPERATORS:
        yield ast.AugAssign(node.target, OPERATORS[type(node.op)](), node.value)
    yield ast.Assign([node.target], node.value, lineno=node.lineno)


def _of_statement(node: ast.stmt) -> Iterator[ast.AST]:
    yield ast.Pass()


def _of_continue(node: ast.Continue) -> Iterator[ast.AST]:
    yield ast.Break()


def _of_break(node: ast.Break) -> Iterator[ast.AST]:
    yield ast.Continue()


def _of_comprehension(node: ast.comprehension) -> Iterator[ast.AST]:
    for at in range(len(node.ifs)):
        ifs = [*node.ifs[:at], *node.ifs[at + 1 :]]
        yield ast.comprehension(node.target, node.iter, ifs, node.is_async)


VARIANTS: dict[type[ast.AST], Variants] = {
    ast.Compare: _of_compare,
    ast.BinOp: _of_operation,
    ast.UnaryOp: _of_unary,
    ast.Constant: _of_constant,
    ast.BoolOp: _of_bool,
    ast.Call: _of_call,
    ast.If: _of_condition,
    ast.IfExp: _of_condition,
    ast.Return: _of_return,
    ast.Slice: _of_slice,
    ast.AugAssign: _of_update,
    ast.Expr: _of_statement,
    ast.Raise: _of_statement,
    ast.Continue: _of_continue,
    ast.Break: _of_break,
    ast.comprehension: _of_comprehension,
}


# --- tests of a mutant --------------------------------------------------------------------------


class Finder(importlib.abc.MetaPathFinder):
    """Hands out one file under a module's name."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.path = name, path

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path)


def start(target: Target, path: Path) -> int:
    """Start the target's tests with another file for the module; return the process."""
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        sys.dont_write_bytecode = True
        sys.meta_path.insert(0, Finder(target.name, path))
        import pytest

        code = int(pytest.main([*OPTIONS, *target.tests]))
    finally:
        os._exit(code)


@dataclass
class Running:
    """A process that tests a mutant, or the module as it is, and until when it may."""

    mutant: Mutant | None
    pid: int
    until: float

    def finished(self) -> int | None:
        """Return how the tests ended, None where they have not: 0 means that all passed."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() < self.until:
            return None
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return 124


def survivors(target: Target, chosen: list[Mutant], jobs: int, limit: float) -> list[Mutant]:
    """Return the mutants with which all tests pass."""
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        seconds = _checked(target, Path(folder))
        limit = limit or max(10.0, 5 * seconds)
        waiting, found = list(enumerate(chosen)), []
        running: list[Running] = []
        while waiting or running:
            while waiting and len(running) < jobs:
                at, mutant = waiting.pop(0)
                path = Path(folder) / f"mutant_{at}.py"
                path.write_text(mutant.source, encoding="utf-8")
                running.append(Running(mutant, start(target, path), time.monotonic() + limit))
            time.sleep(0.01)
            ended = [(one, code) for one in running if (code := one.finished()) is not None]
            running = [one for one in running if all(one is not other for other, _ in ended)]
            found += [one.mutant for one, code in ended if code == 0]
    return sorted((m for m in found if m), key=lambda m: m.line)


def _checked(target: Target, folder: Path) -> float:
    """Return the seconds that the tests take, after they passed with the module as it is."""
    path, begin = folder / "unchanged.py", time.monotonic()
    path.write_text(ast.unparse(ast.parse(target.path.read_text(encoding="utf-8"))))
    one = Running(None, start(target, path), begin + 600)
    while (code := one.finished()) is None:
        time.sleep(0.01)
    if code:
        sys.exit(f"{target.name}: its tests fail without a mutant ({code}). Mend them first.")
    return time.monotonic() - begin


def score(
    target: Target, *, most: int = 60, seed: int = 0, jobs: int = 1, limit: float = 0.0
) -> tuple[int, list[Mutant]]:
    """Return how many mutants were tested, and those that survived."""
    chosen = mutants(target.path.read_text(encoding="utf-8"))
    short = target.name.rsplit(".", 1)[-1]
    chosen = [one for one in chosen if f"{short}: {one.change}" not in EQUIVALENT]
    if 0 < most < len(chosen):
        chosen = random.Random(f"{seed} {target.name}").sample(chosen, most)
    return len(chosen), survivors(target, chosen, jobs, limit)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print survivors and scores; return 1 where a score is below the least."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="*", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--most", type=int, default=60, help="mutants a module, 0 for all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample of mutants")
    parser.add_argument("--jobs", type=int, default=1, help="mutants tested at once")
    parser.add_argument("--limit", type=float, default=0.0, help="seconds a mutant may take")
    parser.add_argument("--least", type=float, default=80.0, help="the score in %% to reach")
    parser.add_argument("--file", type=Path, help="another module's file")
    parser.add_argument("--name", help="its name for import")
    parser.add_argument("--tests", nargs="+", help="other tests than the module's own")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.modules if name not in TARGETS]
    if unknown:
        parser.error(f"no module {unknown[0]!r}; there are {', '.join(TARGETS)}")
    targets = [TARGETS[name] for name in given.modules or TARGETS]
    if given.file:
        targets = [Target(given.name or given.file.stem, given.file, ())]
    is_low = False
    _warm_up(targets)
    for target in targets:
        tests = tuple(given.tests or target.tests)
        begin = time.monotonic()
        count, alive = score(
            Target(target.name, target.path, tests),
            most=given.most, seed=given.seed, jobs=given.jobs, limit=given.limit,
        )  # fmt: skip
        for one in alive:
            print(f"{_short(target.path)}:{one.line}: {one.change}")
        percent = 100 * (1 - len(alive) / max(count, 1))
        took = time.monotonic() - begin
        print(
            f"{target.name}: {percent:.0f}% "
            f"({count - len(alive)} of {count} mutants found, {took:.0f} s)",
            flush=True,
        )
        is_low |= percent < given.least
    return int(is_low)


def _short(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def _warm_up(targets: list[Target]) -> None:
    """Import what every fork needs, but nothing of covaria."""
    os.chdir(ROOT)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.path.insert(0, str(ROOT / "src"))
    heavy = HEAVY if any(target.name.startswith("covaria.") for target in targets) else ()
    for name in ("pytest", *heavy):
        importlib.import_module(name)


if __name__ == "__main__":
    sys.exit(main())
