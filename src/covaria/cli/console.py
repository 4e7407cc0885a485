"""What the command line prints: one line of data, the plan, a progress bar, the verdict."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from covaria.errors import plural, short, visible
from covaria.execution.progress import display, in_words, timed
from covaria.execution.terminal import bare
from covaria.report.alerts import all_alerts
from covaria.results.result import Result, cell_width, mattering, plain_table

if TYPE_CHECKING:
    import pandas as pd

    from covaria.nuisance.plan import Plan, Progress

TOP = 60
# Alerts beyond so many are folded: the page has them all.
MOST_ALERTS = 5


def data_line(name: str, plan: Plan) -> str:
    """Return the data in one line."""
    data = plan.data
    features = (*data.features, *data.others)
    kinds = [feature.kind for feature in features]
    extra = [
        plural(kinds.count(kind), kind).replace("categorys", "categories")
        for kind in ("category", "group", "constant")
        if kind in kinds
    ]
    if data.others:
        extra.append(f"{data.n_features:,} tested")
    inside = f" ({', '.join(extra)})" if extra else ""
    target = plural(data.n_classes, "class") if data.classes else "a number"
    return (
        f"{short(name)}: {plural(data.n_rows, 'row')}, {plural(len(features), 'feature')}"
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
    """Return the verdict table and the answer as plain lines."""
    lines = ["", plain_table(_verdicts(result)), *_left_out(result), "", result.headline]
    return "\n".join(lines)


def print_verdict(result: Result) -> None:
    """Print the verdict: a table with colours on a terminal, plain lines elsewhere."""
    if not sys.stdout.isatty():
        print(verdict(result))
        return
    frame = _verdicts(result)
    lean = [name for name in frame.columns if " effect [" not in name]
    print_table(frame, lean=frame[lean], green=mattering(result))
    for line in (*_left_out(result), result.headline):
        print(line)


def _verdicts(result: Result) -> pd.DataFrame:
    """Return the verdicts of the clearest features with headings for people."""
    level = f"{100 * result.about.confidence:.0f}%"
    adjusted = "p" if result.about.correction == "none" else "adj. p"
    return result.verdicts.head(TOP).rename(
        columns={m: f"{m} effect [{level}]" for m in result.scores}
        | {f"{m} p": f"{m} {adjusted}" for m in result.methods}
    )


def _left_out(result: Result) -> list[str]:
    more = len(result.features) - TOP
    return [f"… and {plural(more, 'more feature')}; --out writes them all."] if more > 0 else []


def print_table(
    frame: pd.DataFrame,
    *,
    widest: int = 40,
    lean: pd.DataFrame | None = None,
    green: Collection[str] = (),
) -> None:
    """Print a table: by rich on a terminal, as plain lines elsewhere.

    Where it is too wide for the terminal, `lean` with fewer columns is shown if there is one. Rows
    whose first cell is among `green` end in green.
    """
    if not sys.stdout.isatty():
        print(plain_table(frame, widest=widest))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=bare(sys.stdout), highlight=False, soft_wrap=False)
    if lean is not None and _width(frame, widest) > console.width:
        frame = lean
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for at, name in enumerate(frame.columns):
        table.add_column(Text(str(name)), no_wrap=at < len(frame.columns) - 1, overflow="ellipsis",
                         style="bold" if at == 0 else "")  # fmt: skip
    for row in frame.itertuples(index=False):
        # A Text shows a name as it is; a plain string would be read for markup.
        *cells, last = [Text(short(str(value), widest)) for value in row]
        last.stylize("green" if row[0] in green else "")
        table.add_row(*cells, last)
    console.print(table)


def _width(frame: pd.DataFrame, widest: int) -> int:
    """Return how wide rich makes a table: a blank more between columns, and one at each side."""
    plain = max(cell_width(line) for line in plain_table(frame, widest=widest).splitlines())
    return plain + len(frame.columns) + 1


def footnotes(result: Result, said: Iterable[str] = ()) -> Iterable[str]:
    """Yield what the effects mean, how well y is predicted, and the alerts not yet said."""
    effects = [f"{name} effect = {result.about.effects[name]}" for name in result.scores]
    yield "; ".join(effects) + "."
    if len(result.about.classes) == 2 and "gcm" in result.methods:
        yield f"A positive correlation speaks for class '{short(result.about.classes[1])}'."
    full = result.quality.loc[result.quality["regression"] == "y given all", "r2"]
    if len(full):
        yield f"The learner explains {100 * max(0.0, full.iloc[0]):.0f}% of the target out of fold."
    yield f"{result.costs} It took {in_words(result.cost['seconds'].sum())}."
    alerts = [alert for alert in all_alerts(result) if alert not in set(said)]
    yield from (f"! {visible(alert)}" for alert in alerts[:MOST_ALERTS])
    if len(alerts) > MOST_ALERTS:
        yield f"! … and {len(alerts) - MOST_ALERTS} more; --report shows them, --json has them."


@contextmanager
def progress_bar(*, hidden: bool) -> Iterator[Progress | None]:
    """Yield a progress function that shows the fits done and the time left."""
    with display("fitting", hidden=hidden) as show:
        yield timed(show) if show else None


def compile_note(plan: Plan) -> str:
    """Return that the engine is about to be compiled, or nothing where numba has it on disk."""
    from pathlib import Path

    from covaria.execution.compiling import keeps_on_disk
    from covaria.nuisance import plan as engines
    from covaria.nuisance.fit import engine_for

    name = engine_for(plan).__name__.rsplit(".", 1)[-1]
    compiled = {"boosting": "boosting_kernels", "kernel": "kernel_solver", "network": "network"}
    if name not in compiled:
        return ""
    cache = Path(engines.__file__).parent / "__pycache__"
    if any(cache.glob(f"{compiled[name]}.*.nbi")):
        return ""
    once = ", once" if keeps_on_disk() else ""
    return f"First run with '{name}': its engine is being compiled, about 20 s{once}."
