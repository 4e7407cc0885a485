"""What was asked for together, as the options of one run say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from covaria.assessment.request import Request
from covaria.errors import InputError, short
from covaria.learners import Learner, Prefit, get_learner
from covaria.methods import PREFIT_METHODS, SEVERAL_METHODS, AnyMethod, SelectionMethod, get_methods
from covaria.nuisance.given import Elsewhere, Given
from covaria.nuisance.splits import can_be_redrawn
from covaria.results.options import Options
from covaria.tables.dataset import Dataset
from covaria.tables.files import opened
from covaria.tables.formulas import Formula, is_formula, read_formula
from covaria.tables.layout import named_groups
from covaria.tables.losses import Loss, Pinball
from covaria.tables.reading import aligned
from covaria.tables.sampling import at_hand

# Which predictions are of each feature; those of classes may be a frame as well.
BY_FEATURE = ("predictions['y|rest']", "predictions['x|rest']")
R = TypeVar("R", bound=Request)


@dataclass(frozen=True)
class AskedTable:
    """A table that is at hand, with what a formula or a sample made of what was asked for."""

    X: object
    y: object
    groups: Mapping[str, Sequence[str]] | None
    features: Sequence[str] | None
    formula: str = ""
    notes: tuple[str, ...] = ()


def table_of(
    X: object,
    y: object,
    groups: Mapping[str, Sequence[str]] | None,
    features: Sequence[str] | None,
    beside: Mapping[str, object],
    *,
    rows: int | None,
    seed: object,
    splits: object,
    predictions: object,
) -> AskedTable:
    """Return the table of a file, a formula or a sample; `beside` are weights, clusters, events."""
    formula, X, y = (X, y, None) if is_formula(X) else (None, X, y)
    X, notes = opened(X)
    X, said = at_hand(X, rows, seed)
    if formula is not None:
        asked_for = read_formula(str(formula), X, beside.values())
        X, y, groups, features = _by_formula(asked_for, groups, features)
    if said:
        fixed = None if can_be_redrawn(splits) else splits
        check_sampled(y=y, **beside, predictions=predictions, splits=fixed)
    named = "" if formula is None else str(formula)
    return AskedTable(X, y, groups, features, named, (*notes, *said))


def read_methods(
    methods: str | Sequence[str],
    learner: Learner,
    data: Dataset,
    options: Options,
    *,
    has_loss: bool,
) -> list[AnyMethod]:
    """Return the methods asked for, or those that suit the learner and the targets."""
    if isinstance(learner, Prefit) and is_default(methods):
        methods = PREFIT_METHODS
    if data.outputs is not None and is_default(methods):
        methods = SEVERAL_METHODS
    return methods_of(methods, options, has_loss=has_loss)


def methods_of(
    methods: str | Sequence[str], options: Options, *, has_loss: bool = False
) -> list[AnyMethod]:
    """Return methods by their names, in the version that the options ask for."""
    return get_methods(
        methods,
        validity=options.validity,
        paper=options.paper,
        in_sample=options.in_sample,
        has_loss=has_loss,
    )


def learners_of(learner: Learner, rule: Loss | None) -> tuple[Learner, Learner | None]:
    """Return the learner, and that of y where a quantile of it is asked for."""
    if not isinstance(rule, Pinball):
        return learner, None
    from covaria.learners.quantiles import of_quantile

    return of_quantile(learner, rule.q)


def _by_formula(
    formula: Formula, groups: Mapping[str, Sequence[str]] | None, features: Sequence[str] | None
) -> tuple[object, str, Mapping[str, Sequence[str]] | None, Sequence[str] | None]:
    """Return table, target, groups and features as a formula and the options say together."""
    if features is not None:
        raise InputError(
            "A formula says what is tested: put what is not behind |, and leave out features."
        )
    together = {**(groups or {}), **formula.groups}
    tested = formula.features
    for name, members in named_groups(groups).items():
        if tested is not None and set(members) <= set(tested):
            tested = [name, *(one for one in tested if one not in members)]
    return formula.table, formula.target, together or None, tested


def check_sampled(**beside: object) -> None:
    """Raise where something beside a table has all of its rows, and the table some."""
    for name, value in beside.items():
        if value is not None and not isinstance(value, str) and not _are_names(name, value):
            raise InputError(
                f"A sample of the table's rows is drawn, and {name} lies beside it. Put it into "
                "the table and give the name of its column."
            )


def _are_names(what: str, value: object) -> bool:
    """Return whether several targets are named, as columns of the table."""
    is_list = what == "y" and isinstance(value, (list, tuple))
    return is_list and all(isinstance(one, str) for one in cast("Sequence[object]", value))


def is_default(methods: object) -> bool:
    return isinstance(methods, str) and methods == "default"


def in_order_of(X: object, predictions: Mapping[str, object]) -> object:
    """Return predictions in the order of X's row labels, where both have some."""

    def ordered(what: str, values: Any) -> object:
        if what in BY_FEATURE and hasattr(values, "columns"):  # a frame
            values = {name: values[name] for name in values.columns}
        if isinstance(values, Mapping):
            return {name: ordered(f"{what}['{name}']", one) for name, one in values.items()}
        return aligned(what, values, X)[0]

    return ordered("predictions", predictions) if isinstance(predictions, Mapping) else predictions


def without_fits(job: R, given: Given, *, of_default: bool) -> R:
    """Return the job with predictions in the place of a learner, or raise what is missing."""
    if job.learner != get_learner("auto"):
        raise InputError("predictions take the place of a learner. Leave out learner.")
    if isinstance(job.options.splits, float):
        raise InputError(
            f"predictions are of every row, and splits={job.options.splits:g} would test a part of "
            "them. Leave out splits."
        )
    if job.options.repeats > 1:
        raise InputError("repeats draws new folds, and predictions have theirs. Use repeats=1.")
    methods = list(job.methods)
    if of_default:
        every = get_methods(["gcm", "loco"], validity=job.options.validity)
        methods = [method for method in every if given.needs.issuperset(method.needs)]
    for method in methods or get_methods("gcm"):
        if not given.needs.issuperset(method.needs) or isinstance(method, SelectionMethod):
            raise InputError(
                f"{method.name} cannot be had from these predictions: gcm takes 'y|rest' and "
                "'x|rest', loco 'y|rest' and 'y|all', and others take a learner."
            )
    needs = frozenset(need for method in methods for need in method.needs)
    known = given.features(needs)
    for name in job.asked or ():
        if name not in known:
            raise InputError(f"predictions has not all of '{short(name)}' that the tests take.")
    asked = job.asked or tuple(name for name in job.names if name in known)
    if not asked:
        raise InputError("predictions has no feature with both 'y|rest' and 'x|rest'.")
    return replace(job, learner=Elsewhere(), methods=methods, asked=asked, given=given)
