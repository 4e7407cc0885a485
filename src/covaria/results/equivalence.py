"""Which features provably do not matter beyond a margin, and what the others matter at least.

For any function h of the features that averages 0 given all but x_j, the covariance
θ = E[hε]/√E[h²] with ε = y − E[y | the others] is at most √ψ, where ψ = E[(E[y|x] − E[y|others])²]
is all that x_j explains; it is √ψ where h is the right function. (Zhang and Janson, "Floodgate:
inference for model-free variable importance", arXiv:2007.01283.) Its estimate is normal also where
x_j explains nothing, which a difference of losses is not. So

    at least   max(0, θ̂ − z·se)²      of ψ, whatever x_j does
    at most    (|θ̂| + z·se)²          of what h shows; of ψ only as far as h is right

Three functions are looked at: x_j itself, the one that PCM learned, and the difference of the two
models of y. What none of them shows is not seen, by no bound of any kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from covaria.errors import InputError
from covaria.inference.corrections import adjust
from covaria.inference.tests import SMALLEST_P, covariance, freedom_of, quantile, standard_error
from covaria.nuisance.splits import describe
from covaria.options.checks import between_0_and_1, confidence_level
from covaria.results.result import Result
from covaria.results.status import Outcome, has_failed
from covaria.tables.arrays import of_all_classes

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Whole = NDArray[np.intp]

# What a feature says if nothing could be fitted: anything.
EVERYTHING = 1.0
# A function that varies by less than this share of Var(Y) is none.
ROUNDING = 1e-20
# Of two verdicts the first.
ORDER = ("matters", "cannot tell", "no evidence")


@dataclass(frozen=True)
class Root:
    """An estimate of the root of a share of Var(Y), of several parts where `degrees` > 1."""

    size: float
    error: float
    degrees: int = 1
    # Whether its sign says nothing.
    two_sided: bool = True
    freedom: float = np.inf

    def least(self, tail: float) -> float:
        """Return what the share is at least, but for so much chance."""
        reach = self._reach(tail / 2 if self.two_sided and self.degrees == 1 else tail)
        return float(max(0.0, self.size - reach) ** 2)

    def most(self, tail: float) -> float:
        """Return what the share is at most, but for so much chance."""
        return float((abs(self.size) + self._reach(tail)) ** 2)

    def p_above(self, margin: float) -> float:
        """Return the p-value of a share of the margin or more."""
        from scipy.stats import chi2, norm, t

        short = max(0.0, np.sqrt(margin) - abs(self.size)) / self.error if self.error else np.inf
        if abs(self.size) >= np.sqrt(margin):
            return 1.0
        if self.degrees > 1:
            return max(SMALLEST_P, float(chi2.sf(short**2, self.degrees)))
        law = norm if np.isinf(self.freedom) else t(self.freedom)
        return max(SMALLEST_P, float(law.sf(short)))

    def _reach(self, tail: float) -> float:
        from scipy.stats import chi2

        if self.degrees > 1:  # in no direction further than this
            return float(np.sqrt(chi2.isf(tail, self.degrees))) * self.error
        return quantile(1 - tail, self.freedom) * self.error


def negligible(
    result: Result,
    margin: float = 0.01,
    *,
    confidence: float | None = None,
    correction: str | None = None,
) -> pd.DataFrame:
    """Return which features explain less than a share of Var(Y), and what the others at least do.

    A row for each feature has the `share` that it explains given all others, `at_least` and
    `at_most` (each holds with the result's `confidence`), the `p_value` of the hypothesis that the
    share is the margin or more, that adjusted for all features, and a `verdict`: "negligible" where
    the adjusted p-value is below 1 − confidence, else that of the result. `at_most` is of what GCM,
    PCM and the models of the result can see: of a line, of the function learned, and of the gain by
    the feature. An effect of a kind that no fitted model shows is in no bound.

    >>> import covaria
    >>> X, y = covaria.draw("linear", n_rows=2000, seed=0)
    >>> result = covaria.assess(X, y, learner="linear", methods=["gcm", "loco"])
    >>> covaria.negligible(result, margin=0.02).query("verdict == 'matters'")["feature"].tolist()
    ['x3', 'x4', 'x5', 'x6', 'x7', 'x8']
    """
    margin, result = between_0_and_1("margin", margin), _checked(result)
    level = result.about.confidence if confidence is None else confidence_level(confidence)
    shown = _Shown(result)
    found = [_bounds(shown, j, margin, 1 - level) for j in range(len(result.features))]
    p_value = np.array([p for *_, p in found])
    adjusted = adjust(p_value, result.about.correction if correction is None else correction)
    verdicts = _verdicts(result)
    return _frame(result, np.array(found), adjusted, adjusted < 1 - level, verdicts)


def with_negligible(result: Result, margin: float) -> Result:
    """Return the result with the verdict "negligible" on features that no test found to matter."""
    bounds = negligible(result, margin)
    small = set(bounds.loc[bounds["p_adjusted"] < 1 - result.about.confidence, "feature"])
    table = result.table
    is_test, is_found = table["verdict"] != "", table["verdict"] == "matters"
    found = is_test & ~is_found & table["feature"].isin(list(small))
    return replace(result, table=table.assign(verdict=table["verdict"].mask(found, "negligible")))


def _frame(
    result: Result,
    found: Array,
    adjusted: Array,
    is_negligible: NDArray[np.bool_],
    verdicts: list[str],
) -> pd.DataFrame:
    import pandas as pd

    said = zip(is_negligible.tolist(), verdicts, strict=True)
    return pd.DataFrame(
        {
            "feature": result.features,
            "share": found[:, 0],
            "at_least": found[:, 1],
            "at_most": found[:, 2],
            "p_value": found[:, 3],
            "p_adjusted": adjusted,
            "verdict": ["negligible" if small else other for small, other in said],
        }
    )


def _checked(result: object) -> Result:
    """Return a result that has what bounds are made of, or raise."""
    if not isinstance(result, Result):
        raise InputError("negligible takes a result: what covaria.assess returned.")
    if result.about.paper or result.about.splits == describe("none"):
        raise InputError(
            "In sample a model has seen the rows that it predicts, so that no bound holds. Use "
            "assess(…, splits=5)."
        )
    if result.about.targets or result.about.task == "survival":
        raise InputError(
            "Bounds are shares of Var(Y) of one target, and this result has several, or a time "
            "until an event. Assess a target of numbers or classes."
        )
    if "y_given_rest" not in result.residuals or not {"x_given_rest", "y_given_all"} & set(
        result.residuals
    ):
        raise InputError(
            "This result has no residuals of y given the other features, which bounds are made of. "
            "Use assess with gcm, pcm or loco among its methods."
        )
    if not result.about.variance:
        raise InputError(
            "This result is of a version that did not keep Var(Y). Run assess again for bounds."
        )
    return result


def _verdicts(result: Result) -> list[str]:
    """Return what the result says of each feature: its combination, or the first of its tests."""
    table = result.table
    decides = table["method"] == result.verdict if result.verdict else table["verdict"] != ""
    said = table[decides].groupby("feature", sort=False)["verdict"].agg(list).to_dict()
    return [min(said.get(name, ORDER[2:]), key=ORDER.index) for name in result.features]


def _bounds(shown: _Shown, j: int, margin: float, tail: float) -> tuple[float, float, float, float]:
    """Return the share of Var(Y) that a feature explains, its bounds, and p of the margin."""
    plain = [] if shown.has_failed(j) else list(shown.plain(j))
    if not plain:
        return 0.0, 0.0, EVERYTHING, 1.0
    careful = list(shown.careful(j))
    share = min(EVERYTHING, max(root.size**2 for root in plain))
    least = max((root.least(tail / len(careful)) for root in careful), default=0.0)
    most = min(EVERYTHING, max(root.most(tail) for root in plain))
    return share, min(least, share), most, max(root.p_above(margin) for root in plain)


class _Shown:
    """What a result's residuals show of each feature, as roots of shares of Var(Y)."""

    def __init__(self, result: Result) -> None:
        left = result.residuals
        self.result = result
        self.weights = left.get("weight", np.ones(len(left["y_given_rest"])))
        given = left.get("cluster")
        self.clusters: Whole | None = None if given is None else given.astype(np.intp)
        self.freedom = freedom_of(self.clusters)

    def has_failed(self, j: int) -> bool:
        """Return whether a fit failed, so that not all can be said of a feature."""
        return any(has_failed(status) for status in self._status(j))

    def _status(self, j: int) -> list[str]:
        table = self.result.table
        return table.loc[table["feature"] == self.result.features[j], "status"].tolist()

    def plain(self, j: int) -> Iterator[Root]:
        """Yield what a line, PCM's function and the two models of y show of a feature."""
        y, x = self._y(j), self._x(j)
        if x is not None:
            yield self._of_line(x, y, j)
        for h in (self._learned(j), self._gained(j)):
            if h is not None:
                yield self._root(self._weighted((h * y).sum(axis=1)), h)

    def careful(self, j: int) -> Iterator[Root]:
        """Yield what the scores of GCM and PCM show, in which all is that their tests allow for.

        The models' difference is only asked where neither was run: it also shows what a feature
        spares a learner.
        """
        x, h, y = self._x(j), self._learned(j), self._y(j)
        single = x is not None and x.shape[1] == y.shape[1] == 1
        if x is not None:
            own = self._scores("gcm", j) if single else None
            yield self._of_line(x, y, j) if own is None else self._root(own, x, two_sided=True)
        if h is not None:
            own = self._scores("pcm", j)
            if own is not None:
                yield self._root(own, h)
        gained = self._gained(j)
        if x is None and h is None and gained is not None:
            yield self._root(self._weighted((gained * y).sum(axis=1)), gained)

    def _scores(self, method: str, j: int) -> Array | None:
        scores = self.result.scores.get(method)
        # Repeated hold-outs test other rows each.
        return None if scores is None or len(scores) != len(self.weights) else scores[:, j]

    def _y(self, j: int) -> Array:
        left = self.result.residuals["y_given_rest"]
        return _flat(of_all_classes(left)[:, j] if left.ndim == 3 else left[:, j])

    def _x(self, j: int) -> Array | None:
        """Return what is left of a feature; None where it was not fitted, or nothing is."""
        left, own = self.result.residuals.get("x_given_rest"), self.result.about.columns[j]
        is_left = left is not None and own and str(Outcome.REDUNDANT) not in self._status(j)
        return left[:, own] if left is not None and is_left else None

    def _learned(self, j: int) -> Array | None:
        left = self.result.residuals.get("f_given_rest")
        return None if left is None else self._some(_flat(left[:, j]))

    def _gained(self, j: int) -> Array | None:
        """Return the model of y with the feature less the one without."""
        full, rest = (self.result.residuals.get(f"y_given_{part}") for part in ("all", "rest"))
        if full is None or rest is None or not self.result.about.columns[j]:
            return None
        moved = rest[:, j] - full
        return self._some(_flat(of_all_classes(moved) if moved.ndim == 2 else moved))

    def _some(self, h: Array) -> Array | None:
        """Return a function in units of y, None where it is one of nothing but rounding."""
        return h if (h**2).sum(axis=1).mean() > ROUNDING * self.result.about.variance else None

    def _weighted(self, products: Array) -> Array:
        """Return products whose plain mean and spread are those by weights."""
        mean = (self.weights * products).mean()
        return np.asarray(mean + self.weights * (products - mean))

    def _root(self, scores: Array, h: Array, two_sided: bool = False) -> Root:
        """Return θ = mean(hε)/√mean(h²) in units of the sd of y, and its error.

        Row i moves it by (hε − θh²/(2√mean(h²)))/√mean(h²).
        """
        squares = self.weights * (h**2).sum(axis=1)
        size = float(squares.mean())
        mean = float(scores.mean())
        moved = (scores - mean * squares / (2 * size)) / np.sqrt(size)
        error = float(standard_error(moved[:, None], self.clusters)[0])
        sd = np.sqrt(self.result.about.variance)
        theta = mean / np.sqrt(size) / sd
        theta = abs(theta) if two_sided else theta
        return Root(theta, error / sd, two_sided=two_sided, freedom=self.freedom)

    def _of_line(self, x: Array, y: Array, j: int) -> Root:
        """Return what lines in a feature's columns show; of several, the length of their parts."""
        if x.shape[1] == y.shape[1] == 1:
            products = self._weighted((x * y)[:, 0])
            root, own = self._root(products, x, two_sided=True), self._scores("gcm", j)
            wider = 1.0 if own is None else max(1.0, float(own.std() / (products.std() or np.inf)))
            return Root(root.size, wider * root.error, freedom=self.freedom)
        white = _whitened(x, self.weights)
        products = (white[:, :, None] * y[:, None, :]).reshape(len(x), -1)
        means = (self.weights[:, None] * products).mean(axis=0)
        spread = covariance(means + self.weights[:, None] * (products - means), self.clusters)
        sd = np.sqrt(self.result.about.variance)
        widest = float(np.sqrt(np.linalg.eigvalsh(spread).max()))
        return Root(float(np.linalg.norm(means)) / sd, widest / sd, degrees=len(means))


def _flat(values: Array) -> Array:
    return values.reshape(len(values), -1)


def _whitened(x: Array, weights: Array) -> Array:
    """Return columns of unit variance that go with none of each other, of the same span."""
    size = np.sqrt((weights[:, None] * x**2).mean(axis=0))
    x = x / np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh((weights[:, None] * x).T @ x / len(x))
    kept = values > 1e-10 * values.max()
    return np.asarray(x @ vectors[:, kept] / np.sqrt(values[kept]))
