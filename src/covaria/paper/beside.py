"""What stands beside the claims: what sharing draws changes, and what the paper leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from covaria.errors import InputError
from covaria.paper import permuting, sentences
from covaria.paper.evidence import Evidence, number
from covaria.paper.kept import Results
from covaria.paper.page import MEANINGS, SYMBOLS
from covaria.paper.registry import Claim
from covaria.paper.run import Run
from covaria.paper.studies import OPEN, SHOWN, Open

BOOSTED = {"surrogate": "(e)", "heavy_tails": "(f)"}
CLAIMS = {"fig1": sentences.fig1, "fig3": sentences.fig3, "fig4": sentences.fig4,
          "fig5": sentences.fig5, "sfig4": sentences.sfig4}  # fmt: skip
BASE = {"fig4": ("surrogate", "surrogate_network"), "fig5": ("heavy_tails",),
        "sfig4": ("wide_kernel",)}  # fmt: skip
# Our reading of each setting, as it is named in a panel.
OURS = {"beta": "1 (ours)", "learner": "network (ours: 200 epochs, batch 256, width 50)",
        "n_rows": "1000 (ours)"}  # fmt: skip
SHARING = """## What sharing random draws changes

R's gbm draws new bags of rows for every model, and so does the paper's mode here
(`shared_randomness=False`; `tests/paper/test_strict.py` holds its F1 and FDR to R's gbm in the same
design). Outside that mode all models of a fold share their draws, so that only the columns tell a
full model from one without a feature. Without it LOCO tests two bags against each other, and
selects more features that do not matter:

| boosting, over all values of the parameter | new draws (the paper's mode) | shared draws |
| --- | --- | --- |"""
LEFT_OPEN = """## What the paper leaves open

Settings that the paper does not give, other values of them, and the verdicts on the claims that
hinge on them. A claim that does not hold at our reading and holds at another value is "not stated"
above.
"""
PERMUTED = """**The p-value of the permutation method.** Ours is that of its mean gain over its
standard error, which gives the continuous values of Figs. 1, S1 and S2. The other reading in use
compares the gain with those of refits to shuffled targets (Altmann, Toloşi, Sander and Lengauer,
2010; {shuffles} of them, so that no p-value is below {least}). The claims that name it, on the
same rows:
"""
ELSEWHERE = """
Other settings that are not told, and what they do:

- epochs and standardisation of the networks of the tables: [real data](real_data.md) has each
  choice. In the simulations columns are drawn with variance one;
- boosting of Tables 5 and 6, which gbm's default cannot give: [real data](real_data.md) has what
  can;
- Airbnb's snapshot of June 2026 is not to be had: Table 1 and Fig. 8 are of December 2023, and no
  other date could be tried.
"""


def sharing(run: Run) -> str:
    """Return what sharing draws changes, for the page; "" where one of the two is not stored."""
    try:
        lines = [line for study, model in BOOSTED.items() for line in _shared(run, study, model)]
    except InputError:
        return ""
    return "\n".join([SHARING, *lines, ""])


def _shared(run: Run, study: str, model: str) -> Iterator[str]:
    found = [_boosted(replace(run, mode=mode).of(study)) for mode in ("paper", "shared")]
    for metric, name in (("f1", "F1"), ("fdr", "FDR"), ("recall", "recall")):
        for method in ("gcm", "loco"):
            cells = [_mean(one, metric, method) for one in found]
            yield f"| {name} of {SHOWN[method]} in {model} | " + " | ".join(cells) + " |"


def _boosted(found: Results) -> Evidence:
    runs = found.runs[found.runs["learner"].str.startswith("boosting")]
    return Evidence("", found.of(runs))


def _mean(found: Evidence, metric: str, method: str) -> str:
    return f"{number(found.mean(metric, method))} ± {number(found.error(metric, method))}"


def left_open(run: Run) -> str:
    """Return what other values of open settings give, for the page; "" where none are stored."""
    paper = replace(run, mode="paper")
    lines = []
    for figure, settings in OPEN.items():
        for setting in settings:
            with suppress(InputError):
                lines += list(_panel(paper, figure, setting))
    with suppress(InputError):
        lines += list(_permuted(paper))
    if not lines:
        return ""
    legend = ", ".join(f"{SYMBOLS[verdict]} {verdict}" for verdict in MEANINGS)
    return "\n".join([LEFT_OPEN, *lines, "", f"({legend})", ELSEWHERE])


def _panel(run: Run, figure: str, setting: Open) -> Iterator[str]:
    """Yield the verdicts of a learner's claims at each value of a setting."""
    found, base = run.of(setting.study), run.together(BASE[figure])
    values = {OURS[setting.by]: base} | {
        f"{value:g}" if isinstance(value, float) else str(value): found.of(part)
        for value, part in found.runs.groupby(setting.by, sort=False)
    }
    judged = {value: _of_learner(figure, values[value], setting.learner) for value in values}
    ids = [claim.id for claim in next(iter(judged.values()))]
    runs = {value: _runs(values[value], setting.learner) for value in values}
    yield from (f"**{setting.about}.**", "")
    yield from _verdicts(f"{setting.by} =", judged, ids, runs)


def _verdicts(
    head: str, judged: Mapping[str, Sequence[Claim]], ids: Sequence[str], runs: Mapping[str, int]
) -> Iterator[str]:
    """Yield a table of verdicts, a row a value, a column a claim."""
    yield f"| {head} | runs | " + " | ".join(ids) + " |"
    yield "| --- | --- |" + " --- |" * len(ids)
    for value, claims in judged.items():
        by_id = {claim.id: SYMBOLS[claim.verdict] for claim in claims}
        cells = " | ".join(by_id.get(at, "·") for at in ids)
        yield f"| {value} | {runs[value]} | {cells} |"
    yield ""


def _permuted(run: Run) -> Iterator[str]:
    """Yield the verdicts on claims that name the permutation method, by both readings."""
    usual = run.of("boosting")
    repeats = run.repeats or permuting.RUNS
    other = run.table("permutation", lambda: permuting.runs(run.seed, repeats), repeats)
    many = int(other["repeat"].nunique())
    readings = permuting.readings(usual, other)
    judged = {
        name: [claim for figure in ("fig1", "fig3") for claim in _claims(figure, found)
               if "permutation" in claim.methods and not claim.of_time]
        for name, found in readings.items()
    }  # fmt: skip
    ids = [claim.id for claim in next(iter(judged.values()))]
    shuffles = permuting.SHUFFLES
    yield PERMUTED.format(shuffles=shuffles, least=f"{1 / (1 + shuffles):.3f}")
    yield from _verdicts("reading", judged, ids, dict.fromkeys(judged, many))


def _claims(figure: str, found: Results) -> list[Claim]:
    evidence = Evidence(figure, found)
    CLAIMS[figure](evidence)
    return evidence.claims


def _of_learner(figure: str, found: Results, learner: str) -> list[Claim]:
    """Return the claims about a learner; those of a figure of one learner name none."""
    own = found.of(found.runs[found.runs["learner"].str.startswith(learner)])
    claims = _claims(figure, own)
    return [claim for claim in claims if claim.learner == learner] or claims


def _runs(found: Results, learner: str) -> int:
    own = found.runs[found.runs["learner"].str.startswith(learner)]
    return int(own.groupby("setting")["repeat"].nunique().min())
