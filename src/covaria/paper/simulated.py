"""The simulated figures: what each reads, shows and is claimed to show."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from covaria import plots
from covaria.paper.assumption import assumption_figure
from covaria.paper.evidence import Evidence, number, summary_of
from covaria.paper.registry import ABOUT, Figure, Made, add
from covaria.paper.run import Results, Run
from covaria.paper.studies import DF, FOUR, LETTERED, RHO, SHOWN, SIX
from covaria.studies.metrics import METRICS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LETTER = dict(zip(LETTERED, "abcd", strict=True))
LEARNERS = {"boosting": "boosting", "network": "the network", "kernel": "the kernel machine"}
LARGE, SMALL = ["x1", "x2", "x3", "x4"], ["x7", "x8"]
Claims = Callable[[Evidence], None]


# --- how a figure is put together ---------------------------------------------------------


def _p_values(run: Run, name: str, study: str, claims: Claims) -> Made:
    """Return a figure of mean p-values by feature, a panel a model."""
    found = run.of(study)
    table = found.features[found.features["p_mean"].notna()]
    table = table.assign(method=table["method"].map(SHOWN))
    parts = {f"({LETTER[s]}) {s}": table[table["scenario"] == s] for s in LETTERED}
    return _made(name, found, table, claims, lambda: plots.p_value_panels(parts))


def _metrics(run: Run, name: str, study: str, claims: Claims) -> Made:
    """Return a figure of metrics and time by method, a row a model."""
    found = run.of(study)
    table = summary_of(found.runs)
    link = table.get("link")
    labels = [f"({LETTER[s]})" for s in table["scenario"]]
    if link is not None:
        given = [v if isinstance(v, str) else "" for v in link]
        labels = [f"{a} {b}".strip() for a, b in zip(labels, given, strict=True)]
    shown = table.assign(model=labels)
    draw = partial(
        plots.metric_panels, shown, rows="model", metrics=[*METRICS, "seconds"]
    )  # fmt: skip
    return _made(name, found, table, claims, draw)


def _sweep(run: Run, name: str, study: str, over: str, features: list[str], claims: Claims) -> Made:
    """Return a figure of metrics and p-values over a parameter, a row a learner."""
    import pandas as pd

    found = run.of(study)
    table = summary_of(found.runs)
    table = table[~table["method"].str.startswith("guess")]
    keys = ["scenario", "setting", over, "learner", "options", "method"]
    p = found.features[found.features["feature"].isin(features)]
    p = p.assign(metric="p of " + p["feature"], method=p["method"].map(SHOWN))
    p = p.rename(columns={"p_mean": "mean", "p_sd": "sd", "p_se": "se"})
    both = pd.concat([p[[*keys, "metric", "runs", "mean", "sd", "se"]], table], ignore_index=True)
    shown = both.assign(learner=both["learner"].str.split("(").str[0])
    names = [*(f"p of {f}" for f in features), "recall", "f1", "fdr"]
    draw = partial(plots.sweep_panels, shown, over=over, rows="learner", metrics=names)
    return _made(name, found, both, claims, draw)


def _made(
    name: str, found: Results, table: pd.DataFrame, claims: Claims, draw: Callable[[], Axes]
) -> Made:
    evidence = Evidence(name, found)
    claims(evidence)
    return Made(table, evidence.claims, draw, found.repeats, (found.made_by,))


# --- the claims ---------------------------------------------------------------------------


def _fig1(e: Evidence) -> None:
    e.similar("f1", FOUR, "in (a)", 0.05, scenario="linear")
    e.higher("recall", "gcm", "loco", "in (b)", scenario="additive")
    ratio_above_1 = ["x4", "x5", "x6", "x7", "x8"]
    shares = [(e.share(f, "gcm", scenario="additive"), e.share(f, "loco", scenario="additive"))
              for f in ratio_above_1]  # fmt: skip
    e.add(
        "GCM finds x4 to x8 of (b), whose ratio (A) is above 1, at least as often as LOCO",
        ", ".join(f"{number(a)} vs {number(b)}" for a, b in shares),
        all(a >= b for a, b in shares),
    )
    e.misses(["gcm"], ["x1", "x2"], "in (b), even functions", 0.1, scenario="additive")
    e.at_most("recall", FOUR, "in (c)", 0.5, scenario="interaction")
    e.finds(FOUR, LARGE, "in (d), large weights", 0.8, scenario="single_index")
    e.misses(FOUR, SMALL, "in (d), small weights", 0.5, scenario="single_index")


def _fig3(e: Evidence) -> None:
    for metric in ("accuracy", "f1"):
        e.best(metric, "lasso", "in (a)", scenario="linear")
        e.higher(metric, "gcm", ("knockoffs", "lasso"), "in (b)", scenario="additive")
    e.higher("f1", "gcm", "loco", "in (b)", scenario="additive")
    e.at_most("fdr", ["gcm"], "in (b)", 0.1, scenario="additive")
    e.time_ratio("loco", "gcm", "in (b)", 0.35, 0.65, scenario="additive")
    e.at_most("recall", SIX, "in (c)", 0.5, scenario="interaction")
    e.higher(
        "seconds",
        "gcm",
        ("loco", "dropout", "permutation", "lasso", "knockoffs"),
        "over (a) to (d)",
    )
    e.higher("seconds", "loco", ("dropout", "permutation"), "over (a) to (d)")
    e.higher("seconds", "knockoffs", "lasso", "over (a) to (d)")
    e.higher(
        "f1", "gcm", ("loco", "dropout", "permutation", "lasso", "knockoffs"), "over (a) to (d)"
    )


def _fig4(e: Evidence) -> None:
    for learner, named in LEARNERS.items():
        found = [e.share("x1", "gcm", learner=learner, rho=rho) for rho in RHO]
        e.add(
            f"GCM finds x1 at every rho with {named} (each in at least .90 of the runs)",
            ", ".join(map(number, found)), min(found) >= 0.9,
        )  # fmt: skip
        loco = [e.share("x1", "loco", learner=learner, rho=rho) for rho in RHO]
        spread = [max(s) - min(s) for s in (found, loco)]
        e.add(
            f"LOCO finds x1 less evenly over rho than GCM with {named} (range of the shares)",
            f"GCM {number(spread[0])}, LOCO {number(spread[1])}", spread[1] > spread[0],
        )  # fmt: skip
        e.higher("fdr", "loco", "gcm", f"over all rho with {named}", learner=learner)
        e.misses(("gcm", "loco"), ["x3", "x4"], f"with {named}", 0.5, learner=learner)
        for metric in ("f1", "recall"):
            e.higher(metric, "gcm", "loco", f"over all rho with {named}", learner=learner)


def _fig5(e: Evidence) -> None:
    for learner, named in LEARNERS.items():
        for metric in ("f1", "recall"):
            e.higher(metric, "gcm", "loco", f"over all df with {named}", learner=learner)
        e.lower("fdr", "gcm", "loco", f"over all df with {named}", learner=learner)
        over = {m: [e.mean("f1", m, learner=learner, df=df) for df in DF] for m in ("gcm", "loco")}
        e.add(
            f"LOCO's F1 improves from df = 3 to normal features with {named}",
            f"{number(over['loco'][0])} to {number(over['loco'][-1])}",
            over["loco"][-1] > over["loco"][0],
        )
        spread = {m: max(f) - min(f) for m, f in over.items()}
        e.add(
            f"GCM's F1 is more stable over df than LOCO's with {named} (range)",
            f"GCM {number(spread['gcm'])}, LOCO {number(spread['loco'])}",
            spread["gcm"] < spread["loco"],
        )


def _fig6(e: Evidence) -> None:
    methods = ("gcm", "loco", "dropout", "lazy")
    where = {
        "in (b)": {"scenario": "additive"},
        "in (d)": {"scenario": "single_index", "link": "sigmoid"},
    }
    for place, part in where.items():
        for metric in ("accuracy", "f1", "recall"):
            e.best(metric, "gcm", place, **part)
        e.similar("f1", ("loco", "lazy"), place, 0.1, **part)
    e.higher("seconds", "gcm", ("loco", "dropout", "lazy"), "over all models")
    e.lower("seconds", "lazy", "loco", "over all models")
    e.at_most("recall", methods, "in (c)", 0.5, scenario="interaction")
    e.at_most("f1", methods, "in (d) with the Gaussian link", 0.5, scenario="single_index",
              link="gaussian")  # fmt: skip


def _fig7(e: Evidence) -> None:
    for scenario, place in (("linear", "in (a)"), ("additive", "in (b)")):
        e.at_least("f1", ["knockoffs"], place, 0.7, scenario=scenario)
        e.at_most("fdr", ["knockoffs"], place, 0.2, scenario=scenario)
    e.best("f1", "lasso", "in (a)", scenario="linear")
    for metric in ("accuracy", "recall", "f1"):
        e.higher(metric, "gcm", ("loco", "dropout", "permutation"), "in (a)", scenario="linear")
    for rival in ("loco", "dropout", "permutation"):
        e.no_worse("f1", "gcm", rival, "in (b)", 0.02, scenario="additive")
    e.higher("seconds", "gcm", ("loco", "dropout", "permutation"), "over (a) and (b)")


def _sfig1(e: Evidence) -> None:
    e.at_least("recall", FOUR, "in (a)", 0.8, scenario="linear")
    gcm, loco = (e.share("x1", m, scenario="linear") for m in ("gcm", "loco"))
    e.add("GCM finds x1 of (a), the smallest coefficient, more often than LOCO",
          f"{number(gcm)} vs {number(loco)}", gcm > loco)  # fmt: skip
    p = e.features[(e.features["scenario"] == "linear") & (e.features["active"].astype(bool))]
    p = p.pivot_table(index="feature", columns="method", values="p_mean")
    gap = p[["loco", "dropout", "permutation"]]
    worst = float((gap.max(axis=1) - gap.min(axis=1)).max())
    e.add("LOCO, dropout and permutation have almost the same p-values in (a) (within .10)",
          f"largest gap of a mean {number(worst)}", worst <= 0.1)  # fmt: skip
    e.finds(["gcm"], ["x3", "x4", "x5", "x6", "x7", "x8"], "in (b)", 0.8, scenario="additive")
    e.misses(["gcm"], ["x1", "x2"], "in (b), even functions", 0.1, scenario="additive")
    e.at_most("recall", FOUR, "in (c)", 0.5, scenario="interaction")
    for scenario, place in (("linear", "in (a)"), ("single_index", "in (d)")):
        e.higher("f1", "gcm", "loco", place, scenario=scenario)


def _sfig2(e: Evidence) -> None:
    for method in ("dropout", "permutation"):
        alarms = e.false_alarms(method, scenario="additive")
        e.add(f"{SHOWN[method]} loses control of false alarms in (b) (above .10 of the nulls)",
              number(alarms), alarms > 0.1)  # fmt: skip
    for method in ("gcm", "loco"):
        alarms = e.false_alarms(method, scenario="additive")
        e.add(f"{SHOWN[method]} keeps false alarms in (b) at most .10 of the nulls",
              number(alarms), alarms <= 0.1)  # fmt: skip
    e.at_least("recall", ("dropout", "permutation"), "in (b)", 0.8, scenario="additive")
    e.at_most("specificity", ("dropout", "permutation"), "in (b)", 0.5, scenario="additive")


def _sfig3(e: Evidence) -> None:
    e.time_ratio("loco", "gcm", "over (a) to (d)", 0.35, 0.65)
    e.higher("recall", "gcm", "loco", "in (b)", scenario="additive")
    for metric in ("accuracy", "f1"):
        e.higher(metric, "gcm", ("knockoffs", "lasso"), "in (b)", scenario="additive")


def _sfig4(e: Evidence) -> None:
    for scenario, place in (("linear", "in (a)"), ("additive", "in (b)")):
        e.at_least("f1", ("knockoffs", "lasso"), place, 0.7, scenario=scenario)
        e.higher("f1", "gcm", ("loco", "dropout", "permutation"), place, scenario=scenario)


def _register() -> None:
    about = ABOUT
    parts: dict[str, tuple[str, Callable[[Run], Made]]] = {
        "fig1": ("boosting", partial(_p_values, name="fig1", study="boosting", claims=_fig1)),
        "fig3": ("boosting", partial(_metrics, name="fig3", study="boosting", claims=_fig3)),
        "fig4": ("surrogate", partial(_sweep, name="fig4", study="surrogate", over="rho",
                                      features=["x1", "x2", "x3"], claims=_fig4)),
        "fig5": ("heavy_tails", partial(_sweep, name="fig5", study="heavy_tails", over="df",
                                        features=["x1", "x2", "x5"], claims=_fig5)),
        "fig6": ("network", partial(_metrics, name="fig6", study="network", claims=_fig6)),
        "fig7": ("wide_boosting", partial(_metrics, name="fig7", study="wide_boosting",
                                          claims=_fig7)),
        "sfig1": ("canonical", partial(_p_values, name="sfig1", study="canonical", claims=_sfig1)),
        "sfig2": ("kernel", partial(_p_values, name="sfig2", study="kernel", claims=_sfig2)),
        "sfig3": ("kernel", partial(_metrics, name="sfig3", study="kernel", claims=_sfig3)),
        "sfig4": ("wide_kernel", partial(_metrics, name="sfig4", study="wide_kernel",
                                         claims=_sfig4)),
    }  # fmt: skip
    for name, (study, make) in parts.items():
        add(Figure(name, about[name], make, (study,)))
    add(Figure("fig2", about["fig2"], assumption_figure, modes=False))


_register()
