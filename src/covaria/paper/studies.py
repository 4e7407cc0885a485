"""The simulations behind the paper's figures: one grid each, in the paper's mode and in ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FOUR = ("gcm", "loco", "dropout", "permutation")
SIX = (*FOUR, "lasso", "knockoffs")
LETTERED = ("linear", "additive", "interaction", "single_index")
RHO = [0.0, 0.3, 0.5, 0.7, 0.8, 0.9]
DF = [3.0, 5.0, 10.0, 15.0, 30.0, float("inf")]
MODES = ("paper", "ours")
# What a name is for people; the network's Lazy-VI has the paper's form in paper mode.
SHOWN = {
    "gcm": "GCM", "loco": "LOCO", "dropout": "dropout", "permutation": "permutation",
    "lasso": "lasso", "knockoffs": "knockoff", "lazy": "Lazy-VI", "lazy(stepped=False)": "Lazy-VI",
}  # fmt: skip


@dataclass(frozen=True)
class Simulation:
    """A grid without its mode: scenarios, learners, methods and how often it is repeated."""

    scenarios: tuple[Mapping[str, object], ...]
    learners: tuple[Mapping[str, object], ...]
    methods: tuple[str, ...]
    repeats: int
    fast: int
    paper: Mapping[str, object] = field(default_factory=lambda: {"paper": True})
    paper_methods: tuple[str, ...] = ()

    def grid(self, mode: str, seed: int = 0) -> dict[str, object]:
        """Return the study file of a mode, as a dictionary."""
        methods = self.methods
        if mode == "paper" and self.paper_methods:
            methods = self.paper_methods
        return {
            "repeats": self.repeats,
            "seed": seed,
            **(self.paper if mode == "paper" else {"splits": 5}),
            "scenario": [dict(scenario) for scenario in self.scenarios],
            "learner": [dict(learner) for learner in self.learners],
            "methods": {"names": list(methods)},
        }


_WIDE = ({"name": "linear", "copies": 5, "n_features": 500},
         {"name": "additive", "copies": 5, "n_features": 500})  # fmt: skip
_SMALL = tuple({"name": name} for name in LETTERED)

STUDIES: dict[str, Simulation] = {
    "boosting": Simulation(_SMALL, ({"name": "boosting"},), SIX, 100, 10),
    "kernel": Simulation(_SMALL, ({"name": "kernel"},), SIX, 100, 10),
    "surrogate": Simulation(
        ({"name": "surrogate", "rho": RHO},),
        ({"name": "boosting", "trees": 50, "shrinkage": 0.05}, {"name": "network"},
         {"name": "kernel", "C": 0.1}),
        ("gcm", "loco"), 50, 3,
    ),
    "heavy_tails": Simulation(
        ({"name": "heavy_tails", "df": DF},),
        ({"name": "boosting"}, {"name": "network"}, {"name": "kernel"}),
        ("gcm", "loco"), 50, 3,
    ),
    # The paper takes over the set-up of Lazy-VI's authors, who hold out a third of the rows.
    "network": Simulation(
        ({"name": "additive"}, {"name": "interaction"},
         {"name": "single_index", "link": ["sigmoid", "gaussian"]}),
        ({"name": "network"},), ("gcm", "loco", "dropout", "lazy"), 100, 5,
        paper={"splits": 0.33, "alternative": "two-sided", "correction": "none"},
        paper_methods=("gcm", "loco", "dropout", "lazy(stepped=False)"),
    ),
    "wide_boosting": Simulation(_WIDE, ({"name": "boosting", "splits": 4},), SIX, 50, 2),
    "wide_kernel": Simulation(
        _WIDE,
        ({"name": "kernel", "scenarios": ["linear"]},
         {"name": "kernel", "C": 0.95, "scenarios": ["additive"]}),
        SIX, 50, 2,
    ),
    "canonical": Simulation(
        _SMALL,
        ({"name": "linear", "scenarios": ["linear"]},
         {"name": "splines", "scenarios": ["additive", "interaction"]},
         {"name": "single_index", "scenarios": ["single_index"]}),
        FOUR, 100, 5,
    ),
}  # fmt: skip
