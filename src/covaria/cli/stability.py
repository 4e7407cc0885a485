"""The command about stability: which features come back, and what they are worth unseen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covaria.cli.options import AsJson, Jobs, Quiet, Splits, read_splits, tell
from covaria.errors import InputError, did_you_mean, short

if TYPE_CHECKING:
    import pandas as pd

    from covaria.selection.refit import Refit


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def stability(
        table: Annotated[
            str, typer.Argument(help="A CSV or Parquet file, or a name that `datasets` lists.")
        ],
        target: Annotated[str, typer.Option("--target", "-t", help="The column to explain.")] = "",
        learners: Annotated[
            str, typer.Option("--learners", "-l", help="Names, comma-separated.")
        ] = "linear,boosting",
        methods: Annotated[
            str, typer.Option("--methods", "-m", help="Names, comma-separated.")
        ] = "gcm,loco",
        paper: Annotated[bool, typer.Option("--paper", help="The paper's mode.")] = False,
        folds: Annotated[int, typer.Option(help="Select on the training part of each.")] = 5,
        splits: Splits = "5",
        threshold: Annotated[float, typer.Option(help="Share of parts of a stable feature.")] = 0.8,
        seeds: Annotated[int, typer.Option(help="How many ways to draw the folds.")] = 1,
        drop: Annotated[str, typer.Option(help="Columns to leave out, comma-separated.")] = "",
        groups: Annotated[
            Path | None, typer.Option(help='TOML: place = ["lat", "lon"] makes one feature of two.')
        ] = None,
        weights: Annotated[str | None, typer.Option(help="A column of sample weights.")] = None,
        clusters: Annotated[str | None, typer.Option(help="A column of clusters of rows.")] = None,
        correction: Annotated[str, typer.Option(help="bh, by, holm, bonferroni or none.")] = "bh",
        alpha: Annotated[float, typer.Option(help="The level after correction.")] = 0.05,
        task: Annotated[str, typer.Option(help="auto, regression or classification.")] = "auto",
        out: Annotated[
            Path | None, typer.Option(help="A folder for the tables, results.json and a picture.")
        ] = None,
        report: Annotated[Path | None, typer.Option(help="Where the HTML page goes.")] = None,
        seed: Annotated[int, typer.Option(help="Same seed, same numbers.")] = 0,
        jobs: Jobs = 1,
        quiet: Quiet = False,
        as_json: AsJson = False,
    ) -> None:
        """Select on parts of TABLE, refit on what was selected, measure on the rows left out.

        Example: covaria stability houses.csv --target price --learners linear,boosting,network
        """
        from covaria.cli import console
        from covaria.selection.refit import refit
        from covaria.tables.files import read_groups, without_columns
        from covaria.tables.writing import make_room

        frame, target, known, notes = _table(table, target)
        frame = without_columns(frame, drop)
        together: Any = clusters
        if known is not None and not paper and clusters is None:
            together = known
            notes = [f"Rows that depend on each other stand in {known.max() + 1:,} clusters."]
        tell(notes, quiet)
        make_room(*([] if out is None else files(out)), report)
        with console.progress_bar(hidden=quiet or as_json) as progress:
            found = refit(
                frame, target, learners=learners, methods=methods, folds=folds,
                splits=read_splits(splits), threshold=threshold, seeds=seeds, seed=seed,
                n_jobs=jobs, progress=progress, paper=paper, groups=read_groups(groups),
                sample_weight=weights, clusters=together, correction=correction, alpha=alpha,
                task=task,
            )  # fmt: skip
        if out is not None:
            write(found, out)
        if report is not None:
            from covaria.report import write_report

            write_report(found, report)
        print(json.dumps(found.to_dict(), allow_nan=False) if as_json else str(found))


def _table(given: str, target: str) -> tuple[pd.DataFrame, str, Any, list[str]]:
    """Return a table, its target, its clusters where they are known, and what was done to read it.

    A name that is not a file is one of `covaria.datasets`.
    """
    from covaria import datasets
    from covaria.tables.files import read_table

    names = [*datasets.ENTRIES, *datasets.ALIASES]
    if "." not in given and not Path(given).exists():
        if given not in names:
            hint = did_you_mean(given, names)
            raise InputError(f"There is no file or dataset '{short(given)}'.{hint}")
        X, y = datasets.load(given)
        clusters = datasets.clusters(given, X)
        return X.assign(**{str(y.name): y}), target or str(y.name), clusters, []
    frame, notes = read_table(given)
    if not target:
        raise InputError("There is no target: name the column to explain with --target.")
    return frame, target, None, notes


def files(folder: Path) -> list[Path]:
    """Return the files that `write` writes to a folder."""
    from covaria.selection.refit import FRAMES

    return [folder / name for name in (*(f"{n}.csv" for n in FRAMES), "results.json", "rates.svg")]


def write(found: Refit, folder: Path) -> None:
    """Write the tables, everything as JSON, and the picture."""
    from covaria import plots
    from covaria.selection.refit import FRAMES
    from covaria.tables.files import write_csv
    from covaria.tables.writing import write_text

    for name in FRAMES:
        write_csv(getattr(found, name), folder / f"{name}.csv")
    text = json.dumps(found.to_dict(), allow_nan=False, indent=1, ensure_ascii=False)
    write_text(folder / "results.json", text + "\n")
    threshold = float(found.about["threshold"])
    plots.save(plots.selection_rates(found.frequencies, threshold=threshold), folder / "rates.svg")
