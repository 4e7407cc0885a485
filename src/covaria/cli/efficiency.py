"""The commands about efficiency: which test to trust, how many rows, what the theory says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from covaria.cli.options import (
    AsJson,
    Drop,
    Jobs,
    LearnerName,
    Methods,
    MissingTarget,
    Quiet,
    Rows,
    Seed,
    Splits,
    TableFile,
    Target,
    read_splits,
    tell,
)
from covaria.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from covaria.results.result import Result

Plot = Annotated[Path | None, typer.Option(help="Write a picture: .svg, .png or .pdf.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(efficiency)
    app.command()(plan)
    app.command()(theory)


def efficiency(
    table: TableFile,
    target: Target,
    learner: LearnerName = "auto",
    methods: Methods = "gcm,loco",
    splits: Splits = "5",
    drop: Drop = "",
    missing_target: MissingTarget = "refuse",
    rows: Rows = None,
    bootstrap: Annotated[int, typer.Option(help="Draws; 0 takes the delta method.")] = 0,
    plot: Plot = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Tell which test to trust for each column of TABLE, and how many rows the other needs.

    Example: covaria efficiency listings.csv --target price --learner linear
    """
    from covaria.efficiencies import efficiency as compare
    from covaria.plots.saving import make_place

    make_place(plot)
    result = _assessed(
        table, target, drop, splits, rows, quiet or as_json,
        learner=learner, methods=methods, missing_target=missing_target, seed=seed, n_jobs=jobs,
    )  # fmt: skip
    found = compare(result, bootstrap=bootstrap, seed=seed)
    if plot is not None:
        from covaria import plots

        plots.save(plots.efficiencies(found), plot)
    _show(found, as_json, ["feature", "method", "rival", "are", "low", "high", "assumption_a",
                           "omnibus_p", "advice"])  # fmt: skip


def plan(
    table: TableFile,
    target: Target,
    power: Annotated[float, typer.Option(help="The chance to find a feature.")] = 0.8,
    alpha: Annotated[float, typer.Option(help="The level of a test.")] = 0.05,
    correction: Annotated[str, typer.Option(help="none, bonferroni or bh.")] = "none",
    learner: LearnerName = "auto",
    methods: Methods = "gcm,loco",
    splits: Splits = "5",
    drop: Drop = "",
    missing_target: MissingTarget = "refuse",
    rows: Rows = None,
    plot: Plot = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Tell how many rows each test needs, taking TABLE as a pilot.

    Example: covaria plan pilot.csv --target y --power .8
    """
    from covaria.efficiencies import plan as rows_needed
    from covaria.efficiencies import power_at
    from covaria.plots.saving import make_place

    make_place(plot)
    result = _assessed(
        table, target, drop, splits, rows, quiet or as_json,
        learner=learner, methods=methods, missing_target=missing_target, seed=seed, n_jobs=jobs,
    )  # fmt: skip
    found = rows_needed(result, power=power, alpha=alpha, correction=correction)
    if plot is not None:
        from covaria import plots

        sizes = sorted({int(10 ** (k / 8)) for k in range(8, 49)})
        curves = power_at(result, sizes, alpha=alpha, correction=correction)
        plots.save(plots.power_curves(curves, power=power), plot)
    _show(found, as_json, list(found.columns))


def theory(
    what: Annotated[
        str, typer.Argument(help="linear; a scenario (a to f, or its name); or errata.")
    ],
    number: Annotated[int | None, typer.Argument(help="Of an erratum.")] = None,
    beta: Annotated[float | None, typer.Option(help="The coefficient.")] = None,
    sigma: Annotated[float | None, typer.Option(help="The sd of the noise.")] = None,
    rho: Annotated[float | None, typer.Option(help="The correlation of two features.")] = None,
    df: Annotated[float | None, typer.Option(help="Degrees of freedom, scenario f.")] = None,
    link: Annotated[str | None, typer.Option(help="sigmoid or gaussian, scenario d.")] = None,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Tell what the theorems say: importance, variability and efficiency of each test.

    Example: covaria theory linear --beta 1 --sigma 1 --rho .5
    """
    from covaria.efficiencies import theory as theorems

    if what == "errata":
        _show(theorems.errata(number), as_json, ["number", "claim", "paper", "truth"])
        return
    settings = {"beta": beta, "noise": sigma, "rho": rho, "df": df, "link": link}
    given = {name: value for name, value in settings.items() if value is not None}
    found = theorems.table(_model(what, given))
    if plot is not None:
        from covaria import plots

        plots.save(plots.theory_bars(found), plot)
    _show(found, as_json, ["feature", "psi_gcm", "rv_gcm", "psi_loco", "rv_loco", "psi_drop",
                           "rv_drop", "are_gcm_loco", "are_loco_drop", "A_ratio"])  # fmt: skip


def _assessed(
    table: Path,
    target: str,
    drop: str,
    splits: str,
    rows: int | None,
    quiet: bool,
    **settings: Any,
) -> Result:
    """Return the result of a table; what was done to read it and progress go to stderr."""
    from covaria.assessment import prepare
    from covaria.cli import console
    from covaria.tables.files import read_table, without_columns

    frame, notes = read_table(table, rows, settings["seed"])
    tell(notes, quiet)
    job = prepare(without_columns(frame, drop), target, splits=read_splits(splits), **settings)
    with console.progress_bar(hidden=quiet) as progress:
        return job.run(progress)


def _model(what: str, given: dict[str, Any]) -> Any:
    """Return the two-feature linear model, or a scenario of the paper."""
    import numpy as np

    from covaria.simulation.model import Model
    from covaria.simulation.scenarios import scenario

    if what != "linear":
        return scenario(what, **given)
    unknown = sorted(set(given) - {"beta", "noise", "rho"})
    if unknown:
        raise InputError(f"theory linear takes --beta, --sigma and --rho, not --{unknown[0]}.")
    rho = given.get("rho", 0.0)
    return Model(
        [given.get("beta", 1.0), 0.0], noise=given.get("noise", 1.0),
        covariance=np.array([[1.0, rho], [rho, 1.0]]),
    )  # fmt: skip


def _show(found: pd.DataFrame, as_json: bool, columns: list[str]) -> None:
    """Print a table for people, or all of it as JSON."""
    from covaria.cli import console
    from covaria.results.result import lines_of

    if as_json:
        print(json.dumps(lines_of(found), ensure_ascii=False, allow_nan=False))
        return
    console.print_table(found[columns].map(_readable), widest=100)


def _readable(value: object) -> object:
    if not isinstance(value, float):
        return value
    return "—" if value != value else "∞" if value == float("inf") else f"{value:.4g}"
