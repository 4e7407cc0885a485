"""The figures and tables of the paper by name, and what one of them is made of.

A module that makes figures builds `Figure` values and calls `add`; `MODULES` names the modules
that are imported when the figures are asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING

from covaria.errors import InputError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from covaria.paper.run import Run

# The modules below covaria.paper that add figures; one that is not there is left out.
MODULES = ("theory", "simulated", "real")


# Differences of this many Monte-Carlo standard errors decide.
ERRORS = 2.0


class Verdict(StrEnum):
    """What became of a claim."""

    HELD = "held"
    NOT_HELD = "not held"
    UNDECIDED = "undecided"  # within two Monte-Carlo standard errors
    NOT_STATED = "not stated"  # a setting the paper leaves open decides
    OTHER = "other data or engine"  # not the paper's table or program


def decided(distance: float, error: float = 0.0, *, strict: bool = True) -> Verdict:
    """Return the verdict on a claim met by this distance, known up to a standard error.

    >>> [str(decided(gap, 0.1)) for gap in (0.3, 0.1, -0.3)]
    ['held', 'undecided', 'not held']
    >>> str(decided(0.0)), str(decided(0.0, strict=False))
    ('not held', 'held')
    """
    if abs(distance) <= ERRORS * error and error > 0:
        return Verdict.UNDECIDED
    met = distance > 0 if strict else distance >= 0
    return Verdict.HELD if met else Verdict.NOT_HELD


@dataclass(frozen=True)
class Claim:
    """One thing the paper says, how it is judged, what we find, and the verdict.

    `id` is the same in every mode. `quote` is the paper's sentence and `section` where it stands;
    claims that take one sentence apart share them.
    """

    figure: str
    text: str
    numbers: str
    verdict: Verdict
    id: str = ""
    quote: str = ""
    section: str = ""
    methods: tuple[str, ...] = ()
    learner: str = ""  # of which it speaks alone
    of_time: bool = False

    @property
    def held(self) -> bool:
        return self.verdict is Verdict.HELD

    def __str__(self) -> str:
        return f"{self.text}: {self.numbers}: {self.verdict}"


@dataclass(frozen=True)
class Made:
    """What a figure came to: its table, the claims with verdicts, and how to draw it."""

    table: pd.DataFrame
    claims: Sequence[Claim]
    draw: Callable[[], Axes] | None
    runs: int
    notes: Sequence[str] = field(default=())
    by_learner: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """A figure or table of the paper: its name, what it shows, and the function that makes it.

    `make` takes a `Run`, which says mode, folder and repeats, and returns `Made`; None where the
    figure is named but cannot be made yet. `studies` names the simulations it reads. One that is
    the same in every mode has `modes` False. `caption` is what there is to see, in our words.
    """

    name: str
    about: str
    make: Callable[[Run], Made] | None = None
    studies: tuple[str, ...] = ()
    simulated: bool = True
    modes: bool = True
    caption: str = ""


ABOUT = {
    "theory": "theorems, examples and remarks, judged by exact moments",
    "fig1": "p-values with boosting, models (a) to (d)",
    "fig2": "the ratios of Assumption (A), model (b)",
    "fig3": "metrics and time with boosting, models (a) to (d)",
    "fig4": "surrogate feature, model (e), over rho; boosting, network, kernel",
    "fig5": "heavy tails, model (f), over the degrees of freedom; boosting, network, kernel",
    "fig6": "networks with Lazy-VI, models (b), (c) and (d) with both links",
    "fig7": "500 features with boosting, models (a) and (b)",
    "fig8": "selection rates, Airbnb prices",
    "fig9": "selection rates, social media addiction",
    "table1": "prediction error, Airbnb prices",
    "table2": "prediction error, social media addiction",
    "table3": "prediction error, wine quality",
    "table4": "prediction error, Boston housing",
    "table5": "prediction error, crab age",
    "table6": "prediction error, gas turbine emissions",
    "sfig1": "p-values with each model's own learner, models (a) to (d)",
    "sfig2": "p-values with the kernel machine, models (a) to (d)",
    "sfig3": "metrics and time with the kernel machine, models (a) to (d)",
    "sfig4": "500 features with the kernel machine, models (a) and (b)",
    "sfig5": "selection rates, wine quality",
    "sfig6": "selection rates, Boston housing",
    "sfig7": "selection rates, crab age",
    "sfig8": "selection rates, gas turbine emissions",
}
_REAL = ("fig8", "fig9", "table", "sfig5", "sfig6", "sfig7", "sfig8")
_figures: dict[str, Figure] = {
    name: Figure(name, about, simulated=not name.startswith(_REAL)) for name, about in ABOUT.items()
}


def add(figure: Figure) -> None:
    """Make a figure known by its name, or replace the one that has it."""
    _figures[figure.name] = figure


def figures() -> Mapping[str, Figure]:
    """Return all figures and tables of the paper in its order."""
    for module in MODULES:
        name = f"covaria.paper.{module}"
        if find_spec(name) is not None:
            importlib.import_module(name)
    return dict(_figures)


def figure(name: str) -> Figure:
    """Return the figure of a name that can be made, or raise a sentence."""
    known = figures()
    if name not in known:
        raise InputError(f"The paper has no '{name}'.{did_you_mean(name, known)}")
    if known[name].make is None:
        raise InputError(f"'{name}' ({known[name].about}) cannot be made by this version.")
    return known[name]
