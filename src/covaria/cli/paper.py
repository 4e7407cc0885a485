"""The command `covaria paper`: figures of the paper by name, each claim with its verdict."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from covaria.cli.options import AsJson, Jobs, Seed
from covaria.cli.study import Dask, Quiet, progress, stopping_at
from covaria.errors import InputError, short
from covaria.tables.writing import make_room, write_text

if TYPE_CHECKING:
    from covaria.paper import Figure, Made
    from covaria.paper.run import Run
    from covaria.studies.runner import Standing

MODES = {
    "paper": ("paper",), "ours": ("ours",), "default": ("default",), "shared": ("shared",),
    "both": ("paper", "ours"), "all": ("paper", "ours", "default"),
}  # fmt: skip
NAMES_HELP = "fig1 to fig9, sfig1 to sfig8, table1 to table6, theory; all; list; check."
MODES_HELP = "paper, ours, default or all three; both (paper, ours); shared."
FORMATS = ("svg", "png", "pdf")
Fast = Annotated[bool, typer.Option("--fast", help="A few repeats, to see how it looks.")]
Folder = Annotated[Path, typer.Option(help="The folder for stores, tables and pictures.")]
AtMost = Annotated[int | None, typer.Option(help="So many repeats at most; the rest another time.")]
Stored = Annotated[
    Path | None, typer.Option(help="A folder of results written before: nothing is run.")
]
Onto = Annotated[
    Path | None, typer.Option(help="Results to go on from and add to; else those in --out.")
]
ClaimsPage = Annotated[Path, typer.Option(help="Where `all` writes the claims.")]
MOST_REPEATS = 100_000
SIZES = "sizes.json"  # how full the figures of a folder are


def register(app: typer.Typer) -> None:
    """Add `covaria paper`."""
    app.command()(paper)


def paper(
    name: Annotated[str, typer.Argument(help=NAMES_HELP)],
    fast: Fast = False,
    mode: Annotated[str, typer.Option(help=MODES_HELP)] = "all",
    out: Folder = Path("covaria-paper"),
    jobs: Jobs = 1,
    dask: Dask = None,
    seed: Seed = 0,
    repeats: AtMost = None,
    results: Stored = None,
    onto: Onto = None,
    page: ClaimsPage = Path("docs/reproduction.md"),
    picture: Annotated[str, typer.Option("--format", help="svg, png or pdf.")] = "svg",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make a figure of the paper, and tell which of the paper's claims held.

    Example: covaria paper fig3 --fast
    """
    from covaria.paper import figures

    if name == "list":
        _list(figures(), as_json)
        return
    _check(mode, picture, repeats, seed)
    if name == "check":
        _check_stored(results or Path("results"), page, seed)
        return
    chosen = _chosen(name)
    run = _run(out, fast, jobs, dask, seed, repeats, results, onto)
    make_room(*_files(chosen, MODES[mode], out, picture), page if name == "all" else None)
    again = shlex.join(["covaria", *sys.argv[1:]])
    made: dict[str, dict[str, Made]] = {}
    with stopping_at(again):
        for at, each in enumerate(MODES[mode]):
            made[each] = {}
            for figure in _wanted(chosen, each, is_first=at == 0):
                hidden = quiet or as_json
                found = _found(figure, run, each, hidden=hidden, goes_on=name == "all")
                if found is None:
                    continue
                made[each][figure.name] = found
                kept = _kept(run, figure, each, found, picture)
                if not as_json:
                    _say(figure.name, each, found, fast, kept)
            _keep(run, results)
    if name == "all":
        made |= _shared_instead(run, made)
    if as_json:
        print(json.dumps(_document(made), ensure_ascii=False))
    if name == "all":
        command = again if results is None else f"covaria paper all --results {results}"
        _page(run, page, made, command, quiet=as_json)


def _wanted(chosen: Iterable[Figure], mode: str, *, is_first: bool) -> list[Figure]:
    """Return the figures that a mode makes; those that have no modes are made in the first."""
    own = [figure for figure in chosen if is_first or figure.modes]
    # Of tables that are not simulated the refits are the paper's.
    return [figure for figure in own if figure.simulated or mode != "default"]


def _found(figure: Figure, run: Run, mode: str, *, hidden: bool, goes_on: bool) -> Made | None:
    """Return what came of a figure; None where it cannot be made and others go on without it."""
    try:
        with progress(hidden=hidden, label=figure.name) as advance:
            return _make(figure, run, mode, advance)
    except InputError as error:
        if not goes_on:
            raise
        # What is neither here nor to be had stops nothing else.
        print(f"covaria: {figure.name} is left out: {error}", file=sys.stderr)
        return None


def _shared_instead(run: Run, made: dict[str, dict[str, Made]]) -> dict[str, dict[str, Made]]:
    from covaria.paper.whole import shared_instead

    return shared_instead(run, made)


def _kept(run: Run, figure: Figure, mode: str, made: Made, picture: str) -> list[int] | None:
    """Write a figure, and return the size of a fuller one that is there and stays."""
    kept = None if run.results else _fuller(run.folder, figure, mode, made)
    with _of_results(figure.name, run.results):
        _write(figure.name, mode, made, run.folder, picture, quick=kept is not None)
    return kept


def _check(mode: str, picture: str, repeats: int | None, seed: int) -> None:
    if mode not in MODES:
        raise InputError(f"--mode {mode} is not one of {', '.join(MODES)}.")
    if picture not in FORMATS:
        raise InputError(f"--format {picture} is not one of {', '.join(FORMATS)}.")
    if repeats is not None and not 1 <= repeats <= MOST_REPEATS:
        raise InputError(f"--repeats {repeats} must be a whole number, 1 to {MOST_REPEATS:,}.")
    if seed < 0:
        raise InputError(f"--seed {seed} must be a whole number, 0 or more.")


def _chosen(name: str) -> list[Figure]:
    """Return the figures to make; `all` leaves out those that this version cannot make."""
    from covaria.paper import figure, figures

    if name == "all":
        return [known for known in figures().values() if known.make is not None]
    return [figure(name)]


def _run(
    out: Path, fast: bool, jobs: int, dask: str | None, seed: int, repeats: int | None,
    results: Path | None, onto: Path | None,
) -> Run:  # fmt: skip
    from covaria.paper.run import Run

    if results is not None and not results.is_dir():
        raise InputError(f"There is no folder {results}. Check the path.")
    return Run(
        out, fast=fast, n_jobs=jobs, dask=dask, seed=seed, repeats=repeats, results=results,
        apart=True, onto=onto,
    )  # fmt: skip


def _make(figure: Figure, run: Run, mode: str, advance: Callable[[Standing], None] | None) -> Made:
    from dataclasses import replace

    assert figure.make is not None
    with _of_results(figure.name, run.results):
        return figure.make(replace(run, mode=mode, progress=lambda _: advance))


@contextmanager
def _of_results(name: str, results: Path | None) -> Iterator[None]:
    """Say of stored results from which a figure cannot be made that they are damaged."""
    try:
        yield
    except (LookupError, ValueError, TypeError) as error:
        if results is None or isinstance(error, InputError):
            raise
        raise InputError(
            f"The results of {name} in {results} cannot be read: they are damaged, or not of this "
            f"version of covaria ({type(error).__name__}: {short(str(error))}). Make them again."
        ) from error


def _files(chosen: list[Figure], modes: tuple[str, ...], out: Path, picture: str) -> list[Path]:
    """Return the files that the figures may be written to."""
    endings = ("csv", picture)
    return [out / f"{f.name}-{mode}.{end}" for f in chosen for mode in modes for end in endings]


def _write(name: str, mode: str, made: Made, out: Path, picture: str, *, quick: bool) -> None:
    """Write the table and the picture of a figure; beside fuller ones where there are such."""
    from covaria.plots import save
    from covaria.tables.files import write_csv

    stem = f"{name}-{mode}-quick" if quick else f"{name}-{mode}"
    write_csv(made.table, out / f"{stem}.csv")
    if made.draw is not None:
        save(made.draw(), out / f"{stem}.{picture}")
    if not quick:
        sizes = {**_sizes(out), f"{name}-{mode}": _size(made)}
        write_text(out / SIZES, json.dumps(sizes, indent=1, sort_keys=True) + "\n")


def _size(made: Made) -> list[int]:
    """Return the repeats of a figure, and the rows of its table: fewer without the networks."""
    return [int(made.runs), len(made.table)]


def _sizes(out: Path) -> dict[str, list[int]]:
    """Return the sizes of the figures in a folder, as far as they are known."""
    try:
        found = json.loads((out / SIZES).read_text("utf-8"))
        return {str(k): [int(v[0]), int(v[1])] for k, v in found.items()}
    except (OSError, ValueError, TypeError, AttributeError, IndexError, RecursionError):
        return {}


def _fuller(out: Path, figure: Figure, mode: str, made: Made) -> list[int] | None:
    """Return the size of the figure that is there, where it is fuller than the one made now."""
    stem = f"{figure.name}-{mode}"
    if not (out / f"{stem}.csv").is_file():
        return None
    there = _sizes(out).get(stem) or [_repeats(out / "results", figure, mode), 0]
    return there if there > _size(made) else None


def _repeats(folder: Path, figure: Figure, mode: str) -> int:
    """Return the repeats of the results that a folder has of a figure, 0 where there are none."""
    from covaria.paper import statements as real_items
    from covaria.paper.kept import read_results

    try:
        if figure.simulated:
            stored = [read_results(folder, study, mode) for study in figure.studies]
            return min((found.repeats if found else 0 for found in stored), default=0)
        frames = real_items.stored(folder / "real", figure.name, mode)
        return int(frames["errors"]["seeds"].max()) if frames else 0
    except (InputError, KeyError, ValueError):
        return 0


def _say(name: str, mode: str, made: Made, fast: bool, kept: list[int] | None) -> None:
    from covaria.paper.page import printed

    if kept is not None:
        print(f"{name}-{mode}.csv has {kept[0]} repeats and is kept; this is {name}-{mode}-quick.")
    if fast:
        print("A quick run with few repeats: leave out --fast for the full study.")
    for line in [*printed(name, mode, made), *(f"  {note}" for note in made.notes), ""]:
        print(line, flush=True)


def _keep(run: Run, results: Path | None) -> None:
    """Write small tables and those of real data, for `--results` another time."""
    from covaria.paper import statements as real_items
    from covaria.paper.kept import Stamp, write_table

    if results is None:
        for name, (table, took) in run.tables.items():
            stamp = Stamp.now(f"covaria paper {name}", run.seed, seconds=took)
            write_table(run.kept, name, table, stamp)
        for (name, mode), (frames, took) in run.real.items():
            folder = run.kept / "real"
            written = real_items.keep_all(folder, mode, frames, keep_fuller=True)
            stamp = Stamp.now(f"covaria paper {name} --mode {mode}", run.seed, seconds=took)
            if written:
                real_items.sign(folder, mode, [name], stamp)


def _list(known: Mapping[str, Figure], as_json: bool) -> None:
    rows = [
        {"name": f.name, "shows": f.about, "data": "simulated" if f.simulated else "real",
         "ready": "yes" if f.make is not None else "no"}
        for f in known.values()
    ]  # fmt: skip
    if as_json:
        print(json.dumps(rows, ensure_ascii=False))
        return
    import pandas as pd

    from covaria.results.result import plain_table

    print(plain_table(pd.DataFrame(rows), widest=100))


def _document(made: dict[str, dict[str, Made]]) -> list[dict[str, object]]:
    return [
        {"figure": name, "mode": mode, "repeats": found.runs, "claim": claim.text,
         "found": claim.numbers, "verdict": claim.verdict}
        for mode, of in made.items()
        for name, found in of.items()
        for claim in found.claims
    ]  # fmt: skip


def _page(
    run: Run, path: Path, made: dict[str, dict[str, Made]], command: str, *, quiet: bool
) -> None:
    """Write all claims on one page; a quick run does not replace the page of the full study."""
    from covaria.paper import figures
    from covaria.paper.page import has_quick, write_page
    from covaria.paper.whole import whole_page, write_pictures

    text = whole_page(run, made, command)
    quick = run.results is None and has_quick(made, figures())
    if not write_page(path, text, keep_fuller=quick):
        path = run.folder / path.name
        write_page(path, text, keep_fuller=False)
    write_pictures(run, made, path.parent)
    if not quiet:
        print(f"All claims: {path}")


def _check_stored(results: Path, page: Path, seed: int) -> None:
    """Say whether the page is that of the stored results, and tasks run again give their digits."""
    from covaria.paper.check import check

    found = check(results, page, seed=seed)
    for line in found.lines:
        print(line)
    if not found.passed:
        raise typer.Exit(1)
