"""The test as other libraries ask for it: causal-learn, pgmpy and tigramite.

Each is imported when its adapter is first asked for. A search asks hundreds of questions, so the
diagnostics of regressions are left out unless `check=True`, and a question is answered once.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, SupportsInt

import numpy as np

from covaria.assessment.front import WITHOUT_CHECKS
from covaria.assessment.question import Independence, check_question, independence_test
from covaria.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

NAME = "covaria"


@dataclass
class Asked:
    """A table of which is asked again and again whether two columns are independent given others.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> asked = Asked.of(rng.normal(size=(200, 3)), {"learner": "linear"})
    >>> asked("0", "1", ["2"]) is asked("1", "0", ["2"])
    True
    """

    table: pd.DataFrame
    options: dict[str, Any]
    known: dict[tuple[str, str, tuple[str, ...]], Independence] = field(default_factory=dict)

    @classmethod
    def of(cls, data: object, options: dict[str, Any], classes: Collection[int] = ()) -> Asked:
        """Return a table of numbers, of which some columns hold the codes of classes."""
        import pandas as pd

        options = _of_search(options)
        frame = data if isinstance(data, pd.DataFrame) else pd.DataFrame(np.asarray(data))
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
        for at in classes:
            frame[frame.columns[at]] = frame.iloc[:, at].map("class {}".format)
        return cls(frame, options)

    def __call__(self, x: str, y: str, given: Sequence[str]) -> Independence:
        """Return the answer, whichever of the two comes first."""
        x, y = sorted((x, y))
        key = (x, y, tuple(sorted(given)))
        if key not in self.known:
            found = independence_test(self.table, x, y, given=list(key[2]), **self.options)
            self.known[key] = replace(found, results=())  # hundreds of them would fill memory
        return self.known[key]


def _of_search(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a search: no diagnostics, and no column is the outcome of another."""
    check_question({name: one for name, one in options.items() if name != "symmetric"})
    is_gcm = options.get("methods") in ("gcm", ["gcm"], ("gcm",))  # the same both ways
    return WITHOUT_CHECKS | {"symmetric": not is_gcm} | options


def causal_learn(name: str = NAME, *, classes: Collection[int] = (), **options: Any) -> str:
    """Return the name by which causal-learn knows the test from now on.

    `pc(data, 0.05, causal_learn(learner="splines"))`; `classes` are the columns that hold codes of
    classes, and the options are those of `independence_test`.
    """
    cit = _imported("causallearn.utils.cit", "causal-learn")
    if not hasattr(cit, "register_ci_test"):
        raise InputError("This causal-learn takes no tests of others. Use 0.1.4 or later.")
    _of_search(options)

    class Test(cit.CIT_Base):  # type: ignore[misc, name-defined]
        """Whether two columns are independent given others, by their numbers."""

        def __init__(self, data: object, **given: Any) -> None:
            own = {word: given.pop(word) for word in ("cache_path",) if word in given}
            super().__init__(data, **own)
            asked = sorted({**options, **given}.items())
            self.check_cache_method_consistent(name, f"{asked} {sorted(classes)}")
            self.asked = Asked.of(data, {**options, **given}, classes)

        def __call__(
            self, X: SupportsInt, Y: SupportsInt, condition_set: Iterable[SupportsInt] | None = None
        ) -> float:
            """Return the p-value; causal-learn keeps it, in a file if it was given one."""
            x, y, given, key = self.get_formatted_XYZ_and_cachekey(X, Y, condition_set)
            if key not in self.pvalue_cache:
                found = self.asked(str(x[0]), str(y[0]), [str(at) for at in given])
                self.pvalue_cache[key] = found.p_value
            return float(self.pvalue_cache[key])

    cit.register_ci_test(name, Test)
    return name


class pgmpy:
    """A test of a frame's columns that pgmpy's searches take as `ci_test`.

    `PC(data).estimate(ci_test=pgmpy(data, learner="splines"))`. Called with two names and those
    given, it returns whether they are independent at the significance level; what it found last is
    in `statistic_`, `p_value_`, `effect_size_` and `found_`.
    """

    def __init__(self, data: pd.DataFrame, **options: Any) -> None:
        self.asked = Asked.of(data, options)

    def __call__(
        self, X: object, Y: object, Z: Sequence[object] = (), *_: object,
        significance_level: float = 0.05, **__: object,
    ) -> bool:  # fmt: skip
        """Return whether X is independent of Y given Z."""
        self.found_ = self.asked(str(X), str(Y), [str(name) for name in Z])
        self.statistic_, self.p_value_ = self.found_.statistic, self.found_.p_value
        self.effect_size_ = self.found_.effect
        return self.p_value_ >= significance_level


def tigramite(**options: Any) -> object:
    """Return a test that tigramite's searches take as `cond_ind_test`.

    `PCMCI(dataframe, cond_ind_test=tigramite(learner="splines"))`. Its value is the effect; every
    row counts by itself.
    """
    base = _imported("tigramite.independence_tests.independence_tests_base", "tigramite")
    asked = _of_search(options)

    class Test(base.CondIndTest):  # type: ignore[misc, name-defined]
        """Whether two variables are independent given others, row by row."""

        measure = NAME

        def __init__(self) -> None:
            self.two_sided, self.residual_based, self.p_value = True, False, 1.0
            super().__init__(significance="analytic")

        def get_dependence_measure(
            self, array: Array, xyz: object, data_type: object = None
        ) -> float:
            """Return the effect, having kept the p-value that will be asked for next."""
            found = independence_test(
                *(_of(role, array, xyz, data_type) for role in (0, 1)),
                given=_of(2, array, xyz, data_type),
                **{"clusters": range(array.shape[1])} | asked,
            )
            self.p_value = found.p_value
            return found.effect

        def get_analytic_significance(
            self, value: object, T: object, dim: object, xyz: object
        ) -> float:
            """Return the p-value of the effect that was asked for last."""
            return self.p_value

    return Test()


def _of(role: int, array: Array, xyz: object, data_type: object) -> pd.DataFrame | None:
    """Return the rows of an array that have a role, as a table; None where there are none."""
    import pandas as pd

    at = np.flatnonzero(np.asarray(xyz) == role)
    if not len(at):
        return None
    columns = {}
    for k in at.tolist():
        is_class = data_type is not None and np.asarray(data_type)[k].all()
        columns[f"v{k}"] = [f"class {v:g}" for v in array[k]] if is_class else array[k]
    return pd.DataFrame(columns)


def _imported(module: str, package: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"{package} cannot be imported ({error}). Install it: pip install {package}."
        ) from error
