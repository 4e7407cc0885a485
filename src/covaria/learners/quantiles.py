"""Who predicts a quantile of y, where the loss is the pinball loss; features keep their learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from covaria.errors import InputError, short
from covaria.learners import Auto, Boosting, Estimator, Learner, Linear, Prefit

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike, NDArray

    from covaria.learners.estimators.wrapped import Fits

# Shallow trees: of a quantile a leaf of few rows tells little.
TREES, LEAVES, LEAST_ROWS = 100, 4, 20
# Every third row decides who serves.
EVERY = 3


def of_quantile(learner: Learner, q: float) -> tuple[Learner, Learner]:
    """Return the learner of the features, and the one of y's quantile.

    >>> [str(one) for one in of_quantile(Linear(), 0.9)]
    ['Linear(ridge=0.0)', 'Estimator(QuantileRegressor(alpha=0.0, quantile=0.9))']
    """
    if isinstance(learner, Prefit):
        return learner, of_quantile(cast(Learner, learner.nuisance), q)[1]
    if isinstance(learner, Estimator):
        _check(learner.y, q)
        return (Auto() if learner.x is None else Estimator(learner.x)), Estimator(learner.y)
    kinds: dict[type[Learner], Callable[[float], object]]
    kinds = {Linear: _linear, Boosting: _boosted, Auto: BestQuantile}
    if type(learner) not in kinds or learner not in (Linear(), Boosting(), Auto()):
        raise InputError(
            f"{short(str(learner), 60)} predicts means, and loss='pinball({q:g})' needs quantiles. "
            "Use learner 'auto', 'linear' or 'boosting', or an estimator that predicts this "
            "quantile."
        )
    return learner, Estimator(cast("Fits", kinds[type(learner)](q)))


def _check(estimator: object, q: float) -> None:
    """Raise where an estimator says that it predicts another quantile."""
    settings = estimator.get_params() if hasattr(estimator, "get_params") else {}
    other = settings.get("quantile")
    if other is not None and other != q:
        raise InputError(
            f"{type(estimator).__name__} predicts the quantile {other:g}, and the loss is "
            f"'pinball({q:g})'. Use the same in both."
        )


def _linear(q: float) -> object:
    from sklearn.linear_model import QuantileRegressor

    return QuantileRegressor(quantile=q, alpha=0.0)


def _boosted(q: float) -> object:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        loss="quantile", quantile=q, max_iter=TREES, max_leaf_nodes=LEAVES,
        min_samples_leaf=LEAST_ROWS,
    )  # fmt: skip


class BestQuantile(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear or boosted quantiles, whichever errs less on every third training row."""

    def __init__(self, quantile: float = 0.5, random_state: int | None = None) -> None:
        self.quantile = quantile
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Return self, fitted by the better of the two."""
        from sklearn.metrics import mean_pinball_loss

        inputs, target = np.asarray(X), np.asarray(y)
        weights = np.ones(len(target)) if sample_weight is None else np.asarray(sample_weight)
        out = np.arange(len(target)) % EVERY == 0
        errors = []
        for make in (_linear, _boosted):
            model = self._fitted(make(self.quantile), inputs[~out], target[~out], weights[~out])
            predicted = model.predict(inputs[out])
            errors.append(mean_pinball_loss(target[out], predicted, alpha=self.quantile,
                                            sample_weight=weights[out]))  # fmt: skip
        best = (_linear, _boosted)[int(np.argmin(errors))]
        self.model_ = self._fitted(best(self.quantile), inputs, target, weights)
        return self

    def _fitted(self, model: object, *arrays: NDArray[np.generic]) -> Fits:
        if hasattr(model, "random_state"):
            model.random_state = self.random_state
        return cast("Fits", model).fit(arrays[0], arrays[1], sample_weight=arrays[2])

    def predict(self, X: ArrayLike) -> ArrayLike:
        """Return quantiles."""
        return self.model_.predict(np.asarray(X))
