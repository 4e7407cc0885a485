"""The command about stability: which features come back, and what they are worth unseen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from residua.cli_options import AsJson, Quiet
from residua.errors import InputError

if TYPE_CHECKING:
    from residua.refit import Refit


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
        threshold: Annotated[float, typer.Option(help="Share of parts of a stable feature.")] = 0.8,
        seeds: Annotated[int, typer.Option(help="How many ways to draw the folds.")] = 1,
        drop: Annotated[str, typer.Option(help="Columns to leave out, comma-separated.")] = "",
        groups: Annotated[
            Path | None, typer.Option(help='TOML: place = ["lat", "lon"] makes one feature of two.')
        ] = None,
        correction: Annotated[str, typer.Option(help="bh, by, holm, bonferroni or none.")] = "bh",
        alpha: Annotated[float, typer.Option(help="The level after correction.")] = 0.05,
        task: Annotated[str, typer.Option(help="auto, regression or classification.")] = "auto",
        out: Annotated[
            Path | None, typer.Option(help="A folder for the tables, results.json and a picture.")
        ] = None,
        report: Annotated[Path | None, typer.Option(help="Where the HTML page goes.")] = None,
        seed: Annotated[int, typer.Option(help="Same seed, same numbers.")] = 0,
        jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes; -1 for all cores.")] = 1,
        quiet: Quiet = False,
        as_json: AsJson = False,
    ) -> None:
        """Select on parts of TABLE, refit on what was selected, measure on the rows left out.

        Example: residua stability houses.csv --target price --learners linear,boosting,network
        """
        from residua import console
        from residua.refit import refit

        frame, target = _table(table, target, drop)
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
        with console.progress_bar(hidden=quiet or as_json) as progress:
            found = refit(
                frame, target, learners=learners, methods=methods, folds=folds,
                threshold=threshold, seeds=seeds, seed=seed, n_jobs=jobs, progress=progress,
                paper=paper, groups=_groups(groups), correction=correction, alpha=alpha, task=task,
            )  # fmt: skip
        if out is not None:
            write(found, out)
        if report is not None:
            from residua.report import write_report

            write_report(found, report)
        print(json.dumps(found.to_dict(), allow_nan=False) if as_json else str(found))


def _table(given: str, target: str, drop: str) -> tuple[Any, str]:
    """Return the table of a file or of a data set, and its target."""
    from residua import datasets
    from residua.errors import did_you_mean
    from residua.tables import read_table

    known = given in datasets.ENTRIES or given in datasets.ALIASES
    if known and not Path(given).exists():
        X, y = datasets.load(given)
        frame, target = X.assign(**{str(y.name): y}), target or str(y.name)
    else:
        frame, _ = read_table(given)
    if not target:
        raise InputError("There is no target: name the column to explain with --target.")
    unwanted = [name.strip() for name in drop.split(",") if name.strip()]
    for name in unwanted:
        if name not in frame.columns:
            raise InputError(
                f"There is no column '{name}' to drop.{did_you_mean(name, frame.columns)}"
            )
    return frame[[name for name in frame.columns if name not in unwanted]], target


def _groups(path: Path | None) -> dict[str, list[str]] | None:
    from residua.tables import read_groups

    return None if path is None else read_groups(path)


def write(found: Refit, folder: Path) -> None:
    """Write the tables, everything as JSON, and the picture."""
    from residua import plots
    from residua.tables import write_csv

    for name in ("table", "errors", "frequencies"):
        write_csv(getattr(found, name), folder / f"{name}.csv")
    text = json.dumps(found.to_dict(), allow_nan=False, indent=1, ensure_ascii=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    threshold = float(found.about["threshold"])
    plots.save(plots.selection_rates(found.frequencies, threshold=threshold), folder / "rates.svg")
