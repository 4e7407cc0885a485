"""The page of all claims with their verdicts, written from what the figures came to.

A row a claim, a column a mode; on top a grid of all of them, below each figure's own picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from covaria.errors import plural
from covaria.paper.published import METHODS, SHOWN, published
from covaria.paper.registry import Claim, Figure, Made, Verdict
from covaria.paper.studies import STUDIES
from covaria.tables.writing import write_text

if TYPE_CHECKING:
    import pandas as pd

MODE_NAMES = {
    "paper": "the paper's mode",
    "ours": "done right",
    "default": "the default",
    "shared": "shared draws",
}
MODES_ABOUT = {
    "paper": "in sample, two-sided, raw p < .05, new random draws for every model, as R's gbm and "
    "torch make them",
    "ours": "the same methods and learners cross-fitted in 5 folds, gains one-sided, "
    "Benjamini–Hochberg at .05",
    "default": "`covaria.assess(X, y)`: learners chosen by `auto`, GCM and PCM together. It stands "
    "in the place of GCM, beside the rivals of the paper's mode on the same rows; claims about "
    "others alone have no such column",
    "shared": "the paper's mode with bags and starting weights shared by all models of a run; "
    "shown where the paper's mode has not been run yet",
}
SYMBOLS = {
    Verdict.HELD: "✓", Verdict.NOT_HELD: "✗", Verdict.UNDECIDED: "~", Verdict.NOT_STATED: "?",
    Verdict.OTHER: "○",
}  # fmt: skip
# What a page of a quick run says, and that of the full study does not.
QUICK = "a quick run with few repeats"
# Fewer runs than these are a smoke test.
SMOKE = 20
PICTURES = "reproduction"
Made_ = Mapping[str, Mapping[str, Made]]

MEANINGS = {
    Verdict.HELD: "as claimed, by two Monte-Carlo standard errors (after ±)",
    Verdict.NOT_HELD: "missed by as much",
    Verdict.UNDECIDED: "within two standard errors, or too few runs to have one",
    Verdict.NOT_STATED: "missed, but another value of what the paper does not give meets it (β in "
    "(e) and (f), training of networks), or how networks and boosters of the tables were run is "
    "not told",
    Verdict.OTHER: "missed, but not on the paper's table (another snapshot of Airbnb), or a time "
    "of our programs rather than R's",
}
INTRO = """
What the paper says of its theory, its simulations and its tables, a claim a line, beside what we
find. Every claim has an id, the paper's sentence, how it is judged and the numbers. The verdicts:
"""
RULES = """
Differences are those of methods on the same rows, or over draws of the folds of a real table.
Limits such as "at most .50" are our reading of words such as low: the paper gives no number.
"Always" and "consistently" are judged at every value of the parameter, "gradually" by a trend over
all runs, and "similar" on every metric; where both methods are as good as can be (1.00 and 1.00),
neither can be better, and the value is passed over. .00 and 1.00 are exact. Each claim is judged
alone; a column of fewer than 20 runs is a smoke test. `covaria paper all --onto results` goes on
from what is stored, and `covaria paper check` makes this page again and reruns a hundredth of the
stored tasks. Columns:
"""


def page(
    made: Made_, known: Mapping[str, Figure], command: str, *, lead: str = "", pictures: str = ""
) -> str:
    """Return the page in Markdown; `made` holds, per mode, what each figure came to.

    `lead` stands first, and `pictures` is the folder of the figures, where there are any.
    """
    lines = ["# Reproduction", "", f"Written by `{command}` from stored results; do not edit.", ""]
    lines += [lead, ""] if lead else []
    lines += ["## How claims are judged", INTRO, "| | verdict | when |", "| --- | --- | --- |"]
    lines += [f"| {SYMBOLS[v]} | {v} | {when} |" for v, when in MEANINGS.items()]
    lines.append(RULES)
    lines += [f"- **{MODE_NAMES[mode]}**: {MODES_ABOUT[mode]}." for mode in made]
    lines += ["", "## All claims", "", *_grid(made, known), ""]
    for name in _names(made, known):
        lines += _figure(name, made, known[name], pictures)
    return "\n".join(lines).rstrip() + "\n"


def _names(made: Made_, known: Mapping[str, Figure]) -> list[str]:
    return [name for name in known if any(name in of for of in made.values())]


def _grid(made: Made_, known: Mapping[str, Figure]) -> Iterator[str]:
    """Yield the grid of claims and modes: a symbol a claim."""
    modes = list(made)
    yield "| | " + " | ".join(MODE_NAMES[mode] for mode in modes) + " |"
    yield "| --- |" + " --- |" * len(modes)
    for name in _names(made, known):
        ids = _ids([of[name] for of in made.values() if name in of])
        cells = [_symbols(made[mode].get(name), ids) for mode in modes]
        yield f"| [{name}](#{name}) | " + " | ".join(cells) + " |"
    counts = [
        Counter(c.verdict for one in made[mode].values() for c in one.claims) for mode in modes
    ]
    for verdict, symbol in SYMBOLS.items():
        shown = " | ".join(str(count[verdict]) for count in counts)
        yield f"| {symbol} {verdict} | {shown} |"
    yield "| claims | " + " | ".join(str(sum(count.values())) for count in counts) + " |"


def _ids(made: Sequence[Made]) -> list[str]:
    """Return the ids of all claims of a figure, in order."""
    return sorted({claim.id for one in made for claim in one.claims}, key=_order)


def _symbols(made: Made | None, ids: Sequence[str]) -> str:
    """Return a symbol a claim, a dot for one that a mode has not."""
    if made is None:
        return ""
    by_id = {claim.id: SYMBOLS[claim.verdict] for claim in made.claims}
    return "".join(by_id.get(at, "·") for at in ids)


def _figure(name: str, made: Made_, figure: Figure, pictures: str) -> Iterator[str]:
    """Yield a figure's section: picture, caption, runs, and a table a sentence."""
    own = {mode: of[name] for mode, of in made.items() if name in of}
    yield from (f"({name})=", f"## {name}: {figure.about}", "")
    if pictures and next(iter(own.values())).draw is not None:
        drawn = f" Drawn: {MODE_NAMES[next(iter(own))]}." if figure.modes else ""
        yield from (f"![{figure.about}]({pictures}/{name}.svg)", "")
        yield from (f"*{figure.caption}{drawn}*", "")
    if name.startswith("table"):
        yield from _two_by_three(name, own)
    yield from (f"- {_runs(mode, one, figure)}" for mode, one in own.items())
    yield ""
    yield from _sentences(own, figure.modes)
    for note in dict.fromkeys(note for one in own.values() for note in one.notes):
        yield from (note, "")


def _runs(mode: str, made: Made, figure: Figure) -> str:
    """Return how many runs a column of a figure has, and what that makes of it."""
    how = MODE_NAMES[mode] if figure.modes else "every mode"
    if not _is_short(figure, made):
        return f"{how}: {plural(made.runs, 'repeat')}"
    full = max(STUDIES[study].repeats for study in figure.studies)
    if not made.by_learner:
        return f"{how}: {made.runs} of {full} repeats ({_size(made.runs)})"
    few = [
        f"{name} {many}" + ("" if many >= full else f" ({_size(many)})")
        for name, many in made.by_learner.items()
    ]
    return f"{how}: of {full} repeats {', '.join(few)}"


def _size(many: int) -> str:
    return "a smoke test" if many < SMOKE else QUICK


def _sentences(own: Mapping[str, Made], moded: bool) -> Iterator[str]:
    """Yield the claims, those that take one sentence apart below it."""
    by_id: dict[str, dict[str, Claim]] = {}
    for mode, one in own.items():
        for claim in one.claims:
            by_id.setdefault(claim.id, {})[mode] = claim
    modes = list(own)
    head = [MODE_NAMES[mode] for mode in modes] if moded else ["found"]
    said: dict[tuple[str, str], list[str]] = {}
    for at in sorted(by_id, key=_order):
        first = next(iter(by_id[at].values()))
        said.setdefault((first.quote, first.section), []).append(at)
    for (quote, section), ids in said.items():
        yield from ("", f"> {quote} (Section {section})", "")
        yield "| id | judged by | " + " | ".join(head) + " |"
        yield "| --- | --- |" + " --- |" * len(head)
        for at in ids:
            first = next(iter(by_id[at].values()))
            cells = [_cell(by_id[at].get(mode)) for mode in modes]
            yield f"| {at} | {first.text} | " + " | ".join(cells) + " |"
    yield ""


def _order(claim: str) -> int:
    return int(claim.rpartition("-")[2])


def _cell(claim: Claim | None) -> str:
    if claim is None:
        return "—"
    return f"{SYMBOLS[claim.verdict]} **{claim.verdict}**: {claim.numbers}"


def _two_by_three(name: str, own: Mapping[str, Made]) -> Iterator[str]:
    """Yield a table in the paper's form, its numbers first and ours beside them."""
    known = published(name)
    yield "| method | " + " | ".join(known.errors) + " |"
    yield "| --- |" + " --- |" * len(known.errors)
    for method in METHODS:
        theirs = [f"{e:g} ± {s:g}" for e, s in (known.error(k, method) for k in known.errors)]
        yield f"| {SHOWN[method]}, published | " + " | ".join(theirs) + " |"
        for mode, one in own.items():
            cells = [_error(one.table, learner, method) for learner in known.errors]
            yield f"| {SHOWN[method]}, {MODE_NAMES[mode]} | " + " | ".join(cells) + " |"
    yield ""


def _error(table: pd.DataFrame, learner: str, method: str) -> str:
    found = table[(table["learner"] == learner) & (table["method"] == method)]
    return "—" if found.empty else f"{found['ours'].iloc[0]:.4g} ± {found['ours_se'].iloc[0]:.2g}"


def _is_short(figure: Figure, made: Made) -> bool:
    return any(made.runs < STUDIES[study].repeats for study in figure.studies)


def has_quick(made: Made_, known: Mapping[str, Figure]) -> bool:
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
    counts = Counter(claim.verdict for claim in made.claims)
    found = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    head = (
        f"{name} ({mode} mode, {plural(made.runs, 'repeat')}): {plural(len(made.claims), 'claim')}"
    )
    return [f"{head}: {found}", *(f"  {claim.id} {claim}" for claim in made.claims)]
