"""How far a job is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from covaria.execution.terminal import bare

SECONDS = 10.0  # between two lines
PATIENCE = 1.0  # seconds before a bar is shown by itself

Show = Callable[[int, int, str], None]


@contextmanager
def display(label: str, *, hidden: bool) -> Iterator[Show | None]:
    """Yield a function that shows how much of how much is done, and a remark."""
    if hidden:
        yield None
    elif sys.stderr.isatty():
        with _bar(label) as show:
            yield show
    else:
        yield _line_now_and_then(label)


@contextmanager
def _bar(label: str) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    remark = TextColumn("{task.fields[remark]}")
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), remark)
    with Progress(*columns, console=Console(file=bare(sys.stderr)), transient=True) as bar:
        task = bar.add_task(label, remark="")
        yield lambda done, total, said: bar.update(task, completed=done, total=total, remark=said)


def _line_now_and_then(label: str) -> Show:
    last = time.monotonic()

    def show(done: int, total: int, said: str) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS:
            last = time.monotonic()
            print(f"{label} {done}/{total}{said and ', ' + said}", file=sys.stderr, flush=True)

    return show


class Pace:
    """How fast a job goes, from its first report on: what comes before is mostly compilation."""

    def __init__(self) -> None:
        self.first: tuple[float, int] | None = None

    def rate(self, done: int) -> float:
        """Return how much is done in a second, 0 while that is unknown."""
        now = time.monotonic()
        self.first = self.first or (now, done)
        start, before = self.first
        return (done - before) / (now - start) if now > start else 0.0


def in_words(seconds: float) -> str:
    """Return a time as people say it.

    >>> in_words(42), in_words(600), in_words(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def timed(show: Show) -> Callable[[int, int], None]:
    """Return a function of (done, total) that shows the time left as well."""
    pace = Pace()

    def advance(done: int, total: int) -> None:
        rate = pace.rate(done)
        show(done, total, f"about {in_words((total - done) / rate)} left" if rate else "")

    return advance


@contextmanager
def watched(given: object, label: str = "fitting") -> Iterator[Callable[[int, int], None] | None]:
    """Yield the function that hears of progress: the one given, or a bar where someone looks.

    None shows a bar on a terminal and in a notebook, once a run takes a while; False shows none.
    """
    if callable(given):
        yield given
    elif given is False or not (sys.stderr.isatty() or in_notebook()):
        yield None
    else:
        with ExitStack() as stack:
            yield _patient(label, stack)


def _patient(label: str, stack: ExitStack) -> Callable[[int, int], None]:
    start, shown = time.monotonic(), list[Callable[[int, int], None]]()

    def advance(done: int, total: int) -> None:
        if not shown and time.monotonic() - start > PATIENCE:
            kind = _bar if sys.stderr.isatty() else _rewritten
            shown.append(timed(stack.enter_context(kind(label))))
        if shown:
            shown[0](done, total)

    return advance


@contextmanager
def _rewritten(label: str) -> Iterator[Show]:
    """Yield a function that writes one line over and over, which goes at the end."""
    longest = 0

    def show(done: int, total: int, said: str) -> None:
        nonlocal longest
        line = f"{label} {done}/{total}{said and ', ' + said}"
        longest = max(longest, len(line))
        print(f"\r{line:<{longest}}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print(f"\r{'':<{longest}}\r", end="", file=sys.stderr, flush=True)


def in_notebook() -> bool:
    """Return whether this runs in the kernel of a notebook."""
    return "ipykernel" in sys.modules and hasattr(sys, "ps1")
