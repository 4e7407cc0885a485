"""Any scikit-learn estimator or pipeline, behind the promise of `Model`."""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from covaria.errors import InputError
from covaria.learners.estimators import Array, as_chances
from covaria.learners.estimators.columns import HasParams, NothingLeft, inside, tell_what_is_left
from covaria.learners.estimators.mean import MeanModel

if TYPE_CHECKING:
    import pandas as pd

_THREADS = ("n_jobs", "nthread", "thread_count", "num_threads")
_NOT_SHARED = ("criterion", "loss", "class_weight", "objective", "scoring")
_LINEAR_TWIN = {
    "LogisticRegression": "LinearRegression",
    "LogisticRegressionCV": "RidgeCV",
    "RidgeClassifier": "Ridge",
    "RidgeClassifierCV": "RidgeCV",
    "SVC": "SVR",
    "LinearSVC": "LinearSVR",
}


class Fits(Protocol):
    """What people hand us: scikit-learn's estimators, and whatever has their two verbs."""

    def fit(self, X: object, y: object, **options: object) -> Self: ...

    def predict(self, X: object) -> ArrayLike: ...


class Known(Fits, HasParams, Protocol):
    """One of scikit-learn's, or just as they are."""


class WrappedEstimator:
    """A private copy of the user's estimator, seeded and kept to one thread.

    Given `names`, those of all columns of the table, it takes frames of some of these; where it
    looks at none of those that are left, it predicts the mean.
    """

    def __init__(
        self, estimator: Fits, *, seed: int = 0, n_classes: int = 0, names: Sequence[str] = ()
    ) -> None:
        self.n_classes = n_classes
        self.names = names
        self.estimator = prepared(for_target(estimator, n_classes), seed)

    def fit(self, X: Array | pd.DataFrame, y: Array, weights: Array | None = None) -> Self:
        """Return self, fitted."""
        self.mean_: MeanModel | None = None
        self.fitted_: list[Any] = []
        if self.names:
            try:
                tell_what_is_left(self.estimator, self.names, cast("pd.DataFrame", X).columns)
            except NothingLeft:
                nothing = np.zeros((len(X), 0))
                self.mean_ = MeanModel(n_classes=self.n_classes).fit(nothing, y, weights)
                return self
        options = {} if weights is None else {weight_name(self.estimator): weights}
        if self.n_classes and not is_classifier(self.estimator):
            indicators = (y[:, None] == np.arange(self.n_classes)).astype(float)
            self.fitted_ = [
                copied(self.estimator).fit(X, column, **options) for column in indicators.T
            ]
        else:
            target = y.astype(int) if self.n_classes else y
            self.fitted_ = [self.estimator.fit(X, target, **options)]
        return self

    def predict(self, X: Array | pd.DataFrame) -> Array:
        """Return means, or class probabilities."""
        if self.mean_ is not None:
            return self.mean_.predict(np.zeros((len(X), 0)))
        if not self.n_classes:
            means = numbers(self.fitted_[0].predict(X))
            return means[:, 0] if means.shape == (len(X), 1) else means
        if len(self.fitted_) == self.n_classes:
            return as_chances(
                np.column_stack([numbers(model.predict(X)) for model in self.fitted_])
            )
        probabilities = np.zeros((len(X), self.n_classes))
        seen = np.asarray(self.fitted_[0].classes_).astype(int)
        probabilities[:, seen] = numbers(self.fitted_[0].predict_proba(X))
        return probabilities

    @property
    def used_(self) -> NDArray[np.bool_] | None:
        """Return the columns a booster used, where without the others it would be the same."""
        if self.names:  # its columns are not those of the numbers
            return None
        model = self.fitted_[0]
        if len(self.fitted_) > 1 or not is_same_without_unused(model):
            return None
        return np.asarray(model.feature_importances_) > 0


def numbers(predicted: ArrayLike) -> Array:
    """Return a prediction as numbers, or raise; NumPy would just drop what is imaginary."""
    found = np.asanyarray(predicted)
    is_complex = found.dtype.kind == "c" or (
        found.dtype.kind == "O" and any(isinstance(value, complex) for value in found.flat)
    )
    if is_complex or found.dtype.kind in "mMV":
        kind = "complex numbers" if is_complex else f"values of type {found.dtype}"
        raise TypeError(f"the learner predicted {kind}, not numbers")
    return np.asarray(np.ma.filled(found.astype(float), np.nan))


# Boosters that look at all columns in every tree, and the settings that would change that.
_COLUMN_SAMPLING: dict[str, dict[str, object]] = {
    "GradientBoostingRegressor": {"max_features": None},
    "GradientBoostingClassifier": {"max_features": None},
    "LGBMRegressor": {"colsample_bytree": 1.0, "extra_trees": None, "feature_fraction": None},
    "LGBMClassifier": {"colsample_bytree": 1.0, "extra_trees": None, "feature_fraction": None},
}


def is_same_without_unused(model: object) -> bool:
    """Return whether a fitted booster, refitted without columns it never used, is the same."""
    return hasattr(model, "feature_importances_") and looks_at_all_columns(model)


def looks_at_all_columns(model: object) -> bool:
    """Return whether a model, fitted or not, is a booster all of whose trees see all columns."""
    sampling = _COLUMN_SAMPLING.get(type(model).__name__)
    if sampling is None:
        return False
    settings = cast(HasParams, model).get_params()
    return all(settings.get(name) in (None, usual) for name, usual in sampling.items())


def copied(estimator: Fits) -> Fits:
    """Return an unfitted copy; what is no scikit-learn estimator is deep-copied."""
    if not hasattr(estimator, "get_params"):
        return copy.deepcopy(estimator)
    from sklearn.base import clone

    return cast(Fits, clone(estimator))


def prepared(estimator: Fits, seed: int) -> Fits:
    """Return a copy with every unset seed set and every thread count at one."""
    model = copied(estimator)
    if not hasattr(model, "get_params"):
        return model
    chosen: dict[str, object] = {}
    for name, value in model.get_params(deep=True).items():
        last = name.rsplit("__", 1)[-1]
        if last == "random_state" and value is None:
            chosen[name] = seed
        elif last in _THREADS and value != 1:
            chosen[name] = 1
    if type(model).__module__.startswith("lightgbm"):
        chosen.setdefault("verbosity", -1)
    return _with(model, chosen)


def _with(model: Fits, chosen: dict[str, object]) -> Fits:
    """Return the model with these settings; set_params is slow and only nested ones need it."""
    from sklearn.base import BaseEstimator

    usual = getattr(type(model), "set_params", None) is BaseEstimator.set_params
    if not usual or any("__" in name for name in chosen):
        return cast(Known, model).set_params(**chosen)
    for name, value in chosen.items():
        setattr(model, name, value)
    return model


def is_classifier(estimator: object) -> bool:
    """Return whether the estimator predicts classes."""
    if not hasattr(estimator, "__sklearn_tags__"):
        return hasattr(estimator, "predict_proba")
    from sklearn.base import is_classifier as sklearn_says

    return bool(sklearn_says(estimator))


def check_refits(estimator: object) -> None:
    """Raise a sentence where the estimator, or one inside, can only be used as it was fitted."""
    for name, part in inside(estimator):
        is_frozen = type(part).__name__ == "FrozenEstimator"
        if is_frozen or (name == "cv" and part == "prefit") or (name == "prefit" and part is True):
            what = "a FrozenEstimator" if is_frozen else f"{name}={part!r}"
            raise InputError(
                f"{type(estimator).__name__} has {what} and cannot be refitted, as tests do "
                "without each feature. Give the estimator inside, unfrozen."
            )


def is_fitted(estimator: object) -> bool:
    """Return whether the estimator, or one inside, has learned something."""
    return any(
        name.endswith("_") and not name.startswith("_")
        for _, part in inside(estimator)
        if hasattr(part, "get_params") and not isinstance(part, type)
        for name in vars(part)
    )


def takes_gaps(estimator: object) -> bool:
    """Return whether the estimator says that it takes NaN."""
    if not hasattr(estimator, "__sklearn_tags__"):
        return False
    from sklearn.utils import get_tags

    return bool(get_tags(estimator).input_tags.allow_nan)


def weight_name(estimator: object) -> str:
    """Return the name of the fit option that takes sample weights."""
    from sklearn.utils.validation import has_fit_parameter

    if hasattr(estimator, "steps"):
        last, model = estimator.steps[-1]
        return f"{last}__{weight_name(model)}"
    if not has_fit_parameter(estimator, "sample_weight"):
        raise InputError(
            f"{type(estimator).__name__} takes no sample weights. Choose another learner, or leave "
            "sample_weight out."
        )
    return "sample_weight"


def for_target(estimator: Fits, n_classes: int) -> Fits:
    """Return the estimator itself, or its sibling for the other kind of target.

    A classifier serves for y, and its regressor for the features; a regressor without a
    classifier of the same family that gives probabilities predicts class indicators.
    """
    if n_classes:
        twin = None if is_classifier(estimator) else sibling(estimator)
        return twin if twin is not None and hasattr(twin, "predict_proba") else estimator
    if not is_classifier(estimator):
        return estimator
    twin = sibling(estimator)
    if twin is None:
        raise InputError(
            f"{type(estimator).__name__} predicts classes, and no regressor of its family is known "
            "for the features. Say which: covaria.learners.Estimator(classifier, x=regressor)."
        )
    return twin


def sibling(estimator: Fits) -> Fits | None:
    """Return the regressor of a classifier's family, or the other way round, if there is one."""
    if hasattr(estimator, "steps"):
        name, last = estimator.steps[-1]
        twin = sibling(last)
        return None if twin is None else _made(estimator, [*estimator.steps[:-1], (name, twin)])
    kind = type(estimator).__name__
    back = {twin: name for name, twin in reversed(_LINEAR_TWIN.items())}
    other = _LINEAR_TWIN.get(kind) or back.get(kind) or _swapped(kind)
    made = getattr(_public_module(type(estimator)), other, None) if other else None
    return None if made is None else _with_shared_settings(made, cast(Known, estimator))


def _made(estimator: Fits, steps: list[tuple[str, Fits]]) -> Fits:
    """Return a pipeline of the same kind with other steps."""
    make: Callable[..., Fits] = type(estimator)
    return make(steps)


def _swapped(kind: str) -> str:
    if "Classifier" in kind:
        return kind.replace("Classifier", "Regressor")
    return kind.replace("Regressor", "Classifier") if "Regressor" in kind else ""


def _public_module(kind: type) -> object:
    """Return the module that people import the class from, where it can be told."""
    parts = kind.__module__.split(".")
    public = [part for part in parts if not part.startswith("_")]
    try:
        return importlib.import_module(".".join(public) or kind.__module__)
    except ImportError:
        return sys.modules.get(kind.__module__)


def _with_shared_settings(kind: type[Known], estimator: Known) -> Fits | None:
    """Return a twin with the settings that both kinds know and the user changed."""
    try:
        twin, defaults = kind(), type(estimator)().get_params(deep=False)
    except TypeError:  # such as stacking: it cannot be made without being told of what
        return None
    known = twin.get_params(deep=False)
    changed = {
        name: _twin_of(value)
        for name, value in estimator.get_params(deep=False).items()
        if name in known and name not in _NOT_SHARED and not _same(value, defaults.get(name))
    }
    return twin.set_params(**changed)


def _twin_of(setting: object) -> object:
    """Return a setting as it is, and an estimator inside (as of bagging) as its own twin."""
    twin = sibling(cast(Fits, setting)) if hasattr(setting, "get_params") else None
    return setting if twin is None else twin  # an unfitted forest cannot be asked whether it is


def _same(value: object, other: object) -> bool:
    return value is other or repr(value) == repr(other)
