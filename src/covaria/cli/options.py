"""The options that several commands have."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

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
Alternative = Annotated[
    str | None,
    typer.Option(help="two-sided, greater or less, of all tests; GCM's is two-sided, gains' not."),
]
Validity = Annotated[
    str, typer.Option(help="LOCO's null: conservative, zipper, split or signed_root.")
]
Correction = Annotated[
    str,
    typer.Option(
        help="bh, by, holm, bonferroni, storey or none.", autocompletion=cli_complete.corrections
    ),
]
Alpha = Annotated[float, typer.Option(help="The level after correction.")]
Top = Annotated[
    int | None, typer.Option(help="Select this many, the strongest, whatever their p-value.")
]
Confidence = Annotated[float, typer.Option(help="How often intervals hold the truth.")]
Repeats = Annotated[int, typer.Option(help="Cross-fits with new folds, combined.")]
Permutations = Annotated[int, typer.Option(help="Shuffles averaged by the permutation test.")]
Check = Annotated[
    bool, typer.Option("--check/--no-check", help="Look for what the regressions missed.")
]
Extrapolate = Annotated[
    str,
    typer.Option(help="yes, no or auto: take off a finding what both regressions may miss."),
]
Effect = Annotated[
    str | None, typer.Option(help="plm: coefficients in place of partial correlations.")
]
Margin = Annotated[
    float | None, typer.Option(help="Call features negligible that explain less: 0.01.")
]
SharedRandomness = Annotated[
    bool | None,
    typer.Option(
        "--shared-randomness/--own-randomness",
        help="Whether models of a fold share their random draws; not in the paper's mode.",
    ),
]
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


def read_extrapolate(text: str) -> str | bool:
    """Return what --extrapolate says."""
    return {"yes": True, "no": False}.get(text, text)


def settings_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a command was told, under the names that `assess` has for it.

    Not `rows`, which are drawn where a file is read.
    """
    from covaria.assessment import defaults
    from covaria.tables.files import read_groups

    found = {name: told[name] for name in defaults() if name in told and name != "rows"}
    found |= {"sample_weight": told["weights"], "n_jobs": told["jobs"]}
    groups = told["groups"]
    found["groups"] = "auto" if str(groups) == "auto" else read_groups(groups)
    readers: dict[str, Callable[[str], object]] = {
        "splits": read_splits,
        "features": read_features,
        "extrapolate": read_extrapolate,
    }
    return found | {name: read(told[name]) for name, read in readers.items() if name in told}


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
