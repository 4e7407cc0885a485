"""A study file: scenarios, learners, methods and settings, multiplied out into cells."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from covaria.errors import InputError, did_you_mean, is_whole, short, text_of
from covaria.options.checks import LARGEST_WHOLE, file, plain_all, shown
from covaria.randomness import seed_of
from covaria.simulation import formulas as own
from covaria.simulation.model import Model
from covaria.simulation.scenarios import LETTERS, SCENARIOS, scenario
from covaria.studies.code import NONE, Allowed, Files
from covaria.tables.texts import read_toml

if TYPE_CHECKING:
    import pandas as pd

# What `assess` takes that a study may set; a list makes a grid of it.
OPTIONS = (
    "paper", "splits", "correction", "alpha", "validity", "alternative", "permutations",
    "confidence", "top", "features", "check", "extrapolate", "shared_randomness", "loss",
)  # fmt: skip
TOP = ("repeats", "seed", "scenario", "learner", "methods", *OPTIONS)
# Settings whose value is itself a list; a list of such lists makes a grid.
LISTS = ("hidden", "correlation", "features")
N_ROWS = 1000
MOST_REPEATS = 1_000_000
LOOKED_AT = 50
# More than these no machine runs, and checking them would take longer than saying so.
MOST_CELLS, MOST_TASKS, MOST_VALUES = 100_000, 5_000_000, 500_000_000


@dataclass(frozen=True)
class Cell:
    """One combination of scenario, learner and settings, repeated with one seed after another."""

    scenario: str
    parameters: Mapping[str, Any]
    learner: str
    options: Mapping[str, object]
    origin: Mapping[str, Any] = field(default_factory=dict)

    @property
    def setting(self) -> str:
        """Return the scenario's settings as text."""
        return written(self.parameters)

    @property
    def option(self) -> str:
        """Return how the tests are run, as text."""
        given = {name: value for name, value in self.options.items() if name != "paper"}
        if self.options.get("paper"):
            draws = {k: v for k, v in given.items() if k == "shared_randomness"}
            return f"paper, {written(draws)}" if draws else "paper"
        return written({"splits": 5, **given})

    @property
    def source(self) -> tuple[str, str]:
        """Return what the rows are drawn from, which cells of other learners share."""
        return self.scenario, self.setting


def written(settings: Mapping[str, object]) -> str:
    """Return settings as text in a fixed order.

    >>> written({"rho": 0.5, "n_rows": 100})
    'n_rows=100, rho=0.5'
    """
    return ", ".join(f"{name}={settings[name]!r}" for name in sorted(settings))


@dataclass(frozen=True)
class Grid:
    """All cells of a study, how often each is repeated, and the seed that keys every task."""

    cells: tuple[Cell, ...]
    methods: tuple[str, ...]
    repeats: int
    seed: int
    given: Mapping[str, Any]

    @property
    def tasks(self) -> list[tuple[int, int]]:
        """Return (cell, repeat) in the order they are run: every cell once, then again."""
        return [(c, r) for r in range(self.repeats) for c in range(len(self.cells))]

    def seed_of(self, cell: int, repeat: int) -> int:
        """Return a task's seed, which other cells and repeats do not change.

        Cells that differ in learner or settings alone have the same rows, so that they pair.
        """
        return seed_of(self.seed, "study", *self.cells[cell].source, repeat)

    @cached_property
    def varied(self) -> list[str]:
        """Return the scenario parameters that take more than one value."""
        names = sorted({name for cell in self.cells for name in cell.parameters})
        values = {n: {repr(cell.parameters.get(n)) for cell in self.cells} for n in names}
        return [name for name in names if len(values[name]) > 1]

    @cached_property
    def data(self) -> dict[str, str]:
        """Return a digest of the rows that each scenario draws, or of its table."""
        found = {}
        for cell in self.cells:
            key = " ".join(part for part in cell.source if part)
            if key not in found:
                found[key] = digest(*Source(cell).first_rows(self.seed))
        return found


def digest(X: pd.DataFrame, y: object) -> str:
    """Return a short digest of a table, the same on every machine."""
    import pandas as pd

    digest = hashlib.blake2b(digest_size=8)
    for name, column in [*X.items(), ("", pd.Series(y))]:
        digest.update(f"{name}|".encode())
        if pd.api.types.is_float_dtype(column):
            # Fewer digits than a processor's exponential may differ in.
            digest.update("".join(f"{value:.9g}," for value in column).encode())
        else:
            digest.update(",".join(map(str, column)).encode())
    return digest.hexdigest()


class Source:
    """Where the rows of a cell come from: a scenario by name, a formula, a file or a table."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.origin = cell.origin

    def model(self) -> Model | None:
        """Return the model whose truth is known, or None for a table."""
        settings = {k: v for k, v in self.cell.parameters.items() if k != "n_rows"}
        if "table" in self.origin:
            return None
        if "model" in self.origin:
            return self.origin["model"]  # type: ignore[no-any-return]
        if "y" in self.origin:
            _check_names(self.cell.scenario, settings)
            return own.formula(y=self.origin["y"], name=self.cell.scenario, **settings)
        if "source" in self.origin:
            make = own.from_source(
                self.origin["source"], self.origin["function"], self.origin["file"]
            )
            return _made(make, self.cell.scenario, settings)
        return scenario(self.cell.scenario, **settings)

    def table(self) -> tuple[pd.DataFrame, str]:
        """Return the table of a cell that has one, and the name of its target."""
        from covaria.tables.files import read_table

        frame, _ = read_table(Path(self.origin["table"]))
        target = self.origin["target"]
        if target not in frame.columns:
            hint = did_you_mean(target, map(str, frame.columns))
            raise InputError(f"{self.origin['table']} has no column '{short(target)}'.{hint}")
        return frame, target

    def first_rows(self, seed: int) -> tuple[pd.DataFrame, object]:
        """Return the rows that tell whether the data is the same as before."""
        model = self.model()
        if model is None:
            frame, target = self.table()
            return frame.drop(columns=[target]), frame[target]
        return model.draw(LOOKED_AT, seed=seed)


def _check_names(scenario: str, settings: Mapping[str, object]) -> None:
    known = [name for name in signature(own.formula).parameters if name not in ("y", "name")]
    for name in settings:
        if name not in known:
            raise InputError(
                f"Scenario '{short(scenario)}' has no setting '{short(name)}'."
                f"{did_you_mean(name, known)}"
            )


def _made(make: Any, name: str, settings: Mapping[str, Any]) -> Model:
    try:
        model = make(**settings)
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        reason = short(f"{type(error).__name__}: {error}", 200)
        raise InputError(f"Scenario '{short(name)}' cannot be made ({reason}).") from error
    if not isinstance(model, Model):
        raise InputError(f"Scenario '{short(name)}' made a {type(model).__name__}. Return a Model.")
    return model


def read_grid(
    study: str | Path | Mapping[str, object], *, code: Files = (), trust: bool = False
) -> Grid:
    """Return the grid of a study file, or of the same as a dictionary.

    Python that a study names or holds runs where `code` names its file, or where `trust` is set.

    >>> study = {"repeats": 2, "scenario": [{"name": "surrogate", "rho": [0, 0.9]}],
    ...          "learner": [{"name": "linear"}], "methods": {"names": ["gcm"]}}
    >>> [cell.setting for cell in read_grid(study).cells]
    ['n_rows=1000, rho=0', 'n_rows=1000, rho=0.9']
    """
    allowed = Allowed.of(code, trust)
    if isinstance(study, Mapping):
        return _grid(plain_all(dict(study)), Path(), allowed)
    path = file("study", study)
    return _grid(read_toml(path, "a study file in TOML"), path.parent, allowed)


def _grid(given: dict[str, Any], folder: Path, allowed: Allowed = NONE) -> Grid:
    for name in given:
        if name not in TOP:
            raise InputError(f"A study has no '{short(text_of(name))}'.{did_you_mean(name, TOP)}")
    repeats = _whole(given, "repeats", 1, 1, MOST_REPEATS)
    seed = _whole(given, "seed", 0, 0)
    entries = [_scenario(entry, folder, allowed) for entry in _entries(given, "scenario")]
    learners = [_learner(entry) for entry in _entries(given, "learner")]
    choices = list(_options(given))
    _check_size(entries, learners, choices, repeats)
    cells: dict[tuple[str, ...], Cell] = {}
    for name, origin, settings in entries:
        mine = [text for texts, only in learners if not only or name in only for text in texts]
        for parameters, learner, options in product(_multiplied(settings), mine, choices):
            cell = Cell(name, parameters, learner, options, origin)
            cells[(*cell.source, cell.learner, cell.option)] = cell
    _check_only(entries, learners)
    if not cells:
        raise InputError("The study has no cell: no learner is for any of its scenarios.")
    methods = _methods(given)
    stored = {**given, "scenario": [_stored(*entry) for entry in entries]}
    grid = Grid(tuple(cells.values()), methods, repeats, seed, stored)
    _check(grid)
    return grid


def _check_size(
    entries: list[Entry],
    learners: list[tuple[list[str], tuple[str, ...]]],
    choices: Sequence[object],
    repeats: int,
) -> None:
    """Raise where there are too many cells or tasks, before any of them is made."""
    fits = len(choices) * sum(len(texts) for texts, _ in learners)
    cells = fits * sum(_count(settings) for _, _, settings in entries)
    if cells > MOST_CELLS:
        raise InputError(
            f"The study has {cells:,} cells, {MOST_CELLS:,} at most. Give its lists fewer values."
        )
    if cells * repeats > MOST_TASKS:
        raise InputError(
            f"repeats = {short(str(repeats))} of {cells:,} cells are more than {MOST_TASKS:,} "
            "tasks. Take fewer."
        )


def _whole(
    given: Mapping[str, object], name: str, default: int, least: int, most: int = LARGEST_WHOLE
) -> int:
    value = given.get(name, default)
    if not is_whole(value) or value < least:
        raise InputError(f"{name} = {shown(value)} must be a whole number, {least} or more.")
    if value > most:
        raise InputError(f"{name} = {shown(value)} is too many. Use {most:,} or fewer.")
    return int(value)


def _entries(given: Mapping[str, object], name: str) -> list[dict[str, object]]:
    """Return the [[scenario]] or [[learner]] entries; a bare name will do for one."""
    found = given.get(name, [])
    found = [found] if isinstance(found, Mapping | str) else found
    if not isinstance(found, Sequence) or not found:
        raise InputError(f'The study has no {name}. Add [[{name}]] with name = "…".')
    entries = [{"name": e} if isinstance(e, str) else e for e in found]
    for entry in entries:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise InputError(f'A [[{name}]] has no name. Write name = "…" below it.')
    return [dict(entry) for entry in entries]


Entry = tuple[str, dict[str, object], dict[str, object]]


def _scenario(entry: dict[str, Any], folder: Path, allowed: Allowed) -> Entry:
    """Return a scenario's name, where it comes from, and its settings."""
    given = entry.pop("name")
    name = LETTERS.get(given, given)
    origin = _origin(name, entry, folder, allowed)
    if not origin and name not in SCENARIOS:
        raise InputError(
            f"There is no scenario '{short(name)}'.{did_you_mean(name, SCENARIOS)} One of your own "
            'takes y = "formula", file = "models.py", or table = "data.csv" and target.'
        )
    if "table" not in origin:
        entry = {"n_rows": N_ROWS, **entry}
    return name, origin, entry


def _origin(
    name: str, entry: dict[str, object], folder: Path, allowed: Allowed
) -> dict[str, object]:
    """Take out of an entry what says where its rows come from, where it is a user's own."""
    if "model" in entry:
        return {"model": _made(lambda: entry.pop("model"), name, {})}
    if "y" in entry:
        return {"y": entry.pop("y")}
    if "source" in entry:  # as a store keeps it
        file, source = str(entry.pop("file", "its file")), str(entry.pop("source"))
        allowed.check_kept(name, file, source)
        return {"file": file, "source": source, "function": str(entry.pop("function", name))}
    if "file" in entry:
        path = folder / str(entry.pop("file"))
        source = allowed.read(name, path)
        return {"file": path.name, "source": source, "function": str(entry.pop("function", name))}
    if "table" in entry:
        if "target" not in entry:
            raise InputError(
                f"Scenario '{short(name)}' has a table but no target. Name its column."
            )
        path = (folder / str(entry.pop("table"))).resolve()
        return {"table": str(path), "target": str(entry.pop("target"))}
    return {}


def _stored(
    name: str, origin: Mapping[str, object], settings: Mapping[str, object]
) -> dict[str, object]:
    """Return a scenario as a store keeps it: with the text of its file, without a Model."""
    kept = {"model": "given in Python"} if "model" in origin else dict(origin)
    return {"name": name, **kept, **settings}


def _learner(entry: dict[str, Any]) -> tuple[list[str], tuple[str, ...]]:
    """Return a learner's texts, one for each combination of settings, and its scenarios."""
    name = entry.pop("name")
    only = entry.pop("scenarios", [])
    only = [only] if isinstance(only, str) else only
    if not isinstance(only, list | tuple) or not all(isinstance(one, str) for one in only):
        raise InputError(f"Learner '{short(name)}' needs scenarios = [\"…\"], a list of names.")
    _check_count(f"Learner '{short(name)}'", entry)
    texts = [
        f"{name}({', '.join(f'{k}={v!r}' for k, v in settings.items())})" if settings else name
        for settings in _multiplied(entry)
    ]
    return texts, tuple(LETTERS.get(s, s) for s in only)


def _options(given: Mapping[str, object]) -> Iterator[dict[str, object]]:
    chosen = {name: given[name] for name in OPTIONS if name in given}
    _check_count("The study", chosen)
    for options in _multiplied(chosen):
        if options.get("paper") and "splits" in options:
            raise InputError("paper = true is in sample. Leave out splits, or set paper = false.")
        yield {k: v for k, v in options.items() if not (k == "paper" and not v)}


def _multiplied(settings: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """Yield every combination of the values in lists."""
    axes = {name: _values(name, value) for name, value in settings.items()}
    for empty in (name for name, values in axes.items() if not values):
        raise InputError(f"{empty} = [] has no value. Give one, or leave it out.")
    for name, given in axes.items():
        if any(is_whole(value) and abs(value) > LARGEST_WHOLE for value in given):
            raise InputError(f"{name} has a number of too many digits. Use fewer.")
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _count(settings: Mapping[str, object]) -> int:
    """Return how many combinations `_multiplied` yields."""
    return prod(len(_values(name, value)) for name, value in settings.items())


def _check_count(what: str, settings: Mapping[str, object]) -> None:
    if (count := _count(settings)) > MOST_CELLS:
        raise InputError(f"{what} has {count:,} combinations of settings. Give fewer values.")


def _values(name: str, value: Any) -> list[Any]:
    if name in LISTS:
        nested = isinstance(value, list) and value and isinstance(value[0], list)
        deeper = nested and value[0] and isinstance(value[0][0], list)
        return value if (deeper if name == "correlation" else nested) else [value]
    return list(value) if isinstance(value, list | tuple) else [value]


def _methods(given: Mapping[str, Any]) -> tuple[str, ...]:
    from covaria.methods import get_methods

    asked = given.get("methods", "default")
    if isinstance(asked, Mapping):
        for name in asked:
            if name != "names":
                raise InputError(
                    f"[methods] has no '{short(str(name))}'. Write names = [\"gcm\", …]."
                )
        asked = asked.get("names", "default")
    return tuple(method.name for method in get_methods(asked))


def _check_only(entries: list[Entry], learners: list[tuple[list[str], tuple[str, ...]]]) -> None:
    known = [name for name, _, _ in entries]
    for texts, only in learners:
        for name in only:
            if name not in known:
                raise InputError(
                    f"Learner '{short(texts[0])}' is for scenario '{short(name)}', which the study "
                    f"does not have.{did_you_mean(name, known)}"
                )


def _check_splits(cell: Cell, n_rows: int) -> None:
    splits = cell.options.get("splits", 2)
    is_share = isinstance(splits, float) and 0 < splits < 1
    is_none = isinstance(splits, str) and splits == "none"
    if is_share or is_none or hasattr(splits, "get_n_splits"):
        return
    if not is_whole(splits) or splits < 2:
        kinds = "a number of folds, a share to hold out, or 'none'"
        raise InputError(f"splits = {shown(splits)} must be {kinds}.")
    if "table" not in cell.origin and splits > max(2, n_rows // 2):
        raise InputError(f"splits = {shown(splits)} is too many for n_rows = {n_rows}. Use fewer.")


def _check(grid: Grid) -> None:
    """Raise a sentence where a cell cannot be run, before any of them is."""
    from covaria.assessment import prepare

    for cell in grid.cells:
        n_rows = cell.parameters.get("n_rows", N_ROWS)
        if not is_whole(n_rows) or n_rows < 1:
            raise InputError(f"n_rows = {shown(n_rows)} must be a whole number of rows.")
        _check_splits(cell, n_rows)
        wide = cell.parameters.get("n_features", 1)
        if n_rows * (wide if is_whole(wide) else 1) > MOST_VALUES:
            raise InputError(
                f"n_rows = {short(str(n_rows))} makes a table of more than {MOST_VALUES:,} values. "
                "Take fewer rows or features."
            )
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    first: dict[tuple[str, str], Cell] = {}
    for cell in grid.cells:
        first.setdefault((cell.learner, cell.option), cell)
    for cell in first.values():
        given: dict[str, Any] = {k: v for k, v in cell.options.items() if k != "features"}
        prepare(X, y, learner=cell.learner, methods=grid.methods, seed=grid.seed, **given)
    _ = grid.data  # every scenario draws
    for cell in grid.cells:
        if "features" in cell.options:
            asked: Any = cell.options["features"]
            drawn = Source(cell).first_rows(grid.seed)
            prepare(*drawn, learner="linear", methods="gcm", features=asked)
