"""Learners: small frozen values that say how a regression is to be fitted.

A learner prints as the call that makes it, equals another with the same settings, and turns
into a fresh `Model` for each fit. Defaults are those of the R packages in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError, MissingExtra, is_whole
from covaria.learners.estimators import Model
from covaria.learners.policy import AutoPolicy as AutoPolicy
from covaria.options.checks import plain_all, shown, whole
from covaria.options.naming import read_call, with_settings

if TYPE_CHECKING:
    from covaria.learners.estimators.wrapped import Fits

# A larger setting is a slip: more trees than this fill the memory.
LARGEST, MOST = 1e100, 1_000_000
# Of a network; the weights are those between two layers.
MOST_LAYERS, MOST_WEIGHTS = 1_000, 100_000_000


@dataclass(frozen=True)
class Fit:
    """What a model is for.

    The full and the reduced model of a fold have the same `seed`, and `columns` says which
    columns of the table each sees, so that bags, batches and starting weights are shared.
    """

    seed: int
    columns: tuple[int, ...]
    n_classes: int = 0
    of_feature: bool = False
    names: tuple[str, ...] = ()  # of the table's own columns, where the model is given a frame
    classes: tuple[str, ...] = ()  # of y
    as_array: bool = False  # whether the table came as one
    # What the other regression of a test predicts from the same columns, where the learner looks.
    beside: NDArray[np.float64] | None = field(default=None, compare=False)
    # The model of y on all columns, for one without some of them to start from.
    full: Model | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Learner:
    """How to fit a regression; each family below is one."""

    name: ClassVar[str] = ""
    about: ClassVar[str] = ""
    is_linear: ClassVar[bool] = False
    # Whether columns are chosen for x_j and y together (`Fit.beside`).
    chooses_jointly: ClassVar[bool] = False
    # Whether models of y without a feature start from the one on all columns (`Fit.full`).
    starts_from_full: ClassVar[bool] = False
    # Whether its models say which columns they used (`used_`): without another they are the same.
    says_used: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for each in fields(self):
            object.__setattr__(self, each.name, plain_all(getattr(self, each.name)))

    @property
    def takes_gaps(self) -> bool:
        """Return whether the learner wants missing values as NaN rather than filled."""
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what to know of the learner before trusting the answer."""
        return ()

    def wants_frame(self, *, of_feature: bool = False) -> bool:
        """Return whether a model, of y or of a feature, takes the table's own columns."""
        return False

    def model(self, fit: Fit) -> Model:
        """Return a fresh model for one fit."""
        raise NotImplementedError

    def check(self, *, n_classes: int, weighted: bool) -> None:
        """Raise a sentence where this learner cannot serve."""

    def settings(self) -> dict[str, object]:
        """Return the settings as plain values."""
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}
        return {"name": self.name, **plain}


@dataclass(frozen=True)
class Mean(Learner):
    """The mean, or the share of each class: what is left when nothing can be learned."""

    name: ClassVar[str] = "mean"
    about: ClassVar[str] = "the mean: a yardstick for the others"
    says_used: ClassVar[bool] = True

    def model(self, fit: Fit) -> Model:
        from covaria.learners.estimators.mean import MeanModel

        return MeanModel(n_classes=fit.n_classes)


@dataclass(frozen=True)
class Linear(Learner):
    """Least squares (R's lm), or ridge; logistic regression for classes.

    >>> Linear()
    Linear(ridge=0.0)
    """

    name: ClassVar[str] = "linear"
    about: ClassVar[str] = "least squares (R lm) or ridge; logistic regression for classes"
    is_linear: ClassVar[bool] = True
    # Whether the slopes of columns of unit variance are held small, not those of raw columns.
    is_unitless: ClassVar[bool] = False
    ridge: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _at_least(self, 0.0, "ridge")

    def model(self, fit: Fit) -> Model:
        from covaria.learners.estimators.linear import LinearModel

        return LinearModel(ridge=self.ridge, is_unitless=self.is_unitless, n_classes=fit.n_classes)


@dataclass(frozen=True)
class Ridge(Linear):
    """Ridge on columns of unit variance: units do not matter, as they do for Linear(ridge=…)."""

    name: ClassVar[str] = "ridge"
    about: ClassVar[str] = "ridge on standardised columns, for wide tables"
    is_unitless: ClassVar[bool] = True
    ridge: float = 10.0


@dataclass(frozen=True)
class RidgePath(Learner):
    """Ridge on columns of unit variance, at the penalty the data choose; for wide tables."""

    name: ClassVar[str] = "ridge_path"
    about: ClassVar[str] = "ridge on standardised columns; penalty chosen by the data"

    def model(self, fit: Fit) -> Model:
        from covaria.learners.estimators.wide import RidgePathModel

        return RidgePathModel(n_classes=fit.n_classes)


@dataclass(frozen=True)
class Sparse(Learner):
    """Least squares on the few columns that a lasso lets in; for wide tables.

    In a test of x_j the columns are chosen for x_j and y together.
    """

    name: ClassVar[str] = "sparse"
    chooses_jointly: ClassVar[bool] = True
    about: ClassVar[str] = "least squares on the columns that a lasso lets in"

    def model(self, fit: Fit) -> Model:
        from covaria.learners.estimators.wide import SparseModel

        return SparseModel(n_classes=fit.n_classes, beside=fit.beside)


@dataclass(frozen=True)
class Splines(Learner):
    """A smooth curve per column (R's gam::gam with s(x, df = 4)); df="gcv" lets the data choose.

    A list of df has one for each column of the table. With "gcv" a column's curve is made of at
    most so many `curves`: more for functions with many waves. There a column bends only where that
    lowers n times the log score by `to_enter`: with 4 few curves bend by chance.
    """

    name: ClassVar[str] = "splines"
    about: ClassVar[str] = "additive smooth curves (R gam); df=4, or df='gcv' chosen by the data"
    df: float | str | tuple[float, ...] = 4
    curves: int = 9
    to_enter: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _whole(self, "curves")
        _at_least(self, 0, "to_enter")
        if isinstance(self.df, list):
            object.__setattr__(self, "df", tuple(self.df))
        if isinstance(self.df, tuple):
            _each_at_least(self, 0, "df")
        elif not (isinstance(self.df, str) and self.df == "gcv"):
            _at_least(self, 1, "df")

    def model(self, fit: Fit) -> Model:
        from covaria.learners.estimators.splines import AdditiveSplines

        df = self.df
        if isinstance(df, tuple):
            if fit.columns and fit.columns[-1] >= len(df):
                raise InputError(f"Splines(df=…) has {len(df)} numbers: give one for each column.")
            df = tuple(df[column] for column in fit.columns)
        return AdditiveSplines(
            df=df, curves=self.curves, to_enter=self.to_enter, n_classes=fit.n_classes
        )


@dataclass(frozen=True)
class Quadratic(Learner):
    """Ridge on all columns, their squares and products; the data choose the penalty."""

    name: ClassVar[str] = "quadratic"
    about: ClassVar[str] = "ridge on columns, squares and products; penalty chosen by the data"

    def model(self, fit: Fit) -> Model:
        from covaria.learners.estimators.quadratic import QuadraticModel

        return QuadraticModel(n_classes=fit.n_classes)


@dataclass(frozen=True)
class Surfaces(Learner):
    """Smooth surfaces over pairs of columns, which the data choose, and over all of these."""

    name: ClassVar[str] = "surfaces"
    about: ClassVar[str] = "smooth surfaces over pairs of columns, chosen by the data"
    says_used: ClassVar[bool] = True

    def model(self, fit: Fit) -> Model:
        from covaria.learners.estimators.surfaces import SurfacesModel

        return SurfacesModel(n_classes=fit.n_classes)


@dataclass(frozen=True)
class Boosting(Learner):
    """Boosted trees (R's gbm); `splits` is gbm's interaction.depth, the splits of a tree."""

    name: ClassVar[str] = "boosting"
    about: ClassVar[str] = "boosted trees (R gbm); splits=1 is additive, 4 sees interactions"
    says_used: ClassVar[bool] = True
    trees: int = 100
    splits: int = 1
    shrinkage: float = 0.1
    bag: float = 0.5
    min_node: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        _whole(self, "trees", "splits", "min_node")
        _at_least(self, 1e-6, "shrinkage", "bag")
        if self.bag > 1:
            raise InputError(f"Boosting(bag={self.bag}) must be a share of the rows, at most 1.")

    def model(self, fit: Fit) -> Model:
        from covaria.learners.estimators.boosting import GradientBoosting

        return GradientBoosting(**asdict(self), n_classes=fit.n_classes, seed=fit.seed)


@dataclass(frozen=True)
class Forest(Learner):
    """Deep trees on bootstrap samples, any column at each split."""

    name: ClassVar[str] = "forest"
    about: ClassVar[str] = "bagged deep trees; sees jumps and interactions"
    trees: int = 100
    min_node: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        _whole(self, "trees", "min_node")

    def model(self, fit: Fit) -> Model:
        from covaria.learners.estimators.forest import ForestModel

        return ForestModel(**asdict(self), n_classes=fit.n_classes, seed=fit.seed)


@dataclass(frozen=True)
class Kernel(Learner):
    """A support vector machine with the Gaussian kernel (R's ksvm), or kernel ridge."""

    name: ClassVar[str] = "kernel"
    about: ClassVar[str] = "Gaussian support vector machine (R ksvm); kind='ridge': kernel ridge"
    C: float = 1.0
    epsilon: float = 0.1
    sigma: float | None = None
    kind: str = "svr"

    def __post_init__(self) -> None:
        super().__post_init__()
        _at_least(self, 1e-12, "C")
        _at_least(self, 0.0, "epsilon")
        if self.sigma is not None:
            _at_least(self, 1e-12, "sigma")
        if not isinstance(self.kind, str) or self.kind not in ("svr", "ridge"):
            raise InputError(f"Kernel(kind={shown(self.kind)}) is not known. Use 'svr' or 'ridge'.")

    def model(self, fit: Fit) -> Model:
        from covaria.learners.estimators.kernel import KernelMachine

        return KernelMachine(**asdict(self), n_classes=fit.n_classes)


@dataclass(frozen=True)
class Network(Learner):
    """A neural network of ReLU layers trained by Adam; needs torch."""

    name: ClassVar[str] = "network"
    about: ClassVar[str] = "neural network (torch); needs pip install 'covaria[nn]'"
    hidden: tuple[int, ...] = (50,)
    lr: float = 1e-3
    weight_decay: float = 0.0
    batch: int = 256
    epochs: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        given: object = self.hidden
        width = tuple(given) if isinstance(given, (list, tuple)) else (given,)
        if not width or not all(is_whole(one) and 1 <= one <= MOST for one in width):
            raise InputError(
                f"Network(hidden={shown(width)}) needs at least one layer of width 1 to {MOST:,}."
            )
        if len(width) > MOST_LAYERS or any(a * b > MOST_WEIGHTS for a, b in pairwise(width)):
            raise InputError(
                f"Network(hidden={shown(width)}) would fill the memory. Use fewer layers, or "
                "narrower ones."
            )
        object.__setattr__(self, "hidden", width)
        _whole(self, "batch", "epochs")
        _at_least(self, 1e-12, "lr")
        _at_least(self, 0.0, "weight_decay")

    def check(self, *, n_classes: int, weighted: bool) -> None:
        """Raise where torch is missing."""
        from importlib.util import find_spec

        if find_spec("torch") is None:
            raise MissingExtra("learner='network'", "nn")

    def model(self, fit: Fit) -> Model:
        from covaria.learners.estimators.network import NeuralNetwork

        return NeuralNetwork(
            **asdict(self), n_classes=fit.n_classes, seed=fit.seed, columns=fit.columns
        )


@dataclass(frozen=True)
class SingleIndex(Learner):
    """A smooth function of one weighted sum of the columns (R's gplsim)."""

    name: ClassVar[str] = "single_index"
    about: ClassVar[str] = "a smooth function of one weighted sum of the features (R gplsim)"

    def model(self, fit: Fit) -> Model:
        from covaria.learners.estimators.single_index import SingleIndexModel

        return SingleIndexModel(n_classes=fit.n_classes)


@dataclass(frozen=True)
class Pursuit(Learner):
    """Projection pursuit: smooth functions of a few weighted sums of the columns."""

    name: ClassVar[str] = "pursuit"
    about: ClassVar[str] = "smooth functions of a few weighted sums of the features (R ppr)"
    starts_from_full: ClassVar[bool] = True

    def model(self, fit: Fit) -> Model:
        from covaria.learners.estimators.pursuit import PursuitModel

        full = fit.full if isinstance(fit.full, PursuitModel) else None
        return PursuitModel(n_classes=fit.n_classes, start=full)


@dataclass(frozen=True, eq=False)
class Estimator(Learner):
    """Any scikit-learn estimator or pipeline, and optionally another for the features.

    One that names columns, such as a ColumnTransformer, gets a dataframe of the table's own
    columns, less the feature left out; others get numbers, with text as 0/1 columns and gaps
    filled. `frames` True or False says which, whatever the estimator looks like.
    """

    name: ClassVar[str] = "estimator"
    says_used: ClassVar[bool] = True
    about: ClassVar[str] = "any scikit-learn estimator or pipeline (in Python)"
    y: Fits
    x: Fits | None = None
    frames: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.frames is not None and not isinstance(self.frames, bool):
            raise InputError(f"Estimator(frames={shown(self.frames)}) must be True, False or None.")

    def __repr__(self) -> str:
        shown = repr(self.y) if self.x is None else f"{self.y!r}, x={self.x!r}"
        shown += "" if self.frames is None else f", frames={self.frames}"
        return f"Estimator({' '.join(shown.split())})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Estimator) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    @property
    def takes_gaps(self) -> bool:
        """Return whether the estimators say that they take NaN."""
        from covaria.learners.estimators.wrapped import takes_gaps

        return all(takes_gaps(estimator) for estimator in self._given)

    @property
    def _given(self) -> list[Fits]:
        return [estimator for estimator in (self.y, self.x) if estimator is not None]

    @property
    def notes(self) -> tuple[str, ...]:
        """Return that an estimator which was fitted is fitted anew."""
        from covaria.learners.estimators.wrapped import is_fitted

        names = [type(estimator).__name__ for estimator in self._given if is_fitted(estimator)]
        return tuple(
            f"{name} was fitted already. Tests leave rows and features out, so it is fitted anew, "
            "from scratch, with its settings: what it had learned is not used."
            for name in dict.fromkeys(names)
        )

    def wants_frame(self, *, of_feature: bool = False) -> bool:
        """Return whether the estimator names columns, or was said to take frames."""
        return self._want_frames[of_feature] if self.frames is None else self.frames

    @cached_property
    def _want_frames(self) -> tuple[bool, bool]:
        """Return whether those for y and for features want frames."""
        from covaria.learners.estimators.columns import wants_frames

        of_y = wants_frames(self.y)
        return of_y, of_y if self.x is None else wants_frames(self.x)

    def check(self, *, n_classes: int, weighted: bool) -> None:
        """Raise a sentence where the estimator does not fit the target."""
        from covaria.learners.estimators.wrapped import (
            check_refits,
            for_target,
            is_classifier,
            weight_name,
        )

        for estimator in self._given:
            check_refits(estimator)
        kind = type(self.y).__name__
        if is_classifier(self.y) and not n_classes:
            raise InputError(
                f"{kind} predicts classes but the target is a number. Use a regressor, or "
                "task='classification'."
            )
        chosen = for_target(self.y, n_classes)
        if n_classes and is_classifier(chosen) and not hasattr(chosen, "predict_proba"):
            raise InputError(
                f"{kind} gives no probabilities (predict_proba), which the tests need. Wrap it in "
                "sklearn.calibration.CalibratedClassifierCV."
            )
        for_target(self.x if self.x is not None else self.y, 0)
        if weighted:
            weight_name(chosen)

    def model(self, fit: Fit) -> Model:
        from covaria.learners.estimators.wrapped import WrappedEstimator

        chosen = self.x if fit.of_feature and self.x is not None else self.y
        return WrappedEstimator(chosen, seed=fit.seed, n_classes=fit.n_classes, names=fit.names)

    def settings(self) -> dict[str, object]:
        """Return the estimator as text."""
        return {"name": self.name, "estimator": repr(self)}


@dataclass(frozen=True, repr=False)
class Auto(Learner):
    """The best of several learners, for y and for each feature apart, by cross-validation.

    Errors are those of the cross-fit's own folds; where two learners together err less, both serve.
    `candidates` are the learners to choose from; none means those of `covaria.nuisance.auto`.
    `stack` mixes them in proportions chosen likewise, instead of taking the best.
    """

    name: ClassVar[str] = "auto"
    about: ClassVar[str] = "for each regression the best of a dozen learners, by cross-validation"
    candidates: tuple[Any, ...] = ()
    stack: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.candidates
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise InputError(
                f"Auto(candidates={shown(given)}) must be a list of learners, such as "
                "['linear', 'boosting']."
            )
        learners = tuple(dict.fromkeys(get_learner(candidate) for candidate in given))
        if any(isinstance(learner, Auto) for learner in learners):
            raise InputError("Auto(candidates=…) cannot hold 'auto' itself: name other learners.")
        object.__setattr__(self, "candidates", learners)
        if not isinstance(self.stack, bool):
            raise InputError(f"Auto(stack={shown(self.stack)}) must be True or False.")

    def __repr__(self) -> str:
        given = [f"candidates={list(self.candidates)}"] if self.candidates else []
        return f"Auto({', '.join([*given, *(['stack=True'] if self.stack else [])])})"

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what to know of the candidates."""
        return tuple(note for learner in self.candidates for note in learner.notes)

    def wants_frame(self, *, of_feature: bool = False) -> bool:
        """Return whether a candidate does."""
        return any(learner.wants_frame(of_feature=of_feature) for learner in self.candidates)

    def check(self, *, n_classes: int, weighted: bool) -> None:
        """Raise a sentence where a candidate cannot serve."""
        for learner in self.candidates:
            learner.check(n_classes=n_classes, weighted=weighted)

    def settings(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        candidates = [learner.settings() for learner in self.candidates]
        return {"name": self.name, "candidates": candidates, "stack": self.stack}


@dataclass(frozen=True, eq=False)
class Prefit(Learner):
    """A model that is fitted already and is not fitted again: it is tested as it is.

    The rows must be others than those it learned from. It gets them as they came, a dataframe or an
    array, text and gaps included. It may be anything with `predict`, for classes `predict_proba`, a
    function of the table, or a torch module. What PCM and cpi have to know of the other features,
    the learner `nuisance` fits on the rows given. `n_train` is how many rows the model learned
    from: with it dropout and permutation allow for what a useless feature gains by collinearity.
    """

    name: ClassVar[str] = "prefit"
    says_used: ClassVar[bool] = True
    about: ClassVar[str] = "a model fitted elsewhere, which is not refitted (in Python)"
    given: Any
    nuisance: Any = "auto"
    n_train: int | None = None

    def __post_init__(self) -> None:
        if self.n_train is not None:
            object.__setattr__(self, "n_train", whole("n_train", self.n_train, 2))
        learner = get_learner(self.nuisance)
        if isinstance(learner, Prefit):
            raise InputError("Prefit(nuisance=…) must be a learner that is fitted, such as 'auto'.")
        object.__setattr__(self, "nuisance", learner)

    def __repr__(self) -> str:
        usual = isinstance(self.nuisance, Auto) and self.nuisance == Auto()
        other = "" if usual else f", nuisance={self.nuisance!r}"
        other += "" if self.n_train is None else f", n_train={self.n_train}"
        return f"Prefit({' '.join(shown(self.given).split())}{other})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Prefit) and self.given is other.given and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def wants_frame(self, *, of_feature: bool = False) -> bool:
        """Return True: the model gets the table as it came; the other learner may want it too."""
        return True if not of_feature else bool(self.nuisance.wants_frame(of_feature=True))

    def check(self, *, n_classes: int, weighted: bool) -> None:
        """Raise a sentence where the model cannot be asked, or the other learner cannot serve."""
        from covaria.learners.estimators.given import check_given

        check_given(self.given, n_classes)
        self.nuisance.check(n_classes=n_classes, weighted=weighted)

    def model(self, fit: Fit) -> Model:
        from covaria.learners.estimators.given import GivenModel

        return GivenModel(self.given, classes=fit.classes, as_array=fit.as_array)

    def settings(self) -> dict[str, object]:
        """Return the model as text."""
        return {"name": self.name, "model": repr(self)}


LEARNERS: dict[str, type[Learner]] = {
    kind.name: kind
    for kind in (
        Auto,
        Linear,
        Ridge,
        RidgePath,
        Sparse,
        Splines,
        Quadratic,
        Surfaces,
        Boosting,
        Forest,
        Kernel,
        Network,
        SingleIndex,
        Pursuit,
        Mean,
    )
}


def get_learner(given: object) -> Learner:
    """Return the learner that a name, a value or a scikit-learn estimator stands for.

    >>> get_learner("boosting(trees=200)")
    Boosting(trees=200, splits=1, shrinkage=0.1, bag=0.5, min_node=10)
    """
    if isinstance(given, Learner):
        return given
    if isinstance(given, str):
        return _named(given)
    # A stacking estimator has `predict` only once fitted, so `fit` and `get_params` will do.
    usable = hasattr(given, "fit") and (hasattr(given, "predict") or hasattr(given, "get_params"))
    if isinstance(given, type) or not usable:
        raise InputError(
            f"learner={shown(given)} is neither a name ({', '.join(LEARNERS)}) nor an object "
            "with fit and predict."
        )
    return Estimator(cast("Fits", given))


def _named(text: str) -> Learner:
    name, given = read_call(text, what="learner", known=LEARNERS)
    return with_settings(LEARNERS[name], name, given)


def from_settings(settings: Mapping[str, Any]) -> Learner:
    """Return the learner that `settings()` described."""
    name = settings["name"]
    given = {setting: value for setting, value in settings.items() if setting != "name"}
    if name == Auto.name:
        given["candidates"] = [from_settings(candidate) for candidate in given["candidates"]]
    return with_settings(LEARNERS[name], name, given)


def _whole(learner: Learner, *names: str) -> None:
    """Raise where a setting is not a whole number from 1 to MOST."""
    for name in names:
        setting = f"{type(learner).__name__}({name}"
        value = getattr(learner, name)
        if not is_whole(value) or value < 1:
            raise InputError(f"{setting}={shown(value)}) must be a whole number, 1 or more.")
        if value > MOST:
            raise InputError(f"{setting}={shown(value)}) is too many. Use {MOST:,} or fewer.")


def _at_least(learner: Learner, least: float, *names: str) -> None:
    """Raise where a setting is not a finite number of at least `least`."""
    for name in names:
        value = getattr(learner, name)
        if not _is_number(value, least):
            raise InputError(
                f"{type(learner).__name__}({name}={shown(value)}) must be a number from "
                f"{least:g} to {LARGEST:g}."
            )


def _each_at_least(learner: Learner, least: float, name: str) -> None:
    """Raise where a setting is not a list of finite numbers of at least `least`."""
    values = getattr(learner, name)
    if not values or not all(_is_number(value, least) for value in values):
        raise InputError(
            f"{type(learner).__name__}({name}={shown(values)}) must be numbers, {least:g} or more."
        )


def _is_number(value: Any, least: float) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and least <= value < LARGEST
