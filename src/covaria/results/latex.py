"""Verdicts as a table of LaTeX (booktabs)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from covaria.errors import short

if TYPE_CHECKING:
    import pandas as pd

# Letters that LaTeX reads as commands, or has commands for.
COMMANDS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "≥": r"$\geq$", "≤": r"$\leq$", "—": "--",
    "²": r"$^2$", "…": r"\ldots{}",
}  # fmt: skip


def escaped(value: object) -> str:
    """Return a text of one line that LaTeX prints as it is.

    >>> escaped("50% of a_b ≥ 3")
    '50\\\\% of a\\\\_b $\\\\geq$ 3'
    """
    return "".join(COMMANDS.get(letter, letter) for letter in short(str(value), 200))


def latex_table(frame: pd.DataFrame, caption: str, label: str) -> str:
    """Return a table with a caption above it; a label is given as it is."""
    rows = [_row(row) for row in frame.itertuples(index=False, name=None)]
    lines = [
        r"\begin{table}",
        rf"\caption{{{escaped(caption)}}}",
        *([rf"\label{{{label}}}"] if label else []),
        rf"\begin{{tabular}}{{{'l' * frame.shape[1]}}}",
        r"\toprule",
        _row(frame.columns),
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[object]) -> str:
    return " & ".join(map(escaped, cells)) + r" \\"
