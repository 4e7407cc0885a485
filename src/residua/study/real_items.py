"""The paper's real tables and figures by name: what `residua paper table1 … sfig8` shows.

`ITEMS` names them. `make` runs one, `stored` reads what tools/real_data.py wrote before; both
return its numbers, the paper's claims about it with verdicts, and what there is to say. Least
squares and boosting are drawn on `seeds` foldings, networks on a quarter of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from residua.engines import Progress
from residua.errors import InputError, plural
from residua.study import real
from residua.study.published import PUBLISHED, Published, published

if TYPE_CHECKING:
    import pandas as pd

Rows = list[dict[str, Any]]
SHOWN = {"gcm": "GCM", "loco": "LOCO"}
# {name: what it shows}
ITEMS: dict[str, str] = {
    **{known.table: f"prediction error, {known.title}" for known in PUBLISHED.values()},
    **{known.figure: f"selection rates, {known.title}" for known in PUBLISHED.values()},
}


class Verdict(NamedTuple):
    """One thing the paper says, what we find, and whether it held."""

    text: str
    numbers: str
    held: bool


@dataclass(frozen=True, eq=False)
class Item:
    """A table or figure of the paper again.

    frame      a table: the paper's errors beside ours; a figure: learner, method, feature,
               frequency
    claims     the paper's conclusions, feature by feature, with how often each was selected
    orderings  GCM's error and steadiness beside LOCO's
    notes      what there is to say, a sentence each
    draws      of the folds; networks may have fewer
    """

    name: str
    frame: pd.DataFrame
    claims: pd.DataFrame
    orderings: pd.DataFrame
    notes: tuple[str, ...]
    draws: int

    @property
    def is_figure(self) -> bool:
        return "fig" in self.name

    @property
    def verdicts(self) -> list[Verdict]:
        """Return what the paper says of this table or figure, and whether it came out."""
        orderings = _rows(self.orderings)
        if self.is_figure:
            return [*_about_features(_rows(self.claims)), *_about_steadiness(orderings)]
        return [*_about_errors(_rows(self.frame)), *_about_prediction(orderings)]


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

    `fast` takes a draw or two of the folds and leaves the networks out.
    """
    import pandas as pd

    known = _known(name)
    sizes = {"lm": 2, "GBM": 1} if fast else {"lm": seeds, "GBM": seeds, "NN": max(1, seeds // 4)}
    parts = [
        real.run(
            name, mode=mode, learners=[learner], seeds=count, seed=seed, grouped=grouped,
            n_jobs=n_jobs, progress=progress,
        )
        for learner, count in sizes.items()
    ]  # fmt: skip
    is_table = name == known.table
    frames = [real.table(name, part) if is_table else part.frequencies for part in parts]
    notes = _notes(known, frames if is_table else [])
    if fast:
        notes.append(
            "A draw or two of the folds and no networks: leave --fast out for the numbers."
        )
    return Item(
        name=name,
        frame=pd.concat(frames, ignore_index=True),
        claims=pd.concat([real.claims(name, part) for part in parts], ignore_index=True),
        orderings=pd.concat([real.orderings(name, part) for part in parts], ignore_index=True),
        notes=tuple(notes),
        draws=max(sizes.values()),
    )


def stored(folder: Path, name: str, mode: str = "paper") -> Item | None:
    """Return a table or figure from tables written before, None where they are not there."""
    import pandas as pd

    known = _known(name)
    kind = "table" if name == known.table else "frequencies"
    paths = [folder / f"{mode}_{part}.csv" for part in (kind, "claims", "orderings", "errors")]
    if not all(path.is_file() for path in paths):
        return None
    every = [pd.read_csv(path, keep_default_na=False) for path in paths]
    frame, claims, orderings, errors = (
        part[part["data"] == known.dataset].reset_index(drop=True) for part in every
    )
    if frame.empty or errors.empty:
        return None
    notes = _notes(known, [frame] if kind == "table" else [])
    return Item(name, frame, claims, orderings, tuple(notes), int(errors["seeds"].max()))


def _known(name: str) -> Published:
    known = published(name)
    if name not in ITEMS:
        raise InputError(f"Give '{known.table}' or '{known.figure}' rather than '{name}'.")
    return known


def _notes(known: Published, tables: list[pd.DataFrame]) -> list[str]:
    notes = list(known.remarks)
    for table in tables:
        notes += [note for note in dict.fromkeys(table["note"]) if note and note not in notes]
    return notes


def _rows(frame: pd.DataFrame) -> Rows:
    rows: Rows = frame.to_dict("records")  # type: ignore[assignment]
    return rows


def _about_errors(rows: Rows) -> Iterator[Verdict]:
    for row in rows:
        if row["verdict"] == "other data":
            continue
        draws = plural(int(row["seeds"]), "draw")
        yield Verdict(
            f"{row['learner']}, {SHOWN[row['method']]}: {row['paper']:g} ± {row['paper_se']:g}",
            f"{row['ours']:.4g} ± {row['ours_se']:.2g} over {draws} of the folds, "
            f"{row['in_paper_se']:+.1f} of the paper's standard errors",
            row["verdict"] != "differs",
        )


def _about_prediction(rows: Rows) -> Iterator[Verdict]:
    for row in rows:
        yield Verdict(
            f"{row['learner']}: GCM's features predict no worse than LOCO's",
            f"LOCO's error less GCM's is {row['gap']:.2g} ± {row['gap_sd']:.2g}, GCM's is lower in "
            f"{100 * row['gcm_better']:.0f}% of the draws",
            row["gap"] >= 0,
        )


def _about_features(rows: Rows) -> Iterator[Verdict]:
    """Yield each conclusion once for every learner and method it is about."""
    about: dict[tuple[str, str, str], Rows] = {}
    for row in rows:
        about.setdefault((row["claim"], row["learner"], row["method"]), []).append(row)
    for (claim, learner, method), own in about.items():
        rates = ", ".join(f"{row['feature']} {row['frequency']:.2f}" for row in own)
        is_stable = all(str(row["stable"]) == "True" for row in own)
        yield Verdict(f"{claim} ({learner}, {SHOWN[method]})", rates, is_stable)


def _about_steadiness(rows: Rows) -> Iterator[Verdict]:
    for row in rows:
        gcm, loco = row["gcm_wavering"], row["loco_wavering"]
        yield Verdict(
            f"{row['learner']}: GCM is steadier than LOCO",
            f"selected on some parts but not on all: {gcm:.1f} features against {loco:.1f}",
            gcm < loco,
        )
