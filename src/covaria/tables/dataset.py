"""Dataset: a table checked once, in which every feature owns its columns.

A category becomes one column per level but the most common, a number with gaps becomes the
filled number and a column that marks the gaps, a group owns the columns of its members. Each
stays ONE feature. Learners see columns of numbers and no names; users see names and no columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError, Problems, did_you_mean, short, text_of
from covaria.options.checks import one_of, shown
from covaria.tables.arrays import Array, Index, Rows, column_blocks
from covaria.tables.beside import (
    note_of_clusters,
    note_of_copies,
    read_beside,
    read_clusters,
    read_weights,
    repeated_rows,
    take_column,
)
from covaria.tables.frames import Frame
from covaria.tables.layout import (
    Encoded,
    Feature,
    Levels,
    encode_all,
    grouped,
    laid_out,
    levels_of,
    named_groups,
)
from covaria.tables.losses import Loss
from covaria.tables.policy import POLICY
from covaria.tables.reading import Column, columns_of, frame_of, has_columns
from covaria.tables.survival import PartialLikelihood, checked_times
from covaria.tables.targets import TASKS, check_target, name_of_target, read_target, several_targets

PROBABILITY_FLOOR = 1e-6
# In so many rows columns are compared before they are in all.
TRIED_ROWS = 8
MISSING_TARGET = ("refuse", "drop")


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
            return cls._of_several(
                X, several, groups=groups, sample_weight=sample_weight, clusters=clusters,
                event=event, task=task, copies=copies, keep_frame=keep_frame,
                missing_target=missing_target,
            )  # fmt: skip
        missing_target = one_of("missing_target", missing_target, MISSING_TARGET)
        table, problems = columns_of(X), Problems()
        target = text_of(y) if isinstance(y, str) else name_of_target(y)
        check_target(y, sample_weight=sample_weight, clusters=clusters, event=event)
        cure = f"; mend column '{short(sample_weight)}'" if isinstance(sample_weight, str) else ""
        what = {f"The target '{short(target)}'": y, "sample_weight": sample_weight,
                "clusters": clusters, "event": event}  # fmt: skip
        task = task if event is None else "regression"
        beside = read_beside(problems, X, table, what, drop=missing_target == "drop")
        table, n_rows = beside.table, beside.n_rows
        read_y = problems.of(read_target, target, beside.y, n_rows, task) if beside.y else None
        encoded = encode_all(table, problems)
        parts = problems.of(grouped, encoded, groups)
        weights = problems.of(read_weights, beside.weights, n_rows, cure)
        own, n_copies = problems.of(read_clusters, beside.clusters, n_rows), 0
        problems.settle()
        assert read_y is not None
        assert parts is not None
        codes, classes = read_y
        numbers, holes, features = laid_out(parts, n_rows)
        oversampled: tuple[str, ...] = ()
        if copies and clusters is None:
            own, oversampled = repeated_rows([c.values for c in table.values()], codes, classes)
            n_copies = 0 if own is None else n_rows - int(own.max()) - 1
        notes = (
            *beside.notes,
            *(column.note for column in table.values() if column.note),
            *_notes(encoded, numbers, features, codes),
            *note_of_copies(n_copies, n_rows),
            *oversampled,
            *note_of_clusters(own),
        )
        frame = _frame(X, list(table), features, groups, beside.kept) if keep_frame else None
        data = cls(numbers, codes, features, target, classes, holes, weights, own, n_copies, notes,
                   levels=levels_of(parts), frame=frame, kept=beside.kept)  # fmt: skip
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
                take_column(dict(table), name)
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

    def owns_all(self, feature: int) -> bool:
        """Return whether a feature owns every column, so that there is no rest."""
        return bool(len(self.features[feature].columns) == self.X.shape[1])

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
        blocks = column_blocks(*self.X.shape)
        parts = [_variance(self.X[:, some], self.weights) for some in blocks]
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


def _notes(
    encoded: Mapping[str, Encoded], X: Array, features: tuple[Feature, ...], y: Array
) -> Iterable[str]:
    """Yield what a user should know about the table before trusting the answer."""
    yield from (column.note for column in encoded.values() if column.note)
    yield from _same_values(X, features)
    if len(y) < POLICY.few_rows:
        yield f"There are only {len(y)} rows: p-values rest on large samples and are rough here."
    if X.shape[1] >= len(y):
        yield f"There are more columns ({X.shape[1]:,}) than rows ({len(y):,}): expect low power."


def _same_values(X: Array, features: tuple[Feature, ...]) -> Iterable[str]:
    first: dict[bytes, str] = {}
    for feature in _not_alone(X, [one for one in features if len(one.columns) == 1]):
        key = X[:, feature.columns[0]].tobytes()
        twin = first.setdefault(key, feature.name)
        if twin != feature.name:
            yield (
                f"Columns '{short(twin)}' and '{short(feature.name)}' hold the same values: "
                "neither adds to the other, so drop one or group them."
            )


def _not_alone(X: Array, features: Sequence[Feature]) -> list[Feature]:
    """Return the features that others agree with in a few rows, as most do not."""
    some = np.linspace(0, len(X) - 1, TRIED_ROWS).astype(np.intp)
    keys = [X[some, feature.columns[0]].tobytes() for feature in features]
    counts = Counter(keys)
    return [one for one, key in zip(features, keys, strict=True) if counts[key] > 1]
