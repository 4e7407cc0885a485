"""The command line: read a file, call one function, write a file."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covaria.cli import complete as cli_complete
from covaria.cli import config as cli_config
from covaria.cli import datasets as cli_datasets
from covaria.cli import efficiency as cli_efficiency
from covaria.cli import independence as cli_independence
from covaria.cli import paper as cli_paper
from covaria.cli import report as cli_report
from covaria.cli import stability as cli_stability
from covaria.cli import study as cli_study
from covaria.cli.options import (
    Alpha,
    Alternative,
    AsJson,
    Categories,
    Check,
    Clusters,
    Confidence,
    Correction,
    Drop,
    Effect,
    Event,
    Extrapolate,
    Features,
    Groups,
    Jobs,
    LearnerName,
    Loss,
    Margin,
    Methods,
    MissingTarget,
    Permutations,
    Quiet,
    Repeats,
    Rows,
    Seed,
    SharedRandomness,
    Splits,
    TableFile,
    Target,
    Task,
    Top,
    Validity,
    Weights,
    read_targets,
    settings_of,
)
from covaria.errors import InputError, Interrupted, MissingExtra, StoreError, text_of, visible
from covaria.execution.interrupts import INTERRUPTED, STOPPED, end, leave
from covaria.execution.terminal import shown_streams
from covaria.tables.writing import make_room

if TYPE_CHECKING:
    import pandas as pd

    from covaria.assessment import Job
    from covaria.nuisance.plan import Progress
    from covaria.results.result import Result

DONE, BAD_INPUT, SOME_FAILED, MISSING_EXTRA, CANNOT_WRITE = 0, 2, 3, 4, 5
EXAMPLES = """Examples:

\b
  covaria assess listings.csv --target price --report price.html
  covaria assess listings.csv -t price -m gcm,loco,knockoffs --out results
  covaria assess trial.parquet -t cured -l 'boosting(trees=300)' --clusters clinic --json
"""
# So many seconds an interrupt has to end a command in good order.
GRACE = 3.0

app = typer.Typer(
    name="covaria",
    help="Which features really matter, for any model, with a p-value you can defend.",
    epilog="Start with: covaria demo. Then: covaria assess TABLE.csv --target COLUMN. "
    "Settings may stand in covaria.toml.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
)


def main() -> None:
    """Run the command and leave with its exit code; no traceback for what a user did."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without the letter shows its number
            stream.reconfigure(errors="backslashreplace")
    with shown_streams():
        _main()


def _main() -> None:
    try:
        asked = "--install-completion" in sys.argv
        with _heard(), cli_complete.installed_whole() if asked else nullcontext():
            app(prog_name="covaria")
    except InputError as error:
        _leave(str(error), BAD_INPUT)
    except MissingExtra as error:
        _leave(str(error), MISSING_EXTRA)
    except StoreError as error:
        _leave(str(error), CANNOT_WRITE)
    except Interrupted as error:
        _leave(str(error), INTERRUPTED)
    except OSError as error:
        _leave(
            f"{error.filename or ''}: {error.strerror or error}. Choose another place.",
            CANNOT_WRITE,
        )
    except KeyboardInterrupt:
        _leave(STOPPED, INTERRUPTED)
    except SystemExit as leaving:
        if leaving.code == INTERRUPTED:  # typer caught the interrupt before us
            _leave(STOPPED, INTERRUPTED)
        raise


@contextmanager
def _heard() -> Iterator[None]:
    """Make sure that Ctrl-C ends the command, wherever it strikes.

    An interrupt that strikes inside a callback of the compiler is swallowed there, with a
    traceback, so the interrupt silences those and sets a clock going that ends the process if
    nothing else does.
    """
    here = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not here or before not in (signal.default_int_handler, leave):
        yield  # who started us wants it otherwise
        return

    def stop(*_: object) -> None:
        clock = threading.Timer(GRACE, _give_up)
        clock.daemon = True
        clock.start()
        sys.unraisablehook = lambda _: None
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _give_up() -> None:
    print(f"covaria: {STOPPED}", file=sys.stderr, flush=True)
    os._exit(INTERRUPTED)


def _leave(message: str, code: int) -> None:
    print(f"covaria: {visible(message)}", file=sys.stderr)
    if code == INTERRUPTED:
        end()
    sys.exit(code)


def _version(wanted: bool) -> None:
    if wanted:
        import covaria

        print(f"covaria {covaria.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    ctx: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file of settings; covaria.toml in this folder if there is one."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    path = cli_config.find_config(config)
    if path is not None:
        command: Any = ctx.command
        ctx.default_map = cli_config.defaults(command, cli_config.read_config(path), path)
        if not cli_config.is_trusted(config):
            cli_config.check_places(ctx.default_map, path)
        own = ctx.default_map.get(ctx.invoked_subcommand or "", {})
        _CONFIGURED[:] = cli_config.typed(
            command.commands.get(ctx.invoked_subcommand), own, sys.argv
        )


_CONFIGURED: list[str] = []  # the words that a file of settings stands for

Out = Annotated[
    Path | None, typer.Option(help="A folder for results.csv, results.json and report.html.")
]


@app.command(epilog=EXAMPLES)
def assess(
    table: TableFile,
    target: Target,
    learner: LearnerName = "auto",
    methods: Methods = "default",
    splits: Splits = "5",
    paper: Annotated[bool, typer.Option("--paper", help="The paper's mode: in sample.")] = False,
    groups: Groups = None,
    features: Features = "",
    drop: Drop = "",
    categories: Categories = "",
    weights: Weights = None,
    clusters: Clusters = None,
    event: Event = None,
    task: Task = "auto",
    loss: Loss = None,
    missing_target: MissingTarget = "refuse",
    rows: Rows = None,
    alternative: Alternative = None,
    validity: Validity = "conservative",
    correction: Correction = "bh",
    alpha: Alpha = 0.05,
    top: Top = None,
    confidence: Confidence = 0.95,
    repeats: Repeats = 1,
    permutations: Permutations = 5,
    check: Check = True,
    extrapolate: Extrapolate = "auto",
    effect: Effect = None,
    margin: Margin = None,
    shared_randomness: SharedRandomness = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page.")] = None,
    out: Out = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    dask: cli_study.Dask = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Test which columns of TABLE help to predict the target, given the others."""
    settings = settings_of(locals())
    from covaria.tables.files import as_categories, read_table, without_columns

    frame, notes = read_table(table, rows, seed)
    frame = as_categories(without_columns(frame, drop), categories)
    output = _Output(report, out, quiet, as_json)
    _run(frame, read_targets(target, frame.columns), settings, notes, table.name, output, dask)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("covaria-demo"),
    learner: LearnerName = "auto",
    jobs: Jobs = 1,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Test the features of a bundled table: what drives diabetes a year on?

    Example: covaria demo --out somewhere
    """
    from sklearn.datasets import load_diabetes

    frame = load_diabetes(as_frame=True, scaled=False).frame.rename(
        columns={"target": "progression"}
    )
    settings = {"learner": learner, "methods": "default", "splits": 5, "seed": 0, "n_jobs": jobs}
    where = _Output(None, out, quiet, as_json)
    _run(frame, "progression", settings, [], "diabetes (bundled with scikit-learn)", where)


@app.command()
def methods(as_json: AsJson = False) -> None:
    """List the tests.

    Example: covaria methods --json
    """
    from covaria.methods import METHODS

    _listing(
        [
            {
                "name": m.name,
                "role": m.role,
                "test": m.about,
                "needs": ", ".join(m.needs),
                "alternative": m.alternative,
            }
            for m in METHODS.values()
        ],
        as_json,
    )


@app.command()
def learners(as_json: AsJson = False) -> None:
    """List the learners and their settings.

    Example: covaria learners, then covaria assess TABLE --target y --learner "boosting(trees=200)"
    """
    from covaria.learners import LEARNERS

    _listing(
        [
            {"name": kind.name, "default": str(kind()), "fits": kind.about}
            for kind in LEARNERS.values()
        ],
        as_json,
    )


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Tell what is installed and how to get what is not.

    Example: covaria doctor
    """
    from importlib.metadata import PackageNotFoundError, version

    wanted = {
        "numpy": "", "scipy": "", "pandas": "", "scikit-learn": "", "joblib": "", "numba": "",
        "torch": "nn", "distributed": "dask", "lightgbm": "lightgbm", "polars": "polars",
    }  # fmt: skip
    rows = []
    for name, extra in wanted.items():
        try:
            rows.append({"package": name, "version": version(name), "cure": ""})
        except PackageNotFoundError:
            cure = f"pip install 'covaria[{extra}]'" if extra else f"pip install {name}"
            rows.append({"package": name, "version": "not installed", "cure": cure})
    rows.insert(0, {"package": "python", "version": sys.version.split()[0], "cure": ""})
    rows += _about_numba()
    _listing(rows, as_json)


def _about_numba() -> list[dict[str, str]]:
    """Return what is wrong with numba though it is installed."""
    from importlib.util import find_spec

    from covaria.execution.compiling import has_numba, keeps_on_disk

    if find_spec("numba") is None:
        return []
    if not has_numba():
        cure = "pip install --upgrade numba"
        return [{"package": "numba", "version": "cannot be loaded", "cure": cure}]
    if not keeps_on_disk():
        cure = "set NUMBA_CACHE_DIR to a folder of your own, or every run compiles anew"
        return [{"package": "numba's cache", "version": "nowhere to write", "cure": cure}]
    return []


class _Output:
    """Where the answer goes."""

    def __init__(self, report: Path | None, out: Path | None, quiet: bool, as_json: bool) -> None:
        self.report = report
        self.out = out
        self.quiet = quiet
        self.as_json = as_json

    def say(self, text: str) -> None:
        """Print a line for a person; JSON readers get it on the error stream."""
        if not self.quiet:
            print(visible(text), file=sys.stderr if self.as_json else sys.stdout, flush=True)

    @property
    def page(self) -> Path | None:
        """Return where the page goes, if anywhere."""
        return self.report or (self.out / "report.html" if self.out is not None else None)

    @property
    def files(self) -> list[Path]:
        """Return the files that will be written."""
        tables = [] if self.out is None else [self.out / "results.csv", self.out / "results.json"]
        return [*tables, *([] if self.page is None else [self.page])]

    def write(self, result: Result) -> None:
        """Write the files that were asked for and say where they are."""
        from covaria.report import write_report
        from covaria.tables.files import write_csv

        if self.out is not None:
            write_csv(result.table, self.out / "results.csv")
            result.to_json(self.out / "results.json")
        if self.page is not None:
            self.say(f"Report  {write_report(result, self.page)}")


def _run(
    frame: pd.DataFrame,
    target: str | list[str],
    settings: dict[str, Any],
    notes: list[str],
    name: str,
    output: _Output,
    dask: str | None = None,
) -> None:
    """Assess, print and write; leave with the exit code for failed fits if there were any."""
    from dataclasses import replace

    from covaria.assessment import prepare
    from covaria.cli import console
    from covaria.tables.suspicions import suspicions

    job = prepare(frame, target, **settings)
    plan = job.plan(0)
    make_room(*output.files)
    output.say(console.data_line(name, plan))
    said = (*job.data.notes, *(odd.text for odd in suspicions(job.data)))
    for note in (*notes, *said):
        output.say(f"! {note}")
    output.say(console.plan_line(plan, job.options.repeats))
    if note := console.compile_note(plan):
        output.say(note)
    with console.progress_bar(hidden=output.quiet or output.as_json) as progress:
        result = job.run(progress) if dask is None else _run_on_dask(job, dask, progress)
    about = replace(result.about, command=_command(), source=text_of(name))
    result = replace(result, about=about)
    if output.as_json:
        print(json.dumps(_document(result), allow_nan=False))
    else:
        console.print_verdict(result)
        for line in console.footnotes(result, said=said):
            output.say(line)
    output.write(result)
    output.say(f"Repeat  {_command()}")
    if result.failures:
        raise typer.Exit(SOME_FAILED)


def _run_on_dask(job: Job, where: str, progress: Progress | None) -> Result:
    from covaria.execution.clusters import on_dask

    with on_dask(where, max(2, job.n_jobs)) as executor:
        return job.run(progress, executor)


def _document(result: Result) -> dict[str, object]:
    from covaria.report import summarize
    from covaria.results.result import lines_of

    sets = {"groups": lines_of(result.groups)} if len(result.groups) else {}
    return {**summarize(result), "table": result.lines, **sets}


def _command() -> str:
    return text_of(shlex.join(["covaria", *sys.argv[1:], *_CONFIGURED]))


cli_efficiency.register(app)
cli_study.register(app)
cli_paper.register(app)
cli_datasets.register(app)
cli_stability.register(app)
cli_report.register(app)
cli_independence.register(app)


def _listing(rows: list[dict[str, str]], as_json: bool) -> None:
    if as_json:
        print(json.dumps(rows, ensure_ascii=False))
        return
    import pandas as pd

    from covaria.cli import console

    console.print_table(pd.DataFrame(rows), widest=100)
