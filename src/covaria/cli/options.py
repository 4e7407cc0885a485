"""The options that several commands have."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from covaria.cli import complete as cli_complete
from covaria.errors import InputError, short

TableFile = Annotated[
    Path,
    typer.Argument(help="A CSV, Parquet or Arrow file, or a folder of these.", show_default=False),
]
Rows = Annotated[
    int | None,
    typer.Option(help="Draw so many rows at random; of Parquet what memory allows, else all."),
]
Event = Annotated[
    str | None,
    typer.Option(
        help="A column, 1 where the event was seen and 0 where censored: the target is a time."
    ),
]
Loss = Annotated[
    str | None,
    typer.Option(help="Of gains: poisson, gamma, absolute or a scikit-learn scorer."),
]
Target = Annotated[
    str,
    typer.Option(
        "--target",
        "-t",
        help="The column to explain; assess: or several, comma-separated.",
        autocompletion=cli_complete.columns,
    ),
]
Methods = Annotated[
    str,
    typer.Option(
        "--methods", "-m", help="Names, comma-separated.", autocompletion=cli_complete.methods
    ),
]
LearnerName = Annotated[
    str,
    typer.Option(
        "--learner",
        "-l",
        help="A name, or such as 'boosting(trees=200, splits=4)'.",
        autocompletion=cli_complete.learners,
    ),
]
Splits = Annotated[str, typer.Option(help="5: cross-fit; 0.33: hold out a third; none: in sample.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the verdict only.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Processes; -1 for all cores.")]
Seed = Annotated[int, typer.Option(help="Same seed, same numbers.")]
Drop = Annotated[str, typer.Option(help="Columns to leave out, comma-separated.")]
Categories = Annotated[
    str, typer.Option(help="Columns of codes that are categories, comma-separated.")
]
Groups = Annotated[
    Path | None,
    typer.Option(help='TOML: place = ["lat", "lon"] makes one feature of two; assess: or auto.'),
]
Features = Annotated[str, typer.Option(help="Test these alone, comma-separated, given all others.")]
Weights = Annotated[str | None, typer.Option(help="A column of sample weights.")]
Clusters = Annotated[str | None, typer.Option(help="A column of clusters of rows.")]
Task = Annotated[str, typer.Option(help="auto, regression, classification or ordinal.")]
MissingTarget = Annotated[
    str, typer.Option(help="Rows without a target: refuse them, or drop them with a note.")
]
Alpha = Annotated[float, typer.Option(help="The level after correction.")]
Page = Annotated[Path | None, typer.Option(help="Where the HTML page goes.")]


def read_splits(text: str) -> str | float:
    """Return what --splits says: a number of folds, a share, or 'none'."""
    if text == "none":
        return text
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        raise InputError(
            f"--splits {short(text)} is not a number of folds, a share, or 'none'."
        ) from None


def read_features(text: str) -> list[str] | None:
    """Return what --features names, None where it does not say."""
    return [name.strip() for name in text.split(",") if name.strip()] or None


def read_targets(text: str, columns: Iterable[object]) -> str | list[str]:
    """Return what --target names: a column, or several between commas."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    return text if text in map(str, columns) or len(names) < 2 else names


def tell(notes: list[str], quiet: bool) -> None:
    """Say on the error stream what was done to read a table."""
    for note in notes if not quiet else ():
        print(f"! {note}", file=sys.stderr)
