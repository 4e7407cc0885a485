"""A Result as plain facts that json could hold; everything the page says is here."""

from __future__ import annotations

from typing import Any

from residua.result import Result, describe_effect, describe_p


def summarize(result: Result) -> dict[str, Any]:
    """Return the facts of a result, in the order a reader wants them."""
    about = dict(result.about)
    return {
        "title": f"What matters for {about['target']}",
        "headline": result.headline,
        "selected": result.selected,
        "alerts": list(result.alerts),
        "methods": [_method(result, name) for name in result.methods],
        "verdicts": _verdicts(result),
        "paragraph": methods_paragraph(result),
        "about": about,
    }


def _method(result: Result, name: str) -> dict[str, Any]:
    about = result.about
    return {
        "name": name,
        "tests": name in result.scores,
        "effect": about["effects"][name],
        "alternative": about["methods"][name],
        "fits": about["fits"][name],
        "seconds": about["seconds"][name],
    }


def _verdicts(result: Result) -> list[dict[str, Any]]:
    tests: dict[str, list[dict[str, Any]]] = {name: [] for name in result.features}
    for line in result.lines:
        tests[line["feature"]].append(_test(line))
    pairs = zip(result.verdicts["feature"], result.verdicts["verdict"], strict=True)
    return [{"feature": f, "verdict": verdict, "tests": tests[f]} for f, verdict in pairs]


def _test(line: dict[Any, Any]) -> dict[str, Any]:
    kept = ("method", "effect", "effect_low", "effect_high", "p_value", "p_adjusted", "status")
    return {
        **{name: line[name] for name in kept},
        "selected": bool(line["selected"]),
        "effect_text": describe_effect(line),
        "p_text": _p_text(line),
    }


def _p_text(line: dict[str, Any]) -> str:
    if line["p_adjusted"] is None:
        return "chosen" if line["selected"] else "—"
    return describe_p(line["p_adjusted"])


_LONG_NAMES = {
    "gcm": "the generalised covariance measure (Shah and Peters 2020)",
    "loco": "leave-one-covariate-out (Lei et al. 2018)",
    "dropout": "dropout importance (feature set to its mean)",
    "permutation": "permutation importance (Breiman 2001)",
    "lazy": "Lazy-VI (Gao et al. 2022)",
    "lasso": "the lasso (Tibshirani 1996)",
    "knockoffs": "model-X knockoffs (Candès et al. 2018)",
}
_CORRECTIONS = {
    "bh": "the Benjamini–Hochberg procedure",
    "by": "the Benjamini–Yekutieli procedure",
    "holm": "Holm's procedure",
    "bonferroni": "the Bonferroni correction",
    "storey": "Storey's procedure",
    "none": "no correction for multiplicity",
}


def methods_paragraph(result: Result) -> str:
    """Return the methods in words, ready to paste into a paper."""
    about = result.about
    tests = " and ".join(
        f"{_LONG_NAMES.get(name.split('(')[0], name)} ({about['methods'][name]})"
        for name in result.methods
    )
    repeats = f", repeated {about['repeats']} times" if about["repeats"] > 1 else ""
    return (
        f"Whether each of {about['n_features']} features helps to predict {about['target']} given "
        f"the others was tested by {tests} on {about['n_tested']:,} observations, with "
        f"regressions fitted by {about['learner_text']} ({about['splits']}{repeats}). The p-values "
        f"were adjusted by {_CORRECTIONS[about['correction']]} at level {about['alpha']:g}. "
        f"Computed with residua {about['versions'].get('residua', '')} (seed {about['seed']})."
    )
