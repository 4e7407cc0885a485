"""How a result was made: one typed record, read as `about.seed` or, by name, `about["seed"]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from covaria.errors import InputError


@dataclass(frozen=True, eq=False)
class About(Mapping[str, Any]):
    """What was tested, how it was asked for and what it cost, in the order that files have it.

    `methods` has each method's alternative, `effects` the unit of its effect, `fits` and `seconds`
    its share of the models; `columns` says which columns of the residuals a feature owns. A run by
    a command has the `command` and the name of its table, `source`. `variance` is that of the
    target; of three or more classes the sum over their indicators.
    """

    target: str
    task: str
    classes: list[str]
    n_rows: int
    n_tested: int
    n_features: int
    n_columns: int
    columns: list[list[int]]
    groups: dict[str, int]
    weighted: bool
    clusters: int
    fingerprint: str
    learner: dict[str, object]
    learner_text: str
    engine: str
    methods: dict[str, str]
    effects: dict[str, str]
    splits: str
    folds: int
    paper: bool
    validity: str
    correction: str
    alpha: float
    top: int | None
    confidence: float
    repeats: int
    permutations: int
    seed: int
    models: int
    fits: dict[str, int]
    seconds: dict[str, float]
    versions: dict[str, str]
    variance: float = 0.0
    n_others: int = 0  # features that were not tested
    targets: list[str] = field(default_factory=list)  # where there are several
    loss: str = ""  # what gains are gains of, where that is not squared error or log-loss
    formula: str = ""  # that the table was asked for by
    command: str = ""
    source: str = ""
    other: dict[str, object] = field(default_factory=dict)  # what only another version knows of

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> About:
        """Return the record of these values, as a file or a dict has them."""
        if isinstance(given, About):
            return given
        if missing := sorted(REQUIRED - given.keys()):
            raise InputError(f"it does not say its {missing[0]}")
        known = {name: given[name] for name in NAMES if name in given}
        return cls(**known, other={n: value for n, value in given.items() if n not in NAMES})

    @cached_property
    def _told(self) -> dict[str, Any]:
        known = {name: getattr(self, name) for name in NAMES}
        told = {name: value for name, value in known.items() if name in REQUIRED or value}
        return {**told, **self.other}

    def __getitem__(self, name: str) -> Any:
        return self._told[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._told)

    def __len__(self) -> int:
        return len(self._told)

    def __repr__(self) -> str:
        return repr(self._told)


NAMES = tuple(part.name for part in fields(About) if part.name != "other")
REQUIRED = frozenset(NAMES) - {
    "n_others",
    "command",
    "source",
    "variance",
    "targets",
    "loss",
    "formula",
}
