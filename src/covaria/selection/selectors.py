"""The scikit-learn face: selectors that keep the columns of the features found to matter.

`Selector` asks `assess` once, `StabilitySelector` asks `stability`. A feature is a column of the
table or a group of columns: text with four levels is one column, so one entry of `get_support`.
What is kept is kept as it is: text stays text, gaps stay gaps, a dataframe stays a dataframe.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from covaria.assessment import WITHOUT_CHECKS, assess
from covaria.errors import InputError, is_whole, listed, plural, text_of
from covaria.methods import DEFAULT_METHODS, IN_SAMPLE_METHODS
from covaria.options.checks import plain, shown, truth
from covaria.options.familiar import knows_its_options
from covaria.options.naming import split_names
from covaria.results.result import Result
from covaria.results.status import has_failed
from covaria.selection.stability import Stability, check_options, stability
from covaria.tables.beside import MIN_ROWS
from covaria.tables.layout import named_groups

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
S = TypeVar("S", bound=np.generic)
# A pipeline fits again and again.
QUIET: dict[str, Any] = {"progress": False}
# What scikit-learn has names of its own for.
_its_options = partial(
    knows_its_options, seed="random_state", methods="method", groups="feature_groups"
)


class _ColumnSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """What both selectors share: checks at the door, and keeping columns as they are."""

    support_: Flags

    @_its_options
    def __init__(
        self,
        method: str = "default",
        *,
        learner: object = "auto",
        correction: str = "bh",
        alpha: float = 0.05,
        top: int | None = None,
        splits: object = 5,
        feature_groups: Mapping[str, Sequence[str]] | None = None,
        features: Sequence[str] | None = None,
        task: str = "auto",
        repeats: int = 1,
        n_jobs: int = 1,
        random_state: object = 0,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self.method = method
        self.learner = learner
        self.correction = correction
        self.alpha = alpha
        self.top = top
        self.splits = splits
        self.feature_groups = feature_groups
        self.features = features
        self.task = task
        self.repeats = repeats
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.options = options

    def _run(self, X: object, y: object, **given: Any) -> Any:
        """Return the result for a checked table."""
        raise NotImplementedError

    def _keep(self, result: Any) -> None:
        """Set the fitted attributes."""
        raise NotImplementedError

    def fit(
        self, X: object, y: object, sample_weight: object = None, groups: object = None
    ) -> Self:
        """Return self, having found the features that matter for y.

        Parameters
        ----------
        X, y
            A dataframe, array or sparse matrix, with text and gaps if need be, and its target.
        sample_weight
            A weight for every row.
        groups
            The cluster of every row, as scikit-learn calls them: rows of a cluster may depend on
            each other. Groups of columns are the setting `feature_groups`.
        """
        X = self._table(X, y=y, reset=True)
        for name, value in {"y": y, "sample_weight": sample_weight, "groups": groups}.items():
            if isinstance(value, (str, Mapping)):
                raise InputError(f"{name} must have a value for every row, not be {value!r}.")
        if sample_weight is not None and not np.asarray(sample_weight).any():
            raise InputError(
                "sample_weight is zero in every row. Give the rows that count a weight."
            )
        result = self._run(X, y, sample_weight=sample_weight, clusters=groups)
        self._owners = _owners(_names(X), result.features, named_groups(self.feature_groups))
        self._keep(result)
        return self

    def transform(self, X: object) -> Any:
        """Return the columns that were selected, as they are."""
        check_is_fitted(self)
        X = self._table(X, reset=False)
        if not self.support_.any():
            warnings.warn(
                f"{type(self).__name__} selected no features, so no columns are left. Raise alpha "
                "or top, or give more rows.",
                UserWarning,
                stacklevel=3,  # scikit-learn wraps transform
            )
        return self._as_set_output(_columns(X, np.flatnonzero(self.support_)))

    def inverse_transform(self, X: Any) -> Any:
        """Return all columns again, with zeros where they were left out."""
        check_is_fitted(self)
        if not _is_frame(X):
            X = check_array(
                X,
                dtype=None,
                accept_sparse="csr",
                ensure_all_finite=False,
                ensure_min_features=0,
                ensure_min_samples=0,
            )
        kept = np.flatnonzero(self.support_)
        if X.shape[1] != len(kept):
            raise InputError(
                f"X has {plural(X.shape[1], 'column')}, but {len(kept)} were selected. Give what "
                "transform returned."
            )
        return _with_zeros(X, kept, self._all_names())

    def _get_support_mask(self) -> Flags:
        check_is_fitted(self)
        return self.support_

    def _all_names(self) -> list[str]:
        named = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.n_features_in_)] if named is None else list(named)

    def _table(self, X: object, *, reset: bool, **target: object) -> Any:
        """Return a dataframe as it is, anything else as an array; remember or check names."""
        if not _is_frame(X):
            X = check_array(
                X,
                dtype=None,
                accept_sparse="csr",
                ensure_all_finite=False,
                ensure_min_samples=MIN_ROWS if reset else 1,
                estimator=self,
            )
        validate_data(self, X, reset=reset, skip_check_array=True, **target)
        return X

    def _as_set_output(self, X: Any) -> Any:
        """Return a dataframe as the kind that `set_output` asks for."""
        from sklearn.utils._set_output import _get_output_config

        wanted = _get_output_config("transform", estimator=self)["dense"]
        if wanted == "default" or not _is_frame(X):
            return X
        import narwhals as nw

        frame = nw.from_native(X)
        if str(frame.implementation) == wanted:
            return X
        try:
            return frame.to_pandas() if wanted == "pandas" else frame.to_polars()
        except ImportError as error:
            raise InputError(f"Turning this table into {wanted} needs {error.name}.") from error

    def _per_column(self, values: NDArray[S], otherwise: object) -> NDArray[S]:
        """Return a value of every feature as one of every column, another if not asked for."""
        return np.append(values, np.asarray(otherwise, values.dtype))[self._owners]

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        return tags


class Selector(_ColumnSelector):
    """Keeps the columns of the features that a test, or a selection without one, finds to matter.

    Parameters
    ----------
    method
        One name from `covaria.METHODS`; "default" is the verdict of `covaria.assess`.
    learner
        As for `covaria.assess`.
    correction
        How p-values are adjusted for the number of features, as for `covaria.assess`.
    alpha
        The level after it.
    top
        Keep this many features instead, the strongest.
    splits
        How rows are split into training and test parts, as for `covaria.assess`.
    task
        Whether y is numbers or classes; "auto" sees.
    repeats
        Cross-fits with new folds, which are averaged.
    n_jobs
        How many processes share the work; the numbers are those of one.
    feature_groups
        {"place": ["lat", "lon"]}: several columns that are tested, kept and dropped together.
    features
        ["price", "rooms"]: test these alone, given all others. Columns that are not asked for are
        never kept.
    random_state
        A whole number is the seed of `assess`; a generator draws one, None draws another each time.
    options
        Any other option of `assess`, such as {"validity": "zipper"}.

    Attributes
    ----------
    result_ : Result
        All that was found: `result_.table`, `result_.alerts`, …
    support_ : one entry a column, whether it is kept
    pvalues_ : one entry a column, the p-value before correction; None for a method without a test
    scores_ : one entry a column, the test's statistic; both are NaN where it was not asked for
    n_features_in_, feature_names_in_ : the columns of the table

    Examples
    --------
    >>> import covaria
    >>> from covaria.selection.selectors import Selector
    >>> X, y = covaria.draw("linear", n_rows=300, seed=1)
    >>> selector = Selector(learner="linear").fit(X, y)
    >>> {"x5", "x6", "x7", "x8"} <= set(selector.get_feature_names_out())
    True
    """

    result_: Result
    pvalues_: Array | None
    scores_: Array

    def _run(self, X: object, y: object, **given: Any) -> Result:
        return assess(X, y, methods=_one(self), **(QUIET | _settings(self)), **given)

    def _keep(self, result: Result) -> None:
        table = result.only(result.methods[-1]).table  # a combination stands behind its parts
        if any(map(has_failed, table["status"].tolist())):
            warnings.warn(
                f"Some fits failed, and those features are not kept: "
                f"{listed(list(result.failures), 3)}. See result_.failures.",
                UserWarning,
                stacklevel=3,
            )
        has_p = bool(table["p_value"].notna().all())
        self.result_ = result
        self.pvalues_ = (
            self._per_column(table["p_value"].to_numpy(float), np.nan) if has_p else None
        )
        self.scores_ = self._per_column(table["statistic"].to_numpy(float), np.nan)
        self.support_ = self._per_column(table["selected"].to_numpy(bool), False)


class StabilitySelector(_ColumnSelector):
    """Keeps the columns of the features that are selected again and again on parts of the rows.

    Parameters
    ----------
    method
        One name from `covaria.METHODS`; "default" is the verdict of `covaria.assess`.
    learner
        As for `covaria.assess`.
    folds
        Select on the training rows of each of so many folds.
    threshold
        The share of the parts that must agree: 4 of 5 folds.
    scheme
        "folds"; or "half_samples": both halves of random splits, with bounds on the expected
        number of false selections.
    pairs
        How many random splits "half_samples" draws.
    paper
        Whether parts are tested in the paper's mode.
    correction
        How p-values are adjusted for the number of features, as for `covaria.assess`.
    alpha
        The level after it.
    top
        Keep this many features instead, the strongest.
    splits
        How rows are split into training and test parts, as for `covaria.assess`.
    task
        Whether y is numbers or classes; "auto" sees.
    repeats
        Cross-fits with new folds, which are averaged.
    feature_groups
        {"place": ["lat", "lon"]}: several columns that are tested, kept and dropped together.
    features
        ["price", "rooms"]: test these alone, given all others.
    n_jobs
        How many processes share out the parts; the numbers are those of one.
    random_state
        A whole number is the seed; a generator draws one, None draws another each time.
    options
        Any other option of `covaria.assess`.

    Attributes
    ----------
    result_ : Stability
        All that was found: `result_.table`, `result_.expected_false`, `result_.alerts`, …
    support_ : one entry a column, whether it is kept
    scores_ : one entry a column, the share of the parts that selected it; 0 if not asked for
    n_features_in_, feature_names_in_ : the columns of the table

    Examples
    --------
    >>> import covaria
    >>> from covaria.selection.selectors import StabilitySelector
    >>> X, y = covaria.draw("linear", n_rows=300, seed=1)
    >>> selector = StabilitySelector(learner="linear").fit(X, y)
    >>> float(selector.scores_[7])
    1.0
    """

    result_: Stability
    scores_: Array

    @_its_options
    def __init__(
        self,
        method: str = "default",
        *,
        learner: object = "auto",
        folds: int = 5,
        threshold: float = 0.8,
        scheme: str = "folds",
        pairs: int = 50,
        paper: bool = False,
        correction: str = "bh",
        alpha: float = 0.05,
        top: int | None = None,
        splits: object = 5,
        feature_groups: Mapping[str, Sequence[str]] | None = None,
        features: Sequence[str] | None = None,
        task: str = "auto",
        repeats: int = 1,
        n_jobs: int = 1,
        random_state: object = 0,
        options: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(
            method,
            learner=learner,
            correction=correction,
            alpha=alpha,
            top=top,
            splits=splits,
            feature_groups=feature_groups,
            features=features,
            task=task,
            repeats=repeats,
            n_jobs=n_jobs,
            random_state=random_state,
            options=options,
        )
        self.folds = folds
        self.threshold = threshold
        self.scheme = scheme
        self.pairs = pairs
        self.paper = paper

    def _run(self, X: object, y: object, **given: Any) -> Stability:
        return stability(
            X,
            y,
            methods=_one(self),
            folds=self.folds,
            threshold=self.threshold,
            scheme=self.scheme,
            pairs=self.pairs,
            paper=self.paper,
            **(QUIET | _settings(self)),
            **given,
        )

    def _keep(self, result: Stability) -> None:
        self.result_ = result
        table = result.table[result.table["method"] == result.table["method"].iloc[-1]]
        self.scores_ = self._per_column(table["frequency"].to_numpy(float), 0.0)
        self.support_ = self._per_column(table["selected"].to_numpy(bool), False)


def _settings(selector: _ColumnSelector) -> dict[str, Any]:
    """Return a selector's settings under the names that `assess` has for them."""
    names = ("learner", "correction", "alpha", "splits", "task", "repeats", "n_jobs")
    settings = {name: getattr(selector, name) for name in names}
    if selector.top is not None:
        settings["top"] = selector.top
    named_groups(selector.feature_groups)  # says what is wrong before anything is run
    settings["groups"], settings["features"] = selector.feature_groups, selector.features
    settings["seed"] = _seed(selector.random_state)
    options = {} if selector.options is None else selector.options
    if not isinstance(options, Mapping):
        raise InputError(f"options={shown(options)} must be such as {{'validity': 'zipper'}}.")
    check_options(options)
    return WITHOUT_CHECKS | settings | dict(options)


def _one(selector: _ColumnSelector) -> list[str]:
    """Return the one method in a list; the default is gcm+pcm, in sample gcm."""
    method, settings = plain(selector.method), _settings(selector)
    if not isinstance(method, str) or len(split_names(method)) > 1:
        raise InputError(f"method={shown(method)} must be one name, such as 'gcm'.")
    in_sample = any(truth("paper", of.get("paper")) for of in (vars(selector), settings))
    if method == "default" and (in_sample or isinstance(plain(settings["splits"]), str)):
        return [IN_SAMPLE_METHODS[0]]
    return [DEFAULT_METHODS[-1] if method == "default" else method]


def _seed(random_state: object) -> int:
    """Return a whole number as it is, and one drawn from anything else."""
    random_state = plain(random_state)
    if is_whole(random_state):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError:
        raise InputError(
            f"random_state={shown(random_state)} must be a whole number, a generator or None."
        ) from None


def _is_frame(X: object) -> bool:
    """Return whether X is a dataframe, of pandas, polars or another kind."""
    return hasattr(X, "shape") and hasattr(X, "columns")


def _names(X: Any) -> list[str]:
    """Return the names of the columns, as `assess` calls them."""
    if not _is_frame(X):
        return [f"x{j}" for j in range(X.shape[1])]
    return [text_of(name) for name in getattr(X, "column_names", X.columns)]


def _owners(
    names: Sequence[str], features: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> NDArray[np.intp]:
    """Return the feature that each column belongs to.

    Features stand in the order of their columns, a group where its first column stood, so they are
    counted off and not looked up: a column without a name has another in the result. Where not all
    are asked for they are looked up, and -1 stands for the others.
    """
    group_of = {column: group for group in groups for column in groups[group]}
    place: dict[str, int] = {}
    owners = []
    for at, name in enumerate(names):
        key = f"group {group_of[name]}" if name in group_of else f"column {at}"
        owners.append(place.setdefault(key, len(place)))
    if len(place) == len(features):
        return np.array(owners, dtype=np.intp)
    known = {name: at for at, name in enumerate(features)}
    named = (group_of.get(name, name) or f"(column {at + 1})" for at, name in enumerate(names))
    return np.array([known.get(name, -1) for name in named], dtype=np.intp)


def _columns(X: Any, kept: NDArray[np.intp]) -> Any:
    """Return some columns of a dataframe, an array or a sparse matrix."""
    if not _is_frame(X):
        return X[:, kept]
    if hasattr(X, "iloc"):
        return X.iloc[:, kept]
    import narwhals as nw

    return nw.from_native(X)[:, kept.tolist()].to_native()


def _with_zeros(X: Any, kept: NDArray[np.intp], names: Sequence[str]) -> object:
    """Return the columns at their old places, with zeros between them."""
    if not _is_frame(X):
        return _array_with_zeros(X, kept, len(names))
    import narwhals as nw

    frame = nw.from_native(X)
    wanted = {old: names[at] for old, at in zip(frame.columns, kept, strict=True)}
    frame = frame.rename(wanted)
    zeros = [nw.lit(0).alias(name) for name in names if name not in wanted.values()]
    return frame.with_columns(*zeros).select(*names).to_native()


def _array_with_zeros(X: Any, kept: NDArray[np.intp], n_columns: int) -> object:
    if hasattr(X, "tocsc"):
        # A product with ones where a column goes.
        from scipy.sparse import csr_array

        ones = np.ones(len(kept), dtype=X.dtype)
        place = csr_array((ones, (np.arange(len(kept)), kept)), shape=(len(kept), n_columns))
        return type(X)(X @ place)
    full = np.zeros((X.shape[0], n_columns), dtype=X.dtype)
    full[:, kept] = X
    return full
