"""Scenarios of a user's own: a formula in a study file, a function in a Python file, a table."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from residua.errors import InputError, did_you_mean, short
from residua.model import Model, Term

Array = NDArray[np.float64]

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "sign": np.sign,
    "max": np.maximum,
    "min": np.minimum,
    "sigmoid": lambda u: 1 / (1 + np.exp(-u)),
}
CONSTANTS = {"pi": float(np.pi), "e": float(np.e)}
_SUMS = (ast.Add, ast.Sub)
_ALLOWED = (
    ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Name, ast.Constant, ast.Load, ast.Add,
    ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub, ast.UAdd, ast.Gt, ast.Lt, ast.GtE, ast.LtE,
)  # fmt: skip


def formula(
    *,
    y: str,
    noise: float = 1.0,
    n_features: int = 0,
    correlation: Sequence[Sequence[Any]] = (),
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
    width = n_features or max(used[-1] for _, used, _ in varying) + 1
    if max(used[-1] for _, used, _ in varying) >= width:
        raise InputError(f"The formula {short(y)!r} names more than n_features={width} features.")
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


def _parsed(text: Any) -> ast.expr:
    """Return the formula's tree, or raise where it has more than arithmetic in it."""
    if not isinstance(text, str):
        raise InputError(f"y={short(repr(text))} must be a formula in quotes, such as 'x1 + x2'.")
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
            raise InputError(f"{node.value!r} in the formula {short(text)!r} is not a number.")
        if isinstance(node, ast.Name):
            _check_name(node.id, id(node) in calls, text)
    return tree


def _check_name(name: str, called: bool, text: str) -> None:
    if called and name not in FUNCTIONS:
        raise InputError(f"There is no function '{name}'.{did_you_mean(name, FUNCTIONS)}")
    if not called and name not in CONSTANTS and _position(name) < 0:
        raise InputError(f"'{name}' in the formula {short(text)!r} is not a feature: x1, x2, ….")


def _position(name: str) -> int:
    """Return a feature's position from its name, x1 being 0, or -1 where it is none."""
    digits = name.removeprefix("x")
    return int(digits) - 1 if name.startswith("x") and digits.isdecimal() else -1


def _summands(node: ast.expr, sign: float = 1.0) -> list[tuple[ast.expr, float]]:
    """Return the parts of a sum, so that the theory sees which features enter together."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _SUMS):
        right = sign if isinstance(node.op, ast.Add) else -sign
        return [*_summands(node.left, sign), *_summands(node.right, right)]
    return [(node, sign)]


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
    """Return what a checked formula comes to."""
    code = compile(ast.Expression(ast.fix_missing_locations(node)), "<formula>", "eval")
    return sign * eval(code, {"__builtins__": {}, **FUNCTIONS, **CONSTANTS}, dict(known))


def _covariance(width: int, pairs: Sequence[Sequence[Any]]) -> Array | None:
    if not pairs:
        return None
    matrix = np.eye(width)
    for pair in pairs:
        try:
            one, two, r = pair
            i, j, r = _position(str(one)), _position(str(two)), float(r)
        except (TypeError, ValueError):
            raise InputError(
                f"correlation has {pair!r}. Write pairs as [['x1', 'x2', 0.5]]."
            ) from None
        if i == j or not (0 <= i < width and 0 <= j < width):
            raise InputError(f"correlation names {pair!r}, which are not two of the features.")
        matrix[i, j] = matrix[j, i] = r
    return matrix


@lru_cache(maxsize=32)
def from_source(source: str, function: str, name: str) -> Callable[..., Model]:
    """Return the function that a Python file defines, which makes a Model of its settings."""
    space: dict[str, Any] = {"__name__": f"residua_study_{name}"}
    try:
        exec(compile(source, name, "exec"), space)
    except (Exception, SystemExit) as error:
        reason = short(f"{type(error).__name__}: {error}", 200)
        raise InputError(f"{short(name)} cannot be run ({reason}).") from error
    made = space.get(function)
    if not callable(made):
        raise InputError(f"{name} has no function '{function}' that returns a Model.")
    return made  # type: ignore[no-any-return]
