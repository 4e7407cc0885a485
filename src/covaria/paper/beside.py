"""What stands beside the claims: what sharing draws changes, and what the paper leaves open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from covaria.errors import InputError
from covaria.paper import sentences
from covaria.paper.evidence import Evidence, number
from covaria.paper.kept import Results
from covaria.paper.page import MEANINGS, SYMBOLS
from covaria.paper.registry import Claim
from covaria.paper.run import Run
from covaria.paper.studies import OPEN, SHOWN

BOOSTED = {"surrogate": "(e)", "heavy_tails": "(f)"}
CLAIMS = {"fig4": sentences.fig4, "fig5": sentences.fig5}
BASE = {"fig4": "surrogate", "fig5": "heavy_tails"}
SHARING = """## What sharing random draws changes

R's gbm draws new bags of rows for every model, and so does the paper's mode here
(`shared_randomness=False`; `tests/paper/test_strict.py` holds its F1 and FDR to R's gbm in the same
design). Outside that mode all models of a fold share their draws, so that only the columns tell a
full model from one without a feature. Without it LOCO tests two bags against each other, and
selects more features that do not matter:

| boosting, over all values of the parameter | new draws (the paper's mode) | shared draws |
| --- | --- | --- |"""
LEFT_OPEN = """## What the paper leaves open

β, the weight of x1 in models (e) and (f), is not given; 1 is our reading. The claims about boosting
at other values (20 runs each), in the order of their ids:
"""
ELSEWHERE = """
Other settings that are not told, and what they do:

- epochs and standardisation of the networks: [real data](real_data.md) has each choice;
- boosting of Tables 5 and 6, which gbm's default cannot give: [real data](real_data.md) has what
  can;
- Airbnb's snapshot of June 2026 is not to be had: Table 1 and Fig. 8 are of December 2023;
- the p-value of the permutation method is read as that of its mean gain, the only reading that
  gives the continuous values of Figs. 1, S1 and S2;
- n at p = 500 is read as 1,000, which the caption of Fig. S4 says of the kernel machine.
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
    lines = []
    for figure, (study, setting) in OPEN.items():
        try:
            lines += list(_panel(replace(run, mode="paper"), figure, study, setting))
        except InputError:
            continue
    if not lines:
        return ""
    legend = ", ".join(f"{SYMBOLS[verdict]} {verdict}" for verdict in MEANINGS)
    return "\n".join([LEFT_OPEN, *lines, "", f"({legend})", ELSEWHERE])


def _panel(run: Run, figure: str, study: str, setting: str) -> Iterator[str]:
    """Yield the verdicts of boosting's claims at each value of a setting."""
    found = run.of(study)
    base = run.of(BASE[figure])
    values: dict[float, Results] = {1.0: base}
    for value, part in found.runs.groupby(setting):
        values[float(str(value))] = found.of(part)
    judged = {value: _of_boosting(figure, values[value]) for value in sorted(values)}
    ids = [claim.id for claim in next(iter(judged.values()))]
    yield from (f"| {figure}, {setting} = | " + " | ".join(ids) + " |",
                "| --- |" + " --- |" * len(ids))  # fmt: skip
    for value, claims in judged.items():
        yield f"| {value:g} | " + " | ".join(SYMBOLS[claim.verdict] for claim in claims) + " |"
    yield ""


def _of_boosting(figure: str, found: Results) -> list[Claim]:
    evidence = Evidence(figure, found)
    CLAIMS[figure](evidence)
    return [claim for claim in evidence.claims if " with boosting" in claim.text]
