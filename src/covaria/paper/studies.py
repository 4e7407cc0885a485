"""The simulations behind the paper's figures: one grid each, in every mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FOUR = ("gcm", "loco", "dropout", "permutation")
SIX = (*FOUR, "lasso", "knockoffs")
LETTERED = ("linear", "additive", "interaction", "single_index")
RHO = [0.0, 0.3, 0.5, 0.7, 0.8, 0.9]
DF = [3.0, 5.0, 10.0, 15.0, 30.0, float("inf")]
# The paper's mode; the same methods done right; what `assess` does when nothing is said.
COLUMNS = ("paper", "ours", "default")
# And the paper's mode with draws shared between models, as it was before: its effect is shown.
MODES = (*COLUMNS, "shared")
DEFAULT = ("gcm", "pcm", "gcm+pcm")
# What a name is for people; the network's Lazy-VI has the paper's form in paper mode.
SHOWN = {
    "gcm": "GCM", "loco": "LOCO", "dropout": "dropout", "permutation": "permutation",
    "lasso": "lasso", "knockoffs": "knockoff", "lazy": "Lazy-VI", "lazy(stepped=False)": "Lazy-VI",
    "pcm": "PCM", "gcm+pcm": "GCM+PCM",
}  # fmt: skip

LEARNERS = {"kernel": "kernel machine"}


@dataclass(frozen=True)
class Simulation:
    """A grid without its mode: scenarios, learners, methods and how often it is repeated.

    `figure` is the one that runs it. The default has one learner: where another simulation draws
    the same rows, `default` names it, and this one has no run of its own in that mode.
    """

    figure: str
    scenarios: tuple[Mapping[str, object], ...]
    learners: tuple[Mapping[str, object], ...]
    methods: tuple[str, ...]
    repeats: int
    fast: int
    paper: Mapping[str, object] = field(default_factory=lambda: {"paper": True})
    paper_methods: tuple[str, ...] = ()
    default: str = ""
    check: bool = False

    @property
    def modes(self) -> tuple[str, ...]:
        """Return the modes in which it has runs of its own."""
        return tuple(mode for mode in MODES if mode != "default" or not self.default)

    def grid(self, mode: str, seed: int = 0) -> dict[str, object]:
        """Return the study file of a mode, as a dictionary."""
        how, learners, methods = self._of(mode)
        return {
            "repeats": self.repeats,
            "seed": seed,
            **how,
            "scenario": [dict(scenario) for scenario in self.scenarios],
            "learner": [dict(learner) for learner in learners],
            "methods": {"names": list(methods)},
        }

    def _of(
        self, mode: str
    ) -> tuple[Mapping[str, object], tuple[Mapping[str, object], ...], tuple[str, ...]]:
        """Return how tests are run in a mode, with which learners and methods."""
        if mode == "default":
            return {"splits": 5, "check": True}, ({"name": "auto"},), DEFAULT
        if mode == "ours":
            checked = {"check": True} if self.check else {}
            return {"splits": 5, **checked}, self.learners, self.methods
        draws = {"shared_randomness": mode == "shared"}
        told = draws if mode == "shared" or "paper" not in self.paper else {}
        return {**self.paper, **told}, self.learners, self.paper_methods or self.methods


_WIDE = ({"name": "linear", "copies": 5, "n_features": 500},
         {"name": "additive", "copies": 5, "n_features": 500})  # fmt: skip
_SMALL = tuple({"name": name} for name in LETTERED)
_SURROGATE = ({"name": "surrogate", "rho": RHO},)
_TAILS = ({"name": "heavy_tails", "df": DF},)
_NETWORK = ({"name": "network"},)
_PAIR = ("gcm", "loco")
BETAS = [0.3, 0.5, 2.0]

STUDIES: dict[str, Simulation] = {
    "boosting": Simulation("fig3", _SMALL, ({"name": "boosting"},), SIX, 100, 10),
    "kernel": Simulation("sfig3", _SMALL, ({"name": "kernel"},), SIX, 100, 10, default="boosting"),
    "surrogate": Simulation(
        "fig4", _SURROGATE,
        ({"name": "boosting", "trees": 50, "shrinkage": 0.05}, {"name": "kernel", "C": 0.1}),
        _PAIR, 50, 3, check=True,
    ),
    "surrogate_network": Simulation(
        "fig4", _SURROGATE, _NETWORK, _PAIR, 50, 1, default="surrogate",
    ),
    "heavy_tails": Simulation(
        "fig5", _TAILS, ({"name": "boosting"}, {"name": "kernel"}), _PAIR, 50, 3,
    ),
    "heavy_tails_network": Simulation(
        "fig5", _TAILS, _NETWORK, _PAIR, 50, 1, default="heavy_tails",
    ),
    # The paper takes over the set-up of Lazy-VI's authors, who hold out a third of the rows.
    "network": Simulation(
        "fig6",
        ({"name": "additive"}, {"name": "interaction"},
         {"name": "single_index", "link": ["sigmoid", "gaussian"]}),
        _NETWORK, ("gcm", "loco", "dropout", "lazy"), 100, 2,
        paper={"splits": 0.33, "alternative": "two-sided", "correction": "none"},
        paper_methods=("gcm", "loco", "dropout", "lazy(stepped=False)"),
    ),
    "wide_boosting": Simulation("fig7", _WIDE, ({"name": "boosting", "splits": 4},), SIX, 50, 2),
    "wide_kernel": Simulation(
        "sfig4", _WIDE,
        ({"name": "kernel", "scenarios": ["linear"]},
         {"name": "kernel", "C": 0.95, "scenarios": ["additive"]}),
        SIX, 50, 2, default="wide_boosting",
    ),
    # What the paper leaves open: the weight of x1 in (e) and (f).
    "surrogate_beta": Simulation(
        "fig4", ({"name": "surrogate", "rho": RHO, "beta": BETAS},),
        ({"name": "boosting", "trees": 50, "shrinkage": 0.05},), _PAIR, 20, 1, default="surrogate",
    ),
    "heavy_tails_beta": Simulation(
        "fig5", ({"name": "heavy_tails", "df": DF, "beta": BETAS},), ({"name": "boosting"},),
        _PAIR, 20, 1, default="heavy_tails",
    ),
    # "Default hyperparameters" of a network are none: epochs, batches and widths around ours.
    "surrogate_training": Simulation(
        "fig4", _SURROGATE,
        ({"name": "network", "epochs": 20}, {"name": "network", "epochs": 50},
         {"name": "network", "batch": 32}, {"name": "network", "hidden": [100]}),
        _PAIR, 20, 1, default="surrogate",
    ),
    # Only the caption of Fig. S4 says how many rows there are with 500 features.
    "wide_rows": Simulation(
        "sfig4",
        tuple({**scenario, "n_rows": [500]} for scenario in _WIDE),
        ({"name": "kernel", "scenarios": ["linear"]},
         {"name": "kernel", "C": 0.95, "scenarios": ["additive"]}),
        SIX, 10, 1, default="wide_boosting",
    ),
    "canonical": Simulation(
        "sfig1", _SMALL,
        ({"name": "linear", "scenarios": ["linear"]},
         {"name": "splines", "scenarios": ["additive", "interaction"]},
         {"name": "single_index", "scenarios": ["single_index"]}),
        FOUR, 100, 5, default="boosting",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Open:
    """A setting that the paper leaves open: the simulation of other values, and whose claims."""

    study: str
    by: str
    learner: str
    about: str


OPEN: dict[str, tuple[Open, ...]] = {
    "fig4": (
        Open("surrogate_beta", "beta", "boosting", "β, the weight of x1 in model (e)"),
        Open("surrogate_training", "learner", "network",
             "How networks are trained: epochs, batch, width"),
    ),
    "fig5": (Open("heavy_tails_beta", "beta", "boosting", "β, the weight of x1 in model (f)"),),
    "sfig4": (Open("wide_rows", "n_rows", "kernel", "n at p = 500"),),
}  # fmt: skip
