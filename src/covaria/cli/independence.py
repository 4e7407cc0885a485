"""The command that asks one question: is x independent of y, given others?"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from covaria.cli import complete as cli_complete
from covaria.cli.options import (
    Alternative,
    AsJson,
    Clusters,
    Confidence,
    Effect,
    Event,
    Jobs,
    LearnerName,
    Loss,
    Margin,
    Methods,
    MissingTarget,
    Quiet,
    Repeats,
    Rows,
    Seed,
    Splits,
    TableFile,
    Task,
    Weights,
    read_features,
    read_splits,
    tell,
)

X = Annotated[
    str, typer.Option("--x", help="A column, or several.", autocompletion=cli_complete.columns)
]
Y = Annotated[
    str, typer.Option("--y", help="A column, or several.", autocompletion=cli_complete.columns)
]
Given = Annotated[
    str,
    typer.Option(
        help="Columns, comma-separated; none if none.", autocompletion=cli_complete.columns
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(independence)


def independence(
    table: TableFile,
    x: X,
    y: Y,
    given: Given = "",
    learner: LearnerName = "auto",
    methods: Methods = "default",
    splits: Splits = "5",
    weights: Weights = None,
    clusters: Clusters = None,
    event: Event = None,
    task: Task = "auto",
    loss: Loss = None,
    missing_target: MissingTarget = "refuse",
    rows: Rows = None,
    alternative: Alternative = None,
    alpha: Annotated[float, typer.Option(help="The level of the verdict.")] = 0.05,
    confidence: Confidence = 0.95,
    repeats: Repeats = 1,
    effect: Effect = None,
    margin: Margin = None,
    symmetric: Annotated[
        bool, typer.Option("--symmetric", help="Ask also what y tells of x; p counts twice.")
    ] = False,
    seed: Seed = 0,
    jobs: Jobs = 1,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Test whether column x of TABLE is independent of column y, given others.

    Example: covaria independence homes.csv --x garden --y price --given rooms,town
    """
    from covaria.assessment.question import independence_test
    from covaria.tables.files import read_table

    frame, notes = read_table(table, rows, seed)
    tell(notes, quiet)
    found = independence_test(
        frame, read_features(x) or x, read_features(y) or y, given=read_features(given),
        learner=learner, methods=methods, splits=read_splits(splits), sample_weight=weights,
        clusters=clusters, event=event, task=task, loss=loss, missing_target=missing_target,
        alternative=alternative, alpha=alpha, confidence=confidence, repeats=repeats,
        effect=effect, margin=margin, symmetric=symmetric, seed=seed, n_jobs=jobs,
    )  # fmt: skip
    print(json.dumps(found.to_dict(), allow_nan=False) if as_json else found)
