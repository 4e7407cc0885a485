"""The commands of the study: run, resume, status, export, merge; and the paper's figures."""

from __future__ import annotations

import json
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covaria.cli.options import AsJson, Jobs
from covaria.errors import InputError, Interrupted, plural
from covaria.execution.progress import Pace, Show, display, in_words

if TYPE_CHECKING:
    from covaria.studies.runner import Standing

SOME_FAILED = 3
StudyFile = Annotated[Path, typer.Argument(help="A study in TOML.", show_default=False)]
StoreFile = Annotated[Path, typer.Option("--store", "-s", help="The SQLite file of the study.")]
Dask = Annotated[
    str | None, typer.Option("--dask", help="A scheduler such as tcp://host:8786, or local.")
]
Shard = Annotated[
    str | None, typer.Option("--shard", help="3/10 runs the third of ten parts, for merge.")
]
New = Annotated[bool, typer.Option("--new", help="Start over where the store holds another study.")]
Code = Annotated[
    list[Path] | None,
    typer.Option("--code", help="A Python file that the study may run; again for a second one."),
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Run any Python that the study names or its store holds.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def register(app: typer.Typer) -> None:
    """Add `covaria study …`."""
    study = typer.Typer(
        help="Run a grid of simulations that can be stopped and resumed at any time.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    app.add_typer(study, name="study")
    study.command()(run)
    study.command()(resume)
    study.command()(status)
    study.command()(export)
    study.command()(merge)


def run(
    study: StudyFile,
    store: StoreFile = Path("study.sqlite"),
    jobs: Jobs = 1,
    dask: Dask = None,
    shard: Shard = None,
    new: New = False,
    code: Code = None,
    trust: Trust = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run STUDY, or what is left of it in the store.

    Example: covaria study run study.toml --store study.sqlite --jobs 2
    """
    _run(study, store, jobs, dask, shard, new, code or [], trust, quiet or as_json, as_json)


def resume(
    store: StoreFile = Path("study.sqlite"),
    jobs: Jobs = 1,
    dask: Dask = None,
    shard: Shard = None,
    code: Code = None,
    trust: Trust = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run what is left of the study in a store.

    Example: covaria study resume --store study.sqlite
    """
    from covaria.studies.runner import grid_of

    study = grid_of(store)
    _run(study, store, jobs, dask, shard, False, code or [], trust, quiet or as_json, as_json)


def status(store: StoreFile = Path("study.sqlite"), as_json: AsJson = False) -> None:
    """Tell how far a study is, also while it runs.

    Example: covaria study status --store study.sqlite
    """
    from covaria.studies.runner import standing
    from covaria.studies.store import readable

    with readable(store) as opened:
        _tell(_standing(standing(opened), opened.failed_fits(), opened.shard, store), as_json)


def export(
    store: StoreFile = Path("study.sqlite"),
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A CSV file.")] = None,
    what: Annotated[
        str, typer.Option(help="table: every test; runs, features, summary: metrics of them.")
    ] = "table",
    versus: Annotated[
        str, typer.Option(help="gcm,loco writes their paired differences instead.")
    ] = "",
    report: Annotated[
        Path | None, typer.Option(help="Where an HTML page of the study goes, beside the CSV.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the study's table as CSV: a row per scenario, learner, repeat, method and feature.

    Example: covaria study export --store study.sqlite --out table.csv
    """
    from covaria.studies.results import Study, write_table
    from covaria.studies.store import readable
    from covaria.tables.files import safe, write_csv

    kinds = ("table", "runs", "features", "summary")
    if what not in kinds:
        raise InputError(f"--what {what} is not one of {', '.join(kinds)}.")
    with readable(store) as opened:
        _ = opened.identity
        if report is not None:
            from covaria.report import write_report

            write_report(Study.read(opened), report)
            print(f"Report  {report}", file=sys.stderr)
            if out is None:
                return
        if what == "table" and not versus and (out is not None or not as_json):
            rows = write_table(opened, out)
        else:
            found = Study.read(opened)
            frame = found.paired(*_two(versus)) if versus else getattr(found, what)
            rows = len(frame)
            if out is None and as_json:
                print(frame.to_json(orient="records"))
            elif out is None:
                print(safe(frame).to_csv(index=False), end="")
            else:
                write_csv(frame, out)
    if out is not None:
        said = {"rows": rows, "out": str(out)}
        print(json.dumps(said) if as_json else f"{plural(rows, 'row')} in {out}")


def _two(text: str) -> tuple[str, str]:
    from covaria.options.naming import split_names

    names = split_names(text)
    if len(names) != 2:
        raise InputError(f"--versus {text} is not two methods, such as gcm,loco.")
    return names[0], names[1]


def merge(
    parts: Annotated[list[Path], typer.Argument(help="The stores of the shards.")],
    store: Annotated[
        Path, typer.Option("--store", "--out", "-s", help="The store to put them into.")
    ] = Path("study.sqlite"),
    as_json: AsJson = False,
) -> None:
    """Put the tasks of several stores of one study into one.

    Example: covaria study merge part1.sqlite part2.sqlite --store study.sqlite
    """
    from covaria.studies.runner import merge_stores

    _tell(_standing(merge_stores(parts, store=store), 0, (1, 1), store), as_json)


def _run(
    study: str | Path | Mapping[str, object], store: Path, jobs: int, dask: str | None,
    shard: str | None, new: bool, code: list[Path], trust: bool, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Run a study in processes of their own, so that Ctrl-C is heard at once."""
    from covaria.studies.grid import read_grid
    from covaria.studies.runner import run_in_store, standing
    from covaria.studies.store import readable

    again = resume_command(store, jobs, dask, code, trust)
    with stopping_at(again), progress(hidden=quiet) as advance:
        grid = read_grid(study, code=code, trust=trust)
        if not quiet:
            size = f"{plural(len(grid.cells), 'cell')} × {plural(grid.repeats, 'repeat')}"
            total = plural(len(grid.tasks), "task")
            print(f"{total}: {size}, into {store}. Ctrl-C is safe.", flush=True)
        run_in_store(
            grid, store, n_jobs=jobs, dask=dask, shard=shard, new=new, progress=advance, apart=True
        )
    with readable(store) as opened:
        found = _standing(standing(opened), opened.failed_fits(), opened.shard, store)
    _tell(found, as_json, code, trust)
    if found["failed"] or found["failed_fits"]:
        raise typer.Exit(SOME_FAILED)


def resume_command(
    store: Path, jobs: int, dask: str | None, code: Sequence[Path] = (), trust: bool = False
) -> str:
    """Return what to type to go on."""
    extra = ["--jobs", str(jobs)] if jobs != 1 else []
    extra += ["--dask", dask] if dask else []
    extra += [word for path in code for word in ("--code", str(path))]
    extra += ["--trust"] if trust else []
    return shlex.join(["covaria", "study", "resume", "--store", str(store), *extra])


def _standing(
    found: Standing, failed_fits: int, shard: tuple[int, int], store: Path
) -> dict[str, object]:
    return {
        "store": str(store),
        "tasks": found.total,
        "done": found.done,
        "left": found.total - found.done,
        "failed": found.failed,
        "failed_fits": failed_fits,
        "shard": "{}/{}".format(*shard),
    }


def _tell(
    found: dict[str, Any], as_json: bool, code: Sequence[Path] = (), trust: bool = False
) -> None:
    if as_json:
        print(json.dumps(found))
        return
    part = "" if found["shard"] == "1/1" else f" of shard {found['shard']}"
    print(f"{found['store']}: {found['done']} of {plural(found['tasks'], 'task')}{part} done, "
          f"{found['failed']} failed.")  # fmt: skip
    if found["failed_fits"]:
        print(f"! {plural(found['failed_fits'], 'test')} failed; the column status says why.")
    if found["left"] or found["failed"]:
        print(f"Go on  {resume_command(Path(found['store']), 1, None, code, trust)}")
    else:
        print(f"Next   covaria study export --store {shlex.quote(found['store'])} --out table.csv")


@contextmanager
def stopping_at(command: str) -> Iterator[None]:
    """Turn Ctrl-C, or a scheduler's request to end, into a sentence with the way to go on."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    # A shell that starts a command with & has it ignore SIGINT; a study listens all the same.
    before = {which: signal.signal(which, stop) for which in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(
            f"Interrupted. Every finished task is kept; go on with: {command}"
        ) from None
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)


Advance = Callable[["Standing"], None]


@contextmanager
def progress(*, hidden: bool, label: str = "study") -> Iterator[Advance | None]:
    """Yield a function that shows how far a study is: rate, time left and failures."""
    with display(label, hidden=hidden) as show:
        yield _paced(show) if show else None


def _paced(show: Show) -> Advance:
    pace = Pace()

    def advance(found: Standing) -> None:
        show(found.done, found.total, _said(pace.rate(found.done), found))

    return advance


def _said(rate: float, found: Standing) -> str:
    """Return rate, time left and failures, as text."""
    failed = f"{found.failed} failed"
    if not rate:
        return failed
    per = f"{rate:.1f} tasks/s" if rate >= 1 else f"{60 * rate:.1f} tasks/min"
    return f"{per}, {in_words((found.total - found.done) / rate)} left, {failed}"
