"""What the command line prints: one line of data, the plan, a progress bar, the verdict."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from residua.errors import plural, short
from residua.result import Result, plain_table

if TYPE_CHECKING:
    from residua.engines import Plan, Progress

TOP = 60


def data_line(name: str, plan: Plan) -> str:
    """Return the data in one line."""
    data = plan.data
    kinds = [feature.kind for feature in data.features]
    extra = [
        plural(kinds.count(kind), kind).replace("categorys", "categories")
        for kind in ("category", "group", "constant")
        if kind in kinds
    ]
    inside = f" ({', '.join(extra)})" if extra else ""
    target = plural(data.n_classes, "class") if data.classes else "a number"
    return (
        f"{short(name)}: {plural(data.n_rows, 'row')}, {plural(data.n_features, 'feature')}"
        f"{inside}; target '{short(data.target)}' is {target}"
    )


def plan_line(plan: Plan, repeats: int) -> str:
    """Return what is going to be fitted."""
    tasks = plan.tasks
    models = repeats * sum(plan.models(task) for task in tasks)
    arrays = 8 * plan.data.n_rows * (plan.data.X.shape[1] + 4 * plan.data.n_features) / 1e6
    return (
        f"Plan: {plural(models, 'model')} by {plan.learner} "
        f"({plural(len(plan.folds), 'fold')}{f' × {repeats} repeats' if repeats > 1 else ''}), "
        f"about {max(1, round(arrays)):,} MB of residuals. Ctrl-C is safe."
    )


def verdict(result: Result) -> str:
    """Return the verdict table and the answer."""
    verdicts = result.verdicts
    shown = verdicts.head(TOP)
    level = f"{100 * result.about['confidence']:.0f}%"
    adjusted = "p" if result.about["correction"] == "none" else "adj. p"
    shown = shown.rename(
        columns={m: f"{m} effect [{level}]" for m in result.scores}
        | {f"{m} p": f"{m} {adjusted}" for m in result.methods}
    )
    lines = ["", plain_table(shown)]
    if len(verdicts) > TOP:
        lines.append(f"… and {plural(len(verdicts) - TOP, 'more feature')}; --out writes them all.")
    return "\n".join([*lines, "", result.headline])


def footnotes(result: Result, said: Iterable[str] = ()) -> Iterable[str]:
    """Yield what the effects mean, how well y is predicted, and the alerts not yet said."""
    effects = [f"{name} effect = {result.about['effects'][name]}" for name in result.scores]
    yield "; ".join(effects) + "."
    if len(result.about["classes"]) == 2 and "gcm" in result.methods:
        yield f"A positive correlation speaks for class '{short(result.about['classes'][1])}'."
    full = result.quality.loc[result.quality["regression"] == "y given all", "r2"]
    if len(full):
        yield f"The learner explains {100 * max(0.0, full.iloc[0]):.0f}% of the target out of fold."
    yield from (f"! {alert}" for alert in result.alerts if alert not in set(said))


@contextmanager
def progress_bar(*, hidden: bool) -> Iterator[Progress | None]:
    """Yield a progress function: a bar with the time left, or plain lines without a terminal."""
    if hidden:
        yield None
    elif sys.stderr.isatty():
        with _rich_bar() as advance:
            yield advance
    else:
        yield _line_every(10.0)


@contextmanager
def _rich_bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns: tuple[Any, ...] = (
        TextColumn("fitting"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    )  # fmt: skip
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("fitting")
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _line_every(seconds: float) -> Progress:
    """Return a progress function that prints a line now and then."""
    last = time.monotonic()
    first: tuple[float, int] | None = None

    def advance(done: int, total: int) -> None:
        nonlocal last, first
        now = time.monotonic()
        # The rate counts from the first report on: what comes before is compilation.
        first = first or (now, done)
        if now - last >= seconds and first[1] < done < total:
            last = now
            left = (now - first[0]) / (done - first[1]) * (total - done)
            print(f"fitting {done}/{total}, about {left:.0f} s left", file=sys.stderr, flush=True)

    return advance


def compile_note(plan: Plan) -> str:
    """Return that the engine is about to be compiled, or nothing where numba has it on disk."""
    from pathlib import Path

    from residua import engines
    from residua.fitting import engine_for

    name = engine_for(plan).__name__.rsplit(".", 1)[-1]
    compiled = {"boosting": "boosting_kernels", "kernel": "kernel_solver", "network": "network"}
    if name not in compiled:
        return ""
    cache = Path(engines.__file__).parent / "__pycache__"
    if any(cache.glob(f"{compiled[name]}.*.nbi")):
        return ""
    return f"First run with '{name}': its engine is being compiled, about 20 s, once."
