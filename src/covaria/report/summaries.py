"""A Result as plain facts that json could hold; everything the page says is here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from covaria.report.alerts import all_alerts
from covaria.report.facts import (
    AboutFacts,
    Facts,
    MethodFacts,
    SetFacts,
    StabilityFacts,
    StabilityPage,
    TestFacts,
    TimesFacts,
    VerdictFacts,
)
from covaria.report.words import answer, methods_paragraph, references, snippet
from covaria.results.result import (
    Result,
    describe_effect,
    describe_p,
    is_combination,
    lines_of,
    mattering,
)

if TYPE_CHECKING:
    import pandas as pd

    from covaria.selection.stability import Stability

# The page compares tests in detail for this many features, the clearest.
MOST_COMPARED = 40


def summarize(result: Result, *, title: str | None = None) -> Facts:
    """Return the facts of a result, in the order a reader wants them."""
    verdicts = _verdicts(result)
    matter = [row["feature"] for row in verdicts if row["matters"]]
    return {
        "title": title or f"What matters for {result.about.target}",
        "headline": result.headline,
        "answer": answer(result, matter),
        "selected": result.selected,
        "alerts": all_alerts(result),
        "methods": [_method(result, name) for name in ordered(result.methods)],
        "verdicts": verdicts,
        "sets": _sets(result),
        "quality": lines_of(result.quality),
        "cost": lines_of(result.cost),
        "efficiency": compared(result, [row["feature"] for row in verdicts]),
        "paragraph": methods_paragraph(result),
        "references": references(result),
        "repeat": snippet(result),
        "about": cast(AboutFacts, dict(result.about)),
    }


def _sets(result: Result) -> list[SetFacts]:
    """Return the sets of two and more features that were tested together, the largest first."""
    return [
        {
            "features": list(row["features"]),
            "p_value": float(row["p_value"]),
            "p_adjusted": float(row["p_adjusted"]),
            "p_text": describe_p(float(row["p_adjusted"])),
            "verdict": str(row["verdict"]),
            "smallest": bool(row["smallest"]),
        }
        for row in result.groups.to_dict(orient="records")
        if len(row["features"]) > 1
    ]


def ordered(methods: list[str]) -> list[str]:
    """Return the methods with the verdict first."""
    return sorted(methods, key=lambda name: not is_combination(name))


def _method(result: Result, name: str) -> MethodFacts:
    about = result.about
    own = result.table[result.table["method"] == name]
    return {
        "name": name,
        "tests": bool(own["p_value"].notna().any()),
        "has_effect": bool(own["effect"].notna().any()),
        "effect": about.effects[name],
        "alternative": about.methods[name],
        "fits": about.fits[name],
        "seconds": about.seconds[name],
    }


def _verdicts(result: Result) -> list[VerdictFacts]:
    tests: dict[str, list[TestFacts]] = {name: [] for name in result.features}
    for line in result.lines:
        tests[line["feature"]].append(_test(line, result.about.methods))
    for own in tests.values():
        own.sort(key=lambda test: not is_combination(test["method"]))
    pairs = zip(result.verdicts["feature"], result.verdicts["verdict"], strict=True)
    matter = set(mattering(result))
    return [
        {"feature": f, "verdict": verdict, "matters": f in matter, "tests": tests[f]}
        for f, verdict in pairs
    ]


def _test(line: Mapping[str, Any], sides: Mapping[str, str]) -> TestFacts:
    kept = ("method", "estimate", "std_error", "low", "high", "statistic", "p_value", "p_adjusted",
            "status", "df", "effect", "effect_low", "effect_high")  # fmt: skip
    facts = {
        **{name: line[name] for name in kept},
        "selected": bool(line["selected"]),
        "effect_text": describe_effect(line, sides.get(line["method"], "")),
        "p_text": _p_text(line),
    }
    return cast(TestFacts, facts)


def _p_text(line: Mapping[str, Any]) -> str:
    if line["p_adjusted"] is None:
        return "chosen" if line["selected"] else "not chosen"
    return describe_p(line["p_adjusted"])


def compared(result: Result, clearest: list[str]) -> dict[str, object]:
    """Return which of two tests to trust, feature by feature, and all tests side by side.

    Where GCM and LOCO were run it is these two that the theorems speak of; else the first two.
    """
    from covaria.efficiencies import efficiency

    tests = [name for name in ordered(list(result.scores)) if not is_combination(name)]
    if len(tests) < 2:
        return {}
    pair = ["gcm", "loco"] if {"gcm", "loco"} <= set(tests) else tests[:2]
    table = efficiency(result.only(*pair))
    rows = {row["feature"]: row for row in lines_of(table)}
    return {
        "pair": pair,
        "rows": [rows[feature] for feature in clearest[:MOST_COMPARED]],
        "left_out": max(0, len(clearest) - MOST_COMPARED),
        "has_a": any(row["assumption_a"] is not None for row in rows.values()),
        "trust": _counted(table, pair),
    }


def _counted(table: pd.DataFrame, pair: list[str]) -> dict[str, int]:
    """Return for how many features each test of a pair, both or neither is the one to trust."""
    are, low, high = (table[name].to_numpy(float) for name in ("are", "low", "high"))
    neither = np.isnan(are)  # no number: neither test sees the feature
    first = ~neither & (np.isinf(are) | (low > 1))
    second = ~neither & ~first & (high < 1)
    either = ~(neither | first | second)
    counts = {pair[0]: first, pair[1]: second, "either": either, "neither": neither}
    return {name: int(own.sum()) for name, own in counts.items()}


def summarize_stability(found: Stability, *, title: str | None = None) -> StabilityPage:
    """Return the facts of a stability run."""
    return {
        "title": title or f"What is stable for {found.about['target']}",
        "answer": found.headline,
        "alerts": list(found.alerts),
        **stability_facts(found),
        "about": dict(found.about),
    }


def stability_facts(found: Stability) -> StabilityFacts:
    """Return how often each feature was selected, by method, the most often first."""
    about = found.about
    by_feature: dict[str, dict[str, TimesFacts]] = {name: {} for name in found.features}
    for row in lines_of(found.table):
        by_feature[row["feature"]][row["method"]] = cast(TimesFacts, row)
    order = sorted(
        by_feature, key=lambda name: -max(row["frequency"] for row in by_feature[name].values())
    )
    return {
        "methods": found.methods,
        "count": about["count"],
        "parts": about["parts"],
        "needed": about["needed"],
        "threshold": about["needed"] / about["count"],
        "expected_false": {m: dict(bounds) for m, bounds in found.expected_false.items()},
        "rows": [
            {"feature": name, "by": [by_feature[name][method] for method in found.methods]}
            for name in order
        ],
    }
