"""The command about the real tables: where they come from, under what terms, which are here."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from covaria.cli.options import AsJson


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def datasets(
        get: Annotated[
            str, typer.Option(help="Download these first, comma-separated, or 'all'.")
        ] = "",
        as_json: AsJson = False,
    ) -> None:
        """List the real tables: rows, columns, origin, licence, and whether they are here.

        Example: covaria datasets --get wine_red
        """
        from covaria.datasets import ENTRIES, listing, load

        wanted = list(ENTRIES) if get == "all" else [n.strip() for n in get.split(",") if n.strip()]
        for name in wanted:
            load(name)
        rows = listing()
        if as_json:
            print(json.dumps(rows, ensure_ascii=False))
            return
        _show(rows)


def _show(rows: list[dict[str, object]]) -> None:
    """Print what fits on a line for each table, then where each comes from."""
    import pandas as pd

    from covaria.results.result import plain_table

    lines = [
        {
            "name": row["name"],
            "rows": str(row["rows"]),
            "columns": str(row["columns"]),
            "target": row["target"],
            "paper's rows": str(row["paper_rows"]),
            "here": "yes" if row["present"] else "no",
            "licence": row["licence"],
        }
        for row in rows
    ]
    print(plain_table(pd.DataFrame(lines), widest=100))
    for row in rows:
        print(f"\n{row['name']}: {row['origin']}\n  {row['note']}\n  {row['url']}")
        if row["present"]:
            print(f"  {row['place']}")
    print("\nA table that is not here is downloaded when it is first loaded; COVARIA_DATA names a")
    print("folder to look in first.")
