"""Scenarios of a user's own: a formula in a study file, a function in a Python file, a table."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError, did_you_mean, is_whole, short
from covaria.simulation.model import Model, Term

Array = NDArray[np.float64]


def _of_all(pick: Callable[..., object]) -> Callable[..., object]:
    return lambda *values: reduce(pick, values)


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "sign": np.sign,
    "max": _of_all(np.maximum),
    "min": _of_all(np.minimum),
    "sigmoid": lambda u: 1 / (1 + np.exp(-u)),
}
SEVERAL = ("max", "min")  # these take two values or more, the others one
CONSTANTS = {"pi": float(np.pi), "e": float(np.e)}
OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.Pow: operator.pow, ast.Gt: operator.gt, ast.Lt: operator.lt,
    ast.GtE: operator.ge, ast.LtE: operator.le,
}  # fmt: skip
_SUMS = (ast.Add, ast.Sub)
_ALLOWED = (
    ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Name, ast.Constant, ast.Load, ast.USub,
    ast.UAdd, *OPERATORS,
)  # fmt: skip
# A formula of more letters, or of more brackets within brackets, is not one that somebody wrote.
MOST_LETTERS, MOST_DEEP = 10_000, 50
# With a correlation there is a matrix of all pairs.
MOST_FEATURES, MOST_CORRELATED = 100_000, 5_000


def formula(
    *,
    y: str,
    noise: float = 1.0,
    n_features: int = 0,
    correlation: Sequence[Sequence[object]] = (),
    df: float = np.inf,
    name: str = "formula",
) -> Model:
    """Return the model of a formula such as "2 * sin(x1) + x2 * x3".

    Parameters
    ----------
    y: features are x1, x2, …; numbers, + - * / ** > <, brackets, and the functions of `FUNCTIONS`.
    noise: the noise's standard deviation.
    n_features: as many as the formula names, where not given.
    correlation: pairs, such as [["x1", "x2", 0.5]]; the others are independent.
    df: below infinity, the features are t-distributed.

    >>> formula(y="2 * sin(x1) + x2 * x4", n_features=6).support
    ['x1', 'x2', 'x4']
    """
    parts = [_part(node, sign) for node, sign in _summands(_parsed(y))]
    varying = [part for part in parts if part[1]]
    if not varying:
        raise InputError(f"The formula {short(y)!r} names no feature. Write x1, x2, ….")
    level = sum(float(_value(node, {}, sign)) for node, used, sign in parts if not used)
    if not np.isfinite(level):
        raise InputError(f"The formula {short(y)!r} divides by 0 or has a number without end.")
    width = _width(y, max(used[-1] for _, used, _ in varying) + 1, n_features)
    terms = [
        Term(_function(node, used, sign, level if k == 0 else 0.0), used)
        for k, (node, used, sign) in enumerate(varying)
    ]
    return Model(
        terms,
        noise=noise,
        covariance=_covariance(width, correlation),
        n_features=width,
        df=df,
        name=name,
        settings={"y": y, "noise": noise, "df": df, "correlation": str(list(correlation))},
    )


def _width(text: str, named: int, given: object) -> int:
    """Return how many features there are, of which the formula names the first so many."""
    if not is_whole(given) or given < 0:
        raise InputError(f"n_features={short(repr(given))} must be a whole number above 0.")
    width = int(given) or named
    if named > width:
        raise InputError(
            f"The formula {short(text)!r} names more than n_features={width} features."
        )
    if width > MOST_FEATURES:
        raise InputError(f"{short(str(width))} features are too many: {MOST_FEATURES:,} at most.")
    return width


def _parsed(text: object) -> ast.expr:
    """Return the formula's tree, or raise where it has more than arithmetic in it."""
    if not isinstance(text, str):
        raise InputError(f"y={short(repr(text))} must be a formula in quotes, such as 'x1 + x2'.")
    if len(text) > MOST_LETTERS:
        raise InputError(f"The formula {short(text)!r} is longer than {MOST_LETTERS:,} letters.")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"The formula {short(text)!r} cannot be read. Check brackets.") from None
    calls = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED) or (isinstance(node, ast.Call) and node.keywords):
            raise InputError(
                f"The formula {short(text)!r} may hold numbers, x1, x2, …, arithmetic and "
                f"{', '.join(FUNCTIONS)} only."
            )
        if isinstance(node, ast.Constant) and type(node.value) not in (int, float):
            said = short(repr(node.value))
            raise InputError(f"{said} in the formula {short(text)!r} is not a number.")
        if isinstance(node, ast.Name):
            _check_name(node.id, id(node) in calls, text)
        if isinstance(node, ast.Call):
            _check_call(node, text)
    if any(_is_deep(node) for node, _ in _summands(tree)):
        raise InputError(f"The formula {short(text)!r} is nested too deeply. Write it as a sum.")
    return tree


def _check_name(name: str, called: bool, text: str) -> None:
    if called and name not in FUNCTIONS:
        raise InputError(f"There is no function '{short(name)}'.{did_you_mean(name, FUNCTIONS)}")
    if not called and name not in CONSTANTS and _position(name) < 0:
        raise InputError(
            f"'{short(name)}' in the formula {short(text)!r} is not a feature: x1, x2, …."
        )


def _check_call(call: ast.Call, text: str) -> None:
    if not isinstance(call.func, ast.Name):
        raise InputError(f"The formula {short(text)!r} cannot be read. Put a * between factors.")
    name, count = call.func.id, len(call.args)
    if count < 2 if name in SEVERAL else count != 1:
        wanted = "two values or more" if name in SEVERAL else "one value"
        raise InputError(f"{name} in the formula {short(text)!r} takes {wanted}, not {count}.")


def _is_deep(tree: ast.expr) -> bool:
    """Return whether there is more inside each other than anybody writes."""
    level: list[ast.AST] = [tree]
    for _ in range(MOST_DEEP):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return bool(level)


def _position(name: str) -> int:
    """Return a feature's position from its name, x1 being 0, or -1 where it is none."""
    digits = name.removeprefix("x")
    is_one = name.startswith("x") and digits.isdecimal() and digits.isascii()
    return min(int(digits[:9]), 10**9) - 1 if is_one and digits[0] != "0" else -1


def _summands(node: ast.expr, sign: float = 1.0) -> list[tuple[ast.expr, float]]:
    """Return the parts of a sum, so that the theory sees which features enter together."""
    found, left = [], [(node, sign)]
    while left:  # the last of them is the first in the formula
        node, sign = left.pop()
        if isinstance(node, ast.BinOp) and isinstance(node.op, _SUMS):
            left += [(node.right, sign if isinstance(node.op, ast.Add) else -sign)]
            left += [(node.left, sign)]
        else:
            found.append((node, sign))
    return found


def _part(node: ast.expr, sign: float) -> tuple[ast.expr, tuple[int, ...], float]:
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id not in FUNCTIONS}
    return node, tuple(sorted(_position(n) for n in names if n not in CONSTANTS)), sign


def _function(
    node: ast.expr, used: tuple[int, ...], sign: float, level: float
) -> Callable[[Array], Array]:
    def value(columns: Array) -> Array:
        table = columns[:, None] if columns.ndim == 1 else columns
        known = {f"x{j + 1}": table[:, k] for k, j in enumerate(used)}
        return np.asarray(_value(node, known, sign) + level, dtype=float)

    return value


def _value(node: ast.expr, known: Mapping[str, Array], sign: float = 1.0) -> Any:
    """Return what a checked formula comes to; what has no value is not a number."""
    with np.errstate(all="ignore"):
        return sign * _evaluated(node, {**CONSTANTS, **known})


def _evaluated(node: ast.AST, known: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return _number(node.value)
    if isinstance(node, ast.Name):
        return known[node.id]
    if isinstance(node, ast.UnaryOp):
        value = _evaluated(node.operand, known)
        return -value if isinstance(node.op, ast.USub) else +value
    if isinstance(node, ast.BinOp):
        one, two = _evaluated(node.left, known), _evaluated(node.right, known)
        return _calculated(OPERATORS[type(node.op)], one, two)
    if isinstance(node, ast.Compare):
        values = [_evaluated(part, known) for part in (node.left, *node.comparators)]
        pairs = zip(node.ops, values, values[1:], strict=False)
        # As numbers: of two truths a sum is 2, and of `0 < x1 < 1` both have to hold.
        return reduce(operator.mul, [1.0 * OPERATORS[type(op)](a, b) for op, a, b in pairs])
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    return FUNCTIONS[node.func.id](*(_evaluated(part, known) for part in node.args))


def _number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of 400 digits
        return np.inf


def _calculated(calculate: Callable[[Any, Any], object], one: object, two: object) -> object:
    """Return a sum, product, …; of two numbers as NumPy has it: without an error, never complex."""
    try:
        found = calculate(one, two)
    except (ZeroDivisionError, OverflowError):
        return np.nan
    return np.nan if isinstance(found, complex) else found


def _covariance(width: int, pairs: object) -> Array | None:
    if isinstance(pairs, Sequence) and not isinstance(pairs, str) and not pairs:
        return None
    if isinstance(pairs, str) or not isinstance(pairs, Sequence):
        raise InputError(f"correlation has {short(repr(pairs))}. {PAIRS}")
    if width > MOST_CORRELATED:
        raise InputError(
            f"{width:,} features are too many to correlate: {MOST_CORRELATED:,} at most."
        )
    matrix = np.eye(width)
    for pair in pairs:
        try:
            one, two, r = pair
            i, j, r = _position(str(one)), _position(str(two)), float(r)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"correlation has {short(repr(pair))}. {PAIRS}") from None
        if i == j or not (0 <= i < width and 0 <= j < width):
            raise InputError(
                f"correlation names {short(repr(pair))}, which are not two of the features."
            )
        matrix[i, j] = matrix[j, i] = r
    return matrix


PAIRS = "Write pairs as [['x1', 'x2', 0.5]]."


@lru_cache(maxsize=32)
def from_source(source: str, function: str, name: str) -> Callable[..., Model]:
    """Return the function that a Python file defines, which makes a Model of its settings."""
    space: dict[str, Any] = {"__name__": f"covaria_study_{name}"}
    try:
        exec(compile(source, name, "exec"), space)  # nosec B102 # the user's own file
    except (Exception, SystemExit) as error:
        reason = short(f"{type(error).__name__}: {error}", 200)
        raise InputError(f"{short(name)} cannot be run ({reason}).") from error
    made = space.get(function)
    if not callable(made):
        raise InputError(f"{name} has no function '{function}' that returns a Model.")
    return made  # type: ignore[no-any-return]
