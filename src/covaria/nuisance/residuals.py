"""Residuals: what every regression of a plan leaves of y and of each feature, out of fold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from covaria.nuisance.many_levels import less_means
from covaria.nuisance.plan import Choices, Plan
from covaria.nuisance.policy import POLICY
from covaria.nuisance.splits import Fold, in_parts
from covaria.randomness import stream
from covaria.tables.arrays import Rows, column_blocks, in_one_piece, of_all_classes
from covaria.tables.dataset import Dataset

Array = NDArray[np.float64]
# Residuals below this share of a column's spread are rounding.
ROUNDING = 1e-10
TINY = 1e-300
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
    `second` are those of a second learner (`nuisance/second_opinion.py`) on all training rows and
    on either half of them; features were `asked` about, and for some it `matched` the first.
    `model_noise` is the share of noise in the predictions of each feature's two regressions, where
    that was measured, `learning_curves` the share of what is left of x_j, and of y, that halving
    the rows added, `unlearned` the share that they may still learn, and `attenuation` by how much
    the correlation of the two, and the coefficient of the one on the other, are too small for that,
    (2, features);
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
    most_noise: Array | float = np.inf
    learning_curves: Array | None = None
    unlearned: Array | None = None
    attenuation: Array | None = None
    widening: Array | None = None
    within: Mapping[int, Rows] = field(default_factory=dict)
    folds: Sequence[Fold] = ()
    second: tuple[Residuals, ...] = ()
    asked: tuple[int, ...] = ()
    matched: frozenset[int] = frozenset()
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
        second = tuple(one.within_levels() for one in self.second)
        return replace(self, arrays=arrays, widening=widening, within=within, second=second)

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
    def doubt(self) -> Array:
        """Return the share of each mean product that a second look does not confirm."""
        return self._doubt(lambda one, j: (*one.pair(j), one.products_of(j)))

    @cached_property
    def doubt_of_functions(self) -> Array:
        """Return the same of the functions that PCM tests, where these speak for an effect."""
        found = self._doubt(lambda one, j: (*one.function(j), one.products_of_functions(j)))
        is_for = [self.weighted(self.products_of_functions(j)).mean() > 0 for j in self.asked]
        found[list(self.asked)] *= is_for
        return found

    def _doubt(self, parts: Callable[[Residuals, int], tuple[Array, Array, Array]]) -> Array:
        found = np.zeros(self.data.n_features)
        for j in self.asked:
            x, y, products = parts(self, j)
            first = self.weighted(products)
            size = np.outer(self._mean_square(x), self._mean_square(y)).sum()
            seen = np.sqrt(np.square(first.mean(axis=0)).sum() / max(size, TINY))
            found[j] = min(1.0, self.missed[j] / max(seen, TINY))
            if j in self.matched:
                second = [self.weighted(parts(one, j)[2]) for one in self.second]
                found[j] = max(found[j], unconfirmed(first, second))
        return found

    def _mean_square(self, left: Array) -> Array:
        return np.asarray(np.average(left**2, axis=0, weights=self.weights))

    @cached_property
    def missed(self) -> Array:
        """Return the correlation that what both regressions still miss may make, per feature."""
        if self.unlearned is None:
            return np.zeros(self.data.n_features)
        return np.asarray(POLICY.still_missed * np.sqrt(self.unlearned.prod(axis=1)))

    def products_of(self, j: int) -> Array:
        """Return products of residuals, a column for each pair of columns of a feature and y."""
        x, y = self.pair(j)
        return np.asarray((x[:, :, None] * y[:, None, :]).reshape(len(x), -1))

    def function(self, j: int) -> tuple[Array, Array]:
        """Return what is left of a feature's function, and of y, (n, classes) each."""
        f, y = self.f_given_rest[:, j], self.y_given_rest[:, j]
        y = of_all_classes(y) if self.data.n_classes > 2 else y
        return f.reshape(len(f), -1), y.reshape(len(y), -1)

    def products_of_functions(self, j: int) -> Array:
        """Return what PCM averages, added up over classes, as one column."""
        f, y = self.function(j)
        return np.asarray((f * y).sum(axis=1, keepdims=True))

    def feature(self, j: int) -> tuple[Array, Array]:
        """Return what is left of a feature, (n, columns), and of y given the rest, (n, classes)."""
        y = self.y_given_rest[:, j]
        return self.columns_of(j), y.reshape(len(y), -1)

    def pair(self, j: int) -> tuple[Array, Array]:
        """Return the same with a column for every class, whichever comes first."""
        x, y = self.feature(j)
        return x, of_all_classes(y) if self.data.n_classes > 2 else y

    def columns_of(self, j: int) -> Array:
        """Return what is left of a feature, (n, columns)."""
        return self.left_of(list(self.data.features[j].tested))

    def left_of(self, columns: Sequence[int]) -> Array:
        """Return what is left of columns, (n, columns)."""
        own = list(columns)
        x, is_left = self.x_given_rest[:, own], self._is_left[own]
        return x if is_left.all() else np.where(is_left, x, 0.0)

    @cached_property
    def _is_left(self) -> NDArray[np.bool_]:
        """Return of which columns more than rounding is left.

        Of those that the rest determine rounding is, as of a region given its towns.
        """
        x = self.x_given_rest
        squares = [np.square(x[:, some]).mean(axis=0) for some in column_blocks(*x.shape)]
        return np.asarray(
            np.concatenate([*squares, np.empty(0)]) > ROUNDING**2 * self.data.variance
        )

    @cached_property
    def by_width(self) -> tuple[list[int], list[int], list[int]]:
        """Return the features with one product a row, their columns, and those with several."""
        one_score = self.y_given_rest.ndim == 2
        owned = [feature.tested for feature in self.data.features]
        single = [j for j, columns in enumerate(owned) if len(columns) == 1 and one_score]
        known = set(single)
        several = [j for j, columns in enumerate(owned) if columns and j not in known]
        return single, [owned[j][0] for j in single], several

    @cached_property
    def sizes(self) -> tuple[Array, Array]:
        """Return the root mean squares of both residuals of the features with one product a row."""
        single, columns, _ = self.by_width
        pair = (self.x_given_rest, columns), (self.y_given_rest, single)
        x, y = (np.sqrt(self._mean_squares(array, own)) for array, own in pair)
        return x, y

    def _mean_squares(self, array: Array, columns: Sequence[int]) -> Array:
        blocks = column_blocks(len(array), len(columns))
        squares = (np.square(in_one_piece(array, columns[some])) for some in blocks)
        means = [np.average(own, axis=0, weights=self.weights) for own in squares]
        return np.concatenate(means) if means else np.empty(0)

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


def unconfirmed(first: Array, second: Sequence[Array]) -> float:
    """Return the share of a statistic that a second learner does not confirm, from 0 to 1.

    `first` are the products of the rows, `second` those of the second learner on all training rows
    and on halves. Of several columns the direction counts that the first point to.

    >>> spread = np.array([[-1.0], [1.0]])
    >>> [unconfirmed(4 + spread, [mean + spread] * 3) for mean in (5, 2, 0, -1)]
    [0.0, 0.5, 1.0, 1.0]
    """
    spread = first.var(axis=0)
    towards = first.mean(axis=0) / np.where(spread > 0, spread, np.inf)
    seen, full, *halves = (one @ towards for one in (first, *second))
    endless = full + POLICY.endless * (full - sum(halves) / len(halves))
    if seen.mean() <= 0:
        return 0.0
    ratio, other = (one.mean() / max(one.std(), TINY) for one in (seen, endless))
    return float(1 - np.clip(other / ratio, 0, 1))
