"""The tests, and ways to choose without one: a file each, and the one line each has in METHODS."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from covaria.errors import InputError, text_of
from covaria.inference.tests import Tests
from covaria.methods.cpi import cpi as cpi_scores
from covaria.methods.dropout import dropout as dropout_scores
from covaria.methods.gcm import (
    correlation_scale,
    degrees_of_freedom,
    factors,
    fisher_scale,
    pairs,
    product_scale,
)
from covaria.methods.gcm import gcm as gcm_scores
from covaria.methods.knockoffs import Knockoffs
from covaria.methods.lasso import Lasso
from covaria.methods.lazy import lazy as lazy_scores
from covaria.methods.lazy import published_lazy
from covaria.methods.lazy_gcm import lazy_gcm as lazy_gcm_scores
from covaria.methods.lazy_gcm import of_lazy_networks
from covaria.methods.loco import VALIDITIES, split_loco, zipper_loco
from covaria.methods.loco import loco as loco_scores
from covaria.methods.pcm import factors as pcm_factors
from covaria.methods.pcm import pairs as pcm_pairs
from covaria.methods.pcm import pcm as pcm_scores
from covaria.methods.pcm import reach, unexplained
from covaria.methods.permutation import permutation as permutation_scores
from covaria.methods.weighted import (
    basis_degrees,
    basis_factors,
    basis_gcm,
    weighted_gcm,
    weighted_test,
)
from covaria.nuisance.plan import OF_FULL_MODEL, Lazy
from covaria.nuisance.residuals import Residuals
from covaria.options.checks import one_of, plain_all, shown
from covaria.options.naming import read_call, split_names, with_settings

Array = NDArray[np.float64]
Whole = NDArray[np.intp]
Score = Callable[[Residuals, Generator], Array]
Test = Callable[[Residuals, Array, Generator, float], Tests]


def loss_scale(residuals: Residuals) -> Array:
    """Return the loss of predicting the mean, for each feature: what gains are shares of."""
    return np.full(residuals.data.n_features, residuals.mean_loss)


def loco_losses(residuals: Residuals) -> tuple[Array, Array]:
    """Return the losses whose difference is LOCO's gain."""
    return residuals.loss_given_rest, residuals.loss_given_all


def dropout_losses(residuals: Residuals) -> tuple[Array, Array]:
    """Return the losses whose difference is dropout's gain."""
    return residuals.loss_dropped, residuals.loss_given_all


def permutation_losses(residuals: Residuals) -> tuple[Array, Array]:
    """Return the losses whose difference is permutation's gain."""
    return residuals.loss_permuted, residuals.loss_given_all


def cpi_losses(residuals: Residuals) -> tuple[Array, Array]:
    """Return the losses whose difference is the conditional predictive impact."""
    return residuals.loss_conditional, residuals.loss_given_all


def lazy_losses(residuals: Residuals) -> tuple[Array, Array]:
    """Return the losses whose difference is Lazy-VI's gain."""
    return residuals.loss_lazy, residuals.loss_stepped


def ones(residuals: Residuals) -> Array:
    """Return 1 for each feature: scores that have no unit."""
    return np.ones(residuals.data.n_features)


@dataclass(frozen=True)
class Method:
    """A test: its scores, the regressions they need, and how they are read.

    `scale` tells rounding from signal; the estimate over `unit` is the effect people can
    read: a correlation for GCM, a share of Var(Y) for a gain. A method with `learners` is for
    these and for a target of numbers only. One whose statistic is not a mean has a `test` of its
    own. One that is `held_out` cannot be had in sample; one with a `coefficient` has effect="plm".
    """

    name: str
    score: Score
    needs: tuple[str, ...]
    about: str
    label: str = ""
    long_name: str = ""
    reference: str = ""
    effect: str = "share of Var(Y) explained"
    two_sided: bool = False
    scale: Callable[[Residuals], Array] = loss_scale
    unit: Callable[[Residuals], Array] = loss_scale
    degrees: Callable[[Residuals], Whole] | None = None
    factor: float = 1.0
    zero: str = "unused"
    learners: tuple[str, ...] = ()
    settings: Lazy | None = None
    test: Test | None = None
    held_out: bool = False
    coefficient: bool = False
    # What a row's score is a product of, for one feature or several, or the losses whose difference
    # it is; the estimate on Fisher's scale with its error, where it is a correlation; the largest
    # estimate there can be.
    factors: Callable[[Residuals, int], tuple[Array, Array]] | None = None
    pairs: Callable[[Residuals, Sequence[int]], tuple[Array, Array] | None] | None = None
    losses: Callable[[Residuals], tuple[Array, Array]] | None = None
    fisher: Callable[[Residuals, Array], tuple[Array, Array]] | None = None
    ceiling: Callable[[Residuals], Array] | None = None
    # By how much further than its standard error says the interval reaches.
    reach: Callable[[Residuals], float] | None = None
    # The residuals that its factors are of, where they are not those of refitted models.
    view: Callable[[Residuals], Residuals] | None = None

    def bounds(self, residuals: Residuals) -> tuple[Array, Array]:
        """Return the least and the largest number that each estimate can be.

        A gain is at most all of the loss without the feature, a product of residuals at most what
        Cauchy and Schwarz allow, or all that the other features leave of y.
        """
        if self.losses is not None:
            other, base = (losses.mean(axis=0) for losses in self.losses(residuals))
            return np.broadcast_to(-base, other.shape), other
        most = self.unit(residuals) if self.ceiling is None else self.ceiling(residuals)
        return -most, most

    @property
    def alternative(self) -> str:
        return "two-sided" if self.two_sided else "greater"

    @property
    def role(self) -> str:
        return "test"

    @property
    def of_one_model(self) -> bool:
        """Return whether the model on all columns is all it takes: nothing is refitted."""
        return set(self.needs) <= OF_FULL_MODEL


@dataclass(frozen=True)
class Combination:
    """A two-sided and a one-sided test that share one verdict, by the smaller p-value.

    It is counted at most twice (Bonferroni), and less where the two go together.
    """

    name: str
    parts: tuple[str, ...]
    needs: tuple[str, ...]
    about: str
    label: str = ""
    long_name: str = ""
    reference: str = ""
    effect: str = "none of its own"
    settings: None = None

    @property
    def alternative(self) -> str:
        return "either"

    @property
    def role(self) -> str:
        return "combination of tests"


@dataclass(frozen=True)
class SelectionMethod:
    """Selection without a p-value: one statistic for each feature, and what it selects."""

    name: str
    settings: Lasso | Knockoffs
    about: str
    effect: str
    label: str = ""
    long_name: str = ""
    reference: str = ""
    needs: tuple[str, ...] = ()

    @property
    def alternative(self) -> str:
        return "no test"

    @property
    def role(self) -> str:
        return "selection without a p-value"


AnyMethod = Method | Combination | SelectionMethod

METHODS: dict[str, AnyMethod] = {
    method.name: method
    for method in (
        Method(
            "gcm",
            gcm_scores,
            needs=("x_given_rest", "y_given_rest"),
            label="GCM",
            long_name="the generalised covariance measure",
            reference="Shah, R. D. and Peters, J. (2020). The hardness of conditional "
            "independence testing and the generalised covariance measure. Annals of "
            "Statistics 48, 1514–1538.",
            about="covariance of the residuals of the feature and of y",
            effect="partial correlation",
            two_sided=True,
            scale=product_scale,
            unit=correlation_scale,
            degrees=degrees_of_freedom,
            zero="redundant",
            factors=factors,
            pairs=pairs,
            fisher=fisher_scale,
            coefficient=True,
        ),
        Method(
            "loco",
            loco_scores,
            needs=("y_given_all", "y_given_rest"),
            label="LOCO",
            long_name="leave-one-covariate-out",
            reference="Lei, J., G'Sell, M., Rinaldo, A., Tibshirani, R. J. and Wasserman, L. "
            "(2018). Distribution-free predictive inference for regression. Journal "
            "of the American Statistical Association 113, 1094–1111.",
            about="loss gained by refitting without the feature",
            losses=loco_losses,
        ),
        Method(
            "pcm",
            pcm_scores,
            needs=("y_given_all", "y_given_rest", "f_given_rest"),
            label="PCM",
            long_name="the projected covariance measure",
            reference="Lundborg, A. R., Kim, I., Shah, R. D. and Samworth, R. J. (2024). The "
            "projected covariance measure for assumption-lean variable significance "
            "testing. Annals of Statistics 52, 2851–2878.",
            about="like GCM, for a function of the feature that training rows suggest; sees even "
            "effects",
            held_out=True,
            factors=pcm_factors,
            pairs=pcm_pairs,
            ceiling=unexplained,
            reach=reach,
        ),
        Combination(
            "gcm+pcm",
            ("gcm", "pcm"),
            needs=("y_given_all", "y_given_rest", "x_given_rest", "f_given_rest"),
            label="GCM + PCM",
            long_name="the combination of the generalised and the projected covariance measure",
            about="the verdict: at most twice the smaller p-value of GCM and PCM",
        ),
        Method(
            "weighted_gcm",
            weighted_gcm,
            needs=("y_given_rest", "x_given_rest"),
            label="weighted GCM",
            long_name="the weighted generalised covariance measure",
            reference="Scheidegger, C., Hörrmann, J. and Bühlmann, P. (2022). The weighted "
            "generalised covariance measure. Journal of Machine Learning Research 23,"
            " 1–68.",
            about="GCM times signs of the other features; sees interactions of the sign type",
            effect="residual product",
            two_sided=True,
            scale=product_scale,
            unit=product_scale,
            zero="redundant",
            test=weighted_test,
        ),
        Method(
            "basis_gcm",
            basis_gcm,
            needs=("y_given_rest", "x_given_rest", "square_given_rest"),
            label="basis GCM",
            long_name="the generalised covariance measure of a feature and its square",
            reference="Shah, R. D. and Peters, J. (2020). The hardness of conditional "
            "independence testing and the generalised covariance measure. Annals of "
            "Statistics 48, 1514–1538.",
            about="GCM of the feature and its square together; slightly liberal on few rows",
            effect="χ² combination",
            two_sided=True,
            scale=ones,
            unit=ones,
            degrees=basis_degrees,
            zero="redundant",
            factors=basis_factors,
        ),
        Method(
            "dropout",
            dropout_scores,
            needs=("y_given_all", "y_dropped"),
            label="dropout",
            long_name="dropout importance (the feature set to its mean)",
            reference="Zheng, C. and Raskutti, G. Comparing model-agnostic feature selection "
            "methods through relative efficiency.",
            about="loss gained by setting the feature to its mean, without a refit",
            losses=dropout_losses,
        ),
        Method(
            "permutation",
            permutation_scores,
            needs=("y_given_all", "y_permuted"),
            label="permutation",
            long_name="permutation importance",
            reference="Breiman, L. (2001). Random forests. Machine Learning 45, 5–32.",
            about="loss gained by shuffling the feature, without a refit",
            losses=permutation_losses,
        ),
        Method(
            "cpi",
            cpi_scores,
            needs=("y_given_all", "x_given_rest", "y_conditional"),
            label="CPI",
            long_name="the conditional predictive impact",
            reference="Watson, D. S. and Wright, M. N. (2021). Testing conditional independence in "
            "supervised learning algorithms. Machine Learning 110, 2107–2129.",
            about="loss gained by drawing the feature anew given the others, without a refit",
            effect="loss gained, as a share of Var(Y)",
            held_out=True,
            losses=cpi_losses,
        ),
        Method(
            "lazy",
            lazy_scores,
            needs=("y_given_all", "y_lazy"),
            label="Lazy-VI",
            long_name="Lazy-VI",
            reference="Gao, Y., Stevens, A., Raskutti, G. and Willett, R. (2022). Lazy "
            "estimation of variable importance for large neural networks. "
            "International Conference on Machine Learning.",
            about="loss gained by a linearised refit without the feature; learner='network' only",
            learners=("network",),
            settings=Lazy(),
            losses=lazy_losses,
        ),
        Method(
            "lazy_gcm",
            lazy_gcm_scores,
            needs=("y_given_all", "y_lazy", "x_masked"),
            label="Lazy-GCM",
            long_name="the generalised covariance measure by two networks a fold",
            reference="Shah, R. D. and Peters, J. (2020). The hardness of conditional "
            "independence testing and the generalised covariance measure. Annals of "
            "Statistics 48, 1514–1538. Gao, Y., Stevens, A., Raskutti, G. and Willett, R. (2022). "
            "Lazy estimation of variable importance for large neural networks. International "
            "Conference on Machine Learning.",
            about="GCM by two networks in all, one linearised and one masked; learner='network' "
            "only",
            effect="partial correlation",
            two_sided=True,
            scale=of_lazy_networks(product_scale),
            unit=of_lazy_networks(correlation_scale),
            degrees=of_lazy_networks(degrees_of_freedom),
            zero="redundant",
            learners=("network",),
            held_out=True,
            factors=of_lazy_networks(factors),
            view=lambda residuals: residuals.of_lazy_networks,
            fisher=of_lazy_networks(fisher_scale),
        ),
        SelectionMethod(
            "lasso",
            Lasso(),
            label="lasso",
            long_name="the lasso",
            reference="Tibshirani, R. (1996). Regression shrinkage and selection via the lasso."
            " Journal of the Royal Statistical Society B 58, 267–288.",
            about="a coefficient that the lasso keeps (glmnet's lambda.1se); no p-value",
            effect="standardised coefficient",
        ),
        SelectionMethod(
            "knockoffs",
            Knockoffs(),
            label="knockoffs",
            long_name="model-X knockoffs",
            reference="Candès, E., Fan, Y., Janson, L. and Lv, J. (2018). Panning for gold: "
            "model-X knockoffs for high dimensional controlled variable selection. "
            "Journal of the Royal Statistical Society B 80, 551–577.",
            about="the lasso prefers the feature to its knockoff; controls the FDR, no p-value",
            effect="knockoff statistic",
        ),
    )
}
DEFAULT_METHODS = ("gcm", "pcm", "gcm+pcm")
# Of a model that is not refitted, and what cannot be said of one.
PREFIT_METHODS, NOT_PREFIT = ("pcm", "cpi"), ("loco", "lazy")
# In sample nothing is held out, which PCM needs.
IN_SAMPLE_METHODS = ("gcm", "loco")
# Of several targets at once, in as few models as can be; PCM is there to be asked for.
SEVERAL_METHODS = ("gcm", "loco")


def method_of(name: str) -> AnyMethod | None:
    """Return the method of a name, whatever its settings; None where there is none.

    >>> method_of("knockoffs(fdr=0.1)").label
    'knockoffs'
    """
    return METHODS.get(name.split("(")[0])


def get_methods(
    names: str | Sequence[str],
    *,
    validity: str = "conservative",
    paper: bool = False,
    in_sample: bool = False,
    has_loss: bool = False,
) -> list[AnyMethod]:
    """Return the methods of these names, LOCO and Lazy-VI in the version asked for.

    Of a loss that was asked for, LOCO tells, which is among the default methods then.

    >>> [method.name for method in get_methods("gcm, knockoffs(fdr=0.1)")]
    ['gcm', 'knockoffs(fdr=0.1)']
    """
    validity, given = one_of("validity", validity, VALIDITIES), shown(names)
    names = plain_all(names)
    if isinstance(names, str):
        default = IN_SAMPLE_METHODS if in_sample else DEFAULT_METHODS
        default = (*default, "loco") if has_loss else default
        names = default if names == "default" else split_names(names)
    names = [text_of(name) for name in names] if isinstance(names, Iterable) else []
    if not names:
        raise InputError(f"methods={given} names no test. Choose from {', '.join(METHODS)}.")
    wanted = [part for name in names for part in (*_parts(name), name)]
    return [_method(name, validity, paper) for name in dict.fromkeys(wanted)]


def _parts(name: str) -> tuple[str, ...]:
    """Return the tests that a combination stands beside, none for anything else."""
    method = METHODS.get(name.strip().lower())
    return method.parts if isinstance(method, Combination) else ()


def _method(text: str, validity: str, paper: bool) -> AnyMethod:
    name, given = read_call(text, what="method", known=METHODS)
    method = METHODS[name]
    if given:
        if method.settings is None:
            raise InputError(f"'{name}' has no settings of its own. Write just {name}.")
        settings: Any = with_settings(type(method.settings), name, given)
        method = replace(method, name=_written(name, given), settings=settings)
    if isinstance(method.settings, Lazy) and (paper or not method.settings.stepped):
        return replace(method, score=published_lazy)
    return _valid_loco(validity) if name == "loco" else method


def _written(name: str, given: dict[str, object]) -> str:
    return f"{name}({', '.join(f'{setting}={value!r}' for setting, value in given.items())})"


def _valid_loco(validity: str) -> Method:
    """Return LOCO with the null distribution the user chose."""
    plain = METHODS["loco"]
    assert isinstance(plain, Method)
    if validity == "zipper":
        return replace(plain, score=zipper_loco)
    if validity == "split":
        return replace(plain, score=split_loco)
    if validity == "signed_root":
        return replace(plain, factor=2.0, two_sided=True)
    return plain


def deciding(methods: Sequence[AnyMethod]) -> str:
    """Return the name of the test that decides: a combination, else the first test."""
    tests = [m for m in methods if isinstance(m, (Method, Combination))]
    both = [m.name for m in tests if isinstance(m, Combination)]
    return both[0] if both else tests[0].name if tests else ""


def __getattr__(name: str) -> object:
    """Return what had another name in version 0.1, accepted for one version more."""
    if name == "Chooser":
        message = "covaria.methods.Chooser is now called SelectionMethod."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return SelectionMethod
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
