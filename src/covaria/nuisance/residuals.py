"""Residuals: what every regression of a plan leaves of y and of each feature, out of fold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from covaria.nuisance.many_levels import less_means
from covaria.nuisance.plan import Choices, Plan
from covaria.nuisance.policy import POLICY
from covaria.nuisance.splits import Fold, in_parts
from covaria.randomness import stream
from covaria.tables.arrays import Rows, over
from covaria.tables.dataset import Dataset

Array = NDArray[np.float64]
# Residuals below this share of a column's spread are rounding.
ROUNDING = 1e-10
# Where one part of the rows is tested, functions are learned in turn from so many parts of it.
FEWEST_PARTS = 5


@dataclass(frozen=True)
class Residuals:
    """What is left of y and of each feature, out of fold, and each row's loss.

    Rows are the tested rows in the order of the table. `y_given_rest` and the losses have a
    column per feature, `x_given_rest` a column per column of `data.X`. With three or more
    classes what is left of y has one more axis: a column per class but the first. `n_train` is
    the rows a model learned from, 0 where it was tested on those same rows. `learners` are those
    that each regression chose, fold by fold, where it had a choice; `choices` says how.
    `halves` are those of models that learned from half the training rows each, and `may_miss` says
    for which features both regressions may err alike (`nuisance/extrapolation.py`), `by_line` for
    which of these one is a line, and halves of functions were not fitted. `model_noise`
    is the share of noise in the predictions of each feature's two regressions, where that was
    measured, `learning_curves` the share of what is left of x_j, and of y, that more rows would
    take away, `unlearned` the same, but no less than the noise of their models suggests, and
    `attenuation` by how much the correlation of the two is too small for that;
    `widening` what taking means of levels off both costs their product, and `within` the levels of
    each feature for which that were those of one category. `by_learners` has what learners left
    before chosen columns were taken off (`nuisance/selected.py`).
    """

    data: Dataset
    rows: Rows
    arrays: Mapping[str, Array]
    failures: Mapping[tuple[str, int], str] = field(default_factory=dict)
    fits: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    n_folds: int = 1
    n_train: int = 0
    engine: str = "plain"
    learners: Mapping[tuple[str, int], Sequence[str]] = field(default_factory=dict)
    choices: Choices | None = None
    fold: Rows = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # that tested each row
    model_noise: Array | None = None
    learning_curves: Array | None = None
    unlearned: Array | None = None
    attenuation: Array | None = None
    widening: Array | None = None
    within: Mapping[int, Rows] = field(default_factory=dict)
    folds: Sequence[Fold] = ()
    halves: tuple[Residuals, ...] = ()
    may_miss: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    by_line: NDArray[np.bool_] | bool = False
    is_given: bool = False  # whether the model of y on all columns was fitted elsewhere
    n_given: int = 0  # the rows that it learned from, 0 where that was not told
    by_learners: Residuals | None = None

    @property
    def y_given_all(self) -> Array:
        return self.arrays["y_given_all"]

    @property
    def y_given_rest(self) -> Array:
        return self.arrays["y_given_rest"]

    @property
    def x_given_rest(self) -> Array:
        return self.arrays["x_given_rest"]

    @property
    def f_given_rest(self) -> Array:
        """Return what is left of a function of each feature that the training rows suggest.

        With three or more classes one more axis has a function for each of them, the first too.
        """
        return self.arrays["f_given_rest"]

    @property
    def square_given_rest(self) -> Array:
        """Return what is left of the square of each feature, where it owns one column."""
        return self.arrays["square_given_rest"]

    @property
    def loss_given_all(self) -> Array:
        """Return each row's loss under the full model, as a column beside the features."""
        return self.arrays["loss_given_all"][:, None]

    @property
    def loss_given_rest(self) -> Array:
        return self.arrays["loss_given_rest"]

    @property
    def loss_dropped(self) -> Array:
        return self.arrays["loss_dropped"]

    @property
    def loss_permuted(self) -> Array:
        return self.arrays["loss_permuted"]

    @property
    def loss_conditional(self) -> Array:
        """Return the loss with each feature drawn anew given the others."""
        return self.arrays["loss_conditional"]

    @property
    def loss_lazy(self) -> Array:
        return self.arrays["loss_lazy"][:, :-1]

    @property
    def loss_stepped(self) -> Array:
        """Return each row's loss under the full network after a step of its own, as a column."""
        return self.arrays["loss_lazy"][:, -1:]

    @cached_property
    def of_lazy_networks(self) -> Residuals:
        """Return the residuals of lazily refitted networks and of the masked one as GCM's two."""
        if "y_lazy" not in self.arrays:
            return self  # these are they
        names = {"y_given_rest": self.arrays["y_lazy"][:, :-1], "x_given_rest": self.x_masked}
        return replace(self, arrays=names, widening=None, within={}).within_levels()

    def within_levels(self) -> Residuals:
        """Return residuals less their means within the levels that one of them goes with."""
        if not self.data.levels or "y_given_rest" not in self.arrays:
            return self
        arrays, widening, within = less_means(self.data, self.rows, self.arrays)
        halves = tuple(half.within_levels() for half in self.halves)
        return replace(self, arrays=arrays, widening=widening, within=within, halves=halves)

    @property
    def x_masked(self) -> Array:
        """Return what the network that masks each feature in turn leaves of the columns."""
        return self.arrays["x_masked"]

    @property
    def n_learned(self) -> int:
        """Return the rows that the model of y on all columns learned from, 0 if it is not known."""
        return self.n_given if self.is_given else self.n_train

    @property
    def weights(self) -> Array | None:
        """Return the weights of the tested rows, scaled to mean one."""
        if self.data.weights is None:
            return None
        weights = self.data.weights[self.rows]
        return np.asarray(weights / weights.mean())

    @property
    def clusters(self) -> Rows | None:
        return None if self.data.clusters is None else self.data.clusters[self.rows]

    def weighted(self, scores: Array) -> Array:
        """Return scores whose plain mean and sd are the weighted mean and its sd.

        A row with weight w stands at mean + w (score − mean): the influence of that row on
        the weighted mean. So estimate, error and efficiency still come from one array.
        """
        if self.weights is None:
            return scores
        w = self.weights.reshape(-1, *[1] * (scores.ndim - 1))
        mean = (w * scores).mean(axis=0)
        return np.asarray(mean + w * (scores - mean))

    @cached_property
    def missed(self) -> Array:
        """Return the correlation of residuals that what both still miss may make, per feature."""
        if not self.halves or self.unlearned is None:
            return np.zeros(self.data.n_features)
        shares = np.nan_to_num(self.unlearned)
        return np.asarray(np.sqrt(shares.prod(axis=1)) * self.may_miss)

    @cached_property
    def missed_of_functions(self) -> Array:
        """Return the same of the functions that PCM tests."""
        if not self.halves or self.unlearned is None:
            return np.zeros(self.data.n_features)
        full, *halves = (self._size_of_functions(one) for one in (self, *self.halves))
        gap = POLICY.still_missed * over(np.mean(halves, axis=0) - full, full)
        gap = np.where(self.by_line, np.nan_to_num(self.unlearned[:, 0]), gap)
        shares = gap.clip(0, 1) * np.nan_to_num(self.unlearned[:, 1])
        return np.asarray(np.sqrt(shares) * self.may_miss)

    def _size_of_functions(self, of: Residuals) -> Array:
        squares = of.f_given_rest.reshape(*of.f_given_rest.shape[:2], -1) ** 2
        return np.asarray(np.average(squares.sum(axis=2), axis=0, weights=self.weights))

    def feature(self, j: int) -> tuple[Array, Array]:
        """Return what is left of a feature, (n, columns), and of y given the rest, (n, classes)."""
        y = self.y_given_rest[:, j]
        return self.columns_of(j), y.reshape(len(y), -1)

    def columns_of(self, j: int) -> Array:
        """Return what is left of a feature, (n, columns)."""
        return self.left_of(list(self.data.features[j].tested))

    def left_of(self, columns: Sequence[int]) -> Array:
        """Return what is left of columns, (n, columns)."""
        own = list(columns)
        x = self.x_given_rest[:, own]
        # Of columns that the rest determine rounding is left, as of a region given its towns.
        is_left = (x**2).mean(axis=0) > ROUNDING**2 * self.data.variance[own]
        return np.where(is_left, x, 0.0)

    def failure(self, needs: Iterable[str], feature: int) -> str:
        """Return why a feature has no score, or nothing."""
        for need in needs:
            for key in ((need, feature), (need, -1)):
                if key in self.failures:
                    return self.failures[key]
        return ""

    @cached_property
    def mean_loss(self) -> float:
        """Return the loss of predicting the mean: Var(Y), or for classes the entropy."""
        data, everything = self.data, np.arange(self.data.n_rows, dtype=np.intp)
        if data.outputs is not None:
            return data.target_variance
        losses = data.loss(data.mean_prediction(everything, data.n_rows), everything)
        return float(np.average(losses, weights=data.weights))

    @cached_property
    def spread(self) -> float:
        """Return the same for squared error or log-loss, whatever gains are measured by."""
        if self.data.rule is None:
            return self.mean_loss
        if self.data.rule.has_residuals:
            return self.data.target_variance
        return replace(self, data=self.data.with_loss(None)).mean_loss


def row_parts(plan: Plan, residuals: Residuals) -> Rows:
    """Return the fold of each row, or one of a few parts where all are tested by one fold."""
    if residuals.n_folds > 1:
        return residuals.fold
    rng = stream(plan.seed, "functions", plan.repeat)
    return in_parts(residuals.rows, plan.data.clusters, FEWEST_PARTS, rng)
