"""Random tables and options, and the law that every one of them has to meet.

`case(seed, at)` draws a case; `verdict(case)` says what came of it. The law: an answer or one
sentence of `InputError`. An answer has finite numbers where its method promises them, p-values in
[0, 1], is the same when saved and read back, and has a page.
"""

from __future__ import annotations

import datetime as dt
import importlib.util
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from fuzz_law import Verdict, judged
from numpy.random import Generator

import covaria
from covaria.errors import InputError, is_whole, visible
from covaria.methods import METHODS, Method
from covaria.report import page_of

HOSTILE = (
    "", " ", "\n", "a\nb", "a\tb", "\r", "\x00", "\x1b[31mred\x1b[0m", "\x1b]8;;http://x\x1b\\y",
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "' onload='alert(1)",
    "=1+1", "+cmd|' /C calc'!A0", "@SUM(A1)", "-2+3", "{{7*7}}", "{% raw %}", "%s%n", "$x^2$",
    "\\frac{", "é", "日本語", "\u202eevil", "\u200b", "\ufeff", "👩‍👩‍👧", "\ud800", "\udcff",
    "x" * 3000, "a,b", 'a"b', "a;b", "nan", "None", "inf", "True", "0", "1e5", "y", "target",
    "index", "__class__", "(1, 2)", "a:b", "a*b", "gcm", "feature", "p_value", ".", "..", "/",
    "C:\\x", "~", "NULL", "#N/A", "`", "[x]", "s(x)",
)  # fmt: skip


@dataclass
class Case:
    """A table, its target and the options to assess it with; `notes` say what is odd about it."""

    kind: str
    X: Any
    y: Any
    options: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def pick(rng: Generator, values: Any) -> Any:
    """Return one of the values, as it is."""
    values = list(values)
    return values[int(rng.integers(len(values)))]


# --- columns ------------------------------------------------------------------------------------

Column = Callable[[int, Generator], list[Any]]


def normal(n: int, rng: Generator) -> list[Any]:
    return rng.normal(size=n).tolist()


def gaps_of(column: Column, gap: Any = None, share: float = 0.2) -> Column:
    def draw(n: int, rng: Generator) -> list[Any]:
        return [gap if rng.random() < share else value for value in column(n, rng)]

    return draw


def whole(n: int, rng: Generator) -> list[Any]:
    return rng.integers(-5, 6, size=n).tolist()


def flags(n: int, rng: Generator) -> list[Any]:
    return (rng.random(n) < 0.4).tolist()


def text(n: int, rng: Generator) -> list[Any]:
    return [f"level {k}" for k in rng.integers(int(rng.integers(1, 6)), size=n)]


def names(n: int, rng: Generator) -> list[Any]:
    return [f"id {k}" for k in rng.permutation(n)]


def hostile(n: int, rng: Generator) -> list[Any]:
    levels = [pick(rng, HOSTILE) for _ in range(4)]
    return [pick(rng, levels) for _ in range(n)]


def days(n: int, rng: Generator) -> list[Any]:
    return [dt.date(2000, 1, 1) + dt.timedelta(int(k)) for k in rng.integers(10_000, size=n)]


def instants(n: int, rng: Generator) -> list[Any]:
    return [
        dt.datetime(2000, 1, 1) + dt.timedelta(hours=int(k)) for k in rng.integers(9999, size=n)
    ]


def zoned(n: int, rng: Generator) -> list[Any]:
    return [value.replace(tzinfo=dt.UTC) for value in instants(n, rng)]


def waits(n: int, rng: Generator) -> list[Any]:
    return [dt.timedelta(minutes=int(k)) for k in rng.integers(9999, size=n)]


def prices(n: int, rng: Generator) -> list[Any]:
    return [Decimal(int(k)) / 100 for k in rng.integers(9999, size=n)]


def scaled(factor: float) -> Column:
    return lambda n, rng: (factor * rng.normal(size=n)).tolist()


def constant(value: Any) -> Column:
    return lambda n, _: [value] * n


def rare(n: int, rng: Generator) -> list[Any]:
    values = [0.0] * n
    for at in rng.integers(max(n, 1), size=2):
        if at < n:
            values[at] = 1.0
    return values


def mixed(n: int, rng: Generator) -> list[Any]:
    return [pick(rng, [1, "a", 2.5, None, True]) for _ in range(n)]


PLAIN: list[Column] = [normal, normal, normal, whole, flags, text]
ODD: list[Column] = [
    gaps_of(normal), gaps_of(normal, float("nan")), gaps_of(whole), gaps_of(flags), gaps_of(text),
    gaps_of(normal, math.inf, 0.05), gaps_of(normal, 1e300, 0.05), names, hostile, gaps_of(hostile),
    days, gaps_of(days), instants, zoned, waits, prices, scaled(1e-300), scaled(1e300),
    scaled(1e150), scaled(1e-12), constant(3.0), constant("a"), constant(None), constant(math.nan),
    constant(math.inf), constant(""), rare, mixed, constant(2**70), constant(b"x"),
    constant([1, 2]), constant(1j), constant({"a": 1}), lambda n, _: [*range(n)],
    lambda n, _: [2**62 + k for k in range(n)],
]  # fmt: skip


def columns(n: int, p: int, rng: Generator, oddness: float) -> list[list[Any]]:
    """Return so many columns, now and then a copy of one before, or nearly so."""
    found: list[list[Any]] = []
    for _ in range(p):
        if found and rng.random() < 0.08:
            found.append(list(pick(rng, found)))
        else:
            found.append(pick(rng, ODD if rng.random() < oddness else PLAIN)(n, rng))
    return found


def labels(p: int, rng: Generator, oddness: float) -> list[Any]:
    """Return a name for each column."""
    found: list[Any] = [f"c{at}" for at in range(p)]
    for at in range(p):
        draw = rng.random()
        if draw < oddness:
            found[at] = pick(rng, HOSTILE)
        elif draw < 1.2 * oddness:
            found[at] = pick(rng, [at, None, ("a", at), 1.5, True, found[0]])
    return found


# --- kinds of tables ----------------------------------------------------------------------------


def by_name(names: list[Any], values: list[list[Any]]) -> dict[str, list[Any]]:
    """Return columns by names that are text and stand once."""
    return {str(name): column for name, column in zip(names, values, strict=True)}


def in_pandas(names: list[Any], values: list[list[Any]]) -> pd.DataFrame:
    frame = pd.DataFrame({at: pd.Series(column) for at, column in enumerate(values)})
    frame.columns = pd.Index(names, dtype=object, tupleize_cols=False)
    return frame


def nullable(names: list[Any], values: list[list[Any]]) -> Any:
    return in_pandas(names, values).convert_dtypes()


def in_arrow_pandas(names: list[Any], values: list[list[Any]]) -> Any:
    return in_pandas(names, values).convert_dtypes(dtype_backend="pyarrow")


def categorical(names: list[Any], values: list[list[Any]]) -> Any:
    frame = in_pandas(names, values)
    for at in range(0, frame.shape[1], 2):
        frame.isetitem(at, frame.iloc[:, at].astype("category"))
    return frame


def indexed(names: list[Any], values: list[list[Any]]) -> Any:
    frame = in_pandas(names, values)
    return frame.set_axis([7] * len(frame), axis=0)


def in_polars(names: list[Any], values: list[list[Any]]) -> Any:
    import polars as pl

    return pl.DataFrame(
        {n: pl.Series(n, v, strict=False) for n, v in by_name(names, values).items()}
    )


def lazy_polars(names: list[Any], values: list[list[Any]]) -> Any:
    return in_polars(names, values).lazy()


def polars_categories(names: list[Any], values: list[list[Any]]) -> Any:
    import polars as pl

    frame = in_polars(names, values)
    return frame.with_columns(
        pl.col(n).cast(pl.Categorical) for n, kind in frame.schema.items() if kind == pl.String
    )


def in_pyarrow(names: list[Any], values: list[list[Any]]) -> Any:
    import pyarrow as pa

    return pa.table([pa.array(v) for v in values], names=[str(n) for n in names])


def pyarrow_dictionaries(names: list[Any], values: list[list[Any]]) -> Any:
    import pyarrow as pa

    arrays = [pa.array(v) for v in values]
    return pa.table(
        [a.dictionary_encode() if pa.types.is_string(a.type) else a for a in arrays],
        names=[str(n) for n in names],
    )


def in_dask(names: list[Any], values: list[list[Any]]) -> Any:
    import dask.dataframe as dd

    return dd.from_pandas(in_pandas([str(n) for n in names], values), npartitions=2)


def in_numpy(names: list[Any], values: list[list[Any]]) -> Any:
    return in_objects(names, values).astype(float)


def in_objects(_: list[Any], values: list[list[Any]]) -> Any:
    array = np.empty((len(values[0]) if values else 0, len(values)), dtype=object)
    for at, column in enumerate(values):
        for row, value in enumerate(column):
            array[row, at] = value
    return array


def small_floats(names: list[Any], values: list[list[Any]]) -> Any:
    return in_numpy(names, values).astype(np.float32)


def in_lists(_: list[Any], values: list[list[Any]]) -> Any:
    return [list(row) for row in zip(*values, strict=True)]


def in_dict(names: list[Any], values: list[list[Any]]) -> Any:
    return by_name(names, values)


def in_sparse(names: list[Any], values: list[list[Any]]) -> Any:
    import scipy.sparse as sp

    return sp.csr_matrix(in_numpy(names, values))


def masked(names: list[Any], values: list[list[Any]]) -> Any:
    array = in_numpy(names, values)
    return np.ma.masked_array(array, mask=~np.isfinite(array))


def structured(names: list[Any], values: list[list[Any]]) -> Any:
    return in_pandas([str(n) for n in names], values).to_records(index=False)


def no_table(_: list[Any], values: list[list[Any]]) -> Any:
    first = values[0] if values else []
    return [
        None,
        3,
        "table.csv",
        first,
        np.array(first, dtype=object),
        np.zeros((2, 2, 2)),
        {1, 2},
    ][(len(values) + len(first)) % 7]


KINDS: dict[str, tuple[Any, float]] = {
    "pandas": (in_pandas, 6), "pandas, nullable types": (nullable, 2),
    "pandas, Arrow types": (in_arrow_pandas, 2), "pandas, categories": (categorical, 2),
    "pandas, an index of copies": (indexed, 1), "polars": (in_polars, 4),
    "polars, lazy": (lazy_polars, 0.5), "polars, categories": (polars_categories, 1),
    "pyarrow": (in_pyarrow, 3), "pyarrow, dictionaries": (pyarrow_dictionaries, 1),
    "dask": (in_dask, 0.3), "NumPy": (in_numpy, 2), "NumPy, objects": (in_objects, 1),
    "NumPy, 32 bits": (small_floats, 1), "NumPy, masked": (masked, 0.5),
    "NumPy, records": (structured, 0.5), "lists": (in_lists, 1), "dict": (in_dict, 1),
    "SciPy, sparse": (in_sparse, 1), "no table": (no_table, 0.5),
}  # fmt: skip
NEEDS = {"polars": "polars", "pyarrow": "pyarrow", "dask": "dask", "pandas, Arrow": "pyarrow"}


def kinds() -> dict[str, tuple[Any, float]]:
    """Return the kinds of tables that can be made with what is installed."""

    def is_here(kind: str) -> bool:
        needed = [package for start, package in NEEDS.items() if kind.startswith(start)]
        return all(importlib.util.find_spec(package) for package in needed)

    return {kind: how for kind, how in KINDS.items() if is_here(kind)}


def table(rng: Generator, n: int, p: int, oddness: float) -> tuple[str, Any, list[Any], Any]:
    """Return a kind, a table of it, its names and its columns.

    Where a library refuses to make a table of such columns, it is made of plainer ones.
    """
    known = kinds()
    weights = np.array([weight for _, weight in known.values()])
    kind = str(rng.choice(list(known), p=weights / weights.sum()))
    for share in (oddness, oddness / 3, 0.0):
        names, values = labels(p, rng, share / 2), columns(n, p, rng, share)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return kind, known[kind][0](names, values), names, values
        except Exception:  # the library's, not ours
            continue
    return "lists", in_lists([], values := columns(n, p, rng, 0.0)), [*range(p)], values


# --- targets ------------------------------------------------------------------------------------


def numbers_of(column: list[Any], n: int) -> Any:
    if all(isinstance(v, float) and abs(v) < 1e6 for v in column):
        return np.array(column)
    return np.zeros(n)


def good_target(n: int, values: list[list[Any]], rng: Generator) -> Any:
    signal = numbers_of(values[0], n) if values else np.zeros(n)
    y = signal + rng.normal(size=n)
    draw = rng.random()
    if draw < 0.15:
        return y > 0
    if draw < 0.25:
        return np.where(y > 0, "yes", "no")
    if draw < 0.3:
        return np.digitize(y, [-0.5, 0.5])
    return y


def odd_target(n: int, rng: Generator) -> Any:
    column = pick(rng, [*PLAIN, *ODD])(n, rng)
    more: list[Any] = [
        column, column, column, column, column[1:], [*column, 1.0], None, "no such column", 7, 2.5,
        np.zeros(n), np.zeros((n, 2)), np.zeros((n, 1)), [[1.0]] * n, "", {}, lambda: 1,
        pd.DataFrame({"y": np.zeros(n)}),
    ]  # fmt: skip
    return pick(rng, more)


def dressed(y: Any, rng: Generator) -> Any:
    """Return a target as a list, an array or a series of some library."""
    makes: list[Callable[[Any], Any]] = [
        np.asarray, list, pd.Series, lambda v: pd.Series(v, name=pick(rng, HOSTILE)),
        lambda v: pd.Series(v).convert_dtypes(), tuple,
    ]  # fmt: skip
    if importlib.util.find_spec("polars"):
        makes.append(lambda v: __import__("polars").Series("y", list(v), strict=False))
    if importlib.util.find_spec("pyarrow"):
        makes.append(lambda v: __import__("pyarrow").array(list(v)))
    try:
        return pick(rng, makes)(y)
    except Exception:  # the library's, not ours
        return y


# --- options ------------------------------------------------------------------------------------

CHEAP = ("linear", "linear", "linear", "linear", "ridge", "mean", "linear(ridge=1.0)", "quadratic")
DEAR = (
    "auto", "splines", "boosting(trees=5)", "forest(trees=3)", "sparse", "ridge_path", "surfaces",
    "kernel", "network(epochs=2)", "single_index", "pursuit",
)  # fmt: skip
NONSENSE: list[Any] = [
    None, True, False, 0, -1, 1, 2, 1.5, -0.1, math.nan, math.inf, 10**30, "", "x", "\x1b[31m",
    b"x", [], {}, (), [1], {"a": 1}, object(), np.nan, np.int64(-3), np.float32(0.5),
    np.array([1, 2]), np.bool_(True), "linear(", "gcm(", "5", "None", lambda *_: 1, 1j,
    Decimal("0.1"), pd.NA, pd.NaT, np.datetime64("2020-01-01"), np.array(5),
    "linear()()", "gcm,,loco", "none", range(3),
]  # fmt: skip


def learner(rng: Generator, dear: float) -> Any:
    draw = rng.random()
    if draw < dear:
        return pick(rng, DEAR)
    if draw < dear + 0.05:
        from sklearn.linear_model import LinearRegression
        from sklearn.tree import DecisionTreeRegressor

        return pick(rng, [LinearRegression(), DecisionTreeRegressor(max_depth=2)])
    return pick(rng, CHEAP)


def methods(rng: Generator) -> Any:
    simple = [name for name in METHODS if name not in ("lazy", "gcm+pcm")]
    draw = rng.random()
    if draw < 0.15:
        return "default"
    chosen = [str(name) for name in rng.choice(simple, size=int(rng.integers(1, 4)), replace=False)]
    return ",".join(chosen) if draw < 0.4 else chosen


def splits(n: int, rng: Generator) -> Any:
    from sklearn.model_selection import KFold

    half = n // 2
    rows = np.arange(n)
    return pick(rng, [
        2, 2, 2, 3, 5, 0.33, 0.5, "none", np.int64(2), np.float32(0.4), KFold(2), 10, n,
        [(rows[:half], rows[half:]), (rows[half:], rows[:half])], [(rows[:half], rows[half:])],
    ])  # fmt: skip


def weights(n: int, names: list[Any], rng: Generator) -> Any:
    drawn = rng.random(n)
    return pick(rng, [
        drawn, drawn, drawn.tolist(), np.ones(n), drawn * (drawn > 0.3), pick(rng, names or ["c0"]),
        np.zeros(n), -drawn, drawn * np.nan, drawn[1:], 1e300 * drawn, ["a"] * n, drawn > 0.5,
        pd.Series(drawn), np.full(n, np.inf),
    ])  # fmt: skip


def clusters(n: int, names: list[Any], rng: Generator) -> Any:
    drawn = rng.integers(max(2, n // 4), size=n)
    return pick(rng, [
        drawn, drawn, drawn.tolist(), [f"c{k}" for k in drawn], pick(rng, names or ["c0"]),
        np.zeros(n), np.arange(n), drawn[1:], np.where(drawn == 0, np.nan, drawn), [None] * n,
        hostile(n, rng), pd.Series(drawn).astype("category"), [[1]] * n,
    ])  # fmt: skip


def groups(names: list[Any], rng: Generator) -> Any:
    some = names[:2]
    return pick(rng, [
        {"g": some}, {"g": some}, {"g": some, "h": names[2:4]}, {}, {"g": []}, {"g": ["nope"]},
        {pick(rng, HOSTILE): some}, {1: some}, {"g": "c0"}, {"g": some, "h": some}, [some], "g", 3,
        {"g": None}, {"c3": some}, {"g": names},
    ])  # fmt: skip


def options(
    n: int, names: list[Any], rng: Generator, oddness: float, dear: float
) -> dict[str, Any]:
    """Return options that are mostly right, and now and then nonsense."""
    may_be: dict[str, tuple[float, Callable[[], Any]]] = {
        "splits": (0.9, lambda: splits(n, rng)),
        "sample_weight": (0.1, lambda: weights(n, names, rng)),
        "clusters": (0.1, lambda: clusters(n, names, rng)),
        "groups": (0.1, lambda: groups(names, rng)),
        "task": (0.1, lambda: pick(rng, ["auto", "regression", "classification"])),
        "alternative": (0.1, lambda: pick(rng, [None, "two-sided", "greater", "less"])),
        "validity": (0.1, lambda: pick(rng, ["conservative", "zipper", "split", "signed_root"])),
        "correction": (
            0.2,
            lambda: pick(rng, ["bh", "by", "holm", "bonferroni", "storey", "none"]),
        ),
        "alpha": (
            0.1,
            lambda: pick(rng, [0.05, 0.2, np.float64(0.1), np.float32(0.1), 1e-9, 0.999]),
        ),
        "top": (0.1, lambda: pick(rng, [None, 1, 2, np.int64(1), 3])),
        "confidence": (0.1, lambda: pick(rng, [0.9, 0.99, np.float32(0.5)])),
        "repeats": (0.05, lambda: pick(rng, [1, 2, np.int32(2)])),
        "permutations": (0.1, lambda: pick(rng, [1, 2, np.int16(3)])),
        "paper": (0.05, lambda: pick(rng, [True, False, np.bool_(True)])),
        "seed": (0.2, lambda: pick(rng, [0, 1, np.int64(7), 2**40])),
        "n_jobs": (0.02, lambda: 1),
    }
    found = {name: draw() for name, (share, draw) in may_be.items() if rng.random() < share}
    found["check"] = bool(rng.random() < 0.25)
    found["learner"] = learner(rng, dear)
    found["methods"] = methods(rng)
    if rng.random() < oddness:
        found[pick(rng, [*may_be, "check", "learner", "methods"])] = pick(rng, NONSENSE)
    if is_whole(found.get("n_jobs")):
        found["n_jobs"] = min(1, max(0, found["n_jobs"]))  # processes have tests of their own
    return found


# --- a case and its verdict ---------------------------------------------------------------------


def case(seed: int, at: int, *, dear: float = 0.02) -> Case:
    """Return one case; the share of learners that take long is `dear`."""
    rng = np.random.default_rng([seed, at])
    oddness = pick(rng, [0.0, 0.0, 0.1, 0.2, 0.6])
    few = rng.random() < 0.1
    n = int(pick(rng, [0, 1, 2, 3, 5, 9] if few else [10, 15, 20, 20, 30, 30, 50, 50, 100, 200]))
    p = int(pick(rng, [1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 8, 12])) if rng.random() < 0.97 else 0
    kind, X, names, values = table(rng, n, p, oddness)
    if rng.random() < 0.85:
        y = dressed(good_target(n, values, rng), rng)
    elif rng.random() < 0.4 and names:
        y = pick(rng, names)
    else:
        y = odd_target(n, rng)
    chosen = options(n, names, rng, max(0.1, oddness / 2), dear)
    return Case(kind, X, y, chosen, [f"{n} rows, {p} columns named {names!r}"[:300]])


def verdict(given: Case, folder: Any) -> Verdict:
    """Return what came of a case."""
    return judged(lambda: _answered(given, folder), refusals=(InputError,))


def _answered(given: Case, folder: Any) -> str:
    result = covaria.assess(given.X, given.y, **given.options)
    _check_numbers(result)
    path = folder / "results.json"
    result.to_json(path)
    assert covaria.Result.from_json(path) == result, "another result was read than written"
    json.loads(path.read_text(encoding="utf-8"))
    page = page_of(result)
    assert "<script>alert" not in page, "a script stands in the page"
    said = [*str(result).splitlines(), *result.alerts]
    assert all(line == visible(line) for line in said), "what is printed moves the cursor"
    return "answer"


def _check_numbers(result: Any) -> None:
    for method in result.methods:
        rows = result.only(method).table
        if isinstance(METHODS.get(method.split("(")[0]), Method):  # others have empty columns
            numbers = rows.select_dtypes("number").to_numpy(dtype=float)
            assert np.isfinite(numbers).all(), f"{method} has no number"
        for name in ("p_value", "p_adjusted"):
            known = rows[name].dropna()
            assert known.between(0, 1).all(), f"{method} has a {name} outside [0, 1]"
    assert np.isfinite(result.quality["r2"].to_numpy(dtype=float)).all(), "r2 has no number"
