"""How the rows are split and how scores become verdicts: options that are checked once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from covaria.errors import InputError
from covaria.inference.corrections import adjust
from covaria.inference.tests import ALTERNATIVES
from covaria.methods import AnyMethod, Method
from covaria.nuisance.splits import known_splits
from covaria.options.checks import (
    between_0_and_1,
    confidence_level,
    one_of,
    plain,
    shown,
    truth,
    whole,
)

# More would fill the memory before anything is fitted.
MOST_REPEATS, MOST_PERMUTATIONS = 10_000, 1_000_000
# What `effect` may be, and what GCM's effect then is.
EFFECTS = {"plm": "coefficient in y = θ x + g(others)"}


@dataclass(frozen=True)
class Options:
    """How the rows are split and how scores are turned into verdicts."""

    splits: object = 5
    alternative: str | None = None
    validity: str = "conservative"
    correction: str = "bh"
    alpha: float = 0.05
    confidence: float = 0.95
    repeats: int = 1
    permutations: int = 5
    seed: int = 0
    paper: bool = False
    top: int | None = None
    check: bool = True
    extrapolate: str | bool = "auto"
    effect: str | None = None
    margin: float | None = None
    shared_randomness: bool | None = None

    def __post_init__(self) -> None:
        alternative = plain(self.alternative)
        if not (alternative is None or isinstance(alternative, str)) or (
            alternative not in (None, *ALTERNATIVES)
        ):
            raise InputError(
                f"alternative={shown(alternative)} is not known. Use {', '.join(ALTERNATIVES)}."
            )
        what = "a whole number of features, 1 or more"
        checked = {
            "splits": known_splits(self.splits),
            "alternative": alternative,
            "validity": plain(self.validity),
            "correction": plain(self.correction),
            "alpha": between_0_and_1("alpha", self.alpha),
            "confidence": confidence_level(self.confidence),
            "repeats": whole("repeats", self.repeats, 1, MOST_REPEATS),
            "permutations": whole("permutations", self.permutations, 1, MOST_PERMUTATIONS),
            "seed": whole("seed", self.seed, 0),
            "paper": truth("paper", self.paper),
            "top": None if self.top is None else whole("top", self.top, 1, what=what),
            "check": truth("check", self.check),
            "extrapolate": _extrapolate(self.extrapolate),
            "shared_randomness": _draws(self.shared_randomness),
            "margin": None if self.margin is None else between_0_and_1("margin", self.margin),
            "effect": None if self.effect is None else one_of("effect", self.effect, EFFECTS),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        adjust(np.ones(1), self.correction)

    @property
    def in_sample(self) -> bool:
        return isinstance(self.splits, str)

    @property
    def shares_draws(self) -> bool:
        """Return whether models of a fold share their random draws; the paper's do not."""
        return not self.paper if self.shared_randomness is None else self.shared_randomness

    def as_in_the_paper(self) -> Options:
        """Return the paper's mode: in sample, two-sided, raw p < .05, one permutation."""
        return replace(
            self,
            splits="none",
            alternative="two-sided",
            correction="none",
            alpha=0.05,
            permutations=1,
            repeats=1,
            paper=True,
        )


def _draws(given: object) -> bool | None:
    """Return True, False or None, or raise."""
    return None if given is None else truth("shared_randomness", given)


def _extrapolate(given: object) -> str | bool:
    """Return True, False or "auto", or raise."""
    value = plain(given)
    if isinstance(value, bool) or (isinstance(value, str) and value == "auto"):
        return value
    raise InputError(f"extrapolate={shown(given)} must be True, False or 'auto'.")


def alternative_of(method: AnyMethod, options: Options) -> str:
    if isinstance(method, Method):
        return options.alternative or method.alternative
    return method.alternative
