"""The paper's real tables and figures by name: what `residua paper table1 … sfig8` shows.

`ITEMS` names them; `make` runs one and returns its numbers, the paper's claims about it and what
there is to say. Least squares and boosting are drawn on `seeds` foldings, networks on a quarter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from residua.engines import Progress
from residua.errors import InputError
from residua.refit import Refit
from residua.study import real
from residua.study.published import PUBLISHED, Published, published

if TYPE_CHECKING:
    import pandas as pd

# {name: what it shows}
ITEMS: dict[str, str] = {
    **{known.table: f"{known.title}: errors on rows left out" for known in PUBLISHED.values()},
    **{known.figure: f"{known.title}: how often selected" for known in PUBLISHED.values()},
}


@dataclass(frozen=True, eq=False)
class Item:
    """A table or figure of the paper again.

    frame   a table: the paper's errors beside ours; a figure: learner, method, feature, frequency
    claims  the paper's conclusions, feature by feature, with how often each was selected
    notes   what there is to say, a sentence each
    parts   the runs behind it
    """

    name: str
    title: str
    frame: pd.DataFrame
    claims: pd.DataFrame
    notes: tuple[str, ...]
    parts: tuple[Refit, ...] = field(default=(), repr=False)

    @property
    def is_figure(self) -> bool:
        return "fig" in self.name


def make(
    name: str,
    *,
    mode: str = "paper",
    seeds: int = 20,
    seed: int = 0,
    fast: bool = False,
    grouped: bool = False,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Item:
    """Return one of the paper's real tables or figures, run again in its mode or in ours.

    `fast` takes two draws of the folds and leaves the networks out.
    """
    if name not in ITEMS:
        known = published(name)  # raises what there is
        raise InputError(f"Give '{known.table}' or '{known.figure}' rather than '{name}'.")
    known = published(name)
    sizes = {"lm": 2, "GBM": 2} if fast else {"lm": seeds, "GBM": seeds, "NN": max(1, seeds // 4)}
    parts = [
        real.run(
            name, mode=mode, learners=[learner], seeds=count, seed=seed, grouped=grouped,
            n_jobs=n_jobs, progress=progress,
        )
        for learner, count in sizes.items()
    ]  # fmt: skip
    import pandas as pd

    whole = name == known.table
    frames = [real.table(name, part) if whole else part.frequencies for part in parts]
    return Item(
        name=name,
        title=ITEMS[name],
        frame=pd.concat(frames, ignore_index=True),
        claims=pd.concat([real.claims(name, part) for part in parts], ignore_index=True),
        notes=tuple(_notes(known, frames if whole else [], fast)),
        parts=tuple(parts),
    )


def _notes(known: Published, tables: list[pd.DataFrame], fast: bool) -> list[str]:
    notes = list(known.remarks)
    for table in tables:
        notes += [note for note in dict.fromkeys(table["note"]) if note and note not in notes]
    if fast:
        notes.append("Two draws of the folds and no networks: leave --fast out for the numbers.")
    return notes
