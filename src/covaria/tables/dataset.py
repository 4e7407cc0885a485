"""Dataset: a table checked once, in which every feature owns its columns.

A category becomes one column per level but the most common, a number with gaps becomes the
filled number and a column that marks the gaps, a group owns the columns of its members. Each
stays ONE feature. Learners see columns of numbers and no names; users see names and no columns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError, Problems, did_you_mean, plural, short, text_of
from covaria.options.checks import one_of, shown
from covaria.tables.copies import find_copies, repeats
from covaria.tables.frames import Frame
from covaria.tables.losses import Loss
from covaria.tables.policy import POLICY
from covaria.tables.reading import (
    Column,
    aligned,
    columns_of,
    frame_of,
    has_columns,
    is_gap,
    vector,
)
from covaria.tables.survival import PartialLikelihood, checked_times

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Index = Rows | slice

MIN_ROWS = 10
MAX_LEVELS = 20
MAX_CLASSES = 50
MIN_CLUSTERS = 5
# Errors of scores are fourth powers of the numbers; beyond these they would overflow or vanish.
LARGEST, SMALLEST = 1e60, 1e-60
PROBABILITY_FLOOR = 1e-6
# As many numbers are copied at once: 8 MB.
AT_ONCE = 2**20
TASKS = ("auto", "regression", "classification", "ordinal")
MISSING_TARGET = ("refuse", "drop")


@dataclass(frozen=True)
class Feature:
    """One thing to test: its name, what kind it is, and the columns of `X` it owns."""

    name: str
    kind: str
    columns: tuple[int, ...]
    # So many of its last columns tell of its many levels, for the models of others; they are not
    # tested.
    n_encoded: int = 0

    @property
    def tested(self) -> tuple[int, ...]:
        """Return the columns that are predicted from the other features."""
        return self.columns[: len(self.columns) - self.n_encoded]


@dataclass(frozen=True)
class Levels:
    """A category of more levels than have a column: whose it is, and the level of each row.

    The number of its feature is -1 where that is not tested.
    """

    feature: int
    code: Rows


@dataclass(frozen=True)
class Dataset:
    """A checked table: numbers only, no gaps, with the columns that each feature owns.

    >>> data = Dataset.from_table({"age": [30, 41, 52] * 4, "sex": ["f", "m", "f"] * 4}, range(12))
    >>> [(f.name, f.kind, f.columns) for f in data.features]
    [('age', 'number', (0,)), ('sex', 'category', (1,))]
    """

    X: Array
    y: Array
    features: tuple[Feature, ...]
    target: str = "y"
    classes: tuple[str, ...] = ()
    holes: NDArray[np.bool_] | None = None
    weights: Array | None = None
    clusters: Rows | None = None
    n_copies: int = 0  # rows that repeat another; those are the clusters then
    notes: tuple[str, ...] = field(default=(), compare=False)
    levels: tuple[Levels, ...] = field(default=(), compare=False)
    kept: Rows | None = field(default=None, compare=False)  # of the table's rows; None: all
    frame: Frame | None = field(default=None, compare=False, repr=False)
    others: tuple[Feature, ...] = ()  # not tested, but those that are, are tested given them
    outputs: Array | None = None  # several targets, (rows, targets), each of variance 1
    targets: tuple[str, ...] = ()  # and their names
    rule: Loss | None = None  # what predictions cost; None: squared error, for classes log-loss

    @classmethod
    def from_table(
        cls,
        X: object,
        y: object = None,
        *,
        groups: Mapping[str, Sequence[str]] | None = None,
        sample_weight: object = None,
        clusters: object = None,
        event: object = None,
        task: str = "auto",
        copies: bool = True,
        keep_frame: bool = False,
        missing_target: str = "refuse",
    ) -> Dataset:
        """Return the checked table, or raise InputError with all problems, each with its cure.

        Copies of rows become clusters where none are given, unless `copies` says to leave them.
        `keep_frame` keeps the columns as they came beside the numbers, as `frame`. Rows without a
        target are refused, or left out with missing_target="drop". With `event`, y is a time.
        """
        task, groups = one_of("task", task, TASKS), named_groups(groups)
        if several := several_targets(y):
            return cls._of_several(X, several, groups=groups, sample_weight=sample_weight,
                                   clusters=clusters, event=event, task=task, copies=copies,
                                   keep_frame=keep_frame,
                                   missing_target=missing_target)  # fmt: skip
        missing_target = one_of("missing_target", missing_target, MISSING_TARGET)
        table, problems = columns_of(X), Problems()
        target = text_of(y) if isinstance(y, str) else _name_of(y)
        _check_target(y, sample_weight=sample_weight, clusters=clusters, event=event)
        cure = f"; mend column '{short(sample_weight)}'" if isinstance(sample_weight, str) else ""
        what = {f"The target '{short(target)}'": y, "sample_weight": sample_weight,
                "clusters": clusters, "event": event}  # fmt: skip
        task = task if event is None else "regression"
        beside = _beside(problems, X, table, what, drop=missing_target == "drop")
        table, n_rows = beside.table, beside.n_rows
        read_y = problems.of(_target, target, beside.y, n_rows, task) if beside.y else None
        encoded = {n: problems.of(_encode, n, values) or NOTHING for n, values in table.items()}
        parts = problems.of(_grouped, encoded, groups)
        weights = problems.of(_weights, beside.weights, n_rows, cure)
        own, n_copies = problems.of(_clusters, beside.clusters, n_rows), 0
        problems.settle()
        assert read_y is not None
        assert parts is not None
        codes, classes = read_y
        X_columns, holes, features = _laid_out(parts, n_rows)
        oversampled: tuple[str, ...] = ()
        if copies and clusters is None:
            own, oversampled = _repeated([c.values for c in table.values()], codes, classes)
            n_copies = 0 if own is None else n_rows - int(own.max()) - 1
        frame = _frame(X, list(table), features, groups, beside.kept) if keep_frame else None
        data = cls(
            X=X_columns,
            y=codes,
            features=features,
            target=target,
            classes=classes,
            holes=holes,
            weights=weights,
            clusters=own,
            n_copies=n_copies,
            notes=(
                *beside.notes,
                *(column.note for column in table.values() if column.note),
                *_notes(encoded, X_columns, features, codes),
                *_note_of_copies(n_copies, n_rows),
                *oversampled,
                *_note_of_clusters(own),
            ),
            levels=_levels(parts),
            frame=frame,
            kept=beside.kept,
        )
        return data if beside.event is None else data._of_times(beside.event)

    @classmethod
    def _of_several(cls, X: object, several: Mapping[str, object], **options: Any) -> Dataset:
        """Return the table with several targets; the first of them decides on all else."""
        if options["event"] is not None or options["task"] not in ("auto", "regression"):
            raise InputError(
                f"There are {len(several)} targets: they are numbers, without event, and with "
                "task='auto' or 'regression'."
            )
        if options["missing_target"] != "refuse":
            raise InputError(
                f"missing_target='drop' is of one target, and there are {len(several)}. Drop rows "
                "without one of them first."
            )
        options["task"] = "regression"
        names = [name for name, values in several.items() if isinstance(values, str)]
        if names:
            table = columns_of(X)
            for name in names:
                _taken(dict(table), name)
            X = frame_of(X)
        parts = []
        for name, values in several.items():
            others = [other for other in names if other != name]
            part = X.drop(columns=others) if names else X  # type: ignore[attr-defined]
            parts.append(cls.from_table(part, values, **options))
        outputs = np.column_stack([part.y for part in parts])
        named = replace(parts[0], targets=tuple(several), target=" and ".join(several))
        return named._with_outputs(outputs)

    def _with_outputs(self, outputs: Array) -> Dataset:
        """Return the table with several targets, each of variance 1."""
        centred = outputs - np.average(outputs, axis=0, weights=self.weights)
        scaled = centred / np.sqrt(np.average(centred**2, axis=0, weights=self.weights))
        return replace(self, y=scaled[:, 0], outputs=scaled)

    def with_targets_of(self, whole: Dataset, rows: Rows) -> Dataset:
        """Return a table of some rows of a whole one with what that has beside y: targets, times.

        Rows are at risk among themselves.
        """
        if whole.outputs is not None:
            return self._with_outputs(whole.outputs[rows])
        if isinstance(whole.rule, PartialLikelihood):
            return self._in_hazards(whole.rule.at_rows(f"The target '{short(self.target)}'", rows))
        return self

    def of_output(self, k: int) -> Dataset:
        """Return the table with one of several targets."""
        assert self.outputs is not None
        return replace(self, y=np.ascontiguousarray(self.outputs[:, k]), outputs=None, targets=())

    @property
    def columns_of_y(self) -> Array:
        """Return y as columns: a number, several, or a mark for each class but the first."""
        if self.outputs is not None:
            return self.outputs
        if not self.classes:
            return self.y[:, None]
        return np.asarray(self.y[:, None] == np.arange(1, self.n_classes), dtype=float)

    def _of_times(self, event: Column) -> Dataset:
        """Return the table with hazard ratios to predict, where y is a time until an event."""
        time, seen = checked_times(f"The target '{short(self.target)}'", self.y, event.values)
        note = (
            f"'{short(self.target)}' is a time until an event, seen in {int(seen.sum()):,} of "
            f"{self.n_rows:,} rows: tests hold if, given all features, censoring does not depend "
            "on the time."
        )
        rule = PartialLikelihood.of_times(time, seen, self.weights)
        return replace(self._in_hazards(rule), notes=(note, *self.notes))

    def _in_hazards(self, rule: PartialLikelihood) -> Dataset:
        return replace(self, y=rule.target, weights=rule.weights, rule=rule)

    @property
    def is_survival(self) -> bool:
        """Return whether y is a time until an event."""
        return isinstance(self.rule, PartialLikelihood)

    def with_ratios(self, ratios: Array) -> Dataset:
        """Return the table of times with the baseline hazard of these hazard ratios."""
        assert isinstance(self.rule, PartialLikelihood)
        return self._in_hazards(self.rule.given(ratios))

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def n_features(self) -> int:
        return len(self.features)

    @property
    def names(self) -> list[str]:
        return [feature.name for feature in self.features]

    @property
    def task(self) -> str:
        if self.is_survival:
            return "survival"
        return "classification" if self.classes else "regression"

    def signal(self, prediction: Array) -> Array:
        """Return a prediction of numbers, the chance of the second of two classes, or all chances.

        Of three or more classes none is left out, so that their order does not matter.
        """
        return prediction[:, 1] if self.n_classes == 2 else prediction

    @property
    def n_classes(self) -> int:
        """Return the number of classes, 0 for a target of numbers."""
        return len(self.classes)

    def without(self, feature: int) -> Rows:
        """Return the columns of "the rest": all that the feature does not own."""
        kept = np.ones(self.X.shape[1], dtype=bool)
        kept[list(self.features[feature].columns)] = False
        return np.flatnonzero(kept)

    def testing(self, names: Collection[str]) -> Dataset:
        """Return the table with these features alone to test, each given all the others."""
        tested = [j for j, feature in enumerate(self.features) if feature.name in names]
        place = {j: new for new, j in enumerate(tested)}
        others = (f for j, f in enumerate(self.features) if j not in place)
        return replace(
            self,
            features=tuple(self.features[j] for j in tested),
            others=(*self.others, *others),
            levels=tuple(Levels(place.get(one.feature, -1), one.code) for one in self.levels),
        )

    def inputs(self, *, gaps: bool) -> Array:
        """Return the columns a learner sees; one that takes gaps gets them as NaN."""
        return self._with_gaps if gaps else self.X

    @cached_property
    def _with_gaps(self) -> Array:
        return self.X if self.holes is None else np.where(self.holes, np.nan, self.X)

    @cached_property
    def variance(self) -> Array:
        """Return the weighted variance of each column, unweighted where it has none by weights."""
        step = max(1, AT_ONCE // max(1, self.n_rows))
        starts = range(0, self.X.shape[1], step)
        parts = [_variance(self.X[:, at : at + step], self.weights) for at in starts]
        return np.concatenate(parts) if parts else np.empty(0)

    @cached_property
    def target_variance(self) -> float:
        """Return Var(Y); of three or more classes the sum of that of their indicators."""
        if self.outputs is not None:
            return float(self.outputs.shape[1])
        if self.rule is not None and self.rule.has_residuals:
            constant = np.full(self.n_rows, self.rule.constant(self.y, self.weights))
            return float(np.average(self.rule.left(self.y, constant) ** 2, weights=self.weights))
        if not self.classes:
            mean = np.average(self.y, weights=self.weights)
            return float(np.average((self.y - mean) ** 2, weights=self.weights))
        shares = np.bincount(self.y.astype(np.intp), self.weights) / (
            self.n_rows if self.weights is None else self.weights.sum()
        )
        return float((shares * (1 - shares)).sum() / (2 if self.n_classes == 2 else 1))

    def with_loss(self, rule: Loss | None) -> Dataset:
        """Return the table with another loss, or raise where it is not for this target."""
        if rule is None:
            return self if self.rule is None else replace(self, rule=None)
        what = f"The target '{short(self.target)}'"
        return replace(self, rule=rule.of(what, self.y, self.weights, self.n_classes))

    @cached_property
    def inflation(self) -> Array:
        """Return the variance inflation of each feature given the others, a mean over its columns.

        The covariance is shrunk (Ledoit and Wolf 2004), so that many columns and few rows do not
        pass for collinearity.
        """
        from sklearn.covariance import ledoit_wolf

        if self.X.shape[1] < 2:
            return np.ones(self.n_features)
        mean, spread = np.average(self.X, axis=0, weights=self.weights), np.sqrt(self.variance)
        scaled = (self.X - mean) / spread
        if self.weights is not None:
            scaled *= np.sqrt(self.weights)[:, None]
        covariance = ledoit_wolf(scaled, assume_centered=True)[0]
        product = covariance * np.linalg.pinv(covariance, hermitian=True)
        blocks = [list(feature.columns) for feature in self.features]
        return np.array([product[np.ix_(b, b)].sum() / len(b) if b else 1.0 for b in blocks])

    def left(self, prediction: Array, rows: Index) -> Array:
        """Return what is left of y: y − mean, or for classes indicator − probability."""
        if not self.classes:
            y = self.y[rows]
            return y - prediction if self.rule is None else self.rule.left(y, prediction)
        indicators = self.y[rows, None] == np.arange(1, self.n_classes)
        score: Array = indicators - prediction[:, 1:]
        return score[:, 0] if self.n_classes == 2 else score

    def loss(self, prediction: Array, rows: Index) -> Array:
        """Return each row's loss: the rule's, else squared error, or for classes the log-loss."""
        if self.rule is not None:
            return self.rule.of_rows(self.y, prediction, rows)
        if not self.classes:
            return (self.y[rows] - prediction) ** 2
        chosen = prediction[np.arange(len(prediction)), self.y[rows].astype(np.intp)]
        return np.asarray(-np.log(np.maximum(chosen, PROBABILITY_FLOOR)))

    def mean_prediction(self, train: Rows, n_rows: int) -> Array:
        """Return what one predicts from no features at all: the mean, or the class shares."""
        weights = None if self.weights is None else self.weights[train]
        if self.rule is not None and not self.classes:
            return np.full(n_rows, self.rule.constant(self.y[train], weights))
        if not self.classes:
            return np.full(n_rows, np.average(self.y[train], weights=weights))
        shares = np.bincount(self.y[train].astype(np.intp), weights, self.n_classes)
        return np.tile(shares / shares.sum(), (n_rows, 1))


def several_targets(y: object) -> dict[str, object]:
    """Return targets by their names where there are several: names, a frame or an array of them."""
    if isinstance(y, (list, tuple)) and len(y) > 1 and all(isinstance(one, str) for one in y):
        return {text_of(name): name for name in y} if len(y) < MIN_ROWS else {}
    if has_columns(y):
        columns = columns_of(y)
        frame = frame_of(y)
        return {name: frame[name] for name in columns} if len(columns) > 1 else {}
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] > 1:
        return {f"y{k}": y[:, k] for k in range(y.shape[1])}
    return {}


def _variance(X: Array, weights: Array | None) -> Array:
    plain = X.var(axis=0)
    if weights is None:
        return np.asarray(plain)
    found = np.average((X - np.average(X, axis=0, weights=weights)) ** 2, axis=0, weights=weights)
    return np.where(found > 1e-12 * plain, found, plain)


def _frame(
    X: object,
    names: list[str],
    features: tuple[Feature, ...],
    groups: Mapping[str, Sequence[str]],
    kept: Rows | None,
) -> Frame:
    """Return these columns of the table as they came, and which each feature owns."""
    owned = {f.name: tuple(groups.get(f.name, [f.name])) for f in features}
    frame = Frame(frame_of(X)[names], owned, tuple(names), not has_columns(X))
    return frame if kept is None else frame.at_rows(kept)


def _check_target(y: object, **others: object) -> None:
    """Raise where there is no target, or where another option names the same column."""
    for name, given in others.items():
        if isinstance(given, str) and isinstance(y, str) and given == y:
            raise InputError(f"{name}='{short(y)}' is the target. Name another column.")
    if y is None:
        raise InputError("There is no target. Give y, or the name of a column of X as y.")


def _name_of(y: object) -> str:
    name = getattr(y, "name", None)
    return "y" if is_gap(name) or not name else text_of(name)


@dataclass(frozen=True)
class _Beside:
    """The features' columns and what lies beside them, of the same rows."""

    table: dict[str, Column]
    y: Column | None
    weights: Column | None
    clusters: Column | None
    event: Column | None
    n_rows: int
    notes: tuple[str, ...] = ()
    kept: Rows | None = None


def _beside(
    problems: Problems, X: object, table: dict[str, Column], given: Mapping[str, object], drop: bool
) -> _Beside:
    """Return the target, weights and clusters as columns, with those of their names taken out."""
    taken = {what: problems.of(_taken, table, value) for what, value in given.items()}
    n_rows = len(next(iter(table.values()), ()))
    problems.of(_check_size, table, n_rows)
    notes, columns = [], []
    for what, value in taken.items():
        found = problems.of(_column, what, value, X, n_rows)
        column, note = (None, "") if found is None else found
        columns.append(column)
        notes += [text for text in (note, column.note if column else "") if text]
    y, weights, clusters, event = columns
    if not drop or y is None:
        return _Beside(table, y, weights, clusters, event, n_rows, tuple(notes))
    kept = np.array([at for at, value in enumerate(y.values) if not is_gap(value)], dtype=np.intp)
    if len(kept) == n_rows:
        return _Beside(table, y, weights, clusters, event, n_rows, tuple(notes))
    table = {name: column.at(kept) for name, column in table.items()}
    problems.of(_check_size, table, len(kept))
    notes.append(f"{plural(n_rows - len(kept), 'row')} of {n_rows:,} without a target left out.")
    y, weights, clusters, event = (
        None if c is None else c.at(kept) for c in (y, weights, clusters, event)
    )
    return _Beside(table, y, weights, clusters, event, len(kept), tuple(notes), kept)


def _column(what: str, value: object, X: object, n_rows: int) -> tuple[Column, str] | None:
    """Return one value a row, in the order of X's rows, and what was done for that."""
    if value is None:
        return None
    value, note = aligned(what, value, X)
    return vector(what, value, n_rows), note


def _taken(table: dict[str, Column], given: object) -> object:
    """Return a column taken out of the table where a name was given, else what was given."""
    if not isinstance(given, str):
        return given
    given = text_of(given)
    if given not in table:
        raise InputError(f"There is no column '{short(given)}'.{did_you_mean(given, table)}")
    return table.pop(given)


def _check_size(table: Mapping[str, Column], n_rows: int) -> None:
    if not table:
        raise InputError("No features are left besides the target. Give X at least one column.")
    if n_rows < MIN_ROWS:
        raise InputError(f"X has {plural(n_rows, 'row')}; at least {MIN_ROWS} are needed to test.")


def _target(name: str, y: object, n_rows: int, task: str) -> tuple[Array, tuple[str, ...]]:
    """Return y as numbers, or as class codes with the class names."""
    what = f"The target '{short(name)}'"
    raw = vector(what, y, n_rows)
    gone = _gaps(raw.values)
    if gone:
        raise InputError(
            f"{what} is missing in {plural(len(gone), 'row')} (the first is row {gone[0] + 1}). "
            "Drop those rows, or use missing_target='drop'."
        )
    distinct = np.unique(raw.values)
    if len(distinct) < 2:
        raise InputError(f"{what} is the same in every row. Choose a target that varies.")
    if task == "ordinal":
        return _mean_ranks(what, raw, distinct), ()
    is_text = raw.values.dtype == object or (raw.was_text and len(distinct) <= MAX_LEVELS)
    is_classes = raw.is_label or is_text or len(distinct) == 2
    if task == "classification" or (task == "auto" and is_classes):
        return _class_codes(what, raw, distinct)
    if raw.values.dtype == object:
        raise InputError(f"{what} holds text. Give numbers, or use task='classification'.")
    _check_numbers(what, raw.values)
    if is_constant(raw.values):
        raise InputError(f"{what} is the same in every row. Choose a target that varies.")
    return np.ascontiguousarray(raw.values, dtype=float), ()


def _mean_ranks(what: str, raw: Column, distinct: NDArray[np.generic]) -> Array:
    """Return the share of rows below each row's class and half of its own (ridits, Bross 1958)."""
    if raw.values.dtype == object and not raw.order:
        raise InputError(
            f"{what} holds text without an order. Give numbers, or an ordered category: "
            "pandas.Categorical(y, categories=[…], ordered=True)."
        )
    place = {label: at for at, label in enumerate(raw.order or distinct.tolist())}
    codes = np.array([place[value] for value in raw.values.tolist()], dtype=np.intp)
    counts = np.bincount(codes, minlength=len(place))
    return np.asarray((np.cumsum(counts) - counts / 2)[codes] / len(codes))


def _gaps(values: NDArray[np.generic]) -> list[int]:
    """Return which rows have no value."""
    if np.issubdtype(values.dtype, np.floating):
        return [int(at) for at in np.flatnonzero(np.isnan(values))]
    return [at for at, value in enumerate(values) if is_gap(value)]


def _class_codes(
    what: str, raw: Column, distinct: NDArray[np.generic]
) -> tuple[Array, tuple[str, ...]]:
    if len(distinct) > MAX_CLASSES:
        raise InputError(
            f"{what} has {len(distinct):,} classes, more than {MAX_CLASSES}. "
            "Merge rare ones, or give a target of numbers."
        )
    codes = np.searchsorted(distinct, raw.values).astype(float)
    return codes, tuple(f"{v:g}" if isinstance(v, float) else str(v) for v in distinct.tolist())


def _check_numbers(what: str, values: Array) -> None:
    """Raise where a number is infinite or too large to square."""
    bad = np.flatnonzero(np.isinf(values))
    if len(bad):
        raise InputError(
            f"{what} has infinite values in {plural(len(bad), 'row')} (the first is row "
            f"{bad[0] + 1}). Leave those cells blank or put in a finite number."
        )
    largest = float(np.nanmax(np.abs(values), initial=0.0))
    if largest > LARGEST:
        raise InputError(f"{what} has values beyond 1e60. Divide it by its scale first.")
    if 0 < largest < SMALLEST:
        raise InputError(f"{what} has only values below 1e-60. Divide it by its scale first.")


def is_constant(values: Array) -> bool:
    """Return whether the values differ by no more than rounding."""
    largest = float(np.max(np.abs(values), initial=0.0))
    return bool(np.ptp(values) <= 64 * np.finfo(float).eps * largest)


@dataclass(frozen=True)
class _Encoded:
    """The columns of numbers that one column of the table turns into."""

    kind: str
    columns: list[Array]
    holes: list[NDArray[np.bool_] | None]
    note: str = ""
    levels: Rows | None = None


NOTHING = _Encoded("constant", [], [])


def _encode(name: str, raw: Column) -> _Encoded:
    if raw.problem:
        raise InputError(raw.problem)
    if raw.values.dtype == object:
        return _encode_labels(name, raw.values)
    return _encode_numbers(name, raw.values)


def _encode_numbers(name: str, values: Array) -> _Encoded:
    """Return the number itself, or with gaps the filled number and a mark for each gap."""
    what = f"Column '{short(name)}'"
    _check_numbers(what, values)
    holes = np.isnan(values)
    if holes.all():
        return _Encoded("constant", [], [], f"{what} is empty: it says nothing and is left out.")
    filled = np.where(holes, np.median(values[~holes]), values) if holes.any() else values
    columns: list[Array] = []
    marks: list[NDArray[np.bool_] | None] = []
    if not is_constant(filled):
        columns, marks = [filled], [holes if holes.any() else None]
    if not holes.any():
        note = "" if columns else f"{what} is constant: it says nothing and is left out."
        return _Encoded("number" if columns else "constant", columns, marks, note)
    share = f"{what} is missing in {100 * holes.mean():.0f}% of rows: "
    note = share + "gaps are filled with the median and marked, and the mark is tested with it."
    return _Encoded("number", [*columns, holes.astype(float)], [*marks, None], note)


def _encode_labels(name: str, values: NDArray[np.generic]) -> _Encoded:
    """Return a 0/1 column for every level but the most common; gaps are a level too."""
    labels = np.array(["(missing)" if v is None else v for v in values], dtype=object)
    counts = Counter(labels.tolist())
    what = f"Column '{short(name)}'"
    note, code = "", None
    if len(counts) > MAX_LEVELS:
        kept = _common_levels(counts)
        alone = sum(count for count in counts.values() if count == 1)
        if alone <= POLICY.most_alone * len(labels):
            place = {label: at for at, label in enumerate(sorted(counts))}
            code = np.array([place[label] for label in labels], dtype=np.intp)
        labels = np.array([v if v in kept else "(other)" for v in labels], dtype=object)
        note = (
            f"{what} has {len(counts):,} levels: {len(kept)} common ones are tested, the others "
            "as one. Tests of other features adjust for "
            f"{'these' if code is None else 'all of them'}."
        )
        counts = Counter(labels.tolist())
    if len(counts) == 1:
        reason = "every row has a level of its own" if note else "it has one level"
        return _Encoded("constant", [], [], f"{what} is left out: {reason}.")
    levels = sorted(level for level, _ in ranked_levels(counts)[1:])
    # One by one: NumPy's text leaves out what ends in NUL.
    columns = [np.array([label == level for label in labels], dtype=float) for level in levels]
    return _Encoded("category", columns, [None] * len(columns), note, code)


def _common_levels(counts: Counter[str]) -> set[str]:
    """Return the levels that have a column: the most common, if possible not of few rows."""
    ranked = ranked_levels(counts)[: MAX_LEVELS - 1]
    for least in (POLICY.rare, POLICY.rarest):
        common = {v for v, count in ranked if count >= least}
        if common:
            return common
    return {v for v, count in ranked[:1] if count > 1}


def ranked_levels(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return levels from common to rare, equals by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _grouped(
    encoded: Mapping[str, _Encoded], groups: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, list[_Encoded]]]:
    """Return feature name → (kind, its members), a group standing where its first member stood."""
    owner: dict[str, str] = {}
    for group, members in groups.items():
        _check_group(group, members, encoded, owner)
        owner.update(dict.fromkeys(members, group))
    parts: dict[str, tuple[str, list[_Encoded]]] = {}
    for name, columns in encoded.items():
        if name not in owner:
            parts[name] = (columns.kind, [columns])
        elif owner[name] not in parts:
            members = sorted(groups[owner[name]], key=natural)
            parts[owner[name]] = ("group", [encoded[member] for member in members])
    return parts


def named_groups(groups: object) -> dict[str, list[str]]:
    """Return the groups with names as text, as the columns have them, and no member twice."""
    if groups is None:
        return {}
    if not isinstance(groups, Mapping):
        raise InputError("groups must name each group, such as {'place': ['lat', 'lon']}.")
    named = {}
    for group, members in groups.items():
        if isinstance(members, str) or not isinstance(members, Iterable):
            members = []
        named[text_of(group)] = list(dict.fromkeys(text_of(member) for member in members))
    return named


def named_features(features: object, data: Dataset, groups: object) -> tuple[str, ...]:
    """Return the names of the features that are asked for, in the order of the table."""
    given: list[object] = [features] if isinstance(features, str) else []
    if isinstance(features, Iterable) and not given and not isinstance(features, Mapping):
        given = list(features)
    if not given:
        raise InputError(
            f"features={shown(features)} names none. Give a list of names, such as "
            f"{data.names[:2]}, or None for all."
        )
    asked = {text_of(name) for name in given}
    member_of = named_groups(groups if isinstance(groups, Mapping) else None)
    for name in sorted(asked.difference(data.names)):
        for group, members in member_of.items():
            if name in members:
                raise InputError(
                    f"features names '{short(name)}', which is tested as part of group "
                    f"'{short(group)}'. Ask for the group."
                )
        hint = did_you_mean(name, data.names)
        raise InputError(f"features names '{short(name)}', which is no feature.{hint}")
    return tuple(name for name in data.names if name in asked)


def _check_group(
    group: str, members: Sequence[str], encoded: Mapping[str, _Encoded], owner: Mapping[str, str]
) -> None:
    if not group.strip():
        raise InputError("A group has no name. Call it by what its columns have in common.")
    if not members:
        raise InputError(f"Group '{short(group)}' needs a list of columns, such as ['lat', 'lon'].")
    for member in members:
        if member not in encoded:
            hint = did_you_mean(member, encoded)
            raise InputError(f"Group '{short(group)}' names '{short(member)}', not a column.{hint}")
        if member in owner:
            raise InputError(f"Column '{short(member)}' is in two groups. Leave it in one.")
    if group in encoded and group not in members:
        raise InputError(f"Group '{short(group)}' has the name of a column. Rename the group.")


def _laid_out(
    parts: Mapping[str, tuple[str, list[_Encoded]]], n_rows: int
) -> tuple[Array, NDArray[np.bool_] | None, tuple[Feature, ...]]:
    """Return the columns side by side and who owns them.

    Columns lie in the order of the features' names, whatever the order of the table: so a
    table with its columns permuted gives every learner the same numbers in the same places.
    """
    columns: list[Array] = []
    holes: list[NDArray[np.bool_] | None] = []
    owned: dict[str, tuple[int, ...]] = {}
    for name in sorted(parts, key=natural):
        members = parts[name][1]
        start = len(columns)
        columns += [column for member in members for column in member.columns]
        holes += [hole for member in members for hole in member.holes]
        owned[name] = tuple(range(start, len(columns)))
    X = np.column_stack(columns) if columns else np.empty((n_rows, 0))
    features = tuple(
        Feature(name, kind if owned[name] else "constant", owned[name])
        for name, (kind, _) in parts.items()
    )
    return np.ascontiguousarray(X), _stacked_holes(holes, n_rows), features


def _levels(parts: Mapping[str, tuple[str, list[_Encoded]]]) -> tuple[Levels, ...]:
    """Return the categories of many levels, by the number of their feature."""
    return tuple(
        Levels(j, member.levels)
        for j, (_, members) in enumerate(parts.values())
        for member in members
        if member.levels is not None
    )


def natural(name: str) -> list[tuple[int, int, str, str]]:
    """Return a sort key under which x2 comes before x10.

    >>> sorted(["x10", "x2", "area"], key=natural)
    ['area', 'x2', 'x10']
    """
    parts = re.split(r"([0-9]+)", name)
    return [_number_key(p) if p.isdigit() and p.isascii() else (1, 0, p, "") for p in parts if p]


def _number_key(digits: str) -> tuple[int, int, str, str]:
    """Return a sort key of a number of any length: longer ones are larger."""
    bare = digits.lstrip("0")
    return (0, len(bare), bare, digits)


def _stacked_holes(holes: list[NDArray[np.bool_] | None], n_rows: int) -> NDArray[np.bool_] | None:
    if not any(hole is not None for hole in holes):
        return None
    none = np.zeros(n_rows, dtype=bool)
    return np.column_stack([none if hole is None else hole for hole in holes])


def _weights(given: object, n_rows: int, cure: str) -> Array | None:
    """Return weights scaled to mean one."""
    if given is None:
        return None
    values = vector("sample_weight", given, n_rows).values
    if values.dtype == object or not np.isfinite(values).all() or (values < 0).any():
        raise InputError(f"sample_weight must be numbers of 0 or more, without gaps{cure}.")
    if not (values > 0).sum() >= MIN_ROWS:
        few = f"fewer than {MIN_ROWS} rows with weight above zero"
        raise InputError(f"sample_weight leaves {few}{cure}.")
    values = values / values.max()
    return np.asarray(values / values.mean(), dtype=float)


def _clusters(given: object, n_rows: int) -> Rows | None:
    """Return a code per cluster."""
    if given is None:
        return None
    raw = vector("clusters", given, n_rows)
    if any(is_gap(v) for v in raw.values):
        raise InputError("clusters has gaps. Give every row the cluster it belongs to.")
    distinct, codes = np.unique(raw.values, return_inverse=True)
    if len(distinct) == n_rows:  # every row is one by itself
        return None
    if len(distinct) < MIN_CLUSTERS:
        raise InputError(
            f"clusters has {plural(len(distinct), 'cluster')}; at least {MIN_CLUSTERS} are needed."
        )
    return codes.astype(np.intp)


def _repeated(
    columns: list[NDArray[np.generic]], y: Array, classes: Sequence[str]
) -> tuple[Rows | None, tuple[str, ...]]:
    """Return a cluster for each row and its copies, or what to say of a class of many repeats."""
    own = _copies(columns, y, bool(classes))
    if own is not None or not classes:
        return own, ()
    return None, tuple(_note_of_oversampling(columns, y, classes))


def _copies(columns: list[NDArray[np.generic]], y: Array, has_classes: bool) -> Rows | None:
    """Return a cluster for each row and its copies; None without copies, or with few other rows.

    Weights do not tell copies apart: they say how much a row counts, not what was observed.
    """
    found = find_copies([*columns, y], y if has_classes else None)
    return None if found is None or int(found.max()) + 1 < MIN_ROWS else found


def _note_of_copies(n_copies: int, n_rows: int) -> Iterable[str]:
    if n_copies:
        yield (
            f"{plural(n_copies, 'row')} of {n_rows:,} {'repeats' if n_copies == 1 else 'repeat'} "
            "another in every column and the target. Copies stay in one fold and count as one "
            "cluster; if each is an observation of its own, give clusters=range(len(y))."
        )


def _note_of_oversampling(
    columns: list[NDArray[np.generic]], y: Array, classes: Sequence[str]
) -> Iterable[str]:
    """Yield which class has many more rows that repeat another, though chance may do that."""
    is_repeat = repeats([*columns, y])
    shares = np.array([is_repeat[y == k].mean() for k in range(len(classes))])
    *_, second, largest = np.sort(shares)
    if largest >= POLICY.oversampled and largest > 3 * second:
        name = classes[int(np.argmax(shares))]
        yield (
            f"{100 * largest:.0f}% of the rows of class '{short(name)}' repeat another, of other "
            f"classes {100 * second:.0f}% or fewer. If rows were copied to balance the classes, "
            "p-values are too small: test the table as it was before."
        )


def _notes(
    encoded: Mapping[str, _Encoded], X: Array, features: tuple[Feature, ...], y: Array
) -> Iterable[str]:
    """Yield what a user should know about the table before trusting the answer."""
    yield from (column.note for column in encoded.values() if column.note)
    yield from _same_values(X, features)
    if len(y) < 50:
        yield f"There are only {len(y)} rows: p-values rest on large samples and are rough here."
    if X.shape[1] >= len(y):
        yield f"There are more columns ({X.shape[1]:,}) than rows ({len(y):,}): expect low power."


def _note_of_clusters(clusters: Rows | None) -> Iterable[str]:
    count = 0 if clusters is None else len(np.unique(clusters))
    if 0 < count < POLICY.few_clusters:
        yield f"There are only {count} clusters: p-values rest on {count - 1} degrees of freedom."
    largest = 0.0 if clusters is None else np.bincount(clusters).max() / len(clusters)
    if largest > POLICY.largest_cluster:
        yield (
            f"One cluster has {100 * largest:.0f}% of the rows: p-values may be too small. Split "
            "it if its parts are independent."
        )


def _same_values(X: Array, features: tuple[Feature, ...]) -> Iterable[str]:
    first: dict[bytes, str] = {}
    for feature in features:
        if len(feature.columns) != 1:
            continue
        key = X[:, feature.columns[0]].tobytes()
        twin = first.setdefault(key, feature.name)
        if twin != feature.name:
            yield (
                f"Columns '{short(twin)}' and '{short(feature.name)}' hold the same values: "
                "neither adds to the other, so drop one or group them."
            )


def of_all_classes(left: Array) -> Array:
    """Return what is left of all classes, from what is left of all but the first.

    Probabilities add up to 1, so what is left of them adds up to 0.
    """
    return np.concatenate([-left.sum(axis=-1, keepdims=True), left], axis=-1)


def as_slice(index: Rows) -> Index:
    """Return a run of numbers as a slice, which needs no copy; any other index as it is."""
    start, stop = int(index[0]), int(index[-1]) + 1
    side_by_side = stop - start == len(index) and (index[1:] - index[:-1] == 1).all()
    return slice(start, stop) if side_by_side else index
