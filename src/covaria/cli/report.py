"""The commands that show a stored result again: a page, pictures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from covaria.cli.options import AsJson
from covaria.errors import InputError, MissingExtra, did_you_mean, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from covaria.results.result import Result

Stored = Annotated[
    Path, typer.Argument(help="A results.json that --out wrote.", show_default=False)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")]
PICTURES = ("forest", "p_values", "residuals", "quality", "cost", "efficiencies")


def register(app: typer.Typer) -> None:
    """Add the commands."""

    @app.command(epilog="Example: covaria report covaria-demo/results.json page.html")
    def report(
        result: Stored,
        page: Annotated[Path, typer.Argument(help="The page to write.")] = Path("report.html"),
        title: Annotated[str | None, typer.Option(help="What stands on top.")] = None,
        quiet: Quiet = False,
        as_json: AsJson = False,
    ) -> None:
        """Write the page of a stored result again, without fitting anything."""
        from covaria.report import write_report

        with _showing(result):
            written = write_report(_read(result), page, title=title)
        _say({"report": str(written), "bytes": written.stat().st_size}, quiet, as_json)

    @app.command(
        epilog="Examples: covaria plot results.json forest.svg   "
        "covaria plot results.json bmi.png --kind residuals --feature bmi"
    )
    def plot(
        result: Stored,
        picture: Annotated[Path, typer.Argument(help="The .svg, .png or .pdf to write.")],
        kind: Annotated[str, typer.Option(help=f"{', '.join(PICTURES)}.")] = "forest",
        method: Annotated[str | None, typer.Option(help="Of a forest; the first if none.")] = None,
        feature: Annotated[str | None, typer.Option(help="Of residuals.")] = None,
        quiet: Quiet = False,
        as_json: AsJson = False,
    ) -> None:
        """Draw a stored result: its effects, p-values, residuals, regressions or cost."""
        from covaria import plots

        with _showing(result):
            written = plots.save(_drawn(_read(result), kind, method, feature), picture)
        _say({"picture": str(written), "kind": kind}, quiet, as_json)


@contextmanager
def _showing(path: Path) -> Iterator[None]:
    """Say of a file that reads as a result but cannot be shown that it is none."""
    try:
        yield
    except (InputError, MissingExtra, OSError):
        raise
    except Exception as error:
        raise InputError(
            f"{path} cannot be shown: it is damaged, or not of this version of covaria "
            f"({type(error).__name__}: {short(str(error))}). Make it again."
        ) from error


def _read(path: Path) -> Result:
    from covaria.results.result import Result

    if not path.is_file():
        raise InputError(f"There is no file {path}. Give a results.json that --out wrote.")
    return Result.from_json(path)


def _drawn(result: Result, kind: str, method: str | None, feature: str | None) -> Axes:
    from covaria import plots

    if kind not in PICTURES:
        raise InputError(f"There is no picture '{kind}'.{did_you_mean(kind, PICTURES)}")
    if kind == "forest":
        return plots.forest(result, method)
    if kind == "residuals":
        if feature is None:
            raise InputError("residuals are drawn for one feature: name it with --feature.")
        return plots.residuals(result, feature)
    if kind == "efficiencies":
        from covaria.efficiencies import efficiency

        return plots.efficiencies(efficiency(result))
    axes: Axes = getattr(plots, kind)(result)
    return axes


def _say(facts: dict[str, object], quiet: bool, as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts))
    elif not quiet:
        print("  ".join(f"{name} {value}" for name, value in facts.items()))
