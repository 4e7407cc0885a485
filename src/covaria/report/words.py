"""Sentences about a result: the answer, the methods for a paper, how to repeat it."""

from __future__ import annotations

from covaria.assessment import defaults
from covaria.errors import plural, short
from covaria.methods import method_of
from covaria.results.about import About
from covaria.results.grouping import sentences
from covaria.results.result import Result, describe_p
from covaria.results.settings import as_python

EFFICIENCY = (
    "Zheng, C. and Raskutti, G. Comparing model-agnostic feature selection methods through "
    "relative efficiency."
)
CORRECTIONS = {
    "bh": "the Benjamini–Hochberg procedure",
    "by": "the Benjamini–Yekutieli procedure",
    "holm": "Holm's procedure",
    "bonferroni": "the Bonferroni correction",
    "storey": "Storey's procedure",
    "none": "",
}
CORRECTION_REFERENCES = {
    "bh": "Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate. Journal "
    "of the Royal Statistical Society B 57, 289–300.",
    "by": "Benjamini, Y. and Yekutieli, D. (2001). The control of the false discovery rate in "
    "multiple testing under dependency. Annals of Statistics 29, 1165–1188.",
    "holm": "Holm, S. (1979). A simple sequentially rejective multiple test procedure. "
    "Scandinavian Journal of Statistics 6, 65–70.",
    "storey": "Storey, J. D. (2002). A direct approach to false discovery rates. Journal of the "
    "Royal Statistical Society B 64, 479–498.",
}


def base(method: str) -> str:
    """Return a method's name without its settings.

    >>> base("knockoffs(fdr=0.1)")
    'knockoffs'
    """
    return method.split("(")[0]


def joined(words: list[str]) -> str:
    """Return words as a list in a sentence.

    >>> joined(["a", "b", "c"]), joined(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def answer(result: Result, matter: list[str], most: int = 8) -> str:
    """Return the answer: which sets and features matter, and on what ground."""
    about = result.about
    count = f"{len(matter)} of {plural(len(result.features), 'feature')}"
    names = [short(name, 40) for name in matter[:most]]
    if len(matter) > most:
        names.append(f"{len(matter) - most} more")
    which = f": {joined(names)}" if names else ""
    matters = "matters" if len(matter) == 1 else "matter"
    if about.top is not None:
        matters = f"chosen (top={about.top}, whatever their p-values)"
    singles = f"{count} {matters} for {short(about.target)}{which}. {_ground(result)}"
    return " ".join([*sentences(result.groups, matter, describe_p), singles])


def _ground(result: Result) -> str:
    about = result.about
    tested = f"Tested by {joined(result.methods)} on {plural(about.n_tested, 'row')}"
    named = CORRECTIONS[about.correction]
    level = f"at level {about.alpha:g}{f' after {named}' if named else ', unadjusted'}"
    share = explained(result)
    if share is None:
        return f"{tested} {level}."
    well = (
        f"explains {100 * share:.0f}% of the target" if share > 0 else "does no better than a mean"
    )
    return f"{tested} {level}; {short(learner_name(result))} {well} out of fold."


def learner_name(result: Result) -> str:
    """Return the learner without its settings."""
    return str(result.about.learner_text).split("(")[0].lower() or "the learner"


def explained(result: Result) -> float | None:
    """Return the share of the target that the full model explains, where it is known."""
    quality = result.quality
    if not {"regression", "r2"} <= set(quality.columns):
        return None
    found = quality.loc[quality["regression"] == "y given all", "r2"]
    return float(found.iloc[0]) if len(found) else None


def _version(about: About) -> str:
    """Return the version that made a result; the project was called residua."""
    versions = about.versions
    return str(versions.get("covaria") or versions.get("residua", ""))


def _long_name(name: str) -> str:
    method = method_of(name)
    return method.long_name or name if method else name


def methods_paragraph(result: Result) -> str:
    """Return the methods in words, ready to paste into a paper."""
    about = result.about
    tests = joined([f"{_long_name(name)} ({about.methods[name]})" for name in result.methods])
    repeats = f", repeated {about.repeats} times" if about.repeats > 1 else ""
    named = CORRECTIONS[about.correction]
    adjusted = (
        f"The p-values were adjusted by {named} at level {about.alpha:g}."
        if named
        else f"The p-values were compared with {about.alpha:g}, without adjustment."
    )
    return (
        f"Whether {_tested(about)} to predict {short(about.target)} "
        f"given the others was tested by {tests} on {about.n_tested:,} observations, with "
        f"regressions fitted by {short(about.learner_text, 200)} ({about.splits}{repeats}). "
        f"{_measured(about)}{adjusted} "
        f"Computed with covaria {_version(about)} (seed {about.seed})."
    )


def _measured(about: About) -> str:
    return f"Gains were measured by the {short(about.loss)}. " if about.loss else ""


def _tested(about: About) -> str:
    if not about.n_others:
        return f"each of {about.n_features} features helps"
    tested = "one" if about.n_features == 1 else f"each of {about.n_features}"
    return f"{tested} of {about.n_features + about.n_others} features helps"


def references(result: Result) -> list[str]:
    """Return the references of the methods that were used, in the order of the alphabet."""
    parts = {part for name in result.methods for part in (base(name), *base(name).split("+"))}
    found = [method.reference for part in sorted(parts) if (method := method_of(part))]
    found += [CORRECTION_REFERENCES.get(result.about.correction, "")]
    if len(result.scores) > 1:
        found.append(EFFICIENCY)
    return sorted(text for text in set(found) if text)


def snippet(result: Result) -> str:
    """Return Python that repeats the run."""
    return as_python(result.settings, defaults(), result.about.formula)
