"""What was asked for, checked: the table, the learner, the methods, the options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from covaria.execution.cost import Ledger
from covaria.execution.executors import Executor
from covaria.learners import Learner, Prefit
from covaria.methods import AnyMethod
from covaria.nuisance.given import Given
from covaria.nuisance.memory import Memory
from covaria.nuisance.plan import Lazy, Plan, Progress
from covaria.nuisance.splits import make_splits
from covaria.results.choices import Chosen
from covaria.results.options import Options
from covaria.tables.dataset import Dataset
from covaria.tables.encoding import encoded


@dataclass(frozen=True)
class Request:
    """What a run is to do, as far as it is known before anything is fitted."""

    data: Dataset
    learner: Learner
    methods: Sequence[AnyMethod]
    options: Options
    n_jobs: int = 1
    seconds: float = field(default=0.0, compare=False)  # that it took to check
    settings: Mapping[str, object] = field(default_factory=dict, compare=False)  # as asked for
    asked: tuple[str, ...] | None = None  # the features to test, None for all
    given: Given | None = None  # predictions made elsewhere
    finds_groups: bool = False  # groups="auto"
    of_y: Learner | None = None  # where y has a learner of its own
    formula: str = ""  # that the table was asked for by
    has_baseline: bool = False  # of times until an event
    memory: Memory | None = field(default=None, compare=False, repr=False)
    chosen: Mapping[str, Chosen] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def encoded(self) -> Dataset:
        """Return the table that models see, the same for all repeats."""
        data = self.data if self.options.paper else encoded(self.data)
        return data if self.asked is None else data.testing(self.asked)

    @property
    def names(self) -> list[str]:
        """Return the features that are tested."""
        return self.data.names if self.asked is None else list(self.asked)

    def plan(
        self,
        repeat: int,
        progress: Progress | None = None,
        ledger: Ledger | None = None,
        executor: Executor | None = None,
    ) -> Plan:
        """Return what one cross-fit has to fit: each model once, for all methods."""
        given = self.learner if isinstance(self.learner, Prefit) else None
        return Plan(
            data=self.encoded,
            learner=self.learner if given is None else given.nuisance,
            full=given,
            of_y=self.of_y,
            folds=make_splits(self.data, self.options.splits, self.options.seed, repeat),
            needs=frozenset(need for method in self.methods for need in method.needs),
            seed=self.options.seed,
            repeat=repeat,
            permutations=self.options.permutations,
            lazy=next((m.settings for m in self.methods if isinstance(m.settings, Lazy)), Lazy()),
            progress=_continued(progress, repeat, self.options.repeats),
            ledger=ledger,
            executor=executor,
            shared_randomness=self.options.shares_draws,
            alpha=self.options.alpha,
            extrapolate=self.options.extrapolate in (True, "auto") and not self.options.in_sample,
            given=self.given,
            memory=self.memory,
        )


def _continued(progress: Progress | None, repeat: int, repeats: int) -> Progress | None:
    """Return the progress function for one repeat of several."""
    if progress is None:
        return None
    return lambda done, total: progress(repeat * total + done, repeats * total)
