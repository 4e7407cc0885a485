"""The commands about stability: which features come back, and what they are worth unseen."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covaria.cli.options import (
    Alpha,
    Alternative,
    AsJson,
    Categories,
    Clusters,
    Correction,
    Drop,
    Event,
    Extrapolate,
    Features,
    Groups,
    Jobs,
    Loss,
    MissingTarget,
    Page,
    Permutations,
    Quiet,
    Repeats,
    Rows,
    Seed,
    SharedRandomness,
    Splits,
    Task,
    Top,
    Validity,
    Weights,
    settings_of,
    tell,
)
from covaria.errors import InputError, did_you_mean, short
from covaria.tables.writing import make_room

if TYPE_CHECKING:
    import pandas as pd

    from covaria.selection.refit import Refit
    from covaria.selection.stability import Stability


TableName = Annotated[
    str, typer.Argument(help="A CSV or Parquet file, or a name that `datasets` lists.")
]
Target = Annotated[str, typer.Option("--target", "-t", help="The column to explain.")]
Learners = Annotated[
    str, typer.Option("--learners", "--learner", "-l", help="Names, comma-separated.")
]
MethodNames = Annotated[str, typer.Option("--methods", "-m", help="Names, comma-separated.")]
Paper = Annotated[bool, typer.Option("--paper", help="The paper's mode.")]
# One of the files that `covaria stability --out` writes.
STABILITY_FILE = "stability.csv"
TablesFolder = Annotated[
    Path | None, typer.Option(help="A folder for the tables and JSON; of refit, a picture too.")
]
Folds = Annotated[int, typer.Option(help="Select on the training part of each.")]
Threshold = Annotated[float, typer.Option(help="Share of parts of a stable feature.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(stability)
    app.command()(refit)


def stability(
    table: TableName,
    target: Target = "",
    learners: Learners = "auto",
    methods: MethodNames = "default",
    paper: Paper = False,
    folds: Folds = 5,
    splits: Splits = "5",
    threshold: Threshold = 0.8,
    scheme: Annotated[str, typer.Option(help="folds or half_samples.")] = "folds",
    pairs: Annotated[int, typer.Option(help="Pairs of halves, with half_samples.")] = 50,
    drop: Drop = "",
    categories: Categories = "",
    groups: Groups = None,
    features: Features = "",
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
    repeats: Repeats = 1,
    permutations: Permutations = 5,
    extrapolate: Extrapolate = "auto",
    shared_randomness: SharedRandomness = None,
    out: TablesFolder = None,
    report: Page = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Select on many parts of TABLE, and keep what is selected again and again.

    Example: covaria stability houses.csv --target price --learners linear,boosting
    """
    settings = {**settings_of(locals()), "folds": folds, "threshold": threshold}
    from covaria.cli import console
    from covaria.selection.refit import name_learners
    from covaria.selection.stability import stability as stable

    make_room(None if out is None else out / STABILITY_FILE, report)
    frame, target, asked = _asked(table, target, rows, quiet, settings, drop, categories)
    found = {}
    for name, learner in name_learners(learners).items():
        with console.progress_bar(hidden=quiet or as_json) as progress:
            found[name] = stable(
                frame, target, learner=learner, scheme=scheme, pairs=pairs, progress=progress,
                **asked,
            )  # fmt: skip
    _write_stability(found, out, report)
    if as_json:
        every = {name: one.to_dict() for name, one in found.items()}
        print(json.dumps(every if len(every) > 1 else found[name].to_dict(), allow_nan=False))
        return
    for name, one in found.items():
        print(f"{name}: {one}" if len(found) > 1 else str(one))


def refit(
    table: TableName,
    target: Target = "",
    learners: Learners = "auto",
    methods: MethodNames = "default",
    paper: Paper = False,
    folds: Folds = 5,
    splits: Splits = "5",
    threshold: Threshold = 0.8,
    seeds: Annotated[int, typer.Option(help="How many ways to draw the folds.")] = 1,
    drop: Drop = "",
    categories: Categories = "",
    groups: Groups = None,
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
    repeats: Repeats = 1,
    permutations: Permutations = 5,
    extrapolate: Extrapolate = "auto",
    shared_randomness: SharedRandomness = None,
    out: TablesFolder = None,
    report: Page = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Select on parts of TABLE, refit on what was selected, measure on the rows left out.

    Example: covaria refit houses.csv --target price --learners linear,boosting,network
    """
    settings = {**settings_of(locals()), "folds": folds, "threshold": threshold}
    from covaria.cli import console
    from covaria.selection.refit import refit as refitted

    make_room(*([] if out is None else files(out)), report)
    frame, target, asked = _asked(table, target, rows, quiet, settings, drop, categories)
    with console.progress_bar(hidden=quiet or as_json) as progress:
        found = refitted(frame, target, learners=learners, seeds=seeds, progress=progress, **asked)
    if out is not None:
        write(found, out)
    if report is not None:
        from covaria.report import write_report

        write_report(found, report)
    print(json.dumps(found.to_dict(), allow_nan=False) if as_json else str(found))


def _asked(
    table: str, target: str, rows: int | None, quiet: bool, settings: dict[str, Any],
    drop: str, categories: str,
) -> tuple[pd.DataFrame, str, dict[str, Any]]:  # fmt: skip
    """Return the table, its target, and the settings with the clusters that are known of it."""
    from covaria.tables.files import as_categories, without_columns

    frame, target, known, notes = _table(table, target, rows, settings["seed"])
    if known is not None and not settings["paper"] and settings["clusters"] is None:
        settings = settings | {"clusters": known}
        notes = [f"Rows that depend on each other stand in {known.max() + 1:,} clusters."]
    tell(notes, quiet)
    return as_categories(without_columns(frame, drop), categories), target, settings


def _write_stability(found: dict[str, Stability], out: Path | None, report: Path | None) -> None:
    """Write a table and a JSON file a learner, and a page."""
    from covaria.report import write_report
    from covaria.tables.files import write_csv
    from covaria.tables.writing import write_text

    for name, one in found.items():
        stem = "stability" if len(found) == 1 else f"stability-{file_name(name)}"
        if out is not None:
            write_csv(one.table, out / f"{stem}.csv")
            text = json.dumps(one.to_dict(), allow_nan=False, indent=1, ensure_ascii=False)
            write_text(out / f"{stem}.json", text + "\n")
        if report is not None:
            place = (
                report if len(found) == 1 else report.with_stem(f"{report.stem}-{file_name(name)}")
            )
            write_report(one, place)


def file_name(text: str) -> str:
    """Return a text as the name of a file.

    >>> file_name("boosting(trees=200)")
    'boosting-trees-200'
    """
    return re.sub(r"[^\w]+", "-", text).strip("-")


def _table(
    given: str, target: str, rows: int | None, seed: int
) -> tuple[pd.DataFrame, str, Any, list[str]]:
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
        if rows is not None:
            raise InputError(
                "--rows draws from a file, and datasets are tested whole. Leave it out."
            )
        X, y = datasets.load(given)
        clusters = datasets.clusters(given, X)
        return X.assign(**{str(y.name): y}), target or str(y.name), clusters, []
    frame, notes = read_table(given, rows, seed)
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
