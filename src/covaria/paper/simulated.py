"""The simulated figures: what each reads, shows and is claimed to show.

`covaria.paper.sentences` has the paper's claims, a function a figure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from covaria import plots
from covaria.errors import InputError
from covaria.paper import sentences
from covaria.paper.assumption import assumption_figure
from covaria.paper.captions import CAPTIONS
from covaria.paper.evidence import Evidence, summary_of
from covaria.paper.kept import Results
from covaria.paper.registry import ABOUT, Claim, Figure, Made, Verdict, add
from covaria.paper.run import Run
from covaria.paper.studies import LEARNERS, LETTERED, OPEN, SHOWN, STUDIES
from covaria.studies.metrics import METRICS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LETTER = dict(zip(LETTERED, "abcd", strict=True))
TITLE = {name: name.replace("_", " ") for name in LETTERED}
Claims = Callable[[Evidence], None]


def _p_values(run: Run, name: str, studies: Sequence[str], claims: Claims) -> Made:
    """Return a figure of mean p-values by feature, a panel a model."""
    found = run.together(studies)
    if found.features.empty:
        raise InputError(f"The results of {name} were kept by their counts alone. Run it again.")
    table = found.features[found.features["p_mean"].notna()]
    table = table.assign(method=_shown(run, table["method"]))
    parts = {f"({LETTER[s]}) {TITLE[s]}": table[table["scenario"] == s] for s in LETTERED}
    return _made(run, name, studies, found, table, claims, lambda: plots.p_value_panels(parts))


def _shown(run: Run, methods: pd.Series[str]) -> pd.Series[str]:
    """Return methods by the names people know; GCM's place may be the default's."""
    names = SHOWN | ({"gcm": "default"} if run.mode == "default" else {})
    return methods.map(lambda name: names.get(str(name), str(name)))


def _metrics(run: Run, name: str, studies: Sequence[str], claims: Claims) -> Made:
    """Return a figure of metrics and time by method, a row a model."""
    found = run.together(studies)
    table = summary_of(found.runs)
    if run.mode == "default":
        table = table.replace({"method": {"GCM": "default"}})
    link = table.get("link")
    labels = [f"({LETTER[s]})" for s in table["scenario"]]
    if link is not None:
        given = [v if isinstance(v, str) else "" for v in link]
        labels = [f"{a} {b}".strip() for a, b in zip(labels, given, strict=True)]
    shown = table.assign(model=labels)
    draw = partial(
        plots.metric_panels, shown, rows="model", metrics=[*METRICS, "seconds"]
    )  # fmt: skip
    return _made(run, name, studies, found, table, claims, draw)


def _sweep(
    run: Run, name: str, studies: Sequence[str], over: str, features: list[str], claims: Claims
) -> Made:
    """Return a figure of metrics and p-values over a parameter, a row a learner."""
    import pandas as pd

    found = run.together(studies)
    table = summary_of(found.runs)
    table = table[~table["method"].str.startswith("guess")]
    keys = ["scenario", "setting", over, "learner", "options", "method"]
    p = found.features[found.features["feature"].isin(features)]
    p = p.assign(metric="p of " + p["feature"], method=p["method"].map(SHOWN))
    p = p.rename(columns={"p_mean": "mean", "p_sd": "sd", "p_se": "se"})
    both = pd.concat([p[[*keys, "metric", "runs", "mean", "sd", "se"]], table], ignore_index=True)
    if run.mode == "default":
        both = both.replace({"method": {"GCM": "default"}})
    shown = both.assign(learner=[LEARNERS.get(n, n) for n in both["learner"].str.split("(").str[0]])
    names = [*(f"p of {f}" for f in features), "recall", "f1", "fdr"]
    draw = partial(plots.sweep_panels, shown, over=over, rows="learner", metrics=names)
    return _made(run, name, studies, found, both, claims, draw)


def _made(
    run: Run, name: str, studies: Sequence[str], found: Results, table: pd.DataFrame,
    claims: Claims, draw: Callable[[], Axes],
) -> Made:  # fmt: skip
    judged = _judged(run, name, found, claims)
    if run.mode == "paper":
        judged = [_unless_open(claim, run, name, claims) for claim in judged]
    notes = (_source(run, studies),)
    by_learner = found.by_learner if len(found.by_learner) > 1 else {}
    return Made(table, judged, draw, found.repeats, notes, by_learner)


def _source(run: Run, studies: Sequence[str]) -> str:
    """Return which files of results a column comes from."""
    modes = ("default", "paper") if run.mode == "default" else (run.mode,)
    names = {
        f"{STUDIES[study].default or study if mode == 'default' else study}-{mode}.csv": None
        for mode in modes
        for study in studies
    }
    rivals = ", the rivals beside the default from the last" if run.mode == "default" else ""
    return f"From {', '.join(f'`{name}`' for name in names)}{rivals}."


def _judged(run: Run, name: str, found: Results, claims: Claims) -> list[Claim]:
    evidence = Evidence(name, found, "gcm" if run.mode == "default" else "")
    claims(evidence)
    return evidence.claims


def _unless_open(claim: Claim, run: Run, name: str, claims: Claims) -> Claim:
    """Return a claim that does not hold as `not stated`, where another open setting gives it."""
    if claim.verdict is not Verdict.NOT_HELD:
        return claim
    for setting in OPEN.get(name, ()):
        try:
            found = run.of(setting.study)
        except InputError:
            continue
        for value, part in found.runs.groupby(setting.by, sort=False):
            other = {c.id: c for c in _judged(run, name, found.of(part), claims)}.get(claim.id)
            if other is not None and other.verdict is Verdict.HELD:
                named = f"{setting.by} {str(value).removesuffix('.0')}"
                numbers = f"{claim.numbers}; with {named} it holds: {other.numbers}"
                return replace(claim, numbers=numbers, verdict=Verdict.NOT_STATED)
    return claim


def _register() -> None:
    boosting = ("boosting",)
    surrogate, tails = ("surrogate", "surrogate_network"), ("heavy_tails", "heavy_tails_network")
    parts: dict[str, tuple[tuple[str, ...], Callable[..., Made], Claims]] = {
        "fig1": (boosting, _p_values, sentences.fig1),
        "fig3": (boosting, _metrics, sentences.fig3),
        "fig4": (surrogate, partial(_sweep, over="rho", features=["x1", "x2", "x3"]),
                 sentences.fig4),
        "fig5": (tails, partial(_sweep, over="df", features=["x1", "x2", "x5"]), sentences.fig5),
        "fig6": (("network",), _metrics, sentences.fig6),
        "fig7": (("wide_boosting",), _metrics, sentences.fig7),
        "sfig1": (("canonical",), _p_values, sentences.sfig1),
        "sfig2": (("kernel",), _p_values, sentences.sfig2),
        "sfig3": (("kernel",), _metrics, sentences.sfig3),
        "sfig4": (("wide_kernel",), _metrics, sentences.sfig4),
    }  # fmt: skip
    for name, (studies, make, claims) in parts.items():
        made = partial(make, name=name, studies=studies, claims=claims)
        add(Figure(name, ABOUT[name], made, studies, caption=CAPTIONS[name]))
    add(Figure("fig2", ABOUT["fig2"], assumption_figure, modes=False, caption=CAPTIONS["fig2"]))


assert all(setting.study in STUDIES for of in OPEN.values() for setting in of)
_register()
