"""Options under names that people know from elsewhere: each is told what it is called here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from covaria.errors import InputError, did_you_mean, short

P = ParamSpec("P")
R = TypeVar("R")

# What scikit-learn, R and others call it, and what `assess` does.
FAMILIAR = {
    "random_state": "seed",
    "random_seed": "seed",
    "rng": "seed",
    "cv": "splits",
    "n_splits": "splits",
    "n_folds": "splits",
    "folds": "splits",
    "test_size": "splits",
    "train_size": "splits",
    "splitter": "splits",
    "estimator": "learner",
    "base_estimator": "learner",
    "model": "learner",
    "regressor": "learner",
    "classifier": "learner",
    "clf": "learner",
    "tests": "methods",
    "scoring": "loss",
    "scorer": "loss",
    "metric": "loss",
    "loss_function": "loss",
    "n_repeats": "repeats",
    "n_permutations": "permutations",
    "n_features_to_select": "top",
    "max_features": "top",
    "k": "top",
    "weights": "sample_weight",
    "sample_weights": "sample_weight",
    "cluster": "clusters",
    "feature_groups": "groups",
    "level": "alpha",
    "fdr": "alpha",
    "q": "alpha",
    "p_adjust": "correction",
    "multitest": "correction",
    "confidence_level": "confidence",
    "verbose": "progress",
    "n_workers": "n_jobs",
    "n_threads": "n_jobs",
    "target": "y",
    "data": "X",
}
# What has no counterpart, and why.
EXPLAINED = {
    "prefit": "give a fitted model as learner=covaria.Prefit(model), or the estimator as learner=",
    "feature_names": "names of columns come from a dataframe, so give one as X",
    "categorical_features": "columns of text or of a category dtype are categories: "
    "X.astype({'column': 'category'})",
}
# Values are said in another way.
HINTS = {
    "test_size": " (0.33 holds out a third)",
    "cv": " (5, a share, or a scikit-learn splitter)",
    "verbose": " (a function of done and total)",
    "n_repeats": " (cross-fits with new folds; shuffles of the permutation test are permutations=)",
}


class UnknownOption(InputError, TypeError):
    """An option that a function does not have; the message says which one is meant."""


def unknown_option(
    name: str, known: Iterable[str], renamed: Mapping[str, str] | None = None, where: str = ""
) -> UnknownOption:
    """Return the error for an option that is not known: what to use in its place.

    `renamed` has the names under which a door has the options of `assess`.

    >>> str(unknown_option("random_state", ["seed"]))
    "There is no option 'random_state': use seed=."
    """
    known = list(known)
    what = f"{where or 'There'} {'has' if where else 'is'} no option '{short(name)}'"
    if name in EXPLAINED:
        return UnknownOption(f"{what}: {EXPLAINED[name]}.")
    meant = FAMILIAR.get(name, name)
    meant = (renamed or {}).get(meant, meant)
    if meant in known and meant != name:
        return UnknownOption(f"{what}: use {meant}={HINTS.get(name, '')}.")
    if "options" in known and meant in _of_assess():
        return UnknownOption(f"{what}: use options={{'{meant}': …}}{HINTS.get(name, '')}.")
    return UnknownOption(f"{what}.{did_you_mean(name, known)}")


def _of_assess() -> set[str]:
    return {*FAMILIAR.values(), "paper", "validity", "alternative", "check", "extrapolate"}


def knows_its_options(function: Callable[P, R], **renamed: str) -> Callable[P, R]:
    """Return a function that says of an option it does not have which one is meant."""
    parameters = inspect.signature(function).parameters
    named = [name for name in parameters if name != "self"]
    room = sum(p.kind is not p.KEYWORD_ONLY for p in parameters.values())
    is_init = "self" in parameters

    @wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        where = type(args[0]).__name__ if is_init else function.__name__
        for name in options:
            if name not in named:
                raise unknown_option(name, named, renamed, where)
        if len(args) > room:
            first = " and ".join(named[: room - is_init])
            raise UnknownOption(f"{where} takes {first}; give all else by name, as in seed=1.")
        return function(*args, **options)

    return checked
