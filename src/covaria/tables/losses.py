"""What a prediction of y costs in each row: what gains are gains of, by name or by a function.

GCM and PCM multiply residuals, so a loss is nothing to them: they test whether the mean of y, given
the others, depends on the feature, whatever y is distributed like. LOCO, dropout, permutation and
CPI compare losses. The mean makes the Poisson and the gamma deviance least, as it does the squared
error, so the regressions are the same under all three.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError, did_you_mean, short
from covaria.options.checks import between_0_and_1, shown
from covaria.options.naming import read_call
from covaria.tables.arrays import Index

Array = NDArray[np.float64]
# Means of counts and of positive numbers are above 0; predictions below this share of the mean of y
# are lifted to it.
LEAST_MEAN = 0.01
# By how much the mean of rows' losses may differ from the metric of all rows.
ROUNDING = 1e-6
# A target of fewer values has classes, not quantiles.
FEWEST_VALUES = 20
FUNCTION = "a function of (y, prediction) that returns one number a row, 0 or more"


@dataclass(frozen=True)
class Loss:
    """A loss of predictions of numbers; `label` is what a report calls it."""

    name: ClassVar[str] = ""
    label: ClassVar[str] = ""
    has_residuals: ClassVar[bool] = False  # others than y − prediction
    weighs_y: ClassVar[bool] = False  # whether weights belong to y, not to the row

    @property
    def words(self) -> str:
        """Return what the loss is called in a sentence."""
        return self.label

    def of(self, what: str, y: Array, weights: Array | None, n_classes: int) -> Loss | None:
        """Return the loss for a target, or raise a sentence where it is not for that target.

        None is the loss that the target's kind has anyway.
        """
        if n_classes:
            raise InputError(
                f"loss='{self.name}' is for a target of numbers, and {what[0].lower()}{what[1:]} "
                "has classes. Leave out loss for the log-loss, or give a function."
            )
        return self

    def rows(self, y: Array, prediction: Array) -> Array:
        """Return each row's loss."""
        raise NotImplementedError

    def of_rows(self, y: Array, prediction: Array, rows: Index) -> Array:
        """Return the losses of some rows of a table."""
        return self.rows(y[rows], prediction)

    def constant(self, y: Array, weights: Array | None) -> float:
        """Return what one predicts of y without any feature."""
        return float(np.average(y, weights=weights))

    def left(self, y: Array, prediction: Array) -> Array:
        """Return what a prediction leaves of y, of mean 0 given the columns it was made from."""
        return y - prediction


@dataclass(frozen=True)
class Absolute(Loss):
    """|y − prediction|."""

    name: ClassVar[str] = "absolute"
    label: ClassVar[str] = "absolute error"

    def rows(self, y: Array, prediction: Array) -> Array:
        """Return each row's absolute error."""
        return np.abs(y - prediction)


@dataclass(frozen=True)
class _Deviance(Loss):
    least: float = 0.0  # of predictions

    def of(self, what: str, y: Array, weights: Array | None, n_classes: int) -> Loss:
        """Return the deviance with the least mean that it predicts."""
        super().of(what, y, weights, n_classes)
        self._check(what, y)
        return replace(self, least=LEAST_MEAN * float(np.average(y, weights=weights)))

    def _check(self, what: str, y: Array) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class Poisson(_Deviance):
    """Twice the log-likelihood that a Poisson mean μ falls short of: 2 (y log(y/μ) − y + μ)."""

    name: ClassVar[str] = "poisson"
    label: ClassVar[str] = "Poisson deviance"

    def _check(self, what: str, y: Array) -> None:
        _above(what, y, "loss='poisson' is for counts, 0 or more", y < 0)

    def rows(self, y: Array, prediction: Array) -> Array:
        """Return each row's Poisson deviance."""
        mean = np.maximum(prediction, self.least)
        ratio = np.where(y > 0, y, mean) / mean
        return np.maximum(0.0, 2 * (y * np.log(ratio) - y + mean))


@dataclass(frozen=True)
class Gamma(_Deviance):
    """Twice the log-likelihood that a gamma mean μ falls short of: 2 (y/μ − 1 − log(y/μ))."""

    name: ClassVar[str] = "gamma"
    label: ClassVar[str] = "gamma deviance"

    def _check(self, what: str, y: Array) -> None:
        _above(what, y, "loss='gamma' is for numbers above 0", y <= 0)

    def rows(self, y: Array, prediction: Array) -> Array:
        """Return each row's gamma deviance."""
        ratio = y / np.maximum(prediction, self.least)
        return np.maximum(0.0, 2 * (ratio - 1 - np.log(ratio)))


@dataclass(frozen=True)
class Pinball(Loss):
    """What the quantile q makes least: q (y − p) above the prediction p, else (1 − q)(p − y).

    What a prediction leaves of y is q where y lies above it and q − 1 where it does not: the slope
    of the loss, of mean 0 given the columns where the prediction is their quantile.
    """

    name: ClassVar[str] = "pinball"
    has_residuals: ClassVar[bool] = True
    q: float = 0.5

    @property
    def words(self) -> str:
        """Return the loss with its quantile."""
        return f"pinball loss of quantile {self.q:g}"

    def of(self, what: str, y: Array, weights: Array | None, n_classes: int) -> Loss:
        """Return the loss, or raise where so few values have no such quantile."""
        super().of(what, y, weights, n_classes)
        count = len(np.unique(y))
        if count < FEWEST_VALUES:
            raise InputError(
                f"{what} has {count} values, too few for quantiles. Use task='ordinal'."
            )
        return self

    def rows(self, y: Array, prediction: Array) -> Array:
        """Return each row's loss."""
        return (y - prediction) * self.left(y, prediction)

    def left(self, y: Array, prediction: Array) -> Array:
        """Return the slope of the loss."""
        return np.where(y > prediction, self.q, self.q - 1)

    def constant(self, y: Array, weights: Array | None) -> float:
        """Return the quantile of y."""
        order = np.argsort(y)
        reached = np.cumsum(np.ones(len(y)) if weights is None else weights[order])
        at = int(np.searchsorted(reached, self.q * reached[-1]))
        return float(y[order][min(at, len(y) - 1)])


def read_pinball(text: str) -> Pinball:
    """Return the loss that such as "pinball(0.9)" names.

    >>> read_pinball("pinball(0.9)")
    Pinball(q=0.9)
    """
    inside = re.fullmatch(r"\s*pinball\s*\(\s*(?:q\s*=)?\s*([\d.eE-]+)\s*\)\s*", text, re.I)
    try:
        return Pinball(between_0_and_1("pinball", float(inside[1] if inside else "")))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"The loss '{short(text)}' cannot be read. Write it with its quantile, such as "
            "pinball(0.9)."
        ) from None


def _above(what: str, y: Array, need: str, is_bad: NDArray[np.bool_]) -> None:
    bad = np.flatnonzero(is_bad)
    if len(bad):
        raise InputError(
            f"{what} is {y[bad[0]]:g} in row {bad[0] + 1}: {need}. Mend those rows, or leave out "
            "loss."
        )


@dataclass(frozen=True)
class _OfClasses(Loss):
    """A loss of the chances of classes, as scikit-learn's scorer of that name has it."""

    def of(self, what: str, y: Array, weights: Array | None, n_classes: int) -> Loss | None:
        """Return the loss, or raise where the target has no classes."""
        if not n_classes:
            raise InputError(
                f"loss='{self.name}' is for a target of classes, and {what[0].lower()}{what[1:]} "
                "is numbers. Leave out loss for the squared error, or use task='classification'."
            )
        return self


@dataclass(frozen=True)
class LogLoss(_OfClasses):
    """−log of the chance of the class that it is."""

    name: ClassVar[str] = "neg_log_loss"

    def of(self, what: str, y: Array, weights: Array | None, n_classes: int) -> Loss | None:
        """Return none: it is what gains of classes are without a loss."""
        super().of(what, y, weights, n_classes)
        return None


@dataclass(frozen=True)
class Brier(_OfClasses):
    """The squared errors of the chances of all classes, half of their sum for two classes."""

    name: ClassVar[str] = "neg_brier_score"
    label: ClassVar[str] = "Brier score"

    def rows(self, y: Array, prediction: Array) -> Array:
        """Return each row's Brier score."""
        n_classes = prediction.shape[1]
        errors = (prediction - (y[:, None] == np.arange(n_classes))) ** 2
        return np.asarray(errors.sum(axis=1) / (2 if n_classes == 2 else 1))


@dataclass(frozen=True)
class ZeroOne(_OfClasses):
    """1 where the class of the largest chance is not the one that it is."""

    name: ClassVar[str] = "accuracy"
    label: ClassVar[str] = "share of wrong classes"

    def rows(self, y: Array, prediction: Array) -> Array:
        """Return 1 for each wrong row."""
        return np.asarray(prediction.argmax(axis=1) != y, dtype=float)


class Metric(Protocol):
    """What people hand us: a loss of each row, or a metric of them all."""

    def __call__(self, y: Array, prediction: Array, **options: object) -> object: ...


@dataclass(frozen=True, eq=False)
class Own(Loss):
    """A function of the user's, or a metric of scikit-learn's: `sign` −1 where more is better."""

    name: ClassVar[str] = "own"
    function: Metric
    title: str = ""
    sign: float = 1.0
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """Return the name of the function."""
        return self.title or getattr(self.function, "__name__", type(self.function).__name__)

    def of(self, what: str, y: Array, weights: Array | None, n_classes: int) -> Loss:
        """Return the loss after a trial, of predicting the mean or the shares of classes."""
        if n_classes and self.title:
            raise InputError(
                f"loss='{short(self.words)}' is no mean over rows of what chances of classes cost, "
                f"and p-values need one: {', '.join(OF_CLASSES)} are, and so is a function of "
                "(numbers of classes, chances)."
            )
        trial: Array = np.full(len(y), self.constant(y, weights))
        if n_classes:
            shares = np.bincount(y.astype(np.intp), weights, n_classes)
            trial = np.tile(shares / shares.sum(), (len(y), 1))
        self.rows(y, trial)
        return self

    def rows(self, y: Array, prediction: Array) -> Array:
        """Return each row's loss, or raise what is wrong with it."""
        found = self.sign * self._raw(y, prediction)
        if not np.isfinite(found).all() or found.min(initial=0.0) < 0:
            raise InputError(
                f"loss={short(self.words)} gives losses that are negative or not finite. Give "
                f"{FUNCTION}."
            )
        return found

    def _raw(self, y: Array, prediction: Array) -> Array:
        found = self._asked(y, prediction)
        return self._row_by_row(y, prediction, float(found)) if found.ndim == 0 else found

    def _asked(self, y: Array, prediction: Array, **more: object) -> Array:
        """Return a number for each row, or one for all."""
        try:
            found = np.asarray(self.function(y, prediction, **self.options, **more), dtype=float)
        except Exception as error:
            raise InputError(
                f"loss={short(self.words)} cannot be asked ({short(str(error), 100)}). Give "
                f"{FUNCTION}."
            ) from error
        if found.shape not in ((), (len(y),)):
            raise InputError(
                f"loss={short(self.words)} returns shape {found.shape} for {len(y):,} rows. Give "
                f"{FUNCTION}."
            )
        return found

    def _row_by_row(self, y: Array, prediction: Array, of_all: float) -> Array:
        """Return what a metric says of each row, if its value is the mean of those."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of a metric that has no value for one row
            found = self._columns(y, prediction)
            if found is None:
                found = self._one_at_a_time(y, prediction)
            apart = abs(found.mean() - of_all)
        if not apart <= ROUNDING * np.abs(found).mean():
            raise InputError(
                f"loss={short(self.words)} is no mean over rows, and p-values need a loss of each "
                f"row. Give such as 'neg_mean_absolute_error', or {FUNCTION}."
            )
        return found

    def _one_at_a_time(self, y: Array, prediction: Array) -> Array:
        rows = zip(y, prediction, strict=True)
        every = [self._asked(np.array([one]), np.array([other])) for one, other in rows]
        return np.array(every, dtype=float).reshape(-1)

    def _columns(self, y: Array, prediction: Array) -> Array | None:
        """Return all rows' metrics at once, as those of many targets; None where it has no way."""
        try:
            found = self.function(
                y[None], prediction[None], **{**self.options, "multioutput": "raw_values"}
            )
        except Exception:
            return None
        values = np.asarray(found, dtype=float)
        return values if values.shape == y.shape else None


NAMED: dict[str, Callable[[], Loss]] = {
    kind.name: kind for kind in (Poisson, Gamma, Absolute)
}  # fmt: skip
OF_CLASSES: dict[str, Callable[[], Loss]] = {
    kind.name: kind for kind in (LogLoss, Brier, ZeroOne)
}  # fmt: skip
# The metrics behind these scorers, where they are given as make_scorer makes them.
METRICS = {"log_loss": LogLoss, "brier_score_loss": Brier, "accuracy_score": ZeroOne}


class _Scorer(Protocol):
    """What scikit-learn's `make_scorer` returns."""

    _score_func: Metric
    _sign: int
    _kwargs: Mapping[str, object]


def read_loss(given: object) -> Loss | None:
    """Return the loss of a name, a scorer or a function; None for that of the target's kind.

    >>> read_loss("poisson").words, read_loss("neg_mean_absolute_error").words
    ('Poisson deviance', 'neg_mean_absolute_error')
    """
    if given is None or isinstance(given, Loss):
        return given
    if isinstance(given, str):
        return _named(given)
    if hasattr(given, "_score_func"):
        return _scorer(cast(_Scorer, given), "")
    if not callable(given) or isinstance(given, type):
        raise InputError(
            f"loss={shown(given)} is neither a name ({', '.join(NAMED)}, pinball(0.9) or a scorer "
            f"of scikit-learn's) nor {FUNCTION}."
        )
    return Own(cast(Metric, given))


def _named(text: str) -> Loss | None:
    if text.strip().lower() == "squared":
        return None
    name = text.split("(")[0].strip().lower()
    if name == Pinball.name:
        return read_pinball(text)
    if name in NAMED:
        read_call(text, what="loss", known=NAMED)
        return NAMED[name]()
    from sklearn.metrics import get_scorer, get_scorer_names

    scorers = get_scorer_names()
    if text not in scorers:
        hint = did_you_mean(text, [*NAMED, *scorers])
        raise InputError(f"There is no loss '{short(text)}'.{hint}")
    return _scorer(cast(_Scorer, get_scorer(text)), text)


def _scorer(scorer: _Scorer, title: str) -> Loss:
    """Return the loss of a scorer: what its metric says of each row, the other way round."""
    metric = getattr(scorer._score_func, "__name__", "scorer")
    if metric in METRICS and not scorer._kwargs:
        return METRICS[metric]()
    name = title or metric
    return Own(scorer._score_func, name, -float(scorer._sign), dict(scorer._kwargs))
