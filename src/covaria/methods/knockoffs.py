"""Knockoffs: every feature against a copy of itself that knows nothing of y.

Barber and Candès, Annals of Statistics 43 (2015); Candès, Fan, Janson and Lv, JRSSB 80 (2018).
One model sees the features and their knockoffs side by side, and W_j is the importance of feature
j less that of its knockoff. For a useless feature either sign is as likely, whatever the others
do, so the W below −t count the false ones above t, and

    T = min{t > 0 among |W| : (offset + #{W ≤ −t}) / max(1, #{W ≥ t}) ≤ fdr}

selects the features with W ≥ T. Offset 1 (knockoff+) bounds the false discovery rate by `fdr`.

Another draw of knockoffs can give another selection. With several draws each feature has
an e-value, the mean over draws of p 1{W ≥ T} / (1 + #{W ≤ −T}) with T at fdr/2, and
e-BH selects: Ren and Barber, JRSSB 86 (2024).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil
from numbers import Real

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.errors import InputError, did_you_mean, is_whole
from covaria.learners.estimators.boosting import (
    GradientBoosting,
    bags,
    leaf_of_rows,
    mean,
    score_targets,
)
from covaria.methods.choice import Choice
from covaria.methods.knockoff_blocks import Blocks, fit_blocks
from covaria.methods.knockoff_sampling import CONSTRUCTIONS, Sampler, fit_sampler
from covaria.methods.lasso import cross_validate
from covaria.options.checks import whole
from covaria.tables.dataset import Dataset
from covaria.tables.layout import is_constant

Array = NDArray[np.float64]
Whole = NDArray[np.intp]
Flags = NDArray[np.bool_]

# The lambdas of R's stat.glmnet_coefdiff, as shares of the largest.
LAMBDAS = 2000.0 ** (-np.arange(500) / 500)
# A sum of M fractions may miss a limit that it equals by rounding.
ROUNDING = 1e-12


MOST_REPEATS, LEAST_FDR = 10_000, 1e-100


@dataclass(frozen=True)
class Knockoffs:
    """Features chosen by second-order Gaussian knockoffs, with the false discovery rate bounded.

    construction is "sdp", "mvr" or "equicorrelated"; statistic is "lasso" or "boosting"; offset is
    1 (knockoff+) or 0; repeats above 1 draw that many sets of knockoffs and combine them.
    """

    fdr: float = 0.2
    construction: str = "sdp"
    statistic: str = "lasso"
    offset: int = 1
    repeats: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.fdr, Real) or not 0 < self.fdr < 1:
            raise InputError(f"fdr={self.fdr!r} must be between 0 and 1, such as 0.2.")
        if self.fdr < LEAST_FDR:
            raise InputError(f"fdr={self.fdr!r} selects nothing. Use one such as 0.2.")
        for name, known in (("construction", CONSTRUCTIONS), ("statistic", STATISTICS)):
            value = getattr(self, name)
            if value not in list(known):
                raise InputError(f"{name}={value!r} is not known.{did_you_mean(value, known)}")
        if not is_whole(self.offset) or self.offset not in (0, 1):
            raise InputError(f"offset={self.offset!r} must be 1 (knockoff+) or 0.")
        whole("repeats", self.repeats, 1, MOST_REPEATS, "a whole number of 1 or more")

    def choose(self, data: Dataset, rng: Generator) -> Choice:
        """Return W of each feature, or its e-value over repeats, and which are selected."""
        if self.statistic == "lasso" and data.n_classes > 2:
            raise InputError(
                f"The target has {data.n_classes} classes, and the lasso statistic of knockoffs "
                "takes numbers or two classes. Use statistic='boosting'."
            )
        table = _usable(data)
        if table.X.shape[1] == 0:
            nothing = np.zeros((self.repeats, data.n_features))
            return self._chosen(nothing, "")
        sampler = _sampler(table.X, self.construction)
        runs = [self._contest(table, sampler, rng) for _ in range(self.repeats)]
        return self._chosen(np.array(runs), sampler.note(len(table.X)))

    def _contest(self, table: Table, sampler: Sampler | Blocks, rng: Generator) -> Array:
        """Return W of each feature against one draw of its knockoffs."""
        knockoffs = sampler.draw(table.X, rng)
        # Where two columns tie, a model takes the first: which one that is, is left to chance.
        swapped = rng.random(len(table.owner)) < 0.5
        first = np.where(swapped, knockoffs, table.X)
        second = np.where(swapped, table.X, knockoffs)
        importance = STATISTICS[self.statistic](np.hstack([first, second]), table, rng)
        ahead, behind = np.split(importance, 2)
        wins = np.where(swapped, behind - ahead, ahead - behind)
        # A feature of several columns is exchanged as a whole, so the sum over its columns
        # changes its sign and nothing else: for a useless one either sign is as likely.
        return np.bincount(table.owner, wins, table.n_features).astype(float)

    def _chosen(self, runs: Array, note: str) -> Choice:
        """Return the choice from W of each run."""
        if self.repeats == 1:
            statistic = runs[0]
            selected = statistic >= knockoff_threshold(statistic, self.fdr, self.offset)
        else:
            statistic = e_values(runs, self.fdr, self.offset)
            selected = e_bh(statistic, self.fdr)
        reason = "" if selected.any() else self._reason(runs)
        return Choice(statistic, selected, " ".join(part for part in (reason, note) if part))

    def _reason(self, runs: Array) -> str:
        """Return why nothing could be selected, empty if something could."""
        positive = int((runs > 0).sum(axis=1).max(initial=0))
        level, bound = (self.fdr, "1/fdr") if self.repeats == 1 else (self.fdr / 2, "2/fdr")
        needed = max(1, ceil(self.offset / level - ROUNDING))
        if positive >= needed:
            return ""
        if needed == 1:
            return "None is selected: no feature has a positive statistic."
        have = "1 has" if positive == 1 else f"{positive} have"
        return (
            f"None is selected: with offset 1 at least {bound} = {needed} features must be "
            f"selected at once, and only {have} a positive statistic. Raise fdr, or use a test."
        )


def knockoff_threshold(wins: Array, fdr: float, offset: int = 1) -> float:
    """Return the smallest t among the |W| above 0 with an estimated FDR within the target, or inf.

    >>> knockoff_threshold(np.array([5.0, 4.0, 3.0, 2.0, 1.0, -0.5]), fdr=0.2)
    1.0
    """
    for t in np.unique(np.abs(wins[wins != 0])).tolist():
        false, found = int((wins <= -t).sum()), int((wins >= t).sum())
        if (offset + false) / max(1, found) <= fdr:
            return float(t)
    return np.inf


def e_values(runs: Array, fdr: float, offset: int = 1) -> Array:
    """Return the mean over runs of p 1{W ≥ T} / (1 + #{W ≤ −T}), with T at half the target."""
    total = np.zeros(runs.shape[1])
    for wins in runs:
        t = knockoff_threshold(wins, fdr / 2, offset)
        total += len(wins) * (wins >= t) / (1 + int((wins <= -t).sum()))
    return total / len(runs)


def e_bh(e: Array, fdr: float) -> Flags:
    """Return which e-values are among the k largest, for the largest k with e_(k) ≥ p/(fdr k).

    >>> e_bh(np.array([9.0, 0.0, 10.0, 2.0]), fdr=0.2).tolist()
    [False, False, False, False]
    >>> e_bh(np.array([10.0, 0.0, 10.0, 2.0]), fdr=0.2).tolist()
    [True, False, True, False]
    """
    limits = len(e) / (fdr * np.arange(1, len(e) + 1))
    reached = np.flatnonzero(np.sort(e)[::-1] >= limits * (1 - ROUNDING))
    if not len(reached):
        return np.zeros(len(e), dtype=bool)
    return np.asarray(e >= limits[reached[-1]] * (1 - ROUNDING))


@dataclass(frozen=True)
class Table:
    """The rows that weigh something and the columns that vary in them."""

    X: Array
    y: Array
    weights: Array | None
    owner: Whole
    n_features: int
    n_classes: int


def _usable(data: Dataset) -> Table:
    """Return what the statistics look at."""
    seen = np.ones(data.n_rows, dtype=bool) if data.weights is None else data.weights > 0
    X = data.X[seen]
    owner = np.zeros(X.shape[1], dtype=np.intp)
    for j, feature in enumerate(data.features):
        owner[list(feature.columns)] = j
    varies = np.array([not is_constant(column) for column in X.T], dtype=bool)
    weights = None if data.weights is None else data.weights[seen]
    return Table(
        X[:, varies], data.y[seen], weights, owner[varies], data.n_features, data.n_classes
    )


def _sampler(X: Array, construction: str) -> Sampler | Blocks:
    """Return how copies are drawn; of as many columns as rows no covariance is shown."""
    few = X.shape[1] > 1 and len(X) <= X.shape[1]
    return fit_blocks(X, construction) if few else fit_sampler(X, construction)


def lasso_coefficients(X: Array, table: Table, rng: Generator) -> Array:
    """Return the size of each standardised coefficient at lambda.min, as stat.glmnet_coefdiff.

    Two ways are not R's: a fold standardises its own rows, and two classes have glmnet's lambdas.
    """
    if is_constant(table.y):
        return np.zeros(X.shape[1])
    average = partial(np.average, axis=0, weights=table.weights)
    scaled = X - average(X)
    scaled /= np.sqrt(average(scaled**2))
    slopes = average(scaled * (table.y - average(table.y))[:, None])
    fit = cross_validate(
        scaled,
        table.y,
        rng,
        weights=table.weights,
        lambdas=None if table.n_classes else np.abs(slopes).max() * LAMBDAS,
        family="binomial" if table.n_classes else "gaussian",
    )
    return np.abs(fit.coef("min"))


def boosting_gains(X: Array, table: Table, rng: Generator) -> Array:
    """Return by how much the splits on each column lower the squared error, in one model."""
    seed = int(rng.integers(2**31))
    model = GradientBoosting(n_classes=table.n_classes, seed=seed)
    return gains(model.fit(X, table.y, table.weights), X, table.y, table.weights)


STATISTICS: dict[str, Callable[[Array, Table, Generator], Array]] = {
    "lasso": lasso_coefficients,
    "boosting": boosting_gains,
}


def gains(model: GradientBoosting, X: Array, y: Array, weights: Array | None) -> Array:
    """Return gbm's relative influence before scaling, from the rows the model was fitted to.

    The fit is gone through again: a cut gains what it takes off the squared error of z = y − m(F)
    among the bag's rows in its node.
    """
    w = np.ones(len(X)) if weights is None else weights / weights.mean()
    columns = np.ascontiguousarray(X.T)
    targets = score_targets(y, model.n_classes)
    scores = np.repeat(model.start_, len(X), axis=1)
    total = np.zeros(X.shape[1])
    all_bags = bags(model.seed, len(X), model.trees, model.bag)
    for seen, trees in zip(all_bags, model.rounds_, strict=True):
        left = targets - mean(scores, model.n_classes)
        for score, z, tree in zip(scores, left, trees, strict=True):
            for new, cut in enumerate(tree.cuts, start=1):
                leaf = leaf_of_rows(tree.cuts[:new], columns)
                below, above = (seen & (leaf == node) for node in (cut.node, new))
                total[cut.column] += _between(z, w, below, above)
            score += tree.leaves[leaf_of_rows(tree.cuts, columns)]
    return total


def _between(z: Array, w: Array, below: Flags, above: Flags) -> float:
    """Return the squared error around one mean less that around a mean for each side."""
    light, heavy = float(w[below].sum()), float(w[above].sum())
    apart = float(w[below] @ z[below]) / light - float(w[above] @ z[above]) / heavy
    return apart**2 * light * heavy / (light + heavy)
