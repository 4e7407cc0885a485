"""The page of all claims with their verdicts, written from what the figures came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from covaria.errors import plural
from covaria.paper.registry import Claim, Figure, Made
from covaria.paper.studies import STUDIES
from covaria.tables.writing import write_text

MODE_NAMES = {
    "paper": "the paper's mode (in sample, two-sided, raw p < .05)",
    "ours": "our mode (5-fold cross-fit, gains one-sided, Benjamini–Hochberg at .05)",
}
# What a page of a quick run says, and that of the full study does not.
QUICK = "a quick run with few repeats"


def page(made: Mapping[str, Mapping[str, Made]], known: Mapping[str, Figure], command: str) -> str:
    """Return the page in Markdown; `made` holds, per mode, what each figure came to."""
    counts = {mode: [c.held for m in of.values() for c in m.claims] for mode, of in made.items()}
    lines = [
        "# Reproduction",
        "",
        f"Written by `{command}` from stored results; do not edit.",
        "",
        "What the paper says of its simulations and tables, a claim a line, beside what we find. A",
        "comparison held where the paired difference over runs on the same rows, or over draws of",
        "the folds of a real table, lies on the claimed side of 0 by two Monte-Carlo standard",
        "errors (after ±); other claims state their limit, which is our reading of words such as",
        "low or similar: the paper gives no number. In our mode the errors of real tables are of",
        "another procedure, and not judged by the paper's. Each claim is judged alone, and two",
        "errors from two or three runs are weak. Seconds are what a method is charged for the",
        "models it needs, by our engines.",
        "",
        "| mode | claims | held | did not hold |",
        "| --- | --- | --- | --- |",
    ]
    for mode, held in counts.items():
        name = MODE_NAMES[mode]
        lines.append(f"| {name} | {len(held)} | {sum(held)} | {len(held) - sum(held)} |")
    names = [name for name in known if any(name in of for of in made.values())]
    for name in names:
        lines += ["", f"## {name}: {known[name].about}", ""]
        for mode, of in made.items():
            if name in of:
                short = _is_short(known[name], of[name])
                lines += _section(mode, of[name], fast=short, moded=known[name].modes)
    return "\n".join(lines) + "\n"


def _is_short(figure: Figure, made: Made) -> bool:
    return any(made.runs < STUDIES[study].repeats for study in figure.studies)


def _section(mode: str, made: Made, *, fast: bool, moded: bool) -> list[str]:
    few = f" — {QUICK}, not the full study" if fast else ""
    how = MODE_NAMES[mode] if moded else "every mode"
    lines = [f"In {how}, {plural(made.runs, 'repeat')}{few}:", ""]
    lines += ["| claim | found | verdict |", "| --- | --- | --- |"]
    lines += [_line(claim) for claim in made.claims]
    lines += [""] + [f"Made by {note}." if "seed" in note else note for note in made.notes if note]
    return [*lines, ""]


def _line(claim: Claim) -> str:
    verdict = claim.verdict if claim.held else f"**{claim.verdict}**"
    return f"| {claim.text} | {claim.numbers} | {verdict} |"


def has_quick(made: Mapping[str, Mapping[str, Made]], known: Mapping[str, Figure]) -> bool:
    """Return whether a figure has fewer repeats than the full study."""
    return any(_is_short(known[name], one) for of in made.values() for name, one in of.items())


def write_page(path: Path, text: str, *, keep_fuller: bool) -> bool:
    """Return whether the page was written: a quick one does not replace that of the full study."""
    if keep_fuller and path.is_file():
        before = path.read_text(encoding="utf-8")
        if QUICK not in before:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return True


def printed(name: str, mode: str, made: Made) -> Sequence[str]:
    """Return what the command prints of a figure: every claim with its verdict."""
    held = sum(claim.held for claim in made.claims)
    head = f"{name} ({mode} mode, {plural(made.runs, 'repeat')})"
    head += f": {held} of {len(made.claims)} claims held"
    return [head, *(f"  {claim}" for claim in made.claims)]
