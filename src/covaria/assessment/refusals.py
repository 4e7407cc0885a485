"""What cannot be had: each refusal is one sentence with the cure in it."""

from __future__ import annotations

from dataclasses import replace

from covaria.assessment.request import Request
from covaria.errors import InputError
from covaria.learners import Prefit
from covaria.methods import NOT_PREFIT, Method, SelectionMethod, deciding
from covaria.nuisance.plan import Lazy
from covaria.nuisance.splits import can_be_redrawn


def check(job: Request) -> None:
    """Raise a sentence where what was asked for cannot be had."""
    data, learner, options = job.data, job.learner, job.options
    learner.check(n_classes=data.n_classes, weighted=data.weights is not None)
    _check_methods(job)
    if data.is_survival and (isinstance(learner, Prefit) or job.given is not None):
        raise InputError(
            "With event models of hazard ratios are fitted here: give a learner, not a prefit "
            "model or predictions."
        )
    if data.outputs is not None:
        _check_several(job)
    if options.margin is not None:
        _check_margin(job)
    if options.effect:
        _check_effect(job, options.effect)
    _check_in_sample(job)
    if data.kept is not None and not can_be_redrawn(options.splits):
        raise InputError(
            "splits as lists of row numbers do not go with missing_target='drop', which leaves "
            "rows out. Drop them first, or use a number of folds."
        )
    if job.finds_groups and not deciding(job.methods):
        raise InputError("groups='auto' tests sets of features, so it needs a test such as gcm.")
    if options.repeats > 1 and not isinstance(options.splits, (int, float)):
        raise InputError("repeats needs splits that can be redrawn: a number of folds or a share.")


def _check_margin(job: Request) -> None:
    """Raise a sentence where no share of Var(Y) can be bounded."""
    if job.data.is_survival or job.data.outputs is not None:
        raise InputError("margin is a share of Var(Y) of one target of numbers or classes.")
    if job.options.in_sample:
        raise InputError("margin needs held-out rows, as in sample no bound holds. Use splits=5.")


def _check_effect(job: Request, effect: str) -> None:
    """Raise a sentence where there is no coefficient."""
    if job.data.is_survival:
        raise InputError(f"effect='{effect}' is of a target of numbers, not of times.")
    if not any(isinstance(method, Method) and method.coefficient for method in job.methods):
        raise InputError(f"effect='{effect}' is one of GCM's: add gcm to the methods.")
    if job.data.n_classes > 2:
        raise InputError(
            f"effect='{effect}' needs a target of numbers or of two classes, not of "
            f"{job.data.n_classes}."
        )


def _check_in_sample(job: Request) -> None:
    """Raise a sentence where a test is not for rows that its models have seen, or only for them."""
    options, is_linear = job.options, job.learner.is_linear
    tests = [method for method in job.methods if isinstance(method, Method)]
    flattered = [method.name.split("(")[0] for method in tests if method.of_one_model]
    if flattered and options.in_sample and not options.paper and not is_linear:
        raise InputError(
            f"In sample, {' and '.join(flattered)} with a flexible learner reject nearly every "
            "null. Use splits=5, or paper=True to repeat the paper."
        )
    if options.validity == "signed_root" and not (options.in_sample and is_linear):
        raise InputError("validity='signed_root' is for learner='linear' with splits='none'.")


def _check_methods(job: Request) -> None:
    """Raise a sentence where a method is not for this learner, target or split."""
    held_out = [m.name for m in job.methods if isinstance(m, Method) and m.held_out]
    if held_out and job.options.in_sample:
        raise InputError(
            f"{held_out[0]} tests a function that it first learns, so it needs held-out rows. "
            "Use splits=5, or gcm and loco in sample."
        )
    refitted = [m.name for m in job.methods if m.name.split("(")[0] in NOT_PREFIT]
    if refitted and isinstance(job.learner, Prefit):
        raise InputError(
            f"{refitted[0]} compares with a model that was refitted without the feature, and a "
            f"prefit model is not refitted. Use pcm, cpi, permutation or dropout, or give the "
            "estimator itself as the learner."
        )
    limited = [m for m in job.methods if isinstance(m, Method) and m.learners]
    for method in limited:
        if job.learner.name not in method.learners:
            raise InputError(
                f"{method.name} needs learner='{method.learners[0]}': it linearises a network. "
                f"Use {'gcm' if method.two_sided else 'loco'} with other learners."
            )
        if job.data.rule is not None:
            raise InputError(
                f"{method.name} has squared error alone. Leave out loss, or use loco or dropout."
            )
        if job.data.classes:
            raise InputError(
                f"{method.name} is for a target of numbers. For classes use loco or dropout."
            )
    with_settings = [m.settings for m in limited if m.settings is not None]
    if len(with_settings) > 1 or len({_of_step(m.settings) for m in limited}) > 1:
        raise InputError("Ask for lazy once: all its settings share one run of the network.")


def _of_step(settings: Lazy | None) -> Lazy:
    """Return the settings of the step itself, whatever it is compared with."""
    return replace(settings or Lazy(), stepped=True)


def _check_several(job: Request) -> None:
    """Raise a sentence where something is of one target alone."""
    lonely = {
        "effect": job.options.effect, "loss": job.data.rule, "predictions": job.given,
        "a prefit model": isinstance(job.learner, Prefit),
        **{m.name: isinstance(m, SelectionMethod) or (isinstance(m, Method) and bool(m.learners))
           for m in job.methods},
    }  # fmt: skip
    for what, is_asked in lonely.items():
        if is_asked:
            raise InputError(f"{what} is of one target, and there are several. Leave out {what}.")
